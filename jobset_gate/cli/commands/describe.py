"""`describe`: everything known of a gang on one page."""

import sys
from collections.abc import Iterator, Sequence

from jobset_gate import names
from jobset_gate.barrier import count
from jobset_gate.barrier.events import CoreEvent
from jobset_gate.barrier.model import ConditionSeen, GangSnapshot, Generation, Verdict, VerdictKind, WorkloadSeen
from jobset_gate.barrier.source import Source
from jobset_gate.cli.cluster import Invocation
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.fetch.events import events_of
from jobset_gate.cli.fetch.leader_worker_set import LwsGroups
from jobset_gate.cli.fetch.resolver import ExplainedObject, Resolver, open_resolver
from jobset_gate.cli.options import ControllerConfig, Owner, Subjects, new_app
from jobset_gate.cli.printers import explanation, output
from jobset_gate.cli.printers.output import TerminalStyle
from jobset_gate.explain import text as said
from jobset_gate.explain.model import Explanation
from jobset_gate.kube.errors import Forbidden
from jobset_gate.objects import terminal_text
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.sources.lws import LeaderWorkerSetSeen

app = new_app()


@app.command("describe", epilog="Example: {program} describe train -n team")
async def describe(
    *, names: Subjects, owner: Owner = "", config: ControllerConfig = None, invocation: Invocation
) -> ExitCode:
    """Show what is set and what was decided, Job by Job or pod by pod, why it waits, and its Events.

    For people, as kubectl's describe is; programs ask `why -o json`. Asks the API server only. What you may not
    read is named, and the rest is shown.
    """
    style = output.style_of(sys.stdout)
    async with open_resolver(invocation, config) as resolver:
        found, code = await resolver.explain_all(names, owner)
        texts = [await _description(resolver, it, style) for it in found]
    output.out("\n\n".join(texts), style)
    return code


async def _description(resolver: Resolver, found: ExplainedObject, style: output.TerminalStyle) -> str:
    it, status, gang = found.explanation, found.status, found.gang
    rows: Rows = ()
    if status is not None:
        facts, rows = pod_group_facts(status, it.now), member_rows(status)
    elif gang is not None:
        facts = gang_facts(gang.gang, it.now)
        rows_of = pod_rows if gang.gang.workload.source.gates_pods else job_rows
        rows = () if gang.pods_forbidden else rows_of(gang.gang)
    elif found.groups is not None:
        facts = lws_facts(found.groups)
    else:
        facts = (("Name", it.name), ("Namespace", it.namespace))
    return description_text(it, facts, rows, await _events(resolver, found), style)


async def _events(resolver: Resolver, found: ExplainedObject) -> list[CoreEvent] | None:
    """None: they may not be read."""
    if found.status is not None and found.status.pod_group is None:
        return []  # they are on its pods
    kind, name = found.explanation.kind, found.explanation.name
    if found.explanation.owner is not None:
        kind, name = found.explanation.owner.kind, found.explanation.owner.name
    try:
        return await events_of(resolver, kind, name)
    except Forbidden:
        return None


# --- The page --------------------------------------------------------------------------------------------------------

MOST_ROWS = 30
MOST_EVENTS = 20

Facts = Sequence[tuple[str, str]]
Rows = Sequence[Sequence[str]]


def description_text(
    it: Explanation, facts: Facts, rows: Rows, events: Sequence[CoreEvent] | None, look: TerminalStyle
) -> str:
    """Whole lines. `events` None: they may not be read."""
    width = max(len(name) for name, _ in facts) + 3
    lines = [line for name, value in facts for line in _fact(name, value, width, look)]
    lines += ["", *_table(rows)] if rows else []
    lines += ["", explanation.explanation_text(it, look).rstrip("\n")]
    lines += ["", *_event_lines(events)] if events is not None else []
    return "".join(line + "\n" for line in lines)


def _fact(name: str, value: str, width: int, look: TerminalStyle) -> list[str]:
    return explanation.wrap(value, look, f"{name + ':':<{width}}", " " * width) or [f"{name}:"]


def _created(at: float, now: float) -> str:
    return f"{said.format_time(at)} ({said.format_duration(now - at)} ago)" if at else "?"


# --- A gang with a start barrier --------------------------------------------------------------------------------------


def gang_facts(seen: GangSnapshot, now: float) -> Facts:
    """What is set and what was decided."""
    its, config = seen.workload, seen.workload.config
    targets = [target.name for target in its.targets if target.name]
    owner = its.owner
    return (
        ("Name", its.shown_name),
        ("Namespace", its.namespace),
        *([("Owner", f"{owner.kind} {owner.name}")] if owner is not None else []),
        ("UID", its.uid),
        ("Created", _created(its.created, now)),
        ("Timeout", "none" if config.timeout is None else said.format_duration(config.timeout)),
        ("On timeout", _on_timeout(its)),
        *([("Targets", ", ".join(targets))] if targets else []),
        ("Bypass", _yes(its.bypass)),
        *([] if its.source.gates_pods else [("Suspended", _yes(its.suspended))]),
        ("Generation", _generation(its.source, Generation(its.uid, its.attempt, its.epoch))),
        ("Condition", _condition(its.condition)),
        ("ConfigMap", _gate(seen)),
    )


def pod_rows(seen: GangSnapshot) -> Rows:
    """Each live pod, those that have not started first."""
    pods = sorted((it for it in seen.pods if it.live), key=lambda it: (it.started, it.name))
    rows = [(it.name, it.stage.name.lower(), it.phase or "Pending") for it in pods]
    return _first_rows(("POD", "BARRIER", "PHASE"), rows, len(rows)) if rows else ()


def job_rows(seen: GangSnapshot) -> Rows:
    """Each Job of the gang, those that lack pods first."""
    rows, many = [], 0
    for share in count.list_job_slots(seen):  # two billion Jobs may be missing
        many += share.repeat
        started = share.target.pods_per_job - share.missing_count
        for number in range(share.job_index, share.job_index + min(share.repeat, MOST_ROWS)):
            name = f"{seen.workload.name}-{share.target.name}-{number}" if share.target.name else seen.workload.name
            rows.append((name, f"{started}/{share.target.pods_per_job}", _state(share)))
    lacking = sorted(rows, key=lambda row: row[1].split("/")[0] == row[1].split("/")[1])
    return _first_rows(("JOB", "STARTED", "STATE"), lacking, many)


def _state(share: count.JobSlots) -> str:
    if share.job is None:
        return "not created"
    if share.job.complete:
        return "complete"
    return "suspended" if share.suspended else "active"


def _on_timeout(its: WorkloadSeen | LeaderWorkerSetSeen) -> str:
    return names.ON_TIMEOUT_RELEASE if its.releases_on_timeout else names.ON_TIMEOUT_FAIL


def _condition(it: ConditionSeen | None) -> str:
    return f"{names.CONDITION}={it.status} {it.reason}: {it.message}" if it else "none yet"


def _gate(seen: GangSnapshot) -> str:
    source, gate = seen.workload.source, seen.config_map
    name = source.config_map_name(seen.workload.name)
    if seen.config_map_conflict:
        return f"{name} is not jobset-gate's"
    if gate is None:
        return f"{name} was not found"
    if gate.workload_uid != seen.workload.uid:
        earlier = f"{source.slot_words[0]} pod" if source.slot_words else f"{source.kind} of this name"
        return f"{name} is of an earlier {earlier}"
    if gate.verdict is not None:
        return f"{name}: {_verdict(gate.verdict, source)}"
    since = f", clock runs since {said.format_time(gate.waiting_since.at)}" if gate.waiting_since else ""
    return f"{name}: no verdict{since}"


def _verdict(verdict: Verdict, source: Source) -> str:
    what = "released" if verdict.kind is VerdictKind.RELEASE else "timed out"
    return f"{what} ({verdict.cause}), {_generation(source, verdict.generation)}"


def _generation(source: Source, its: Generation) -> str:
    if source.gates_pods:
        return f"attempt {its.attempt}"
    return f"restart attempt {its.attempt}, epoch {its.epoch}" if source.restarts else f"epoch {its.epoch}"


# --- A LeaderWorkerSet as a whole -------------------------------------------------------------------------------------


def lws_facts(groups: LwsGroups) -> Facts:
    """What is set on it, and its condition."""
    its = groups.parent
    if its is None:
        return (("Name", groups.name), ("Namespace", groups.namespace))
    return (
        ("Name", its.name),
        ("Namespace", its.namespace),
        ("UID", its.uid),
        ("Replicas", str(its.replicas)),
        ("On timeout", _on_timeout(its)),
        ("Bypass", _yes(its.bypass)),
        ("Condition", _condition(its.condition)),
    )


# --- A pod group -----------------------------------------------------------------------------------------------------


def pod_group_facts(report: GroupStatus, now: float) -> Facts:
    """What is set and what was decided."""
    group, record, counts = report.snapshot.group, report.record, report.counts
    kind = f"{report.pod_group.api}/{report.pod_group.name}" if report.pod_group else "none"
    opened = satisfied = "no"
    if record is not None:
        opened = f"{said.format_time(record.at)}, generation {record.generation} ({record.stage})"
        satisfied = "no" if record.satisfied is None else said.format_time(record.satisfied)
    return (
        ("Name", report.key.name or "<none>"),
        ("Namespace", report.key.namespace),
        ("Design", str(report.key.flavor)),
        ("Ways", ", ".join(map(str, report.formats)) or "none"),
        ("PodGroup", kind),
        ("Created", _created(report.created, now)),
        ("Minimum", str(counts.minimum or "?")),
        ("Mode", str(group.mode)),
        ("Wait limit", said.format_duration(float(group.wait))),
        ("Gang group", ", ".join(group.gangs) or "none"),
        ("Phase", str(report.phase)),
        ("Members", f"{counts.present} exist, {counts.bound} bound, {counts.running} running"),
        ("Opened", opened),
        ("Satisfied", satisfied),
        ("Taken back", str(record.rolled_back if record is not None else 0)),
    )


def member_rows(report: GroupStatus) -> Rows:
    """Each pod, those without a node first."""
    pods = sorted(report.snapshot.members, key=lambda it: (it.bound, it.name))
    rows = [(it.name, it.node or "<none>", it.phase or "Pending", _yes(it.gated)) for it in pods]
    return _first_rows(("POD", "NODE", "PHASE", "HELD"), rows, len(rows)) if rows else ()


# --- Tables ----------------------------------------------------------------------------------------------------------


def _first_rows(titles: Sequence[str], rows: Rows, many: int) -> Rows:
    """The first of that many, under their titles."""
    more = many - MOST_ROWS
    return (titles, *rows[:MOST_ROWS], *([(f"and {more} more",)] if more > 0 else []))


def _table(rows: Rows) -> Iterator[str]:
    widths = output.widths([row for row in rows if len(row) == len(rows[0])])
    return (output.join_cells(row, widths) for row in rows)


def _event_lines(events: Sequence[CoreEvent]) -> Iterator[str]:
    if not events:
        yield "Events: none"
        return
    yield "Events:"
    for event in events[-MOST_EVENTS:]:
        yield f"  {event.last_seen or '<unknown>'}  {terminal_text.line(f'{event.reason}: {event.message}')}"


def _yes(it: bool) -> str:
    return "yes" if it else "no"
