#!/bin/sh
# Runs Reckon's self-test on this machine and keeps what it says.
#
#   ./selftest.sh [TARGET [ARGUMENT...]]
#
# TARGET is cuda (default), cuda-emulated or cpu; arguments go to reckon-run.
# selftest-TARGET.log and selftest-TARGET.json are written to the current
# folder. Needs Debian 12 or a later system (glibc 2.36). The exit code is that
# of reckon-run: 0 passed, 1 something is wrong, 5 there is no such device.
set -u

here=$(cd "$(dirname "$0")" && pwd)
target=${1:-cuda}
[ $# -eq 0 ] || shift
log=selftest-$target.log
json=selftest-$target.json

# NVIDIA's libraries, in folders that the loader may not know of: the toolkit's,
# and those of pip's wheels.
folders=$here/lib
absent=
find_library() {
  /sbin/ldconfig -p 2> /dev/null | grep -q "$1" && return
  for folder in /usr/local/cuda*/lib64 \
    /usr/lib/python3*/*-packages/nvidia/*/lib \
    /usr/local/lib/python3*/*-packages/nvidia/*/lib \
    /opt/*/lib/python3*/site-packages/nvidia/*/lib \
    "${HOME:-/root}"/.local/lib/python3*/site-packages/nvidia/*/lib \
    "${VIRTUAL_ENV:-/none}"/lib/python3*/site-packages/nvidia/*/lib; do
    if [ -e "$folder/$1" ]; then
      folders=$folders:$folder
      return
    fi
  done
  absent="$absent $1"
}
for library in libcublasLt.so.13 libcudnn.so.9 libnccl.so.2; do
  find_library "$library"
done
LD_LIBRARY_PATH=$folders${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

show() {
  echo "\$ $*"
  "$@" 2>&1 || echo "(exit code $?)"
}

{
  date -u
  uname -srm
  show getconf GNU_LIBC_VERSION
  if [ "$target" = cuda ]; then
    if command -v nvidia-smi > /dev/null; then
      show nvidia-smi
    else
      echo "no nvidia-smi: is NVIDIA's driver installed?"
    fi
    [ -z "$absent" ] ||
      echo "not on this machine:$absent; install CUDA 13's, or: pip install" \
        "nvidia-cublas nvidia-cudnn-cu13 nvidia-nccl-cu13"
  fi
  show "$here/bin/reckon" doctor
} > "$log" 2>&1
cat "$log"

# tee would hide the exit code.
code=$log.code
{
  "$here/bin/reckon-run" --selftest "$target" --selftest-out "$json" "$@" 2>&1
  echo $? > "$code"
} | tee -a "$log"
result=$(cat "$code")
rm -f "$code"
echo "exit code $result; see $log and $json" | tee -a "$log"
exit "$result"
