"""What is watched for a person: several informers, one word when anything is different, and what may not be read."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final, Self

from jobset_gate.cli.exits import CommandError
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import Resource
from jobset_gate.runtime.decoder import WatchProblem, WatchProblemKind
from jobset_gate.runtime.informer import Informer, WatchSource
from jobset_gate.runtime.store import ObjectChange

AnyInformer = Informer[Any, Any]

VERBS: Final = {WatchProblemKind.LIST_FAILED: "list", WatchProblemKind.WATCH_FAILED: "watch"}
"""What was tried when such a problem came."""
_ABSENT, _FORBIDDEN = "404", "403"  # a server that has no such path says no more than the number


def is_not_found(problem: WatchProblem) -> bool:
    """The server does not have this kind."""
    return problem.kind in VERBS and problem.detail.startswith(_ABSENT)


def is_forbidden(problem: WatchProblem) -> bool:
    """Whoever asks may not."""
    return problem.kind in VERBS and problem.detail.startswith(_FORBIDDEN)


class ResourceWatch:
    """`async with` it. `changed` is set whenever something is different; several of these may share one."""

    def __init__(self, changed: asyncio.Event | None = None) -> None:
        self.changed = changed or asyncio.Event()
        self.problem = ""
        """Why nothing has been heard lately; "" while all is well."""
        self.failed = ""
        """Why there is nothing to see, and never will be; for people."""
        self._informers: list[AnyInformer] = []
        self._given_up: set[int] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        for informer in self._informers:
            synced = asyncio.create_task(informer.wait_synced())
            synced.add_done_callback(lambda _: self.mark_changed())
            self._tasks += [asyncio.create_task(informer.run()), synced]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def mark_changed(self) -> None:
        """Something is different, and so somebody has answered."""
        self.problem = ""
        self.changed.set()

    async def ready(self) -> None:
        """Once everything is there that may be read. Raises Failed where there is nothing to see."""
        while not all(it.has_synced or number in self._given_up for number, it in enumerate(self._informers)):
            await self.change()

    async def change(self) -> None:
        """Until anything is different. Raises Failed where there is nothing to see any more."""
        self.check()
        await self.changed.wait()
        self.changed.clear()
        self.check()

    def check(self) -> None:
        """Raises Failed where there is nothing to see."""
        if self.failed:
            raise CommandError(self.failed)

    def now(self) -> float:
        """The time, in seconds since the epoch."""
        return time.time()

    def watch(
        self,
        client: Client,
        resource: Resource,
        shape: type[Any],
        convert: Callable[[Any], Any],
        namespace: str | None,
        *,
        labels: str = "",
        fields: str = "",
        handler: Callable[[ObjectChange[Any]], None] = lambda _: None,
    ) -> AnyInformer:
        """One informer more; `handler` hears of each change first."""
        number = len(self._informers)

        def changed(change: ObjectChange[Any]) -> None:
            handler(change)
            self.mark_changed()

        informer: AnyInformer = Informer(
            client,
            WatchSource(
                resource, shape, convert, changed, namespace=namespace, label_selector=labels, field_selector=fields
            ),
            on_problem=lambda problem: self._on_problem(number, problem),
        )
        self._informers.append(informer)
        return informer

    def lost(self, number: int, problem: WatchProblem) -> bool:
        """Whether that informer is done without: what it would tell may not be read, or is not there."""
        raise NotImplementedError

    def _on_problem(self, number: int, problem: WatchProblem) -> None:
        if self.lost(number, problem):
            if number not in self._given_up:
                self._given_up.add(number)
                self.changed.set()
        elif problem.kind in VERBS or problem.kind is WatchProblemKind.SILENT:
            self.problem = f"the API server does not answer, and is asked again: {problem.detail}"
            self.changed.set()
