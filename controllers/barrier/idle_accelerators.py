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


class IdleAccelerators(Collector):
    """Collector that is updated on every pass."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._at = clock()
        self._gangs: dict[GangKey, Tally[str]] = {}
        self._held: Tally[str] = Tally()
        self._seconds: dict[str, float] = {}
        """By label."""

    def set_held(self, key: GangKey, devices: Mapping[str, int]) -> None:
        """Replaces the devices held in this gang."""
        if not devices and key not in self._gangs:
            return
        self._advance()
        self._held.subtract(self._gangs.pop(key, {}))
        if devices:
            labelled: Tally[str] = Tally()
            for name, many in devices.items():
                labelled[self._label(name)] += many
            self._gangs[key] = labelled
            self._held.update(labelled)

    def collect(self) -> Iterator[Metric]:
        """The metrics of a scrape."""
        self._advance()
        seconds = CounterMetricFamily(
            "jobset_gate_idle_accelerator_seconds",
            "Device-seconds that started pods were held at a closed gate; its rate is the number of idle devices.",
            labels=["resource"],
        )
        held = GaugeMetricFamily(
            "jobset_gate_idle_accelerators",
            "Devices of started pods that are held at a closed gate, by extended resource such as nvidia.com/gpu.",
            labels=["resource"],
        )
        for name, value in self._seconds.items():
            seconds.add_metric([name], value)
            held.add_metric([name], self._held[name])
        return iter((seconds, held))

    def _advance(self) -> None:
        before, self._at = self._at, self._clock()
        passed = max(0.0, self._at - before)  # a clock that was set back must not decrease a counter
        for name, many in self._held.items():
            self._seconds[name] += many * passed

    def _label(self, name: str) -> str:
        if name not in self._seconds and len(self._seconds) >= MAX_RESOURCES:
            name = OTHER
        self._seconds.setdefault(name, 0.0)
        return name


def held_devices(seen: GangSnapshot) -> dict[str, int]:
    """Devices of the gang's pods that have started and wait in their barrier."""
    found: Tally[str] = Tally()
    for devices, many in Tally(devices for _, devices in count.device_holders(seen)).items():
        for resource, each in devices:
            found[resource] += many * each
    return dict(found)
