#!/bin/bash
# llama-8b on 64 devices, written by `reckon export --to megatron` for NVIDIA/Megatron-LM at commit d98e8a64ddf34856e74b24714e3bedb2f5a39553.
# Everything in the spec is expressed.
# Start it on every node, in a checkout of Megatron-LM. The arguments are those of
# megatron.args.
set -eu
export CUDA_DEVICE_MAX_CONNECTIONS=1
ARGUMENTS=(
  # Model
  --wandb-exp-name llama-8b
  --num-layers 32
  --hidden-size 4096
  --ffn-hidden-size 14336
  --num-attention-heads 32
  --group-query-attention
  --num-query-groups 8
  --kv-channels 128
  --max-position-embeddings 131072
  --position-embedding-type rope
  --rotary-base 500000
  --use-rope-scaling
  --rope-scaling-factor 8
  --normalization RMSNorm
  --norm-epsilon 1e-05
  --swiglu
  --disable-bias-linear
  --untie-embeddings-and-output-weights
  --init-method-std 0.02
  --attention-dropout 0
  --hidden-dropout 0
  --vocab-size 128256
  --make-vocab-size-divisible-by 128
  --tokenizer-type NullTokenizer
  # Training
  --seq-length 8192
  --micro-batch-size 1
  --global-batch-size 64
  --train-iters 1000
  --eval-iters 0
  --seed 1234
  --optimizer adam
  --lr 3e-04
  --lr-decay-style cosine
  --lr-warmup-iters 100
  --lr-decay-iters 1000
  --min-lr 3e-05
  --weight-decay 0.1
  --adam-beta1 0.9
  --adam-beta2 0.95
  --adam-eps 1e-08
  --clip-grad 1
  --bf16
  --mock-data
  # Parallelism
  --tensor-model-parallel-size 2
  --sequence-parallel
  --context-parallel-size 2
  --cp-comm-type all_gather
  --pipeline-model-parallel-size 4
  --pipeline-model-parallel-layout 'Et*3|(t*4|)*6t*5L'
  --use-distributed-optimizer
  --overlap-grad-reduce
  --overlap-param-gather
  --recompute-granularity full
  --recompute-method block
  --recompute-num-layers 2
)
torchrun --nnodes 8 --nproc-per-node 8 \
  --node-rank "${NODE_RANK:-${SLURM_NODEID:-0}}" \
  --master-addr "${MASTER_ADDR:-127.0.0.1}" --master-port "${MASTER_PORT:-29500}" \
  pretrain_gpt.py "${ARGUMENTS[@]}" "$@"
