"""The versions of the programs that the tests run."""

KUBERNETES = "v1.36.3"
ETCD = "v3.6.8"
GO = (1, 26)
"""The oldest Go that builds the above."""

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
