"""Which objects the controller watches, and where their changes go."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from controllers.index import Index
from jobset_gate import names, read, wire
from jobset_gate.kube.client import Client
from jobset_gate.kube.informer import Informer
from jobset_gate.kube.problems import OnProblem
from jobset_gate.kube.resources import CONFIGMAPS, CRDS, JOBS, JOBSETS, PODS, Resource
from jobset_gate.kube.store import Change

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
