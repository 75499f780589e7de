"""The admission record of a group, stored on its PodGroup, else in a ConfigMap (G3).

The compare-and-swap write of the record is the decision. Pods are patched afterwards only, so that another leader finds
either no decision, or all that it needs to finish it.
"""

import re
from collections.abc import Callable, Iterable
from enum import Enum, StrEnum, auto
from fractions import Fraction
from typing import Final

import msgspec

from jobset_gate import names
from jobset_gate.barrier.model import Value
from jobset_gate.errors import Malformed
from jobset_gate.podgroups.model import Flavor, GangMode, PodGroupKey

MAX_NUMBER: Final = 10**18
"""Of any number or span of seconds in a valid record."""

MAX_CHARACTERS: Final = 64 * 1024
"""Of a record: a hundred gangs with the longest names."""

MAX_TIME: Final = 10.0**11
"""Seconds since the epoch."""

_SECONDS: Final = re.compile(r"[0-9]{1,60}(/[1-9][0-9]{0,60})?")
"""As written by this controller. An exponent could take for ever to compute."""


class AdmissionState(StrEnum):
    OPEN = "Open"
    """Its gates are removed, or will be."""
    ROLLING_BACK = "RollingBack"
    """Its admitted members are being evicted."""
    CLOSED = "Closed"
    """Evicted, or all its members are gone. The next generation has a higher number."""


class AdmissionMode(StrEnum):
    """Why it was admitted."""

    FIT = "Fit"
    """Its room was proven."""
    PROBE = "Probe"
    """It was not: one such group at a time in a domain."""
    OFF = "Off"
    """Not checked."""
    NATIVE = "Native"
    """The scheduler places the group (G6)."""


class GangShare(Value, frozen=True):
    """The part of one gang in a decision on several."""

    minimum: int
    mode: GangMode
    many: int
    newest: float


class AdmissionRecord(Value, frozen=True):
    """The last decision on a group; later edits of its pods and PodGroup do not change it (G2, G4)."""

    generation: int
    stage: AdmissionState
    how: AdmissionMode
    at: float
    """Time of the decision."""
    gangs: tuple[tuple[PodGroupKey, int], ...]
    """Every gang of the decision with its generation; the record is stored with the first."""
    minimum: int
    wait: Fraction
    """Seconds; the longest of the gangs."""
    mode: GangMode
    many: int = 0
    """Members at admission: so many gates are removed before it is satisfied, by any leader."""
    newest: float = 0.0
    """Creation time of the youngest of these, by the API server's clock."""
    shares: tuple[GangShare, ...] = ()
    """Of each gang, in the order of `gangs`; () for one gang."""
    satisfied: float | None = None
    """Since when; later members of this generation are ungated at once."""
    extended: bool = False
    """It has had its second limit (scheduler-plugins)."""
    marked: bool = False
    """NonStrict: its limit has passed, and its unbound pods are marked."""
    rolled_back: int = 0
    """Evictions since it was last satisfied."""
    not_before: float = 0.0
    """End of the back-off."""
    retry: bool = True
    """False: Koordinator's gangs are not admitted again until all their members are gone."""
    why: str = ""
    """Message of an eviction."""
    home_uid: str = ""
    """Of the PodGroup that it was written on: one restored from a copy was never admitted."""


def record_for(record: AdmissionRecord, key: PodGroupKey) -> AdmissionRecord | None:
    """The record for one of its gangs: with the generation and the minimum of that gang."""
    for number, (gang, generation) in enumerate(record.gangs):
        if gang == key:
            share = record.shares[number] if number < len(record.shares) else None
            mine = msgspec.structs.replace(record, generation=generation)
            return mine if share is None else msgspec.structs.replace(mine, **msgspec.structs.asdict(share))
    return None


def latest_record(
    key: PodGroupKey, own: Iterable[AdmissionRecord], others: Iterable[AdmissionRecord] = ()
) -> AdmissionRecord | None:
    """The valid record of a gang, of those on its own objects, and on that of the first gang of its GangGroup.

    The higher generation; of one generation the record stored with the first gang, where it is updated.
    """
    # A copy stored with another gang than the first is as old as the decision.
    found = [(it.generation, it.gangs[0][0] == key, it) for each in own if (it := record_for(each, key)) is not None]
    found += [(it.generation, True, it) for each in others if (it := record_for(each, key)) is not None]
    return max(found, key=lambda it: it[:2], default=(0, False, None))[2]


def encode_record(record: AdmissionRecord) -> str:
    """The stored text."""
    return msgspec.json.encode(record, enc_hook=_plain).decode()


def decode_record(text: str) -> AdmissionRecord:
    """From the stored text. Raises Malformed for a text that this controller cannot have written: users can."""
    if len(text) > MAX_CHARACTERS:
        raise Malformed(names.POD_GROUP_RECORD, text[:100], f"a record of a group: at most {MAX_CHARACTERS} characters")
    try:
        found = msgspec.json.decode(text, type=AdmissionRecord, dec_hook=_fraction)
    except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
        raise Malformed(names.POD_GROUP_RECORD, text[:100], f"a record of a group: {problem}") from problem
    if not _is_sane(found):
        raise Malformed(names.POD_GROUP_RECORD, text[:100], "a record of a group: with numbers and dates that can be")
    return found


def narrow_record(record: AdmissionRecord, keep: Callable[[PodGroupKey], bool]) -> AdmissionRecord:
    """The decision on some of its gangs."""
    inside = [number for number, (key, _) in enumerate(record.gangs) if keep(key)]
    if len(inside) == len(record.gangs):
        return record
    return msgspec.structs.replace(
        record,
        gangs=tuple(record.gangs[number] for number in inside),
        shares=tuple(record.shares[number] for number in inside if number < len(record.shares)),
    )


# --- Its limit (G4) --------------------------------------------------------------------------------------------------

FIRST_BACKOFF: Final = 10.0
LONGEST_BACKOFF: Final = 300.0
CLOSE_ENOUGH: Final = Fraction(1, 10)
"""Gap, as a share of the minimum, for which scheduler-plugins' groups get one more limit."""


class Verdict(Enum):
    """What follows from the limit."""

    SATISFIED = auto()
    """The minimum was bound: later members of this generation are ungated at once."""
    WAIT = auto()
    """The limit has not passed."""
    EXTEND = auto()
    """One more limit; recorded, so that there is no third."""
    MARK = auto()
    """NonStrict: no pod is evicted, unbound pods are marked."""
    EVICT = auto()
    """All admitted pods of the group and its GangGroup, bound or not."""


def decide_deadline(
    record: AdmissionRecord, flavor: Flavor, *, bound: int, started: float, now: float
) -> tuple[Verdict, float]:
    """What follows from the limit now, and the seconds that are left of it, or of the next.

    `bound`: members bound in this generation, finished ones included; `started`: when the last gate was removed.
    """
    if bound >= record.minimum:
        return Verdict.SATISFIED, 0.0
    wait = float(record.wait)
    left = started + wait * (2 if record.extended else 1) - now
    if left > 0:
        return Verdict.WAIT, left
    if record.mode is GangMode.NON_STRICT:
        return Verdict.MARK, 0.0
    close = (record.minimum - bound) <= record.minimum * CLOSE_ENOUGH
    if flavor is Flavor.SCHEDULER_PLUGINS and close and not record.extended:
        return Verdict.EXTEND, max(0.0, left + wait)
    return Verdict.EVICT, 0.0


def eviction_backoff(times: int) -> float:
    """10 s, doubling to 5 min with every eviction."""
    return min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(times, 10))


# --- As text ---------------------------------------------------------------------------------------------------------


def _is_sane(record: AdmissionRecord) -> bool:
    """Whether its numbers and times are within bounds."""
    shares = [(it.minimum, it.many) for it in record.shares]
    generations = [it for _, it in record.gangs]
    numbers = [record.generation, record.minimum, record.many, record.rolled_back, *generations]
    moments = [record.at, record.newest, record.satisfied or 0.0, record.not_before]
    moments += [it.newest for it in record.shares]
    return (
        all(0 <= it <= MAX_NUMBER for it in (*numbers, *(it for share in shares for it in share)))
        and all(0 <= it <= MAX_TIME for it in moments)
        and record.wait <= MAX_NUMBER
    )


def _plain(value: object) -> str:
    if isinstance(value, Fraction):
        return str(value)
    raise NotImplementedError(type(value))


def _fraction(kind: type, value: object) -> Fraction:
    if kind is Fraction and isinstance(value, str) and _SECONDS.fullmatch(value):
        return Fraction(value)
    raise ValueError(f"no seconds: {str(value)[:20]}")
