"""`python -m docs.make.picture`: writes docs/pictures/demo.svg."""

import sys
from pathlib import Path
from typing import Final

from docs.make.picture.drawing import draw
from docs.make.picture.frames import Frame, frames
from docs.make.picture.recording import Size, record

PICTURE: Final = Path(__file__).parents[3] / "docs" / "pictures" / "demo.svg"
SIZE: Final = Size(columns=104, lines=40)
TITLE: Final = "jobset-gate demo"
DESCRIPTION: Final = (
    "A gang of 3 Jobs whose nodes join in three waves: three bars fill while all started pods are held, and all of "
    "them are released when the last one has started. Then a gang of nine pods, where two cannot start, times out "
    "and names both with their reasons."
)
PROGRAM: Final = str(Path(sys.executable).with_name("jobset-gate"))


def played(*options: str) -> list[Frame]:
    """The frames of one demo."""
    return frames(record([PROGRAM, "demo", *options], SIZE), SIZE)


def main() -> None:
    """Plays the demo as it is, and draws it."""
    PICTURE.write_text(draw(played(), SIZE, title=TITLE, described=DESCRIPTION))
    print(f"written: {PICTURE} ({PICTURE.stat().st_size} bytes)")


if __name__ == "__main__":
    main()
