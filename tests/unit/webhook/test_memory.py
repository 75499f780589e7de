"""All that clients can hold at once is less than the memory limit of the chart."""

import asyncio
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.fakes.present import present
from tests.fakes.stalled_clients import StalledClients, head, stalled_clients
from tests.repo.files import ROOT
from webhook.bodies import LARGEST_BODY

VALUES = yaml.safe_load((ROOT / "charts/jobset-gate/values.yaml").read_text())
SECONDS = "600"
"""Nobody is sent away for being slow: all that can be held is held."""


class Process:
    def __init__(self, running: subprocess.Popen[str], url: str, ca: Path) -> None:
        self.url = url
        self.context = ssl.create_default_context(cafile=str(ca))
        self._running = running

    def peak(self) -> int:
        """Bytes, since it was started."""
        status = Path(f"/proc/{self._running.pid}/status").read_text()
        found = present(re.search(r"VmHWM:\s+(\d+) kB", status))
        return int(found.group(1)) * 1024


@contextmanager
def process(folder: Path) -> Iterator[Process]:
    ca = folder / "ca.pem"
    command = [sys.executable, "-m", "tests.fakes.serving_process", SECONDS, str(ca)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as running:  # noqa: S603 - ours
        try:
            yield Process(running, present(running.stdout).readline().strip(), ca)
        finally:
            present(running.stdin).close()


def nested() -> bytes:
    """A review of as many lists as a body may hold."""
    message = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","object":['
    lists = b",".join([b"[]"] * ((LARGEST_BODY - len(message) - 10) // 3))
    return message + lists + b"]}}"


@pytest.mark.parametrize(
    ("count", "said"),
    [
        pytest.param(250, head(LARGEST_BODY) + b" " * 300_000, id="many large bodies begun"),
        pytest.param(40, head(LARGEST_BODY) + b" " * (LARGEST_BODY - 1), id="bodies without their last byte"),
        pytest.param(250, b"GET / HTTP/1.1\r\nX: " + b"x" * 8000, id="half heads"),
    ],
)
def test_the_memory_limit_of_the_chart_holds(count: int, said: bytes, tmp_path: Path) -> None:
    limit = VALUES["webhook"]["resources"]["limits"]["memory"]
    assert limit.endswith("Mi")
    with process(tmp_path) as running, stalled_clients(running.url, context=running.context) as held:
        asyncio.run(_together(held, count, said))
        raw = nested()
        with stalled_clients(running.url, context=running.context) as others:
            asyncio.run(_together(others, 4, head(len(raw)) + raw))
            for each in others.sockets:
                each.settimeout(300)
                # On a busy machine a body may take longer than a request may: then the connection is closed.
                assert each.recv(1000)[:12] in (b"HTTP/1.1 200", b"HTTP/1.1 503", b"")
        assert running.peak() < int(limit.removesuffix("Mi")) * 2**20


async def _together(held: StalledClients, count: int, said: bytes) -> None:
    await asyncio.gather(*(asyncio.to_thread(held.open, 1, said) for _ in range(count)))
