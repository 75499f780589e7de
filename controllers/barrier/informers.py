"""The informers of the start barrier, and what is read from them."""

from collections.abc import Callable, Collection, Iterable
from typing import Final

from controllers.barrier.cache import GangCache
from jobset_gate import names
from jobset_gate.barrier import lws_wire, wire
from jobset_gate.barrier.source import Source
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, CRDS, JOBS, JOBSETS, LEADER_WORKER_SETS, PODS, STATEFUL_SETS
from jobset_gate.runtime.decoder import OnWatchProblem
from jobset_gate.runtime.informer import AnyInformer, AnyWatchSource, Informer, WatchSource, object_informer
from jobset_gate.runtime.store import ObjectChange
from jobset_gate.sources import decode, lws, startgroup
from jobset_gate.sources.table import LWS, START_GROUP, gated_selector

MAY_BE_ABSENT: Final = (JOBSETS, LEADER_WORKER_SETS)
"""Custom resources that may be installed later."""

_ALONE: Final = {
    LWS.name: (f"{names.GATED}={LWS.gated}", lws.pod),
    # Also pods that missed the webhook, and no pod twice.
    START_GROUP.name: (f"{names.START_GROUP},!{names.GATED}", startgroup.pod),
}
"""Selectors of pods that are gated one by one, and how they are read."""


def make_informers(
    client: Client,
    cache: GangCache,
    on_crd: Callable[[ObjectChange[str]], None] | None,
    *,
    sources: Collection[str],
    namespace: str | None,
    clock: Callable[[], float],
    on_problem: OnWatchProblem,
) -> list[AnyInformer]:
    """The informers that fill the cache. `on_crd` gets changes of the JobSet CRD; None: it is not watched.

    `clock` is Unix time.
    """
    gated = gated_selector(sources)
    config_maps = f"{names.GATE}={names.GATE_VALUE}"
    watched: list[AnyWatchSource] = [
        # No selector: a JobSet created while the webhook was off has no label (A10).
        WatchSource(JOBSETS, wire.JobSet, decode.jobset, cache.on_workload, namespace),
        WatchSource(JOBS, wire.Job, decode.job, cache.on_job, namespace, gated),
        WatchSource(PODS, wire.Pod, decode.pod, cache.on_pod, namespace, gated, written_at=decode.written_at),
        WatchSource(CONFIGMAPS, wire.ConfigMap, decode.config_map, cache.on_config_map, namespace, config_maps),
    ]
    watched += (
        WatchSource(PODS, wire.MemberPod, read, cache.on_pod, namespace, selector, written_at=decode.written_at)
        for source, (selector, read) in _ALONE.items()
        if source in sources
    )
    if LWS.name in sources:
        watched += (
            WatchSource(
                STATEFUL_SETS, lws_wire.WorkerSet, lws.worker_set, cache.on_worker_set, namespace, names.LWS_NAME
            ),
            WatchSource(
                LEADER_WORKER_SETS,
                lws_wire.LeaderWorkerSet,
                lws.leader_worker_set,
                cache.on_leader_worker_set,
                namespace,
                may_be_absent=True,
            ),
        )
    found: list[AnyInformer] = [Informer(client, source, clock=clock, on_problem=on_problem) for source in watched]
    if on_crd is not None:
        found.append(object_informer(client, CRDS, names.JOBSET_CRD, on_crd, on_problem=on_problem))
    return found


def pods_of(informers: Iterable[AnyInformer], source: Source) -> AnyInformer:
    """The informer of this source's pods: each pod is in one."""
    selector, _ = _ALONE.get(source.name, ("", None))
    return next(it for it in informers if it.resource == PODS and selector in ("", it.label_selector))
