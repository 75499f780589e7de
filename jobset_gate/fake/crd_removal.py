"""Deleting CRDs so that they are gone: a real API server may forget to finish what it has begun."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Invalid, NotFound
from jobset_gate.kube.resources import CRDS

POLL_SECONDS: Final = 0.05
LOOKS_BEFORE_A_TOUCH: Final = 40


async def remove(client: Client, *names: str) -> None:
    """Delete these CRDs, and with them all their objects; returns when they are gone, or made anew by somebody else."""
    uids = [await _delete(client, name) for name in names]
    for name, uid in zip(names, uids, strict=True):
        await _until_gone(client, name, uid)


async def _delete(client: Client, name: str) -> str:
    """The UID of what was deleted, "" if there was nothing."""
    try:
        uid = str((await client.get(CRDS, name))["metadata"]["uid"])
        await client.delete(CRDS, name, uid=uid)
    except NotFound:
        return ""
    return uid


async def _until_gone(client: Client, name: str, uid: str) -> None:
    """One that is deleted while its storage comes up stays `Terminating` (InstanceDeletionFailed: "storage is
    (re)initializing") until something about it changes: seen on kube-apiserver 1.36, once in some fifty times.
    """
    looks = 0
    with suppress(NotFound):
        while str((await client.get(CRDS, name))["metadata"]["uid"]) == uid:
            looks += 1
            if looks % LOOKS_BEFORE_A_TOUCH == 0:
                touch = {"metadata": {"uid": uid, "annotations": {"touched": str(looks)}}}
                with suppress(Invalid):  # it is another by now
                    await client.patch(CRDS, name, body=touch, patch=PatchType.MERGE)
            await asyncio.sleep(POLL_SECONDS)
