#!/bin/sh
# Compiles the plans of `reckon-run --selftest`, so that a machine with a GPU
# needs no compiler.
#
#   cmake/selftest-plans.sh RECKON ACCELERATORS.csv FOLDER
#
# FOLDER/{small,full}/plans: two layers, checked against the CPU device.
# FOLDER/{small,full}/stacks: what memory and speed are measured on, several
# sizes for each accelerator, with what the planner predicts (prediction.json)
# and what the catalogue says of the accelerator (accelerator.json).
set -eu

reckon=$1 catalogue=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
log=$folder/compile.log

# spec NAME ACCELERATOR PRECISION LAYERS RECOMPUTE, of the sizes in the
# variables.
spec() {
  cat <<YAML
model:
  name: $1
  architecture: llama
  vocab_size: $vocabulary
  hidden_size: $hidden
  intermediate_size: $intermediate
  num_hidden_layers: $4
  num_attention_heads: $heads
  num_key_value_heads: $key_heads
  tie_word_embeddings: false
  rope_theta: 500000.0
cluster: {accelerator: $2, nodes: 1, gpus_per_node: 1}
training:
  sequence_length: $sequence
  global_batch_size: $batch
  train_steps: 100
  precision: $3
  optimizer: {name: adamw, lr: 3.0e-4, betas: [0.9, 0.95], clip_grad: 1.0}
  data: {format: text, path: text.txt, tokenizer: byte}
parallelism:
  tensor_parallel: 1
  pipeline_parallel: 1
  data_parallel: 1
  micro_batch_size: $micro_batch
  recompute: $5
YAML
}

# compile FOLDER NAME ACCELERATOR PRECISION LAYERS RECOMPUTE
compile() {
  mkdir -p "$1"
  spec "$2" "$3" "$4" "$5" "$6" > "$1/$2.yaml"
  "$reckon" compile "$1/$2.yaml" -o "$1/$2" > "$log" 2>&1 || {
    cat "$log" >&2
    exit 1
  }
  # Not for running.
  rm "$1/$2/launch.sbatch" "$1/$2/report.html"
}

# stack FOLDER NAME ACCELERATOR PRECISION LAYERS
stack() {
  compile "$1" "$2" "$3" "$4" "$5" none
  "$reckon" plan "$1/$2.yaml" --format json -o "$1/$2/prediction.json" \
    > "$log" 2>&1 || {
    cat "$log" >&2
    exit 1
  }
  awk -F, -v name="$3" '
    NR == 1 { for (i = 1; i <= NF; ++i) column[i] = $i }
    $1 == name {
      printf "{"
      for (i = 3; i <= 7; ++i)
        printf("%s\"%s\": %s", (i > 3 ? ", " : ""), column[i], \
          ($i == "" ? 0 : $i))
      print "}"
    }' "$catalogue" > "$1/$2/accelerator.json"
}

precisions="fp32 bf16 fp8"
stack_precisions="bf16 fp8"

vocabulary=256 hidden=64 intermediate=176 heads=4 key_heads=2
sequence=32 batch=4 micro_batch=2
for precision in $precisions; do
  for recompute in none full; do
    compile "$folder/small/plans" "$precision-recompute-$recompute" h100-sxm \
      "$precision" 2 "$recompute"
  done
done
for precision in $stack_precisions; do
  for layers in 1 2; do
    stack "$folder/small/stacks" "tiny-$precision-$layers" h100-sxm \
      "$precision" "$layers"
  done
done

vocabulary=8192 hidden=1024 intermediate=2816 heads=16 key_heads=8
sequence=512 batch=4 micro_batch=2
for precision in $precisions; do
  for recompute in none full; do
    compile "$folder/full/plans" "$precision-recompute-$recompute" h100-sxm \
      "$precision" 2 "$recompute"
  done
done

# Layers of Llama 3 8B: as many as fit are run.
vocabulary=128256 hidden=4096 intermediate=14336 heads=32 key_heads=8
sequence=4096 batch=8 micro_batch=1
for precision in $stack_precisions; do
  for layers in 2 4 8 12 13; do
    stack "$folder/full/stacks" "h100-$precision-$layers" h100-sxm \
      "$precision" "$layers"
  done
  for layers in 8 16 24 28; do
    stack "$folder/full/stacks" "h200-$precision-$layers" h200-sxm \
      "$precision" "$layers"
  done
  for layers in 8 16 24 32; do
    stack "$folder/full/stacks" "b200-$precision-$layers" b200-sxm \
      "$precision" "$layers"
  done
done
rm -f "$log"
find "$folder" -name '*.yaml' -exec rm {} +
