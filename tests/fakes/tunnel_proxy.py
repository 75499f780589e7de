"""An HTTP proxy on loopback that knows CONNECT alone, and that a test can cut."""

import asyncio

from typing_extensions import override

from tests.fakes.tcp_forwarder import StreamPair, TcpForwarder


class TunnelProxy(TcpForwarder):
    """`async with TunnelProxy() as tunnel`. `targets` are the host:port that were asked for."""

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
