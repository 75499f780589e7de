"""Changes of the scenarios to what controllers change meanwhile: made again in the newer version."""

from typing import Any, cast

from e2e.conflict_retry import retry_on_conflict
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Conflict
from jobset_gate.kube.resources import JOBSETS

Json = dict[str, Any]


class ConflictingClient:
    """An API server on which somebody else is quicker twice."""

    def __init__(self) -> None:
        self.version = 0
        self.kept: Json = {}

    async def get(self, *_: str) -> Json:
        return {"metadata": {"resourceVersion": self.version}, "spec": {"suspend": True}, "theirs": self.version}

    async def replace(self, _: object, body: Json) -> Json:
        if self.version < 2:
            self.version += 1
        if body["metadata"]["resourceVersion"] != self.version:
            raise Conflict(409, "the object has been modified")
        self.kept = body
        return body


async def test_it_is_made_again_in_the_version_that_was_written_meanwhile() -> None:
    busy = ConflictingClient()

    def let_go(jobset: Json) -> None:
        jobset["spec"]["suspend"] = False

    written = await retry_on_conflict(cast("Client", busy), JOBSETS, "gang", "here", let_go)
    assert written == busy.kept
    assert written["spec"] == {"suspend": False}
    assert written["theirs"] == 2
