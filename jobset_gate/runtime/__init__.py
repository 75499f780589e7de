"""Our controller-runtime: work queue, controller, informer, leader election, recorder, probes, and their like.

It knows Kubernetes and no JobSet, gang, pod group or ConfigMap. Webhook, controllers, command line and the embedded
cluster may import it; it imports `jobset_gate.kube` and pure helpers.
"""
