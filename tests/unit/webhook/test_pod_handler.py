"""The handler for pods, over HTTPS."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from jobset_gate import names
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import Groups, Settings
from tests.fakes.admission_reviews import body, patched, response
from tests.fakes.admission_server import admission_server, client
from tests.fakes.grouped_pods import Json, gates, meta_of, pod
from tests.fakes.jobsets import jobset

CORE = {"group": "", "version": "v1", "resource": "pods"}
HEADERS = {"Content-Type": "application/json"}


def asked(new: Any, **request: Any) -> bytes:
    """The review of a pod's creation."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    usual = {"resource": CORE, "kind": kind, "requestKind": kind, "namespace": "team", "name": ""}
    return body(new, **(usual | request))


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with admission_server() as server, client(server) as made:
        yield made


async def post(session: aiohttp.ClientSession, data: bytes) -> bytes:
    async with session.post("/mutate-pods", data=data, headers=HEADERS) as answer:
        assert answer.status == 200
        return await answer.read()


async def test_a_pod_of_a_group_comes_out_held(session: aiohttp.ClientSession) -> None:
    made = patched(pod(Format.KEP_24), await post(session, asked(pod(Format.KEP_24))))
    assert gates(made) == [names.POD_GROUP_GATE]
    assert made["metadata"]["labels"][names.POD_GROUP_LABEL]
    assert set(response(await post(session, asked(made)))) == {"uid", "allowed"}, "nothing to do a second time"


async def test_the_namespace_is_the_requests(session: aiohttp.ClientSession) -> None:
    """A template's pods have none in their metadata until they are stored."""
    first, second = [
        patched(pod(Format.KEP_24), await post(session, asked(pod(Format.KEP_24), namespace=it))) for it in ("a", "b")
    ]
    assert first["metadata"]["labels"] != second["metadata"]["labels"]


async def test_two_names_are_refused_as_a_fault_of_the_pod(session: aiohttp.ClientSession) -> None:
    both: Json = pod(Format.KEP_24, "a", meta=meta_of(Format.SCHEDULER_PLUGINS, "b"))
    del both["metadata"]["name"]
    both["metadata"]["generateName"] = "job-"
    message = response(await post(session, asked(both)))
    status = message["status"]
    assert (message["allowed"], status["code"], status["reason"]) == (False, 422, "Invalid")
    assert (status["details"]["group"], status["details"]["kind"], status["details"]["name"]) == ("", "Pod", "job-")
    (cause,) = status["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldValueForbidden", "metadata")


async def test_what_is_sent_although_groups_are_off_goes_through() -> None:
    """A configuration that was left behind refuses nobody."""
    async with admission_server(Settings(groups=Groups(enabled=False))) as server, client(server) as session:
        assert response(await post(session, asked(pod(Format.KEP_24))))["allowed"] is True


@pytest.mark.parametrize("request_", [{"operation": "UPDATE"}, {"operation": "DELETE"}, {"subResource": "binding"}])
async def test_what_is_no_creation_goes_through(session: aiohttp.ClientSession, request_: Json) -> None:
    message = response(await post(session, asked(pod(Format.KEP_24), **request_)))
    assert message["allowed"] is True
    assert "patch" not in message


async def test_what_is_no_pod_is_a_bad_request(session: aiohttp.ClientSession) -> None:
    """Only a registration that is wrong sends it, and that should show."""
    other = {"group": "", "version": "v1", "resource": "services"}
    for raw in (asked(pod(), resource=other), asked(None), body(jobset())):
        message = response(await post(session, raw))
        assert (message["allowed"], message["status"]["code"]) == (False, 400)
