"""A controller of the model: views of pods and ConfigMap that lag, and a pass that may end before each of its calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.confirm import Read, next_read
from jobset_gate.barrier.decide import Facts, decide_on
from jobset_gate.barrier.decision import Decide, Enforce, Wait
from jobset_gate.barrier.member import Membership
from jobset_gate.barrier.model import BarrierStage, ConfigMapSeen, GangSnapshot, PodSeen, Verdict, WaitingSince
from jobset_gate.sources import startgroup
from tests.stress.attempts.world import KEY, GroupWorld

Pass = Iterator[None]


class ModelReplica:
    """One process. Tests break it by overriding `membership`, `reads_pods` or `answered`."""

    def __init__(self, world: GroupWorld) -> None:
        self.world = world
        self.boot()

    def boot(self) -> None:
        """A new process with empty memory, that lists everything. What it was doing ends where it was."""
        world = self.world
        self.pods = {uid: pod.seen for uid, pod in world.pods.items()}
        self._heard_pods, self._heard_gates = len(world.log), len(world.gates)
        self.gate = world.gate
        self._kept: Membership | None = None
        self._remembered: Verdict | None = None
        self._gate_uid = ""
        self.asked: dict[str, float] = {}
        """Pods that hold a request open at this process."""
        self._pass: Pass | None = None
        self._learn(self.gate)

    # --- What it sees ------------------------------------------------------------------------------------------------

    def hear_pods(self, many: int = 1_000_000) -> None:
        log = self.world.log
        for uid, pod in log[self._heard_pods : self._heard_pods + many]:
            if pod is None:
                self.pods.pop(uid, None)
                self.asked.pop(uid, None)
            else:
                self.pods[uid] = pod
        self._heard_pods = min(len(log), self._heard_pods + many)

    def hear_gate(self, many: int = 1_000_000) -> None:
        gates = self.world.gates
        for gate in gates[self._heard_gates : self._heard_gates + many]:
            self._learn(gate)
        self._heard_gates = min(len(gates), self._heard_gates + many)

    def ask(self, uid: str) -> None:
        """A barrier asks on the stream; a pod that is not in the cache is refused."""
        if uid in self.pods:
            self.asked.setdefault(uid, self.world.now)

    # --- What it does ------------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Goes on to the next call; False where a pass has ended."""
        if self._pass is None:
            self._pass = self._reconcile()
        if next(self._pass, self) is self:
            self._pass = None
            return False
        return True

    def finish(self) -> None:
        """A whole pass, after the one under way."""
        while self._pass is not None and self.step():
            pass
        while self.step():
            pass

    def membership(self, seen: GangSnapshot, *, begins: bool) -> Membership:
        return startgroup.membership_to_write(seen, begins=begins)

    def reads_pods(self, facts: Facts) -> bool:
        """Before a higher attempt is written, and before a group is given up."""
        return next_read(facts, 0.0, {Read.WORKLOAD, Read.CONFIG_MAP}) is not None

    def answered(self, seen: GangSnapshot) -> Sequence[PodSeen]:
        """Only pods of the snapshot that decided."""
        return seen.pods

    def _reconcile(self) -> Pass:
        seen = self._snapshot(tuple(self.pods.values()))
        if seen is None:
            return
        raw = tuple(self.pods.values())
        facts = Facts(seen, self.world.now)
        if self.reads_pods(facts):
            yield
            raw = tuple(pod.seen for pod in self.world.pods.values())
            if not raw:
                return
            seen = startgroup.regathered(msgspec.structs.replace(seen, pods=raw))
            seen = startgroup.regathered(msgspec.structs.replace(seen, announced=dict(self.asked)))
            facts = Facts(seen, self.world.now)
        decision = decide_on(facts)
        if isinstance(decision, Wait | Decide | Enforce):
            clock = decision.clock or (seen.own_config_map.waiting_since if seen.own_config_map else None)
            judged = raw if isinstance(decision, Decide) else None
            if self._differs(seen, decision.verdict, clock):
                yield
                if not self._write(seen, judged, decision.verdict, clock):
                    return
        if isinstance(decision, Decide | Enforce):
            yield from self._deliver(seen, decision.verdict)

    def _deliver(self, seen: GangSnapshot, verdict: Verdict) -> Pass:
        bound = [pod for pod in self.answered(seen) if pod.live and verdict.generation.attempt == seen.workload.attempt]
        for pod in bound:
            if self.asked.pop(pod.uid, None) is not None:
                self.world.deliver(pod.uid, verdict)
        text = verdict_codec.render(verdict)
        for pod in bound:
            if pod.stage is BarrierStage.RUNNING and pod.verdict != text:
                yield
                self.world.patch(pod.uid, verdict)

    def _snapshot(self, pods: tuple[PodSeen, ...]) -> GangSnapshot | None:
        gate, kept = self.gate, self._kept
        found = startgroup.gather(KEY, pods, kept, gate)
        if found is None:
            return None
        return GangSnapshot(
            workload=found.workload,
            jobs=(found.job,),
            pods=found.pods,
            config_map=gate,
            remembered=self._remembered,
            announced=dict(self.asked),
            membership=kept,
        )

    def _differs(self, seen: GangSnapshot, verdict: Verdict | None, clock: WaitingSince | None) -> bool:
        gate = seen.config_map
        return gate is None or (verdict, clock) != (gate.verdict, gate.waiting_since)

    def _write(
        self,
        seen: GangSnapshot,
        judged: Sequence[PodSeen] | None,
        verdict: Verdict | None,
        clock: WaitingSince | None,
    ) -> bool:
        """Whether the write was not a conflict. Either way the process knows the ConfigMap afterwards."""
        gate = seen.config_map
        known = () if gate is None else (gate.verdict, gate.waiting_since)
        fresh = (it for it in (verdict, clock) if it is not None and it not in known)
        begins = any(it.generation.attempt == seen.workload.attempt for it in fresh)
        membership = self.membership(seen, begins=begins)
        written = self.world.write_gate(seen.config_map, judged, verdict=verdict, clock=clock, membership=membership)
        self._heard_gates = len(self.world.gates)
        self._learn(self.world.gate)
        return written

    def _learn(self, gate: ConfigMapSeen | None) -> None:
        """Remembers what a ConfigMap said, though it is deleted later."""
        self.gate = gate
        if gate is None:
            return
        if gate.uid != self._gate_uid:
            self._kept, self._remembered, self._gate_uid = None, None, gate.uid
        self._kept = startgroup.latest(self._kept, gate.membership)
        self._remembered = gate.verdict or self._remembered
