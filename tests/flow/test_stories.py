"""The second user story of KEP-498, as in the examples. Its 300 workers are the first story."""

import yaml

from jobset_gate import names
from jobset_gate_demo.fake.kubelet import PodFault, PodMatch
from tests.flow.environment import Environment, held, runs
from tests.repo.files import ROOT

STORY = ROOT / "examples" / "story-2.yaml"


async def test_300_workers_are_held_until_the_last_has_started_and_the_auxiliary_pod_is_left_alone(
    stage: Environment,
) -> None:
    last = PodFault(PodMatch(replicated_job="workers", job_index=2, index=99), unschedulable="no room")
    trouble = stage.actors.kubelets.inject_fault(last)
    await stage.apply(yaml.safe_load(STORY.read_text()))

    pods = await stage.until(lambda pods: sum(map(held, pods)) == 299 and sum(map(runs, pods)) == 1)
    (auxiliary,) = filter(runs, pods)
    assert auxiliary["metadata"]["labels"][names.JS_REPLICATED_JOB] == "auxiliary"
    assert "initContainers" not in auxiliary["spec"]
    assert names.GATED not in auxiliary["metadata"]["labels"]
    waiting = await stage.until_condition("my-jobset", names.REASON_WAITING, "299/300 pods started")
    assert "missing: 1 pod: Unscheduled: " in waiting["message"]
    assert await stage.verdict("my-jobset") is None

    stage.actors.kubelets.clear_fault(trouble)
    await stage.until_running(301)
    started = await stage.until_condition("my-jobset", names.REASON_STARTED)
    assert started["status"] == "True"
    assert (names.REASON_STARTED, started["message"]) in await stage.events("my-jobset")
