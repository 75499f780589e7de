"""Builders of Jobs as JSON, as an API server sends them to the webhook: with its defaults."""

import copy
import json
from typing import Any

from jobset_gate import names
from jobset_gate.fake import manifests
from jobset_gate.injection import inject
from jobset_gate.settings import Barrier, Settings
from tests.fakes.jobsets import SETTINGS, TIMEOUT, Json

TOKEN = "t0ken"  # it opens nothing
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


def created(given: Json, settings: Settings = SETTINGS, suffix: str = "", token: str = "") -> Json:
    """The Job as it is stored after our webhook."""
    return copy.deepcopy(inject.injected(given, None, settings=settings, suffix=suffix, token=token).document)


def stored(*, suspend: bool = False, epoch: str = "0", status: Json | None = None, **members: Any) -> Json:
    """A gated Job as it is stored, in this epoch and with this status."""
    made = created(job(**members))
    made["spec"]["suspend"] = suspend
    made["spec"]["template"]["metadata"]["annotations"][names.EPOCH] = epoch
    return made if status is None else made | {"status": status}


def suspended(it: Json, value: bool = True) -> Json:
    """A copy that is suspended, or resumed."""
    copied = copy.deepcopy(it)
    copied["spec"]["suspend"] = value
    return copied


def gated_job(
    name: str,
    namespace: str,
    *,
    pods: int = 2,
    timeout: int | None = 300,
    stream: str | None = None,
    notes: Json | None = None,
    **spec: Any,
) -> Json:
    """One for a cluster whose containers run, as the webhook has it stored; `spec`: further fields of the Job's."""
    config = {} if timeout is None else {names.TIMEOUT_FIELD: timeout}
    backoff_limit = None if "backoffLimitPerIndex" in spec else 0
    workers = manifests.replicated_job(parallelism=pods, backoff_limit=backoff_limit, job=spec)["template"]["spec"]
    workers["template"]["spec"]["restartPolicy"] = "Never"
    settings = Settings(barrier=Barrier.model_validate({"streamUrl": stream}))
    return created(job(config=config, notes=notes, name=name, namespace=namespace, spec=workers), settings, token=TOKEN)
