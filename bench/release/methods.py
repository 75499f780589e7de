"""The ways of telling a gang's pods that all have started, which take turns in each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "bench-release"
"""Of everything that the measurement puts into a cluster."""


@dataclass(frozen=True, slots=True)
class ReleaseMethod:
    """One way. Its gangs live in a namespace of their own, where its own controller looks after them."""

    key: str
    letter: str
    short: str
    """For the picture."""
    title: str
    has_controller: bool = True
    """Whether a controller of ours looks after its gangs."""
    patches: bool = False
    stream: bool = False

    @property
    def namespace(self) -> str:
        return f"{PREFIX}-{self.key}"


KEP: Final = ReleaseMethod("kep", "a", "KEP as written", "the KEP as written: pod status and ConfigMap")
ANNOTATION: Final = ReleaseMethod("annotation", "b", "annotation patches", "annotation patches", patches=True)
STREAM: Final = ReleaseMethod("stream", "c", "gate stream", "gate stream, as installed", patches=True, stream=True)
FLOOR: Final = ReleaseMethod(
    "floor", "d", "floor: a file on the host", "the floor: a file on the host", has_controller=False
)
METHODS: Final = (KEP, ANNOTATION, STREAM, FLOOR)


def chosen(keys: Sequence[str]) -> tuple[ReleaseMethod, ...]:
    """The ways of these keys, in their own order; raises ValueError for a key that is none."""
    known = {way.key for way in METHODS}
    if strange := [key for key in keys if key not in known]:
        raise ValueError(f"{', '.join(strange)}: not among {', '.join(way.key for way in METHODS)}")
    return tuple(way for way in METHODS if way.key in keys)


def titled(way: ReleaseMethod) -> str:
    """As tables call it."""
    return f"({way.letter}) {way.title}"
