"""The Jobs after an uninstallation: one removes scheduling gates, one the CRD field where a value says so."""

from typing import Final

import pytest

from controllers.barrier import crd_patcher
from jobset_gate import names
from jobset_gate.kube.resources import CRDS, JOBS, MUTATING_WEBHOOKS, PODS
from jobset_gate_demo.fake import jobset_crd
from tests.chart.cluster import fresh_release
from tests.chart.helm import Helm, Json, RenderedObjects, at, merged
from tests.chart.hook_pods import as_program
from tests.chart.test_settings import parse
from tests.plane.planes import Real

FIELD: Final = "jobset-gate-crd-field"
UNGATE: Final = "jobset-gate-ungate"
REMOVED: Final = at("crds.keep", False)
OFF: Final = at("crds", {"extendJobSet": False, "keep": False})
KINDS: Final = {"Job", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"}


def hooks(found: RenderedObjects, event: str) -> list[Json]:
    return [one for one in found.all if one["metadata"].get("annotations", {}).get("helm.sh/hook") == event]


def parts(found: RenderedObjects, name: str) -> dict[str, Json]:
    return {one["kind"]: one for one in hooks(found, "post-delete") if one["metadata"]["name"] == name}


def test_hooks_run_after_everything_else_is_gone(helm4: Helm) -> None:
    """Before that, the controller would restore the field, and a Job without an image would block uninstalling."""
    found = helm4.render(REMOVED)
    assert hooks(found, "pre-delete") == []
    assert parts(found, FIELD).keys() == parts(found, UNGATE).keys() == KINDS


@pytest.mark.parametrize(
    ("values", "name", "kinds"),
    [
        ({}, FIELD, set()),
        (OFF, FIELD, set()),
        (at("groups.enabled", False), UNGATE, set()),
        (at("rbac.create", False), UNGATE, {"Job", "ServiceAccount"}),
    ],
)
def test_a_hook_is_there_only_where_it_has_work(helm4: Helm, values: Json, name: str, kinds: set[str]) -> None:
    assert parts(helm4.render(values), name).keys() == kinds


@pytest.mark.parametrize("name", [FIELD, UNGATE])
def test_the_account_is_created_before_the_job_and_all_is_deleted_with_it(helm4: Helm, name: str) -> None:
    found = parts(helm4.render(REMOVED), name)
    notes = {kind: one["metadata"]["annotations"] for kind, one in found.items()}
    weights = {kind: int(note["helm.sh/hook-weight"]) for kind, note in notes.items()}
    assert all(weight < weights["Job"] for kind, weight in weights.items() if kind != "Job")
    assert {note["helm.sh/hook-delete-policy"] for note in notes.values()} == {"before-hook-creation,hook-succeeded"}
    spec = found["Job"]["spec"]
    assert spec["activeDeadlineSeconds"] < 300  # Helm's own timeout
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    assert spec["template"]["spec"]["serviceAccountName"] == name


def test_the_programs_know_the_commands_of_the_hooks(helm4: Helm) -> None:
    def arguments(name: str) -> list[str]:
        (container,) = parts(helm4.render(REMOVED), name)["Job"]["spec"]["template"]["spec"]["containers"]
        return list(container["args"])

    command, options = parse(arguments(FIELD))
    assert (command, {key: value for key, value in options.items() if value}) == ("install-crd-field", {"remove": True})
    assert arguments(UNGATE) == ["groups", "ungate", "--all", "--yes"]
    assert parse(arguments(UNGATE))[0] == "groups"


def test_switched_off_nothing_names_the_crd(helm4: Helm) -> None:
    # A policy names it all the same, to refuse.
    assert names.JOBSET_CRD not in helm4.text(merged(OFF, at("admissionPolicies.enabled", False)))


# --- On a real API server --------------------------------------------------------------------------------------------


def gated_pod(name: str, *others: str) -> Json:
    gates = [{"name": gate} for gate in (names.POD_GROUP_GATE, *others)]
    return {
        "metadata": {"name": name, "labels": {names.POD_GROUP_LABEL: "0" * 32}},
        "spec": {"containers": [{"name": "main", "image": "busybox"}], "schedulingGates": gates},
    }


def gates(pod: Json) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


@pytest.mark.real
async def test_the_webhook_for_pods_is_deleted_first_then_the_gates(real_plane: Real, helm4: Helm) -> None:
    """And the field, where the value says so; nothing is left."""
    there: set[str] = set()
    command = as_program(real_plane.kubeconfig)
    async with fresh_release(real_plane, helm4) as release, real_plane.client() as client:

        async def list_webhooks_then_run(pod: Json) -> None:
            there.update(one["metadata"]["name"] for one in (await client.list(MUTATING_WEBHOOKS))["items"])
            await command(pod)

        await jobset_crd.install(client)
        await crd_patcher.extend_crd(client)
        await release.install(REMOVED)
        assert await client.get(MUTATING_WEBHOOKS, names.POD_WEBHOOK)
        # The namespace of the release is exempt: here no program serves the webhook.
        for pod in (gated_pod("ours"), gated_pod("shared", "example.com/theirs")):
            await client.create(PODS, pod, release.namespace)
        await release.uninstall(hooks=list_webhooks_then_run)
        assert names.POD_WEBHOOK not in there
        assert names.CONFIG_FIELD not in str(await client.get(CRDS, names.JOBSET_CRD))
        assert gates(await client.get(PODS, "ours", release.namespace)) == []
        assert gates(await client.get(PODS, "shared", release.namespace)) == ["example.com/theirs"]
        for name in ("ours", "shared"):
            await client.delete(PODS, name, release.namespace, grace_seconds=0)
        await release.until_nothing_is_left()
        assert (await client.list(JOBS, release.namespace))["items"] == []
