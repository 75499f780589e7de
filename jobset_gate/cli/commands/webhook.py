"""`webhook`: the admission webhook, served by this process."""

from pathlib import Path
from typing import Annotated

import typer

from jobset_gate.cli.options import Config, Context, Form, Kubeconfig, Level, LogFormat, LogLevel


def register(app: typer.Typer, program: str) -> None:
    """Adds the command."""

    @app.command(
        "webhook",
        short_help="Serve the admission webhook.",
        epilog=f"Example: {program} webhook --self-signed --register --unregister-on-exit",
    )
    def webhook(
        *,
        host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
        port: Annotated[
            int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="The port; 0 takes a free one.")
        ] = 9443,
        tls_cert: Annotated[
            Path | None,
            typer.Option("--tls-cert", metavar="FILE", help="The certificate (PEM); read again when it changes."),
        ] = None,
        tls_key: Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="Its key (PEM).")] = None,
        tls_ca: Annotated[
            Path | None,
            typer.Option("--tls-ca", metavar="FILE", help="With --register: the CA that the API server shall trust."),
        ] = None,
        self_signed: Annotated[
            bool, typer.Option("--self-signed", help="Serve a throw-away certificate, made at each start.")
        ] = False,
        registers: Annotated[
            bool, typer.Option("--register", help="Create or update the cluster's webhook configurations.")
        ] = False,
        url: Annotated[
            str | None,
            typer.Option(
                "--url",
                metavar="URL",
                help="With --register: https://host[:port] under which the API server reaches this process;"
                " otherwise where it listens.",
                show_default=False,
            ),
        ] = None,
        service: Annotated[
            str | None,
            typer.Option(
                "--service",
                metavar="NAMESPACE/NAME[:PORT]",
                help="With --register: the Service in front of it.",
                show_default=False,
            ),
        ] = None,
        unregister_on_exit: Annotated[
            bool, typer.Option("--unregister-on-exit", help="With --register: delete the configurations at the end.")
        ] = False,
        shutdown_delay: Annotated[
            float,
            typer.Option(
                "--shutdown-delay",
                metavar="SECONDS",
                min=0,
                help="Seconds to go on answering, not ready, before closing.",
            ),
        ] = 0.0,
        config: Config = None,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
        log_format: Form = LogFormat.AUTO,
        log_level: Level = LogLevel.INFO,
    ) -> None:
        """Serve the admission webhook over HTTPS until SIGTERM or SIGINT.

        Answers at /mutate and /validate, and at /healthz, /readyz and /metrics.
        """
        if self_signed == (tls_cert is not None or tls_key is not None):
            raise typer.BadParameter("give either --self-signed or both --tls-cert and --tls-key")
        if not self_signed and (tls_cert is None or tls_key is None):
            raise typer.BadParameter("--tls-cert and --tls-key belong together")
        if url is not None and service is not None:
            raise typer.BadParameter("give --url or --service, not both")
        if not registers and (url or service or unregister_on_exit or tls_ca):
            raise typer.BadParameter("--url, --service, --tls-ca and --unregister-on-exit need --register")
        if registers and not url and not service and host in ("0.0.0.0", "::", ""):  # noqa: S104 - to refuse it
            raise typer.BadParameter(f"--register with --host {host} needs --url or --service")
        import asyncio  # noqa: PLC0415 - see app.py

        from jobset_gate.cli import logs, settings_file  # noqa: PLC0415 - see app.py
        from jobset_gate.cli.serving import webhook as door  # noqa: PLC0415 - see app.py

        logs.configure(log_format, log_level)
        listen = door.Listen(host, port, tls_cert, tls_key, tls_ca, notice=shutdown_delay)
        asked = door.Register(registers, url, service, unregister_on_exit, kubeconfig, context)
        asyncio.run(door.run(settings_file.read(config).admission, listen, asked))
