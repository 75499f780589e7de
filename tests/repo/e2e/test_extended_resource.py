"""Seats of scenarios: a node never gets more of them while its kubelet may still know the old number."""

from typing import Any, cast

import pytest

from e2e.extended_resource import ExtendedResource
from jobset_gate.kube.client import Client

NODE, RESOURCE = "a-node", "seats/owner"


class PatchLog:
    """An API server that takes notes of the seats that nodes are given."""

    def __init__(self) -> None:
        self.said: list[dict[str, str | None]] = []

    async def patch(self, *_: Any, body: dict[str, Any], **__: Any) -> None:
        assert body["status"]["capacity"] == body["status"]["allocatable"]
        self.said.append(body["status"]["allocatable"])


@pytest.fixture
def ledger() -> PatchLog:
    return PatchLog()


@pytest.fixture
def seats(ledger: PatchLog, monkeypatch: pytest.MonkeyPatch) -> ExtendedResource:
    """Whose kubelet refuses what it knows to be missing when it is asked for the second time."""
    answers = iter([False, True] * 9)

    async def refused(_: ExtendedResource, __: str, ___: str) -> bool:
        return next(answers)

    monkeypatch.setattr(ExtendedResource, "_kubelet_rejects", refused)
    return ExtendedResource(cast("Client", ledger), RESOURCE, "owner", "image")


async def test_the_first_seats_and_fewer_ones_are_put_at_once(seats: ExtendedResource, ledger: PatchLog) -> None:
    await seats.set_capacity(NODE, 3)
    await seats.set_capacity(NODE, 2)
    assert ledger.said == [{RESOURCE: "3"}, {RESOURCE: "2"}]


async def test_before_there_are_more_there_are_none(seats: ExtendedResource, ledger: PatchLog) -> None:
    await seats.set_capacity(NODE, 3)
    await seats.set_capacity(NODE, 4)
    first, between, last = ledger.said
    assert (first, last) == ({RESOURCE: "3"}, {RESOURCE: "4"})
    marker = (between.keys() - {RESOURCE}).pop()
    assert between == {RESOURCE: None, marker: "0"}


async def test_nothing_is_left_of_them(seats: ExtendedResource, ledger: PatchLog) -> None:
    for count in (1, 2, 3):
        await seats.set_capacity(NODE, count)
    known = {resource for said in ledger.said for resource in said}
    await seats.clear()
    assert ledger.said[-1] == dict.fromkeys(known)
    assert len(known) == 3
