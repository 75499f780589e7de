# Puts a program that does nothing where every main image of the pod can run it (A8).
# Runs in the barrier's image under busybox ash, dash or bash. Comments and indentation are stripped before it is
# embedded. Exit codes: 0 it is there, 1 not; the kubelet makes stderr the termination message.

dir=${JOBSET_GATE_DIR:-/mnt/group-scheduling-prefetch}
new=$dir/new
machine=`uname -m`

# The smallest program that Linux runs: an ELF file of 188 bytes whose only act is exit_group(0). It needs no loader, no
# library and nothing of the image that it runs in. $1 is the machine's number in ELF, $2 the instructions.
elf() {
  # The file's header: ELF, 64-bit, little-endian; an executable of that machine, version 1;
  printf '\177\105\114\106\2\1\1\0\0\0\0\0\0\0\0\0'
  printf "\2\0$1\0\1\0\0\0"
  # its entry is 0x4000b0; program headers follow at once; no sections, no flags; sizes; two program headers.
  printf '\260\0\100\0\0\0\0\0\100\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
  printf '\0\0\0\0\100\0\70\0\2\0\0\0\0\0\0\0'
  # Load the whole file to 0x400000, to be read and executed, aligned to the largest page that aarch64 may have.
  printf '\1\0\0\0\5\0\0\0\0\0\0\0\0\0\0\0\0\0\100\0\0\0\0\0\0\0\100\0\0\0\0\0'
  printf '\274\0\0\0\0\0\0\0\274\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0'
  # A stack that is not executable: older kernels make it so without this, which SELinux may refuse.
  printf '\121\345\164\144\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
  printf '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\20\0\0\0\0\0\0\0'
  printf "$2"
}
# mov edi, 0; mov eax, 231; syscall
x86_64() { elf '\76' '\277\0\0\0\0\270\347\0\0\0\17\5'; }
# mov x0, #0; mov x8, #94; svc #0
aarch64() { elf '\267' '\0\0\200\322\310\13\200\322\1\0\0\324'; }

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
