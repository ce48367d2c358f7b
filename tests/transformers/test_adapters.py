"""LoRA runs on a model that was exported: their adapters in PEFT, and merged, in transformers."""

import torch
from peft import PeftModel

from support import InFolder, load, perplexity, thinwire
from test_runs import FAMILIES, RECIPE, TEXT

LORA = """
run = { dir = "lora", seed = 6 }
model = { pretrained = "base" }
data = { train = "train.txt" }
train = { steps = 6, sequence = 32, micro_batch = 3, micro_batches = 2 }
optimizer = { learning_rate = 0.05, warmup_steps = 1 }
lora = { rank = 4, alpha = 6 }
"""

TARGETS = {
    "gpt2": ["c_attn", "mlp.c_proj"],
    "llama": ["q_proj", "v_proj", "down_proj"],
    "qwen2": ["k_proj", "o_proj", "gate_proj"],
    "qwen3": None,
}


class Adapters(InFolder):
    files = {"train.txt": TEXT, "recipe.toml": RECIPE, "lora.toml": LORA}

    def export(self, run, name, *options):
        arguments = ["--model", self.folder / run, "--out", self.folder / name, "--overwrite"]
        report = thinwire("export", *arguments, *options)
        return self.folder / name, report

    def test_peft_computes_the_same(self):
        for family, settings in FAMILIES.items():
            with self.subTest(family=family):
                self.train("recipe.toml", f"model.family={family}", *settings)
                base, _ = self.export("run", "base")
                targets = TARGETS[family]
                self.train("lora.toml", *([] if targets is None else [f"lora.targets={targets}"]))
                adapter, report = self.export("lora", "adapter", "--adapter")
                self.assertEqual([file["name"] for file in report["files"]], ["adapter_config.json", "adapter_model.safetensors"])
                merged, tokenizer = load(self.export("lora", "merged")[0])

                plain, _ = load(base)
                adapted = PeftModel.from_pretrained(load(base)[0], adapter).eval()
                found = {name for name, _ in adapted.named_parameters() if "lora_" in name}
                trained = sum(adapted.get_parameter(name).numel() for name in found)
                self.assertEqual(trained, report["parameters"], "PEFT makes the adapters that were trained")

                ids = tokenizer(TEXT).input_ids[:1001]
                window = torch.tensor([ids[:32]])
                with torch.no_grad():
                    logits = {name: model(window).logits for name, model in
                              [("plain", plain), ("adapted", adapted), ("merged", merged)]}
                self.assertLess((logits["adapted"] - logits["merged"]).abs().max().item(), 1e-4)
                self.assertGreater((logits["adapted"] - logits["plain"]).abs().max().item(), 0.01, "they do something")

                evaluate = ["eval", "--text", self.folder / "train.txt", "--tokens", 1001, "--boundaries", "none"]
                own = thinwire(*evaluate, "--model", self.folder / "lora")["perplexity"]
                for name, model in [("adapted", adapted), ("merged", merged)]:
                    # Sums of f32 in another order.
                    self.assertAlmostEqual(perplexity(model, ids, 32) / own, 1.0, delta=1e-5, msg=name)

    def test_rounded_adapters(self):
        self.train("recipe.toml", "model.family=llama")
        self.export("run", "base")
        self.train("lora.toml")
        adapter, report = self.export("lora", "adapter", "--adapter", "--dtype", "bf16")
        self.assertEqual(report["dtype"], "bf16")
        exact, rounded = [
            PeftModel.from_pretrained(load(self.folder / "base")[0], folder).state_dict()
            for folder in [self.export("lora", "exact", "--adapter")[0], adapter]
        ]
        for name, values in exact.items():
            if "lora_" in name:
                self.assertTrue(torch.equal(values.to(torch.bfloat16).float(), rounded[name].float()), name)
