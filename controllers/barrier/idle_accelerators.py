"""Metrics of idle accelerators: devices of started pods that a closed barrier holds, and their device-seconds.

The counter grows while the pods are held, so its rate is the number of idle devices. It counts from the time at which
this process learns of a pod's start.
"""

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from jobset_gate.barrier import count
from jobset_gate.barrier.model import GangKey, GangSnapshot

MAX_RESOURCES = 16
"""Users choose resource names, and each label costs a time series for the life of the process."""

OTHER = "other"

_Series = tuple[str, str]
"""Labels: source, resource."""


class IdleAccelerators(Collector):
    """Collector that is updated on every pass."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._at = clock()
        self._gangs: dict[GangKey, Tally[_Series]] = {}
        self._held: Tally[_Series] = Tally()
        self._seconds: dict[_Series, float] = {}

    def set_held(self, key: GangKey, devices: Mapping[str, int]) -> None:
        """Replaces the devices held in this gang."""
        if not devices and key not in self._gangs:
            return
        self._advance()
        self._held.subtract(self._gangs.pop(key, {}))
        if devices:
            labelled: Tally[_Series] = Tally()
            for name, many in devices.items():
                labelled[self._series(key.source, name)] += many
            self._gangs[key] = labelled
            self._held.update(labelled)

    def collect(self) -> Iterator[Metric]:
        """The metrics of a scrape."""
        self._advance()
        seconds = CounterMetricFamily(
            "jobset_gate_idle_accelerator_seconds",
            "Device-seconds that started pods were held at a closed gate; its rate is the number of idle devices.",
            labels=["source", "resource"],
        )
        held = GaugeMetricFamily(
            "jobset_gate_idle_accelerators",
            "Devices of started pods that are held at a closed gate, by extended resource such as nvidia.com/gpu.",
            labels=["source", "resource"],
        )
        for labels, value in self._seconds.items():
            seconds.add_metric(labels, value)
            held.add_metric(labels, self._held[labels])
        return iter((seconds, held))

    def _advance(self) -> None:
        before, self._at = self._at, self._clock()
        passed = max(0.0, self._at - before)  # a clock that was set back must not decrease a counter
        for labels, many in self._held.items():
            self._seconds[labels] += many * passed

    def _series(self, source: str, resource: str) -> _Series:
        labels = source, resource
        if labels not in self._seconds and sum(it == source for it, _ in self._seconds) >= MAX_RESOURCES:
            labels = source, OTHER
        self._seconds.setdefault(labels, 0.0)
        return labels


def held_devices(seen: GangSnapshot) -> dict[str, int]:
    """Devices of the gang's pods that have started and wait in their barrier."""
    found: Tally[str] = Tally()
    for devices, many in Tally(devices for _, devices in count.device_holders(seen)).items():
        for resource, each in devices:
            found[resource] += many * each
    return dict(found)
