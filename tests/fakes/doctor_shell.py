"""`doctor` on a cluster of the tests, its findings, and what it looks for there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fakes.cli_runner import CliShell

Json = dict[str, Any]
only_embedded = pytest.mark.parametrize("plane", ["embedded"], indirect=True)
OURS = {"app.kubernetes.io/name": "jobset-gate", "app.kubernetes.io/component": "controller"}
WEBHOOK = {"app.kubernetes.io/name": "jobset-gate", "app.kubernetes.io/component": "webhook"}


@dataclass(frozen=True, slots=True)
class DoctorShell(CliShell):
    """`doctor`, if these are its `words`."""

    async def found(self, *arguments: str) -> dict[str, Json]:
        """The findings by what they are about."""
        ran = await self(*arguments, "-o", "json")
        message = json.loads(ran.out)
        assert ran.code == (1 if message["summary"]["error"] else 0)
        return {it["what"]: it for it in message["findings"]}


def accused(finding: Json) -> tuple[str, str]:
    """Its level, and the objects that it names at its end."""
    return finding["level"], finding["why"].rpartition(": ")[2]


def deployment(name: str, image: str, account: str = "controller", labels: Json = OURS, **more: Any) -> Json:
    """One that needs no pods; `more` stands in the spec of its pods."""
    pods = {"serviceAccountName": account, "containers": [{"name": "main", "image": image}]} | more
    template = {"metadata": {"labels": labels}, "spec": pods}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels}, "spec": spec}
