"""`python -m docs.make`: writes the pages of docs/reference/ and the table of JobSet's fields; prints which changed."""

from pathlib import Path

from docs.make import jobset_fields
from docs.make.pages import FOLDER, PAGES

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Writes the pages."""
    pages = {f"{FOLDER}/{name}": page for name, page in PAGES.items()}
    for name, page in (pages | {jobset_fields.TABLE: jobset_fields.text}).items():
        path = ROOT / name
        text = page()
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
