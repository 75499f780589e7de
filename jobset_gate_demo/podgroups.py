"""The demo of pod groups: two gangs block each other, and with jobset-gate they are placed one after the other."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final

from controllers.manager import ManagerOptions
from jobset_gate import names
from jobset_gate.cli.exits import ExitCode
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import POD_GROUPS, PODS
from jobset_gate.settings import Settings
from jobset_gate_demo.fake import jobset_crd
from jobset_gate_demo.fake.cluster import Actors, embedded_cluster
from jobset_gate_demo.fake.kubelet import Behaviour, FakeNode, PodMatch
from jobset_gate_demo.fake.objects import FakeObject
from jobset_gate_demo.frame import NAMESPACE, DemoEnvironment, Display, Json, ProgressRow, Watcher, environment, play

GPU: Final = "nvidia.com/gpu"
GANGS: Final = ("a", "b")
"""`a` is the older one."""
BEHAVIOUR: Final = Behaviour(sandbox_seconds=0.5, pull_seconds=1.0, spread=1.0)

_OLDER, _YOUNGER = GANGS
_NODES: Final = 10
_GPUS: Final = 4
"""On each node."""
_ROOM: Final = _NODES * _GPUS
_SIZE: Final = round(0.6 * _ROOM)
"""Pods of one gang, and its minimum: with fewer it cannot work."""
_WATCHED: Final = 300.0
"""Seconds of the cluster in which nothing moves before that is believed."""
_WORK: Final = 120.0
"""What a gang does once all of its pods run."""
_PATIENCE: Final = 600.0
"""After which a step of the story is given up."""
_LACKS: Final = "needs "
"""The message of a group for which there is no room."""
_POD_GROUPS: Final = POD_GROUPS[names.PLUGINS_GROUP]
_CRD: Final = f"{_POD_GROUPS.plural}.{_POD_GROUPS.group}"


def _cluster() -> AbstractAsyncContextManager[Actors]:
    nodes = [FakeNode(f"gpu-{number}", allocatable={GPU: str(_GPUS)}) for number in range(_NODES)]
    return embedded_cluster(nodes=nodes, behaviour=BEHAVIOUR)


def _pod(gang: str, number: int) -> Json:
    asked = {"limits": {GPU: "1"}, "requests": {GPU: "1"}}
    main = {"name": "main", "image": "registry.example/worker:v7", "resources": asked}
    return {
        "metadata": {"name": f"{gang}-{number}", "labels": {names.PLUGINS_NAME: gang}},
        "spec": {"restartPolicy": "Never", "containers": [main]},
    }


# --- What is watched --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PodGroupCount:
    name: str
    bound: int
    running: int
    succeeded: int
    held: int
    """By our gate."""
    pending: int
    """The scheduler has found no node for them."""

    @property
    def row(self) -> ProgressRow:
        """With the numbers that say something now."""
        parts = [f"{self.bound}/{_SIZE} bound"]
        for many, what in ((self.running, "running"), (self.pending, "pending"), (self.held, "held")):
            parts += [f"{many} {what}"] if many else []
        parts += ["done"] if self.finished else []
        return ProgressRow(self.name, self.bound, _SIZE, ", ".join(parts))

    @property
    def complete(self) -> bool:
        """All of its pods run, so that it can work."""
        return self.running == _SIZE

    @property
    def finished(self) -> bool:
        """Its work is done."""
        return self.succeeded == _SIZE


class PodGroupWatcher(Watcher):
    """Counts the pods of the gangs; `groups`: whether there are PodGroups to watch."""

    def __init__(self, client: Client, *, groups: bool) -> None:
        super().__init__(client)
        self._pods = self.watch(PODS, FakeObject)
        self._groups = self.watch(_POD_GROUPS, FakeObject) if groups else {}

    def counts(self) -> list[PodGroupCount]:
        """One for each gang, as it stands."""
        return [self.count(gang) for gang in GANGS]

    def rows(self) -> list[ProgressRow]:
        """The same as bars."""
        return [one.row for one in self.counts()]

    def count(self, gang: str) -> PodGroupCount:
        pods = self._of(gang)
        phases = [it.status.get("phase") for it in pods]
        held, bound = sum("schedulingGates" in it.spec for it in pods), sum("nodeName" in it.spec for it in pods)
        running, succeeded = phases.count("Running"), phases.count("Succeeded")
        return PodGroupCount(gang, bound, running, succeeded, held, len(pods) - bound - held)

    def why(self, gang: str) -> str:
        """What the group says of itself while it is held."""
        group = self._groups.get((NAMESPACE, gang))
        return _message(group, "type", names.POD_GROUP_CONDITION) if group is not None else ""

    def scheduler_message(self, gang: str) -> str:
        """Of a pod that found no node."""
        return next(filter(None, (_message(it, "reason", "Unschedulable") for it in self._of(gang))), "")

    def _of(self, gang: str) -> list[FakeObject]:
        return [it for it in self._pods.values() if it.metadata.labels.get(names.PLUGINS_NAME) == gang]


def _message(it: FakeObject, key: str, value: str) -> str:
    """Of the condition that has this value there."""
    conditions = it.status.get("conditions") or ()
    return next((str(one.get("message", "")) for one in conditions if one.get(key) == value), "")


# --- The story --------------------------------------------------------------------------------------------------------


async def demo(*, speed: float) -> ExitCode:
    """Plays the whole demo."""

    async def story(display: Display) -> Sequence[str]:
        started = time.monotonic()
        for text in _opening(speed):
            display.say(text)
        mistakes = await _without(display)
        mistakes += await _with(display)
        display.say(f"That took {time.monotonic() - started:.0f} s.")
        return mistakes

    return await play(story, speed=speed)


def _opening(speed: float) -> list[str]:
    cluster = f"{_NODES} nodes with {_GPUS} GPUs each, {_ROOM} in all"
    return [
        "API server, scheduler and kubelets are stand-ins in this process; the scheduler goes about it pod by pod, as",
        f"kube-scheduler does. The cluster's time is simulated and passes {speed:g} times as fast as yours.",
        "",
        f"Two gangs, {_OLDER} and {_YOUNGER}: {_SIZE} pods each, one GPU per pod. {cluster}:",
        "there is room for one gang at a time. A gang works only while all of its pods run. Their pods are created",
        f"alternately: {_OLDER}-0, {_YOUNGER}-0, {_OLDER}-1 and so on.",
    ]


async def _without(display: Display) -> list[str]:
    """Neither gang is complete."""
    display.say()
    display.say("1. Without jobset-gate")
    async with environment(_cluster()) as demo:
        watcher = await _watch(demo, groups=False)
        async with display.following(watcher.rows):
            await _create_pods(demo)
            complete = await watcher.until(lambda: any(one.complete for one in watcher.counts()), _WATCHED)
        counts = watcher.counts()
        if complete:
            return ["a gang was complete without us: there was no deadlock to show"]
        reached = ", ".join(f"{one.name} {one.bound}/{_SIZE}" for one in counts)
        taken = sum(one.bound for one in counts)
        display.say(f"   After {_WATCHED / 60:g} minutes: {reached}. Neither can start and neither gives up:")
        display.say(f"   {taken} of {_ROOM} GPUs are taken for nothing. The scheduler says of the other pods:")
        display.say(f"   {watcher.scheduler_message(_YOUNGER)}")
    return [] if taken == _ROOM else [f"{taken} of {_ROOM} GPUs were taken: that is no deadlock"]


async def _with(display: Display) -> list[str]:
    """One gang after the other, each as a whole."""
    display.say()
    display.say("2. With jobset-gate: the same pods once more")
    early, finished, reason = 0, list[str](), ""
    async with environment(_cluster()) as demo:
        clock, settings = demo.cluster.clock, Settings()
        options = ManagerOptions(namespace=NAMESPACE, identity="demo", clock=clock, groups=settings.groups)
        url = await demo.start_jobset_gate(options, settings, lambda manager: _ready(manager.leading, demo))
        display.say(f"   Webhook ({url}) and controller are what runs in a cluster.")
        for gang in GANGS:
            group = {"metadata": {"name": gang}, "spec": {"minMember": _SIZE}}
            await demo.client.create(_POD_GROUPS, group, NAMESPACE)
        watcher = await _watch(demo, groups=True)

        def has_finished(gang: str) -> bool:
            nonlocal early
            if gang == _OLDER and not watcher.count(_OLDER).finished:
                early = max(early, watcher.count(_YOUNGER).bound)
            return watcher.count(gang).finished

        async with display.following(watcher.rows):
            await _create_pods(demo)
            if await watcher.until(lambda: _LACKS in watcher.why(_YOUNGER), _PATIENCE):
                reason = watcher.why(_YOUNGER)
            display.say(f"   {_YOUNGER} says why it waits: {reason}")
            for gang in GANGS:
                if await watcher.until(lambda gang=gang: has_finished(gang), _PATIENCE):  # type: ignore[misc]
                    finished.append(gang)
        mistakes = [f"gang {gang} did not finish" for gang in GANGS if gang not in finished]
        if early:
            mistakes.append(f"{early} pods of gang {_YOUNGER} were bound before there was room for all of it")
        if not reason:
            mistakes.append(f"gang {_YOUNGER} did not say why it waited")
        if not mistakes:
            display.say(
                f"   {_OLDER} was opened as a whole and did its work. {_YOUNGER} took nothing meanwhile, and was"
            )
            display.say(f"   opened as a whole when {_OLDER} was done.")
    display.say()
    return mistakes


async def _create_pods(demo: DemoEnvironment) -> None:
    """One after the other, as the gangs' controllers would take turns: a-0, b-0, a-1, b-1 and so on."""
    for number in range(_SIZE):
        for gang in GANGS:
            await demo.client.create(PODS, _pod(gang, number), NAMESPACE)


async def _watch(demo: DemoEnvironment, *, groups: bool) -> PodGroupWatcher:
    """From now on a gang works once all of its pods run, and then its pods end."""
    watcher = PodGroupWatcher(demo.client, groups=groups)
    await watcher.start(demo.tasks)

    async def work(gang: str) -> None:
        if await watcher.until(lambda: watcher.count(gang).complete, float("inf")):
            await asyncio.sleep(_WORK)
            demo.cluster.kubelets.finish(PodMatch(f"{gang}-*"))

    for gang in GANGS:
        demo.tasks.start(f"work of {gang}", work(gang))
    demo.stop_cluster_first()
    return watcher


async def _ready(leading: asyncio.Event, demo: DemoEnvironment) -> None:
    """The controller leads, and PodGroups are served."""
    await leading.wait()
    await jobset_crd.until_served(demo.client, _CRD, _POD_GROUPS)
