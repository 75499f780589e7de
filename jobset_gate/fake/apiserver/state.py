"""What every request handler shares: the store, the clock, chance, admission."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from jobset_gate.fake.apiserver.admission import WebhookAdmission
from jobset_gate.fake.apiserver.encoding import Obj, timestamp
from jobset_gate.fake.apiserver.kinds import ServedKind, ServedKinds
from jobset_gate.fake.apiserver.status_errors import not_found
from jobset_gate.fake.apiserver.store import ObjectStore, StoredObject
from jobset_gate.fake.faults import Faults

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(slots=True)
class ServerState:
    """clock: seconds since 1970."""

    store: ObjectStore
    clock: Callable[[], float]
    rng: random.Random
    faults: Faults
    admission: WebhookAdmission = field(init=False)

    def __post_init__(self) -> None:
        self.admission = WebhookAdmission(self.store, self.new_uid)

    @property
    def kinds(self) -> ServedKinds:
        return self.store.kinds

    def now(self) -> str:
        return timestamp(self.clock())

    def new_uid(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def new_name(self, stem: str) -> str:
        """What generateName makes: at most 63 characters, five of them random."""
        return stem[:58] + "".join(self.rng.choices(_ALPHABET, k=5))

    def existing(self, kind: ServedKind, namespace: str | None, name: str | None) -> StoredObject:
        """Errors: Problem 404."""
        row = self.store.row(kind, namespace or "", name or "")
        if row is None:
            raise not_found(kind, name or "")
        return row


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A finished response: a whole JSON body."""

    code: int
    body: bytes
    retry_after: int | None = None


def with_identity(kind: ServedKind, obj: Obj) -> Obj:
    """`obj` with kind and apiVersion, first, as everything is stored and answered."""
    rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    return {"kind": kind.kind, "apiVersion": kind.api_version, **rest}
