"""Gangs for stories: their pods by number, and what is true of all of a gang."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import POD_GROUPS, PODS
from jobset_gate.podgroups import podgroup_status
from jobset_gate.podgroups.model import Format
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import bound, gated, of_group
from tests.flow.podgroups.environment import GroupEnvironment

Json = dict[str, Any]


def members(
    gang: str, count: int, way: Format = Format.SCHEDULER_PLUGINS, *, first: int = 0, **more: Any
) -> list[Json]:
    """So many pods of a gang; `more` as for manifests.pod."""
    return [manifests.pod(f"{gang}-{number}", gang, way, **more) for number in range(first, first + count)]


async def create_group(
    stage: GroupEnvironment, name: str, count: int, *, minimum: int | None = None, **more: Any
) -> None:
    """A whole gang of scheduler-plugins' way: its PodGroup first."""
    await stage.make_group(name, count if minimum is None else minimum)
    await stage.create(*members(name, count, **more))


def bound_count(pods: Sequence[Json], name: str, way: Format = Format.SCHEDULER_PLUGINS) -> int:
    return sum(map(bound, of_group(pods, name, way)))


def all_held(pods: Sequence[Json], name: str) -> bool:
    return all(map(gated, of_group(pods, name)))


def condition_of(group: Mapping[str, Any]) -> tuple[str, str]:
    """Reason and message in the status of a PodGroup."""
    ours = podgroup_status.group_condition(group.get("status") or {})
    return ours.get("reason", ""), ours.get("message", "")


async def touch_group(stage: GroupEnvironment, name: str, way: Format = Format.SCHEDULER_PLUGINS) -> None:
    """Something changes on its PodGroup that the controller keeps, and is as it was: it looks at the group."""
    for said_of_it in ("Pending: looked at", None):
        body = {"metadata": {"annotations": {names.POD_GROUP_STATE: said_of_it}}}
        kind = POD_GROUPS[manifests.API_GROUP[way]]
        await stage.client.patch(kind, name, stage.namespace, body=body, patch=PatchType.MERGE)


async def pass_limit(stage: GroupEnvironment, seconds: float, *, seen: str) -> None:
    """So much later, and something changes on a pod: its group is looked at, with all that its pods were before."""
    stage.clock.forward(seconds)
    body = {"metadata": {"labels": {"looked": "at"}}}
    await stage.client.patch(PODS, seen, stage.namespace, body=body, patch=PatchType.MERGE)


async def until_reason(
    stage: GroupEnvironment, name: str, reason: str, text: str = "", way: Format = Format.SCHEDULER_PLUGINS
) -> None:
    """Until the status of a gang's PodGroup gives that reason, with that text in it."""

    def reported(group: Json) -> bool:
        ours = condition_of(group)
        return ours[0] == reason and text in ours[1]

    await stage.until_group(name, reported, way)


async def until_satisfied(stage: GroupEnvironment, name: str) -> None:
    """Until the controller has seen, and written, that a gang has its minimum."""
    await stage.until_record(name, Format.SCHEDULER_PLUGINS, '"satisfied":1')
