"""docs/release.md, written by each measurement: tables, picture, what they mean, and where they are weak."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.release import goals, tables
from bench.release.methods import METHODS
from bench.release.results import Results
from bench.report import ResultTable, shown

HEAD = """# How fast a gang is released

When the last pod's barrier has started, how long does it take until the main containers run? Measured on the
kubelets of a real cluster, for four ways of telling the pods, which take turns.

{picture}

This page and the picture are written by the command that measures:

```
{command}
```

{ground}

## What is measured

From the moment at which the last barrier of a gang wrote its first line to the moments at which the main containers
wrote theirs: the first of them, the median one, the last one, and the skew between first and last. "All released" is
the moment at which the last barrier had the release and ended; what follows, the kubelet and the container
runtime need to start the main containers. The moments are the runtime's own, to the nanosecond, from
`kubectl logs --timestamps`. All pods of a gang run on one node, so there is one clock.

* (a) the KEP as written: our controller with patches and stream switched off. It counts by pod status and writes the
  ConfigMap; the kubelet, with its default sync period, does the rest.
* (b) annotation patches: as (a), and the verdict goes as an annotation to every pod.
* (c) gate stream: as installed. Every barrier holds one HTTP request open; patches are for those that could not, and
  for those that seem to wait still a good while after their answer.
* (d) the floor: the same pods, but their barriers need nobody. Each leaves a file in a folder on the node and counts
  those that are there; the last one writes the verdict into that folder, where all look for it as often as our
  barrier looks for its own. What remains is what the kubelet and the container runtime need to start so many
  containers.

Pods are equal in everything else, rendered by the code of the webhook. One controller per way, side by side in the
cluster, each with one namespace to look after, on another node than the gangs where there is one. Within each run
all ways come right after one another, in an order that is shuffled (seed {seed}); then the next run. A first
gang does not count. Between two gangs the run waits until the kubelet has removed the last pod, and two seconds
more.

Figures are medians over the runs, and in brackets the interval that encloses the true median with at least 95 %,
from order statistics: of ten runs, the second smallest and the second largest value. Ways are compared run by run,
so what slows down a whole run does not count.
"""

MEANING = {
    "pairs": """A target is met or missed by the median; "not beyond doubt" says that the interval does not agree
with it as a whole.""",
    "writes": """From the API server's own `apiserver_request_total`, from before the gang is made until two seconds
after its last start, less what the floor's gang of the same run had: those are the kubelet's, the
scheduler's and the Job controller's writes, which every gang has. Kubelets write `pods/status`, so
`PATCH pods` is ours alone.""",
    "costs": """A gang that is one pod short waits for a minute, and the kubelet's `/stats/summary` tells what each
barrier's cgroup has used. The barriers of (a) are those of (b). Init containers are over when main
containers begin; whether anything is left was looked at 20 s after the release.""",
    "skews": """Two pods on each of two nodes, released by the stream. One node has the image ready. The other one
has its layers but must unpack them, which containerd does when the first container of the image is
made; on a cluster it would be pulled at that moment, too. Without prefetch the pods of the ready
node run alone until then. With prefetch (`prefetch-images`) the image is unpacked before the pod
counts as started. Two nodes of one machine share its clock.""",
}

WEAK = """## What is weak in this measurement

* One machine, whose {cores} cores are shared by the control plane, all nodes, the controllers and the pods. So
  everything competes with everything, and starting containers takes most of the time in (b), (c) and (d): the more
  cores, the smaller all three, while (a) stays, since the kubelet's sync period does not depend on cores.
* A real cluster has many nodes with a few pods of a gang each, not {largest} on one: the load on each kubelet is
  lower there, the network between pod and controller is longer, and clocks differ. This measures the kubelet's end
  of the release; how the controller deals with thousands of pods is in benchmarks.md.
* The moments are those at which the runtime read the lines, a little after they were written; on a busy machine
  later. This holds for all ways alike.
* The floor's own barriers look every 0.2 s, as ours do for their files. A verdict on the stream comes without that
  wait, so (c) can be up to 0.2 s faster than the floor, and single runs of (c) may be below it by chance.
* API writes are those of one API server, counted while others may write, too.
* Containers' memory is what cgroups account to them: pages of the barrier's program that containers share are
  accounted to whichever touched them first.
* Figures measured elsewhere are from another day and are no pairs.
"""


def written(results: Results, picture: str) -> str:
    """The page. `picture` is the picture's file name, in the folder of the page."""
    alt = "When the main containers wrote their first lines, for each way and size"
    head = HEAD.format(
        picture=f"![{alt}]({picture})", command=results.command, ground=_ground(results), seed=results.seed
    )
    cores, largest = results.machine.get("cores", "few"), max(results.sizes)
    parts = [head, _outcome(results), *_sections(tables.every(results)), *_failures(results)]
    return "\n".join([*parts, WEAK.format(cores=cores, largest=largest)]).rstrip() + "\n"


def markdown(table: ResultTable) -> str:
    """A table, numbers to the right, and its notes."""
    dashes = ["---", *("---:" for _ in table.columns[1:])]
    rows = [table.columns, dashes, *([shown(cell) for cell in row] for row in table.rows)]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([*lines, *(f"\n{note.replace('* ', '&ast; ', 1)}" for note in table.notes)]) + "\n"


def _ground(results: Results) -> str:
    its, where = results.machine, results.cluster
    return (
        f"{its['time'][:10]}: {its['cores']} cores of {its['processor']}, {its['system']}, load {its['load']} before"
        f" and {results.load} after. Kubelet {where['kubelet']}, {where['runtime']}, {where['system']},"
        f" {where['workers']} worker nodes. It took {results.seconds / 60:.0f} minutes."
    )


def _outcome(results: Results) -> str:
    asked = [one for one in goals.reached(results) if one.met is not None]
    met = sum(one.met is True for one in asked)
    missed = [f"{one.goal.text} with {one.pods} pods" for one in asked if not one.met]
    said = f"{met} of {len(asked)} targets met" + (f"; missed: {', '.join(missed)}" if missed else "")
    return f"## What was found\n\n{said}.\n"


def _sections(every: Iterable[ResultTable]) -> Iterable[str]:
    explained = set()
    for table in every:
        yield f"### {table.title}\n\n{markdown(table)}"
        kind = table.name.partition("-")[0]
        if kind in MEANING and kind not in explained:
            yield MEANING[kind] + "\n"
            explained.add(kind)


def _failures(results: Results) -> Sequence[str]:
    """What is missing."""
    letters = {way.key: way.letter for way in METHODS}
    lines = [*results.notes]
    lines += [f"({letters[it.way]}), {it.pods} pods, run {it.number}: {it.why}" for it in results.failures]
    return ["### Not measured\n\n" + "\n".join(f"* {line}" for line in lines) + "\n"] if lines else []
