"""Gangs of other sources than JobSets on the page: rows, pages, rights, timelines and JSON of their own."""

from collections.abc import AsyncIterator

import pytest

from docs.make.api_schemas import API_SCHEMAS
from jobset_gate import names
from jobset_gate.barrier.model import GangKey
from jobset_gate.runtime.store import ObjectChange
from jobset_gate.sources.lws import WorkerSetSeen
from tests.fakes import gangs, lws_controller
from tests.fakes.served_page import ServedPage, line, read, serve_page
from tests.fakes.start_group_controller import OWNER, RING, RUNS, SPACE, member, read_member
from tests.fakes.wire_objects import bare_job_pod, owner
from tests.tools.documented import check_document
from tests.unit.statuspage.test_api import read as read_json

LIST, ONE, _ = API_SCHEMAS.values()
OTHER = GangKey(SPACE, "ring.other", "startgroup")
JOBSET_PATH, JOB_PATH = "/gangs/default/train", "/jobs/default/train"
LWS_PATH = f"/lws/{SPACE}/vllm-2"
RING_PATH = f"/startgroups/{SPACE}/ring.{OWNER}"


@pytest.fixture
async def stage() -> AsyncIterator[ServedPage]:
    """A JobSet that has started whole and a Job of its name that lacks a pod; one of two pods of the start group
    `ring` under a StatefulSet has started, and an MPIJob has both pods of that name; the leader of group 2 of the
    LeaderWorkerSet `vllm` has started.
    """
    async with serve_page() as made:
        made.put(gangs.jobset(), gangs.pod(0), gangs.pod(1))
        job = gangs.job_gang(gangs.pod(0), gangs.waiting_pod(1, detail="no room"))
        made.put(job.workload, *job.pods)
        mpi = [owner("MPIJob", "mpi", "other")]
        for body in (member("ring-0", RUNS), *(member(f"mpi-{it}", RUNS, ownerReferences=mpi) for it in (0, 1))):
            pod = read_member(body)
            made.index.on_pod(ObjectChange((SPACE, pod.name), None, pod))
            made.api.pods.append(body)
        for body in (lws_controller.leader_pod("A", RUNS), lws_controller.worker_pod(1)):
            pod = lws_controller.read_pod(body)
            made.index.on_pod(ObjectChange((SPACE, pod.name), None, pod))
            made.api.pods.append(body)
        worker_set = WorkerSetSeen(namespace=SPACE, name="vllm-2", uid="sts-A", leader_uid="A")
        made.index.on_worker_set(ObjectChange((SPACE, "vllm-2"), None, worker_set))
        yield made


SHOWN = [
    ("gang-default.train", JOBSET_PATH, "JobSet", "train", "", "2/2"),
    ("job-default.train", JOB_PATH, "Job", "train", "", "1/2"),
    (f"startgroup-{SPACE}.{RING.name}", RING_PATH, "StartGroup", "ring", "StatefulSet ring", "1/2"),
    (f"startgroup-{SPACE}.{OTHER.name}", f"/startgroups/{OTHER}", "StartGroup", "ring", "MPIJob mpi", "2/2"),
    (f"lws-{SPACE}.vllm-2", LWS_PATH, "LeaderWorkerSet", "vllm/2", "", "1/2"),
]
TYPED = {"JobSet": "", "Job": "job/", "StartGroup": "startgroup/", "LeaderWorkerSet": "lws/"}


async def test_each_gang_has_a_row_and_a_page_in_the_words_of_its_kind(stage: ServedPage) -> None:
    admin = stage.api.admin()
    _, page = await read(stage, "/", admin)
    for row, path, kind, name, whose, count in SHOWN:
        space, mine = path.split("/")[2], line(page, row)
        assert f'<a href="{path}">{name}</a>' in mine
        assert f"{kind}{whose and f' of {whose}'}</span>" in mine
        assert count in mine
        status, its = await read(stage, path, admin)
        assert (status, f'<span class="kind">{kind}</span> {space}/{name}' in its) == (200, True)
        assert f"kubectl jobset-gate timeline {TYPED[kind]}{name} -n {space}" in its
        assert f"<dd>{whose}</dd>" in its or not whose
        assert ("no room" in its) is (kind == "Job")


async def test_timelines_have_the_pods_of_their_gang_alone(stage: ServedPage) -> None:
    named = {"name": "train-0", "namespace": "default", "annotations": {names.JOB_COMPLETION_INDEX: "0"}}
    labels = {names.GATED: names.GATED_JOB, names.JOB_NAME: "train"}
    owners = [owner("Job", "train", gangs.UID)]
    stage.api.pods.append(bare_job_pod(0, meta=named | {"labels": labels, "ownerReferences": owners}))
    for path, pods in ((JOB_PATH, ["train-0"]), (JOBSET_PATH, []), (RING_PATH, ["ring-0"]), (LWS_PATH, ["leader"])):
        _, drawn = await read(stage, f"{path}/timeline.svg", stage.api.admin())
        assert [it for it in ("train-0", "ring-0", "mpi-0", "leader") if it in drawn] == pods


async def test_programs_find_the_source_and_the_address_of_a_gang_in_the_list(stage: ServedPage) -> None:
    admin = stage.api.admin()
    _, listed = await read_json(stage, "/api/v1/gangs", admin)
    check_document(listed, LIST)
    found = {(it["source"], it["of"], it["name"], it["path"]) for it in listed["items"]}
    assert {("jobset", "JobSet", "train", JOBSET_PATH), ("job", "Job", "train", JOB_PATH)} < found
    assert ("startgroup", "StartGroup", "ring", RING_PATH) in found
    assert ("lws", "LeaderWorkerSet", "vllm/2", LWS_PATH) in found
    for name, source, started in (
        ("default/train", "", 2),
        ("default/train", "jobset", 2),
        ("default/train", "job", 1),
        (RING_PATH.removeprefix("/startgroups/"), "startgroup", 1),
        (LWS_PATH.removeprefix("/lws/"), "lws", 1),
    ):
        query = f"?source={source}" if source else ""
        status, one = await read_json(stage, f"/api/v1/gangs/{name}{query}", admin)
        check_document(one, ONE)
        assert (status, one["source"], one["started"], one["expected"]) == (200, source or "jobset", started, 2)


RIGHTS = {JOBSET_PATH: "jobsets.jobset.x-k8s.io", JOB_PATH: "jobs.batch", RING_PATH: "pods"}
RIGHTS |= {LWS_PATH: "leaderworkersets.leaderworkerset.x-k8s.io"}


@pytest.mark.parametrize("shown", RIGHTS)
async def test_who_may_list_one_kind_sees_that_kind(stage: ServedPage, shown: str) -> None:
    stage.api.users["viewer"] = "viewer"
    stage.api.grants.add(("viewer", RIGHTS[shown], "*"))
    status, page = await read(stage, "/", "viewer")
    assert (status, [it for it in RIGHTS if f'href="{it}"' in page]) == (200, [shown])
    assert (await read(stage, shown, "viewer"))[0] == 200
    for hidden in {*RIGHTS} - {shown}:
        for tail in ("", "/timeline.svg"):
            status, page = await read(stage, hidden + tail, "viewer")
            assert (status, f"You may not list {RIGHTS[hidden]}" in page) == (403, True)


async def test_without_start_groups_the_right_to_pods_alone_shows_nothing() -> None:
    async with serve_page() as stage:
        stage.api.users["may"] = "may"
        stage.api.grants.add(("may", "pods", "*"))
        assert (await read(stage, "/", "may"))[0] == 403
