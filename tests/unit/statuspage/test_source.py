"""How far the page believes its caches: whether watches stand, and who holds the Lease."""

from contextlib import AsyncExitStack

import msgspec

from controllers.barrier.cache import GangCache
from controllers.statuspage.source import DISCONNECTED_SECONDS, disconnected_watches
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import PodSeen
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, PODS, Resource
from jobset_gate.runtime.informer import Informer, WatchSource
from jobset_gate.runtime.store import ObjectChange
from tests.fakes import gangs
from tests.fakes.background import in_background
from tests.fakes.gate_stream import until
from tests.plane.embedded import Embedded


async def test_a_watch_that_breaks_is_missed_after_a_while(embedded_plane: Embedded) -> None:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(embedded_plane.client())
        informer = Informer(client, WatchSource(CONFIGMAPS, wire.ConfigMap, lambda it: it, lambda _: None))
        await informer._list()
        assert disconnected_watches([informer]) == ((), 0.0)  # no watch yet, and the list is a moment old
        await stack.enter_async_context(in_background(informer.run()))
        await until(lambda: informer.has_synced and informer.disconnected_for == 0)
        await embedded_plane.server.stop()
        await until(lambda: informer.disconnected_for > 0)
        assert disconnected_watches([informer]) == ((), 0.0)  # it may be back in a moment


class Silent:
    """An informer without a watch."""

    def __init__(self, resource: Resource, seconds: float, *, absent: bool = False) -> None:
        self.resource, self.disconnected_for = resource, seconds
        self.is_not_installed, self.has_synced = absent, True


def test_which_watches_are_missed() -> None:
    some = [
        Silent(PODS, DISCONNECTED_SECONDS + 3),
        Silent(CONFIGMAPS, DISCONNECTED_SECONDS - 1),
        Silent(JOBSETS, 99, absent=True),
    ]
    assert disconnected_watches(some) == (("pods",), DISCONNECTED_SECONDS + 3)  # type: ignore[arg-type]
    # A kind that has gone is no broken watch; pods never go.
    assert disconnected_watches([Silent(PODS, 99, absent=True)])[0] == ("pods",)  # type: ignore[list-item]


def test_a_look_enqueues_nothing_and_every_change_is_reported() -> None:
    """Starts since the last pass still count, or a gang that is complete would not be looked at at once."""
    woken: list[object] = []
    touched: list[object] = []
    index = GangCache(woken.append, lambda *_: None, (), touched.append)
    index.on_workload(ObjectChange(("default", "train"), None, gangs.jobset()))
    key = next(iter(index.keys()))
    index.snapshot(key)
    index.set_missing_count(key, 2)
    woken.clear()
    for number in range(2):
        seen: PodSeen = gangs.pod(number)
        index.on_pod(ObjectChange(("default", seen.name), None, msgspec.structs.replace(seen, uid=f"p-{number}")))
        assert index.peek(key) is not None
    assert woken == [key]
    assert touched == [key] * 3
