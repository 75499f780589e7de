"""Seven gangs in different states, with pods on nodes: what the picture of the documents and tests of looks show."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import Config, GangKey, PendingReason, VerdictKind
from jobset_gate.sources import decode
from tests.fakes import gangs, wire_objects
from tests.fakes.podgroups.snapshots import timestamp
from tests.fakes.served_page import ServedPage
from tests.fakes.wire_objects import BARRIER, TEN_O_CLOCK

Json = dict[str, Any]

NOW: Final = TEN_O_CLOCK + 900
PRICES: Final = {"nvidia.com/gpu": 2.5}
GPUS: Final = (("nvidia.com/gpu", 8),)
UNSCHEDULED: Final = "0/96 nodes are available: 92 Insufficient nvidia.com/gpu, 4 node(s) had untolerated taint."
PULL: Final = 'fetch-data: Back-off pulling image "registry.example/datasets:2026.11"'
CRASH: Final = "prepare: exit code 1: cannot reach the bucket"

Steps = Mapping[str, float]
"""Seconds after the gang was created, by step: scheduled, started, released, running."""


def gang(
    stage: ServedPage,
    namespace: str,
    name: str,
    parts: Mapping[str, Sequence[Steps]],
    *,
    age: float,
    missing: Sequence[tuple[PendingReason, str]] = (),
    timeout: int | None = 900,
    devices: tuple[tuple[str, int], ...] = GPUS,
    verdict: VerdictKind | None = None,
    gone: bool = False,
    **changes: Any,
) -> GangKey:
    """A gang with a pod for each entry of `parts`; the last pods of the last part are `missing` for these reasons.

    `gone`: the pods are deleted by now.
    """
    uid, created = f"{namespace}-{name}", NOW - age
    jobs = [
        gangs.replicated_job(
            part, parallelism=len(steps), completions=len(steps), devices=devices if part == "workers" else ()
        )
        for part, steps in parts.items()
    ]
    pods = [
        raw_pod(GangKey(namespace, name), part, index, created, it)
        for part, steps in parts.items()
        for index, it in enumerate(steps)
    ]
    stage.api.pods += [] if gone else pods
    seen = [decode.pod(msgspec.json.decode(msgspec.json.encode(it), type=wire.Pod)) for it in pods]
    for number, (reason, message) in enumerate(reversed(missing), start=1):
        late = gangs.waiting_pod(None, reason, message, created=created).pending
        seen[-number] = msgspec.structs.replace(seen[-number], pending=late)
    started = [created + it["started"] for steps in parts.values() for it in steps if "started" in it]
    said = f"{len(started)}/{len(pods)} pods started"
    decided = None
    if verdict is not None:
        kind, cause = verdict, names.REASON_STARTED
        if kind is VerdictKind.TIMEOUT:
            why = f"missing: {len(missing)} pods: {missing[0][0]}"
            cause, said = names.REASON_TIMED_OUT, f"timed out after {timeout}s: {said}; {why}"
        decided = msgspec.structs.replace(gangs.verdict(kind, cause, uid=uid), message=said)
    opened = max((it["released"] for steps in parts.values() for it in steps if "released" in it), default=None)
    if opened is not None:
        since = timestamp(created + opened)
        changes["condition"] = msgspec.structs.replace(gangs.condition(names.REASON_STARTED, said), since=since)
    home = names.config_map_name(name)
    clock = gangs.clock(min(started), uid=uid) if started else None
    gate = gangs.config_map(
        namespace=namespace, name=home, uid=f"{uid}-gate", workload_uid=uid, waiting_since=clock, verdict=decided
    )
    config = Config(timeout=timeout)
    jobset = gangs.jobset(*jobs, namespace=namespace, name=name, uid=uid, created=created, config=config, **changes)
    return stage.put(jobset, *([] if gone else seen), gate=gate)


def showcase(stage: ServedPage) -> None:
    """Everything."""
    unscheduled, pull = (PendingReason.UNSCHEDULED, UNSCHEDULED), (PendingReason.IMAGE_PULL, PULL)
    here: Steps = {"scheduled": 6, "started": 60}
    some = [{**here, "started": 40 + 4 * it} for it in range(11)]
    parts: dict[str, Sequence[Steps]] = {"driver": [here], "workers": [*some, {"scheduled": 9}, {}, {}, {}, {}]}
    gang(stage, "research", "llama-70b-pretrain", parts, age=560, missing=[pull, *[unscheduled] * 4])
    gang(
        stage,
        "vision",
        "vit-22b-sweep",
        {"workers": [*[here] * 30, {}, {}]},
        age=5400,
        missing=[unscheduled] * 2,
        verdict=VerdictKind.TIMEOUT,
        timeout=600,
        finished=True,
        failed=True,
        finished_message="jobset failed due to one or more job failures",
    )
    scaling = (PendingReason.NODE_PROVISIONING, "pod triggered scale-up: gpu-pool-a100 4->6")
    gang(stage, "research", "mixtral-finetune", {"workers": [*some[:6], {}, {}]}, age=170, missing=[scaling] * 2)
    policy = {"workers": [{"scheduled": 3, "started": 31}, *[{"scheduled": 4}] * 3]}
    crash = (PendingReason.CRASH_LOOP, CRASH)
    gang(stage, "robotics", "rt-3-policy", policy, age=75, missing=[crash] * 3, timeout=None)
    through = {**here, "released": 95, "running": 97}
    gang(stage, "speech", "whisper-distill", {"workers": [through] * 8}, age=3100, verdict=VerdictKind.RELEASE)
    gang(stage, "vision", "diffusion-xl", {"workers": [{}] * 16}, age=7300, suspended=True)
    done = {"workers": [through] * 12}
    released = VerdictKind.RELEASE
    gang(stage, "speech", "tts-multispeaker", done, age=86_400, finished=True, verdict=released, gone=True)


def crowd(stage: ServedPage) -> GangKey:
    """A driver and 299 workers that arrive in three waves, all released."""
    waves = [{"scheduled": 2 + it % 7, "started": 12 + 90 * (it % 3) + it / 12} for it in range(299)]
    opened = max(it["started"] for it in waves) + 1
    workers = [{**it, "released": opened, "running": opened + 2 + number % 9} for number, it in enumerate(waves)]
    driver = {"scheduled": 1, "started": 9, "released": opened, "running": opened + 2}
    return gang(
        stage, "research", "crowd", {"driver": [driver], "workers": workers}, age=400, verdict=VerdictKind.RELEASE
    )


def raw_pod(key: GangKey, part: str, index: int, created: float, steps: Steps) -> Json:
    """As the API server shows it."""
    namespace, gang_name, _ = key
    states: Json = {"waiting": "PodInitializing"}
    if "started" in steps:
        states = {"running": timestamp(created + steps["started"])}
    init = wire_objects.status(BARRIER, **states)
    if "released" in steps:
        ran = {"startedAt": timestamp(created + steps["started"]), "finishedAt": timestamp(created + steps["released"])}
        init |= {"state": {"terminated": {"exitCode": 0, **ran}}}
    main = wire_objects.status("main", waiting="PodInitializing")
    if "running" in steps:
        main = wire_objects.status("main", running=timestamp(created + steps["running"]))
    labels = {
        names.JS_NAME: gang_name,
        names.JS_UID: f"{namespace}-{gang_name}",
        names.JS_REPLICATED_JOB: part,
        names.JS_JOB_INDEX: "0",
        names.JS_RESTART_ATTEMPT: "0",
    }
    name, where = f"{gang_name}-{part}-0-{index}", "scheduled" in steps
    scheduled = {"type": "PodScheduled", "status": "True" if where else "False"}
    if where:
        scheduled["lastTransitionTime"] = timestamp(created + steps["scheduled"])
    return wire_objects.pod(
        init,
        labels=labels,
        notes={names.JOB_COMPLETION_INDEX: str(index), names.EPOCH: "0"},
        meta={
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}-{name}",
            "creationTimestamp": timestamp(created),
            "ownerReferences": [wire_objects.owner("Job", f"{gang_name}-{part}-0", f"job-{part}-0")],
            "labels": labels | {names.GATED: names.GATED_VALUE},
            "annotations": {names.JOB_COMPLETION_INDEX: str(index), names.EPOCH: "0"},
        },
        spec={"nodeName": f"gpu-{index + 11:03}" if where else "", "containers": [{"name": "main"}]},
        status={
            "phase": "Running" if "running" in steps else "Pending",
            "conditions": [scheduled],
            "initContainerStatuses": [init],
            "containerStatuses": [main],
        },
    )
