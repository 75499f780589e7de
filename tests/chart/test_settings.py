"""What the programs are given: arguments, the settings file, the status page. Read by the programs' own code."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from controllers.manager import ManagerOptions
from jobset_gate.cli import settings_file
from jobset_gate.cli.app import command_tree
from jobset_gate.settings import DEFAULT_IMAGE, Barrier, Settings
from tests.chart.helm import Helm, Json, at, merged
from tests.chart.samples import SAMPLES

STREAM: Final = "http://jobset-gate-stream.jobset-gate-system.svc:8082"
PAGE: Final = at("statusPage.enabled", True)
PAGE_TLS: Final = merged(PAGE, at("statusPage.tlsSecretName", "page-tls"))
PAGE_FOLDER: Final = Path("/etc/jobset-gate-page")
PAGE_PORT: Final = {"name": "page", "containerPort": 8083, "protocol": "TCP"}


def parse(arguments: list[str]) -> tuple[str, dict[str, Any]]:
    """The command and its options, as the command line reads them. Raises what a wrong one raises."""
    group: Any = command_tree("jobset-gate")
    name, *rest = arguments
    return name, group.commands[name].make_context(name, rest).params


def read(helm: Helm, values: Json, folder: Path) -> settings_file.SettingsFile:
    """As the program reads it."""
    path = folder / "settings.yaml"
    path.write_text(helm.render(values).one("ConfigMap", "jobset-gate")["data"]["settings.yaml"])
    return settings_file.read(path)


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_the_program_knows_its_arguments_and_reads_its_settings(helm4: Helm, component: str, tmp_path: Path) -> None:
    for values in SAMPLES.values():
        name, options = parse(helm4.render(values).container(component)["args"])
        assert name == component
        assert options["host"] == "0.0.0.0"  # noqa: S104 - what a pod listens on
        assert options["port"] == {"webhook": 10250, "controller": 8080}[component]
        assert read(helm4, values, tmp_path).admission.barrier.image
    with pytest.raises(Exception, match="No such option: --lead"):
        parse([component, "--lead"])


def test_extra_arguments_win(helm4: Helm) -> None:
    added = {"extraArgs": ["--log-level=debug", "--workers=7"]}
    found = helm4.render(merged({"logging": {"level": "error"}}, {"controller": added}))
    _, options = parse(found.container("controller")["args"])
    assert (options["log_level"], options["workers"]) == ("debug", 7)


def test_the_defaults_of_the_chart_are_those_of_the_program(helm4: Helm, tmp_path: Path) -> None:
    """Except the gate stream, which has a Service, and the barrier's image, which has a digest."""
    found = read(helm4, {}, tmp_path)
    image = found.admission.barrier.image
    assert re.fullmatch(rf"{re.escape(DEFAULT_IMAGE)}@sha256:[0-9a-f]{{64}}", image)
    assert found.admission == Settings(barrier=Barrier(stream_url=STREAM, image=image))
    mine = {field.name: getattr(ManagerOptions(), field.name) for field in fields(ManagerOptions)}
    given = msgspec.structs.asdict(found.controller)
    served = {"stream_host": "0.0.0.0", "stream_port": 8082}  # noqa: S104 - what a pod listens on
    expected = mine | served
    assert given == {name: expected[name] for name in given}


@pytest.mark.parametrize(
    "values",
    [
        {
            "barrier": {
                "image": "registry.example/tools/busybox:1.36@sha256:" + "a" * 64,
                "runAsUser": 2**31 - 1,
                "graceSeconds": 86_400,
                "pollSeconds": 0.05,
                "streamUrl": "http://gate.example:8080/base",
                "resources": {"requests": {"cpu": "10m", "memory": 1048576}, "limits": {}},
            },
            "groups": {
                "ways": ["kep-24", "alibaba"],
                "schedulerNames": ["default-scheduler", "another.example"],
                "capacityCheck": "Probe",
                "starvationSeconds": 1.5,
                "waitSeconds": 2**31 - 1,
                "acrossNamespaces": True,
                "native": "On",
                "gateConcurrency": 1024,
            },
            "gangs": {"sources": ["jobset", "startgroup"], "podFailurePolicy": "Ignore"},
        },
        {
            "barrier": {"runAsUser": None, "runAsGroup": None, "maxWaitSeconds": 2**31 - 1, "pollSeconds": 3},
            "groups": {"enabled": False, "starvationSeconds": 0},
        },
    ],
    ids=["given", "switched off and nought"],
)
def test_values_of_barrier_and_groups_arrive(helm4: Helm, values: dict[str, Json], tmp_path: Path) -> None:
    found = msgspec.json.decode(msgspec.json.encode(read(helm4, values, tmp_path).admission))
    for section, expected in values.items():
        assert {key: found[section][key] for key in expected} == expected


@pytest.mark.parametrize(
    ("key", "value", "word"), [("capacityCheck", False, "Off"), ("native", True, "On"), ("native", False, "Off")]
)
def test_on_and_off_need_no_quotes(helm4: Helm, key: str, value: bool, word: str, tmp_path: Path) -> None:
    """YAML reads booleans there."""
    groups = read(helm4, at(f"groups.{key}", value), tmp_path).admission.groups
    assert msgspec.to_builtins(groups)[key] == word
    roles, same = (helm4.render(at(f"groups.{key}", it)).kind("ClusterRole") for it in (value, word))
    assert roles == same


def test_a_large_number_is_not_written_in_powers_of_ten(helm4: Helm) -> None:
    """Helm's numbers are floating-point; 2147483647 must not become 2.147483647e+09."""
    text = helm4.render(at("barrier.maxWaitSeconds", 2**31 - 1)).one("ConfigMap")["data"]["settings.yaml"]
    assert "maxWaitSeconds: 2147483647\n" in text


def test_without_the_stream_there_is_no_url_and_no_service(helm4: Helm, tmp_path: Path) -> None:
    found = read(helm4, at("stream.enabled", False), tmp_path)
    assert (found.admission.barrier.stream_url, found.controller.stream_port) == (None, None)
    without = helm4.render(at("stream.enabled", False))
    assert ("Service", "jobset-gate-stream") not in without.names()
    assert [port["name"] for port in without.container("controller")["ports"]] == ["metrics"]


def test_the_stream_url_is_that_of_its_service(helm4: Helm) -> None:
    values = merged(at("stream.port", 9000), at("fullnameOverride", "full"))
    found = helm4.render(values, namespace="ml")
    service, deployment = (
        found.one("Service", "full-stream")["spec"],
        found.one("Deployment", "full-controller")["spec"],
    )
    assert service["selector"] == deployment["selector"]["matchLabels"]
    (port,) = service["ports"]
    assert port == {"name": "stream", "port": 9000, "targetPort": "stream", "protocol": "TCP"}
    text = found.one("ConfigMap")["data"]["settings.yaml"]
    assert 'streamUrl: "http://full-stream.ml.svc:9000"' in text
    assert "streamPort: 9000" in text
    (controller,) = deployment["template"]["spec"]["containers"]
    assert {"name": "stream", "containerPort": 9000, "protocol": "TCP"} in controller["ports"]


def test_other_settings_restart_the_pods(helm4: Helm) -> None:
    """They are read at the start."""

    def checksums(values: Json) -> list[str]:
        found = helm4.render(values)
        return [found.pod(it)["metadata"]["annotations"]["checksum/settings"] for it in ("webhook", "controller")]

    assert checksums({}) == checksums(at("webhook.replicaCount", 5))
    assert not set(checksums({})) & set(checksums(at("barrier.graceSeconds", 7)))


# --- The status page -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "address", "certificate"),
    [
        ({}, None, None),
        (PAGE, "127.0.0.1", None),
        (PAGE_TLS, "0.0.0.0", f"{PAGE_FOLDER}/tls.crt"),  # noqa: S104 - what a pod listens on
    ],
    ids=["off", "within the pod", "with TLS"],
)
def test_the_page_is_off_or_local_or_has_tls(
    helm4: Helm, tmp_path: Path, values: Json, address: str | None, certificate: str | None
) -> None:
    """Viewers send tokens: without TLS only `kubectl port-forward`, which ends in the pod, reaches the page."""
    found, its = helm4.render(values), read(helm4, values, tmp_path).controller
    port = 8083 if address else 0
    assert its.page_port == port
    assert address in (None, its.page_address)
    assert (its.page_tls_cert, its.page_tls_key) == (certificate, certificate and f"{PAGE_FOLDER}/tls.key")
    assert (PAGE_PORT in found.container("controller")["ports"]) is bool(port)
    services = [name for kind, name in found.names() if kind == "Service" and name.endswith("-page")]
    assert bool(services) is bool(certificate)
    assert ("reviews" in str(found.kind("ClusterRole"))) is bool(port)


def test_the_certificate_of_the_page_is_mounted_and_its_service_keeps_a_viewer_on_one_pod(helm4: Helm) -> None:
    """Each controller knows its own cookies only."""
    found = helm4.render(merged(PAGE_TLS, at("statusPage.port", 9443), at("fullnameOverride", "full")))
    service = found.one("Service", "full-page")["spec"]
    controllers = found.one("Deployment", "full-controller")["spec"]
    assert service["selector"] == controllers["selector"]["matchLabels"]
    assert service["sessionAffinity"] == "ClientIP"
    assert service["ports"] == [{"name": "https", "port": 9443, "targetPort": "page", "protocol": "TCP"}]
    pod = controllers["template"]["spec"]
    (container,) = pod["containers"]
    assert PAGE_PORT | {"containerPort": 9443} in container["ports"]
    (mounted,) = [one for one in container["volumeMounts"] if one["mountPath"] == str(PAGE_FOLDER)]
    (volume,) = [one for one in pod["volumes"] if one["name"] == mounted["name"]]
    assert mounted["readOnly"]
    assert volume["secret"] == {"secretName": "page-tls"}


@pytest.mark.parametrize("port", [8080, 8082])
def test_a_port_that_the_pod_uses_otherwise_is_refused(helm4: Helm, port: int) -> None:
    assert "statusPage.port: another than" in helm4.refusal(merged(PAGE, at("statusPage.port", port)))
