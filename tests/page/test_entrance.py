"""Who gets in: a form for those who have shown nothing, a word about the right that is missing, and out again."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Response, expect

from tests.fakes.served_page import ServedPage
from tests.page import scenes
from tests.page.browser import BrowserVisit, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def guest(browser: Browser, stage: ServedPage) -> AsyncIterator[BrowserVisit]:
    """A viewer without a token. The browser itself reports a 401, and nothing else."""
    async with visiting(browser, base_url=stage.url) as made:
        yield made
    assert made.other_hosts == []
    assert [said for said in made.complaints if "the server responded with a status of 40" not in said] == []


def status(answer: Response | None) -> int:
    assert answer is not None
    return answer.status


async def test_without_a_token_there_is_the_login_form(stage: ServedPage, guest: BrowserVisit) -> None:
    scenes.everything(stage)
    token, page = stage.api.admin(), guest.page
    assert status(await page.goto(f"/gangs/{scenes.TEAM}/waits")) == 401
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert "waits" not in await page.locator("main").inner_text()
    await page.get_by_label("Token").fill("nobody's")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_have_text("The API server does not know this token.")
    await page.get_by_label("Token").fill(token)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("team-a/waits")
    await expect(page.locator("#viewer")).to_have_text("admin")
    (cookie,) = await guest.context.cookies()
    assert token not in cookie["value"]
    assert cookie["httpOnly"]
    assert (
        await page.evaluate("document.cookie + JSON.stringify([{...localStorage}, {...sessionStorage}])") == "[{},{}]"
    )
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert status(await page.goto("/")) == 401


async def test_a_viewer_without_the_right_sees_which_one_is_missing(stage: ServedPage, guest: BrowserVisit) -> None:
    scenes.everything(stage)
    stage.api.users["weak"] = "eve"
    await guest.sign_in(stage, "weak")
    page = guest.page
    assert status(await page.goto("/")) == 403
    problem = page.get_by_role("heading", level=1)
    await expect(problem).to_have_text("You may not list jobsets.jobset.x-k8s.io in all namespaces")
    await expect(page.locator("main")).to_contain_text("signed in as eve")
    await expect(page.locator("code")).to_have_text("kubectl auth can-i list jobsets.jobset.x-k8s.io -A")
    assert status(await page.goto("/gangs/team-a/waits")) == 403
    assert "0/40" not in await page.locator("main").inner_text()


async def test_a_viewer_of_one_namespace_sees_that_only_this_one_is_shown(
    stage: ServedPage, guest: BrowserVisit
) -> None:
    scenes.everything(stage)
    await guest.sign_in(stage, stage.api.member("team-b"))
    await guest.open()
    page = guest.page
    await expect(page.locator("#rows tr a")).to_have_text("late")
    await expect(page.locator("#total")).to_have_text("1")
    await expect(page.locator("#narrowed")).to_contain_text("namespaces in which you may list jobsets")
    assert status(await page.goto("/gangs/team-a/waits")) == 403
    assert status(await page.goto("/gangs/team-b/late")) == 200


async def test_a_viewer_whose_right_is_taken_away_sees_nothing_new(stage: ServedPage, guest: BrowserVisit) -> None:
    """Nor does the page that is open show him who else is there."""
    scenes.everything(stage)
    token = stage.api.member("team-b")
    await guest.sign_in(stage, token)
    await guest.open()
    stage.page.sessions.delete((await guest.context.cookies())[0]["value"])
    assert status(await guest.page.reload()) == 401
    await expect(guest.page.get_by_role("alert")).to_have_text("Your session has ended.")
