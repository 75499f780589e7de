"""The kinds of objects we read and write, and the URL paths at which an API server keeps them."""

from dataclasses import dataclass
from functools import partial
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object: `group` is "" for the core API, `plural` is its name in URLs."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """As an object's `apiVersion` says it: "batch/v1", or "v1" for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of one object, of its subresource, or (without a name) of the collection.

        Without a namespace a namespaced kind's path is that of all namespaces, good for list and watch only.
        """
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name is not None:
            if not name:
                raise ValueError(f"an empty name: this would address all {self.plural}")
            if self.namespaced and not namespace:
                raise ValueError(f"{self.plural} {name!r}: a namespace is needed to address a single object")
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


_cluster_scoped = partial(Resource, namespaced=False)
_ADMISSION, _AUTHORIZATION = "admissionregistration.k8s.io", "authorization.k8s.io"

JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
JOBS = Resource("batch", "v1", "jobs", "Job")
PODS = Resource("", "v1", "pods", "Pod")
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
EVENTS = Resource("", "v1", "events", "Event")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
NODES = _cluster_scoped("", "v1", "nodes", "Node")
NAMESPACES = _cluster_scoped("", "v1", "namespaces", "Namespace")
SERVICES = Resource("", "v1", "services", "Service")
SECRETS = Resource("", "v1", "secrets", "Secret")
CRDS = _cluster_scoped("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")
MUTATING_WEBHOOKS = _cluster_scoped(_ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration")
VALIDATING_WEBHOOKS = _cluster_scoped(
    _ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"
)
PODGROUPS_KEP24 = Resource("incubator.scheduling.k8s.io", "v1alpha1", "podgroups", "PodGroup")
PODGROUPS_PLUGINS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
PODGROUPS_SIGS = Resource("scheduling.sigs.k8s.io", "v1alpha1", "podgroups", "PodGroup")
SELF_SUBJECT_REVIEWS = _cluster_scoped("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview")
SELF_SUBJECT_ACCESS_REVIEWS = _cluster_scoped(
    _AUTHORIZATION, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"
)
SUBJECT_ACCESS_REVIEWS = _cluster_scoped(_AUTHORIZATION, "v1", "subjectaccessreviews", "SubjectAccessReview")
TOKEN_REVIEWS = _cluster_scoped("authentication.k8s.io", "v1", "tokenreviews", "TokenReview")
RESOURCEQUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
REPLICATION_CONTROLLERS = Resource("", "v1", "replicationcontrollers", "ReplicationController")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
LEADER_WORKER_SETS = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet")


def native_pod_groups(version: str) -> Resource:
    """Those of the scheduler itself, whose version changes from release to release."""
    return Resource("scheduling.k8s.io", version, "podgroups", "PodGroup")


POD_GROUPS = {resource.group: resource for resource in (PODGROUPS_KEP24, PODGROUPS_PLUGINS, PODGROUPS_SIGS)}
"""By API group."""
