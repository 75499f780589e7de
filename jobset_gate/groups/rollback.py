"""What is to be done now to take back all opened members of a group without failing whoever made them (G4).

Each step is found by the trace that it leaves in the cluster, so a plan is made anew from what is there, by whoever
leads, however far the last one came:

1. release: where the end of a pod could fail its Job by a rule, the Job is made to forget the pod first;
2. suspend: a Job or JobSet deletes its pods itself, and counts none of them;
3. disrupt and delete: the pods of other controllers, and those that were released.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

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
    others: tuple[str, ...] = ()
    """Names of its living pods that are not in the group."""


class Made(Word, frozen=True):
    """How a pod that a Job has made hangs together with it."""

    root: Root | None = None
    """None: it is gone by now, and its pods will go or be nobody's."""
    by: tuple[str, ...] = ()
    """The labels without which its Job would not know it; () if there are none."""


class Release(Word, frozen=True):
    """Make its Job forget a pod: it looks at the exit codes of all the pods it knows, finalizer or not."""

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

    releases: tuple[Release, ...] = ()
    suspends: tuple[Suspend, ...] = ()
    disrupts: tuple[MemberSeen, ...] = ()
    deletes: tuple[MemberSeen, ...] = ()
    going: tuple[MemberSeen, ...] = ()
    """On their way: nothing to be done but to wait."""
    blocked: tuple[Return, ...] = ()
    """What cannot be taken back, and why."""

    @property
    def done(self) -> bool:
        """Nothing that was opened is left, but what is blocked."""
        return not (self.releases or self.suspends or self.deletes or self.going)

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


def plan(members: Iterable[MemberSeen], wanted: Mapping[str, int], made: Mapping[str, Made]) -> Plan:
    """All that is to be done now.

    `made`: how each pod of a Job came to be, by its UID. Of those that were released only a JobSet is known.
    """
    pods = sorted(members, key=lambda it: (it.namespace, it.name))
    mine = [it for it in pods if left(it, wanted)]
    free = [it for it in mine if not it.deleting]
    deletes = [it for it in free if released(it)]
    disrupts = [it for it in free if it.maker is not None and not of_job(it)]
    bare = [it for it in free if it.maker is None and not released(it)]
    parts = [_of_root(root, some, pods, wanted, made) for root, some in _by_root(free, made)]
    orphans = [it for it in free if of_job(it) and made.get(it.uid, Made()).root is None]
    return Plan(
        releases=tuple(it for part in parts for it in part.releases),
        suspends=tuple(it for part in parts for it in part.suspends),
        disrupts=tuple(disrupts),
        deletes=(*deletes, *disrupts, *(it.pod for part in parts for it in part.releases)),
        going=(*(it for it in mine if it.deleting), *orphans, *(it for part in parts for it in part.going)),
        blocked=(*_bare(bare), *(it for part in parts for it in part.blocked)),
    )


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
    held = [it for it in some if not released(it)]
    ours = min(mark(it.held, wanted[it.held]) for it in some)
    if root.over or (root.suspended and not root.mark):
        return Plan(going=tuple(held))  # whoever has ended or suspended it: it deletes its pods, and stays as it is
    if root.suspended:
        known = root.mark in {mark(*it) for it in wanted.items()}
        # A mark that an earlier roll-back has left would never be found when this one ends.
        return Plan(suspends=() if known else (Suspend(root=root, mark=ours),), going=tuple(held))
    way = wayback.way_of(
        Owner(
            kind=root.kind,
            name=root.name,
            pods=tuple(it.name for it in held),
            others=root.others,
            by_kueue=root.by_kueue,
            managed_by=root.managed_by,
        )
    )
    if way.how is How.SUSPEND and root.fails and not all(made[it.uid].by for it in held):
        way = Return(owner=way.owner, how=How.BLOCKED, why=f"{root.kind} {root.name} finds its pods by no label")
    if way.how is How.BLOCKED:
        return Plan(blocked=(way,) if held else ())
    releases = tuple(_releases(root, pods, wanted, made)) if root.fails else ()
    forgotten = {it.pod.uid for it in releases}
    return Plan(
        releases=releases,
        suspends=(Suspend(root=root, mark=ours),),
        going=tuple(it for it in held if it.uid not in forgotten),
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
