"""NOTES.txt: what a person is told next, and that it can be typed as it stands."""

import shlex

import pytest

from tests.chart.cluster import ChartRelease
from tests.chart.helm import CHART, Helm, Json, at
from tests.plane.planes import Real

pytestmark = pytest.mark.real


async def notes(plane: Real, helm: Helm, values: Json) -> str:
    """As `helm install` would print them; nothing is installed."""
    release = ChartRelease(plane, helm, "default")
    said = await release.run("install", str(CHART), "--dry-run=client", values=values)
    return said.partition("NOTES:\n")[2]


async def test_they_name_commands_about_this_release(real_plane: Real, helm: Helm) -> None:
    told = await notes(real_plane, helm, at("fullnameOverride", "door"))
    commands = [shlex.split(line) for line in told.splitlines() if line.startswith(("  kubectl ", "  helm "))]
    assert ["kubectl", "-n", "default", "rollout", "status", "deployment/door-webhook"] in commands
    assert ["kubectl", "-n", "default", "rollout", "status", "deployment/door-controller"] in commands
    assert ["helm", "-n", "default", "test", "jobset-gate"] in commands


@pytest.mark.parametrize(
    ("extended", "form"), [(True, "  groupSchedulingConfig:"), (False, "group-scheduling-config: '{")]
)
async def test_they_show_the_form_that_works(real_plane: Real, helm4: Helm, extended: bool, form: str) -> None:
    told = await notes(real_plane, helm4, at("crds.extendJobSet", extended))
    assert form in told
    assert told.count("timeoutAfterSeconds") == 1


async def test_they_say_what_stays_behind(real_plane: Real, helm4: Helm) -> None:
    assert "crds.keep=false takes it out" in await notes(real_plane, helm4, {})
    assert "crds.keep" not in await notes(real_plane, helm4, at("crds.keep", False))
    managed = await notes(real_plane, helm4, at("webhook.certificates.mode", "certManager"))
    assert "delete secret jobset-gate-webhook-tls jobset-gate-webhook-ca" in managed


@pytest.mark.parametrize(("secret", "scheme"), [("", "http"), ("page-tls", "https")])
async def test_they_say_how_to_see_the_status_page(real_plane: Real, helm4: Helm, secret: str, scheme: str) -> None:
    told = await notes(real_plane, helm4, at("statusPage", {"enabled": True, "tlsSecretName": secret}))
    assert "kubectl -n default port-forward deployment/jobset-gate-controller 8083\n" in told
    assert f"{scheme}://127.0.0.1:8083/" in told
    assert "port-forward" not in await notes(real_plane, helm4, {})


async def test_they_say_how_to_see_pod_groups(real_plane: Real, helm4: Helm) -> None:
    assert "(alibaba)" in await notes(real_plane, helm4, at("groups.ways", ["alibaba"]))
    assert "kubectl jobset-gate get groups --all-namespaces" in await notes(real_plane, helm4, {})
    assert "groups" not in await notes(real_plane, helm4, at("groups.enabled", False))
