"""`make e2e-programs`: a kind cluster, real programs in it, docs/proofs.md, and everything away again.

KEEP=1 leaves cluster and images standing. JOBSET_MANIFESTS and KUEUE_MANIFESTS name files, whose images are taken from
docker. HURRY=SECONDS shortens what programs wait for a peer. Arguments go to pytest, and then no page is written.
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from e2e import __main__ as e2e
from e2e import commands, jobset, tools
from e2e.cluster import E2eCluster
from e2e.environment import Environment
from e2e.installation import installed
from e2e.programs import kueue, page, real_images

HERE: Final = Path(__file__).parent
KEPT: Final = "jobset-gate-programs"
REPORTS: Final = HERE.parents[1] / "build" / "e2e-programs"
TESTS: Final = ("test_late_member.py", *(["test_kueue.py"] if kueue.MANIFESTS else []))
AT_ONCE: Final = "4"
COMMAND: Final = "make e2e-programs"
GIVEN: Final = ("JOBSET_MANIFESTS", "KUEUE_MANIFESTS", "HURRY")
ONE_SECONDS: Final = "1500"
ALL_SECONDS: Final = 2400.0
IMAGE: Final = "--output=jsonpath={.items[*].spec.template.spec.containers[*].image}"


def main(args: list[str]) -> int:
    """The exit code."""
    commands.handle_signals()
    began, keep = time.monotonic(), os.environ.get("KEEP") == "1"
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    try:
        tools.provide()
        with real_images.made(keep=keep), e2e.own_cluster(KEPT, keep=keep) as it:
            real_images.load(it, os.environ.get("JOBSET_MANIFESTS", ""), kueue.MANIFESTS)
            with installed(it, REPORTS, remove=False) as environment:
                if kueue.MANIFESTS:
                    kueue.install(it)
                code = tests(environment, args)
                if code == 0 and not args:
                    page.write(environment, command(), versions(it, environment), time.monotonic() - began)
    except commands.CommandFailed as problem:
        print(f"e2e-programs: {problem}", file=sys.stderr)
        code = 1
    outcome = "passed" if code == 0 else f"failed with code {code}"
    print(f"e2e-programs: {outcome} after {time.monotonic() - began:.0f}s")
    return code


def tests(environment: Environment, args: list[str]) -> int:
    """All programs at once: most of the time they wait. Pytest's code."""
    run = [*(str(HERE / test) for test in TESTS), "--numprocesses", AT_ONCE, "--timeout", ONE_SECONDS, *args]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "environment.json"
        environment.save(file)
        return e2e.pytest(file, "real programs", run, ALL_SECONDS)


def command() -> str:
    """What repeats this run."""
    return " ".join([COMMAND, *(f"{name}={Path(os.environ[name]).name}" for name in GIVEN if os.environ.get(name))])


def versions(it: E2eCluster, environment: Environment) -> dict[str, str]:
    """Of what is not in the images of the programs."""
    said = it.nodes()[0]["status"]["nodeInfo"]
    found = {"kubelet": said["kubeletVersion"], "runtime": said["containerRuntimeVersion"]}
    for name, namespace, there in (
        ("jobset", jobset.NAMESPACE, not environment.stand_in),
        ("kueue", kueue.NAMESPACE, bool(kueue.MANIFESTS)),
    ):
        if there:
            found[name] = it.kubectl("get", "deployments", "--namespace", namespace, IMAGE).strip()
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
