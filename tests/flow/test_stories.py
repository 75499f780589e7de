"""The two user stories of KEP-498, as in the examples; the second is applied with kubectl and strict validation."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate_demo.fake.kubelet import FakeNode, PodFault, PodMatch
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import held, passed, runs

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / name).read_text())
    return found


@pytest.mark.parametrize("plane", ["embedded"], indirect=True)
async def test_story_1_holds_300_pods_until_the_300th_has_started(make_stage: MakeEnvironment) -> None:
    async with make_stage(nodes=(FakeNode("early", pods=299),)) as stage:
        await stage.create(example("story-1.yaml"))

        pods = await stage.until_held(299)
        assert len(pods) == 300
        waiting = await stage.until_condition("my-jobset", names.REASON_WAITING, "299/300 pods started")
        assert "missing: 1 pod: Unscheduled: 0/" in waiting["message"]
        assert await stage.verdict("my-jobset") is None
        assert not any(map(passed, stage.pods.all()))

        await stage.actors.kubelets.add_node(FakeNode(f"{stage.namespace}-late", pods=10))
        verdict = await stage.until_verdict("my-jobset")
        assert verdict.kind is VerdictKind.RELEASE
        assert sum(map(held, stage.pods.all())) + sum(map(passed, stage.pods.all())) == 300
        await stage.until_running(300)
        started = await stage.until_condition("my-jobset", names.REASON_STARTED)
        assert started["status"] == "True"
        assert ("AllPodsStarted", started["message"]) in await stage.events("my-jobset")


async def test_story_2_holds_the_workers_and_leaves_the_auxiliary_pod_alone(make_stage: MakeEnvironment) -> None:
    async with make_stage() as stage:
        last = PodFault(PodMatch(replicated_job="workers", job_index=2, index=99), unschedulable="no room")
        trouble = stage.actors.kubelets.inject_fault(last)
        await stage.apply(example("story-2.yaml"))

        pods = await stage.until(lambda pods: sum(map(held, pods)) == 299 and sum(map(runs, pods)) == 1)
        (auxiliary,) = filter(runs, pods)
        assert auxiliary["metadata"]["labels"][names.JS_REPLICATED_JOB] == "auxiliary"
        assert "initContainers" not in auxiliary["spec"]
        assert names.GATED not in auxiliary["metadata"]["labels"]

        stage.actors.kubelets.clear_fault(trouble)
        await stage.until_running(301)
