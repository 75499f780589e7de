"""Decodes what a list or a watch brings: one pass for what is as it should be, a second look at the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from jobset_gate.kube.lines import LONGEST_LINE, TOO_LONG
from jobset_gate.kube.problems import Kind
from jobset_gate.kube.store import Meta


class Wire(Protocol):
    """What an object is decoded into: a msgspec.Struct with at least this field."""

    @property
    def metadata(self) -> Meta: ...


W = TypeVar("W", bound=Wire)

NO_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are no JSON, or not of the wanted form."""


class Event(msgspec.Struct, Generic[W], frozen=True, gc=False):
    """A line of a watch."""

    type: str
    object: W


class _Identity(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Bare(msgspec.Struct, frozen=True, gc=False):
    """An object of which nothing but the identity could be read: a bookmark, or one that is not of our form."""

    metadata: _Identity = _Identity()


class _Loose(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"")


@dataclass(frozen=True, slots=True)
class Torn:
    """A line that told nothing; what it was meant to tell is unknown."""


class Reader(Generic[W]):
    """Decodes one resource. What cannot be read goes to `on_problem`, never into an exception."""

    def __init__(self, wire: type[W], on_problem: Callable[[Kind, str], None]) -> None:
        generic: Any = Event
        self._event: msgspec.json.Decoder[Event[W]] = msgspec.json.Decoder(generic[wire])
        self._object = msgspec.json.Decoder(wire)
        self._loose = msgspec.json.Decoder(_Loose)
        self._bare = msgspec.json.Decoder(Bare)
        self._tell = on_problem

    def event(self, line: bytes) -> Event[W] | Event[Bare] | Torn:
        """A line: typed at the first try; bookmarks, errors and objects of another form with the identity alone."""
        try:
            return self._event.decode(line)
        except NO_JSON as error:
            return self._second_look(line, error)

    def object(self, raw: msgspec.Raw) -> W | Bare | None:
        """An item of a list; None if not even its name can be read."""
        try:
            return self._object.decode(raw)
        except NO_JSON as error:
            self._tell(Kind.UNREADABLE, f"{error}: {_start(raw)}")
        try:
            return self._bare.decode(raw)
        except NO_JSON:
            return None

    def _second_look(self, line: bytes, error: Exception) -> Event[Bare] | Torn:
        if line is TOO_LONG or not line:
            self._tell(Kind.TOO_LONG, f"a line of more than {LONGEST_LINE} bytes")
            return Torn()
        try:
            loose = self._loose.decode(line)
        except NO_JSON:
            self._tell(Kind.TORN, f"{error}: {_start(line)}")
            return Torn()
        try:
            bare = self._bare.decode(loose.object)
        except NO_JSON:
            bare = Bare()
        if loose.type in ("BOOKMARK", "ERROR") or (loose.type and bare.metadata.name):
            if loose.type not in ("BOOKMARK", "ERROR"):
                self._tell(Kind.UNREADABLE, f"{error}: {_start(line)}")
            return Event(loose.type, bare)
        self._tell(Kind.UNREADABLE, f"{error}: {_start(line)}")
        return Torn()


def _start(data: bytes | msgspec.Raw) -> str:
    return repr(bytes(memoryview(data)[:80]))
