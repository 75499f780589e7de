"""Stored objects for the tests of parts that write: the counterparts of tests/fakes/gangs.py in the API."""

from __future__ import annotations

from collections.abc import Callable

from jobset_gate import names
from jobset_gate.barrier.model import GangKey, PodSeen, WorkloadSeen
from jobset_gate.kube.resources import JOBSETS, PODS
from jobset_gate.runtime.store import ObjectVersion
from tests.fakes import gangs
from tests.fakes.memory_api import Api, Json


def store_pods(api: Api, many: int) -> list[PodSeen]:
    """So many pods that wait in their barrier, stored and as a controller sees them."""
    return [store_pod(api, f"train-workers-0-{index}") for index in range(many)]


def store_pod(api: Api, name: str) -> PodSeen:
    stored = api.create(PODS, {"metadata": {"name": name}, "spec": {}, "status": {}})
    return gangs.pod(0, name=name, uid=stored["metadata"]["uid"])


def store_jobset(api: Api) -> WorkloadSeen:
    meta = {"name": "train", "annotations": {names.CONFIG: "{}"}}
    stored = api.create(JOBSETS, {"metadata": meta, "spec": {}})
    return gangs.jobset(uid=stored["metadata"]["uid"], created=0.0)


def version_of(api: Api) -> Callable[[GangKey], ObjectVersion | None]:
    """Of each JobSet what an informer would have in its cache: the latest."""

    def version(key: GangKey) -> ObjectVersion | None:
        meta = (api.get(JOBSETS, key.name) or {}).get("metadata")
        return ObjectVersion(meta["uid"], meta["resourceVersion"]) if meta else None

    return version


def verdict_on(api: Api, pod: PodSeen) -> str:
    return str(notes(api, pod).get(names.VERDICT, ""))


def notes(api: Api, pod: PodSeen) -> Json:
    stored = api.get(PODS, pod.name)
    assert stored is not None
    found: Json = stored["metadata"].get("annotations", {})
    return found
