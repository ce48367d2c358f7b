#!/usr/bin/env python3
"""Compares what `thinwire plan` predicts with what runs do.

    cargo build --release
    python3 scripts/check_plan.py                       # runs a small recipe with many settings
    python3 scripts/check_plan.py --runs FOLDER..       # looks at runs that are there already
    python3 scripts/check_plan.py --lab runs/lab/bandwidths

For each number of stages and size of micro-batch, `thinwire plan` predicts a table by bandwidth, and `thinwire train` then runs
every cell of it on links that are throttled to that rate. Tokens a second are those of the median step; the first one, which
takes memory for the first time, is left out.

Other work on the machine slows a run, and not the prediction. So a run waits up to --patience seconds for a quiet machine, and
the share of the processors that other processes had meanwhile is told. Where it is more than --disturbance, the run is repeated,
up to --tries times, and the least disturbed one counts. It is also compared with a prediction for the cores that the others
left. They leave more to a run whose stages wait for links, which takes only what it needs: its prediction lies between both, and the
last column tells how far outside of them the run is. The summary compares with the prediction for the rest.
Needs Linux, for /proc/stat.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RATES = ["10mbit", "30mbit", "100mbit", "1gbit"]
CODECS = {"f32": "f32", "bf16": "bf16", "configured": None}


@dataclass
class Run:
    tokens_per_second: float
    disturbance: float


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thinwire", type=Path, default=ROOT / "target/release/thinwire")
    parser.add_argument("--recipe", type=Path, default=ROOT / "recipes/small/pretraining.toml")
    parser.add_argument("--stages", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--micro-batches", type=int, nargs="+", default=[1, 4], help="sequences of one")
    parser.add_argument("--rates", nargs="+", default=RATES)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--tries", type=int, default=6)
    parser.add_argument("--patience", type=float, default=60)
    parser.add_argument("--disturbance", type=float, default=0.1)
    parser.add_argument("--set", dest="sets", action="append", default=[], help="for all runs and predictions")
    parser.add_argument("--runs", type=Path, nargs="+", help="folders with runs below them, such as a lab's")
    parser.add_argument("--rate", help="of the links of --runs, where their configuration has none")
    parser.add_argument("--lab", type=Path, help="folder of an experiment whose settings are called f32, bf16 and configured")
    return parser.parse_args()


def busy_seconds():
    """Seconds that all processors have worked since the machine started."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    user, nice, system, _idle, _wait, irq, soft_irq, steal = fields[:8]
    return (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK")


def wait_for_quiet(options):
    """Until others have little of the processors for half a second."""
    end = time.monotonic() + options.patience
    while time.monotonic() < end:
        before, begin = busy_seconds(), time.monotonic()
        time.sleep(0.5)
        if (busy_seconds() - before) / (time.monotonic() - begin) / os.cpu_count() <= options.disturbance:
            return


def call(command):
    """The JSON that a command prints, and the share of the processors that others had meanwhile."""
    before, children = busy_seconds(), resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    others = busy_seconds() - before - own
    return json.loads(done.stdout), max(0.0, others / (time.monotonic() - begin) / os.cpu_count())


def step_rate(folder):
    """Tokens a second of the median step, without the first."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line["kind"] == "step"][1:]
    return statistics.median(step["tokens"] / step["seconds"] for step in steps)


def predict(options, recipe, sets, rates, cores=None, machines=None):
    command = [options.thinwire, "plan", "--json", recipe, "--no-proposals", "--rates", ",".join(rates)]
    command += ["--machines", machines] if machines else []
    command += ["--cores", f"{cores:.3f}"] if cores else []
    for text in sets:
        command += ["--set", text]
    return call(command)


def train(options, sets):
    with tempfile.TemporaryDirectory() as folder:
        command = [options.thinwire, "train", "--json", options.recipe, "--overwrite"]
        sets = sets + [f"run.dir={folder}", f"train.steps={options.steps}", "eval.every=0", "eval.tokens=256", "checkpoint.every=0"]
        for text in sets:
            command += ["--set", text]
        _, disturbance = call(command)
        return Run(step_rate(Path(folder)), disturbance)


def quiet_run(options, sets):
    """The first run that nobody disturbs, or the least disturbed."""
    best = None
    for _ in range(options.tries):
        wait_for_quiet(options)
        run = train(options, sets)
        if best is None or run.disturbance < best.disturbance:
            best = run
        if best.disturbance <= options.disturbance:
            break
    return best


def settings(options):
    """The settings of each prediction: how the model is split, and how the batch."""
    total = 8
    for stages in options.stages:
        layers = [16 * k // stages for k in range(stages + 1)]
        blocks = [f"{first}-{last - 1}" for first, last in zip(layers, layers[1:])]
        blocks[0], blocks[-1] = "embed " + blocks[0], blocks[-1] + " head"
        layer_map = "[" + ", ".join(f'"{units}"' for units in blocks) + "]"
        for micro_batch in options.micro_batches:
            yield stages, micro_batch, options.sets + [
                f"pipeline.stages={stages}",
                f"pipeline.layers={layer_map}",
                f"train.micro_batch={micro_batch}",
                f"train.micro_batches={total // micro_batch}",
            ]


def cells(values):
    print("| " + " | ".join(map(str, values)) + " |", flush=True)


def header(names):
    cells(names)
    cells(["---"] * len(names))


def summary(errors):
    for name, chosen in [("rows", errors), ("quiet rows", [error for error in errors if error[1]])]:
        if chosen:
            off = [abs(error) for error, _ in chosen]
            print(f"\n{len(off)} {name}: off by {statistics.median(off):.1%} in the median, {max(off):.1%} at most")


def check_matrix(options):
    header(["stages", "micro-batch", "rate", "codec", "predicted", "others had", "predicted for the rest", "measured", "outside by"])
    errors = []
    for stages, micro_batch, sets in settings(options):
        plan, _ = predict(options, options.recipe, sets, options.rates)
        for rate, row in zip(options.rates, plan["rates"]):
            for column, codec in CODECS.items():
                codecs = [f"pipeline.{key}={codec}" for key in ["forward", "backward", "tied"] if codec]
                run = quiet_run(options, sets + codecs + [f"pipeline.bandwidth={rate}"])
                quiet = run.disturbance <= options.disturbance
                rest = row[column]
                if not quiet:
                    left = max(0.05, 1 - run.disturbance) * os.cpu_count()
                    rest = predict(options, options.recipe, sets, [rate], left)[0]["rates"][0][column]
                error = distance(row[column], rest, run.tokens_per_second)
                rates = [f"{row[column]:.0f}", f"{run.disturbance:.0%}", f"{rest:.0f}", f"{run.tokens_per_second:.0f}"]
                cells([stages, micro_batch, rate, column, *rates, f"{error:+.1%}"])
                # Between two predictions is no proof of either: they are one on a quiet machine alone.
                errors.append((error if quiet else rest / run.tokens_per_second - 1, quiet))
    summary(errors)


def distance(all_cores, rest, measured):
    """How far the nearest of all predictions between both is above what was measured, as a share of it."""
    nearest = min(max(measured, min(all_cores, rest)), max(all_cores, rest))
    return nearest / measured - 1


def check_lab(options):
    """Rows of a lab against the table by bandwidth, for links whose rate has the network's headers in it, as the lab's has."""
    report = json.loads((options.lab / "report.json").read_text())
    rates = list(dict.fromkeys(row["rate"] for row in report["rows"]))
    stages = len(report["rows"][0]["stages"])
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as machines:
        machines.write("[[link]]\nrate = '1 Gbit/s'\n" * (stages - 1))
        machines.flush()
        # The recipe's own codecs are those of the setting that is configured.
        plan, _ = predict(options, options.recipe, options.sets, rates, machines=machines.name)
    predicted = dict(zip(rates, plan["rates"]))
    header(["rate", "codec", "predicted", "measured", "off by"])
    errors = []
    for row in report["rows"]:
        fast, measured = predicted[row["rate"]][row["setting"]], row["tokens_per_second"]["median"]
        cells([row["rate"], row["setting"], f"{fast:.0f}", f"{measured:.0f}", f"{fast / measured - 1:+.1%}"])
        errors.append((fast / measured - 1, False))
    summary(errors)


def check_runs(options):
    header(["run", "predicted", "measured", "off by"])
    errors = []
    for config in sorted(path for folder in options.runs for path in folder.rglob("thinwire.toml")):
        # Where the stages listened is written there; they were on this machine.
        sets = options.sets + ["stage=[]"] + ([f"pipeline.bandwidth={options.rate}"] if options.rate else [])
        predicted = predict(options, config, sets, ["1gbit"])[0]["tokens_per_second"]
        measured = step_rate(config.parent)
        error = predicted / measured - 1
        cells([config.parent, f"{predicted:.0f}", f"{measured:.0f}", f"{error:+.1%}"])
        # How disturbed a run was that is over cannot be told.
        errors.append((error, False))
    summary(errors)


if __name__ == "__main__":
    chosen = arguments()
    if chosen.lab:
        check_lab(chosen)
    elif chosen.runs:
        check_runs(chosen)
    else:
        check_matrix(chosen)
