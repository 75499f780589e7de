"""The status page of a whole controller: the API server's reviews, a release, a timeout, a standby."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from controllers.manager import Manager
from jobset_gate import names
from jobset_gate.kube.resources import JOBSETS, PODS, Resource
from jobset_gate.settings import Groups
from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.kubelet import FakeNode
from tests.fakes.eventually import PATIENCE, eventually
from tests.fakes.podgroups import objects
from tests.fakes.served_page import events
from tests.fakes.service_accounts import allow, made_account
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import Environment
from tests.plane.ports import free_port


async def account(stage: Environment, name: str, *kinds: Resource) -> str:
    """A token of a service account that may list these in the stage's namespace."""
    token = await made_account(stage.client, stage.namespace, name)
    if kinds:
        await allow(stage.client, stage.namespace, name, *kinds, verbs=["list"])
    return token


@asynccontextmanager
async def page(manager: Manager, token: str) -> AsyncIterator[aiohttp.ClientSession]:
    """A session with a replica's page, once it has something to show: a replica may lead before JobSets are listed."""
    async with asyncio.timeout(PATIENCE):
        await manager.serving.wait()
        assert manager.page is not None
        await manager.page.listening.wait()
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(manager.page.url, headers=headers) as session:

        async def shows() -> bool:
            return (await text(session, "/"))[0] != 503

        await eventually(shows)  # nothing tells when all is listed
        yield session


async def text(session: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with session.get(path) as answer:
        return answer.status, await answer.text()


async def test_a_release_is_seen_by_viewers_with_the_right(make_stage: MakeEnvironment) -> None:
    async with make_stage(nodes=(FakeNode("early", pods=1),), controller=False) as stage:
        manager = stage.start_controller(page_port=free_port(), page_prices={"nvidia.com/gpu": 2.5})
        member, nobody = await account(stage, "member", JOBSETS, PODS), await account(stage, "nobody")
        await stage.apply(manifests.gang("train", jobs=1, pods=2))
        await stage.until_held(1)
        await stage.until_condition("train", names.REASON_WAITING, "1/2 pods started")
        async with page(manager, nobody) as session:
            assert manager.page is not None
            assert manager.page.options.prices == {"nvidia.com/gpu": 2.5}
            status, html = await text(session, f"/gangs/{stage.namespace}/train")
            assert status == 403
            assert f"You may not list jobsets.jobset.x-k8s.io in namespace {stage.namespace}" in html
        async with page(manager, "not-a-token") as session:
            assert (await text(session, "/"))[0] == 401
        async with page(manager, member) as session:
            assert f"gang-{stage.namespace}.train" in (await text(session, "/"))[1]
            assert (await text(session, "/?namespace=default"))[0] == 403
            status, found = await text(session, f"/api/v1/gangs/{stage.namespace}/train")
            assert (status, '"state":"Waiting"' in found) == (200, True)
            assert (await text(session, "/api/v1/gangs?namespace=default"))[0] == 403
            assert "<svg" in (await text(session, f"/gangs/{stage.namespace}/train/timeline.svg"))[1]
            async with session.get(f"/gangs/{stage.namespace}/train/events") as answer:
                news = events(answer)
                await seen(news, "1 of 2 pods started")
                await stage.actors.kubelets.add_node(FakeNode(f"{stage.namespace}-late", pods=10))
                await seen(news, 'data-state="Released"')
            await stage.until_running(2)


async def seen(news: AsyncIterator[tuple[str, Any]], word: str) -> None:
    """Waits for an update with this word."""
    async with asyncio.timeout(PATIENCE):
        async for _, data in news:
            if word in str(data):
                return
    raise AssertionError(f"the stream has ended without {word}")


async def test_a_standby_shows_the_same_and_names_the_leader(make_stage: MakeEnvironment) -> None:
    async with make_stage(controller=False) as stage:
        # The first gives the lease back in order, so a long one costs nothing and outlasts a slow machine.
        lease = {"leader_elect": True, "retry": 0.4}
        leader = stage.start_controller(**lease, identity="first", page_port=free_port())
        async with asyncio.timeout(PATIENCE):
            await leader.leading.wait()
        standby = stage.start_controller(**lease, identity="second", page_port=free_port())
        member = await account(stage, "member", JOBSETS, PODS)
        await stage.apply(manifests.gang("train", jobs=1, pods=2))
        await stage.until_running(2)
        await stage.until_condition("train", names.REASON_STARTED)
        async with page(standby, member) as session:
            async with session.get("/events") as answer:
                await seen(events(answer), 'data-state="Released"')
            async with session.get("/events") as answer:
                await seen(events(answer), "first leads, this replica stands by")
            await stage.stop_controller()
            async with asyncio.timeout(PATIENCE):
                await standby.leading.wait()
            assert "stands by" not in (await text(session, "/"))[1]


async def test_a_pod_group_is_shown_with_the_schedulers_reason(make_stage: MakeEnvironment) -> None:
    async with make_stage(controller=False, webhook=False) as stage:
        member = await account(stage, "member", PODS)
        held = objects.pod("held", of=objects.key("ring", namespace=stage.namespace), namespace=stage.namespace)
        spec = {**held["spec"], "containers": [{"name": "main", "image": "busybox"}]}
        del spec["nodeName"]
        meta = {key: held["metadata"][key] for key in ("name", "labels", "annotations")}
        await stage.client.create(PODS, {"metadata": meta, "spec": spec}, stage.namespace)
        manager = stage.start_controller(page_port=free_port(), groups=Groups(), pod_group_crds=False)
        async with page(manager, member) as session:
            async with session.get("/groups/events") as answer:
                await seen(events(answer), names.REASON_POD_GROUP_MISSING)
            status, html = await text(session, f"/groups/{stage.namespace}/ring?way=scheduler-plugins")
            assert status == 200
            assert f'data-state="{names.REASON_POD_GROUP_MISSING}"' in html
            assert (await text(session, "/"))[0] == 403
