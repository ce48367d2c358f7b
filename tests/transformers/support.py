"""Running `thinwire`, and what transformers makes of a folder."""

import json
import math
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).parents[2]


def thinwire(*arguments):
    """The JSON object that the command prints."""
    cargo = os.environ.get("CARGO", "cargo")
    command = [cargo, "run", "--quiet", "--release", "--package", "thinwire", "--", "--json", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)


def load(folder, dtype=torch.float32):
    """Model and tokenizer; every tensor must have come from the folder."""
    model, loading = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, output_loading_info=True)
    for kind in ["missing_keys", "unexpected_keys", "mismatched_keys"]:
        if loading[kind]:
            raise AssertionError(f"{folder}: {kind}: {loading[kind]}")
    return model.eval(), AutoTokenizer.from_pretrained(folder)


def perplexity(model, ids, sequence, stride=None):
    """As in "Perplexity of fixed-length models" of transformers' documentation, in windows of `sequence` predictions: the
    labels that an earlier window had do not count."""
    loss, counted, end_before = 0.0, 0, 1
    for start in range(0, len(ids) - 1, stride or sequence):
        end = min(start + sequence + 1, len(ids))
        window = torch.tensor([ids[start:end]])
        labels = window.clone()
        labels[:, : end_before - start] = -100
        with torch.no_grad():
            logits = model(window[:, :-1]).logits[0]
        loss += torch.nn.functional.cross_entropy(logits, labels[0, 1:], reduction="sum").item()
        counted += (labels != -100).sum().item()
        end_before = end
        if end == len(ids):
            break
    assert counted == len(ids) - 1, "each token but the first counts once"
    return math.exp(loss / counted)


class InFolder(unittest.TestCase):
    """Tests that train in a folder of their own, with the recipes and the text that `files` has."""

    files = {}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name, text in self.files.items():
            (self.folder / name).write_text(text)

    def train(self, recipe, *settings):
        arguments = [argument for setting in settings for argument in ("--set", setting)]
        thinwire("train", self.folder / recipe, *arguments, "--overwrite")


def asset(name):
    """A file that `cargo xtask assets` fetches, or None."""
    path = Path(os.environ.get("THINWIRE_ASSETS", ROOT / "target/assets")) / name
    if not path.is_file() and "CI" in os.environ:
        raise AssertionError(f"{path} is missing: run `cargo xtask assets`")
    return path if path.is_file() else None
