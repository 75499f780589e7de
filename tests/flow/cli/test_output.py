"""What tenants write steers nobody's terminal: not through a pod's status, an Event, a verdict or a condition."""

import io
import json
import re
import time

import pytest
import structlog
import yaml

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.cli import logs
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.options import LogFormat
from jobset_gate.cli.printers import output
from jobset_gate.cli.printers.output import TerminalStyle
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import CONFIGMAPS
from tests.fakes.cli_process import on_terminal
from tests.fakes.cli_runner import CliShell
from tests.fakes.podgroups.snapshots import timestamp
from tests.fakes.stored_gang import NODE, StoredJobSet, container, workers
from tests.plane.planes import Plane
from tests.repo.files import ROOT
from tests.unit.objects.test_terminal_text import BIDIRECTIONAL, harmful

EVIL = "no\x1b[8m \x1b]52;c;eA==\x07data\x9b31m\x7f\u202egpj\u2066."
"""Hides what follows, writes the clipboard, colours by a C1 control, turns the text around."""
SHOWN = "no^[[8m ^[]52;c;eA==^Gdata\\x9b31m^?\\u202egpj\\u2066."
COMMANDS = [
    ("why", "train"),
    ("describe", "train"),
    ("get", "gangs", "-o", "wide"),
    ("get", "jobsets", "-A", "-o", "wide"),
    ("timeline", "train", "-o", "wide"),
    ("timeline", "train", "-o", "bars"),
]
DOCUMENTS = [("why", "train"), ("get", "gangs"), ("get", "jobsets"), ("timeline", "train")]


async def hostile(stored: StoredJobSet) -> None:
    """All that a tenant may write about his own gang."""
    await stored.jobset(workers(job={"parallelism": 4, "completions": 4}))
    job = await stored.job()
    await stored.started(0, job)
    await stored.unscheduled(1, job, EVIL)
    last = {"terminated": {"exitCode": 1, "reason": "Error", "message": EVIL, "finishedAt": timestamp(time.time())}}
    status = container("fetch", {"waiting": {"reason": "CrashLoopBackOff"}}) | {"lastState": last}
    await stored.pod(2, job, node=NODE, initContainerStatuses=[status])
    await stored.event("Job", "train-workers-0", "FailedCreate", EVIL)
    await stored.event("JobSet", "train", "Odd", EVIL, stored.uid)
    await stored.condition(names.REASON_WAITING, EVIL)


async def verdict(stored: StoredJobSet) -> None:
    """One that the tenant has written himself."""
    await stored.config_map(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, "x")
    text = f"timeout {stored.uid} 0 0 TimedOut\n{EVIL}\n"
    name = names.config_map_name("train")
    body = {"data": {names.KEY_VERDICT: text}}
    await stored.client.patch(CONFIGMAPS, name, stored.namespace, body=body, patch=PatchType.MERGE)


async def test_no_command_prints_a_control_that_a_tenant_wrote(stored: StoredJobSet, cli: CliShell) -> None:
    await hostile(stored)

    async def ran(*words: str) -> str:
        shown = await cli(*words)
        assert shown.code == 0
        assert not harmful(shown.out + shown.err, but="\n")
        return shown.out

    shown = {words: await ran(*words) for words in COMMANDS}
    for words in (("why", "train"), ("describe", "train"), ("get", "gangs", "-o", "wide")):
        assert SHOWN in shown[words], words  # it can still be seen what was written
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        found = [read(await ran(*words, "-o", form)) for words in DOCUMENTS]
        assert any(SHOWN in it["message"] for it in found[0]["missing"]), form
    await verdict(stored)
    for words in (("why", "train"), ("describe", "train"), ("get", "jobsets", "-o", "wide")):
        assert SHOWN in await ran(*words)
    failed = await cli("watch", "train")
    assert (failed.code, failed.err.count(SHOWN)) == (ExitCode.ERROR, 1)
    assert not harmful(failed.out + failed.err, but="\n")


async def test_on_a_terminal_with_colours_there_are_ours_alone(
    stored: StoredJobSet, plane: Plane, namespace: str
) -> None:
    await hostile(stored)
    for command in ("why", "describe", "watch"):
        async with on_terminal(plane.kubeconfig, command, "train", "-n", namespace, size=(60, 200)) as terminal:
            await terminal.until("CrashLoop", "gpj")
            drawn = terminal.drawn
        assert "\x1b[33m" in drawn
        assert not re.search("\x1b\\]|\x1b\\[8m|[\x07\x7f-\x9f]", drawn)
        assert not set(BIDIRECTIONAL) & set(drawn)


def test_colours_of_others_are_none_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    look = TerminalStyle(colour=True)
    output.out(look.paint("bad", "Tim\x1b[0med\x1b[2J") + "\x1b[1A\x9b\n", look)
    output.out("\x1b[31mred\n")
    output.err("a\x1b[2J\nb\u2066")
    out, err = capsys.readouterr()
    assert out == "\x1b[31mTim^[[0med^[[2J\x1b[0m^[[1A\\x9b\n^[[31mred\n"
    assert err == "a^[[2J\nb\\u2066\n"


def test_a_log_line_holds_no_control_that_a_tenant_wrote() -> None:
    shown = []
    for form in (LogFormat.CONSOLE, LogFormat.JSON):
        stream = io.StringIO()
        logs.configure(form, stream=stream)
        structlog.get_logger("x").info("shown", message=EVIL, exc_info=ValueError(EVIL))
        assert not harmful(stream.getvalue(), but="\n")
        shown.append(stream.getvalue())
    assert (SHOWN in shown[0], json.loads(shown[1])["message"]) == (True, EVIL)


def test_the_command_line_prints_in_one_place_only() -> None:
    """What is printed elsewhere passes no wall."""
    allowed = {"printers/output.py", "app.py", "commands/completion.py"}  # what those print is ours alone
    printing = re.compile(r"\bprint\(|typer\.echo\(|sys\.std(out|err)\.write\(")
    files = (ROOT / "jobset_gate/cli").rglob("*.py")
    found = {it.relative_to(ROOT / "jobset_gate/cli").as_posix() for it in files if printing.search(it.read_text())}
    assert {it for it in found - allowed if not it.startswith("demo/")} == set()
