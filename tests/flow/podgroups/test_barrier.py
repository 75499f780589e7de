"""G6: groups whose pods also wait in the start barrier, from `kubectl apply` to the main container or to none."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jobset_gate import names
from jobset_gate.kube.resources import JOBSETS, PODS
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.podgroups.record import AdmissionState
from jobset_gate.settings import Groups
from jobset_gate_demo.fake import manifests as jobsets
from tests.fakes.object_view import ObjectView, is_true
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated
from tests.flow.environment import held
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment, Json
from tests.flow.podgroups.groups import pass_limit

PODS_WANTED, WAIT = 3, 60
NEVER_STARTED = "ContainerStatusUnknown"
"""What a kubelet says of a container that it had not come to when the pod was deleted."""


def gang(
    stage: GroupEnvironment, way: Format = Format.SCHEDULER_PLUGINS, minimum: int | None = None, timeout: int = 600
) -> Json:
    """A gated JobSet of three pods, all of them in the group `ring`."""
    job = jobsets.replicated_job(
        parallelism=PODS_WANTED,
        containers=[jobsets.container(resources={"requests": {"cpu": "1"}})],
        pod={"restartPolicy": "Never"},
        pod_metadata=manifests.membership_metadata("ring", way, minimum),
    )
    return jobsets.jobset("train", stage.namespace, replicated_jobs=[job], config={names.TIMEOUT_FIELD: timeout})


def main_ran(pod: Json) -> bool:
    """The user's program was started at some time."""
    mains = (pod.get("status") or {}).get("containerStatuses") or []
    states = [it.get(when) or {} for it in mains for when in ("state", "lastState")]
    ended = [it["terminated"]["reason"] for it in states if "terminated" in it]
    return any("running" in it for it in states) or any(reason != NEVER_STARTED for reason in ended)


@asynccontextmanager
async def chronicle(stage: GroupEnvironment) -> AsyncIterator[list[Json]]:
    """Every version of every pod of the namespace from now on."""
    seen: list[Json] = []
    async with ObjectView(stage.client, PODS, stage.namespace, each=seen.append):
        yield seen


async def test_a_group_that_is_taken_back_never_ran_a_line_of_user_code(make_stage: MakeGroupEnvironment) -> None:
    """Two of three are bound and wait in the barrier; later there is room for all, and the barrier opens for them."""
    settings = Groups(capacity_check=CapacityCheck.OFF)
    async with make_stage(jobsets=True, nodes={"n": "2"}, settings=settings) as stage, chronicle(stage) as seen:
        await stage.make_group("ring", PODS_WANTED, wait=WAIT)
        await stage.apply(gang(stage))
        await stage.until(lambda pods: sum(map(held, pods)) == 2)
        first = {one["metadata"]["uid"]: one["metadata"]["name"] for one in stage.pods.all()}
        await pass_limit(stage, WAIT, seen=next(iter(first.values())))
        await stage.until(
            lambda pods: (
                len(pods) == PODS_WANTED
                and all(map(gated, pods))
                and not {one["metadata"]["uid"] for one in pods} & first.keys()
            )
        )
        closed = await stage.recorded("ring")
        assert (closed.stage, closed.rolled_back) == (AdmissionState.CLOSED, 1)
        assert not any(map(main_ran, seen))
        jobset = await stage.client.get(JOBSETS, "train", stage.namespace)
        assert not jobset["spec"].get("suspend")
        assert not jobset["status"].get("restarts")
        assert not jobset["status"].get("terminalState")
        await stage.add_node("more", "4")
        await pass_limit(stage, 10, seen=stage.pods.all()[0]["metadata"]["name"])  # its back-off
        await stage.until(lambda pods: sum(map(main_ran, pods)) == PODS_WANTED)
        await stage.until_object(JOBSETS, "train", lambda it: is_true(it, names.CONDITION))
        assert not any(main_ran(one) for one in seen if one["metadata"]["uid"] in first)
