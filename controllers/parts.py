"""One gang, put together from what the informers tell of it, and how much of its ConfigMap is to be believed."""

from dataclasses import dataclass, field

from jobset_gate.doubts import edited, has_begun
from jobset_gate.model import GangSeen, GateSeen, JobSeen, JobSetSeen, PodSeen, Verdict


@dataclass(slots=True)
class Parts:
    """`gate` and `jobset` change by `take` and `meet` only."""

    jobset: JobSetSeen | None = None
    jobs: dict[str, JobSeen] = field(default_factory=dict)
    pods: dict[str, PodSeen] = field(default_factory=dict)
    """By UID."""
    announced: dict[str, float] = field(default_factory=dict)
    """UIDs of pods that hold the gate stream open, known or not, and since when."""
    gate: GateSeen | None = None
    remembered: Verdict | None = None
    foreign_gate: bool = False
    lacking: int = 0
    """Slots lacking at the last pass."""
    starts: int = 0
    """Pods that started since."""

    @property
    def empty(self) -> bool:
        """Nothing of it is left."""
        return self.jobset is None and not self.jobs and not self.pods and self.gate is None and not self.announced

    def meet(self, jobset: JobSetSeen | None) -> None:
        """The JobSet is like this by now."""
        self.jobset = jobset
        self._believe()

    def take(self, gate: GateSeen | None) -> None:
        """The ConfigMap is."""
        self.gate = gate
        self._believe()

    @property
    def decided(self) -> Verdict | None:
        """What the gang's own ConfigMap holds, unless it is not (yet) to be believed."""
        kept = self._kept
        return kept if kept is not None and kept == self.remembered else None

    def seen(self) -> GangSeen | None:
        """All of it at this moment; None without its JobSet."""
        if self.jobset is None:
            return None
        return GangSeen(
            jobset=self.jobset,
            jobs=tuple(self.jobs.values()),
            pods=tuple(self.pods.values()),
            gate=self.gate,
            remembered=self.remembered,
            foreign_gate=self.foreign_gate,
            announced=dict(self.announced),
        )

    @property
    def _kept(self) -> Verdict | None:
        """What the ConfigMap of this life of the JobSet holds."""
        jobset, gate = self.jobset, self.gate
        return gate.verdict if jobset is not None and gate is not None and gate.jobset_uid == jobset.uid else None

    def _believe(self) -> None:
        """Keeps in mind the verdict that the ConfigMap holds: the first of its generation, and none out of the blue."""
        kept, known = self._kept, self.remembered
        if kept is None or self.jobset is None or edited(kept, self.jobset, known) or _older(kept, known):
            return
        if has_begun(kept.generation, self.jobset, self.pods.values()):
            self.remembered = kept


def _older(one: Verdict, other: Verdict | None) -> bool:
    if other is None or other.generation.uid != one.generation.uid:
        return False
    return (one.generation.attempt, one.generation.epoch) < (other.generation.attempt, other.generation.epoch)
