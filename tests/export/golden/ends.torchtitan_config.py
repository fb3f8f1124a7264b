# llama-ends on 64 devices, written by `reckon export --to torchtitan` for torchtitan 0.3.0.
# not expressed: training.optimizer.weight_decay: applied to all parameters; Reckon decays matrices only
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
from torchtitan.models.common import ComplexRoPE
from torchtitan.models.common.config_utils import (
    get_attention_config,
    make_ffn_config,
    make_gqa_config,
)
from torchtitan.models.llama3.model import Llama3Model, Llama3TransformerBlock
from torchtitan.models.llama3.parallelize import parallelize_llama
from torchtitan.models.llama3.state_dict_adapter import Llama3StateDictAdapter

MATRIX = {
    "weight": partial(nn.init.trunc_normal_, std=0.02),
    "bias": nn.init.zeros_,
}
NORM = {"weight": nn.init.ones_}
EMBEDDING = {"weight": MATRIX["weight"]}


def model_spec():
    dim, vocabulary = 2048, 128256

    def norm(width=dim):
        return RMSNorm.Config(normalized_shape=width, param_init=NORM)

    rope = ComplexRoPE.Config(dim=128, max_seq_len=4096, theta=10000)
    def layer():
        return Llama3TransformerBlock.Config(
            attention_norm=norm(), ffn_norm=norm(),
            attention=make_gqa_config(
                dim=dim, n_heads=16, n_kv_heads=2, head_dim=128,
                wqkv_param_init=MATRIX, wo_param_init=MATRIX,
                inner_attention=get_attention_config("flex"),
                fuse_qkv=True, rope=rope),
            feed_forward=make_ffn_config(
                dim=dim, hidden_dim=8192,
                w1_param_init=MATRIX, w2w3_param_init=MATRIX))

    layers = [layer() for _ in range(6)]
    model = Llama3Model.Config(
        dim=dim, vocab_size=vocabulary, layers=layers, norm=norm(),
        tok_embeddings=Embedding.Config(
            num_embeddings=vocabulary, embedding_dim=dim,
            param_init=EMBEDDING),
        lm_head=Linear.Config(
            in_features=dim, out_features=vocabulary, param_init=MATRIX))
    for _, config, _, _ in model.traverse(RMSNorm.Config):
        config.eps = 1e-06
    return ModelSpec(
        name="llama3", flavor="reckon", model=model,
        parallelize_fn=parallelize_llama, pipelining_fn=pipeline_llm,
        post_optimizer_build_fn=None,
        state_dict_adapter=Llama3StateDictAdapter)


def layer_names(first, end):
    return [f"layers.{i}" for i in range(first, end)]


def train():
    return Trainer.Config(
        model_spec=model_spec(),
        loss=CrossEntropyLoss.Config(global_vocab_size=128256),
        optimizer=default_adamw(
            lr=3e-04,
            betas=(0.9, 0.95),
            eps=1e-08,
            weight_decay=0.1,
        ),
        lr_scheduler=LRSchedulersContainer.Config(
            warmup_steps=0,
            decay_type="linear",
            min_lr_factor=1,
        ),
        training=TrainingConfig(
            local_batch_size=8,
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
            data_parallel_replicate_degree=8,
            data_parallel_shard_degree=1,
            tensor_parallel_degree=2,
            enable_sequence_parallel=True,
            context_parallel_degree=1,
            expert_parallel_degree=1,
            pipeline_parallel_degree=4,
            pipeline_parallel_schedule="Interleaved1F1B",
            pipeline_parallel_microbatch_size=1,
            module_fqns_per_model_part=[
                ["tok_embeddings"] + layer_names(0, 0),
                layer_names(0, 1),
                layer_names(1, 2),
                layer_names(2, 3),
                layer_names(3, 4),
                layer_names(4, 5),
                layer_names(5, 6),
                layer_names(6, 6) + ["norm", "lm_head"],
            ],
        ),
        activation_checkpoint=FullAC.Config(),
        dataloader=HuggingFaceTextDataLoader.Config(dataset="c4"),
        compile=CompileConfig(enable=True),
        debug=DebugConfig(seed=1234),
    )
