#!/usr/bin/env python3
"""Gives exported configurations to the frameworks' own parsers.

A development check: it needs the packages (docs/export.md says which versions)
and skips, by name, what is not there. Exit code 0 when nothing that ran
failed, 1 otherwise; `--require` makes a skip a failure.

  validate.py [--golden DIR --world DEVICES] [--megatron CHECKOUT] [--require]
  validate.py --megatron CHECKOUT --write-flags FILE

Each file of golden/ is parsed twice: as it is, and after mutations that the
same parser must refuse, so that a parser that takes anything is noticed.
"""

import argparse
import importlib
import importlib.util
import io
import json
import os
import pathlib
import re
import shlex
import sys
import types
import contextlib

WORLD = 64  # devices of tests/export/specs/cluster.yaml
HERE = pathlib.Path(__file__).resolve().parent
DEEPSPEED = "0.19.8"
TORCHTITAN = "0.3.0"
results = []  # (what, outcome, detail)


def report(what, outcome, detail=""):
    results.append((what, outcome))
    print(f"{outcome:8} {what}{': ' + detail if detail else ''}", flush=True)


def accepts(what, parse):
    try:
        with quiet():
            detail = parse()
        report(what, "accepted", detail or "")
    except (Exception, SystemExit) as error:  # argparse exits
        report(what, "FAILED", f"{type(error).__name__}: {error}"[:400])


def refuses(what, parse):
    """The mutation of `what` must not get through."""
    try:
        with quiet():
            parse()
    except (Exception, SystemExit) as error:
        text = str(error).strip().splitlines()
        report(what, "refused", f"{type(error).__name__} "
               f"{text[0] if text else ''}"[:150])
    else:
        report(what, "FAILED", "the parser took it")


@contextlib.contextmanager
def quiet():
    with contextlib.redirect_stdout(io.StringIO()), \
            contextlib.redirect_stderr(io.StringIO()):
        yield


def version(package):
    from importlib.metadata import PackageNotFoundError, version as of
    try:
        return of(package)
    except PackageNotFoundError:
        return None


# --- DeepSpeed --------------------------------------------------------------

def deepspeed(golden):
    found = version("deepspeed")
    if found is None:
        report("deepspeed", "skipped", "the package is not installed")
        return
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    with quiet():
        from deepspeed.runtime.config import DeepSpeedConfig
    print(f"deepspeed {found} (exports are for {DEEPSPEED}): "
          "deepspeed.runtime.config.DeepSpeedConfig")
    for path in sorted(golden.glob("*ds_config.json")):
        text = json.loads(path.read_text())

        class Grid:
            """The replicas, as the client's process groups would say."""
            @staticmethod
            def get_data_parallel_world_size():
                return (WORLD // text.get("sequence_parallel_size", 1)
                        // text.get("tensor_parallel", {}).get("autotp_size", 1)
                        // text.get("pipeline", {}).get("stages", 1))

        def parse(change=lambda config: None):
            config = json.loads(json.dumps(text))
            change(config)
            # The parser asks torch.distributed for its rank before it asks
            # the grid for the replicas; without processes it would take one.
            import deepspeed.runtime.config as module
            rank, module.dist.get_rank = module.dist.get_rank, lambda: 0
            try:
                parsed = DeepSpeedConfig(config, mpu=Grid())
            finally:
                module.dist.get_rank = rank
            assert parsed.world_size == Grid.get_data_parallel_world_size()
            return (f"ZeRO {int(parsed.zero_optimization_stage)}, "
                    f"{parsed.train_batch_size} = "
                    f"{parsed.train_micro_batch_size_per_gpu} * "
                    f"{parsed.gradient_accumulation_steps} * "
                    f"{parsed.world_size}")

        accepts(path.name, parse)
        if "expert_parallel" in text:
            experts = text["expert_parallel"]
            accepts(f"{path.name}, its experts",
                    lambda: deepspeed_experts(text))
            # "reserved", "must divide the stage", an unknown preset.
            for key, value in (("expert_tensor_parallel_size", 2),
                               ("autoep_size", 3), ("preset_model", "gpt9")):
                refuses(f"{path.name}, its experts with {key} {value}",
                        lambda: deepspeed_experts(
                            {**text, "expert_parallel":
                             {**experts, key: value}}))
        refuses(f"{path.name} with train_batch_size + 1",
                lambda: parse(lambda c: c.update(
                    train_batch_size=c["train_batch_size"] + 1)))
        refuses(f"{path.name} with zero_optimization.overlap_com",
                lambda: parse(lambda c: c["zero_optimization"].update(
                    overlap_com=True)))
        refuses(f"{path.name} with ZeRO stage 4",
                lambda: parse(lambda c: c["zero_optimization"].update(stage=4)))
        if "scheduler" in text:
            accepts(f"{path.name}, its scheduler over its optimizer",
                    lambda: deepspeed_schedule(text))


def deepspeed_experts(config):
    """What deepspeed.initialize checks before it replaces any layer."""
    from deepspeed.module_inject import auto_ep_config
    parsed = auto_ep_config.parse_autoep_config(config["expert_parallel"])
    stages = config.get("pipeline", {}).get("stages", 1)
    tensor = config.get("tensor_parallel", {}).get("autotp_size", 1)
    auto_ep_config.validate_autoep_config(
        parsed, WORLD, stages, tensor,
        config.get("sequence_parallel_size", 1),
        zero_stage=config["zero_optimization"]["stage"])
    assert parsed.enabled
    return (f"autoep_size {parsed.autoep_size}, "
            f"preset {parsed.preset_model}")


def deepspeed_schedule(config):
    import torch
    from deepspeed.runtime import lr_schedules
    weights = [torch.nn.Parameter(torch.zeros(1))]
    params = config["optimizer"]["params"]
    optimizer = torch.optim.AdamW(weights, lr=params["lr"],
                                  betas=tuple(params["betas"]),
                                  eps=params["eps"],
                                  weight_decay=params["weight_decay"])
    section = config["scheduler"]
    schedule = getattr(lr_schedules, section["type"])(optimizer,
                                                      **section["params"])
    highest = 0.0
    for _ in range(section["params"].get("total_num_steps", 2000)):
        optimizer.step()
        schedule.step()
        highest = max(highest, schedule.get_last_lr()[0])
    assert highest <= params["lr"] * 1.0001, highest
    return f"peak {highest:g}, last {schedule.get_last_lr()[0]:g}"


# --- torchtitan -------------------------------------------------------------

def torchtitan(golden):
    found = version("torchtitan")
    if found is None:
        report("torchtitan", "skipped", "the package is not installed")
        return
    try:
        with quiet():
            from torchtitan.config import ConfigManager
    except ImportError as error:
        report("torchtitan", "skipped", f"its import fails: {error}")
        return
    print(f"torchtitan {found} (exports are for {TORCHTITAN}): "
          "ConfigManager().parse_args, ParallelDims, "
          "torch.distributed.pipelining.schedules.get_schedule_class, "
          "model built on the meta device")
    for path in sorted(golden.glob("*torchtitan_config.py")):
        text = path.read_text()

        def parse(source=text, arguments=()):
            name = "reckon_exported"
            module = types.ModuleType(name)
            exec(compile(source, str(path), "exec"), module.__dict__)
            sys.modules[name] = module
            try:
                config = ConfigManager().parse_args(
                    ["--module", name, "--config", "train", *arguments])
            finally:
                del sys.modules[name]
            return titan_checks(config)

        accepts(path.name, parse)
        def changed(pattern, replacement):
            mutant, count = re.subn(pattern, replacement, text)
            if count != 1:
                raise LookupError(f"{count} places for {pattern}")
            return mutant

        mutants = [("seq_length for seq_len", r"(?m)^( +)seq_len=",
                    r"\1seq_length="),
                   ("3 context ranks", r"context_parallel_degree=\d+",
                    "context_parallel_degree=3")]
        if "pipeline_parallel_schedule=" in text:
            mutants.append(("3 sequences in a micro-batch",
                            r"pipeline_parallel_microbatch_size=\d+",
                            "pipeline_parallel_microbatch_size=3"))
        for what, pattern, replacement in mutants:
            mutant = changed(pattern, replacement)
            refuses(f"{path.name} with {what}", lambda: parse(mutant))
        refuses(f"{path.name} with the argument --parallelism.tensor_paralel",
                lambda: parse(arguments=("--parallelism.tensor_paralel", "2")))


def titan_checks(config):
    import torch
    from torchtitan.distributed import ParallelDims
    p, t = config.parallelism, config.training
    dims = ParallelDims(dp_replicate=p.data_parallel_replicate_degree,
                        dp_shard=p.data_parallel_shard_degree,
                        cp=p.context_parallel_degree,
                        tp=p.tensor_parallel_degree,
                        pp=p.pipeline_parallel_degree,
                        ep=p.expert_parallel_degree,
                        world_size=WORLD)
    replicas = dims.dp_replicate * dims.dp_shard
    # What the trainer asserts before it accumulates gradients.
    assert t.global_batch_size % (t.local_batch_size * replicas) == 0
    if dims.pp > 1:
        from torch.distributed.pipelining.schedules import get_schedule_class
        get_schedule_class(p.pipeline_parallel_schedule)
        names = [n for part in p.module_fqns_per_model_part for n in part]
        layers = [n for n in names if n.startswith("layers.")]
        assert len(layers) == len(set(layers)) == len(
            config.model_spec.model.layers), "layers do not match the model"
        assert len(p.module_fqns_per_model_part) % dims.pp == 0
    with torch.device("meta"):
        model = config.model_spec.model.build()
    count = sum(w.numel() for w in model.parameters())
    return f"{count:,} parameters, {dims.pp} stages, {replicas} replicas"


# --- Megatron ---------------------------------------------------------------

def megatron_parser(checkout):
    os.environ.update(WORLD_SIZE=str(WORLD), RANK="0", LOCAL_RANK="0",
                      CUDA_DEVICE_MAX_CONNECTIONS="1")
    import typing
    if not hasattr(typing, "override"):  # Megatron asks for Python 3.12
        import typing_extensions
        typing.override = typing_extensions.override
    import torch
    # validate_args asks the device for its generation; a Hopper, as in the
    # specs, since there may be no device here.
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(major=9)
    sys.path.insert(0, str(checkout))
    with quiet():
        arguments = importlib.import_module("megatron.training.arguments")
        # Transformer Engine needs CUDA to be built; the checks only ask for
        # its version and for one of its kernels.
        utils = importlib.import_module("megatron.core.utils")
        if version("transformer-engine") is None:
            utils._te_version = utils.PkgVersion("2.9.0")
            rope = importlib.import_module(
                "megatron.core.models.common.embeddings.rope_utils")
            rope.fused_apply_rotary_pos_emb = lambda *_: None
    return arguments


def megatron_commit(checkout):
    head = checkout / "COMMIT"
    if head.is_file():
        return head.read_text().strip()
    import subprocess
    done = subprocess.run(["git", "-C", str(checkout), "rev-parse", "HEAD"],
                          capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def megatron(golden, checkout):
    if checkout is None:
        report("megatron", "skipped", "no --megatron CHECKOUT given")
        return
    try:
        arguments = megatron_parser(checkout)
    except ImportError as error:
        report("megatron", "skipped", f"its import fails: {error}")
        return
    print(f"Megatron-LM at {megatron_commit(checkout)}: parse_args, "
          f"validate_args, core_transformer_config_from_args, world {WORLD}")

    def parse(words):
        sys.argv = ["pretrain_gpt.py", *words]
        args = arguments.parse_args()
        arguments.validate_args(args)
        config = arguments.core_transformer_config_from_args(args)
        layout = getattr(config, "pipeline_model_parallel_layout", None)
        return (f"tp {args.tensor_model_parallel_size}, "
                f"cp {args.context_parallel_size}, "
                f"pp {args.pipeline_model_parallel_size}, v "
                f"{args.virtual_pipeline_model_parallel_size}, ep "
                f"{args.expert_model_parallel_size}, dp "
                f"{args.data_parallel_size}, "
                f"{type(config).__name__}"
                + (f", layout {args.pipeline_model_parallel_layout}"
                   if layout else ""))

    for path in sorted(golden.glob("*megatron.args")):
        words = shlex.split(path.read_text(), comments=True)
        accepts(path.name, lambda: parse(words))

        def changed(flag, value):
            at = words.index(flag)
            return words[:at + 1] + [value] + words[at + 2:]

        refuses(f"{path.name} with --tensor-model-paralel-size 2",
                lambda: parse(words + ["--tensor-model-paralel-size", "2"]))
        refuses(f"{path.name} with 3 tensor ranks",
                lambda: parse(changed("--tensor-model-parallel-size", "3")))
        if "--pipeline-model-parallel-layout" in words:
            layout = words[words.index("--pipeline-model-parallel-layout") + 1]
            refuses(f"{path.name} with a layer less in the layout",
                    lambda: parse(changed("--pipeline-model-parallel-layout",
                                          layout.replace("t", "", 1))))


def write_flags(checkout, target):
    arguments = megatron_parser(checkout)
    parser = argparse.ArgumentParser(allow_abbrev=False)
    arguments.add_megatron_arguments(parser)
    flags = {}
    for action in parser._actions:
        for name in action.option_strings:
            if name.startswith("--") and name != "--help":
                flags[name] = "1" if action.nargs is None else action.nargs
    target.write_text("".join(f"{n}\t{flags[n]}\n" for n in sorted(flags)))
    print(f"{len(flags)} flags of {megatron_commit(checkout)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--golden", type=pathlib.Path, default=HERE / "golden")
    parser.add_argument("--megatron", type=pathlib.Path)
    parser.add_argument("--require", action="store_true")
    parser.add_argument("--write-flags", type=pathlib.Path)
    parser.add_argument("--world", type=int, default=WORLD,
                        help="devices of the configurations")
    options = parser.parse_args()
    globals()["WORLD"] = options.world
    if options.write_flags:
        write_flags(options.megatron, options.write_flags)
        return 0
    if version("torch") is None:
        report("all", "skipped", "torch is not installed")
    else:
        deepspeed(options.golden)
        torchtitan(options.golden)
        megatron(options.golden, options.megatron)
    failed = sum(outcome == "FAILED" for _, outcome in results)
    skipped = sum(outcome == "skipped" for _, outcome in results)
    passed = len(results) - failed - skipped
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or (options.require and skipped) else 0


if __name__ == "__main__":
    sys.exit(main())
