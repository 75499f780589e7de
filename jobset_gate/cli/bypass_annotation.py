"""Puts the bypass annotation on a JobSet and takes it away again, each only on the life of it that was meant."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jobset_gate import names
from jobset_gate.barrier.model import JobSetSeen
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch.permissions import forbidden_text
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound
from jobset_gate.kube.resources import JOBSETS


async def set_annotation(client: Client, jobset: JobSetSeen, *, dry_run: bool) -> None:
    """Raises Failed, naming the right that is missing."""
    try:
        await _patch(client, jobset, "true", dry_run=dry_run)
    except Forbidden as no:
        raise CommandError(f"{forbidden_text('patch', JOBSETS, jobset.namespace)} ({no.message})") from no
    except (NotFound, Conflict) as gone:
        raise CommandError(f"JobSet {jobset.name} was deleted or replaced meanwhile: nothing was changed") from gone
    except ApiError as no:
        raise CommandError(f"JobSet {jobset.name} was not changed: {no.message}") from no


async def remove_annotation(client: Client, jobset: JobSetSeen) -> None:
    """Where the JobSet is gone, so is the annotation. Raises Failed, saying how to do it by hand."""
    try:
        await _patch(client, jobset, None)
    except (NotFound, Conflict, Invalid):
        return
    except Exception as problem:
        told = f"the annotation is still there, so later restarts are not gated ({problem})"
        raise CommandError(f"{told}; take it away with `{removal_command(jobset)}`") from problem


@asynccontextmanager
async def temporary_annotation(client: Client, jobset: JobSetSeen) -> AsyncIterator[None]:
    """The annotation is there meanwhile, and goes again whatever happens: by an interruption, too."""
    try:
        await set_annotation(client, jobset, dry_run=False)
    except CommandError:
        raise  # the server has said that it is not there
    except BaseException:
        await remove_annotation(client, jobset)
        raise
    try:
        yield
    finally:
        await remove_annotation(client, jobset)


def removal_command(jobset: JobSetSeen) -> str:
    """The command that takes the annotation away."""
    return f"kubectl annotate jobset {jobset.name} -n {jobset.namespace} {names.BYPASS}-"


async def _patch(client: Client, jobset: JobSetSeen, value: str | None, *, dry_run: bool = False) -> None:
    """With the UID, which the API server compares."""
    body = {"metadata": {"uid": jobset.uid, "annotations": {names.BYPASS: value}}}
    await client.patch(
        JOBSETS,
        jobset.name,
        jobset.namespace,
        body=body,
        patch=PatchType.MERGE,
        field_manager=names.PROGRAM,
        dry_run=dry_run,
    )
