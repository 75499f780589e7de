"""Views of an untyped object that makes pods, which no schema has checked yet: a member of the wrong type is absent.

Every rule asks for the templates of an object, so that it holds for a Job and for a pod as for a JobSet.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from jobset_gate import names
from jobset_gate.objects.unstructured import Json, Path, as_int, as_list, as_map, as_text, nested

IN_ORDER: Final = "InOrder"
"""startupPolicyOrder: a replicatedJob starts when the one before it is ready."""

GROUP_PATH: Final = ("spec", "leaderWorkerTemplate")
"""Where a LeaderWorkerSet says what its groups are."""
LEADER_TEMPLATE: Final = "leaderTemplate"
WORKER_TEMPLATE: Final = "workerTemplate"
"""Its pod templates, there. Without the first one leaders are made of the second."""

MOST_DIGITS: Final = 9
"""Of a number in an annotation."""


@dataclass(frozen=True, slots=True)
class TemplateView:
    """A Job, or the Job template of one entry of spec.replicatedJobs."""

    job: Json
    """The Job or its template: metadata and spec."""
    job_path: Path = ()
    """Where that stands in the object."""
    index: int = 0
    """The place among the object's templates."""
    entry: Json = field(default_factory=dict)
    """The entry of spec.replicatedJobs; empty for a Job."""
    path: Path = ()
    """Where that stands."""

    @property
    def name(self) -> str:
        """Name of the entry; "" when it has none that is a string."""
        return as_text(self.entry.get("name"))

    @property
    def job_spec(self) -> Json:
        return as_map(self.job.get("spec"))

    @property
    def pod_path(self) -> Path:
        """Where the pod template stands in the object."""
        return (*self.job_path, "spec", "template")

    @property
    def pod_template(self) -> Json:
        """The template of the pods."""
        return as_map(self.job_spec.get("template"))

    @property
    def pod_spec(self) -> Json | None:
        """The spec of the pods; None when there is nothing that a barrier could be put into."""
        spec = self.pod_template.get("spec")
        return spec if isinstance(spec, dict) else None

    @property
    def well_formed(self) -> bool:
        """Whether all that the webhook reads or writes has the right type; if not, the schema refuses the object."""
        spec, lists = self.pod_spec, ("initContainers", "containers", "volumes")
        metas = (self.job.get("metadata"), self.pod_template.get("metadata"))
        objects = [*metas, *(nested(meta, key) for meta in metas for key in ("labels", "annotations"))]
        return (
            spec is not None
            and all(isinstance(spec.get(key), list | None) for key in lists)
            and all(isinstance(it, dict | None) for it in objects)
        )

    @property
    def labels(self) -> tuple[Json, Json]:
        """The labels of the Jobs and of their pods."""
        job, pod = nested(self.job, "metadata", "labels"), nested(self.pod_template, "metadata", "labels")
        return as_map(job), as_map(pod)

    @property
    def pod_annotations(self) -> Json:
        return as_map(nested(self.pod_template, "metadata", "annotations"))

    @property
    def replicas(self) -> int:
        """How many Jobs there are of it."""
        return max(0, as_int(self.entry.get("replicas"), 1))

    @property
    def expected_pods(self) -> int:
        """How many pods it makes: replicas x min(parallelism, completions), completions null: parallelism (A4)."""
        parallelism = as_int(self.job_spec.get("parallelism"), 1)
        return self.replicas * max(0, min(parallelism, as_int(self.job_spec.get("completions"), parallelism)))

    def spec_list(self, key: str) -> list[Any]:
        return as_list(as_map(self.pod_spec).get(key))


class PodTemplateView(TemplateView):
    """A pod template without a Job: metadata and spec are those of the pods."""

    __slots__ = ()

    @property
    def pod_path(self) -> Path:
        """Where the pod template stands in the object."""
        return self.job_path

    @property
    def pod_template(self) -> Json:
        """The template of the pods."""
        return self.job


class PodView(PodTemplateView):
    """A pod, which is its own template."""

    __slots__ = ()

    @property
    def expected_pods(self) -> int:
        """How many pods wait for each other, as LWS or the start-size says it; 0 where that is no number."""
        key = names.LWS_SIZE if self.labels[1].get(names.GATED) == names.GATED_LWS else names.START_SIZE
        size = self.pod_annotations.get(key)
        if not isinstance(size, str) or len(size) > MOST_DIGITS or not (size.isascii() and size.isdigit()):
            return 0
        return int(size)


@dataclass(frozen=True, slots=True)
class GroupTemplateView(PodTemplateView):
    """One of the pod templates of a LeaderWorkerSet: of the leaders or of the workers, or the only one for both."""

    pods: int = 0
    """How many pods of each group are made of it."""

    @property
    def expected_pods(self) -> int:
        """How many pods of a group it makes."""
        return self.pods


def templates_of(obj: Any) -> list[TemplateView]:
    """A Job or a pod is one template, a LeaderWorkerSet has one or two; any other object has the entries of
    spec.replicatedJobs that are objects.
    """
    if is_job(obj):
        return [TemplateView(obj)]
    if is_pod(obj):
        return [PodView(obj)]
    if is_leader_worker_set(obj):
        return [*_group_templates(obj)]
    bodies, path = as_list(nested(obj, "spec", "replicatedJobs")), ("spec", "replicatedJobs")
    return [
        TemplateView(as_map(body.get("template")), (*path, index, "template"), index, body, (*path, index))
        for index, body in enumerate(bodies)
        if isinstance(body, dict)
    ]


def _group_templates(obj: Any) -> Iterator[GroupTemplateView]:
    """Of the leader, if there is one, and of the workers."""
    size, path = group_size(obj), GROUP_PATH
    group = nested(obj, *path)
    leader, worker = nested(group, LEADER_TEMPLATE), nested(group, WORKER_TEMPLATE)
    if isinstance(leader, dict):
        yield GroupTemplateView(leader, (*path, LEADER_TEMPLATE), pods=1)
    if isinstance(worker, dict):
        pods, index = (size - 1, 1) if isinstance(leader, dict) else (size, 0)
        yield GroupTemplateView(worker, (*path, WORKER_TEMPLATE), index, pods=max(0, pods))


def group_size(obj: Any) -> int:
    """How many pods each group of a LeaderWorkerSet has; 1 where it does not say it."""
    return as_int(nested(obj, *GROUP_PATH, "size"), 1)


def templates_by_name(obj: Any) -> dict[str, TemplateView]:
    return {template.name: template for template in templates_of(obj)}


def is_job(obj: Any) -> bool:
    """Whether the object is a Job, whose config has no targets to name."""
    return bool(nested(obj, "kind") == "Job")


def is_leader_worker_set(obj: Any) -> bool:
    """Whether the object is a LeaderWorkerSet, whose templates have no Jobs around them."""
    return bool(nested(obj, "kind") == "LeaderWorkerSet")


def is_pod(obj: Any) -> bool:
    return bool(nested(obj, "kind") == "Pod")


def annotations_of(obj: Any) -> Json:
    return as_map(nested(obj, "metadata", "annotations"))


def is_suspended(obj: Any) -> bool:
    """Whether spec.suspend is true; absent is false."""
    return nested(obj, "spec", "suspend") is True
