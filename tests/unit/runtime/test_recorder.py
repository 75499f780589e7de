"""Events: each fact once, with a message that is one line and as long as the API accepts."""

from jobset_gate.runtime.recorder import LONGEST_MESSAGE, EventRecorder, ObjectReference
from tests.fakes.memory_api import Api
from tests.fakes.memory_client import MemoryClient

ABOUT = ObjectReference("jobset.x-k8s.io/v1alpha2", "JobSet", "train", "default", "u-1")


async def test_a_message_is_one_line_that_the_api_takes() -> None:
    memory = MemoryClient(Api())
    for message, shown in (
        ("timed out\x1b[2J\n: \u202egpj\x9b", "timed out^[[2J : \\u202egpj\\x9b"),
        ("x" * 5000, "x" * (LONGEST_MESSAGE - 3) + "..."),
    ):
        await EventRecorder(memory.client, "c").record(ABOUT, "X", message, fact=message[:1])
        assert memory.calls[-1].body["message"] == shown
