"""The cluster: a kind cluster of our own, found or made, or the one that a kubeconfig names."""

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from e2e import commands
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from tests.fakes.crds import remove_crds

CONFIG: Final = Path(__file__).with_name("kind.yaml")
CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"
KIND_LABEL: Final = "io.x-k8s.kind.cluster"
CREATE_SECONDS: Final = 420.0
SETTLED_SECONDS: Final = 180
GONE_SECONDS: Final = 240.0


@dataclass(frozen=True, slots=True)
class E2eCluster:
    """How to reach it. `kind` is its name, "" if it is none of kind's on this machine."""

    kubeconfig: str
    kind: str = ""

    def kubectl(self, *args: str, stdin: str | None = None, seconds: float = commands.SECONDS) -> str:
        """Raises commands.Failed."""
        return commands.run("kubectl", "--kubeconfig", self.kubeconfig, *args, stdin=stdin, seconds=seconds)

    def nodes(self) -> list[dict[str, Any]]:
        return list(json.loads(self.kubectl("get", "nodes", "--output=json"))["items"])

    def wait_settled(self) -> None:
        """Until all nodes of kind's are ready, and DNS and networks are there: kind itself waits for one node only."""
        if not self.kind:
            return
        limit = f"--timeout={SETTLED_SECONDS}s"
        self.kubectl("wait", "--for=condition=Ready", "nodes", "--all", limit, seconds=SETTLED_SECONDS + 10)
        for what in ("daemonset", "deployment"):
            self.kubectl("--namespace=kube-system", "rollout", "status", what, limit, seconds=SETTLED_SECONDS + 10)

    def remove_crds(self, *names: str) -> None:
        """Away with these kinds and all their objects; see tests.fakes.crds. Raises commands.Failed."""

        async def remove() -> None:
            reached = await access.from_kubeconfig(self.kubeconfig)
            async with asyncio.timeout(GONE_SECONDS), Client(reached, user_agent="jobset-gate-e2e") as client:
                await remove_crds(client, *names)

        try:
            asyncio.run(remove())
        except TimeoutError as late:
            raise commands.CommandFailed(f"not gone after {GONE_SECONDS:.0f}s: {', '.join(names)}") from late

    def steady_node(self) -> dict[str, str]:
        """Selects a node that no scenario does harm to, where there are enough others for the gangs."""
        ours = [node for node in self.nodes() if CONTROL_PLANE in node["metadata"]["labels"]]
        return {CONTROL_PLANE: ""} if ours and self.kind else {}


@contextmanager
def of_kubeconfig(kubeconfig: str) -> Iterator[E2eCluster]:
    """A user's cluster. Raises commands.Failed if it cannot be reached."""
    cluster = E2eCluster(kubeconfig)
    nodes = [node["metadata"]["name"] for node in cluster.nodes()]
    kind = _kind_of(nodes[0])
    print(f"cluster: {kubeconfig}: {len(nodes)} nodes" + (f", kind's {kind!r}" if kind else ""))
    yield E2eCluster(kubeconfig, kind)


@contextmanager
def of_kind(name: str, *, keep: bool, config: Path = CONFIG) -> Iterator[E2eCluster]:
    """A cluster of that name: the one that stands, or a new one. Deleted at the end unless `keep`."""
    kubeconfig = kept_kubeconfig(name)
    try:
        if name in commands.run("kind", "get", "clusters").split():
            print(f"cluster: kind's {name!r}, which stands already")
            commands.run("kind", "export", "kubeconfig", "--name", name, "--kubeconfig", str(kubeconfig))
        else:
            print(f"cluster: making kind's {name!r} from {config.name}", flush=True)
            _create(name, kubeconfig, config)
        yield E2eCluster(str(kubeconfig), name)
    finally:
        if keep:
            print(f"cluster: kept; KUBECONFIG={kubeconfig}, kind delete cluster --name {name}")
        else:
            delete(name)


def delete(name: str) -> None:
    """Kind's cluster of that name, if it stands."""
    kubeconfig = kept_kubeconfig(name)
    print(f"cluster: deleting kind's {name!r}", flush=True)
    commands.run("kind", "delete", "cluster", "--name", name, "--kubeconfig", str(kubeconfig))
    kubeconfig.unlink(missing_ok=True)


def kept_kubeconfig(name: str) -> Path:
    """Never the user's own file."""
    return Path(tempfile.gettempdir()) / f"jobset-gate-{name}-{os.getuid()}.kubeconfig"


def _create(name: str, kubeconfig: Path, config: Path) -> None:
    image = os.environ.get("KIND_NODE_IMAGE")
    command = ["kind", "create", "cluster", "--name", name, "--config", str(config), "--kubeconfig", str(kubeconfig)]
    command += ["--wait", "180s", *(["--image", image] if image else [])]
    commands.run(*command, seconds=CREATE_SECONDS)


def _kind_of(node: str) -> str:
    """The kind cluster on this machine that a node belongs to, "" if none."""
    label = '{{index .Config.Labels "' + KIND_LABEL + '"}}'
    try:
        code, out, _ = commands.outcome("docker", "inspect", "--format", label, node, seconds=20)
    except commands.CommandFailed:
        return ""
    return out.strip() if code == 0 else ""
