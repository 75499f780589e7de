"""Which gangs are made, in which order: all ways right after one another within each run, shuffled each time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from bench.release.methods import KEP, METHODS, ReleaseMethod


@dataclass(frozen=True, slots=True)
class MeasurementPlan:
    """`kep_runs`: how many of the runs include the KEP's way at other sizes than the smallest; it takes minutes."""

    sizes: tuple[int, ...] = (20, 60)
    runs: int = 10
    kep_runs: int = 3
    ways: tuple[ReleaseMethod, ...] = METHODS
    cost_pods: int = 20
    """In the gangs whose waiting is measured; 0: none."""
    skew_runs: int = 5
    seed: int = 1

    @property
    def words(self) -> list[str]:
        """As the command line says it, where it says something else than usual; no file of anybody's machine."""
        usual = MeasurementPlan()
        said = {
            "--pods": (self.sizes, usual.sizes),
            "--runs": (self.runs, usual.runs),
            "--kep-runs": (self.kep_runs, usual.kep_runs),
            "--ways": (tuple(way.key for way in self.ways), tuple(way.key for way in usual.ways)),
            "--cost-pods": (self.cost_pods, usual.cost_pods),
            "--skew-runs": (self.skew_runs, usual.skew_runs),
            "--seed": (self.seed, usual.seed),
        }
        return [word for option, (its, other) in said.items() if its != other for word in (option, _said(its))]

    def gangs(self) -> Iterator[tuple[int, int, ReleaseMethod]]:
        """Run, size and way."""
        chance = random.Random(self.seed)  # noqa: S311 - an order that can be had again
        for pods in self.sizes:
            for number in range(1, self.runs + 1):
                ways = [way for way in self.ways if way is not KEP or self._bears_kep(number, pods)]
                for way in chance.sample(ways, len(ways)):
                    yield number, pods, way

    def skews(self) -> Iterator[tuple[int, bool]]:
        """Run, and whether with prefetch."""
        chance = random.Random(self.seed)  # noqa: S311 - as above
        for number in range(1, self.skew_runs + 1):
            for prefetch in chance.sample((False, True), 2):
                yield number, prefetch

    def _bears_kep(self, number: int, pods: int) -> bool:
        """Spread evenly over the runs."""
        share = min(self.kep_runs, self.runs)
        return pods == min(self.sizes) or number * share // self.runs > (number - 1) * share // self.runs


def _said(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
