"""One API request: what its path addresses, its query, its body as an object; and what all handlers share."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from jobset_gate.fake.apiserver.kinds import ServedKind, ServedKinds
from jobset_gate.fake.apiserver.responses import (
    Obj,
    bad_request,
    decode,
    no_such_path,
    not_found,
)
from jobset_gate.fake.apiserver.store import ObjectStore, StoredObject
from jobset_gate.fake.objects import stamp

if TYPE_CHECKING:
    from jobset_gate.fake.apiserver.admission import WebhookAdmission

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """The object (with a name) or collection that a path addresses. namespace None: all, or cluster-scoped."""

    kind: ServedKind
    namespace: str | None = None
    name: str | None = None
    subresource: str = ""


@dataclass(slots=True)
class ApiRequest:
    """verb: get, list, watch, create, update, patch, delete or deletecollection."""

    verb: str
    target: RequestTarget
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = "application/json"
    agent: str = "unknown"
    warnings: list[str] = field(default_factory=list)

    @property
    def kind(self) -> ServedKind:
        return self.target.kind

    @property
    def dry_run(self) -> bool:
        return bool(self.query.get("dryRun"))

    @property
    def media_type(self) -> str:
        return self.content_type.partition(";")[0].strip()

    def flag(self, name: str) -> bool:
        """A boolean of the query, as Go reads it."""
        return self.query.get(name, "").lower() in ("1", "t", "true")

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


@dataclass(slots=True)
class ServerState:
    """What every request handler shares. clock: seconds since 1970."""

    store: ObjectStore
    clock: Callable[[], float]
    rng: random.Random
    admission: WebhookAdmission = field(init=False)

    @property
    def kinds(self) -> ServedKinds:
        return self.store.kinds

    def now(self) -> str:
        return stamp(self.clock())

    def new_uid(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def new_name(self, stem: str) -> str:
        """What generateName makes: at most 63 characters, five of them random."""
        return stem[:58] + "".join(self.rng.choices(_ALPHABET, k=5))

    def existing(self, target: RequestTarget) -> StoredObject:
        """Errors: StatusError 404."""
        row = self.store.row(target.kind, target.namespace or "", target.name or "")
        if row is None:
            raise not_found(target.kind, target.name or "")
        return row


def with_identity(kind: ServedKind, obj: Obj) -> Obj:
    """`obj` with kind and apiVersion, first, as everything is stored and answered."""
    rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    return {"kind": kind.kind, "apiVersion": kind.api_version, **rest}


def parse_target(kinds: ServedKinds, path: str) -> RequestTarget:
    """Errors: StatusError 404 for a path that leads nowhere."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    match parts:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            raise no_such_path()
    namespace = None
    if rest[:1] == ["namespaces"] and len(rest) >= 3 and kinds.at(group, version, rest[2]):
        namespace, rest = rest[1], rest[2:]
    if not rest or len(rest) > 3:
        raise no_such_path()
    kind = kinds.at(group, version, rest[0])
    name = rest[1] if len(rest) > 1 else None
    if kind is None or (namespace is not None and not kind.namespaced):
        raise no_such_path()
    if kind.namespaced and name is not None and namespace is None:
        raise no_such_path()
    return RequestTarget(kind, namespace, name, rest[2] if len(rest) > 2 else "")


def parse_body(request: ApiRequest) -> Any:
    """Errors: StatusError 400 for what is no JSON."""
    try:
        return decode(request.body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error


def whole_object(request: ApiRequest, obj: Any) -> Obj:
    """`obj` if it is of the target's kind, with the namespace of the path. Errors: StatusError 400."""
    kind = request.kind
    if not isinstance(obj, dict):
        raise bad_request(f"the body must be an object, not {type(obj).__name__}")
    for field_name, wanted in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        if (given := obj.get(field_name)) not in (None, "", wanted):
            raise bad_request(f"the {field_name} in the data ({given}) does not match the expected one ({wanted})")
    meta = obj.setdefault("metadata", {})
    if not isinstance(meta, dict):
        raise bad_request("metadata must be an object")
    if not kind.namespaced:
        meta.pop("namespace", None)
    elif meta.get("namespace") not in (None, "", request.target.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    else:
        meta["namespace"] = request.target.namespace
    return obj
