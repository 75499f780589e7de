"""Groups whose creators can never gather them while all their pods are held say so, and who it is (G3)."""

from jobset_gate import names
from jobset_gate.podgroups.model import Format
from jobset_gate_demo.fake import manifests as jobsets
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import Json

MINIMUM = 3
LATER = 60.0
"""Seconds: more than a group has until its owners are read."""


def stateful_set(name: str, policy: str) -> Json:
    meta = manifests.membership_metadata(name, Format.ALIBABA, MINIMUM)
    meta["labels"]["app"] = name
    template = {"metadata": meta, "spec": manifests.template_spec() | {"restartPolicy": "Always"}}
    spec = {"replicas": MINIMUM, "selector": {"matchLabels": {"app": name}}, "template": template}
    body = {"serviceName": name, "podManagementPolicy": policy, **spec}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": body}


def jobset(name: str, **spec: Json) -> Json:
    """A driver and two workers in one gang, the workers after the driver."""
    meta = manifests.membership_metadata(name, Format.ALIBABA, MINIMUM)
    parts = [
        jobsets.replicated_job(part, parallelism=count, pod=manifests.template_spec(), pod_metadata=meta)
        for part, count in (("driver", 1), ("workers", 2))
    ]
    if not spec:
        parts[1]["dependsOn"] = [{"name": "driver", "status": "Complete"}]
    made = jobsets.jobset(name, replicated_jobs=parts)
    made["spec"] |= spec
    del made["metadata"]["namespace"]
    return made


async def test_who_makes_too_few_pods_while_they_are_held_is_named(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "32"}, jobsets=True, controller=False) as stage:
        await stage.apply(
            stateful_set("ordered", "OrderedReady"),
            manifests.job("narrow", "narrow", 2, Format.ALIBABA, MINIMUM),
            jobset("depends"),
            jobset("inorder", startupPolicy={"startupPolicyOrder": "InOrder"}),
            stateful_set("parallel", "Parallel"),
        )
        await stage.until(lambda pods: len(pods) == 1 + 2 + 1 + 1 + MINIMUM)
        stage.clock.forward(LATER)
        stage.start_controller()
        for pod, reported in (
            (
                "ordered-0",
                "needs 3 pods at once, 1 can be there: StatefulSet ordered makes its pods one after the other",
            ),
            ("narrow-0", "needs 3 pods at once, 2 can be there: Job narrow makes 2"),
            ("depends-driver-0-0", "JobSet depends (workers) waits for driver"),
            ("inorder-driver-0-0", "JobSet inorder (workers) waits for driver"),
        ):
            full = next(one["metadata"]["name"] for one in stage.pods.all() if one["metadata"]["name"].startswith(pod))
            assert reported in await stage.until_event(full, names.REASON_CANNOT_GATHER)
        pods = await stage.until_bound(MINIMUM, "parallel", Format.ALIBABA)
        others = [one for one in pods if not one["metadata"]["name"].startswith("parallel")]
        assert all(map(gated, others))
