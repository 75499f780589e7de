"""Kinds with little to say: the defaults of Events and Services, what a ConfigMap and a Lease may hold."""

from __future__ import annotations

import re

from jobset_gate.fake.apiserver.encoding import Obj, dig
from jobset_gate.fake.apiserver.status_errors import cause

_EVENT: Obj = {
    "eventTime": None,
    "firstTimestamp": None,
    "lastTimestamp": None,
    "reportingComponent": "",
    "reportingInstance": "",
    "source": {},
}
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_CONFIG_LIMIT = 1024 * 1024
_SERVICE: Obj = {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}


def prepare_event(event: Obj, _now: str) -> None:
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


def check_config_map(new: Obj, old: Obj | None) -> list[Obj]:
    found = []
    for part in ("data", "binaryData"):
        for key in new.get(part) or {}:
            if not _CONFIG_KEY.fullmatch(key):
                why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
                found.append(cause(f"{part}[{key}]", f'Invalid value: "{key}": {why}'))
    if old and old.get("immutable"):
        why = "Forbidden: field is immutable when `immutable` is set"
        touched = [part for part in ("data", "binaryData") if new.get(part) != old.get(part)]
        lifted = [] if new.get("immutable") else ["immutable"]
        found += [cause(field, why, "FieldValueForbidden") for field in (*lifted, *touched)]
    size = sum(len(key) + len(value) for key, value in (new.get("data") or {}).items())
    if size > _CONFIG_LIMIT:
        found.append(cause("", f"Too long: may not be more than {_CONFIG_LIMIT} bytes", "FieldValueTooLong"))
    return found


def check_lease(new: Obj, _old: Obj | None) -> list[Obj]:
    found = []
    for name, least in (("leaseDurationSeconds", 1), ("leaseTransitions", 0)):
        value = dig(new, "spec", name)
        if value is not None and value < least:
            bound = "must be greater than 0" if least else "must be greater than or equal to 0"
            found.append(cause(f"spec.{name}", f"Invalid value: {value}: {bound}"))
    return found
