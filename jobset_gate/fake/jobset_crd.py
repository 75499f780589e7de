"""The JobSet CRD stand-in: on a real API server with the Job template of its own OpenAPI document inlined."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from typing_extensions import override

from jobset_gate import names
from jobset_gate.fake import crd_removal
from jobset_gate.fake.crd import jobset, loose
from jobset_gate.fake.crd.structural import structural
from jobset_gate.fake.objects import Json, holds
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import AlreadyExists, NotFound
from jobset_gate.kube.resources import CRDS, JOBSETS, Resource

JOB_TEMPLATE = "io.k8s.api.batch.v1.JobTemplateSpec"
CLAIM_SPEC = "io.k8s.api.core.v1.PersistentVolumeClaimSpec"
POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class _Document(Resource):
    """A document of the API server that is no object."""

    @override
    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        del namespace, name, subresource
        return f"/openapi/v3/apis/{self.group}/{self.version}"


_BATCH = _Document("batch", "v1", "openapi", "OpenAPI")


async def build(client: Client) -> Json:
    """The CRD for that API server."""
    try:
        document = await client.get(_BATCH, "v3")
    except NotFound:
        document = {}
    return from_document(document)


def from_document(document: Json) -> Json:
    """The CRD for an API server whose /openapi/v3/apis/batch/v1 is that document; {} for one that has none."""
    schemas = (document.get("components") or {}).get("schemas") or {}
    if JOB_TEMPLATE not in schemas or CLAIM_SPEC not in schemas:
        return jobset.crd(loose.job_template(), loose.claim_spec())
    template = structural(schemas[JOB_TEMPLATE], schemas)
    return jobset.crd(template, structural(schemas[CLAIM_SPEC], schemas))


async def install(client: Client) -> Json:
    """Create it and wait until JobSets are served. A CRD that is there stays as it is."""
    crd = await build(client)
    try:
        await client.create(CRDS, crd, field_manager="jobset")
    except AlreadyExists:
        return await wait_served(client)
    return await wait_served(client)


async def wait_served(client: Client) -> Json:
    """The CRD as it is stored, once JobSets can be listed."""
    while True:
        crd = await client.get(CRDS, names.JOBSET_CRD)
        if holds((crd.get("status") or {}).get("conditions"), "Established"):
            break
        await asyncio.sleep(POLL_SECONDS)
    while True:
        try:
            await client.list(JOBSETS, limit=1)
        except NotFound:
            await asyncio.sleep(POLL_SECONDS)
            continue
        return crd


async def uninstall(client: Client) -> None:
    """Delete it, and with it all JobSets; returns when it is gone."""
    await crd_removal.remove(client, names.JOBSET_CRD)
