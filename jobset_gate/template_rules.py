"""Rules about the pod templates that a barrier goes into (A3)."""

from collections.abc import Iterator
from typing import Any, Final

from jobset_gate import barrier, names, ours
from jobset_gate.model import Config
from jobset_gate.render import label_paths
from jobset_gate.restore import held
from jobset_gate.template import (
    Json,
    Path,
    Replicated,
    by_name,
    dig,
    dotted,
    items,
    replicated_jobs,
    targets,
    whole,
)
from jobset_gate.violation import Fault, Violation, at

WINDOWS: Final = "windows"
OS_LABEL: Final = "kubernetes.io/os"
_RESERVED: Final = "is reserved for jobset-gate's start barrier: choose another name"


def metadata(jobset: Json) -> list[Violation]:
    """CREATE: members of metadata that have another type than what is put into them or made of them."""
    rules = ((("metadata",), dict, "an object"), (("metadata", "annotations"), dict, "an object"))
    for path, kind, told in (*rules, (("metadata", "name"), str, "a string")):
        value = dig(jobset, *path)
        if not isinstance(value, kind | None):
            return [Violation(dotted(path), value, f"must be {told}")]
    return []


def reserved(jobset: Json, old: Json | None) -> list[Violation]:
    """Containers and volumes of the user's that bear our names, in any replicatedJob.

    Where the old object holds one of ours, `changes` compares with that one instead.
    """
    kept = held(old) if old is not None else {}
    found: list[Violation] = []
    for job in replicated_jobs(jobset):
        mains = enumerate(job.listed("containers"))
        found += [_taken(job, "containers", index) for index, it in mains if ours.container_reserved(it)]
        for key in ours.KINDS:
            compared = _names(kept[job.name], key) if job.name in kept else set()
            strangers = ours.strangers(job, key)
            found += [_taken(job, key, index) for index, entry in strangers if entry["name"] not in compared]
    for index, policy in enumerate(items(dig(jobset, "spec", "volumeClaimPolicies"))):
        for number, claim in enumerate(items(dig(policy, "templates"))):
            if ours.volume_reserved(dig(claim, "metadata")):
                path = f"spec.volumeClaimPolicies[{index}].templates[{number}].metadata.name"
                found.append(Violation(path, claim["metadata"]["name"], _RESERVED))
    return found


def unmarked(jobset: Json, config: Config) -> list[Violation]:
    """CREATE: our label with another value in a target, or our label or barrier where no pod is to be held."""
    wanted = {job.index for job in targets(jobset, config)}
    found: list[Violation] = []
    for job in replicated_jobs(jobset):
        for path, labels in zip(label_paths(job), job.labels, strict=True):
            value = labels.get(names.GATED)
            if value is not None and (job.index not in wanted or value != names.GATED_VALUE):
                found.append(Violation(_label(path), value, "is set by jobset-gate where it belongs: leave it out"))
        for index, entry in ours.present(job, "initContainers") if job.index not in wanted else ():
            path = (*job.pod_path, "spec", "initContainers", index, "name")
            message = "this replicatedJob is no target: take what jobset-gate puts in out of it"
            found.append(Violation(dotted(path), entry["name"], message))
    return found


def platform(jobset: Json, config: Config) -> list[Violation]:
    """Windows pods cannot run the barrier."""
    found: list[Violation] = []
    for job in targets(jobset, config):
        for path in (("os", "name"), ("nodeSelector", OS_LABEL)):
            value = dig(job.pod_spec, *path)
            if isinstance(value, str) and value.lower() == WINDOWS:
                here = dotted((*job.pod_path, "spec", *path[:-1]))
                message = "the start barrier cannot run in Windows pods: leave this replicatedJob out of the targets"
                found.append(Violation(at(here, path[-1]), value, message))
    return found


def empty(jobset: Json, config: Config) -> list[Violation]:
    """CREATE: a named target, or a whole gang, of which no pod would ever be expected (A4)."""
    jobs = targets(jobset, config)
    if config.targets:
        message = "the target would have no pods: must be at least 1"
        return [Violation(dotted(path), value, message) for job in jobs for path, value in _zeros(job)]
    if any(job.expected for job in jobs):
        return []
    zeros = [Violation(dotted(path), value, _NO_GANG) for job in jobs for path, value in _zeros(job)]
    return zeros or [Violation("spec.replicatedJobs", dig(jobset, "spec", "replicatedJobs"), _NO_GANG)]


_NO_GANG: Final = "the gang would have no pods at all: must be at least 1 somewhere"


def changes(new: Json, old: Json) -> list[Violation]:
    """UPDATE: what is ours and there but not equal to the old object's. What is missing comes back."""
    now = by_name(new)
    found: list[Violation] = []
    for name, was in held(old).items():
        for key in ours.KINDS if name in now else ():
            found += _differing(now[name], key, {entry["name"]: entry for _, entry in ours.present(was, key)})
    return found


def _differing(job: Replicated, key: str, kept: dict[str, Json]) -> Iterator[Violation]:
    seen: set[str] = set()
    for index, its in enumerate(job.listed(key)):
        name = dig(its, "name")
        if not isinstance(name, str) or name not in kept:
            continue
        here = dotted((*job.pod_path, "spec", key, index))
        if name in seen:
            yield Violation(at(here, "name"), name, "is there twice", Fault.DUPLICATE)
        elif not barrier.same_but_token(its, kept[name]):
            message = "differs from what jobset-gate put in when the JobSet was created: leave it out or as it was"
            yield Violation(here, its, message, Fault.FORBIDDEN)
        seen.add(name)


def _zeros(job: Replicated) -> Iterator[tuple[Path, Any]]:
    if whole(job.body.get("replicas"), 1) <= 0:
        yield (*job.path, "replicas"), job.body["replicas"]
    for key in ("parallelism", "completions"):
        if whole(job.job_spec.get(key), 1) <= 0:
            yield (*job.job_path, "spec", key), job.job_spec[key]


def _names(job: Replicated, key: str) -> set[str]:
    return {entry["name"] for _, entry in ours.present(job, key)}


def _taken(job: Replicated, key: str, index: int) -> Violation:
    name = job.listed(key)[index]["name"]
    return Violation(dotted((*job.pod_path, "spec", key, index, "name")), name, _RESERVED)


def _label(path: Path) -> str:
    return at(dotted(path[:-1]), str(path[-1]))
