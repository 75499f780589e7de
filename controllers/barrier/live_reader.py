"""A closer look at a gang before a verdict: the API is asked where the watches may not have told everything yet.

Before a verdict fails it: is it really so, and why (A7, A9)? A watch that has gone silent is noticed after a minute or
so; a gang must not fail for pods that started meanwhile. So its Jobs and pods are read from the API once more, and
Events say what quotas and autoscalers did. Once per verdict.

Before a ConfigMap is made: was a verdict taken whose ConfigMap somebody has deleted (A10)? The condition knows. And is
the JobSet still there? For one that is gone the garbage collector deletes each ConfigMap at once, and a controller
whose watch has not told of that would make the next one at once.

And before a ConfigMap is believed that tells of what nobody here has heard of: was it edited?
"""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Final, TypeVar

import msgspec
import structlog

from jobset_gate import names
from jobset_gate.barrier import decode, integrity, wire
from jobset_gate.barrier import events as heard
from jobset_gate.barrier.model import GangSnapshot, JobSetSeen, PendingReason
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError, InvalidResponse, NotFound, Unreachable
from jobset_gate.kube.resources import EVENTS, JOBS, JOBSETS, PODS
from jobset_gate.runtime.paging import ListScope, list_objects, list_pages
from jobset_gate.runtime.workqueue import Requeue

EVENTS_PAGE: Final = 50
EVENTS_BYTES: Final = 1024 * 1024
"""Of Events of one reason that are read: tenants write such, too, and large ones. The rest costs words only."""

W = TypeVar("W")
M = TypeVar("M")

_Events = tuple[Sequence[heard.CoreEvent], Sequence[heard.CoreEvent], Sequence[heard.CoreEvent]]
"""Of refused pods, of coming nodes, of kubelets' troubles."""
_NO_EVENTS: Final[_Events] = ((), (), ())

_log = structlog.get_logger(__name__)


class LiveReader:
    """Reads one gang's namespace."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # What a verdict is taken on is not read again and again: who waits for a throttled server counts anew after it.
        self._no_retry = client.without_retries()

    async def refresh(self, seen: GangSnapshot, *, reasons: bool = True) -> GangSnapshot:
        """The gang as the API has it now; `reasons`: with what Events say of its missing pods.

        Raises what a failing list of Jobs or pods raises: no verdict without a look.
        """
        namespace = seen.jobset.namespace
        # Events first: they only cost words, and may take a while, in which pods start or go.
        events = await self._list_reasons(seen) if reasons else _NO_EVENTS
        mine = f"{names.GATED}={names.GATED_VALUE},{names.JS_NAME}={seen.jobset.name}"
        jobs = await self._list_all(ListScope(JOBS, namespace, mine), wire.Job, decode.job)
        pods = await self._list_all(ListScope(PODS, namespace, mine), wire.Pod, decode.pod)
        return heard.with_events(msgspec.structs.replace(seen, jobs=jobs, pods=pods), *events)

    async def refresh_condition(self, seen: GangSnapshot) -> GangSnapshot:
        """With what the JobSet's condition tells in the API now.

        Raises LookAgain if it is not there, going, or another by now, and what a failing read raises.
        """
        live = await self._get_jobset(seen)
        return msgspec.structs.replace(seen, jobset=msgspec.structs.replace(seen.jobset, condition=live.condition))

    async def verify_config_map(self, seen: GangSnapshot) -> GangSnapshot:
        """Without what its ConfigMap holds and the JobSet in the API does not bear out. Raises as `recall` does."""
        return integrity.without_edits(seen, await self._get_jobset(seen))

    async def _get_jobset(self, seen: GangSnapshot) -> JobSetSeen:
        namespace, name = seen.jobset.namespace, seen.jobset.name
        try:
            live = decode.jobset(await self._no_retry.get(JOBSETS, name, namespace, type=wire.JobSet))
        except NotFound as gone:
            raise Requeue(f"the JobSet {namespace}/{name} is gone") from gone
        if live is None or live.uid != seen.jobset.uid:
            raise Requeue(f"the JobSet {namespace}/{name} is another one")
        if live.deleting:
            raise Requeue(f"the JobSet {namespace}/{name} is being deleted")
        return live

    async def _list_reasons(self, seen: GangSnapshot) -> _Events:
        """What Events say of pods that do not exist, have no node, or are not begun; of others nobody asks."""
        namespace = seen.jobset.namespace
        whys = {pod.pending.reason for pod in seen.pods if pod.pending is not None}
        coming = heard.NODE_PROVISIONING_REASONS if PendingReason.UNSCHEDULED in whys else ()
        troubles = heard.KUBELET_REASONS if PendingReason.STARTING in whys else ()
        try:
            return (
                await self._list_events(namespace, "Job", heard.FAILED_CREATE),
                [event for reason in coming for event in await self._list_events(namespace, "Pod", reason)],
                [event for reason in troubles for event in await self._list_events(namespace, "Pod", reason)],
            )
        except (ApiError, InvalidResponse, Unreachable) as error:
            _log.warning("events not read, the verdict says less", namespace=namespace, error=str(error))
            return _NO_EVENTS

    async def list_denials(self, namespace: str) -> dict[str, str]:
        """By Job: in which words the last of its pods was refused. Raises what a failing list raises."""
        return heard.denials_by_job(await self._list_events(namespace, "Job", heard.FAILED_CREATE))

    async def _list_events(self, namespace: str, kind: str, reason: str) -> list[heard.CoreEvent]:
        selector = f"involvedObject.kind={kind},reason={reason}"
        scope = ListScope(EVENTS, namespace, field_selector=selector)
        found: list[heard.CoreEvent] = []
        size = 0
        async with aclosing(list_pages(self._client, scope, EVENTS_PAGE, EVENTS_BYTES)) as read_in_turn:
            async for items, _ in read_in_turn:
                found += (event for item in items if (event := _event(item)) is not None)
                size += sum(len(memoryview(item)) for item in items)
                if len(found) >= heard.MAX_EVENTS or size >= EVENTS_BYTES:
                    break
        return found

    async def _list_all(self, scope: ListScope, kind: type[W], convert: Callable[[W], M]) -> tuple[M, ...]:
        async with aclosing(list_objects(self._no_retry, scope, kind)) as read_in_turn:
            return tuple([convert(it) async for it in read_in_turn])


def _event(item: msgspec.Raw) -> heard.CoreEvent | None:
    """One that cannot be read says nothing."""
    try:
        return msgspec.json.decode(item, type=heard.CoreEvent)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
