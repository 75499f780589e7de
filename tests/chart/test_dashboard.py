"""The Grafana dashboard: well formed, its queries are PromQL about what the programs show, and nothing is left out."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from tests.chart import live
from tests.chart.test_alerts import promtool
from tests.chart.test_metrics import OUR_NAMES, unknown_labels
from tests.repo.files import ROOT

Json = dict[str, Any]
BOARD: Json = json.loads((ROOT / "charts/jobset-gate/files/dashboard.json").read_text())
PANELS: list[Json] = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
TARGETS = [(panel["title"], target) for panel in PANELS for target in panel["targets"]]
VARIABLES = {"$__rate_interval": "5m", "$__range": "6h", "$namespace": ".*"}


def query(target: Json) -> str:
    """As Grafana would send it."""
    text: str = target["expr"]
    for name, value in VARIABLES.items():
        text = text.replace(name, value)
    return text


def test_all_queries_are_promql(tmp_path: Path) -> None:
    rules = [{"record": f"panel:query:{number}", "expr": query(target)} for number, (_, target) in enumerate(TARGETS)]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    ran = promtool("check", "rules", file)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{len(rules)} rules found" in ran.stdout


def test_queries_use_metrics_labels_and_values_that_are_there() -> None:
    asked = {name for _, target in TARGETS for name in OUR_NAMES.findall(re.sub(r'"[^"]*"', "", target["expr"]))}
    assert asked <= live.series()
    assert {title: unknown_labels(target["expr"]) for title, target in TARGETS if unknown_labels(target["expr"])} == {}


def test_every_metric_of_ours_is_to_be_seen_by_program() -> None:
    rows = [panel["title"] for panel in BOARD["panels"] if panel["type"] == "row"]
    assert {"Gangs", "Webhook", "Controller"} <= set(rows)
    asked = " ".join(target["expr"] for _, target in TARGETS)
    ours = {name for name in live.shown() if name.startswith("jobset_gate_")}
    assert {name for name in ours if not re.search(rf"\b{name}(_bucket|_count)?\b", asked)} == set()


def test_names_that_others_use_too_are_narrowed_down_to_ours() -> None:
    for title, target in TARGETS:
        if re.search(r"\b(workqueue|controller_runtime|rest_client|process)_", target["expr"]):
            assert "on (cluster, instance, job)" in target["expr"], title
        assert 'namespace=~"$namespace"' in target["expr"], title


def test_it_can_be_loaded_next_to_others() -> None:
    assert (BOARD["uid"], BOARD["title"]) == ("jobset-gate", "jobset-gate")
    assert BOARD.get("id") is None
    chosen = {"type": "prometheus", "uid": "${datasource}"}  # by the viewer
    assert all(one["datasource"] == chosen for one in (*PANELS, *(target for _, target in TARGETS)))
    assert "__inputs" not in BOARD, "those are for the import by hand; a ConfigMap is loaded as it is"
