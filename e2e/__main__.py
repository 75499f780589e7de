"""`make e2e`: a cluster, our image, JobSet and jobset-gate in it, the scenarios, and everything away again.

KUBECONFIG=FILE uses that cluster, KEEP=1 leaves everything standing, IMAGE=NAME takes an image instead of building it.
Arguments go to pytest, with whose code it ends. `python -m e2e prepare` only sees to docker, kind and a node image.
`python -m e2e try` is `make try`: a cluster to look at, left standing; `try --delete` takes it away.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Final

from e2e import cluster, commands, images, tools, tryout
from e2e.environment import ENV
from e2e.installation import installed

KEPT: Final = "jobset-gate-e2e"
"""The name of the cluster that KEEP=1 leaves standing; others get one of their own, for several may run at once."""
HERE: Final = Path(__file__).parent
REPORTS: Final = HERE.parent / "build" / "e2e"
WORKERS: Final = "4"
TOGETHER_SECONDS: Final = 1200.0
ALONE_SECONDS: Final = 1500.0
USAGE: Final = 2
NO_TESTS: Final = 5
"""Pytest's code for having found none, as -k may cause in one of the two runs."""


def main(args: list[str]) -> int:
    """The exit code."""
    commands.handle_signals()
    if args[:1] == ["try"]:
        return tried(args[1:])
    began = time.monotonic()
    keep = os.environ.get("KEEP") == "1"
    kubeconfig = os.environ.get("KUBECONFIG") or None
    try:
        if kubeconfig is None:
            tools.provide()
        if args == ["prepare"]:
            return 0
        made = cluster.of_kubeconfig(kubeconfig) if kubeconfig else own_cluster(KEPT, keep=keep)
        shutil.rmtree(REPORTS, ignore_errors=True)
        REPORTS.mkdir(parents=True)
        remove = kubeconfig is not None and not keep
        with made as it, installed(it, REPORTS, remove=remove) as environment, tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "environment.json"
            environment.save(file)
            code = scenarios(file, args)
    except commands.CommandFailed as problem:
        print(f"e2e: {problem}", file=sys.stderr)
        code = 1
    print(f"e2e: {'passed' if code == 0 else f'failed with code {code}'} after {time.monotonic() - began:.0f}s")
    return code


def tried(args: list[str]) -> int:
    """A cluster for a person, or its end. The exit code."""
    if args not in ([], ["--delete"]):
        print("usage: python -m e2e try [--delete]", file=sys.stderr)
        return USAGE
    try:
        if args:
            tryout.down()
            return 0
        tryout.up()
    except commands.CommandFailed as problem:
        print(f"try: {problem}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def own_cluster(kept: str, *, keep: bool) -> Iterator[cluster.E2eCluster]:
    """Kind's, and what was built for it goes with it. `kept` is its name if it stays."""
    name = kept if keep else f"{kept}-{token_hex(2)}"
    try:
        with cluster.of_kind(name, keep=keep) as it:
            yield it
    finally:
        if not keep:
            images.forget(f"{images.NAME}:{name}")


def scenarios(environment: Path, args: list[str]) -> int:
    """Those that bear company, a few at a time; then those that must be alone. Pytest's first bad code."""
    args = [str(HERE / "scenarios"), "--durations=0", "--durations-min=1", *args]
    together = ["--numprocesses", os.environ.get("WORKERS", WORKERS), "--dist", "worksteal"]
    code = pytest(environment, "together", ["-m", "not alone", *together, *args], TOGETHER_SECONDS)
    if code not in (0, NO_TESTS):
        args = [*args, "--maxfail", "3"]  # the cluster may be broken: no need to wait for each to say so
    alone = pytest(environment, "alone", ["-m", "alone", *args], ALONE_SECONDS)
    codes = {code, alone}
    if codes == {NO_TESTS}:
        return NO_TESTS
    return next((each for each in (code, alone) if each not in (0, NO_TESTS)), 0)


def pytest(environment: Path, run: str, args: list[str], seconds: float) -> int:
    """One run of pytest."""
    print(f"scenarios: {run}", flush=True)
    command = [sys.executable, "-m", "pytest", "-c", str(HERE / "pytest.ini"), "--rootdir", str(HERE.parent)]
    return commands.show(*command, *args, seconds=seconds, env={ENV: str(environment)})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
