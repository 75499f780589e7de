# The start barrier: holds a pod until the gang's verdict for its generation arrives (A5, A6, A7).
# Runs in every gated pod under busybox ash, dash or bash. Comments and indentation are stripped before it is embedded.
# Exit codes: 0 released, 124 timed out, 143 told to stop.

# A shell that is process 1 ignores SIGTERM unless it says otherwise.
trap 'exit 143' TERM INT
dir=${JOBSET_GATE_DIR:-/mnt/group-scheduling}
log=${JOBSET_GATE_TERMINATION_LOG:-/dev/termination-log}
own=$JOBSET_GATE_EPOCH
case $own in '' | *[!0-9]*) own=0 ;; esac

# Whole seconds of a clock that nobody sets, read without starting a process.
tick() { read -r up _ </proc/uptime && up=${up%.*}; }

# Ends the script if the file holds a verdict for this pod: same UID, same attempt, an epoch not older than its own.
obey() {
  {
    read -r verdict uid attempt epoch _ || [ "$epoch" ] || return
    case $epoch in '' | *[!0-9]*) return ;; esac
    [ "$uid" ] && [ "$uid" = "$JOBSET_GATE_UID" ] && [ "$attempt" = "$JOBSET_GATE_ATTEMPT" ] || return
    [ "$epoch" -ge "$own" ] || return
    case $verdict in
      release) echo "released"; exit 0 ;;
      timeout) head -c 1024 | tee "$log"; exit 124 ;;
    esac
  } 2>/dev/null <"$1"
}

end=
case $JOBSET_GATE_LIMIT in
  '' | *[!0-9]*) ;;
  *) tick; end=$((up + JOBSET_GATE_LIMIT + 1)) ;;
esac
echo "waiting for the gang to start"
while :; do
  for file in verdict annotation; do obey "$dir/$file" 2>/dev/null; done
  # The backstop of a pod that nobody tells anything: its own limit since its own start.
  if [ "$end" ] && tick && [ "$up" -ge "$end" ]; then
    echo "timed out: no verdict from the jobset-gate controller within ${JOBSET_GATE_LIMIT}s" | tee "$log"
    exit 124
  fi
  sleep "${JOBSET_GATE_POLL:-0.2}" &
  wait $!
done
