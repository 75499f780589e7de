"""Children of benchmarks answer, say what went wrong, and never outlive the benchmark."""

import asyncio

import pytest

from bench.child import Child, ChildFailed


async def test_a_child_answers_and_ends_well_with_its_block() -> None:
    async with Child("apiserver") as child:
        assert (await child.call("usage"))["rss"] > 1
        assert child.exit_code is None
    assert child.exit_code == 0


async def test_what_a_child_could_not_do_is_raised_in_its_own_words() -> None:
    async with Child("apiserver") as child:
        with pytest.raises(ChildFailed, match="KeyError: 'nobody'"):
            await child.call("drop", gang="nobody")
        assert await child.call("usage"), "it goes on"


async def test_a_child_that_waits_for_ever_ends_when_its_parent_lets_go_of_it() -> None:
    """Not killed: a benchmark that was killed could not do that either."""
    async with Child("watcher") as child:
        await child.call("counts")
        waiting = asyncio.create_task(child.call("events", count=1))
        await asyncio.sleep(0)
    assert child.exit_code == 0
    with pytest.raises(ChildFailed, match="ended while"):
        await waiting
