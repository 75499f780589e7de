"""`python -m release STEP...`: one step of a release, all of them, or all of them twice (see docs/releasing.md)."""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from e2e import tools
from release import artifacts
from tests.tools.catalog import helm

STEPS: Final = ("wheels", "sbom", "image", "chart", "plugin", "krew", "checksums")
"""In their order: the chart names the image's digest, krew's manifest the plugin's archives."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    made.add_argument("steps", nargs="+", choices=(*STEPS, "all", "dry-run"))
    made.add_argument("--out", type=Path, default=artifacts.ROOT / "dist/release", help="the folder of all artefacts")
    made.add_argument("--platform", action="append", default=[], help="linux/amd64, linux/arm64; default: the daemon's")
    made.add_argument("--base", default="", help="the base image; default: that of the Dockerfile")
    made.add_argument("--registry", default="registry.example", help="where image and chart will lie")
    made.add_argument("--url", default="https://example.invalid/releases/download", help="where the plugin will lie")
    made.add_argument("--helm", default="", help="Helm 3 or 4; default: `helm`, or the one of `make helm`")
    return made


def run(step: str, args: argparse.Namespace, out: Path) -> None:
    match step:
        case "image":
            artifacts.image(out, args.platform, args.base)
        case "chart":
            artifacts.chart(out, args.registry, args.helm or shutil.which("helm") or str(helm(4)))
        case "krew":
            artifacts.krew(out, args.url)
        case _:
            getattr(artifacts, step)(out)


def dry_run(args: argparse.Namespace) -> int:
    """All steps twice, with the docker of e2e; 1 if the bytes of a file differ."""
    tools.provide()
    args.base = args.base or os.environ.get("LOCAL_PYTHON_IMAGE", "")
    with tempfile.TemporaryDirectory() as temporary:
        folders = [Path(temporary) / name for name in ("first", "second")]
        for folder in folders:
            folder.mkdir()
            for step in STEPS:
                run(step, args, folder)
        first, second = ({it.name: it.read_bytes() for it in folder.iterdir()} for folder in folders)
    differing = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    for name, data in sorted(first.items()):
        print(f"{'DIFFERS' if name in differing else 'same'}  {len(data):>11,}  {name}")
    print(first["release.json"].decode(), end="")
    return 1 if differing else 0


def main() -> int:
    args = parser().parse_args()
    if "dry-run" in args.steps:
        return dry_run(args)
    args.out.mkdir(parents=True, exist_ok=True)
    for step in STEPS if "all" in args.steps else args.steps:
        run(step, args, args.out)
        print(f"release: {step}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except artifacts.StepFailed as failed:
        sys.exit(f"release: {failed}")
