#!/bin/sh
# How long the planner takes, in seconds of processor time, beside the bars of
# the project: reckon-search-bench prints the outer search alone with its proof,
# the least of seven; the whole of `reckon plan` has start-up, assignments,
# neighbours, certificate and explanations too. BIN is the folder of the
# programs. The gap is that of the proof of all assignments.
#
#   tests/bench/plan.sh        a Markdown table, about half a minute
#
# The last line names the rows that take longer than their bar, or have a space
# that is smaller than it should be. Exit code 1 when there are some.
set -eu
cd "$(dirname "$0")/../.."
bin=${BIN:-build/bin}
models=examples/models
specs=tests/bench/specs
short=""
clock=$(mktemp)
trap 'rm -f "$clock"' EXIT

# What Calculon enumerates for 175B on 1024 devices.
calculon=11700000

# TIMES COMMAND...: seconds of one of so many runs, user and system, and the
# exit code.
spent() {
  count=$1
  shift
  (
    code=0
    for _ in $(seq "$count"); do
      "$@" >/dev/null 2>&1 || code=$?
    done
    times >"$clock" # of this shell and, on the second line, of what it ran
    awk -v count="$count" -v code="$code" '
      NR == 2 {
        for (i = 1; i <= 2; ++i) { split($i, t, "m"); sum += 60 * t[1] + t[2] }
      }
      END { printf "%.4f %d\n", sum / count, code }' "$clock"
  )
}

above() { awk "BEGIN{exit !($1 > $2)}"; }

# NAME DEVICES SPACE OUTER BAR PLAN BAR STEP: prints a row and checks it.
show() {
  outer_bar=$5 plan_bar=$7
  echo "| $1 | $2 | $3 | $9 | $4 | $outer_bar | $6 | $plan_bar | $8 |"
  if [ "$outer_bar" != none ] && above "$4" "$outer_bar"; then
    short="$short, $1 on $2 (outer search)"
  fi
  if [ "$plan_bar" != none ] && above "$6" "$plan_bar"; then
    short="$short, $1 on $2 (reckon plan)"
  fi
}

# NAME BATCH SEQUENCE NODES OUTER_BAR PLAN_BAR FILES...: one row.
row() {
  name=$1 batch=$2 sequence=$3 nodes=$4 outer_bar=$5 plan_bar=$6
  shift 6
  set -- "$@" examples/clusters/h100-1024.yaml
  sets="training.sequence_length=$sequence training.global_batch_size=$batch
        cluster.nodes=$nodes"
  [ "$name" = "GPT-3 175B, A100" ] && sets="$sets cluster.accelerator=a100-sxm-80gb constraints.max_bubble=1"
  # shellcheck disable=SC2086
  bench=$("$bin/reckon-search-bench" "$@" $sets || true)
  outer=$(echo "$bench" | head -1)
  assigned=$(echo "$bench" | sed -n 2p)
  flags=$(for set in $sets; do printf -- '--set %s ' "$set"; done)
  # shellcheck disable=SC2086
  set -- $(spent 1 "$bin/reckon" plan "$@" $flags --top 1)
  space=$(echo "$outer" | sed 's/.*space \([0-9]*\),.*/\1/')
  seconds=$(echo "$outer" | sed 's/.*outer \([0-9.]*\) s.*/\1/')
  assignments=$(echo "$outer" | sed 's/.*assignments //')
  best=$(echo "$assigned" | sed 's/.*best \([0-9.]*\) s,.*gap \([0-9.]*\) .*/\1 (gap \2 %)/')
  [ "$2" = 3 ] && best="nothing fits"
  show "$name" $((nodes * 8)) "$space" "$seconds" "$outer_bar" "$1" \
    "$plan_bar" "$best" "$assignments"
}

echo "| model | devices | combinations | assignments | outer search, s | bar | reckon plan, s | bar | step of the choice, s (gap of its proof) |"
echo "|---|---|---|---|---|---|---|---|---|"
for size in 8:128:none 1024:512:1 16384:2048:1 131072:16384:3; do
  IFS=: read -r devices batch bar <<EOF
$size
EOF
  for model in 8b 70b 405b; do
    row "Llama $model" "$batch" 8192 $((devices / 8)) 0.1 "$bar" \
      $models/llama-$model.yaml
  done
  row "DeepSeek-V3-like" $((2 * batch)) 4096 $((devices / 8)) 0.1 "$bar" \
    $specs/deepseek-v3-like.yaml
done
row "GPT-3 175B, A100" 1536 2048 128 none 2 $specs/gpt3-175b.yaml
# Every assignment is a configuration that the proof is about.
above "$assignments" $calculon ||
  short="$short, GPT-3 175B, A100 on 1024 (a space below $calculon)"

# One fixed configuration, the whole process.
set -- $(spent 20 "$bin/reckon" plan $models/llama-70b.yaml \
  examples/clusters/h100-1024.yaml examples/70b-1024/train.yaml \
  --set parallelism.sequence_parallel=true \
  --set parallelism.context_parallel=1)
[ "$2" = 0 ] || short="$short, the fixed configuration (exit code $2)"
show "Llama 70b, one fixed configuration" 1024 1 0 none "$1" 0.05 - -

echo
echo "short of the bar: ${short:-none}" | sed 's/bar: , /bar: /'
[ -z "$short" ]
