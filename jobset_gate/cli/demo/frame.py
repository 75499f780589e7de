"""What both demos share: a story on the display, then its mistakes, the result as JSON, and the exit code."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import Any

from jobset_gate.cli.demo.display import Display, display_for
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.logs import configure
from jobset_gate.cli.options import LogFormat, LogLevel

Story = Callable[[Display], Awaitable[tuple[Any, Sequence[str]]]]
"""Plays it; returns the result, a dataclass, and what went otherwise than it should."""


async def play(story: Story, *, as_json: bool, speed: float = 1.0) -> ExitCode:
    """With JSON the story goes to standard error and one line with the result to standard output."""
    configure(LogFormat.AUTO, LogLevel.ERROR)
    display = display_for(sys.stderr if as_json else sys.stdout, speed)
    try:
        result, mistakes = await story(display)
    except asyncio.CancelledError:
        display.say("interrupted")
        raise
    for mistake in mistakes:
        display.say(f"WRONG: {mistake}")
    if as_json:
        print(json.dumps(asdict(result)), flush=True)
    return ExitCode.ERROR if mistakes else ExitCode.OK
