"""A pod whose image cannot be pulled is named in the verdict, with the reason, to everybody who asks."""

from e2e import gangs, predicates
from e2e.scenario import Scenario
from jobset_gate import names
from jobset_gate_demo.fake import manifests

ABSENT = "localhost/absent:1"


async def test_the_verdict_names_the_pod_in_image_pull_back_off(scenario: Scenario) -> None:
    healthy = gangs.workers(scenario.image, jobs=1, pods=1)
    broken = gangs.workers(scenario.image, name="broken", jobs=1, pods=1)
    broken["template"]["spec"]["template"]["spec"]["initContainers"] = [manifests.container("setup", ABSENT)]
    # The kubelet writes a failed pull into the status when it tries again, up to 15 s later, and pulls one by one.
    await scenario.apply(gangs.gang(healthy, broken, timeout=50))
    await scenario.until(lambda _: len(scenario.ends) == 1)
    (end,) = scenario.ends.values()
    assert end["exitCode"] == names.EXIT_TIMED_OUT
    condition = await scenario.until_condition(names.REASON_TIMED_OUT)
    assert condition["status"] == "False"
    ((reason, event),) = await scenario.events()
    assert reason == names.REASON_TIMED_OUT
    for message in (end["message"], condition["message"], event):
        assert message.startswith("timed out after 50s: 1/2 pods started; missing: 1 pod: ImagePull")
        assert ABSENT in message
        assert "broken-0/0" in message
    assert not any(map(predicates.has_run, scenario.pods.all()))
