"""An example with its own program, run with the gate and without it at the same time while one member is late."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from e2e import example_overlays, logs, predicates
from e2e.nodes import Nodes
from e2e.programs import real_images
from e2e.scenario import Scenario
from jobset_gate import names
from jobset_gate.kube.resources import JOBSETS

Json = dict[str, Any]
WORKERS: Final = "workers"
"""The replicatedJob of whose pods one is late, in all examples; the pods of others come at once."""
GIVE_UP_SECONDS: Final = 900.0
"""Longer than any of these programs waits for a peer."""
SHOWN, WIDTH = 8, 240
"""Lines of a log that the page shows, and characters of each."""
HURRY: Final = os.environ.get("HURRY", "")
"""Seconds that programs shall wait for a peer instead of their own."""


@dataclass(frozen=True, slots=True)
class Program:
    """`limit` says what ends its wait for a peer, and after how long."""

    title: str
    example: str
    image: str
    limit: str
    missed: str
    """A pattern: lines of the log of a program that has missed a peer."""
    met: str
    """A pattern: lines that it writes only when all of them have met."""
    lines: int
    """How many such lines all members write together."""
    hurry: tuple[str, str] = ("", "")
    """What HURRY replaces in the example, and by what."""

    def documents(self, request: Json, *, gated: bool) -> list[Json]:
        """The example's objects: image and resources are overlaid, and the first failure ends the JobSet."""
        text = json.dumps(example_overlays.documents(self.example))
        if HURRY and self.hurry[0]:
            text = text.replace(self.hurry[0], self.hurry[1].format(HURRY))
        made: list[Json] = json.loads(text)
        for name, job in example_overlays.jobs(made[-1]):
            for container in job["template"]["spec"]["containers"]:
                container["image"], container["resources"] = self.image, request if name == WORKERS else {}
        made[-1]["spec"].pop("failurePolicy", None)
        if not gated:
            del made[-1]["spec"][names.CONFIG_FIELD]
        return made


PROGRAMS: Final = (
    Program(
        "JAX",
        "jax.yaml",
        real_images.PYTHON,
        "`initialization_timeout` of `jax.distributed.initialize`, 300 s by default",
        missed=r"DEADLINE_EXCEEDED",
        met=r"^process \d of 4 sees 4 devices$",
        lines=4,
        hurry=("process_id=job", "initialization_timeout={}, process_id=job"),
    ),
    Program(
        "PyTorch",
        "pytorch.yaml",
        real_images.PYTHON,
        "`join_timeout` of torchrun's rendezvous, 600 s by default, or 60 s if rank 0 is the late one",
        missed=r"^torch\S+Error",
        met=r"^rank \d: 4 of 4 have added their one$",
        lines=4,
        hurry=("--rdzv_conf=", "--rdzv_conf=join_timeout={},"),
    ),
    Program(
        "Open MPI",
        "mpi.yaml",
        real_images.MPI,
        "none in seconds: mpirun's first ssh fails once the cluster's DNS has no answer for the worker's name",
        missed=r"ssh: |ORTE was unable",
        met=r"^rank \d of 2 on |^pi is 3\.14159",
        lines=3,
    ),
)


async def run_both(program: Program, gated: Scenario, ungated: Scenario, nodes: Nodes) -> Json:
    """Without the gate it fails; at that moment the late member gets its node, and behind the gate all finish.

    So both wait for the late one equally long. Returns what the page says of it, times in seconds. Raises
    AssertionError for any other course of events.
    """
    near, far = (await nodes.workers())[:2]
    async with nodes.extended_resource(gated.namespace) as mine, nodes.extended_resource(ungated.namespace) as other:
        made, free = program.documents(mine.request, gated=True), program.documents(other.request, gated=False)
        many = example_overlays.with_extended_resource(made)
        for extended in (mine, other):
            await extended.set_capacity(near, many - 1)
        await gated.apply(*made)
        await ungated.apply(*free)
        (ended,) = await ungated.until_any(JOBSETS, over, GIVE_UP_SECONDS)
        missed = await lines_of(ungated, program.missed)
        assert predicates.failed(ended), ended["status"]
        (waiting,) = await gated.until_any(JOBSETS, lambda jobset: "missing: 1 pod" in message(jobset))
        pods = len(gated.pods.all())
        held = await gated.until_held(pods - 1)
        assert not any(map(predicates.has_run, held))
        await mine.set_capacity(far, 1)
        (done,) = await gated.until_any(JOBSETS, over)
        assert predicates.completed(done), done["status"]
        await gated.until(lambda _: sum(map(predicates.has_run, gated.seen.values())) == pods)
    met = await lines_of(gated, program.met)
    lost, ran = mains(ungated.seen.values()), mains(gated.seen.values())
    failures = sorted((one for one in lost if one.get("exitCode")), key=lambda one: str(one["finishedAt"]))
    assert failures, f"no program has failed: {lost}"
    assert missed, "no program has said that it missed a peer"
    assert len(met) == program.lines, met
    barriers, starts = moments(gated.ends.values(), "startedAt"), moments(ran, "startedAt")
    assert len(barriers) == len(starts) == pods
    assert starts[0] >= barriers[-1], "a main container started before the last barrier"
    return {
        "title": program.title,
        "example": program.example,
        "limit": f"{program.limit}; {HURRY} s here" if HURRY and program.hurry[0] else program.limit,
        "pods": pods,
        "gave_up": moments(failures, "finishedAt")[0] - moments(lost, "startedAt")[0],
        "code": failures[0]["exitCode"],
        "missed": missed[:SHOWN],
        "waiting": message(waiting),
        "late": barriers[-1] - barriers[0],
        "spread": starts[-1] - starts[0],
        "took": moments((one for one in ran if one.get("exitCode") == 0), "finishedAt")[-1] - starts[0],
        "met": met[:SHOWN],
    }


def save(folder: str, title: str, found: Mapping[str, Any]) -> None:
    """For page.py."""
    (Path(folder) / f"{title}.json").write_text(json.dumps(found, indent=1))


def over(jobset: Json) -> bool:
    return predicates.completed(jobset) or predicates.failed(jobset)


def message(jobset: Json) -> str:
    """Who is missing, and why, by our condition."""
    return str(predicates.condition(jobset).get("message", "")).partition("; at the timeout")[0]


async def lines_of(scenario: Scenario, pattern: str) -> list[str]:
    """The lines of main containers that match, in the order in which they were written, each text once.

    A long one is cut in its middle.
    """
    flags = ("--all-containers", "--prefix", "--timestamps", "--tail=-1", "--max-log-requests=50", "--ignore-errors")
    written = logs.parse(await scenario.kubectl("logs", f"--selector={names.JS_NAME}", *flags))
    found = [
        line.text if len(line.text) <= WIDTH else f"{line.text[: WIDTH // 2]} [...] {line.text[-WIDTH // 2 :]}"
        for line in sorted(written, key=lambda line: line.at)
        if line.container != names.BARRIER_CONTAINER and re.search(pattern, line.text)
    ]
    return list(dict.fromkeys(found))


def mains(pods: Iterable[Json]) -> list[Json]:
    """How the only main container of each pod runs, or has ended, as far as it has started."""
    states = [(pod["status"].get("containerStatuses") or [{}])[0].get("state") or {} for pod in pods]
    return [dict(state.get("terminated") or state.get("running") or {}) for state in states]


def moments(states: Iterable[Json], what: str) -> list[float]:
    """Seconds since the epoch, sorted, of those that have such a moment."""
    return sorted(datetime.fromisoformat(state[what]).timestamp() for state in states if state.get(what))
