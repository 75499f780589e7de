"""A group whose pods also wait in the start barrier (G6)."""

from fractions import Fraction

from jobset_gate.groups import with_barrier


def test_the_minimum_must_be_what_the_barrier_waits_for() -> None:
    assert with_barrier.minimum("spec.minMember", 8, 8) is None
    assert str(with_barrier.minimum("spec.minMember", 5, 8)) == (
        "spec.minMember: 5: must equal what the start barrier waits for: 5 pods here, 8 there"
    )


def test_the_barrier_must_not_give_up_first() -> None:
    assert with_barrier.timeout(601, Fraction(600)) is None
    assert with_barrier.timeout(None, Fraction(600)) is None
    assert with_barrier.timeout(600, Fraction(600)) == (
        "the start barrier's timeout of 600s must be above the group's wait limit of 600s"
    )
