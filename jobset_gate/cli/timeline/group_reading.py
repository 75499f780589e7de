"""Reads what a pod group's timeline is made of: the group as `get groups` has it, and its pods with their times."""

import time
from collections.abc import Iterable

from jobset_gate import names, timeline_group, timeline_read
from jobset_gate.cli.exits import Failed
from jobset_gate.cli.looking import groups, keeper
from jobset_gate.cli.looking.listing import listed
from jobset_gate.cli.looking.objects import Absent
from jobset_gate.cli.looking.rights import Rights, refused
from jobset_gate.explained import Controller
from jobset_gate.groups.report import Report
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import PODS
from jobset_gate.settings import Groups
from jobset_gate.timeline import Timeline


async def reports(
    client: Client, namespace: str, rights: Rights, settings: Groups, home: str
) -> tuple[list[Report], Controller]:
    """All groups of a namespace, and who decides about them; `home`: where else a controller's Lease may be."""
    controller = await keeper.controller(client, home)
    return await groups.groups(client, namespace, rights, settings, controller), controller


async def timelines(
    client: Client, namespace: str, name: str, told: Iterable[Report], rights: Rights
) -> list[Timeline]:
    """Those of all of that name, for two designs may have one each. Raises Absent if there is none."""
    found = [it for it in told if it.key.name == name]
    if not found:
        raise Absent(f"pod group {name} not found in namespace {namespace}")
    return [await _timeline(client, it, rights) for it in found]


async def _timeline(client: Client, report: Report, rights: Rights) -> Timeline:
    namespace, mine = report.key.namespace, f"{names.GANG}={report.label}"
    try:
        pods = await listed(client, PODS, timeline_read.Pod, namespace, labels=mine, on_problem=rights.missing.append)
    except Forbidden as no:
        raise Failed(f"{refused('list', PODS, namespace)}: {no.message}") from no
    return timeline_group.make(report, map(timeline_read.pod, pods), time.time(), rights.missing)
