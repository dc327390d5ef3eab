#!/usr/bin/python3
"""Mini-batch k-means, `shoal kmeans --batch 1024`, beside scikit-learn's MiniBatchKMeans, two threads each.

    ./dev bench minibatch [--quick] [--repetitions N] [--work WORD] [--markdown]

Each work has the same K, batch, number of first centres to choose from and limits for both; repetition r of both has
seed r, and each begins every other one.  A table on stdout, everything in bench/results/minibatch.json; --quick does
Fashion-MNIST alone, three times; --work keeps the works whose name has WORD in it; --markdown prints the last results
as bench/README.md has them.  S1, Birch1 and MNIST are in ../shared/data, and left out where that is not there.
Nothing here fails when a bar is missed: the table says so.
"""
import argparse
import contextlib
import gzip
import json
import os
import statistics
import subprocess
import sys
import time

import bench_kmeans
from bench_kmeans import BUILD, DATA, RESULTS, ROOT, THREADS

import numpy as np

import openblas

BATCH, PATIENCE = 1024, 10
SHARED = ROOT.parent / "shared" / "data"
INERTIA, SPEED = 1.01, 3  # the bars: of the mean objective, of the time

CAPTION = """\
seconds: medians.  shoal is timed by its own report, scan + seed + run; scikit-learn around fit, of an array in memory
that has its type (float32 for images), with the kernels of OpenBLAS that are fastest for it.  ratio: the median of
scikit-learn / shoal of each repetition.  objective: the mean of shoal's repetitions / the mean of scikit-learn's."""


# ---- work ------------------------------------------------------------------------------------------------------------


def mnist():
    with gzip.open(SHARED / "mnist" / "train-images-idx3-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)


def table(name):
    return np.loadtxt(SHARED / "clustering" / f"{name}.data.gz")


class Work:
    def __init__(self, name, data, make, k, runs, passes=100, patience=PATIENCE, given=False):
        self.name, self.data, self.make, self.k, self.runs = name, data, make, k, runs
        self.passes, self.patience, self.given = passes, patience, given

    def prepare(self):
        """The files of the rows and of the first centres, made once."""
        path, start = DATA / f"minibatch-{self.data}.npy", DATA / f"minibatch-{self.data}-start-{self.k}.npy"
        DATA.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            bench_kmeans.save(path, self.make())
        if self.given and not start.exists():
            rows = np.load(path, mmap_mode="r")
            chosen = np.random.default_rng(1).choice(len(rows), self.k, replace=False)
            bench_kmeans.save(start, rows[chosen].astype(np.float32))
        return path, start if self.given else None


def works(quick):
    def fashion():
        return bench_kmeans.fashion(60_000)

    found = [Work("Fashion-MNIST, K=100", "fashion", fashion, 100, 1),
             Work("Fashion-MNIST, K=100, best of 3", "fashion", fashion, 100, 3),
             Work("Fashion-MNIST, K=100, two passes from given centres", "fashion", fashion, 100, 1, passes=2,
                  patience=0, given=True)]
    if quick:
        return found
    if not SHARED.exists():
        print(f"bench: {SHARED} is not there: without S1, Birch1 and MNIST", file=sys.stderr)
        return found
    return [Work("S1, K=15, best of 3", "s1", lambda: table("s1"), 15, 3),
            Work("Birch1, K=100, best of 3", "birch1", lambda: table("birch1"), 100, 3),
            Work("MNIST, K=100, best of 3", "mnist", mnist, 100, 3), *found]


# ---- the programs ----------------------------------------------------------------------------------------------------


def shoal(work, path, start, seed, program=BUILD / "shoal"):
    words = [program, "kmeans", path, "-k", work.k, "--batch", BATCH, "--seed", seed, "--runs", work.runs,
             "--iterations", work.passes, "--max-no-improvement", work.patience, "--tolerance", 0, "--threads", THREADS,
             "--json", "--quiet", *(["--init", start] if start else [])]
    told = subprocess.run(list(map(str, words)), check=True, capture_output=True,
                          env={**os.environ, "SHOAL_HISTORY": "off"}).stdout
    about = json.loads(told)
    spent = about["seconds"]
    return sum(spent.get(name, 0) for name in ("scan", "seed", "run")), {
        "objective": about["objective"], "batches": about["batches"], "seconds": spent}


def fit_scikit(path, start, k, runs, passes, patience, seed):
    """Called by way of openblas.py."""
    import warnings
    from sklearn.cluster import MiniBatchKMeans
    rows = np.load(path)
    rows = rows.astype(np.float32) if rows.dtype == np.uint8 else rows
    first = np.load(start).astype(rows.dtype) if start else "k-means++"
    learner = MiniBatchKMeans(k, init=first, batch_size=BATCH, n_init=runs, max_iter=passes, random_state=seed,
                              max_no_improvement=patience or None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        learner.fit(rows)
        seconds = time.perf_counter() - began
    return seconds, {"objective": float(learner.inertia_), "batches": int(learner.n_steps_)}


def scikit(core, work, path, start, seed):
    return openblas.call(core, "bench_minibatch", "fit_scikit", path, start, work.k, work.runs, work.passes,
                         work.patience, seed)


@contextlib.contextmanager
def own_rows(folder, quick):
    """For against.py."""
    def row(work):
        path, start = work.prepare()
        return work.name, "s", lambda program: shoal(work, path, start, 0, program)[0]
    yield [row(work) for work in works(quick)]


# ---- measuring and printing ------------------------------------------------------------------------------------------


def measure(work, repetitions):
    path, start = work.prepare()
    core, tried = openblas.best("bench_minibatch", "fit_scikit", path, start, work.k, 1, 1, 2, 0)
    print(f"    {work.name}: OpenBLAS's kernels {openblas.describe(core, tried)}", file=sys.stderr, flush=True)
    mine, peer = [], []
    for seed in range(repetitions):
        for into, call in [(mine, lambda: shoal(work, path, start, seed)),
                           (peer, lambda: scikit(core, work, path, start, seed))][:: 1 if seed % 2 == 0 else -1]:
            into.append(call())
    return {"work": work.name, "core": core, "shoal": mine, "scikit": peer,
            "ratio": statistics.median(b[0] / a[0] for a, b in zip(mine, peer)),
            "objective": statistics.mean(a[1]["objective"] for a in mine) /
            statistics.mean(b[1]["objective"] for b in peer)}


def middle(runs, what=None):
    return statistics.median(run[0] if what is None else run[1][what] for run in runs)


def cells(entry):
    mine, peer = entry["shoal"], entry["scikit"]
    return [entry["work"], f"{middle(peer):.3f}", f"{middle(mine):.3f}", f"{entry['ratio']:.1f}",
            "yes" if entry["ratio"] >= SPEED else "NO", f"{middle(peer, 'batches'):.0f}",
            f"{middle(mine, 'batches'):.0f}", f"{entry['objective']:.4f}",
            "yes" if entry["objective"] <= INERTIA else "NO", entry["core"] or "its own choice"]


TITLES = ["work", "scikit-learn, s", "shoal, s", "ratio", "at least 3", "batches, scikit-learn", "batches, shoal",
          "objective, shoal / scikit-learn", "at most 1.01", "OpenBLAS's kernels"]


def print_table(report, markdown):
    rows = [cells(entry) for entry in report["works"]]
    if markdown:
        print("| " + " | ".join(TITLES) + " |\n|---" + "|---:" * (len(TITLES) - 1) + "|")
        for row in rows:
            print("| " + " | ".join(row) + " |")
        return
    for row in rows:
        for title, cell in zip(TITLES, row):
            print(f"{title:>34}  {cell}")
        print()
    print(CAPTION)
    print(f"{report['when']}, {report['cpu']}, {THREADS} threads, {report['repetitions']} repetitions, kernel "
          f"{report['kernel']}, load {report['load'][0]:.1f} before and {report['load'][1]:.1f} after")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench minibatch", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="Fashion-MNIST alone, three repetitions")
    parser.add_argument("--repetitions", type=int, help="runs of each (10; quick: 3)")
    parser.add_argument("--work", help="only works whose name has this word in it")
    parser.add_argument("--markdown", action="store_true",
                        help="print the last results as Markdown and measure nothing")
    options = parser.parse_args()
    path = RESULTS / "minibatch.json"
    if options.markdown:
        return print_table(json.loads(path.read_text()), True)
    chosen = [work for work in works(options.quick) if (options.work or "").lower() in work.name.lower()]
    if not chosen:
        sys.exit(f"bench: no work has {options.work!r} in its name")
    repetitions, before = options.repetitions or (3 if options.quick else 10), os.getloadavg()[0]
    report = {"when": time.strftime("%Y-%m-%d"), "cpu": bench_kmeans.cpu_name(), "repetitions": repetitions,
              "kernel": bench_kmeans.best_kernel(), "works": [measure(work, repetitions) for work in chosen]}
    report["load"] = [before, os.getloadavg()[0]]
    path.write_text(json.dumps(report, indent=1) + "\n")
    print_table(report, False)


if __name__ == "__main__":
    main()
