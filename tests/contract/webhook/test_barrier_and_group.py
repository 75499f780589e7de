"""G6: a JobSet whose pods wait in the start barrier and are of a group, on both planes."""

from typing import Any

import pytest

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Invalid
from jobset_gate.kube.resources import JOBSETS
from jobset_gate.podgroups.model import Format
from tests.fakes.admission_server import registered
from tests.fakes.grouped_pods import meta_of
from tests.fakes.jobsets import Json, barrier, jobset, replicated


def gang(namespace: str, way: Format, minimum: str | None = None, **more: Any) -> Json:
    """3 x 4 pods of a group."""
    meta = meta_of(way)
    for holder in meta.values():
        for key in [it for it in holder if it.endswith("min-available")]:
            holder[key] = minimum
    workers = replicated()
    workers["template"]["spec"]["template"]["metadata"] = meta
    made = jobset(workers, **more)
    made["metadata"]["namespace"] = namespace
    return made


@pytest.mark.parametrize("way", [Format.ALIBABA, Format.KOORDINATOR_ANNOTATIONS])
async def test_another_minimum_than_the_barrier_expects_is_refused_with_both_numbers(
    client: Client, namespace: str, way: Format
) -> None:
    async with registered(client, namespace):
        for minimum in ("11", "13"):
            with pytest.raises(Invalid, match=f"{minimum} pods here, 12 there"):
                await client.create(JOBSETS, gang(namespace, way, minimum), namespace)
        assert barrier(await client.create(JOBSETS, gang(namespace, way, "12"), namespace))
