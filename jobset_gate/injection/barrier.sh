# The start barrier: holds a pod until the gang's verdict for its generation arrives (A5, A6, A7), in one of two files
# or as the answer to an HTTP request that is held open (the gate stream). A pod that is gated alone has a volume in which
# its release is kept, so that init containers that run again pass without anybody (K3).
# Runs in every gated pod under busybox ash, dash or bash. Comments and indentation are stripped before it is embedded.
# Exit codes: 0 released, 124 timed out, 143 terminated.

# A shell that is process 1 ignores SIGTERM unless it says otherwise.
trap 'exit 143' TERM INT
# Nobody stays behind: its process group, which for process 1 is all of the container.
trap 'trap "" TERM; kill -TERM "-$me" 2>/dev/null' EXIT
read -r me _ </proc/self/stat
dir=${JOBSET_GATE_DIR:-/mnt/group-scheduling}
state=${JOBSET_GATE_STATE:-/mnt/group-scheduling-state}/verdict
log=${JOBSET_GATE_TERMINATION_LOG:-/dev/termination-log}
poll=${JOBSET_GATE_POLL:-0.2}
own=$JOBSET_GATE_EPOCH
case $own in '' | *[!0-9]*) own=0 ;; esac

# Whole seconds of a clock that nobody sets, read without starting a process.
tick() { read -r up _ </proc/uptime && up=${up%.*}; }

# Says why to people and ends. Nothing is cut off first: by both channels at once it is written twice, not half.
fail() {
  { printf %s "$1" 1<>"$log"; } 2>/dev/null
  echo "$1"
  exit 124
}

# Ends the shell if the words just read are a verdict for this pod: same UID, same attempt, an epoch not older than its
# own. The rest of the input is the message; a stream that does not end has its client, process $pid, stopped.
# A release is kept, in place, since a file that was emptied first might stay so. Without that volume the write fails.
pid=
judge() {
  case $epoch in '' | *[!0-9]*) return ;; esac
  [ "$uid" ] && [ "$uid" = "$JOBSET_GATE_UID" ] && [ "$attempt" = "$JOBSET_GATE_ATTEMPT" ] || return
  [ "$epoch" -ge "$own" ] || return
  case $verdict in
    release)
      echo "$verdict $uid $attempt $epoch $cause" 1<>"$state"
      echo "released"
      exit 0 ;;
    timeout)
      [ -z "$pid" ] || { sleep 2; kill "$pid"; } >/dev/null &
      fail "$(head -c 1024)" ;;
  esac
}

# Waits until the files are due to be read again, or until `tell` signals news of the stream to the shell.
# With signals, and a process for each nap, which a signal does not end: a stream that says much costs no more of them ...
sleeper=
nap() {
  [ "$sleeper" ] || { sleep "$poll" & sleeper=$!; }
  wait "$sleeper"
  [ $? -gt 128 ] || sleeper=
}
tell() { kill "-$1" "$me"; }
trap over USR1
trap heard USR2
limit='-T 40'
silence=
# ... or, where the shell can read with a time limit, ten times cheaper with a pipe: that of a here-document. A letter at
# a time, for the time may be up in the middle of a word. Such a shell notices the stream's silence too: not every busybox
# has a wget with -T.
if { [ -p /proc/self/fd/3 ] && command exec 4<>/proc/self/fd/3 && read -r _ <&4; } 3<<_ 2>/dev/null
.
_
then
  read -r -n 1 -t 0.01 _ <&4 2>/dev/null
  [ $? = 2 ] || {
    nap() {
      if read -r -n 1 -t "$poll" news <&4; then
        case $news in o) over ;; h) heard ;; esac
      elif [ "$ear" ] && ! hearing; then
        # The letter came just when the time was up: late here, lost in bash.
        while read -r -n 1 -t 0.01 _ <&4; do :; done
        over
      fi
    }
    hearing() { read -r _ _ news _ <"/proc/$ear/stat" && [ "$news" != Z ]; } 2>/dev/null
    tell() { printf %s "$2" >&4; }
    limit=
    silence='-t 40'
  }
fi

# After a pause asks the gate stream, in the background: at most 4 KiB of it, so that nobody fills the memory.
hear() {
  since=$up
  {
    read -r pid _ </proc/self/stat
    echo "$pid"
    sleep "$1"
    exec wget $limit -t 1 -q -O - "$JOBSET_GATE_STREAM/$JOBSET_GATE_UID/$JOBSET_GATE_ATTEMPT/$own/$JOBSET_GATE_POD"
  } 2>/dev/null | dd bs=1 count=4096 2>/dev/null | (
    trap 'kill "$pid"; tell USR1 o' EXIT
    read -r pid
    # Empty lines tell that it is alive; the first other one is a verdict, or worth nothing.
    while read -r $silence verdict uid attempt epoch cause; do
      [ -z "$verdict" ] || { judge; break; }
      tell USR2 h
    done
    exit 1
  ) 2>/dev/null &
  ear=$!
}

# The stream has ended: with a verdict, or to be asked again, the later the more often that happens, and never by all
# pods at once.
over() {
  wait "$ear" 2>/dev/null
  case $? in 0) exit 0 ;; 124) exit 124 ;; esac
  tick
  [ $((up - since)) -lt 30 ] || step=10
  seed=$(((seed * 1103515245 + 12345) & 2147483647))
  pause=$((1 + seed / 65536 % step))
  [ $((step *= 2)) -le 100 ] || step=100
  poll=${JOBSET_GATE_POLL:-0.2}
  hear "$((pause / 10)).$((pause % 10))"
}
# While the stream is heard, the files may wait.
heard() { poll=${JOBSET_GATE_POLL:-1}; }

tick
end=
case $JOBSET_GATE_LIMIT in
  '' | *[!0-9]*) ;;
  *) end=$((up + JOBSET_GATE_LIMIT + 1)) ;;
esac
step=10
seed=${JOBSET_GATE_POD%%-*}
case $seed in '' | *[!0-9a-f]*) seed=1 ;; *) seed=$((0x$seed & 2147483647)) ;; esac
echo "waiting for the gang to start"
if [ "$JOBSET_GATE_STREAM" ]; then
  if command -v wget >/dev/null; then hear 0; else echo "no wget in this image: no gate stream"; fi
fi
while :; do
  for file in "$state" "$dir/verdict" "$dir/annotation"; do
    [ -s "$file" ] && {
      { read -r verdict uid attempt epoch cause || [ "$epoch" ]; } && judge
    } 2>/dev/null <"$file"
  done
  # The backstop of a pod that nobody tells anything: its own limit since its own start.
  if [ "$end" ] && tick && [ "$up" -ge "$end" ]; then
    fail "timed out: no verdict from the jobset-gate controller within ${JOBSET_GATE_LIMIT}s"
  fi
  nap
done
