#!/usr/bin/env python3
"""PyTorch's side of `cargo bench -p thinwire-ops`: the same operators, shapes and passes.

    python3 scripts/bench_ops_torch.py [--json] [--threads N]

Prints the fastest of nine rounds of forward and backward pass in milliseconds. Needs PyTorch.
"""

import argparse
import json
import time

import torch
import torch.nn.functional as F

TOKENS, DIM, ROUNDS = 256, 64, 9
MODELS = [
    dict(name="SmolLM2-135M", samples=1, hidden=576, ffn=1536, heads=(9, 3), vocab=49152),
    dict(name="SmolLM2-135M", samples=4, hidden=576, ffn=1536, heads=(9, 3), vocab=49152),
    dict(name="quickstart", samples=1, hidden=256, ffn=704, heads=(4, 2), vocab=256),
]


def passes(shapes, formula):
    """The milliseconds of one forward and backward pass."""
    leaves = [torch.rand(shape, requires_grad=True) for shape in shapes]

    def run():
        for leaf in leaves:
            leaf.grad = None
        y = formula(*leaves)
        y.backward(torch.ones_like(y))

    return fastest(run)


def fastest(run):
    times = []
    for round_ in range(ROUNDS + 1):
        begin = time.perf_counter()
        run()
        if round_ > 0:
            times.append((time.perf_counter() - begin) * 1e3)
    return min(times)


def rotate(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def adamw(size):
    value = torch.rand(size, requires_grad=True)
    value.grad = torch.rand(size)
    return fastest(torch.optim.AdamW([value], lr=1e-4, weight_decay=0.1, fused=True).step)


def operators(model):
    samples, hidden, ffn, vocab = model["samples"], model["hidden"], model["ffn"], model["vocab"]
    query_heads, kv_heads = model["heads"]
    rows = samples * TOKENS
    split = lambda x, heads: x.view(samples, TOKENS, heads, DIM).transpose(1, 2)
    attend = lambda q, k, v: F.scaled_dot_product_attention(
        split(q, query_heads), split(k, kv_heads), split(v, kv_heads), is_causal=True, enable_gqa=True
    )
    angles = torch.rand(TOKENS, DIM)
    targets = torch.arange(rows) * 7919 % vocab
    q, kv = (rows, query_heads * DIM), (rows, kv_heads * DIM)
    yield "swiglu", passes([(rows, ffn)] * 2, lambda gate, up: F.silu(gate) * up)
    yield "gelu_tanh", passes([(rows, ffn)], lambda x: F.gelu(x, approximate="tanh"))
    yield "rms_norm", passes([(rows, hidden), (hidden,)], lambda x, w: F.rms_norm(x, (hidden,), w))
    yield "layer_norm", passes(
        [(rows, hidden), (hidden,), (hidden,)], lambda x, w, b: F.layer_norm(x, (hidden,), w, b)
    )
    yield "attention", passes([q, kv, kv], attend)
    yield "rotary", passes([q], lambda x: rotate(split(x, query_heads), angles.cos(), angles.sin()))
    yield "linear hidden x ffn", passes([(rows, hidden), (ffn, hidden)], F.linear)
    yield "linear hidden x vocab", passes([(rows, hidden), (vocab, hidden)], F.linear)
    yield "cross_entropy", passes([(rows, vocab)], lambda x: F.cross_entropy(x, targets, reduction="none"))
    yield "adamw hidden x vocab", adamw(hidden * vocab)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for model in MODELS:
        for operator, milliseconds in operators(model):
            row = dict(model=model["name"], samples=model["samples"], operator=operator, torch_ms=milliseconds)
            if arguments.json:
                print(json.dumps(row))
            else:
                print(f"{row['model']:13} {row['samples']}  {operator:22} {milliseconds:9.3f} ms")


if __name__ == "__main__":
    main()
