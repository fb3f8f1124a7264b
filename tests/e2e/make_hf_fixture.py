#!/usr/bin/env python3
"""Writes tests/e2e/fixtures/llama2l: what Hugging Face transformers computes.

Needs torch, transformers, safetensors and numpy. Running Reckon's tests needs
none of them; this script is only for making the fixture again:

  python3 -m venv /path/to/venv
  /path/to/venv/bin/pip install torch transformers safetensors numpy
  /path/to/venv/bin/python tests/e2e/make_hf_fixture.py

The corpus (corpus.txt, 8 * 64 + 1 bytes) is an input. With the byte tokenizer
it gives exactly eight windows of 64 + 1 tokens, each starting where the last
one ended, and one step of eight sequences covers all of them, so that neither
the mean loss nor the gradients depend on the order in which a sampler visits
the windows.

Checked before anything is written: that the fp32 loss and gradients of
LlamaForCausalLM agree with `reference_loss`, an independent float64
implementation of the same model in this file; that the float64 gradients agree
with central differences; and that leaving out the rotary scaling, confusing
two epsilons or pairing heads with the wrong key group changes the gradients by
far more than the tests' tolerance.
"""

import argparse
import contextlib
import json
import math
import pathlib
import platform
import sys

import safetensors.torch
import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

SEED = 20240917
SEQUENCE = 64
BATCH = 8
STEPS = (1, 3)
ADAMW = {"lr": 1e-3, "betas": (0.9, 0.95), "eps": 1e-8}
WEIGHT_DECAY = 0.1
CLIP = 1.0

# original_max_position_embeddings is small so that, with head_dim 16, the
# eight rotary frequencies fall into all three regimes of the rule: kept (1),
# interpolated (1) and divided by the factor (6).
ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
SHAPE = {
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}


def make_model():
    """Returns an fp32 LlamaForCausalLM with seeded weights.

    Matrices have std 0.1 (0.2 for the embedding) and norm weights lie around
    1: with the usual 0.02 most gradients would be so small that the tests'
    floor, 1e-3 of the global norm, would hide errors in them.
    """
    config = LlamaConfig(
        **SHAPE,
        rope_theta=ROPE["rope_theta"],
        rope_scaling={k: v for k, v in ROPE.items() if k != "rope_theta"},
        max_position_embeddings=512,
        attention_bias=False,
        mlp_bias=False,
        attn_implementation="eager",
        use_cache=False,
    )
    model = LlamaForCausalLM(config).float().train()
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if weight.dim() == 1:
                weight.copy_(1 + 0.2 * noise)
            else:
                weight.copy_((0.2 if "embed" in name else 0.1) * noise)
    return model


def read_batch(path):
    """Returns (tokens, targets), each int64 [BATCH, SEQUENCE]."""
    data = path.read_bytes()
    if len(data) != BATCH * SEQUENCE + 1:
        sys.exit(f"expected {BATCH * SEQUENCE + 1} bytes in {path}, "
                 f"got {len(data)}")
    ids = torch.tensor(list(data))
    windows = [ids[i * SEQUENCE:(i + 1) * SEQUENCE + 1] for i in range(BATCH)]
    batch = torch.stack(windows)
    return batch[:, :-1].contiguous(), batch[:, 1:].contiguous()


def rope_frequencies():
    """Llama 3.1's scaled inverse frequencies, float64 [head_dim / 2]."""
    frequencies = []
    original = ROPE["original_max_position_embeddings"]
    low, high = ROPE["low_freq_factor"], ROPE["high_freq_factor"]
    for i in range(0, SHAPE["head_dim"], 2):
        f = ROPE["rope_theta"] ** (-i / SHAPE["head_dim"])
        length = 2 * math.pi / f
        if length > original / low:
            f /= ROPE["factor"]
        elif length >= original / high:
            smooth = (original / length - low) / (high - low)
            f = (1 - smooth) * f / ROPE["factor"] + smooth * f
        frequencies.append(f)
    return torch.tensor(frequencies, dtype=torch.float64)


def reference_loss(params, tokens, targets, tiled_groups=False):
    """Mean cross entropy in nats of the same Llama, in the dtype of `params`.

    Written from the model's definition, without transformers, because
    LlamaForCausalLM computes its norms, softmax, rotary tables and loss in
    fp32 whatever the dtype of its weights. `tiled_groups` pairs query heads
    with the wrong key heads, to show that the fixture would notice.
    """
    heads, groups = SHAPE["num_attention_heads"], SHAPE["num_key_value_heads"]
    spread = torch.arange(heads) // (heads // groups)
    if tiled_groups:
        spread = torch.arange(heads) % groups
    width, eps = SHAPE["head_dim"], SHAPE["rms_norm_eps"]
    batch, length = tokens.shape

    def norm(x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, True) + eps) * params[name]

    angles = torch.outer(torch.arange(length).double(), rope_frequencies())
    cos, sin = angles.cos(), angles.sin()

    def rotate(x):  # [b, h, s, width], the halves form the pairs
        a, b = x[..., :width // 2], x[..., width // 2:]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    mask = torch.ones(length, length).tril().bool()
    x = params["model.embed_tokens.weight"][tokens]
    for layer in range(SHAPE["num_hidden_layers"]):
        p = f"model.layers.{layer}."
        h = norm(x, p + "input_layernorm.weight")

        def project(name, count):
            y = h @ params[p + f"self_attn.{name}_proj.weight"].T
            return y.view(batch, length, count, width).transpose(1, 2)

        q, k = project("q", heads), project("k", groups)
        v = project("v", groups)
        q, k = rotate(q), rotate(k)
        k, v = k[:, spread], v[:, spread]
        scores = q @ k.transpose(-1, -2) / math.sqrt(width)
        scores = scores.masked_fill(~mask, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, -1)
        x = x + y @ params[p + "self_attn.o_proj.weight"].T
        h = norm(x, p + "post_attention_layernorm.weight")
        gate = h @ params[p + "mlp.gate_proj.weight"].T
        up = h @ params[p + "mlp.up_proj.weight"].T
        act = gate * torch.sigmoid(gate) * up
        x = x + act @ params[p + "mlp.down_proj.weight"].T
    logits = norm(x, "model.norm.weight") @ params["lm_head.weight"].T
    picked = logits.log_softmax(-1).gather(-1, targets[..., None])
    return -picked.mean()


def train(params, loss_of, steps):
    """Runs `steps` AdamW steps in place; returns (losses, norms, snapshots).

    `params` maps names to leaf tensors. A snapshot is a pair (gradients before
    clipping, weights after the step). Matrices and embeddings decay, norm
    weights do not.
    """
    optimizer = torch.optim.AdamW(
        [{"params": [w for w in params.values() if w.dim() > 1],
          "weight_decay": WEIGHT_DECAY},
         {"params": [w for w in params.values() if w.dim() == 1],
          "weight_decay": 0.0}], **ADAMW)
    losses, norms, snapshots = [], [], []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        gradients = {n: w.grad.clone() for n, w in params.items()}
        # clip_grad_norm_ scales by max_norm / (norm + 1e-6), if that is < 1.
        norm = torch.nn.utils.clip_grad_norm_(params.values(), CLIP)
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
        snapshots.append((gradients, {n: w.detach().clone()
                                      for n, w in params.items()}))
    return losses, norms, snapshots


def worst(ours, theirs):
    """The largest ||a - b|| / ||b|| over the tensors, in float64."""
    return max(((ours[n].double() - theirs[n].double()).norm()
                / theirs[n].double().norm()).item() for n in theirs)


def check_differences(params, loss_of, gradients):
    """Central differences along the gradient of each tensor, in float64."""
    error = 0.0
    for name, weight in params.items():
        direction = gradients[name] / gradients[name].norm()
        h = 1e-4
        with torch.no_grad():
            weight.add_(direction, alpha=h)
            up = loss_of().item()
            weight.sub_(direction, alpha=2 * h)
            down = loss_of().item()
            weight.add_(direction, alpha=h)
        expected = gradients[name].norm().item()
        error = max(error, abs((up - down) / (2 * h) - expected) / expected)
    return error


@contextlib.contextmanager
def changed(table, key, value):
    """Sets table[key] within the block."""
    before = table[key]
    table[key] = value
    try:
        yield
    finally:
        table[key] = before


def mistakes(params, tokens, targets):
    """Yields (name of a likely mistake, the gradients it would give)."""
    def gradients(**options):
        loss = reference_loss(params, tokens, targets, **options)
        return dict(zip(params,
                        torch.autograd.grad(loss, list(params.values()))))

    with changed(ROPE, "factor", 1.0):
        yield "no rotary scaling", gradients()
    with changed(ROPE, "high_freq_factor", 1.0 + 1e-9):
        yield "no interpolated frequencies", gradients()
    with changed(SHAPE, "rms_norm_eps", 1e-6):
        yield "rms_norm_eps 1e-6", gradients()
    yield "key groups tiled over the heads", gradients(tiled_groups=True)


def require(what, got, limit):
    print(f"  {what}: {got:.2e} (limit {limit:.0e})")
    if not got <= limit:
        sys.exit(f"{what} is {got:.3e}, expected at most {limit:.0e}")
    return float(f"{got:.2e}")


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", type=pathlib.Path,
                        default=here / "fixtures" / "llama2l")
    out = parser.parse_args().o
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    tokens, targets = read_batch(here / "fixtures/llama2l/corpus.txt")

    model = make_model()
    params = dict(model.named_parameters())
    initial = {n: w.detach().clone() for n, w in params.items()}
    exact = {n: w.detach().double().requires_grad_() for n, w in params.items()}

    def hf_loss():
        logits = model(input_ids=tokens).logits
        return torch.nn.functional.cross_entropy(
            logits.view(-1, logits.shape[-1]), targets.view(-1))

    def exact_loss():
        return reference_loss(exact, tokens, targets)

    # transformers' own loss shifts the labels itself: give it whole windows.
    windows = torch.cat([tokens, targets[:, -1:]], 1)
    own = model(input_ids=windows, labels=windows).loss.item()

    print("checks:")
    exact_gradients = dict(zip(exact, torch.autograd.grad(
        exact_loss(), list(exact.values()))))
    differences = require(
        "float64 gradients against central differences, relative",
        check_differences(exact, exact_loss, exact_gradients), 1e-5)
    distances = {}
    for name, wrong in mistakes(exact, tokens, targets):
        distances[name] = float(f"{worst(wrong, exact_gradients):.2e}")
        print(f"  {name} would change a gradient by {distances[name]:.2e}")
        if distances[name] < 1e-4:
            sys.exit(f"the fixture would hardly notice: {name}")
    losses, norms, hf = train(params, hf_loss, max(STEPS))
    exact_losses, exact_norms, ref = train(exact, exact_loss, max(STEPS))
    errors = {
        "gradients_float64_vs_central_differences": differences,
        "loss_own": require("loss against transformers' labels= loss",
                            abs(own - losses[0]), 1e-6),
        "loss": require("fp32 loss against float64",
                        abs(losses[0] - exact_losses[0]), 1e-6),
        "gradients": require(
            "fp32 gradients against float64, worst tensor, relative",
            worst(hf[0][0], ref[0][0]), 2e-6),
    }
    for step in STEPS:
        start = {n: w.double() for n, w in initial.items()}
        moved = {n: w.double() - start[n] for n, w in hf[step - 1][1].items()}
        should = {n: w - start[n] for n, w in ref[step - 1][1].items()}
        errors[f"update_step{step}"] = require(
            f"fp32 weights minus initial after step {step} against float64, "
            "worst tensor, relative", worst(moved, should), 1e-2)
        errors[f"weights_step{step}"] = require(
            f"fp32 weights after step {step} against float64, worst tensor, "
            "relative", worst(hf[step - 1][1], ref[step - 1][1]), 1e-4)

    out.mkdir(parents=True, exist_ok=True)

    def save(name, tensors):
        tensors = {n: t.detach().float().contiguous()
                   for n, t in tensors.items()}
        safetensors.torch.save_file(tensors, out / name,
                                    metadata={"format": "pt"})

    save("weights.safetensors", initial)
    save("gradients.safetensors", hf[0][0])
    for step in STEPS:
        save(f"weights-step{step}.safetensors", hf[step - 1][1])
    versions = {"python": platform.python_version(),
                "torch": torch.__version__,
                "transformers": transformers.__version__,
                "safetensors": safetensors.__version__}
    norm_of = {n: g.double().norm().item() for n, g in hf[0][0].items()}
    expected = {
        "made_with": versions,
        "seed": SEED,
        "loss": exact_losses,
        "loss_fp32": losses,
        "grad_norm": exact_norms,
        "grad_norm_fp32": norms,
        "gradient_norms": norm_of,
        "errors_of_fp32": errors,
        "gradient_change_of_mistakes": distances,
        "tokens": tokens.tolist(),
        "targets": targets.tolist(),
    }
    text = json.dumps(expected, indent=1)
    # One row of token ids a line.
    for row in tokens.tolist() + targets.tolist():
        text = text.replace(
            "[\n   " + ",\n   ".join(map(str, row)) + "\n  ]", str(row))
    (out / "expected.json").write_text(text + "\n")
    print("versions:", ", ".join(f"{k} {v}" for k, v in versions.items()))
    print("loss, steps 1 to 3:", exact_losses)
    print("global gradient norm, steps 1 to 3:", exact_norms)
    print("smallest gradient norm of a tensor:", min(norm_of.items(),
                                                     key=lambda x: x[1]))


if __name__ == "__main__":
    main()
