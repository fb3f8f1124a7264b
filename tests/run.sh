#!/bin/sh
# Installs what is missing, builds everything and runs every test.
#
#   tests/run.sh            about 15 minutes on two cores the first time, most
#                           of it the build; a few minutes after that
#   tests/run.sh -R plan    only the tests whose name matches (ctest options)
#
# Exit code: 0 when every test passed.
set -eu
cd "$(dirname "$0")/.."
start=$(date +%s)
say() { echo "== $(($(date +%s) - start)) s: $*"; }

say "installing what is missing (Debian 12; about a minute on a bare machine)"
sh cmake/setup-debian.sh
say "configuring into build/"
cmake -G Ninja -S . -B build -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER_LAUNCHER=ccache >build-configure.log 2>&1 || {
  cat build-configure.log
  exit 1
}
rm -f build-configure.log
say "building (under 15 minutes from nothing on two cores)"
ninja -C build
say "testing: unit tests, IR tests with FileCheck, end-to-end runs"
ctest --test-dir build --output-on-failure --no-tests=error "$@"
say "done"
