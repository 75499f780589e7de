"""Why a group waits, in the words people search for; and who can never make enough pods (G3)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobset_gate.podgroups import model, owners, preconditions, wire
from jobset_gate.podgroups.model import Flavor, MergedGroup, PodGroupKey
from jobset_gate.podgroups.owners import OwnerCapacity, capacity_shortage
from jobset_gate.podgroups.preconditions import QuotaLimits
from jobset_gate.podgroups.snapshot import GroupSnapshot
from tests.fakes.podgroups import sources
from tests.fakes.podgroups.objects import pod, pod_group
from tests.fakes.podgroups.snapshots import KEP24_KEY, group_snapshot, kep24_pod
from tests.fakes.podgroups.sources import PLUGINS, Json, alibaba, gang, group, groups_by_key, koordinator, member
from tests.fakes.wire_objects import decoded

BOTH = '["team/a","team/b"]'


def job(most: int | None, why: str = "") -> OwnerCapacity:
    return OwnerCapacity(kind="Job", name="train", max_pods=most, why=why)


def reported(one: MergedGroup, made_by: tuple[OwnerCapacity, ...] = ()) -> tuple[str, str]:
    gangs = preconditions.gang_group_of(one, groups_by_key(one).get)
    found = preconditions.first_unmet(one, gangs, made_by, ())
    return ("", "") if found is None else (found.reason, found.message)


def test_a_podgroup_that_is_not_there() -> None:
    waiting = group(member("p", labels={PLUGINS: "g"}), member("q", labels={PLUGINS: "g"}))
    assert reported(waiting) == ("PodGroupMissing", "2 pods name PodGroup team/g, which does not exist")


def test_bad_values_come_first_and_name_the_pods() -> None:
    reason, message = reported(group(member("p", labels={PLUGINS: "g"}, notes=koordinator("g", min_available="x"))))
    assert reason == "InvalidGroup"
    assert message.startswith('pod p: metadata.annotations[gang.scheduling.koordinator.sh/min-available]: "x": must be')


def test_of_many_others_the_first_few_are_named() -> None:
    listed = ",".join(f'"team/{name}"' for name in ("a", *(f"b{number:02}" for number in range(40))))
    reason, message = reported(gang("a", f"[{listed}]"))
    assert reason == "WaitingForGangGroup"
    assert message.startswith("team/b00: not there yet; team/b01: not there yet; ")
    assert message.endswith("; team/b09: not there yet; and 30 more")


@pytest.mark.parametrize(
    ("creators", "why"),
    [
        ((job(2), job(1)), "needs 4 pods at once, 3 can be there: Job train makes 2; Job train makes 1"),
        ((job(3), job(0, "waits")), "needs 4 pods at once, 3 can be there: Job train makes 3; Job train waits"),
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


# --- Gangs that open together: only if all of them carry the same list, each with itself in it ------------------------


ABROAD = '["far/b","team/a"]'


def names_of(seen: preconditions.GangGroup) -> str:
    return " ".join(it.name for it in seen.keys)


A, B = gang("a", BOTH), gang("b", BOTH)
SMALL, BAD = gang("b", BOTH, minimum=8, pods=5), group(member("p", notes=koordinator("b", min_available="x")))
THIRD = gang("c", '["team/a","team/b","team/c"]')
APART = gang("a", ABROAD), gang("b", ABROAD, namespace="far")
LONG = ",".join(f'"far/{number:02}"' for number in range(40))
GANG_GROUPS: dict[str, tuple[tuple[MergedGroup, ...], str, tuple[str, ...], str]] = {
    "without a list": ((gang("a"), B), "a", (), ""),
    "a list of itself": ((gang("a", '["team/a"]'),), "a", (), ""),
    "of a design without lists": ((group(member("p", labels=alibaba())),), "g", (), ""),
    "both gathered": ((A, B), "a b", (), ""),
    "the other has not gathered": ((A, SMALL), "a b", ("team/b: 5/8 pods",), ""),
    "the other has a bad value, and is not this one's fault": ((A, BAD), "a b", ("team/b: invalid",), ""),
    "a third that adds itself does not disturb the pair": ((A, B, THIRD), "a b", (), ""),
    "the third itself": ((THIRD, A, B), "c", (), "must be the same on all of its gangs: "),
    "not in its own list": ((gang("a", '["team/b"]'), gang("b")), "a", (), "must contain the gang itself: team/a"),
    "a long list": ((gang("a", f'["team/a",{LONG}]'),), "a", (), " far/08, far/09 and 30 more"),
}
"""A gang and the others there are; who opens with it, for what it waits, and what is wrong."""


@pytest.mark.parametrize("case", GANG_GROUPS)
def test_gangs_open_together_that_all_say_so_and_have_gathered(case: str) -> None:
    (one, *others), together, waits, problem = GANG_GROUPS[case]
    seen = preconditions.gang_group_of(one, groups_by_key(one, *others).get)
    assert (names_of(seen), seen.waits_for, seen.problem is None) == (together, waits, not problem)
    assert problem in str(seen.problem)


def test_a_one_sided_list_is_the_fault_of_the_gang_that_made_it() -> None:
    groups = groups_by_key(A, gang("b")).get
    one, other = (preconditions.gang_group_of(it, groups) for it in (A, gang("b")))
    assert (names_of(one), names_of(other), other.problem, other.waits_for) == ("a", "b", None, ())
    assert str(one.problem).endswith("must be the same on all of its gangs: team/b has no GangGroup")


def test_across_namespaces_only_where_a_setting_allows_it() -> None:
    groups = groups_by_key(*APART).get
    for one in APART:
        assert preconditions.gang_group_of(one, groups).problem
        allowed = preconditions.gang_group_of(one, groups, across_namespaces=True)
        assert (names_of(allowed), allowed.problem, allowed.waits_for) == ("b a", None, ())


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


KEY = PodGroupKey(flavor=Flavor.ALIBABA, namespace="team", name="ring")


def owner(**spec: Any) -> Json:
    return {"metadata": {"name": "o"}, "spec": spec}


def part(name: str, *, group: str = "ring", replicas: int | None = 1, needs: tuple[str, ...] = (), **spec: Any) -> Json:
    template = {"metadata": {"labels": sources.alibaba(group)}, "spec": {}}
    made: Json = {"name": name, "template": {"spec": {**spec, "template": template}}}
    if replicas is not None:
        made["replicas"] = replicas
    return made | ({"dependsOn": [{"name": it, "status": "Ready"} for it in needs]} if needs else {})


def jobset(*parts: Json, order: str = "") -> Json:
    startup = {"startupPolicy": {"startupPolicyOrder": order}} if order else {}
    return owner(replicatedJobs=list(parts), **startup)


@pytest.mark.parametrize(
    ("kind", "spec", "most"),
    [
        ("Job", {}, 1),
        ("Job", {"parallelism": 4}, 4),
        ("Job", {"parallelism": 4, "completions": 2}, 2),
        ("StatefulSet", {"replicas": 3}, 1),
        ("StatefulSet", {"replicas": 0}, 0),
        ("StatefulSet", {"replicas": 3, "podManagementPolicy": "Parallel"}, 3),
        ("StatefulSet", {"podManagementPolicy": "Parallel"}, 1),
        ("ReplicaSet", {"replicas": 5}, 5),
        ("ReplicationController", {}, 1),
        ("TFJob", {"replicas": 5}, None),
    ],
)
def test_how_many_pods_an_owner_keeps_side_by_side(kind: str, spec: Json, most: int | None) -> None:
    found = owners.read_owner(kind, owner(**spec), KEY)
    assert [(it.kind, it.name, it.max_pods) for it in found] == [(kind, "o", most)]


@pytest.mark.parametrize(
    ("seen", "reported"),
    [
        (
            jobset(part("w", replicas=2, parallelism=3), part("x", group="another", parallelism=9)),
            ["JobSet o (w) makes 6"],
        ),
        (jobset(part("a", replicas=None), part("b")), ["JobSet o (a) makes 1", "JobSet o (b) makes 1"]),
        (jobset(part("a"), part("b"), order="InOrder"), ["JobSet o (a) makes 1", "JobSet o (b) waits for a"]),
        (jobset(part("a"), part("b", needs=("a",))), ["JobSet o (a) makes 1", "JobSet o (b) waits for a"]),
        (jobset(part("a", group="another"), part("b", needs=("a",))), ["JobSet o (b) makes 1"]),
        (
            jobset(part("a"), part("b", group="another", needs=("a",)), part("c", needs=("b",))),
            ["JobSet o (a) makes 1", "JobSet o (c) waits for a"],
        ),
    ],
)
def test_a_jobset_tells_of_all_its_jobs_that_are_in_the_group(seen: Json, reported: list[str]) -> None:
    assert [it.description for it in owners.read_owner("JobSet", seen, KEY)] == reported


def limits(
    hard: Json, used: Json | None = None, *, name: str = "q", namespace: str = "team", **spec: Any
) -> QuotaLimits:
    """One that nobody has counted yet unless it says what is used."""
    status = {} if used is None else {"status": {"hard": hard, "used": used}}
    body = {"metadata": {"name": name, "namespace": namespace}, "spec": {"hard": hard} | spec} | status
    return preconditions.read_quota(decoded(body, wire.ResourceQuota))


def wanting(*pods: Json, **resources: str) -> GroupSnapshot:
    """A KEP-24 wanting whose PodGroup says totalResources; each pod asks for 500m of cpu."""
    total = {name.replace("_", "/"): amount for name, amount in resources.items()}
    spec = {"minMembers": 2, "totalResources": total}
    return group_snapshot(*pods, of=KEP24_KEY, group=pod_group(spec=spec))


FOUR = wanting(cpu="4")
CHARGED = wanting(kep24_pod("a"), kep24_pod("b"), cpu="4")
"""For one cpu, gated or not."""
HALF_CHARGED = wanting(kep24_pod("a", status={"phase": "Succeeded"}), kep24_pod("b"), cpu="4")
TWO_KINDS = wanting(memory="4Gi", example_gpu="2")
NEAR = limits({"requests.example/gpu": "8"}, {"requests.example/gpu": "7"}, name="gpus")
FAR, WIDE = limits({"memory": "1Gi"}, namespace="elsewhere"), limits({"memory": "8Gi"})
HIGH = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}


@pytest.mark.parametrize(
    ("seen", "quotas", "shortage"),
    [
        *((FOUR, [limits({name: "10"}, {name: "6"})], "") for name in ("cpu", "requests.cpu")),
        *((FOUR, [limits({it: "10"}, {it: "7"})], "needs 4 cpu, 3 left") for it in ("cpu", "requests.cpu")),
        *((FOUR, [limits({it: "10"}, {it: "12"})], "needs 4 cpu, 0 left") for it in ("cpu", "requests.cpu")),
        (CHARGED, [limits({"cpu": "10"}, {"cpu": "7"})], ""),
        (CHARGED, [limits({"cpu": "10"}, {"cpu": "7500m"})], "needs 4 cpu, 3.5 left"),
        (HALF_CHARGED, [limits({"cpu": "10"}, {"cpu": "7"})], "needs 4 cpu, 3.5 left"),
        *((FOUR, [limits({"cpu": hard})], short) for hard, short in (("3", "needs 4 cpu, 3 left"), ("4", ""))),
        # Every quota of the namespace counts, and no other.
        (TWO_KINDS, [FAR, WIDE], ""),
        (TWO_KINDS, [FAR, WIDE, NEAR], "needs 2 example/gpu, 1 left in ResourceQuota gpus"),
        (TWO_KINDS, [limits({"memory": "5Gi"}, {"memory": "2Gi"})], "needs 4Gi memory, 3Gi left"),
        # What the group does not name, and limits of limits, do not count.
        (FOUR, [limits({"memory": "0", "limits.cpu": "0", "count/jobs.batch": "0"})], ""),
        # Quotas with scopes are not compared.
        *((CHARGED, [limits({"cpu": "1"}, scopes=[it])], "") for it in ("Terminating", "NotBestEffort")),
        (CHARGED, [limits({"cpu": "1"}, scopeSelector={"matchExpressions": [HIGH]})], ""),
    ],
)
def test_what_is_left_of_every_quota_must_suffice(
    seen: GroupSnapshot, quotas: list[QuotaLimits], shortage: str
) -> None:
    whole = f"{shortage} in ResourceQuota q" if shortage.endswith(" left") else shortage
    assert preconditions.quota_shortage(seen, quotas) == whole


def test_other_designs_have_no_total_resources() -> None:
    home = pod_group(spec={"minMember": 1, "minResources": {"cpu": "99"}})
    other = group_snapshot(pod("a"), of=key("team", "g", Flavor.SCHEDULER_PLUGINS), group=home)
    assert preconditions.quota_shortage(other, [limits({"cpu": "1"})]) == ""
