"""The alerts: rules that Prometheus takes, each firing when it should and silent when it should not."""

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from jobset_gate import names
from tests.repo.documents import anchors
from tests.repo.files import ROOT
from tests.tools.catalog import PROMTOOL

ALERTS = ROOT / "charts/jobset-gate/files/alerts.yaml"
CASES_FILE = Path(__file__).with_name("alert_cases.yaml")
# With the loader that leaves all as text: elsewhere 0x30 is a number, here it is thirty times nought.
CASES: dict[str, list[dict[str, Any]]] = yaml.load(CASES_FILE.read_text(), Loader=yaml.BaseLoader)  # noqa: S506
PROGRAMS = ("jobset_gate", "controllers", "webhook")
SEVERITIES = {"critical", "warning", "info"}
ANNOTATIONS = {"summary", "description", "runbook", "runbook_url"}

Json = dict[str, Any]


def promtool(*arguments: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(PROMTOOL.find()), *map(str, arguments)]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)  # noqa: S603 - our own


def rules() -> list[Json]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def case(alert: str, given: Json) -> Json:
    """A case as promtool wants it."""
    (rule,) = [rule for rule in rules() if rule["alert"] == alert]
    return {
        "name": alert,
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in given["series"].items()],
        "alert_rule_test": [
            {
                "eval_time": given["at"],
                "alertname": alert,
                "exp_alerts": [{"exp_labels": rule["labels"] | labels} for labels in given["fires"]],
            }
        ],
    }


def bare(alert: str, folder: Path) -> Path:
    """One rule alone, without its annotations: promtool would compare their whole texts."""
    (rule,) = [rule for rule in rules() if rule["alert"] == alert]
    kept = {key: value for key, value in rule.items() if key != "annotations"}
    file = folder / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "one", "rules": [kept]}]}))
    return file


def test_prometheus_takes_the_rules_and_their_templates() -> None:
    ran = promtool("check", "rules", "--lint=all", "--lint-fatal", ALERTS)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{len(rules())} rules found" in ran.stdout


def test_each_fires_when_it_should_and_only_then(tmp_path: Path) -> None:
    """By Prometheus' own evaluation of series over time, each rule separately."""
    files = []
    for alert, cases in CASES.items():
        folder = tmp_path / alert
        folder.mkdir()
        files.append(folder / "cases.yaml")
        content = {"rule_files": [str(bare(alert, folder))], "tests": [case(alert, given) for given in cases]}
        files[-1].write_text(yaml.safe_dump(content))
    ran = promtool("test", "rules", *files)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_each_alert_is_seen_firing_and_seen_silent() -> None:
    assert {rule["alert"] for rule in rules()} == set(CASES)
    for alert, cases in CASES.items():
        assert any(one["fires"] for one in cases), f"{alert} is never seen firing"
        assert any(not one["fires"] for one in cases), f"{alert} is never seen silent"


def test_each_has_a_summary_a_description_and_a_runbook_and_a_critical_one_waits() -> None:
    """A rollout or a failover is no incident."""
    for rule in rules():
        assert rule["labels"].keys() == {"severity"}, rule["alert"]
        assert rule["labels"]["severity"] in SEVERITIES, rule["alert"]
        assert rule["annotations"].keys() == ANNOTATIONS, rule["alert"]
        notes = dict(rule["annotations"])
        page, _, anchor = notes.pop("runbook_url").partition("/reference/alerts/#")
        assert page == "https://jobset-gate.github.io/jobset-gate"
        assert anchor in anchors(ROOT / "docs/reference/alerts.md"), rule["alert"]
        assert anchor == rule["alert"].lower()
        for text in notes.values():
            assert len(text) > 20, rule["alert"]
            assert text[-1] in ".)", rule["alert"]
        if rule["labels"]["severity"] == "critical":
            assert re.fullmatch(r"\d+m", rule.get("for", "")), rule["alert"]


def test_log_lines_that_runbooks_quote_are_written_by_the_programs() -> None:
    code = "".join(path.read_text() for part in PROGRAMS for path in (ROOT / part).rglob("*.py"))
    written = set(re.findall(r'\.(?:error|warning|exception)\("([^"]+)"', code))
    quoted = {line for rule in rules() for line in re.findall(r'"([^"]+)"', rule["annotations"]["runbook"])}
    assert len(quoted) > 5
    assert quoted <= written


def test_alerts_are_about_our_lease_and_narrow_names_that_others_use_too_down_to_ours() -> None:
    text = ALERTS.read_text()
    assert f'leader_election_master_status{{name="{names.LEASE}"}}' in text
    assert set(re.findall(r"leader_election_master_status\{([^}]*)\}", text)) == {f'name="{names.LEASE}"'}
    shared = re.compile(r"\b(workqueue|controller_runtime|rest_client|process)_\w+")
    for rule in rules():
        if shared.search(rule["expr"]):
            assert "on (cluster, instance, job)" in rule["expr"], rule["alert"]
