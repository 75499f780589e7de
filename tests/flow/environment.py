"""Everything between `kubectl apply` and a running main container, on either plane, in real time.

The webhook and the controller are the shipped ones. JobSet's controller and webhooks are the stand-in, nodes and
kubelets are played; Jobs and pods are made by kube-controller-manager on the real plane.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from typing_extensions import override

from controllers.barrier import crd_patcher
from controllers.manager import Manager, ManagerOptions
from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import Verdict
from jobset_gate.barrier.source import Source
from jobset_gate.kube import resources
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Conflict, NotFound
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, JOBS, JOBSETS, PODS, Resource
from jobset_gate.settings import Settings
from jobset_gate.sources.table import JOBSET
from jobset_gate_demo.fake import jobset_crd, manifests
from jobset_gate_demo.fake.cluster import Actors
from jobset_gate_demo.fake.kubelet import Behaviour, FakeNode
from tests.fakes.admission_server import registered
from tests.fakes.eventually import PATIENCE
from tests.fakes.object_view import ObjectView, conditions
from tests.flow.service import Service
from tests.plane.planes import Plane

QUICK = Behaviour(
    configmap_sync=1.0,
    annotation_delay=0.02,
    sandbox_seconds=0.02,
    pull_seconds=0.02,
    init_seconds=0.1,
    barrier_poll=0.02,
    stream_retry=(0.05, 0.5),
)
ROOMY = (FakeNode("node-0", pods=1000),)

Json = dict[str, Any]
_RESOURCES = {(it.api_version, it.kind): it for it in vars(resources).values() if isinstance(it, Resource)}


async def server_side_apply(client: Client, manifest: Mapping[str, Any], namespace: str) -> None:
    """What `kubectl apply --server-side --force-conflicts` asks, for a tenth of the processor time."""
    resource, name = _RESOURCES[manifest["apiVersion"], manifest["kind"]], manifest["metadata"]["name"]
    body = {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}
    await client.patch(resource, name, namespace, body=body, patch=PatchType.APPLY, field_manager="kubectl", force=True)


class OffsetClock:
    """The controllers' wall clock: the real one and what a test adds to it; once it stands, only what a test adds."""

    def __init__(self) -> None:
        self._ahead, self._stands_at = 0.0, 0.0

    def __call__(self) -> float:
        return (self._stands_at or time.time()) + self._ahead

    def forward(self, seconds: float) -> None:
        self._ahead += seconds

    def stand(self) -> None:
        self._stands_at = time.time()


@dataclass
class BaseEnvironment:
    """One namespace of a plane, and the controllers that were started for it."""

    plane: Plane
    namespace: str
    client: Client
    pods: ObjectView
    """Those of the namespace, live."""
    replicas: list[Manager] = field(default_factory=list, kw_only=True)
    """All controllers that were ever started."""
    clock: OffsetClock = field(default_factory=OffsetClock, kw_only=True)
    """Theirs: a limit passes when a test says so, however slow the machine is."""
    running: list[asyncio.Task[None]] = field(default_factory=list, kw_only=True)

    async def events(self, name: str) -> list[tuple[str, str]]:
        """(reason, message) of the Events that jobset-gate wrote on an object of that name."""
        found = await self.client.list(EVENTS, self.namespace, field_selector=f"involvedObject.name={name}")
        ours = [one for one in found["items"] if one.get("reportingComponent") == names.PROGRAM]
        return [(one["reason"], one["message"]) for one in ours]

    def start_controller(self, *, access: Any = None, **changes: Any) -> Manager:
        """One replica, seeing this namespace only; `changes` are further options."""
        alone = {"leader_elect": False, "extend_crd": False, "clock": self.clock}
        options = {"namespace": self.namespace, "watch_namespace": self.namespace, **alone, **self.options(), **changes}
        manager = Manager(access or self.plane.access, ManagerOptions(**options))
        self.replicas.append(manager)
        self.running.append(asyncio.create_task(manager.run(), name="controller"))
        return manager

    def options(self) -> Json:
        """What a controller of this environment has as well."""
        return {}

    async def stop_controller(self) -> None:
        """The oldest that runs, at once, whatever it was doing."""
        if self.running:
            manager = self.running.pop(0)
            manager.cancel()
            with suppress(asyncio.CancelledError):
                await manager

    async def stop_controllers(self) -> None:
        while self.running:
            await self.stop_controller()


@dataclass
class Environment(BaseEnvironment):
    """With everything running in it; `service` finds the replica that leads."""

    actors: Actors
    service: Service

    @override
    def options(self) -> Json:
        return {"progress_every": 0.2, "stream_port": 0}

    # --- What a user does --------------------------------------------------------------------------------------------

    async def apply(self, manifest: Mapping[str, Any]) -> None:
        """As a user does it: see `server_side_apply`."""
        await server_side_apply(self.client, manifest, self.namespace)

    async def kubectl_apply(self, manifest: Mapping[str, Any]) -> None:
        """By the program itself, with the strict validation that is kubectl's default."""
        await self.plane.kubectl("apply", "-n", self.namespace, "-f", "-", stdin=self.in_namespace(manifest))

    async def create(self, manifest: Mapping[str, Any]) -> Json:
        return await self.client.create(JOBSETS, self.in_namespace(manifest), self.namespace)

    async def merge(self, name: str, body: Mapping[str, Any]) -> Json:
        return await self.client.patch(JOBSETS, name, self.namespace, body=body, patch=PatchType.MERGE)

    async def rewrite(self, name: str, change: Callable[[Json], None]) -> Json:
        """Read, change, PUT, as a typed client does; again when another client wrote meanwhile."""
        while True:
            jobset = await self.jobset(name)
            change(jobset)
            with suppress(Conflict):
                return await self.client.replace(JOBSETS, jobset)

    async def pass_timeout(self, name: str) -> None:
        """Five minutes later, and something changes on the JobSet, so that it is looked at."""
        self.clock.forward(300)
        await self.merge(name, {"metadata": {"annotations": {"looked": "at"}}})

    async def suspend(self, name: str, *, suspended: bool = True) -> Json:
        return await self.merge(name, {"spec": {"suspend": suspended}})

    def in_namespace(self, manifest: Mapping[str, Any]) -> Json:
        """The manifest, in this stage's namespace."""
        return {**manifest, "metadata": {**manifest["metadata"], "namespace": self.namespace}}

    # --- What there is -----------------------------------------------------------------------------------------------

    async def jobset(self, name: str) -> Json:
        return await self.client.get(JOBSETS, name, self.namespace)

    async def jobs(self) -> list[Json]:
        return list((await self.client.list(JOBS, self.namespace))["items"])

    async def config_map(self, name: str, source: Source = JOBSET) -> Json | None:
        try:
            return await self.client.get(CONFIGMAPS, source.config_map_name(name), self.namespace)
        except NotFound:
            return None

    async def verdict(self, name: str, source: Source = JOBSET) -> Verdict | None:
        gate = await self.config_map(name, source)
        return verdict_codec.parse((gate or {}).get("data", {}).get(names.KEY_VERDICT, ""))

    # --- Waiting -----------------------------------------------------------------------------------------------------

    async def until(self, holds: Callable[[list[Json]], bool]) -> list[Json]:
        """Until it is true of the pods."""
        found: list[Json] = []

        async def wait() -> None:
            found.extend(await self.pods.until(holds, PATIENCE))

        await self.actors.until(wait())
        return found

    async def until_held(self, count: int) -> list[Json]:
        """Until that many pods wait in their barrier."""
        return await self.until(lambda pods: sum(map(held, pods)) == count)

    async def until_running(self, count: int) -> list[Json]:
        """Until the main containers of that many pods run."""
        return await self.until(lambda pods: sum(map(runs, pods)) == count)

    async def until_workload(self, name: str, holds: Callable[[Json], bool], resource: Resource = JOBSETS) -> Json:
        async with ObjectView(self.client, resource, self.namespace, field_selector=f"metadata.name={name}") as view:
            (found,) = await view.until(lambda all_: any(map(holds, all_)), PATIENCE)
        return found

    async def until_condition(self, name: str, reason: str, text: str = "", resource: Resource = JOBSETS) -> Json:
        """Our condition, once it has this reason and contains this text."""

        def reported(workload: Json) -> bool:
            found = condition(workload)
            return found is not None and found["reason"] == reason and text in found["message"]

        found = condition(await self.until_workload(name, reported, resource))
        assert found is not None
        return found

    async def until_verdict(
        self, name: str, holds: Callable[[Verdict], bool] = lambda _: True, source: Source = JOBSET
    ) -> Verdict:
        """The gang's verdict, once there is such a one in its ConfigMap."""

        def decided(gate: Json) -> bool:
            found = verdict_codec.parse(gate.get("data", {}).get(names.KEY_VERDICT, ""))
            return found is not None and holds(found)

        await self.until_workload(source.config_map_name(name), decided, CONFIGMAPS)
        verdict = await self.verdict(name, source)
        assert verdict is not None
        return verdict


@asynccontextmanager
async def environment(
    plane: Plane,
    namespace: str,
    *,
    nodes: Sequence[FakeNode] = ROOMY,
    behaviour: Behaviour = QUICK,
    settings: Settings | None = None,
    controller: bool = True,
    webhook: bool = True,
    stream: bool = True,
) -> AsyncIterator[Environment]:
    """A stage with JobSet installed, its CRD extended, and jobset-gate running as far as asked for.

    `stream`: whether the webhook tells pods of the gate stream, as an installation does.
    """
    real = plane.name == "real"
    replicas: list[Manager] = []
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(plane.client("stage"))
        await jobset_crd.install(client)
        await crd_patcher.extend_crd(client)
        actors = await stack.enter_async_context(
            Actors(
                plane.access,
                namespace=namespace,
                nodes=[replace(node, name=f"{namespace}-{node.name}") for node in nodes],
                behaviour=behaviour,
                with_jobs=not real,
            )
        )
        pods = await stack.enter_async_context(ObjectView(client, PODS, namespace))
        service = await stack.enter_async_context(Service(lambda: [one.stream_url for one in replicas]))
        stage = Environment(plane, namespace, client, pods, actors, service, replicas=replicas)
        stack.push_async_callback(stage.stop_controllers)
        if webhook:
            # For the stage's namespace alone: other tests share the API server.
            wanted = with_stream(settings or Settings(), service.url if stream else None)
            await stack.enter_async_context(registered(client, namespace, wanted))
        if controller:
            stage.start_controller()
        yield stage


def with_stream(settings: Settings, url: str | None) -> Settings:
    return msgspec.structs.replace(settings, barrier=msgspec.structs.replace(settings.barrier, stream_url=url))


async def in_force(stage: Environment) -> None:
    """Returns once the API server asks the webhook: a dry run of a bad config is refused."""
    probe = manifests.jobset("probe", stage.namespace, annotations={names.CONFIG: "nonsense"})
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await stage.client.create(JOBSETS, probe, stage.namespace, dry_run=True)
            except ApiError as refused:
                if names.CONFIG in refused.message:
                    return
            await asyncio.sleep(0.05)  # nothing tells when an API server has read its webhook configurations


# --- Facts about pods ------------------------------------------------------------------------------------------------


def barrier(pod: Json) -> Json:
    """The state of its barrier, {} if there is none yet."""
    for status in pod["status"].get("initContainerStatuses") or ():
        if status["name"] == names.BARRIER_CONTAINER:
            return dict(status.get("state") or {})
    return {}


def alive(pod: Json) -> bool:
    return pod["metadata"].get("deletionTimestamp") is None and pod["status"].get("phase") != "Failed"


def held(pod: Json) -> bool:
    return alive(pod) and "running" in barrier(pod)


def runs(pod: Json) -> bool:
    """Its main containers run."""
    statuses = pod["status"].get("containerStatuses") or ()
    return alive(pod) and bool(statuses) and all("running" in (one.get("state") or {}) for one in statuses)


def condition(jobset: Json) -> Json | None:
    return conditions(jobset).get(names.CONDITION)
