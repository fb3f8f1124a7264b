#!/bin/sh
# From a bare Debian 12 to a Llama that trains on four processes.
#
# Installs what is missing, builds, plans and compiles a 70B for 1024 H100,
# then trains a small Llama for real on this machine's CPU.
#
#   examples/quickstart.sh            about 20 minutes the first time on two
#                                     cores: 1 install, 10 build, 6 training
#   STEPS=50 examples/quickstart.sh   a shorter training
set -eu
cd "$(dirname "$0")/.."
start=$(date +%s)
say() { printf '\n== %s s: %s\n' "$(($(date +%s) - start))" "$*"; }

say "installing what is missing (Debian 12; about a minute on a bare machine)"
sh cmake/setup-debian.sh

say "building (under 15 minutes from nothing on two cores)"
cmake -G Ninja -S . -B build -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER_LAUNCHER=ccache >build-configure.log 2>&1 || {
  cat build-configure.log
  exit 1
}
rm -f build-configure.log
ninja -C build reckon reckon-run
reckon=build/bin/reckon

say "a 70B on 1024 H100: what it costs, where every byte goes"
big="examples/models/llama-70b.yaml examples/clusters/h100-1024.yaml
     examples/70b-1024/train.yaml"
# shellcheck disable=SC2086
$reckon plan $big
say "the same, compiled to a plan directory"
# shellcheck disable=SC2086
$reckon compile $big -o runs/70b.plan --dump-ir
$reckon show runs/70b.plan --what memory
$reckon show runs/70b.plan --what schedule

say "the text to learn: the manual pages of Perl (package perl-doc)"
mkdir -p runs/quickstart
cat /usr/share/perl/*/pod/perl*.pod | head -c 4000000 \
  >runs/quickstart/corpus.txt
ls -l runs/quickstart/corpus.txt

say "a small Llama: the plan, with every stage of its IR in runs/tiny.plan/ir"
$reckon plan examples/tiny/tiny.yaml
$reckon compile examples/tiny/tiny.yaml -o runs/tiny.plan --dump-ir
say "training it on 4 processes (TP2 x PP2); about 5 minutes on two cores"
$reckon run runs/tiny.plan --run-dir runs/tiny ${STEPS:+--steps "$STEPS"} \
  --data runs/quickstart/corpus.txt
say "done: loss by step in runs/tiny/metrics.jsonl, IR in runs/tiny.plan/ir"
tail -n 1 runs/tiny/metrics.jsonl
