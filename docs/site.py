"""`python -m docs.site`: the documents as a site with search, in build/site/html (Zensical, strict: no broken link).

The documents are written to be read in the repository. A copy of them, in build/site/pages, gets links that fit a site:
a link to a file that is no page of the site leads to the repository.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_FOLDER: Final = ROOT / "build/site"
_LINK: Final = re.compile(r"(\]\()((?!https?:|mailto:|#)[^)#\s]+)(#[^)\s]*)?(\))")
_OUTSIDE: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing-start.md",
    "charts/jobset-gate/README.md": "chart.md",
    "examples/README.md": "examples.md",
    "e2e/README.md": "e2e.md",
}
"""Pages that lie outside of docs/, and their names on the site."""


def repository() -> str:
    """Where the repository is on the web."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    return str(urls["Repository"])


def pages() -> dict[Path, Path]:
    """Each file of the site: from its path in the repository to that on the site, both relative."""
    found = {Path(old): Path(new) for old, new in _OUTSIDE.items()}
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.suffix in (".md", ".svg", ".png"):
            inside = path.relative_to(ROOT / "docs")
            found[path.relative_to(ROOT)] = Path("documents.md") if inside == Path("README.md") else inside
    return found


def linked(text: str, source: Path, known: dict[Path, Path]) -> str:
    """A page's text with links that fit the site; `source` and `known` as in `pages`."""

    def fit(found: re.Match[str]) -> str:
        before, target, anchor, after = found.groups()
        path = Path(os.path.normpath(source.parent / target))
        if path in known:
            target = os.path.relpath(known[path], known[source].parent)
        else:
            kind = "tree" if (ROOT / path).is_dir() else "blob"
            target = f"{repository()}/{kind}/main/{path}"
        return f"{before}{target}{anchor or ''}{after}"

    return _LINK.sub(fit, text)


def write_pages(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    known = pages()
    for source, target in known.items():
        file = folder / target
        file.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            file.write_text(linked((ROOT / source).read_text(), source, known))
        else:
            shutil.copyfile(ROOT / source, file)


def main() -> int:
    """The exit code of Zensical."""
    write_pages(_FOLDER / "pages")
    program = Path(sys.executable).with_name("zensical")
    command = [str(program), "build", "--clean", "--strict", "--config-file", str(ROOT / "zensical.toml")]
    code = subprocess.run(command, check=False).returncode  # noqa: S603 - the docs' own tool
    if code == 0:
        print(f"site: {_FOLDER / 'html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
