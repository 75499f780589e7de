"""The JobSet CRD stand-in: strict about its fields, merging as the real one, and taken by the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_gate.kube.resources import CRDS
from tests.unit.fake.world import FakeClusterStory, Run


async def _schema(world: FakeClusterStory, *path: str) -> dict[str, Any]:
    found: dict[str, Any] = await world.client.get(CRDS, "jobsets.jobset.x-k8s.io")
    found = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in path:
        found = found["items"] if name == "[]" else found["properties"][name]
    return found


POD = ("spec", "replicatedJobs", "[]", "template", "spec", "template", "spec")


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        (("spec", "replicatedJobs"), ["name"]),
        (("status", "conditions"), ["type"]),
        ((*POD, "containers"), ["name"]),
        ((*POD, "initContainers"), ["name"]),
        ((*POD, "volumes"), ["name"]),
        ((*POD, "containers", "[]", "env"), ["name"]),
        ((*POD, "containers", "[]", "volumeMounts"), ["mountPath"]),
        ((*POD, "containers", "[]", "ports"), ["containerPort", "protocol"]),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else "",
)
def test_lists_merge_by_the_keys_of_the_real_crd(run: Run, path: tuple[str, ...], keys: list[str]) -> None:
    async def story(world: FakeClusterStory) -> None:
        found = await _schema(world, *path)
        assert found["x-kubernetes-list-type"] == "map"
        assert found["x-kubernetes-list-map-keys"] == keys

    run(story)
