"""Examples as this suite runs them: with an image of the nodes, a rendezvous as command, an extended resource for GPUs.

Everything else is the example's own: names, environment, addresses, ports, volumes, annotations, order.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from e2e import example_programs
from jobset_gate import names

Json = dict[str, Any]
FOLDER: Final = Path(__file__).parents[1] / "examples"
PROGRAM: Final = Path(__file__).with_name("rendezvous.py")
PRINTED: Final = "image, command and resources were overlaid, the program being a meeting over TCP"
PYTHON: Final = "/opt/jobset-gate/bin/python"
"""In jobset-gate's own image."""
OWN: Final = "RENDEZVOUS"
"""The variable that holds the program."""
JOB: Final = "JOB_INDEX"
"""The number of a pod's Job among those of its replicatedJob, for examples that do not say it themselves."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """`commands`: what the pods of each Job, replicatedJob or StatefulSet, by its name, tell the rendezvous (shell)."""

    image: str
    namespace: str
    extended: Json
    """The resources of every container, but of those who wait for nobody."""
    commands: Mapping[str, str]
    pods_per_job: int | None = None
    """A smaller parallelism, where an example has more pods than this cluster is good for."""
    timeout: str = ""
    """Seconds of the rendezvous, where its own are too many."""

    def over(self, document: Json) -> Json:
        """The same document for the namespace, its pods changed as far as the title of this file says."""
        made = copy.deepcopy(document)
        made["metadata"]["namespace"] = self.namespace
        for key, value in (made["metadata"].get("annotations") or {}).items():
            made["metadata"]["annotations"][key] = self._here(value)
        if made["kind"] == names.POD_GROUP:
            # Sizes of the machines that the example is for: here a pod requests the extended resource alone.
            for field in ("minResources", "totalResources"):
                made["spec"].pop(field, None)
        for name, job in jobs(made):
            self._lay_over(job, self.commands[name])
        return made

    def _lay_over(self, job: Json, command: str) -> None:
        if self.pods_per_job is not None and job.get("parallelism", 1) > self.pods_per_job:
            job["parallelism"] = job["completions"] = self.pods_per_job
        template = job["template"]
        for key, value in ((template.get("metadata") or {}).get("annotations") or {}).items():
            template["metadata"]["annotations"][key] = self._here(value)
        if "replicas" not in job:  # pods of a StatefulSet are always restarted
            template["spec"].setdefault("restartPolicy", "Never")
        for container in template["spec"]["containers"]:
            container["image"], container["resources"] = (
                self.image,
                {} if command == example_programs.ALONE else self.extended,
            )
            container["command"] = ["sh", "-c", f'exec {PYTHON} -c "${OWN}" {command}']
            known: list[Json] = container.get("env") or []
            own: list[Json] = [{"name": OWN, "value": PROGRAM.read_text()}, {"name": "PATIENCE", "value": self.timeout}]
            if not any(it["name"] == JOB for it in known):
                field = f"metadata.labels['{names.JS_JOB_INDEX}']"
                own.append({"name": JOB, "valueFrom": {"fieldRef": {"fieldPath": field}}})
            container["env"] = own + known

    def _here(self, annotation: str) -> str:
        """Lists of groups name them with their namespace."""
        return annotation.replace('"default/', f'"{self.namespace}/')


def documents(example: str) -> list[Json]:
    """All of the example's objects."""
    return [one for one in yaml.safe_load_all((FOLDER / example).read_text()) if one]


def jobs(document: Json) -> Iterator[tuple[str, Json]]:
    """(name, spec) of the Job or StatefulSet that the document is, or of the Jobs in it."""
    if document["kind"] in ("Job", "StatefulSet"):
        yield document["metadata"]["name"], document["spec"]
    if document["kind"] == "JobSet":
        for job in document["spec"]["replicatedJobs"]:
            yield job["name"], job["template"]["spec"]


def with_extended_resource(made: Iterable[Json]) -> int:
    """How many pods of these objects request the extended resource."""
    return sum(
        many * job.get("parallelism", 1) for one in made for many, job in _repeated(one) if _asks_for_something(job)
    )


def _repeated(document: Json) -> Iterator[tuple[int, Json]]:
    if document["kind"] == "JobSet":
        for job in document["spec"]["replicatedJobs"]:
            yield job.get("replicas", 1), job["template"]["spec"]
        return
    yield from ((job.get("replicas", 1), job) for _, job in jobs(document))


def _asks_for_something(job: Json) -> bool:
    return any(container["resources"] for container in job["template"]["spec"]["containers"])
