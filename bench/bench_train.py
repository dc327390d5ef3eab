#!/usr/bin/python3
"""Nets: epochs a minute beside PyTorch, ranks beside threads, memory, and errors on test rows.

    ./dev bench train [--quick] [--turns N] [--threads N] [--only PART]...

Parts: speed (a net of 36,845 parameters, batches of 128, 32 and 512), avx2 (the same, ours without AVX-512),
layers (a net of depthwise and 1x1 convolutions and strides, and examples/fashion.net), ranks (two ranks of one thread
beside two threads), memory, and errors.  Rows are MNIST where ../shared/data/mnist lies beside the repository, else
Fashion-MNIST; fashion.net always sees the latter.  Two threads each.  PyTorch has its rows in memory as float32, runs
in both memory layouts with the kernels of OpenBLAS that are fastest for it, and its faster layout counts.  Ours and
theirs alternate, an epoch and what 150 steps say of one, and the fastest of the turns counts; the processor's time,
which others on the machine change less, is told beside it.  A table on stdout, everything in bench/results/train.json.
--quick is batches of 128 alone.  On a machine that others keep busy, --threads 1 and the processor's time tell more:
programs whose threads wait for each other by turning round lose more there than ours.
"""
import argparse
import functools
import gzip
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHOAL = ROOT / "build" / "shoal"
RESULTS = ROOT / "bench" / "results"
MNIST, FASHION = ROOT.parent / "shared" / "data" / "mnist", pathlib.Path("/usr/share/datasets/fashion-mnist")
DATA = MNIST if MNIST.exists() else FASHION
THREADS, STEPS = 2, 150
# The threads of PyTorch and of OpenBLAS would wait for each other turning round: an epoch took 9 to 10 s, not 5.5 to 6.
PEER = {"OMP_WAIT_POLICY": "PASSIVE", "OPENBLAS_NUM_THREADS": "1"}
LAYOUTS = ("contiguous", "channels_last")
NETS = {
    "plain": "conv 20 5x5 relu; pool 2; conv 40 5x5 relu; pool 2; dense 25 relu; dense 10 softmax",
    "layers": "conv 16 3x3 stride 2 pad 1 relu; depthwise 3x3 pad 1 relu; conv 32 1x1 relu; depthwise 3x3 stride 2 "
              "pad 1 relu; conv 64 1x1 relu; global pool; dense 10 softmax",
    "fashion": str(ROOT / "examples" / "fashion.net"),
}
PARTS = ("speed", "avx2", "layers", "ranks", "memory", "errors")
MEGABYTE = 1e6

sys.path[:0] = [str(ROOT / "bench")]
import openblas  # noqa: E402


def path_of(part, kind, data=DATA):
    return next(data.glob(f"{part}-{kind}-idx*"))


def read_idx(path):
    import numpy as np
    content = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    sides = [int.from_bytes(content[4 + 4 * i:8 + 4 * i], "big") for i in range(content[3])]
    return np.frombuffer(content, np.uint8, offset=4 + 4 * len(sides)).reshape(sides)


# ---- PyTorch ---------------------------------------------------------------------------------------------------------


def modules_of(nn, net):
    if net == "plain":
        return [nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 40, 5), nn.ReLU(), nn.MaxPool2d(2),
                nn.Flatten(), nn.Linear(640, 25), nn.ReLU(), nn.Linear(25, 10)]
    if net == "fashion":
        return [nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(),
                nn.MaxPool2d(2), nn.Dropout(0.2), nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Dropout(0.3),
                nn.Linear(128, 10)]
    return [nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.ReLU(),
            nn.Conv2d(16, 32, 1), nn.ReLU(), nn.Conv2d(32, 32, 3, stride=2, padding=1, groups=32), nn.ReLU(),
            nn.Conv2d(32, 64, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]


def train_peer(net, layout, batch, most=STEPS, threads=THREADS):
    """What an epoch of PyTorch takes by its first steps, without reading: seconds, processor seconds."""
    import torch
    from torch import nn
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    memory = torch.channels_last if layout == "channels_last" else torch.contiguous_format
    x = torch.from_numpy(read_idx(path_of("train", "images")).astype("f4")[:, None] / 255)
    x = x.contiguous(memory_format=memory)
    y = torch.from_numpy(read_idx(path_of("train", "labels")).astype("i8"))
    module = nn.Sequential(*modules_of(nn, net)).to(memory_format=memory)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)

    def step(rows):
        optimiser.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(module(x[rows].contiguous(memory_format=memory)), y[rows]).backward()
        optimiser.step()

    order = torch.randperm(len(x))
    for i in range(5):
        step(order[i * batch:(i + 1) * batch])
    wall, used, steps = time.perf_counter(), time.process_time(), 0
    while steps < most and (steps + 1) * batch <= len(x):
        step(order[steps * batch:(steps + 1) * batch])
        steps += 1
    scale = len(x) / batch / steps
    return (time.perf_counter() - wall) * scale, (time.process_time() - used) * scale


# ---- ours ------------------------------------------------------------------------------------------------------------


def run(words, **more):
    """What a command printed, and the processor's seconds that it and its children used."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = subprocess.Popen(list(map(str, words)), stdout=out, stderr=err, text=True, **more)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode != 0:
            sys.exit(f"bench: {' '.join(map(str, words))} fails:\n{err.read()[-2000:]}")
        return out.read(), used.ru_utime + used.ru_stime


def train_ours(net, batch, *more, before=(), threads=THREADS, data=DATA):
    words = [*before, SHOAL, "train", path_of("train", "images", data), "--target", path_of("train", "labels", data),
             "--net", NETS.get(net, net), "--batch", batch, "--threads", threads, "--json", *more]
    out, processor = run(words)
    told = json.loads(out)
    return {"seconds": told["seconds"]["run"], "processor": processor, "kernel": told["kernel"]}


# ---- rows ------------------------------------------------------------------------------------------------------------

rows = []


def say(what, ours, theirs, figure, bar=None, met=None, **details):
    """One row of the table; a bar is met or not."""
    rows.append({"what": what, "ours": ours, "theirs": theirs, "figure": figure, "bar": bar, "met": met, **details})
    verdict = "" if met is None else "yes" if met else "**NO**"
    print(f"| {what} | {ours} | {theirs} | {figure} | {bar or ''} | {verdict} |", flush=True)


def best_of(runs):
    return {what: min(run[what] for run in runs) for what in ("seconds", "processor")}


@functools.lru_cache(maxsize=None)
def fastest_core():
    """The kernels of OpenBLAS that a short run of PyTorch needs the processor for least; only its dense layers see
    them."""
    used = {core: openblas.call(core, "bench_train", "train_peer", "plain", LAYOUTS[1], 128, 20, variables=PEER)[1]
            for core in openblas.core_types()}
    return min(used, key=used.get)


def beside_peer(what, net, batch, turns, threads, least, kernel=()):
    """The fastest of each, alternating; our processor time has the reading of the files in it."""
    core = fastest_core()
    ours, theirs = [], {layout: [] for layout in LAYOUTS}
    for _ in range(turns):
        ours.append(train_ours(net, batch, "--epochs", 1, *kernel, threads=threads))
        for layout in LAYOUTS:
            seconds, processor = openblas.call(core, "bench_train", "train_peer", net, layout, batch, STEPS, threads,
                                               variables=PEER)
            theirs[layout].append({"seconds": seconds, "processor": processor})
    own, peers = best_of(ours), [best_of(runs) for runs in theirs.values()]
    peer = {key: min(found[key] for found in peers) for key in own}
    times = {key: peer[key] / own[key] for key in own}
    say(what, f"{60 / own['seconds']:.1f}", f"{60 / peer['seconds']:.1f}",
        f"{times['seconds']:.2f} (by processor time {times['processor']:.2f})", least and f"≥ {least}",
        least and times["seconds"] >= least, runs=ours, peers=theirs, core=core, times=times)


def speed(turns, threads, batches):
    for batch, least in batches:
        beside_peer(f"batch {batch}, epochs a minute", "plain", batch, turns, threads, least)


def avx2(turns, threads):
    beside_peer("shoal without AVX-512, PyTorch with it, batch 128", "plain", 128, turns, threads, None,
                ("--kernel", "avx2"))


def layers(turns, threads):
    beside_peer("depthwise, 1x1 and strides, batch 128", "layers", 128, turns, threads, 1.5)
    beside_peer("examples/fashion.net, batch 128", "fashion", 128, turns, threads, None)


def ranks(turns):
    """Two ranks of one thread beside two threads, alternating."""
    mpirun = next((shutil.which(name) for name in ("mpirun.openmpi", "mpirun") if shutil.which(name)), None)
    if not mpirun:
        return
    before = [mpirun, "-n", 2, "--bind-to", "core", *([] if os.geteuid() else ["--allow-run-as-root"])]
    both = {"ranks": [], "threads": []}
    for _ in range(turns):
        both["ranks"].append(train_ours("plain", 128, "--epochs", 2, before=before, threads=1))
        both["threads"].append(train_ours("plain", 128, "--epochs", 2))
    best = {name: best_of(runs) for name, runs in both.items()}
    ratio = {key: best["ranks"][key] / best["threads"][key] for key in best["ranks"]}
    say("2 ranks / 2 threads, seconds of 2 epochs", f"{best['ranks']['seconds']:.2f}",
        f"{best['threads']['seconds']:.2f}", f"{ratio['seconds']:.2f} (by processor time {ratio['processor']:.2f})",
        "≤ 1.1", ratio["seconds"] <= 1.1, runs=both)


def peak_of(data, net, threads, *more):
    return json.loads(run([SHOAL, "train", data, "--net", net, "--epochs", 1, "--threads", threads, "--json",
                           *more])[0])["peak_memory"]


def memory():
    """What a run holds beside one of so little data that this is the program itself.  Rows lie in a file that is
    mapped, with their classes: a file that is inflated, or classes in one of their own, make a copy of the rows."""
    import numpy as np
    images, labels = (read_idx(path_of("train", kind)) for kind in ("images", "labels"))
    with tempfile.TemporaryDirectory() as folder:
        data, small = pathlib.Path(folder, "data.npy"), pathlib.Path(folder, "small.csv")
        np.save(data, np.hstack([images.reshape(len(images), -1), labels[:, None]]))
        small.write_text("".join(f"{i},{i % 2}\n" for i in range(32)))
        program = peak_of(small, "dense 2 softmax", 1)
        peak = {threads: peak_of(data, NETS["plain"], threads, "--shape", "28x28") for threads in (1, THREADS)}
    of_group = 4 * 16 * (2 * 784 + 6 * (2880 + 640))  # rows, blocks; what is kept, chosen, listed, and slopes
    stated = images.size + THREADS * (40 * 36845 + of_group)
    held = peak[THREADS] - program
    say("MB of 2 threads beside the program; stated: the rows; of each thread 40 bytes a parameter, a group's layers",
        f"{held / MEGABYTE:.1f}", f"{stated / MEGABYTE:.1f}",
        f"the second thread {(peak[THREADS] - peak[1]) / MEGABYTE:.1f}, the program {program / MEGABYTE:.1f}",
        "≤ stated", held <= stated, peak=peak, program=program)


def error_of(net, seed, batch, epochs, data, folder, *more):
    model = f"{folder}/{seed}.safetensors"
    ran = train_ours(net, batch, "--epochs", epochs, "--seed", seed, "--model", model, *more, data=data)
    out, _ = run([SHOAL, "predict", model, path_of("t10k", "images", data), "--target",
                     path_of("t10k", "labels", data), "--score", "--json"])
    return {"seed": seed, "error": 1 - json.loads(out)["score"]["accuracy"], **ran}


def error_row(what, net, seeds, epochs, most, data, *more, batch=128, seconds_most=None):
    with tempfile.TemporaryDirectory() as folder:
        found = [error_of(net, seed, batch, epochs, data, folder, *more) for seed in seeds]
    mean = sum(run["error"] for run in found) / len(found)
    slowest = max(run["seconds"] for run in found)
    say(what, ", ".join(f"{100 * run['error']:.2f}%" for run in found), "",
        f"{100 * mean:.2f}% in {slowest:.0f} s at most",
        f"≤ {most}%" + (f", {seconds_most} s" if seconds_most else ""),
        100 * mean <= most and (not seconds_most or slowest <= seconds_most), runs=found)


def errors():
    if MNIST.exists():
        error_row("MNIST, 6 epochs, error on test rows, seeds 0 to 2", "plain", range(3), 6, 1.0, MNIST,
                  seconds_most=60)
    error_row("Fashion-MNIST, 10 epochs, seeds 0 to 2", "plain", range(3), 10, 10.5, FASHION)
    error_row("Fashion-MNIST, 10 epochs, examples/fashion.net, --batch 64 --augment flip, seed 0", "fashion", range(1),
              10, 8.5, FASHION, "--augment", "flip", batch=64)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--quick", action="store_true")
    words.add_argument("--turns", type=int, default=3)
    words.add_argument("--threads", type=int, default=THREADS, help="of the parts speed, avx2 and layers")
    words.add_argument("--only", choices=PARTS, action="append")
    options = words.parse_args()
    parts = ("speed",) if options.quick else options.only or PARTS
    batches = ((128, 4), (32, 3.5), (512, 3.5))
    load = os.getloadavg()[0]
    print(f"{DATA}, {options.threads} threads, load {load:.1f}\n")
    print("| | shoal | PyTorch, or beside it | | bar | met |\n|---|---:|---:|---|---|---|")
    for part in parts:
        if part == "speed":
            speed(options.turns, options.threads, batches[:1] if options.quick else batches)
        elif part in ("avx2", "layers"):
            globals()[part](options.turns, options.threads)
        elif part == "ranks":
            ranks(options.turns)
        else:
            globals()[part]()
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "train.json").write_text(json.dumps({"data": str(DATA), "load": load, "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
