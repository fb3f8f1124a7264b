#!/bin/sh
# Packs the self-test for a machine that has a GPU and its driver, and nothing
# of this project's: the runtime, the CUDA plugins, `reckon doctor`, the plans,
# and Debian's libraries that they need, but not NVIDIA's (over 1 GB); the
# bundle's selftest.sh finds those there.
#
#   cmake/selftest-bundle.sh BUILD_FOLDER FILE.tar.gz
set -eu

build=$1 file=$2
source=$(cd "$(dirname "$0")" && pwd)
cmake=${CMAKE:-cmake}
limit=$((64 << 20))
fail() {
  echo "selftest-bundle: $*" >&2
  exit 5
}

[ -f "$build/share/reckon/selftest/.complete" ] ||
  fail "expected plans in $build/share/reckon/selftest, got none; build the" \
    "target selftest-plans"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$work/reckon-selftest
install() {
  "$cmake" --install "$build" --component "$1" --prefix "$2" --strip \
    > "$work/log" 2>&1 || {
    cat "$work/log" >&2
    fail "cannot install the component $1"
  }
}
install runtime "$top"
install selftest "$top"
# `reckon doctor`, without the compiler.
install compiler "$work/compiler"
cp "$work/compiler/bin/reckon" "$top/bin/"
for plugin in libreckon_cuda.so libreckon_cuda_emulated.so; do
  [ ! -f "$build/lib/$plugin" ] || {
    cp "$build/lib/$plugin" "$top/lib/"
    strip "$top/lib/$plugin"
  }
done

# Libraries of the C library belong to the machine, NVIDIA's to its toolkit.
ldd "$top"/bin/* | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' |
  sort -u | while read -r name path; do
  case $name in
  libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | \
    libresolv.so.* | ld-linux*) ;;
  *) [ -e "$top/lib/$name" ] || cp -L "$path" "$top/lib/$name" ;;
  esac
done
if missing=$(ldd "$top"/bin/* | grep 'not found'); then
  fail "libraries are not on this machine: $missing"
fi
cp "$source/selftest.sh" "$top/"

tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 \
  -C "$work" -cf - reckon-selftest | gzip -9n > "$file.partial"
bytes=$(wc -c < "$file.partial")
[ "$bytes" -lt "$limit" ] ||
  fail "expected a bundle below $limit bytes, got $bytes; leave out plans in" \
    "cmake/selftest-plans.sh"
mv "$file.partial" "$file"
echo "$file: $bytes bytes"
