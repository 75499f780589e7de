"""The chart's objects on the real plane, and its programs as processes that are nobody but its service accounts."""

import asyncio
import json
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from typing import Any

import yaml

from jobset_gate.kube.access import from_kubeconfig
from jobset_gate.kube.client import Client
from tests.fakes.eventually import PATIENCE, eventually
from tests.fakes.service_accounts import token_of
from tests.fakes.service_process import fetch, run_once
from tests.flow.policies import POLICIES, in_force, probed_last
from tests.plane.audit import AuditedRequest
from tests.plane.planes import Real, fresh_name
from tests.plane.ports import free_port
from tests.repo.files import ROOT
from tests.tools.catalog import helm

Json = dict[str, Any]
CHART = ROOT / "charts" / "jobset-gate"
RELEASE = "jobset-gate"
CONTROLLER, WEBHOOK = f"{RELEASE}-controller", f"{RELEASE}-webhook"
"""Their Deployments and their service accounts."""
LIVELY = (
    "controller.progressSeconds=1",
    # A process that loses its lease ends, and here nobody would start it again: not even on a very slow machine.
    "controller.leaderElection.leaseDurationSeconds=60",
    "controller.leaderElection.renewDeadlineSeconds=40",
    "controller.leaderElection.retryPeriodSeconds=1",
    "webhook.shutdownDelaySeconds=0",
)
"""Values for a release that a test waits for."""
ACCESS = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
KEPT = ("Secret", "Lease")
"""Listed without content, for uninstalling to find."""
HOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


async def rendered(namespace: str, *values: str) -> list[Json]:
    """What `helm template` makes of the chart with these `key=value`; hooks and tests included."""
    command = [str(helm(4)), "template", RELEASE, str(CHART), "--namespace", namespace]
    for value in values:
        command += ["--set", value]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return [one for one in yaml.safe_load_all(out) if one]


def found(manifests: list[Json], kind: str, name: str) -> Json:
    return next(one for one in manifests if one["kind"] == kind and one["metadata"]["name"] == name)


@dataclass
class Installed:
    """A release in `namespace` of the real plane; `manifests` are as rendered; `webhook_port` is the webhook's."""

    plane: Real
    namespace: str
    manifests: list[Json]
    folder: Path
    webhook_port: int

    async def token(self, account: str) -> str:
        async with self.plane.client() as admin:
            return await token_of(admin, self.namespace, account)

    @asynccontextmanager
    async def client(self, account: str) -> AsyncIterator[Client]:
        """A user with that account's token."""
        access = await from_kubeconfig(str(await self.kubeconfig(account)))
        async with Client(access, user_agent="a user") as client:
            yield client

    async def once(self, account: str, *arguments: str) -> tuple[int, str]:
        """Exit code and output of a pod's Python that runs once, as that account."""
        return await run_once(await self.kubeconfig(account), *arguments)

    def requests(self, account: str) -> list[AuditedRequest]:
        """All that the account has asked the API server so far."""
        return self.plane.running.requests(account, self.namespace)

    @asynccontextmanager
    async def program(self, name: str, *overriding: str) -> AsyncIterator["Program"]:
        """The component `name`, with the arguments of its Deployment and then these; gone at the end."""
        pod = found(self.manifests, "Deployment", f"{RELEASE}-{name}")["spec"]["template"]["spec"]
        kubeconfig = await self.kubeconfig(pod["serviceAccountName"])
        settings = self.folder / "settings.yaml"
        config_map = found(self.manifests, "ConfigMap", RELEASE)
        settings.write_text(config_map["data"]["settings.yaml"])
        port = self.webhook_port if name == "webhook" else free_port()
        arguments = [
            *pod["containers"][0]["args"],
            f"--kubeconfig={kubeconfig}", f"--config={settings}", "--host=127.0.0.1", f"--port={port}",
            *overriding,
        ]  # fmt: skip
        log = self.folder / f"{name}-{port}.log"
        with log.open("wb") as written:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "jobset_gate.cli", *arguments, cwd=ROOT, stdout=written, stderr=written
            )
        try:
            yield Program(process, port, log)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def kubeconfig(self, account: str) -> Path:
        config = json.loads(self.plane.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": await self.token(account)}
        config["contexts"][0]["context"]["namespace"] = self.namespace
        path = self.folder / f"{account}.kubeconfig"
        path.write_text(json.dumps(config))
        return path


@dataclass
class Program:
    """A running component; `port` is that of its health endpoints."""

    process: asyncio.subprocess.Process
    port: int
    log: Path

    async def stop(self) -> int:
        """The exit code after SIGTERM."""
        self.process.send_signal(SIGTERM)
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    async def until_up(self) -> None:
        """Until it takes connections."""

        async def answers() -> bool:
            assert self.process.returncode is None, self.log.read_text()
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return True
            return False

        await eventually(answers, self.log.read_text)

    async def until_ready(self, trusting: str) -> None:
        """Until /readyz says so over TLS; `trusting` is the CA."""

        async def ready() -> bool:
            with suppress(OSError):
                return (await fetch(f"https://127.0.0.1:{self.port}/readyz", trusting))[0] == 200
            return False

        await eventually(ready, self.log.read_text)


@asynccontextmanager
async def installed(plane: Real, *values: str) -> AsyncIterator[Installed]:
    """The chart's objects but its pods, in a namespace of their own; away again at the end.

    The webhook's Service leads to this machine, where the one process of the webhook will listen. Its admission
    policies are in force: what a program does under them shows that they let it.
    """
    namespace = fresh_name()
    await plane.make_namespace(namespace)
    manifests = await rendered(namespace, *values)
    webhook_port = free_port()
    kinds = (*ACCESS, *KEPT, *HOOKS, *POLICIES)
    wanted = probed_last([_here(one, webhook_port) for one in manifests if one["kind"] in kinds or _is_webhook(one)])
    # Through kubectl: it knows where each kind belongs. The namespace of each is its own.
    await plane.kubectl("apply", "--server-side", "-f", "-", stdin=_list(wanted))
    try:
        if any(one["kind"] in POLICIES for one in wanted):
            await in_force(plane, namespace, CONTROLLER)
        with tempfile.TemporaryDirectory(prefix="jobset-gate-release-") as folder:
            yield Installed(plane, namespace, manifests, Path(folder), webhook_port)
    finally:
        await plane.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=_list(wanted))
        await plane.drop_namespace(namespace)


def _is_webhook(manifest: Json) -> bool:
    return (manifest["kind"], manifest["metadata"]["name"]) == ("Service", f"{RELEASE}-webhook")


def _here(manifest: Json, webhook_port: int) -> Json:
    """The same, where pods are processes on this machine."""
    if _is_webhook(manifest):
        return {**manifest, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    if manifest["kind"] in HOOKS:
        for hook in manifest["webhooks"]:
            hook["clientConfig"]["service"]["port"] = webhook_port
    return manifest


def _list(manifests: list[Mapping[str, Any]] | list[Json]) -> Json:
    return {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
