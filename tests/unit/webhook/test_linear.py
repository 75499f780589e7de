"""No rule takes more than its share of an object: four times as large takes about four times as long."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.injection import validate
from jobset_gate.objects import json_patch
from jobset_gate.settings import Settings
from tests.fakes.admission_reviews import body
from tests.fakes.grouped_pods import pod
from tests.fakes.growth import MOST, growth
from tests.fakes.jobsets import Json, changed, created, dig, jobset, replicated
from webhook.handlers import mutating_handler, pod_handler, validating_handler
from webhook.review import decode, encode

Shape = Callable[[int], tuple[Json, Json | None]]
SETTINGS = Settings()
HANDLERS = (mutating_handler(SETTINGS, lambda: "abcde", lambda: "token"), validating_handler(SETTINGS))
PODS = {"group": "", "version": "v1", "resource": "pods"}
INIT = ("spec", "replicatedJobs", 0, "template", "spec", "template", "spec", "initContainers")
PREFETCH = {names.PREFETCH_IMAGES: "true"}
PREFETCH_VOLUME = {"name": names.PREFETCH_VOLUME, "emptyDir": {}}
RUNNERS_MOUNT = [{"name": names.PREFETCH_VOLUME, "mountPath": names.PREFETCH_PATH}]


def several(count: int, **more: Any) -> list[Json]:
    return [{"name": f"job-{index}", **more} for index in range(count)]


def stored(count: int) -> Json:
    """A JobSet whose prefetching containers are many."""
    runners = [{"name": f"{names.PREFETCH_CONTAINER}-{index}", "volumeMounts": RUNNERS_MOUNT} for index in range(count)]
    made = created(jobset())
    return changed(made, runners + dig(made, *INIT), *INIT)


def duplicate_keys(count: int) -> tuple[Json, None]:
    keys = ",".join(f'"key-{index}":0' for index in range(count))
    return jobset(config=False, notes={names.CONFIG: f'{{{keys},"z":0,"z":0}}'}), None


def chain_of_dependencies(count: int) -> tuple[Json, None]:
    """Many targets, each at the beginning of the same long way to a target."""
    targets = [f"target-{index}" for index in range(count)]
    chain = [{"name": f"job-{index}", "dependsOn": [{"name": f"job-{index + 1}"}]} for index in range(count - 1)]
    end = {"name": f"job-{count - 1}", "dependsOn": [{"name": targets[0]}]}
    heads = [{"name": target, "dependsOn": [{"name": "job-0"}]} for target in targets]
    return jobset(*chain, end, *heads, config={"targetReplicatedJobs": targets}), None


def groups(count: int) -> tuple[Json, None]:
    """Each replicatedJob in a group of its own."""

    def template(index: int) -> Json:
        named = {"metadata": {"labels": {names.PLUGINS_NAME: f"group-{index}"}}}
        return {"template": named | {"spec": {"containers": [{"name": "main"}]}}}

    return jobset(*(replicated(f"job-{index}", job=template(index)) for index in range(count))), None


def all_changed(count: int) -> tuple[Json, Json]:
    made = stored(count)
    return changed(made, [it | {"image": "another"} for it in dig(made, *INIT)], *INIT), made


def wide_below_deep(count: int) -> tuple[Json, Json]:
    """Depth and width together: a path that is copied at each step costs their product."""
    now: Any = [{"a": {}}] * (10 * count)
    for _ in range(count // 10):
        now = [now]
    made = changed(created(jobset()), now, "spec", "replicatedJobs", 0, "template", "spec", "deep")
    return made, made


def mains(count: int) -> Json:
    return {"containers": [{"name": f"main-{index}", "image": f"image-{index}"} for index in range(count)]}


def targets(count: int) -> Json:
    return {"targetReplicatedJobs": [f"nobody-{index}" for index in range(count)]}


SHAPES: dict[str, Shape] = {
    "duplicate keys": duplicate_keys,
    "unknown targets": lambda count: (jobset(*several(count), config=targets(count)), None),
    "chain of dependencies": chain_of_dependencies,
    "prefetched images": lambda count: (jobset(replicated(pod=mains(count)), notes=PREFETCH), None),
    "volumes like ours": lambda count: (
        jobset(replicated(pod={"initContainers": several(count), "volumes": [PREFETCH_VOLUME] * count})),
        None,
    ),
    "replicated jobs": lambda count: (jobset(*(replicated(f"job-{index}") for index in range(count))), None),
    "groups": groups,
    "nothing changed": lambda count: (stored(count), stored(count)),
    "all dropped": lambda count: (created(jobset()), stored(count)),
    "another order": lambda count: (changed(stored(count), dig(stored(count), *INIT)[::-1], *INIT), stored(count)),
    "all changed": all_changed,
    "wide below deep": wide_below_deep,
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("handler", HANDLERS, ids=["mutate", "validate"])
@pytest.mark.parametrize(("lifted", "count"), [(True, 400), (False, 1000)], ids=["unbounded", "bounded"])
def test_four_times_the_jobset_takes_about_four_times_as_long(
    shape: Shape, handler: Callable[[Any], Any], lifted: bool, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the bounds as they are, too: a refusal counts what it refuses, and an UPDATE of what is stored goes on."""
    if lifted:
        for limit in ("MOST_REPLICATED_JOBS", "MOST_TARGETS", "MOST_CONTAINERS", "LARGEST_CONFIG"):
            monkeypatch.setattr(validate, limit, 10**9)
        monkeypatch.setattr(json_patch, "LARGEST_PATCH", 10**9)

    def work(count: int) -> Callable[[], object]:
        asked = decode(body(*shape(count)))
        return lambda: encode("uid", handler(asked))

    assert growth(work, count) < MOST


@pytest.mark.parametrize(
    "more",
    [
        lambda count: {"metadata": {"annotations": {names.KOORDINATOR_GANGS: json.dumps(["n/g"] * count)}}},
        lambda count: {"metadata": {"ownerReferences": [{"kind": "Job"}] * count}},
        lambda count: {"spec": {"schedulingGates": [{"name": f"gate-{i}"} for i in range(count)]}},
        lambda count: {"metadata": {"labels": {f"label-{i}": "x" for i in range(count)}}},
        lambda count: {"metadata": {"labels": {names.PLUGINS_NAME: "x" * count}}},
    ],
)
def test_four_times_the_pod_takes_about_four_times_as_long(more: Callable[[int], Json]) -> None:
    hold = pod_handler(SETTINGS)

    def work(count: int) -> Callable[[], object]:
        made = pod(SETTINGS.groups.ways[0])
        for part, members in more(count).items():
            for key, value in members.items():
                made[part][key] = made[part].get(key, {}) | value if isinstance(value, dict) else value
        asked = decode(body(made, resource=PODS))
        return lambda: encode("uid", hold(asked))

    assert growth(work, 20_000) < MOST
