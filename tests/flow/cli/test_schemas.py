"""What programs get is what is promised: every field of every document, and none that is not described."""

import json
from typing import Any

import yaml

from docs.make.schemas import SCHEMAS
from tests.fakes.cli_runner import CliShell
from tests.fakes.stored_pod_groups import StoredPodGroups
from tests.tools.documented import check_document

Json = dict[str, Any]


def check(command: str, text: str) -> Json:
    found: Json = json.loads(text)
    check_document(found, SCHEMAS[command])
    return found


async def test_groups_in_every_state(groups: StoredPodGroups, cli: CliShell) -> None:
    async def ask(*words: str, form: str = "json") -> str:
        return (await cli(*words, "-o", form)).out

    await groups.fill()
    listed = check("get groups", await ask("get", "groups"))["items"]
    by_name = {it["name"]: it for it in listed}
    assert yaml.safe_load(await ask("get", "groups", form="yaml"))["items"] == listed
    assert (await ask("get", "groups", form="name")).split() == [f"group/{it}" for it in by_name]
    fine, room = by_name["e-fine"], by_name["a-room"]
    assert (fine["phase"], fine["bound"], fine["minimum"], fine["generation"]) == ("Running", 2, 2, 1)
    assert (fine["ways"], fine["design"], fine["podGroup"]) == (["alibaba"], "alibaba", None)
    assert (room["podGroup"], room["message"][:19]) == ("scheduling.x-k8s.io/a-room", "needs 2 cpu, 0 free")
    found = check("get jobsets, get gangs", await ask("get", "gangs"))["items"]
    assert ({it["of"] for it in found}, len(listed)) == ({"PodGroup"}, 7)
    assert check("why", await ask("why", "podgroup/a-room"))["state"] == "WaitingForCapacity"
    assert check("timeline", await ask("timeline", "podgroup/e-fine"))["group"]["minimum"] == 2


async def test_a_diagnosis(cli: CliShell) -> None:
    found = check("doctor", (await cli("doctor", "-o", "json")).out)
    assert found["summary"]["error"] == sum(it["level"] == "error" for it in found["findings"])
