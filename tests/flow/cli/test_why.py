"""`why`: the question asked most, answered from the cluster itself, for anybody and without a controller (A9)."""

import re

import pytest

from jobset_gate.kube.resources import CONFIGMAPS
from jobset_gate.podgroups.model import Format
from tests.fakes.cli_runner import CliShell
from tests.fakes.stored_gang import StoredJobSet, store_every_reason, store_placing_pod
from tests.fakes.stored_pod_groups import StoredPodGroups
from tests.flow.cli.test_schemas import check


def steady(text: str, namespace: str) -> str:
    """Without what time and place do to it."""
    text = text.replace(namespace, "NS")
    text = re.sub("(?m)^.*controller.*\n", "", text)  # other tests of the plane may run one
    return re.sub(r"([0-9]+[ms])+ left", "N left", re.sub(r"waiting for [0-9]+s", "waiting for N", text))


def blocks(text: str) -> list[str]:
    """Its paragraphs; within one of them the order of pods of the same second is any."""
    return ["\n".join(sorted(re.split(r"\n(?! {3})", block))) for block in text.split("\n\n")]


EVERYTHING = """\
JobSet NS/train: Waiting: 1/6 pods started
  workers  1/6

Missing, longest waiting first:
  1 pod: Unscheduled: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu.
    workers-0/1; waiting for N
  1 pod: BarrierImagePull: group-scheduling-init: ErrImagePull: no such host
    workers-0/3; waiting for N
  1 pod: CrashLoop: fetch: CrashLoopBackOff
    workers-0/4; waiting for N
  1 pod: ImagePull: fetch: ImagePullBackOff: Back-off pulling image "registry.test/app:1"
    workers-0/2; waiting for N
  1 pod: QuotaDenied: Error creating: pods "train-workers-0-5-x" is forbidden: exceeded quota: gpus, requested: cpu=1
    workers-0/5

N left of 5m.
At the timeout: every barrier ends with exit code 124; kubelets restart it, with the same result, until \
backoffLimit 6 is used up and the Jobs fail; without a failurePolicy the JobSet fails then.
"""


async def test_each_missing_pod_has_the_words_of_what_holds_it_up(stored: StoredJobSet, cli: CliShell) -> None:
    await store_every_reason(stored)
    ran = await cli("why", "train")
    shown, _, commands = steady(ran.out, stored.namespace).partition("Next: ")
    assert (ran.code, ran.err, blocks(shown)) == (0, "", blocks(EVERYTHING))
    assert shown.index("QuotaDenied") > shown.index("Unscheduled")  # that pod was never there
    found = [line.strip() for line in commands.splitlines()]
    assert len(found) == 3
    way = f" --kubeconfig {cli.kubeconfig}"  # as it was given, so that they reach the same cluster
    assert all(it.endswith(way) for it in found)
    plain = "kubectl (describe pod|logs) train-workers-0-[0-9]( -c fetch)? -n NS"
    assert all(re.fullmatch(plain, it.removesuffix(way)) for it in found)
    assert (await cli("why", "jobset/train")).out.splitlines()[0] == ran.out.splitlines()[0]


async def test_the_kubelets_words_of_a_pod_that_it_cannot_even_begin(stored: StoredJobSet, cli: CliShell) -> None:
    await stored.jobset()
    job = await stored.job()
    uid = await stored.pod(0, job, node="far")
    await stored.event("Pod", "train-workers-0-0", "FailedMount", 'secret "tokens" not found', uid)
    ran = await cli("why", "train")
    assert '  1 pod: Starting: FailedMount: secret "tokens" not found\n    workers-0/0' in ran.out


async def test_a_config_map_in_the_way(stored: StoredJobSet, cli: CliShell) -> None:
    await stored.jobset()
    await stored.client.create(CONFIGMAPS, {"metadata": {"name": "train-group-scheduling"}}, stored.namespace)
    ran = await cli("why", "train")
    assert "ConfigMapConflict: the ConfigMap train-group-scheduling exists and is not jobset-gate's" in ran.out
    assert f"Next: kubectl get configmap train-group-scheduling -n {stored.namespace} -o yaml" in ran.out


MISSING = {
    "nobody": "error: JobSet nobody not found in namespace {}, and no pod group of that name either",
    "pod/nobody": "error: pod nobody not found in namespace {}",
    "gang/nobody": "error: pod group nobody not found in namespace {}",
}


@pytest.mark.parametrize("command", ["why", "describe", "wait", "watch", "timeline"])
async def test_what_is_not_there_is_reported_by_each_command(cli: CliShell, namespace: str, command: str) -> None:
    for name, words in MISSING.items():
        ran = await cli(command, name)
        assert (ran.code, ran.out, words.format(namespace) in ran.err) == (1, "", True), ran.err


async def test_of_several_names_those_that_are_there_are_explained(stored: StoredJobSet, cli: CliShell) -> None:
    await stored.jobset(config=False, gated=False)
    ran = await cli("why", "nobody", "train", "-o", "json")
    assert (ran.code, "JobSet nobody not found" in ran.err) == (1, True)
    listed = check("why of several", ran.out)
    assert [(it["name"], it["state"]) for it in listed["items"]] == [("train", "NotGated")]


async def test_pod_groups_are_explained_in_the_same_words(
    stored: StoredJobSet, groups: StoredPodGroups, cli: CliShell
) -> None:
    await groups.fill()
    ran = await cli("why", "podgroup/b-small")
    lines = ran.out.splitlines()
    assert lines[0] == f"PodGroup {groups.namespace}/b-small: Gathering: 1/3 pods exist"
    assert "  1 pod: Held: until the whole group is opened" in lines
    assert "  2 pods: NotCreated: no such pods exist yet" in lines
    found = check("why", (await cli("why", "gang/b-small", "-o", "json")).out)
    assert (found["of"], found["state"], found["started"], found["expected"]) == ("PodGroup", "Gathering", 0, 3)
    by_name = (await cli("why", "e-fine")).out
    assert by_name.startswith(f"PodGroup {groups.namespace}/e-fine: Running: 2 of 2 pods run")
    by_pod = (await cli("why", "pod/c-0")).out.splitlines()
    assert by_pod[0].startswith(f"PodGroup {groups.namespace}/c-lost: PodGroupMissing: 1 pods name PodGroup")
    assert by_pod[1] == "pod c-0: Held: until the whole group is opened"


async def test_a_group_that_is_being_placed_tells_the_schedulers_words_and_the_time(
    stored: StoredJobSet, groups: StoredPodGroups, cli: CliShell
) -> None:
    await groups.group("ring", 2, decided=groups.decided("ring"))
    await groups.running("ring", "ring-0", way=Format.SCHEDULER_PLUGINS)
    await store_placing_pod(groups, "ring", "ring-1", "0/4 nodes are available: 4 Insufficient cpu.")
    ran = await cli("why", "gang/ring")
    assert f"PodGroup {groups.namespace}/ring: Placing: 1/2 pods are bound" in ran.out
    assert "  1 pod: Unscheduled: 0/4 nodes are available: 4 Insufficient cpu.\n    ring-1; waiting for" in ran.out
    assert re.search("(?m)^[0-9m]+s left of 1m", ran.out)
    assert "At the timeout: all of its pods are taken back" in ran.out
