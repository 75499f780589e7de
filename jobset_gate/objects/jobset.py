"""Views of an untyped JobSet that no schema has checked yet: a member of the wrong type counts as absent."""

from dataclasses import dataclass
from typing import Any, Final

from jobset_gate.objects.unstructured import Json, Path, as_int, as_list, as_map, nested

IN_ORDER: Final = "InOrder"
"""startupPolicyOrder: a replicatedJob starts when the one before it is ready."""


@dataclass(frozen=True, slots=True)
class ReplicatedJobView:
    """One entry of spec.replicatedJobs."""

    index: int
    body: Json

    @property
    def name(self) -> str:
        """Its name; "" when it has none that is a string."""
        name = self.body.get("name")
        return name if isinstance(name, str) else ""

    @property
    def path(self) -> Path:
        """Where it stands in the JobSet."""
        return ("spec", "replicatedJobs", self.index)

    @property
    def job_path(self) -> Path:
        """Where its Job template stands in the JobSet."""
        return (*self.path, "template")

    @property
    def job_spec(self) -> Json:
        """The spec of the Jobs it makes."""
        return as_map(nested(self.body, "template", "spec"))

    @property
    def pod_path(self) -> Path:
        """Where its pod template stands in the JobSet."""
        return (*self.path, "template", "spec", "template")

    @property
    def pod_template(self) -> Json:
        """The template of the pods it makes."""
        return as_map(self.job_spec.get("template"))

    @property
    def pod_spec(self) -> Json | None:
        """The spec of the pods it makes; None when there is nothing that a barrier could be put into."""
        spec = self.pod_template.get("spec")
        return spec if isinstance(spec, dict) else None

    @property
    def well_formed(self) -> bool:
        """Whether all that the webhook reads or writes has the right type; if not, the schema refuses the JobSet."""
        spec, lists = self.pod_spec, ("initContainers", "containers", "volumes")
        metas = (nested(self.body, "template", "metadata"), self.pod_template.get("metadata"))
        objects = [*metas, *(nested(meta, key) for meta in metas for key in ("labels", "annotations"))]
        return (
            spec is not None
            and all(isinstance(spec.get(key), list | None) for key in lists)
            and all(isinstance(it, dict | None) for it in objects)
        )

    @property
    def labels(self) -> tuple[Json, Json]:
        """The labels of its Jobs and of their pods."""
        job, pod = nested(self.body, "template", "metadata", "labels"), nested(self.pod_template, "metadata", "labels")
        return as_map(job), as_map(pod)

    @property
    def pod_annotations(self) -> Json:
        """The annotations of the pods it makes."""
        return as_map(nested(self.pod_template, "metadata", "annotations"))

    @property
    def replicas(self) -> int:
        """How many Jobs it makes."""
        return max(0, as_int(self.body.get("replicas"), 1))

    @property
    def expected_pods(self) -> int:
        """How many pods it makes: replicas x min(parallelism, completions), completions null: parallelism (A4)."""
        parallelism = as_int(self.job_spec.get("parallelism"), 1)
        return self.replicas * max(0, min(parallelism, as_int(self.job_spec.get("completions"), parallelism)))

    def spec_list(self, key: str) -> list[Any]:
        """A list of the pod spec."""
        return as_list(as_map(self.pod_spec).get(key))


def replicated_jobs(jobset: Any) -> list[ReplicatedJobView]:
    """The entries of spec.replicatedJobs that are objects."""
    bodies = as_list(nested(jobset, "spec", "replicatedJobs"))
    return [ReplicatedJobView(index, body) for index, body in enumerate(bodies) if isinstance(body, dict)]


def replicated_jobs_by_name(jobset: Any) -> dict[str, ReplicatedJobView]:
    """The same, by name."""
    return {job.name: job for job in replicated_jobs(jobset)}


def annotations_of(jobset: Any) -> Json:
    """The annotations of the JobSet."""
    return as_map(nested(jobset, "metadata", "annotations"))


def is_suspended(jobset: Any) -> bool:
    """Whether spec.suspend is true; absent is false."""
    return nested(jobset, "spec", "suspend") is True
