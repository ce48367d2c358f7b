"""Running `thinwire`, and what transformers makes of a folder."""

import json
import math
import os
import subprocess
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


def perplexity(model, ids, sequence):
    """As `thinwire eval` computes it: over windows of `sequence` predictions that overlap in one token."""
    loss = 0.0
    for start in range(0, len(ids) - 1, sequence):
        window = torch.tensor([ids[start : start + sequence + 1]])
        with torch.no_grad():
            logits = model(window[:, :-1]).logits[0]
        loss += torch.nn.functional.cross_entropy(logits, window[0, 1:], reduction="sum").item()
    return math.exp(loss / (len(ids) - 1))


def asset(name):
    """A file that `cargo xtask assets` fetches, or None."""
    path = Path(os.environ.get("THINWIRE_ASSETS", ROOT / "target/assets")) / name
    if not path.is_file() and "CI" in os.environ:
        raise AssertionError(f"{path} is missing: run `cargo xtask assets`")
    return path if path.is_file() else None
