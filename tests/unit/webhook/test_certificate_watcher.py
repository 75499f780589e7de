"""The serving certificate: made, trusted, and changed under a running server."""

import asyncio
import os
import ssl
import tempfile
import warnings
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509

from jobset_gate.kube.kubeconfig import in_memory_file
from jobset_gate.settings import Settings
from tests.fakes.admission_server import BUNDLE, admission_server, client, trusting
from tests.fakes.certificates import write_files
from webhook.certs.serving import SelfSigned, ServingCertificate, ServingFiles, self_signed
from webhook.server import WebhookServer, serve


def test_without_a_certificate_nothing_is_served(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"tls\.crt"):
        ServingFiles(tmp_path / "tls.crt", tmp_path / "tls.key")


@pytest.mark.parametrize("broken", [b"", b"-----BEGIN CERTIFICATE-----\nhalf", None])
async def test_a_pair_that_does_not_fit_leaves_the_last_good_one_in_use(tmp_path: Path, broken: bytes | None) -> None:
    """Two files cannot be changed in one step: the certificate may be new while the key is still the old one."""
    first, second = self_signed(), self_signed()
    tls = write_files(first, tmp_path)
    server = await serve(Settings(), tls=tls.serving)
    try:
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
    finally:
        await server.stop()


async def test_changed_files_are_reloaded_in_the_background(tmp_path: Path) -> None:
    first, second = self_signed(), self_signed()
    tls = write_files(first, tmp_path)
    reported: asyncio.Queue[bool] = asyncio.Queue()
    watching = asyncio.create_task(tls.run(every=0, on_reload=reported.put_nowait))
    write_files(second, tmp_path)
    while not await asyncio.wait_for(reported.get(), 10):
        pass  # it may have read between the two writes
    watching.cancel()
    assert tls.reload() is None


async def healthy(server: WebhookServer, bundle: SelfSigned) -> bool:
    async with client(server, lambda: trusting(bundle.ca)) as session:
        return (await session.get("/healthz")).status == 200


@pytest.mark.parametrize(
    ("version", "suite", "taken"),
    [
        (ssl.TLSVersion.TLSv1, "ALL:@SECLEVEL=0", False),
        (ssl.TLSVersion.TLSv1_1, "ALL:@SECLEVEL=0", False),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-GCM-SHA256", True),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-CHACHA20-POLY1305", True),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-SHA256", False),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES256-SHA384", False),
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
    async with admission_server(tls=ServingCertificate(bundle.pair)) as server:
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


async def test_metrics_say_when_the_certificate_runs_out_also_of_a_new_one(tmp_path: Path) -> None:
    name, labels = "jobset_gate_certificate_expiry_timestamp_seconds", {"certificate": "serving"}
    async with admission_server() as server:
        registry = server.metrics.registry
        (leaf,) = x509.load_pem_x509_certificates(BUNDLE.certificate)
        assert registry.get_sample_value(name, labels) == leaf.not_valid_after_utc.timestamp()
    slot, renewed = self_signed(days=1).serving, self_signed(days=3)
    server = await serve(Settings(), tls=slot)
    try:
        slot.load(renewed.certificate, renewed.key)
        read = server.metrics.registry.get_sample_value(name, labels)
        assert read == slot.chain[0].not_valid_after_utc.timestamp()
    finally:
        await server.stop()
