"""`python -m tests.tools [helm] [promtool] [busybox] [chromium]`: get the tools and print where they lie."""

import sys
from collections.abc import Callable
from functools import partial

from tests.plane.build import BuildFailed
from tests.tools import busybox, chromium
from tests.tools.places import TOOLS, FoundTool
from tests.tools.provide import Unobtainable, provide


def main(names: list[str]) -> int:
    """Exit code 0, or 1 with the reasons on stderr, or 2 for a tool that is unknown."""
    known = {tool.program for tool in TOOLS} | {chromium.PROGRAM, busybox.PROGRAM}
    if unknown := set(names) - known:
        print(f"tools: {', '.join(sorted(unknown))}: known are {', '.join(sorted(known))}", file=sys.stderr)
        return 2
    code = 0
    for tool in TOOLS:
        if not names or tool.program in names:
            code |= _got(tool.title, partial(provide, tool))
    if not names or busybox.PROGRAM in names:
        for kind in busybox.BusyboxKind:
            code |= _got(kind.title, partial(busybox.provide, kind))
    if not names or chromium.PROGRAM in names:
        code |= _got(chromium.TITLE, chromium.provide)
    return code


def _got(title: str, get: Callable[[], FoundTool]) -> int:
    try:
        found = get()
    except (BuildFailed, Unobtainable, OSError) as error:
        print(f"tools: {title}: {error}", file=sys.stderr)
        return 1
    print(f"tools: {title}: {found.path} ({found.origin})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
