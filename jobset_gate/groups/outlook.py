"""What becomes of the groups that are not open: why each waits, or that it may be considered for opening (G3).

Used by the keeper that opens them and by the command line that tells of them.
"""

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from jobset_gate import names
from jobset_gate.groups import generation, opening, standing
from jobset_gate.groups.candidates import Candidate, Check, Hold, Open, Opened
from jobset_gate.groups.certainty import Room
from jobset_gate.groups.creators import Creator
from jobset_gate.groups.demands import candidate
from jobset_gate.groups.domains import Domains
from jobset_gate.groups.ganggroups import GangGroup
from jobset_gate.groups.model import POD_GROUPS, Group, Key
from jobset_gate.groups.opening import Avoided
from jobset_gate.groups.outstanding import Look, outstanding
from jobset_gate.groups.record import How, Record, Stage
from jobset_gate.groups.seen import GroupSeen
from jobset_gate.groups.standing import Standing

Answer = Candidate | Standing | None
Together = MutableMapping[tuple[Key, ...], Answer]
"""By the gangs that open together, what was found of them: the same for each of them."""


class Outlook:
    """All that the judgement of a group depends on, besides the group itself."""

    def __init__(
        self,
        look: Look,
        groups: Mapping[Key, Group],
        *,
        across_namespaces: bool = False,
        creators: Mapping[Key, tuple[Creator, ...]] | None = None,
        short_of_quota: Callable[[GroupSeen], str] = lambda _: "",
        barred: Callable[[GroupSeen], Standing | None] = lambda _: None,
        trouble: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`short_of_quota`: what the namespace's quota lacks for a group, "" if nothing. `barred`: what else forbids to
        open it. `trouble`: by API group, why its PodGroups cannot be used.
        """
        self._look, self._groups, self._across = look, groups, across_namespaces
        self._creators = {} if creators is None else creators
        self._short_of_quota, self._barred, self._trouble = short_of_quota, barred, trouble

    def of(self, seen: GroupSeen, domains: Domains, now: float, together: Together | None = None) -> Answer:
        """A candidate stands for its whole GangGroup, and is the same for each of its gangs. None: nothing to open.

        `together` keeps what is the same for them, as long as nothing changes.
        """
        record = seen.record
        if record is not None and record.stage is not Stage.CLOSED:
            return None
        others = generation.other_gates(seen)
        told = standing.facts(
            seen.group,
            self._groups,
            made_by=self._creators.get(seen.group.key, ()),
            other_gates=others,
            across_namespaces=self._across,
        )
        held = standing.standing(told)
        if held is not None and held.reason in _FIRST:
            return self._explained(held, seen.group.key)
        barred = self._barred(seen)  # also of one that never gathers
        if barred is not None:
            return barred
        if held is not None and held.reason not in _PATIENT:
            return held
        back = _backing_off(record, now)
        alone = _given_up(record) or back or held
        if alone is not None:
            keeps = alone is back and held is None and told.gang_group.keys == (seen.group.key,) and _keeps(record)
            keeps = keeps and bool(generation.ready(seen))
            return candidate([seen], domains, backs_off=alone.message) if keeps else alone
        keys, known = told.gang_group.keys, {} if together is None else together
        if keys not in known:
            known[keys] = self._together(told.gang_group, domains, now)
        return known[keys]

    def _together(self, gang_group: GangGroup, domains: Domains, now: float) -> Answer:
        """All gangs of a GangGroup that are not open yet, as one."""
        seen = [it for key in sorted(gang_group.keys, key=_by_name) if (it := self._look(key)) is not None]
        closed = [it for it in seen if it.record is None or it.record.stage is Stage.CLOSED]
        for each in seen:
            held = self._of_partner(each, now)
            if held is not None:
                return held
        ready = [it for it in closed if generation.ready(it)]
        return candidate(ready, domains) if ready else None

    def _explained(self, held: Standing, key: Key) -> Standing:
        """A PodGroup may be missing because its kind cannot be used."""
        told = [self._trouble[api] for api in POD_GROUPS[key.design] if api in self._trouble]
        if held.reason != names.REASON_POD_GROUP_MISSING or not told:
            return held
        return Standing(reason=held.reason, message=f"{held.message}; {'; '.join(told)}")

    def _of_partner(self, seen: GroupSeen, now: float) -> Standing | None:
        record, path = seen.record, seen.group.key.path
        if record is not None and record.stage is Stage.ROLLING_BACK:
            return Standing(reason=names.REASON_WAITING_FOR_GANG_GROUP, message=f"{path}: being taken back")
        others = generation.other_gates(seen)
        if others:
            return Standing(reason=names.REASON_OTHER_GATE, message=f"{path} is also held by {', '.join(others)}")
        barred = self._barred(seen)
        if barred is not None:
            return barred
        short = self._short_of_quota(seen)
        if short:
            return Standing(reason=names.REASON_WAITING_FOR_CAPACITY, message=short)
        return _given_up(record) or _backing_off(record, now)


_FIRST: Final = (names.REASON_INVALID_GROUP, names.REASON_POD_GROUP_MISSING, names.REASON_INVALID_GANG_GROUP)
"""Nothing else is worth telling of such a group."""

_PATIENT: Final = (names.REASON_GATHERING, names.REASON_WAITING_FOR_GANG_GROUP, names.REASON_OTHER_GATE)
"""Less worth telling than that the group was taken back."""


def outlook(
    seen: Iterable[GroupSeen],
    rooms: Sequence[Room],
    *,
    check: Check,
    starvation_seconds: float,
    now: float,
    across_namespaces: bool = False,
    creators: Mapping[Key, tuple[Creator, ...]] | None = None,
    short_of_quota: Callable[[GroupSeen], str] = lambda _: "",
    bound: Callable[[str], bool] = lambda _: False,
    avoided: Avoided = opening.nothing,
) -> dict[Key, Open | Hold | Standing]:
    """Of each group that is not open. `bound`: whether the room that a pod (by UID) takes is in `rooms` already.
    `avoided`: from which nodes bound pods keep such pods away.
    """
    by_key = {it.group.key: it for it in seen}
    groups = {key: it.group for key, it in by_key.items()}
    view = Outlook(
        by_key.get, groups, across_namespaces=across_namespaces, creators=creators, short_of_quota=short_of_quota
    )
    around = domains(rooms)
    told: dict[Key, Open | Hold | Standing] = {}
    waiting: dict[Key, Candidate] = {}
    opened: list[Opened] = []
    together: Together = {}
    for key, each in by_key.items():
        answer = view.of(each, around, now, together)
        if isinstance(answer, Candidate):
            waiting[answer.key] = answer
        elif answer is not None:
            told[key] = answer
        opened += outstanding(each, bound, around, now)
    candidates = list(waiting.values())
    rules: dict[str, Any] = {"check": check, "starvation_seconds": starvation_seconds, "avoided": avoided}
    for it in opening.consider(candidates, opened, rooms, now=now, **rules):
        told |= dict.fromkeys((demand.key for demand in it.candidate.demands), it)
    return told


def domains(rooms: Sequence[Room]) -> Domains:
    """Of nodes as they are now."""
    offers = (
        None
        if any(it.whole is None for it in rooms)
        else {name for it in rooms for name, many in (it.whole or {}).items() if many > 0}
    )
    return Domains([it.node for it in rooms], None if offers is None else frozenset(offers))


def _given_up(record: Record | None) -> Standing | None:
    if record is None or record.retry:
        return None
    message = f"was taken back ({record.why}) and is not opened again until all of its pods are gone"
    return Standing(reason=names.REASON_TIMED_OUT, message=message)


def _backing_off(record: Record | None, now: float) -> Standing | None:
    if record is None or now >= record.not_before:
        return None
    times = "once" if record.rolled_back == 1 else f"{record.rolled_back} times"
    return Standing(reason=names.REASON_ROLLED_BACK, message=f"taken back {times}: {record.why}")


def _keeps(record: Record | None) -> bool:
    """Whether room that there is by now may be what was made for it: once, and not if it had room from the start."""
    return record is not None and record.rolled_back == 1 and record.how is How.PROBE


def _by_name(key: Key) -> tuple[str, str]:
    return key.path, key.design
