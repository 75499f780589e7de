"""What /metrics of the two programs shows, started as they are in a cluster, against an embedded API server."""

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import aiohttp
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from jobset_gate.settings import Groups
from jobset_gate_demo.fake import jobset_crd
from jobset_gate_demo.fake.apiserver import ApiServer
from tests.fakes.admission_reviews import body
from tests.fakes.jobsets import jobset
from tests.fakes.service_process import fetch, running_service
from tests.plane.kubectl import write_kubeconfig
from tests.plane.ports import free_port
from webhook import registration

SERVICE = registration.ServiceReference("default", "jobset-gate-webhook")


@dataclass(frozen=True, slots=True)
class ScrapedMetric:
    """One metric as it is scraped, or as a document describes it."""

    type: str
    labels: frozenset[str]
    """Those of its samples; empty if it has none yet."""
    components: frozenset[str]


@cache
def texts() -> Mapping[str, str]:
    """The texts by component, after each has done something."""
    with tempfile.TemporaryDirectory(prefix="jobset-gate-metrics-") as folder:
        return asyncio.run(_scraped(Path(folder)))


@cache
def shown() -> Mapping[str, ScrapedMetric]:
    """All metrics of webhook and controller by name, a counter's with its `_total`."""
    found: dict[str, ScrapedMetric] = {}
    for component, text in texts().items():
        for family in text_string_to_metric_families(text):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            known = found.get(name, ScrapedMetric(family.type, frozenset(), frozenset()))
            assert known.type == family.type
            found[name] = ScrapedMetric(family.type, known.labels | _labels(family), known.components | {component})
    return found


def series() -> set[str]:
    """All names that a query may use: a histogram has three."""
    parts = {"histogram": ("_bucket", "_sum", "_count")}
    return {f"{name}{part}" for name, one in shown().items() for part in parts.get(one.type, ("",))}


def _labels(family: Metric) -> frozenset[str]:
    return frozenset(label for sample in family.samples for label in sample.labels) - {"le"}


async def _scraped(folder: Path) -> dict[str, str]:
    server = ApiServer()
    await server.start()
    try:
        kubeconfig = folder / "kubeconfig"
        write_kubeconfig(kubeconfig, server.url)
        async with Client(Access(server=server.url)) as client:
            await jobset_crd.install(client)
            mutating, validating = registration.configurations(service=SERVICE, own_namespace=SERVICE.namespace)
            for_pods = registration.pod_configuration(Groups(), service=SERVICE, own_namespace=SERVICE.namespace)
            await client.create(VALIDATING_WEBHOOKS, validating)
            for one in (mutating, for_pods):
                await client.create(MUTATING_WEBHOOKS, one)
        where = ["--kubeconfig", str(kubeconfig), "--port", "0"]
        return {"controller": await _controller(where), "webhook": await _webhook(where)}
    finally:
        await server.stop()


async def _controller(where: list[str]) -> str:
    ports = ("--stream-port", "0", "--page-port", str(free_port()))
    async with running_service("controller", *where, *ports) as service:
        url = (await service.until("controller runs"))["url"]
        await service.until("JobSet CRD reconciled")
        return (await fetch(f"{url}/metrics"))[1]


async def _webhook(where: list[str]) -> str:
    named = f"{SERVICE.namespace}/{SERVICE.name}"
    async with (
        running_service("webhook", *where, "--own-ca", "jobset-gate-ca", "--service", named) as service,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session,
    ):
        url = (await service.until("webhook listens"))["url"]
        async with session.post(f"{url}/mutate", data=body(jobset()), headers={"Content-Type": "application/json"}):
            pass
        while True:
            async with session.get(f"{url}/readyz") as ready:
                if ready.status == 200:
                    break
            await asyncio.sleep(0.05)  # nothing tells when it has become ready
        async with session.get(f"{url}/metrics") as metrics:
            return await metrics.text()
