"""The world put together: an API, one gang, some controllers and a judge; and the way in which every run ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from jobset_gate import names
from jobset_gate.barrier import messages, verdict_codec
from jobset_gate.barrier.model import Generation, WaitingSince
from jobset_gate.kube.resources import CONFIGMAPS
from jobset_gate_demo.fake.clock import EPOCH
from tests.fakes.instant_loop import InstantLoop
from tests.fakes.memory_api import WATCHED, Api, Json, labels_of
from tests.stress.members.cluster import LeaderCluster, RingCluster
from tests.stress.members.oracle import LeaderOracle, RingOracle
from tests.stress.world.bare_job import JobCluster
from tests.stress.world.cluster import Cluster
from tests.stress.world.facts import CLOCK, VERDICT, alive, condition, finished, generation_of, parse_verdict
from tests.stress.world.objects import GangShape, holds, life_of_jobset
from tests.stress.world.oracle import Oracle
from tests.stress.world.replica import Replica
from tests.stress.world.streams import FakeStreams

CALM_STEP, LONGEST_STEP = 5.0, 60.0
"""Seconds that pass at once when nothing else happens: up to the next timer."""
FALSE_CLOCK = 90.0
"""Seconds by which a clock may be wrong."""
MOST_ROUNDS = 200
BUSY_ROUNDS = 6
"""Rounds of the end in which pods are still made and started; longer, and a failed gang would fail for ever."""


@dataclass(frozen=True, slots=True)
class RunEnding:
    """How a run ends, once nothing disturbs it any more."""

    all_start: bool = True
    """Every pod gets its node; otherwise those that have not started never will."""
    by_gate: bool = True
    """Barriers see the ConfigMap."""
    by_annotation: bool = True
    """Barriers see their pod's annotation."""
    resume: bool = True
    """A suspended gang is resumed."""


class World:
    """Runs a schedule by calling methods, then `end`; closed afterwards."""

    def __init__(self, shape: GangShape, replicas: int = 1) -> None:
        self.loop = InstantLoop()
        self.api = Api()
        self.cluster, self.oracle = self._judged_cluster(shape)
        self.streams = FakeStreams(self.cluster, self.loop)
        self.replicas = [Replica(self.api, self.loop, self.now, shape.source) for _ in range(replicas)]
        for replica in self.replicas:
            replica.memory.gate_written = partial(self.oracle.written, replica)
            replica.memory.gate_removed = self.oracle.removed
            replica.sent = partial(self.oracle.sent, replica)
            replica.boot()

    def _judged_cluster(self, shape: GangShape) -> tuple[Cluster, Oracle]:
        if shape.source == "startgroup":
            ring = RingCluster(self.api, self.now, shape)
            return ring, RingOracle(self.api, ring, self.now)
        if shape.source == "lws":
            group = LeaderCluster(self.api, self.now, shape)
            return group, LeaderOracle(self.api, group, self.now)
        cluster = (JobCluster if shape.source == "job" else Cluster)(self.api, self.now, shape)
        return cluster, Oracle(self.api, cluster, self.now)

    def close(self) -> None:
        for replica in self.replicas:
            replica.kill()
        self.loop.close()

    def now(self) -> float:
        """The true time."""
        return EPOCH + self.loop.now

    def check(self) -> None:
        """Nothing forbidden has happened so far."""
        self.oracle.check()
        for foul in (*self.oracle.wrongs, *(bug for replica in self.replicas for bug in replica.bugs)):
            raise foul

    # --- Trouble ---------------------------------------------------------------------------------------------------

    def set_clock(self, replica: Replica, ahead: float) -> None:
        """A user sets a controller's clock to so many seconds before or after the true time."""
        assert abs(ahead) <= FALSE_CLOCK
        replica.clock_ahead = ahead
        self.clocks_differ()

    def clocks_differ(self) -> None:
        """Times are no longer to be trusted."""
        self.oracle.skewed = True

    def destroy_gate(self, how: str) -> None:
        """A user deletes or edits the ConfigMap."""
        stored = self.api.get(CONFIGMAPS, self.cluster.gate)
        if stored is None:
            return
        if how != "disown":
            self.oracle.edited()
        if how == "delete":
            self.api.remove(CONFIGMAPS, self.cluster.gate)
            return
        edits: dict[str, Callable[[Json], object]] = {
            "garble": lambda body: body.update(data={VERDICT: "release me", CLOCK: "now", "more": "words"}),
            "empty": lambda body: body.update(data={}),
            "disown": lambda body: body["metadata"].update(ownerReferences=[]),
            "unlabel": lambda body: body["metadata"].update(labels={}),
        }
        if how not in edits:
            forged = self._forged(how)
            edits[how] = lambda body: body["data"].update(forged)
        self.api.change(CONFIGMAPS, self.cluster.gate, edits[how])

    def edit_clock(self, by: float) -> None:
        """A user sets the clock in the ConfigMap to so many seconds from what it shows."""
        stored = self.api.get(CONFIGMAPS, self.cluster.gate)
        shown = verdict_codec.parse_clock(((stored or {}).get("data") or {}).get(CLOCK, ""))
        if stored is None or shown is None:
            return
        self.oracle.clock_edited()
        text = {CLOCK: verdict_codec.render_clock(WaitingSince(generation=shown.generation, at=shown.at + by))}
        self.api.change(CONFIGMAPS, self.cluster.gate, lambda body: body["data"].update(text))

    def _forged(self, how: str) -> dict[str, str]:
        """Well-formed news and a clock of a generation that nobody will ever reach."""
        jobset = self.cluster.jobset
        if jobset is None:
            return {}
        life, far = life_of_jobset(jobset), 50
        attempt, epoch = (life.attempt + far, 0) if how == "forge an attempt" else (life.attempt, life.epoch + far)
        its = Generation(life.uid, attempt, epoch)
        text = f"release {its.uid} {attempt} {epoch} {names.REASON_STARTED}\nforged\n"
        self.cluster.forged.add(text)
        return {VERDICT: text, CLOCK: verdict_codec.render_clock(WaitingSince(generation=its, at=self.now()))}

    # --- The end ---------------------------------------------------------------------------------------------------

    def end(self, fate: RunEnding) -> None:
        """Disturbances stop and views catch up; then every gang has to come to its end."""
        for replica in self.replicas:
            if not replica.alive:
                replica.boot()
            replica.notice_silence(after=0.0)
            for kind in WATCHED:
                if kind in replica.torn:
                    replica.begin_list(kind)
        calm, busy = 0.0, 0
        while calm < self._patience():
            before = self.api.version
            self._go_on(busy, fate)
            self.check()
            if self.api.version == before:
                step = min(max(self.loop.until_next_timer(), CALM_STEP), LONGEST_STEP)
                calm += step
                self.loop.advance(step)
                continue
            busy += 1
            assert busy < MOST_ROUNDS, "it never comes to rest"
        assert not (fate.resume and self.cluster.going_on and self.cluster.suspended), "it cannot be resumed"
        self._ended(fate)

    def deliver(self) -> None:
        """All views catch up and all calls go through, until nothing moves."""
        for _ in range(1_000):
            busy = False
            for replica in self.replicas:
                for kind in replica.unheard():
                    busy = True
                    replica.hear(kind)
                while replica.pending_calls:
                    busy = True
                    replica.answer()
            if not busy:
                return
        raise AssertionError("controllers answer each other for ever")

    def _go_on(self, busy: int, fate: RunEnding) -> None:
        """One round in which everybody does what there is to do."""
        if self.cluster.suspended and fate.resume:
            self.cluster.resume()
        self._remove_unrelated()
        self.cluster.collect()
        self.streams.end_of_the_dead()
        if busy < BUSY_ROUNDS:
            self.cluster.sync_jobset()
            self.cluster.sync_jobs()
        self._pods_go_on(start=fate.all_start and busy < BUSY_ROUNDS)
        self.deliver()
        self._barriers_go_on(fate)

    def _pods_go_on(self, *, start: bool) -> None:
        for pod in self.cluster.pods():
            if "deletionTimestamp" in pod["metadata"]:
                self.cluster.vanish(pod)
        for pod in self.cluster.unstarted() if start else ():
            self.cluster.start(pod)

    def _barriers_go_on(self, fate: RunEnding) -> None:
        for pod in self.cluster.pods():
            self.cluster.report(pod)
        for pod in self.cluster.waiting():
            for text, works in zip(self.cluster.readable(pod), (fate.by_gate, fate.by_annotation), strict=True):
                if works and self.cluster.look(pod, text):
                    break

    def _remove_unrelated(self) -> None:
        """A ConfigMap that is not ours is taken away by a client that it belongs to."""
        stored = self.api.get(CONFIGMAPS, self.cluster.gate)
        if stored is not None and not labels_of(stored).get(names.GATE):
            self.api.remove(CONFIGMAPS, self.cluster.gate)

    def _patience(self) -> float:
        # The longest pauses: a straggler's next patch, a look past an unrelated ConfigMap, a timeout.
        return 130.0 + (self.cluster.shape.timeout or 0) + 4 * FALSE_CLOCK * self.oracle.skewed

    def _ended(self, fate: RunEnding) -> None:
        self.oracle.ended(all_start=fate.all_start)
        self.check()
        cluster = self.cluster
        jobset = cluster.jobset
        if jobset is None or finished(jobset):
            return
        reported = condition(jobset)
        assert reported is not None, "no condition was written"
        if cluster.suspended:
            assert reported["message"] == "suspended", reported
            return
        stored = self.api.get(CONFIGMAPS, self.cluster.gate)
        assert stored is not None, "there is no gate"
        kept = stored["data"].get(VERDICT, "")
        assert kept not in cluster.forged, f"a forged verdict was believed: {kept}"
        verdict, said = verdict_codec.parse(kept), parse_verdict(kept)
        pods = [pod for pod in cluster.pods() if alive(pod)]
        held = [pod["metadata"]["name"] for pod in cluster.waiting() if holds(pod)]
        bypassed = jobset["metadata"]["annotations"].get(names.BYPASS) == "true"
        assert not (bypassed and held), f"held for ever: {held}; {stored['data']}; {reported}"
        assert not bypassed or verdict is not None, f"bypassed, and nothing decided: {reported}"
        lives = [generation_of(pod) for pod in pods] or [life_of_jobset(jobset)]
        if verdict is not None and said is not None and all(map(said.binds, lives)):
            want = messages.decided(verdict)
            shown = (reported["status"], reported["reason"], reported["message"])
            assert shown == (want.status, want.reason, want.message)
