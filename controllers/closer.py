"""A closer look at a gang before a verdict: the API is asked where the watches may not have told everything yet.

Before a verdict fails it: is it really so, and why (A7, A9)? A watch that has gone silent is noticed after a minute or
so; a gang must not fail for pods that started meanwhile. So its Jobs and pods are read from the API once more, and
Events say what quotas and autoscalers did. Once per verdict.

Before a verdict for which there is no ConfigMap: was one taken that somebody has deleted (A10)? The condition knows.
And before a ConfigMap is believed that tells of what nobody here has heard of: was it edited?
"""

from typing import Generic, TypeVar

import msgspec
import structlog

from controllers.gates import LookAgain
from jobset_gate import doubts, names, read, wire
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError, BadAnswer, NotFound, Unreachable
from jobset_gate.kube.resources import EVENTS, JOBS, JOBSETS, PODS, Resource
from jobset_gate.model import GangSeen, JobSetSeen
from jobset_gate.stalls import DETAIL_LIMIT

MOST_EVENTS = 500
"""Events of one reason that are looked at."""

PAGE = 250

_REFUSED = "FailedCreate"
_NODE_ON_ITS_WAY = ("TriggeredScaleUp", "Nominated")
"""What the cluster autoscaler and Karpenter say of a pod for which they make a node."""

W = TypeVar("W")

_log = structlog.get_logger(__name__)


class _Regarding(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""


class _Event(msgspec.Struct, frozen=True, rename={"regarding": "involvedObject"}):
    regarding: _Regarding = _Regarding()
    message: str = ""


class _PageMeta(msgspec.Struct, frozen=True, rename={"more": "continue"}):
    more: str = ""


class _Page(msgspec.Struct, Generic[W]):
    items: list[W] = []
    metadata: _PageMeta = _PageMeta()


class Closer:
    """Reads one gang's namespace."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def look(self, seen: GangSeen) -> GangSeen:
        """The gang as the API has it now. Raises what a failing list raises: no verdict without a look."""
        namespace = seen.jobset.namespace
        mine = f"{names.GATED}={names.GATED_VALUE},{names.JS_NAME}={seen.jobset.name}"
        jobs = await self._all(JOBS, namespace, mine, _Page[wire.Job])
        pods = await self._all(PODS, namespace, mine, _Page[wire.Pod])
        fresh = msgspec.structs.replace(
            seen, jobs=tuple(read.job(job) for job in jobs), pods=tuple(read.pod(pod) for pod in pods)
        )
        try:
            return await self._reasons(fresh)
        except (ApiError, BadAnswer, Unreachable) as error:
            # Costs words, not the verdict.
            _log.warning("events not read, the verdict says less", namespace=namespace, error=str(error))
            return fresh

    async def recall(self, seen: GangSeen) -> GangSeen:
        """With what the JobSet's condition tells in the API now.

        Raises LookAgain if it is not there or another by now, and what a failing read raises: no verdict without it.
        """
        live = await self._live(seen)
        return msgspec.structs.replace(seen, jobset=msgspec.structs.replace(seen.jobset, condition=live.condition))

    async def settle(self, seen: GangSeen) -> GangSeen:
        """Without what its ConfigMap holds and the JobSet in the API does not bear out. Raises as `recall` does."""
        return doubts.settled(seen, await self._live(seen))

    async def _live(self, seen: GangSeen) -> JobSetSeen:
        namespace, name = seen.jobset.namespace, seen.jobset.name
        try:
            live = read.jobset(await self._client.get(JOBSETS, name, namespace, type=wire.JobSet))
        except NotFound as gone:
            raise LookAgain(f"the JobSet {namespace}/{name} is gone") from gone
        if live is None or live.uid != seen.jobset.uid:
            raise LookAgain(f"the JobSet {namespace}/{name} is another one")
        return live

    async def _reasons(self, seen: GangSeen) -> GangSeen:
        """With the Jobs whose pods were refused and the pods for which a node is on its way."""
        jobs = {job.name for job in seen.jobs}
        unscheduled = {pod.name for pod in seen.pods if not pod.bound}
        namespace = seen.jobset.namespace
        refused = await self.refusals(namespace)
        coming = [event for reason in _NODE_ON_ITS_WAY for event in await self._events(namespace, "Pod", reason)]
        denials = {job: words for job, words in refused.items() if job in jobs}
        provisioning = {event.regarding.name for event in coming if event.regarding.name in unscheduled}
        return msgspec.structs.replace(
            seen, denials=tuple(sorted(denials.items())), provisioning=frozenset(provisioning)
        )

    async def refusals(self, namespace: str) -> dict[str, str]:
        """By Job: in which words the last of its pods was refused. Raises what a failing list raises."""
        refused = await self._events(namespace, "Job", _REFUSED)
        return {event.regarding.name: " ".join(event.message.split())[:DETAIL_LIMIT] for event in refused}

    async def _events(self, namespace: str, kind: str, reason: str) -> list[_Event]:
        selector = f"involvedObject.kind={kind},reason={reason}"
        page = await self._client.list(
            EVENTS, namespace, field_selector=selector, limit=MOST_EVENTS, type=_Page[_Event]
        )
        return page.items

    async def _all(self, resource: Resource, namespace: str, selector: str, page: type[_Page[W]]) -> list[W]:
        found: list[W] = []
        more = ""
        while True:
            got = await self._client.list(
                resource, namespace, label_selector=selector, limit=PAGE, continue_=more, type=page
            )
            found += got.items
            more = got.metadata.more
            if not more:
                return found
