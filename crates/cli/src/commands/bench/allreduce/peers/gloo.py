"""One rank of Gloo's all-reduce in torch.distributed, for `thinwire bench allreduce --peers gloo`.

A line on standard input says what to do: rank, ranks, store (a file that all ranks see), warmup, repeats, and cases, each of
`values` and `dtype`. A line of JSON on standard output tells what came of each. Ends when standard input closes.
"""

import json
import os
import sys
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
TICKS = os.sysconf("SC_CLK_TCK")


def tell(what):
    print(json.dumps(what), flush=True)


def busy_seconds():
    """Seconds that all cores together have worked since the machine started."""
    with open("/proc/stat") as stat:
        user, nice, system, _, _, hard, soft = map(int, stat.readline().split()[1:8])
    return (user + nice + system + hard + soft) / TICKS


def measure(order, index, case):
    rank, ranks = order["rank"], order["ranks"]
    # Small whole numbers, whose sums every format holds exactly.
    x = (torch.arange(case["values"], dtype=torch.int32) % 13).to(DTYPES[case["dtype"]])
    y = torch.empty_like(x)
    seconds, busy = [], 0.0
    for call in range(order["warmup"] + order["repeats"]):
        torch.add(x, rank, out=y)
        dist.barrier()
        before, begin = busy_seconds(), time.perf_counter()
        dist.all_reduce(y)
        taken = time.perf_counter() - begin
        if call >= order["warmup"]:
            seconds.append(taken)
            busy += busy_seconds() - before
    if not torch.equal(y, x * ranks + ranks * (ranks - 1) // 2):
        raise ValueError(f"the sum of {case['values']} {case['dtype']} values is wrong")
    tell({"case": index, "rank": rank, "seconds": seconds, "busy_seconds": busy if rank == 0 else None})


def main():
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method="file://" + order["store"],
        rank=order["rank"],
        world_size=order["ranks"],
        timeout=timedelta(seconds=order["patience"]),
    )
    for index, case in enumerate(order["cases"]):
        measure(order, index, case)
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # the thread still reads


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        tell({"failed": f"{type(error).__name__}: {error}"})
        os._exit(1)
