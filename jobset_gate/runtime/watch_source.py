"""One kind of objects to list or watch: what the controllers and the command line hand to informers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import Resource
from jobset_gate.runtime.decoder import OnWatchProblem
from jobset_gate.runtime.informer import Informer
from jobset_gate.runtime.store import ObjectChange

AnyInformer = Informer[Any, Any]


@dataclass(frozen=True, slots=True)
class WatchSource:
    """How to select objects, how to decode one, and the handler of its changes. `namespace` None: all namespaces."""

    resource: Resource
    wire_type: Any
    convert: Callable[[Any], Any]
    handler: Callable[[ObjectChange[Any]], None]
    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""


def make_informer(client: Client, source: WatchSource, on_problem: OnWatchProblem) -> AnyInformer:
    """An informer that calls the source's handler for each change."""
    return Informer(
        client,
        source.resource,
        wire=source.wire_type,
        convert=source.convert,
        handler=source.handler,
        namespace=source.namespace,
        label_selector=source.label_selector,
        field_selector=source.field_selector,
        on_problem=on_problem,
    )
