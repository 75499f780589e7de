"""Sources of the serving certificate and the caBundle: a CA of our own in a Secret, or files that others write."""

import secrets
import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import structlog

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Conflict, NotFound
from jobset_gate.kube.resources import SECRETS
from jobset_gate.objects.unstructured import Json
from webhook.certs import ca
from webhook.certs.ca import (
    CertificateAuthority,
    KeyPair,
    certificates,
    decoded,
    fingerprint,
    has_expired,
    is_due,
    is_signed_by,
    joined,
    keys,
)
from webhook.certs.ca_injector import MANAGER, InjectedCas, WriteConflict
from webhook.certs.rotation import CaSecretContents, FirstSeen, RotationPolicy, RotationSnapshot, change

Now = Callable[[], datetime]

OVERLAP: Final = timedelta(minutes=10)
"""How long CAs that are not in our file stay published: mounted files of other replicas change earlier or later."""

_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"

log = structlog.get_logger("webhook.certificates")


# --- The Secret ------------------------------------------------------------------------------------------------------


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


# --- The sources -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DesiredCertificate:
    """What should be in caBundle, and what should be served."""

    pair: KeyPair | None
    bundle: bytes | None
    """None: the caBundle is managed elsewhere, by cert-manager for example."""
    problem: str | None = None
    """What failed and is retried."""


class OwnCaSource:
    """All replicas share the CA in a Secret; each has a certificate of its own, in memory only."""

    def __init__(
        self,
        secret: CaSecretStore,
        hosts: Sequence[str],
        policy: RotationPolicy,
        now: Now,
        changed: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`changed` is called with "ca" or "leaf" for each new one."""
        self._secret, self._hosts, self._policy, self._now = secret, hosts, policy, now
        self._changed = changed
        self._seen = FirstSeen()
        self._pair: KeyPair | None = None

    async def desired(self, live: InjectedCas) -> DesiredCertificate:
        """The Secret is read after `live`, so that a write with the version of `live` cannot undo a later change.

        Raises WriteConflict, ApiError and Unreachable.
        """
        now = self._now()
        self._seen.observe(live.in_all, now)
        settled = self._seen.seen_for(self._policy.settling, now)
        stored, problem = await self._secret.read(), None
        wanted = change(RotationSnapshot(now, stored.contents, live.in_any, settled, self._policy))
        contents = stored.contents
        if wanted is not None:
            try:
                contents = (await self._secret.write(stored, wanted.contents)).contents
                self._changed("ca")
                trusted = [fingerprint(one)[:16] for one in wanted.contents.trusted]
                log.info("CA Secret written", secret=self._secret.name, why=wanted.why, trusted=trusted)
            except Conflict as error:
                raise WriteConflict(self._secret.name) from error
            except ApiError as refused:
                problem = f"Secret {self._secret.namespace}/{self._secret.name} cannot be written: {refused}"
                if contents is None or has_expired(contents.signers[0].certificate, now):
                    return DesiredCertificate(None, None, problem)
        if contents is None:
            raise WriteConflict(self._secret.name)
        return DesiredCertificate(self._issued(contents.signers[0], now), contents.bundle, problem)

    def _issued(self, ca: CertificateAuthority, now: datetime) -> KeyPair:
        """The certificate of this replica: the present one, while it is good and of this CA."""
        if self._pair is not None:
            leaf = self._pair.certificates[0]
            if not is_due(leaf, now) and is_signed_by(leaf, ca.certificate):
                return self._pair
        self._pair = ca.issue(self._hosts, now=now, life=self._policy.leaf_life)
        self._changed("leaf")
        return self._pair


class FileSource:
    """Certificate and key are in files; so is the CA if we publish it."""

    def __init__(self, certificate: Path, key: Path, ca: Path | None, now: Now) -> None:
        self._certificate, self._key, self._ca, self._now = certificate, key, ca, now
        self._others = FirstSeen()

    async def desired(self, live: InjectedCas) -> DesiredCertificate:
        """What the files hold; a missing or half-written file changes nothing."""
        try:
            pair = KeyPair(self._certificate.read_bytes(), self._key.read_bytes())
            return DesiredCertificate(pair, self._bundle(live))
        except (OSError, ssl.SSLError) as problem:
            return DesiredCertificate(None, None, f"the certificate's files cannot be used: {problem}")

    def _bundle(self, live: InjectedCas) -> bytes | None:
        """The CA of our file, and for a while the CAs that other replicas still or already need."""
        if self._ca is None:
            return None
        ours = certificates(self._ca.read_bytes())
        if not ours:
            raise ssl.SSLError(f"no certificate in {self._ca}")
        now, known = self._now(), set(map(fingerprint, ours))
        others = {fingerprint(one): one for one in live.in_any if not has_expired(one, now)}
        self._others.observe(others.keys() - known, now)
        over = self._others.seen_for(OVERLAP, now) | known
        return joined(sorted({*ours, *(one for each, one in others.items() if each not in over)}, key=fingerprint))


CertSource = OwnCaSource | FileSource
