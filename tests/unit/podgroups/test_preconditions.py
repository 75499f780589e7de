"""Why a group waits, in the words people search for; and who can never make enough pods (G3)."""

import pytest

from jobset_gate.podgroups import model, preconditions
from jobset_gate.podgroups.model import Flavor, MergedGroup, PodGroupKey
from jobset_gate.podgroups.owners import OwnerCapacity, capacity_shortage
from tests.fakes.podgroups.sources import (
    PLUGINS,
    alibaba,
    claim,
    gang,
    group,
    groups_by_key,
    koordinator,
    member,
)

BOTH = '["team/a","team/b"]'


def job(most: int | None, why: str = "") -> OwnerCapacity:
    return OwnerCapacity(kind="Job", name="train", max_pods=most, why=why)


def reported(
    one: MergedGroup, *others: MergedGroup, made_by: tuple[OwnerCapacity, ...] = (), gates: tuple[str, ...] = ()
) -> tuple[str, str]:
    gangs = preconditions.gang_group_of(one, groups_by_key(one, *others).get)
    found = preconditions.first_unmet(one, gangs, made_by, gates)
    return ("", "") if found is None else (found.reason, found.message)


def test_a_gathered_group_has_nothing_to_wait_for_here() -> None:
    assert reported(gang("a")) == ("", "")


def test_a_podgroup_that_is_not_there() -> None:
    waiting = group(member("p", labels={PLUGINS: "g"}), member("q", labels={PLUGINS: "g"}))
    assert reported(waiting) == ("PodGroupMissing", "2 pods name PodGroup team/g, which does not exist")


def test_too_few_members() -> None:
    assert reported(gang("a", minimum=8, pods=5)) == ("Gathering", "5/8 pods exist")


def test_bad_values_come_first_and_name_the_pods() -> None:
    reason, message = reported(group(member("p", labels={PLUGINS: "g"}, notes=koordinator("g", min_available="x"))))
    assert reason == "InvalidGroup"
    assert message.startswith('pod p: metadata.annotations[gang.scheduling.koordinator.sh/min-available]: "x": must be')


def test_a_thousand_bad_pods_are_reported_in_a_few_words() -> None:
    reason, message = reported(group(*(member(f"p-{number}", labels=alibaba(minimum="0")) for number in range(1000))))
    assert (reason, message.rpartition("; ")[2]) == ("InvalidGroup", "and 995 more")


def test_another_gang_of_the_ganggroup() -> None:
    assert reported(gang("a", BOTH), gang("b", BOTH, minimum=4)) == ("WaitingForGangGroup", "team/b: 2/4 pods")


def test_of_many_others_the_first_few_are_named() -> None:
    listed = ",".join(f'"team/{name}"' for name in ("a", *(f"b{number:02}" for number in range(40))))
    reason, message = reported(gang("a", f"[{listed}]"))
    assert reason == "WaitingForGangGroup"
    assert message.startswith("team/b00: not there yet; team/b01: not there yet; ")
    assert message.endswith("; team/b09: not there yet; and 30 more")


def test_others_gate() -> None:
    assert reported(gang("a"), gates=("kueue.x-k8s.io/admission", "kueue.x-k8s.io/admission")) == (
        "OtherGate",
        "also held by kueue.x-k8s.io/admission",
    )


@pytest.mark.parametrize(
    ("creators", "why"),
    [
        ((job(3),), "needs 4 pods at once, 3 can be there: Job train makes 3"),
        ((job(2), job(1)), "needs 4 pods at once, 3 can be there: Job train makes 2; Job train makes 1"),
        (
            (job(1, "makes its pods one after the other"),),
            "needs 4 pods at once, 1 can be there: Job train makes its pods one after the other",
        ),
        (
            (job(3), job(0, "waits for a")),
            "needs 4 pods at once, 3 can be there: Job train makes 3; Job train waits for a",
        ),
        ((job(4),), None),
        ((job(3), job(1)), None),
        ((job(1), job(None)), None),
        ((), None),
    ],
)
def test_creators_that_can_never_make_enough(creators: tuple[OwnerCapacity, ...], why: str | None) -> None:
    few = gang("a", minimum=4, pods=1)
    assert capacity_shortage(few, creators) == why
    assert reported(few, made_by=creators)[0] == ("Gathering" if why is None else "CannotGather")


def test_a_group_that_has_gathered_can() -> None:
    assert capacity_shortage(gang("a", minimum=2, pods=2), (job(1),)) is None


# --- The label -------------------------------------------------------------------------------------------------------


def key(namespace: str, name: str, flavor: Flavor = Flavor.KEP_24) -> PodGroupKey:
    return PodGroupKey(flavor=flavor, namespace=namespace, name=name)


def test_the_label_is_a_legal_value_and_differs_for_all_that_differs() -> None:
    keys = [key("a", "b/c"), key("a/b", "c"), key("a", "c"), key("b", "c"), key("a", "c", Flavor.ALIBABA), key("", "")]
    labels = {model.group_label(it) for it in keys}
    assert len(labels) == len(keys)
    assert all(it.isalnum() and len(it) <= 63 for it in labels)


def test_the_label_of_a_group_never_changes() -> None:
    """Pods in a cluster carry it while jobset-gate is upgraded."""
    assert model.group_label(key("team", "g")) == "dd5d194dd993ff44506686a103a6afb907890ae4"


def test_koordinators_two_ways_share_one_label() -> None:
    by_label = claim(labels={"pod-group.scheduling.sigs.k8s.io": "g"})
    by_note = claim(notes=koordinator("g", min_available="1"))
    assert model.group_label(by_label.key) == model.group_label(by_note.key)
