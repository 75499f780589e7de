"""The contract's words (A3-A7), read out of raw objects as the API has them.

Written from the contract alone, for the oracle: nothing here comes from the product but the names of kinds, so that a
rule which product and contract read differently is seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

UID = "jobset.sigs.k8s.io/jobset-uid"
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
JOB_INDEX = "jobset.sigs.k8s.io/job-index"
INDEX = "batch.kubernetes.io/job-completion-index"
EPOCH = "jobset-gate.dev/epoch"
BARRIER = "group-scheduling-init"
CONDITION = "GroupStarted"
VERDICT, CLOCK = "verdict", "waiting-since"
"""Keys of the ConfigMap."""
JOBSET_UID = "jobset-gate.dev/jobset-uid"
DECIDED = {"AllPodsStarted", "TimedOut", "IndexFailed", "Bypassed"}
"""Reasons of a condition that tells of a verdict, and causes of verdicts."""


@dataclass(frozen=True, order=True, slots=True)
class RawGeneration:
    """A generation (A5)."""

    uid: str
    attempt: int
    epoch: int


@dataclass(frozen=True, slots=True)
class RawVerdict:
    """The first line of a verdict, which is what barriers obey."""

    kind: str
    its: RawGeneration
    cause: str

    def binds(self, other: RawGeneration) -> bool:
        """A barrier obeys a verdict of its UID and attempt whose epoch is at least its own (A5)."""
        mine = self.its
        return (mine.uid, mine.attempt) == (other.uid, other.attempt) and mine.epoch >= other.epoch


def parse_verdict(text: str) -> RawVerdict | None:
    """What a verdict's text says; None if a barrier would not obey it."""
    words = text.split("\n", 1)[0].split(" ")
    if len(words) != 5 or words[0] not in ("release", "timeout") or not (words[2] + words[3]).isdigit():
        return None
    return RawVerdict(words[0], RawGeneration(words[1], int(words[2]), int(words[3])), words[4])


def clock(text: str) -> tuple[RawGeneration, str] | None:
    """Whose generation a clock is, and what it shows; None if it is none."""
    words = text.split(" ")
    if len(words) != 4 or not (words[1] + words[2]).isdigit():
        return None
    return RawGeneration(words[0], int(words[1]), int(words[2])), words[3]


def intact(config_map: Json) -> bool:
    """A ConfigMap as a controller writes it: with its owner, and nothing in it but a verdict and a clock."""
    meta, data = config_map["metadata"], dict(config_map.get("data") or {})
    uid, said, since = jobset_uid(config_map), data.pop(VERDICT, None), data.pop(CLOCK, None)
    owned = any(owner["uid"] == uid for owner in meta.get("ownerReferences") or ())
    well_formed = (said is None or parse_verdict(said) is not None) and (since is None or clock(since) is not None)
    return owned and well_formed and not data


def jobset_uid(config_map: Json) -> str:
    """Of the JobSet whose ConfigMap it is."""
    return str(notes_of(config_map).get(JOBSET_UID, ""))


def targets(workload: Json) -> list[Json]:
    """Its templates; a Job is its only one."""
    spec: Json = workload["spec"]
    found: list[Json] = spec.get("replicatedJobs") or [{"name": "", "replicas": 1, "template": {"spec": spec}}]
    return found


def finished(workload: Json) -> bool:
    """It starts no pod any more."""
    return bool(workload["status"].get("terminalState")) or has_ended(workload)


def has_ended(job: Json) -> bool:
    """A Job that is Complete or has failed."""
    return any(it["type"] in ("Complete", "Failed") and it["status"] == "True" for it in _conditions(job))


def workload_uid(stored: Json) -> str:
    """UID of the workload whose Job or pod this is: a JobSet's by its label, else the Job's."""
    return _labels(stored).get(UID) or maker(stored) or str(stored["metadata"]["uid"])


def order(its: RawGeneration) -> tuple[int, int]:
    """Later generations of one JobSet are higher."""
    return its.attempt, its.epoch


# --- A4 --------------------------------------------------------------------------------------------------------------


def lacking(
    jobset: Json | None, jobs: Iterable[Json], pods: Collection[Json], announced: Collection[str]
) -> list[str] | None:
    """The slots that nobody fills, in words; None if nothing counts, since there is no JobSet or it is suspended."""
    if jobset is None or jobset["spec"].get("suspend"):
        return None
    found = {_place(job): job for job in jobs if _is_of(job, jobset) and "deletionTimestamp" not in job["metadata"]}
    missing: list[str] = []
    for target in targets(jobset):
        spec = target["template"]["spec"]
        for number in range(target["replicas"]):
            name = f"{target['name']}-{number}"
            job = found.get((target["name"], str(number)))
            if job is None:
                missing.append(f"{name}: no Job")
            elif has_ended(job):
                continue  # satisfied in every epoch of its attempt, suspended or not
            elif job["spec"].get("suspend"):
                missing.append(f"{name}: suspended")
            else:
                missing += (f"{name}/{slot}" for slot in _empty(job, spec, pods, announced))
    return missing


def lost(jobset: Json | None, jobs: Iterable[Json]) -> list[str]:
    """The slots that can never be filled: their indexes have failed for good, and no others are left instead."""
    if jobset is None or jobset["spec"].get("suspend"):
        return []
    found: list[str] = []
    for job in jobs:
        if not _is_of(job, jobset) or "deletionTimestamp" in job["metadata"] or has_ended(job):
            continue
        name, number = _place(job)
        target = next((one for one in targets(jobset) if one["name"] == name), None)
        if target is None or int(number) >= target["replicas"]:
            continue
        spec = target["template"]["spec"]
        open_slots = _open(job, spec)
        gone = [slot for slot in open_slots if slot in indexes(job["status"].get("failedIndexes") or "")]
        short = min(spec["parallelism"], len(open_slots)) - (len(open_slots) - len(gone))
        found += (f"{name}-{number}/{slot}" for slot in gone[: max(0, short)])
    return found


def counted(jobset: Json, jobs: Iterable[Json], pods: Iterable[Json], announced: Collection[str]) -> list[Json]:
    """The pods that may fill a slot: not of an index that has completed, or that an elastic Job no longer has."""
    specs = {target["name"]: target["template"]["spec"] for target in targets(jobset)}
    mine = [job for job in jobs if _is_of(job, jobset) and _place(job)[0] in specs]
    slots = {job["metadata"]["uid"]: {None, *map(str, _open(job, specs[_place(job)[0]]))} for job in mine}
    ready = [pod for pod in pods if _is_of(pod, jobset) and started(pod, announced)]
    return [pod for pod in ready if notes_of(pod).get(INDEX) in slots.get(maker(pod), ())]


def started(pod: Json, announced: Collection[str] = ()) -> bool:
    """A pod has started when its barrier runs or has ended with 0, or when it says so and waits on a node."""
    if not alive(pod):
        return False
    state = barrier(pod)
    if pod["status"]["phase"] == "Succeeded" or "running" in state:
        return True
    if "terminated" in state:
        return bool(state["terminated"].get("exitCode") == 0)
    return bool(pod["spec"].get("nodeName")) and pod["metadata"]["uid"] in announced


def alive(pod: Json) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") != "Failed"


def barrier(pod: Json) -> Json:
    """The state of the barrier's container."""
    for status in pod["status"].get("initContainerStatuses") or ():
        if status["name"] == BARRIER:
            state: Json = status.get("state") or {}
            return state
    return {}


def maker(stored: Json) -> str:
    """UID of the controller that made it."""
    owners = stored["metadata"].get("ownerReferences") or ()
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def notes_of(stored: Json) -> dict[str, str]:
    notes: dict[str, str] = stored["metadata"].get("annotations") or {}
    return notes


def generation_of(pod: Json) -> RawGeneration:
    """Whose generation a pod is."""
    return RawGeneration(workload_uid(pod), int(_attempt(pod)), int(notes_of(pod).get(EPOCH) or 0))


def condition(jobset: Json) -> Json | None:
    """Ours."""
    return next((one for one in _conditions(jobset) if one["type"] == CONDITION), None)


def _empty(job: Json, spec: Json, pods: Iterable[Json], announced: Collection[str]) -> Iterator[str]:
    """Slots of one Job whose none has finished and none has a started pod."""
    own = [pod for pod in pods if maker(pod) == job["metadata"]["uid"] and _attempt(pod) == _attempt(job)]
    ready = [pod for pod in own if started(pod, announced)]
    if spec.get("completionMode") == "NonIndexed":
        over = [pod for pod in ready if pod["status"]["phase"] == "Succeeded"]
        finished = max(int(job["status"].get("succeeded") or 0), len(over))
        need = min(spec["parallelism"], spec["completions"] - finished)
        yield from (f"one of {need}" for _ in range(need - (len(ready) - len(over))))
        return
    slots = _open(job, spec)
    here = {notes_of(pod).get(INDEX) for pod in ready}
    given_up = indexes(job["status"].get("failedIndexes") or "")
    empty = [str(slot) for slot in slots if str(slot) not in here or slot in given_up]
    need = max(0, min(spec["parallelism"], len(slots)) - (len(slots) - len(empty)))
    yield from empty[:need]


def _open(job: Json, spec: Json) -> list[int]:
    """Indexes that have not completed."""
    done = indexes(job["status"].get("completedIndexes") or "")
    return [slot for slot in range(spec["completions"]) if slot not in done]


def indexes(text: str) -> set[int]:
    """A Job's completedIndexes or failedIndexes, such as 0,2-4, as numbers."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        low, _, high = part.partition("-")
        found |= set(range(int(low), int(high or low) + 1))
    return found


def _is_of(stored: Json, jobset: Json) -> bool:
    attempt = str(jobset["status"].get("restarts") or 0)
    return (workload_uid(stored), _attempt(stored)) == (jobset["metadata"]["uid"], attempt)


def _attempt(stored: Json) -> str:
    """Of a Job that is a workload itself there is one."""
    return _labels(stored).get(ATTEMPT, "0")


def _place(job: Json) -> tuple[str, str]:
    labels = _labels(job)
    return labels.get(REPLICATED_JOB, ""), labels.get(JOB_INDEX, "0")


def _labels(stored: Json) -> Mapping[str, str]:
    labels: Mapping[str, str] = stored["metadata"].get("labels") or {}
    return labels


def _conditions(stored: Json) -> Iterable[Json]:
    return (stored.get("status") or {}).get("conditions") or ()
