"""What a standby is told is not kept: it looks at what is there when it takes over."""

from jobset_gate.runtime.workqueue import LeaderGatedQueue, WorkQueue


async def test_keys_of_a_standby_are_dropped_and_those_that_are_left_are_worked_on_when_it_leads() -> None:
    queue = WorkQueue[str]()
    duty = LeaderGatedQueue(queue)
    duty.add("gone")
    duty.add_after("gone later", 1.0)
    assert (queue.depth, queue.delayed) == (0, 0)

    duty.start(lambda: ["there", "waits"])
    duty.add("new")
    duty.add_after("later", 60.0)
    assert [await queue.get() for _ in range(queue.depth)] == ["there", "waits", "new"]
    assert queue.delayed == 1
    queue.shutdown()
