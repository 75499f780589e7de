"""One scenario's namespace in the cluster: what a user does there, what can be seen, and waiting for it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from e2e import commands, logs, predicates
from e2e.environment import Environment
from e2e.extended_resource import MARK
from e2e.logs import LogLine
from e2e.predicates import Json
from e2e.timeouts import TIMEOUT
from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import Verdict
from jobset_gate.kube import access
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, JOBSETS, NAMESPACES, PODS, Resource
from tests.fakes.object_view import ObjectView

FIRST_LINE_TIMEOUT: Final = 60.0
"""Seconds from a container's start to its first line, at most."""
SERVICE_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount")
POLL_INTERVAL: Final = 0.5
PODS_OF_GANG: Final = f"--selector={names.JS_NAME}=gang"
"""Those of the JobSet that scenarios make."""


@dataclass
class Scenario:
    """A namespace of its own. It waits by watching; a TimeoutError says what did not come."""

    environment: Environment
    namespace: str
    client: Client
    pods: ObjectView
    ends: dict[str, Json]
    """How the barrier of each pod ended, by the pod's name; also of those that have gone since."""
    seen: dict[str, Json]
    """The last state of each pod, by its name; also of those that have gone since."""

    @property
    def image(self) -> str:
        """For main containers."""
        return self.environment.small_image

    # --- What a user does --------------------------------------------------------------------------------------------

    async def kubectl(self, *args: str, stdin: str | None = None, seconds: float = TIMEOUT) -> str:
        """In this namespace. Raises commands.Failed with kubectl's words."""
        command = ("kubectl", "--kubeconfig", self.environment.kubeconfig, "--namespace", self.namespace, *args)
        return await asyncio.to_thread(commands.run, *command, stdin=stdin, seconds=seconds)

    async def kubectl_as_is(self, *args: str, seconds: float = TIMEOUT) -> str:
        """In the namespaces that the manifests name."""
        command = ("kubectl", "--kubeconfig", self.environment.kubeconfig, *args)
        return await asyncio.to_thread(commands.run, *command, seconds=seconds)

    async def apply(self, *manifests: Mapping[str, Any], dry_run: bool = False) -> str:
        """With the strict validation that is kubectl's default."""
        placed = [{**it, "metadata": {**it["metadata"], "namespace": self.namespace}} for it in manifests]
        everything = {"apiVersion": "v1", "kind": "List", "items": placed}
        flags = ("--dry-run=server",) if dry_run else ()
        return await self.kubectl("apply", *flags, "-f", "-", stdin=json.dumps(everything))

    async def suspend(self, *, suspended: bool = True) -> Json:
        body = {"spec": {"suspend": suspended}}
        return await self.client.patch(JOBSETS, "gang", self.namespace, body=body, patch=PatchType.MERGE)

    async def label_namespace(self, labels: Mapping[str, str]) -> None:
        body = {"metadata": {"labels": dict(labels)}}
        await self.client.patch(NAMESPACES, self.namespace, body=body, patch=PatchType.MERGE)

    async def delete_pod(self, name: str, *, now: bool = False) -> None:
        await self.client.delete(PODS, name, self.namespace, grace_seconds=0 if now else None)

    # --- What there is -----------------------------------------------------------------------------------------------

    async def jobset(self) -> Json:
        return await self.client.get(JOBSETS, "gang", self.namespace)

    async def gate(self) -> Json | None:
        """The gang's ConfigMap."""
        try:
            return await self.client.get(CONFIGMAPS, names.config_map_name("gang"), self.namespace)
        except NotFound:
            return None

    async def verdict(self) -> Verdict | None:
        gate = await self.gate()
        return verdict_codec.parse((gate or {}).get("data", {}).get(names.KEY_VERDICT, ""))

    async def events(self) -> list[tuple[str, str]]:
        """(reason, message) of the Events that jobset-gate wrote on the gang."""
        found = await self.client.list(EVENTS, self.namespace, field_selector="involvedObject.name=gang")
        return [
            (event["reason"], event["message"])
            for event in found["items"]
            if event.get("reportingComponent") == names.PROGRAM
        ]

    async def logs(self, selector: str = PODS_OF_GANG) -> list[LogLine]:
        """All lines of all containers of the gang's pods that still exist."""
        flags = ("--all-containers", "--prefix", "--timestamps", "--tail=-1", "--max-log-requests=200")
        return logs.parse(await self.kubectl("logs", selector, *flags, "--ignore-errors"))

    async def check_order(self, expected: int, selector: str = PODS_OF_GANG) -> float:
        """Nobody ran before everybody was there; see logs.py. Returns seconds from last barrier to last main."""
        return logs.check_all_started_before_any_ran(await self.logs_of_mains(expected, selector), expected)

    async def logs_of_mains(self, mains: int, selector: str = PODS_OF_GANG) -> list[LogLine]:
        """The logs once so many main containers have said something: one that runs may not have come to it yet."""
        deadline = asyncio.get_running_loop().time() + FIRST_LINE_TIMEOUT
        while True:
            lines = await self.logs(selector)
            if len(logs.first_lines(lines, "main")) >= mains or asyncio.get_running_loop().time() > deadline:
                return lines
            await asyncio.sleep(POLL_INTERVAL)

    # --- Waiting -----------------------------------------------------------------------------------------------------

    async def until(self, holds: Callable[[list[Json]], bool], seconds: float = TIMEOUT) -> list[Json]:
        """Until it is true of the namespace's pods."""
        return await _wait(self.pods, holds, seconds)

    async def until_held(self, count: int, seconds: float = TIMEOUT) -> list[Json]:
        """Until exactly that many pods wait in their barrier; none may have run. Returns all pods."""
        return await self.until(lambda pods: sum(map(predicates.held, pods)) == count, seconds)

    async def until_running(self, count: int, seconds: float = TIMEOUT) -> list[Json]:
        """Until the main containers of exactly that many pods run. Returns those pods."""
        pods = await self.until(lambda pods: sum(map(predicates.runs, pods)) == count, seconds)
        return [pod for pod in pods if predicates.runs(pod)]

    async def until_jobset(self, holds: Callable[[Json], bool], seconds: float = TIMEOUT) -> Json:
        found = await self.until_any(JOBSETS, holds, seconds)
        return found[0]

    async def until_condition(self, reason: str, text: str = "", seconds: float = TIMEOUT) -> Json:
        """Our condition, once it has this reason and contains this text."""

        def matches(jobset: Json) -> bool:
            found = predicates.condition(jobset)
            return found.get("reason") == reason and text in found["message"]

        return predicates.condition(await self.until_jobset(matches, seconds))

    async def until_verdict(
        self,
        holds: Callable[[Verdict], bool] = lambda _: True,
        seconds: float = TIMEOUT,
        config_map: str = names.config_map_name("gang"),
    ) -> Verdict:
        """The gang's verdict, once there is such a one in this ConfigMap."""

        def parsed(one: Json) -> Verdict | None:
            if predicates.name_of(one) != config_map:
                return None
            return verdict_codec.parse(one.get("data", {}).get(names.KEY_VERDICT, ""))

        def decided(one: Json) -> bool:
            found = parsed(one)
            return found is not None and holds(found)

        (gate,) = await self.until_any(CONFIGMAPS, decided, seconds)
        verdict = parsed(gate)
        assert verdict is not None
        return verdict

    async def until_any(
        self, resource: Resource, holds: Callable[[Json], bool], seconds: float = TIMEOUT
    ) -> list[Json]:
        """The objects of a kind that it holds for, once there are any."""
        async with ObjectView(self.client, resource, self.namespace) as view:
            found = await _wait(view, lambda all_: any(map(holds, all_)), seconds)
        return [one for one in found if holds(one)]


async def _wait(view: ObjectView, holds: Callable[[list[Json]], bool], seconds: float) -> list[Json]:
    try:
        return await view.until(holds, seconds)
    except TimeoutError:
        gists = "; ".join(map(predicates.gist, view.all())) or "nothing"
        raise TimeoutError(f"not as expected after {seconds:.0f}s, there is {gists}") from None


@asynccontextmanager
async def open_scenario(environment: Environment, namespace: str) -> AsyncIterator[Scenario]:
    """A new namespace in which pods can be made; deleted at the end, without waiting for its pods to go."""
    async with Client(await access.from_kubeconfig(environment.kubeconfig), user_agent="jobset-gate-e2e") as client:
        body = {"metadata": {"name": namespace, "labels": {MARK: "true"}}}
        await client.create(NAMESPACES, body)
        try:
            ends: dict[str, Json] = {}
            seen: dict[str, Json] = {}

            def note(pod: Json) -> None:
                seen[predicates.name_of(pod)] = pod
                if end := predicates.barrier_end(pod):
                    ends[predicates.name_of(pod)] = end

            async with ObjectView(client, SERVICE_ACCOUNTS, namespace) as accounts:
                await accounts.until(bool, TIMEOUT)
            async with ObjectView(client, PODS, namespace, each=note) as pods:
                yield Scenario(environment, namespace, client, pods, ends, seen)
        finally:
            await client.delete(NAMESPACES, namespace)
