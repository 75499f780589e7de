"""Kinds with little to say: the defaults of Events and Services, what a Lease may hold."""

from __future__ import annotations

from jobset_gate.sim.apiserver.data import Obj, dig
from jobset_gate.sim.apiserver.problems import cause

_EVENT: Obj = {
    "eventTime": None,
    "firstTimestamp": None,
    "lastTimestamp": None,
    "reportingComponent": "",
    "reportingInstance": "",
    "source": {},
}
_SERVICE: Obj = {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}


def default_event(event: Obj) -> None:
    for name, value in _EVENT.items():
        event.setdefault(name, dict(value) if isinstance(value, dict) else value)


def default_service(service: Obj) -> None:
    spec = service.get("spec")
    if isinstance(spec, dict):
        for name, value in _SERVICE.items():
            spec.setdefault(name, value)
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            port.setdefault("targetPort", port.get("port"))


def prepare_service(service: Obj, _now: str) -> None:
    """No addresses are given out: nothing here routes packets."""
    spec = service.setdefault("spec", {})
    if spec.get("clusterIP"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    service["status"] = {"loadBalancer": {}}


def check_lease(new: Obj, _old: Obj | None) -> list[Obj]:
    found = []
    for name, least in (("leaseDurationSeconds", 1), ("leaseTransitions", 0)):
        value = dig(new, "spec", name)
        if value is not None and value < least:
            bound = "must be greater than 0" if least else "must be greater than or equal to 0"
            found.append(cause(f"spec.{name}", f"Invalid value: {value}: {bound}"))
    return found
