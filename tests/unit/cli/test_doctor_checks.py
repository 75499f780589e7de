"""The parts of `doctor` that need no cluster: selectors, versions, certificates, and how findings are shown."""

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
import yaml

from jobset_gate.cli.commands.doctor import findings, to_text
from jobset_gate.cli.doctor import prerequisites, webhook_configurations
from jobset_gate.cli.doctor.check import ClusterReader, Finding, FindingLevel, error, ok, unknown, warning
from jobset_gate.cli.printers.output import PLAIN_STYLE, TerminalStyle
from jobset_gate.kube.errors import Unauthorized
from jobset_gate.objects.unstructured import selector_matches
from webhook.certs import ca


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ("{}", True),
        ("{matchLabels: {app: train}}", True),
        ("{matchLabels: {app: web}}", False),
        ("{matchExpressions: [{key: app, operator: In, values: [train, web]}]}", True),
        ("{matchExpressions: [{key: app, operator: NotIn, values: [train]}]}", False),
        ("{matchExpressions: [{key: app, operator: Exists}]}", True),
        ("{matchExpressions: [{key: app, operator: DoesNotExist}]}", False),
    ],
)
def test_a_label_selector_fits_what_kubernetes_says_it_fits(selector: str, fits: bool) -> None:
    assert selector_matches(yaml.safe_load(selector), {"app": "train"}) is fits


@pytest.mark.parametrize(
    ("image", "tags"),
    [
        ("registry.test/jobset/jobset:v0.10.1", ["v0.10.1"]),
        ("jobset:0.9.0@sha256:0123", ["0.9.0"]),
        ("mirror.test:5000/jobset/jobset:v0.8.2", ["v0.8.2"]),
        ("mirror.test:5000/jobset/jobset", []),
        ("registry.test/jobset-gate:v0.1.0", []),
        ("registry.test/my-jobset:v0.1.0", []),
    ],
)
def test_jobsets_version_is_read_from_its_image(image: str, tags: list[str]) -> None:
    deployment = {"spec": {"template": {"spec": {"containers": [{"image": image}]}}}}
    assert prerequisites.tags_of(deployment) == tags


@pytest.mark.parametrize(
    ("shown", "level"),
    [
        ("1m0s", FindingLevel.OK),
        ("30s", FindingLevel.OK),
        ("1m0.5s", FindingLevel.WARNING),
        ("1h0m0s", FindingLevel.WARNING),
        ("", FindingLevel.UNKNOWN),
    ],
)
def test_how_often_a_kubelet_looks(shown: str, level: FindingLevel) -> None:
    assert prerequisites.judge_sync(shown).level is level


@pytest.mark.parametrize(
    ("begun", "life", "level"),
    [
        (3, 365, FindingLevel.OK),
        (360, 365, FindingLevel.WARNING),
        (1, 2, FindingLevel.OK),
        (30, 20, FindingLevel.ERROR),
    ],
    ids=["fresh", "soon over", "short", "over"],
)
def test_how_long_a_certificate_serves(begun: int, life: int, level: FindingLevel) -> None:
    began = datetime.now(UTC) - timedelta(days=begun, minutes=1)
    made = ca.create("ca", now=began, life=timedelta(days=life)).certificate
    assert webhook_configurations.judge("it", (made,)).level is level


def test_of_several_cas_the_last_one_counts() -> None:
    now = datetime.now(UTC)
    ends = [ca.create("ca", now=now - timedelta(days=9), life=timedelta(days=it)).certificate for it in (8, 10, 365)]
    found = webhook_configurations.judge("it", ends)
    assert (found.level, f"{ends[-1].not_valid_after_utc:%Y-%m-%d}" in found.why) == (FindingLevel.OK, True)


FOUND = [
    ok("fine"),
    warning("slow", "it takes\nlong", "wait"),
    error("broken", "it fell", "mend it"),
    unknown("dark", "cannot list pods", "ask"),
]
TEXT = """\
ok       fine
warning  slow: it takes long
         Remedy: wait
error    broken: it fell
         Remedy: mend it
unknown  dark: cannot list pods
         Remedy: ask

1 error, 1 warning, 1 unknown, 1 ok.
"""


def test_findings_as_text() -> None:
    assert to_text(FOUND, PLAIN_STYLE) == TEXT
    assert "\x1b[31merror\x1b[0m    broken" in to_text(FOUND, TerminalStyle(colour=True))


def test_a_narrow_terminal_wraps_findings_under_their_level() -> None:
    shown = to_text([warning("one", "two three four five", "six")], TerminalStyle(width=24))
    assert shown.splitlines()[:3] == ["warning  one: two three", "         four five", "         Remedy: six"]


async def test_without_credentials_no_check_is_reported_as_unknown() -> None:
    """It is an error of the command, not of one check: nobody should take its exit code for health."""

    async def check(_: ClusterReader) -> list[Finding]:
        raise Unauthorized(401, "Unauthorized", "no")

    with pytest.raises(ExceptionGroup) as refused:
        await findings(cast("ClusterReader", None), [("x", check), ("y", check)])
    assert refused.group_contains(Unauthorized)
