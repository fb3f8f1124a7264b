#!/bin/sh
# Measures whole steps of a small Llama on this machine, in fp32 and bf16, with
# one process of two threads. STEPS (3) steps each after one that warms up; the
# programs are in RECKON_BIN (build/bin). docs/kernels.md explains the output.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${RECKON_BIN:-$root/build/bin}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seq 1 60000 > "$work/corpus.txt"
for precision in fp32 bf16; do
  cat > "$work/$precision.yaml" <<YAML
model:
  name: step-bench
  architecture: llama
  vocab_size: 32000
  hidden_size: 1024
  intermediate_size: 2816
  num_hidden_layers: 8
  num_attention_heads: 16
  num_key_value_heads: 8
  tie_word_embeddings: false
cluster: {accelerator: cpu, nodes: 1, gpus_per_node: 1}
training:
  sequence_length: 512
  global_batch_size: ${BATCH:-8}
  train_steps: 100
  precision: $precision
  optimizer: {name: adamw, lr: 1.0e-4, clip_grad: 1.0}
  data: {format: text, path: corpus.txt, tokenizer: byte}
parallelism:
  tensor_parallel: 1
  pipeline_parallel: 1
  data_parallel: 1
  micro_batch_size: 2
YAML
  "$bin/reckon" compile "$work/$precision.yaml" -o "$work/$precision.plan" \
    > "$work/compile.log" || { cat "$work/compile.log"; exit 1; }
done
# Threads that spin while they wait would count as work in processor time.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
for precision in ${PRECISIONS:-fp32 bf16}; do
  "$bin/reckon-step-bench" "${STEPS:-3}" "$work/corpus.txt" \
    "$work/$precision.plan"
done
