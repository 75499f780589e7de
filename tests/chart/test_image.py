"""Which image runs: registry, repository, tag, digest, and the secrets it is pulled with."""

from typing import Any

import pytest

from tests.chart.helm import Helm, Json, at, merged

DIGEST = "sha256:" + "0123456789abcdef" * 4


def images(helm: Helm, values: Json) -> set[str]:
    found = helm.render(merged(at("crds.keep", False), values))
    pods = [one["spec"]["template"]["spec"] for one in found.kind("Deployment") + found.kind("Job")]
    return {each["image"] for pod in [*pods, found.one("Pod")["spec"]] for each in pod["containers"]}


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ({}, "jobset-gate:0.1.0"),
        ({"tag": "0.2.0-rc.1"}, "jobset-gate:0.2.0-rc.1"),
        ({"registry": "registry.example"}, "registry.example/jobset-gate:0.1.0"),
        ({"registry": "localhost:5000", "repository": "ml/gate", "tag": "dev"}, "localhost:5000/ml/gate:dev"),
        ({"digest": DIGEST}, f"jobset-gate@{DIGEST}"),
        (
            {"registry": "registry.example", "tag": "0.1.0", "digest": DIGEST},
            f"registry.example/jobset-gate:0.1.0@{DIGEST}",
        ),
    ],
)
def test_every_container_runs_the_one_image(helm4: Helm, image: dict[str, str], name: str) -> None:
    assert images(helm4, {"image": image}) == {name}


def test_a_global_registry_counts_where_none_is_given(helm4: Helm) -> None:
    shared = at("global.imageRegistry", "mirror.example")
    assert images(helm4, shared) == {"mirror.example/jobset-gate:0.1.0"}
    assert images(helm4, merged(shared, at("image.registry", "own.example"))) == {"own.example/jobset-gate:0.1.0"}


@pytest.mark.parametrize(
    ("values", "secrets"),
    [
        ({}, None),
        ({"imagePullSecrets": [{"name": "mine"}]}, [{"name": "mine"}]),
        ({"global": {"imagePullSecrets": [{"name": "shared"}]}}, [{"name": "shared"}]),
        (
            {"global": {"imagePullSecrets": [{"name": "shared"}]}, "imagePullSecrets": [{"name": "mine"}]},
            [{"name": "mine"}],
        ),
    ],
)
def test_every_pod_pulls_with_the_secrets(helm4: Helm, values: Json, secrets: Any) -> None:
    found = helm4.render(merged(at("crds.keep", False), values))
    pods = [one["spec"]["template"]["spec"] for one in found.kind("Deployment") + found.kind("Job")]
    assert [pod.get("imagePullSecrets") for pod in [*pods, found.one("Pod")["spec"]]] == [secrets] * 5


def test_the_barrier_s_image_is_another(helm4: Helm) -> None:
    """It runs in the pods of the gangs, pulled with what those pods have."""
    found = helm4.render(merged(at("image.registry", "a.example"), at("barrier.image", "b.example/busybox@" + DIGEST)))
    assert f'image: "b.example/busybox@{DIGEST}"' in found.one("ConfigMap")["data"]["settings.yaml"]
