#!/bin/sh
# Runs a compiler and keeps what `ptxas -v` says beside the object.
#
#   cmake/ptxas-log.sh nvcc -Xptxas=-v ... -c a.cu -o a.cu.o
#
# writes a.cu.o.ptxas, which tests/cuda_build reads; everything else that the
# compiler says goes to stderr. Exit code: the compiler's.
set -u

object=
previous=
for argument in "$@"; do
  [ "$previous" = -o ] && object=$argument
  previous=$argument
done
if [ -z "$object" ]; then
  exec "$@"
fi

code=0
"$@" 2>"$object.stderr" || code=$?
ptxas='^ptxas info|^ *[0-9]+ bytes stack frame'
grep -E "$ptxas" "$object.stderr" >"$object.ptxas" || true
grep -E -v "$ptxas" "$object.stderr" >&2 || true
rm -f "$object.stderr"
exit $code
