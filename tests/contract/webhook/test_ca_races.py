"""Replicas that read the same and then write: the first wins, the second hears of it and looks again."""

import pytest

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Conflict
from jobset_gate.kube.resources import SECRETS
from tests.fakes.certificates import SECRET, CertificateInstallation, installation
from webhook.certs import ca as authority
from webhook.certs.ca_injector import CaInjector, WriteConflict
from webhook.certs.rotation import CaSecretContents, RotationPolicy
from webhook.certs.sources import CaSecretStore


def made(installed: CertificateInstallation) -> CaSecretContents:
    ca = authority.create("a", now=installed.now(), life=RotationPolicy().ca_life)
    return CaSecretContents((ca,), (ca.certificate,))


@pytest.mark.parametrize("there", ["missing", "empty", "full"])
async def test_of_two_that_write_the_secret_one_is_refused(installed: CertificateInstallation, there: str) -> None:
    if there != "missing":
        await installed.client.create(SECRETS, {"metadata": {"name": SECRET}}, installed.namespace)
    one, other = (CaSecretStore(installed.client, installed.namespace, SECRET) for _ in range(2))
    if there == "full":
        await one.write(await one.read(), made(installed))
    before = await one.read(), await other.read()
    assert before[0].version == before[1].version
    await one.write(before[0], first := made(installed))
    with pytest.raises(Conflict):
        await other.write(before[1], made(installed))
    stored = (await other.read()).contents
    assert stored is not None
    assert stored.trusted == first.trusted


async def test_of_two_that_write_the_bundle_one_is_refused(installed: CertificateInstallation) -> None:
    """Else a replica that is late would take a new CA away again, whose certificates are served already."""
    one, other = (CaInjector(installed.client, installed.which) for _ in range(2))
    before = await one.read(), await other.read()
    await one.write(before[0], b"first")
    with pytest.raises(WriteConflict):
        await other.write(before[1], b"second")
    assert set((await installed.bundles()).values()) == {b"first"}


async def test_a_configuration_that_went_meanwhile_is_a_lost_race(client: Client, namespace: str) -> None:
    async with installation(client, namespace) as installed:
        published = CaInjector(client, installed.which)
        before = await published.read()
    with pytest.raises(WriteConflict):
        await published.write(before, b"x")
