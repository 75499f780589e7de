"""`doctor` and the sources of gangs: what nothing holds, what nobody decides on, and how each is tried."""

from typing import Any

import pytest
import yaml

from jobset_gate import names
from jobset_gate.cli.commands.doctor import findings
from jobset_gate.cli.doctor import dry_runs, webhook_configurations
from jobset_gate.cli.doctor.check import ClusterReader, FindingLevel
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import CONFIGMAPS, DEPLOYMENTS, JOBS, LEADER_WORKER_SETS, MUTATING_WEBHOOKS
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import Gangs, Groups, Settings
from tests.fakes import jobs
from tests.fakes.admission_server import BUNDLE, registered, registered_for_pods
from tests.fakes.doctor_shell import WEBHOOK, DoctorShell, accused, deployment, only_embedded
from tests.fakes.leader_worker_sets import install_lws_crd
from tests.fakes.stored_gang import StoredJob, StoredJobSet
from tests.fakes.stored_leader_worker_set import StoredLeaderWorkerSet
from tests.fakes.stored_start_group import StoredStartGroup
from webhook import registration

Json = dict[str, Any]
NO_BARRIER = " "
STARTING = Settings(gangs=Gangs(sources=("jobset", "startgroup")))


@only_embedded
async def test_jobs_that_nothing_holds_and_jobs_that_nobody_decides_on(camp: StoredJobSet, doctor: DoctorShell) -> None:
    await camp.client.create(JOBS, jobs.job(name="bare", namespace=camp.namespace), camp.namespace)
    ended = jobs.job(name="ended", namespace=camp.namespace)
    ended["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    await camp.client.create(JOBS, ended, camp.namespace)
    await camp.client.patch(
        JOBS, "ended", camp.namespace, body={"status": ended["status"]}, patch=PatchType.MERGE, subresource="status"
    )
    waits = StoredJob(camp.client, camp.namespace)
    await waits.jobset()
    await waits.started(0, await waits.job())
    found = await doctor.found()
    unseen = found[f"1 Job with the annotation {names.CONFIG} and without a gate"]
    assert accused(unseen) == ("error", f"{camp.namespace}/bare")
    left = found["Jobs are not sent to the webhook, and 1 gang of Jobs still waiting for a verdict"]
    assert accused(left) == ("error", f"{camp.namespace}/train")
    assert "release job/NAME" in left["remedy"]
    assert f"1 gang in namespace {camp.namespace}" in found
    async with registered(camp.client, camp.namespace):
        found = await doctor.found()
    assert not any("still waiting for a verdict" in what for what in found)
    only_jobsets = Settings(gangs=Gangs(sources=("jobset",)))
    async with registered(camp.client, camp.namespace, only_jobsets):
        assert "a gated Job gets its barrier" not in await doctor.found()


@only_embedded
async def test_start_groups_that_nothing_holds_and_start_groups_that_nobody_decides_on(
    camp: StoredJobSet, doctor: DoctorShell
) -> None:
    waits, half, bare = (StoredStartGroup(camp.client, camp.namespace, it) for it in ("waits", "half", "bare"))
    for group in (waits, half, bare):
        await group.jobset()
    for group, index, barrier in ((waits, 0, ""), (half, 0, ""), (half, 1, NO_BARRIER), (bare, 0, NO_BARRIER)):
        await group.pod(index, barrier, phase="Pending")
    found = await doctor.found()
    unheld = found["2 start groups with a pod that has no barrier"]
    names_of = {f"{camp.namespace}/half-1", f"{camp.namespace}/bare-0"}
    assert (unheld["level"], set(unheld["why"].rpartition(": ")[2].split(", "))) == ("error", names_of)
    left = found["pods are not sent to the webhook, and 2 start groups still waiting for a verdict"]
    assert (left["level"], left["why"].partition(": ")[2]) == ("error", f"{camp.namespace}/ring, {camp.namespace}/ring")
    assert "release startgroup/NAME" in left["remedy"]
    assert found["no controller leads, and 4 pods wait for its word"]["level"] == "error"
    assert f"3 gangs in namespace {camp.namespace}" in found
    assert "every gang has its barrier" not in found
    made = registration.barrier_pod_configuration(STARTING.gangs, url="https://127.0.0.1:1")
    await camp.client.create(MUTATING_WEBHOOKS, made)
    found = await doctor.found()
    assert not any("still waiting for a verdict" in what for what in found)
    refused = found["API servers do not reach start-groups.jobset-gate.dev"]
    assert (refused["level"], "pods are ready" in refused["remedy"]) == ("error", True)


@only_embedded
async def test_groups_of_leader_worker_sets_that_nothing_holds_or_nobody_decides_on(
    camp: StoredJobSet, doctor: DoctorShell
) -> None:
    await install_lws_crd(camp.client)
    vllm = StoredLeaderWorkerSet(camp.client, camp.namespace)
    await vllm.jobset()
    await vllm.started(0, "", 0)
    await vllm.pod(0, NO_BARRIER, 1, phase="Pending")
    found = await doctor.found()
    unseen = found[f"1 LeaderWorkerSet with the annotation {names.CONFIG} and without a gate"]
    assert accused(unseen) == ("error", f"{camp.namespace}/vllm")
    bare = found["1 group of a LeaderWorkerSet with a pod that has no barrier"]
    assert accused(bare) == ("error", f"{camp.namespace}/vllm-1")
    left = found["pods are not sent to the webhook, and 1 group of a LeaderWorkerSet still waiting for a verdict"]
    assert (left["why"].rpartition(": ")[2], "release lws/NAME" in left["remedy"]) == (f"{camp.namespace}/vllm/0", True)
    gangs = Gangs(sources=("jobset", "lws"))
    made = registration.barrier_pod_configuration(gangs, url="https://127.0.0.1:1")
    await camp.client.create(MUTATING_WEBHOOKS, made)
    found = await doctor.found()
    assert not any("still waiting for a verdict" in what for what in found)
    assert found["API servers do not reach leaderworkerset-pods.jobset-gate.dev"]["level"] == "error"
    kept = [it for it in found if it.endswith("has no webhook for LeaderWorkerSets")]
    assert len(kept) == 2
    marked = {"metadata": {"labels": {names.GATED: names.GATED_LWS}}}
    body = {"spec": {"leaderWorkerTemplate": {"workerTemplate": marked}}}
    await camp.client.patch(LEADER_WORKER_SETS, "vllm", camp.namespace, body=body, patch=PatchType.MERGE)
    assert not any("without a gate" in what for what in await doctor.found())


ON, ON_IGNORE = ({"sources": ["jobset", "startgroup"], "podFailurePolicy": it} for it in ("Fail", "Ignore"))


@only_embedded
@pytest.mark.parametrize(
    ("gangs", "policy", "bundle", "expected"),
    [
        ({}, None, "", []),
        (ON, None, "", [("error", "is missing")]),
        (ON, "Fail", BUNDLE.ca_bundle, [("ok", "is there")]),
        (ON, "Fail", "", [("error", "has no caBundle")]),
        (ON, "Ignore", BUNDLE.ca_bundle, [("warning", "has the failurePolicy Ignore")]),
        (ON_IGNORE, "Ignore", BUNDLE.ca_bundle, [("ok", "is there")]),
        (ON_IGNORE, "Fail", BUNDLE.ca_bundle, [("warning", "has the failurePolicy Fail")]),
        (None, "Ignore", BUNDLE.ca_bundle, [("warning", "has the failurePolicy Ignore")]),
    ],
)
async def test_the_configuration_for_start_groups_is_as_the_settings_say(
    camp: StoredJobSet, gangs: Json | None, policy: Any, bundle: str, expected: list[tuple[str, str]]
) -> None:
    """`gangs`: that section of the settings, None where there are none to be read."""
    volumes = [{"name": "settings", "configMap": {"name": "settings"}}]
    installed = deployment("webhook", "gate:1", labels=WEBHOOK, volumes=volumes)
    await camp.client.create(DEPLOYMENTS, installed, camp.namespace)
    if gangs is not None:
        data = {"settings.yaml": yaml.safe_dump({"gangs": gangs})}
        await camp.client.create(CONFIGMAPS, {"metadata": {"name": "settings"}, "data": data}, camp.namespace)
    if policy is not None:
        asked = Gangs(sources=STARTING.gangs.sources, pod_failure_policy=policy)
        made = registration.barrier_pod_configuration(asked, url="https://127.0.0.1:1", ca_bundle=bundle or None)
        await camp.client.create(MUTATING_WEBHOOKS, made)
    reader = ClusterReader(camp.client, camp.namespace, camp.namespace)
    about = f"MutatingWebhookConfiguration {names.BARRIER_POD_WEBHOOK} "
    found = [it for it in await findings(reader, [("x", webhook_configurations.check)]) if it.what.startswith(about)]
    assert [(str(it.level), it.what.removeprefix(about)) for it in found] == expected
    bundles = await findings(reader, [("x", webhook_configurations.bundles)])
    assert [it.what for it in bundles] == ([f"the CA that {about.split()[1]} trusts is valid"] if bundle else [])


@only_embedded
async def test_pods_of_groups_are_tried_in_a_format_that_is_on(camp: StoredJobSet) -> None:
    for way in Format:
        settings = Settings(groups=Groups(ways=(way,), scheduler_names=("ours", "theirs")))
        async with registered_for_pods(camp.client, camp.namespace, settings):
            reader = ClusterReader(camp.client, camp.namespace, camp.namespace)
            [found] = await findings(reader, [("x", dry_runs.pod)])
        assert (found.level, found.what) == (FindingLevel.OK, "a pod of a group is held"), way
