# Installs packages whose services must not start. Sourced by stage 10, after lib.sh.
POLICY=${POLICY:-/usr/sbin/policy-rc.d}                # dpkg asks it before it starts a service; 101 means no
UNITS=${UNITS:-/lib/systemd/system}

# silently PACKAGE...: like install_missing, but no Docker that comes along is started, neither now nor at the next boot:
# it would stand in the way of our own daemon. One that was there before stays as it is.
silently() (
  dpkg -s "$@" > /dev/null 2>&1 && return
  came_along=()
  for unit in docker.service docker.socket containerd.service; do [ -e "$UNITS/$unit" ] || came_along+=("$unit"); done
  trap allow_services EXIT
  forbid_services
  install_missing "$@"
  command -v systemctl > /dev/null || return 0
  for unit in "${came_along[@]}"; do
    [ ! -e "$UNITS/$unit" ] || systemctl disable --quiet "$unit"
  done
)

# The machine's own policy is kept as $POLICY.before. A run that was killed has left ours: it is no policy of the machine's.
forbid_services() {
  if [ -e "$POLICY" ] && ! grep -q jobset-gate "$POLICY"; then mv "$POLICY" "$POLICY.before"; fi
  printf '#!/bin/sh\n# jobset-gate, while e2e/airgap/setup installs packages\nexit 101\n' > "$POLICY"
  chmod 755 "$POLICY"
}
allow_services() {
  rm -f "$POLICY"
  [ ! -e "$POLICY.before" ] || mv "$POLICY.before" "$POLICY"
}
