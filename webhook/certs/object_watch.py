"""Tells that something has changed in the objects that the certificates depend on: watches of single objects."""

import asyncio
from collections.abc import Iterable

import msgspec
import structlog

from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import Resource
from jobset_gate.runtime.informer import Informer
from jobset_gate.runtime.store import ObjectChange
from jobset_gate.runtime.watch_problems import WatchProblem

log = structlog.get_logger("webhook.certificates")


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Object(msgspec.Struct, frozen=True):
    """Only that it has changed is of interest: no Secret is kept in memory here."""

    metadata: _Meta = _Meta()


def object_informers(
    client: Client, objects: Iterable[tuple[Resource, str | None, str]], wake: asyncio.Event
) -> list[Informer[_Object, str]]:
    """One informer for each (resource, namespace, name); `wake` is set at every change. Their run() is the caller's."""

    def changed(_: ObjectChange[str]) -> None:
        wake.set()

    return [
        Informer(
            client,
            resource,
            wire=_Object,
            convert=lambda it: it.metadata.resource_version,
            handler=changed,
            namespace=namespace,
            field_selector=f"metadata.name={name}",
            on_problem=_say,
        )
        for resource, namespace, name in objects
    ]


def _say(problem: WatchProblem) -> None:
    log.debug("watch", resource=problem.resource.plural, kind=str(problem.kind), detail=problem.detail)
