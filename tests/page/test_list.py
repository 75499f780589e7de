"""The list of gangs in a browser: counts, changes without a reload, who is late, nothing at all, and very many."""

import re

import pytest
from playwright.async_api import Browser, expect

from controllers.statuspage.middleware import PageOptions
from jobset_gate.barrier.model import VerdictKind
from tests.fakes import gangs
from tests.fakes.served_page import ServedPage, serve_page
from tests.page import scenes
from tests.page.browser import BrowserVisit, visiting

_LISTEN = """new Promise((heard) => { window.changed = new Promise((done) => new EventSource(document.body.dataset
    .events).addEventListener("view", (event) => { heard(); if (event.data.includes("2/2")) done(); })); })"""
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_it_counts_gangs_pods_and_states_and_shows_a_release_without_a_reload(
    stage: ServedPage, visit: BrowserVisit
) -> None:
    scenes.everything(stage)
    page = visit.page
    await page.clock.set_fixed_time(scenes.NOW)  # else what waits would wait longer with each second
    await visit.open()
    await expect(page.locator("#total")).to_have_text("3")
    states = page.locator("#summary a[data-state]")
    assert [await it.inner_text() for it in await states.all()] == ["TimedOut 1", "Waiting 1", "Released 1"]
    row = page.get_by_role("row").filter(has_text="waits")
    await expect(row.locator(".count")).to_have_text("1/2")
    await expect(row.locator(".badge")).to_have_text("Waiting")
    await expect(page.locator("#longest")).to_have_text("1m")
    await page.evaluate("window.here = 'still'")
    key = scenes.put(stage, "waits", *scenes.here(2))
    await expect(row.locator(".count")).to_have_text("2/2")
    stage.decide(key)
    await expect(row.locator(".badge")).to_have_text("Released")
    await expect(states).to_have_text(["TimedOut 1", "Released 2"])
    assert await page.evaluate("window.here") == "still"


async def test_a_card_tells_of_those_that_were_ended(stage: ServedPage, visit: BrowserVisit) -> None:
    key, page = scenes.short_of_one(stage, "late"), visit.page
    await visit.open()
    card = page.locator("#late")
    await expect(card).to_contain_text("none in all")
    stage.decide(key, VerdictKind.TIMEOUT)
    await expect(card.get_by_role("link")).to_have_text("1 TimedOut")
    await expect(page.locator("#news")).to_contain_text("1 TimedOut in all")
    await card.get_by_role("link").click()
    await expect(page).to_have_url(re.compile(r"\?state=TimedOut$"))
    await page.get_by_role("link", name="late", exact=True).hover()
    await page.mouse.down()
    await page.evaluate(_LISTEN)
    scenes.put(stage, "late", *scenes.here(2))  # the row must not be replaced before the click has come
    await page.evaluate("window.changed")
    await page.mouse.up()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("team-a/late")
    await expect(page.locator("#state")).to_have_text("TimedOut")


async def test_accelerators_that_are_held_grow_in_hours_and_cost(browser: Browser) -> None:
    moment = scenes.NOW
    async with serve_page(PageOptions(0, prices={"nvidia.com/gpu": 3600.0}), now=lambda: moment) as stage:
        workers = gangs.replicated_job(devices=(("nvidia.com/gpu", 8),))
        stage.put(gangs.jobset(workers, namespace=scenes.TEAM), *scenes.here(1))
        async with visiting(browser, base_url=stage.url) as visit:
            await visit.sign_in(stage, stage.api.admin())
            await visit.open()
            await expect(visit.page.locator("#held")).to_have_text("8")
            cost = visit.page.locator("#cost [data-cost]")
            assert await cost.get_attribute("data-cost") == str(8 * 30.0)
            assert await cost.get_attribute("data-rate") == str(8 * 3600.0)
            await expect(cost).not_to_have_text("240.00")
            assert float(await cost.inner_text()) > 240


async def test_columns_and_filters_need_no_button(stage: ServedPage, visit: BrowserVisit) -> None:
    scenes.everything(stage)
    page = visit.page
    await visit.open()
    await expect(page.locator("#apply")).to_be_hidden()
    await page.evaluate("window.here = 'still'")
    names = page.locator("#rows .name a")
    await page.locator("#columns").get_by_role("link", name="Name").click()
    await expect(names).to_have_text(["runs", "waits", "late"])
    await expect(page.locator("#columns [aria-sort]")).to_have_attribute("aria-sort", "ascending")
    await page.locator("#columns").get_by_role("link", name="Name").click()
    await expect(names).to_have_text(["late", "waits", "runs"])
    await expect(page.locator("#columns [aria-sort]")).to_have_attribute("aria-sort", "descending")
    await page.get_by_role("searchbox", name="Name").fill("wait")
    await expect(names).to_have_text(["waits"])
    await page.get_by_role("searchbox", name="Name").fill("")
    await expect(names).to_have_text(["late", "waits", "runs"])
    await page.locator("#namespace").select_option("team-b")
    await expect(names).to_have_text(["late"])
    await expect(page).to_have_url(re.compile(r"\?sort=-name&namespace=team-b$"))
    scenes.short_of_one(stage, "another", namespace="team-b")
    await expect(names).to_have_text(["late", "another"])
    assert await page.evaluate("window.here") == "still"
    await page.go_back()
    await expect(names).to_have_text(["runs", "waits", "another", "late"])


async def test_of_two_thousand_gangs_one_is_found(stage: ServedPage, visit: BrowserVisit) -> None:
    for number in range(2000):
        scenes.put(stage, f"gang-{number:04}", *scenes.here(1), namespace=f"team-{number % 20}")
    page = visit.page
    await visit.open()
    await expect(page.locator("#total")).to_have_text("2,000")
    assert await page.locator("#rows tr").count() == 100
    await expect(page.locator("#pager")).to_contain_text("Page 1 of 20")
    await page.get_by_role("link", name="Next").click()
    await expect(page.locator("#pager")).to_contain_text("Page 2 of 20")
    await page.get_by_role("searchbox", name="Name").fill("gang-1234")
    await page.keyboard.press("Enter")
    await expect(page.locator("#found")).to_have_text("1")
    await expect(page.locator("#rows tr")).to_have_count(1)
    await expect(page.locator("#rows")).to_contain_text("gang-1234")
    scenes.put(stage, "gang-1234", *scenes.here(2), namespace="team-14")
    await expect(page.locator("#rows .count")).to_have_text("2/2")
