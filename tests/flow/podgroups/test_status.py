"""What a person sees of a group: the status of its PodGroup, Events, and one table for every way (G5)."""

from typing import Any

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import POD_GROUPS
from jobset_gate.podgroups.model import Format
from tests.fakes.cli_process import finished
from tests.fakes.podgroups import manifests
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment

Json = dict[str, Any]


async def rows(stage: GroupEnvironment, *more: str) -> list[list[str]]:
    ran = await finished(stage.plane.kubeconfig, "get", "groups", "-n", stage.namespace, *more)
    assert ran.code == 0, ran.err
    return [line.split() for line in ran.out.splitlines()]


async def test_a_status_that_another_controller_writes_is_only_read(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "4"}) as stage:
        await stage.make_group("ring", 2)
        theirs = {"phase": "Scheduling", "running": 7}
        kind = POD_GROUPS[names.PLUGINS_GROUP]
        await stage.client.patch(
            kind,
            "ring",
            stage.namespace,
            body={"status": theirs},
            patch=PatchType.MERGE,
            subresource="status",
            field_manager="coscheduler",
        )
        await stage.create(*(manifests.pod(name, "ring") for name in "ab"))
        reported = await stage.until_event("ring", names.REASON_STATUS_NOT_OURS)
        assert "coscheduler writes this status" in reported

        def stated(one: Json) -> bool:
            return "Satisfied" in (one["metadata"].get("annotations") or {}).get(names.POD_GROUP_STATE, "")

        found = await stage.until_group("ring", stated)
        assert found["status"] == theirs


async def test_every_way_is_in_one_table(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "32"}, kubelets=True) as stage:
        for way in Format:
            name = str(way)
            if way in manifests.API_GROUP:
                await stage.make_group(name, 2, way)
            minimum = 2 if way in manifests.MINIMUM_ON_POD else None
            await stage.create(*(manifests.pod(f"{name}-{number}", name, way, minimum) for number in range(2)))
        await stage.make_group("small", 3)
        await stage.create(manifests.pod("alone", "small"))
        await stage.until(lambda pods: sum(map(manifests.runs, pods)) == 10)
        table = await rows(stage)
        assert table[0] == ["NAME", "WAY", "BOUND/MINIMUM", "PHASE", "REASON", "AGE"]
        facts = {row[0]: row[1:5] for row in table[1:]}
        assert facts.pop("small") == ["scheduler-plugins", "0/3", "Pending", "Gathering"]
        assert facts == {str(way): [str(way), "2/2", "Running", "Running"] for way in Format}
