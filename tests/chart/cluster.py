"""A release on the real control plane: what a Helm does there, and what an operator would look at."""

import asyncio
import base64
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import LEASES, MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS, Resource
from tests.chart.helm import CHART, RELEASE, Helm, HelmError, Json, Values
from tests.chart.hook_pods import Run, nothing, played
from tests.fakes.eventually import PATIENCE
from tests.plane.planes import Real, fresh_name
from webhook import registration

Configurations = tuple[tuple[Resource, str], ...]
CONFIGURATIONS: Final[Configurations] = (
    (MUTATING_WEBHOOKS, registration.MUTATING),
    (VALIDATING_WEBHOOKS, registration.VALIDATING),
    (MUTATING_WEBHOOKS, names.POD_WEBHOOK),
)
BUNDLE: Final = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n").decode()
WEBHOOK: Final = f"{names.FIELD_MANAGER}-webhook"
"""Who writes the caBundle."""
OURS: Final = "app.kubernetes.io/name=jobset-gate"


@dataclass(frozen=True, slots=True)
class ChartRelease:
    """One release in its namespace."""

    plane: Real
    helm: Helm
    namespace: str

    async def run(self, command: str, *arguments: str, values: Values | None = None, by: Helm | None = None) -> str:
        """A command of Helm about it."""
        where = (command, RELEASE, *arguments, "--namespace", self.namespace)
        chosen = by or self.helm
        return await asyncio.to_thread(chosen.run, *where, values=values, kubeconfig=self.plane.kubeconfig)

    async def install(self, values: Values | None = None, *, chart: Path = CHART) -> str:
        return await self.run("install", str(chart), values=values or {})

    async def upgrade(self, values: Values | None = None, *, by: Helm | None = None) -> str:
        return await self.run("upgrade", str(CHART), values=values or {}, by=by)

    async def uninstall(self, by: Helm | None = None, *, hooks: Run = nothing) -> str:
        """Also the pods of its hooks run, as `hooks` says."""
        async with self.plane.client() as client, played(client, self.namespace, hooks):
            return await self.run("uninstall", by=by)

    async def clear_away(self) -> None:
        """Whatever a test has left, for the next one."""
        try:
            await self.run("uninstall", "--no-hooks", "--ignore-not-found")
        except HelmError as refused:
            raise AssertionError(f"cannot be uninstalled: {refused}") from refused

    async def left(self) -> set[str]:
        """Every object in the cluster that says it is ours, but pods and the like on their way out."""
        kinds = await self.plane.kubectl("api-resources", "--verbs=list", "-o", "name")
        wanted = ",".join(kind for kind in kinds.stdout.split() if not kind.startswith("events"))
        found = await self.plane.kubectl("get", wanted, "--all-namespaces", "-l", OURS, "-o", "name")
        return set(found.stdout.split())

    async def until_nothing_is_left(self) -> None:
        """The garbage collector takes a moment."""
        async with asyncio.timeout(PATIENCE):
            while await self.left():  # noqa: ASYNC110 - it tells nobody when it is done
                await asyncio.sleep(0.2)


async def written_by_the_webhook(client: Client, namespace: str, there: Configurations = CONFIGURATIONS) -> None:
    """What a running webhook and controller write: caBundle, CA Secret, Lease; each as they do it."""
    for resource, name in there:
        stored = await client.get(resource, name)
        body = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": stored["metadata"]["resourceVersion"]},
            {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": BUNDLE},
        ]
        await client.patch(resource, name, body=body, patch=PatchType.JSON, field_manager=WEBHOOK)
    secret = await client.get(SECRETS, f"{RELEASE}-ca", namespace)
    await client.replace(SECRETS, secret | {"data": {"ca.crt": BUNDLE, "ca.key": BUNDLE}})
    lease = await client.get(LEASES, names.LEASE, namespace)
    await client.replace(LEASES, lease | {"spec": {"holderIdentity": "another", "leaseDurationSeconds": 15}})


async def kept(client: Client, namespace: str, there: Configurations = CONFIGURATIONS) -> Json:
    """The same, as it stands."""
    bundles = [
        (await client.get(resource, name))["webhooks"][0]["clientConfig"].get("caBundle") for resource, name in there
    ]
    secret = await client.get(SECRETS, f"{RELEASE}-ca", namespace)
    lease = await client.get(LEASES, names.LEASE, namespace)
    return {"bundles": bundles, "secret": secret.get("data"), "holder": lease.get("spec", {}).get("holderIdentity")}


AS_WRITTEN: Final[dict[str, Any]] = {
    "bundles": [BUNDLE, BUNDLE, BUNDLE],
    "secret": {"ca.crt": BUNDLE, "ca.key": BUNDLE},
    "holder": "another",
}


def lowered(folder: Path, version: str) -> Path:
    """A copy of the chart as the version before would have been."""
    copy = folder / "jobset-gate"
    shutil.copytree(CHART, copy)
    about = yaml.safe_load((copy / "Chart.yaml").read_text())
    (copy / "Chart.yaml").write_text(yaml.safe_dump(about | {"version": version, "appVersion": version}))
    return copy


@asynccontextmanager
async def fresh_release(plane: Real, helm: Helm) -> AsyncIterator[ChartRelease]:
    """A release that is not installed yet, in a namespace of its own; nothing of it stays."""
    made = ChartRelease(plane, helm, fresh_name())
    await plane.make_namespace(made.namespace)
    yield made
    await made.clear_away()
    await plane.delete_namespace(made.namespace)
