"""The phases: each cell of the table (G5)."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_gate.podgroups.phase import MemberCounts, Phase, group_phase


def counts(**more: Any) -> MemberCounts:
    """An opened group of three of three."""
    said: dict[str, Any] = {"minimum": 3, "present": 3, "opened": True}
    return MemberCounts(**(said | more))


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        (counts(opened=False), Phase.PENDING),
        (counts(opened=False, present=0), Phase.PENDING),
        (counts(opened=False, bound=2), Phase.PENDING),
        (counts(opened=False, failed=1), Phase.PENDING),
        (counts(), Phase.PENDING),
        (counts(deadline_passed=True), Phase.PENDING),
        (counts(bound=1), Phase.SCHEDULING),
        (counts(bound=2, running=2), Phase.SCHEDULING),
        (counts(bound=2, running=2, deadline_passed=True), Phase.UNKNOWN),
        (counts(bound=3, running=2), Phase.SCHEDULING),
        (counts(bound=3, running=3), Phase.RUNNING),
        (counts(bound=3, running=2, succeeded=1), Phase.RUNNING),
        (counts(bound=3, succeeded=3), Phase.FINISHED),
        (counts(bound=5, present=5, succeeded=3, running=2), Phase.RUNNING),
        (counts(bound=3, present=2, running=2, failed=1), Phase.FAILED),
        (counts(bound=3, present=3, running=3, failed=1), Phase.RUNNING),
        (counts(bound=3, present=3, running=2, failed=1), Phase.FAILED),
        (counts(bound=3, present=3, succeeded=3, failed=1), Phase.FINISHED),
        (counts(bound=2, running=2, evicting=True), Phase.UNKNOWN),
        (counts(evicting=True), Phase.PENDING),
    ],
)
def test_a_phase_follows_from_the_facts(seen: MemberCounts, wanted: Phase) -> None:
    assert group_phase(seen) is wanted
