"""G1: a real API server refuses the manifests as they are printed, and stores the forms that `validate` gives them."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
import yaml

from jobset_gate.cli.manifests.group_corrections import pod_metadata
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import DEPLOYMENTS, JOBS, NAMESPACES, POD_GROUPS, PODS, Resource
from jobset_gate.podgroups import formats
from tests.fakes.podgroups import design_manifests
from tests.plane.planes import Real
from tests.repo.files import ROOT

Json = dict[str, Any]
SEEDS = design_manifests.MADE | design_manifests.PRINTED
NAMESPACES_NAMED = ("team", "teama")
"""In addition to `default`, in the manifests and in their corrected forms."""
RESOURCES: dict[str, Resource] = {"Pod": PODS, "Job": JOBS, "Deployment": DEPLOYMENTS}
CONTAINERS = {"containers": [{"name": "main", "image": "x"}]}
"""What a printed bit of metadata does not say, and nobody can guess."""


@pytest.fixture
async def named(plane: Real, client: Client) -> AsyncIterator[None]:
    """The namespaces that the manifests name. Another test may have left one that is still going."""
    for name in NAMESPACES_NAMED:
        while await _exists(client, name):  # noqa: ASYNC110 - each turn asks the API server
            await asyncio.sleep(0.05)
        await plane.make_namespace(name)
    yield
    for name in NAMESPACES_NAMED:
        await plane.drop_namespace(name)


async def _exists(client: Client, namespace: str) -> bool:
    with suppress(NotFound):
        await client.get(NAMESPACES, namespace)
        return True
    return False


async def validated(text: str) -> tuple[int, list[Json]]:
    """The exit code of `validate -f -`, and the corrected forms that it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "jobset_gate.cli", "validate", "-f", "-",
        cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate(text.encode())
    _, mark, rest = out.decode().partition("---\n# corrected: ")
    return process.returncode or 0, list(yaml.safe_load_all("# " + rest)) if mark else []


async def test_the_corrected_forms_are_stored_and_mean_what_was_meant(client: Client, named: None) -> None:
    """Those of the designs that print none are ours from the start, and `validate` has nothing to correct in them."""
    for seed, text in SEEDS.items():
        code, corrected = await validated(text)
        assert (code, bool(corrected)) == ((1, True) if seed in design_manifests.PRINTED else (0, False)), seed
        for manifest in corrected or yaml.safe_load_all(text):
            stored = await _stored(client, manifest)
            meta = manifest["metadata"]
            kept = stored["metadata"].get("annotations", {})
            assert {key: kept.get(key) for key in meta.get("annotations", {})} == meta.get("annotations", {}), seed
            assert _is_right(stored), seed


async def _stored(client: Client, manifest: Json) -> Json:
    """As the API server keeps it; gone again."""
    group = formats.api_group(manifest["kind"], manifest["apiVersion"])
    resource = POD_GROUPS[group] if group else RESOURCES[manifest["kind"]]
    body = manifest if group or "spec" in manifest else manifest | {"spec": CONTAINERS}
    namespace = manifest["metadata"].get("namespace", "default")
    made = await client.create(resource, body, namespace)
    stored = await client.get(resource, made["metadata"]["name"], namespace)
    await client.delete(resource, made["metadata"]["name"], namespace, grace_seconds=0)
    return stored


def _is_right(stored: Json) -> bool:
    """Whether what is stored says a group, and nothing that is wrong with it."""
    seen = formats.parse_pod_group(stored)
    if seen is not None:
        return seen.spec.minimum is not None and not seen.problems and not seen.annotation_problems
    said = [formats.parse_membership(meta) for meta in pod_metadata(stored)]
    return bool(said) and all(it is not None and not it.problems for it in said)
