"""`demo --serve` as a process: the commands and the status page work against it, and at its end nothing stays."""

# ruff: noqa: ASYNC240 - small files of the test's own.

import re
import signal
import socket
from pathlib import Path

import aiohttp
import pytest

from jobset_gate.cli.exits import ExitCode
from jobset_gate_demo.fake.apiserver.writes import TOKEN
from tests.fakes.cli_process import started
from tests.fakes.cli_runner import RunCli
from tests.fakes.eventually import eventually

SERVE = ("demo", "--serve")
LAST = "Ctrl-C ends everything"
STATES = {
    "completed": "Completed",
    "released": "Released",
    "suspended": "Suspended",
    "timed-out": "TimedOut",
    "waiting": "Waiting",
}


async def asked(kubeconfig: Path, *arguments: str) -> str:
    """What a command says in another terminal."""
    async with started(kubeconfig, *arguments) as process:
        said = await process.rest()
        assert await process.ended() == 0, process.err
    return said


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match, text
    return match[1]


async def test_the_commands_work_against_it_until_a_signal_ends_it_and_nothing_stays(tmp_path: Path) -> None:
    async with started(None, *SERVE, environment={"TMPDIR": str(tmp_path)}) as process:
        printed = await process.until(LAST)
        kubeconfig = Path(found(r"export KUBECONFIG=(\S+)", printed))
        page = found(r"(http://127\.0\.0\.1:\d+) \(token: demo\)", printed)
        assert kubeconfig.is_relative_to(tmp_path)
        assert kubeconfig.stat().st_mode & 0o777 == 0o600
        await signs_in(page)
        async with started(kubeconfig, "get", "gangs", "--watch") as gangs:
            states: dict[str, str] = {}
            while states != STATES:
                row = (await gangs.line()).split()
                states |= {row[2]: row[3]} if row[0] == "JobSet" else {}
        why = await asked(kubeconfig, "why", "waiting")
        assert "2 pods: Unscheduled: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu." in why
        assert "1 pod: ImagePull: fetch-data: ImagePullBackOff" in why
        assert "12/12 pods started" in await asked(kubeconfig, "timeline", "released")
        assert await process.interrupted(signal.SIGTERM) == 0
        assert await process.rest() == ""
        assert process.err == ""
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(page.rpartition(":")[2])))


async def signs_in(page: str) -> None:
    """The page lets in who has the printed token, and shows the gangs."""
    async with aiohttp.ClientSession(page, cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        for token, status in (("another", 401), (TOKEN, 303)):
            form = {"token": token, "next": "/"}
            async with browser.post("/login", data=form, headers={"Origin": page}, allow_redirects=False) as answer:
                assert answer.status == status

        async def shows_all() -> bool:
            async with browser.get("/") as answer:
                shown = await answer.text()
            return all(f">{name}<" in shown for name in STATES)

        await eventually(shows_all)  # they are there already, and its informers see them a moment later


def test_an_option_without_a_meaning_is_refused(run: RunCli) -> None:
    refused = run(*SERVE, "--pods", "4")
    assert refused.code == ExitCode.USAGE
    assert "--serve has gangs of its own, so --pods has no meaning with it" in refused.err
