"""The list of gangs in a browser: counts, changes without a reload, who is late, nothing at all, and very many."""

import re
import time

import pytest
from playwright.async_api import expect

from jobset_gate.barrier.model import VerdictKind
from tests.fakes.served_page import ServedPage
from tests.page import scenes
from tests.page.browser import BrowserVisit

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_it_counts_gangs_pods_and_states_and_shows_a_release_without_a_reload(
    stage: ServedPage, visit: BrowserVisit
) -> None:
    scenes.everything(stage)
    page = visit.page
    await visit.open()
    await expect(page.locator("#total")).to_have_text("3")
    states = page.locator("#summary a[data-state]")
    assert [await it.inner_text() for it in await states.all()] == ["TimedOut 1", "Waiting 1", "Released 1"]
    row = page.get_by_role("row").filter(has_text="waits")
    await expect(row.locator(".count")).to_have_text("1/2")
    await expect(row.locator(".badge")).to_have_text("Waiting")
    await expect(row.get_by_role("progressbar")).to_have_attribute("value", "1")
    await expect(row).to_contain_text("1 pod: Unscheduled: 0/40 nodes are available")
    await expect(row).to_contain_text(re.compile(r"[34]m(\d+s)? left"))
    await page.evaluate("window.here = 'still'")
    key = scenes.put(stage, "waits", *scenes.here(2))
    await expect(row.locator(".count")).to_have_text("2/2")
    stage.decide(key)
    await expect(row.locator(".badge")).to_have_text("Released")
    await expect(states).to_have_text(["TimedOut 1", "Released 2"])
    assert await page.evaluate("window.here") == "still"


async def test_a_banner_tells_of_those_whose_time_was_up(stage: ServedPage, visit: BrowserVisit) -> None:
    key = scenes.short_of_one(stage, "late")
    page = visit.page
    await visit.open()
    banner = page.locator("#banner")
    await expect(banner).to_be_empty()
    stage.decide(key, VerdictKind.TIMEOUT)
    await expect(banner).to_contain_text("1 timed out: team-a/late")
    await expect(banner).to_be_visible()
    await banner.get_by_role("link", name="team-a/late").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("team-a/late")
    await expect(page.locator("#state")).to_have_text("TimedOut")


async def test_of_two_thousand_gangs_one_is_found(stage: ServedPage, visit: BrowserVisit) -> None:
    for number in range(2000):
        scenes.put(stage, f"gang-{number:04}", *scenes.here(1), namespace=f"team-{number % 20}")
    page = visit.page
    began = time.perf_counter()
    await visit.open()
    print(f"2,000 gangs: live after {time.perf_counter() - began:.2f} s")  # noqa: T201 - asserted nowhere
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
