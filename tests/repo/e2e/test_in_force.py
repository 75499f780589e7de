"""When the suite takes jobset-gate for installed: each of some gangs and members of groups is held by it."""

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from e2e import commands, gate
from e2e.cluster import E2eCluster
from jobset_gate import names

Json = dict[str, Any]


class RecordingCluster:
    """A cluster whose answer to dry runs comes out of `admit`, object by object."""

    def __init__(self, admit: Callable[[int, Json], Json]) -> None:
        self._admit, self.asked = admit, 0

    def kubectl(self, *args: str, stdin: str = "") -> str:
        if args[0] == "wait":
            return ""
        self.asked += 1
        items = json.loads(stdin)["items"]
        return json.dumps({"items": [self._admit(self.asked, one) for one in items]})


def held(_: int, one: Json) -> Json:
    """As it should be."""
    if one["kind"] == "Pod":
        return {**one, "spec": {**one["spec"], "schedulingGates": [{"name": names.POD_GROUP_GATE}]}}
    barrier = {"initContainers": [{"name": names.BARRIER_CONTAINER}], "startupPolicy": {}}
    return {**one, "spec": {**one["spec"], **barrier}}


def but_for(kind: str, until: int) -> Callable[[int, Json], Json]:
    """The last one of that kind is not held before it is asked for so often."""

    def admit(asked: int, one: Json) -> Json:
        last = one["metadata"]["name"].endswith(str(gate.IN_A_ROW - 1))
        return one if asked < until and last and one["kind"] == kind else held(asked, one)

    return admit


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "POLL_INTERVAL", 0.0)


@pytest.mark.parametrize("kind", ["JobSet", "Pod"])
def test_one_that_is_not_held_is_asked_for_again(kind: str) -> None:
    cluster = RecordingCluster(but_for(kind, until=3))
    gate.wait_in_force(cast("E2eCluster", cluster))
    assert cluster.asked == 3


def test_whoever_waits_in_vain_is_told_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "TIMEOUT", 0.05)
    with pytest.raises(commands.CommandFailed, match="probe-9"):
        gate.wait_in_force(cast("E2eCluster", RecordingCluster(but_for("Pod", until=10**9))))
