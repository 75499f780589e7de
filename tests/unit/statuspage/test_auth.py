"""Who gets in: tokens, sessions, forms of other sites, names of other hosts, and a cluster that does not answer."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from controllers.statuspage import auth
from jobset_gate.kube.errors import Forbidden, Unreachable
from tests.fakes import gangs
from tests.fakes.served_page import ServedPage, http_session, serve_page

ADMIN = {"Authorization": "Bearer admin-token"}


@pytest.fixture
async def served() -> AsyncIterator[ServedPage]:
    async with serve_page() as made:
        made.put(gangs.jobset(), gangs.pod(0))
        made.api.admin()
        yield made


@pytest.fixture
async def guest(served: ServedPage) -> AsyncIterator[aiohttp.ClientSession]:
    """A client that has not signed in."""
    async with http_session(served) as session:
        yield session


async def sign_in(guest: aiohttp.ClientSession, token: str = "admin-token", **more: str) -> aiohttp.ClientResponse:  # noqa: S107
    return await guest.post("/login", data={"token": token, **more}, allow_redirects=False)


def token_reviews(served: ServedPage) -> int:
    return [kind for kind, _ in served.api.reviews].count("tokenreviews")


# --- Tokens ----------------------------------------------------------------------------------------------------------


async def test_without_a_token_there_is_the_form_and_nothing_else(guest: aiohttp.ClientSession) -> None:
    for path in ("/", "/groups", "/events", "/gangs/default/train", "/gangs/default/train/timeline.svg"):
        answer = await guest.get(path)
        page = await answer.text()
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert 'name="token"' in page
        assert "kubectl create token" in page
        assert "gang-default" not in page


async def test_a_token_in_the_header_holds_for_one_request_and_an_unknown_one_is_refused_also_with_a_session(
    guest: aiohttp.ClientSession,
) -> None:
    assert (await guest.get("/", headers=ADMIN)).status == 200
    assert (await guest.get("/")).status == 401
    await sign_in(guest)
    assert (await guest.get("/")).status == 200
    for header in ("Bearer other", "Bearer ", "Basic admin-token", "Bearer " + "x" * 8000):
        answer = await guest.get("/", headers={"Authorization": header})
        assert answer.status in (400, 401)
        assert "gang-default" not in await answer.text()


async def test_reviews_are_cached_for_a_short_time_only(served: ServedPage, guest: aiohttp.ClientSession) -> None:
    for _ in range(5):
        assert (await guest.get("/", headers=ADMIN)).status == 200
    assert token_reviews(served) == 1
    del served.api.users["admin-token"]
    served.elapsed += auth.ANSWER_TTL
    assert (await guest.get("/", headers=ADMIN)).status == 401


async def test_login_attempts_are_rate_limited_before_the_api_server_is_called(
    served: ServedPage, guest: aiohttp.ClientSession
) -> None:
    codes = [(await sign_in(guest, f"guess-{number}")).status for number in range(60)]
    assert (codes[0], codes[-1]) == (401, 429)
    assert token_reviews(served) < 45
    assert (await sign_in(guest, "guess-more")).headers["Retry-After"] == "1"
    answer = await guest.get("/api/v1/gangs", headers={"Authorization": "Bearer guess-again"})
    assert (answer.status, (await answer.json())["reason"]) == (429, "TooManyRequests")
    served.elapsed += 60
    assert (await guest.get("/", headers=ADMIN)).status == 200, "a known token is not shut out by that"


async def test_without_an_answer_of_the_api_server_nobody_gets_in(
    served: ServedPage, guest: aiohttp.ClientSession
) -> None:
    for error, text in (
        (Unreachable("refused"), "The API server does not answer"),
        (Forbidden(403), "create tokenreviews.authentication.k8s.io"),
    ):
        served.api.failing = error
        answer = await guest.get("/", headers=ADMIN)
        assert answer.status == 503
        assert text in await answer.text()


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


async def test_signing_out_ends_the_session(served: ServedPage, guest: aiohttp.ClientSession) -> None:
    await sign_in(guest)
    cookies = {it.key: it.value for it in guest.cookie_jar}
    await guest.post("/logout")
    async with http_session(served) as other:
        assert (await other.get("/", cookies=cookies)).status == 401
    assert len(served.page.sessions) == 0


@pytest.mark.parametrize(("uses", "then"), [(0, auth.MAX_IDLE + 60), (8, 600)], ids=["idle", "old"])
async def test_a_session_expires(served: ServedPage, guest: aiohttp.ClientSession, uses: int, then: float) -> None:
    """An hour after it was used, and eight hours after it began."""
    await sign_in(guest)
    for _ in range(uses):
        served.elapsed += auth.MAX_IDLE - 60
        assert (await guest.get("/")).status == 200
    served.elapsed += then
    answer = await guest.get("/")
    assert answer.status == 401
    assert "Your session has ended." in await answer.text()


async def test_the_number_of_sessions_is_bounded(served: ServedPage) -> None:
    first = served.page.sessions.create("token")
    for _ in range(auth.MAX_SESSIONS):
        served.page.sessions.create("token")
    assert len(served.page.sessions) == auth.MAX_SESSIONS
    assert served.page.sessions.token_of(first) is None


async def test_the_form_leads_to_no_other_site(guest: aiohttp.ClientSession) -> None:
    others = ("https://evil.example/", "//evil.example", "/\\evil.example", "/\t/evil.example", "evil", "/login")
    for after in others:
        assert (await sign_in(guest, next=after)).headers["Location"] == "/"


# --- Other sites -----------------------------------------------------------------------------------------------------


async def test_a_form_of_another_site_does_nothing(served: ServedPage, guest: aiohttp.ClientSession) -> None:
    data = {"token": "admin-token"}
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "null"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ):
        for path in ("/login", "/logout"):
            answer = await guest.post(path, data=data, headers=headers, allow_redirects=False)
            assert answer.status == 403
            assert "Set-Cookie" not in answer.headers
    for headers in ({"Sec-Fetch-Site": "same-origin", "Origin": "null"}, {"Origin": served.url}):
        assert (await guest.post("/login", data=data, headers=headers, allow_redirects=False)).status == 303


async def test_on_loopback_only_its_own_names_are_served(guest: aiohttp.ClientSession) -> None:
    """DNS rebinding: another site's page, whose name was made to point here, could read this one otherwise."""
    for status, hosts in (
        (401, ("localhost:9", "127.0.0.1:9", "[::1]:9")),
        (421, ("evil.example", "127.0.0.1.evil.example", "[")),
    ):
        for host in hosts:
            assert (await guest.get("/", headers={"Host": host})).status == status


# --- Answers ---------------------------------------------------------------------------------------------------------


async def test_the_pages_own_files_are_served_and_no_others(guest: aiohttp.ClientSession) -> None:
    for name, (kind, begin) in {"page.css": ("text/css", ":root"), "icon.svg": ("image/svg+xml", "<svg")}.items():
        answer = await guest.get(f"/static/{name}")
        assert (answer.status, answer.content_type, begin in await answer.text()) == (200, kind, True)
    for path in ("/static/", "/static/nothing.js", "/static/%2e%2e/auth.py"):
        assert (await guest.get(path)).status == 404


async def test_every_answer_has_the_security_headers(guest: aiohttp.ClientSession) -> None:
    for path in ("/", "/nothing", "/static/page.js", "/events"):
        answer = await guest.get(path)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert "Server" not in answer.headers


async def test_only_reads_and_short_forms_are_allowed(guest: aiohttp.ClientSession) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
        assert (await guest.request(method, "/", headers=ADMIN)).status == 405
    assert (await sign_in(guest, "x" * 200_000)).status == 413, "longer than any token"
    for path in ("/", "/events", "/gangs/default/train"):
        answer = await guest.head(path, headers=ADMIN)
        assert (answer.status, await answer.read()) == (200, b"")
