"""KEP-24's totalResources against what is left of the namespace's ResourceQuotas (G4)."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_gate.podgroups import preconditions, wire
from jobset_gate.podgroups.preconditions import QuotaLimits
from jobset_gate.podgroups.snapshot import GroupSnapshot
from tests.fakes.podgroups.objects import decoded, key, pod, pod_group
from tests.fakes.podgroups.snapshots import KEP24_KEY, group_snapshot, kep24_pod
from tests.fakes.podgroups.sources import Json


def limits(
    hard: Json, used: Json | None = None, *, name: str = "q", namespace: str = "team", **spec: Any
) -> QuotaLimits:
    body = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"hard": hard} | spec,
        "status": {"hard": hard, "used": used or {}},
    }
    return preconditions.read_quota(decoded(body, wire.ResourceQuota))


def group(*pods: Json, **resources: str) -> GroupSnapshot:
    """A KEP-24 group whose PodGroup says totalResources; each pod asks for 500m of cpu."""
    total = {name.replace("_", "/"): amount for name, amount in resources.items()}
    spec = {"minMembers": 2, "totalResources": total}
    return group_snapshot(*pods, of=KEP24_KEY, group=pod_group(spec=spec))


@pytest.mark.parametrize("name", ["cpu", "requests.cpu"])
def test_what_is_left_of_a_quota_must_suffice(name: str) -> None:
    seen = group(cpu="4")
    assert preconditions.quota_shortage(seen, [limits({name: "10"}, {name: "6"})]) == ""
    assert (
        preconditions.quota_shortage(seen, [limits({name: "10"}, {name: "7"})])
        == "needs 4 cpu, 3 left in ResourceQuota q"
    )
    assert (
        preconditions.quota_shortage(seen, [limits({name: "10"}, {name: "12"})])
        == "needs 4 cpu, 0 left in ResourceQuota q"
    )


def test_members_have_been_charged_already_gated_or_not() -> None:
    seen = group(kep24_pod("a"), kep24_pod("b"), cpu="4")  # charged for one cpu
    assert preconditions.quota_shortage(seen, [limits({"cpu": "10"}, {"cpu": "7"})]) == ""
    assert (
        preconditions.quota_shortage(seen, [limits({"cpu": "10"}, {"cpu": "7500m"})])
        == "needs 4 cpu, 3.5 left in ResourceQuota q"
    )
    ended = group(kep24_pod("a", status={"phase": "Succeeded"}), kep24_pod("b"), cpu="4")  # for half of one
    assert (
        preconditions.quota_shortage(ended, [limits({"cpu": "10"}, {"cpu": "7"})])
        == "needs 4 cpu, 3.5 left in ResourceQuota q"
    )


def test_every_quota_of_the_namespace_counts_and_no_other() -> None:
    seen = group(memory="4Gi", example_gpu="2")
    near = limits({"requests.example/gpu": "8"}, {"requests.example/gpu": "7"}, name="gpus")
    far = limits({"memory": "1Gi"}, namespace="elsewhere")
    assert preconditions.quota_shortage(seen, [far, limits({"memory": "8Gi"})]) == ""
    assert (
        preconditions.quota_shortage(seen, [far, limits({"memory": "8Gi"}), near])
        == "needs 2 example/gpu, 1 left in ResourceQuota gpus"
    )
    assert (
        preconditions.quota_shortage(seen, [limits({"memory": "5Gi"}, {"memory": "2Gi"})])
        == "needs 4Gi memory, 3Gi left in ResourceQuota q"
    )


def test_what_the_group_does_not_name_and_limits_of_limits_do_not_count() -> None:
    seen = group(cpu="4")
    assert (
        preconditions.quota_shortage(seen, [limits({"memory": "0", "limits.cpu": "0", "count/jobs.batch": "0"})]) == ""
    )


def test_a_quota_that_nobody_has_counted_yet_allows_all_it_says() -> None:
    body = {"metadata": {"name": "q", "namespace": "team"}, "spec": {"hard": {"cpu": "3"}}}
    fresh = preconditions.read_quota(decoded(body, wire.ResourceQuota))
    assert preconditions.quota_shortage(group(cpu="4"), [fresh]) == "needs 4 cpu, 3 left in ResourceQuota q"
    assert preconditions.quota_shortage(group(cpu="3"), [fresh]) == ""


def test_other_designs_have_no_total_resources() -> None:
    other = group_snapshot(pod("a"), of=key(), group=pod_group(spec={"minMember": 1, "minResources": {"cpu": "99"}}))
    assert preconditions.quota_shortage(other, [limits({"cpu": "1"})]) == ""


@pytest.mark.parametrize(
    "spec",
    [
        {"scopes": ["Terminating"]},
        {"scopes": ["NotBestEffort"]},
        {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}},
    ],
)
def test_quotas_with_scopes_are_not_compared(spec: Json) -> None:
    seen, scoped = group(kep24_pod("a"), cpu="4"), limits({"cpu": "1"}, **spec)
    assert preconditions.quota_shortage(seen, [scoped]) == ""
