"""A manifest of a gated JobSet, and one of a group with a mistake, as texts to be changed."""

TRAIN = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: train
spec:
  groupSchedulingConfig:
    timeoutAfterSeconds: 300
    targetReplicatedJobs: [workers]
  replicatedJobs:
  - name: workers
    replicas: 2
    template:
      spec:
        parallelism: 2
        backoffLimit: 0
        template:
          spec:
            containers:
            - name: main
              image: x
"""
CONFIG = "  groupSchedulingConfig:\n    timeoutAfterSeconds: 300\n    targetReplicatedJobs: [workers]\n"
RING = """\
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: ring, namespace: team}
spec: {minMember: "4", scheduleTimeoutSeconds: ten}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: team, labels: {scheduling.x-k8s.io/pod-group: rinq}}
spec: {containers: [{name: m, image: x}]}
"""
POD = "spec.replicatedJobs[0].template.spec.template.spec"


def train(*changes: tuple[str, str]) -> str:
    text = TRAIN
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def noted(*annotations: str) -> tuple[str, str]:
    lines = "".join(f"    {it}\n" for it in annotations)
    return "  name: train\n", f"  name: train\n  annotations:\n{lines}"
