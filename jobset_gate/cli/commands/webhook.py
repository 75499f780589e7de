"""`webhook`: the admission webhook, served by this process."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from jobset_gate.cli import logs, settings_file
from jobset_gate.cli.options import (
    Config,
    Context,
    Kubeconfig,
    LogFormat,
    LogFormatOption,
    LogLevel,
    LogLevelOption,
    new_app,
    option,
)
from jobset_gate.cli.options import port as listening
from jobset_gate.cli.serve import webhook as serving

app = new_app()


@app.command(
    "webhook",
    short_help="Serve the admission webhook.",
    epilog="Example: {program} webhook --self-signed --register --unregister-on-exit",
)
def webhook(
    *,
    host: Annotated[str, option("--host", "ADDRESS", "The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, listening("--port", "The port; 0 takes a free one.")] = 9443,
    tls_cert: Annotated[
        Path | None, option("--tls-cert", "FILE", "The certificate (PEM); read again when it changes.")
    ] = None,
    tls_key: Annotated[Path | None, option("--tls-key", "FILE", "Its key (PEM).")] = None,
    tls_ca: Annotated[
        Path | None,
        option("--tls-ca", "FILE", "With --register or --publish-ca: the CA that the API server shall trust."),
    ] = None,
    self_signed: Annotated[
        bool, typer.Option("--self-signed", help="Serve a throw-away certificate, made at each start.")
    ] = False,
    own_ca: Annotated[
        str | None,
        option(
            "--own-ca",
            "SECRET",
            "Keep a CA in this Secret of the Service's namespace, sign a certificate in memory, and keep the"
            " caBundle of the webhook configurations.",
        ),
    ] = None,
    ca_days: Annotated[
        float, option("--ca-days", "DAYS", "With --own-ca: how long a CA lives.", min=0.05, max=36500)
    ] = 365.0,
    leaf_hours: Annotated[
        float, option("--leaf-hours", "HOURS", "With --own-ca: how long a certificate lives.", min=0.1, max=87600)
    ] = 168.0,
    publish_ca: Annotated[
        bool,
        typer.Option("--publish-ca", help="Keep what --tls-ca holds in the caBundle of the webhook configurations."),
    ] = False,
    check_trust: Annotated[
        bool,
        typer.Option(
            "--check-trust",
            help="Be ready only while the caBundle of the webhook configurations verifies the certificate for the"
            " Service. --own-ca and --publish-ca do so anyway.",
        ),
    ] = False,
    registers: Annotated[
        bool, typer.Option("--register", help="Create or update the cluster's webhook configurations.")
    ] = False,
    url: Annotated[
        str | None,
        option(
            "--url",
            "URL",
            "With --register: https://host[:port] under which the API server reaches this process;"
            " otherwise where it listens.",
        ),
    ] = None,
    service: Annotated[
        str | None,
        option(
            "--service",
            "NAMESPACE/NAME[:PORT]",
            "The Service in front of it: --register writes it, and certificates are checked for its name.",
        ),
    ] = None,
    unregister_on_exit: Annotated[
        bool, typer.Option("--unregister-on-exit", help="With --register: delete the configurations at the end.")
    ] = False,
    shutdown_delay: Annotated[
        float, option("--shutdown-delay", "SECONDS", "Seconds to go on answering, not ready, before closing.", min=0)
    ] = 0.0,
    config: Config = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    log_format: LogFormatOption = LogFormat.AUTO,
    log_level: LogLevelOption = LogLevel.INFO,
) -> None:
    """Serve the admission webhook over HTTPS until SIGTERM or SIGINT.

    Answers at /mutate, /validate and /mutate-pods, and at /healthz, /readyz and /metrics.
    """
    files = tls_cert is not None or tls_key is not None
    kept = own_ca is not None or publish_ca or check_trust
    rules: tuple[tuple[object, str], ...] = (
        (
            self_signed + (own_ca is not None) + files != 1,
            "give one of --self-signed, --own-ca, or both --tls-cert and --tls-key",
        ),
        (files and (tls_cert is None or tls_key is None), "--tls-cert and --tls-key belong together"),
        (url and service, "give --url or --service, not both"),
        (publish_ca and not (files and tls_ca), "--publish-ca needs --tls-ca and --tls-cert"),
        (check_trust and self_signed, "--check-trust needs --tls-cert"),
        (kept and not service, "--own-ca, --publish-ca and --check-trust need --service"),
        (
            own_ca is not None and leaf_hours > ca_days * 24 / 3,
            "--leaf-hours: a CA must live at least three times as long as a certificate",
        ),
        (tls_ca and not registers and not publish_ca, "--tls-ca needs --register or --publish-ca"),
        (service and not registers and not kept, "--service needs --register, --own-ca or --check-trust"),
        ((url or unregister_on_exit) and not registers, "--url and --unregister-on-exit need --register"),
        (
            registers and not url and not service and host in ("0.0.0.0", "::", ""),  # noqa: S104 - to refuse it
            f"--register with --host {host} needs --url or --service",
        ),
    )
    for holds, text in rules:
        if holds:
            raise typer.BadParameter(text)
    logs.configure(log_format, log_level)
    options = serving.WebhookOptions(
        host=host,
        port=port,
        shutdown_delay=shutdown_delay,
        tls_cert=tls_cert,
        tls_key=tls_key,
        tls_ca=tls_ca,
        manages_trust=kept,
        own_ca=own_ca,
        ca_life=timedelta(days=ca_days),
        leaf_life=timedelta(hours=leaf_hours),
        publish_ca=publish_ca,
        register=registers,
        url=url,
        service=service,
        unregister_on_exit=unregister_on_exit,
        kubeconfig=kubeconfig,
        context=context,
    )
    asyncio.run(serving.run(settings_file.read(config).admission, options))
