"""Installs the JobSet CRD stand-in: on a real API server with the Job template of its own OpenAPI document."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from typing_extensions import override

from jobset_gate import names
from jobset_gate.fake import jobset_schema
from jobset_gate.fake.objects import Json, holds
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import AlreadyExists, NotFound
from jobset_gate.kube.resources import CRDS, JOBSETS, Resource

POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class _OpenApi(Resource):
    """The OpenAPI document of one API group."""

    @override
    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        del namespace, name, subresource
        return f"/openapi/v3/apis/{self.group}/{self.version}"


async def build(client: Client) -> Json:
    """The CRD for that API server."""
    try:
        document = await client.get(_OpenApi("batch", "v1", "openapi", "OpenAPI"), "v3")
    except NotFound:
        document = {}
    return jobset_schema.jobset_crd(document)


async def install(client: Client) -> Json:
    """Create it unless it exists, and wait until JobSets are served; the stored CRD."""
    with suppress(AlreadyExists):
        await client.create(CRDS, await build(client), field_manager="jobset")
    return await wait_served(client)


async def wait_served(client: Client) -> Json:
    """The stored CRD, once JobSets can be listed."""
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
