# Puts a program that does nothing where every main image of the pod can run it (A8). prefetch.py puts a function
# before this for each machine that we have such a program for; it is named like the machine and prints its program.
# Runs in the barrier's image under busybox ash, dash or bash. Comments and indentation are stripped before it is
# embedded. Exit codes: 0 it is there, 1 not; the kubelet makes stderr the termination message.

dir=${JOBSET_GATE_DIR:-/mnt/group-scheduling-prefetch}
new=$dir/new
machine=`uname -m`

fail() { echo "prefetch-images: no program for $machine machines, and $1" >&2; exit 1; }

# A busybox that needs no loader does as well: it goes by the name that it is called by. Where it is the shell and prefers
# its own programs it names no file; there it is what runs each of them.
busybox_itself() {
  box=`command -v busybox` || fail "no busybox in the barrier's image"
  case $box in /*) ;; *) box=/proc/self/exe ;; esac
  if head -c 4096 "$box" | tr '\0' '\n' | grep -q '^/.*/ld'; then
    fail "the busybox in the barrier's image is not static"
  fi
  cat "$box"
}

put() {
  case $machine in
    x86_64 | aarch64) "$machine" ;;
    *) busybox_itself ;;
  esac
}

# The kubelet may run this again in the same pod: then the program is there, and nobody may write to it.
rm -f "$new" && put >"$new" && chmod 555 "$new" && mv -f "$new" "$dir/true"
