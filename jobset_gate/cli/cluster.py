"""Which cluster a command uses, and as which user: kubectl's options for it, the access they give, and the same options
in the commands that are printed.
"""

import re
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

import msgspec
import typer

from jobset_gate.cli.exits import CommandError, first_cause
from jobset_gate.cli.options import WEEK, Namespace, option, parse_duration
from jobset_gate.explain.model import Explanation
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ConnectionStage, Unauthorized, Unreachable, WatchIdleTimeout
from jobset_gate.kube.kubeconfig import Overrides


def parse_timeout(text: str | float) -> float:
    """Seconds; a number without a unit is seconds, and 0 is none, as kubectl has it."""
    seconds = float(text) if str(text).isdecimal() else parse_duration(text)
    return seconds or WEEK


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """As they were given; None where they were not."""

    kubeconfig: Annotated[
        str | None,
        option(
            "--kubeconfig",
            "FILE",
            "The kubeconfig to use; otherwise that of the pod we run in, $KUBECONFIG, or ~/.kube/config.",
        ),
    ] = None
    context: Annotated[str | None, option("--context", "NAME", "The context of the kubeconfig to use.")] = None
    cluster: Annotated[str | None, option("--cluster", "NAME", "The cluster of the kubeconfig to use.")] = None
    user: Annotated[str | None, option("--user", "NAME", "The user of the kubeconfig to use.")] = None
    server: Annotated[str | None, option("-s --server", "URL", "The API server to ask instead.")] = None
    token: Annotated[str | None, option("--token", "TOKEN", "The bearer token to use instead of credentials.")] = None
    as_user: Annotated[str | None, option("--as", "USER", "The user or ServiceAccount to impersonate.")] = None
    as_group: Annotated[list[str] | None, option("--as-group", "GROUP", "A group to impersonate. May be repeated.")] = (
        None
    )
    as_uid: Annotated[str | None, option("--as-uid", "UID", "The UID to impersonate.")] = None
    request_timeout: Annotated[
        float | None,
        option(
            "--request-timeout",
            "DURATION",
            "How long to wait for the answer to one request, such as 5s; 0 for no limit.",
            parser=parse_timeout,
            default="30s",
        ),
    ] = None

    async def load_access(self) -> access.Access:
        """Raises InvalidKubeConfig, and CommandError for options that do not fit together."""
        if (self.as_group or self.as_uid) and not self.as_user:
            raise typer.BadParameter("--as-group and --as-uid need --as")
        overrides = Overrides(
            context=self.context or "",
            cluster=self.cluster or "",
            user=self.user or "",
            server=self.server or "",
            token=self.token or "",
            as_user=self.as_user or "",
            as_uid=self.as_uid or "",
            as_groups=tuple(self.as_group or ()),
        )
        return replace(await access.load_access(self.kubeconfig, overrides), timeout=self.request_timeout)

    @asynccontextmanager
    async def connect(self, **options: Any) -> AsyncIterator[Client]:
        """A client; `options` are those of Client. Raises NoCluster where no API server lets the user in."""
        reached = await self.load_access()
        try:
            async with Client(reached, **options) as client:
                yield client
        except (Unreachable, Unauthorized, ExceptionGroup) as problem:
            cause = first_cause(problem)
            if isinstance(cause, WatchIdleTimeout) or not isinstance(cause, Unreachable | Unauthorized):
                raise
            raise CommandError(_reason(cause), hints=_hints(reached, cause)) from problem

    def given(self) -> list[tuple[str, str]]:
        """With their values, for commands that the user may run next; never the token."""
        groups = [("--as-group", it) for it in self.as_group or ()]
        pairs = [("--as", self.as_user), *groups, ("--as-uid", self.as_uid), ("--server", self.server)]
        pairs += [("--user", self.user), ("--cluster", self.cluster), ("--context", self.context)]
        return [(name, value) for name, value in (*pairs, ("--kubeconfig", self.kubeconfig)) if value]


# --- Where no cluster is reached -------------------------------------------------------------------------------------

_NEXT: Final = {
    ConnectionStage.DNS: "see whether the server's name is right, and whether it needs a VPN",
    ConnectionStage.TCP: "see whether the cluster runs, and whether a firewall, VPN or proxy is in the way",
    ConnectionStage.TLS: "compare the certificate authority of this cluster in the kubeconfig with the server's",
    ConnectionStage.HTTP: "try again; `kubectl get --raw /readyz` asks the same server",
    ConnectionStage.LOGIN: "log in again, or name another --user or --token; `kubectl auth whoami` asks the same",
    None: "see whether a firewall or VPN is in the way; --request-timeout waits longer",
}


def _reason(problem: Unreachable | Unauthorized) -> str:
    if isinstance(problem, Unauthorized):
        return f"{problem.hint}: {problem}"
    return f"no API server is reached: {str(problem).partition(': ')[2]}"  # which request it was, is of no interest


def _hints(reached: access.Access, problem: Unreachable | Unauthorized) -> tuple[str, ...]:
    through = f", through the proxy {reached.proxy}" if reached.proxy else ""
    found = [f"{reached.origin}; server {reached.server}{through}"]
    stage = problem.stage if isinstance(problem, Unreachable) else ConnectionStage.LOGIN
    if stage is not None:
        steps = [it for it in ConnectionStage if it is not ConnectionStage.TLS or reached.ssl is not None]
        well = " and ".join(it.name for it in steps if it < stage)
        found.append("tried: " + (f"{well} worked; " if well else "") + f"{stage.name} failed")
    found.append(f"next: {_NEXT[stage]}")
    if reached.other_contexts:
        found.append(f"other contexts: {', '.join(reached.other_contexts)}")
    return tuple(found)


# --- Commands that are printed ---------------------------------------------------------------------------------------

_OWN: Final = re.compile(r"^(?:kubectl )?jobset-gate(?= |$)")
_QUOTED: Final = re.compile(r"`((?:kubectl|jobset-gate) [^`]*)`")
_REST: Final = re.compile(r" (?:--|\||>|&&|;) ")
"""What stands behind it is none of that command's options."""
_NAMES_NAMESPACE: Final = re.compile(r" (?:-n|-A|--namespace|--all-namespaces)\b")
_TAKES_NAMESPACE: Final = re.compile(r"^\S.* doctor\b")
"""Our commands that take a namespace and do not name one."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """By which name and with which options this program was called. `namespace` None: it was not given."""

    ctx: typer.Context
    namespace: Namespace = None
    cluster: ClusterOptions = field(default_factory=ClusterOptions)

    def command(self, command: str) -> str:
        """A command of ours or of kubectl's as the user has to type it."""
        own = _OWN.match(command)
        if own:
            command = f"{self.ctx.find_root().info_name}{command[own.end() :]}"
        elif not command.startswith("kubectl "):
            return command
        rest = _REST.search(command)
        head, tail = (command[: rest.start()], command[rest.start() :]) if rest else (command, "")
        return head + "".join(f" {option} {shlex.quote(value)}" for option, value in self._options(head, own)) + tail

    def rewrite_commands(self, words: str) -> str:
        """Words with commands between back-ticks."""
        return _QUOTED.sub(lambda found: f"`{self.command(found[1])}`", words)

    def rewrite_explanation(self, it: Explanation) -> Explanation:
        """The same, with commands for this user."""
        missing = tuple(msgspec.structs.replace(one, command=self.command(one.command)) for one in it.missing)
        commands = tuple(map(self.command, it.commands))
        return msgspec.structs.replace(it, missing=missing, commands=commands)

    def _options(self, head: str, own: re.Match[str] | None) -> list[tuple[str, str]]:
        """Behind the command, where both kubectl and its plugins take them."""
        namespace = (
            self.namespace if own and _TAKES_NAMESPACE.match(head) and not _NAMES_NAMESPACE.search(head) else None
        )
        given = [*([("-n", namespace)] if namespace else []), *self.cluster.given()]
        return [(option, value) for option, value in given if f" {option} " not in head]
