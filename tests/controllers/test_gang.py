"""One pass over a gang: first the decision, then the news, and only then the words (A6)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from controllers import hearing
from controllers.announcements import Announcements
from controllers.closer import Closer
from controllers.gang import GangReconciler
from controllers.gates import Gates, LookAgain
from controllers.heralds import Heralds
from controllers.index import Index
from controllers.keys import Key
from controllers.loop import Loop, LoopMetrics
from controllers.measures import Measures
from controllers.patches import PATIENCE, TOLD_PATIENCE, Patches
from controllers.queue import WorkQueue
from controllers.statuses import PROGRESS_EVERY, Statuses
from controllers.told import Told
from jobset_gate import names, read, report, verdicts, wire
from jobset_gate.kube.errors import BadAnswer, Forbidden, KubeError, ServerError, Unreachable
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, PODS
from jobset_gate.kube.store import Change, Store
from jobset_gate.kube.witness import Witness
from jobset_gate.model import ConditionSeen, GangSeen, GateSeen, Generation, JobSetSeen, Kind, PodSeen, Stage
from jobset_gate.sim.clock import VirtualClock
from tests.controllers.doors import Doors
from tests.controllers.objects import notes, store_jobset, store_pod, verdict_on, version_of
from tests.controllers.test_closer import tell
from tests.jobset_gate import gangs
from tests.jobset_gate.gangs import job, replicated_job, verdict
from tests.jobset_gate.world.api import Api, Json
from tests.jobset_gate.world.client import Call, MemoryClient

TRAIN = Key("default", "train")
NAME = "train-group-scheduling"


@dataclass
class WallClock:
    """One that somebody may set."""

    true: VirtualClock
    ahead: float = 0.0

    def __call__(self) -> float:
        return self.true() + self.ahead


class Desk:
    """A reconciler whose views the test sets, and all that it asked for."""

    def __init__(self, api: Api, memory: MemoryClient, doors: Doors, true: VirtualClock) -> None:
        self.api, self.doors = api, doors
        clock = self.clock = WallClock(true)
        told = Told()
        self.index = Index(lambda _: None, lambda _, __: None, told)
        self.gates = Gates(memory.client, self.index, Witness(Store(), read.gate))
        self.book = Announcements(self.index, clock, told)
        self.patches = Patches(memory.client, concurrency=1, told=told)
        words: WorkQueue[Key] = WorkQueue()
        heralds = Heralds(Statuses(memory.client, clock, version=version_of(api)), words)
        self.words = Loop("status", words, heralds.reconcile, LoopMetrics(CollectorRegistry()), workers=1)
        self.reconciler = GangReconciler(
            index=self.index,
            gates=self.gates,
            announcements=self.book,
            patches=self.patches,
            heralds=heralds,
            closer=Closer(memory.client),
            measures=Measures(CollectorRegistry()),
            now=clock,
        )
        self.jobset = msgspec.structs.replace(store_jobset(api), token="t0ken")
        self.see(self.jobset)
        self.index.on_job(Change(("default", "train-workers-0"), None, job(jobset_uid=self.jobset.uid)))

    def see(self, jobset: JobSetSeen) -> None:
        self.index.on_jobset(Change(("default", "train"), None, jobset))

    def see_pod(self, index: int, **changes: Any) -> PodSeen:
        stored = store_pod(self.api, f"pod-{index}")
        known = {"jobset_uid": self.jobset.uid, "index": index, "barrier_since": self.clock()}
        pod = msgspec.structs.replace(stored, **(known | changes))
        self.index.on_pod(Change(("default", pod.name), None, pod))
        return pod

    def ask(self, *pods: PodSeen, gone: bool = False) -> list[tuple[str, str, tuple[str, ...]]]:
        """These pods hold requests open: what each will hear, and what was asked of the API by then."""
        heard: list[tuple[str, str, tuple[str, ...]]] = []
        for pod in pods:
            client = Client(self, pod.uid, heard, gone=gone)
            request = self.book.admit(TRAIN, "t0ken", Generation(self.jobset.uid, 0, 0), pod.uid, client)
            if gone:
                asyncio.get_running_loop().call_later(0.005, self.book.leave, request)
        return heard

    def see_gate(self, data: Json) -> None:
        """Stored with this in it, and known."""
        uid = self.jobset.uid
        meta = {"name": NAME, "labels": {names.GATE: names.GATE_VALUE}, "annotations": {names.JOBSET_UID: uid}}
        stored = self.api.create(CONFIGMAPS, {"metadata": meta, "data": data})
        self.index.saw_gate(TRAIN, read.gate(msgspec.convert(stored, wire.ConfigMap)))

    def edit(self, verdict: str | None, clock: str = "") -> GateSeen | None:
        """Somebody writes this into the ConfigMap; how that looks."""
        data = ({names.KEY_VERDICT: verdict} if verdict else {}) | ({names.KEY_WAITING_SINCE: clock} if clock else {})
        stored = self.api.change(CONFIGMAPS, NAME, lambda body: body["data"].update(data))
        return read.gate(msgspec.convert(stored, wire.ConfigMap))

    def jobset_in_api(self) -> JobSetSeen:
        """As far as we have written it: with its condition."""
        stored = self.api.get(JOBSETS, "train")
        assert stored is not None
        (now,) = stored["status"]["conditions"]
        told = ConditionSeen(status=now["status"], reason=now["reason"], message=now["message"], since="")
        return msgspec.structs.replace(self.jobset, condition=told)

    async def look(self) -> float | None:
        """One pass, the patches that it asked for, and then the words."""
        again = await self.reconciler.reconcile(TRAIN)
        for work in (self.patches.run(), self.words.run()):
            worker = asyncio.create_task(work)
            await asyncio.sleep(0.01)
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
        return again

    def asked(self) -> list[str]:
        return [f"{call.verb} {call.kind.plural}" for call in self.doors.asked]

    def gate(self) -> dict[str, str]:
        stored = self.api.get(CONFIGMAPS, NAME)
        assert stored is not None
        found: dict[str, str] = stored["data"]
        return found


@dataclass(frozen=True, slots=True)
class Client:
    """A pod's end of the gate stream."""

    desk: Desk
    pod: str
    heard: list[tuple[str, str, tuple[str, ...]]]
    gone: bool

    def speak(self, text: bytes) -> bool:
        self.heard.append((self.pod, text.decode(), tuple(self.desk.asked())))
        return not self.gone

    def end(self) -> None:
        """The test does not mind."""

    def drop(self) -> None:
        self.heard.append((self.pod, "dropped", tuple(self.desk.asked())))


@pytest.fixture
def desk(api: Api, memory: MemoryClient, doors: Doors, clock: VirtualClock) -> Desk:
    return Desk(api, memory, doors, clock)


async def test_the_decision_is_written_before_anything_is_said_of_it(desk: Desk) -> None:
    pods = [desk.see_pod(0), desk.see_pod(1)]
    await desk.look()
    assert desk.asked()[:2] == ["get jobsets", "create configmaps"]
    assert sorted(desk.asked()[2:]) == ["create events", "patch jobsets", "patch pods", "patch pods"]
    mine = verdicts.parse(desk.gate()["verdict"])
    assert mine is not None
    assert {verdict_on(desk.api, pod) for pod in pods} == {desk.gate()["verdict"]}


async def test_nothing_is_said_of_a_decision_that_could_not_be_written(desk: Desk) -> None:
    desk.see_pod(0)
    desk.see_pod(1)
    desk.doors.fail = lambda call: ServerError(500) if call.kind == CONFIGMAPS else None
    with pytest.raises(ServerError):
        await desk.look()
    assert desk.asked() == ["get jobsets", "create configmaps"]
    assert desk.patches.depth == 0


async def test_the_news_is_told_on_the_stream_right_after_the_write(desk: Desk) -> None:
    pods = [desk.see_pod(0), desk.see_pod(1)]
    heard = desk.ask(*pods)
    await desk.look()
    assert [(pod, text) for pod, text, _ in heard] == [(pod.uid, desk.gate()["verdict"]) for pod in pods]
    assert {asked for *_, asked in heard} == {("get jobsets", "create configmaps")}, "before all other words"


async def test_a_timeout_is_told_on_the_stream_too(desk: Desk) -> None:
    heard = desk.ask(desk.see_pod(0))
    await desk.look()
    await asyncio.sleep(301)
    await desk.look()
    assert [text.split()[0] for _, text, _ in heard] == ["timeout"]


async def test_a_verdict_that_another_replica_took_is_told_on_this_ones_stream_too(desk: Desk) -> None:
    """The requests were open here before the watch told of its ConfigMap."""
    heard = desk.ask(desk.see_pod(0))
    text = verdicts.render(verdict(uid=desk.jobset.uid))
    desk.see_gate(data={names.KEY_VERDICT: text})
    await desk.look()
    assert [said for _, said, _ in heard] == [text]


async def test_a_gang_of_announced_pods_alone_is_released(desk: Desk) -> None:
    """Their kubelets have not yet said a word of their barriers."""
    pods = [desk.see_pod(index, stage=Stage.WAITING, barrier_since=None) for index in range(2)]
    heard = desk.ask(*pods)
    await desk.look()
    assert names.KEY_VERDICT in desk.gate()
    assert len(heard) == 2


async def test_the_clock_starts_with_the_first_announcement(desk: Desk) -> None:
    desk.ask(desk.see_pod(0, stage=Stage.WAITING, barrier_since=None))
    since = desk.clock()
    await asyncio.sleep(0.25)
    await desk.look()
    clock = verdicts.parse_clock(desk.gate()[names.KEY_WAITING_SINCE])
    assert clock is not None
    assert clock.at == pytest.approx(since, abs=0.001)


async def test_a_pod_that_announces_itself_during_the_last_look_before_a_timeout_is_there(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.see_pod(0)
    late = desk.see_pod(1, stage=Stage.WAITING, barrier_since=None)

    async def look(_: Closer, seen: GangSeen, **_more: object) -> GangSeen:
        desk.ask(late)
        return seen

    monkeypatch.setattr(Closer, "look", look)
    await desk.look()
    await asyncio.sleep(301)
    await desk.look()
    assert desk.gate()[names.KEY_VERDICT].startswith("release ")


async def test_whoever_was_told_on_the_stream_is_patched_only_if_it_still_waits_later(desk: Desk) -> None:
    told, untold = desk.see_pod(0), desk.see_pod(1)
    desk.ask(told)
    again = await desk.look()
    assert (verdict_on(desk.api, told), verdict_on(desk.api, untold)) == ("", desk.gate()["verdict"])
    assert again is not None
    await asyncio.sleep(TOLD_PATIENCE - 1)
    await desk.look()
    assert verdict_on(desk.api, told) == ""
    await asyncio.sleep(1)
    await desk.look()
    assert verdict_on(desk.api, told) == desk.gate()["verdict"]


async def test_a_pod_that_somebody_names_at_a_gang_of_his_own_gets_its_patch(desk: Desk) -> None:
    """What he was told there says nothing of the pod."""
    victim = desk.see_pod(0)
    desk.see_pod(1)
    own = gangs.jobset(namespace="theirs", name="own", token="theirs")
    desk.index.on_jobset(Change(("theirs", "own"), None, own))
    decided = gangs.gate(namespace="theirs", name="own-group-scheduling", verdict=gangs.verdict())
    desk.index.on_gate(Change(("theirs", decided.name), None, decided))
    client = Client(desk, victim.uid, [], gone=False)
    request = desk.book.admit(Key("theirs", "own"), "theirs", Generation(own.uid, 0, 0), victim.uid, client)
    assert request.told
    desk.book.hear(request)
    await desk.look()
    assert verdict_on(desk.api, victim) == desk.gate()["verdict"]


@pytest.mark.parametrize("what", ["deleted", "suspended", "finished", "its pods went"])
async def test_a_gang_that_waits_no_more_gives_its_places_on_the_stream_back(desk: Desk, what: str) -> None:
    pods = [desk.see_pod(0, stage=Stage.WAITING), desk.see_pod(1, stage=Stage.WAITING)]
    heard = desk.ask(*pods)
    match what:
        case "deleted":
            desk.index.on_jobset(Change(("default", "train"), desk.jobset, None))
        case "its pods went":
            for pod in pods:
                desk.index.on_pod(Change(("default", pod.name), pod, None))
        case _:
            desk.see(msgspec.structs.replace(desk.jobset, **{what: True}))
    await desk.look()
    assert [(pod, said) for pod, said, _ in heard] == [(pod.uid, "dropped") for pod in pods]


@pytest.mark.parametrize("what", ["is suspended", "is restarted", "loses a pod", "is gone"])
async def test_a_gang_that_changes_while_the_api_is_asked_about_it_is_not_decided_on_what_it_was(
    desk: Desk, what: str
) -> None:
    """Its answer may take a client's whole patience."""
    pods = [desk.see_pod(0), desk.see_pod(1)]

    def meanwhile(call: Call) -> None:
        if (call.verb, call.kind) != ("get", JOBSETS):
            return
        match what:
            case "is suspended":
                desk.see(msgspec.structs.replace(desk.jobset, suspended=True))
            case "is restarted":
                desk.see(msgspec.structs.replace(desk.jobset, attempt=1))
            case "loses a pod":
                desk.index.on_pod(Change(("default", pods[0].name), pods[0], None))
            case _:
                desk.index.on_jobset(Change(("default", "train"), desk.jobset, None))

    desk.doors.fail = meanwhile
    with suppress(LookAgain):
        await desk.look()
    kept = desk.api.get(CONFIGMAPS, NAME)
    assert kept is None or names.KEY_VERDICT not in kept["data"]


async def test_a_clock_that_somebody_sets_back_makes_nobody_wait_longer_for_its_patch(desk: Desk) -> None:
    told, untold = desk.see_pod(0), desk.see_pod(1)
    desk.ask(told)
    await desk.look()
    first = dict(notes(desk.api, untold))
    desk.clock.ahead = -3600.0
    await asyncio.sleep(TOLD_PATIENCE)
    await desk.look()
    assert verdict_on(desk.api, told) == desk.gate()["verdict"]
    assert notes(desk.api, untold) != first, "a straggler"


async def test_whoever_was_told_and_turns_out_not_to_have_heard_is_patched_at_the_next_pass(desk: Desk) -> None:
    deaf = desk.see_pod(0)
    desk.see_pod(1)
    desk.ask(deaf)
    await desk.look()
    await asyncio.sleep(PATIENCE)
    await desk.look()
    assert verdict_on(desk.api, deaf) == ""
    desk.book.told.doubt(TRAIN, deaf.uid)
    await desk.look()
    assert verdict_on(desk.api, deaf) == desk.gate()["verdict"]


@pytest.mark.parametrize("error", [ServerError(500), Unreachable("silence"), BadAnswer("rubbish")])
async def test_a_gang_whose_condition_cannot_be_written_fails_in_time(desk: Desk, error: KubeError) -> None:
    desk.doors.fail = lambda call: error if call.verb == "patch" and call.kind == JOBSETS else None
    desk.see_pod(0)
    desk.see_pod(1, stage=Stage.WAITING)
    since = desk.clock()
    again = await desk.look()
    assert again == pytest.approx(300)
    await asyncio.sleep(300)
    await desk.look()
    assert desk.gate()[names.KEY_VERDICT].startswith("timeout ")
    assert desk.clock() - since < 302


async def test_whoever_was_lost_while_it_was_told_is_patched_like_those_without_a_stream(desk: Desk) -> None:
    lost = desk.see_pod(0)
    desk.see_pod(1)
    desk.ask(lost, gone=True)
    await desk.look()
    await asyncio.sleep(PATIENCE)
    await desk.look()
    assert verdict_on(desk.api, lost) == desk.gate()["verdict"]


async def test_a_suspended_gang_whose_configmap_is_lost_gets_its_last_verdict_back(desk: Desk) -> None:
    """A pod of the generation that it was for may still read it."""
    desk.see_pod(0)
    desk.see_pod(1)
    await desk.look()
    before = desk.gate()["verdict"]
    desk.see(msgspec.structs.replace(desk.jobset, suspended=True))
    desk.api.remove(CONFIGMAPS, NAME)
    desk.index.saw_gate(TRAIN, None)
    await desk.look()
    assert desk.gate()["verdict"] == before


async def test_a_gang_that_waits_has_a_gate_a_clock_and_a_time_to_look_again(desk: Desk) -> None:
    desk.see_pod(0)
    desk.see_pod(1, stage=Stage.WAITING)
    assert await desk.look() == pytest.approx(300)
    assert set(desk.gate()) == {names.KEY_WAITING_SINCE}


async def test_a_gang_whose_pods_are_refused_says_so_while_it_waits(desk: Desk) -> None:
    """Nothing tells a watch of pods that never come to be: it looks again by itself."""
    desk.see_pod(0)
    tell(desk.api, "Job", "train-workers-0", "FailedCreate", "exceeded quota: gpus")
    again = await desk.look()
    assert again == pytest.approx(hearing.PATIENCE)
    await asyncio.sleep(hearing.PATIENCE)
    assert await desk.look() == 0
    await asyncio.sleep(PROGRESS_EVERY)
    await desk.look()
    (told,) = desk.api.get(JOBSETS, "train")["status"]["conditions"]  # type: ignore[index]
    assert "missing: 1 pod: QuotaDenied: exceeded quota: gpus (workers-0/1); " in told["message"]
    assert "next: kubectl describe resourcequota -n default" in told["message"]


async def test_only_pods_whom_the_verdict_binds_are_told(desk: Desk) -> None:
    """Another replica has decided on an attempt that our view of the JobSet does not show yet."""
    of_ours = desk.see_pod(0)
    desk.api.change(JOBSETS, "train", lambda body: body.update(status={"restarts": 1}))
    seen = desk.index.observe(TRAIN)
    assert seen is not None
    await desk.gates.keep(seen, verdict(uid=desk.jobset.uid, attempt=1), None)
    await desk.look()
    await asyncio.sleep(PATIENCE)
    await desk.look()
    assert verdict_on(desk.api, of_ours) == ""
    assert verdicts.parse(desk.gate()["verdict"]) == verdict(uid=desk.jobset.uid, attempt=1)


async def test_a_verdict_that_stands_is_put_back_when_its_configmap_is_lost(desk: Desk) -> None:
    desk.see_pod(0)
    desk.see_pod(1)
    await desk.look()
    told = desk.api.get(JOBSETS, "train")
    assert told is not None
    (condition,) = told["status"]["conditions"]
    since = ConditionSeen(
        status=condition["status"], reason=condition["reason"], message=condition["message"], since=""
    )
    desk.see(msgspec.structs.replace(desk.jobset, condition=since))
    before = verdicts.parse(desk.gate()["verdict"])
    desk.api.remove(CONFIGMAPS, NAME)
    desk.index.saw_gate(TRAIN, None)
    await desk.look()
    assert verdicts.parse(desk.gate()["verdict"]) == before


@pytest.mark.parametrize("uid", ["jobsets-0", None])
async def test_a_condition_that_tells_of_another_jobset_or_of_none_is_no_verdict_on_this_one(
    desk: Desk, uid: str | None
) -> None:
    """It was written for its predecessor of the same name, or by a version that did not say for which it was."""
    told = report.decided(verdict(Kind.TIMEOUT, names.REASON_TIMED_OUT, uid=uid or "x"))
    message = told.message if uid else told.message.replace("uid x, ", "")
    condition = {"type": names.CONDITION, "status": told.status, "reason": told.reason, "message": message}
    desk.api.change(JOBSETS, "train", lambda body: body.update(status={"conditions": [condition]}))
    desk.see_pod(0)
    desk.see_pod(1)
    await desk.look()
    kept = verdicts.parse(desk.gate()["verdict"])
    assert kept is not None
    assert (kept.kind, kept.generation.uid) == (Kind.RELEASE, desk.jobset.uid)


@pytest.mark.parametrize("how", ["deleted", "emptied"])
async def test_a_verdict_of_which_only_the_api_knows_is_not_taken_anew(desk: Desk, how: str) -> None:
    """It was another replica's, its ConfigMap is lost, and the watch has not yet shown the condition that tells of it.

    All pods have started by now: in this view nothing speaks against a release.
    """
    taken = verdict(Kind.TIMEOUT, names.REASON_TIMED_OUT, uid=desk.jobset.uid)
    told = report.decided(taken)
    condition = {"type": names.CONDITION, "status": told.status, "reason": told.reason, "message": told.message}
    desk.api.change(JOBSETS, "train", lambda body: body.update(status={"conditions": [condition]}))
    if how == "emptied":
        desk.see_gate(data={"verdict": "?"})
    desk.see_pod(0)
    desk.see_pod(1)
    await desk.look()
    kept = verdicts.parse(desk.gate()["verdict"])
    assert kept is not None
    assert (kept.kind, kept.generation) == (Kind.TIMEOUT, taken.generation)


# --- A ConfigMap that somebody has edited well -----------------------------------------------------------------------


@pytest.mark.parametrize("restarted", [False, True], ids=["in sight", "while no controller ran"])
async def test_a_timeout_that_is_edited_into_a_release_is_put_back_and_nobody_is_told_the_release(
    desk: Desk, restarted: bool
) -> None:
    pods = [desk.see_pod(0)]
    await desk.look()
    await asyncio.sleep(301)
    await desk.look()
    before = desk.gate()[names.KEY_VERDICT]
    assert before.startswith("timeout ")
    edited = desk.edit(before.replace("timeout", "release", 1))
    if restarted:
        desk.see(desk.jobset_in_api())
        desk.index.remember(TRAIN, None)
    desk.index.saw_gate(TRAIN, edited)
    heard = desk.ask(*pods)
    await desk.look()
    assert desk.gate()[names.KEY_VERDICT] == before
    assert {text for _, text, _ in heard} <= {before}
    assert verdict_on(desk.api, pods[0]) in ("", before)


@pytest.mark.parametrize("where", ["7 0", "0 7"], ids=["attempt", "epoch"])
async def test_a_verdict_of_a_generation_that_does_not_exist_is_taken_out_and_the_gang_waits_on(
    desk: Desk, where: str
) -> None:
    first = desk.see_pod(0)
    await desk.look()
    clock = desk.gate()
    desk.index.saw_gate(TRAIN, desk.edit(f"release {desk.jobset.uid} {where} AllPodsStarted\n"))
    heard = desk.ask(first)
    await desk.look()
    assert (desk.gate(), heard, verdict_on(desk.api, first)) == (clock, [], "")
    desk.see_pod(1)
    await desk.look()
    assert desk.gate()[names.KEY_VERDICT].startswith(f"release {desk.jobset.uid} 0 0 ")


async def test_a_clock_of_an_attempt_that_does_not_exist_does_not_keep_the_gang_from_failing(desk: Desk) -> None:
    desk.see_pod(0)
    await desk.look()
    date = desk.gate()[names.KEY_WAITING_SINCE].split()[-1]
    desk.index.saw_gate(TRAIN, desk.edit(None, clock=f"{desk.jobset.uid} 7 0 {date}"))
    await desk.look()
    await asyncio.sleep(303)
    await desk.look()
    assert desk.gate()[names.KEY_VERDICT].startswith("timeout ")


async def test_a_verdict_that_the_view_does_not_bear_out_is_not_judged_without_asking_the_api(desk: Desk) -> None:
    desk.see_pod(0)
    await desk.look()
    text = f"release {desk.jobset.uid} 7 0 AllPodsStarted\n"
    desk.index.saw_gate(TRAIN, desk.edit(text))
    desk.doors.fail = lambda call: ServerError(500) if call.verb == "get" else None
    with pytest.raises(ServerError):
        await desk.look()
    assert desk.gate()[names.KEY_VERDICT] == text


async def test_without_asking_the_api_nothing_is_decided_for_a_gang_whose_configmap_is_lost(desk: Desk) -> None:
    desk.see_pod(0)
    desk.see_pod(1)
    desk.doors.fail = lambda call: ServerError(500) if call.verb == "get" else None
    with pytest.raises(ServerError):
        await desk.look()
    assert desk.asked() == ["get jobsets"]


@pytest.mark.parametrize("again", [False, True])
async def test_nothing_is_decided_for_a_jobset_that_is_gone_or_another_by_now(desk: Desk, again: bool) -> None:
    desk.see_pod(0)
    desk.see_pod(1)
    desk.api.remove(JOBSETS, "train")
    if again:
        store_jobset(desk.api)
    with pytest.raises(LookAgain):
        await desk.look()
    assert desk.api.get(CONFIGMAPS, NAME) is None


async def test_a_gang_whose_configmap_is_as_it_should_be_is_decided_without_asking(desk: Desk) -> None:
    desk.see_pod(0)
    await desk.look()
    desk.see_pod(1)
    before = len(desk.doors.asked)
    await desk.look()
    assert desk.asked()[before] == "update configmaps"


async def test_pods_that_do_not_wait_in_their_barrier_are_not_told(desk: Desk) -> None:
    waits, leaves = desk.see_pod(0), desk.see_pod(1)
    going = msgspec.structs.replace(leaves, deleting=True)
    desk.see(msgspec.structs.replace(desk.jobset, bypass=True))
    desk.index.on_pod(Change(("default", leaves.name), leaves, going))
    await desk.look()
    assert verdict_on(desk.api, waits)
    assert not verdict_on(desk.api, leaves)


@pytest.mark.parametrize("state", [{"finished": True}, {"deleting": True}, {"managed_elsewhere": True}])
async def test_a_gang_that_is_nobodys_business_is_left_in_peace(desk: Desk, state: dict[str, bool]) -> None:
    desk.see_pod(0)
    desk.see_pod(1)
    desk.see(msgspec.structs.replace(desk.jobset, **state))
    assert await desk.look() is None
    assert desk.asked() == []


async def test_a_gang_that_is_gone_is_left_in_peace(desk: Desk) -> None:
    desk.index.on_jobset(Change(("default", "train"), desk.jobset, None))
    assert await desk.look() is None
    assert desk.asked() == []


async def test_templates_without_a_barrier_get_a_condition_and_no_gate(desk: Desk) -> None:
    desk.see(msgspec.structs.replace(desk.jobset, replicated_jobs=(replicated_job(has_barrier=False),)))
    assert await desk.look() is None
    assert desk.asked() == ["create events", "patch jobsets"]


async def test_a_strangers_configmap_is_reported_and_looked_at_again(desk: Desk) -> None:
    theirs = desk.api.create(CONFIGMAPS, {"metadata": {"name": NAME}, "data": {"theirs": "x"}})
    desk.see_pod(0)
    desk.see_pod(1)
    assert await desk.look() == 0.0
    again = await desk.look()
    assert again is not None
    assert again > 1
    jobset = desk.api.get(JOBSETS, "train")
    assert jobset is not None
    assert jobset["status"]["conditions"][0]["reason"] == "ConfigMapConflict"
    assert desk.api.get(CONFIGMAPS, NAME) == theirs
    desk.api.remove(CONFIGMAPS, NAME)
    await desk.look()
    assert names.KEY_VERDICT in desk.gate()


async def test_before_a_timeout_the_api_is_asked_once_more(desk: Desk) -> None:
    desk.see_pod(0)
    await desk.look()
    await asyncio.sleep(301)
    before = len(desk.doors.asked)
    await desk.look()
    asked = desk.asked()[before:]
    assert asked.index("list pods") < asked.index("update configmaps")
    assert asked.index("list jobs") < asked.index("update configmaps")


async def test_a_timeout_that_the_api_does_not_confirm_is_not_taken(desk: Desk) -> None:
    desk.see_pod(0)
    await desk.look()
    await asyncio.sleep(301)
    desk.doors.fail = lambda call: ServerError(500) if call.kind == PODS else None
    with pytest.raises(ServerError):
        await desk.look()
    assert set(desk.gate()) == {names.KEY_WAITING_SINCE}


async def test_in_a_namespace_that_goes_nothing_is_tried_again(desk: Desk) -> None:
    cause = {"reason": "NamespaceTerminating", "message": "namespace default is being terminated"}
    desk.doors.fail = lambda call: Forbidden(403, details={"causes": [cause]}) if call.verb == "create" else None
    desk.see_pod(0)
    assert await desk.look() is None


async def test_any_other_refusal_is_an_error(desk: Desk) -> None:
    desk.doors.fail = lambda call: Forbidden(403, "Forbidden", "quota") if call.verb == "create" else None
    desk.see_pod(0)
    with pytest.raises(Forbidden):
        await desk.look()


async def test_a_loser_of_a_race_says_nothing_and_looks_again(desk: Desk) -> None:
    """Another replica has taken a verdict that this one has not seen."""
    desk.see_pod(0)
    await desk.look()
    desk.api.change(CONFIGMAPS, NAME, lambda body: body["data"].update(verdict="timeout x 0 0 TimedOut"))
    desk.see_pod(1)
    before = len(desk.doors.asked)
    with pytest.raises(LookAgain):
        await desk.look()
    assert desk.asked()[before:] == ["update configmaps", "get configmaps"]
