"""Certificates in files: of cert-manager, which also writes caBundle, or of a user, whose CA we publish."""

from base64 import b64encode
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from jobset_gate.runtime.cert_watcher import CertWatcher
from tests.fakes.certificates import CertificateInstallation, WebhookReplica, installation
from tests.plane.planes import Plane
from webhook.certs import ca as authority
from webhook.certs.ca import CertificateAuthority, KeyPair, certificates, joined
from webhook.certs.serving import ServingCertificate
from webhook.certs.sources import OVERLAP, FileSource

DAY = timedelta(days=1)


@pytest.fixture
async def installed(embedded_plane: Plane) -> AsyncIterator[CertificateInstallation]:
    async with embedded_plane.client() as client, installation(client, "default") as made:
        yield made


class Brought:
    """A Secret as it is mounted into one replica, and the CA that its owner has."""

    def __init__(self, installed: CertificateInstallation, folder: Path, ca: CertificateAuthority) -> None:
        folder.mkdir(exist_ok=True)
        self.installed, self.folder = installed, folder
        self.change(ca)

    def change(self, ca: CertificateAuthority) -> None:
        """A new certificate by that CA."""
        pair = ca.issue([self.installed.host], now=self.installed.now(), life=90 * DAY)
        (self.folder / "tls.crt").write_bytes(pair.chain)
        (self.folder / "tls.key").write_bytes(pair.key)
        (self.folder / "ca.crt").write_bytes(joined([ca.certificate]))

    def take(self, other: "Brought") -> None:
        """The kubelet brings what is mounted up to date."""
        for name in ("tls.crt", "tls.key", "ca.crt"):
            (self.folder / name).write_bytes((other.folder / name).read_bytes())

    @property
    def pair(self) -> KeyPair:
        return KeyPair((self.folder / "tls.crt").read_bytes(), (self.folder / "tls.key").read_bytes())

    def replica(self, *, publish: bool) -> WebhookReplica:
        slot = CertWatcher(self.folder / "tls.crt", self.folder / "tls.key", ServingCertificate)
        ca = self.folder / "ca.crt" if publish else None
        source = FileSource(slot.certificate, slot.key, ca, self.installed.now)
        return self.installed.replica(source=source, slot=slot.serving)


def new_ca(installed: CertificateInstallation) -> CertificateAuthority:
    return authority.create("theirs", now=installed.now(), life=1000 * DAY)


def injected(*cas: CertificateAuthority) -> str:
    return b64encode(joined(one.certificate for one in cas)).decode()


# --- cert-manager -----------------------------------------------------------------------------------------------------


async def test_it_is_ready_when_cert_manager_has_injected_the_ca_and_writes_nothing(
    installed: CertificateInstallation, tmp_path: Path
) -> None:
    brought = Brought(installed, tmp_path / "a", ca := new_ca(installed))
    replica = brought.replica(publish=False)
    assert await replica.reconcile() == "zz-jobset-gate-default: has no caBundle"
    assert set((await installed.bundles()).values()) == {b""}
    await installed.put_bundle(injected(new_ca(installed)))
    message = await replica.reconcile()
    assert message is not None
    assert "does not verify the serving certificate for jobset-gate-webhook.default.svc" in message
    assert replica.number("jobset_gate_ca_bundle_trusted") == 0
    await installed.put_bundle(injected(ca))
    assert await replica.reconcile() is None
    assert replica.number("jobset_gate_ca_bundle_trusted") == 1
    assert await installed.secret() is None


async def test_a_certificate_of_a_new_ca_waits_until_that_is_trusted_and_has_settled(
    installed: CertificateInstallation, tmp_path: Path
) -> None:
    brought = Brought(installed, tmp_path / "a", old := new_ca(installed))
    replica = brought.replica(publish=False)
    await installed.put_bundle(injected(old))
    assert await replica.reconcile() is None
    before, new = replica.slot.pair, new_ca(installed)
    brought.change(new)
    assert await replica.reconcile() is None
    await installed.put_bundle(injected(old, new))
    assert await replica.reconcile() is None
    assert replica.slot.pair == before
    installed.now.forward(timedelta(seconds=11))
    assert await replica.reconcile() is None
    assert replica.slot.pair == brought.pair
    expected = new.certificate.not_valid_after_utc.timestamp()
    assert replica.number("jobset_gate_certificate_expiry_timestamp_seconds", certificate="ca") == expected
    brought.change(new)
    assert await replica.reconcile() is None
    assert replica.slot.pair == brought.pair, "another one of the same CA is served at once"
    brought.change(sudden := new_ca(installed))
    await installed.put_bundle(injected(sudden))
    assert await replica.reconcile() is None
    assert replica.slot.pair == brought.pair, "the old CA is trusted no more"


# --- Brought by the user ----------------------------------------------------------------------------------------------


async def test_a_new_ca_of_the_user_reaches_the_replicas_at_different_times_and_nobody_is_distrusted(
    installed: CertificateInstallation, tmp_path: Path
) -> None:
    """Kubelets bring mounted Secrets up to date up to two minutes apart."""
    first = Brought(installed, tmp_path / "a", old := new_ca(installed))
    second = Brought(installed, tmp_path / "b", old)
    replicas = [first.replica(publish=True), second.replica(publish=True)]
    known = [await installed.bundles()]

    async def rounds(seconds: float) -> None:
        for _ in range(4):
            for one in replicas:
                assert await one.reconcile() is None
                known[:] = [known[-1], await installed.bundles()]
                message = [
                    it.rollover.untrusted_reason(bundles, installed.now()) for bundles in known for it in replicas
                ]
                assert set(message) == {None}
            installed.now.forward(timedelta(seconds=seconds / 4))

    for one in replicas:
        await one.reconcile()
    known[:] = [await installed.bundles()]
    await rounds(20)
    await installed.put_bundle(None)
    await replicas[0].reconcile()
    assert set((await installed.bundles()).values()) == {joined([old.certificate])}, "healed"
    assert await installed.secret() is None, "no CA of our own"
    known[:] = [await installed.bundles()]
    first.change(new := new_ca(installed))
    await rounds(120)
    assert replicas[0].slot.pair == first.pair
    second.take(first)
    await rounds(60)
    assert replicas[1].slot.pair == second.pair
    found = certificates(next(iter((await installed.bundles()).values())))
    assert set(found) == {old.certificate, new.certificate}
    installed.now.forward(OVERLAP)
    await rounds(60)
    assert set((await installed.bundles()).values()) == {joined([new.certificate])}


async def test_replicas_that_publish_different_cas_do_not_fight(
    installed: CertificateInstallation, tmp_path: Path
) -> None:
    brought = [Brought(installed, tmp_path / name, new_ca(installed)) for name in "ab"]
    replicas = [one.replica(publish=True) for one in brought]
    for _ in range(4):
        for one in replicas:
            assert await one.reconcile() is None
    written = [one.number("jobset_gate_certificate_changes_total", what="ca_bundle") for one in replicas]
    assert written == [1, 1]
