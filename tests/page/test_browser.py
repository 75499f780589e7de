"""The harness itself notices what it is there to notice."""

import pytest
from aiohttp import web
from playwright.async_api import Browser

from tests.page.browser import visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")

HTML = """<!doctype html><title>x</title><img src=http://example.com/a.png><p style="color: #eee">pale</p>
<script src=/nothing.js></script><script>throw new Error("broken")</script>"""


async def test_what_is_wrong_with_a_page_is_seen(browser: Browser) -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text=HTML, content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        async with visiting(browser) as visit:
            await visit.page.goto(f"http://{host}:{port}/")
            found = await visit.axe()
    finally:
        await runner.cleanup()
    assert visit.other_hosts == ["http://example.com/a.png"]
    assert any("broken" in said for said in visit.complaints)
    assert any("404" in said for said in visit.complaints)
    assert {"html-has-lang", "image-alt", "color-contrast"} <= {one.split(":")[0] for one in found}
