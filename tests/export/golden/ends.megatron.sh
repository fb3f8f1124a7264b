#!/bin/bash
# llama-ends on 64 devices, written by `reckon export --to megatron` for NVIDIA/Megatron-LM at commit d98e8a64ddf34856e74b24714e3bedb2f5a39553.
# Everything in the spec is expressed.
# Start it on every node, in a checkout of Megatron-LM. The arguments are those of
# megatron.args.
set -eu
export CUDA_DEVICE_MAX_CONNECTIONS=1
ARGUMENTS=(
  # Model
  --wandb-exp-name llama-ends
  --num-layers 6
  --hidden-size 2048
  --ffn-hidden-size 8192
  --num-attention-heads 16
  --group-query-attention
  --num-query-groups 2
  --kv-channels 128
  --max-position-embeddings 4096
  --position-embedding-type rope
  --rotary-base 10000
  --normalization RMSNorm
  --norm-epsilon 1e-06
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
  --seq-length 4096
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
  --tensor-model-parallel-size 4
  --sequence-parallel
  --context-parallel-size 1
  --pipeline-model-parallel-size 4
  --pipeline-model-parallel-layout 'E|(t|)*6L'
  --use-distributed-optimizer
  --overlap-grad-reduce
  --overlap-param-gather
)
torchrun --nnodes 8 --nproc-per-node 8 \
  --node-rank "${NODE_RANK:-${SLURM_NODEID:-0}}" \
  --master-addr "${MASTER_ADDR:-127.0.0.1}" --master-port "${MASTER_PORT:-29500}" \
  pretrain_gpt.py "${ARGUMENTS[@]}" "$@"
