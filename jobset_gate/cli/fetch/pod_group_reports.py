"""Pod groups of a namespace for a person: read and told as `get groups` does it."""

import time

from jobset_gate.cli.fetch import pod_group_rules, pod_groups
from jobset_gate.cli.fetch.permissions import Permissions
from jobset_gate.explain.model import ControllerStatus
from jobset_gate.kube.client import Client
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.settings import Groups


async def fetch_pod_group_reports(
    client: Client, namespace: str | None, rights: Permissions, settings: Groups, controller: ControllerStatus
) -> list[GroupStatus]:
    """By namespace and name; None: of all namespaces."""
    read = await pod_groups.fetch_pod_groups(client, settings, namespace)
    made_by = await pod_group_rules.fetch_owner_capacity(client, read)
    rights.missing += [it for it in read.missing if it not in rights.missing]
    if not read.pods_listed:
        rights.hidden_kinds.add("pod groups")
    return pod_group_rules.pod_group_reports(read, settings, made_by, time.time(), controlled=bool(controller.leads))
