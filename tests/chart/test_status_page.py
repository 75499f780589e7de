"""The status page: off by default; on, within the pod or with TLS for others, and never otherwise."""

from pathlib import Path
from typing import Final

import pytest

from jobset_gate.cli import settings_file
from tests.chart.helm import Helm, Json, RenderedObjects, at, merged

ON: Final = at("statusPage.enabled", True)
TLS: Final = merged(ON, at("statusPage.tlsSecretName", "page-tls"))
FOLDER: Final = Path("/etc/jobset-gate-page")
PORT: Final = {"name": "page", "containerPort": 8083, "protocol": "TCP"}


def told(found: RenderedObjects, folder: Path) -> Json:
    """What the controller reads about it."""
    path = folder / "settings.yaml"
    path.write_text(found.one("ConfigMap", "jobset-gate")["data"]["settings.yaml"])
    controller = settings_file.read(path).controller.model_dump()
    return {key: value for key, value in controller.items() if key.startswith("page_")}


def services(found: RenderedObjects) -> list[str]:
    return [one["metadata"]["name"] for one in found.kind("Service") if one["metadata"]["name"].endswith("-page")]


def test_there_is_none_by_default(helm4: Helm, tmp_path: Path) -> None:
    found = helm4.render()
    assert told(found, tmp_path)["page_port"] == 0
    assert PORT not in found.container("controller")["ports"]
    assert services(found) == []
    assert "reviews" not in str(found.kind("ClusterRole"))


def test_without_a_certificate_it_stays_within_the_pod(helm4: Helm, tmp_path: Path) -> None:
    """`kubectl port-forward` ends there. Viewers send their tokens: nobody else may reach it in clear text."""
    found = helm4.render(ON)
    its = told(found, tmp_path)
    assert (its["page_address"], its["page_port"]) == ("127.0.0.1", 8083)
    assert its["page_tls_cert"] is its["page_tls_key"] is None
    assert PORT in found.container("controller")["ports"]
    assert services(found) == []


def test_with_a_certificate_it_is_there_for_others(helm4: Helm, tmp_path: Path) -> None:
    found = helm4.render(TLS)
    its = told(found, tmp_path)
    assert (its["page_address"], its["page_port"]) == ("0.0.0.0", 8083)  # noqa: S104 - what a pod listens on
    assert (Path(its["page_tls_cert"]), Path(its["page_tls_key"])) == (FOLDER / "tls.crt", FOLDER / "tls.key")
    (mounted,) = [one for one in found.container("controller")["volumeMounts"] if one["mountPath"] == str(FOLDER)]
    (volume,) = [one for one in found.pod("controller")["spec"]["volumes"] if one["name"] == mounted["name"]]
    assert mounted["readOnly"]
    assert volume["secret"] == {"secretName": "page-tls"}


def test_its_service_leads_to_the_controllers_and_each_viewer_to_one_of_them(helm4: Helm) -> None:
    """The one that knows his cookie."""
    found = helm4.render(merged(TLS, at("statusPage.port", 9443), at("fullnameOverride", "door")))
    service = found.one("Service", "door-page")["spec"]
    controllers = found.one("Deployment", "door-controller")["spec"]
    assert service["selector"] == controllers["selector"]["matchLabels"]
    assert service["sessionAffinity"] == "ClientIP"
    assert service["ports"] == [{"name": "https", "port": 9443, "targetPort": "page", "protocol": "TCP"}]
    (container,) = controllers["template"]["spec"]["containers"]
    assert PORT | {"containerPort": 9443} in container["ports"]


def test_it_may_ask_whose_a_token_is_and_nothing_more(helm4: Helm) -> None:
    def rules(values: Json) -> list[Json]:
        return list(helm4.render(values).one("ClusterRole", "jobset-gate-controller")["rules"])

    without = rules({})
    assert [rule for rule in rules(ON) if rule not in without] == [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ]


@pytest.mark.parametrize("port", [8080, 8082])
def test_a_port_that_the_pod_uses_otherwise_is_refused(helm4: Helm, port: int) -> None:
    assert "statusPage.port: another than" in helm4.refusal(merged(ON, at("statusPage.port", port)))
