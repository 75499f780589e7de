"""The real control plane of the tests: etcd, kube-apiserver, kube-controller-manager; found or made, run."""
