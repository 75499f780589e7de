"""Mistyped words and the known ones that are meant."""

import pytest

from jobset_gate.objects.field_error import did_you_mean, nearest

KNOWN = ("image", "imagePullPolicy", "args", "parallelism", "groupSchedulingConfig", "tty")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("imagee", "image"),
        ("IMAGE", "image"),
        ("paralellism", "parallelism"),
        ("parllelm", "parallelism"),
        ("prllm", None),
        ("imagePull", "imagePullPolicy"),
        ("groupscheduling", "groupSchedulingConfig"),
        ("ttyy", "tty"),
        ("ttl", None),
        ("", None),
        ("x" * 100_000, None),
    ],
)
def test_some_letters_case_or_half_a_word_are_forgiven(word: str, meant: str | None) -> None:
    assert nearest(word, KNOWN) == meant


def test_the_nearest_one_wins_and_a_hint_is_there_only_with_a_suggestion() -> None:
    assert nearest("minMembe", ("minMember", "minMembers")) == "minMember"
    assert nearest("minMemberrs", ("minMember", "minMembers")) == "minMembers"
    assert (did_you_mean("agrs", KNOWN), did_you_mean("command", KNOWN)) == (": did you mean args?", "")
