"""The settings file that the chart renders is one that webhook and controller read, and says what the values say."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from controllers.manager import ManagerOptions
from jobset_gate.cli import settings_file
from jobset_gate.settings import DEFAULT_IMAGE, Barrier, Settings
from tests.chart.helm import Helm, Json, at, merged
from tests.chart.samples import SAMPLES

STREAM = "http://jobset-gate-stream.jobset-gate-system.svc:8082"


def read(helm: Helm, values: Json, folder: Path) -> settings_file.SettingsFile:
    """As the program reads it."""
    path = folder / "settings.yaml"
    path.write_text(helm.render(values).one("ConfigMap", "jobset-gate")["data"]["settings.yaml"])
    return settings_file.read(path)


def test_the_defaults_of_the_chart_are_those_of_the_program(helm4: Helm, tmp_path: Path) -> None:
    """But for the gate stream, for which an installation has a Service, and the barrier's image by its digest."""
    told = read(helm4, {}, tmp_path)
    image = told.admission.barrier.image
    assert re.fullmatch(rf"{re.escape(DEFAULT_IMAGE)}@sha256:[0-9a-f]{{64}}", image)
    assert told.admission == Settings(barrier=Barrier(stream_url=STREAM, image=image))
    mine = {field.name: getattr(ManagerOptions(), field.name) for field in fields(ManagerOptions)}
    served = {"stream_host": "0.0.0.0", "stream_port": 8082}  # noqa: S104 - what a pod listens on
    expected = mine | served
    assert told.controller.model_dump() == {name: expected[name] for name in told.controller.model_dump()}


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_program_reads_it(helm4: Helm, sample: str, tmp_path: Path) -> None:
    assert read(helm4, SAMPLES[sample], tmp_path).admission.barrier.image


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("image", "registry.example/tools/busybox:1.36@sha256:" + "a" * 64),
        ("image", "busybox:1.37"),
        ("runAsUser", None),
        ("runAsUser", 2**31 - 1),
        ("runAsGroup", None),
        ("graceSeconds", 86_400),
        ("maxWaitSeconds", 2**31 - 1),
        ("pollSeconds", 0.05),
        ("pollSeconds", 3),
        ("streamUrl", "http://gate.example:8080/base"),
        ("resources", {"requests": {"cpu": "10m", "memory": 1048576}, "limits": {}}),
    ],
)
def test_a_value_of_the_barrier_arrives(helm4: Helm, key: str, value: Any, tmp_path: Path) -> None:
    told = read(helm4, at(f"barrier.{key}", value), tmp_path)
    assert told.admission.barrier.model_dump(by_alias=True)[key] == value


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("enabled", False),
        ("ways", ["kep-24", "alibaba"]),
        ("schedulerNames", ["default-scheduler", "another.example"]),
        ("capacityCheck", "Probe"),
        ("starvationSeconds", 0),
        ("starvationSeconds", 1.5),
        ("waitSeconds", 2**31 - 1),
        ("acrossNamespaces", True),
        ("native", "On"),
        ("gateConcurrency", 1024),
    ],
)
def test_a_value_of_the_groups_arrives(helm4: Helm, key: str, value: Any, tmp_path: Path) -> None:
    told = read(helm4, at(f"groups.{key}", value), tmp_path)
    assert told.admission.groups.model_dump(by_alias=True, mode="json")[key] == value


@pytest.mark.parametrize(
    ("key", "value", "word"), [("capacityCheck", False, "Off"), ("native", True, "On"), ("native", False, "Off")]
)
def test_on_and_off_may_be_written_without_quotes(
    helm4: Helm, key: str, value: bool, word: str, tmp_path: Path
) -> None:
    """YAML then reads booleans, and nobody is to be told that Off must be one of Fit, Probe and Off."""
    assert read(helm4, at(f"groups.{key}", value), tmp_path).admission.groups.model_dump(by_alias=True)[key] == word


def test_a_large_number_is_no_power_of_ten(helm4: Helm) -> None:
    """Helm's numbers are floating-point; 2147483647 must not become 2.147483647e+09."""
    told = helm4.render(at("barrier.maxWaitSeconds", 2**31 - 1)).one("ConfigMap")["data"]["settings.yaml"]
    assert "maxWaitSeconds: 2147483647\n" in told


def test_without_the_stream_nobody_is_told_of_one(helm4: Helm, tmp_path: Path) -> None:
    told = read(helm4, at("stream.enabled", False), tmp_path)
    assert told.admission.barrier.stream_url is None
    assert told.controller.stream_port is None
    assert helm4.render(at("stream.enabled", False)).names().count(("Service", "jobset-gate-stream")) == 0


def test_the_stream_is_where_its_service_is(helm4: Helm, tmp_path: Path) -> None:
    values = merged(at("stream.port", 9000), at("fullnameOverride", "door"))
    found = helm4.render(values, namespace="ml")
    (port,) = found.one("Service", "door-stream")["spec"]["ports"]
    assert port == {"name": "stream", "port": 9000, "targetPort": "stream", "protocol": "TCP"}
    told = found.one("ConfigMap")["data"]["settings.yaml"]
    assert 'streamUrl: "http://door-stream.ml.svc:9000"' in told
    assert "streamPort: 9000" in told
    (controller,) = found.one("Deployment", "door-controller")["spec"]["template"]["spec"]["containers"]
    assert {"name": "stream", "containerPort": 9000, "protocol": "TCP"} in controller["ports"]


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_other_settings_make_other_pods(helm4: Helm, component: str) -> None:
    """They are read at the start."""

    def checksum(values: Json) -> str:
        return str(helm4.render(values).pod(component)["metadata"]["annotations"]["checksum/settings"])

    assert checksum({}) == checksum(at("webhook.replicaCount", 5))
    assert checksum({}) != checksum(at("barrier.graceSeconds", 7))
