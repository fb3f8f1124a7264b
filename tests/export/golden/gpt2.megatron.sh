#!/bin/bash
# gpt2 on 64 devices, written by `reckon export --to megatron` for NVIDIA/Megatron-LM at commit d98e8a64ddf34856e74b24714e3bedb2f5a39553.
# not expressed: model.hidden_act: gelu_new is the tanh form; Megatron's fused GELU with bias is that form too, so no flag is needed
# Start it on every node, in a checkout of Megatron-LM. The arguments are those of
# megatron.args.
set -eu
ARGUMENTS=(
  # Model
  --wandb-exp-name gpt2
  --num-layers 12
  --hidden-size 768
  --ffn-hidden-size 3072
  --num-attention-heads 12
  --group-query-attention
  --num-query-groups 12
  --kv-channels 64
  --max-position-embeddings 1024
  --position-embedding-type learned_absolute
  --normalization LayerNorm
  --norm-epsilon 1e-05
  --init-method-std 0.02
  --attention-dropout 0
  --hidden-dropout 0
  --vocab-size 50257
  --make-vocab-size-divisible-by 128
  --tokenizer-type NullTokenizer
  # Training
  --seq-length 1024
  --micro-batch-size 1
  --global-batch-size 64
  --train-iters 1000
  --eval-iters 0
  --seed 1234
  --optimizer adam
  --lr 3e-04
  --lr-decay-style constant
  --lr-warmup-iters 0
  --lr-decay-iters 1000
  --min-lr 0
  --weight-decay 0.1
  --adam-beta1 0.9
  --adam-beta2 0.95
  --adam-eps 1e-08
  --clip-grad 1
  --bf16
  --mock-data
  # Parallelism
  --tensor-model-parallel-size 1
  --context-parallel-size 1
  --pipeline-model-parallel-size 1
  --overlap-grad-reduce
)
torchrun --nnodes 8 --nproc-per-node 8 \
  --node-rank "${NODE_RANK:-${SLURM_NODEID:-0}}" \
  --master-addr "${MASTER_ADDR:-127.0.0.1}" --master-port "${MASTER_PORT:-29500}" \
  pretrain_gpt.py "${ARGUMENTS[@]}" "$@"
