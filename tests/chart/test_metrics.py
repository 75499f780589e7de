"""The reference and what the programs show say the same, in both directions; so do the alerts' names."""

import re

from docs.make import metrics
from tests.chart import live
from tests.chart.live import ScrapedMetric
from tests.chart.test_alerts import promtool, rules
from tests.repo.files import ROOT

PAGE = (ROOT / "docs/reference/metrics.md").read_text()
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \|([^|]*)\| (\w+) \| ([^|]+) \|$", re.MULTILINE)
OUR_NAMES = re.compile(r"\b(?:jobset_gate|workqueue|controller_runtime|rest_client|process|leader_election)_\w+")
OF_THE_SCRAPE = {"cluster", "namespace", "instance", "job", "pod"}
"""Labels that Prometheus adds."""
BOTH = frozenset({"controller", "webhook"})


def documented() -> dict[str, ScrapedMetric]:
    """The lines of the tables."""
    found = {}
    for name, kind, labels, where, _ in ROW.findall(PAGE):
        assert name not in found, f"{name} is there twice"
        components = BOTH if where == "both" else frozenset({where})
        found[name] = ScrapedMetric(kind, frozenset(re.findall(r"`(\w+)`", labels)), components)
    return found


def test_what_is_shown_is_documented_and_the_other_way_round() -> None:
    """A metric without samples yet shows no labels."""
    rows, shown = documented(), live.shown()
    assert len(rows) == len(re.findall(r"^\| `\w+_\w+` ", PAGE, re.MULTILINE)) > 40, "a row is not read"
    assert {name: (one.type, one.components) for name, one in shown.items()} == {
        name: (row.type, row.components) for name, row in rows.items()
    }
    labels = {name: one.labels for name, one in shown.items() if one.labels}
    assert len(labels) > 25
    assert labels == {name: rows[name].labels for name in labels}


def test_prometheus_has_nothing_to_say_against_them() -> None:
    for text in live.texts().values():
        ran = promtool("check", "metrics", given=text)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_no_label_names_a_pod_or_a_gang() -> None:
    labels = {label for one in live.shown().values() for label in one.labels}
    labels |= {label for row in documented().values() for label in row.labels}
    assert not labels & {"pod", "jobset", "gang", "job", "namespace", "node", "uid", "key"}


def test_alerts_ask_for_metrics_labels_and_values_that_are_there_and_so_do_their_runbooks() -> None:
    asked = {name for rule in rules() for name in OUR_NAMES.findall(_without_strings(rule["expr"]))}
    assert len(asked) > 20
    assert asked <= live.series()
    texts = [text for rule in rules() for text in rule["annotations"].values()]
    named = {name for text in texts for name in OUR_NAMES.findall(text)}
    assert named <= live.series() | set(live.shown())
    for rule in rules():
        assert unknown_labels(rule["expr"]) == set(), rule["alert"]


def unknown_labels(query: str) -> set[str]:
    """The labels that a query keeps, joins on or matches, and the values that it matches, and that no series has."""
    known = {row.name: row for row in metrics.rows()}
    names = set(OUR_NAMES.findall(_without_strings(query)))
    labels = {name: (known.get(name) or known[re.sub(r"_(bucket|sum|count)$", "", name)]).labels for name in names}
    kept = ", ".join(re.findall(r"\b(?:by|on|group_left) \(([^)]*)\)", query))
    unknown = set(re.findall(r"\w+", kept)) - OF_THE_SCRAPE - {"le"} - {one for each in labels.values() for one in each}
    for name, matchers in re.findall(r"(\w+)\{([^}]*)\}", query):
        for label, pattern in re.findall(r'(\w+)(?:=~|!~|!=|=)"([^"]*)"', matchers):
            if label not in labels[name].keys() | OF_THE_SCRAPE:
                unknown.add(label)
            elif label in metrics.CLOSED:
                unknown |= set(pattern.split("|")) - labels[name][label]
    return unknown


def _without_strings(query: str) -> str:
    return re.sub(r'"[^"]*"', '""', query)
