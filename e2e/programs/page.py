"""docs/proofs.md, written by each complete run of `make e2e-programs`: what ran, on what, with which outcome."""

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bench import machine
from e2e.environment import Environment
from e2e.programs import kueue, real_images
from e2e.programs.program import PROGRAMS

PAGE: Final = Path(__file__).parents[2] / "docs" / "proofs.md"
Json = dict[str, Any]

HEAD: Final = """# Real programs with a late member

What happens to JAX, PyTorch and Open MPI when one pod of the JobSet gets its node late, with the gate and without it?
This page is written by the command that tries it, on the kubelets of a kind cluster:

```
{command}
```

{day}: {cores} cores of {processor}, {system}. Kubelet {kubelet}, {runtime}, two worker nodes. {jobset}. It took
{minutes} minutes.

## What is tried

The JobSets are those of [examples](../examples/README.md): commands, programs, addresses, ports and volumes are as they
stand there. Changed are the image (`python` and `mpi` below, without GPUs), the resources (one of a resource that the
scenario gives to nodes), and `failurePolicy`, which is left out, so that the first failure is the end.

Each program runs twice at the same time, in two namespaces: with its `groupSchedulingConfig`, and without. In both one
member finds no node. When the JobSet without the gate has failed, the late member of the other one gets its node. So
both have waited equally long for it; the second column of seconds counts from the first barrier.

## What was found
"""

IMAGES: Final = """## Versions

* `python`: {python}; {wheels}.
* `mpi`: {mpi}.

All of it comes from Debian and PyPI; the day is that of the version, as its package says it. PyTorch is Debian's, since
PyPI has it for this processor only together with CUDA. Debian builds it without libuv, which torchrun's store wants by
default: that argument is changed in torchrun's rendezvous and in that of its program. JAX and PyTorch talk by gloo.
"""

WEAK: Final = """## What is weak here

* One machine: all nodes share its {cores} cores, its clock and its network. Times in whole seconds are those of the
  kubelet.
* No GPUs and no NCCL. What is shown is the rendezvous, which each program holds before it touches a GPU.
* Each program ran once. The times say which limit was met, not how fast anything is: for that see
  [release.md](release.md).
* A program's own limit can be raised. Its members then hold their nodes and devices for that time, too, and nobody says
  who is missing.
"""

STAND_IN: Final = "JobSet is played by the stand-in of this repository"


def write(environment: Environment, command: str, versions: Json, seconds: float) -> None:
    """From the files that the scenarios have left in the folder of reports."""
    found = [_read(environment, program.title) for program in PROGRAMS]
    facts = machine.facts()
    parts = [
        HEAD.format(
            command=command,
            day=facts["time"][:10],
            cores=facts["cores"],
            processor=facts["processor"],
            system=facts["system"],
            minutes=f"{seconds / 60:.0f}",
            jobset=STAND_IN if environment.stand_in else f"The real JobSet: `{versions['jobset']}`",
            kubelet=versions["kubelet"],
            runtime=versions["runtime"],
        ),
        *_table(found),
        *(line for one in found for line in _program(one)),
        *(_kueue(_read(environment, "Kueue"), versions) if kueue.MANIFESTS else ()),
        IMAGES.format(
            python=real_images.versions(real_images.PYTHON),
            wheels=real_images.wheels(),
            mpi=real_images.versions(real_images.MPI),
        ),
        WEAK.format(cores=facts["cores"]),
    ]
    PAGE.write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")
    print(f"programs: written to {PAGE.relative_to(PAGE.parents[1])}")


def _read(environment: Environment, title: str) -> Json:
    return dict(json.loads((Path(environment.reports) / f"{title}.json").read_text()))


def _table(found: list[Json]) -> Iterator[str]:
    yield "| | pods | without the gate | the last barrier started after | with the gate |"
    yield "|---|---:|---|---:|---|"
    for it in found:
        lost = f"failed {it['gave_up']:.0f} s after its start, exit code {it['code']}"
        done = f"all started within {it['spread']:.0f} s, met, and ended after {it['took']:.0f} s"
        yield f"| {it['title']} | {it['pods']} | {lost} | {it['late']:.0f} s | {done} |"
    yield ""


def _program(it: Json) -> Iterator[str]:
    yield f"### {it['title']}\n"
    yield f"[{it['example']}](../examples/{it['example']}). The limit: {it['limit']}.\n"
    yield "Without the gate, lines of the logs of its programs:\n"
    yield from _block(it["missed"])
    yield "Meanwhile, with the gate, the condition `GroupStarted` of the JobSet:\n"
    yield from _block([it["waiting"]])
    yield "And when the last member had started:\n"
    yield from _block(it["met"])


def _kueue(it: Json, versions: Json) -> Iterator[str]:
    yield "### Preempted by Kueue\n"
    yield (
        f"The real Kueue: `{versions['kueue']}`. [kueue.yaml](../examples/kueue.yaml), PyTorch with gloo, runs twice:"
        " as `queued`, and with a higher priority as `urgent`. The queue's quota is one of them.\n"
    )
    yield from _block(it["course"])
    yield "Kueue's Workload says:\n"
    yield from _block([it["preempted"]])
    yield "And the programs:\n"
    yield from _block(it["met"])


def _block(lines: list[str]) -> Iterator[str]:
    """Long ones go on in the next line."""
    wrapped = (textwrap.fill(line, 118, subsequent_indent="  ", break_on_hyphens=False) for line in lines)
    yield "\n".join(["```", *wrapped, "```", ""])
