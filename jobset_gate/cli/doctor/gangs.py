"""The gangs that could be read, those without a barrier, and whether a controller leads."""

from collections.abc import Iterable, Sequence
from typing import Final

from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import BarrierStage
from jobset_gate.barrier.source import Source
from jobset_gate.cli.doctor.check import ClusterReader, Finding, NotReadable, error, is_held, ok, unknown
from jobset_gate.cli.doctor.webhook_configurations import hooks_for
from jobset_gate.cli.fetch.controller_status import controller_status, place
from jobset_gate.cli.fetch.gangs import GATED, GATED_PODS, START_GROUPS, FetchedGang
from jobset_gate.cli.fetch.source import PAGE, forbidden_text
from jobset_gate.explain.model import WAITING_STATES, GangState
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import JOBS, LEADER_WORKER_SETS, PODS
from jobset_gate.objects.template import annotations_of, templates_of
from jobset_gate.objects.terminal_text import truncate_list
from jobset_gate.objects.unstructured import Json, nested
from jobset_gate.runtime.paging import ListScope, list_objects
from jobset_gate.sources.table import JOB, LWS, START_GROUP
from jobset_gate.sources.templates import NO_ANNOTATIONS, is_condition_true


async def count(reader: ClusterReader) -> list[Finding]:
    """Their number, and the rights that were missing."""
    found = await reader.gangs()
    where = f"namespace {reader.namespace}" if reader.namespace else "all namespaces"
    remedy = "run it as a user with that right"
    lacking = [it.partition(": ") for it in reader.rights.missing]
    return [ok(f"{_count(found, 'gang')} in {where}"), *(unknown(lost, right, remedy) for right, _, lost in lacking)]


MOST_NAMED: Final = 5
_CREATE_AGAIN: Final = (
    "delete and create them again now that the webhook is there: a gate cannot be added to a JobSet or Job"
)


async def without_barrier(reader: ClusterReader) -> list[Finding]:
    """Those that are neither finished nor bypassed; of pod sources single pods may lack theirs."""
    found = [it for it in await reader.gangs() if not _source(it).gates_pods]
    bare = [it for it in found if it.explained().state is GangState.GATE_MISSING]
    if bare:
        what = f"{len(bare)} of {len(found)} gangs have no barrier"
        return [error(what, f"their pods start at once: {_first(map(_name, bare))}", _CREATE_AGAIN)]
    return [ok("every gang has its barrier")] if found else []


_TAKE_JOBS: Final = (
    "see that gangs.sources in the chart's values has job, then delete and create them again: a gate cannot be added"
)
_OPEN: Final = "add job to gangs.sources in the chart's values; `kubectl jobset-gate release job/NAME` opens one now"


async def unseen_jobs(reader: ClusterReader) -> list[Finding]:
    """Jobs that ask for a gate and have none, and those that wait though Jobs are no gangs any more."""
    waits = [it for it in await reader.gangs() if _source(it) is JOB and it.explained().state in WAITING_STATES]
    found = _unseen("Job", await _jobs_without_label(reader), _TAKE_JOBS)
    if waits and not await hooks_for(reader, JOB):
        what = f"Jobs are not sent to the webhook, and {_count(waits, 'gang')} of Jobs still waiting for a verdict"
        found.append(error(what, f"nobody decides on gangs of Jobs any more: {_first(map(_name, waits))}", _OPEN))
    return found


async def _jobs_without_label(reader: ClusterReader) -> list[str]:
    """Jobs with the annotation and without our label that have not ended. Raises NotReadable."""
    scope = ListScope(JOBS, reader.namespace, f"!{names.GATED}")
    try:
        listed = list_objects(reader.client, scope, wire.Job, PAGE, on_unreadable=lambda _: None)
        return [f"{it.metadata.namespace}/{it.metadata.name}" async for it in listed if _asks(it)]
    except Forbidden as no:
        raise NotReadable(forbidden_text("list", JOBS, reader.namespace)) from no


def _asks(it: wire.Job) -> bool:
    ended = any(is_condition_true(it.status.conditions, kind) for kind in ("Complete", "Failed"))
    return not ended and (it.metadata.annotations or NO_ANNOTATIONS).config is not None


def _unseen(kind: str, unseen: Sequence[str], remedy: str) -> list[Finding]:
    """Workloads that ask for a gate and have none."""
    if not unseen:
        return []
    what = f"{_count(unseen, kind)} with the annotation {names.CONFIG} and without a gate"
    why = f"their pods start at once, since the webhook was away or takes no {kind}s: {_first(unseen)}"
    return [error(what, why, remedy)]


_POD_SOURCES: Final = {
    START_GROUP: ("start group", "start groups", "delete all pods of the group"),
    LWS: ("group of a LeaderWorkerSet", "groups of LeaderWorkerSets", "delete the leader pod of the group"),
}
"""Of sources whose pods get their barrier one by one: what a gang is called, and several, and how one is made again."""


async def gated_alone(reader: ClusterReader, source: Source) -> list[Finding]:
    """Gangs with a pod that nothing holds, and those that wait though their source is switched off."""
    found = await _unmarked(reader) if source is LWS else []
    seen, word = [it for it in await reader.gangs() if _source(it) is source], source.name
    gang, gangs, delete = _POD_SOURCES[source]
    bare = [f"{it.namespace}/{it.gang.workload.bare_pod}" for it in seen if it.gang.workload.bare_pod]
    if bare:
        why = f"all of its pods start at once, since the webhook was away or takes no {gangs}: {_first(bare)}"
        remedy = f"see that gangs.sources in the chart's values has {word}, then {delete}: a barrier cannot be added"
        found.append(error(f"{_count(bare, gang, gangs)} with a pod that has no barrier", why, f"{remedy} to a pod"))
    waits = [it for it in seen if _holds_pods(it)]
    if waits and not await hooks_for(reader, source):
        what = f"pods are not sent to the webhook, and {_count(waits, gang, gangs)} still waiting for a verdict"
        why = f"nobody decides on {gangs} any more: {_first(map(_name, waits))}"
        one = f"`kubectl jobset-gate release {word}/NAME` opens one now"
        found.append(error(what, why, f"add {word} to gangs.sources in the chart's values; {one}"))
    return found


_UPDATE: Final = (
    "see that gangs.sources in the chart's values has lws, then change the LeaderWorkerSet in any way: the webhook "
    "marks its templates"
)


async def _unmarked(reader: ClusterReader) -> list[Finding]:
    """LeaderWorkerSets that ask for a gate, without our label in their pod templates. Raises NotReadable."""
    try:
        listed = await reader.list_objects(LEADER_WORKER_SETS, reader.namespace)
    except NotReadable:
        if not await hooks_for(reader, LWS):
            return []  # nobody asked for them, and there may be no such kind
        raise
    unseen = [place(it) for it in listed if names.CONFIG in annotations_of(it) and not _is_marked(it)]
    return _unseen(LWS.kind, unseen, _UPDATE)


def _is_marked(leader_worker_set: Json) -> bool:
    whole = leader_worker_set | {"kind": LWS.kind}  # items of a list have none
    marks = (nested(it.pod_template, "metadata", "labels", names.GATED) for it in templates_of(whole))
    return all(mark == LWS.gated for mark in marks)


def _holds_pods(it: FetchedGang) -> bool:
    """Whether pods wait at its barrier: in one that no webhook has seen, none has one."""
    at_barrier = (
        pod.live and pod.member is not None and pod.member.has_barrier and pod.stage is not BarrierStage.PASSED
        for pod in it.gang.pods
    )
    return any(at_barrier) and it.explained().state in WAITING_STATES


def _source(it: FetchedGang) -> Source:
    return it.gang.workload.source


def _count(some: Sequence[object], one: str, many: str = "") -> str:
    return f"{len(some)} {one if len(some) == 1 else many or f'{one}s'}"


def _name(it: FetchedGang) -> str:
    return f"{it.namespace}/{it.name}"


def _first(some: Iterable[str]) -> str:
    return truncate_list(list(some), MOST_NAMED)


_SEE_CONTROLLER: Final = (
    "see whether the controller's pods run, and read their log: `kubectl get deployments -A | grep jobset-gate`"
)
_ASK_FOR_LEASES: Final = (
    f"ask for the right to list Leases, or look at the controller's log; the Lease is called {names.LEASE}"
)


async def leader(reader: ClusterReader) -> list[Finding]:
    """An error without a leader, with the number of pods that wait."""
    status = await controller_status(reader.client, reader.dry_run_namespace)
    if status.leads:
        return [ok("a controller leads", status.message)]
    if status.leads is None:
        return [unknown("whether a controller leads", status.message, _ASK_FOR_LEASES)]
    try:
        waiting = await _waiting_pods(reader)
    except NotReadable as no:
        return [error("no controller leads", f"{status.message}; {no}", _SEE_CONTROLLER)]
    pods = "1 pod waits" if waiting == 1 else f"{waiting} pods wait"
    what = "no controller leads" + (f", and {pods} for its word" if waiting else "")
    return [error(what, status.message, _SEE_CONTROLLER)]


async def _waiting_pods(reader: ClusterReader) -> int:
    """Pods that wait at a barrier or have our scheduling gate."""
    await reader.gangs()  # it finds out which namespaces may be looked at
    gated = [
        pod
        for labels in (GATED, GATED_PODS, START_GROUPS)
        for pod in await reader.list_objects(PODS, reader.namespace, labels=labels)
    ]
    grouped = await reader.list_objects(PODS, reader.namespace, labels=names.POD_GROUP_LABEL)
    behind = [it for it in gated if nested(it, "status", "phase") == "Pending"]
    return len({nested(it, "metadata", "uid") for it in [*behind, *filter(is_held, grouped)]})
