"""The serving certificate: made, trusted, and changed under a running door."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509

from jobset_gate.settings import Settings
from tests.webhook.doors import client, door, trusting
from webhook import selfsigned
from webhook.server import Server, serve
from webhook.tls import Certificate


def test_the_certificate_is_for_its_hosts_and_for_serving_and_signed_by_its_ca() -> None:
    bundle = selfsigned.make(["127.0.0.1", "gate.ns.svc"])
    leaf, ca = x509.load_pem_x509_certificate(bundle.certificate), x509.load_pem_x509_certificate(bundle.ca)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(it.value) for it in names] == ["127.0.0.1", "gate.ns.svc"]
    leaf.verify_directly_issued_by(ca)


def test_it_is_valid_from_a_little_before_now_until_its_days_are_over() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    leaf = x509.load_pem_x509_certificate(selfsigned.make(days=3, now=now).certificate)
    assert leaf.not_valid_before_utc < now
    assert leaf.not_valid_after_utc == now + timedelta(days=3)


def test_the_key_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    selfsigned.make().write(tmp_path)
    assert (tmp_path / "tls.key").stat().st_mode & 0o077 == 0


def test_without_a_certificate_there_is_no_door(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"tls\.crt"):
        Certificate(tmp_path / "tls.crt", tmp_path / "tls.key")


def test_a_certificate_that_stays_is_not_loaded_again(tmp_path: Path) -> None:
    assert selfsigned.make().write(tmp_path).reload() is None


async def test_a_new_certificate_is_served_to_new_connections_without_a_restart(tmp_path: Path) -> None:
    first, second = selfsigned.make(), selfsigned.make()
    tls = first.write(tmp_path)
    server = await serve(Settings(), tls=tls)
    try:
        assert await healthy(server, first)
        second.write(tmp_path)
        assert tls.reload() is True
        assert await healthy(server, second)
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await healthy(server, first)
    finally:
        await server.stop()


@pytest.mark.parametrize("broken", [b"", b"-----BEGIN CERTIFICATE-----\nhalf", None])
async def test_a_pair_that_does_not_fit_leaves_the_last_good_one_in_use(tmp_path: Path, broken: bytes | None) -> None:
    """Two files cannot be changed in one step: the certificate may be new while the key is still the old one."""
    first, second = selfsigned.make(), selfsigned.make()
    tls = first.write(tmp_path)
    server = await serve(Settings(), tls=tls)
    try:
        (tmp_path / "tls.crt").write_bytes(second.certificate if broken is None else broken)
        assert tls.reload() is False
        assert await healthy(server, first)
        (tmp_path / "tls.key").unlink()
        assert tls.reload() is False
        second.write(tmp_path)
        assert tls.reload() is True
        assert await healthy(server, second)
    finally:
        await server.stop()


async def test_the_files_are_looked_at_as_long_as_the_door_is_open(tmp_path: Path) -> None:
    first, second = selfsigned.make(), selfsigned.make()
    tls = first.write(tmp_path)
    reported: asyncio.Queue[bool] = asyncio.Queue()
    async with tls.followed(reported.put_nowait, every=0):
        second.write(tmp_path)
        while not await asyncio.wait_for(reported.get(), 10):
            pass  # it may have looked between the two files
    assert tls.reload() is None


async def healthy(server: Server, bundle: selfsigned.Bundle) -> bool:
    async with client(server, lambda: trusting(bundle.ca)) as session:
        return (await session.get("/healthz")).status == 200


async def test_old_protocols_are_refused(tmp_path: Path) -> None:
    async with door(tmp_path) as server:
        context = trusting()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        async with client(server, lambda: context) as session:
            assert (await session.get("/healthz")).status == 200
        assert selfsigned.make().write(tmp_path).context.minimum_version == ssl.TLSVersion.TLSv1_2
