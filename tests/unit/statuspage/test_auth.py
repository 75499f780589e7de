"""Who gets in: tokens, sessions, forms of other sites, names of other hosts, and a cluster that does not answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from controllers.statuspage import reviews, sessions
from controllers.statuspage.options import PageOptions
from jobset_gate.kube.errors import Forbidden, Unreachable
from tests.fakes import gangs
from tests.fakes.served_page import ServedPage, http_session, serve_page


@pytest.fixture
async def stage() -> AsyncIterator[ServedPage]:
    async with serve_page() as made:
        made.put(gangs.jobset(), gangs.pod(0))
        made.api.admin()
        yield made


@pytest.fixture
async def guest(stage: ServedPage) -> AsyncIterator[aiohttp.ClientSession]:
    """Somebody who has yet to sign in."""
    async with http_session(stage) as session:
        yield session


async def sign_in(guest: aiohttp.ClientSession, token: str = "admin-token", **more: str) -> aiohttp.ClientResponse:  # noqa: S107
    return await guest.post("/login", data={"token": token, **more}, allow_redirects=False)


def reviewed(stage: ServedPage) -> int:
    """Tokens that the API server was asked about."""
    return [kind for kind, _ in stage.api.asked].count("tokenreviews")


# --- Tokens ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/", "/groups", "/events", "/gangs/default/train", "/gangs/default/train/timeline.svg"]
)
async def test_without_a_token_there_is_the_form_and_nothing_else(guest: aiohttp.ClientSession, path: str) -> None:
    answer = await guest.get(path)
    page = await answer.text()
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert 'name="token"' in page
    assert "kubectl create token" in page
    assert "gang-default" not in page


async def test_a_token_in_the_header_is_enough_for_one_request(guest: aiohttp.ClientSession) -> None:
    mine = {"Authorization": "Bearer admin-token"}
    assert (await guest.get("/", headers=mine)).status == 200
    assert (await guest.get("/")).status == 401


@pytest.mark.parametrize("header", ["Bearer other", "Bearer ", "Basic admin-token", "Bearer " + "x" * 8000])
async def test_a_token_that_nobody_knows_is_refused(guest: aiohttp.ClientSession, header: str) -> None:
    answer = await guest.get("/", headers={"Authorization": header})
    assert answer.status in (400, 401)
    assert "gang-default" not in await answer.text()


async def test_a_header_that_is_refused_falls_back_on_no_session(guest: aiohttp.ClientSession) -> None:
    await sign_in(guest)
    assert (await guest.get("/")).status == 200
    assert (await guest.get("/", headers={"Authorization": "Bearer other"})).status == 401


async def test_answers_are_kept_a_short_time_only(stage: ServedPage, guest: aiohttp.ClientSession) -> None:
    mine = {"Authorization": "Bearer admin-token"}
    for _ in range(5):
        assert (await guest.get("/", headers=mine)).status == 200
    assert reviewed(stage) == 1
    del stage.api.users["admin-token"]
    stage.passed += reviews.ANSWER_TTL
    assert (await guest.get("/", headers=mine)).status == 401


async def test_whoever_tries_tokens_is_slowed_down_before_the_api_server_is_asked(
    stage: ServedPage, guest: aiohttp.ClientSession
) -> None:
    codes = [(await sign_in(guest, f"guess-{number}")).status for number in range(60)]
    assert codes[0] == 401
    assert codes[-1] == 429
    assert reviewed(stage) < 45
    assert (await sign_in(guest, "guess-more")).headers["Retry-After"] == "1"
    # Who is known already is not shut out by that.
    stage.passed += 60
    assert (await guest.get("/", headers={"Authorization": "Bearer admin-token"})).status == 200


async def test_nobody_is_let_in_while_the_api_server_does_not_answer(
    stage: ServedPage, guest: aiohttp.ClientSession
) -> None:
    stage.api.failing = Unreachable("refused")
    answer = await guest.get("/", headers={"Authorization": "Bearer admin-token"})
    assert answer.status == 503
    assert "The API server does not answer" in await answer.text()


async def test_a_controller_that_may_not_ask_says_which_right_it_lacks(
    stage: ServedPage, guest: aiohttp.ClientSession
) -> None:
    stage.api.failing = Forbidden(403)
    answer = await guest.get("/", headers={"Authorization": "Bearer admin-token"})
    assert answer.status == 503
    assert "create tokenreviews.authentication.k8s.io" in await answer.text()


# --- Sessions --------------------------------------------------------------------------------------------------------


async def test_the_form_begins_a_session_that_holds_no_token(guest: aiohttp.ClientSession) -> None:
    answer = await sign_in(guest, next="/gangs/default/train")
    assert (answer.status, answer.headers["Location"]) == (303, "/gangs/default/train")
    cookie = answer.headers["Set-Cookie"]
    assert "admin-token" not in cookie
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {it.strip() for it in cookie.split(";")}
    page = await (await guest.get("/")).text()
    assert 'id="logout"' in page
    assert "admin-token" not in page


async def test_signing_out_ends_it(stage: ServedPage, guest: aiohttp.ClientSession) -> None:
    await sign_in(guest)
    kept = {it.key: it.value for it in guest.cookie_jar}
    await guest.post("/logout")
    async with http_session(stage) as other:
        assert (await other.get("/", cookies=kept)).status == 401
    assert len(stage.page.sessions) == 0


@pytest.mark.parametrize("seconds", [sessions.MAX_IDLE, sessions.MAX_AGE])
async def test_it_ends_by_itself(stage: ServedPage, guest: aiohttp.ClientSession, seconds: float) -> None:
    await sign_in(guest)
    for _ in range(int(seconds // sessions.MAX_IDLE) - 1):
        stage.passed += sessions.MAX_IDLE - 60
        assert (await guest.get("/")).status == 200
    stage.passed += sessions.MAX_IDLE + 10 * 60
    answer = await guest.get("/")
    assert answer.status == 401
    assert "Your session has ended." in await answer.text()


async def test_there_are_only_so_many(stage: ServedPage) -> None:
    first = stage.page.sessions.create("token")
    for _ in range(sessions.MAX_SESSIONS):
        stage.page.sessions.create("token")
    assert len(stage.page.sessions) == sessions.MAX_SESSIONS
    assert stage.page.sessions.token_of(first) is None


@pytest.mark.parametrize(
    "after", ["https://evil.example/", "//evil.example", "/\\evil.example", "/\t/evil.example", "evil", "/login"]
)
async def test_the_form_leads_to_no_other_site(guest: aiohttp.ClientSession, after: str) -> None:
    assert (await sign_in(guest, next=after)).headers["Location"] == "/"


# --- Other sites -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "null"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
async def test_a_form_of_another_site_does_nothing(guest: aiohttp.ClientSession, headers: dict[str, str]) -> None:
    for path in ("/login", "/logout"):
        answer = await guest.post(path, data={"token": "admin-token"}, headers=headers, allow_redirects=False)
        assert answer.status == 403
        assert "Set-Cookie" not in answer.headers


async def test_our_own_form_comes_through(stage: ServedPage, guest: aiohttp.ClientSession) -> None:
    for headers in ({"Sec-Fetch-Site": "same-origin", "Origin": "null"}, {"Origin": stage.url}):
        data = {"token": "admin-token"}
        assert (await guest.post("/login", data=data, headers=headers, allow_redirects=False)).status == 303


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:9", 401),
        ("127.0.0.1:9", 401),
        ("[::1]:9", 401),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("[", 421),
    ],
)
async def test_on_loopback_no_other_name_leads_here(guest: aiohttp.ClientSession, host: str, status: int) -> None:
    """A page of somebody else's, whose name was made to point here, could read this one otherwise."""
    assert (await guest.get("/", headers={"Host": host})).status == status


# --- Answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/nothing", "/static/page.js", "/events"])
async def test_every_answer_leaves_the_browser_no_choice(guest: aiohttp.ClientSession, path: str) -> None:
    answer = await guest.get(path)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "Server" not in answer.headers


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/"), ("PUT", "/gangs/default/train"), ("DELETE", "/"), ("OPTIONS", "/"), ("TRACE", "/")],
)
async def test_it_is_only_to_be_read(guest: aiohttp.ClientSession, method: str, path: str) -> None:
    answer = await guest.request(method, path, headers={"Authorization": "Bearer admin-token"})
    assert answer.status == 405


async def test_head_is_answered_without_a_body(guest: aiohttp.ClientSession) -> None:
    for path in ("/", "/events", "/gangs/default/train"):
        answer = await guest.head(path, headers={"Authorization": "Bearer admin-token"})
        assert (answer.status, await answer.read()) == (200, b"")


async def test_a_form_as_large_as_no_token_is_not_read(guest: aiohttp.ClientSession) -> None:
    assert (await sign_in(guest, "x" * 200_000)).status == 413


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (PageOptions(8083, "0.0.0.0"), "may not listen on 0.0.0.0 without TLS"),  # noqa: S104 - refused
        (PageOptions(8083, "10.0.0.7"), "may not listen on 10.0.0.7 without TLS"),
        (PageOptions(8083, "page.example"), "without TLS"),
        (PageOptions(8083), ""),
        (PageOptions(8083, "::1"), ""),
        (PageOptions(8083, "localhost"), ""),
    ],
)
def test_others_reach_it_by_tls_only(options: PageOptions, word: str) -> None:
    assert (word in options.problem) if word else options.problem == ""


def test_a_certificate_needs_its_key() -> None:
    assert "both" in replace(PageOptions(1), certificate=Path("tls.crt")).problem
    assert PageOptions(1, "0.0.0.0", Path("tls.crt"), Path("tls.key")).problem == ""  # noqa: S104 - with TLS
