#!/bin/bash
# mixtral on 64 devices, written by `reckon export --to megatron` for NVIDIA/Megatron-LM at commit d98e8a64ddf34856e74b24714e3bedb2f5a39553.
# Everything in the spec is expressed.
# Start it on every node, in a checkout of Megatron-LM. The arguments are those of
# megatron.args.
set -eu
export CUDA_DEVICE_MAX_CONNECTIONS=1
ARGUMENTS=(
  # Model
  --wandb-exp-name mixtral
  --num-layers 32
  --hidden-size 4096
  --ffn-hidden-size 14336
  --num-attention-heads 32
  --group-query-attention
  --num-query-groups 8
  --kv-channels 128
  --max-position-embeddings 4096
  --position-embedding-type rope
  --rotary-base 1000000
  --normalization RMSNorm
  --norm-epsilon 1e-05
  --swiglu
  --disable-bias-linear
  --untie-embeddings-and-output-weights
  --init-method-std 0.02
  --attention-dropout 0
  --hidden-dropout 0
  --vocab-size 32000
  --make-vocab-size-divisible-by 128
  --tokenizer-type NullTokenizer
  # Experts
  --num-experts 8
  --moe-router-topk 2
  --moe-ffn-hidden-size 14336
  --moe-grouped-gemm
  --moe-token-dispatcher-type alltoall
  --moe-router-load-balancing-type aux_loss
  --moe-aux-loss-coeff 0.02
  --moe-expert-capacity-factor 1.25
  # Training
  --seq-length 4096
  --micro-batch-size 1
  --global-batch-size 128
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
  --tensor-model-parallel-size 2
  --sequence-parallel
  --context-parallel-size 1
  --pipeline-model-parallel-size 4
  --num-layers-per-virtual-pipeline-stage 4
  --expert-model-parallel-size 8
  --expert-tensor-parallel-size 1
  --use-distributed-optimizer
  --overlap-grad-reduce
  --overlap-param-gather
  --recompute-granularity selective
  --recompute-modules core_attn
)
torchrun --nnodes 8 --nproc-per-node 8 \
  --node-rank "${NODE_RANK:-${SLURM_NODEID:-0}}" \
  --master-addr "${MASTER_ADDR:-127.0.0.1}" --master-port "${MASTER_PORT:-29500}" \
  pretrain_gpt.py "${ARGUMENTS[@]}" "$@"
