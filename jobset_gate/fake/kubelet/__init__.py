"""Scheduler's and kubelets' side of the simulation: see Kubelets."""

from jobset_gate.fake.kubelet.behaviour import Behaviour, FakeNode, PodFault, PodMatch
from jobset_gate.fake.kubelet.kubelets import Kubelets

__all__ = ["Behaviour", "FakeNode", "Kubelets", "PodFault", "PodMatch"]
