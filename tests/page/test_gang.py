"""One gang's page: what is missing and why, its picture, its address, and all of it without JavaScript too."""

import asyncio
import re

import pytest
from playwright.async_api import Browser, Route, expect

from jobset_gate.barrier.model import GangKey, VerdictKind
from tests.fakes.served_page import ServedPage
from tests.fakes.wire_objects import TEN_O_CLOCK
from tests.page import scenes, showcase
from tests.page.browser import BrowserVisit, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")
WAITS = f"/gangs/{scenes.TEAM}/waits"
WHOLE = re.compile(r"/timeline\.svg(\?again=\d+)?$")
ZOOMED = re.compile(r"/timeline\.svg\?from=\d+&to=\d+(&again=\d+)?$")


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
    await expect(missing).to_contain_text(scenes.NO_ROOM)
    await page.evaluate("window.here = 'still'")
    stage.decide(scenes.put(stage, "waits", *scenes.here(2)))
    await expect(page.locator("#state")).to_have_text("Released")
    await expect(page.locator("#missing")).to_have_count(0)
    await expect(page).to_have_title("team-a/waits: Released - jobset-gate")
    assert await page.evaluate("window.here") == "still"


async def test_a_command_is_copied(stage: ServedPage, visit: BrowserVisit) -> None:
    scenes.everything(stage)
    await visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visit.page
    await visit.open(WAITS)
    await page.locator("#missing .copy").click()
    await expect(page.locator("#missing .copy")).to_contain_text("Copied")
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied == "kubectl describe pod train-workers-0-1 -n team-a"


async def test_a_pod_opens_and_stays_open_while_the_page_changes(stage: ServedPage, visit: BrowserVisit) -> None:
    showcase.showcase(stage)
    page = visit.page
    await visit.open("/gangs/research/llama-70b-pretrain")
    pods = page.locator(".pod")
    await expect(pods).to_have_count(17)
    pod = page.locator("#pod-llama-70b-pretrain-workers-0-12")
    await expect(pod.locator("summary")).to_contain_text("Unscheduled")
    await expect(pod.locator(".more")).to_be_hidden()
    await pod.locator("summary").click()
    await expect(pod.locator(".more")).to_contain_text(showcase.UNSCHEDULED)
    await page.clock.install()
    stage.elapsed += 10
    stage.api.pods = [it for it in stage.api.pods if not it["metadata"]["name"].endswith("workers-0-15")]
    stage.drop(GangKey("vision", "diffusion-xl"))
    stage.decide(GangKey("research", "llama-70b-pretrain"))
    await expect(page.locator("#state")).to_have_text("Released")
    await page.clock.fast_forward(6000)
    await expect(pods).to_have_count(16)
    await expect(pod.locator(".more")).to_be_visible()


async def test_three_hundred_pods_are_grouped_and_their_timeline_zooms(stage: ServedPage, visit: BrowserVisit) -> None:
    showcase.crowd(stage)
    page = visit.page
    await visit.open("/gangs/research/crowd")
    await expect(page.locator("#pods h3")).to_have_text(["driver 1 Running", "workers 299 Running"])
    await expect(page.locator(".pod:visible")).to_have_count(21)
    await page.get_by_text("279 more").click()
    await expect(page.locator(".pod:visible")).to_have_count(300)
    picture = page.locator("#timeline")
    await expect(picture).to_have_js_property("complete", True)
    assert await picture.evaluate("it => it.naturalWidth") > 0
    assert await picture.get_attribute("alt")
    zoom = page.get_by_role("navigation", name="Zoom of the timeline")
    await zoom.get_by_role("link", name="Zoom in").click()
    await expect(picture).to_have_attribute("src", ZOOMED)
    await expect(page).to_have_url(re.compile(r"crowd\?from=\d+&to=\d+$"))
    await zoom.get_by_role("link", name="Whole").click()
    await expect(picture).to_have_attribute("src", WHOLE)
    box = await picture.bounding_box()
    assert box
    await page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 200)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 200)
    await page.mouse.up()
    await expect(picture).to_have_attribute("src", ZOOMED)


async def test_a_click_is_not_lost_while_the_timeline_is_drawn_again(stage: ServedPage, visit: BrowserVisit) -> None:
    crowd = showcase.crowd(stage)
    page, path = visit.page, "/gangs/research/crowd"
    await visit.open(path)
    picture, zoom = page.locator("#timeline"), page.get_by_role("navigation", name="Zoom of the timeline")
    await zoom.get_by_role("link", name="Zoom in").click()
    await expect(picture).to_have_attribute("src", ZOOMED)
    await page.clock.install()
    answered = asyncio.Event()

    async def wait(route: Route) -> None:
        await answered.wait()
        await route.continue_()

    await page.route(re.compile(f"{path}$"), wait, times=1)
    await zoom.get_by_role("link", name="Whole").click()
    stage.decide(crowd, VerdictKind.TIMEOUT)
    await expect(page.locator("#state")).to_have_text("TimedOut")
    async with page.expect_response(lambda it: "again=" in it.url):
        await page.clock.fast_forward(6000)
    answered.set()
    await expect(picture).to_have_attribute("src", WHOLE)


async def test_without_javascript_it_is_all_there(browser: Browser, stage: ServedPage) -> None:
    scenes.everything(stage)
    key, here = GangKey(scenes.TEAM, "waits"), {"scheduled": 6, "started": 30}
    stage.api.pods = [showcase.raw_pod(key, "workers", 0, TEN_O_CLOCK, here)]
    async with visiting(browser, base_url=stage.url, java_script_enabled=False) as visit:
        page = visit.page
        await visit.sign_in(stage, stage.api.admin())
        await page.goto("/")
        await expect(page.locator("#rows tr")).to_have_count(3)
        await page.get_by_role("searchbox", name="Name").fill("waits")
        await page.get_by_role("button", name="Apply").click()
        await page.locator("#columns").get_by_role("link", name="Waiting").click()
        await page.get_by_role("link", name="waits", exact=True).click()
        await expect(page.locator("#missing")).to_contain_text(scenes.NO_ROOM)
        await expect(page.locator(".copy")).to_have_count(2)
        await expect(page.locator(".copy:visible")).to_have_count(0)
        await page.locator(".pod summary").first.click()
        await expect(page.locator(".pod .more").first).to_be_visible()
        await page.get_by_role("link", name="Zoom in").click()
        await expect(page.locator("#timeline")).to_have_attribute("src", re.compile("from="))
        stage.decide(scenes.put(stage, "waits", *scenes.here(2)))
        await page.get_by_role("link", name="Refresh").click()
        await expect(page.locator("#state")).to_have_text("Released")
        assert (visit.other_hosts, visit.complaints) == ([], [])
