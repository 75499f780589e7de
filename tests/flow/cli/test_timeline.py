"""`timeline`: the start of a real gang in every form, from the cluster alone; what is no longer known is named."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from jobset_gate import names
from jobset_gate_demo.fake import manifests
from tests.fakes.cli_runner import CliShell
from tests.fakes.stored_gang import StoredJobSet
from tests.flow.environment import Environment, environment
from tests.plane.planes import Plane

SVG = "{http://www.w3.org/2000/svg}"
STEPS = ["created", "scheduled", "pulled", "started", "released", "mainPulled", "running"]
SHOWN = [it for it in STEPS if it != "mainPulled"]


@pytest.fixture
async def stage(plane: Plane, namespace: str) -> AsyncIterator[Environment]:
    """Four pods that run, the images of three of them known from Events."""
    containers = [manifests.container(resources={"limits": {"nvidia.com/gpu": "8"}})]
    workers = manifests.replicated_job(parallelism=4, containers=containers)
    async with environment(plane, namespace) as stage:
        await stage.create(manifests.jobset("train", replicated_jobs=[workers], config={"timeoutAfterSeconds": 300}))
        pods = await stage.until_running(4)
        await stage.until_condition("train", names.REASON_STARTED)
        said = StoredJobSet(stage.client, namespace)
        for meta in sorted((it["metadata"] for it in pods), key=lambda it: str(it["name"]))[:3]:
            for where in (f"spec.initContainers{{{names.BARRIER_CONTAINER}}}", "spec.containers{main}"):
                await said.event("Pod", meta["name"], "Pulled", "Successfully pulled image", meta["uid"], field=where)
        yield stage


async def test_a_gang_that_runs_in_every_form(stage: Environment, tmp_path: Path, cli: CliShell) -> None:
    ran = await cli("timeline", "train", "-o", "json", "--price", "3.6")
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
    assert yaml.safe_load((await cli("timeline", "train", "-o", "yaml")).out)["pods"] == shown["pods"]

    lines = (await cli("timeline", "jobset/train")).out.splitlines()
    assert lines[0].startswith(f"JobSet {stage.namespace}/train: 4/4 pods started; the gate was opened ")
    head = next(number for number, line in enumerate(lines) if line.startswith("POD "))
    assert lines[head].split() == ["POD", *(it.upper() for it in SHOWN), "HELD"]
    rows = [line.split() for line in lines[head + 1 : head + 5]]
    assert [row[0] for row in rows] == [f"workers-0/{it}" for it in range(4)]
    assert [row[3] == "?" for row in rows] == [False, False, False, True]
    assert any("Events, which live an hour" in line for line in lines)
    wide = (await cli("timeline", "train", "-o", "wide")).out
    assert f"{stage.namespace}-node-0" in wide
    assert "MAIN-PULLED" in wide

    ran = await cli("timeline", "train", "-o", "bars")
    assert (ran.code, ran.err) == (0, "")
    # What took less than a second does not fill its bar: the scale has a whole one.
    ends = [line.rstrip("| ") for line in ran.out.splitlines() if line.startswith("workers-0/")]
    assert [end[-1] for end in ends] == ["="] * 4, ran.out

    path = tmp_path / "train.svg"
    ran = await cli("timeline", "train", "-o", "svg", "--output-file", str(path))
    assert (ran.code, ran.out) == (0, "")
    root = ET.fromstring(path.read_text())  # noqa: S314 - it is our own
    assert sum(it.get("class") == "pod" for it in root.iter(f"{SVG}g")) == 4
    assert (await cli("timeline", "train", "-o", "svg")).out.startswith("<svg ")
    ran = await cli("timeline", "train", "--output-file", "/nowhere/x")
    assert (ran.code, "error: /nowhere/x: No such file or directory" in ran.err) == (1, True)
