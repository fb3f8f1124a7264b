#!/usr/bin/env python3
"""bf16 trains like fp32, every layout like one process, and nothing is lost
in accumulation.

Activations and parameters are bf16; accumulators, main weights and optimizer
states are fp32, so over a whole training the loss must follow the fp32 one.
"""

import os
import struct
from random import Random

import harness
from harness import LAYOUTS, Workspace, metrics, relative, tiny
from compare_safetensors import norm, read_safetensors, subtract
import unittest

STEPS = 200
# Of a step, and of the mean of all steps.
WORST, MEAN = 0.02, 0.005
# Between bf16 layouts. Tensor parallelism rounds partial sums to bf16 before
# they are added, which one process never does: half a step (2^-9) for each
# addend of 4 all-reduces a layer. Averaged over the tokens of a batch that is
# 3e-5 to 8e-5 of the loss and 5e-4 to 1.5e-3 of the gradient's norm over 8
# steps, by instruction set; a fault (a missing addend, a wrong scale, bf16 sums)
# shows at 1e-2 and more.
LOSS, NORM = 1e-3, 5e-3

# Bit-equal to one process where nothing is summed in another order.
SAME = {"full-recompute": True}
CHECKED = ["tp2-pp2", "dp4-zero1", "full-recompute", "dp2-tp2-pp2-zero1",
           "pp4-gpipe", "uneven"]


def bf16(**changes):
    return tiny(**{**changes, "training.precision": "bf16"})


def distance(a, b):
    """Relative distance of two dumps, over all their tensors."""
    assert a.keys() == b.keys() and a
    away = norm([norm(subtract(a[n].values, b[n].values)) for n in a])
    return away / norm([norm(b[n].values) for n in b])


def words(count):
    """Text with something to learn that 200 steps cannot learn by heart."""
    random = Random(11)
    letters = "eeeetttaaooiinnsshhrrdlucmfwypvbgk"
    known = ["".join(random.choices(letters, k=random.randint(1, 8)))
             for _ in range(2000)]
    weights = [1.0 / (i + 3) for i in range(len(known))]
    return " ".join(random.choices(known, weights, k=count))


class Precision(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Workspace().__enter__()
        cls.plan = cls.work.compile(bf16(), "bf16")
        cls.one, _ = cls.work.run(cls.plan, "bf16", 1)

    @classmethod
    def tearDownClass(cls):
        cls.work.__exit__()

    def test_200_steps_follow_fp32(self):
        corpus = self.work.file("words.txt")
        with open(corpus, "w") as out:
            out.write(words(60000))
        losses = {}
        for precision in ("fp32", "bf16"):
            name = "long-" + precision
            plan = self.work.compile(
                tiny(**{"training.precision": precision,
                        "training.train_steps": STEPS}), name)
            where, _ = self.work.run(plan, name, 1, "--data", corpus,
                                     timeout=800)
            losses[precision] = [m["loss"] for m in metrics(where)]
        worst = max(relative(a, b) for a, b in zip(*losses.values()))
        means = {k: sum(v) / len(v) for k, v in losses.items()}
        mean = relative(*means.values())
        print(f"  {STEPS} steps: loss {losses['fp32'][0]:.4f} to "
              f"{losses['fp32'][-1]:.4f}, bf16 to {losses['bf16'][-1]:.4f}; "
              f"worst step {worst:.2e}, mean {mean:.2e}")
        self.assertEqual([len(v) for v in losses.values()], [STEPS, STEPS])
        # It learns: otherwise agreeing would be easy.
        self.assertLess(losses["fp32"][-1], 0.7 * losses["fp32"][0])
        self.assertLessEqual(worst, WORST)
        self.assertLessEqual(mean, MEAN)
        # And it really was another precision.
        self.assertNotEqual(losses["fp32"], losses["bf16"])

    def test_layouts_agree_with_one_process(self):
        want = metrics(self.one)
        for name in CHECKED:
            with self.subTest(layout=name):
                spec = bf16(**LAYOUTS[name])
                plan = self.work.compile(spec, "b-" + name)
                where, _ = self.work.run(plan, "b-" + name,
                                         harness.world(spec))
                got = metrics(where)
                self.assertEqual(len(got), len(want))
                loss = max(relative(a["loss"], b["loss"])
                           for a, b in zip(got, want))
                grad = max(relative(a["grad_norm"], b["grad_norm"])
                           for a, b in zip(got, want))
                print(f"  {name}: loss {loss:.1e}, gradient norm {grad:.1e}")
                self.assertLessEqual(loss, LOSS)
                self.assertLessEqual(grad, NORM)
                if name in SAME:
                    self.assertEqual(loss, 0.0)

    def test_weights_are_dumped_from_the_main_weights(self):
        folder = self.work.file("weights")
        self.work.run(self.plan, "dumped", 1, "--steps", "1", "--dump",
                      "1:weights", folder)
        file = os.path.join(folder, "weights.safetensors")
        tensors = read_safetensors(file)
        # After a step of 1e-3 hardly any fp32 weight is a bf16 number.
        name = "model.layers.0.mlp.down_proj.weight"
        values = tensors[name].values
        self.assertGreater(sum(not is_bf16(x) for x in values),
                           0.9 * len(values))
        # Reading them back gives the same start, on any layout.
        first, _ = self.work.run(self.plan, "again1", 1, "--steps", "1",
                                 "--init-weights", file)
        plan = self.work.compile(bf16(**LAYOUTS["tp2-pp2"]), "again")
        second, _ = self.work.run(plan, "again4", 4, "--steps", "1",
                                  "--init-weights", file)
        self.assertLessEqual(relative(metrics(first)[0]["loss"],
                                      metrics(second)[0]["loss"]), LOSS)
        # It did read them: the same data had another loss before.
        self.assertNotEqual(metrics(first)[0]["loss"],
                            metrics(self.one)[0]["loss"])

    def test_64_micro_batches_keep_the_mass_of_small_gradients(self):
        # The same 64 sequences as 64 micro-batches and as one. A bf16
        # accumulator would lose about 2^-9 of itself at each of 64 additions,
        # some 2 % in all.
        gradients = {}
        for count, size in ((64, 1), (1, 64)):
            name = f"parts{count}"
            plan = self.work.compile(
                bf16(**{"training.global_batch_size": 64,
                        "micro_batch_size": size}), name)
            folder = self.work.file(name)
            self.work.run(plan, name, 1, "--steps", "1", "--dump",
                          "1:gradients", folder)
            gradients[count] = read_safetensors(
                os.path.join(folder, "gradients.safetensors"))
        away = distance(gradients[64], gradients[1])
        print(f"  64 micro-batches against 1: gradients differ by {away:.1e}")
        self.assertLessEqual(away, 1e-3)


def is_bf16(value):
    return struct.unpack("<I", struct.pack("<f", value))[0] & 0xffff == 0


if __name__ == "__main__":
    harness.main()
