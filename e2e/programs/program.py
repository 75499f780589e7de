"""An example with its own program, run with the gate and without it at the same time while one member is late."""

import copy
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from e2e import example_overlays, logs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names
from jobset_gate.kube.resources import JOBSETS

Json = dict[str, Any]
GIVE_UP_SECONDS: Final = 900.0
"""Longer than any of these programs waits for a peer."""
SHOWN, WIDTH = 8, 230
"""Lines of a log that the page shows, and characters of each."""
HURRY: Final = os.environ.get("HURRY", "")
"""Seconds that programs shall wait for a peer instead of their own."""


@dataclass(frozen=True, slots=True)
class Program:
    """`asking`: the replicatedJobs of whose pods one is late; the pods of all others come at once."""

    title: str
    example: str
    image: str
    asking: tuple[str, ...]
    limit: str
    """What ends the program's wait for a peer, in its own words, and after how long."""
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
        made = [copy.deepcopy(one) for one in example_overlays.documents(self.example)]
        if HURRY and self.hurry[0]:
            made = json.loads(json.dumps(made).replace(self.hurry[0], self.hurry[1].format(HURRY)))
        for one in made:
            for name, job in example_overlays.jobs(one):
                for container in job["template"]["spec"]["containers"]:
                    container["image"] = self.image
                    container["resources"] = request if name in self.asking else {}
        made[-1]["spec"].pop("failurePolicy", None)
        if not gated:
            del made[-1]["spec"][names.CONFIG_FIELD]
        return made


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the page says of one program; times in seconds."""

    title: str
    example: str
    image: str
    limit: str
    pods: int
    gave_up: float
    """From the first start of a main container without the gate to the first end of one."""
    codes: list[int]
    missed: list[str]
    waiting: str
    """The condition's message behind the gate meanwhile."""
    late: float
    """From the first start of a barrier to the last one."""
    spread: float
    """From the first start of a main container to the last one, behind the gate."""
    took: float
    """From the first start of a main container to the last end of one, behind the gate."""
    met: list[str]

    def save(self, folder: str) -> None:
        save(folder, self.title, asdict(self))


def save(folder: str, title: str, found: Mapping[str, Any]) -> None:
    (Path(folder) / f"{title}.json").write_text(json.dumps(found, indent=1))


async def run_both(program: Program, gated: Scenario, ungated: Scenario, nodes: Nodes) -> Outcome:
    """Without the gate it fails; at that moment the late member gets its node, and behind the gate all finish.

    So both wait for the late one equally long. Raises AssertionError for any other course of events.
    """
    near, far = (await nodes.workers())[:2]
    async with nodes.extended_resource(gated.namespace) as mine, nodes.extended_resource(ungated.namespace) as other:
        made, free = program.documents(mine.request, gated=True), program.documents(other.request, gated=False)
        many, pods = example_overlays.with_extended_resource(made), _pods(made[-1])
        for extended in (mine, other):
            await extended.set_capacity(near, many - 1)
        await gated.apply(*made)
        await ungated.apply(*free)
        (ended,) = await ungated.until_any(JOBSETS, over, GIVE_UP_SECONDS)
        lost = list(ungated.pods.all())
        missed = await lines_of(ungated, program.missed)
        assert predicates.failed(ended), ended["status"]
        waiting = await gated.until_any(JOBSETS, lambda jobset: "missing: 1 pod" in message(jobset))
        held = await gated.until_held(pods - 1)
        assert not any(map(predicates.has_run, held))
        await mine.set_capacity(far, 1)
        started = await gated.until(lambda seen: sum(map(predicates.has_run, seen)) == pods)
        (done,) = await gated.until_any(JOBSETS, over)
    assert predicates.completed(done), done["status"]
    met = await lines_of(gated, program.met)
    codes = sorted({code for code in exits(lost) if code})
    assert codes, f"no program has failed: {exits(lost)}"
    assert missed, "no program has said that it missed a peer"
    assert len(met) == program.lines, met
    barriers, mains = moments(started, barrier_start), moments(started, main_start)
    assert mains[0] >= barriers[-1], "a main container started before the last barrier"
    return Outcome(
        program.title,
        program.example,
        program.image,
        f"{program.limit}; {HURRY} s here" if HURRY and program.hurry[0] else program.limit,
        pods,
        gave_up=moments(lost, failed_end)[0] - moments(lost, main_start)[0],
        codes=codes,
        missed=missed[:SHOWN],
        waiting=message(waiting[0]),
        late=barriers[-1] - barriers[0],
        spread=mains[-1] - mains[0],
        took=moments(gated.pods.all(), main_end)[-1] - mains[0],
        met=met[:SHOWN],
    )


def over(jobset: Json) -> bool:
    return predicates.completed(jobset) or predicates.failed(jobset)


def message(jobset: Json) -> str:
    """Of our condition."""
    return str(predicates.condition(jobset).get("message", ""))


async def lines_of(scenario: Scenario, pattern: str) -> list[str]:
    """The lines of main containers that match, in the order in which they were written, each text once, shortened."""
    flags = ("--all-containers", "--prefix", "--timestamps", "--tail=-1", "--max-log-requests=50", "--ignore-errors")
    written = logs.parse(await scenario.kubectl("logs", f"--selector={names.JS_NAME}", *flags))
    found = (line for line in sorted(written, key=lambda line: line.at) if re.search(pattern, line.text))
    return list(dict.fromkeys(shortened(line.text) for line in found if line.container != names.BARRIER_CONTAINER))


def shortened(line: str) -> str:
    return line if len(line) <= WIDTH else line[:WIDTH].rstrip() + " [...]"


def moments(pods: Iterable[Json], of: Callable[[Json], str]) -> list[float]:
    """Seconds since the epoch, sorted, of those that have such a moment."""
    return sorted(datetime.fromisoformat(at).timestamp() for at in map(of, pods) if at)


def barrier_start(pod: Json) -> str:
    state = predicates.barrier_end(pod) or predicates.barrier(pod).get("running") or {}
    return str(state.get("startedAt") or "")


def main_start(pod: Json) -> str:
    state = _state(pod)
    return str((state.get("running") or state.get("terminated") or {}).get("startedAt") or "")


def main_end(pod: Json) -> str:
    return str((_state(pod).get("terminated") or {}).get("finishedAt") or "")


def failed_end(pod: Json) -> str:
    return main_end(pod) if any(exits([pod])) else ""


def exits(pods: Iterable[Json]) -> list[int]:
    """The exit codes of the main containers that have ended."""
    ends = (_state(pod).get("terminated") for pod in pods)
    return [int(end["exitCode"]) for end in ends if end]


def _state(pod: Json) -> Json:
    """Of its only main container."""
    return dict(((pod["status"].get("containerStatuses") or [{}])[0]).get("state") or {})


def _pods(jobset: Json) -> int:
    jobs = jobset["spec"]["replicatedJobs"]
    return sum(job.get("replicas", 1) * job["template"]["spec"].get("parallelism", 1) for job in jobs)
