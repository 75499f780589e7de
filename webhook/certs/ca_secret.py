"""The Secret of our own CA: its contents, and writes that several replicas may attempt at once."""

import secrets
from base64 import b64encode
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
from webhook.certs.ca import CertificateAuthority, certificates, decoded, joined, keys

MANAGER: Final = f"{names.FIELD_MANAGER}-webhook"
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CaSecretContents:
    signers: tuple[CertificateAuthority, ...]
    """CAs with their keys: the one in use, then (during a rotation) the next one."""
    trusted: tuple[x509.Certificate, ...]
    """All CAs of caBundle: the signers, and former ones while certificates of theirs may be served."""
    previous_until: datetime | None = None
    """How long former CAs are needed; None: as long as they are valid."""

    @property
    def bundle(self) -> bytes:
        return joined(self.trusted)


@dataclass(frozen=True, slots=True)
class StoredCaSecret:
    """The Secret: its resourceVersion ("" if it does not exist), and its contents if they are usable."""

    version: str
    contents: CaSecretContents | None


class CaSecretStore:
    """Reads and writes one Secret."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client, self.namespace, self.name = client, namespace, name

    async def read(self) -> StoredCaSecret:
        """Raises ApiError other than NotFound, and Unreachable."""
        try:
            return _stored(await self._client.get(SECRETS, self.name, self.namespace))
        except NotFound:
            return StoredCaSecret("", None)

    async def write(self, before: StoredCaSecret, contents: CaSecretContents) -> StoredCaSecret:
        """Write it if it is still as `before`; raises Conflict otherwise."""
        until = {names.PREVIOUS_CA_UNTIL: contents.previous_until.strftime(_TIME) if contents.previous_until else None}
        body: Json = {"metadata": {"annotations": until}, "data": data(contents)}
        if before.version:
            body["metadata"]["resourceVersion"] = before.version
            return await self._patch(body, PatchType.MERGE, MANAGER)
        if contents.previous_until is None:
            del body["metadata"]
        # Created by apply, so that the right to create can be limited to this name. Another replica uses another field
        # manager, so the second of two creations is a conflict. No labels: they would conflict with those of a chart.
        return await self._patch(body | {"type": "Opaque"}, PatchType.APPLY, f"{MANAGER}-{secrets.token_hex(8)}")

    async def _patch(self, body: Json, kind: PatchType, manager: str) -> StoredCaSecret:
        return _stored(
            await self._client.patch(SECRETS, self.name, self.namespace, body=body, patch=kind, field_manager=manager)
        )


def data(contents: CaSecretContents) -> dict[str, str]:
    """The contents as the Secret's `data`."""
    signing = b"".join(one.key_pem() for one in contents.signers)
    return {
        names.KEY_CA_CERTIFICATES: b64encode(contents.bundle).decode(),
        names.KEY_CA_KEYS: b64encode(signing).decode(),
    }


def contents(data: Mapping[str, str], previous_until: str = "") -> CaSecretContents | None:
    """The contents of `data`; None without a CA and its key."""
    trusted = certificates(decoded(data.get(names.KEY_CA_CERTIFICATES)))
    signers = []
    for key in keys(decoded(data.get(names.KEY_CA_KEYS))):
        signers += [found for one in trusted if (found := ca.load(one, key)) is not None][:1]
    return CaSecretContents(tuple(signers), trusted, _time(previous_until)) if signers else None


def _stored(secret: Json) -> StoredCaSecret:
    meta = secret["metadata"]
    until = (meta.get("annotations") or {}).get(names.PREVIOUS_CA_UNTIL, "")
    return StoredCaSecret(meta["resourceVersion"], contents(secret.get("data") or {}, until))


def _time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None
