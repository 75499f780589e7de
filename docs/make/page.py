"""`python -m docs.make.page`: writes docs/pictures/status-page.png, the list of the status page with seven gangs."""

import asyncio
from pathlib import Path
from typing import Final

from controllers.statuspage.middleware import PageOptions
from tests.fakes.served_page import serve_page
from tests.page.browser import chromium_running, visiting
from tests.page.showcase import NOW, PRICES, showcase

PICTURE: Final = Path(__file__).parents[2] / "docs" / "pictures" / "status-page.png"
WIDTH, HEIGHT = 1200, 800


async def photograph() -> bytes:
    """As PNG. The clock of the browser stands, so that it is the same each time."""
    async with (
        serve_page(PageOptions(0, prices=PRICES), now=lambda: NOW) as stage,
        chromium_running() as browser,
        visiting(browser, base_url=stage.url, viewport={"width": WIDTH, "height": HEIGHT}) as visit,
    ):
        showcase(stage)
        await visit.sign_in(stage, stage.api.admin("ada@example.com"))
        await visit.page.clock.set_fixed_time(NOW)
        await visit.open("/")
        return await visit.page.screenshot(full_page=True)


def main() -> None:
    """Takes it and says how large it is."""
    PICTURE.write_bytes(asyncio.run(photograph()))
    print(f"written: {PICTURE} ({PICTURE.stat().st_size} bytes)")


if __name__ == "__main__":
    main()
