"""The process of a served program: its limit of open files, and its own metrics."""

import platform
import resource
from importlib.metadata import PackageNotFoundError, version

import prometheus_client
from prometheus_client import CollectorRegistry, Gauge, ProcessCollector

from jobset_gate import names


def raise_open_files_limit() -> None:
    """Raises the soft limit of open files to the hard limit."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def register_metrics(registry: CollectorRegistry, component: str) -> None:
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
    build.labels(component, program_version(), platform.python_version()).set(1)


def program_version() -> str:
    try:
        return version(names.PROGRAM)
    except PackageNotFoundError:  # run from a folder that nobody has installed
        return "unknown"
