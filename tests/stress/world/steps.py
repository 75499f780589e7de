"""What the steps of a schedule do, each by a method of its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jobset_gate.kube.resources import CONFIGMAPS, JOBS, JOBSETS, PODS, Resource
from tests.fakes.memory_api import WATCHED, Json
from tests.fakes.memory_client import Answer
from tests.stress.world.facts import alive
from tests.stress.world.replica import Replica
from tests.stress.world.world import World

if TYPE_CHECKING:
    from tests.stress.world.schedule import Schedule, Step

MOST = 11
"""The highest of a step's numbers."""


class Run:
    """What the steps do. What must not happen is the oracle's business."""

    kinds: Sequence[Resource] = (JOBSETS, JOBS, PODS, CONFIGMAPS)
    """Of objects whose watches are disturbed."""

    def __init__(self, schedule: Schedule) -> None:
        self.world = World(schedule.shape, schedule.replicas)
        self.cluster = self.world.cluster
        self.straggler = schedule.straggler
        self.cluster.create(suspended=schedule.suspended)

    def take(self, step: Step) -> None:
        act: Callable[[int, int], None] = getattr(self, step.what)
        act(step.one, step.other)
        self.world.check()

    # --- The cluster goes on ---------------------------------------------------------------------------------------

    def the_cluster_acts(self, one: int, other: int) -> None:
        if one != 1:
            self.cluster.sync_jobset()
        if other % 3 == 0:
            self.cluster.collect()
        if one != 2:
            self.cluster.sync_jobs(tell=one % 4 != 3)

    def pods_start(self, one: int, other: int) -> None:
        for pod in self.startable()[: 1 + one % 4]:
            self.cluster.start(pod)

    def barriers_run_before_anybody_reports_it(self, one: int, other: int) -> None:
        for pod in self.startable()[: 1 + one % 4]:
            self.cluster.start(pod, tell=False)

    def barriers_ask(self, one: int, other: int) -> None:
        """At one of the controllers; most of them, or one a second time."""
        pods = self.cluster.waiting()
        for pod in pods[other % len(pods) if pods and one > 7 else 0 :]:
            self.world.streams.ask(pod, self.replica(one))

    def streams_break(self, one: int, other: int) -> None:
        """One of them, now and then all."""
        for number in range(one, one + (MOST if other > 8 else 1)):
            self.world.streams.break_off(number)

    def a_stream_is_dead(self, one: int, other: int) -> None:
        self.world.streams.swallow(one)
        if other % 3 == 0:
            self.world.streams.end_of_the_dead()

    def barriers_look(self, one: int, other: int) -> None:
        """At what their volume holds now, or at something older that their kubelet still has."""
        older = sorted(self.cluster.published)
        for pod in self.cluster.waiting():
            texts = [*self.cluster.readable(pod), *([older[other % len(older)]] if older and one > 5 else [])]
            for text in texts:
                if self.cluster.look(pod, text, tell=one % 2 == 0):
                    break

    def a_main_container_ends(self, one: int, other: int) -> None:
        pods = self.cluster.pods()
        if pods:
            self.cluster.finish_main(pods[one % len(pods)])

    def kubelets_report(self, one: int, other: int) -> None:
        for pod in self.cluster.pods():
            self.cluster.report(pod)

    def time_passes(self, one: int, other: int) -> None:
        self.world.loop.advance((1.0, 5.0, 31.0, 31.0, 70.0)[one % 5])
        for replica in self.world.replicas:
            replica.notice_silence()

    # --- The controllers work --------------------------------------------------------------------------------------

    def some_news_arrives(self, one: int, other: int) -> None:
        self.replica(one).hear(self.kinds[other % len(self.kinds)], 1 + other // 4)

    def a_controller_hears_and_works(self, one: int, other: int) -> None:
        for kind in WATCHED:
            self.replica(one).hear(kind)
        for _ in range(other):
            self.replica(one).answer()

    def a_call_goes_through(self, one: int, other: int) -> None:
        self.replica(one).answer(other)

    def everything_calms_down(self, one: int, other: int) -> None:
        """Controllers and kubelets do what there is to do; only nodes are not added."""
        self.world.deliver()
        self.the_cluster_acts(0, 0)
        self.world.deliver()
        self.barriers_look(0, 0)
        self.kubelets_report(0, 0)
        if one % 2:
            self.terminating_pods_end(0, 0)
        self.world.deliver()

    # --- Pods, nodes, people ---------------------------------------------------------------------------------------

    def something_happens_to_a_pod(self, one: int, other: int) -> None:
        pods = self.cluster.pods()
        if pods:
            what = (self.cluster.fail, self.cluster.evict, self.cluster.vanish)[one % 3]
            what(pods[other % len(pods)])

    def an_index_fails_for_good(self, one: int, other: int) -> None:
        """Mostly of a pod that has not passed its barrier, and not of one that has succeeded."""
        pods = [pod for pod in self.cluster.pods() if alive(pod) and pod["status"]["phase"] != "Succeeded"]
        early = [pod for pod in pods if pod["status"]["phase"] == "Pending"]
        chosen = early if early and one < 9 else pods
        if chosen:
            self.cluster.fail_for_good(chosen[other % len(chosen)])

    def terminating_pods_end(self, one: int, other: int) -> None:
        for pod in self.cluster.pods():
            if "deletionTimestamp" in pod["metadata"]:
                self.cluster.vanish(pod)

    def a_barrier_runs_again(self, one: int, other: int) -> None:
        """Its container or the whole sandbox was restarted."""
        pods = [pod for pod in self.cluster.pods() if alive(pod) and pod["metadata"]["uid"] in self.cluster.ran]
        if pods:
            self.cluster.start(pods[one % len(pods)])

    def a_node_has_another_clock(self, one: int, other: int) -> None:
        self.world.clocks_differ()
        for pod in self.startable()[:1]:
            self.cluster.start(pod, (-80.0, -20.0, 20.0, 80.0)[one % 4])

    def suspend_or_resume(self, one: int, other: int) -> None:
        if self.cluster.suspended:
            self.cluster.resume()
        elif self.cluster.going_on:
            self.cluster.suspend()

    def suspend_and_resume_at_once(self, one: int, other: int) -> None:
        if self.cluster.going_on and not self.cluster.suspended:
            self.cluster.suspend()
            self.cluster.resume()

    def restart(self, one: int, other: int) -> None:
        if self.cluster.going_on:
            self.cluster.restart()

    def a_job_is_created_again(self, one: int, other: int) -> None:
        jobs = self.world.api.all(JOBS)
        if jobs:
            self.cluster.replace_job(jobs[one % len(jobs)]["metadata"]["name"])

    def a_user_bypasses_the_gate(self, one: int, other: int) -> None:
        if self.cluster.going_on and one > 8:
            self.cluster.bypass()

    def a_job_completes_as_it_is_suspended(self, one: int, other: int) -> None:
        """Its pods end well, each in its main container, before anybody stops them: it is Complete and suspended."""
        if not self.cluster.going_on or self.cluster.suspended:
            return
        jobs = self.world.api.all(JOBS)
        self.cluster.suspend()
        self.cluster.sync_jobset()
        name = jobs[one % len(jobs)]["metadata"]["uid"] if jobs else ""
        for pod in self.cluster.pods():
            if pod["metadata"]["ownerReferences"][0]["uid"] == name:
                self.cluster.finish_main(pod)
        self.cluster.sync_jobs()

    def a_user_edits_the_clock(self, one: int, other: int) -> None:
        """To a time that cannot be, or to one that can."""
        self.world.edit_clock((-3000.0, -20.0, 20.0, 3000.0)[one % 4])

    def the_gang_is_resized(self, one: int, other: int) -> None:
        if self.cluster.going_on:
            self.cluster.resize(1 + one % 3)

    def the_jobset_is_created_again(self, one: int, other: int) -> None:
        if self.cluster.jobset is not None:
            self.cluster.delete()
        if one < MOST:
            self.cluster.create()

    def the_jobset_finishes(self, one: int, other: int) -> None:
        if self.cluster.going_on and one == MOST:
            self.cluster.finish()

    def a_user_destroys_the_gate(self, one: int, other: int) -> None:
        self.world.destroy_gate(
            ("delete", "garble", "empty", "disown", "unlabel", "forge an attempt", "forge an epoch")[one % 7]
        )

    # --- Faults ----------------------------------------------------------------------------------------------------

    def a_call_fails(self, one: int, other: int) -> None:
        self.replica(one).answer(other, Answer.REFUSED if other % 2 else Answer.LOST)

    def a_call_is_throttled(self, one: int, other: int) -> None:
        self.replica(one).answer(other, Answer.THROTTLED)

    def the_decision_is_throttled(self, one: int, other: int) -> None:
        """The write of a ConfigMap, whatever else waits for its answer."""
        for replica in self.world.replicas:
            for number, waiting in enumerate(replica.pending_calls):
                if waiting.call.kind == CONFIGMAPS and waiting.call.verb in ("create", "update"):
                    replica.answer(number, Answer.THROTTLED)
                    break

    def a_watch_falls_silent(self, one: int, other: int) -> None:
        self.replica(one).fall_silent(self.kinds[other % len(self.kinds)])

    def an_event_is_disturbed(self, one: int, other: int) -> None:
        replica, kind = self.replica(one), self.kinds[other % len(self.kinds)]
        inbox = replica.inbox[kind]
        if inbox and one < 4:
            replica.lose(kind)
        elif inbox and one < 8:
            inbox.append(inbox[0])
        elif inbox:
            replica.disorder(kind)

    def a_list_is_created_again(self, one: int, other: int) -> None:
        """Other things may happen until it arrives: it ends when news is awaited, or the next one begins."""
        replica, kind = self.replica(one), self.kinds[other % len(self.kinds)]
        if replica.listing(kind):
            replica.end_list(kind)
        else:
            replica.begin_list(kind)

    def a_controller_is_killed(self, one: int, other: int) -> None:
        self.replica(one).kill()
        if other:
            self.replica(one).boot()

    def a_clock_is_set(self, one: int, other: int) -> None:
        self.world.set_clock(self.replica(one), (-60.0, 0.0, 60.0)[other % 3])

    # --- Who ---------------------------------------------------------------------------------------------------------

    def startable(self) -> list[Json]:
        first = self.cluster.first_slot
        return [pod for pod in self.cluster.unstarted() if not (self.straggler and first(pod))]

    def replica(self, number: int) -> Replica:
        return self.world.replicas[number % len(self.world.replicas)]
