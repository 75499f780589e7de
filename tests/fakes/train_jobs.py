"""What Kubeflow Trainer makes of a TrainJob, as far as a gate is concerned.

Written after newRuntimeInfo in `pkg/runtime/core/trainingruntime.go` and Build in
`pkg/runtime/framework/plugins/jobset/jobset.go` of v2.3.0: labels and annotations of the runtime's template and of the
patches, in this order, end on the JobSet.
"""

import copy
from typing import Any

from jobset_gate import names

Json = dict[str, Any]
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def replicated_job(name: str, step: str = "", **fields: Any) -> Json:
    """Of a runtime; `step`: which part of the TrainJob changes it."""
    pod = {"containers": [{"name": "node" if step == "trainer" else name, "image": "runtime:1"}]}
    template: Json = {"spec": {"template": {"spec": pod}}}
    if step:
        template["metadata"] = {"labels": {STEP: step}}
    return {"name": name, **fields, "template": template}


def runtime(*jobs: Json) -> Json:
    """A TrainingRuntime's `spec.template`."""
    return {"spec": {"replicatedJobs": list(jobs)}}


TORCH = runtime(replicated_job("node", "trainer"))
"""As torch-distributed."""
TUNE = runtime(
    replicated_job("dataset-initializer", "dataset-initializer"),
    replicated_job("model-initializer", "model-initializer"),
    replicated_job(
        "node",
        "trainer",
        dependsOn=[{"name": f"{it}-initializer", "status": "Complete"} for it in ("dataset", "model")],
    ),
)
"""As the runtimes of torchtune."""
MPI = runtime(
    replicated_job("node"), replicated_job("launcher", "trainer", dependsOn=[{"name": "node", "status": "Ready"}])
)
"""As deepspeed-distributed."""


def jobset_of(train_job: Json, template: Json) -> Json:
    """The JobSet of a TrainJob whose runtime has this template."""
    spec, meta = train_job["spec"], train_job["metadata"]
    made = copy.deepcopy(template["spec"])
    labels: Json = {}
    annotations: Json = {}
    for patch in spec.get("runtimePatches") or ():
        own = ((patch.get("trainingRuntimeSpec") or {}).get("template") or {}).get("metadata") or {}
        labels |= own.get("labels") or {}
        annotations |= own.get("annotations") or {}
    many = (spec.get("trainer") or {}).get("numNodes", 1)
    for job in made["replicatedJobs"]:
        if job["template"].get("metadata", {}).get("labels", {}).get(STEP) == "trainer":
            job["template"]["spec"] |= {"parallelism": many, "completions": many}
    owner = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": meta["name"], "uid": "t-1"}
    return {
        "apiVersion": names.JOBSET_API_VERSION,
        "kind": "JobSet",
        "metadata": {
            "name": meta["name"],
            **({"namespace": meta["namespace"]} if "namespace" in meta else {}),
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
        },
        "spec": made | {"suspend": bool(spec.get("suspend"))},
    }
