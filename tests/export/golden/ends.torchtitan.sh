#!/bin/bash
# llama-ends on 64 devices, written by `reckon export --to torchtitan` for torchtitan 0.3.0.
# not expressed: training.optimizer.weight_decay: applied to all parameters; Reckon decays matrices only
# Start it on every node, with torchtitan installed.
set -eu
export PYTHONPATH="$(dirname "$0")${PYTHONPATH:+:$PYTHONPATH}"
torchrun --nnodes 8 --nproc-per-node 8 \
  --rdzv-backend c10d --rdzv-endpoint "${MASTER_ADDR:-127.0.0.1}:${MASTER_PORT:-29500}" \
  -m torchtitan.train --module torchtitan_config --config train "$@"
