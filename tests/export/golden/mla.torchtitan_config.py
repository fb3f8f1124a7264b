# deepseek on 64 devices, written by `reckon export --to torchtitan` for torchtitan 0.3.0.
# not expressed: model.num_nextn_predict_layers: the layers are there; their loss is torchtitan's MTPLoss, whose weight the spec does not name
# not expressed: training.optimizer.weight_decay: applied to all parameters; Reckon decays matrices only
import copy
from functools import partial

import torch.nn as nn

from torchtitan.components.loss import CrossEntropyLoss
from torchtitan.components.optimizer import (
    LRSchedulersContainer,
    default_adamw,
)
from torchtitan.config import (
    CompileConfig,
    DebugConfig,
    ParallelismConfig,
    TrainingConfig,
)
from torchtitan.distributed.activation_checkpoint import (
    FullAC,
    SelectiveAC,
)
from torchtitan.distributed.pipeline_parallel import pipeline_llm
from torchtitan.hf_datasets.text_datasets import HuggingFaceTextDataLoader
from torchtitan.models.common import Embedding, Linear
from torchtitan.models.common.nn_modules import RMSNorm
from torchtitan.models.common.param_init import skip_param_init
from torchtitan.protocols.model_spec import ModelSpec
from torchtitan.trainer import Trainer
from torchtitan.components.optimizer import register_moe_load_balancing_hook
from torchtitan.models.common import ComplexRoPE
from torchtitan.models.deepseek_v3 import build_mla_moe_layers
from torchtitan.models.deepseek_v3.model import DeepSeekV3Model
from torchtitan.models.deepseek_v3.mtp import MTPTransformerBlock
from torchtitan.models.deepseek_v3.parallelize import parallelize_deepseekv3
from torchtitan.models.deepseek_v3.state_dict_adapter import DeepSeekV3StateDictAdapter

MATRIX = {
    "weight": partial(nn.init.trunc_normal_, std=0.02),
    "bias": nn.init.zeros_,
}
NORM = {"weight": nn.init.ones_}
EMBEDDING = {"weight": MATRIX["weight"]}


def model_spec():
    dim, vocabulary = 2048, 129280

    def norm(width=dim):
        return RMSNorm.Config(normalized_shape=width, param_init=NORM)

    experts = {name: MATRIX["weight"] for name in
               ("w1_EFD", "w2_EDF", "w3_EFD")}
    layers = build_mla_moe_layers(
        n_layers=8, n_dense_layers=2, dim=dim, n_heads=16,
        q_lora_rank=768, kv_lora_rank=512, qk_nope_head_dim=128,
        qk_rope_head_dim=64, v_head_dim=128, mscale=1,
        dense_hidden_dim=5632, moe_hidden_dim=1408, num_experts=64,
        num_shared_experts=2, router_top_k=6, router_score_func="sigmoid",
        router_route_norm=True, attn_backend="flex",
        moe_comm_backend="standard", non_blocking_capacity_factor=None,
        linear_init=MATRIX, norm_init=NORM, depth_init=lambda layer: MATRIX,
        depth_experts_init=lambda layer: experts,
        rope=ComplexRoPE.Config(dim=64, max_seq_len=4096, theta=10000))
    last = layers[-1]
    mtp_layers = [
        MTPTransformerBlock.Config(
            attention=copy.deepcopy(last.attention),
            feed_forward=copy.deepcopy(last.feed_forward),
            moe=copy.deepcopy(last.moe),
            attention_norm=norm(), ffn_norm=norm(), enorm=norm(), hnorm=norm(),
            eh_proj=Linear.Config(in_features=2 * dim, out_features=dim),
            mtp_norm=norm())
        for _ in range(1)]
    model = DeepSeekV3Model.Config(
        dim=dim, vocab_size=vocabulary, layers=layers, norm=norm(),
        mtp_layers=mtp_layers,
        tok_embeddings=Embedding.Config(
            num_embeddings=vocabulary, embedding_dim=dim,
            param_init=EMBEDDING),
        lm_head=Linear.Config(
            in_features=dim, out_features=vocabulary, param_init=MATRIX))
    for _, config, _, _ in model.traverse(RMSNorm.Config):
        config.eps = 1e-06
    return ModelSpec(
        name="deepseek_v3", flavor="reckon", model=model,
        parallelize_fn=parallelize_deepseekv3, pipelining_fn=pipeline_llm,
        post_optimizer_build_fn=register_moe_load_balancing_hook,
        state_dict_adapter=DeepSeekV3StateDictAdapter)


def layer_names(first, end):
    return [f"layers.{i}" for i in range(first, end)]


def train():
    return Trainer.Config(
        model_spec=model_spec(),
        loss=CrossEntropyLoss.Config(global_vocab_size=129280),
        optimizer=default_adamw(
            lr=3e-04,
            betas=(0.9, 0.95),
            eps=1e-08,
            weight_decay=0.1,
        ),
        lr_scheduler=LRSchedulersContainer.Config(
            warmup_steps=10,
            decay_type="linear",
            decay_ratio=0.05,
            min_lr_factor=0.03333333333333334,
        ),
        training=TrainingConfig(
            local_batch_size=4,
            global_batch_size=64,
            seq_len=4096,
            steps=1000,
            max_norm=1,
            dtype="float32",
            mixed_precision_param="bfloat16",
            mixed_precision_reduce="float32",
            disable_cuda_graphs=True,
        ),
        parallelism=ParallelismConfig(
            data_parallel_replicate_degree=16,
            data_parallel_shard_degree=1,
            tensor_parallel_degree=1,
            enable_sequence_parallel=True,
            context_parallel_degree=1,
            expert_parallel_degree=16,
            pipeline_parallel_degree=4,
            pipeline_parallel_schedule="1F1B",
            pipeline_parallel_microbatch_size=1,
            module_fqns_per_model_part=[
                ["tok_embeddings"] + layer_names(0, 1),
                layer_names(1, 3),
                layer_names(3, 6),
                layer_names(6, 8) + ["norm", "lm_head"],
            ],
        ),
        activation_checkpoint=FullAC.Config(),
        dataloader=HuggingFaceTextDataLoader.Config(dataset="c4"),
        compile=CompileConfig(enable=True),
        debug=DebugConfig(seed=1234),
    )
