"""How long it takes to judge a thousand waiting groups on a thousand nodes: the rules alone, in this process."""

from __future__ import annotations

import random
import time
from fractions import Fraction

from bench.groups import plan
from bench.report import Cell, ResultTable, ResultTarget
from bench.scale import Scale
from bench.stats import median, percentile
from jobset_gate.podgroups import cycle
from jobset_gate.podgroups.candidate import Admit, Candidate, CapacityCheck, admission_order
from jobset_gate.podgroups.fit.constraints import Amounts, NodeFacts, pod_node_selection
from jobset_gate.podgroups.fit.greedy import GroupRequest
from jobset_gate.podgroups.fit.guaranteed import NodeInfo, NodeSnapshot, PodShape
from jobset_gate.podgroups.model import Flavor, PodGroupKey

NAME = "decision"
GROUPS = 1000
PODS = 10
BUDGET = 10.0
"""Seconds for one kind, in case that something is slow."""
SHORT_BUDGET = 0.1
FULL = Fraction(4, 5)
"""How much of each node is taken."""
LIMIT_MS = 100.0
GIB = 2**30 * 1000
EMPTY: Amounts = {"cpu": 64_000, "memory": 256 * GIB, "pods": 110_000, "nvidia.com/gpu": 8000}
"""What a node has."""
KINDS = {"alike": 1, "of 20 kinds": 20, "all different": GROUPS}
"""Of pods."""


async def run(scale: Scale) -> list[ResultTable]:
    """Always of the full size: it takes seconds. Where figures mean nothing it ends early."""
    budget = BUDGET if scale.measures else SHORT_BUDGET
    rows: list[list[Cell]] = []
    targets = []
    for fits in (True, False):
        for kind, shapes in KINDS.items():
            each, opened = _measured(shapes, fits=fits, budget=budget)
            name = f"{kind}, {'room for all' if fits else 'no room'}"
            slowest = percentile(each, 99) * 1000
            rows.append([name, len(each), opened, median(each) * 1000, slowest, max(each) * 1000, sum(each) * 1000])
            targets.append(ResultTarget(f"one decision (p99), groups {name}", slowest, LIMIT_MS, " ms"))
    return [
        ResultTable(
            name=NAME,
            title=f"{GROUPS:,} waiting groups of {PODS} pods judged on {plan.NODES:,} nodes that are four fifths full",
            columns=("groups", "judged", "to be opened", "one p50 ms", "p99", "slowest", "all ms"),
            rows=rows,
            targets=targets,
            notes=["one after the other, as a pass of the controller does it: those before it are open, or go first"],
        )
    ]


def _measured(shapes: int, *, fits: bool, budget: float) -> tuple[list[float], int]:
    """Seconds of each verdict, and how many groups were to be opened."""
    waiting = sorted(_candidates(shapes, 1 if fits else 4), key=admission_order)
    seconds: list[float] = []
    opened, now = 0, float(GROUPS)
    going = cycle.SchedulingCycle(
        [], NodeSnapshot(_node_infos()), now=now, check=CapacityCheck.FIT, starvation_seconds=2 * GROUPS
    )
    for candidate in waiting:
        if sum(seconds) > budget:
            break
        began = time.perf_counter()
        opened += isinstance(going.decide_candidate(candidate), Admit)
        seconds.append(time.perf_counter() - began)
    return seconds, opened


def _node_infos() -> list[NodeInfo]:
    rng = random.Random(1)  # noqa: S311 - the same nodes each time
    return [NodeInfo(node=_node(index), free=_free(rng), empty=EMPTY) for index in range(plan.NODES)]


def _node(index: int) -> NodeFacts:
    name = f"node-{index}"
    return NodeFacts(name=name, labels={"kubernetes.io/hostname": name, "pool": "a" if index % 2 else "b"})


def _free(rng: random.Random) -> Amounts:
    """What is left on a node, more on one, less on another."""
    left = float(1 - FULL) * rng.uniform(0.5, 1.5)
    return {
        "cpu": int(64_000 * left),
        "memory": int(256 * left) * GIB,
        "pods": int(110 * left) * 1000,
        "nvidia.com/gpu": rng.randint(0, 3) * 1000,
    }


def _candidates(kinds: int, devices: int) -> list[Candidate]:
    """No node has room for four devices."""
    domain = frozenset(f"node-{index}" for index in range(plan.NODES))
    selection = pod_node_selection({"nodeSelector": {}})
    found = []
    for index in range(GROUPS):
        asked = {"cpu": 500 + index % kinds, "memory": GIB, "pods": 1000}
        asked |= {"nvidia.com/gpu": devices * 1000} if devices > 1 else {}
        shape = PodShape(selection=selection, requests=asked, count=PODS)
        key = PodGroupKey(flavor=Flavor.SCHEDULER_PLUGINS, namespace="team", name=f"g{index}")
        demand = GroupRequest(key=key, shapes=(shape,), minimum=PODS)
        found.append(
            Candidate(requests=(demand,), priority=0, created=float(index), ready_since=float(index), domain=domain)
        )
    return found
