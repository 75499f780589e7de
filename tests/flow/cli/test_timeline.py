"""`timeline`: the start of a real gang in every form, from the cluster alone; what is no longer known is named."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from jobset_gate import names
from jobset_gate.kube.resources import JOBSETS
from jobset_gate_demo.fake import manifests
from tests.fakes.cli_runner import CliShell
from tests.fakes.stored_gang import StoredJobSet
from tests.flow.environment import Environment, environment
from tests.plane.planes import Plane

Json = dict[str, Any]
SVG = "{http://www.w3.org/2000/svg}"
STEPS = ["created", "scheduled", "pulled", "started", "released", "mainPulled", "running"]
SHOWN = [it for it in STEPS if it != "mainPulled"]
DEVICES = {"limits": {"nvidia.com/gpu": "8"}}


@pytest.fixture
def shell(cli: CliShell) -> CliShell:
    return cli.command("timeline")


def gang(pods: int = 4, name: str = "train", **more: Any) -> Json:
    workers = manifests.replicated_job(
        replicas=1, parallelism=pods, containers=[manifests.container(resources=DEVICES)]
    )
    return manifests.jobset(name, replicated_jobs=[workers], config={"timeoutAfterSeconds": 300}, **more)


def within(namespace: str, made: Json) -> Json:
    return made | {"metadata": made["metadata"] | {"namespace": namespace}}


@asynccontextmanager
async def started(plane: Plane, namespace: str) -> AsyncIterator[Environment]:
    """Four pods that run, the images of three of them known from Events."""
    async with environment(plane, namespace) as stage:
        await stage.create(gang())
        pods = await stage.until_running(4)
        await stage.until_workload("train", lambda it: "GroupStarted" in json.dumps(it.get("status", {})))
        said = StoredJobSet(stage.client, namespace)
        for meta in sorted((it["metadata"] for it in pods), key=lambda it: str(it["name"]))[:3]:
            for where in (f"spec.initContainers{{{names.BARRIER_CONTAINER}}}", "spec.containers{main}"):
                await said.event("Pod", meta["name"], "Pulled", "Successfully pulled image", meta["uid"], field=where)
        yield stage


async def test_a_gang_that_runs_in_every_form(plane: Plane, namespace: str, tmp_path: Path, shell: CliShell) -> None:
    async with started(plane, namespace):
        ran = await shell("train", "-o", "json", "--price", "3.6")
        assert (ran.code, ran.err) == (0, "")
        shown = json.loads(ran.out)
        assert (shown["expectedPods"], shown["startedPods"], shown["verdict"]) == (4, 4, "AllPodsStarted")
        assert shown["opened"] >= max(pod["times"]["started"] for pod in shown["pods"])[:19]
        for pod in shown["pods"]:
            known = [pod["times"][step] for step in STEPS if step in ("created", "scheduled", "started", "released")]
            assert known == sorted(known)
            assert pod["times"]["running"] is not None
        assert [pod["unknown"] for pod in shown["pods"]] == [[], [], [], ["pulled", "mainPulled"]]
        assert [it["pending"] for it in shown["steps"]] == [0] * 7
        assert shown["skewSeconds"]["mainsComplete"] is True
        (idle,) = shown["idle"]
        assert (idle["resource"], idle["devices"]) == ("nvidia.com/gpu", 32)
        assert idle["deviceSeconds"] == 8 * sum(pod["heldSeconds"] for pod in shown["pods"])
        assert shown["cost"] == pytest.approx(idle["deviceSeconds"] / 1000)
        assert yaml.safe_load((await shell("train", "-o", "yaml", "--price", "3.6")).out)["pods"] == shown["pods"]

        lines = (await shell("jobset/train")).out.splitlines()
        assert lines[0].startswith(f"JobSet {namespace}/train: 4/4 pods started; the gate was opened ")
        head = next(number for number, line in enumerate(lines) if line.startswith("POD "))
        assert lines[head].split() == ["POD", *(it.upper() for it in SHOWN), "HELD"]
        rows = [line.split() for line in lines[head + 1 : head + 5]]
        assert [row[0] for row in rows] == [f"workers-0/{it}" for it in range(4)]
        assert [row[3] == "?" for row in rows] == [False, False, False, True]
        assert any("Events, which live an hour" in line for line in lines)
        wide = (await shell("train", "-o", "wide")).out
        assert f"{namespace}-node-0" in wide
        assert "MAIN-PULLED" in wide

        ran = await shell("train", "-o", "bars")
        assert (ran.code, ran.err) == (0, "")
        # What took less than a second does not fill its bar: the scale has a whole one.
        ends = [line.rstrip("| ") for line in ran.out.splitlines() if line.startswith("workers-0/")]
        assert [end[-1] for end in ends] == ["="] * 4, ran.out

        path = tmp_path / "train.svg"
        ran = await shell("train", "-o", "svg", "--output-file", str(path))
        assert (ran.code, ran.out) == (0, "")
        root = ET.fromstring(path.read_text())  # noqa: S314 - it is our own
        assert sum(it.get("class") == "pod" for it in root.iter(f"{SVG}g")) == 4
        assert (await shell("train", "-o", "svg")).out.startswith("<svg ")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["moon"], 1, "error: JobSet moon not found in namespace NS, and no pod group of that name either"),
        (["plain"], 1, "error: JobSet NS/plain asks for no gate: it has no groupSchedulingConfig"),
        (["train", "--price", "cheap"], 2, "error: --price cheap: give a number, or RESOURCE=NUMBER"),
        (["train", "--price", "1", "--price", "2"], 2, "the price of all devices is given twice"),
        (["train", "--output-file", "/nowhere/x"], 1, "error: /nowhere/x: No such file or directory"),
    ],
)
async def test_what_cannot_be_done_is_refused(
    stored: StoredJobSet, shell: CliShell, arguments: list[str], code: int, words: str
) -> None:
    for each in (gang(), manifests.jobset("plain")):
        await stored.client.create(JOBSETS, within(stored.namespace, each), stored.namespace)
    ran = await shell(*arguments)
    assert (ran.code, ran.out) == (code, "")
    assert words.replace("NS", stored.namespace) in ran.err
