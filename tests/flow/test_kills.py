"""The controller killed at every single write of a release and of a timeout: its successor finishes, decided once."""

import asyncio
import os
from dataclasses import replace

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS
from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.kubelet import PodFault, PodMatch
from tests.fakes.crash_point import CrashPoint, doomed_client
from tests.fakes.object_view import ObjectView
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import QUICK, Environment, Json

GANG = "gang"
WRITES = range(1, 9) if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else (3, 4)
"""All writes of either outcome: ConfigMap, clock, verdict, a patch for each of two pods, Event, two conditions. Or the
verdict and the write after it: the random schedules kill controllers elsewhere."""

SLOW_VOLUMES = replace(QUICK, configmap_sync=3.0)


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
                patched.setattr("controllers.manager.Client", doomed_client(fate))
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

    decisions: list[str] = []

    def note(config_map: Json) -> None:
        text = config_map.get("data", {}).get(names.KEY_VERDICT, "").partition("\n")[0]
        if config_map["metadata"]["name"] == names.config_map_name(name) and text and text not in decisions[-1:]:
            decisions.append(text)

    async with ObjectView(stage.client, CONFIGMAPS, stage.namespace, each=note):
        reason = names.REASON_TIMED_OUT if stuck else names.REASON_STARTED
        reported = asyncio.create_task(stage.until_condition(name, reason))
        await fate.until_dead_or(reported)
        await stage.stop_controller()

        with pytest.MonkeyPatch.context() as alive:
            alive.setattr("controllers.manager.Client", type(stage.client))
            stage.start_controller()
            await reported
            verdict = await stage.verdict(name)
            await stage.stop_controller()

    assert verdict is not None, fate.writes
    assert verdict.kind is outcome
    assert len(decisions) == 1, f"decided more than once after {fate.writes}: {decisions}"
    assert [reason for reason, _ in await stage.events(name)] == [reason], fate.writes
    if stuck:
        stage.actors.kubelets.clear_fault(stuck)
    await stage.client.delete(JOBSETS, name, stage.namespace, propagation="Background")
