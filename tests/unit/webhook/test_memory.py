"""All that clients can hold at once is less than the memory limit of the chart."""

import asyncio
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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


def peak(pid: int) -> int:
    """Bytes of this process at most, since it was started."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(present(re.search(r"VmHWM:\s+(\d+) kB", status))[1]) * 1024


@contextmanager
def process(ca: Path) -> Iterator[tuple[int, str]]:
    """Its id and its URL."""
    command = [sys.executable, "-m", "tests.fakes.serving_process", SECONDS, str(ca)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as running:  # noqa: S603 - ours
        try:
            yield running.pid, present(running.stdout).readline().strip()
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
    with process(tmp_path / "ca.pem") as (pid, url), ExitStack() as stack:
        context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
        held, others = [stack.enter_context(stalled_clients(url, context=context)) for _ in range(2)]
        asyncio.run(_together(held, count, said))
        raw = nested()
        asyncio.run(_together(others, 4, head(len(raw)) + raw))
        for each in others.sockets:
            each.settimeout(300)
            # On a busy machine a body may take longer than a request may: then the connection is closed.
            assert each.recv(1000)[:12] in (b"HTTP/1.1 200", b"HTTP/1.1 503", b"")
        assert peak(pid) < int(limit.removesuffix("Mi")) * 2**20


async def _together(held: StalledClients, count: int, said: bytes) -> None:
    await asyncio.gather(*(asyncio.to_thread(held.open, 1, said) for _ in range(count)))
