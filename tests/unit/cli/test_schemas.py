"""What programs get is what is promised: every field of every document, and none that is not described."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.cli.printers.schemas import SCHEMAS
from tests.fakes.stored_gang import StoredJobSet, install_jobset_crd, store_every_reason
from tests.fakes.stored_pod_groups import StoredPodGroups
from tests.unit.cli.conftest import RunCli

if TYPE_CHECKING:
    from tests.plane.embedded import Embedded

Json = dict[str, Any]
embedded = pytest.mark.parametrize("plane", ["embedded"], indirect=True)


def strict(schema: Any) -> Any:
    """The same without room for more: a field that nobody has described is a mistake of ours."""
    if isinstance(schema, list):
        return [strict(it) for it in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if "properties" in schema else {}
    return {key: strict(value) for key, value in schema.items()} | closed


def check(command: str, text: str) -> Json:
    found: Json = json.loads(text)
    jsonschema.validate(found, strict(SCHEMAS[command]), format_checker=jsonschema.FormatChecker(formats=["date-time"]))
    return found


@pytest.fixture
async def camp(embedded_plane: Embedded) -> AsyncIterator[StoredJobSet]:
    await embedded_plane.make_namespace("team")
    async with embedded_plane.client() as client:
        yield await install_jobset_crd(client, "team")


class Shell:
    """Command lines while the test's loop goes on."""

    def __init__(self, run: RunCli, kubeconfig: Path) -> None:
        self._run, self._more = run, ("-o", "json", "--kubeconfig", str(kubeconfig), "-n", "team")

    async def __call__(self, *words: str) -> str:
        return (await asyncio.to_thread(self._run, *words, *self._more)).out


@pytest.fixture
def ask(run: RunCli, embedded_plane: Embedded) -> Shell:
    return Shell(run, embedded_plane.kubeconfig)


async def test_gangs_in_every_state(camp: StoredJobSet, ask: Shell) -> None:
    await store_every_reason(camp)
    one = check("why", await ask("why", "pod/train-workers-0-1"))
    assert (one["state"], one["pod"]["name"], len(one["missing"])) == ("Waiting", "train-workers-0-1", 5)
    assert check("why of several", await ask("why", "train", "jobset/train"))["items"][0]["name"] == "train"
    assert check("get jobsets, get gangs", await ask("get", "jobsets"))["items"][0]["controller"]["leads"] is False
    assert len(check("timeline", await ask("timeline", "train"))["pods"]) == 5
    await camp.config_map(VerdictKind.RELEASE, names.REASON_STARTED, "6/6 pods started")
    assert check("why", await ask("why", "train"))["state"] == "Released"


@embedded
async def test_groups_in_every_state(town: StoredPodGroups, run: RunCli, plane: Embedded) -> None:
    await town.fill()

    async def ask(*words: str) -> str:
        more = ("-o", "json", "--kubeconfig", str(plane.kubeconfig), "-n", town.namespace)
        return (await asyncio.to_thread(run, *words, *more)).out

    assert len(check("get groups", await ask("get", "groups"))["items"]) == 7
    found = check("get jobsets, get gangs", await ask("get", "gangs"))["items"]
    assert {it["of"] for it in found} == {"PodGroup"}
    assert check("why", await ask("why", "podgroup/a-room"))["state"] == "WaitingForCapacity"
    assert check("timeline", await ask("timeline", "podgroup/e-fine"))["group"]["minimum"] == 2


async def test_a_diagnosis(camp: StoredJobSet, ask: Shell) -> None:
    del camp
    found = check("doctor", await ask("doctor"))
    assert found["summary"]["error"] == sum(it["level"] == "error" for it in found["findings"])


def described(schema: Any, path: str = "") -> Iterator[str]:
    """Where a description is missing."""
    for name, field in schema.get("properties", {}).items():
        if not field.get("description"):
            yield f"{path}.{name}"
        yield from described(field, f"{path}.{name}")
    if "items" in schema:
        yield from described(schema["items"], f"{path}[]")


@pytest.mark.parametrize("command", SCHEMAS)
def test_every_schema_is_one_and_says_what_its_fields_mean(command: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[command])
    assert SCHEMAS[command]["title"]
    assert [*described(SCHEMAS[command])] == []
