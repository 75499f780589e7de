"""What `helm test` does: a server-side dry run of a gated JobSet, in a namespace that is not exempt."""

from typing import Any

import pytest

from tests.chart.helm import CHART, Helm, RenderedObjects, at
from tests.fakes.service_process import run_once
from tests.flow.environment import environment
from tests.plane.planes import Plane


def hook(found: RenderedObjects) -> dict[str, Any]:
    (container,) = found.one("Pod")["spec"]["containers"]
    return dict(container)


async def run(found: RenderedObjects, plane: Plane, *arguments: str) -> tuple[int, str]:
    """The pod's own command, by this Python, as the plane's administrator."""
    container = hook(found)
    assert container["command"][:2] == ["/opt/jobset-gate/bin/python", "-c"]
    return await run_once(plane.kubeconfig, *container["command"][1:], *(arguments or container["args"]))


async def test_it_passes_when_a_gated_jobset_gets_its_barrier_and_fails_without_the_webhook(
    helm4: Helm, plane: Plane, namespace: str
) -> None:
    async with environment(plane, namespace, controller=False):
        for form in ("field", "annotation"):
            code, said = await run(helm4.render(), plane, f"--namespace={namespace}", f"--form={form}")
            assert (code, said) == (0, f"a gated JobSet in namespace {namespace} gets its barrier")
        jobsets = await plane.kubectl("get", "jobsets", "-n", namespace, "-o", "name")
        assert jobsets.stdout == "", "a dry run has left an object behind"
    async with environment(plane, namespace, controller=False, webhook=False):
        code, said = await run(helm4.render(), plane, f"--namespace={namespace}", "--form=field")
    assert code == 1
    assert said.startswith(f"a gated JobSet in namespace {namespace} got no barrier: are the webhook configurations")


async def test_without_jobset_it_says_so(helm4: Helm, embedded_plane: Plane) -> None:
    assert await run(helm4.render(), embedded_plane) == (1, "JobSet is not installed in this cluster")


@pytest.mark.parametrize(
    ("release", "given", "where"),
    [("jobset-gate-system", "", "default"), ("default", "", "kube-public"), ("default", "team", "team")],
)
def test_it_never_runs_in_the_namespace_of_the_release(helm4: Helm, release: str, given: str, where: str) -> None:
    """It is exempt from the webhook."""
    found = helm4.render(at("tests.namespace", given), namespace=release)
    assert f"--namespace={where}" in hook(found)["args"]
    assert found.one("Pod")["metadata"]["namespace"] == release
    for kind in ("Role", "RoleBinding"):
        assert found.one(kind, "jobset-gate-dry-run")["metadata"]["namespace"] == where


@pytest.mark.parametrize(("extended", "form"), [(True, "field"), (False, "annotation")])
def test_it_uses_the_form_that_a_user_would(helm4: Helm, extended: bool, form: str) -> None:
    assert f"--form={form}" in hook(helm4.render(at("crds.extendJobSet", extended)))["args"]


def test_its_objects_are_hooks(helm4: Helm) -> None:
    found = helm4.render()
    parts = [one for one in found.all if one["metadata"]["name"] == "jobset-gate-dry-run"]
    assert sorted(one["kind"] for one in parts) == ["Pod", "Role", "RoleBinding", "ServiceAccount"]
    for one in parts:
        notes = one["metadata"]["annotations"]
        assert notes["helm.sh/hook"] == "test"
        assert notes["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
        assert int(notes["helm.sh/hook-weight"]) == (1 if one["kind"] == "Pod" else 0)
    pod = found.one("Pod")["spec"]
    assert (pod["serviceAccountName"], pod["restartPolicy"]) == ("jobset-gate-dry-run", "Never")
    assert hook(found)["command"][2].strip() == (CHART / "scripts" / "dry_run.py").read_text().strip()
    assert "helm.sh/hook: test" not in helm4.text(at("tests.enabled", False))
