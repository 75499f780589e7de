"""What became of a Job's pods: each success and each failure counted once, also of pods that just vanish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from jobset_gate.fake.job.pods import JobPod, indexed, size
from jobset_gate.fake.objects import FakeObject, Key, parse_indexes


@dataclass(slots=True)
class PodTracker:
    """The books of one Job. `failed` and the successes start from what the Job's status says."""

    uid: str
    pods: dict[Key, JobPod] = field(default_factory=dict)
    created: dict[Key, tuple[int | None, float]] = field(default_factory=dict)
    """Pods that were made and that no watch has shown yet: index, time of creation."""
    ours: set[str] = field(default_factory=set)
    """UIDs of pods that the Job itself deleted: not failures."""
    completed: set[int] = field(default_factory=set)
    succeeded_uids: set[str] = field(default_factory=set)
    succeeded_before: int = 0
    failed: int = 0
    counted: set[str] = field(default_factory=set)
    """UIDs of pods whose failure is counted, or ignored by policy."""
    streak: int = 0
    """Failures in a row since the last success, for the backoff."""
    last_failure: float = 0.0
    verdict: tuple[str, str] | None = None
    """Reason and message once the Job is to fail."""

    def load_status(self, job: FakeObject) -> None:
        """Take over what earlier books have told."""
        self.completed = parse_indexes(job.status.get("completedIndexes", ""))
        self.succeeded_before = 0 if indexed(job) else job.status.get("succeeded", 0)
        self.failed = job.status.get("failed", 0)

    def observe(self, old: JobPod | None, new: JobPod | None) -> JobPod | None:
        """A watch event. The answer is a pod that is gone and not booked yet, since it was not ours to delete."""
        if new is not None:
            self.pods[new.key] = new
            self.created.pop(new.key, None)
            return None
        if old is None:
            return None
        self.pods.pop(old.key, None)
        self.created.pop(old.key, None)
        booked = old.uid in self.ours or old.uid in self.counted or old.uid in self.succeeded_uids
        self.ours.discard(old.uid)
        return None if booked else old

    def release_pod(self, pod: JobPod) -> None:
        """It was taken from the Job: whatever becomes of it is not the Job's business."""
        self.pods.pop(pod.key, None)
        self.created.pop(pod.key, None)
        self.ours.discard(pod.uid)

    @property
    def succeeded(self) -> int:
        return len(self.completed) if self.completed else self.succeeded_before + len(self.succeeded_uids)

    @property
    def active(self) -> list[JobPod]:
        return [pod for pod in self.pods.values() if pod.active and pod.uid not in self.ours]

    @property
    def terminating(self) -> int:
        return sum(pod.terminating or (pod.uid in self.ours and not pod.over) for pod in self.pods.values())

    @property
    def taken(self) -> set[int]:
        """Indexes that have a pod, seen or not."""
        held = {pod.index for pod in self.active if pod.index is not None}
        return held | {index for index, _ in self.created.values() if index is not None}

    def expire_unseen(self, before: float) -> None:
        """Give up waiting to see pods that were made before that time: a list may have missed their short lives."""
        self.created = {key: made for key, made in self.created.items() if made[1] >= before}

    def record_finished(
        self, job: FakeObject, now: float, judge: Callable[[JobPod], bool], *, only_failed: bool
    ) -> None:
        """Book everything that has ended. `judge` says whether a failure counts; `only_failed`: a pod that is being
        deleted counts as failed only once it has ended.
        """
        for pod in self.pods.values():
            if pod.over or (pod.deleting and not only_failed):
                self.record_pod(job, pod, now, judge)

    def record_pod(self, job: FakeObject, pod: JobPod, now: float, judge: Callable[[JobPod], bool]) -> None:
        """Book one pod that has ended or is no more."""
        if pod.phase == "Succeeded":
            self._success(job, pod)
            return
        self._failure(pod, now, judge)

    def _failure(self, pod: JobPod, now: float, judge: Callable[[JobPod], bool]) -> None:
        """Book one failure, unless it was booked before, was our own doing, or does not count."""
        if pod.uid in self.counted or pod.uid in self.ours:
            return
        self.counted.add(pod.uid)
        if judge(pod):
            self.failed += 1
            self.streak += 1
            self.last_failure = now

    def _success(self, job: FakeObject, pod: JobPod) -> None:
        if pod.uid in self.succeeded_uids:
            return
        self.succeeded_uids.add(pod.uid)
        self.streak = 0
        if indexed(job) and pod.index is not None and pod.index < (size(job)[1] or 0):
            self.completed.add(pod.index)
