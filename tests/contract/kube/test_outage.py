"""A real API server that goes down, comes back, and has forgotten what a watch could begin from."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from typing_extensions import override

from jobset_gate.kube.access import from_kubeconfig
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Expired, Unreachable
from jobset_gate.kube.resources import CONFIGMAPS
from jobset_gate.runtime.decoder import WatchProblemKind
from tests.fakes.informer_harness import running_informer
from tests.fakes.tcp_forwarder import StreamPair, TcpForwarder
from tests.plane.planes import Real

pytestmark = [pytest.mark.real]


class TunnelProxy(TcpForwarder):
    """An HTTP proxy on loopback that knows CONNECT alone. `targets` are the host:port that were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: set[str] = set()

    @override
    async def connect(self, near: StreamPair) -> StreamPair:
        verb, target, _ = (await near[0].readuntil(b"\r\n\r\n")).split(b" ", 2)
        assert verb == b"CONNECT"
        self.targets.add(target.decode())
        host, port = target.decode().rsplit(":", 1)
        far = await asyncio.open_connection(host, int(port))
        near[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        return far


async def make(admin: Client, name: str, value: str) -> str:
    """Its resourceVersion."""
    meta = {"name": name, "namespace": "default", "labels": {"kept": "yes"}}
    made = await admin.create(CONFIGMAPS, {"metadata": meta, "data": {"value": value}})
    return str(made["metadata"]["resourceVersion"])


async def refusal_of_watch(client: Client, version: str) -> str:
    """The error of a watch from this version, as an HTTP status or within the stream; "" if there is none."""
    try:
        async with client.watch(CONFIGMAPS, "default", resource_version=version, timeout_seconds=1) as lines:
            async for line in lines:
                return line.decode()
    except Expired as gone:
        return str(gone)
    return ""


async def test_an_informer_outlives_the_api_server_and_finds_the_changes_it_missed(real_plane: Real) -> None:
    """On a plane of its own: this one suffers."""
    own_plane = real_plane.running
    async with TunnelProxy() as tunnel, real_plane.client() as admin:
        access = await from_kubeconfig(str(own_plane.kubeconfig))
        await make(admin, "stays", "1")
        behind = await make(admin, "goes", "1")
        through = Client(replace(access, proxy=tunnel.url))
        async with through as client, running_informer(client, scope="default", label_selector="kept=yes") as watched:
            assert watched.values == {"stays": "1", "goes": "1"}
            page = await admin.list(CONFIGMAPS, "default", limit=1)
            tunnel.cut()
            await admin.delete(CONFIGMAPS, "goes", "default")
            await make(admin, "comes", "1")
            await asyncio.to_thread(own_plane.stop_apiserver)
            with pytest.raises(Unreachable):
                await admin.list(CONFIGMAPS, "default")
            await asyncio.to_thread(own_plane.compact_history)
            await asyncio.to_thread(own_plane.restart_apiserver)
            assert "too old resource version" in await refusal_of_watch(admin, behind)
            with pytest.raises(Expired, match="continue"):
                await admin.list(CONFIGMAPS, "default", continue_=page["metadata"]["continue"])
            tunnel.mend()
            await watched.sees(stays="1", comes="1")
            assert WatchProblemKind.EXPIRED in watched.problems or WatchProblemKind.ERROR_EVENT in watched.problems
            await admin.delete(CONFIGMAPS, "stays", "default")
            await watched.sees(comes="1")
        assert watched.changes[2:] == [("goes", "1", None), ("comes", None, "1"), ("stays", "1", None)]
