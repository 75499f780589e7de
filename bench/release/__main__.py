"""`python -m bench.release`: measures the ways of releasing a gang, prints tables, writes docs/release.{md,svg}.

Without --kubeconfig a kind cluster is made and deleted. --from writes the page from an earlier measurement.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from bench import report
from bench.release import goals, measure, page, picture, results, tables
from bench.release.cluster import UnsuitableCluster
from bench.release.methods import METHODS, chosen
from bench.release.plan import MeasurementPlan
from bench.release.results import Results
from e2e import cluster as clusters
from e2e import commands, images, jobset
from e2e import tools as programs

ROOT = Path(__file__).parents[2]
KIND = "jobset-gate-release"
WIDTH = 140
USUAL = MeasurementPlan()


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 if everything was measured, whether or not it was fast enough; 1 if some gang was not."""
    asked = _parser().parse_args(arguments)
    commands.handle_signals()
    try:
        found = results.read(asked.read) if asked.read else _measured(asked)
    except (commands.CommandFailed, UnsuitableCluster, *measure.FAILURES) as problem:
        print(f"bench.release: {problem}", file=sys.stderr)
        return 1
    _publish(found, asked)
    return 1 if found.failures or not found.runs else 0


def _measured(asked: argparse.Namespace) -> Results:
    plan = MeasurementPlan(
        sizes=asked.pods,
        runs=asked.runs,
        kep_runs=asked.kep_runs,
        ways=asked.ways,
        cost_pods=asked.cost_pods,
        skew_runs=asked.skew_runs,
        seed=asked.seed,
    )
    file = asked.json or ROOT / "bench-results" / f"release-{datetime.now(UTC):%Y-%m-%dT%H%M%S}.json"
    with _ground(asked) as (kubeconfig, image, small):
        found = asyncio.run(measure.measure(kubeconfig, plan, image=image, small=small, file=file))
    print(f"figures: {file}", file=sys.stderr)
    return found


@contextmanager
def _ground(asked: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    """A cluster with the images and JobSet in it: its kubeconfig, our image and the small one."""
    if asked.kubeconfig is None:
        programs.provide()
        made = clusters.of_kind(KIND, keep=asked.keep)
    else:
        made = clusters.of_kubeconfig(asked.kubeconfig)
    with made as cluster:
        image, small = images.ours(), images.small()
        images.load(cluster, image, small)
        jobset.install(cluster, image, cluster.steady_node())
        yield cluster.kubeconfig, image, small


def _publish(found: Results, asked: argparse.Namespace) -> None:
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    for table in tables.every(found):
        report.show(table, console)
    for one in goals.reached(found):
        if one.met is not None:
            console.print(f"{one.verdict}: {one.goal.text}, {one.pods} pods", highlight=False, markup=False)
    if found.runs:
        asked.picture.write_text(picture.drawn(found))
        asked.out.write_text(page.written(found, asked.picture.name))
        print(f"written: {asked.out}, {asked.picture}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.release", description=__doc__)
    parser.add_argument("--pods", type=_sizes, default=USUAL.sizes, help="sizes of gangs, all pods on one node")
    parser.add_argument("--runs", type=int, default=USUAL.runs)
    parser.add_argument("--kep-runs", type=int, default=USUAL.kep_runs, help="with the KEP's way, for larger sizes")
    parser.add_argument("--ways", type=_ways, default=METHODS, help="of " + ",".join(way.key for way in METHODS))
    parser.add_argument("--cost-pods", type=int, default=USUAL.cost_pods, help="in gangs held for their costs; 0: none")
    parser.add_argument("--skew-runs", type=int, default=USUAL.skew_runs, help="with and without prefetch; 0: none")
    parser.add_argument("--seed", type=int, default=USUAL.seed, help="of the order of the ways")
    parser.add_argument("--kubeconfig", help="of a cluster without jobset-gate, kind's best; else one is made")
    parser.add_argument("--keep", action="store_true", help="leave the cluster that was made standing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="for the figures; else in bench-results/")
    parser.add_argument("--from", dest="read", type=Path, metavar="FILE", help="measure nothing, take these figures")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "release.md")
    parser.add_argument("--picture", type=Path, default=ROOT / "docs" / "release.svg")
    return parser


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(sorted({int(size) for size in text.split(",")}))
    if sizes[0] < 1:
        raise argparse.ArgumentTypeError(f"{text}: a gang has at least one pod")
    return sizes


def _ways(text: str) -> tuple[object, ...]:
    try:
        return chosen(text.split(","))
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from problem


if __name__ == "__main__":
    sys.exit(main())
