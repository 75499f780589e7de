"""Our own CA against an API server: made once, published, healed, followed by the next. Time is virtual."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict
from jobset_gate.kube.resources import MUTATING_WEBHOOKS, SECRETS
from jobset_gate.settings import Groups
from tests.fakes.admission_server import limited
from tests.fakes.certificates import SECRET, SERVICE, CertificateInstallation, Json, WebhookReplica, installation
from tests.fakes.eventually import eventually
from tests.plane.planes import Plane
from webhook.certs import ca as authority
from webhook.certs.ca import certificates, is_signed_by
from webhook.certs.ca_injector import CaInjector, WriteConflict
from webhook.certs.rotation import CaSecretContents, RotationPolicy
from webhook.certs.serving import self_signed
from webhook.certs.sources import CaSecretStore, contents
from webhook.registration import ServiceReference, pod_configuration

DAY = timedelta(days=1)


@pytest.fixture
async def installed(client: Client, namespace: str) -> AsyncIterator[CertificateInstallation]:
    async with installation(client, namespace) as made:
        yield made


async def ready(installed: CertificateInstallation, count: int = 2) -> list[WebhookReplica]:
    """That many replicas, all trusted."""
    replicas = [installed.replica() for _ in range(count)]
    for replica in replicas:
        assert await replica.reconcile() is None
    return replicas


async def cas(installed: CertificateInstallation) -> list[str]:
    """The names of the CAs in caBundle; both configurations have the same."""
    mutating, validating = (await installed.bundles()).values()
    assert mutating == validating
    return [str(one.subject.rfc4514_string()) for one in certificates(mutating)]


async def edit(installed: CertificateInstallation, data: Json) -> None:
    await installed.client.patch(SECRETS, SECRET, installed.namespace, body={"data": data}, patch=PatchType.MERGE)


# --- Made once --------------------------------------------------------------------------------------------------------


async def test_replicas_that_start_at_the_same_moment_share_one_ca(installed: CertificateInstallation) -> None:
    replicas = [installed.replica() for _ in range(4)]
    message = replicas[0].certificates.not_ready_reason()
    assert message == "the webhook configurations have not been read yet"
    assert await asyncio.gather(*(one.reconcile() for one in replicas)) == [None] * 4
    for one in replicas:
        assert await one.reconcile() is None
        assert await installed.trusts(one)
        assert one.number("jobset_gate_ca_bundle_trusted") == 1
    assert len(await cas(installed)) == 1
    assert len({one.slot.chain[0].serial_number for one in replicas}) == 4, "each has a certificate of its own"


async def test_without_the_configurations_it_waits_and_says_so(client: Client, namespace: str) -> None:
    async with installation(client, namespace) as installed:
        replica = installed.replica()
    assert await replica.reconcile() == f"there is no MutatingWebhookConfiguration zz-jobset-gate-{namespace}"
    async with installation(client, namespace):
        assert await replica.reconcile() is None


async def test_nothing_is_written_while_all_is_well(installed: CertificateInstallation) -> None:
    replicas = await ready(installed)
    before = [await installed.secret(), *[await installed.client.get(*one) for one in installed.which]]
    for _ in range(3):
        installed.now.forward(DAY / 2)
        assert [await one.reconcile() for one in replicas] == [None, None]
    assert [await installed.secret(), *[await installed.client.get(*one) for one in installed.which]] == before


# --- Healed -----------------------------------------------------------------------------------------------------------


async def test_a_deleted_secret_is_made_again_and_nobody_is_distrusted_meanwhile(
    installed: CertificateInstallation,
) -> None:
    first, second = replicas = await ready(installed)
    (old,) = await cas(installed)
    await installed.client.delete(SECRETS, SECRET, installed.namespace)
    for _ in range(6):
        for one in replicas:
            assert await one.reconcile() is None
            assert await installed.trusts(first)
            assert await installed.trusts(second)
        installed.now.forward(timedelta(seconds=4))
    found = await cas(installed)
    assert len(found) == 2
    assert found[1] == old
    new, _ = certificates(next(iter((await installed.bundles()).values())))
    assert all(is_signed_by(one.slot.chain[0], new) for one in replicas), "the new CA is used after the settling time"


async def test_a_secret_that_cannot_be_used_is_replaced(installed: CertificateInstallation) -> None:
    replicas = await ready(installed)
    nonsense, other = b64encode(b"nonsense").decode(), self_signed()
    edits: list[Json] = [
        {"ca.key": nonsense},
        {"ca.crt": nonsense},
        {"ca.crt": None},
        {"ca.crt": b64encode(other.ca).decode()},
        {"ca.key": b64encode(other.key).decode()},
        {"ca.crt": "", "ca.key": ""},
    ]
    for data in edits:
        await edit(installed, data)
        for _ in range(3):
            for one in replicas:
                assert await one.reconcile() is None, data
                assert [await installed.trusts(it) for it in replicas] == [True, True], data
            installed.now.forward(timedelta(seconds=12))
        secret = await installed.secret()
        assert secret is not None
        assert len(secret["data"]["ca.key"]) > 100, data


async def test_certificates_are_renewed_at_two_thirds_of_their_lives_and_replaced_when_expired(
    installed: CertificateInstallation,
) -> None:
    """Nobody was there for a week, and then for a year."""
    (replica,) = await ready(installed, 1)
    (old,) = await cas(installed)
    first, before = replica.slot.chain[0], await installed.secret()
    for days, renewed in ((4, False), (1, True)):
        installed.now.forward(days * DAY)
        assert await replica.reconcile() is None
        assert (replica.slot.chain[0] != first) is renewed
    assert replica.number("jobset_gate_certificate_changes_total", what="leaf") == 2
    installed.now.forward(8 * DAY)
    assert replica.certificates.not_ready_reason() == "the serving certificate has run out"
    assert await replica.reconcile() is None
    assert await installed.secret() == before, "the CA is good for longer"
    installed.now.forward(366 * DAY)
    assert replica.certificates.not_ready_reason() == "the serving certificate has run out"
    assert await replica.reconcile() is None
    assert await installed.trusts(replica)
    assert old not in await cas(installed)


async def test_a_replica_whose_clock_is_behind_replaces_nothing(installed: CertificateInstallation) -> None:
    """It waits, and the others go on."""
    (replica,) = await ready(installed, 1)
    before = await installed.secret()
    installed.now.forward(timedelta(hours=-1))
    late = installed.replica()
    message = await late.reconcile()
    assert message is not None
    assert await installed.secret() == before
    installed.now.forward(timedelta(hours=1))
    assert await late.reconcile() is None
    assert await installed.trusts(replica)


async def test_a_watch_wakes_it_long_before_the_next_round_is_due(installed: CertificateInstallation) -> None:
    replica = installed.replica()
    replica.certificates._interval = 3600
    running = asyncio.create_task(replica.certificates.run())
    try:
        await eventually(lambda: installed.trusts(replica))
        for changed in (None, b64encode(b"nonsense").decode(), self_signed().ca_bundle):
            await installed.put_bundle(changed)
            await eventually(lambda: installed.trusts(replica))
        await installed.client.delete(SECRETS, SECRET, installed.namespace)
        await eventually(installed.secret)
    finally:
        running.cancel()
        await asyncio.wait([running])


# --- Renewed and followed ---------------------------------------------------------------------------------------------


async def test_at_no_moment_of_several_rotations_is_a_replica_distrusted(embedded_plane: Plane) -> None:
    """Three replicas in turn, each now and then followed by a new one.

    What stands in caBundle, and what stood there before the last change, since an API server may not know better yet:
    both verify what each replica serves.
    """
    async with embedded_plane.client() as client, installation(client, "default") as installed:
        installed.terms = RotationPolicy(ca_life=21 * DAY)
        replicas = await ready(installed, 3)
        known, changed, seen = [await installed.bundles()], 0, set(await cas(installed))
        for index in range(110):
            assert await replicas[index % 3].reconcile() is None
            if (now := await installed.bundles()) != known[-1]:
                known, changed = [known[-1], now], index
            for bundles in known:
                message = [one.rollover.untrusted_reason(bundles, installed.now()) for one in replicas]
                assert message == [None] * 3, f"round {index}"
            seen |= set(await cas(installed))
            if index % 20 == 0:
                replicas[index % 3] = (await ready(installed, 1))[0]
            installed.now.forward(timedelta(seconds=5) if index - changed < 12 else DAY)
            if index - changed >= 12:
                known = known[-1:]
        assert len(seen) >= 3
        assert len(await cas(installed)) <= 2


async def test_the_next_ca_is_published_before_it_signs_and_then_the_key_of_the_old_one_is_forgotten(
    installed: CertificateInstallation,
) -> None:
    replicas = await ready(installed)
    installed.now.forward(245 * DAY)
    await replicas[0].reconcile()
    old, new = certificates(next(iter((await installed.bundles()).values())))
    installed.now.forward(timedelta(seconds=9))
    await replicas[0].reconcile()
    (late,) = await ready(installed, 1)
    assert is_signed_by(late.slot.chain[0], old), "one that starts during the settling time does not sign with it"
    for _ in range(4):
        installed.now.forward(timedelta(seconds=9))
        for one in replicas:
            await one.reconcile()
    assert all(is_signed_by(one.slot.chain[0], new) for one in replicas)
    secret = await installed.secret()
    assert secret is not None
    found = contents(secret["data"])
    assert found is not None
    assert [one.certificate for one in found.signers] == list(found.trusted[:1]) == [new]
    assert names.PREVIOUS_CA_UNTIL in secret["metadata"]["annotations"]


# --- Among others -----------------------------------------------------------------------------------------------------


async def test_an_apply_of_the_chart_neither_conflicts_nor_takes_the_bundle_away(
    plane: Plane, installed: CertificateInstallation
) -> None:
    """Helm 4 applies on the server's side, as kubectl does here under its name."""
    (replica,) = await ready(installed, 1)
    before = await installed.bundles()
    for resource, name in installed.which:
        found = await installed.client.get(resource, name)
        for hook in found["webhooks"]:
            del hook["clientConfig"]["caBundle"]
        given = {"webhooks": found["webhooks"], "metadata": {"name": name, "labels": {"upgraded": "yes"}}}
        await installed.client.patch(resource, name, body=given, patch=PatchType.APPLY, field_manager="helm")
    assert await installed.bundles() == before
    assert await replica.reconcile() is None


async def test_the_configuration_for_pods_is_optional_and_gets_the_same_ca_bundle(
    installed: CertificateInstallation,
) -> None:
    """An uninstallation deletes it first, and an upgrade may create it, with any caBundle."""
    suffix = f"-{installed.namespace}"
    name, service = names.POD_WEBHOOK + suffix, ServiceReference(installed.namespace, SERVICE)
    installed.optional = ((MUTATING_WEBHOOKS, name),)
    replica = installed.replica()
    assert await replica.reconcile() is None
    for bundle in (None, self_signed(["another"]).ca_bundle):
        made = pod_configuration(Groups(), service=service, suffix=suffix, ca_bundle=bundle)
        await installed.client.create(MUTATING_WEBHOOKS, limited(made, installed.namespace))
        try:
            assert await replica.reconcile() is None
            assert len(set((await installed.bundles()).values())) == 1
            assert await installed.trusts(replica)
        finally:
            await installed.client.delete(MUTATING_WEBHOOKS, name)
        assert await replica.reconcile() is None


# --- Replicas that read the same and then write: the first wins, the second looks again -------------------------------


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
