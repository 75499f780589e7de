"""`controller`: counts, decides and releases, against any cluster."""

import asyncio
import gc
import os
import socket
from dataclasses import fields, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import msgspec
import structlog
import typer

from controllers.barrier.tracing import TraceExporter
from controllers.manager import Manager, ManagerOptions
from jobset_gate import names
from jobset_gate.cli import logs, settings_file
from jobset_gate.cli.cluster import ClusterOptions
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.logs import log_signal
from jobset_gate.cli.options import Config, LogOptions, new_app, option
from jobset_gate.cli.options import namespace as place
from jobset_gate.cli.options import port as listening
from jobset_gate.cli.runner import run_service
from jobset_gate.cli.serve import process
from jobset_gate.cli.settings_file import ControllerSection

log = structlog.get_logger("jobset_gate.cli")


def options(configured: ControllerSection, **asked: Any) -> ManagerOptions:
    """The command line wins over the settings file, that over the defaults; None is not set.

    Of `asked` the names count that ManagerOptions has. Raises CommandError for a status page that would be served to
    others without TLS, and for tracing without its extra or to what is no URL.
    """
    known = {it.name for it in fields(ManagerOptions)}
    given = {key: value for key, value in msgspec.structs.asdict(configured).items() if value is not None}
    given |= {key: Path(given[key]) for key in ("page_tls_cert", "page_tls_key") if key in given}
    given |= {key: value for key, value in asked.items() if key in known and value is not None}
    found = replace(ManagerOptions(identity=f"{socket.gethostname()}_{os.getpid()}"), **given)
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


app = new_app()


@app.command("controller", epilog="Example: {program} controller --context my-cluster -n jobset-gate-system")
def controller(
    *,
    namespace: Annotated[
        str | None, place("Where the Lease lies; otherwise the context's or the pod's namespace.")
    ] = None,
    identity: Annotated[
        str | None,
        option("--identity", "NAME", "This replica's name in the Lease; otherwise host name and process id."),
    ] = None,
    leader_elect: Annotated[
        bool | None,
        typer.Option("--leader-elect/--no-leader-elect", help="Work only while holding the Lease.", show_default="on"),
    ] = None,
    watch_namespace: Annotated[
        str | None, option("--watch-namespace", "NAME", "Look after the gangs of this namespace only.")
    ] = None,
    extend_crd: Annotated[
        bool | None,
        typer.Option("--extend-crd/--no-extend-crd", help="Keep the field in the JobSet CRD.", show_default="on"),
    ] = None,
    workers: Annotated[
        int | None, option("--workers", "N", "Concurrent reconciles of gangs.", min=1, max=1024, default="32")
    ] = None,
    patch_concurrency: Annotated[
        int | None,
        option(
            "--patch-concurrency",
            "N",
            "Pods patched at once; 0 patches none: gate stream and ConfigMap alone release them.",
            min=0,
            max=1024,
            default="32",
        ),
    ] = None,
    host: Annotated[str, option("--host", "ADDRESS", "Where /healthz, /readyz and /metrics listen.")] = "127.0.0.1",
    port: Annotated[int, listening("--port", "Their port; 0 takes a free one.")] = 8080,
    stream_host: Annotated[
        str | None,
        option(
            "--stream-host", "ADDRESS", "Where the gate stream listens while this replica leads.", default="127.0.0.1"
        ),
    ] = None,
    stream_port: Annotated[
        int | None, listening("--stream-port", "Its port; 0 takes a free one.", default="none: no gate stream")
    ] = None,
    page_port: Annotated[
        int | None, listening("--page-port", "Where the status page listens; 0: there is none.", default="0")
    ] = None,
    tracing: Annotated[
        bool | None,
        typer.Option(
            "--tracing/--no-tracing", help="Export a trace of each gang; needs the extra `traces`.", show_default="off"
        ),
    ] = None,
    tracing_endpoint: Annotated[
        str | None,
        option(
            "--tracing-endpoint",
            "URL",
            "Base URL of the OTLP/HTTP collector, as http://collector:4318.",
            default="OTEL_EXPORTER_OTLP_ENDPOINT",
        ),
    ] = None,
    config: Config = None,
    cluster: ClusterOptions,
    log: LogOptions,
) -> None:
    """Run the controller against a cluster until SIGTERM or SIGINT.

    Ends with 1 when the lease is lost or a part of it has failed for good: start it again then, as a Deployment
    does. Options of the command line win over --config.
    """
    asked = locals()
    logs.configure(log.log_format, log.log_level)
    said = settings_file.read(config)
    wanted = options(said.controller, **asked, sources=said.admission.gangs.sources, groups=said.admission.groups)
    asyncio.run(run(wanted, cluster, namespace))
