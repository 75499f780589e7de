"""The played nodes: kubelets that run pods, barriers included, and the faults that a test injects into them."""

from jobset_gate_demo.fake.kubelet.kubelets import Kubelets
from jobset_gate_demo.fake.kubelet.pods import Behaviour, FakeNode, PodFault, PodMatch

__all__ = ["Behaviour", "FakeNode", "Kubelets", "PodFault", "PodMatch"]
