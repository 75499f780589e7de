"""Each of the five ways says the same group in its own words (G1)."""

from fractions import Fraction

import pytest

from jobset_gate.podgroups import formats
from jobset_gate.podgroups.model import Flavor, Format, GangMode, GroupSpec, group_label
from tests.fakes.podgroups.objects import key
from tests.fakes.podgroups.sources import (
    ALIBABA,
    ALIBABA_MINIMUM,
    GANG,
    KEP24,
    KOORDINATOR,
    PLUGINS,
    Json,
    alibaba,
    claim,
    koordinator,
    meta,
    pod_group,
    problem_lines,
    read_pod_group_source,
)
from tests.fakes.present import present

NONE: Json = {}
SAID = [
    (NONE, {KEP24: "g"}, Format.KEP_24, Flavor.KEP_24),
    ({PLUGINS: "g"}, NONE, Format.SCHEDULER_PLUGINS, Flavor.SCHEDULER_PLUGINS),
    (alibaba(), NONE, Format.ALIBABA, Flavor.ALIBABA),
    ({KOORDINATOR: "g"}, NONE, Format.KOORDINATOR_POD_GROUP, Flavor.KOORDINATOR),
    (NONE, koordinator("g", min_available="3"), Format.KOORDINATOR_ANNOTATIONS, Flavor.KOORDINATOR),
]


@pytest.mark.parametrize(("labels", "notes", "way", "flavor"), SAID)
def test_a_pod_names_its_group_in_its_own_namespace(labels: Json, notes: Json, way: Format, flavor: Flavor) -> None:
    said = claim(labels=labels, notes=notes)
    assert (said.format, said.key) == (way, key("g", flavor))
    assert said.problems == ()


EMPTY, ILLEGAL = '"": names no group: give its name', '"My_Group": must be a name that an object can have'
TWO_MINIMUMS = "[3,5]: says two minimums of one group: 5 by koordinator-annotations and 3 by alibaba"
WRONG: list[tuple[Json, Json, str, str]] = [
    (NONE, {KEP24: ""}, f"annotations[{KEP24}]", EMPTY),
    (alibaba(""), NONE, f"labels[{ALIBABA}]", EMPTY),
    (NONE, koordinator("", min_available="1"), f"annotations[{GANG}name]", EMPTY),
    (NONE, {KEP24: "My_Group"}, f"annotations[{KEP24}]", ILLEGAL),
    ({PLUGINS: "My_Group"}, NONE, f"labels[{PLUGINS}]", ILLEGAL),
    (NONE, koordinator("My_Group"), f"annotations[{GANG}name]", ILLEGAL),
    (alibaba(minimum=None), NONE, f"labels[{ALIBABA_MINIMUM}]", "null: must be given"),
    ({KOORDINATOR: "g"}, koordinator("h", min_available="1"), "", '["g","h"]: names two groups'),
    (alibaba(), koordinator(min_available="5"), "", TWO_MINIMUMS),
]


@pytest.mark.parametrize(("labels", "notes", "path", "words"), WRONG)
def test_what_is_wrong_with_a_claim_is_reported_with_its_path(labels: Json, notes: Json, path: str, words: str) -> None:
    """An empty name is a claim to a group that cannot be (KEP-24): such a pod is not scheduled but reported."""
    (problem,) = problem_lines(claim(labels=labels, notes=notes).problems)
    assert problem.startswith(f"metadata{path and '.'}{path}: {words}")
    assert claim(labels=alibaba("My_Group")).problems == (), "Alibaba's is no object's, and may be any text"


def test_koordinators_annotations_say_all_there_is() -> None:
    notes = koordinator(
        min_available="5", total_number="8", waiting_time="1h30m", mode="NonStrict", groups='["b/h", "team/g"]'
    )
    assert claim(notes=notes).spec == GroupSpec(
        minimum=5, total=8, wait=Fraction(5400), mode=GangMode.NON_STRICT, gangs=("b/h", "team/g")
    )


def test_koordinators_label_may_name_the_gang_of_its_annotations() -> None:
    """Annotations win over the PodGroup, also those of pods that name it by the label alone."""
    said = claim(labels={KOORDINATOR: "g"}, notes=koordinator(None, min_available="5"))
    assert (said.format, said.key.name, said.spec.minimum) == (Format.KOORDINATOR_POD_GROUP, "g", 5)


@pytest.mark.parametrize(("labels", "notes"), [({ALIBABA_MINIMUM: "3"}, NONE), (NONE, {f"{GANG}min-available": "3"})])
def test_a_minimum_without_a_name_is_no_claim_but_can_be_reported(labels: Json, notes: Json) -> None:
    assert formats.parse_membership(meta(labels=labels, notes=notes)) is None
    nameless = present(formats.minimum_without_name(meta(labels=labels, notes=notes)))
    assert "the pod belongs to no group" in nameless.message
    assert formats.minimum_without_name(meta(labels=labels | {PLUGINS: "g"}, notes=notes)) is None


# --- One pod, several ways -------------------------------------------------------------------------------------------


def test_the_same_name_for_two_designs_is_one_claim_of_the_first() -> None:
    said = claim(labels={PLUGINS: "g", KOORDINATOR: "g"}, notes={KEP24: "g"})
    assert (said.format, said.problems) == (Format.KOORDINATOR_POD_GROUP, ())
    assert formats.conflicting_names(meta(labels={PLUGINS: "g", KOORDINATOR: "g"})) is None


def test_a_name_added_to_the_one_a_pod_is_held_for_does_not_take_its_place() -> None:
    edited = meta(labels=alibaba("one") | {PLUGINS: "two"})
    first = present(formats.parse_membership(edited))
    assert first.key.name == "two", "at creation this way wins, or rather the pod is refused"
    still = present(formats.parse_membership(edited, held=group_label(key("one", Flavor.ALIBABA))))
    assert (still.key.name, still.spec.minimum) == ("one", 3)
    assert "names two groups" in problem_lines(still.problems)[0]


# --- PodGroups -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["scheduling.x-k8s.io", "scheduling.sigs.k8s.io"])
def test_the_other_podgroups_have_minmember_minresources_and_a_time(api: str) -> None:
    said = read_pod_group_source(api, minMember=4, minResources={"cpu": "500m"}, scheduleTimeoutSeconds=30)
    assert said.spec == GroupSpec(minimum=4, wait=Fraction(30), resources=(("cpu", Fraction(1, 2)),))


@pytest.mark.parametrize(
    "api", ["scheduling.x-k8s.io/v1beta1", "scheduling.sigs.k8s.io/v1", "incubator.scheduling.k8s.io/v1alpha2"]
)
def test_a_podgroup_of_another_version_says_nothing_but_that(api: str) -> None:
    said = read_pod_group_source(api, minMember=4, minMembers=4)
    assert said.spec == GroupSpec()
    (problem,) = said.problems
    assert (problem.path, problem.cause_type.name) == ("apiVersion", "NOT_SUPPORTED")


@pytest.mark.parametrize("api", ["scheduling.volcano.sh/v1beta1", "scheduling.k8s.io/v1alpha2", "v1"])
def test_podgroups_of_others_are_not_looked_at(api: str) -> None:
    assert formats.parse_pod_group(pod_group(api) | {"apiVersion": api}) is None


@pytest.mark.parametrize(
    ("api", "spec", "path"),
    [
        ("incubator.scheduling.k8s.io", {"minMember": 3}, "spec.minMembers"),
        ("scheduling.x-k8s.io", {"minMembers": 3}, "spec.minMember"),
        ("scheduling.x-k8s.io", {"minMember": 2.5}, "spec.minMember"),
        ("scheduling.x-k8s.io", {"minMember": 1, "scheduleTimeoutSeconds": 0}, "spec.scheduleTimeoutSeconds"),
        ("scheduling.x-k8s.io", {"minMember": 1, "minResources": {"cpu": "-1"}}, "spec.minResources.cpu"),
        ("scheduling.x-k8s.io", {"minMember": 1, "minResources": {"x/y": "many"}}, "spec.minResources[x/y]"),
        ("scheduling.x-k8s.io", {"minMember": 1, "minResources": [1]}, "spec.minResources"),
    ],
)
def test_a_bad_value_of_a_podgroup_is_reported_with_its_path(api: str, spec: Json, path: str) -> None:
    assert [it.path for it in read_pod_group_source(api, **spec).problems] == [path]


def test_what_a_pod_says_can_be_counted_whatever_is_wrong_with_it() -> None:
    """The controller counts equal claims; one that no set can hold would bring it down."""
    both = meta(labels=alibaba("a", "1") | {PLUGINS: "b"}, notes=koordinator("a", min_available="2"))
    said = [formats.parse_membership(both), formats.parse_membership(both)]
    assert len(present(said[0]).problems) == 2
    assert len(set(said)) == 1
