"""NOTES.txt: its commands can be copied as they stand, and it names what the values switch on."""

import shlex
from typing import Final

import pytest

from tests.chart.cluster import ChartRelease
from tests.chart.helm import CHART, Helm, Json, at, merged
from tests.plane.planes import Real

pytestmark = pytest.mark.real
PAGE: Final = at("statusPage.enabled", True)
CASES: Final[list[tuple[Json, list[str], list[str]]]] = [
    # Values, what the notes say, and what they do not say.
    (
        {},
        ["  groupSchedulingConfig:", "crds.keep=false takes it out", "kubectl jobset-gate get groups --all-namespaces"],
        ["port-forward"],
    ),
    ({}, ["No registry is set: nodes take the image jobset-gate:"], []),
    (at("image.registry", "registry.example"), [], ["No registry"]),
    (
        merged(at("crds", {"extendJobSet": False, "keep": False}), at("groups.enabled", False)),
        ["group-scheduling-config: '{"],
        ["crds.keep", "groups"],
    ),
    (
        merged(PAGE, at("webhook.certificates.mode", "certManager"), at("groups.ways", ["alibaba"])),
        [
            "delete secret jobset-gate-webhook-tls jobset-gate-webhook-ca",
            "(alibaba)",
            "kubectl -n default port-forward deployment/jobset-gate-controller 8083\n",
            "http://127.0.0.1:8083/",
        ],
        [],
    ),
    (merged(PAGE, at("statusPage.tlsSecretName", "page-tls")), ["https://127.0.0.1:8083/"], []),
]


async def notes(plane: Real, helm: Helm, values: Json) -> str:
    """As `helm install` would print them; nothing is installed."""
    release = ChartRelease(plane, helm, "default")
    said = await release.run("install", str(CHART), "--dry-run=client", values=values)
    return said.partition("NOTES:\n")[2]


async def test_they_name_commands_about_this_release(real_plane: Real, helm: Helm) -> None:
    text = await notes(real_plane, helm, at("fullnameOverride", "full"))
    commands = [shlex.split(line) for line in text.splitlines() if line.startswith(("  kubectl ", "  helm "))]
    assert ["kubectl", "-n", "default", "rollout", "status", "deployment/full-webhook"] in commands
    assert ["kubectl", "-n", "default", "rollout", "status", "deployment/full-controller"] in commands
    assert ["helm", "-n", "default", "test", "jobset-gate"] in commands


async def test_they_follow_the_values(real_plane: Real, helm4: Helm) -> None:
    for values, said, unsaid in CASES:
        text = await notes(real_plane, helm4, values)
        assert [words for words in said if words not in text] == [], values
        assert [words for words in unsaid if words in text] == [], values
        assert text.count("timeoutAfterSeconds") == 1
