"""The time axis of a picture: from seconds to places, and where its marks are."""

from dataclasses import dataclass

_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
MOST_MARKS = 10


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Moments from `origin` to `until`, between these places."""

    origin: float
    until: float
    left: float
    right: float

    @property
    def seconds(self) -> float:
        """How long it is; at least one."""
        return max(1.0, self.until - self.origin)

    def place(self, moment: float) -> float:
        """Where it is; what lies beyond an end, at that end."""
        share = (moment - self.origin) / self.seconds
        return self.left + (self.right - self.left) * min(1.0, max(0.0, share))

    def marks(self) -> tuple[float, ...]:
        """Round moments, at most ten and one."""
        days = 86_400 * (int(self.seconds) // (MOST_MARKS * 86_400) + 1)
        step = next((it for it in _STEPS if self.seconds / it <= MOST_MARKS), days)
        return tuple(self.origin + number * step for number in range(int(self.seconds // step) + 1))
