"""`groups ungate`: what it asks before it acts, what it does with rights that are not enough, and what it says (G4)."""

from jobset_gate import names
from jobset_gate.cli.options import DryRun
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, MUTATING_WEBHOOKS, POD_GROUPS, PODS
from jobset_gate.podgroups.model import Format, group_label
from tests.fakes.cli_runner import CliShell
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated
from tests.fakes.stored_pod_groups import StoredPodGroups, lease
from tests.flow.cli.conftest import LimitedUser

KINDS = ("pods", "jobs", "configmaps", "podgroups", "jobsets")


async def held(groups: StoredPodGroups) -> list[str]:
    """Names of the pods that our gate still holds."""
    found = await groups.client.list(PODS, groups.namespace)
    return sorted(it["metadata"]["name"] for it in found["items"] if gated(it))


async def test_named_groups_are_freed_whatever_their_way_and_nothing_else(
    groups: StoredPodGroups, cli: CliShell
) -> None:
    await groups.held("ring", "a", "b", way=Format.KEP_24)
    await groups.held("ring", "c", way=Format.ALIBABA, minimum=2)
    await groups.held("star", "d")
    ran = await cli("groups", "ungate", "ring", "rign", "--yes")
    assert f"warning: no pod of a group rign is held in namespace {groups.namespace}\n" in ran.err
    assert "a group ring is held" not in ran.err
    assert (ran.code, ran.out.splitlines()) == (
        0,
        [
            f"group {groups.namespace}/ring (alibaba): 1 pod freed",
            f"group {groups.namespace}/ring (kep-24): 2 pods freed",
            "3 pods freed",
        ],
    )
    assert await held(groups) == ["d"]


async def test_our_gate_alone_is_removed_also_where_the_label_is_gone(groups: StoredPodGroups, cli: CliShell) -> None:
    """A user has removed the label of one; the other waits for another gate as well."""
    await groups.held("star", "less", way=Format.ALIBABA, minimum=2)
    less = {"metadata": {"labels": {names.POD_GROUP_LABEL: None}}}
    await groups.client.patch(PODS, "less", groups.namespace, body=less, patch=PatchType.MERGE)
    other = manifests.held(manifests.pod("other", "ring", gates=["other.dev/gate"]), groups.namespace, "ring")
    await groups.client.create(PODS, other, groups.namespace)
    ran = await cli("groups", "ungate", "--all", "--yes")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "2 pods freed")
    found = await groups.client.get(PODS, "other", groups.namespace)
    assert found["spec"]["schedulingGates"] == [{"name": "other.dev/gate"}]
    assert await held(groups) == []


async def test_owners_that_were_suspended_for_a_roll_back_go_on_and_no_others(
    groups: StoredPodGroups, cli: CliShell
) -> None:
    for name, mark in (("work", {names.POD_GROUP_SUSPENDED: f"{group_label(groups.key('ring'))}.1"}), ("theirs", {})):
        job = manifests.job(name, "ring", 2, suspend=True)
        job["metadata"] |= {"annotations": mark, "labels": mark}
        await groups.client.create(JOBS, job, groups.namespace)
    ran = await cli("groups", "ungate", "--all", "--yes")
    assert (ran.code, f"Job {groups.namespace}/work: resumed" in ran.out) == (0, True)
    work, theirs = [await groups.client.get(JOBS, it, groups.namespace) for it in ("work", "theirs")]
    assert (work["spec"]["suspend"], theirs["spec"]["suspend"]) == (False, True)
    assert names.POD_GROUP_SUSPENDED not in work["metadata"].get("annotations", {})


async def test_without_a_yes_or_with_a_dry_run_nothing_happens(groups: StoredPodGroups, cli: CliShell) -> None:
    await groups.held("ring", "a", "b")
    asked = await cli("groups", "ungate", "--all")
    assert (asked.code, asked.out) == (2, "")
    assert "2 pods would be freed: say --yes" in asked.err
    for who in ("client", "server"):
        dry = await cli("groups", "ungate", "--all", f"--dry-run={who}")
        assert (dry.code, dry.out.splitlines()[-1]) == (0, f"2 pods would be freed{DryRun(who).suffix}")
    assert await held(groups) == ["a", "b"]


async def test_records_are_removed_if_no_controller_runs(alone: StoredPodGroups, cli_alone: CliShell) -> None:
    await alone.group("ring", 2, decided=alone.decided("ring"))
    await alone.record("star", alone.decided("star", Format.ALIBABA))
    words = ("groups", "ungate", "--all")
    assert "records of decisions would be removed: 2" in (await cli_alone(*words, "--dry-run=client")).out
    ran = await cli_alone(*words, "--yes")
    assert ran.out.splitlines() == ["records of decisions removed: 2", "0 pods freed"]
    left = await alone.client.get(POD_GROUPS[names.PLUGINS_GROUP], "ring", "team")
    assert names.POD_GROUP_RECORD not in left["metadata"].get("annotations", {})
    assert (await alone.client.list(CONFIGMAPS, "team"))["items"] == []


async def test_a_controller_that_runs_keeps_its_records_and_is_named_as_a_webhook_is_that_holds_new_pods(
    alone: StoredPodGroups, cli_alone: CliShell
) -> None:
    await alone.client.create(MUTATING_WEBHOOKS, {"metadata": {"name": names.POD_WEBHOOK}, "webhooks": []})
    await lease(alone.client, "sys", "replica-1")
    await alone.record("star", alone.decided("star", Format.ALIBABA))
    await alone.held("star", "a", way=Format.ALIBABA, minimum=2)
    ran = await cli_alone("groups", "ungate", "--all", "--yes")
    assert ran.out.splitlines()[-1] == "1 pod freed"
    assert "warning: a controller runs: replica-1 holds the Lease sys/jobset-gate-controller" in ran.err
    shown = f"{names.POD_WEBHOOK} is still there: pods that are created from now on are held"
    assert shown in ran.err
    assert len((await alone.client.list(CONFIGMAPS, "team"))["items"]) == 1


async def test_rights_on_pods_alone_are_enough_to_free_them(
    groups: StoredPodGroups, cli: CliShell, limited: LimitedUser
) -> None:
    await groups.held("ring", "a", "b")
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "patch"]}]
    ran = await cli.user(await limited(rules))("groups", "ungate", "ring", "--yes")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "2 pods freed")
    assert "whether Jobs and JobSets were suspended is not known" in ran.err
    assert await held(groups) == []


async def test_pods_that_may_not_be_patched_are_named_and_it_fails(
    groups: StoredPodGroups, cli: CliShell, limited: LimitedUser
) -> None:
    await groups.held("ring", "a", "b")
    rules = [{"apiGroups": ["", "batch", "jobset.x-k8s.io"], "resources": [*KINDS], "verbs": ["list"]}]
    rules += [{"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"], "resourceNames": ["a"]}]
    ran = await cli.user(await limited(rules))("groups", "ungate", "ring", "--yes")
    assert (ran.code, ran.out.splitlines()[-1]) == (1, "1 pod freed")
    assert f"error: pod {groups.namespace}/b: " in ran.err
    assert await held(groups) == ["b"]
