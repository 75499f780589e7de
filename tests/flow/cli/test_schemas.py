"""What programs get is what is promised: every field of every document, and none that is not described."""

from __future__ import annotations

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types

from docs.make.schemas import SCHEMAS
from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from tests.fakes.cli_runner import CliShell
from tests.fakes.stored_gang import StoredJobSet, store_every_reason
from tests.fakes.stored_pod_groups import StoredPodGroups

Json = dict[str, Any]


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


async def test_gangs_in_every_state(stored: StoredJobSet, cli: CliShell) -> None:
    async def ask(*words: str) -> str:
        return (await cli(*words, "-o", "json")).out

    await store_every_reason(stored)
    one = check("why", await ask("why", "pod/train-workers-0-1"))
    assert (one["state"], one["pod"]["name"], len(one["missing"])) == ("Waiting", "train-workers-0-1", 5)
    assert check("why of several", await ask("why", "train", "jobset/train"))["items"][0]["name"] == "train"
    assert check("get jobsets, get gangs", await ask("get", "jobsets"))["items"][0]["name"] == "train"
    assert len(check("timeline", await ask("timeline", "train"))["pods"]) == 5
    await stored.config_map(VerdictKind.RELEASE, names.REASON_STARTED, "6/6 pods started")
    assert check("why", await ask("why", "train"))["state"] == "Released"


async def test_groups_in_every_state(groups: StoredPodGroups, cli: CliShell) -> None:
    async def ask(*words: str) -> str:
        return (await cli(*words, "-o", "json")).out

    await groups.fill()
    assert len(check("get groups", await ask("get", "groups"))["items"]) == 7
    found = check("get jobsets, get gangs", await ask("get", "gangs"))["items"]
    assert {it["of"] for it in found} == {"PodGroup"}
    assert check("why", await ask("why", "podgroup/a-room"))["state"] == "WaitingForCapacity"
    assert check("timeline", await ask("timeline", "podgroup/e-fine"))["group"]["minimum"] == 2


async def test_a_diagnosis(cli: CliShell) -> None:
    found = check("doctor", (await cli("doctor", "-o", "json")).out)
    assert found["summary"]["error"] == sum(it["level"] == "error" for it in found["findings"])
