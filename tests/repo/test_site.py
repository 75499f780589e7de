"""The site of the documents: every page is in its navigation, and it is built."""

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from docs import site
from tests.repo.files import ROOT

CONFIG = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]


def in_navigation(entries: object) -> Iterator[str]:
    match entries:
        case str(page):
            yield page
        case list():
            for entry in entries:
                yield from in_navigation(entry)
        case dict():
            yield from in_navigation(list(entries.values()))


def test_every_page_is_in_the_navigation_and_nothing_else() -> None:
    pages = {str(target) for target in site.pages().values() if target.suffix == ".md"}
    assert set(in_navigation(CONFIG["nav"])) == pages


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    site.write_pages(tmp_path / "pages")
    config = (ROOT / "zensical.toml").read_text()
    for folder in ("pages", "html"):
        config = config.replace(f'"build/site/{folder}"', f'"{folder}"')
    (tmp_path / "zensical.toml").write_text(config)
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "html/howto/set-a-timeout/index.html").exists()
