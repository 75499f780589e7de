"""Start groups on the page: a row for each owner of a name, seen by who may list pods, each with a page of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from docs.make.api_schemas import API_SCHEMAS
from jobset_gate.barrier.model import GangKey
from jobset_gate.runtime.store import ObjectChange
from tests.fakes.served_page import ServedPage, serve_page
from tests.fakes.start_group_controller import OWNER, RING, RUNS, SPACE, member, read_member
from tests.fakes.wire_objects import owner
from tests.tools.documented import check_document
from tests.unit.statuspage.test_api import read as read_json
from tests.unit.statuspage.test_authz import read
from tests.unit.statuspage.test_lists import line

LIST, ONE, _ = API_SCHEMAS.values()
OTHER = GangKey(SPACE, "ring.other", "startgroup")
PATH = f"/startgroups/{SPACE}/ring.{OWNER}"


@pytest.fixture
async def stage() -> AsyncIterator[ServedPage]:
    """One of two pods of `ring` under a StatefulSet has started; an MPIJob has both pods of that name."""
    async with serve_page() as made:
        pods = [
            member("ring-0", RUNS),
            *(member(f"mpi-{number}", RUNS, ownerReferences=[owner("MPIJob", "mpi", "other")]) for number in (0, 1)),
        ]
        for body in pods:
            pod = read_member(body)
            made.index.on_pod(ObjectChange((SPACE, pod.name), None, pod))
        made.api.pods += pods
        yield made


async def test_each_owner_has_a_row_and_a_page_with_its_name_on_it(stage: ServedPage) -> None:
    admin = stage.api.admin()
    _, page = await read(stage, "/", admin)
    for key, whose, count in ((RING, "StatefulSet ring", "1/2"), (OTHER, "MPIJob mpi", "2/2")):
        mine = line(page, f"startgroup-{SPACE}.{key.name}")
        assert f'<a href="/startgroups/{key}">ring</a>' in mine
        assert f"StartGroup of {whose}</span>" in mine
        assert count in mine
        status, its = await read(stage, f"/startgroups/{key}", admin)
        assert (status, f'<span class="kind">StartGroup</span> {SPACE}/ring' in its) == (200, True)
        assert f"<dd>{whose}</dd>" in its
        assert f"kubectl jobset-gate timeline startgroup/ring -n {SPACE}" in its


async def test_the_timeline_has_the_pods_of_one_owner(stage: ServedPage) -> None:
    _, drawn = await read(stage, f"{PATH}/timeline.svg", stage.api.admin())
    assert ("ring-0" in drawn, "mpi-0" in drawn) == (True, False)


async def test_programs_find_the_address_of_a_gang_in_the_list(stage: ServedPage) -> None:
    admin = stage.api.admin()
    _, listed = await read_json(stage, "/api/v1/gangs", admin)
    check_document(listed, LIST)
    (mine,) = (it for it in listed["items"] if it["owner"]["kind"] == "StatefulSet")
    assert (mine["source"], mine["name"], mine["path"], mine["attempt"]) == ("startgroup", "ring", PATH, 0)
    path = mine["path"].replace("/startgroups/", "/api/v1/gangs/")
    status, found = await read_json(stage, f"{path}?source=startgroup", admin)
    check_document(found, ONE)
    assert (status, found["started"], found["expected"]) == (200, 1, 2)


async def test_who_may_list_pods_sees_them_and_nobody_else(stage: ServedPage) -> None:
    stage.api.users |= {"may": "may", "not": "not"}
    stage.api.grants |= {("may", "pods", "*"), ("not", "jobsets.jobset.x-k8s.io", "*")}
    status, page = await read(stage, "/", "may")
    assert (status, PATH in page) == (200, True)
    assert (await read(stage, PATH, "may"))[0] == 200
    status, page = await read(stage, "/", "not")
    assert (status, PATH in page) == (200, False)
    for tail in ("", "/timeline.svg"):
        status, page = await read(stage, PATH + tail, "not")
        assert (status, "You may not list pods" in page) == (403, True)


async def test_without_start_groups_the_right_to_pods_alone_shows_nothing() -> None:
    async with serve_page() as stage:
        stage.api.users["may"] = "may"
        stage.api.grants.add(("may", "pods", "*"))
        assert (await read(stage, "/", "may"))[0] == 403
