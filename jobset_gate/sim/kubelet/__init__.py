"""Scheduler's and kubelets' side of the simulation: see Kubelets."""

from jobset_gate.sim.kubelet.behaviour import Behaviour, Node, Trouble, Where
from jobset_gate.sim.kubelet.kubelets import Kubelets

__all__ = ["Behaviour", "Kubelets", "Node", "Trouble", "Where"]
