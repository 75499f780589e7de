"""Scheduler's and kubelets' side of the simulation: see Kubelets."""

from jobset_gate.sim.kubelet.behaviour import Behaviour, FakeNode, PodFault, PodMatch
from jobset_gate.sim.kubelet.kubelets import Kubelets

__all__ = ["Behaviour", "FakeNode", "Kubelets", "PodFault", "PodMatch"]
