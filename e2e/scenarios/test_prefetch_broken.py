"""A main image that cannot be had: with prefetch-images the verdict says so, and nobody runs without it."""

from e2e import gangs, predicates
from e2e.scenario import Scenario
from jobset_gate import names

ABSENT = "localhost/absent:2"


async def test_the_verdict_names_the_image_of_the_main_container(scenario: Scenario) -> None:
    healthy = gangs.workers(scenario.image, jobs=1, pods=1)
    broken = gangs.workers(ABSENT, name="broken", jobs=1, pods=1)
    note = {names.PREFETCH_IMAGES: "true"}
    # The kubelet writes a failed pull into the status when it tries again, up to 15 s later, and pulls one by one.
    await scenario.apply(gangs.gang(healthy, broken, timeout=50, annotations=note))
    condition = await scenario.until_condition(names.REASON_TIMED_OUT)
    assert condition["message"].startswith("timed out after 50s: 1/2 pods started; missing: 1 pod: ImagePull")
    assert ABSENT in condition["message"]
    await scenario.until_jobset(predicates.failed)
    assert not any(map(predicates.has_run, scenario.pods.all()))
