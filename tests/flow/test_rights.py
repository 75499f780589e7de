"""The rights that the chart gives are enough for all that is ever done, and none of them is more than that takes.

Without pod groups: test_rights_groups.py has what these need in addition.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientSession

from jobset_gate import names
from jobset_gate.barrier.crd import is_extended
from jobset_gate.kube.resources import CRDS, LEASES
from jobset_gate_demo.fake.kubelet import FakeNode
from tests.fakes.certificates import write_files
from tests.fakes.eventually import PATIENCE, eventually
from tests.fakes.object_view import ObjectView
from tests.flow import rights, stories
from tests.flow.environment import QUICK, Environment, Json, environment, in_force
from tests.flow.installed import CONTROLLER, LIVELY, RELEASE, WEBHOOK, Installed, Program, installed
from tests.flow.test_crd import until_extended
from tests.plane.planes import Real
from tests.plane.ports import free_port
from webhook.certs.serving import LOOPBACK, self_signed

pytestmark = pytest.mark.real

WITHOUT_GROUPS = (*LIVELY, "groups.enabled=false")
WITH_ALL = (*WITHOUT_GROUPS, "statusPage.enabled=true", "gangs.sources={jobset,job,lws,startgroup}")
WITHOUT_STREAM = replace(QUICK, stream=False)
"""A pod that hears its verdict on the gate stream is not patched for a while: that right would look needless."""


async def until_held_by(stage: Environment, namespace: str, holder: str) -> None:
    def holds(leases: list[Json]) -> bool:
        return any(one.get("spec", {}).get("holderIdentity") == holder for one in leases)

    async with ObjectView(stage.client, LEASES, namespace, field_selector=f"metadata.name={names.LEASE}") as leases:
        await leases.until(holds, PATIENCE)


@asynccontextmanager
async def replicas(release: Installed, stage: Environment, page: int) -> AsyncIterator[list[Program]]:
    """Two controllers; the first leads, and shows its page at port `page`."""
    async with AsyncExitStack() as stack:
        found = []
        for identity, port in (("first", page), ("second", free_port())):
            options = (f"--identity={identity}", "--stream-host=127.0.0.1", "--stream-port=0", f"--page-port={port}")
            found.append(await stack.enter_async_context(release.program("controller", *options)))
            await until_held_by(stage, release.namespace, "first")
        for one in found:
            await one.until_up()
        yield found


async def two_look_at(page: int, release: Installed) -> None:
    """Only one of the two may list gangs."""
    url, seen = f"http://127.0.0.1:{page}", dict[str, int]()

    async def answered() -> bool:
        for account in (CONTROLLER, WEBHOOK):
            headers = {"Authorization": f"Bearer {await release.token(account)}"}
            with suppress(OSError, ClientError):
                async with ClientSession(url, headers=headers) as session, session.get("/") as answer:
                    seen[account] = answer.status
        return seen == {CONTROLLER: 200, WEBHOOK: 403}

    await eventually(answered, lambda: str(seen))


async def test_the_whole_flow_takes_exactly_the_rights_of_the_chart(real_plane: Real, namespace: str) -> None:
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(
            environment(
                real_plane, namespace,
                nodes=(FakeNode("small", pods=3),), behaviour=WITHOUT_STREAM, controller=False, webhook=False,
            )
        )  # fmt: skip
        release = await stack.enter_async_context(installed(real_plane, *WITH_ALL))
        generation = await stories.owner_applies_the_crd(stage)
        await stack.enter_async_context(release.program("webhook"))
        first, _ = await stack.enter_async_context(replicas(release, stage, page := free_port()))
        await until_extended(stage.client, generation)
        await in_force(stage)
        await two_look_at(page, release)
        await stories.held_until_the_last_node_comes(stage)
        await stories.suspended_and_resumed(stage)
        await stories.its_configmap_loses_its_owner(stage)
        await stories.its_configmap_deleted_after_the_release(stage)
        await stories.restarted(stage)
        await stories.timed_out(stage)
        await stories.a_job_is_a_gang(stage)
        await stories.a_start_group_starts(stage)
        await stories.groups_of_a_leader_worker_set_start(stage)
        await stories.an_unrelated_configmap_has_its_name(stage)
        await stories.an_earlier_lifes_configmap_has_its_name(stage)
        await stories.the_ca_is_lost(stage, release.namespace, f"{RELEASE}-ca")
        await stories.the_ca_bundle_is_wiped(stage)
        await in_force(stage)
        await stage.client.delete(LEASES, names.LEASE, release.namespace)
        await until_held_by(stage, release.namespace, "first")
        assert await first.stop() == 0
        await until_held_by(stage, release.namespace, "second")
        await until_extended(stage.client, await stories.owner_applies_the_crd(stage))
        await stories.released(stage, "after-the-take-over")
    rights.check(release, CONTROLLER)
    rights.check(release, WEBHOOK)


MODES = {
    "certManager": ("webhook.certificates.mode=certManager",),
    "secret": ("webhook.certificates.mode=secret", "webhook.certificates.secretName=mine"),
}


@pytest.mark.parametrize("mode", MODES)
async def test_a_certificate_from_elsewhere_takes_exactly_the_rights_of_its_mode(
    real_plane: Real, namespace: str, tmp_path: Path, mode: str
) -> None:
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(
            environment(real_plane, namespace, controller=False, webhook=False, stream=False)
        )
        release = await stack.enter_async_context(installed(real_plane, *MODES[mode], *WITHOUT_GROUPS))
        made = self_signed([f"{WEBHOOK}.{release.namespace}.svc", *LOOPBACK])
        write_files(made, tmp_path)
        files = [f"--tls-cert={tmp_path / 'tls.crt'}", f"--tls-key={tmp_path / 'tls.key'}"]
        files += [f"--tls-ca={tmp_path / 'ca.crt'}"] if mode == "secret" else []
        webhook = await stack.enter_async_context(release.program("webhook", *files))
        if mode == "certManager":
            await stories.cert_manager_injects(stage, made.ca_bundle)
        await webhook.until_ready(made.ca.decode())
        await in_force(stage)
        if mode == "secret":
            await stories.the_ca_bundle_is_wiped(stage)
    rights.check(release, WEBHOOK)
    assert not [one for one in release.requests(WEBHOOK) if one.resource == "secrets"]


async def test_what_the_hooks_of_the_chart_do_takes_exactly_their_rights(real_plane: Real, namespace: str) -> None:
    """The pod of `helm test`, and the Job that takes the field out of the CRD when everything else is gone."""
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(
            environment(real_plane, namespace, controller=False, webhook=False, stream=False)
        )
        values = ("crds.keep=false", *WITHOUT_GROUPS)
        release = await stack.enter_async_context(installed(real_plane, *values))
        async with release.program("webhook"):
            await in_force(stage)
            (trial,) = [one["spec"] for one in release.manifests if one["kind"] == "Pod"]
            (container,) = trial["containers"]
            code, said = await release.once(trial["serviceAccountName"], *container["command"][1:], *container["args"])
            assert (code, said.splitlines()[-1]) == (0, "a gated JobSet in namespace default gets its barrier")
        (job,) = [one["spec"]["template"]["spec"] for one in release.manifests if one["kind"] == "Job"]
        program = ("-m", "jobset_gate.cli", *job["containers"][0]["args"])
        code, said = await release.once(job["serviceAccountName"], *program)
        assert code == 0, said
        assert not is_extended(await stage.client.get(CRDS, names.JOBSET_CRD))
    for account in (trial["serviceAccountName"], job["serviceAccountName"]):
        rights.check(release, account)
