"""A service of the command line as its own process, watched through its log."""

import asyncio
import json
import os
import signal
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.fakes.eventually import PATIENCE
from tests.repo.files import ROOT


class ServiceProcess:
    """`until("msg")` waits for a log line; `stop()` sends SIGTERM and gives the exit code."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.lines: list[str] = []
        self._unasked: list[dict[str, Any]] = []

    async def until(self, message: str) -> dict[str, Any]:
        """The next JSON log line with this message, each given once: what is logged at the same time has no order.

        AssertionError if the process ends first.
        """
        for found in self._unasked:
            if found.get("msg") == message:
                self._unasked.remove(found)
                return found
        async with asyncio.timeout(PATIENCE):
            while line := await self._line():
                found = dict(json.loads(line)) if line.startswith("{") else {}
                if found.get("msg") == message:
                    return found
                self._unasked.append(found)
        raise AssertionError(f"no {message!r} in:\n" + "\n".join(self.lines))

    def send(self, how: signal.Signals) -> None:
        self._process.send_signal(how)

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.send(how)
        return await self.ended()

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE):
            while await self._line():
                pass
            return await self._process.wait()

    async def _line(self) -> str:
        assert self._process.stderr is not None
        line = (await self._process.stderr.readline()).decode()
        if line:
            self.lines.append(line.rstrip("\n"))
        return line


@asynccontextmanager
async def running_service(*arguments: str) -> AsyncIterator[ServiceProcess]:
    """The command line with JSON logs, in a process of its own that is gone at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "jobset_gate.cli", *arguments, "--log-format", "json",
        cwd=ROOT, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        yield ServiceProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def run_once(kubeconfig: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and output of Python with these arguments, as the user of a kubeconfig: what a pod does that ends."""
    out_and_err: Any = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.STDOUT}
    env = os.environ | {"KUBECONFIG": str(kubeconfig)}
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, cwd=ROOT, env=env, **out_and_err)
    async with asyncio.timeout(PATIENCE):
        out, _ = await process.communicate()
    return process.returncode or 0, out.decode().strip()


async def until_ready(url: str) -> None:
    """Until /readyz says so: a list of a kind that was installed a moment ago may be under way."""
    async with asyncio.timeout(PATIENCE):
        while await fetch(f"{url}/readyz") != (200, "ok"):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)


async def fetch(url: str, trusting: str | None = None) -> tuple[int, str]:
    """Status and body of a GET; `trusting`: a CA in PEM."""

    def get() -> tuple[int, str]:
        context = ssl.create_default_context(cadata=trusting) if url.startswith("https:") else None
        try:
            with urllib.request.urlopen(url, context=context, timeout=PATIENCE) as answer:  # noqa: S310 - our own
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    return await asyncio.to_thread(get)
