"""Virtual time, and an API server that does what the test says."""

from tests.unit.kube.conftest import client, pytest_asyncio_loop_factories, real_time, server

__all__ = ["client", "pytest_asyncio_loop_factories", "real_time", "server"]
