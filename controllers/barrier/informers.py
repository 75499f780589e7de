"""The informers of the start barrier, and what is read from them."""

from collections.abc import Callable, Collection, Iterable

from controllers.barrier.cache import GangCache
from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.source import Source
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, CRDS, JOBS, JOBSETS, PODS
from jobset_gate.runtime.decoder import OnWatchProblem
from jobset_gate.runtime.informer import AnyInformer, AnyWatchSource, Informer, WatchSource, object_informer
from jobset_gate.runtime.store import ObjectChange
from jobset_gate.sources import decode, startgroup
from jobset_gate.sources.table import SOURCES, gated_selector


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
    if any(SOURCES[name].gates_pods for name in sources):
        # Also pods that missed the webhook, and no pod twice.
        alone = f"{names.START_GROUP},!{names.GATED}"
        watched.append(
            WatchSource(
                PODS, wire.MemberPod, startgroup.pod, cache.on_pod, namespace, alone, written_at=decode.written_at
            )
        )
    found: list[AnyInformer] = [Informer(client, source, clock=clock, on_problem=on_problem) for source in watched]
    if on_crd is not None:
        found.append(object_informer(client, CRDS, names.JOBSET_CRD, on_crd, on_problem=on_problem))
    return found


def pods_of(informers: Iterable[AnyInformer], source: Source) -> AnyInformer:
    """The informer of this source's pods: each pod is in one."""
    gated, *alone = (it for it in informers if it.resource == PODS)
    return alone[0] if source.gates_pods else gated


def not_synced(informers: Iterable[AnyInformer]) -> str:
    """Which lists are missing and why; "" if none. JobSet may be installed later."""
    missing = [
        one for one in informers if not one.has_synced and not (one.resource == JOBSETS and one.is_not_installed)
    ]
    words = [f"{one.resource.plural} ({one.list_error})" if one.list_error else one.resource.plural for one in missing]
    return f"not listed yet: {', '.join(dict.fromkeys(words))}" if words else ""
