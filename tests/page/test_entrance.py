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
