# Source this (bash): docker, kind and kubectl are then those that `setup` made. All of it lies in KIND_HOME, about 4 GB.
KIND_TOOLS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export KIND_TOOLS KIND_HOME=${KIND_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/jobset-gate/kind}
export KUBERNETES_VERSION=v1.36.3 KIND_VERSION=v0.33.0               # as in go/kube/go.mod and tests/plane/versions.py
export KIND_NODE_IMAGE=jobset-gate/node:$KUBERNETES_VERSION          # for kind create cluster --image
export LOCAL_BUSYBOX_IMAGE=localhost/busybox:deb                     # sh, wget, nc: 4 MB
export LOCAL_PYTHON_IMAGE=localhost/python:3.11                      # Debian with Python and venv: BASE for `make image`
export DOCKER_HOST=unix://$KIND_HOME/docker.sock DOCKER_BUILDKIT=0
case :$PATH: in *:"$KIND_HOME/bin":*) ;; *) export PATH=$KIND_HOME/bin:$PATH ;; esac
