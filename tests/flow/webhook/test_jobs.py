"""K3, K4: Jobs that are gangs, on a real API server and with the real Job controller."""

import copy
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError, Conflict
from jobset_gate.kube.resources import JOBS, Resource
from jobset_gate.settings import Barrier, Gangs, Settings
from tests.fakes.admission_server import AdmittedObjects, registered
from tests.fakes.eventually import PATIENCE
from tests.fakes.jobs import EPOCH, TEMPLATE, job
from tests.fakes.jobsets import Json, dig
from tests.fakes.object_view import ObjectView, is_true
from tests.plane.planes import Plane

pytestmark = pytest.mark.real

CRON_JOBS = Resource("batch", "v1", "cronjobs", "CronJob")
SETTINGS = Settings(barrier=Barrier(stream_url="http://gate.system.svc:8082", image="b:1"))
RUN = "run"


class Jobs(AdmittedObjects):
    async def suspend(self, value: bool = True) -> Json:
        return await self.patch(RUN, {"spec": {"suspend": value}})

    async def until(self, holds: Callable[[Json], bool]) -> Json:
        async with ObjectView(self.client, JOBS, self.namespace) as view:
            return next(iter(await view.until(lambda found: bool(found) and all(map(holds, found)), PATIENCE)))


@pytest.fixture
async def jobs(client: Client, namespace: str) -> AsyncIterator[Jobs]:
    async with registered(client, namespace, SETTINGS) as server:
        yield Jobs(client, namespace, server, JOBS)


def epoch(found: Json) -> Any:
    return dig(found, *EPOCH)


def is_idle(found: Json) -> bool:
    status = found.get("status") or {}
    return is_true(found, "Suspended") and not status.get("active") and "startTime" not in status


async def test_a_resumption_before_the_suspension_is_done_is_a_conflict(jobs: Jobs) -> None:
    await jobs.create(job(spec={"suspend": True}))
    await jobs.until(is_idle)
    await jobs.patch(RUN, {"status": {"startTime": "2026-08-01T10:00:00Z"}}, subresource="status")
    with pytest.raises(Conflict) as refusal:
        await jobs.suspend(False)
    assert (refusal.value.status, refusal.value.reason) == (409, "Conflict")
    sentence = "spec.suspend: false: the Job is still being suspended (startTime set): resume it again in a moment"
    assert sentence in refusal.value.message
    await jobs.patch(RUN, {"status": {"startTime": None}}, subresource="status")
    assert epoch(await jobs.suspend(False)) == "1"


async def test_kueues_three_writes_stop_a_job_and_keep_its_epoch(jobs: Jobs) -> None:
    """Suspend, clear the start, put the template's annotations back as they were at creation; then admit again."""
    original = (await jobs.create(job(spec={"suspend": True})))["spec"]["template"]["metadata"]["annotations"]
    await jobs.until(is_idle)
    assert epoch(await jobs.suspend(False)) == "1"
    await jobs.suspend()
    await jobs.patch(RUN, {"status": {"startTime": None}}, subresource="status")
    await jobs.until(is_idle)
    restored = await jobs.patch(RUN, {"spec": {"template": {"metadata": {"annotations": original}}}})
    assert (original[names.EPOCH], epoch(restored)) == ("0", "1")
    selector = {"template": {"spec": {"nodeSelector": {"pool": "a"}}}}
    admitted = await jobs.patch(RUN, {"spec": {"suspend": False} | selector})
    assert epoch(admitted) == "2"
    assert dig(admitted, *TEMPLATE, "spec", "nodeSelector") == {"pool": "a"}


async def test_a_cron_jobs_jobs_are_gangs_by_the_annotation_in_its_job_template(jobs: Jobs, plane: Plane) -> None:
    given = job()
    template = {"metadata": {"annotations": given["metadata"]["annotations"]}, "spec": given["spec"]}
    cron = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": template}
    body = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": cron}
    await jobs.client.create(CRON_JOBS, body, jobs.namespace)
    assert jobs.counter.sent() == 0
    where = ("-n", jobs.namespace, "-o", "json")
    made = (await plane.kubectl("create", "job", "first", "--from=cronjob/nightly", *where)).json
    assert epoch(made) == "0"
    assert made["metadata"]["labels"][names.GATED] == names.GATED_JOB


async def test_a_dead_webhook_stops_only_what_would_lose_the_barrier(jobs: Jobs) -> None:
    plain = job(config=False, name="plain", notes={"team": "a"})
    for name in ("gated", "other"):
        await jobs.create(job(name=name, finalizers=["example.com/f"] if name == "other" else []))
    jobs.counter.sent()
    await jobs.server.stop()
    await jobs.create(plain)
    for body in ({"spec": {"suspend": True}}, {"spec": {"suspend": False}}, {"metadata": {"annotations": None}}):
        await jobs.patch("plain", body)
    await jobs.patch("gated", {"metadata": {"labels": {"team": "a"}, "annotations": {"team": "b"}}})
    for refused in (jobs.create(job(name="late")), jobs.patch("gated", {"spec": {"suspend": True}})):
        with pytest.raises(ApiError, match=r"mutate-jobs\.jobset-gate\.dev"):
            await refused
    for label in ("false", None):
        with pytest.raises(ApiError, match=r"mutate-jobs\.jobset-gate\.dev"):
            await jobs.patch("gated", {"metadata": {"labels": {names.GATED: label}}})
    for name in ("plain", "gated", "other"):
        await jobs.delete(name)
    await jobs.patch("other", {"metadata": {"finalizers": None}})


ODD: list[Any] = [
    {},
    {"annotations": None},
    {"annotations": {}},
    {"annotations": {names.BYPASS: "true"}, "labels": None},
]


async def test_jobs_without_a_config_are_never_sent_whatever_their_shape(jobs: Jobs) -> None:
    for number, meta in enumerate(ODD):
        manifest = copy.deepcopy(job(config=False))
        manifest["metadata"] = {"name": f"odd-{number}"} | meta
        await jobs.create(manifest)
        await jobs.patch(f"odd-{number}", {"spec": {"suspend": True}})
        await jobs.patch(f"odd-{number}", {"metadata": {"labels": {names.GATED: "job"}}})
    assert jobs.counter.sent() == 0


async def test_while_jobs_are_no_source_none_is_sent(client: Client, namespace: str) -> None:
    async with registered(client, namespace, Settings(gangs=Gangs(sources=("jobset",)))) as server:
        here = Jobs(client, namespace, server, JOBS)
        made = await here.create(job())
        assert here.counter.sent() == 0
    assert epoch(made) is None
