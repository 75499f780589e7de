"""The played nodes: kubelets that run pods, barriers included, and the faults that a test injects into them."""

from jobset_gate.fake.kubelet.behaviour import Behaviour, FakeNode, PodFault, PodMatch
from jobset_gate.fake.kubelet.kubelets import Kubelets

__all__ = ["Behaviour", "FakeNode", "Kubelets", "PodFault", "PodMatch"]
