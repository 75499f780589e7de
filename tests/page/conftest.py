"""One browser per worker, one page and one viewer per test."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser

from tests.fakes.served_page import ServedPage, serve_page
from tests.page.browser import BrowserVisit, chromium_running, visiting
from tests.page.scenes import NOW


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with chromium_running() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def stage() -> AsyncIterator[ServedPage]:
    """The page as the controller serves it, with nothing on it yet."""
    async with serve_page(now=lambda: NOW) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser, stage: ServedPage) -> AsyncIterator[BrowserVisit]:
    """A signed-in viewer who may list everything. Nothing may have gone wrong at the end."""
    async with visiting(browser, base_url=stage.url) as made:
        await made.sign_in(stage, stage.api.admin())
        yield made
    assert made.other_hosts == []
    assert made.complaints == []
