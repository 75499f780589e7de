"""Uninstalling lets go of the pods of groups: a Job removes their gates when nobody is left who would put them on."""

from collections.abc import AsyncIterator
from typing import Final

import pytest

from jobset_gate import names
from jobset_gate.kube.resources import JOBS, MUTATING_WEBHOOKS, PODS
from tests.chart.cluster import ChartRelease, fresh_release
from tests.chart.helm import Helm, Json, RenderedObjects, at
from tests.chart.hook_pods import as_program
from tests.chart.test_arguments import understood
from tests.chart.test_crd_field import hooks
from tests.plane.planes import Real

NAME: Final = "jobset-gate-ungate"
KINDS: Final = {"Job", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"}


def parts(found: RenderedObjects) -> dict[str, Json]:
    return {one["kind"]: one for one in hooks(found, "post-delete") if one["metadata"]["name"] == NAME}


def test_it_runs_after_everything_else_is_gone(helm4: Helm) -> None:
    """Nothing runs before: what cannot run, for want of its image, would stand in the way of uninstalling."""
    found = helm4.render()
    assert parts(found).keys() == KINDS
    assert hooks(found, "pre-delete") == []


def test_its_account_is_there_before_it_and_all_goes_with_it(helm4: Helm) -> None:
    mine = parts(helm4.render())
    notes = {kind: one["metadata"]["annotations"] for kind, one in mine.items()}
    weights = {kind: int(note["helm.sh/hook-weight"]) for kind, note in notes.items()}
    assert all(weight < weights["Job"] for kind, weight in weights.items() if kind != "Job")
    assert {note["helm.sh/hook-delete-policy"] for note in notes.values()} == {"before-hook-creation,hook-succeeded"}


def test_a_job_that_cannot_run_ends_by_itself(helm4: Helm) -> None:
    spec = parts(helm4.render())["Job"]["spec"]
    assert spec["activeDeadlineSeconds"] < 300  # Helm's own patience
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


def test_its_arguments_are_understood(helm4: Helm) -> None:
    (container,) = parts(helm4.render())["Job"]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["groups", "ungate", "--all", "--yes"]
    assert understood(container["args"])[0] == "groups"


def test_without_groups_there_is_nothing_to_let_go(helm4: Helm) -> None:
    assert parts(helm4.render(at("groups.enabled", False))) == {}


def test_roles_may_be_somebody_else_s(helm4: Helm) -> None:
    assert parts(helm4.render(at("rbac.create", False))).keys() == {"Job", "ServiceAccount"}


@pytest.fixture
async def release(real_plane: Real, helm: Helm) -> AsyncIterator[ChartRelease]:
    async with fresh_release(real_plane, helm) as made:
        yield made


def held_pod(name: str, *others: str) -> Json:
    gates = [{"name": gate} for gate in (names.POD_GROUP_GATE, *others)]
    return {
        "metadata": {"name": name, "labels": {names.POD_GROUP_LABEL: "0" * 32}},
        "spec": {"containers": [{"name": "main", "image": "busybox"}], "schedulingGates": gates},
    }


def gates(pod: Json) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


@pytest.mark.real
@pytest.mark.timeout(300)
async def test_first_the_webhook_for_pods_goes_then_our_gates(release: ChartRelease) -> None:
    there: set[str] = set()
    command = as_program(release.plane.kubeconfig)
    async with release.plane.client() as client:

        async def looked_around(pod: Json) -> None:
            there.update(one["metadata"]["name"] for one in (await client.list(MUTATING_WEBHOOKS))["items"])
            await command(pod)

        await release.install()
        assert await client.get(MUTATING_WEBHOOKS, names.POD_WEBHOOK)
        # In the namespace of the release, of which nothing is ever sent to the webhook: here it has no program.
        for pod in (held_pod("ours"), held_pod("shared", "example.com/theirs")):
            await client.create(PODS, pod, release.namespace)
        await release.uninstall(hooks=looked_around)
        assert names.POD_WEBHOOK not in there
        assert gates(await client.get(PODS, "ours", release.namespace)) == []
        assert gates(await client.get(PODS, "shared", release.namespace)) == ["example.com/theirs"]
        for name in ("ours", "shared"):
            await client.delete(PODS, name, release.namespace, grace_seconds=0)
        await release.until_nothing_is_left()
        assert (await client.list(JOBS, release.namespace))["items"] == []
