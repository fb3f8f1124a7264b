#!/bin/bash
# deepseek on 64 devices, written by `reckon export --to megatron` for NVIDIA/Megatron-LM at commit d98e8a64ddf34856e74b24714e3bedb2f5a39553.
# Everything in the spec is expressed.
# Start it on every node, in a checkout of Megatron-LM. The arguments are those of
# megatron.args.
set -eu
ARGUMENTS=(
  # Model
  --wandb-exp-name deepseek
  --num-layers 8
  --hidden-size 2048
  --ffn-hidden-size 5632
  --num-attention-heads 16
  --max-position-embeddings 4096
  --position-embedding-type rope
  --rotary-base 10000
  --rope-type rope
  --no-rope-fusion
  --normalization RMSNorm
  --norm-epsilon 1e-06
  --swiglu
  --disable-bias-linear
  --untie-embeddings-and-output-weights
  --init-method-std 0.02
  --attention-dropout 0
  --hidden-dropout 0
  --vocab-size 129280
  --make-vocab-size-divisible-by 128
  --tokenizer-type NullTokenizer
  # Multi-head latent attention
  --multi-latent-attention
  --q-lora-rank 768
  --kv-lora-rank 512
  --qk-head-dim 128
  --qk-pos-emb-head-dim 64
  --v-head-dim 128
  --qk-layernorm
  # Experts
  --num-experts 64
  --moe-router-topk 6
  --moe-ffn-hidden-size 1408
  --moe-layer-freq '([0]*2+[1]*6)'
  --moe-shared-expert-intermediate-size 2816
  --moe-grouped-gemm
  --moe-token-dispatcher-type alltoall
  --moe-router-score-function sigmoid
  --moe-router-enable-expert-bias
  --moe-router-load-balancing-type none
  # Multi-token prediction
  --mtp-num-layers 1
  # Training
  --seq-length 4096
  --micro-batch-size 1
  --global-batch-size 64
  --train-iters 1000
  --eval-iters 0
  --seed 1234
  --optimizer adam
  --lr 3e-04
  --lr-decay-style WSD
  --lr-wsd-decay-style linear
  --lr-wsd-decay-iters 50
  --lr-warmup-iters 10
  --lr-decay-iters 1000
  --min-lr 1e-05
  --weight-decay 0.1
  --adam-beta1 0.9
  --adam-beta2 0.95
  --adam-eps 1e-08
  --clip-grad 1
  --bf16
  --fp8-format hybrid
  --mock-data
  # Parallelism
  --tensor-model-parallel-size 1
  --context-parallel-size 1
  --pipeline-model-parallel-size 4
  --pipeline-model-parallel-layout 'Et|t*2|t*3|t*2mL'
  --expert-model-parallel-size 16
  --expert-tensor-parallel-size 1
  --use-distributed-optimizer
  --overlap-grad-reduce
  --overlap-param-gather
  --recompute-granularity full
  --recompute-method uniform
  --recompute-num-layers 1
)
torchrun --nnodes 8 --nproc-per-node 8 \
  --node-rank "${NODE_RANK:-${SLURM_NODEID:-0}}" \
  --master-addr "${MASTER_ADDR:-127.0.0.1}" --master-port "${MASTER_PORT:-29500}" \
  pretrain_gpt.py "${ARGUMENTS[@]}" "$@"
