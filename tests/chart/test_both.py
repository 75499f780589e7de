"""Helm 3 and Helm 4 make the same of the chart, and the same again."""

import re

import pytest

from tests.chart.helm import CHART, NAMESPACE, Helm
from tests.chart.samples import SAMPLES
from tests.tools import catalog


def test_lint_has_nothing_to_say(helm: Helm) -> None:
    said = helm.run("lint", "--strict", str(CHART))
    assert "1 chart(s) linted, 0 chart(s) failed" in said
    assert not re.search(r"\[(WARNING|ERROR)\]", said), said


@pytest.mark.parametrize("sample", SAMPLES)
def test_two_renderings_are_the_same_bytes(helm: Helm, sample: str) -> None:
    assert helm.text(SAMPLES[sample]) == helm.text(SAMPLES[sample])


@pytest.mark.parametrize("sample", SAMPLES)
def test_both_helms_render_the_same_objects(helm: Helm, helm4: Helm, sample: str) -> None:
    def sorted_objects(by: Helm) -> list[str]:
        return sorted(map(str, by.render(SAMPLES[sample]).all))

    assert sorted_objects(helm) == sorted_objects(helm4)


@pytest.mark.parametrize("sample", SAMPLES)
def test_no_object_is_there_twice(helm4: Helm, sample: str) -> None:
    names = helm4.render(SAMPLES[sample]).names()
    assert len(names) == len(set(names))


@pytest.mark.parametrize("version", ["1.30.0", "1.30.0-gke.100", "v1.36.3", "1.37.1"])
def test_kubernetes_from_1_30_on_is_accepted(helm: Helm, version: str) -> None:
    assert helm.render(kubernetes=version).kind("Deployment")


def test_an_older_kubernetes_is_refused(helm: Helm) -> None:
    assert "chart requires kubeVersion: >=1.30.0-0" in helm.refusal({}, kubernetes="1.29.9")


def test_what_is_packaged_renders_the_same(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing that the templates read is left out of the package."""
    folder = tmp_path_factory.mktemp("package")
    helm.run("package", str(CHART), "--destination", str(folder))
    (packed,) = folder.glob("*.tgz")
    everything = SAMPLES["everything"]
    assert helm.text(everything, chart=packed) == helm.text(everything)


def test_both_programs_are_what_they_are_taken_for(helm: Helm) -> None:
    assert helm.run("version", "--short").startswith(f"v{helm.major}.")
    assert catalog.helm(helm.major) == helm.binary
    assert NAMESPACE in helm.text()
