"""The shipped barrier and the shipped stream, in real time: one that has heard closes, and so it is known (A6)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import Verdict, VerdictKind
from tests.fakes import barrier_process
from tests.fakes.barrier_process import POD, SHELLS, BarrierProcess
from tests.fakes.eventually import PATIENCE
from tests.fakes.gangs import UID, verdict, waiting_pod
from tests.fakes.gate_stream import TRAIN, ServedStream, serving, until

ENDS = {
    "release": (verdict(), 0),
    "timeout": (verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT), names.EXIT_TIMED_OUT),
}


@pytest.fixture
def held(tmp_path: Path) -> Iterator[list[BarrierProcess]]:
    """One in each shell, each of a gang of its own."""
    with ExitStack() as stack:
        made = []
        for shell in SHELLS:
            (folder := tmp_path / shell).mkdir()
            made.append(stack.enter_context(barrier_process.barrier_process(shell, folder)))
            made[-1].uid = UID
        yield made


@pytest.mark.parametrize("decided", [False, True], ids=["held before", "answered at once"])
@pytest.mark.parametrize(("taken", "code"), ENDS.values(), ids=ENDS.keys())
async def test_a_barrier_that_was_answered_is_known_to_have_received_it(
    held: list[BarrierProcess], taken: Verdict, code: int, decided: bool
) -> None:
    async def answered(one: BarrierProcess) -> None:
        async with serving(ServedStream(time.time)) as gate:
            gate.add_pod(waiting_pod(0, uid=POD))
            one.stream = f"{gate.stream.url}/v1/gangs/default/train/t0ken"
            if decided:
                gate.store_verdict(taken)
            process = one.start()
            if not decided:
                await until(lambda: gate.book.count_open("jobset") == 1)
                await gate.book.answer_requests(TRAIN, taken)
            assert await asyncio.to_thread(process.wait, PATIENCE) == code
            await until(lambda: bool(gate.outcomes))
            assert gate.outcomes == ["told"]
            assert gate.delivered == {POD}

    async with asyncio.TaskGroup() as together:
        for one in held:
            together.create_task(answered(one))
