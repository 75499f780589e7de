"""Builders of Jobs as JSON, as an API server sends them to the webhook: with its defaults."""

import copy
import json
from typing import Any

from jobset_gate import names
from tests.fakes.jobsets import TIMEOUT, Json, injected

TEMPLATE = ("spec", "template")
CONFIG = ("metadata", "annotations", names.CONFIG)
EPOCH = (*TEMPLATE, "metadata", "annotations", names.EPOCH)


def job(
    *,
    config: Any = None,
    notes: Json | None = None,
    name: str = "run",
    pod: Json | None = None,
    spec: Json | None = None,
    status: Json | None = None,
    **meta: Any,
) -> Json:
    """An Indexed Job of 4 pods; without `config` it has `{timeoutAfterSeconds: 300}`, with False it has none."""
    text = config if isinstance(config, str) else json.dumps(TIMEOUT if config is None else config)
    annotations = ({} if config is False else {names.CONFIG: text}) | (notes or {})
    metadata = {"name": name, "namespace": "default", "annotations": annotations} | meta
    pod_spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]} | (pod or {})
    whole = {"completionMode": "Indexed", "parallelism": 4, "completions": 4, "suspend": False}
    whole |= {"template": {"metadata": {}, "spec": pod_spec}} | (spec or {})
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": whole}
    return made if status is None else made | {"status": status}


def stored(*, suspend: bool = False, epoch: str = "0", status: Json | None = None, **members: Any) -> Json:
    """A gated Job as it is stored, in this epoch and with this status."""
    made = injected(job(**members))
    made["spec"]["suspend"] = suspend
    made["spec"]["template"]["metadata"]["annotations"][names.EPOCH] = epoch
    return made if status is None else made | {"status": status}


def suspended(it: Json, value: bool = True) -> Json:
    copied = copy.deepcopy(it)
    copied["spec"]["suspend"] = value
    return copied
