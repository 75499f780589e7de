"""`get groups`: every way in one table, read from the cluster itself, by anybody and without a controller (G5)."""

import re
from pathlib import Path

from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from tests.fakes.cli_runner import CliShell, RunCli
from tests.fakes.stored_pod_groups import StoredPodGroups
from tests.flow.cli.conftest import LimitedUser
from tests.plane.embedded import Embedded

TABLE = """\
NAME      WAY                       BOUND/MINIMUM   PHASE     REASON               AGE
a-room    scheduler-plugins         0/2             Pending   WaitingForCapacity   AGE
b-small   kep-24                    0/3             Pending   Gathering            AGE
c-lost    scheduler-plugins         0/?             Pending   PodGroupMissing      AGE
d-torn    koordinator-annotations   0/?             Pending   InvalidGroup         AGE
e-fine    alibaba                   2/2             Running   Running              AGE
f-back    koordinator-podgroup      1/2             Unknown   RollbackBlocked      AGE
g-none    scheduler-plugins         0/4             Pending   Gathering            AGE
"""


def ageless(text: str) -> str:
    """Without what time does to it."""
    return re.sub(r"[0-9]+s$", "AGE", text, flags=re.MULTILINE)


async def test_all_ways_and_states_are_in_one_table(groups: StoredPodGroups, cli: CliShell) -> None:
    await groups.fill()
    ran = await cli("get", "groups")
    assert (ran.code, ageless(ran.out)) == (0, TABLE)

    wide = await cli("get", "groups", "-o", "wide")
    head, room, *_ = wide.out.splitlines()
    assert (head.split()[-3:], "needs 2 cpu, 0 free" in room) == (["MEMBERS", "RUNNING", "MESSAGE"], True)

    one = await cli("get", "groups", "b-small", "moon")
    assert [it.split()[0] for it in one.out.splitlines()] == ["NAME", "b-small"]
    assert (one.code, "group moon not found in namespace" in one.err) == (1, True)

    everywhere = await cli("get", "groups", "-A")
    assert everywhere.out.splitlines()[0].split()[0] == "NAMESPACE"
    ours = [it for it in everywhere.out.splitlines() if it.split()[0] == groups.namespace]
    assert [it.split()[1] for it in ours] == [it.split()[0] for it in TABLE.splitlines()[1:]]


async def test_kinds_that_are_not_installed_are_left_out(embedded_plane: Embedded, run: RunCli) -> None:
    await embedded_plane.make_namespace("team")
    async with embedded_plane.client() as client:
        await StoredPodGroups(client, "team").held("star", "a", way=Format.ALIBABA, minimum=2)
    ran = await CliShell(run, embedded_plane.kubeconfig, "team")("get", "groups")
    assert (ran.code, len(ran.out.splitlines())) == (0, 2)
    assert ran.err.splitlines() == [
        "warning: no controller runs: there is no Lease jobset-gate-controller; nobody opens groups"
    ]


READ = [
    {"apiGroups": [""], "resources": ["pods", "configmaps"], "verbs": ["list"]},
    {"apiGroups": ["*"], "resources": ["podgroups"], "verbs": ["list"]},
]


async def test_who_may_see_his_namespace_only_sees_its_groups_and_hears_what_is_missing(
    groups: StoredPodGroups, cli: CliShell, limited: LimitedUser
) -> None:
    await groups.fill()
    await groups.status("z-known", 1, "BehindOther", "behind team/x, which has waited too long to be passed")
    ran = await cli.user(await limited(READ))("get", "groups")
    facts = {line.split()[0]: line.split()[4] for line in ran.out.splitlines()[1:]}
    assert (ran.code, facts["a-room"], facts["b-small"]) == (0, "Gathered", "Gathering")
    assert facts["z-known"] == "BehindOther"  # the controller knows, and has written it
    assert "no right to list nodes (they belong to no namespace): whether a group has room" in ran.err
    assert "no right to list pods in all namespaces: whether a group has room" in ran.err
    assert "whether a controller runs is not known: no right to read the Lease" in ran.err
    other = cli.user(await limited([]))
    blind = await other("get", "groups")
    assert (blind.code, blind.out) == (1, "")
    shown = f"no right to list pods in namespace {groups.namespace}: no member can be seen"
    assert shown in blind.err
    gangs = await other("get", "gangs")
    assert (gangs.code, gangs.out, shown in gangs.err, "No gangs found" in gangs.err) == (1, "", True, False)
    watch = await other("get", "gangs", "-w")
    assert (watch.code, watch.out) == (1, "")
    assert f"error: {shown}" in watch.err


async def test_settings_of_the_controller_are_gone_by(groups: StoredPodGroups, cli: CliShell, tmp_path: Path) -> None:
    await groups.group("ring", 1)
    await groups.held("ring", "a")
    config = tmp_path / "settings.yaml"
    config.write_text(f"groups: {{capacityCheck: {CapacityCheck.OFF}}}\n")
    ran = await cli("get", "groups", "--no-headers", "--config", str(config))
    assert ran.out.split()[:5] == ["ring", "scheduler-plugins", "0/1", "Pending", "Gathered"]
