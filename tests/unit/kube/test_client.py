"""The verbs, what is repeated, and what becomes of errors."""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from itertools import pairwise

import msgspec
import pytest
from aiohttp import web
from hypothesis import example, given
from hypothesis import strategies as st

from jobset_gate.kube import errors
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, Invalid, NotFound, is_stale_patch
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, NODES, PODS, native_pod_groups
from jobset_gate.kube.transport import TOO_LONG, LineSplitter
from jobset_gate.runtime.clock import monotonic as now
from tests.fakes.informer_harness import running_informer
from tests.fakes.loopback_server import Answer
from tests.fakes.scripted_server import ScriptedServer, abort_connection, no_response, refusal, stream_of

Verb = Callable[[Client], Awaitable[object]]
BODY = {"metadata": {"name": "x", "namespace": "ns", "resourceVersion": "7"}}
READS: dict[str, Verb] = {
    "get": lambda client: client.get(CONFIGMAPS, "x", "ns"),
    "list": lambda client: client.list(CONFIGMAPS, "ns"),
}
CHANGES: dict[str, Verb] = {
    "replace": lambda client: client.replace(CONFIGMAPS, BODY),
    "patch": lambda client: client.patch(CONFIGMAPS, "x", "ns", body={}, patch=PatchType.MERGE),
    "delete": lambda client: client.delete(CONFIGMAPS, "x", "ns"),
}
CREATES: dict[str, Verb] = {
    "create": lambda client: client.create(CONFIGMAPS, BODY),
    "post": lambda client: client.post(PODS.path("ns", "x", "eviction"), {}),
}
ALL = READS | CHANGES | CREATES
APPLIED = {"fieldManager": "jobset-gate", "force": "true"}


def always(server: ScriptedServer, *answers: Answer) -> None:
    """These answers to whatever comes."""
    server.lists.extend(answers)
    server.others.extend(answers)


# --- what is sent


async def test_each_verb_is_sent_as_the_api_wants_it(server: ScriptedServer, client: Client) -> None:
    await client.get(NODES, "n1")
    await client.create(CONFIGMAPS, {"metadata": {"name": "x", "namespace": "ns"}}, dry_run=True, field_manager="me")
    await client.replace(CONFIGMAPS, BODY, subresource="status")
    await client.patch(
        CONFIGMAPS, "x", "ns", body={"data": {}}, patch=PatchType.APPLY, subresource="status", force=True
    )
    await client.patch(CONFIGMAPS, "x", "ns", body=[{"op": "test"}], patch=PatchType.JSON, field_manager="me")
    await client.delete(CONFIGMAPS, "x", "ns", uid="u", resource_version="7", propagation="Background", grace_seconds=0)
    sent = [(asked.method, asked.path, asked.query, asked.headers.get("Content-Type")) for asked in server.requests]
    base = "/api/v1/namespaces/ns/configmaps"
    assert sent == [
        ("GET", "/api/v1/nodes/n1", {}, None),
        ("POST", base, {"dryRun": "All", "fieldManager": "me"}, "application/json"),
        ("PUT", f"{base}/x/status", {}, "application/json"),
        ("PATCH", f"{base}/x/status", APPLIED, "application/apply-patch+yaml"),
        ("PATCH", f"{base}/x", {"fieldManager": "me"}, "application/json-patch+json"),
        ("DELETE", f"{base}/x", {}, "application/json"),
    ]
    bodies = [msgspec.json.decode(asked.body) for asked in server.requests[1:]]
    assert bodies == [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "ns"}},
        {"apiVersion": "v1", "kind": "ConfigMap", **BODY},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "ns"}, "data": {}},
        [{"op": "test"}],
        {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": "u", "resourceVersion": "7"},
            "propagationPolicy": "Background",
            "gracePeriodSeconds": 0,
        },
    ]


async def test_answers_are_decoded_into_the_requested_type(server: ScriptedServer, client: Client) -> None:
    class Page(msgspec.Struct):
        items: list[msgspec.Raw]

    server.put("x", "1")
    assert (await client.list(CONFIGMAPS, "ns"))["items"][0]["data"] == {"value": "1"}
    assert len((await client.list(CONFIGMAPS, "ns", type=Page)).items) == 1
    assert bytes(await client.list(CONFIGMAPS, "ns", type=msgspec.Raw)).startswith(b'{"metadata"')
    with pytest.raises(errors.InvalidResponse, match="Expected `int`"):
        await client.list(CONFIGMAPS, "ns", type=int)


async def test_what_would_address_everything_is_refused_before_it_is_sent(
    server: ScriptedServer, client: Client
) -> None:
    for refused in (
        client.delete(CONFIGMAPS, "", "ns"),
        client.delete(CONFIGMAPS, "x"),
        client.create(CONFIGMAPS, {"metadata": {"name": "x"}}),
    ):
        with pytest.raises(ValueError, match="name"):
            await refused
    assert server.requests == []


def test_an_objects_path_names_group_namespace_and_subresource_and_nothing_climbs_out_of_it() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path("ns", "p", "binding") == "/api/v1/namespaces/ns/pods/p/binding"
    assert JOBS.path("x", "y", "status") == "/apis/batch/v1/namespaces/x/jobs/y/status"
    assert NODES.path("ignored", "n") == "/api/v1/nodes/n"
    assert PODS.path("ns", "../../x") == "/api/v1/namespaces/ns/pods/..%2F..%2Fx"


async def test_the_first_version_is_found_that_serves_the_resource(server: ScriptedServer, client: Client) -> None:
    """Kubernetes 1.21 served a v1beta1 of scheduling.k8s.io that had PriorityClasses only."""

    def serving(*plurals: str) -> Answer:
        async def answer(_: web.Request) -> web.StreamResponse:
            return web.json_response({"kind": "APIResourceList", "resources": [{"name": it} for it in plurals]})

        return answer

    versions = [native_pod_groups(version) for version in ("v1beta2", "v1beta1", "v1alpha3", "v1alpha2")]
    server.lists.extend([refusal(404), serving("priorityclasses"), serving("priorityclasses", "podgroups")])
    assert await client.first_served(versions) == versions[2]
    assert server.requests[2].path == "/apis/scheduling.k8s.io/v1alpha3"
    server.lists.extend([refusal(404)] * len(versions))
    assert await client.first_served(versions) is None


async def test_a_token_is_fetched_for_each_request_and_sent_as_it_is(server: ScriptedServer) -> None:
    tokens = iter(["one", "Basic dXNlcjpwYXNz", None])

    async def token() -> str | None:
        return next(tokens)

    async with Client(Access(server.url, token=token)) as client:
        for _ in range(3):
            await client.get(NODES, "n")
    sent = [asked.headers.get("Authorization") for asked in server.requests]
    assert sent == ["Bearer one", "Basic dXNlcjpwYXNz", None]


def minted(server: ScriptedServer) -> Access:
    """A token that is replaced once it has been rejected."""
    known = ["old"]

    async def token() -> str:
        return known[0] if known else "new"

    return Access(server.url, token=token, token_rejected=known.clear)


@pytest.mark.parametrize("verb", ALL.values(), ids=ALL.keys())
async def test_a_rejected_token_is_fetched_again_and_the_request_retried_at_once(
    server: ScriptedServer, verb: Verb
) -> None:
    """Also where nothing else is repeated: the server has done nothing yet."""
    server.others.append(refusal(401))
    server.lists.append(refusal(401))
    async with Client(minted(server)) as client:
        await verb(client.without_retries())
    assert [asked.headers["Authorization"] for asked in server.requests] == ["Bearer old", "Bearer new"]
    assert server.requests[1].at == server.requests[0].at


async def test_a_watch_that_is_refused_for_its_token_has_another_the_next_time(server: ScriptedServer) -> None:
    server.watches.append(refusal(401))
    async with Client(minted(server)) as client, running_informer(client):
        await server.watched(2)
    watches = [asked.headers["Authorization"] for asked in server.requests if asked.verb == "watch"]
    assert watches == ["Bearer old", "Bearer new"]
    assert server.count("list") == 1


# --- what comes back


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.BadRequest),
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (410, errors.Expired),
        (422, errors.Invalid),
        (500, errors.ServerError),
    ],
)
async def test_a_refusal_is_an_exception_of_its_kind_and_comes_at_once(
    server: ScriptedServer, client: Client, status: int, kind: type[errors.ApiError]
) -> None:
    always(server, refusal(status))
    with pytest.raises(kind, match=f"scripted {status}") as caught:
        await client.get(CONFIGMAPS, "x", "ns")
    assert caught.value.status == status
    assert type(caught.value) is kind
    assert len(server.requests) == 1


@pytest.mark.parametrize("text", ["", "<html>bad gateway</html>", "[1]", '{"message":7}', "\x00\udcff", '"' * 10_000])
async def test_an_error_body_that_is_no_status_is_an_error_all_the_same(
    server: ScriptedServer, client: Client, text: str
) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=502, body=text.encode("utf-8", "surrogateescape"))

    server.lists.append(answer)
    with pytest.raises(errors.ServerError) as caught:
        await client.get(CONFIGMAPS, "x", "ns")
    assert len(str(caught.value)) < 2000


async def test_a_redirect_is_not_followed(server: ScriptedServer, client: Client) -> None:
    """Our token must not go where a body or a proxy points to."""

    async def elsewhere(_: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": f"{server.url}/elsewhere"})

    server.lists.append(elsewhere)
    with pytest.raises(errors.ApiError, match="302"):
        await client.get(CONFIGMAPS, "x", "ns")
    assert len(server.requests) == 1


# --- what is repeated


THROTTLED, BROKEN = refusal(429, retry_after=1), abort_connection


@pytest.mark.parametrize(
    ("verbs", "answers", "error", "seconds"),
    [
        pytest.param(ALL, [refusal(429, retry_after=3), refusal(429)], None, [0, 3, 4], id="429: when the server says"),
        pytest.param(READS, [THROTTLED] * 100, errors.Throttled, [0, 1, 2, 3, 4, 5], id="429 without end: given up"),
        pytest.param(READS, [refusal(429, retry_after=300)], errors.Throttled, [0], id="minutes: left to the caller"),
        pytest.param(READS | CHANGES, [refusal(503, retry_after=2)], None, [0, 2], id="503: if the server says when"),
        pytest.param(CREATES, [refusal(503, retry_after=2)], errors.ServerError, [0], id="503: may have been created"),
        pytest.param(READS, [BROKEN] * 2, None, [0, 0.25, 0.75], id="broken: reads twice"),
        pytest.param(READS, [BROKEN] * 3, errors.Unreachable, [0, 0.25, 0.75], id="broken: reads no third time"),
        pytest.param(CHANGES | CREATES, [BROKEN], errors.Unreachable, [0], id="broken: no write, its answer was lost"),
    ],
)
async def test_what_is_repeated_and_when(
    server: ScriptedServer,
    client: Client,
    *,
    verbs: dict[str, Verb],
    answers: list[Answer],
    error: type[errors.KubeError] | None,
    seconds: list[float],
) -> None:
    """Neither by us nor by aiohttp behind our back, also on a connection that has been used before."""
    for verb in verbs.values():
        server.lists.clear()
        server.others.clear()
        await client.get(CONFIGMAPS, "x", "ns")
        always(server, *answers)
        server.requests.clear()
        start = now()
        with pytest.raises(error) if error else nullcontext():
            await verb(client)
        assert [asked.at - start for asked in server.requests] == pytest.approx(seconds, abs=0.05)


# --- the guard


async def test_the_guard_may_refuse_each_write_and_each_repetition_and_no_read(
    server: ScriptedServer, client: Client
) -> None:
    asked: list[float] = []

    def guard() -> float:
        asked.append(round(now()))
        return 60.0

    def refuse() -> float:
        raise errors.NotLeader

    guarded = client.with_guard(guard)
    await guarded.get(CONFIGMAPS, "x", "ns")
    await guarded.list(CONFIGMAPS, "ns")
    assert asked == []
    server.requests.clear()
    for verb in (CHANGES | CREATES).values():
        with pytest.raises(errors.NotLeader):
            await verb(client.with_guard(refuse))
    assert server.requests == []
    always(server, refusal(429, retry_after=4))
    for verb in (CHANGES | CREATES).values():
        await verb(guarded)
    assert asked == [0, 4, 4, 4, 4, 4]


async def test_a_write_ends_with_the_guards_time_which_the_server_gets_too(
    server: ScriptedServer, client: Client
) -> None:
    always(server, no_response)
    with pytest.raises(errors.Unreachable):
        await client.with_guard(lambda: 4.25).replace(CONFIGMAPS, BODY)
    assert now() == pytest.approx(4.25, abs=0.1)
    assert server.requests[0].query == {"timeout": "4250ms"}


# --- watches


async def test_the_lines_of_a_watch_come_whole_however_they_are_cut(server: ScriptedServer, client: Client) -> None:
    server.watches.append(stream_of(b'{"a"', b":1}\n\n", b'{"b":2}\n{"c":3}\n{"torn"'))
    async with client.watch(PODS, resource_version="5", timeout_seconds=50) as lines:
        assert [line async for line in lines] == [b'{"a":1}', b'{"b":2}', b'{"c":3}', b'{"torn"']
    query = server.requests[0].query
    assert query == {"watch": "true", "resourceVersion": "5", "timeoutSeconds": "50", "allowWatchBookmarks": "true"}


def split(chunks: list[bytes]) -> list[bytes]:
    splitter = LineSplitter(20)
    lines = [line for chunk in [*chunks, b"\n"] for line in splitter.feed(chunk)]
    assert sum(map(len, splitter._pieces)) == 0
    return lines


@given(st.lists(st.binary(max_size=25), max_size=30), st.data())
@example([b"short", b"x" * 21, b"next"], None)
def test_lines_do_not_depend_on_where_the_stream_was_cut_and_long_ones_are_dropped(
    lines: list[bytes], data: st.DataObject | None
) -> None:
    stream = b"\n".join(lines)
    cuts = [] if data is None else sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    kept = [TOO_LONG if len(line) > 20 else line for line in stream.split(b"\n") if line.strip() or len(line) > 20]
    assert split([stream[a:b] for a, b in pairwise([0, *cuts, len(stream)])]) == kept


# --- metrics


async def test_each_exchange_is_observed_with_its_code_and_seconds(server: ScriptedServer) -> None:
    seen: list[tuple[str, str, str, float]] = []
    always(server, refusal(429, retry_after=1), no_response)
    server.watches.append(refusal(502))
    async with Client(Access(server.url), observe=lambda *facts: seen.append(facts), timeout=5) as client:
        with pytest.raises(errors.Unreachable):
            await client.create(CONFIGMAPS, BODY)
        with pytest.raises(errors.ServerError):
            async with client.watch(PODS, resource_version="5", timeout_seconds=50):
                pass
    assert [(verb, resource, code, round(seconds)) for verb, resource, code, seconds in seen] == [
        ("create", "configmaps", "429", 0),
        ("create", "configmaps", "<error>", 5),
        ("watch", "pods", "502", 0),
    ]


# --- errors without a response


@pytest.mark.parametrize(
    "refusal", [Conflict(409), NotFound(404), Invalid(422)], ids=["a conflict", "it is gone", "its test has failed"]
)
def test_only_a_patch_that_came_too_late_may_be_tried_again(refusal: Conflict | Invalid | NotFound) -> None:
    assert is_stale_patch(refusal)
    assert not is_stale_patch(Invalid(422, details={"causes": [{"field": "spec"}]})), "a value is refused"
