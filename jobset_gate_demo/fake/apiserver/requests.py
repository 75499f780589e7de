"""One API request: what its path addresses, its query, its body as an object; and what all handlers share."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from jobset_gate_demo.fake.apiserver.kinds import ServedKind, ServedKinds
from jobset_gate_demo.fake.apiserver.responses import Obj, decode, no_such_path, not_found
from jobset_gate_demo.fake.apiserver.store import ObjectStore, StoredObject
from jobset_gate_demo.fake.objects import stamp

if TYPE_CHECKING:
    from jobset_gate_demo.fake.apiserver.admission import WebhookAdmission

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
    """verb: get, list, watch, create, update, patch or delete."""

    verb: str
    target: RequestTarget
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    media_type: str = "application/json"
    agent: str = "unknown"
    warnings: list[str] = field(default_factory=list)

    @property
    def kind(self) -> ServedKind:
        return self.target.kind

    @property
    def name(self) -> str:
        return self.target.name or ""

    @property
    def dry_run(self) -> bool:
        return bool(self.query.get("dryRun"))

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
    group, version, *rest = ("", *parts[1:]) if parts[0] == "api" else parts[1:]
    namespace = None
    if rest[:1] == ["namespaces"] and len(rest) >= 3 and kinds.at(group, version, rest[2]):
        namespace, rest = rest[1], rest[2:]
    kind = kinds.at(group, version, rest[0]) if rest else None
    if kind is None:
        raise no_such_path()
    name = rest[1] if len(rest) > 1 else None
    return RequestTarget(kind, namespace, name, rest[2] if len(rest) > 2 else "")


def body_object(request: ApiRequest) -> Obj:
    """The object in the body, with the namespace of the path."""
    obj: Obj = decode(request.body)
    meta = obj.setdefault("metadata", {})
    meta.pop("namespace", None)
    if request.kind.namespaced:
        meta["namespace"] = request.target.namespace
    return obj
