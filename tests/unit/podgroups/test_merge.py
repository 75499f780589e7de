"""One gang of many sources: members agree, annotations win over the PodGroup, and what is wrong is written (G1)."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobset_gate.podgroups import merge
from jobset_gate.podgroups.model import Flavor, Format, GangMode, MemberSource, PodGroupSource
from tests.fakes.podgroups.sources import (
    GANG,
    KEP24,
    KOORDINATOR,
    PLUGINS,
    Json,
    alibaba,
    group,
    koordinator,
    member,
    problem_lines,
    read_pod_group_source,
)

NONE: Json = {}
POD_GROUPS = (
    read_pod_group_source("scheduling.x-k8s.io", minMember=2),
    read_pod_group_source("scheduling.sigs.k8s.io", minMember=3),
)


def labelled(label: str, *pods: str) -> list[MemberSource]:
    return [member(pod, labels={label: "g"}) for pod in pods]


def noted(*pods: str, **said: str) -> list[MemberSource]:
    return [member(pod, notes=koordinator(**said)) for pod in pods]


def test_a_kep24_group_takes_its_terms_from_the_podgroup_of_its_namespace() -> None:
    elsewhere = read_pod_group_source("incubator.scheduling.k8s.io", minMembers=9, namespace="other")
    own = read_pod_group_source("incubator.scheduling.k8s.io", minMembers=2, totalResources={"cpu": "3"})
    made = group(*(member(pod, notes={KEP24: "g"}) for pod in "ab"), pod_groups=(elsewhere, own))
    assert (made.minimum, made.resources) == (2, (("cpu", Fraction(3)),))
    assert (made.valid, made.gathered, made.pod_group_missing) == (True, True, False)


def test_members_of_other_groups_are_ignored() -> None:
    """The same name, namespace or design alone makes no group."""
    others = [
        member("b", labels=alibaba(), namespace="other"),
        member("c", labels=alibaba("h")),
        member("d", labels={PLUGINS: "g"}),
    ]
    assert group(member("a", labels=alibaba()), *others).present == 1


@pytest.mark.parametrize(
    ("label", "api", "seconds"),
    [
        (PLUGINS, "scheduling.x-k8s.io", 60),
        (KOORDINATOR, "scheduling.sigs.k8s.io", 600),
        (KOORDINATOR, "scheduling.x-k8s.io", 600),
    ],
)
def test_each_design_has_its_own_limit_unless_the_podgroup_says_one(label: str, api: str, seconds: int) -> None:
    for said, wait in ((NONE, seconds), ({"scheduleTimeoutSeconds": 7}, 7)):
        assert group(*labelled(label, "a"), pod_groups=(read_pod_group_source(api, minMember=1, **said),)).wait == wait
    one = member("a", labels=alibaba())
    assert merge.merge_group(one.membership.key, [one], default_wait=Fraction(42)).wait == 42, "Alibaba has none"


def test_koordinators_own_podgroup_wins_over_that_of_scheduler_plugins() -> None:
    assert group(*labelled(KOORDINATOR, "a"), pod_groups=POD_GROUPS).minimum == 3
    assert group(*labelled(KOORDINATOR, "a"), pod_groups=POD_GROUPS[:1]).minimum == 2
    assert group(*labelled(PLUGINS, "a"), pod_groups=POD_GROUPS).minimum == 2


def test_koordinators_annotations_on_a_podgroup_bind_koordinators_gangs_only() -> None:
    notes = {f"{GANG}mode": "NonStrict", f"{GANG}total-number": "4", f"{GANG}groups": '["team/g","team/h"]'}
    shared = (read_pod_group_source("scheduling.x-k8s.io", minMember=2, notes=notes),)
    theirs = group(*labelled(KOORDINATOR, "a"), pod_groups=shared)
    plain = group(*labelled(PLUGINS, "a"), pod_groups=shared)
    assert (theirs.mode, theirs.gangs) == (GangMode.NON_STRICT, ("team/g", "team/h"))
    assert (plain.mode, plain.gangs) == (GangMode.STRICT, ())


def test_annotations_win_over_the_podgroup_value_by_value() -> None:
    said: Json = {"minMember": 9, "scheduleTimeoutSeconds": 30, "notes": {f"{GANG}mode": "NonStrict"}}
    crd = read_pod_group_source("scheduling.sigs.k8s.io", **said)
    made = group(*noted("a", min_available="2", mode="Strict"), pod_groups=(crd,))
    assert (made.minimum, made.mode, made.wait) == (2, GangMode.STRICT, Fraction(30))


def test_annotated_members_speak_for_those_that_only_carry_the_label() -> None:
    made = group(*noted("a", min_available="2"), *labelled(KOORDINATOR, "b"))
    assert (made.minimum, made.present, made.pod_group_missing, made.valid) == (2, 2, False, True)
    assert made.formats == (Format.KOORDINATOR_ANNOTATIONS, Format.KOORDINATOR_POD_GROUP)


@pytest.mark.parametrize("label", [PLUGINS, KOORDINATOR])
def test_a_group_named_but_absent_lacks_its_podgroup_and_is_not_called_invalid(label: str) -> None:
    made = group(*labelled(label, "a"))
    assert (made.pod_group_missing, made.valid, made.minimum, made.gathered) == (True, True, None, False)


def test_annotations_without_a_minimum_and_without_a_podgroup_are_invalid() -> None:
    made = group(*noted("a"))
    assert problem_lines(made.problems) == [
        f"metadata.annotations[{GANG}min-available]: null: must be given: nobody says how many pods the group needs"
    ]
    assert group(*noted("a"), pod_groups=(read_pod_group_source("scheduling.sigs.k8s.io", minMember=1),)).valid


# --- What is wrong ---------------------------------------------------------------------------------------------------


def test_two_minimums_in_one_group_contradict_and_name_the_pods() -> None:
    made = group(*(member(f"p-{number}", labels=alibaba(minimum="5" if number else "3")) for number in range(6)))
    (problem,) = made.problems
    assert problem.value == [3, 5]
    assert problem.message == "members contradict each other: 5 by p-1, p-2, p-3 and 2 more; 3 by p-0"
    assert (made.minimum, made.valid, made.gathered) == (None, False, False)


@pytest.mark.parametrize(
    ("one", "other", "key"),
    [
        ({"mode": "Strict"}, {"mode": "NonStrict"}, "mode"),
        ({"waiting_time": "5s"}, {"waiting_time": "6s"}, "waiting-time"),
        ({"total_number": "5"}, {"total_number": "6"}, "total-number"),
        ({"groups": '["team/g"]'}, {"groups": '["team/g","team/h"]'}, "groups"),
    ],
)
def test_members_may_contradict_in_every_value(one: Json, other: Json, key: str) -> None:
    made = group(*noted("a", min_available="2", **one), *noted("b", min_available="2", **other))
    assert [it.path for it in made.problems] == [f"metadata.annotations[{GANG}{key}]"]


def test_a_bad_value_of_the_podgroup_is_written_on_the_group() -> None:
    made = group(*labelled(PLUGINS, "a"), pod_groups=(read_pod_group_source("scheduling.x-k8s.io", minMember=-3),))
    assert problem_lines(made.problems) == ["spec.minMember: -3: must be a whole number from 1 to 2147483647"]


def test_a_total_below_the_minimum_is_wrong_wherever_both_come_from() -> None:
    crd = read_pod_group_source("scheduling.sigs.k8s.io", minMember=5)
    (problem,) = group(*noted("a", total_number="4"), pod_groups=(crd,)).problems
    assert problem.message == "must not be below the group's minimum of 5"


texts = st.sampled_from(["1", "2", "3", "-1", "x", ""])
said_by_pods = st.fixed_dictionaries(
    {}, optional={"min_available": texts, "total_number": texts, "mode": st.sampled_from(["Strict", "NonStrict", "y"])}
)


@st.composite
def gangs(draw: st.DrawFn) -> list[MemberSource]:
    said = draw(st.lists(st.tuples(said_by_pods, st.booleans()), min_size=1, max_size=5))
    return [
        member(f"p-{number}", labels={KOORDINATOR: "g"} if labelled else {}, notes=koordinator(**notes))
        for number, (notes, labelled) in enumerate(said)
    ]


@settings(deadline=None)
@given(st.data(), gangs(), st.lists(st.sampled_from(POD_GROUPS), unique_by=lambda it: it.api))
def test_the_order_of_sources_has_no_meaning(
    data: st.DataObject, members: list[MemberSource], crds: list[PodGroupSource]
) -> None:
    key = members[0].membership.key
    made = merge.merge_group(key, members, crds)
    again = merge.merge_group(key, data.draw(st.permutations(members)), data.draw(st.permutations(crds)))
    assert again == made


@settings(deadline=None)
@given(gangs())
def test_a_valid_group_that_lacks_nothing_has_a_minimum_all_agree_on(members: list[MemberSource]) -> None:
    made = merge.merge_group(members[0].membership.key, members)
    if made.valid and not made.pod_group_missing:
        assert made.minimum is not None
        assert {it.membership.spec.minimum for it in members} - {None} == {made.minimum}
    if made.gathered:
        assert made.present >= (made.minimum or 0) >= 1


@settings(deadline=None)
@given(gangs(), gangs())
def test_what_is_wrong_with_one_group_leaves_another_as_it_was(
    ours: list[MemberSource], theirs: list[MemberSource]
) -> None:
    key = ours[0].membership.key
    others = [member(f"q-{number}", labels=alibaba("g"), namespace="other") for number in range(len(theirs))]
    assert key.flavor is Flavor.KOORDINATOR
    assert merge.merge_group(key, [*others, *ours]) == merge.merge_group(key, ours)
