"""A JobSet and a Job of one name are two rows, each with a page, a right and a timeline of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from docs.make.api_schemas import API_SCHEMAS
from jobset_gate import names
from tests.fakes import gangs
from tests.fakes.served_page import ServedPage, serve_page
from tests.fakes.wire_objects import owner
from tests.tools.documented import check_document
from tests.unit.statuspage.test_api import read as read_json
from tests.unit.statuspage.test_authz import read
from tests.unit.statuspage.test_lists import line

_, ONE, _ = API_SCHEMAS.values()
JOBSETS, JOBS = "jobsets.jobset.x-k8s.io", "jobs.batch"


@pytest.fixture
async def stage() -> AsyncIterator[ServedPage]:
    """The JobSet has started whole, the Job lacks a pod."""
    async with serve_page() as made:
        made.put(gangs.jobset(), gangs.pod(0), gangs.pod(1))
        job = gangs.job_gang(gangs.pod(0), gangs.waiting_pod(1, detail="no room"))
        made.put(job.workload, *job.pods)
        yield made


async def test_each_is_a_row_with_its_kind_and_a_page_of_its_own(stage: ServedPage) -> None:
    _, page = await read(stage, "/", stage.api.admin())
    for row, path, kind in (
        ("gang-default.train", "/gangs/default/train", "JobSet"),
        ("job-default.train", "/jobs/default/train", "Job"),
    ):
        mine = line(page, row)
        assert f'href="{path}"' in mine
        assert f"default · {kind}</span>" in mine
        status, its = await read(stage, path, stage.api.admin())
        assert (status, f'<span class="kind">{kind}</span> default/train' in its) == (200, True)
        assert ("no room" in its) is (kind == "Job")
        assert ("timeline job/train -n default" in its) is (kind == "Job")


async def test_programs_ask_for_one_of_them_by_its_source(stage: ServedPage) -> None:
    admin = stage.api.admin()
    _, listed = await read_json(stage, "/api/v1/gangs", admin)
    assert {(it["source"], it["of"]) for it in listed["items"]} == {("jobset", "JobSet"), ("job", "Job")}
    for query, source, started in (("", "jobset", 2), ("?source=jobset", "jobset", 2), ("?source=job", "job", 1)):
        status, found = await read_json(stage, f"/api/v1/gangs/default/train{query}", admin)
        check_document(found, ONE)
        assert (status, found["source"], found["started"]) == (200, source, started), query


async def test_who_may_list_one_kind_sees_that_kind(stage: ServedPage) -> None:
    for right, shown, hidden in ((JOBSETS, "gang", "job"), (JOBS, "job", "gang")):
        token = f"only-{right}"
        stage.api.users[token] = token
        stage.api.grants.add((token, right, "*"))
        status, page = await read(stage, "/", token)
        rows = [f'id="{it}-default.train"' in page for it in (shown, hidden)]
        assert (status, rows) == (200, [True, False])
        paths = {"gang": "/gangs/default/train", "job": "/jobs/default/train"}
        assert (await read(stage, paths[shown], token))[0] == 200
        for tail in ("", "/timeline.svg"):
            status, page = await read(stage, paths[hidden] + tail, token)
            assert (status, f"You may not list {JOBS if hidden == 'job' else JOBSETS}" in page) == (403, True)


async def test_the_timeline_of_a_job_has_its_own_pods(stage: ServedPage) -> None:
    labels = {names.GATED: names.GATED_JOB, names.JOB_NAME: "train"}
    meta: dict[str, Any] = {"name": "train-0-abcde", "namespace": "default", "uid": "p", "labels": labels}
    made = "2026-08-01T10:00:00Z"
    notes = {names.JOB_COMPLETION_INDEX: "0"}
    meta |= {"creationTimestamp": made, "annotations": notes, "ownerReferences": [owner("Job", "train", gangs.UID)]}
    stage.api.pods.append({"metadata": meta, "spec": {}, "status": {"phase": "Pending"}})
    _, drawn = await read(stage, "/jobs/default/train/timeline.svg", stage.api.admin())
    assert "train-0-abcde" in drawn
    _, drawn = await read(stage, "/gangs/default/train/timeline.svg", stage.api.admin())
    assert "train-0-abcde" not in drawn
