"""docs/reference/metrics.md: every metric, from the registries that the programs fill."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Metric

from controllers.barrier.crd_patcher import CrdMetrics
from controllers.barrier.metrics import GangMetrics
from controllers.podgroups.metrics import PodGroupMetrics
from controllers.statuspage.server import StatusPageMetrics
from docs.make.markdown import code, page, paragraph, table
from jobset_gate.cli.serve import process
from jobset_gate.runtime.controller import ControllerMetrics
from jobset_gate.runtime.metrics import RuntimeMetrics
from webhook.metrics import WebhookMetrics

OWN: Final = "jobset_gate_"
CLOSED: Final = frozenset({"reason", "kind", "cause", "outcome", "how", "result", "what"})
"""Labels whose values are all there from the start."""


@dataclass(slots=True)
class Row:
    """One metric."""

    name: str
    type: str
    labels: dict[str, set[str]]
    where: str
    meaning: str


def text() -> str:
    """The page."""
    found = rows()
    own = [it for it in found if it.name.startswith(OWN)]
    return page(
        "Metrics",
        "the registries of `controllers/`, `webhook/` and `jobset_gate/cli/serve/`",
        paragraph(
            "Both programs answer at `/metrics`. Units are seconds, bytes and plain numbers; no label holds the name "
            "of a pod or a JobSet. How to scrape them, the alerts and the dashboard: [metrics.md](../metrics.md)."
        ),
        "## Our own",
        _table(own),
        "## Under the names that dashboards know",
        paragraph(
            "As client-go and controller-runtime have them, in name, type and labels; `resource` is an addition of "
            "ours. Other programs use these names, too."
        ),
        _table([it for it in found if it not in own]),
    )


def rows() -> list[Row]:
    """All of them, by name; one that both programs have is there once."""
    merged: dict[str, Row] = {}
    for where, registry in (("controller", _controller()), ("webhook", _webhook())):
        for it in _rows(registry, where):
            known = merged.setdefault(it.name, it)
            known.where = where if known.where == where else "both"
    return sorted(merged.values(), key=lambda it: it.name)


def _controller() -> CollectorRegistry:
    registry = CollectorRegistry()
    process.register_metrics(registry, "controller")
    RuntimeMetrics(registry)
    CrdMetrics(registry)
    ControllerMetrics(registry).init_series("gang", 1)
    GangMetrics(registry)
    PodGroupMetrics(registry)
    StatusPageMetrics(registry)
    return registry


def _webhook() -> CollectorRegistry:
    metrics = WebhookMetrics()
    process.register_metrics(metrics.registry, "webhook")
    metrics.add_trust_gauge()
    return metrics.registry


def _rows(registry: CollectorRegistry, where: str) -> Iterator[Row]:
    for collector in list(registry._collector_to_names):  # noqa: SLF001 - it has no list of what was registered
        families = list(collector.collect())
        labels = _labels(collector)
        for family in families:
            values = {name: _values(family, name) for name in labels or _labels(family)}
            name = f"{family.name}_total" if family.type == "counter" else family.name
            yield Row(name, family.type, values, where, family.documentation)


def _labels(thing: object) -> tuple[str, ...]:
    return tuple(getattr(thing, "_labelnames", ()))


def _values(family: Metric, label: str) -> set[str]:
    if label not in CLOSED or family.name.startswith(("rest_client", "jobset_gate_watch")):
        return set()
    return {it.labels[label] for it in family.samples if label in it.labels}


def _table(rows: list[Row]) -> str:
    head = ["metric", "type", "labels", "where", "meaning"]
    return table(head, [(code(it.name), it.type, _label_cell(it.labels), it.where, it.meaning) for it in rows])


def _label_cell(labels: dict[str, set[str]]) -> str:
    return ", ".join(f"{code(name)} ({', '.join(sorted(it))})" if it else code(name) for name, it in labels.items())
