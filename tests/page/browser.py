"""Chromium for the tests of the page: it reaches this machine alone, and what it complains of is kept."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, Page, Route, async_playwright, expect

from tests.fakes import eventually
from tests.fakes.served_page import ServedPage
from tests.tools.catalog import CHROMIUM

PATIENCE: Final = 1000 * eventually.PATIENCE
"""Milliseconds."""

AXE: Final = files("axe_playwright_python").joinpath("axe.min.js").read_text()
"""The library that looks for what keeps people out; it comes with the package, not from the network."""

expect.set_options(timeout=PATIENCE)

_ARGS: Final = (
    "--no-sandbox",  # root has none
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-pings",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


@asynccontextmanager
async def chromium_running() -> AsyncIterator[Browser]:
    """One browser, for as many tests as there are."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM.find(), args=list(_ARGS), timeout=2 * PATIENCE
        )
        try:
            yield browser
        finally:
            await browser.close()


@dataclass
class BrowserVisit:
    """One viewer: a window of its own without cookies, and all that went wrong in it."""

    context: BrowserContext
    page: Page
    other_hosts: list[str] = field(default_factory=list)
    """Addresses of requests to other hosts."""
    complaints: list[str] = field(default_factory=list)
    """Errors of the console, violations of the content security policy among them, and uncaught ones."""

    async def sign_in(self, stage: ServedPage, token: str) -> None:
        """As after the form, without it."""
        word = stage.page.sessions.create(token)
        await self.context.add_cookies([{"name": stage.page.authenticator.cookie, "value": word, "url": stage.url}])

    async def open(self, path: str = "/") -> None:
        """And until what happens from now on is seen."""
        await self.page.goto(path)
        await expect(self.page.locator("#connection")).to_have_text("Live.")

    async def axe(self, *rules: str) -> list[str]:
        """What axe finds against people who see, hear or move otherwise: rule, what to do, where. All its rules, or
        these alone.
        """
        await self.page.evaluate(AXE)
        only = {"runOnly": {"type": "rule", "values": rules}} if rules else {}
        asked = {"resultTypes": ["violations"], "preload": False, **only}
        found: dict[str, Any] = await self.page.evaluate("asked => axe.run(document, asked)", asked)
        return [
            f"{one['id']}: {one['help']}: {', '.join(str(node['target']) for node in one['nodes'])}"
            for one in found["violations"]
        ]


@asynccontextmanager
async def visiting(browser: Browser, **options: Any) -> AsyncIterator[BrowserVisit]:
    """A viewer, with the options of a browser context: viewport, color_scheme, java_script_enabled..."""
    context = await browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    try:
        visit = BrowserVisit(context, await context.new_page())
        await context.route(_elsewhere, _refuse(visit))
        context.on("console", lambda said: visit.complaints.append(said.text) if said.type == "error" else None)
        context.on("weberror", lambda error: visit.complaints.append(str(error.error)))
        yield visit
    finally:
        await context.close()


def _elsewhere(url: str) -> bool:
    return urlsplit(url).scheme not in ("data", "blob") and urlsplit(url).hostname not in ("127.0.0.1", "localhost")


def _refuse(visit: BrowserVisit) -> Any:
    async def refuse(route: Route) -> None:
        visit.other_hosts.append(route.request.url)
        await route.abort()

    return refuse
