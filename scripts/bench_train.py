#!/usr/bin/env python3
"""Training speed and memory of Thinwire beside PyTorch with transformers: the same model, tokens, batches and optimizer.

    python3 scripts/bench_train.py --model model.gguf --text text.txt [--micro-batch B --micro-batches M] [--json]

Both train in processes of their own, in turn, for some rounds. The text is cut to exactly one step's sequences, so every
step of either sees the same tokens, whatever their order, and the losses can be compared: a difference is an error.
Needs PyTorch and transformers; and cargo, unless --thinwire names a program, or several to compare builds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent

# Of the AdamW of both; matrices decay, vectors do not.
RATE, BETAS, EPSILON, DECAY, CLIP = 1e-5, (0.9, 0.95), 1e-8, 0.1, 1.0

# Both compute in f32 and sum in orders of their own; a loss is a mean of thousands of values near 3.
TOLERANCE = 1e-3

RECIPE = """\
[run]
dir = "run"
[model]
pretrained = {model}
[data]
train = {text}
[train]
steps = {steps}
sequence = {sequence}
micro_batch = {micro_batch}
micro_batches = {micro_batches}
[optimizer]
learning_rate = {rate}
schedule = "constant"
warmup_steps = 0
beta1 = {betas[0]}
beta2 = {betas[1]}
epsilon = {epsilon}
weight_decay = {decay}
clip_norm = {clip}
"""


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, help="a Hugging Face folder or a .gguf file")
    parser.add_argument("--text", type=Path, help="the text to train on; one step's tokens of it are enough")
    parser.add_argument("--sequence", type=int, default=256, help="tokens of a sequence")
    parser.add_argument("--micro-batch", type=int, default=1, help="sequences of a micro-batch")
    parser.add_argument("--micro-batches", type=int, default=4, help="micro-batches of a step")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=1, help="steps that are not measured, in each process")
    parser.add_argument("--steps", type=int, default=4, help="steps that are")
    parser.add_argument("--rounds", type=int, default=3, help="how often each has its turn")
    parser.add_argument("--thinwire", type=Path, action="append", metavar="PROGRAM", help="may be given again")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", choices=["text", "torch"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is None and (arguments.model is None or arguments.text is None):
        parser.error("--model and --text are needed")
    return arguments


def main():
    arguments = parse()
    if arguments.child == "text":
        return write_text(arguments)
    if arguments.child == "torch":
        return train_torch(arguments)
    with tempfile.TemporaryDirectory() as folder:
        compare(arguments, Path(folder))


def compare(arguments, folder):
    programs = [path.resolve() for path in arguments.thinwire or [build()]]
    model = arguments.model.resolve()
    if model.is_file():
        exported = folder / "model"
        run([programs[0], "export", "--model", model, "--out", exported, "--json"])
        model = exported
    arguments.model = model
    itself = [sys.executable, __file__, "--folder", folder, *options(arguments)]
    run([*itself, "--child", "text"])
    recipe = folder / "recipe.toml"
    recipe.write_text(recipe_of(arguments, folder))
    bench = ["bench", "train", recipe, "--json", "--steps", arguments.steps, "--warmup", arguments.warmup]
    children = {}
    for program in programs:
        name = "Thinwire" if len(programs) == 1 else f"Thinwire ({program})"
        children[name] = [program, *bench]
    children["PyTorch"] = [*itself, "--child", "torch"]
    rounds = {name: [] for name in children}
    for number in range(arguments.rounds):
        for name, command in children.items():
            result = measure(command, arguments)
            rounds[name].append(result)
            rate, memory = result["tokens_per_second"], result["peak_bytes"] / 1e9
            say(f"round {number + 1}/{arguments.rounds}   {name}: {rate:.1f} tokens/s, {memory:.2f} GB")
    report(arguments, rounds)


def options(arguments):
    names = ["model", "text", "sequence", "micro_batch", "micro_batches", "threads", "warmup", "steps"]
    for name in names:
        yield "--" + name.replace("_", "-")
        yield str(getattr(arguments, name))


def build():
    run(["cargo", "build", "--release", "--manifest-path", REPOSITORY / "Cargo.toml"])
    target = os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")
    return Path(target) / "release" / "thinwire"


def recipe_of(arguments, folder):
    return RECIPE.format(
        model=json.dumps(str(arguments.model)),
        text=json.dumps(str(folder / "text.txt")),
        steps=arguments.warmup + arguments.steps,
        sequence=arguments.sequence,
        micro_batch=arguments.micro_batch,
        micro_batches=arguments.micro_batches,
        rate=RATE,
        betas=BETAS,
        epsilon=EPSILON,
        decay=DECAY,
        clip=CLIP,
    )


def run(command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


def measure(command, arguments):
    """What the command prints as JSON, and the most memory it had resident."""
    threads = str(arguments.threads)
    environment = dict(os.environ, RAYON_NUM_THREADS=threads, OMP_NUM_THREADS=threads)
    with tempfile.TemporaryFile() as errors:
        words = [str(word) for word in command]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, env=environment)
        output = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            errors.seek(0)
            sys.exit(f"{command[0]} ended with {child.returncode}:\n{errors.read().decode()}")
    unit = 1 if sys.platform == "darwin" else 1024
    return dict(json.loads(output), peak_bytes=usage.ru_maxrss * unit)


def report(arguments, rounds):
    losses = {name: results[0]["losses"] for name, results in rounds.items()}
    expected = losses["PyTorch"]
    for name, found in losses.items():
        for step, (ours, theirs) in enumerate(zip(found, expected, strict=True), start=1):
            if abs(ours - theirs) > TOLERANCE * theirs:
                sys.exit(f"step {step}: the loss of {name} is {ours:.6f}, that of PyTorch {theirs:.6f}")
    rows = {
        name: dict(
            tokens_per_second=statistics.median(result["tokens_per_second"] for result in results),
            tokens_per_second_of_rounds=[result["tokens_per_second"] for result in results],
            peak_bytes=max(result["peak_bytes"] for result in results),
            losses=losses[name],
        )
        for name, results in rounds.items()
    }
    base = rows["PyTorch"]
    for row in rows.values():
        row["speed_of_pytorch"] = row["tokens_per_second"] / base["tokens_per_second"]
        row["memory_of_pytorch"] = row["peak_bytes"] / base["peak_bytes"]
    shape = {name: getattr(arguments, name) for name in ("sequence", "micro_batch", "micro_batches", "threads")}
    if arguments.json:
        print(json.dumps(dict(shape, rounds=arguments.rounds, steps=arguments.steps, trainers=rows)))
        return
    print(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in shape.items()))
    for name, row in rows.items():
        print(
            f"{name:10} {row['tokens_per_second']:8.1f} tokens/s {row['speed_of_pytorch']:6.2f} of PyTorch"
            f" {row['peak_bytes'] / 1e9:8.2f} GB {row['memory_of_pytorch']:6.2f} of PyTorch"
        )
    apart = max(abs(a - b) / b for found in losses.values() for a, b in zip(found, expected))
    print(f"losses of {len(expected)} steps, at most {apart:.1e} apart: " + ", ".join(f"{x:.4f}" for x in expected))


def say(text):
    print(text, file=sys.stderr, flush=True)


def write_text(arguments):
    """A piece of the text that is one step's tokens, no more and no fewer, also when it is tokenized on its own."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    encode = lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]
    count = arguments.sequence * arguments.micro_batch * arguments.micro_batches + 1
    ids = encode(arguments.text.read_text(encoding="utf-8")[: 16 * count])
    for start in range(len(ids) - count + 1):
        piece = ids[start : start + count]
        text = tokenizer.decode(piece, clean_up_tokenization_spaces=False)
        if encode(text) == piece:
            (arguments.folder / "text.txt").write_text(text, encoding="utf-8", newline="")
            (arguments.folder / "ids.json").write_text(json.dumps(piece))
            return
    sys.exit(f"{arguments.text}: no {count} tokens in a row that stay the same when they are cut out")


def train_torch(arguments):
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(arguments.threads)
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=torch.float32).train()
    groups = [
        dict(params=[p for p in model.parameters() if p.dim() > 1], weight_decay=DECAY),
        dict(params=[p for p in model.parameters() if p.dim() <= 1], weight_decay=0.0),
    ]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=BETAS, eps=EPSILON, fused=True)
    ids = torch.tensor(json.loads((arguments.folder / "ids.json").read_text()))
    inputs, targets = (part.view(-1, arguments.micro_batch, arguments.sequence) for part in (ids[:-1], ids[1:]))

    def step():
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for x, y in zip(inputs, targets):
            logits = model(x, use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten()) / len(inputs)
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        return total

    losses, seconds = [], []
    for _ in range(arguments.warmup + arguments.steps):
        begin = time.perf_counter()
        losses.append(step())
        seconds.append(time.perf_counter() - begin)
    measured = seconds[arguments.warmup :]
    rate = statistics.median(targets.numel() / taken for taken in measured)
    print(json.dumps(dict(losses=losses, step_seconds=measured, tokens_per_second=rate)))


if __name__ == "__main__":
    main()
