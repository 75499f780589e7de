"""What was decided of a group, as it is kept in the cluster: on its PodGroup, else in a ConfigMap (G3).

The write that changes it, compare-and-swap, is the decision; pods are patched only afterwards, so that a successor
finds either nothing or all that it needs to go on.
"""

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from fractions import Fraction
from typing import Final

import msgspec

from jobset_gate import names
from jobset_gate.barrier.model import Value
from jobset_gate.errors import Malformed
from jobset_gate.podgroups.model import GangMode, PodGroupKey

MAX_NUMBER: Final = 10**18
"""Of any number in a record that we have written, and of any span of seconds."""

MAX_CHARACTERS: Final = 64 * 1024
"""Characters of a record: that of a hundred gangs with the longest names there can be."""

MAX_TIME: Final = 10.0**11
"""Seconds since the epoch: a later moment is no date."""

_SECONDS: Final = re.compile(r"[0-9]{1,60}(/[1-9][0-9]{0,60})?")
"""As we write them. Powers of ten would take for ever to work out."""


class AdmissionState(StrEnum):
    """Where a generation of a group stands."""

    OPEN = "Open"
    """Its gates are removed or about to be."""
    ROLLING_BACK = "RollingBack"
    """All of its opened members are being taken back."""
    CLOSED = "Closed"
    """Taken back, or all of its members are gone: the next one is opened with a higher number."""


class AdmissionMode(StrEnum):
    """By which right it was opened."""

    FIT = "Fit"
    """It was proven to have room."""
    PROBE = "Probe"
    """It was not: it takes the one place that its domain has for such groups."""
    OFF = "Off"
    """Nobody looked."""
    NATIVE = "Native"
    """The scheduler places it by itself (G6)."""


class GangShare(Value, frozen=True):
    """What was decided of one gang among several that open together."""

    minimum: int
    mode: GangMode
    many: int
    newest: float


class AdmissionRecord(Value, frozen=True):
    """The last decision on a group. What its pods and PodGroup say later does not change it (G2, G4)."""

    generation: int
    stage: AdmissionState
    how: AdmissionMode
    at: float
    """When it was decided."""
    gangs: tuple[tuple[PodGroupKey, int], ...]
    """Every gang of the decision with its generation, the group itself among them; the first one's home holds it."""
    minimum: int
    wait: Fraction
    """Seconds; of gangs that open together the longest that one of them has."""
    mode: GangMode
    many: int = 0
    """How many members it was opened with: so many gates may go before it is satisfied, whoever finishes that."""
    newest: float = 0.0
    """When the youngest of those was made, by the API server's clock: pods made later were not among them."""
    shares: tuple[GangShare, ...] = ()
    """Of each gang, in the order of `gangs`; () where there is but one."""
    satisfied: float | None = None
    """Since when; later members of this generation pass."""
    extended: bool = False
    """It has had its second limit (scheduler-plugins)."""
    marked: bool = False
    """NonStrict: its limit has passed, and those that were not bound are marked."""
    rolled_back: int = 0
    """How often this group was taken back since it was last satisfied."""
    not_before: float = 0.0
    """The back-off after a roll-back."""
    retry: bool = True
    """False: Koordinator's gangs are not opened again until all of their members are gone."""
    why: str = ""
    """Of a roll-back, for people."""
    home_uid: str = ""
    """Of the PodGroup it was written on: one that is made again from a saved copy was never opened."""


def record_for(record: AdmissionRecord, key: PodGroupKey) -> AdmissionRecord | None:
    """The record as one of its gangs reads it: with the generation and the minimum of that gang."""
    for number, (gang, generation) in enumerate(record.gangs):
        if gang == key:
            share = record.shares[number] if number < len(record.shares) else None
            mine = msgspec.structs.replace(record, generation=generation)
            return mine if share is None else msgspec.structs.replace(mine, **msgspec.structs.asdict(share))
    return None


def latest_record(
    key: PodGroupKey, own: AdmissionRecord | None, others: Iterable[AdmissionRecord] = ()
) -> AdmissionRecord | None:
    """What holds for a gang, as it reads it: of what stands on its own home and what on others' tells of it.

    The higher generation; of one generation what stands on the first gang's home, since changes are made there.
    """
    found: tuple[int, bool, AdmissionRecord] | None = None
    for record in (own, *others) if own is not None else others:
        read = record_for(record, key)
        if read is None:
            continue
        # A copy on the own home is as old as the decision; only the first gang's own is the original.
        first = record is not own or record.gangs[0][0] == key
        if found is None or (read.generation, first) > found[:2]:
            found = read.generation, first, read
    return None if found is None else found[2]


def encode_record(record: AdmissionRecord) -> str:
    """As it is stored."""
    return msgspec.json.encode(record, enc_hook=_plain).decode()


def decode_record(text: str) -> AdmissionRecord:
    """As it was stored. Raises Malformed for what we cannot have written: users may write there, too."""
    if len(text) > MAX_CHARACTERS:
        raise Malformed(names.POD_GROUP_RECORD, text[:100], f"a record of a group: at most {MAX_CHARACTERS} characters")
    try:
        found = msgspec.json.decode(text, type=AdmissionRecord, dec_hook=_fraction)
    except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
        raise Malformed(names.POD_GROUP_RECORD, text[:100], f"a record of a group: {problem}") from problem
    if not _is_sane(found):
        raise Malformed(names.POD_GROUP_RECORD, text[:100], "a record of a group: with numbers and dates that can be")
    return found


def record_within(record: AdmissionRecord, namespace: str) -> AdmissionRecord:
    """The decision as far as it is about gangs of one namespace."""
    return narrow_record(record, lambda key: key.namespace == namespace)


def narrow_record(record: AdmissionRecord, keep: Callable[[PodGroupKey], bool]) -> AdmissionRecord:
    """The decision as far as it is about some of its gangs."""
    inside = [number for number, (key, _) in enumerate(record.gangs) if keep(key)]
    if len(inside) == len(record.gangs):
        return record
    return msgspec.structs.replace(
        record,
        gangs=tuple(record.gangs[number] for number in inside),
        shares=tuple(record.shares[number] for number in inside if number < len(record.shares)),
    )


def _is_sane(record: AdmissionRecord) -> bool:
    """Whether it can be reckoned with."""
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
