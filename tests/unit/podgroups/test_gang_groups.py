"""Gangs that open together: only if all of them carry the same list, each with itself in it (G3)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jobset_gate.podgroups import preconditions
from jobset_gate.podgroups.model import MergedGroup
from tests.fakes.podgroups.sources import alibaba, gang, group, groups_by_key, koordinator, member

BOTH = '["team/a","team/b"]'
ABROAD = '["far/b","team/a"]'


def bond(one: MergedGroup, *others: MergedGroup, across: bool = False) -> preconditions.GangGroup:
    return preconditions.gang_group_of(one, groups_by_key(one, *others).get, across_namespaces=across)


def opens_with(one: MergedGroup, *others: MergedGroup, across: bool = False) -> str:
    """The names of the gangs of its GangGroup; "" if its list is wrong, or it waits for another."""
    seen = bond(one, *others, across=across)
    return "" if seen.problem or seen.waits_for else " ".join(it.name for it in seen.keys)


def test_a_gang_without_a_list_is_alone() -> None:
    assert opens_with(gang("a")) == "a"
    assert opens_with(gang("a", '["team/a"]')) == "a"
    assert opens_with(group(member("p", labels=alibaba()))) == "g"


def test_two_gangs_that_list_each_other_open_together() -> None:
    one, other = gang("a", BOTH), gang("b", '["team/b","team/a"]')
    assert opens_with(one, other) == opens_with(other, one) == "a b"


def test_one_gang_waits_until_the_other_has_gathered() -> None:
    assert bond(gang("a", BOTH), gang("b", BOTH, minimum=8, pods=5)).waits_for == ("team/b: 5/8 pods",)


def test_one_gang_waits_for_another_that_is_not_there_yet() -> None:
    assert bond(gang("a", BOTH)).waits_for == ("team/b: not there yet",)


def test_a_gang_with_a_bad_value_keeps_the_others_waiting_but_not_invalid() -> None:
    wrong = group(member("p", notes=koordinator("b", min_available="x")))
    seen = bond(gang("a", BOTH), wrong)
    assert (seen.waits_for, seen.problem) == (("team/b: invalid",), None)


def test_a_one_sided_list_is_the_fault_of_the_gang_that_made_it() -> None:
    one, other = gang("a", BOTH), gang("b")
    assert opens_with(other, one) == "b"
    seen = bond(one, other)
    assert seen.keys == (one.key,)
    assert seen.problem is not None
    assert seen.problem.message == "must be the same on all of its gangs: team/b has no GangGroup"


def test_of_a_long_list_the_first_few_are_named() -> None:
    listed = ",".join(f'"far/{number:02}"' for number in range(40))
    problem = bond(gang("a", f'["team/a",{listed}]')).problem
    assert problem is not None
    assert problem.message.endswith(" far/08, far/09 and 30 more")
    other = gang("b", f'["team/b",{listed}]')
    problem = bond(gang("a", BOTH), other, across=True).problem
    assert problem is not None
    assert problem.message.endswith(" far/08, far/09 and 31 more")


def test_a_third_that_adds_itself_to_a_pair_does_not_disturb_the_pair() -> None:
    one, other, third = gang("a", BOTH), gang("b", BOTH), gang("c", '["team/a","team/b","team/c"]')
    assert opens_with(one, other, third) == "a b"
    assert bond(third, one, other).problem


def test_a_list_without_the_gang_itself_is_broken() -> None:
    seen = bond(gang("a", '["team/b"]'), gang("b"))
    assert seen.problem is not None
    assert seen.problem.message == "must contain the gang itself: team/a"


def test_across_namespaces_only_where_a_setting_allows_it() -> None:
    one, other = gang("a", ABROAD), gang("b", ABROAD, namespace="far")
    assert bond(one, other).problem
    assert bond(other, one).problem
    assert opens_with(one, other, across=True) == "b a"


NAMES = "abcd"
lists = st.dictionaries(st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES), max_size=4), min_size=1)


@settings(deadline=None)
@given(lists)
def test_gangs_that_are_ready_all_say_the_same(listed: dict[str, set[str]]) -> None:
    """A pod that is opened together agrees to it, and none is in two GangGroups."""
    made = [
        gang(name, "[" + ",".join(f'"team/{it}"' for it in sorted(others)) + "]") for name, others in listed.items()
    ]
    groups = groups_by_key(*made)
    for one in made:
        seen = preconditions.gang_group_of(one, groups.get)
        assert one.key in seen.keys
        if not seen.problem and not seen.waits_for and one.gathered:
            assert {preconditions.gang_group_of(groups[key], groups.get).keys for key in seen.keys} == {seen.keys}
