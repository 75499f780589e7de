"""Events: each fact once, with a message that is one line and as long as the API accepts."""

from typing import Any, cast

from jobset_gate.kube.client import Client
from jobset_gate.runtime.recorder import LONGEST_MESSAGE, EventRecorder, ObjectReference

ABOUT = ObjectReference("jobset.x-k8s.io/v1alpha2", "JobSet", "train", "default", "u-1")


class Writes:
    """Takes whatever is created."""

    def __init__(self) -> None:
        self.message = ""

    async def create(self, _: object, body: dict[str, Any], __: str, **___: object) -> None:
        self.message = body["message"]


async def test_a_message_is_one_line_that_the_api_takes() -> None:
    client = Writes()
    for message, shown in (
        ("timed out\x1b[2J\n: \u202egpj\x9b", "timed out^[[2J : \\u202egpj\\x9b"),
        ("x" * 5000, "x" * (LONGEST_MESSAGE - 3) + "..."),
    ):
        await EventRecorder(cast("Client", client), "c").record(ABOUT, "X", message, fact="x")
        assert client.message == shown
