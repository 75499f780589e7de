"""The three ways to a certificate: own, by cert-manager, brought; each with its arguments, mounts, rights, objects."""

from typing import Any, Final

import pytest

from tests.chart.helm import Helm, Json, at, merged

MODES: Final[dict[str, Json]] = {
    "own": {},
    "certManager": at("webhook.certificates.mode", "certManager"),
    "secret": at("webhook.certificates", {"mode": "secret", "secretName": "webhook-tls"}),
}
FILES: Final = ["--tls-cert=/etc/jobset-gate-tls/tls.crt", "--tls-key=/etc/jobset-gate-tls/tls.key"]
SERVICE: Final = "--service=jobset-gate-system/jobset-gate-webhook"
OWN: Final = ["--own-ca=jobset-gate-ca", "--ca-days=365", "--leaf-hours=168"]
ARGUMENTS: Final = {
    "own": [*OWN, SERVICE],
    "certManager": [*FILES, "--check-trust", SERVICE],
    "secret": [*FILES, "--tls-ca=/etc/jobset-gate-tls/ca.crt", "--publish-ca", SERVICE],
}
INJECT: Final = "cert-manager.io/inject-ca-from"
CONFIGURATIONS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


@pytest.mark.parametrize("mode", MODES)
def test_the_webhook_gets_the_arguments_of_its_mode(helm4: Helm, mode: str) -> None:
    args = helm4.render(MODES[mode]).container("webhook")["args"]
    about = ("--own", "--ca-", "--leaf", "--tls", "--check", "--publish", "--service", "--self", "--register")
    assert [one for one in args if one.startswith(about)] == ARGUMENTS[mode]


@pytest.mark.parametrize(("mode", "secret"), [("certManager", "jobset-gate-webhook-tls"), ("secret", "webhook-tls")])
def test_a_secret_with_a_certificate_is_mounted(helm4: Helm, mode: str, secret: str) -> None:
    found = helm4.render(MODES[mode])
    volumes = found.pod("webhook")["spec"]["volumes"]
    (volume,) = [one for one in volumes if one["name"] == "certificate"]
    assert volume["secret"] == {"secretName": secret, "defaultMode": 0o440}
    assert found.pod("webhook")["spec"]["securityContext"]["fsGroup"] == 65532  # who may read it then
    mount = {"name": "certificate", "mountPath": "/etc/jobset-gate-tls", "readOnly": True}
    assert mount in found.container("webhook")["volumeMounts"]


def test_our_own_ca_is_in_memory_and_in_one_secret(helm4: Helm) -> None:
    found = helm4.render()
    assert all("secret" not in volume for volume in found.pod("webhook")["spec"]["volumes"])
    secret = found.one("Secret", "jobset-gate-ca")
    assert (set(secret), secret["type"]) == ({"apiVersion", "kind", "metadata", "type"}, "Opaque")
    assert "cert-manager.io" not in helm4.text()
    for mode in ("certManager", "secret"):
        assert helm4.render(MODES[mode]).kind("Secret") == []


@pytest.mark.parametrize(
    ("said", "days", "hours"), [("36h", "1.5", "36"), ("1h30m", "0.0625", "1.5"), ("2700s", "0.03125", "0.75")]
)
def test_durations_are_in_the_units_of_the_program(helm4: Helm, said: str, days: str, hours: str) -> None:
    found = helm4.render(at("webhook.certificates", {"caDuration": said, "leafDuration": said}))
    assert {f"--ca-days={days}", f"--leaf-hours={hours}"} <= set(found.container("webhook")["args"])


def test_cert_manager_gets_the_service_s_names(helm4: Helm) -> None:
    spec = helm4.render(MODES["certManager"]).one("Certificate", "jobset-gate-webhook")["spec"]
    name = "jobset-gate-webhook.jobset-gate-system.svc"
    assert spec["dnsNames"] == [name, f"{name}.cluster.local"]
    assert spec["secretName"] == "jobset-gate-webhook-tls"
    assert spec["usages"] == ["digital signature", "server auth"]
    assert spec["privateKey"] == {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"}
    assert spec["duration"] == "168h"


def test_an_issuer_that_is_there_is_used_and_else_a_ca_is_made_in_between(helm4: Helm) -> None:
    """A self-signed leaf would be untrusted from its renewal until its news has reached every API server."""
    found = helm4.render(MODES["certManager"])
    leaf = found.one("Certificate", "jobset-gate-webhook")["spec"]["issuerRef"]
    signer = found.one(leaf["kind"], leaf["name"])["spec"]
    ca = found.one("Certificate", "jobset-gate-webhook-ca")["spec"]
    assert signer == {"ca": {"secretName": ca["secretName"]}}
    assert (ca["isCA"], ca["duration"]) == (True, "8760h")
    assert found.one("Issuer", ca["issuerRef"]["name"])["spec"] == {"selfSigned": {}}
    mine = {"name": "corp", "kind": "ClusterIssuer", "group": "cert-manager.io"}
    found = helm4.render(merged(MODES["certManager"], at("webhook.certificates.issuerRef", mine)))
    assert found.one("Certificate")["spec"]["issuerRef"] == mine
    assert found.kind("Issuer") == []


@pytest.mark.parametrize(
    ("mode", "value"), [("own", None), ("secret", None), ("certManager", "ml/jobset-gate-webhook")]
)
def test_cert_manager_injects_its_ca(helm4: Helm, mode: str, value: Any) -> None:
    found = helm4.render(merged(MODES[mode], at("gangs.sources", ["jobset", "startgroup"])), namespace="ml")
    message = [
        one["metadata"].get("annotations", {}).get(INJECT) for kind in CONFIGURATIONS for one in found.kind(kind)
    ]
    assert message == [value] * 4
    if value is not None:
        certificate = found.one("Certificate", value.rpartition("/")[2])
        assert certificate["metadata"]["namespace"] == "ml"
