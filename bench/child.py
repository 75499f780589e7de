"""A child process of a benchmark: commands and answers are lines of JSON; it ends with the block or its parent."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from bench.children.command_loop import LONGEST_LINE

Json = dict[str, Any]

ROOT = Path(__file__).parents[1]
TIMEOUT = 600.0
"""Seconds that a child may take for an answer."""
EXIT_TIMEOUT = 10.0
"""Seconds that it may take to exit before it is killed."""


class ChildFailed(Exception):
    """A command failed in the child; the message is its traceback."""


class Child:
    """`async with Child("apiserver") as child`: runs the module of that name in bench/children, or another package."""

    def __init__(self, module: str, package: str = "bench.children") -> None:
        self._module, self._package = module, package
        self._process: Process | None = None

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            f"{self._package}.{self._module}",
            stdin=PIPE,
            stdout=PIPE,
            cwd=ROOT,
            limit=LONGEST_LINE,
            start_new_session=True,  # Ctrl-C is for the parent, which then ends its children in order
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._running
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), EXIT_TIMEOUT)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def call(self, do: str, *, timeout: float = TIMEOUT, **what: Any) -> Json:
        """Its answer. Raises ChildFailed, TimeoutError. One question at a time."""
        process = self._running
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode({"do": do, **what}) + b"\n")
        await process.stdin.drain()
        line = await asyncio.wait_for(process.stdout.readline(), timeout)
        if not line:
            raise ChildFailed(f"{self._module} ended during {do}")
        answer: Json = msgspec.json.decode(line)
        if "error" in answer:
            raise ChildFailed(f"{self._module}, {do}:\n{answer['error']}")
        return answer

    @property
    def exit_code(self) -> int | None:
        """How it has ended; None while it runs."""
        return self._running.returncode

    @property
    def _running(self) -> Process:
        if self._process is None:
            raise RuntimeError("the child has not been started")
        return self._process
