"""`python -m docs.make`: writes every page of docs/reference/, and prints which have changed."""

from pathlib import Path

from docs.make.pages import FOLDER, PAGES

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Writes the pages."""
    for name, page in PAGES.items():
        path = ROOT / FOLDER / name
        text = page()
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
