"""`python -m tests.plane`: get the control plane's programs and print where they lie (make control-plane)."""

import sys

from tests.plane.build import BuildFailed
from tests.plane.places import Unfit
from tests.plane.provide import provide
from tests.plane.release import WrongSum


def main() -> int:
    """Exit code 0, or 1 with the reason on stderr."""
    try:
        binaries = provide()
    except (BuildFailed, Unfit, WrongSum, OSError) as error:
        print(f"control plane: {error}", file=sys.stderr)
        return 1
    print(f"control plane: {binaries.folder} ({binaries.origin})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
