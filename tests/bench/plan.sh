#!/bin/sh
# How long the planner takes: reckon-search-bench prints the outer search alone,
# `time` the whole of `reckon plan`, start-up, neighbours and certificate
# included. BIN is the folder of the programs.
#
#   tests/bench/plan.sh        a Markdown table, about a minute
set -eu
cd "$(dirname "$0")/../.."
bin=${BIN:-build/bin}
models=examples/models
specs=tests/bench/specs

# NAME BATCH SEQUENCE NODES FILES...: one row.
row() {
  name=$1 batch=$2 sequence=$3 nodes=$4
  shift 4
  set -- "$@" examples/clusters/h100-1024.yaml
  sets="training.sequence_length=$sequence training.global_batch_size=$batch
        cluster.nodes=$nodes"
  [ "$name" = "GPT-3 175B, A100" ] && sets="$sets cluster.accelerator=a100-sxm-80gb constraints.max_bubble=1"
  outer=$("$bin/reckon-search-bench" "$@" $sets || true)
  flags=$(for set in $sets; do printf -- '--set %s ' "$set"; done)
  start=$(date +%s%N)
  code=0
  "$bin/reckon" plan "$@" $flags --top 1 >/dev/null 2>&1 || code=$?
  end=$(date +%s%N)
  space=$(echo "$outer" | sed 's/.*space \([0-9]*\),.*/\1/')
  seconds=$(echo "$outer" | sed 's/.*outer \([0-9.]*\) s.*/\1/')
  best=$(echo "$outer" | sed 's/.*best \([0-9.]*\) s,.*/\1/')
  [ $code = 3 ] && best="nothing fits"
  echo "| $name | $((nodes * 8)) | $space | $seconds |" \
    "$(awk "BEGIN{printf \"%.3f\", ($end - $start) / 1e9}") | $best |"
}

echo "| model | devices | combinations | outer search, s | reckon plan, s | step of the choice, s |"
echo "|---|---|---|---|---|---|"
for size in 8:128 1024:512 16384:2048 131072:16384; do
  devices=${size%:*} batch=${size#*:}
  for model in 8b 70b 405b; do
    row "Llama $model" "$batch" 8192 $((devices / 8)) $models/llama-$model.yaml
  done
  row "DeepSeek-V3-like" $((2 * batch)) 4096 $((devices / 8)) \
    $specs/deepseek-v3-like.yaml
done
row "GPT-3 175B, A100" 1536 2048 128 $specs/gpt3-175b.yaml
