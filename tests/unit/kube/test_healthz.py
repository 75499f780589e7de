"""The controller's probes over HTTP, in real time: an event loop that hangs is what they are there to notice."""

from __future__ import annotations

import asyncio
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prometheus_client import CollectorRegistry, Gauge

from jobset_gate.runtime.healthz import HealthServer

PATIENCE = 60.0


class Served:
    """A Health in a thread with an event loop of its own."""

    def __init__(self) -> None:
        self.wrong = self.unready = ""
        self.registry = CollectorRegistry()
        self.loop = asyncio.new_event_loop()
        self.health = HealthServer(
            self.registry, healthy=lambda: self.wrong, ready=lambda: self.unready, host="127.0.0.1", port=0
        )

    def ask(self, path: str, timeout: float = PATIENCE) -> tuple[int, str]:
        """As a kubelet does: status and body. TimeoutError if nobody answers in time."""
        try:
            with urllib.request.urlopen(f"{self.health.url}{path}", timeout=timeout) as answer:  # noqa: S310 - ours
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()


@contextmanager
def served() -> Iterator[Served]:
    it = Served()
    thread = threading.Thread(target=it.loop.run_forever, name="health")
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(it.health.start(), it.loop).result(PATIENCE)
        yield it
    finally:
        asyncio.run_coroutine_threadsafe(it.health.stop(), it.loop).result(PATIENCE)
        it.loop.call_soon_threadsafe(it.loop.stop)
        thread.join(PATIENCE)
        it.loop.close()


def test_each_probe_says_ok_or_what_is_wrong() -> None:
    with served() as it:
        assert it.ask("/healthz") == it.ask("/readyz") == (200, "ok")
        it.wrong, it.unready = "2 of 4 workers of gang have ended", ""
        assert it.ask("/healthz") == (500, it.wrong)
        assert it.ask("/readyz") == (200, "ok")
        it.wrong, it.unready = "", "pods: not listed yet"
        assert it.ask("/healthz") == (200, "ok")
        assert it.ask("/readyz") == (500, it.unready)


def test_a_scrape_shows_the_registry() -> None:
    with served() as it:
        Gauge("something", "Of the registry.", registry=it.registry).set(7)
        status, text = it.ask("/metrics")
        assert status == 200
        assert "something 7.0" in text.splitlines()


def test_an_event_loop_that_hangs_answers_no_probe() -> None:
    """The kubelet counts that as a failure, which is what it is."""
    with served() as it:
        hangs, goes_on = threading.Event(), threading.Event()

        def hang() -> None:
            hangs.set()
            goes_on.wait(PATIENCE)

        it.loop.call_soon_threadsafe(hang)
        assert hangs.wait(PATIENCE)
        try:
            with pytest.raises(TimeoutError):
                it.ask("/healthz", timeout=0.2)
        finally:
            goes_on.set()
        assert it.ask("/healthz") == (200, "ok")
