"""The picture of each gang that timed out, as it was then: its JobSet fails within seconds, and its pods go with it."""

from collections import OrderedDict
from typing import Final

from jobset_gate import names
from jobset_gate.barrier import messages
from jobset_gate.barrier.model import GangKey, Generation, JobSetSeen, Verdict, VerdictKind

MOST_BYTES: Final = 16 * 1024 * 1024
"""Of all of them together: some thousand of usual size. The oldest goes first."""


class TimeoutTimelines:
    """By gang, of the generation that timed out; one goes with its JobSet, or when that begins anew."""

    def __init__(self) -> None:
        self._kept: OrderedDict[GangKey, tuple[Generation, bytes]] = OrderedDict()
        self.bytes = 0

    def of(self, key: GangKey, its: Generation | None) -> bytes | None:
        """None where there is none, or none of that generation."""
        kept = self._kept.get(key)
        return kept[1] if kept is not None and kept[0] == its else None

    def keep(self, key: GangKey, its: Generation, drawn: bytes) -> None:
        """Of one generation; that of an earlier one goes."""
        self.drop(key)
        self._kept[key] = its, drawn
        self.bytes += len(drawn)
        while self.bytes > MOST_BYTES:
            self.drop(next(iter(self._kept)))

    def drop(self, key: GangKey) -> None:
        """If there is one."""
        kept = self._kept.pop(key, None)
        self.bytes -= 0 if kept is None else len(kept[1])


def timed_out_generation(jobset: JobSetSeen, verdict: Verdict | None) -> Generation | None:
    """The generation that timed out, by the ConfigMap's verdict or else our condition, if that is the present one."""
    told = jobset.condition
    if verdict is None and told is not None and told.reason == names.REASON_TIMED_OUT:
        verdict = messages.verdict_in_condition(told, jobset.uid)
    if verdict is None or verdict.kind is not VerdictKind.TIMEOUT:
        return None
    present = Generation(jobset.uid, jobset.attempt, jobset.epoch)
    return verdict.generation if verdict.generation.covers(present) else None
