"""jobset-gate in the cluster: the chart of this checkout by Helm, and the proof that webhook and controllers work."""

import json
import sys
import time
from pathlib import Path
from typing import Any, Final

from controllers.podgroups import crds
from e2e import commands, images, jobset
from e2e.cluster import E2eCluster
from e2e.helm import CHART, HelmRelease
from e2e.timeouts import TIMEOUT
from jobset_gate import names
from jobset_gate.sources.table import SOURCES
from jobset_gate_demo.fake import manifests

RELEASE: Final = "jobset-gate"
NAMESPACE: Final = "jobset-gate-system"
CONTROLLER: Final = "jobset-gate-controller"
WEBHOOK: Final = "jobset-gate-webhook"
CONTROLLERS: Final = f"app.kubernetes.io/instance={RELEASE},app.kubernetes.io/component=controller"
WEBHOOKS: Final = f"app.kubernetes.io/instance={RELEASE},app.kubernetes.io/component=webhook"
"""Selectors of their pods."""
CA_SECRET: Final = "jobset-gate-ca"
STREAM_PORT: Final = 8082
STREAM: Final = f"http://jobset-gate-stream.{NAMESPACE}.svc:{STREAM_PORT}"
MARK: Final = "jobset-gate-e2e-probe"
"""Label on our namespace: what is in it, the suite has put there."""
GONE_SECONDS: Final = 240
IN_A_ROW: Final = 10
"""Objects: each replica of the webhook has then been asked, surely enough."""
KINDS_SECONDS: Final = 20
POLL_INTERVAL: Final = 0.5
Json = dict[str, Any]


def release(kubeconfig: str) -> HelmRelease:
    return HelmRelease(kubeconfig, RELEASE, NAMESPACE)


def install(cluster: E2eCluster, values: Json, chart: Path = CHART) -> None:
    """Creates or updates it, and returns when it works. Raises commands.Failed, also where it is another release."""
    it = release(cluster.kubeconfig)
    marked = cluster.kubectl("get", "namespaces", f"--selector={MARK}", "--output=name").split()
    if f"namespace/{NAMESPACE}" not in marked and it.exists():
        raise commands.CommandFailed(f"jobset-gate is in {NAMESPACE} already, and not put there by this suite")
    print(f"jobset-gate: installing {chart.name}", flush=True)
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(_namespace()))
    it.apply(values, chart)
    wait_in_force(cluster)


def uninstall(cluster: E2eCluster) -> None:
    """All of it, and the field in JobSet's CRD if that is still there."""
    print("jobset-gate: taking it away", flush=True)
    release(cluster.kubeconfig).remove()
    cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", seconds=GONE_SECONDS)
    program = (sys.executable, "-m", "jobset_gate.cli", "install-crd-field", "--remove")
    if jobset.stands(cluster):
        commands.run(*program, "--kubeconfig", cluster.kubeconfig)


def pod_group_kinds(cluster: E2eCluster) -> set[str]:
    """The CRDs of PodGroups that are there, installed by us or not."""
    found = cluster.kubectl("get", "crds", "--output=name").split()
    return {one.partition("/")[2] for one in found} & set(crds.GROUPS)


def forget_kinds(cluster: E2eCluster, names_of_crds: set[str]) -> None:
    """The controller makes them, and neither it nor Helm ever takes them away."""
    cluster.remove_crds(*sorted(names_of_crds))


def values(image: str, small_image: str, steady_node: dict[str, str]) -> Json:
    """All that this cluster asks for; the rest is as the chart has it."""
    pods = {
        "nodeSelector": steady_node,
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        # Another build under the same name is rolled out, too.
        "podAnnotations": {"build": images.identity(image)},
    }
    return {
        "image": images.parts(image),
        "barrier": {"image": small_image},
        "gangs": {"sources": list(SOURCES)},
        "webhook": {**pods},
        "controller": {**pods},
    }


def _namespace() -> Json:
    """As strict as Pod Security can be."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted", MARK: "true"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def wait_in_force(cluster: E2eCluster) -> None:
    """Until some JobSets in a row get JobSet's defaults and our barrier, pods their barrier or the gate of their group.

    A dry run tells: nothing else does when an API server has read its webhook configurations, and when it reaches all
    who stand behind their Services. The kinds of groups are there then, too. Raises commands.Failed.
    """
    probe, end = json.dumps(_probe()), time.monotonic() + TIMEOUT
    while said := _not_in_force(cluster, probe):
        if time.monotonic() > end:
            raise commands.CommandFailed(f"not in force after {TIMEOUT:.0f}s: {said[:2000]}")
        time.sleep(POLL_INTERVAL)


def _probe() -> Json:
    """Gangs, and pods that say to which group they belong."""
    gangs = [manifests.gang(f"probe-{number}", jobs=1, pods=1) for number in range(IN_A_ROW)]
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "probe", "uid": "probe", "controller": True}
    starting = {
        "labels": {names.START_GROUP: "probe"},
        "annotations": {names.START_SIZE: "2"},
        "ownerReferences": [owner],
    }
    placed = {"labels": {names.ALIBABA_NAME: "probe", names.ALIBABA_MINIMUM: "2"}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"probe-{kind}-{number}", **meta},
            # With a limit for barriers, which one scenario sets, pods of a start group have to be of that policy.
            "spec": {"restartPolicy": "Never", "containers": [manifests.container()]},
        }
        for number in range(IN_A_ROW)
        for kind, meta in (("start", starting), ("placed", placed))
    ]
    return {"apiVersion": "v1", "kind": "List", "items": [*gangs, *pods]}


def _not_in_force(cluster: E2eCluster, probe: str) -> str:
    """What is wrong, "" if nothing is."""
    try:
        said = cluster.kubectl("apply", "--dry-run=server", "--output=json", "-f", "-", stdin=probe)
        kinds = [f"crd/{kind}" for kind in crds.GROUPS]
        cluster.kubectl("wait", "--for=condition=Established", *kinds, f"--timeout={KINDS_SECONDS}s")
    except commands.CommandFailed as refused:
        return str(refused)
    texts = [json.dumps(one) for one in json.loads(said)["items"]]
    for text in texts:
        gang = '"startupPolicy"' in text and names.BARRIER_CONTAINER in text
        if not gang and names.POD_GROUP_GATE not in text and names.STATE_VOLUME not in text:
            return text
    return "" if len(texts) == 3 * IN_A_ROW else said
