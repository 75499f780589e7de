"""What is to be seen in pods and JobSets, as questions."""

from typing import Any

from jobset_gate import names

Json = dict[str, Any]


def name_of(thing: Json) -> str:
    return str(thing["metadata"]["name"])


def init_status(pod: Json, container: str) -> Json:
    """The status of an init container, {} if there is none yet."""
    for status in pod["status"].get("initContainerStatuses") or ():
        if status["name"] == container:
            return dict(status)
    return {}


def barrier(pod: Json) -> Json:
    """The state of its barrier, {} if there is none yet."""
    return dict(init_status(pod, names.BARRIER_CONTAINER).get("state") or {})


def barrier_end(pod: Json) -> Json:
    """How its barrier ended, now or the last time; {} if it never did."""
    status = init_status(pod, names.BARRIER_CONTAINER)
    now, before = status.get("state") or {}, status.get("lastState") or {}
    return dict(now.get("terminated") or before.get("terminated") or {})


def alive(pod: Json) -> bool:
    return pod["metadata"].get("deletionTimestamp") is None and pod["status"].get("phase") not in (
        "Failed",
        "Succeeded",
    )


def held(pod: Json) -> bool:
    """It waits in its barrier, and no main container of it has ever run."""
    return alive(pod) and "running" in barrier(pod) and not has_run(pod)


def has_run(pod: Json) -> bool:
    """A main container of it runs or ran."""
    return any(
        set(status.get("state") or {}) & {"running", "terminated"} or status.get("lastState")
        for status in pod["status"].get("containerStatuses") or ()
    )


def runs(pod: Json) -> bool:
    """All its main containers run."""
    statuses = pod["status"].get("containerStatuses") or ()
    return alive(pod) and bool(statuses) and all("running" in (one.get("state") or {}) for one in statuses)


def gist(thing: Json) -> str:
    """One object in a few words, for who waited in vain."""
    parts, status = [name_of(thing)], thing.get("status") or {}
    if "containerStatuses" in status or "initContainerStatuses" in status:
        parts.append("runs" if runs(thing) else "waits in its barrier" if held(thing) else status["phase"])
    conditions = status.get("conditions") or ()
    parts += [f"{one['type']}={one['status']}: {one['message']}" for one in conditions if one.get("message")]
    return ", ".join(parts)


def attempt_of(pod: Json) -> str:
    """JobSet's count of restarts at the time of this pod."""
    return str(pod["metadata"]["labels"][names.JS_RESTART_ATTEMPT])


def condition(jobset: Json, kind: str = names.CONDITION) -> Json:
    """{} if there is none of that type."""
    for one in (jobset.get("status") or {}).get("conditions") or ():
        if one["type"] == kind:
            return dict(one)
    return {}


def failed(jobset: Json) -> bool:
    return condition(jobset, "Failed").get("status") == "True"


def completed(jobset: Json) -> bool:
    return condition(jobset, "Completed").get("status") == "True"
