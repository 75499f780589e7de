"""What programs get by `-o json` and `-o yaml`, as JSON schemas: the promise that scripts hold on to.

Fields are added, never renamed or taken away; so programs must ignore fields that they do not know.
"""

from collections.abc import Mapping
from typing import Any, Final

from jobset_gate import names
from jobset_gate.cli.commands.validate import REASONS

# Every field has a description and is always there.

Json = dict[str, Any]

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def a(kind: str, description: str, **more: Any) -> Json:
    """A value; `kind` with a question mark may be null."""
    name = kind.removesuffix("?")
    return {"type": [name, "null"] if kind.endswith("?") else name, "description": description, **more}


def record(description: str, fields: Mapping[str, Json], *, nullable: bool = False) -> Json:
    """An object that always has all of these fields."""
    kind = ["object", "null"] if nullable else "object"
    return {"type": kind, "description": description, "properties": dict(fields), "required": list(fields)}


def many(description: str, items: Json) -> Json:
    """A list."""
    return {"type": "array", "description": description, "items": items}


def whole(title: str, description: str, fields: Mapping[str, Json]) -> Json:
    """A document."""
    return {"$schema": DRAFT, "title": title, **record(description, fields)}


def kind(name: str) -> Json:
    """The field that says what a document is."""
    return {"const": name, "description": "What this is."}


def moment(description: str) -> Json:
    """A time in UTC; null where it is not known or has not come."""
    return a("string?", description, format="date-time")


TEXT: Final = a("string", "In words, for people.")
COUNT: Final[Json] = {"minimum": 0}
SOURCE: Final = a(
    "string?", "Source of a gang with a start barrier: jobset, job, lws or startgroup; null for a pod group."
)


_POD_TIMES: Final = record(
    "One pod.",
    {
        "name": a("string", "Of the pod."),
        "replicatedJob": a("string", "Which replicatedJob it is of; empty in a pod group."),
        "jobIndex": a("integer", "Of its Job."),
        "completionIndex": a("integer?", "Of the pod in its Job."),
        "node": a("string?", "Where it is bound."),
        "phase": a("string", "As Kubernetes has it."),
        "times": {
            "type": "object",
            "description": "When it reached each step; null: not yet, or not known.",
            "additionalProperties": {"type": ["string", "null"], "format": "date-time"},
        },
        "unknown": many("Steps that it has reached, nobody knows any more when.", a("string", "A step.")),
        "gaveUp": moment("When its barrier gave up."),
        "ended": moment("When it ended."),
        "heldSeconds": a("number?", "How long it has stood at the gate."),
    },
)

TIMELINE: Final = whole(
    "Timeline",
    "How one gang started: who came when, and what the wait has cost.",
    {
        "kind": kind("Timeline"),
        "of": {
            "enum": ["JobSet", "Job", "LeaderWorkerSet", "StartGroup", "PodGroup"],
            "description": "What kind of gang it is.",
        },
        "source": SOURCE,
        "namespace": a("string", "Where it is."),
        "name": a("string", "What it is called."),
        "restartAttempt": a("integer", "Which attempt of the JobSet or start group this is.", **COUNT),
        "now": moment("When this was seen."),
        "created": moment("Of the JobSet or the group."),
        "firstPodCreated": moment("Of this attempt."),
        "waitingSince": moment("When the clock of the timeout began to run."),
        "verdict": a("string?", "What was decided."),
        "opened": moment("When the gate was opened."),
        "timedOut": moment("When the time was up, of a gang that timed out."),
        "message": a("string?", "What the verdict said, of a gang that timed out or has ended."),
        "expectedPods": a("integer", "Pods that the gang waits for.", **COUNT),
        "startedPods": a("integer", "Pods that have started, or had at the verdict.", **COUNT),
        "resolutionSeconds": a("number", "How exact the times of statuses are."),
        "steps": many(
            "Each step, over all pods.",
            record(
                "One step.",
                {
                    "step": a("string", "Its name."),
                    "known": a("integer", "Pods whose time is known.", **COUNT),
                    "unknown": a("integer", "Pods that have reached it nobody knows any more when.", **COUNT),
                    "pending": a("integer", "Pods that have not reached it.", **COUNT),
                    "first": moment("Of the first pod."),
                    "median": moment("Of the pod in the middle."),
                    "last": moment("Of the last pod."),
                },
            ),
        ),
        "skewSeconds": record(
            "How far apart pods were.",
            {
                "barriers": a("number?", "Between the first barrier that started and the last."),
                "mains": a("number?", "Between the first main container that ran and the last."),
                "mainsComplete": a("boolean", "Whether the times of all main containers are known."),
                "openedToLastMain": a("number?", "From the opening to the last main container."),
            },
        ),
        "idle": many(
            "What stood idle at the gate.",
            record(
                "Devices of one kind.",
                {
                    "resource": a("string", "Such as nvidia.com/gpu."),
                    "devices": a("integer", "How many.", **COUNT),
                    "deviceSeconds": a("number", "For how long, all together.", **COUNT),
                    "podsUnknown": a("integer", "Pods that are not counted: nobody knows their times.", **COUNT),
                    "cost": a("number?", "By --price; null without one."),
                },
            ),
        ),
        "cost": a("number?", "Of all of them; null without a price."),
        "group": record(
            "What only pod groups have.",
            {
                "generation": a("integer?", "How often it was opened."),
                "minimum": a("integer", "Pods that it needs.", **COUNT),
                "gathered": moment("When its minimum of pods was there."),
                "minimumBound": moment("When its minimum was bound."),
                "minimumRunning": moment("When its minimum ran."),
                "placementSkewSeconds": a("number?", "Between the first pod that was bound and the last."),
            },
            nullable=True,
        ),
        "pods": many("The gang's pods.", _POD_TIMES),
        "replacements": many("Pods that took the place of one that had started.", _POD_TIMES),
        "notes": many("Further notes.", TEXT),
    },
)

EXPLANATION: Final = whole(
    "Explanation",
    "Why one gang waits, or how it was decided.",
    {
        "kind": kind("Explanation"),
        "of": {
            "enum": ["JobSet", "Job", "LeaderWorkerSet", "StartGroup", "PodGroup"],
            "description": "What kind of gang it is.",
        },
        "source": SOURCE,
        "namespace": a("string", "Where it is."),
        "name": a("string", "What it is called."),
        "owner": record(
            "What owns the pods of a start group, or of one group of a LeaderWorkerSet; null for any other gang.",
            {
                "apiVersion": a("string", "Of the owner."),
                "kind": a("string", "Of the owner."),
                "name": a("string", "Of the owner."),
            },
            nullable=True,
        ),
        "attempt": a("integer?", "How often a gang with a start barrier has begun again; null for a pod group."),
        "state": a("string", "One word, as Waiting, Released, TimedOut, Failed or Completed; of a group its reason."),
        "message": TEXT,
        "at": moment("When this was seen."),
        "expected": a("integer", "Pods that the gang waits for.", **COUNT),
        "started": a(
            "integer?", "Pods that have started, or had at the verdict; of a group those bound; null: not known."
        ),
        "passed": a("integer", "Pods that have gone through the barrier; of a pod group those that run.", **COUNT),
        "replicatedJobs": many(
            "The share of each replicatedJob; empty for pod groups, and for what has ended.",
            record(
                "One of them.",
                {
                    "name": a("string", "Of the replicatedJob."),
                    "started": a("integer", "Its pods that have started.", **COUNT),
                    "expected": a("integer", "Its pods.", **COUNT),
                },
            ),
        ),
        "missing": many(
            "Missing pods by reason, longest waiting first.",
            record(
                "Those of one reason.",
                {
                    "reason": a("string", "A class, such as Unscheduled or ImagePull."),
                    "message": a("string", "In the words of the scheduler, the kubelet or the quota."),
                    "count": a("integer", "How many pods.", minimum=1),
                    "first": many("The first few of them.", a("string", "A slot of a JobSet, or a pod.")),
                    "since": moment("Since when the first of them exists."),
                    "command": a("string?", "What tells more."),
                },
            ),
        ),
        "differing": many(
            "Pods of a start group that ask for something else than what counts, the first few.",
            a("string", "Of the pod."),
        ),
        "timeoutSeconds": a("integer?", "null: it waits for ever."),
        "waitingSince": moment("When the clock of the timeout began to run."),
        "secondsLeft": a("number?", "Until the timeout; null while no clock runs."),
        "atTimeout": a("string?", "What happens at the timeout, or follows from it."),
        "decidedAt": moment("When the gate was opened, as far as that is known."),
        "pod": record(
            "The pod that the command line names.",
            {
                "name": a("string", "Of the pod."),
                "slot": a("string?", "Which of the gang's slots it has."),
                "message": TEXT,
            },
            nullable=True,
        ),
        "controller": record(
            "Whether a controller runs.",
            {"leads": a("boolean?", "null: that is not known."), "message": TEXT},
            nullable=True,
        ),
        "unknown": many("What may not be read, and so is not known.", TEXT),
        "commands": many("What to run next, the most telling first.", a("string", "A command line.")),
    },
)

GROUP: Final = record(
    "One pod group.",
    {
        "namespace": a("string", "Where it is."),
        "name": a("string", "What it is called; empty if its pods name it by an empty value."),
        "design": a("string", "Whose way of saying groups it is."),
        "ways": many("How its pods say it.", a("string", "One of the ways of groups.ways.")),
        "label": a("string", f"The value of the label {names.POD_GROUP_LABEL} on its pods."),
        "podGroup": a("string?", "Its PodGroup, as API group/name."),
        "created": moment("Of its PodGroup, else of its oldest pod."),
        "phase": {
            "enum": ["Pending", "Scheduling", "Running", "Unknown", "Finished", "Failed", "Deleted"],
            "description": "As its status has it; Deleted is printed by --watch only.",
        },
        "reason": a("string", "One word for why it is so."),
        "message": TEXT,
        "minimum": a("integer", "Pods that it needs; 0: that is not known.", **COUNT),
        "members": a("integer", "Pods that are there.", **COUNT),
        "bound": a("integer", "Pods with a node.", **COUNT),
        "running": a("integer", "Pods that run.", **COUNT),
        "succeeded": a("integer", "Pods that have succeeded.", **COUNT),
        "failed": a("integer", "Pods that have failed.", **COUNT),
        "generation": a("integer", "How often it was opened.", **COUNT),
        "opened": moment("When it was opened last."),
        "satisfied": moment("When its minimum was bound."),
        "rolledBack": a("integer", "How often it was taken back since it was last satisfied.", **COUNT),
        "gangGroup": many("The gangs that open together with it.", a("string", "namespace/name.")),
        "ungated": many("Pods that name it and were bound without being held.", a("string", "A pod's name.")),
        "moved": many("Pods that name another group by now.", a("string", "A pod's name.")),
        "statusManagedBy": many("Who else writes the status of its PodGroup.", a("string", "A field manager.")),
    },
)

DIAGNOSIS: Final = whole(
    "Diagnosis",
    "What doctor has found.",
    {
        "kind": kind("Diagnosis"),
        "summary": record(
            "How many findings there are of each level.",
            {it: a("integer", f"Findings of the level {it}.", **COUNT) for it in ("error", "warning", "unknown", "ok")},
        ),
        "findings": many(
            "In the order in which they are printed.",
            record(
                "One thing that was looked at.",
                {
                    "level": {"enum": ["ok", "warning", "error", "unknown"], "description": "How bad it is."},
                    "what": TEXT,
                    "why": a("string", "What follows from it, or where it was seen."),
                    "remedy": a("string", "What to do about it; empty if nothing is wrong."),
                },
            ),
        ),
    },
)


_PLACE: Final[Mapping[str, Json]] = {
    "file": a("string", "As it was given, or found in a folder; stdin for standard input."),
    "line": a("integer", "From 1; of JSON that of the whole document.", minimum=1),
    "column": a("integer", "From 1.", minimum=1),
}
_OBJECT: Final = a("string", "Kind, name and document; empty for a whole file.")

VALIDATION: Final = whole(
    "Validation",
    "What validate has found.",
    {
        "kind": kind("Validation"),
        "summary": record(
            "How many findings there are of each level.",
            {f"{it}s": a("integer", f"Findings of the level {it}.", **COUNT) for it in ("error", "warning")},
        ),
        "findings": many(
            "By file as given, line and column.",
            record(
                "One thing that is wrong.",
                {
                    **_PLACE,
                    "level": {"enum": ["error", "warning"], "description": "With --strict error alone."},
                    "object": _OBJECT,
                    "field": a("string", "Its path; empty for a whole object."),
                    "reason": {"enum": [str(it) for it in REASONS], "description": "What kind of mistake it is."},
                    "message": TEXT,
                },
            ),
        ),
        "objects": many(
            "Those without errors.",
            record("One object.", {**_PLACE, "object": _OBJECT, "message": a("string", "What it comes to.")}),
        ),
    },
)


def _list(name: str, description: str, item: Json) -> Json:
    bare = {key: value for key, value in item.items() if key != "$schema"}
    return whole(name, description, {"kind": kind(name), "items": many("All that were found.", bare)})


VERSION: Final = whole(
    "Version",
    "The versions of the program, the cluster and its controllers.",
    {
        "kind": kind("Version"),
        "clientVersion": a("string", "Of the program that was run."),
        "serverVersion": a("string?", "Of the API server; null if it was not asked, or did not answer."),
        "controllers": many(
            "The Deployments of controllers, as far as they may be listed.",
            record(
                "One Deployment.",
                {
                    "namespace": a("string", "Its namespace."),
                    "name": a("string", "Its name."),
                    "version": a("string?", "Its label app.kubernetes.io/version."),
                },
            ),
        ),
    },
)

SCHEMAS: Final[Mapping[str, Json]] = {
    "why": EXPLANATION,
    "why of several": _list("ExplanationList", "Several gangs, explained.", EXPLANATION),
    "get jobsets, get gangs": _list("GangList", "Gangs, explained.", EXPLANATION),
    "get jobsets --watch, get gangs --watch": EXPLANATION,
    "get groups": _list("GroupList", "Pod groups.", GROUP),
    "get groups --watch": {"$schema": DRAFT, "title": "Group"} | GROUP,
    "timeline": TIMELINE,
    "doctor": DIAGNOSIS,
    "validate": VALIDATION,
    "version": VERSION,
}
"""By the command that prints it. With --watch one document follows the other, each whole."""
