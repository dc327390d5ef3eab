#!/usr/bin/env python3
# Labels: asan
"""Batches of every kind see the rows that numpy says they have, on threads, on one to four ranks of each MPI, and on
workers.

    test_batches.py PATH_TO_shoal

batch_learner.c tells which rows its rounds saw; batch_rows.py has the definition a second time.
"""
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile

import nobody  # so that no run is in the history of whoever runs this

import numpy as np

import batch_rows
import mpi

HERE = os.path.dirname(os.path.abspath(__file__))
RUNS = f"{os.path.dirname(mpi.SHOAL)}/tests/system/batch_runs"
failed = 0


def check(what, condition, more=""):
    global failed
    if not condition:
        failed += 1
        print(f"FAILED {what} {more}", flush=True)


class Case:
    """Rows, their weights, and what is asked of them; `memory` bounds what is kept of rows that are made or fetched."""

    def __init__(self, name, data, values, grain, weights=None, memory=0, **options):
        self.name, self.data, self.grain, self.memory, self.options = name, data, grain, memory, options
        self.values = values.astype(float)
        self.weights = np.ones(len(values)) if weights is None else weights
        self.weights_file = "-"
        if weights is not None:
            self.weights_file = f"{name.replace(' ', '-')}-weights.npy"
            np.save(self.weights_file, weights)

    def line(self):
        words = [self.data, self.weights_file, self.grain, self.memory]
        words += [word for pair in self.options.items() for word in pair]
        return " ".join(map(str, words))

    def worker_words(self):
        words = ["run", f"{HERE}/batch_learner.c", self.data, "--params", json.dumps(self.options), "--json", "--quiet"]
        words += ["--grain", self.grain] if self.grain else []
        return words + (["--weights", self.weights_file] if self.weights_file != "-" else [])

    def expected(self):
        rows, held = len(self.values), self.options.get("held", 0)
        shape = batch_rows.Shape(rows, self.grain, self.options.get("strata", 16), held)
        sizes = [int(size) for size in str(self.options["sizes"]).split(",")]
        notes, epoch, position = [], 0, 0
        for number in range(self.options["rounds"]):
            size = sizes[number % len(sizes)]
            if size > 0:
                orders = list(shape.orders(self.options.get("seed", 0), epoch))
                runs = shape.at(orders, position, position + size)
                pieces = [run[i:i + self.options["group"]] for run in runs
                          for i in range(0, len(run), self.options["group"])]
                position += size
            else:
                pieces = self.pieces_of_grains(shape, size)
            if position >= rows - held:
                epoch, position = epoch + 1, 0
            notes += self.noted(pieces)
        return notes

    def pieces_of_grains(self, shape, part):
        """A map for each grain that has rows of the part: all, those drawn (-1), those held out (-2)."""
        grain, pieces = min(self.grain, shape.rows), []
        for first, end in shape.strata:
            border = first + shape.drawn(first, end)
            for at in range(first, end, grain):
                rows = np.arange(at, min(at + grain, end))
                pieces.append(rows[(part == 0) | ((rows < border) == (part == -1))])
        return [rows for rows in pieces if len(rows)]

    def noted(self, pieces):
        rows = np.concatenate([*pieces, np.zeros(0, int)])
        quarters = np.rint(self.weights[rows] * 4)
        values = np.rint(self.values[rows] * 2**20) * (1 + np.arange(self.values.shape[1]))
        return [len(rows), int((rows * rows % 10007 * quarters).sum()), int((values.sum(1) * quarters).sum()),
                len(pieces)]


def made(url, name):
    """The rows of gen:, written to a file by the program."""
    done = subprocess.run([mpi.SHOAL, "data", "convert", url, name], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return np.load(name)


def all_cases():
    g = np.random.default_rng(7)
    X = np.rint(g.normal(size=(811, 3)) * 50)
    np.save("x.npy", X)
    np.save("few.npy", X[:10].astype(np.float32))
    np.save("bytes.npy", (np.abs(X[:500]) % 256).astype(np.uint8))
    np.save("one.npy", X[:1])
    with gzip.open("x.csv.gz", "wt") as file:
        np.savetxt(file, X, "%d", ",")
    mpi.alone("store", "put", "x.npy", "st/", "--quiet")
    weights = g.integers(0, 9, len(X)) / 4
    url = "gen:uniform?rows=701&cols=4&seed=3"
    generated = made(url, "gen.npy")
    return [
        Case("not divisible", "x.npy", X, 20, sizes=64, rounds=40, group=5),
        Case("sizes that change", "x.npy", X, 30, sizes="100,1,37,0,256", rounds=30, group=7, seed=5),
        Case("weights", "x.npy", X, 20, weights=weights, sizes="50,0", rounds=20, group=3, strata=7),
        Case("held out", "x.npy", X, 20, held=151, sizes="300,-1,90,-2,0", rounds=25, group=16, strata=9),
        Case("held out, with weights", "x.npy", X, 13, held=800, weights=weights, sizes="3,-2,-1", rounds=12, group=2),
        Case("fewer rows than strata", "few.npy", X[:10], 1, sizes=3, rounds=12, group=2),
        Case("fewer grains than strata", "bytes.npy", np.load("bytes.npy"), 200, sizes="70,9", rounds=20, group=8,
             strata=1000),
        Case("a batch larger than the data", "bytes.npy", np.load("bytes.npy"), 30, sizes=1000, rounds=3, group=50),
        Case("a grain larger than the data", "few.npy", X[:10], 5000, sizes="4", rounds=9, group=3),
        Case("one row", "one.npy", X[:1], 1, sizes="1,0,7", rounds=7, group=1),
        Case("generated", url, generated, 25, sizes="64,33", rounds=25, group=6, held=50),
        Case("generated, made again", url, generated, 25, memory=1, sizes="64,33,-1,-2", rounds=25, group=6, held=50),
        Case("from a store", "dir:st/x.npy", X, 40, weights=weights, sizes="128,0", rounds=25, group=32),
        Case("from a store, without memory", "dir:st/x.npy", X, 40, memory=1, sizes="128,0,-2", rounds=25, group=32,
             held=100),
        Case("a stream that is decoded", "x.csv.gz", X, 25, sizes="90", rounds=20, group=16),
    ]


def compare(cases, where, lines):
    check(f"{where}: a line for each case", len(lines) == len(cases), lines)
    for case, line in zip(cases, lines):
        found = [int(value) for value in json.loads(line)]
        check(f"{case.name} on {where}", found == case.wanted, [
            (i // 4, "rows numbers values maps".split()[i % 4], a, b)
            for i, (a, b) in enumerate(zip(found, case.wanted)) if a != b][:8])


def main():
    cases = all_cases()
    for case in cases:
        case.wanted = case.expected()
    with open("cases", "w", encoding="ascii") as file:
        file.write("".join(case.line() + "\n" for case in cases))
    for threads in (1, 3):
        compare(cases, f"{threads} threads", mpi.alone(threads, "cases", program=RUNS).out.splitlines())
    for kind in mpi.KINDS:
        for ranks in (1, 2, 3, 4):
            done = mpi.run(kind, ranks, ranks % 2 + 1, "cases", program=(RUNS,),
                           env={"SHOAL_MPI_PLUGIN": mpi.plugin(kind)})
            check(f"{ranks} ranks of {kind}", done.code == 0, done)
            compare(cases, f"{ranks} ranks of {kind}", done.out.splitlines())
    for number, case in enumerate(cases):
        told = json.loads(mpi.alone(*case.worker_words(), "--workers", f"local:{number % 3 + 2}").out)
        compare([case], "workers", [json.dumps(np.ravel(told["result"]["values"]).tolist())])


for mpi_kind in ("openmpi", "mpich"):
    if mpi.lacks(mpi_kind):
        print(f"SKIPPED {mpi_kind}: {mpi.lacks(mpi_kind)}", flush=True)
folder = tempfile.mkdtemp(prefix="shoal-batches-")
home = os.getcwd()
os.environ.update(XDG_CACHE_HOME=f"{folder}/cache", TMPDIR=folder)
os.chdir(folder)
try:
    main()
finally:
    os.chdir(home)
    shutil.rmtree(folder)
sys.exit(failed > 0)
