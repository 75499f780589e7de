"""Decodes lists and watches: typed in one pass; what does not fit is decoded again for its identity alone."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

import msgspec

from jobset_gate.kube.errors import DECODE_ERRORS
from jobset_gate.kube.resources import Resource
from jobset_gate.kube.transport import LONGEST_LINE, TOO_LONG
from jobset_gate.runtime.store import W


class WatchProblemKind(enum.StrEnum):
    """What can be wrong with a list or a watch; the values are labels of a metric."""

    TORN = "torn"  # a line that is no JSON
    TOO_LONG = "too_long"
    UNREADABLE = "unreadable"  # JSON, but not an event or not an object of this resource's form
    UNCONVERTIBLE = "unconvertible"  # convert() raised
    ERROR_EVENT = "error_event"
    EXPIRED = "expired"
    SILENT = "silent"
    WATCH_FAILED = "watch_failed"
    LIST_FAILED = "list_failed"


@dataclass(frozen=True, slots=True)
class WatchProblem:
    """A problem that the informer has handled; `detail` is for the log."""

    kind: WatchProblemKind
    resource: Resource
    detail: str


OnWatchProblem = Callable[[WatchProblem], None]


class WatchEvent(msgspec.Struct, Generic[W], frozen=True, gc=False):
    type: str
    object: W


class ObjectIdentity(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The part of metadata that every object has."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class PartialObjectMetadata(msgspec.Struct, frozen=True, gc=False):
    """The identity of an object that could not be decoded whole: a bookmark, or an object of another form."""

    metadata: ObjectIdentity = ObjectIdentity()


class _Loose(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"")


class ObjectDecoder(Generic[W]):
    """Decodes one resource. What cannot be decoded goes to `on_problem`, never into an exception."""

    def __init__(self, wire: type[W], on_problem: Callable[[WatchProblemKind, str], None]) -> None:
        generic: Any = WatchEvent
        self._event: msgspec.json.Decoder[WatchEvent[W]] = msgspec.json.Decoder(generic[wire])
        self._object = msgspec.json.Decoder(wire)
        self._loose = msgspec.json.Decoder(_Loose)
        self._bare = msgspec.json.Decoder(PartialObjectMetadata)
        self._on_problem = on_problem

    def decode_event(self, line: bytes) -> WatchEvent[W] | WatchEvent[PartialObjectMetadata] | None:
        """A line of a watch; bookmarks, errors and objects of another form with their identity alone.

        None for a line that could not be decoded at all: an event may have been lost.
        """
        try:
            return self._event.decode(line)
        except DECODE_ERRORS as error:
            return self._decode_loosely(line, str(error))

    def decode_object(self, raw: msgspec.Raw) -> W | PartialObjectMetadata | None:
        """An item of a list; None if not even its name can be read."""
        try:
            return self._object.decode(raw)
        except DECODE_ERRORS as error:
            self._on_problem(WatchProblemKind.UNREADABLE, f"{error}: {excerpt(raw)}")
        try:
            return self._bare.decode(raw)
        except DECODE_ERRORS:
            return None

    def _decode_loosely(self, line: bytes, error: str) -> WatchEvent[PartialObjectMetadata] | None:
        if line == TOO_LONG:
            self._on_problem(WatchProblemKind.TOO_LONG, f"a line of more than {LONGEST_LINE} bytes")
            return None
        try:
            loose = self._loose.decode(line)
        except DECODE_ERRORS:
            self._on_problem(WatchProblemKind.TORN, f"{error}: {excerpt(line)}")
            return None
        try:
            bare = self._bare.decode(loose.object)
        except DECODE_ERRORS:
            bare = PartialObjectMetadata()
        if loose.type not in ("BOOKMARK", "ERROR"):
            self._on_problem(WatchProblemKind.UNREADABLE, f"{error}: {excerpt(line)}")
            if not (loose.type and bare.metadata.name):
                return None
        return WatchEvent(loose.type, bare)


def excerpt(data: bytes | msgspec.Raw) -> str:
    """The beginning of what could not be decoded, for a message."""
    return repr(bytes(memoryview(data)[:80]))
