#!/bin/sh
# Installs what building and testing Reckon needs on Debian 12, from Debian's
# own archive, and nothing that is there already. Where nvcc is, it also fetches
# one header that Debian does not have, if pip can; the build does without it.
#
#   cmake/setup-debian.sh           install what is missing (root or sudo)
#   cmake/setup-debian.sh --check   only say what is missing; exit 1 if anything
#   cmake/setup-debian.sh --list    print the names of the packages
#
# Exit codes: 0 done, 1 something is missing (--check), 2 bad usage,
# 5 it cannot be installed; the reason is printed.
set -eu

# Compiler half: MLIR and LLVM 22 come from bookworm-security.
PACKAGES="g++ cmake ninja-build ccache lld-22
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools
  zlib1g-dev libzstd-dev libxml2-dev libffi-dev
  libyaml-cpp-dev libz3-dev libcli11-dev"
# Runtime: kernels, plan files, digests.
PACKAGES="$PACKAGES libdnnl-dev libflatbuffers-dev flatbuffers-compiler
  nlohmann-json3-dev libxxhash-dev"
# Tests: perl-doc is the text that the quickstart trains on, clang has libFuzzer,
# Slurm runs on one machine.
PACKAGES="$PACKAGES libgtest-dev libgmock-dev python3 python3-yaml perl-doc
  clang-22 libclang-rt-22-dev z3 slurmctld slurmd slurm-client munge procps"

fail() {
  echo "setup-debian: $*" >&2
  exit 5
}

# Prints those of $PACKAGES that are not installed.
missing() {
  for package in $PACKAGES; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" \
      2>/dev/null || true)
    if [ "$status" != installed ]; then
      printf '%s ' "$package"
    fi
  done
}

# Prints those of the arguments that apt knows no version of.
unknown() {
  for package in "$@"; do
    if ! apt-cache show "$package" 2>/dev/null | grep -q '^Version:'; then
      printf '%s ' "$package"
    fi
  done
}

apt() {
  $SUDO env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
    -o DPkg::Lock::Timeout=120 "$@"
}

# cudnn_frontend.h for the CUDA plugin, into the folder where CMake looks for it.
fetch_cudnn_frontend() {
  command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || return 0
  source=$(dirname "$0")
  folder=$source/../.cache/cudnn-frontend
  [ ! -f "$folder/include/cudnn_frontend.h" ] || return 0
  echo "setup-debian: fetching cudnn_frontend.h from PyPI (2 MB), for the" \
    "bf16 attention of the CUDA plugin"
  rm -rf "$folder"
  mkdir -p "$folder"
  # The wheel of any Python holds the same headers; this one's digest is known.
  if python3 -m pip download -q --disable-pip-version-check --no-deps \
    --only-binary :all: --implementation cp --python-version 3.11 \
    --platform "manylinux_2_28_$(uname -m)" --retries 1 --timeout 15 \
    --require-hashes -r "$source/cudnn-frontend.txt" -d "$folder" &&
    python3 -m zipfile -e "$folder"/*.whl "$folder/wheel" &&
    mv "$folder/wheel/include" "$folder/include"; then
    rm -rf "$folder/wheel" "$folder"/*.whl
  else
    rm -rf "$folder"
    echo "setup-debian: not fetched (see above); bf16 attention on GPUs will" \
      "be Reckon's own kernel, which is slower"
  fi
}

case ${1-} in
'') ;;
--check | --list) ;;
*)
  echo "usage: $0 [--check | --list]" >&2
  exit 2
  ;;
esac
if [ "${1-}" = --list ]; then
  printf '%s\n' $PACKAGES
  exit 0
fi

command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
  fail "expected a Debian system with apt-get and dpkg-query; elsewhere" \
    "install the equivalents of: $(echo $PACKAGES)"

# Package names hold no blanks, so that word splitting is what is wanted.
need=$(missing)
if [ -z "$need" ]; then
  echo "setup-debian: all packages are installed"
  [ "${1-}" = --check ] || fetch_cudnn_frontend
  exit 0
fi
echo "setup-debian: missing: $need"
if [ "${1-}" = --check ]; then
  exit 1
fi

SUDO=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    fail "installing needs root, and there is no sudo; run as root:" \
      "apt-get install --no-install-recommends $need"
  SUDO=sudo
fi

updated=
update() {
  echo "setup-debian: apt-get update"
  apt update || fail "apt-get update failed; see above"
  updated=yes
}

if [ -n "$(unknown $need)" ]; then
  update
  absent=$(unknown $need)
  if [ -n "$absent" ]; then
    case $absent in
    *-22*)
      fail "apt does not know: $absent. LLVM 22 is in Debian 12's security" \
        "archive (suite bookworm-security, component main); add it to" \
        "/etc/apt/sources.list and run this again"
      ;;
    *) fail "apt does not know: $absent. Expected Debian 12 (bookworm)" ;;
    esac
  fi
fi

echo "setup-debian: installing; on a minimal system 340 MB to fetch and 2.2 GB" \
  "on disk, under a minute with a fast network"
started=$(date +%s)
if ! apt install --no-install-recommends $need; then
  # Lists that are out of date name files which the archive no longer has.
  [ -z "$updated" ] || fail "apt-get install failed; see above"
  update
  apt install --no-install-recommends $need ||
    fail "apt-get install failed; see above"
fi
need=$(missing)
[ -z "$need" ] || fail "still missing after the installation: $need"
echo "setup-debian: done in $(($(date +%s) - started)) s"
fetch_cudnn_frontend
