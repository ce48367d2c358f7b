"""Small trained runs of every family, exported and loaded by transformers."""

import torch

from support import InFolder, load, perplexity, thinwire

RECIPE = """
run = { dir = "run", seed = 5 }
data = { train = "train.txt" }
train = { steps = 4, sequence = 32, micro_batch = 3, micro_batches = 2 }
optimizer = { learning_rate = 0.01, warmup_steps = 2 }
pipeline = { forward = "f32", backward = "f32" }

[model]
layers = 2
hidden = 32
heads = 4
ffn = 48
context = 32
"""

FAMILIES = {
    "gpt2": [],
    "llama": [
        "model.kv_heads=2",
        "model.rope_scaling={type='llama3',factor=8.0,low_freq_factor=1.0,high_freq_factor=4.0,original_context=16}",
    ],
    "qwen2": ["model.kv_heads=1", "model.rope_theta=1e6", "model.rope_scaling={type='linear',factor=2.0}"],
    "qwen3": ["model.kv_heads=2", "model.head_dim=12", "model.norm_eps=1e-6"],
}

# With characters of two, three and four bytes.
TEXT = "".join(f"{i * 7 % 97} Schafe – {i * i % 89} zähe Ziegen 🐐;\n" for i in range(200))


class Runs(InFolder):
    files = {"train.txt": TEXT, "recipe.toml": RECIPE}

    def export(self, name, *options):
        thinwire("export", "--model", self.folder / "run", "--out", self.folder / name, *options)
        return self.folder / name

    def test_perplexity(self):
        for family, settings in FAMILIES.items():
            for tied in ["true", "false"]:
                with self.subTest(family=family, tied=tied):
                    self.train("recipe.toml", f"model.family={family}", f"model.tie_embeddings={tied}", *settings)
                    model, tokenizer = load(self.export(f"{family}-{tied}"))
                    ids = tokenizer(TEXT).input_ids
                    self.assertEqual(ids, list(TEXT.encode()))
                    self.assertEqual(tokenizer.decode(ids), TEXT)
                    command = ["eval", "--model", self.folder / "run", "--text", self.folder / "train.txt"]
                    for stride in [32, 7]:
                        own = thinwire(*command, "--tokens", 1001, "--stride", stride)
                        theirs = perplexity(model, ids[:1001], 32, stride)
                        # Sums of f32 in another order.
                        self.assertAlmostEqual(theirs / own["perplexity"], 1.0, delta=1e-5)

    def test_rounded_weights_in_several_files(self):
        self.train("recipe.toml", "model.family=qwen2")
        exact, _ = load(self.export("exact"))
        for option, dtype in [("bf16", torch.bfloat16), ("f16", torch.float16)]:
            folder = self.export(option, "--dtype", option, "--shard-size", "10KB")
            self.assertGreater(len(list(folder.glob("*.safetensors"))), 2)
            rounded, _ = load(folder, dtype="auto")
            self.assertEqual(rounded.dtype, dtype)
            found = rounded.state_dict()
            for name, values in exact.state_dict().items():
                self.assertTrue(torch.equal(values.to(dtype), found[name]), name)
