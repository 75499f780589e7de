"""A JobSet as the API server sends it, before anybody has checked its shape: ways into it that never raise.

Whatever has the wrong type is read as absent. The API server checks the shape right after the webhook and refuses it
in its own words.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jobset_gate import names
from jobset_gate.barrier.config import ConfigSources, read_sources
from jobset_gate.barrier.model import Config

Json = dict[str, Any]
Path = tuple[str | int, ...]


def as_map(value: Any) -> Json:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def nested(value: Any, *path: str) -> Any:
    """The value under a path of keys; None when there is none."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def as_int(value: Any, default: int) -> int:
    """An integer as Kubernetes reads it; anything else counts as not given."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def format_path(path: Path) -> str:
    """A path as kubectl prints it: `spec.replicatedJobs[0].replicas`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


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


def targets(jobset: Any, config: Config) -> list[ReplicatedJobView]:
    """The replicatedJobs that the gang is made of (A2: none named means all)."""
    wanted = frozenset(config.targets)
    return [job for job in replicated_jobs(jobset) if not wanted or job.name in wanted]


def annotations_of(jobset: Any) -> Json:
    """The annotations of the JobSet."""
    return as_map(nested(jobset, "metadata", "annotations"))


def config_of(jobset: Any) -> ConfigSources:
    """What the JobSet says about its gate."""
    return read_sources(nested(jobset, "spec", names.CONFIG_FIELD), annotations_of(jobset).get(names.CONFIG))


def is_suspended(jobset: Any) -> bool:
    """Whether spec.suspend is true; absent is false."""
    return nested(jobset, "spec", "suspend") is True


def entries_named(entries: list[Any], name: str) -> Iterator[tuple[int, Json]]:
    """The entries of a list of containers or volumes that bear a name, with their positions."""
    for index, entry in enumerate(entries):
        if isinstance(entry, dict) and entry.get("name") == name:
            yield index, entry
