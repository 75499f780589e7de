"""The truth of one start group, and what must never happen to it.

A generation here is what people see: the pods that follow each other without a moment in which none of them lives.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.member import MemberSeen, Membership, ObjectSeen
from jobset_gate.barrier.model import (
    BarrierStage,
    ConfigMapSeen,
    GangKey,
    PodSeen,
    Verdict,
    VerdictKind,
    WaitingSince,
)
from jobset_gate.sources import startgroup
from tests.stress.attempts.judge import GroupJudge, GroupShape, size_of

OWNER = "owner"
KEY = GangKey("default", startgroup.gang_name("ring", OWNER), "startgroup")
BEGIN = 1_800_000_000


@dataclass(slots=True, eq=False)
class TruePod:
    """A pod as the API has it, and what its kubelet has not reported yet."""

    seen: PodSeen
    generation: int
    runs: bool = False
    """Its barrier runs, reported or not."""
    obeyed: VerdictKind | None = None

    @property
    def is_bare(self) -> bool:
        """It has no barrier and waits for nobody."""
        return self.seen.member is not None and not self.seen.member.has_barrier


class GroupWorld:
    """One start group. `log` and `gates` are all its versions: what watches will show."""

    def __init__(self, shape: GroupShape) -> None:
        self.shape, self.size = shape, shape.size
        self.now = float(BEGIN)
        self.pods: dict[str, TruePod] = {}
        self.log: list[tuple[str, PodSeen | None]] = []
        self.gate: ConfigMapSeen | None = None
        self.gates: list[ConfigMapSeen | None] = [None]
        self.judge = GroupJudge(shape)

    # --- Owner, kubelets, people -----------------------------------------------------------------------------------

    def live(self) -> list[TruePod]:
        return [pod for pod in self.pods.values() if pod.seen.live]

    def wanted(self) -> int:
        """How many pods the owner lacks: as many as the most patient of them waits for."""
        need = max([self.size, *(size_of(pod.seen) for pod in self.live())])
        done = sum(pod.seen.phase == "Succeeded" for pod in self.pods.values()) if self.shape.of_job else 0
        return max(0, need - done - len(self.live()))

    def create(self, *, bare: bool = False) -> None:
        """`bare`: the webhook was not there."""
        uid = f"pod-{len(self.judge.generations)}"
        generation = self.judge.created(uid, alone=not self.live())
        self._store(TruePod(_pod(uid, self.shape, self.size, self.now, bare=bare), generation))

    def start(self, pod: TruePod) -> None:
        """Its barrier runs; the kubelet will report it."""
        if pod.seen.live and not pod.runs:
            pod.runs = True
            if not pod.is_bare:
                self.judge.began(pod.seen.uid, self.now)

    def report(self, pod: TruePod) -> None:
        """The kubelet reports what has become of the barrier."""
        if not pod.runs or not pod.seen.live:
            return
        if pod.is_bare:
            self._change(pod, phase="Running")
        elif pod.obeyed is None:
            since = pod.seen.barrier_since or self.now
            self._change(pod, stage=BarrierStage.RUNNING, bound=True, barrier_since=since)
        elif pod.obeyed is VerdictKind.RELEASE:
            self._change(pod, stage=BarrierStage.PASSED, phase="Running", bound=True)
        else:
            self._change(pod, stage=BarrierStage.FAILED, phase="Failed", bound=True)

    def run_again(self, pod: TruePod) -> None:
        """The node restarted: init containers run again, and the barrier finds its release on the volume."""
        if pod.seen.live and pod.seen.stage is BarrierStage.PASSED:
            self._change(pod, stage=BarrierStage.RUNNING, phase="Pending")

    def end(self, pod: TruePod, phase: str) -> None:
        if pod.seen.live and (phase == "Failed" or pod.seen.phase == "Running"):
            self._change(pod, phase=phase)

    def delete(self, pod: TruePod, *, at_once: bool) -> None:
        if at_once:
            del self.pods[pod.seen.uid]
            self.log.append((pod.seen.uid, None))
        elif not pod.seen.deleting:
            self._change(pod, deleting=True)

    def lose_gate(self) -> None:
        """A user deletes the ConfigMap."""
        if self.gate is not None:
            self.judge.gate_was_lost = True
            self._set_gate(None)

    # --- What controllers do -----------------------------------------------------------------------------------------

    def write_gate(
        self,
        basis: ConfigMapSeen | None,
        judged: Iterable[PodSeen] | None,
        *,
        verdict: Verdict | None,
        clock: WaitingSince | None,
        membership: Membership,
    ) -> bool:
        """Compare-and-swap. `judged`: the pods, as they are or were, on which a new verdict was taken."""
        if basis is not self.gate:
            return False
        if self.gate is not None and self.gate.membership is not None:
            self.judge.moved(self.gate.membership, membership, {pod.seen.uid for pod in self.live()})
        if verdict is not None and judged is not None:
            self.judge.decided(verdict, list(judged), self.now)
        uid = f"gate-{len(self.gates)}" if self.gate is None else self.gate.uid
        self._set_gate(
            ConfigMapSeen(
                namespace=KEY.namespace,
                name="gate",
                uid=uid,
                resource_version=str(len(self.gates)),
                source=KEY.source,
                gang=KEY.name,
                workload_uid=OWNER,
                verdict=verdict,
                waiting_since=clock,
                canonical=True,
                membership=membership,
            )
        )
        return True

    def patch(self, uid: str, verdict: Verdict) -> None:
        """The annotation."""
        pod = self.pods.get(uid)
        if pod is not None:
            text = verdict_codec.render(verdict_codec.addressed(verdict, uid))
            self._change(pod, verdict=verdict_codec.addressee_verdict(text, uid, OWNER))

    def deliver(self, uid: str, verdict: Verdict) -> None:
        """A barrier that runs gets a verdict, from its volume or on the stream."""
        pod = self.pods.get(uid)
        if pod is None or not pod.runs or pod.is_bare or pod.obeyed is not None or not pod.seen.live:
            return
        self.judge.obeyed(uid, verdict)
        pod.obeyed = verdict.kind

    def read_annotation(self, pod: TruePod) -> None:
        verdict = verdict_codec.parse(pod.seen.verdict) if pod.seen.verdict else None
        if verdict is not None:
            self.deliver(pod.seen.uid, verdict)

    # --- The end -----------------------------------------------------------------------------------------------------

    def ended(self, *, all_started: bool) -> None:
        """Nothing disturbs the group any more, all pods that can start did, and the longest time has passed."""
        live = self.live()
        if all_started:
            stuck = [pod.seen.uid for pod in live if pod.seen.stage is not BarrierStage.PASSED and not pod.is_bare]
            if stuck or self.wanted():
                raise AssertionError(f"stuck: {stuck} of {len(live)} are not released; {self.gate}")
        elif self.shape.timeout is not None:
            stuck = [pod.seen.uid for pod in live if pod.runs and pod.obeyed is None and not pod.is_bare]
            if stuck:
                raise AssertionError(f"stuck: its time is up, and {stuck} wait; {self.gate}")

    # --- Details -----------------------------------------------------------------------------------------------------

    def _store(self, pod: TruePod) -> None:
        self.pods[pod.seen.uid] = pod
        self.log.append((pod.seen.uid, pod.seen))

    def _change(self, pod: TruePod, **fields: object) -> None:
        seen = msgspec.structs.replace(pod.seen, **fields)
        if seen == pod.seen:
            return
        pod.seen = seen
        self.log.append((pod.seen.uid, pod.seen))

    def _set_gate(self, gate: ConfigMapSeen | None) -> None:
        self.gate = gate
        self.gates.append(gate)


def _pod(uid: str, shape: GroupShape, size: int, now: float, *, bare: bool) -> PodSeen:
    api_version, kind = ("batch/v1", "Job") if shape.of_job else ("apps/v1", "StatefulSet")
    member = MemberSeen(
        owner=ObjectSeen(api_version=api_version, kind=kind, name="ring"),
        size=size,
        timeout=shape.timeout,
        bypass=False,
        releases_on_timeout=shape.releases_on_timeout,
        has_barrier=not bare,
    )
    return PodSeen(
        namespace=KEY.namespace,
        name=uid,
        uid=uid,
        source=KEY.source,
        gang=KEY.name,
        workload_uid=OWNER,
        job_uid=OWNER,
        replicated_job="",
        job_index=0,
        index=None,
        attempt=0,
        epoch=0,
        phase="Pending",
        deleting=False,
        bound=True,
        stage=BarrierStage.WAITING,
        created=now,
        barrier_since=None,
        main_since=None,
        verdict="",
        pending=None,
        member=member,
    )
