"""Accelerators that stand idle because their pods are held at a closed gate: how many now, and for how long by now.

The counter grows while the pods are held, not only when they are released, so that its rate is the number of idle
devices at any moment. It counts from when this process knows of a pod's start, by its own clock.
"""

from collections import Counter as Tallies
from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from jobset_gate.barrier import count
from jobset_gate.barrier.model import BarrierStage, GangKey, GangSnapshot

MAX_RESOURCES = 16
"""Distinct names that become labels: users choose them, and each costs a time series for ever."""

OTHER = "other"
"""The label of all further ones."""


class IdleAccelerators(Collector):
    """A collector; tell it of every pass."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._at = clock()
        self._gangs: dict[GangKey, Tallies[str]] = {}
        self._held: Tallies[str] = Tallies()
        self._seconds: dict[str, float] = {}
        """By label; each name that has one is in it."""

    def set_held(self, key: GangKey, devices: Mapping[str, int]) -> None:
        """So many devices of this gang are held now, instead of those of its last pass."""
        if not devices and key not in self._gangs:
            return
        self._advance()
        self._held.subtract(self._gangs.pop(key, {}))
        if devices:
            labelled: Tallies[str] = Tallies()
            for name, many in devices.items():
                labelled[self._label(name)] += many
            self._gangs[key] = labelled
            self._held.update(labelled)

    def collect(self) -> Iterator[Metric]:
        """What a scrape shows."""
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
        passed = max(0.0, self._at - before)  # a clock that was put back must not take back what is counted
        for name, many in self._held.items():
            self._seconds[name] += many * passed

    def _label(self, name: str) -> str:
        if name not in self._seconds and len(self._seconds) >= MAX_RESOURCES:
            name = OTHER
        self._seconds.setdefault(name, 0.0)
        return name


def held_devices(seen: GangSnapshot) -> dict[str, int]:
    """The devices of the gang's pods that have started and wait in their barrier."""
    devices = {target.name: target.devices for target in seen.jobset.targets if target.devices}
    if not devices:
        return {}
    found: Tallies[str] = Tallies()
    pods = Tallies(
        pod.replicated_job
        for pod in count.gang_pods(seen)
        if pod.stage is not BarrierStage.PASSED and pod.phase != "Succeeded" and pod.counts(seen.announced)
    )
    for name, many in pods.items():
        for resource, each in devices.get(name, ()):
            found[resource] += many * each
    return dict(found)
