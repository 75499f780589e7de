"""Deletes CRDs and waits until they are gone: kube-apiserver may not finish what it has begun."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Invalid, NotFound
from jobset_gate.kube.resources import CRDS

POLL_SECONDS: Final = 0.05
POLLS_BEFORE_TOUCH: Final = 40


async def remove_crds(client: Client, *names: str) -> None:
    """Delete these CRDs and all their objects; returns when they are gone, or have been created again."""
    uids = [await _delete(client, name) for name in names]
    for name, uid in zip(names, uids, strict=True):
        await _until_gone(client, name, uid)


async def _delete(client: Client, name: str) -> str:
    """The UID of the deleted CRD, "" if there was none."""
    try:
        uid = str((await client.get(CRDS, name))["metadata"]["uid"])
        await client.delete(CRDS, name, uid=uid)
    except NotFound:
        return ""
    return uid


async def _until_gone(client: Client, name: str, uid: str) -> None:
    """A CRD deleted while its storage starts stays `Terminating` (InstanceDeletionFailed: "storage is
    (re)initializing") until it changes: seen on kube-apiserver 1.36, once in some fifty times.
    """
    polls = 0
    with suppress(NotFound):
        while str((await client.get(CRDS, name))["metadata"]["uid"]) == uid:
            polls += 1
            if polls % POLLS_BEFORE_TOUCH == 0:
                touch = {"metadata": {"uid": uid, "annotations": {"touched": str(polls)}}}
                with suppress(Invalid):  # it is another CRD by now
                    await client.patch(CRDS, name, body=touch, patch=PatchType.MERGE)
            await asyncio.sleep(POLL_SECONDS)
