"""What `timeline -o json` says, as a JSON schema."""

from typing import Final

from jobset_gate.cli.printers.schema_builders import COUNT, TEXT, a, kind, many, moment, record, whole

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
        "of": {"enum": ["JobSet", "PodGroup"], "description": "What kind of gang it is."},
        "namespace": a("string", "Where it is."),
        "name": a("string", "What it is called."),
        "restartAttempt": a("integer", "Which attempt of the JobSet this is.", **COUNT),
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
        "notes": many("What to know besides.", TEXT),
    },
)
