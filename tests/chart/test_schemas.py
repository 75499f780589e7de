"""What the chart renders fits the OpenAPI schemas of Kubernetes 1.30 and 1.36, to the letter."""

from collections.abc import Iterator
from typing import Any

import kubernetes_validate
import pytest

from tests.chart.helm import Helm, Json
from tests.chart.samples import SAMPLES

FOREIGN = {
    "monitoring.coreos.com/v1": {"ServiceMonitor", "PodMonitor", "PrometheusRule"},
    "cert-manager.io/v1": {"Issuer", "Certificate"},
}
"""Kinds whose schemas come with their operators; test_monitoring.py and test_certificates.py look at them."""


@pytest.mark.parametrize("version", ["1.30", "1.36"])
@pytest.mark.parametrize("sample", SAMPLES)
def test_every_object_fits_its_schema(helm4: Helm, sample: str, version: str) -> None:
    found = helm4.render(SAMPLES[sample], kubernetes=f"{version}.0")
    ours = [one for one in found.all if one["kind"] not in FOREIGN.get(one["apiVersion"], ())]
    assert len(ours) >= 9
    for one in ours:
        kubernetes_validate.validate(one, version, strict=True)


def test_a_wrong_field_would_be_found() -> None:
    """The schemas are there and strict."""
    service: Json = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"prots": []}}
    for version in ("1.30", "1.36"):
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(service, version, strict=True)


@pytest.mark.parametrize("sample", SAMPLES)
def test_nothing_is_null(helm4: Helm, sample: str) -> None:
    """A null is a template that has said a key and had nothing for it."""
    found = {f"{one['kind']}{path}" for one in helm4.render(SAMPLES[sample]).all for path in _nulls(one)}
    assert found == set()


def _nulls(value: Any, path: str = "") -> Iterator[str]:
    if value is None:
        yield path
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _nulls(one, f"{path}.{key}")
    if isinstance(value, list):
        for one in value:
            yield from _nulls(one, f"{path}[]")
