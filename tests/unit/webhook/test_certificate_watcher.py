"""The serving certificate: made, trusted by API servers or not and why, and changed under a running server."""

import asyncio
import os
import ssl
import tempfile
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from jobset_gate.kube.kubeconfig import in_memory_file
from jobset_gate.runtime.cert_watcher import CertWatcher
from tests.fakes.admission_server import admission_server, client, trusting
from tests.fakes.certificates import write_files
from tests.fakes.eventually import PATIENCE
from webhook.certs import ca as authority
from webhook.certs.ca import KeyPair, joined
from webhook.certs.serving import SelfSigned, ServingCertificate, self_signed, untrusted_reason
from webhook.server import WebhookServer


def test_without_a_certificate_nothing_is_served(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"tls\.crt"):
        CertWatcher(tmp_path / "tls.crt", tmp_path / "tls.key", ServingCertificate)


@pytest.mark.parametrize("broken", [b"", b"-----BEGIN CERTIFICATE-----\nhalf", None])
async def test_a_pair_that_does_not_fit_leaves_the_last_good_one_in_use(tmp_path: Path, broken: bytes | None) -> None:
    """Two files cannot be changed in one step: the certificate may be new while the key is still the old one."""
    first, second = self_signed(), self_signed()
    tls = write_files(first, tmp_path)
    async with admission_server(tls=tls.serving) as server:
        (tmp_path / "tls.crt").write_bytes(second.certificate if broken is None else broken)
        assert tls.reload() is False
        assert await healthy(server, first)
        (tmp_path / "tls.key").unlink()
        assert tls.reload() is False
        write_files(second, tmp_path)
        assert tls.reload() is True
        assert tls.reload() is None
        assert await healthy(server, second)
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await healthy(server, first)


async def test_changed_files_are_reloaded_in_the_background(tmp_path: Path) -> None:
    first, second = self_signed(), self_signed()
    tls = write_files(first, tmp_path)
    reported: asyncio.Queue[bool] = asyncio.Queue()
    watching = asyncio.create_task(tls.run(every=0, on_reload=reported.put_nowait))
    write_files(second, tmp_path)
    while not await asyncio.wait_for(reported.get(), PATIENCE):
        pass  # it may have read between the two writes
    watching.cancel()
    assert tls.reload() is None


async def healthy(server: WebhookServer, bundle: SelfSigned) -> bool:
    async with client(server, lambda: trusting(bundle.ca)) as session:
        return (await session.get("/healthz")).status == 200


@pytest.mark.parametrize(
    ("version", "suite", "taken"),
    [
        (ssl.TLSVersion.TLSv1_1, "ALL:@SECLEVEL=0", False),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-GCM-SHA256", True),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-SHA256", False),
    ],
)
async def test_old_protocols_and_ciphers_without_authentication_are_refused(
    version: ssl.TLSVersion, suite: str, taken: bool
) -> None:
    async with admission_server() as server, client(server, lambda: only(version, suite)) as session:
        if taken:
            assert (await session.get("/healthz")).status == 200
            return
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get("/healthz")


def only(version: ssl.TLSVersion, suite: str) -> ssl.SSLContext:
    """A client that speaks this version and these ciphers alone."""
    context = trusting()
    context.set_ciphers(suite)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = version
    return context


async def test_a_pair_in_memory_is_served_where_no_file_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container's root is read-only."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    bundle = self_signed()
    async with admission_server(tls=bundle.serving) as server:
        assert await healthy(server, bundle)


def test_without_anonymous_memory_a_file_of_the_owner_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delattr(os, "memfd_create", raising=False)
    with in_memory_file(b"secret") as path:
        assert Path(path).parent == tmp_path
        assert Path(path).stat().st_mode & 0o077 == 0
        assert Path(path).read_bytes() == b"secret"
    assert self_signed().serving.chain
    assert list(tmp_path.iterdir()) == []


async def test_metrics_say_when_the_certificate_runs_out_also_of_a_new_one() -> None:
    name, labels = "jobset_gate_certificate_expiry_timestamp_seconds", {"certificate": "serving"}
    slot, renewed = self_signed(days=1).serving, self_signed(days=3)
    async with admission_server(tls=slot) as server:
        registry = server.metrics.registry
        assert registry.get_sample_value(name, labels) == slot.chain[0].not_valid_after_utc.timestamp()
        slot.load(renewed.certificate, renewed.key)
        assert registry.get_sample_value(name, labels) == slot.chain[0].not_valid_after_utc.timestamp()


# --- Whether an API server would trust it: the same answer as a connection would give --------------------------------

NOW = datetime(2040, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
HOST = "gate.ns.svc"
CA = authority.create("a", now=NOW, life=365 * DAY)
OTHER = authority.create("b", now=NOW, life=365 * DAY)
OLD = authority.create("c", now=NOW - 400 * DAY, life=365 * DAY)


def served(pair: KeyPair) -> ServingCertificate:
    return ServingCertificate(pair.chain, pair.key)


def _signed(name: str, issuer: x509.Name, by: ec.EllipticCurvePrivateKey | None, hosts: list[str]) -> KeyPair:
    """As another tool may make it: self-signed where there is no CA, and with few extensions."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - 500 * DAY)
        .not_valid_after(NOW + 500 * DAY)
    )
    if hosts:
        names = x509.SubjectAlternativeName([x509.DNSName(one) for one in hosts])
        builder = builder.add_extension(names, critical=False)
    made = builder.sign(by or key, hashes.SHA256())
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(made.public_bytes(Encoding.PEM), text)


SLOT = served(CA.issue([HOST, "gate.ns"], now=NOW, life=7 * DAY))
OUTLIVES = served(_signed("x", OLD.certificate.subject, OLD.key, [HOST]))
"""Its CA has expired."""
ITS_OWN = _signed(HOST, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)]), None, [HOST])
NAMELESS = served(_signed(HOST, CA.certificate.subject, CA.key, []))
"""Its host is in the common name alone, at which API servers have not looked for years."""
BROKEN = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
UNVERIFIED = f"its caBundle does not verify the serving certificate for {HOST}: "
NO_ISSUER, NONE_VALID = "unable to get local issuer certificate", "its caBundle holds no certificate that is valid now"


def bundle(*cas: authority.CertificateAuthority) -> bytes:
    return joined(one.certificate for one in cas)


@pytest.mark.parametrize(
    ("slot", "bundles", "why"),
    [
        pytest.param(SLOT, {"a": bundle(CA), "b": bundle(OTHER)}, f"b: {UNVERIFIED}{NO_ISSUER}", id="all must"),
        pytest.param(SLOT, {"a": b"nonsense\n" + BROKEN + bundle(CA)}, "trusted", id="nonsense is passed over"),
        pytest.param(SLOT, {"a": BROKEN}, f"a: {NONE_VALID}", id="nonsense alone"),
        pytest.param(OUTLIVES, {"a": bundle(OLD)}, f"a: {NONE_VALID}", id="an expired CA"),
        pytest.param(OUTLIVES, {"a": bundle(OLD, OTHER)}, f"a: {UNVERIFIED}{NO_ISSUER}", id="and another CA"),
        pytest.param(served(ITS_OWN), {"a": ITS_OWN.chain}, "trusted", id="its own CA"),
        pytest.param(NAMELESS, {"a": bundle(CA)}, f"a: {UNVERIFIED}Hostname mismatch", id="a common name is no host"),
    ],
)
def test_whether_an_api_server_would_trust_it_and_why_not(
    slot: ServingCertificate, bundles: dict[str, bytes], why: str
) -> None:
    found = untrusted_reason(slot.context, slot.chain, bundles, HOST, NOW)
    assert (found or "trusted").startswith(why)
