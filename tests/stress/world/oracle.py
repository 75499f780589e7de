"""The judge: what the contract forbids, found in the trace of API objects, requests sent, and barriers.

Its reading of the contract is `facts.py`; it knows nothing of the product's rules. What a controller may know is what
the world has delivered to it.

* No release below the full count (A4, A6): when a release is sent, every slot is filled by what that controller was
  reported; by what is true, every pod that it counted was there a short while ago.
* No timeout before its time (A7), and none sent for a gang that the controller knows to be complete, or without a look
  at its Jobs and pods. A bypass was requested, and nothing is decided while the JobSet is suspended.
* None for a failed index (A7) without such an index, as the controller knows after a look at the Jobs.
* No double verdict (A6): of one generation, one kind, and never one for an earlier generation in its place; only if a
  user destroys a verdict before any trace of it has reached the controller (the condition, an annotation, a barrier
  that passed) may another be written, and only after a look at the JobSet.
* A ConfigMap is written whole, one of another UID is never adopted, and only an earlier JobSet's is removed (A10).
* No pod is annotated before the verdict is written (A6).
* No stale release (A5): no barrier obeys what was decided before its generation began, or what no ConfigMap held.
* Nothing for a JobSet that is gone (A10): no ConfigMap made for it, and no condition of one on another.
* Clocks never move (A7), unless another client has moved them.
* No gang is forgotten (A6, A7): once nothing disturbs it any more, a complete gang is released, one whose time is up
  or that has lost an index for good is ended, and no barrier of a decided generation waits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from jobset_gate import names
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, PODS, Resource
from tests.stress.world import facts
from tests.stress.world.facts import CLOCK, VERDICT, Json, RawGeneration, RawVerdict, notes_of

if TYPE_CHECKING:
    from tests.fakes.memory_api import Api
    from tests.fakes.memory_client import Call
    from tests.stress.world.cluster import Cluster
    from tests.stress.world.replica import Replica

AT_ONCE = 1.0
"""Seconds that a write may come after what it goes by."""
UNNOTICED = 10.0
"""Seconds for which a pod may be gone and yet be counted."""
AHEAD = 600.0
"""Seconds by which a clock in a ConfigMap may be ahead and yet be believed."""


class Oracle:
    """Sees everything; `wrongs` is what it found."""

    def __init__(self, api: Api, cluster: Cluster, now: Callable[[], float]) -> None:
        self._api, self._cluster, self._now = api, cluster, now
        self.wrongs: list[AssertionError] = []
        self.skewed = False
        """A user has set a clock."""
        self._kinds: dict[RawGeneration, str] = {}
        self._destroyed: dict[RawGeneration, str] = {}
        """Texts of the verdicts that another client has deleted or changed."""
        self._held: dict[str, int] = {}
        """Every verdict that a controller put into the ConfigMap, by its text, and since which version."""
        self._clocks: dict[RawGeneration, str] = {}
        self._moved: set[RawGeneration] = set()
        """Of these another client has set the clock: it need not be what pods bear out, but it must be able to be."""
        self._made: dict[str, float] = {}
        """UIDs of JobSets, and since when they are there."""
        self._gone: dict[str, float] = {}
        """UIDs of JobSets that are no more, and since when."""
        self._late: list[str] = []
        """UIDs of JobSets for which a ConfigMap was made when they were gone."""
        self._lost: dict[str, float] = {}
        """UIDs of pods that count no more, and since when."""
        self._started: set[str] = set()
        """UIDs of Jobs that run and have a startTime."""
        self._judged = 0
        api.watchers.append(self._happened)

    # --- What happens ------------------------------------------------------------------------------------------------

    def _happened(self, kind: Resource, what: str, body: Json) -> None:
        uid = body["metadata"]["uid"]
        if kind == JOBS:
            self._start_stays(what, body)
        if kind == self._cluster.workloads and what == "DELETED":
            self._gone[uid] = self._now()
        elif kind == self._cluster.workloads:
            self._made.setdefault(uid, self._now())
            self._condition(body)
        elif kind == PODS and (what == "DELETED" or not facts.alive(body)):
            self._lost.setdefault(uid, self._now())

    def _start_stays(self, what: str, job: Json) -> None:
        """A running Job keeps its startTime (K4)."""
        uid, runs = job["metadata"]["uid"], not job["spec"].get("suspend") and what != "DELETED"
        started = "startTime" in (job.get("status") or {})
        if runs and uid in self._started and not started:
            self._wrong(f"the start of Job {uid} was cleared while it runs")
        (self._started.add if runs and started else self._started.discard)(uid)

    def edited(self) -> None:
        """Another client has deleted or changed the ConfigMap: what it held may be decided, or measured, again."""
        data = self._data()
        said = facts.parse_verdict(data.get(VERDICT, ""))
        self._clocks.clear()
        if said is not None and said.its in self._kinds:
            del self._kinds[said.its]
            self._destroyed[said.its] = data[VERDICT]

    def clock_edited(self) -> None:
        """Another client has set the clock in the ConfigMap."""
        clock = facts.clock(self._data().get(CLOCK, ""))
        if clock is not None:
            self._clocks.pop(clock[0], None)
            self._moved.add(clock[0])

    def sent(self, replica: Replica, call: Call) -> None:
        """A controller sends this, for the first time or again."""
        if call.kind != CONFIGMAPS or call.verb not in ("create", "update"):
            return
        uid = facts.jobset_uid(call.body)
        gone = self._gone.get(uid)
        if call.verb == "create" and gone is not None and gone < self._now() - AT_ONCE:
            # It may have gone while this very request was under way to be sent.
            self._late.append(uid)
            if self._late.count(uid) > 1:
                self._wrong(f"a ConfigMap is made for JobSet {uid}, which is gone since {self._now() - gone:.0f} s")
        said = facts.parse_verdict(call.body["data"].get(VERDICT, ""))
        if said is None or self._stood(said):
            return
        jobset = replica.view.raw.jobset
        if jobset is not None and jobset["spec"].get("suspend"):
            self._wrong(f"{said} is sent while the JobSet is suspended")
        if said.cause == "AllPodsStarted":
            self._full(replica, said)
        elif said.cause in ("TimedOut", "IndexFailed"):
            self._not_full(replica, said)
            if bool(facts.lost(jobset, replica.view.raw.jobs)) is not (said.cause == "IndexFailed"):
                self._wrong(f"{said} is sent, and of indexes that have failed for good the controller knows otherwise")
        elif jobset is None or notes_of(jobset).get(names.BYPASS) != "true":
            self._wrong(f"{said} is sent, and nobody requested it")

    def written(self, replica: Replica, old: Json | None, new: Json) -> None:
        """A controller has put this into the ConfigMap, in the place of that."""
        if not facts.intact(new):
            self._wrong(f"not written whole: {new}")
        stood: Json = (old or {}).get("data") or {}
        was = {} if stood.get(VERDICT) in self._cluster.forged else stood
        if old is not None and was and facts.jobset_uid(old) not in ("", facts.jobset_uid(new)):
            self._wrong(f"a ConfigMap of another UID was adopted: {old}")
        text = new["data"].get(VERDICT, "")
        said, before = facts.parse_verdict(text), facts.parse_verdict(was.get(VERDICT, ""))
        if before is not None and (said is None or facts.order(said.its) < facts.order(before.its)):
            self._wrong(f"{before} was taken back for {said}")
        if said is not None:
            if not self._stood(said):
                self._first(replica, said, doubtful=old is None or not facts.intact(old))
            self._verdict(said, text)
        self._clock_stays(facts.clock(was.get(CLOCK, "")), facts.clock(new["data"].get(CLOCK, "")), said)

    def removed(self, old: Json) -> None:
        """A controller has removed this ConfigMap."""
        jobset, uid = self._cluster.jobset, facts.jobset_uid(old)
        if not uid or (jobset is not None and jobset["metadata"]["uid"] == uid):
            self._wrong(f"removed although it is in use, or unrelated: {old}")

    # --- Judgements --------------------------------------------------------------------------------------------------

    def _full(self, replica: Replica, said: RawVerdict) -> None:
        """By what the watches had shown this controller when it decided, or what it had looked up for that."""
        raw = replica.view.raw
        missing = facts.lacking(raw.jobset, raw.jobs, raw.pods, raw.announced)
        if raw.jobset is None or missing != []:
            self._wrong(f"{said} is sent below the full count: {missing}")
            return
        mine = facts.counted(raw.jobset, raw.jobs, raw.pods, raw.announced)
        epochs = {facts.generation_of(pod).epoch for pod in mine}
        if epochs and said.its.epoch != max(epochs):
            self._wrong(f"{said} is not of the highest epoch that a counted pod carries: {epochs}")
        true = facts.lacking(self._cluster.jobset, self._api.all(JOBS), self._api.all(PODS), raw.announced)
        for pod in mine:
            uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
            if uid not in self._cluster.ran:
                self._wrong(f"{said} counts {name}, whose barrier never ran")
            gone_for = self._now() - self._lost.get(uid, math.inf)
            if true != [] and gone_for > UNNOTICED + self._ahead() and PODS not in replica.disordered:
                self._wrong(f"{said} counts {name}, gone since {gone_for:.0f} s")

    def _not_full(self, replica: Replica, said: RawVerdict) -> None:
        raw = replica.view.raw
        lenient = raw.jobset is not None and notes_of(raw.jobset).get(names.ON_TIMEOUT) == names.ON_TIMEOUT_RELEASE
        if not replica.view.closer or said.kind != ("release" if lenient else "timeout"):
            self._wrong(f"{said} is sent without a look at Jobs and pods, or against the JobSet's on-timeout")
        same = raw.jobset is not None and int(raw.jobset["status"].get("restarts") or 0) == said.its.attempt
        if same and facts.lacking(raw.jobset, raw.jobs, raw.pods, raw.announced) == []:
            self._wrong(f"{said} is sent for a gang known to be complete")

    def _first(self, replica: Replica, said: RawVerdict, *, doubtful: bool) -> None:
        """It is no repetition. `doubtful`: there is no ConfigMap, or another client has changed it."""
        its = said.its
        if not any((one.uid, one.attempt) == (its.uid, its.attempt) and one >= its for one in self._cluster.began):
            self._wrong(f"{said} is for a generation that has not begun")
        if doubtful and replica.view.recalled is None:
            self._wrong(f"{said} is written without a look at the JobSet")
        lost = self._destroyed.get(said.its, "")
        if lost and not lost.startswith(said.kind) and self._traces(replica, lost, said.its):
            self._wrong(f"{said}, though the controller has seen traces of {lost}")

    def _traces(self, replica: Replica, text: str, its: RawGeneration) -> bool:
        """Whether what this controller has seen shows that this verdict was written."""
        jobset, mark = replica.view.raw.jobset, f"(uid {its.uid}, attempt {its.attempt}, epoch {its.epoch})"
        condition = facts.condition(jobset) if jobset is not None else None
        if any(words.endswith(mark) for words in (replica.view.recalled or "", (condition or {}).get("message", ""))):
            return True
        return any(
            notes_of(pod).get(names.VERDICT) == text
            or (
                text.startswith("release")
                and facts.generation_of(pod) == its
                and facts.alive(pod)
                and facts.barrier(pod).get("terminated", {}).get("exitCode") == 0
            )
            for pod in replica.view.raw.pods
        )

    def _clock_stays(
        self, was: tuple[RawGeneration, str] | None, new: tuple[RawGeneration, str] | None, said: RawVerdict | None
    ) -> None:
        """A clock is dropped or replaced with a later generation only."""
        if new is not None:
            self._clock(*new)
        if was is None or was == new or was[0] in self._moved:
            return
        its = new[0] if new is not None else said.its if said is not None else None
        if its is None or facts.order(its) <= facts.order(was[0]):
            self._wrong(f"the clock {was} became {new}")

    def _verdict(self, said: RawVerdict, text: str) -> None:
        kind = self._kinds.setdefault(said.its, said.kind)
        if kind != said.kind:
            self._wrong(f"{said}, and it was {kind} before")
        if text in self._held:
            return
        again = any(facts.parse_verdict(one) == said for one in self._held)
        self._held[text] = self._api.version
        if said.cause == "TimedOut" and not self.skewed and not again:
            begun = [at for life, at in self._cluster.first_ran.items() if said.binds(life)]
            timeout = self._cluster.shape.timeout or 0
            if any((one.uid, one.attempt) == (said.its.uid, said.its.attempt) for one in self._moved):
                begun.append(self._made[said.its.uid])
            if not begun or self._now() < int(min(begun)) + timeout:
                self._wrong(f"{said} at {self._now()}, before its time: {timeout} s after {min(begun, default=None)}")

    def _clock(self, its: RawGeneration, shown: str) -> None:
        stood = self._clocks.setdefault(its, shown)
        # A create that was long on its way may come when its workload has gone, and its first ConfigMap, too.
        if stood != shown and its.uid not in self._gone:
            self._wrong(f"the clock of {its} moved from {stood} to {shown}")
        at = datetime.fromisoformat(shown).timestamp()
        if its in self._moved and not self._made[its.uid] - self._ahead() <= at <= self._now() + AHEAD + self._ahead():
            self._wrong(f"the clock of {its} shows {shown} at {self._now()}, which cannot be")
        if its in self._moved:
            return
        starts = self._cluster.first_ran.items()
        begun = [at for life, at in starts if (life.uid, life.attempt) == (its.uid, its.attempt)]
        if not self.skewed and not (begun and int(min(begun)) <= at <= self._now() + 0.001):
            self._wrong(f"the clock of {its} shows {shown} at {self._now()}, and the first pod ran at {begun}")

    def _condition(self, jobset: Json) -> None:
        """It tells of what was decided on this very JobSet."""
        it = facts.condition(jobset)
        if it is None or it["reason"] not in facts.DECIDED:
            return
        decided = {(one.its.uid, one.kind) for one in map(facts.parse_verdict, self._held) if one is not None}
        uid = jobset["metadata"]["uid"]
        if (uid, "release" if it["status"] == "True" else "timeout") not in decided:
            self._wrong(f"JobSet {uid} has a condition that was not decided on it: {it}")

    def check(self) -> None:
        """What is delivered, and what barriers obeyed."""
        for pod in self._api.all(PODS):
            text = notes_of(pod).get(names.VERDICT)
            if text and text not in self._cluster.published:
                self._wrong(f"delivered before it was written: {text}")
        for passage in self._cluster.passages[self._judged :]:
            said, life = facts.parse_verdict(passage.text), passage.life
            held, began = self._held.get(passage.text), self._cluster.began.get(life)
            if said is None or not said.binds(life):
                self._wrong(f"{passage} obeys what does not bind it")
            elif held is None or began is None or held <= began:
                self._wrong(f"stale: {passage} obeys what no controller decided since its generation began")
        self._judged = len(self._cluster.passages)

    def ended(self, *, all_start: bool) -> None:
        """Nothing disturbs it any more, and a long time has passed: is anybody forgotten?"""
        jobset = self._cluster.jobset
        if jobset is None or facts.finished(jobset) or jobset["spec"]["suspend"]:
            return
        jobs, pods = self._api.all(JOBS), self._api.all(PODS)
        said = facts.parse_verdict(self._data().get(VERDICT, ""))
        missing = facts.lacking(jobset, jobs, pods, ())
        waiting = [pod for pod in pods if facts.alive(pod) and "running" in facts.barrier(pod)]
        undecided = [pod for pod in waiting if said is None or not said.binds(facts.generation_of(pod))]
        if missing == [] and undecided:
            self._wrong(f"complete, and {len(undecided)} pods are not released; {said}")
        if missing == [] and said is None:
            self._wrong("complete, and nothing was decided")
        if undecided and (self._cluster.shape.timeout is not None or facts.lost(jobset, jobs)):
            self._wrong(f"its time is up, and {len(undecided)} pods wait; {said}")

    # --- Details -----------------------------------------------------------------------------------------------------

    def _stood(self, said: RawVerdict) -> bool:
        """It was decided before; it is only put right, perhaps by who has seen a barrier that passed."""
        held = (facts.parse_verdict(one) for one in self._held)
        return any(one is not None and one.kind == said.kind and one.binds(said.its) for one in held)

    def _data(self) -> Json:
        """Of the ConfigMap as it stands."""
        return (self._api.get(CONFIGMAPS, self._cluster.gate) or {}).get("data") or {}

    def _ahead(self) -> float:
        """Seconds by which a user's clock may be wrong."""
        return 90.0 if self.skewed else 1.0

    def _wrong(self, words: str) -> None:
        self.wrongs.append(AssertionError(words))
