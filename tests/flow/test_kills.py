"""The controller killed at every single write of a release and of a timeout: its successor finishes, decided once."""

import asyncio
import os
from contextlib import suppress
from dataclasses import replace

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS
from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.kubelet import PodFault, PodMatch
from tests.fakes.crash_point import CrashPoint, crash_controllers
from tests.fakes.object_view import ObjectView
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import QUICK, Environment, Json

GANG = "gang"
WRITES = range(1, 9) if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else (3, 4)
"""All writes of either outcome: ConfigMap, clock, verdict, a patch for each of two pods, Event, two conditions. Or the
verdict and the write after it: the random schedules kill controllers elsewhere."""

SLOW_VOLUMES = replace(QUICK, configmap_sync=3.0)


class Decisions:
    """Every verdict that ever stood in the gang's ConfigMap, in order, as its watch shows them."""

    def __init__(self, view: ObjectView, gang: str) -> None:
        self.seen: list[str] = []
        self._view, self._name = view, names.config_map_name(gang)

    def note(self, maps: list[Json]) -> bool:
        for one in (one for one in maps if one["metadata"]["name"] == self._name):
            text = one.get("data", {}).get(names.KEY_VERDICT, "").partition("\n")[0]
            if text and (not self.seen or self.seen[-1] != text):
                self.seen.append(text)
        return False

    async def run(self) -> None:
        await self._view.until(self.note, 3600)


async def until_dead_or(stage: Environment, fate: CrashPoint, end: asyncio.Task[object]) -> None:
    """Until the controller is dead, or the gang came to its end without it reaching that write."""
    dead = asyncio.create_task(fate.dead.wait())
    await asyncio.wait((dead, end), return_when=asyncio.FIRST_COMPLETED)
    dead.cancel()


@pytest.mark.parametrize("lands", [True, False], ids=["write lands", "write lost"])
@pytest.mark.parametrize("outcome", list(VerdictKind))
async def test_killed_at_any_write_the_successor_finishes(
    make_stage: MakeEnvironment, monkeypatch: pytest.MonkeyPatch, outcome: VerdictKind, lands: bool
) -> None:
    async with make_stage(controller=False, stream=False, behaviour=SLOW_VOLUMES) as stage:
        killed_at = []
        for last_write in WRITES:
            name = f"{GANG}-{last_write}"
            with monkeypatch.context() as patched:
                fate = CrashPoint(last_write=last_write, lands=lands)
                crash_controllers(patched, fate)
                stage.start_controller()
                await run_one(stage, name, outcome, fate)
            killed_at.append(fate.dead.is_set())
        # The first four writes always happen; the last ones may be beyond the end.
        assert all(killed_at[: sum(write <= 4 for write in WRITES)])


async def run_one(stage: Environment, name: str, outcome: VerdictKind, fate: CrashPoint) -> None:
    stuck = None
    if outcome is VerdictKind.TIMEOUT:
        stuck = stage.actors.kubelets.inject_fault(
            PodFault(PodMatch(name=f"{name}-*", index=1), unschedulable="no room")
        )
    workers = manifests.replicated_job(parallelism=2, backoff_limit=0, pod={"restartPolicy": "Never"})
    config = {names.TIMEOUT_FIELD: 1 if stuck else 300}
    await stage.apply(manifests.jobset(name, replicated_jobs=[workers], config=config))

    async with ObjectView(stage.client, CONFIGMAPS, stage.namespace) as maps:
        decisions = Decisions(maps, name)
        noting = asyncio.create_task(decisions.run())
        reason = names.REASON_TIMED_OUT if stuck else names.REASON_STARTED
        reported = asyncio.create_task(stage.until_condition(name, reason))
        await until_dead_or(stage, fate, reported)
        await stage.stop_controller()

        with pytest.MonkeyPatch.context() as alive:
            alive.setattr("controllers.manager.Client", type(stage.client))
            stage.start_controller()
            await reported
            verdict = await stage.verdict(name)
            await stage.stop_controller()
        noting.cancel()
        with suppress(asyncio.CancelledError):
            await noting

    assert verdict is not None, fate.writes
    assert verdict.kind is outcome
    assert len(decisions.seen) == 1, f"decided more than once after {fate.writes}: {decisions.seen}"
    assert [reason for reason, _ in await stage.events(name)] == [reason], fate.writes
    if stuck:
        stage.actors.kubelets.clear_fault(stuck)
    await stage.client.delete(JOBSETS, name, stage.namespace, propagation="Background")
