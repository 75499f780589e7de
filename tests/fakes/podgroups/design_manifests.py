"""The designs' manifests: Koordinator's in the forms its text prints them, the others' made from their types and keys.

KEP-24, scheduler-plugins and Alibaba print no manifests. What stands here for them is ours, field by field and key by
key after their Go types and texts.
"""

POD_SPEC = "spec: {containers: [{name: main, image: x}]}\n"

KEP24 = f"""\
apiVersion: incubator.scheduling.k8s.io/v1alpha1
kind: PodGroup
metadata: {{name: solver, namespace: team}}
spec:
  minMembers: 2
  totalResources: {{cpu: "4", memory: 2Gi}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: solver-workers, namespace: team}}
spec:
  template:
    metadata:
      annotations: {{scheduling.k8s.io/group-name: solver}}
    spec: {{restartPolicy: Never, containers: [{{name: main, image: x}}]}}
---
apiVersion: v1
kind: Pod
metadata:
  name: solver-master
  namespace: team
  annotations: {{scheduling.k8s.io/group-name: solver}}
{POD_SPEC}"""

PLUGINS = f"""\
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {{name: ring, namespace: team}}
spec:
  minMember: 3
  minResources: {{cpu: "3"}}
  scheduleTimeoutSeconds: 30
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: ring, namespace: team}}
spec:
  replicas: 3
  selector: {{matchLabels: {{app: ring}}}}
  template:
    metadata:
      labels: {{app: ring, scheduling.x-k8s.io/pod-group: ring}}
    {POD_SPEC}"""

ALIBABA = f"""\
apiVersion: v1
kind: Pod
metadata:
  name: job-a-0
  namespace: team
  labels:
    pod-group.scheduling.sigs.k8s.io/name: job-a
    pod-group.scheduling.sigs.k8s.io/min-available: "4"
{POD_SPEC}"""

KOORDINATOR_POD_GROUP = """\
apiVersion: v1alpha1
kind: PodGroup
metadata:
  creationTimestamp: "2022-01-01T00:00:00Z"
  name: role-a
  namespace: default
spec:
  minMember: 2
  minResources:
    cpu: "2"
  scheduleTimeoutSeconds: 600
"""
"""No API group."""

KOORDINATOR_GANG_GROUP = """\
apiVersion: v1alpha1
kind: PodGroup
metadata:
  name: role-a
  namespace: teamA
  annotations:
    gang.scheduling.koordinator.sh/total-number: 2
    gang.scheduling.koordinator.sh/mode: Strict
    gang.scheduling.koordinator.sh/groups: ["teamA/role-a", "teamB/role-b"]
spec:
  minMember: 2
"""
"""And a number and a list as annotations, and namespaces with capitals."""

KOORDINATOR_ANNOTATIONS = """\
metadata:
  annotations:
    gang.scheduling.koordinator.sh/name: role-a
    gang.scheduling.koordinator.sh/min-available: 2
"""
"""No kind, no name, and a number as an annotation."""

KOORDINATOR_TWO = """\
metadata:
  annotations:
    gang.scheduling.koordinator.sh/name: role-a
    gang.scheduling.koordinator.sh/waiting-time: 3600s
    gang.scheduling.koordinator.sh/min-available: 2
    gang.scheduling.koordinator.sh/groups: ["teamA/role-a", "teamB/role-b"]
metadata:
  annotations:
    gang.scheduling.koordinator.sh/name: role-b
    gang.scheduling.koordinator.sh/waiting-time: 3600s
    gang.scheduling.koordinator.sh/min-available: 2
    gang.scheduling.koordinator.sh/groups: ""
"""
"""Two pods' metadata in one document."""

MADE = {"kep-24": KEP24, "scheduler-plugins": PLUGINS, "alibaba": ALIBABA}
PRINTED = {
    "koordinator-podgroup": KOORDINATOR_POD_GROUP,
    "koordinator-ganggroup": KOORDINATOR_GANG_GROUP,
    "koordinator-annotations": KOORDINATOR_ANNOTATIONS,
    "koordinator-two": KOORDINATOR_TWO,
}
