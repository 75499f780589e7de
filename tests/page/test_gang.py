"""One gang's page: what is missing and why, its picture, its address, and all of it without JavaScript too."""

import re
from xml.etree import ElementTree as ET

import pytest
from playwright.async_api import Browser, expect

from tests.fakes.served_page import ServedPage
from tests.page import scenes
from tests.page.browser import BrowserVisit, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")
WAITS = f"/gangs/{scenes.TEAM}/waits"


async def test_it_says_what_is_missing_and_why_and_its_release_is_seen_without_a_reload(
    stage: ServedPage, visit: BrowserVisit
) -> None:
    scenes.everything(stage)
    page = visit.page
    await visit.open(WAITS)
    await expect(page).to_have_title("team-a/waits: Waiting - jobset-gate")
    await expect(page.locator("#count")).to_have_text("1 of 2 pods started")
    missing = page.locator("#missing li")
    await expect(missing).to_have_count(1)
    await expect(missing).to_have_attribute("data-why", "Unscheduled")
    await expect(missing).to_contain_text(scenes.NO_ROOM)
    await expect(page.locator("#commands")).to_contain_text("kubectl")
    await expect(page.locator("#about")).to_contain_text(re.compile(r"[34]m(\d+s)? left of 5m"))
    await page.evaluate("window.here = 'still'")
    stage.decide(scenes.put(stage, "waits", *scenes.here(2)))
    await expect(page.locator("#state")).to_have_text("Released")
    await expect(page.locator("#missing")).to_have_count(0)
    await expect(page).to_have_title("team-a/waits: Released - jobset-gate")
    assert await page.evaluate("window.here") == "still"


async def test_its_picture_shows_each_pod(stage: ServedPage, visit: BrowserVisit) -> None:
    scenes.everything(stage)
    stage.api.pods = [scenes.raw_pod("waits", index, started=index == 0) for index in range(2)]
    page = visit.page
    await visit.open(WAITS)
    picture = page.locator("#timeline")
    await expect(picture).to_have_js_property("complete", True)
    assert await picture.evaluate("it => it.naturalWidth") > 0
    assert await picture.get_attribute("alt")
    svg = await page.request.get(f"{WAITS}/timeline.svg")
    assert svg.headers["content-type"] == "image/svg+xml"
    drawn = list(ET.fromstring(await svg.text()).itertext())  # noqa: S314 - our own picture
    assert "JobSet team-a/waits: 1/2 pods started; the gate is closed" in drawn
    assert {"workers-0/0", "workers-0/1", "held at the gate"} <= set(drawn)


async def test_without_javascript_it_is_all_there(browser: Browser, stage: ServedPage) -> None:
    scenes.everything(stage)
    async with visiting(browser, base_url=stage.url, java_script_enabled=False) as visit:
        page = visit.page
        await visit.sign_in(stage, stage.api.admin())
        await page.goto("/")
        await expect(page.locator("#rows tr")).to_have_count(3)
        await page.get_by_role("searchbox", name="Name").fill("waits")
        await page.get_by_role("button", name="Apply").click()
        await page.get_by_role("link", name="waits").click()
        await expect(page.locator("#missing")).to_contain_text(scenes.NO_ROOM)
        stage.decide(scenes.put(stage, "waits", *scenes.here(2)))
        await page.get_by_role("link", name="Refresh").click()
        await expect(page.locator("#state")).to_have_text("Released")
        assert (visit.other_hosts, visit.complaints) == ([], [])
