#!/usr/bin/python3
"""The experiment of "Clustering Low-Cost, Cloud-Based Servers" (N. Bras, G. Valadao, 2015), on this machine.

    ./dev bench seed004 [--quick] [--turns N] [--map]

The paper trains a convolutional net on MNIST, again and again for other hyper-parameters, on a laptop, a server and up
to 8 servers with GPUs, and counts epochs a minute (its figure 2).  It describes its net as that of the Theano tutorial,
but with 100 values behind the second pool and a layer of 25 units: so both nets are run here, examples/lenet.net and
examples/digits-100.net, with the L1 penalty that the paper regularises by, on one thread, on two, and as two trainings
at once with a thread each, which is how the paper's engines work.  Rows are MNIST where ../shared/data/mnist lies
beside the repository, else Fashion-MNIST, which has as many of the same size.  Prints a table beside the paper's;
writes bench/results/seed004.json.  --quick is one turn of one epoch, without errors.

--map instead makes the paper's figure 3, cost against time of 1,000 epochs: `shoal sweep` searches the rate and the
penalty of the second net, an epoch a trial and a thread each, and `shoal sweep plot --kind map` deals 1,000 of them out
to machines of the price table at spot prices.  It writes bench/results/seed004-map.svg and prints the front beside the
paper's figures: 0.64 euros and 68.5 minutes for 8 servers; their price times that time is 0.59.
"""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench")]
from bench_train import DATA, RESULTS, SHOAL, path_of, run  # noqa: E402

NETS = {"the tutorial's net": "lenet.net", "the net with 100 values": "digits-100.net"}
# Figure 2 of the paper, epochs a minute; what 1,000 epochs cost it, and the price of an hour of a server of 3 cores.
PAPER = (("a laptop", 0.24), ("a server", 0.49), ("a server with a GPU", 2.03), ("2 servers with GPUs", 5.44),
         ("4 servers with GPUs", 9.13), ("8 servers with GPUs", 14.59))
PAPER_MOST, PAPER_EUROS, EUROS_AN_HOUR = 14.59, 0.64, 0.016
PAPER_SERVERS, PAPER_GPU_HOUR = 8, 0.065
MAP_TRIALS, MAP_EPOCHS = 8, 1000
L1, BATCH, EPOCHS = 1e-5, 128, 6


def words_of(net, threads, epochs, *more):
    return list(map(str, [SHOAL, "train", path_of("train", "images"), "--target", path_of("train", "labels"), "--net",
                          ROOT / "examples" / net, "--l1", L1, "--batch", BATCH, "--threads", threads, "--epochs",
                          epochs, "--json", *more]))


def alone(net, threads, epochs):
    """Epochs a minute of one training, and the processor's seconds of one."""
    out, processor = run(words_of(net, threads, epochs))
    return 60 * epochs / json.loads(out)["seconds"]["run"], processor / epochs


def side_by_side(net, trainings, epochs):
    """The same of several at once, with other seeds, each with a thread."""
    began, before = time.monotonic(), os.times()
    children = [subprocess.Popen(words_of(net, 1, epochs, "--seed", seed), stdout=subprocess.DEVNULL)
                for seed in range(trainings)]
    if any([child.wait() for child in children]):
        sys.exit("bench: a training fails")
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return 60 * epochs * trainings / (time.monotonic() - began), used / epochs / trainings


def error_of(net):
    """On test rows, after some epochs."""
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/net.safetensors"
        run(words_of(net, 2, EPOCHS, "--model", model))
        out = run([SHOAL, "predict", model, path_of("t10k", "images"), "--target", path_of("t10k", "labels"), "--score",
                   "--json"])[0]
    return 1 - json.loads(out)["score"]["accuracy"]


def draw_map():
    """The sweep's own seconds an epoch, dealt out to machines."""
    picture = RESULTS / "seed004-map.svg"
    RESULTS.mkdir(parents=True, exist_ok=True)
    learner = ["train", path_of("train", "images"), "--target", path_of("train", "labels"), "--net",
               ROOT / "examples" / "digits-100.net", "--batch", BATCH, "--epochs", 1]
    with tempfile.TemporaryDirectory() as folder:
        place = ["--store", f"{folder}/store"]
        run(list(map(str, [SHOAL, "sweep", "--vary", "rate=1e-3..0.3:log", "--vary", "l1=1e-6..1e-3:log", "--learner",
                           shlex.join(map(str, learner)), "--objective", "loss", "--trials", MAP_TRIALS, "--workers", 2,
                           "--name", "seed004", "--folder", f"{folder}/trials", *place])))
        front = run(list(map(str, [SHOAL, "sweep", "plot", "seed004", picture, "--kind", "map", "--spot", "--work",
                                   MAP_EPOCHS, *place])))[0]
        best = json.loads(run([SHOAL, "sweep", "best", "seed004", "--json", *place])[0])
    minutes = MAP_EPOCHS / PAPER_MOST
    print(f"{MAP_EPOCHS} epochs of {DATA}, load {os.getloadavg()[0]:.1f}; the best of {MAP_TRIALS} trials has loss "
          f"{best['value']:.4f}\n\n   the front, and a minute to start each machine:\n{front}\n"
          f"   the paper: {PAPER_SERVERS} servers with GPUs, {minutes:.1f} min, {PAPER_EUROS:.2f} EUR; at its "
          f"{PAPER_GPU_HOUR} EUR an hour that is {PAPER_SERVERS * PAPER_GPU_HOUR * minutes / 60:.2f} EUR\n\n{picture}")


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--quick", action="store_true")
    words.add_argument("--turns", type=int, default=3)
    words.add_argument("--map", action="store_true")
    options = words.parse_args()
    if options.map:
        return draw_map()
    turns, epochs = (1, 1) if options.quick else (options.turns, 2)
    load, found = os.getloadavg()[0], []
    print(f"{DATA}, batches of {BATCH}, load {load:.1f}\n")
    print("| | epochs a minute | of the paper's best | 1,000 epochs | in euros | processor's seconds an epoch |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, rate in PAPER:
        euros = f"{PAPER_EUROS:.2f}" if rate == PAPER_MOST else ""
        print(f"| paper: {name} | {rate:.2f} | {rate / PAPER_MOST:.2f} | {1000 / 60 / rate:.1f} h | {euros} | |")
    for name, net in NETS.items():
        ways = {"one thread": lambda: alone(net, 1, epochs), "two threads": lambda: alone(net, 2, epochs),
                "two trainings at once": lambda: side_by_side(net, 2, epochs)}
        rates = {way: max(measure() for _ in range(turns)) for way, measure in ways.items()}
        for way, (rate, processor) in rates.items():
            hours = 1000 / 60 / rate
            print(f"| {name}, {way} | {rate:.1f} | {rate / PAPER_MOST:.1f} | {60 * hours:.0f} min | "
                  f"{hours * EUROS_AN_HOUR:.4f} | {processor:.2f} |", flush=True)
        found.append({"net": name, "rates": rates, "error": None if options.quick else error_of(net)})
    print(f"\nEuros at the paper's price of a server of 3 cores, {EUROS_AN_HOUR} an hour.")
    if not options.quick:
        print("\n| | error on test rows after 6 epochs |\n|---|---:|")
        for row in found:
            print(f"| {row['net']} | {100 * row['error']:.2f}% |")
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "seed004.json").write_text(json.dumps({"data": str(DATA), "load": load, "rows": found}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
