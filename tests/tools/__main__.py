"""`python -m tests.tools [helm] [promtool] [busybox] [chromium]`: get the tools and print where they lie."""

import sys

from tests.tools.catalog import TOOLS, ToolNotFound


def main(names: list[str]) -> int:
    """Exit code 0, or 1 with the reasons on stderr."""
    code = 0
    for tool in TOOLS:
        if names and tool.programs[0] not in names:
            continue
        try:
            path, origin = tool.provide()
        except ToolNotFound as error:
            print(f"tools: {error}", file=sys.stderr)
            code = 1
        else:
            print(f"tools: {tool.title}: {path} ({origin})")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
