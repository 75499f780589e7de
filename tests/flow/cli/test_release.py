"""`release` and `bypass`: gates opened by hand, for now or for good, and the Event that says who did it."""

import asyncio
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import EVENTS, JOBSETS
from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.kubelet import FakeNode
from tests.fakes.cli_process import started
from tests.fakes.cli_runner import CliShell, Terminal
from tests.fakes.eventually import PATIENCE
from tests.fakes.object_view import ObjectView
from tests.fakes.stored_gang import StoredJobSet
from tests.fakes.stored_pod_groups import StoredPodGroups
from tests.flow.environment import Environment, environment
from tests.plane.planes import Plane

Json = dict[str, Any]
SUBJECT = "jobset.jobset.x-k8s.io/train"
BY_USER = {names.REASON_RELEASED_BY_USER, names.REASON_BYPASSED_BY_USER}


async def noted(stored: StoredJobSet | Environment) -> str | None:
    """The bypass annotation."""
    found = await stored.client.get(JOBSETS, "train", stored.namespace)
    value = found["metadata"].get("annotations", {}).get(names.BYPASS)
    return None if value is None else str(value)


async def audit(stored: StoredJobSet | Environment) -> list[Json]:
    """The Events that tell who has opened the gate."""
    found = await stored.client.list(EVENTS, stored.namespace)
    return [it for it in found["items"] if it["reason"] in BY_USER]


# --- With everything running -----------------------------------------------------------------------------------------


@pytest.fixture
async def stuck(plane: Plane, namespace: str) -> AsyncIterator[Environment]:
    """The gang `train` of four, with room for three and a controller that leads."""
    async with environment(plane, namespace, nodes=(FakeNode("small", pods=3),), controller=False) as stage:
        stage.start_controller(leader_elect=True)
        await stage.apply(manifests.gang("train", jobs=2, pods=2, timeout=None))
        await stage.until_held(3)
        yield stage


async def test_release_opens_this_generation_and_the_next_one_waits_again(stuck: Environment, cli: CliShell) -> None:
    ran = await cli("release", "train", "--yes")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-1].startswith(f"{SUBJECT} released: gate opened by the annotation")
    assert await noted(stuck) is None
    await stuck.until_running(3)
    (event,) = await audit(stuck)
    assert (event["reason"], event["involvedObject"]["name"]) == (names.REASON_RELEASED_BY_USER, "train")
    assert " opens the gate of attempt 0 now, " in event["message"]

    again = await cli("release", "train", "--yes")
    assert (again.code, "unchanged: its gate is open already" in again.out) == (0, True)
    assert len(await audit(stuck)) == 1

    await stuck.suspend("train")
    await stuck.until(lambda pods: not pods)
    await stuck.suspend("train", suspended=False)
    await stuck.until_held(3)


# --- With nobody who decides -----------------------------------------------------------------------------------------


async def test_a_release_that_no_controller_sees_is_undone(alone: StoredPodGroups, cli_alone: CliShell) -> None:
    stored = StoredJobSet(alone.client, alone.namespace)
    await stored.jobset()
    ran = await cli_alone("release", "train", "--yes", "--timeout=300ms")
    assert (ran.code, ran.out) == (3, "")
    assert "warning: no controller runs" in ran.err
    assert ran.err.endswith(f"error: {SUBJECT}: no controller has opened it within 0s; its annotation is gone again\n")
    assert await noted(stored) is None
    assert [it["reason"] for it in await audit(stored)] in ([], [names.REASON_RELEASED_BY_USER])


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_release_that_is_interrupted_leaves_nothing_behind(
    stored: StoredJobSet, plane: Plane, how: signal.Signals, code: int
) -> None:
    await stored.jobset()
    async with (
        ObjectView(stored.client, JOBSETS, stored.namespace) as view,
        started(plane.kubeconfig, "release", "train", "--yes", "-n", stored.namespace) as running,
    ):
        await view.until(lambda found: any(_has_note(it) for it in found), PATIENCE)
        assert await running.interrupted(how) == code
        await view.until(lambda found: not any(_has_note(it) for it in found), PATIENCE)
    assert "Traceback" not in running.err


def _has_note(jobset: Json) -> bool:
    return names.BYPASS in (jobset["metadata"].get("annotations") or {})


async def test_a_dry_run_asks_the_server_and_changes_nothing(stored: StoredJobSet, cli: CliShell) -> None:
    await stored.jobset()
    for verb, done in (("bypass", "bypassed"), ("release", "released")):
        ran = await cli(verb, "train", "--dry-run=server")
        assert (ran.code, ran.out) == (0, f"{SUBJECT} {done} (server dry run)\n")
        ran = await cli(verb, "train", "--dry-run=client")
        assert (ran.code, ran.out) == (0, f"{SUBJECT} {done} (dry run)\n")
    assert (await noted(stored), await audit(stored)) == (None, [])


async def test_it_asks_before_it_acts(
    stored: StoredJobSet,
    cli: CliShell,
    plane: Plane,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await stored.jobset()
    for verb in ("release", "bypass"):
        ran = await cli(verb, "train")
        assert (ran.code, ran.out) == (2, "")
        assert f"the gate of JobSet {stored.namespace}/train would be opened: say --yes" in ran.err
    from jobset_gate.cli.main import main  # noqa: PLC0415 - the fixture that runs command lines sits at no terminal

    def answer(text: str) -> tuple[object, str]:
        monkeypatch.setattr("sys.stdin", Terminal(text))
        with pytest.raises(SystemExit) as ended:
            main(["bypass", "train", "-n", stored.namespace, "--kubeconfig", str(plane.kubeconfig)], "jobset-gate")
        return ended.value.code, capsys.readouterr().err

    code, asked = await asyncio.to_thread(answer, "n\n")
    assert (code, await noted(stored)) == (1, None)
    assert f"Open the gate of JobSet {stored.namespace}/train now and after every restart" in asked
    code, _ = await asyncio.to_thread(answer, "y\n")
    assert (code, await noted(stored)) == (0, "true")
    again = await cli("bypass", "train", "--yes")
    assert (again.code, again.out) == (0, f"{SUBJECT} unchanged: its gate is bypassed already\n")


# --- What cannot be opened -------------------------------------------------------------------------------------------


async def test_a_gang_that_has_timed_out_is_not_released_but_may_be_bypassed_for_its_restart(
    stored: StoredJobSet, cli: CliShell
) -> None:
    await stored.jobset()
    await stored.config_map(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, "1/2 pods started")
    ran = await cli("release", "train", "--yes")
    assert (ran.code, "it has timed out, and that stands until it restarts: 1/2 pods started" in ran.err) == (1, True)
    assert (await cli("bypass", "train", "--yes")).code == 0


async def test_a_suspended_gang_has_nothing_to_release_yet(stored: StoredJobSet, cli: CliShell) -> None:
    await stored.jobset()
    body = {"spec": {"suspend": True}}
    await stored.client.patch(JOBSETS, "train", stored.namespace, body=body, patch=PatchType.MERGE)
    ran = await cli("release", "train", "--yes")
    assert (ran.code, f"`jobset-gate bypass train -n {stored.namespace} --kubeconfig " in ran.err) == (1, True)
    assert (await noted(stored), await audit(stored)) == (None, [])


@pytest.mark.parametrize("verb", ["release", "bypass"])
async def test_what_has_no_gate_cannot_be_opened(stored: StoredJobSet, cli: CliShell, verb: str) -> None:
    ran = await cli(verb, "moon", "--yes")
    assert (ran.code, ran.err) == (1, f"error: JobSet moon not found in namespace {stored.namespace}\n")
    await stored.jobset(gated=False)  # the webhook was off
    ran = await cli(verb, "train", "--yes")
    assert (ran.code, f"error: {SUBJECT} cannot be opened: " in ran.err) == (1, True)
    assert (await noted(stored), await audit(stored)) == (None, [])
