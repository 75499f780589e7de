"""What `webhook` does: the door, with its certificate, until it is told to stop; registered if that is asked for."""

import asyncio
import ssl
import tempfile
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jobset_gate.cli.exits import Failed
from jobset_gate.cli.serving import registration
from jobset_gate.cli.serving.signals import until_told
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.settings import Settings
from webhook import selfsigned
from webhook.server import Server, serve
from webhook.tls import Certificate


@dataclass(frozen=True, slots=True)
class Listen:
    """Where the door is and with which certificate. Without files it makes a throw-away one."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    """What the API server shall trust, if the certificate comes from files."""
    notice: float = 0.0
    """Seconds between being told to stop and closing the door."""


@dataclass(frozen=True, slots=True)
class Register:
    """Whether and how API servers are told."""

    wanted: bool = False
    url: str | None = None
    service: str | None = None
    remove: bool = False
    kubeconfig: str | None = None
    context: str | None = None

    @property
    def hosts(self) -> list[str]:
        """The names under which an API server will look for the door."""
        found = [urlsplit(self.url).hostname] if self.url else []
        if self.service:
            its = registration.service(self.service)
            found += [f"{its.name}.{its.namespace}.svc", f"{its.name}.{its.namespace}.svc.cluster.local"]
        return [host for host in found if host]


@dataclass(slots=True)
class _Ready:
    why_not: str | None = field(default=None)

    def __call__(self) -> str | None:
        return self.why_not


async def run(settings: Settings, listen: Listen, register: Register) -> None:
    """Until SIGTERM or SIGINT. Raises Failed, OSError (a port that is taken), and what registering raises."""
    await until_told(_serve(settings, listen, register))


async def _serve(settings: Settings, listen: Listen, register: Register) -> None:
    async with AsyncExitStack() as stack:
        tls, ca_bundle = _certificate(listen, register, stack)
        ready = _Ready("not registered yet" if register.wanted else None)
        server = await serve(settings, host=listen.host, port=listen.port, tls=tls, ready=ready)
        stack.push_async_callback(server.stop, notice=listen.notice)
        if register.wanted:
            await stack.enter_async_context(_registered(register, server, ca_bundle))
            ready.why_not = None
        await asyncio.Event().wait()


def _certificate(listen: Listen, register: Register, stack: AsyncExitStack) -> tuple[Certificate, str | None]:
    """The certificate to serve and the caBundle to register; None: whom the API server trusts anyway."""
    if listen.certificate is None or listen.key is None:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="jobset-gate-"))
        own = [listen.host] if listen.host not in ("", "0.0.0.0", "::") else []  # noqa: S104 - to leave it out
        made = selfsigned.make(list(dict.fromkeys([*own, *register.hosts, *selfsigned.LOOPBACK])), days=365)
        return made.write(Path(folder)), made.ca_bundle
    try:
        return Certificate(listen.certificate, listen.key), _bundle(listen.ca)
    except ssl.SSLError as problem:
        raise Failed(f"{listen.certificate}, {listen.key}: no certificate with its key: {problem.reason}") from problem


def _bundle(ca: Path | None) -> str | None:
    return b64encode(ca.read_bytes()).decode() if ca is not None else None


@asynccontextmanager
async def _registered(register: Register, server: Server, ca_bundle: str | None) -> AsyncIterator[None]:
    where: dict[str, Any] = {"url": register.url or server.url}
    if register.service:
        service = registration.service(register.service)
        where = {"service": service, "own_namespace": service.namespace}
    reached = await access.discover(register.kubeconfig, register.context)
    async with Client(reached, user_agent="jobset-gate-webhook") as client:
        made = await registration.register(client, ca_bundle=ca_bundle, **where)
        try:
            yield
        finally:
            if register.remove:
                await registration.unregister(client, made)
