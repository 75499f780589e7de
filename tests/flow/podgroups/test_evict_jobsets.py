"""The pods of JobSets taken back: the JobSet is suspended and resumed, never one of its Jobs (G4, G6)."""

import pytest

from jobset_gate import names
from jobset_gate.kube.resources import JOBS, JOBSETS
from jobset_gate.podgroups.model import Format
from jobset_gate_demo.fake import manifests as jobsets
from jobset_gate_demo.fake.view import ObjectView
from tests.fakes.podgroups import manifests
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.evictions import (
    GANG,
    POLICIES,
    Json,
    ManualEviction,
    add_finalizers,
    all_held,
    placed,
    remove_finalizers,
    uids,
)


def jobset(policy: Json | None) -> Json:
    """A driver and two workers in one gang."""
    meta, spec = manifests.membership_metadata(GANG, Format.ALIBABA, 3), manifests.template_spec()
    job = {} if policy is None else {"podFailurePolicy": policy}
    parts = [
        jobsets.replicated_job(part, parallelism=count, pod=spec, pod_metadata=meta, job=job)
        for part, count in (("driver", 1), ("workers", 2))
    ]
    made = jobsets.jobset("train", replicated_jobs=parts)
    del made["metadata"]["namespace"]
    return made


class MarkHistory:
    """What any Job or JobSet ever carried of ours, and whether any of them ever failed."""

    def __init__(self) -> None:
        self.marked: set[tuple[str, str]] = set()
        self.failed: set[str] = set()

    def note(self, one: Json) -> None:
        name = one["metadata"]["name"]
        if mark := one["metadata"].get("annotations", {}).get(names.POD_GROUP_SUSPENDED):
            self.marked.add((name, mark))
        if any(it["type"] in ("Failed", "FailureTarget") for it in one.get("status", {}).get("conditions", ())):
            self.failed.add(name)


@pytest.mark.parametrize("policy", ["no policy", "fails on any code"])
async def test_a_jobset_gets_all_its_pods_back(make_stage: MakeGroupEnvironment, policy: str) -> None:
    async with make_stage(jobsets=True, nodes={"n": "2"}, controller=False) as stage:
        rolling, marks = ManualEviction(stage, minimum=3), MarkHistory()
        await stage.apply(jobset(POLICIES[policy]))
        old = await stage.until(all_held(3))
        await rolling.open(old)
        await stage.until(placed(2, 2, 3))
        await add_finalizers(stage)
        async with (
            ObjectView(stage.client, JOBSETS, stage.namespace, each=marks.note),
            ObjectView(stage.client, JOBS, stage.namespace, each=marks.note),
        ):
            assert (await rolling.roll_back()).blocked == ()
            await rolling.resume()
            await stage.until(all_held(3, but=uids(old)))
        # Where a rule could fail it, its pods are taken from it instead.
        mark = ("train", f"{stage.label(GANG, Format.ALIBABA)}.1")
        assert marks.marked == (set() if POLICIES[policy] else {mark})
        assert marks.failed == set()
        after = await stage.client.get(JOBSETS, "train", stage.namespace)
        meta = after["metadata"]
        assert not after["spec"].get("suspend")
        assert after["status"].get("restarts", 0) == 0
        assert names.POD_GROUP_SUSPENDED not in meta.get("annotations", {}) | meta.get("labels", {})
        await remove_finalizers(stage)
