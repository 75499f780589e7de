"""Owners of pods, read for whether they can ever gather a group while its pods are held (G3, CannotGather)."""

from typing import Any

import pytest

from jobset_gate.podgroups import owners
from jobset_gate.podgroups.model import Flavor, PodGroupKey
from tests.fakes.podgroups import sources

Json = dict[str, Any]
KEY = PodGroupKey(flavor=Flavor.ALIBABA, namespace="team", name="ring")


def owner(**spec: Any) -> Json:
    return {"metadata": {"name": "o"}, "spec": spec}


def part(name: str, *, group: str = "ring", replicas: int | None = 1, needs: tuple[str, ...] = (), **spec: Any) -> Json:
    """An entry of spec.replicatedJobs."""
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
        ("Job", {"parallelism": 4, "completions": 9}, 4),
        ("Job", {"parallelism": 0}, 0),
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
        (
            jobset(part("a"), part("b"), order="InOrder"),
            ["JobSet o (a) makes 1", "JobSet o (b) waits for a"],
        ),
        # What comes before and is not held becomes ready, and then the group's turn has come.
        (jobset(part("a", group="another"), part("b"), order="InOrder"), ["JobSet o (b) makes 1"]),
        (jobset(part("a"), part("b"), order="AnyOrder"), ["JobSet o (a) makes 1", "JobSet o (b) makes 1"]),
        (jobset(part("a"), part("b", needs=("a",))), ["JobSet o (a) makes 1", "JobSet o (b) waits for a"]),
        (jobset(part("a", group="another"), part("b", needs=("a",))), ["JobSet o (b) makes 1"]),
        (
            jobset(part("a"), part("b", group="another", needs=("a",)), part("c", needs=("b",))),
            ["JobSet o (a) makes 1", "JobSet o (c) waits for a"],
        ),
        (
            jobset(part("a", needs=("b",)), part("b", needs=("a",))),
            ["JobSet o (a) waits for b", "JobSet o (b) waits for a"],
        ),
    ],
)
def test_a_jobset_tells_of_all_its_jobs_that_are_in_the_group(seen: Json, reported: list[str]) -> None:
    assert [it.description for it in owners.read_owner("JobSet", seen, KEY)] == reported


def test_a_group_that_waits_for_itself_can_never_gather() -> None:
    made = owners.read_owner("JobSet", jobset(part("a"), part("b", needs=("a",))), KEY)
    group = sources.group(sources.member("o-a-0", labels=sources.alibaba("ring", "2")))
    assert owners.capacity_shortage(group, made) == (
        "needs 2 pods at once, 1 can be there: JobSet o (a) makes 1; JobSet o (b) waits for a"
    )


@pytest.mark.parametrize(
    "odd", [{}, {"spec": None}, {"spec": {"replicas": "x", "replicatedJobs": [None, {"template": 3}]}}]
)
def test_no_shape_of_an_owner_is_too_odd(odd: Json) -> None:
    for kind in ("Job", "JobSet", "StatefulSet", "ReplicaSet", "Other"):
        owners.read_owner(kind, odd, KEY)
