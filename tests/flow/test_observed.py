"""What an operator sees of one gang: the metrics and the log of a controller that runs as a process of its own."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from jobset_gate.fake import manifests
from jobset_gate.fake.kubelet import FakeNode
from tests.fakes.service_process import ServiceProcess, fetch, running_service
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import PATIENCE

GPU = "nvidia.com/gpu"
Values = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def gang_with_gpus() -> dict[str, Any]:
    """Three pods of two GPUs each."""
    made = manifests.gang("train", jobs=1, pods=3)
    template = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    template["containers"][0]["resources"] = {"limits": {GPU: 2}}
    return made


class Scrapes:
    """The controller's /metrics."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._last: Values = {}

    async def look(self) -> None:
        _, text = await fetch(f"{self._url}/metrics")
        families = text_string_to_metric_families(text)
        self._last = {
            (sample.name, frozenset(sample.labels.items())): sample.value for one in families for sample in one.samples
        }

    def value(self, name: str, /, **labels: str) -> float:
        """In the last scrape."""
        return self._last.get((f"jobset_gate_{name}", frozenset(labels.items())), -1.0)

    async def until(self, name: str, value: float, /, **labels: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                await self.look()
                if self.value(name, **labels) == value:
                    return
                await asyncio.sleep(0.05)  # a scrape is the only way to look


def lines(service: ServiceProcess) -> list[dict[str, Any]]:
    return [json.loads(line) for line in service.lines]


async def test_a_gang_is_seen_in_metrics_and_log_from_its_first_pod_to_its_last_start(
    make_stage: MakeEnvironment,
) -> None:
    async with make_stage(controller=False, stream=False, nodes=(FakeNode("early", pods=2),)) as stage:
        where = ["--kubeconfig", str(stage.plane.kubeconfig), "--watch-namespace", stage.namespace, "--port", "0"]
        more = ["--no-leader-elect", "--no-extend-crd", "--log-level", "debug"]
        async with running_service("controller", *where, *more) as service:
            scrapes = Scrapes((await service.until("controller runs"))["url"])
            await stage.create(gang_with_gpus())
            await stage.until_held(2)

            await scrapes.until("waiting_pods", 2)
            assert scrapes.value("waiting_gangs") == 1
            await scrapes.until("missing_pods", 1, reason="Unscheduled")
            assert scrapes.value("idle_accelerators", resource=GPU) == 4
            assert scrapes.value("decisions_total", kind="release", cause="AllPodsStarted") == 0
            first = scrapes.value("idle_accelerator_seconds_total", resource=GPU)
            await scrapes.look()
            assert scrapes.value("idle_accelerator_seconds_total", resource=GPU) > first
            assert scrapes.value("longest_wait_seconds") > 0

            await stage.actors.kubelets.add_node(FakeNode(f"{stage.namespace}-late", pods=1))
            decided = await service.until("decided")
            await stage.until_running(3)
            await scrapes.until("start_skew_seconds_count", 1)

            assert scrapes.value("decisions_total", kind="release", cause="AllPodsStarted") == 1
            for once in ("time_to_release", "last_start_to_release", "release_to_last_main_start", "pod_start_skew"):
                assert scrapes.value(f"{once}_seconds_count") == 1
            assert scrapes.value("waiting_gangs") == scrapes.value("waiting_pods") == 0
            assert scrapes.value("missing_pods", reason="Unscheduled") == 0
            assert scrapes.value("idle_accelerators", resource=GPU) == 0
            seconds = scrapes.value("idle_accelerator_seconds_total", resource=GPU)
            assert seconds >= first
            await scrapes.look()
            assert scrapes.value("idle_accelerator_seconds_total", resource=GPU) == seconds, "nobody is held any more"
            assert await service.stop() == 0

        assert (decided["verdict"], decided["cause"]) == ("release", "AllPodsStarted")
        assert (decided["namespace"], decided["jobset"]) == (stage.namespace, "train")
        for line in lines(service):
            assert list(line)[:4] == ["ts", "level", "logger", "msg"]
            if line.get("controller") == "gang":
                assert (line["namespace"], line["jobset"]) == (stage.namespace, "train")
