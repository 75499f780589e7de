"""The command lines of the programs, flag by flag."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.plane.certs import Certificates
from tests.plane.places import Binaries

_CONTROLLERS = (
    # What the tests rely on. Absent on purpose: pod garbage collection and node lifecycle, which would clear away
    # pods of nodes that only a test plays.
    "job-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "resourcequota-controller",
    "disruption-controller",
    "ttl-after-finished-controller",
    "clusterrole-aggregation-controller",
    # Creators of groups' pods other than Jobs.
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "replicationcontroller-controller",
)
_NATIVE_CONTROLLERS = ("podgroup-protection-controller",)
"""It takes off the finalizer that admission puts on native PodGroups: without it they never go."""
_NATIVE_FEATURE = "GenericWorkload"
_NATIVE_API = "scheduling.k8s.io/v1alpha2"
_UNHURRIED = ("--kube-api-qps=2000", "--kube-api-burst=4000")
"""No program is slowed down by its own client."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the command lines are made of."""

    binaries: Binaries
    folder: Path
    certificates: Certificates
    kubeconfig: Path
    etcd_port: int
    etcd_peer_port: int
    api_port: int
    features: tuple[str, ...] = ()
    """Feature gates in every program that knows them: a name that is on, or `name=false`."""

    @property
    def native(self) -> bool:
        """Whether it has the scheduler's own PodGroups."""
        return _NATIVE_FEATURE in self.features


def etcd(layout: Layout) -> list[str]:
    """Without fsync: its data outlives nothing."""
    client = f"http://127.0.0.1:{layout.etcd_port}"
    peer = f"http://127.0.0.1:{layout.etcd_peer_port}"
    return [
        layout.binaries["etcd"],
        f"--data-dir={layout.folder / 'etcd'}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--log-level=warn",
    ]


def apiserver(layout: Layout, extra: Sequence[str] = ()) -> list[str]:
    """Authorization as in production. The `kubernetes` Service gets no endpoint: loopback may not be one."""
    certificates = layout.certificates
    return [
        layout.binaries["kube-apiserver"],
        f"--etcd-servers=http://127.0.0.1:{layout.etcd_port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={layout.api_port}",
        "--endpoint-reconciler-type=none",
        f"--cert-dir={layout.folder / 'certs'}",
        f"--tls-cert-file={certificates.server.cert}",
        f"--tls-private-key-file={certificates.server.key}",
        f"--client-ca-file={certificates.ca}",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-signing-key-file={certificates.service_accounts}",
        f"--service-account-key-file={certificates.service_accounts}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--allow-privileged=true",
        "--profiling=false",
        # It marks new nodes as not ready for a controller that does not run here, and nothing would ever be bound.
        "--disable-admission-plugins=TaintNodesByCondition",
        *([f"--runtime-config={_NATIVE_API}=true"] if layout.native else ()),
        *_gates(layout),
        *extra,
    ]


def controller_manager(layout: Layout) -> list[str]:
    """Only the controllers that the tests need."""
    wanted = _CONTROLLERS + (_NATIVE_CONTROLLERS if layout.native else ())
    return [
        layout.binaries["kube-controller-manager"],
        f"--kubeconfig={layout.kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--controllers={','.join(wanted)}",
        f"--service-account-private-key-file={layout.certificates.service_accounts}",
        f"--root-ca-file={layout.certificates.ca}",
        *_UNHURRIED,
        *_gates(layout),
        "--concurrent-job-syncs=20",
        "--concurrent-gc-syncs=20",
        "--concurrent-namespace-syncs=10",
        "--concurrent-serviceaccount-token-syncs=5",
        "--resource-quota-sync-period=10s",
        "--profiling=false",
    ]


def scheduler(layout: Layout) -> list[str]:
    """The stock scheduler as it comes."""
    return [
        layout.binaries["kube-scheduler"],
        f"--kubeconfig={layout.kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        *_UNHURRIED,
        *_gates(layout),
        "--profiling=false",
    ]


def _gates(layout: Layout) -> list[str]:
    gates = (it if "=" in it else f"{it}=true" for it in layout.features)
    return ["--feature-gates=" + ",".join(gates)] if layout.features else []
