# What a Docker daemon does to the host's firewall and never takes back itself. Sourced by stage 10 and by teardown.
DOCKER_CHAINS='DOCKER-USER DOCKER-ISOLATION-STAGE-1 DOCKER-ISOLATION-STAGE-2 DOCKER'

# remember_policy: of FORWARD, for dockerd makes it DROP. After a daemon that was killed the chains are still there: the
# policy is then that daemon's doing, and what was remembered for it holds.
remember_policy() {
  if [ -s "$KIND_HOME/.forward-policy" ] && iptables -S | grep '^-N DOCKER' > /dev/null; then return; fi
  iptables -S FORWARD | sed -n 's/^-P FORWARD //p' > "$KIND_HOME/.forward-policy"
}
restore_policy() {
  local policy
  policy=$(cat "$KIND_HOME/.forward-policy" 2> /dev/null)
  iptables -P FORWARD "${policy:-ACCEPT}"
  rm -f "$KIND_HOME/.forward-policy"
}

# take_away_rules: the chains and the jumps to them, the fence among what goes.
take_away_rules() {
  local table chain rule
  for table in filter nat; do
    iptables -t $table -S | sed -n 's/^-A \(\(FORWARD\|PREROUTING\|OUTPUT\) .*-j DOCKER[A-Z0-9-]*\)$/\1/p' |
      while read -r rule; do echo "$rule" | xargs iptables -t $table -D; done
    for chain in $DOCKER_CHAINS; do iptables -t $table -F "$chain"; done 2> /dev/null
    for chain in $DOCKER_CHAINS; do iptables -t $table -X "$chain"; done 2> /dev/null
  done
}
