"""Which objects the controller watches, and where their changes go."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from controllers.barrier.cache import GangCache
from controllers.barrier.gang_key import GangKey
from jobset_gate import names
from jobset_gate.barrier import decode, wire
from jobset_gate.barrier.model import ConfigMapSeen
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, CRDS, JOBS, JOBSETS, PODS, Resource
from jobset_gate.runtime.informer import Informer
from jobset_gate.runtime.mutation_cache import MutationCache
from jobset_gate.runtime.store import ObjectChange, ObjectVersion
from jobset_gate.runtime.watch_problems import OnWatchProblem

AnyInformer = Informer[Any, Any]


@dataclass(frozen=True, slots=True)
class _InformerSpec:
    resource: Resource
    shape: Any
    convert: Callable[[Any], Any]
    handler: Callable[[ObjectChange[Any]], None]
    label_selector: str = ""
    field_selector: str = ""


def make_informers(
    client: Client,
    index: GangCache,
    crd_changed: Callable[[], None] | None,
    *,
    namespace: str | None,
    on_problem: OnWatchProblem,
) -> list[AnyInformer]:
    """The informers that fill the index. `crd_changed` is told of the JobSet CRD; None: it is not watched."""
    gated = f"{names.GATED}={names.GATED_VALUE}"
    watches = [
        # JobSets without a selector: one that came in while the webhook was off has no label of ours (A10).
        _InformerSpec(JOBSETS, wire.JobSet, decode.jobset, index.on_jobset),
        _InformerSpec(JOBS, wire.Job, decode.job, index.on_job, gated),
        _InformerSpec(PODS, wire.Pod, decode.pod, index.on_pod, gated),
        _InformerSpec(
            CONFIGMAPS, wire.ConfigMap, decode.config_map, index.on_config_map, f"{names.GATE}={names.GATE_VALUE}"
        ),
    ]
    if crd_changed is not None:
        changed = crd_changed

        def on_crd(change: ObjectChange[str]) -> None:
            if change.new is not None:
                changed()

        only = f"metadata.name={names.JOBSET_CRD}"
        watches.append(
            _InformerSpec(CRDS, wire.MetadataOnly, lambda crd: crd.metadata.resource_version, on_crd, "", only)
        )
    return [
        Informer(
            client,
            watch.resource,
            wire=watch.shape,
            convert=watch.convert,
            handler=watch.handler,
            namespace=namespace if watch.resource.namespaced else None,
            label_selector=watch.label_selector,
            field_selector=watch.field_selector,
            on_problem=on_problem,
        )
        for watch in watches
    ]


def config_map_witness(informers: Iterable[AnyInformer]) -> MutationCache[wire.ConfigMap, ConfigMapSeen]:
    """Who is told of the ConfigMaps that the controller itself reads and writes."""
    return next(informer.mutation_cache for informer in informers if informer.resource == CONFIGMAPS)


def jobset_version(informers: Iterable[AnyInformer]) -> Callable[[GangKey], ObjectVersion | None]:
    """Which version of a JobSet the cache holds: the precondition of a write of its status."""
    witness = next(informer.mutation_cache for informer in informers if informer.resource == JOBSETS)
    return lambda key: witness.known_version((key.namespace, key.name))


def pod_watch_silence(informers: Iterable[AnyInformer]) -> Callable[[], float]:
    """Seconds since the watch of pods has last shown any sign of life."""
    pods = next(informer for informer in informers if informer.resource == PODS)
    return lambda: pods.idle_for


def not_synced(informers: Iterable[AnyInformer]) -> str:
    """What has not been listed yet and why, for people; "" if nothing is missing. JobSet may be installed later."""
    missing = [
        one for one in informers if not one.has_synced and not (one.resource == JOBSETS and one.is_not_installed)
    ]
    words = [f"{one.resource.plural} ({one.list_error})" if one.list_error else one.resource.plural for one in missing]
    return f"not listed yet: {', '.join(words)}" if words else ""
