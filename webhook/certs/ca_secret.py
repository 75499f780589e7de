"""The Secret of our own CA: what its contents mean, and how replicas that race for it change it."""

import binascii
import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from cryptography import x509

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import SECRETS
from webhook.certs import ca
from webhook.certs.ca import CertificateAuthority, certificates, joined, keys

MANAGER: Final = f"{names.FIELD_MANAGER}-webhook"
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CaSecretContents:
    """What the Secret holds."""

    signers: tuple[CertificateAuthority, ...]
    """Those whose keys are there: the one in use, then (during a rotation) the one to follow."""
    trusted: tuple[x509.Certificate, ...]
    """All that stand in caBundle: the signers', and those that sign no more while their certificates may be served."""
    previous_until: datetime | None = None
    """How long those that sign no more are needed; None: as long as they are valid."""

    @property
    def bundle(self) -> bytes:
        """As it is published."""
        return joined(self.trusted)


@dataclass(frozen=True, slots=True)
class StoredCaSecret:
    """The Secret as it was read: its version ("" if there is none), and its contents if they can be used."""

    version: str
    contents: CaSecretContents | None


class CaSecretStore:
    """One Secret of an API server."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client, self.namespace, self.name = client, namespace, name

    async def read(self) -> StoredCaSecret:
        """Raises ApiError other than NotFound, and Unreachable."""
        try:
            return _stored(await self._client.get(SECRETS, self.name, self.namespace))
        except NotFound:
            return StoredCaSecret("", None)

    async def write(self, before: StoredCaSecret, contents: CaSecretContents) -> StoredCaSecret:
        """Change it if it still is as `before`; raises Conflict if another was faster."""
        until = {names.PREVIOUS_CA_UNTIL: contents.previous_until.strftime(_TIME) if contents.previous_until else None}
        body: Json = {"metadata": {"annotations": until}, "data": data(contents)}
        if before.version:
            body["metadata"]["resourceVersion"] = before.version
            return await self._patch(body, PatchType.MERGE, MANAGER)
        if contents.previous_until is None:
            del body["metadata"]
        # Created by apply: the right to create can then be had for this one name. Who else creates it at this moment
        # does so under another manager's name, and the second of two is refused as a conflict. No labels: a chart that
        # has its own for this Secret would be refused in the same way.
        return await self._patch(body | {"type": "Opaque"}, PatchType.APPLY, f"{MANAGER}-{secrets.token_hex(8)}")

    async def _patch(self, body: Json, kind: PatchType, manager: str) -> StoredCaSecret:
        return _stored(
            await self._client.patch(SECRETS, self.name, self.namespace, body=body, patch=kind, field_manager=manager)
        )


def data(contents: CaSecretContents) -> dict[str, str]:
    """As the Secret's `data`."""
    signing = b"".join(one.key_pem() for one in contents.signers)
    return {
        names.KEY_CA_CERTIFICATES: b64encode(contents.bundle).decode(),
        names.KEY_CA_KEYS: b64encode(signing).decode(),
    }


def contents(data: Mapping[str, str], previous_until: str = "") -> CaSecretContents | None:
    """What `data` says; None if it says nothing that could be used: no CA with its key."""
    trusted = certificates(_decoded(data.get(names.KEY_CA_CERTIFICATES)))
    signers = []
    for key in keys(_decoded(data.get(names.KEY_CA_KEYS))):
        signers += [found for one in trusted if (found := ca.load(one, key)) is not None][:1]
    return CaSecretContents(tuple(signers), trusted, _time(previous_until)) if signers else None


def _stored(secret: Json) -> StoredCaSecret:
    meta = secret["metadata"]
    until = (meta.get("annotations") or {}).get(names.PREVIOUS_CA_UNTIL, "")
    return StoredCaSecret(meta["resourceVersion"], contents(secret.get("data") or {}, until))


def _decoded(text: str | None) -> bytes:
    try:
        return b64decode(text or "", validate=True)
    except (binascii.Error, ValueError):
        return b""


def _time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None
