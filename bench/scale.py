"""How much of a benchmark is run: sizes and repetitions, the full ones or a part of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """1.0 is everything, a tenth gives a first idea, and less than that only shows that the benchmark runs."""

    factor: float = 1.0

    def size(self, full: int, least: int = 1) -> int:
        """So many pods, gangs or rounds."""
        return max(least, round(full * self.factor))

    @property
    def measures(self) -> bool:
        """Whether the figures are to mean something: otherwise nothing need wait for the quiet that they would need."""
        return self.factor >= 0.1

    def kept(self, full: int, least: int = 1) -> int:
        """A size that stays the full one down to a tenth of everything else."""
        return max(least, round(full * min(1.0, self.factor * 10)))
