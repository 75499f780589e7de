"""What a scrape says of the program itself, whichever service it runs: its build and its process."""

import platform
from importlib.metadata import PackageNotFoundError, version

import prometheus_client
from prometheus_client import CollectorRegistry, Gauge, ProcessCollector

from jobset_gate import names


def describe(registry: CollectorRegistry, component: str) -> None:
    """Adds jobset_gate_build_info and process_*; `component` is webhook or controller.

    Where a metric's name is shared with other programs, a query finds ours by the instance of the build info.

    Counters and histograms come without a `_created` series each from now on, in the whole process: the programs whose
    names we use have none.
    """
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    ProcessCollector(registry=registry)
    build = Gauge(
        "jobset_gate_build_info",
        "Always 1; also tells our instances from others under the same names.",
        ["component", "version", "python"],
        registry=registry,
    )
    build.labels(component, _version(), platform.python_version()).set(1)


def _version() -> str:
    try:
        return version(names.PROGRAM)
    except PackageNotFoundError:  # run from a folder that nobody has installed
        return "unknown"
