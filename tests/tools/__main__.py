"""`python -m tests.tools [helm] [promtool]`: get the tools and print where they lie (make tools)."""

import sys

from tests.plane.build import BuildFailed
from tests.tools.places import TOOLS
from tests.tools.provide import Unobtainable, provide


def main(names: list[str]) -> int:
    """Exit code 0, or 1 with the reasons on stderr, or 2 for a tool that is unknown."""
    known = {tool.program for tool in TOOLS}
    if unknown := set(names) - known:
        print(f"tools: {', '.join(sorted(unknown))}: known are {', '.join(sorted(known))}", file=sys.stderr)
        return 2
    code = 0
    for tool in TOOLS:
        if names and tool.program not in names:
            continue
        try:
            found = provide(tool)
        except (BuildFailed, Unobtainable, OSError) as error:
            print(f"tools: {tool.title}: {error}", file=sys.stderr)
            code = 1
        else:
            print(f"tools: {tool.title}: {found.path} ({found.origin})")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
