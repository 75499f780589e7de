"""`make try`: jobset-gate for a person to look at - a kind cluster, the chart in it, an example gang running."""

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any, Final

from e2e import cluster as clusters
from e2e import commands, gate, images, predicates, tools
from e2e.cluster import E2eCluster
from e2e.installation import installed
from jobset_gate import names

KIND: Final = "jobset-gate-try"
FOLDER: Final = Path(__file__).parents[1] / "build" / "try"
EXAMPLE: Final = Path(__file__).parents[1] / "examples" / "first-gang.yaml"
EXAMPLE_IMAGE: Final = "busybox:1.37"
GANG: Final = "first-gang"
WORKERS: Final = 4
TIMEOUT: Final = 180.0
POLL_INTERVAL: Final = 0.5
Json = dict[str, Any]


def up() -> None:
    """Leaves it standing and says what to do next. Called again, it takes what stands. Raises commands.Failed."""
    tools.provide()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with clusters.of_kind(KIND, keep=True) as it, installed(it, FOLDER, remove=False) as environment:
        if _made_here():
            images.load_as(it, environment.small_image, EXAMPLE_IMAGE)
        it.kubectl("delete", "jobset", GANG, "--ignore-not-found", "--wait")
        it.kubectl("apply", "-f", str(EXAMPLE))
        _watch(it)
        print(it.kubectl("get", "jobsets,pods"))
    print(next_steps(it.kubeconfig, EXAMPLE, airgap=_made_here()))


def down() -> None:
    """Away with it all. Raises commands.Failed."""
    tools.provide()
    clusters.delete(KIND)
    images.forget(f"{images.NAME}:{KIND}")
    shutil.rmtree(FOLDER, ignore_errors=True)


def next_steps(kubeconfig: str, manifest: Path, *, airgap: bool) -> str:
    """Commands to be pasted."""
    lines = [
        "Next:",
        *([f"  . {tools.AIRGAP / 'env.sh'}      # docker, kind, kubectl"] if airgap else []),
        f"  export KUBECONFIG={kubeconfig}",
        f"  export PATH={Path(sys.executable).parent}:$PATH    # kubectl jobset-gate",
        f"  kubectl jobset-gate timeline {GANG}",
        "  kubectl jobset-gate get gangs -A",
        f"  kubectl get pods -l {names.JS_NAME}={GANG} -o wide",
        f"  kubectl get configmap {names.config_map_name(GANG)} -o yaml    # the verdict that opened the gate",
        f"  kubectl delete jobset {GANG}",
        f"  kubectl apply -f {manifest}",
        f"  kubectl -n {gate.NAMESPACE} get pods",
        "  make try DELETE=1      # the cluster and all that is in it",
    ]
    return "\n".join(lines)


def _watch(it: E2eCluster) -> None:
    """Tells how many pods wait and how many run until all run. Raises commands.Failed."""
    began, printed = time.monotonic(), ""
    while time.monotonic() - began < TIMEOUT:
        pods = _pods(it)
        waiting, running = sum(map(predicates.held, pods)), sum(map(predicates.runs, pods))
        now = f"{GANG}: {waiting} wait in their barrier, {running} run"
        if now != printed:
            print(f"{time.monotonic() - began:6.1f}s {now}", flush=True)
            printed = now
        if running == WORKERS + 1:
            return
        time.sleep(POLL_INTERVAL)
    raise commands.CommandFailed(f"{printed}, and no more after {TIMEOUT:.0f}s")


def _pods(it: E2eCluster) -> list[Json]:
    found = it.kubectl("get", "pods", f"--selector={names.JS_NAME}={GANG}", "--output=json")
    return list(json.loads(found)["items"])


def _made_here() -> bool:
    """Whether docker and kind are those of e2e/airgap, which no shell finds without its env.sh."""
    return "KIND_HOME" in os.environ
