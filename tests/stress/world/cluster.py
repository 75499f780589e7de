"""The truth: what people, the JobSet controller, the Job controller and kubelets do to one gang.

Each actor acts only when its method is called, on what is stored then; so a quick suspension that nobody saw is just
two calls in a row. The barrier follows A5 word by word and shares no code with the project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jobset_gate import names
from jobset_gate.barrier.model import GangKey, Generation
from jobset_gate.kube.resources import CONFIGMAPS, JOBS, JOBSETS, PODS, Resource
from jobset_gate.sources.table import SOURCES
from tests.fakes.memory_api import Api, Json, labels_of
from tests.stress.world.facts import RawGeneration, alive, barrier, finished, generation_of, has_ended, notes_of
from tests.stress.world.objects import (
    JOBSET,
    LOADERS,
    TOKEN,
    WORKERS,
    GangShape,
    PassedBarrier,
    align,
    attempt_of,
    completed_of,
    epoch_of,
    failed_of,
    give_up,
    holds,
    life_of_jobset,
    passed,
    replicated_job,
    running,
    slot_of,
    stamp,
    timed_out,
)


class Cluster:
    """One gang, by the name of `train`, and the pods of it."""

    workloads: Resource = JOBSETS

    def __init__(self, api: Api, now: Callable[[], float], shape: GangShape) -> None:
        self.api, self.now, self.shape = api, now, shape
        self.began: dict[RawGeneration, int] = {}
        """For each generation the version at which it came to be: nothing decided before may bind it."""
        self.ran: dict[str, float] = {}
        """Pods whose barrier ever ran, by uid: since when, by the true clock."""
        self.first_ran: dict[RawGeneration, float] = {}
        self.published: dict[str, int] = {}
        """Every verdict that ever stood in a ConfigMap of the gang's name, and since which version."""
        self.forged: set[str] = set()
        """Verdicts that another client wrote there. No kubelet is quick enough to show one to a barrier."""
        self.passages: list[PassedBarrier] = []
        self._untold: dict[str, str] = {}
        self._unreported: dict[str, str] = {}
        """Barriers that run and whose the kubelet has said nothing yet: since when, as it will say."""
        self._pods = 0
        api.watchers.append(self._note_gate)

    # --- People ----------------------------------------------------------------------------------------------------

    @property
    def jobset(self) -> Json | None:
        return self.api.get(self.workloads, JOBSET)

    @property
    def gate(self) -> str:
        """Name of the ConfigMap."""
        return SOURCES[self.shape.source].config_map_name(JOBSET)

    @property
    def suspended(self) -> bool:
        return self.jobset is not None and bool(self.jobset["spec"]["suspend"])

    @property
    def going_on(self) -> bool:
        """There is a JobSet, and it has not finished."""
        return self.jobset is not None and not finished(self.jobset)

    def create(self, *, suspended: bool = False) -> None:
        shape = self.shape
        jobs = [replicated_job(WORKERS, shape.replicas, shape.width, "Indexed")]
        if shape.loaders:
            jobs.append(replicated_job(LOADERS, 1, shape.loaders, "NonIndexed"))
        lenient = names.ON_TIMEOUT_RELEASE if shape.releases_on_timeout else names.ON_TIMEOUT_FAIL
        config = {} if shape.timeout is None else {names.TIMEOUT_FIELD: shape.timeout}
        meta = {"name": JOBSET, "annotations": {names.ON_TIMEOUT: lenient}, "creationTimestamp": stamp(self.now())}
        spec = {"suspend": suspended, names.CONFIG_FIELD: config, "replicatedJobs": jobs}
        self._begin(self.api.create(JOBSETS, {"metadata": meta, "spec": spec, "status": {"restarts": 0}}))

    def delete(self) -> None:
        """Background deletion: the rest is the garbage collector's."""
        self.api.remove(self.workloads, JOBSET)

    def suspend(self) -> None:
        """With what the webhook does in the same write: the next epoch in all templates (A5)."""

        def change(jobset: Json) -> None:
            jobset["spec"]["suspend"] = True
            following = str(epoch_of(jobset) + 1)
            for job in jobset["spec"]["replicatedJobs"]:
                notes_of(job["template"]["spec"]["template"])[names.EPOCH] = following

        self._change_jobset(change)

    def resume(self) -> None:
        self._begin(self._change_jobset(lambda jobset: jobset["spec"].update(suspend=False)))

    def restart(self) -> None:
        """The JobSet's failure policy counts one more attempt."""
        self._begin(self._change_jobset(lambda jobset: jobset["status"].update(restarts=attempt_of(jobset) + 1)))

    def bypass(self) -> None:
        self._change_jobset(lambda jobset: jobset["metadata"]["annotations"].update({names.BYPASS: "true"}))

    def finish(self) -> None:
        self._change_jobset(lambda jobset: jobset["status"].update(terminalState="Completed"))

    def resize(self, width: int) -> None:
        """Elastic: parallelism and completions of the workers change together."""

        def change(jobset: Json) -> None:
            jobset["spec"]["replicatedJobs"][0]["template"]["spec"].update(parallelism=width, completions=width)

        self._change_jobset(change)

    # --- The JobSet controller -------------------------------------------------------------------------------------

    def sync_jobset(self) -> None:
        """Jobs of the present attempt exist, suspended as the JobSet is; those of earlier attempts are gone."""
        jobset = self.jobset
        if jobset is None or jobset["status"].get("terminalState"):
            return
        wanted = dict(self._wanted_jobs(jobset))
        for job in self.api.all(JOBS):
            mine = labels_of(job)
            ours = mine[names.JS_UID] == jobset["metadata"]["uid"]
            if ours and mine[names.JS_RESTART_ATTEMPT] != str(attempt_of(jobset)):
                self.api.remove(JOBS, job["metadata"]["name"])
        for name, body in wanted.items():
            present = self.api.get(JOBS, name)
            if present is None:
                self.api.create(JOBS, body)
            elif labels_of(present)[names.JS_UID] == jobset["metadata"]["uid"]:
                self.api.change(JOBS, name, lambda job, body=body: align(job, body))  # type: ignore[misc]

    def replace_job(self, name: str) -> None:
        """One Job fails and is created again in the same attempt; the JobSet controller does the second half."""
        self.api.remove(JOBS, name)

    # --- The Job controller ----------------------------------------------------------------------------------------

    def sync_jobs(self, *, tell: bool = True) -> None:
        """Pods as the Jobs want them; what has finished is noted in the Jobs. `tell`: with the status of a bare Job."""
        for job in self.api.all(JOBS):
            self._note_finished(job)
            self._fill(self.api.get(JOBS, job["metadata"]["name"]) or job)

    def collect(self) -> None:
        """The garbage collector: what has lost its owner goes."""
        jobset = self.jobset
        alive = set() if jobset is None else {jobset["metadata"]["uid"]}
        self._collect(JOBS, alive)
        self._collect(CONFIGMAPS, alive)
        jobs = {job["metadata"]["uid"] for job in self.api.all(JOBS)}
        for pod in self.api.all(PODS):
            if labels_of(pod)[names.JOB_CONTROLLER_UID] not in jobs:
                self.evict(pod)

    # --- Kubelets --------------------------------------------------------------------------------------------------

    def unstarted(self) -> list[Json]:
        fresh = (pod for pod in self.pods() if alive(pod) and not barrier(pod))
        return [pod for pod in fresh if pod["metadata"]["uid"] not in self._unreported]

    def first_slot(self, pod: Json) -> bool:
        """Whether the pod is one of the first worker."""
        name: str = pod["metadata"]["name"]
        return name.startswith(f"{JOBSET}-{WORKERS}-0-0-")

    def waiting(self) -> list[Json]:
        """Pods whose barrier runs and has not obeyed anything."""
        return [pod for pod in self.pods() if self._runs(pod)]

    def pods(self) -> list[Json]:
        return self.api.all(PODS)

    def start(self, pod: Json, node_ahead: float = 0.0, *, tell: bool = True) -> None:
        """The node came, earlier containers are done: the barrier runs. Also its second run after a failure.

        `tell`: the kubelet reports it at once.
        """

        def change(body: Json) -> None:
            body["spec"]["nodeName"] = "node"
            if tell:
                body["status"] = running(since)

        uid, since = pod["metadata"]["uid"], stamp(float(int(self.now() + node_ahead)))
        self.ran.setdefault(uid, self.now())
        self.first_ran.setdefault(generation_of(pod), self.now())
        self._forget(pod)
        if not tell:
            self._unreported[uid] = since
        self._change_pod(pod, change)

    def look(self, pod: Json, text: str, *, tell: bool = True) -> bool:
        """The barrier reads this text; whether it obeyed. `tell`: the kubelet reports it at once."""
        uid = pod["metadata"]["uid"]
        words = text.split("\n", 1)[0].split(" ")
        its = generation_of(pod)
        if not self._runs(pod) or len(words) != 5 or words[0] not in ("release", "timeout"):
            return False
        if not its.uid or words[1] != its.uid or words[2] != str(its.attempt) or int(words[3]) < its.epoch:
            return False
        self.passages.append(PassedBarrier(uid, its, text))
        self._untold[uid] = words[0]
        if tell:
            self.report(pod)
        return True

    def report(self, pod: Json) -> None:
        """The kubelet says what came of the barrier, if only that it runs."""
        uid = pod["metadata"]["uid"]
        said, since = self._untold.pop(uid, None), self._unreported.pop(uid, None)
        if not (holds(pod) if since is None else alive(pod)):
            return
        if since is None:
            since = pod["status"]["initContainerStatuses"][0]["state"]["running"]["startedAt"]
        elif said is None:
            self._change_pod(pod, lambda body: body.update(status=running(since)))
        if said is None:
            return
        if said == "release":
            self._change_pod(pod, lambda body: body.update(status=passed(since, stamp(self.now()))))
        else:
            self._change_pod(pod, lambda body: body.update(status=timed_out(since, restarts=self.shape.pods_restart)))

    def readable(self, pod: Json) -> list[str]:
        """What the pod's volume holds now: ConfigMap and annotation."""
        gate = self.api.get(CONFIGMAPS, self.gate) or {}
        kept = (gate.get("data") or {}).get(names.KEY_VERDICT, "")
        return ["" if kept in self.forged else kept, notes_of(pod).get(names.VERDICT, "")]

    def request(self, pod: Json) -> tuple[GangKey, str, Generation]:
        """What its barrier asks the gate stream for: gang, token, generation."""
        its = generation_of(pod)
        return GangKey("default", JOBSET, self.shape.source), TOKEN, Generation(its.uid, its.attempt, its.epoch)

    def fail(self, pod: Json) -> None:
        self._forget(pod)
        self._change_pod(pod, lambda body: body["status"].update(phase="Failed"))

    def fail_for_good(self, pod: Json) -> None:
        """Its index has no more tries (backoffLimitPerIndex); in a Job without indexes it only fails."""
        self.fail(pod)
        for job in self.api.all(JOBS):
            mine = job["metadata"]["uid"] == labels_of(pod)[names.JOB_CONTROLLER_UID]
            if mine and job["spec"]["completionMode"] == "Indexed" and not has_ended(job):
                self.api.change(JOBS, job["metadata"]["name"], lambda body: give_up(body, slot_of(pod)))

    def finish_main(self, pod: Json) -> None:
        """Its main container ends well, if it has begun."""
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]:
            self._change_pod(pod, lambda body: body["status"].update(phase="Succeeded"))

    def evict(self, pod: Json) -> None:
        self._change_pod(pod, lambda body: body["metadata"].setdefault("deletionTimestamp", stamp(self.now())))

    def vanish(self, pod: Json) -> None:
        """Its node is gone, or its termination is over."""
        self._forget(pod)
        self.api.remove(PODS, pod["metadata"]["name"])

    # --- Details ---------------------------------------------------------------------------------------------------

    def _runs(self, pod: Json) -> bool:
        """Its barrier runs, reported or not, and has not obeyed anything."""
        uid = pod["metadata"]["uid"]
        return (holds(pod) or (uid in self._unreported and alive(pod))) and uid not in self._untold

    def _forget(self, pod: Json) -> None:
        """There is nothing left to report of what its barrier was."""
        self._untold.pop(pod["metadata"]["uid"], None)
        self._unreported.pop(pod["metadata"]["uid"], None)

    def _begin(self, jobset: Json) -> None:
        self.began.setdefault(life_of_jobset(jobset), self.api.version)

    def _change_jobset(self, change: Callable[[Json], object]) -> Json:
        return self.api.change(self.workloads, JOBSET, change)

    def _change_pod(self, pod: Json, change: Callable[[Json], object]) -> None:
        self.api.change(PODS, pod["metadata"]["name"], change)

    def _note_gate(self, kind: Resource, what: str, body: Json) -> None:
        text = (body.get("data") or {}).get(names.KEY_VERDICT)
        if kind == CONFIGMAPS and what != "DELETED" and text and text not in self.forged:
            self.published.setdefault(text, self.api.version)

    def _wanted_jobs(self, jobset: Json) -> Iterator[tuple[str, Json]]:
        for replicated in jobset["spec"]["replicatedJobs"]:
            for number in range(replicated["replicas"]):
                name = f"{JOBSET}-{replicated['name']}-{number}"
                labels = {
                    names.GATED: names.GATED_VALUE,
                    names.JS_NAME: JOBSET,
                    names.JS_UID: jobset["metadata"]["uid"],
                    names.JS_REPLICATED_JOB: replicated["name"],
                    names.JS_JOB_INDEX: str(number),
                    names.JS_RESTART_ATTEMPT: str(attempt_of(jobset)),
                }
                spec = replicated["template"]["spec"] | {"suspend": jobset["spec"]["suspend"]}
                owner = {"kind": "JobSet", "uid": jobset["metadata"]["uid"], "controller": True}
                meta = {"name": name, "labels": labels, "ownerReferences": [owner]}
                yield name, {"metadata": meta, "spec": spec, "status": {}}

    def _fill(self, job: Json) -> None:
        mine = [pod for pod in self.pods() if labels_of(pod)[names.JOB_CONTROLLER_UID] == job["metadata"]["uid"]]
        running = [pod for pod in mine if alive(pod) and pod["status"]["phase"] != "Succeeded"]
        if job["spec"]["suspend"] or has_ended(job):
            for pod in running:
                self.evict(pod)
            return
        wanted = set(range(job["spec"]["completions"])) - completed_of(job) - failed_of(job)
        for pod in running:
            if slot_of(pod) in wanted:
                wanted.discard(slot_of(pod))
            else:
                self.evict(pod)
        for index in sorted(wanted):
            self._make_pod(job, index)

    def _make_pod(self, job: Json, index: int) -> None:
        self._pods += 1
        indexed = job["spec"]["completionMode"] == "Indexed"
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        labels = dict(labels_of(job)) | {names.JOB_CONTROLLER_UID: uid, names.JOB_NAME: name}
        notes = {names.EPOCH: notes_of(job["spec"]["template"])[names.EPOCH]}
        # A NonIndexed Job's pods carry no index; the number is kept for this world's own bookkeeping.
        notes[names.JOB_COMPLETION_INDEX if indexed else "slot"] = str(index)
        meta = {
            "name": f"{name}-{index}-{self._pods}",
            "labels": labels,
            "annotations": notes,
            "ownerReferences": [{"kind": "Job", "name": name, "uid": uid, "controller": True}],
            "creationTimestamp": stamp(self.now()),
        }
        self.api.create(PODS, {"metadata": meta, "spec": {}, "status": {"phase": "Pending"}})

    def _note_finished(self, job: Json) -> None:
        done = completed_of(job)
        for pod in self.pods():
            if labels_of(pod)[names.JOB_CONTROLLER_UID] == job["metadata"]["uid"]:
                done |= {slot_of(pod)} - failed_of(job) if pod["status"]["phase"] == "Succeeded" else set()
        status: Json = {"slots": sorted(done), "succeeded": len(done)}
        status |= {key: text for key, text in job["status"].items() if key == "failedIndexes"}
        if job["spec"]["completionMode"] == "Indexed":
            status["completedIndexes"] = ",".join(map(str, sorted(done)))
        if len(done) >= job["spec"]["completions"]:
            status["conditions"] = [{"type": "Complete", "status": "True"}]
        self.api.change(JOBS, job["metadata"]["name"], lambda body: body.update(status=status))

    def _collect(self, kind: Resource, owners: set[str]) -> None:
        for stored in self.api.all(kind):
            references = stored["metadata"].get("ownerReferences") or []
            if references and not owners & {owner["uid"] for owner in references}:
                self.api.remove(kind, stored["metadata"]["name"])
