"""The options of `webhook`, and which of them fit together."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from jobset_gate.cli.options import option
from jobset_gate.cli.options import port as port_option
from jobset_gate.cli.serve import registration


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """What the command line asks for."""

    host: Annotated[str, option("--host", "ADDRESS", "The address to listen on.")] = "127.0.0.1"
    port: Annotated[int, port_option("--port", "The port; 0 takes a free one.")] = 9443
    tls_cert: Annotated[
        Path | None, option("--tls-cert", "FILE", "The certificate (PEM); read again when it changes.")
    ] = None
    tls_key: Annotated[Path | None, option("--tls-key", "FILE", "Its key (PEM).")] = None
    tls_ca: Annotated[
        Path | None,
        option("--tls-ca", "FILE", "With --register or --publish-ca: the CA that the API server shall trust."),
    ] = None
    self_signed: Annotated[
        bool, typer.Option("--self-signed", help="Serve a throw-away certificate, made at each start.")
    ] = False
    own_ca: Annotated[
        str | None,
        option(
            "--own-ca",
            "SECRET",
            "Keep a CA in this Secret of the Service's namespace, sign a certificate in memory, and keep the"
            " caBundle of the webhook configurations.",
        ),
    ] = None
    ca_days: Annotated[
        float, option("--ca-days", "DAYS", "With --own-ca: how long a CA lives.", min=0.05, max=36500)
    ] = 365.0
    leaf_hours: Annotated[
        float, option("--leaf-hours", "HOURS", "With --own-ca: how long a certificate lives.", min=0.1, max=87600)
    ] = 168.0
    publish_ca: Annotated[
        bool,
        typer.Option("--publish-ca", help="Keep what --tls-ca holds in the caBundle of the webhook configurations."),
    ] = False
    check_trust: Annotated[
        bool,
        typer.Option(
            "--check-trust",
            help="Be ready only while the caBundle of the webhook configurations verifies the certificate for the"
            " Service. --own-ca and --publish-ca do so anyway.",
        ),
    ] = False
    register: Annotated[
        bool, typer.Option("--register", help="Create or update the cluster's webhook configurations.")
    ] = False
    url: Annotated[
        str | None,
        option(
            "--url",
            "URL",
            "With --register: https://host[:port] under which the API server reaches this process;"
            " otherwise where it listens.",
        ),
    ] = None
    service: Annotated[
        str | None,
        option(
            "--service",
            "NAMESPACE/NAME[:PORT]",
            "The Service in front of it: --register writes it, and certificates are checked for its name.",
        ),
    ] = None
    unregister_on_exit: Annotated[
        bool, typer.Option("--unregister-on-exit", help="With --register: delete the configurations at the end.")
    ] = False
    shutdown_delay: Annotated[
        float, option("--shutdown-delay", "SECONDS", "Seconds to go on answering, not ready, before closing.", min=0)
    ] = 0.0

    def check(self) -> None:
        """Raises BadParameter for options that do not fit together."""
        files = self.tls_cert is not None or self.tls_key is not None
        kept, registers = self.manages_trust, self.register
        rules: tuple[tuple[object, str], ...] = (
            (
                self.self_signed + (self.own_ca is not None) + files != 1,
                "give one of --self-signed, --own-ca, or both --tls-cert and --tls-key",
            ),
            (files and (self.tls_cert is None or self.tls_key is None), "--tls-cert and --tls-key belong together"),
            (self.url and self.service, "give --url or --service, not both"),
            (self.publish_ca and not (files and self.tls_ca), "--publish-ca needs --tls-ca and --tls-cert"),
            (self.check_trust and self.self_signed, "--check-trust needs --tls-cert"),
            (kept and not self.service, "--own-ca, --publish-ca and --check-trust need --service"),
            (
                self.own_ca is not None and self.leaf_hours > self.ca_days * 24 / 3,
                "--leaf-hours: a CA must live at least three times as long as a certificate",
            ),
            (self.tls_ca and not registers and not self.publish_ca, "--tls-ca needs --register or --publish-ca"),
            (self.service and not registers and not kept, "--service needs --register, --own-ca or --check-trust"),
            ((self.url or self.unregister_on_exit) and not registers, "--url and --unregister-on-exit need --register"),
            (
                registers and not self.url and not self.service and not self._address,
                f"--register with --host {self.host} needs --url or --service",
            ),
        )
        for holds, text in rules:
            if holds:
                raise typer.BadParameter(text)

    @property
    def manages_trust(self) -> bool:
        """Whether we see to the API servers' trust in the certificate."""
        return self.own_ca is not None or self.publish_ca or self.check_trust

    @property
    def hosts(self) -> list[str]:
        """The host names under which an API server calls the webhook, and the address where it listens."""
        named = urlsplit(self.url).hostname if self.url else None
        return [*self._address, *([named] if named else []), *self.service_hosts]

    @property
    def _address(self) -> list[str]:
        """The one address where it listens; none where it listens on all."""
        return [] if self.host in ("", "0.0.0.0", "::") else [self.host]  # noqa: S104 - to leave it out

    @property
    def service_hosts(self) -> list[str]:
        """The names of the Service, if there is one; the one that API servers use first."""
        if not self.service:
            return []
        its = registration.service(self.service)
        return [f"{its.name}.{its.namespace}.svc", f"{its.name}.{its.namespace}.svc.cluster.local"]
