"""The truth of a gang that is one Indexed Job: what the Job controller, the webhook and people do to it (K4)."""

from __future__ import annotations

import json

from jobset_gate import names
from jobset_gate.kube.resources import JOBS
from tests.fakes.memory_api import Json
from tests.stress.world.cluster import Cluster
from tests.stress.world.facts import alive, has_ended, notes_of
from tests.stress.world.objects import JOBSET, completed_of, epoch_of, failed_of, job_spec, slot_of, stamp


class JobCluster(Cluster):
    """The Job is workload and Job in one; its epoch counts resumptions."""

    workloads = JOBS

    # --- People ------------------------------------------------------------------------------------------------------

    def create(self, *, suspended: bool = False) -> None:
        shape = self.shape
        lenient = names.ON_TIMEOUT_RELEASE if shape.releases_on_timeout else names.ON_TIMEOUT_FAIL
        config = {} if shape.timeout is None else {names.TIMEOUT_FIELD: shape.timeout}
        meta = {
            "name": JOBSET,
            "labels": {names.GATED: names.GATED_JOB},
            "annotations": {names.ON_TIMEOUT: lenient, names.CONFIG: json.dumps(config)},
            "creationTimestamp": stamp(self.now()),
        }
        spec = job_spec(shape.width, "Indexed") | {"suspend": suspended}
        self._begin(self.api.create(JOBS, {"metadata": meta, "spec": spec, "status": {}}))

    def suspend(self) -> None:
        self._change_jobset(lambda job: job["spec"].update(suspend=True))

    def resume(self) -> None:
        """With what the webhook does: the next epoch in the same write, or a Conflict."""
        job = self.jobset
        if job is None or job["status"].get("startTime") or job["status"].get("active"):
            return

        def change(job: Json) -> None:
            job["spec"]["suspend"] = False
            notes_of(job["spec"]["template"])[names.EPOCH] = str(epoch_of(job) + 1)

        self._begin(self._change_jobset(change))

    def restart(self) -> None:
        """A Job has one attempt."""

    def finish(self) -> None:
        self._set_condition("Complete", "True")

    def resize(self, width: int) -> None:
        self._change_jobset(lambda job: job["spec"].update(parallelism=width, completions=width))

    # --- Controllers -------------------------------------------------------------------------------------------------

    def sync_jobset(self) -> None:
        """There is none."""

    def replace_job(self, name: str) -> None:
        """Nobody makes it again."""

    def sync_jobs(self, *, tell: bool = True) -> None:
        """Pods first; `tell`: the status that follows from them is written too."""
        job = self.jobset
        if job is None:
            return
        self._fill(job)
        if tell and (job := self.jobset) is not None:
            self._note_finished(job)

    def first_slot(self, pod: Json) -> bool:
        return str(pod["metadata"]["name"]).startswith(f"{JOBSET}-0-")

    def _note_finished(self, job: Json) -> None:
        if has_ended(job):
            return
        mine = [pod for pod in self.pods() if pod["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]]
        succeeded = {slot_of(pod) for pod in mine if pod["status"]["phase"] == "Succeeded"}
        done = completed_of(job) | (succeeded - failed_of(job))
        active = sum(alive(pod) and pod["status"]["phase"] != "Succeeded" for pod in mine)
        suspended, now = job["spec"]["suspend"], stamp(self.now())

        def change(body: Json) -> None:
            status = body["status"]
            status |= {"slots": sorted(done), "completedIndexes": ",".join(map(str, sorted(done))), "active": active}
            if not suspended:
                status.setdefault("startTime", now)
            elif self.shape.clears_start:
                status.pop("startTime", None)

        self._change_jobset(change)
        self._set_condition("Suspended", str(suspended))
        if len(done) >= job["spec"]["completions"]:
            self._set_condition("Complete", "True")

    def _set_condition(self, kind: str, status: str) -> None:
        def change(job: Json) -> None:
            conditions = job["status"].setdefault("conditions", [])
            others = [it for it in conditions if it["type"] != kind]
            job["status"]["conditions"] = [*others, {"type": kind, "status": status}]

        self._change_jobset(change)
