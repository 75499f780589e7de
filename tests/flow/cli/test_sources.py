"""Each command over a JobSet and over a plain Job that are gangs: the same answers, in the words of the kind."""

import json
import re
import time

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, JOBS, PODS
from tests.fakes.cli_process import started
from tests.fakes.cli_runner import CliShell
from tests.fakes.stored_gang import StoredJob, StoredJobSet, install_jobset_crd
from tests.flow.cli.test_schemas import check
from tests.plane.planes import Plane

pytestmark = pytest.mark.parametrize("plane", ["embedded"], indirect=True)
NO_ROOM = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
KINDS = {"jobset": StoredJobSet, "job": StoredJob}
SLOTS = {"jobset": "workers-0/1", "job": "1"}
SUBJECTS = {"jobset": "jobset.jobset.x-k8s.io/train", "job": "job.batch/train"}
FOLLOWS = {
    "jobset": "until backoffLimit 6 is used up and the Jobs fail; without a failurePolicy the JobSet fails then.",
    "job": "the Job replaces its pods until backoffLimit 6 is used up, then it fails.",
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """The source, and the prefix of its names."""
    return str(request.param)


@pytest.fixture
async def stored(kind: str, client: Client, namespace: str) -> StoredJobSet:
    """One of two pods of the gang `train` has started, for the other there is no room."""
    (made,) = await camps(client, namespace, kind)
    return made


async def camps(client: Client, namespace: str, *kinds: str) -> list[StoredJobSet]:
    await install_jobset_crd(client, namespace)
    made = [KINDS[it](client, namespace) for it in kinds]
    for one in made:
        await half(one)
    return made


async def half(made: StoredJobSet) -> None:
    await made.jobset(labels={"team": "a"})
    job = await made.job()
    await made.started(0, job)
    await made.unscheduled(1, job, NO_ROOM)
    await made.config_map(since=time.time())


async def test_why_says_who_is_missing_and_what_follows(stored: StoredJobSet, cli: CliShell, kind: str) -> None:
    for name in (f"{kind}/train", "train", f"pod/{stored.job_name()}-1"):
        ran = await cli("why", name)
        assert (ran.code, ran.err.count("error")) == (0, 0)
        head, *rest = ran.out.splitlines()
        assert head == f"{stored.source.kind} {stored.namespace}/train: Waiting: 1/2 pods started"
        assert f"  1 pod: Unscheduled: {NO_ROOM}" in rest
        assert any(line.startswith(f"    {SLOTS[kind]}; waiting for ") for line in rest)
        assert ran.out.count(FOLLOWS[kind]) == 1
        assert ("  workers  1/2" in rest) is (kind == "jobset")
    found = check("why", (await cli("why", f"{kind}/train", "-o", "json")).out)
    assert (found["source"], found["of"]) == (kind, stored.source.kind)
    assert [it["name"] for it in found["replicatedJobs"]] == (["workers"] if kind == "jobset" else [])


async def test_describe_has_no_facts_of_another_kind(stored: StoredJobSet, cli: CliShell, kind: str) -> None:
    ran = await cli("describe", f"{kind}/train")
    facts = dict(re.findall(r"(?m)^([A-Z][A-Za-z ]+): +(.*)$", ran.out))
    assert (ran.code, facts["UID"]) == (0, stored.uid)
    assert facts["Generation"] == ("restart attempt 0, epoch 0" if kind == "jobset" else "epoch 0")
    assert facts.get("Targets") == ("workers" if kind == "jobset" else None)
    assert facts["ConfigMap"].startswith(f"{stored.source.config_map_name('train')}: no verdict, clock runs since")
    assert re.search(rf"(?m)^{stored.job_name()} +1/2 +active$", ran.out)


async def test_get_gangs_names_the_source_and_selects_by_it(stored: StoredJobSet, cli: CliShell, kind: str) -> None:
    get = cli.command("get", "gangs", "--no-headers")
    row = [stored.source.kind, kind, "train", "Waiting", "1/2"]
    for more in ((), (f"--source={kind}",), ("-l", "team=a"), ("train",), ("--sort-by=.name",)):
        ran = await get(*more)
        assert (ran.code, ran.out.split()[:5]) == (0, row), more
    other = next(it for it in KINDS if it != kind)
    for more in ((f"--source={other}",), ("-l", "team=b")):
        assert (await get(*more)).out == "", more
    assert (await get("-o", "name")).out == SUBJECTS[kind] + "\n"
    (found,) = json.loads((await get("-o", "json")).out)["items"]
    assert (found["source"], found["started"], found["missing"][0]["first"]) == (kind, 1, [SLOTS[kind]])


async def test_both_are_in_one_table_and_watched_together(
    client: Client, namespace: str, plane: Plane, cli: CliShell
) -> None:
    made = await camps(client, namespace, *KINDS)
    ran = await cli("get", "gangs", "--no-headers")
    assert [line.split()[:5] for line in ran.out.splitlines()] == [
        ["JobSet", "jobset", "train", "Waiting", "1/2"],
        ["Job", "job", "train", "Waiting", "1/2"],
    ]
    async with started(plane.kubeconfig, "get", "gangs", "-w", "-n", namespace, "--no-headers") as watch:
        assert [(await watch.line()).split()[0] for _ in made] == ["JobSet", "Job"]
        await made[1].condition(names.REASON_TIMED_OUT, f"late (uid {made[1].uid}, attempt 0, epoch 0)")
        await client.delete(JOBS, "train", namespace)
        while (shown := (await watch.line()).split())[3] != "Deleted":
            assert shown[0] == "Job"
        assert shown[:2] == ["Job", "job"]


async def test_a_name_that_fits_both_is_refused_with_the_list(client: Client, namespace: str, cli: CliShell) -> None:
    await camps(client, namespace, *KINDS)
    for command in (
        ["why"],
        ["describe"],
        ["watch"],
        ["wait"],
        ["timeline"],
        ["release", "--yes"],
        ["bypass", "--yes"],
    ):
        ran = await cli(*command, "train")
        shown = f"train fits several in namespace {namespace}: jobset/train, job/train"
        assert (ran.code, ran.out, shown in ran.err) == (2, "", True), command
    assert (await cli("why", "jobset/train", "job/train")).code == 0


async def test_wait_and_watch_end_with_the_release(stored: StoredJobSet, cli: CliShell, kind: str) -> None:
    late = await cli("wait", f"{kind}/train", "--timeout=0")
    assert (late.code, f"{SUBJECTS[kind]} is not released after 0s" in late.err) == (3, True)
    assert f"jobset-gate why {'train' if kind == 'jobset' else 'job/train'} -n" in late.err
    wrong = await cli("wait", f"{kind}/train", "--for=opened")
    assert (wrong.code, f"a {stored.source.kind}'s gate is released or timedout" in wrong.err) == (2, True)
    await released(stored)
    for command in ("wait", "watch"):
        ran = await cli(command, f"{kind}/train")
        assert (ran.code, ran.out.splitlines()[-1]) == (0, f"{SUBJECTS[kind]} released: opened by hand"), command
    assert (await cli("wait", "train", "--for=released")).code == 0


async def test_a_pod_stands_for_the_gang_that_holds_it(stored: StoredJobSet, cli: CliShell, kind: str) -> None:
    pod = f"pod/{stored.job_name()}-0"
    assert json.loads((await cli("timeline", pod, "-o", "json")).out)["source"] == kind
    assert f"{SUBJECTS[kind]} is not released after 0s" in (await cli("wait", pod, "--timeout=0")).err
    ran = await cli("bypass", pod, "--yes")
    assert (ran.code, ran.out.startswith(f"{SUBJECTS[kind]} bypassed for good; ")) == (0, True)


async def test_a_pod_without_a_barrier_stands_for_nothing(client: Client, namespace: str, cli: CliShell) -> None:
    spec = {"containers": [{"name": "main", "image": "x"}]}
    await client.create(PODS, {"metadata": {"name": "plain"}, "spec": spec}, namespace)
    for command in (["wait"], ["timeline"], ["release", "--yes"], ["bypass", "--yes"]):
        ran = await cli(*command, "pod/plain")
        assert (ran.code, ran.out, "waits at no start barrier" in ran.err) == (1, "", True), command


async def released(stored: StoredJobSet) -> None:
    await stored.client.delete(CONFIGMAPS, stored.source.config_map_name("train"), stored.namespace)
    await stored.config_map(VerdictKind.RELEASE, names.REASON_BYPASSED, "opened by hand")


async def test_a_timeline_numbers_the_pods_of_its_kind(stored: StoredJobSet, cli: CliShell, kind: str) -> None:
    found = check("timeline", (await cli("timeline", f"{kind}/train", "-o", "json")).out)
    assert (found["of"], found["source"], found["startedPods"], found["expectedPods"]) == (
        stored.source.kind,
        kind,
        1,
        2,
    )
    table = (await cli("timeline", "train")).out
    assert table.startswith(f"{stored.source.kind} {stored.namespace}/train: 1/2 pods started; ")
    assert re.search(rf"(?m)^{SLOTS[kind]} ", table)


@pytest.mark.parametrize("command", ["bypass", "release"])
async def test_a_gate_is_opened_on_the_object_of_its_kind(
    stored: StoredJobSet, cli: CliShell, kind: str, command: str
) -> None:
    ran = await cli(command, f"{kind}/train", "--yes", *(["--timeout=1ms"] if command == "release" else []))
    made = await stored.client.get(stored.resource, "train", stored.namespace)
    stays = made["metadata"].get("annotations", {}).get(names.BYPASS)
    (event,) = (await stored.client.list(EVENTS, stored.namespace))["items"]
    assert (event["involvedObject"]["kind"], event["involvedObject"]["uid"]) == (stored.source.kind, stored.uid)
    if command == "release":
        assert (ran.code, stays) == (3, None)
        return
    assert (ran.code, stays) == (0, "true")
    word = "restarts" if kind == "jobset" else "resumptions"
    removal = f"`kubectl annotate {kind} train -n {stored.namespace} {names.BYPASS}-"
    assert ran.out.startswith(f"{SUBJECTS[kind]} bypassed for good; {removal}")
    assert f"gates later {word} again" in ran.out


# --- What only a Job can be ------------------------------------------------------------------------------------------


async def test_a_job_that_the_webhook_has_not_seen_is_found(client: Client, namespace: str, cli: CliShell) -> None:
    await StoredJob(client, namespace).jobset(gated=False)
    for name in ("train", "job/train"):
        ran = await cli("why", name)
        assert ran.out.startswith(f"Job {namespace}/train: GateMissing: nothing holds the pods; ")
        assert "the webhook of jobset-gate was not there when this Job was created" in ran.out


async def test_a_job_without_the_annotation_is_no_gang(client: Client, namespace: str, cli: CliShell) -> None:
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}}
    await client.create(JOBS, {"metadata": {"name": "plain"}, "spec": spec}, namespace)
    ran = await cli("why", "job/plain")
    assert f"asks for no start barrier: it has no annotation {names.CONFIG}" in ran.out
    ran = await cli("why", "plain")
    assert (ran.code, f"JobSet plain not found in namespace {namespace}, and no pod group" in ran.err) == (1, True)
    ran = await cli("timeline", "job/plain")
    assert (ran.code, f"has no annotation {names.CONFIG}" in ran.err) == (1, True)


async def test_jobs_are_gangs_where_jobsets_are_not_installed(client: Client, namespace: str, cli: CliShell) -> None:
    await half(StoredJob(client, namespace))
    for command in (["why", "train"], ["describe", "train"], ["timeline", "train"], ["get", "gangs"]):
        ran = await cli(*command)
        assert (ran.code, "error" in ran.err.lower(), "train" in ran.out) == (0, False, True), (command, ran.err)
    ran = await cli("get", "gangs", "--source=job", "--no-headers")
    assert (ran.code, "JobSets" in ran.err) == (0, False)
