"""Every pod of the chart, those of hooks included, passes Pod Security "restricted" and can write nowhere but /tmp."""

from collections.abc import Iterator

import pytest

from tests.chart.helm import Helm, Json, RenderedObjects, at, merged
from tests.chart.samples import SAMPLES

HARMLESS_VOLUMES = {"configMap", "emptyDir", "secret", "projected", "downwardAPI"}


def pods(found: RenderedObjects) -> Iterator[tuple[str, Json]]:
    for one in found.kind("Deployment") + found.kind("Job"):
        yield one["metadata"]["name"], one["spec"]["template"]["spec"]
    for one in found.kind("Pod"):
        yield one["metadata"]["name"], one["spec"]


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_pod_is_restricted(helm4: Helm, sample: str) -> None:
    found = list(pods(helm4.render(merged(at("crds.keep", False), SAMPLES[sample]))))
    assert len(found) >= 2
    for name, pod in found:
        its = pod["securityContext"]
        assert its["runAsNonRoot"] is True, name
        assert its["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        assert all(set(volume) - {"name"} <= HARMLESS_VOLUMES for volume in pod.get("volumes", []))
        for container in pod["containers"]:
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert own["readOnlyRootFilesystem"] is True
            assert not any("hostPort" in port for port in container.get("ports", []))


def test_nothing_is_written_but_in_tmp(helm4: Helm) -> None:
    for component in ("webhook", "controller"):
        found = helm4.render()
        writable = [one["mountPath"] for one in found.container(component)["volumeMounts"] if not one.get("readOnly")]
        assert writable == ["/tmp"]  # noqa: S108 - in a pod


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_token_is_mounted_where_it_is_needed_and_nowhere_else(helm4: Helm, sample: str) -> None:
    """A pod that somebody else runs under one of these accounts gets none."""
    found = helm4.render(merged(at("crds.keep", False), SAMPLES[sample]))
    assert all(one["automountServiceAccountToken"] is False for one in found.kind("ServiceAccount"))
    for name, pod in pods(found):
        assert pod["automountServiceAccountToken"] is True, name
        assert pod["enableServiceLinks"] is False


def test_a_platform_may_choose_the_user(helm4: Helm) -> None:
    """OpenShift: it does, for pods that name none."""
    unset = {"runAsUser": None, "runAsGroup": None, "fsGroup": None}
    for _, pod in pods(helm4.render({"podSecurityContext": unset})):
        assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def test_each_component_has_an_account_of_its_own(helm4: Helm) -> None:
    found = helm4.render(at("crds.keep", False))
    accounts = [pod["serviceAccountName"] for _, pod in pods(found)]
    assert sorted(accounts) == sorted(set(accounts))
    assert set(accounts) == {one["metadata"]["name"] for one in found.kind("ServiceAccount")}


@pytest.mark.parametrize(
    ("account", "name"),
    [
        ({"create": False}, "default"),
        ({"create": False, "name": "mine"}, "mine"),
        ({"name": "mine"}, "mine"),
        ({}, "jobset-gate-webhook"),
    ],
)
def test_another_account_gets_the_rights_as_well(helm4: Helm, account: Json, name: str) -> None:
    found = helm4.render({"webhook": {"serviceAccount": account}})
    assert found.pod("webhook")["spec"]["serviceAccountName"] == name
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        (subject,) = found.one(kind, "jobset-gate-webhook")["subjects"]
        assert subject == {"kind": "ServiceAccount", "name": name, "namespace": "jobset-gate-system"}
    made = {one["metadata"]["name"] for one in found.kind("ServiceAccount")}
    assert (name in made) is account.get("create", True)
