"""What is to be done now to take back all opened members of a group without failing whoever made them (G4).

Each step is found by the trace that it leaves in the cluster, so a plan is made anew from what is there, by whoever
leads, however far the last one came:

* suspend: a Job or JobSet deletes its pods itself, and counts none of them;
* release and delete, where the end of a pod could fail its Job by a rule: the Job is made to forget the pod first. Such
  a Job is not suspended before all of that is long over: if it were told of it before it has forgotten the pods, it
  would wait for minutes to hear that the pods have gone that it has deleted;
* disrupt and delete: the pods of other controllers.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from jobset_gate.groups import wayback
from jobset_gate.groups.identity import label
from jobset_gate.groups.record import Record
from jobset_gate.groups.seen import MemberSeen
from jobset_gate.groups.wayback import How, Owner, Return
from jobset_gate.model import Word

JOB: Final = "Job"
JOBSET: Final = "JobSet"
FINISHED: Final = ("Succeeded", "Failed")
"""Phases of pods that hold nothing any more: there is nothing to be taken back."""


class Root(Word, frozen=True):
    """A Job or JobSet, that would have to be suspended; of a Job of a JobSet its JobSet, which would resume it."""

    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    suspended: bool = False
    mark: str = ""
    """Which roll-back has suspended it; "" if it was somebody else."""
    over: bool = False
    """It has ended or is being deleted: its pods go by themselves."""
    by_kueue: bool = False
    managed_by: str = ""
    fails: bool = False
    """A rule of it can make one pod's end the end of the Job."""
    barrier: bool = False
    """Its pods wait for each other when they start: a JobSet of ours, that wants another epoch for its new pods."""
    others: tuple[str, ...] = ()
    """Names of its living pods that are not in the group."""


class Made(Word, frozen=True):
    """How a pod that a Job has made hangs together with it."""

    root: Root | None = None
    """None: it is gone by now, and its pods will go or be nobody's."""
    by: tuple[str, ...] = ()
    """The labels without which its Job would not know it; () if there are none."""


class Release(Word, frozen=True):
    """Make its Job forget a pod: it looks at the exit codes of all pods it knows, also of those it deletes itself."""

    pod: MemberSeen
    job: str
    """UID of its Job."""
    labels: tuple[str, ...]
    mark: str


class Suspend(Word, frozen=True):
    """Suspend it, and write down that it was us."""

    root: Root
    mark: str


class Plan(Word, frozen=True):
    """The steps, in the order of the fields: a later one is only taken when all earlier ones have been."""

    notes: tuple[Suspend, ...] = ()
    """Only to be marked by now."""
    releases: tuple[Release, ...] = ()
    suspends: tuple[Suspend, ...] = ()
    disrupts: tuple[MemberSeen, ...] = ()
    deletes: tuple[MemberSeen, ...] = ()
    going: tuple[MemberSeen, ...] = ()
    """On their way: nothing to be done but to wait."""
    renews: tuple[Suspend, ...] = ()
    """What was marked, to be suspended when nothing else has been left for a while: for its start barrier."""
    blocked: tuple[Return, ...] = ()
    """What cannot be taken back, and why."""

    @property
    def clear(self) -> bool:
        """Nothing that was opened is left, but what is blocked."""
        return not (self.releases or self.suspends or self.deletes or self.going)

    @property
    def done(self) -> bool:
        """And there is nothing else to do."""
        return self.clear and not self.renews

    @property
    def stuck(self) -> tuple[str, ...]:
        """Names of the pods that cannot be taken back."""
        return tuple(sorted(pod for it in self.blocked for pod in it.owner.pods))

    @property
    def why(self) -> str:
        """Why not, for people."""
        return "; ".join(it.why for it in self.blocked)


def marks(record: Record) -> dict[str, int]:
    """The generation that is taken back, by the label of each gang of the decision."""
    return {label(key): generation for key, generation in record.gangs}


def mark(held: str, generation: int) -> str:
    """How a roll-back signs what it does, on pods and their owners."""
    return f"{held}.{generation}"


def signed(text: str) -> tuple[str, int]:
    """Label and generation of a mark; ("", 0) for what is none of ours."""
    held, _, number = text.rpartition(".")
    return (held, int(number)) if held and number.isascii() and number.isdecimal() else ("", 0)


def released(pod: MemberSeen) -> bool:
    """Whether its Job was made to forget it: nobody but us will ever delete it."""
    return pod.maker is None and bool(pod.held) and signed(pod.taken_back)[0] == pod.held


def left(pod: MemberSeen, wanted: Mapping[str, int]) -> bool:
    """Whether this pod is an opened one that must go before its group can be closed."""
    if pod.phase in FINISHED or pod.held not in wanted:
        return False
    return released(pod) or (not pod.gated and 0 < pod.generation <= wanted[pod.held])


def plan(
    members: Iterable[MemberSeen],
    wanted: Mapping[str, int],
    made: Mapping[str, Made],
    marked: Iterable[Root] = (),
) -> Plan:
    """All that is to be done now. `made`: how pods of Jobs came to be, by UID; `marked`: owners that carry our mark."""
    pods = sorted(members, key=lambda it: (it.namespace, it.name))
    mine = [it for it in pods if left(it, wanted)]
    free = [it for it in mine if not it.deleting]
    # Without a node there is nothing to wait for: an API server has left such a one halfway, as its client was killed.
    halfway = [it for it in mine if it.deleting and not it.node and not of_job(it) and (it.maker or released(it))]
    deletes = [*halfway, *(it for it in free if released(it))]
    disrupts = [it for it in free if it.maker is not None and not of_job(it)]
    bare = [it for it in free if it.maker is None and not released(it)]
    parts = [_of_root(root, some, pods, wanted, made) for root, some in _by_root(free, made)]
    asleep = [it for it in pods if it.gated and not it.deleting and _asleep(made.get(it.uid, Made()).root, wanted)]
    orphans = [it for it in free if of_job(it) and made.get(it.uid, Made()).root is None]
    found = Plan(
        notes=tuple(it for part in parts for it in part.notes),
        releases=tuple(it for part in parts for it in part.releases),
        suspends=tuple(it for part in parts for it in part.suspends),
        disrupts=tuple(disrupts),
        deletes=(*deletes, *disrupts, *(it.pod for part in parts for it in part.releases)),
        going=(*(it for it in mine if it.deleting), *orphans, *asleep, *(it for part in parts for it in part.going)),
        blocked=(*_bare(bare), *(it for part in parts for it in part.blocked)),
    )
    renews = (it for it in marked if signed(it.mark) in wanted.items() and not (it.suspended or it.over))
    return replace(found, renews=tuple(Suspend(root=it, mark=it.mark) for it in renews)) if found.clear else found


def of_job(pod: MemberSeen) -> bool:
    """Whether a Job has made it."""
    return pod.maker is not None and pod.maker.kind == JOB and pod.maker.api_version.startswith("batch/")


# --- Details ---------------------------------------------------------------------------------------------------------


def _by_root(free: Sequence[MemberSeen], made: Mapping[str, Made]) -> list[tuple[Root, list[MemberSeen]]]:
    found: dict[str, tuple[Root, list[MemberSeen]]] = {}
    for pod in free:
        root = made.get(pod.uid, Made()).root
        if root is not None:
            found.setdefault(root.uid, (root, []))[1].append(pod)
    return [found[uid] for uid in sorted(found)]


def _of_root(
    root: Root, some: list[MemberSeen], pods: list[MemberSeen], wanted: Mapping[str, int], made: Mapping[str, Made]
) -> Plan:
    """Of those pods of a Job or JobSet that are to be taken back."""
    if root.over or (root.suspended and not root.mark):
        return Plan(going=tuple(some))  # whoever has ended or suspended it: it deletes its pods, and stays as it is
    ours = min(mark(it.held, wanted[it.held]) for it in some)
    if root.suspended:
        known = signed(root.mark) in wanted.items()
        # A mark that an earlier roll-back has left would never be found when this one ends.
        return Plan(suspends=() if known else (Suspend(root=root, mark=ours),), going=tuple(some))
    way = _way(root, some)
    if way.how is How.SUSPEND and root.fails and not all(made[it.uid].by for it in some):
        way = Return(owner=way.owner, how=How.BLOCKED, why=f"{root.kind} {root.name} finds its pods by no label")
    if way.how is How.BLOCKED:
        return Plan(blocked=(way,))
    if not root.fails:
        return Plan(suspends=(Suspend(root=root, mark=ours),), going=tuple(some))
    releases = tuple(_releases(root, pods, wanted, made))
    forgotten = {it.pod.uid for it in releases}
    notes = (Suspend(root=root, mark=ours),) if root.barrier and signed(root.mark) not in wanted.items() else ()
    return Plan(notes=notes, releases=releases, going=tuple(it for it in some if it.uid not in forgotten))


def _asleep(root: Root | None, wanted: Mapping[str, int]) -> bool:
    """Whether we have suspended it: were it resumed while one of its Jobs has not heard of that, that one's pods would
    still be of the epoch before.
    """
    return root is not None and root.suspended and not root.over and signed(root.mark) in wanted.items()


def _way(root: Root, some: Sequence[MemberSeen]) -> Return:
    return wayback.way_of(
        Owner(
            kind=root.kind,
            name=root.name,
            pods=tuple(it.name for it in some),
            others=root.others,
            by_kueue=root.by_kueue,
            managed_by=root.managed_by,
        )
    )


def _releases(
    root: Root, pods: Sequence[MemberSeen], wanted: Mapping[str, int], made: Mapping[str, Made]
) -> Iterable[Release]:
    """All pods of it that a node may run by the time they are deleted: the scheduler may bind them until then."""
    for pod in pods:
        how = made.get(pod.uid)
        if how is None or how.root is None or how.root.uid != root.uid or pod.maker is None:
            continue
        if pod.gated or pod.other_gates or pod.deleting or pod.phase in FINISHED:
            continue
        yield Release(pod=pod, job=pod.maker.uid, labels=how.by, mark=mark(pod.held, wanted[pod.held]))


def _bare(pods: Sequence[MemberSeen]) -> tuple[Return, ...]:
    return (wayback.way_of(Owner(kind="", name="", pods=tuple(it.name for it in pods))),) if pods else ()
