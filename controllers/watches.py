"""Which objects the controller watches, and where their changes go."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from controllers.index import Index
from controllers.keys import Key
from jobset_gate import names, read, wire
from jobset_gate.kube.client import Client
from jobset_gate.kube.informer import Informer
from jobset_gate.kube.problems import OnProblem
from jobset_gate.kube.resources import CONFIGMAPS, CRDS, JOBS, JOBSETS, PODS, Resource
from jobset_gate.kube.store import Change, Version
from jobset_gate.kube.witness import Witness
from jobset_gate.model import GateSeen

AnyInformer = Informer[Any, Any]


@dataclass(frozen=True, slots=True)
class _Watch:
    resource: Resource
    shape: Any
    convert: Callable[[Any], Any]
    handler: Callable[[Change[Any]], None]
    label_selector: str = ""
    field_selector: str = ""


def informers(
    client: Client,
    index: Index,
    crd_changed: Callable[[], None] | None,
    *,
    namespace: str | None,
    on_problem: OnProblem,
) -> list[AnyInformer]:
    """The informers that fill the index. `crd_changed` is told of the JobSet CRD; None: it is not watched."""
    gated = f"{names.GATED}={names.GATED_VALUE}"
    watches = [
        # JobSets without a selector: one that came in while the webhook was off has no label of ours (A10).
        _Watch(JOBSETS, wire.JobSet, read.jobset, index.on_jobset),
        _Watch(JOBS, wire.Job, read.job, index.on_job, gated),
        _Watch(PODS, wire.Pod, read.pod, index.on_pod, gated),
        _Watch(CONFIGMAPS, wire.ConfigMap, read.gate, index.on_gate, f"{names.GATE}={names.GATE_VALUE}"),
    ]
    if crd_changed is not None:
        changed = crd_changed

        def on_crd(change: Change[str]) -> None:
            if change.new is not None:
                changed()

        only = f"metadata.name={names.JOBSET_CRD}"
        watches.append(_Watch(CRDS, wire.Bare, lambda crd: crd.metadata.resource_version, on_crd, "", only))
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


def gate_witness(informers: Iterable[AnyInformer]) -> Witness[wire.ConfigMap, GateSeen]:
    """Who is told of the ConfigMaps that the controller itself reads and writes."""
    return next(informer.witness for informer in informers if informer.resource == CONFIGMAPS)


def jobset_version(informers: Iterable[AnyInformer]) -> Callable[[Key], Version | None]:
    """Which version of a JobSet the cache holds: the precondition of a write of its status."""
    witness = next(informer.witness for informer in informers if informer.resource == JOBSETS)
    return lambda key: witness.known((key.namespace, key.name))


def silence_of_pods(informers: Iterable[AnyInformer]) -> Callable[[], float]:
    """Seconds since the watch of pods has last shown any sign of life."""
    pods = next(informer for informer in informers if informer.resource == PODS)
    return lambda: pods.silent_for


def unlisted(informers: Iterable[AnyInformer]) -> str:
    """What has not been listed yet and why, for people; "" if nothing is missing. JobSet may be installed later."""
    missing = [one for one in informers if not one.has_synced and not (one.resource == JOBSETS and one.is_absent)]
    words = [f"{one.resource.plural} ({one.trouble})" if one.trouble else one.resource.plural for one in missing]
    return f"not listed yet: {', '.join(words)}" if words else ""
