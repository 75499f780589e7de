"""Runs one replica of the controllers, until a signal or a fatal error."""

import asyncio
import gc
import os
import socket
from dataclasses import fields, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import structlog

from controllers.barrier.tracing import TraceExporter
from controllers.manager import Manager, ManagerOptions
from jobset_gate import names
from jobset_gate.cli.cluster import ClusterOptions
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.logs import log_signal
from jobset_gate.cli.runner import run_service
from jobset_gate.cli.serve import process
from jobset_gate.cli.settings_file import ControllerSection
from jobset_gate.sources.table import SOURCES

log = structlog.get_logger("jobset_gate.cli")


def options(configured: ControllerSection, **asked: Any) -> ManagerOptions:
    """The command line wins over the settings file, that over the defaults; None is not set.

    Of `asked` the names count that ManagerOptions has. Raises CommandError for sources whose pods no verdict would
    reach (K8), for a status page that would be served to others without TLS, and for tracing without its extra or to
    what is no URL.
    """
    known = {it.name for it in fields(ManagerOptions)}
    given = configured.model_dump(exclude_none=True)
    given |= {key: value for key, value in asked.items() if key in known and value is not None}
    found = replace(ManagerOptions(identity=f"{socket.gethostname()}_{os.getpid()}"), **given)
    if not found.patch_concurrency and (alone := [name for name in found.sources if SOURCES[name].gates_pods]):
        why = f"must be above 0 with gangs.sources {', '.join(alone)}, whose pods may have no network"
        raise CommandError(f"controller.patchConcurrency: 0: {why}", ExitCode.USAGE)
    if found.page_port and found.page.problem:
        raise CommandError(found.page.problem, ExitCode.USAGE)
    if found.tracing and (problem := _tracing_problem(found.tracing_endpoint)):
        raise CommandError(problem, ExitCode.USAGE)
    return found


async def run(wanted: ManagerOptions, cluster: ClusterOptions, namespace: str | None) -> None:
    """Until SIGTERM or SIGINT. Raises what stopped the controller before that, LeadershipLost for one."""
    reached = await cluster.load_access()
    traces = _start_exporter(wanted) if wanted.tracing else None
    # What was imported stays for good: no collection need walk it again, which takes up to 100 ms a time.
    gc.collect()
    gc.freeze()
    process.raise_open_files_limit()
    process.register_metrics(wanted.registry, "controller")
    manager = Manager(reached, replace(wanted, namespace=namespace or reached.namespace, traces=traces))

    async def serve() -> None:
        telling = asyncio.create_task(_tell(manager, reached.server))
        try:
            await manager.run()
        finally:
            telling.cancel()
            if traces is not None:
                await asyncio.to_thread(traces.stop)
        raise CommandError("the controller has stopped without a signal")

    await run_service(serve(), log_signal)
    log.info("controller stopped")


def _tracing_problem(endpoint: str | None) -> str:
    try:
        installed = find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        installed = False
    if not installed:
        return f"tracing needs the extra `traces`: pip install '{names.PROGRAM}[traces]'"
    if endpoint is not None and not endpoint.startswith(("http://", "https://")):
        return f"--tracing-endpoint: {endpoint}: must be the base URL of a collector, as http://collector:4318"
    return ""


def _start_exporter(wanted: ManagerOptions) -> TraceExporter:
    """Imports the library only here: it is an extra, and weighs."""
    library = import_module("jobset_gate.cli.serve.trace_exporter")
    exporter: TraceExporter = library.OTLPTraceExporter(
        wanted.tracing_endpoint, process.program_version(), wanted.identity
    )
    return exporter


async def _tell(manager: Manager, server: str) -> None:
    await manager.serving.wait()
    its = manager.options
    lease = f"{its.namespace}/{its.identity}" if its.leader_elect else None
    log.info("controller runs", url=manager.url, server=server, watches=its.watch_namespace or "all", lease=lease)
