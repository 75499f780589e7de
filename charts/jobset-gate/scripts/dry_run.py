"""What `helm test` runs in our image: would a gated JobSet get its barrier? A server-side dry run, nothing stays."""

import argparse
import asyncio
import sys
from typing import Any

from jobset_gate import names
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import KubeError, NotFound
from jobset_gate.kube.resources import JOBSETS

CONFIG = {names.TIMEOUT_FIELD: 300}
HINTS = {
    "field": "are the webhook configurations there, and has JobSet's CRD the field spec.groupSchedulingConfig?",
    "annotation": "are the webhook configurations there?",
}


def gated(form: str) -> dict[str, Any]:
    """A JobSet of one pod with a gate, said as field or as annotation."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    job = {"name": "workers", "replicas": 1, "template": {"spec": {"template": {"spec": pod}}}}
    meta: dict[str, Any] = {"name": f"{names.PROGRAM}-dry-run"}
    spec: dict[str, Any] = {"replicatedJobs": [job]}
    if form == "field":
        spec[names.CONFIG_FIELD] = CONFIG
    else:
        meta["annotations"] = {names.CONFIG: f'{{"{names.TIMEOUT_FIELD}": {CONFIG[names.TIMEOUT_FIELD]}}}'}
    return {"apiVersion": names.JOBSET_API_VERSION, "kind": "JobSet", "metadata": meta, "spec": spec}


def barriers(jobset: dict[str, Any]) -> list[str]:
    """The names of the last init containers."""
    templates = [job["template"]["spec"]["template"]["spec"] for job in jobset["spec"]["replicatedJobs"]]
    return [(template.get("initContainers") or [{}])[-1].get("name", "") for template in templates]


async def tried(namespace: str, form: str) -> str:
    """What is wrong; "" if nothing is."""
    reached = await access.load_access()
    async with Client(reached, user_agent=f"{names.PROGRAM}-dry-run") as client:
        try:
            stored = await client.create(JOBSETS, gated(form), namespace, dry_run=True)
        except NotFound:
            return "JobSet is not installed in this cluster"
        except KubeError as problem:
            return f"a gated JobSet cannot be created in namespace {namespace}: {problem}"
    if barriers(stored) != [names.BARRIER_CONTAINER]:
        return f"a gated JobSet in namespace {namespace} got no barrier: {HINTS[form]}"
    return ""


def main() -> int:
    """0: it would be held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--form", choices=sorted(HINTS), required=True)
    asked = parser.parse_args()
    wrong = asyncio.run(tried(asked.namespace, asked.form))
    print(wrong or f"a gated JobSet in namespace {asked.namespace} gets its barrier")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
