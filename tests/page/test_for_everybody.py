"""Eyes, hands and screens differ: axe finds nothing, a phone shows all of it, and the keyboard reaches everything."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize, expect

from tests.fakes.served_page import ServedPage
from tests.page import scenes, showcase
from tests.page.browser import BrowserVisit, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")

PHONE: ViewportSize = {"width": 375, "height": 667}
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
LIST = ("/", "/?namespace=nowhere", "/?sort=-name", "/nothing-there", "/groups", "/gangs/x/nobody")
PAGES = (*LIST, f"/gangs/{scenes.TEAM}/waits", "/gangs/team-b/late", "/gangs/research/crowd?from=200&to=240")
LONG = "a-gang-with-a-name-as-long-as-kubernetes-takes-it"


@pytest_asyncio.fixture(loop_scope="session")
async def full(stage: ServedPage) -> AsyncIterator[ServedPage]:
    """With long names, which is where pages break."""
    scenes.everything(stage)
    showcase.crowd(stage)
    scenes.short_of_one(stage, LONG, namespace="a-namespace-with-a-name-as-long-as-kubernetes-takes-it")
    yield stage


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_axe_finds_nothing_and_nothing_hangs_over_the_edge(
    browser: Browser, full: ServedPage, viewport: ViewportSize
) -> None:
    """What is seen in the dark differs in its colours alone."""
    async with visiting(browser, base_url=full.url, viewport=viewport) as visit:
        found = await faults(visit, "/")  # the form
        await visit.sign_in(full, full.api.admin())
        for path in PAGES:
            found += await faults(visit, path)
    assert found == []
    assert visit.other_hosts == []


async def faults(visit: BrowserVisit, path: str) -> list[str]:
    await visit.page.goto(path)
    found = await visit.axe()
    await visit.page.emulate_media(color_scheme="dark")
    found += [f"in the dark: {one}" for one in await visit.axe("color-contrast")]
    await visit.page.emulate_media(color_scheme="light")
    if await wider_than_its_window(visit.page):
        found.append("scrolls sideways")
    if await visit.page.evaluate("[...document.querySelectorAll('.badge')].some(it => it.offsetHeight > 40)"):
        found.append("a word is broken in two")
    return [f"{path}: {one}" for one in found]


async def wider_than_its_window(page: Page) -> bool:
    wide: bool = await page.evaluate("document.scrollingElement.scrollWidth > window.innerWidth")
    return wide


async def test_dark_is_dark_and_light_is_light(browser: Browser, full: ServedPage) -> None:
    token = full.api.admin()
    seen = {}
    for scheme in ("light", "dark"):
        async with visiting(browser, base_url=full.url, color_scheme=scheme) as visit:
            await visit.sign_in(full, token)
            await visit.page.goto("/")
            paper = await visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
            seen[scheme] = sum(int(part) for part in paper[4:-1].split(","))
    assert seen["light"] > 600
    assert seen["dark"] < 150


async def test_the_keyboard_reaches_everything_and_shows_where_it_is(full: ServedPage, visit: BrowserVisit) -> None:
    page = visit.page
    await visit.open()
    order = await walk(page, until=f"/gangs/{scenes.TEAM}/waits")
    wanted = ["Skip to content", "Gangs", "Pod groups", "Sign out", "q", "namespace", "Started", "waits"]
    assert [name for name in order if name in wanted] == wanted
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("team-a/waits")
    await walk(page, until="/")
    await page.goto(f"/gangs/{scenes.TEAM}/waits")
    await walk(page, until="All gangs")
    await page.keyboard.press("Enter")
    await expect(page.locator("#rows tr")).to_have_count(5)


async def test_a_change_leaves_the_keyboard_where_it_is(full: ServedPage, visit: BrowserVisit) -> None:
    page = visit.page
    await visit.open()
    await walk(page, until=f"/gangs/{scenes.TEAM}/waits")
    full.decide(scenes.put(full, "waits", *scenes.here(2)))
    await expect(page.locator(f"#gang-{scenes.TEAM}\\.waits .badge")).to_have_text("Released")
    assert await page.evaluate("document.activeElement.textContent") == "waits"


async def walk(page: Page, *, until: str) -> list[str]:
    """Presses Tab until that link, field or button has the focus. Each stop must be seen."""
    await page.wait_for_load_state()  # of the stylesheet, too
    stops = []
    for _ in range(60):
        await page.keyboard.press("Tab")
        at = await page.evaluate(
            """() => { const it = document.activeElement, style = getComputedStyle(it);
            return {name: it.textContent.trim() || it.id, id: it.id, href: it.getAttribute("href"),
                    outline: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
                    box: it.getBoundingClientRect().width > 0}; }"""
        )
        stop = at["id"] if at["id"] in ("q", "namespace") else at["name"]
        stops.append(stop)
        assert at["outline"], f"nobody sees that {stop} has the focus"
        assert at["box"], f"{stop} is nowhere to be seen"
        if until in (stop, at["href"]):
            return stops
    raise AssertionError(f"{until} is not among {stops}")
