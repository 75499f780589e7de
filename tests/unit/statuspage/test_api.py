"""The JSON API: the documented shape, the rules of the pages, and errors as JSON."""

import re
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from controllers.statuspage import api, html
from controllers.statuspage.middleware import PageOptions
from docs.make.api_schemas import API_SCHEMAS
from jobset_gate import names
from jobset_gate.barrier.model import PendingReason, VerdictKind
from jobset_gate.kube.errors import Unreachable
from tests.fakes import gangs
from tests.fakes.served_page import ServedPage, http_session, serve_page
from tests.tools.documented import check_document

NOW = gangs.T0 + 90
LIST, ONE, ERROR = API_SCHEMAS.values()


@pytest.fixture
async def stage() -> AsyncIterator[ServedPage]:
    """A gang of `team` holds eight devices and waits for one pod; one of `other` has timed out."""
    async with serve_page(PageOptions(0, prices={"nvidia.com/gpu": 2.0}), now=lambda: NOW) as made:
        workers = gangs.replicated_job(devices=(("nvidia.com/gpu", 8),))
        waits = gangs.waiting_pod(1, PendingReason.UNSCHEDULED, "<b>no room</b>", created=gangs.T0)
        gate = gangs.config_map(namespace="team", workload_uid="u-a", waiting_since=gangs.clock(uid="u-a"))
        made.put(gangs.jobset(workers, namespace="team", uid="u-a"), gangs.pod(0), waits, gate=gate)
        key = made.put(gangs.jobset(namespace="other", uid="u-b", name="late"), gangs.pod(0))
        made.decide(key, VerdictKind.TIMEOUT)
        yield made


async def read(stage: ServedPage, path: str, token: str = "", method: str = "GET") -> tuple[int, Any]:
    async with http_session(stage, token) as session, session.request(method, path) as answer:
        assert answer.content_type == "application/json", path
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        body = await answer.read()
        assert b"<" not in body
        return answer.status, msgspec.json.decode(body)


async def test_the_list_has_the_documented_shape_and_the_numbers_of_the_page(stage: ServedPage) -> None:
    status, found = await read(stage, "/api/v1/gangs", stage.api.admin())
    check_document(found, LIST)
    assert (status, found["kind"], found["found"], found["complete"]) == (200, "GangStatusList", 2, True)
    assert [(it["name"], it["state"]) for it in found["items"]] == [("late", "TimedOut"), ("train", "Waiting")]
    assert found["overview"]["waiting"] == 1
    assert found["overview"]["states"] == {"TimedOut": 1, "Waiting": 1}
    held = {"resource": "nvidia.com/gpu", "held": 8, "deviceHours": 0.2, "cost": 0.4, "costPerHour": 16.0}
    assert found["overview"]["devices"] == [held]
    assert (await read(stage, "/api/v1/gangs?q=late", stage.api.admin()))[1]["found"] == 1


async def test_a_gang_whose_index_failed_is_counted_next_to_those_whose_time_was_up(stage: ServedPage) -> None:
    verdict = gangs.verdict(VerdictKind.TIMEOUT, names.REASON_INDEX_FAILED, uid="u-c")
    gate = gangs.config_map(
        name="lost-group-scheduling", namespace="other", workload_uid="u-c", verdict=verdict, written_at=gangs.T0 + 60
    )
    stage.put(gangs.jobset(namespace="other", uid="u-c", name="lost"), gangs.pod(0), gate=gate)
    _, found = await read(stage, "/api/v1/gangs", stage.api.admin())
    check_document(found, LIST)
    overview = found["overview"]
    assert overview["states"] == {"IndexFailed": 1, "TimedOut": 1, "Waiting": 1}
    assert (overview["indexFailedToday"], overview["timedOutToday"]) == (1, 0), "the other has no clock"
    assert {it["name"]: it["timedOutAt"] for it in found["items"]}["lost"] is None
    async with http_session(stage, stage.api.admin()) as session, session.get("/") as answer:
        text = await answer.text()
    assert '<strong id="failed-today">1</strong>' in text
    assert [*re.findall(r'state=\w+">(\d \w+)</a>', text[text.index("failed-today") :])][:2] == [
        "1 IndexFailed",
        "1 TimedOut",
    ]


async def test_one_gang_says_what_why_says(stage: ServedPage) -> None:
    status, found = await read(stage, "/api/v1/gangs/team/train", stage.api.admin())
    check_document(found, ONE)
    assert (status, found["started"], found["expected"], found["secondsLeft"]) == (200, 1, 2, 210.0)
    assert [(it["reason"], it["message"]) for it in found["missing"]] == [("Unscheduled", "<b>no room</b>")]


async def test_a_viewer_gets_what_the_page_shows(stage: ServedPage) -> None:
    member = stage.api.member("team")
    _, found = await read(stage, "/api/v1/gangs", member)
    assert ([it["namespace"] for it in found["items"]], found["complete"]) == (["team"], False)
    assert found["overview"]["states"] == {"Waiting": 1}
    for path in ("/api/v1/gangs/other/late", "/api/v1/gangs/other/nothing-there", "/api/v1/gangs?namespace=other"):
        status, found = await read(stage, path, member)
        check_document(found, ERROR)
        assert (status, found["code"], found["reason"]) == (403, 403, "Forbidden")
        assert "You may not list jobsets.jobset.x-k8s.io in namespace other" in found["message"]


async def test_errors_are_json_with_their_codes(stage: ServedPage) -> None:
    admin = stage.api.admin()
    for path, token, method, code, words in (
        ("/api/v1/gangs", "", "GET", 401, "Send a token of the cluster"),
        ("/api/v1/gangs", "wrong", "GET", 401, "does not know this token"),
        ("/api/v1/gangs/team/gone", admin, "GET", 404, "There is no gang team/gone"),
        ("/api/v1/nothing", admin, "GET", 404, "no such page"),
        ("/api/v1/gangs", admin, "POST", 405, "changes nothing"),
    ):
        status, found = await read(stage, path, token, method)
        check_document(found, ERROR)
        assert (status, found["code"]) == (code, code)
        assert words in found["message"]
    stage.api.failing = Unreachable("refused")
    stage.elapsed += 60
    assert (await read(stage, "/api/v1/gangs", admin))[0] == 503


async def test_a_gang_with_very_many_reasons_does_not_make_the_list_long(stage: ServedPage) -> None:
    many = 200
    pods = [
        gangs.waiting_pod(it, PendingReason.IMAGE_PULL, f'main: cannot pull "image-{it}"', created=gangs.T0)
        for it in range(many)
    ]
    workers = gangs.replicated_job(parallelism=many, completions=many)
    stage.put(gangs.jobset(workers, namespace="team", name="odd", uid="u-c"), *pods)
    _, found = await read(stage, "/api/v1/gangs/team/odd", stage.api.admin())
    assert len(found["missing"]) == api.MAX_REASONS
    async with http_session(stage, stage.api.admin()) as session, session.get("/gangs/team/odd") as answer:
        assert f"And {many - html.MAX_REASONS} more reasons." in await answer.text()
