"""What the status page answers in JSON, as schemas: the promise that other programs hold on to."""

from collections.abc import Mapping
from typing import Final

from docs.make.schemas import COUNT, EXPLANATION, TEXT, Json, a, kind, many, moment, record, whole

_DEVICES: Final = many(
    "Accelerators of started pods that wait, by resource.",
    record(
        "Those of one resource.",
        {
            "resource": a("string", "Such as nvidia.com/gpu."),
            "held": a("integer", "How many.", **COUNT),
            "deviceHours": a("number", "For how long so far, all together.", **COUNT),
            "cost": a("number?", "Of these hours; null without a price."),
            "costPerHour": a("number?", "Of all of them; null without a price."),
        },
    ),
)

GANG_STATUS: Final = whole(
    "GangStatus",
    "One gang of the status page: an Explanation with more fields; `missing` has the first 20 reasons.",
    {
        **EXPLANATION["properties"],
        "kind": kind("GangStatus"),
        "path": a(
            "string",
            "Of its page; that of a start group ends with its name, a dot and the UID of the owner, that of a group of "
            "a LeaderWorkerSet with the name of its leader pod.",
        ),
        "created": moment("Of the JobSet."),
        "waitsSince": moment("Since when it waits; null if it does not."),
        "timedOutAt": moment("When its time was up, if it has timed out."),
        "devices": _DEVICES,
    },
)

GANG_STATUS_LIST: Final = whole(
    "GangStatusList",
    "A page of at most 100 gangs. The query is that of the list: namespace, state, q (a part of the name), sort, page.",
    {
        "kind": kind("GangStatusList"),
        "at": moment("When this was seen."),
        "complete": a("boolean", "false: only namespaces in which you may list JobSets are in it."),
        "found": a("integer", "Gangs that fit the query.", **COUNT),
        "page": a("integer", "Which page this is.", minimum=1),
        "pages": a("integer", "How many there are.", minimum=1),
        "overview": record(
            "Of the namespace and name in the query, in any state.",
            {
                "waiting": a("integer", "Gangs that wait.", **COUNT),
                "missingPods": a("integer", "Pods that they lack.", **COUNT),
                "longestWaitSince": moment("Since when the one waits that has waited longest."),
                "timedOutToday": a("integer", "Gangs whose time was up since midnight, UTC.", **COUNT),
                "indexFailedToday": a(
                    "integer", "Gangs that were ended since midnight, UTC, since an index had failed.", **COUNT
                ),
                "states": {
                    "type": "object",
                    "description": "Gangs by state.",
                    "additionalProperties": {"type": "integer", "minimum": 1},
                },
                "devices": _DEVICES,
            },
        ),
        "items": many("The gangs of this page.", {key: it for key, it in GANG_STATUS.items() if key != "$schema"}),
    },
)

STATUS: Final = whole(
    "Status",
    "Why there is no answer; its code is that of the response.",
    {
        "kind": kind("Status"),
        "status": {"const": "Failure", "description": "What it is about."},
        "code": a("integer", "As 401, 403, 404, 429 or 503."),
        "reason": a("string", "The code in words, as Forbidden."),
        "message": TEXT,
    },
)

API_SCHEMAS: Final[Mapping[str, Json]] = {
    "GET /api/v1/gangs": GANG_STATUS_LIST,
    "GET /api/v1/gangs/{namespace}/{name}": GANG_STATUS,
    "any error": STATUS,
}
"""By the request to the status page."""
