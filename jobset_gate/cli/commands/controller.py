"""`controller`: counts, decides and releases, against any cluster."""

import asyncio
from typing import Annotated

import typer

from jobset_gate.cli import logs, settings_file
from jobset_gate.cli.cluster import ClusterOptions
from jobset_gate.cli.options import Config, LogOptions, new_app, option
from jobset_gate.cli.options import namespace as place
from jobset_gate.cli.options import port as listening
from jobset_gate.cli.serve import controller as service

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
        int | None,
        listening("--page-port", "Where the status page listens; 0: there is none.", default="0"),
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
    wanted = service.options(
        said.controller, **asked, sources=said.admission.gangs.sources, groups=said.admission.groups
    )
    asyncio.run(service.run(wanted, cluster, namespace))
