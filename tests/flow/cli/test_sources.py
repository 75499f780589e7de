"""Each command over a gang of each source: the same answers, in the words of the kind."""

import re
from dataclasses import dataclass

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import EVENTS, JOBS, PODS
from tests.fakes.cli_runner import CliShell
from tests.fakes.leader_worker_sets import install_lws_crd
from tests.fakes.stored_gang import NO_ROOM, StoredJob, StoredJobSet, install_jobset_crd, store_half
from tests.fakes.stored_leader_worker_set import StoredLeaderWorkerSet
from tests.fakes.stored_start_group import StoredStartGroup
from tests.flow.cli.test_schemas import check

pytestmark = pytest.mark.parametrize("plane", ["embedded"], indirect=True)


@dataclass(frozen=True, slots=True)
class Kind:
    """What answers about gangs of this source differ in."""

    make: type[StoredJobSet]
    typed: tuple[str, ...]
    """All that may be typed for it; first what leaves no doubt."""
    name: str
    subject: str
    slot: str
    follows: str
    more: str = ""
    """A line that `why` has for this kind alone."""
    owner: str = ""
    generation: str = ""


KINDS = {
    "jobset": Kind(
        StoredJobSet,
        ("jobset/train", "train", "po/train-workers-0-1"),
        "train",
        "jobset.jobset.x-k8s.io/train",
        "workers-0/1",
        "until backoffLimit 6 is used up and the Jobs fail; without a failurePolicy the JobSet fails then.",
        more="  workers  1/2",
        generation="restart attempt 0, epoch 0",
    ),
    "job": Kind(
        StoredJob,
        ("job/train", "jobs.batch/train", "train", "pod/train-1"),
        "train",
        "job.batch/train",
        "1",
        "the Job replaces its pods until backoffLimit 6 is used up, then it fails.",
        generation="epoch 0",
    ),
    "lws": Kind(
        StoredLeaderWorkerSet,
        ("lws/vllm/0", "leaderworkerset/vllm/0", "pod/vllm-0", "pod/vllm-0-1"),
        "vllm/0",
        "lws/vllm/0",
        "worker 1",
        "what follows is up to the LeaderWorkerSet.",
        owner="LeaderWorkerSet vllm",
        generation="attempt 0",
    ),
    "startgroup": Kind(
        StoredStartGroup,
        ("startgroup/ring", "ring", "pod/ring-1"),
        "ring",
        "startgroup/ring",
        "ring-1",
        "what follows is up to the PyTorchJob.",
        more="pods of PyTorchJob ring, attempt 0",
        owner="PyTorchJob ring",
        generation="attempt 0",
    ),
}


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def kind(source: str) -> Kind:
    return KINDS[source]


@pytest.fixture
async def stored(source: str, client: Client, namespace: str) -> StoredJobSet:
    """One of two pods of the gang has started, for the other there is no room."""
    (made,) = await stored_gangs(client, namespace, source)
    return made


async def stored_gangs(client: Client, namespace: str, *sources: str) -> list[StoredJobSet]:
    await install_jobset_crd(client, namespace)
    if "lws" in sources:
        await install_lws_crd(client)
    made = [KINDS[it].make(client, namespace) for it in sources]
    for one in made:
        await store_half(one)
    return made


async def test_why_says_who_is_missing_and_what_follows(
    stored: StoredJobSet, cli: CliShell, kind: Kind, source: str
) -> None:
    for name in kind.typed:
        ran = await cli("why", name)
        assert (ran.code, ran.err.count("error")) == (0, 0)
        head, *rest = ran.out.splitlines()
        assert head == f"{stored.source.kind} {stored.namespace}/{kind.name}: Waiting: 1/2 pods started"
        assert f"  1 pod: Unscheduled: {NO_ROOM}" in rest
        assert any(line.startswith(f"    {kind.slot}; waiting for ") for line in rest)
        assert ran.out.count(kind.follows) == 1
        assert [it.more for it in KINDS.values() if it.more in rest and it.more] == [kind.more] * bool(kind.more)
    found = check("why", (await cli("why", kind.typed[0], "-o", "json")).out)
    assert (found["of"], found["source"], found["name"]) == (stored.source.kind, source, kind.name)
    assert [it["name"] for it in found["replicatedJobs"]] == (["workers"] if source == "jobset" else [])
    owner = found["owner"] or {"kind": "", "name": ""}
    assert f"{owner['kind']} {owner['name']}".strip() == kind.owner


async def test_describe_has_no_facts_of_another_kind(
    stored: StoredJobSet, cli: CliShell, kind: Kind, source: str
) -> None:
    owner_kind, owner_name = (kind.owner or f"{stored.source.kind} {kind.name}").split()
    await stored.event(owner_kind, owner_name, "SuccessfulCreate", "create Pod a")
    ran = await cli("describe", kind.typed[0])
    facts = dict(re.findall(r"(?m)^([A-Z][A-Za-z ]+): +(.*)$", ran.out))
    assert (ran.code, facts["Name"], facts.get("Generation", "")) == (0, kind.name, kind.generation)
    assert facts.get("Targets") == ("workers" if source == "jobset" else None)
    assert facts["ConfigMap"].startswith(f"{stored.config_map_name}: no verdict")
    assert re.search(r"(?m)^\S+ +(1/2 +active|waiting +Pending)$", ran.out)
    assert "SuccessfulCreate: create Pod a" in ran.out


async def test_get_gangs_names_the_source_and_selects_by_it(
    stored: StoredJobSet, cli: CliShell, kind: Kind, source: str
) -> None:
    get = cli.command("get", "gangs", "--no-headers")
    row = [stored.source.kind, source, kind.name, "Waiting", "1/2"]
    for more in ((), (f"--source={source}",), (kind.name,), (f"--field-selector=metadata.name={kind.name}",)):
        ran = await get(*more)
        assert (ran.code, ran.out.split()[:5]) == (0, row), more
    for none in (*(f"--source={it}" for it in KINDS if it != source), "-l=team=nobody"):
        assert (await get(none)).out == "", none
    assert (await get("-o", "name")).out == kind.subject + "\n"
    (found,) = check("get jobsets, get gangs", (await get("-o", "json")).out)["items"]
    assert (found["source"], found["started"], found["missing"][0]["first"]) == (source, 1, [kind.slot])


async def test_wait_and_watch_end_with_the_release(stored: StoredJobSet, cli: CliShell, kind: Kind) -> None:
    for name in kind.typed:
        late = await cli("wait", name, "--timeout=0")
        assert (late.code, f"{kind.subject} is not released after 0s" in late.err) == (3, True)
        assert f"jobset-gate why {kind.typed[0].removeprefix('jobset/')} -n" in late.err
    wrong = await cli("wait", kind.typed[0], "--for=opened")
    assert (wrong.code, "gate is released or timedout" in wrong.err) == (2, True)
    await stored.decide(VerdictKind.RELEASE, names.REASON_BYPASSED, "opened by hand")
    assert check("why", (await cli("why", kind.typed[0], "-o", "json")).out)["state"] == "Released"
    for command in ("wait", "watch"):
        for name in kind.typed:
            ran = await cli(command, name)
            assert (ran.code, ran.out.splitlines()[-1]) == (0, f"{kind.subject} released: opened by hand"), name


async def test_a_timeline_numbers_the_pods_of_its_kind(
    stored: StoredJobSet, cli: CliShell, kind: Kind, source: str
) -> None:
    for name in kind.typed:
        found = check("timeline", (await cli("timeline", name, "-o", "json")).out)
        assert (found["of"], found["source"], found["name"]) == (stored.source.kind, source, kind.name)
        assert (found["startedPods"], found["expectedPods"], len(found["pods"])) == (1, 2, 2)
    table = (await cli("timeline", kind.typed[0])).out
    assert table.startswith(f"{stored.source.kind} {stored.namespace}/{kind.name}: 1/2 pods started; ")
    assert re.search(rf"(?m)^{kind.slot} ", table)


async def test_a_name_that_fits_several_is_refused_with_the_list(client: Client, namespace: str, cli: CliShell) -> None:
    await stored_gangs(client, namespace, "jobset", "job")
    shown = f"train fits several in namespace {namespace}: jobset/train, job/train"
    for command in ("why", "describe", "watch", "wait", "timeline", "release", "bypass"):
        ran = await cli(command, "train", *(["--yes"] if command in ("release", "bypass") else []))
        assert (ran.code, ran.out, shown in ran.err) == (2, "", True), command
    assert (await cli("why", "jobset/train", "job/train")).code == 0


async def test_a_pod_without_a_barrier_stands_for_nothing(client: Client, namespace: str, cli: CliShell) -> None:
    spec = {"containers": [{"name": "main", "image": "x"}]}
    await client.create(PODS, {"metadata": {"name": "plain"}, "spec": spec}, namespace)
    for command in (["wait"], ["timeline"], ["release", "--yes"], ["bypass", "--yes"]):
        ran = await cli(*command, "pod/plain")
        assert (ran.code, ran.out, "waits at no start barrier" in ran.err) == (1, "", True), command


@pytest.mark.parametrize("source", ["jobset", "job"], indirect=True)
@pytest.mark.parametrize("command", ["bypass", "release"])
async def test_a_gate_is_opened_on_the_object_of_its_kind(
    stored: StoredJobSet, cli: CliShell, kind: Kind, source: str, command: str
) -> None:
    """A release needs a controller, and none runs."""
    ran = await cli(command, kind.typed[-1], "--yes", *(["--timeout=1ms"] if command == "release" else []))
    made = await stored.client.get(stored.resource, "train", stored.namespace)
    stays = made["metadata"].get("annotations", {}).get(names.BYPASS)
    (event,) = (await stored.client.list(EVENTS, stored.namespace))["items"]
    assert (event["involvedObject"]["kind"], event["involvedObject"]["uid"]) == (stored.source.kind, stored.uid)
    if command == "release":
        assert (ran.code, stays) == (3, None)
        return
    assert (ran.code, stays) == (0, "true")
    word = "restarts" if source == "jobset" else "resumptions"
    removal = f"`kubectl annotate {source} train -n {stored.namespace} {names.BYPASS}-"
    assert ran.out.startswith(f"{kind.subject} bypassed for good; {removal}")
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
    await store_half(StoredJob(client, namespace))
    for command in (["why", "train"], ["describe", "train"], ["timeline", "train"], ["get", "gangs"]):
        ran = await cli(*command)
        assert (ran.code, "error" in ran.err.lower(), "train" in ran.out) == (0, False, True), (command, ran.err)
    ran = await cli("get", "gangs", "--source=job", "--no-headers")
    assert (ran.code, "JobSets" in ran.err) == (0, False)
