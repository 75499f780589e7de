"""The field in JobSet's CRD: switched off by a value, and taken out on uninstalling if that is asked for."""

from typing import Final

import pytest

from jobset_gate import names
from tests.chart.helm import Helm, Json, RenderedObjects, at, merged

REMOVED: Final = at("crds.keep", False)
POLICY: Final = "helm.sh/hook-delete-policy"


NAME: Final = "jobset-gate-crd-field"


def hooks(found: RenderedObjects, event: str) -> list[Json]:
    return [one for one in found.all if one["metadata"].get("annotations", {}).get("helm.sh/hook") == event]


def field_hooks(found: RenderedObjects) -> list[Json]:
    return [one for one in hooks(found, "post-delete") if one["metadata"]["name"] == NAME]


@pytest.mark.parametrize(
    "values", [{}, at("crds", {"extendJobSet": False, "keep": False})], ids=["kept", "never-put-in"]
)
def test_by_default_uninstalling_runs_nothing(helm4: Helm, values: Json) -> None:
    assert field_hooks(helm4.render(values)) == []


def test_it_is_taken_out_after_everything_else_is_gone(helm4: Helm) -> None:
    """Before that the controller, which still runs and still may, would put it back at once."""
    found = helm4.render(REMOVED)
    assert hooks(found, "pre-delete") == []
    kinds = {one["kind"] for one in field_hooks(found)}
    assert kinds == {"Job", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"}


def test_the_job_may_do_that_and_no_more(helm4: Helm) -> None:
    found = helm4.render(REMOVED)
    (rule,) = found.one("ClusterRole", NAME)["rules"]
    assert rule["resources"] == ["customresourcedefinitions"]
    assert rule["resourceNames"] == ["jobsets.jobset.x-k8s.io"]
    assert rule["verbs"] == ["get", "patch"]
    assert found.one("Job", NAME)["spec"]["template"]["spec"]["serviceAccountName"] == NAME
    (subject,) = found.one("ClusterRoleBinding", NAME)["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": NAME, "namespace": "jobset-gate-system"}


def test_its_account_is_there_before_it_and_all_goes_with_it(helm4: Helm) -> None:
    parts = field_hooks(helm4.render(REMOVED))
    weights = {one["kind"]: int(one["metadata"]["annotations"]["helm.sh/hook-weight"]) for one in parts}
    assert all(weight < weights["Job"] for kind, weight in weights.items() if kind != "Job")
    assert {one["metadata"]["annotations"][POLICY] for one in parts} == {"before-hook-creation,hook-succeeded"}


def test_a_job_that_cannot_run_ends_by_itself(helm4: Helm) -> None:
    spec = helm4.render(REMOVED).one("Job", NAME)["spec"]
    assert spec["activeDeadlineSeconds"] < 300  # Helm's own patience
    assert spec["ttlSecondsAfterFinished"] == 3600
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


def test_switched_off_nothing_is_left_of_it(helm4: Helm) -> None:
    values = at("crds", {"extendJobSet": False, "keep": False})
    # A policy names it all the same, to refuse.
    assert names.JOBSET_CRD not in helm4.text(merged(values, at("admissionPolicies.enabled", False)))
    assert "--no-extend-crd" in helm4.render(values).container("controller")["args"]
