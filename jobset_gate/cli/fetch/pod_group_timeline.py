"""Reads what a pod group's timeline is made of: the group as `get groups` has it, and its pods with their times."""

import time
from collections.abc import Iterable

from jobset_gate import names
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.fetch import jobset_controller, pod_group_reports
from jobset_gate.cli.fetch.lists import list_objects
from jobset_gate.cli.fetch.objects import ObjectNotFound
from jobset_gate.cli.fetch.permissions import Permissions, forbidden_text
from jobset_gate.explain.model import ControllerStatus
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.settings import Groups
from jobset_gate.timeline import decode, podgroup
from jobset_gate.timeline.model import Timeline


async def reports(
    client: Client, namespace: str, rights: Permissions, settings: Groups, home: str
) -> tuple[list[GroupStatus], ControllerStatus]:
    """All groups of a namespace, and who decides about them; `home`: where else a controller's Lease may be."""
    controller = await jobset_controller.jobset_controller_status(client, home)
    return await pod_group_reports.fetch_pod_group_reports(client, namespace, rights, settings, controller), controller


async def timelines(
    client: Client, namespace: str, name: str, told: Iterable[GroupStatus], rights: Permissions
) -> list[Timeline]:
    """Those of all of that name, for two designs may have one each. Raises Absent if there is none."""
    found = [it for it in told if it.key.name == name]
    if not found:
        raise ObjectNotFound(f"pod group {name} not found in namespace {namespace}")
    return [await _timeline(client, it, rights) for it in found]


async def _timeline(client: Client, report: GroupStatus, rights: Permissions) -> Timeline:
    namespace, mine = report.key.namespace, f"{names.POD_GROUP_LABEL}={report.label}"
    try:
        pods = await list_objects(
            client, PODS, decode.TimedPod, namespace, labels=mine, on_problem=rights.missing.append
        )
    except Forbidden as no:
        raise CommandError(f"{forbidden_text('list', PODS, namespace)}: {no.message}") from no
    return podgroup.pod_group_timeline(report, map(decode.decode_pod, pods), time.time(), rights.missing)
