"""One gang, put together from what the informers tell of it, and how much of its ConfigMap is to be believed."""

from dataclasses import dataclass, field

from jobset_gate.barrier.integrity import has_started, was_edited
from jobset_gate.barrier.model import ConfigMapSeen, GangSnapshot, JobSeen, JobSetSeen, PodSeen, Verdict


@dataclass(slots=True)
class GangEntry:
    """`gate` and `jobset` change by `take` and `meet` only."""

    jobset: JobSetSeen | None = None
    jobs: dict[str, JobSeen] = field(default_factory=dict)
    pods: dict[str, PodSeen] = field(default_factory=dict)
    """By UID."""
    announced: dict[str, float] = field(default_factory=dict)
    """UIDs of pods that hold the gate stream open, known or not, and since when."""
    config_map: ConfigMapSeen | None = None
    remembered: Verdict | None = None
    config_map_conflict: bool = False
    missing_count: int = 0
    """Slots lacking at the last pass."""
    starts_since_pass: int = 0
    """Pods that started since."""

    @property
    def is_empty(self) -> bool:
        """Nothing of it is left."""
        return (
            self.jobset is None and not self.jobs and not self.pods and self.config_map is None and not self.announced
        )

    def set_jobset(self, jobset: JobSetSeen | None) -> None:
        """The JobSet is like this by now."""
        self.jobset = jobset
        self._update_remembered()

    def set_config_map(self, gate: ConfigMapSeen | None) -> None:
        """The ConfigMap is."""
        self.config_map = gate
        self._update_remembered()

    @property
    def trusted_verdict(self) -> Verdict | None:
        """What the gang's own ConfigMap holds, unless it is not (yet) to be believed."""
        kept = self._stored_verdict
        return kept if kept is not None and kept == self.remembered else None

    def snapshot(self) -> GangSnapshot | None:
        """All of it at this moment; None without its JobSet."""
        if self.jobset is None:
            return None
        return GangSnapshot(
            jobset=self.jobset,
            jobs=tuple(self.jobs.values()),
            pods=tuple(self.pods.values()),
            config_map=self.config_map,
            remembered=self.remembered,
            config_map_conflict=self.config_map_conflict,
            announced=dict(self.announced),
        )

    @property
    def _stored_verdict(self) -> Verdict | None:
        """What the ConfigMap of this life of the JobSet holds."""
        jobset, gate = self.jobset, self.config_map
        return gate.verdict if jobset is not None and gate is not None and gate.jobset_uid == jobset.uid else None

    def _update_remembered(self) -> None:
        """Keeps in mind the verdict that the ConfigMap holds: the first of its generation, and none out of the blue."""
        kept, known = self._stored_verdict, self.remembered
        if kept is None or self.jobset is None or was_edited(kept, self.jobset, known) or _older(kept, known):
            return
        if has_started(kept.generation, self.jobset, self.pods.values()):
            self.remembered = kept


def _older(one: Verdict, other: Verdict | None) -> bool:
    if other is None or other.generation.uid != one.generation.uid:
        return False
    return (one.generation.attempt, one.generation.epoch) < (other.generation.attempt, other.generation.epoch)
