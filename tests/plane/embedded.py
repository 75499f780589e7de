"""The embedded API server as a plane."""

from pathlib import Path

from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import NAMESPACES
from jobset_gate_demo.fake.apiserver import ApiServer
from tests.fakes.faults import Faults
from tests.plane.kubectl import Kubectl, write_kubeconfig


class Embedded:
    """The embedded API server, alone: controllers and kubelets are the test's to start. It does not serve kubectl."""

    name = "embedded"

    def __init__(self, server: ApiServer, faults: Faults, kubectl: str, folder: Path) -> None:
        self.server, self.faults = server, faults
        self.kubeconfig = folder / "kubeconfig"
        write_kubeconfig(self.kubeconfig, server.url)
        self.kubectl = Kubectl(kubectl, self.kubeconfig, folder / "kubectl")

    @property
    def access(self) -> Access:
        return Access(server=self.server.url)

    def client(self, user_agent: str = "test") -> Client:
        return Client(self.access, user_agent=user_agent)

    async def make_namespace(self, name: str) -> None:
        async with self.client() as client:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await client.create(NAMESPACES, namespace)

    async def drop_namespace(self, name: str) -> None:
        """Nothing to do: the whole server goes with its test."""
