"""What both demos share: how they look, their result and exit code, and a cluster with jobset-gate in this process."""

import asyncio
import os
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TextIO

import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text
from typing_extensions import override

from controllers.manager import Manager, ManagerOptions
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.logs import configure
from jobset_gate.cli.options import LogFormat, LogLevel
from jobset_gate.cli.serve import registration
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import Resource
from jobset_gate.runtime.informer import Informer, WatchSource
from jobset_gate.runtime.store import ObjectChange, W
from jobset_gate.settings import Barrier, Settings
from jobset_gate_demo.fake.cluster import Actors
from jobset_gate_demo.fake.tasks import BackgroundTasks
from webhook.certs.serving import self_signed
from webhook.server import serve

# --- Display --------------------------------------------------------------------------------------------------------

Json = dict[str, Any]
NAMESPACE: Final = "default"
REFRESH_SECONDS: Final = 0.125
LINE_SECONDS: Final = 1.0
"""At least so long between two plain lines of progress."""
_NARROW: Final = 60
"""Columns below which the counts get shorter names."""


@dataclass(frozen=True, slots=True)
class ProgressRow:
    """One bar: done, expected, and the same in numbers."""

    name: str
    done: int
    expected: int
    counts: str


class Display:
    """Plain lines: no colour, no cursor movements, one line of progress a second if there is any."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def say(self, text: str = "") -> None:
        """Print a line, which stays."""
        self._stream.write(text + "\n")
        self._stream.flush()

    @asynccontextmanager
    async def following(self, rows: Callable[[], Sequence[ProgressRow]]) -> AsyncIterator[None]:
        """Shows the rows for as long as the block runs, and once more at its end."""
        began, shown = asyncio.get_running_loop().time(), ""

        def show() -> None:
            nonlocal shown
            text = "; ".join(f"{it.name} {it.counts}" for it in rows())
            if text and text != shown:
                shown = text
                self.say(f"  {asyncio.get_running_loop().time() - began:5.1f}s  {text}")

        async with _ticking(show, LINE_SECONDS):
            yield


class BarDisplay(Display):
    """A bar for each row, drawn by rich, which respects NO_COLOR."""

    def __init__(self, stream: TextIO, speed: float = 1.0) -> None:
        super().__init__(stream)
        self._every = REFRESH_SECONDS * speed
        self._console = Console(file=stream, force_terminal=True, highlight=False, soft_wrap=True)

    @override
    def say(self, text: str = "") -> None:
        """Broken between words; what follows a break is indented as the line is."""
        indent = text[: len(text) - len(text.lstrip())]
        lines = textwrap.wrap(
            text, self._console.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        self._console.print(Text("\n".join(lines)))

    @override
    @asynccontextmanager
    async def following(self, rows: Callable[[], Sequence[ProgressRow]]) -> AsyncIterator[None]:
        narrow = self._console.width < _NARROW
        bars = Progress(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=None if narrow else 40),
            TextColumn("{task.fields[counts]}", table_column=None),
            console=self._console,
            auto_refresh=False,
            expand=narrow,
        )
        tasks: dict[str, TaskID] = {}

        def show() -> None:
            for row in rows():
                if row.name not in tasks:
                    tasks[row.name] = bars.add_task(row.name, total=row.expected, counts="")
                counts = f"{row.done}/{row.expected}" if narrow else row.counts
                bars.update(tasks[row.name], completed=row.done, counts=counts)
            bars.refresh()

        with bars:
            async with _ticking(show, self._every):
                yield


async def play(story: Callable[[Display], Awaitable[Sequence[str]]], *, speed: float = 1.0) -> ExitCode:
    """`story` returns what went wrong; `speed`: seconds of the loop's time in one of the reader's."""
    configure(LogFormat.AUTO, LogLevel.ERROR)
    stream = sys.stdout
    terminal = stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    display: Display = BarDisplay(stream, speed) if terminal else Display(stream)
    try:
        mistakes = await story(display)
    except asyncio.CancelledError:
        display.say("interrupted")
        raise
    for mistake in mistakes:
        display.say(f"WRONG: {mistake}")
    return ExitCode.ERROR if mistakes else ExitCode.OK


@asynccontextmanager
async def _ticking(show: Callable[[], None], every: float) -> AsyncIterator[None]:
    async def tick() -> None:
        while True:
            show()
            await asyncio.sleep(every)

    task = asyncio.create_task(tick(), name="screen")
    try:
        yield
        show()
    finally:
        task.cancel()
        await asyncio.wait([task])  # not `await task`: its cancellation would look like our own
        if not task.cancelled():
            task.result()


# --- Cluster --------------------------------------------------------------------------------------------------------


class Watcher:
    """What the cluster's objects show, live once it has started."""

    def __init__(self, client: Client) -> None:
        self._client, self._changed = client, asyncio.Event()
        self._informers: list[Informer[Any, Any]] = []

    def watch(
        self, resource: Resource, wire: type[W], on_object: Callable[[W], None] = lambda _: None, labels: str = ""
    ) -> Mapping[tuple[str, str], W]:
        """The objects by namespace and name; `on_object` gets every version of each."""

        def handle(change: ObjectChange[W]) -> None:
            if change.new is not None:
                on_object(change.new)
            self._changed.set()

        informer = Informer(self._client, WatchSource(resource, wire, lambda seen: seen, handle, NAMESPACE, labels))
        self._informers.append(informer)
        return informer.cache

    async def start(self, tasks: BackgroundTasks) -> None:
        for informer in self._informers:
            tasks.start("watch", informer.run())
            await tasks.until(informer.wait_synced())

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Whether `holds` became true within so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class DemoEnvironment:
    """`tasks` run until the environment is torn down."""

    cluster: Actors
    client: Client
    tasks: BackgroundTasks
    stack: AsyncExitStack

    async def start_jobset_gate(
        self, options: ManagerOptions, settings: Settings, ready: Callable[[Manager], Awaitable[object]]
    ) -> str:
        """Controller and webhook, registered; the webhook's URL. Errors: the controller's, if it ends before that."""
        manager = Manager(self.cluster.access, options)
        self.tasks.start("controller", manager.run())
        await self.tasks.until(ready(manager))
        if options.stream_port is not None:
            settings = msgspec.structs.replace(settings, barrier=Barrier(stream_url=manager.stream_url))
        bundle = self_signed()
        server = await serve(settings, tls=bundle.serving)
        self.stack.push_async_callback(server.stop)
        await registration.register(self.client, settings, url=server.url, ca_bundle=bundle.ca_bundle)
        return server.url

    def stop_cluster_first(self) -> None:
        """At the end the played controllers stop before all that was started so far: a crowd of pods would delay it."""
        self.stack.push_async_callback(self.cluster.stop_controllers)


@asynccontextmanager
async def environment(cluster: AbstractAsyncContextManager[Actors]) -> AsyncIterator[DemoEnvironment]:
    """Torn down at the end whatever happens: no port stays open."""
    async with AsyncExitStack() as stack:
        actors = await stack.enter_async_context(cluster)
        client = await stack.enter_async_context(Client(actors.access, user_agent="demo"))
        tasks = BackgroundTasks()
        stack.push_async_callback(tasks.stop)
        yield DemoEnvironment(actors, client, tasks, stack)
