"""How much of a benchmark is run: sizes and repetitions, the full ones or a part of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """1.0 is everything; a tenth is for CI, a hundredth for a look whether the benchmark works."""

    factor: float = 1.0

    def size(self, full: int, least: int = 1) -> int:
        """So many pods, gangs or rounds."""
        return max(least, round(full * self.factor))

    def kept(self, full: int, least: int = 1) -> int:
        """A size that stays the full one down to a tenth of everything else."""
        return max(least, round(full * min(1.0, self.factor * 10)))
