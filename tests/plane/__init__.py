"""The real control plane of the tests, from etcd to kube-scheduler: found or made, run."""
