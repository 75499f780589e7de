"""jobset-gate in the cluster: webhook and controllers as Deployments, and the proof that both are at work."""

import json
import sys
import time
from typing import Any, Final

from e2e import commands, images, jobset, templates
from e2e.cluster import Cluster
from jobset_gate import names
from jobset_gate.sim import manifests
from webhook import registration

NAMESPACE: Final = "jobset-gate-system"
CONTROLLER: Final = "jobset-gate-controller"
WEBHOOK: Final = "jobset-gate-webhook"
STREAM_PORT: Final = 8082
STREAM: Final = f"http://jobset-gate-stream.{NAMESPACE}.svc:{STREAM_PORT}"
CONTROLLER_ARGS: Final = (
    "controller",
    "--config=/etc/jobset-gate/settings.yaml",
    "--host=0.0.0.0",
    "--port=8080",
)
STREAM_ARGS: Final = ("--stream-host=0.0.0.0", f"--stream-port={STREAM_PORT}")
READY_SECONDS: Final = 240
IN_FORCE_SECONDS: Final = 120.0
LOOK_EVERY: Final = 0.5


def install(cluster: Cluster, image: str, small_image: str, steady_node: dict[str, str]) -> None:
    """Creates or updates it, and returns when it works. Raises commands.Failed."""
    print("jobset-gate: installing", flush=True)
    manifest = templates.filled(
        "jobset-gate.yaml",
        IMAGE=image,
        BUILD=images.identity(image),
        SETTINGS=json.dumps(settings(small_image), indent=1),
        STEADY_NODE=steady_node,
        CONTROLLER_ARGS=CONTROLLER_ARGS + STREAM_ARGS,
    )
    cluster.kubectl("apply", "-f", "-", stdin=manifest)
    for deployment in (WEBHOOK, CONTROLLER):
        _roll_out(cluster, deployment)
    _wait_in_force(cluster)


def uninstall(cluster: Cluster) -> None:
    """All of it, and the field in JobSet's CRD if that is still there. First what makes JobSets ask the webhook."""
    print("jobset-gate: taking it away", flush=True)
    for configuration in (f"mutating/{registration.MUTATING}", f"validating/{registration.VALIDATING}"):
        kind, _, name = configuration.partition("/")
        cluster.kubectl("delete", f"{kind}webhookconfiguration", name, "--ignore-not-found")
    nothing: dict[str, Any] = {"IMAGE": "", "BUILD": "", "SETTINGS": "", "STEADY_NODE": {}, "CONTROLLER_ARGS": []}
    manifest = templates.filled("jobset-gate.yaml", **nothing)
    cluster.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=manifest, seconds=READY_SECONDS)
    program = (sys.executable, "-m", "jobset_gate.cli", "install-crd-field", "--remove")
    if jobset.stands(cluster):
        commands.run(*program, "--kubeconfig", cluster.kubeconfig)


def settings(small_image: str) -> dict[str, Any]:
    """The settings file: JSON is YAML."""
    return {"barrier": {"image": small_image, "streamUrl": STREAM}}


def _roll_out(cluster: Cluster, deployment: str) -> None:
    command = ("rollout", "status", "deployment", deployment, "-n", NAMESPACE, f"--timeout={READY_SECONDS}s")
    cluster.kubectl(*command, seconds=READY_SECONDS + 10)


def _wait_in_force(cluster: Cluster) -> None:
    """Until a JobSet with the field gets JobSet's defaults and our barrier: a dry run tells."""
    probe = json.dumps(manifests.gang("probe", jobs=1, pods=1))
    end = time.monotonic() + IN_FORCE_SECONDS
    said = ""
    while time.monotonic() < end:
        try:
            said = cluster.kubectl("create", "--dry-run=server", "--output=json", "-f", "-", stdin=probe)
        except commands.Failed as refused:
            said = str(refused)
        if names.BARRIER_CONTAINER in said and '"startupPolicy"' in said:
            return
        time.sleep(LOOK_EVERY)  # nothing tells when an API server has read its webhook configurations
    raise commands.Failed(f"a JobSet does not get its barrier: {said[:2000]}")
