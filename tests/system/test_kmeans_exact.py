#!/usr/bin/python3
# Seconds: 45
# k-means through the program: the same bits whatever computes them, and the bits of the definition.
#   test_kmeans_exact.py PATH_TO_shoal [RANDOM_CASES]
# Every case is run with each kernel of this CPU, 1 to 7 threads and several grains, paired in another way in each, and
# the files compared as `cmp` does.
# Labels are compared with the definition in numpy (docs/learn/kmeans.md), centres with math.fsum.
# Prints one line for each failure and "N passed, M failed" at the end.
import concurrent.futures
import itertools
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import zlib

import nobody  # so that no run is in the history of whoever runs this

try:
    import numpy as np
except ImportError:
    print("python3-numpy is not here: skipped")
    sys.exit(77)

program = os.path.abspath(sys.argv[1])
random_cases = int(sys.argv[2]) if len(sys.argv) > 2 else 40
folder = pathlib.Path(tempfile.mkdtemp(prefix="shoal-exact-"))
lock = threading.Lock()
counter = itertools.count()
passed = failed = 0


def check(what, condition, more=""):
    global passed, failed
    with lock:
        if condition:
            passed += 1
        else:
            failed += 1
            print(f"FAILED {what} {more}", flush=True)
    return condition


# ---- the program -----------------------------------------------------------------------------------------------------


def shoal(*words):
    return subprocess.run([program, *map(str, words)], capture_output=True, timeout=120)


def kernels_here():
    probe = save(np.zeros((1, 1), "f4"))
    return [name for name in ["portable", "avx2", "avx512", "vnni"]
            if shoal("kmeans", probe, "-k", 1, "--kernel", name, "--quiet").returncode == 0]


def save(array):
    path = folder / f"{next(counter)}.npy"
    np.save(path, array)
    return path


class Outcome:
    """What one run wrote, or why it failed."""

    def __init__(self, path, options):
        place = folder / f"run{next(counter)}"
        place.mkdir()
        files = [place / "centres.npy", place / "labels.npy", place / "model.safetensors"]
        result = shoal("kmeans", path, *options, "--json", "--centres", files[0], "--labels", files[1], "--model",
                       files[2])
        self.code, self.error = result.returncode, result.stderr.decode(errors="replace").strip()
        self.bytes = [file.read_bytes() for file in files if file.exists()]
        if self.code == 0:
            self.centres, self.labels = np.load(files[0]), np.load(files[1])
            self.about = json.loads(result.stdout)
        shutil.rmtree(place)

    def identity(self):
        if self.code != 0:
            return self.code, self.error
        return self.code, self.bytes, [self.about[name] for name in ["iterations", "converged", "objective", "rounds"]]

    def difference(self, other):
        if self.code or other.code:
            return f"exit {self.code} {self.error} / exit {other.code} {other.error}"
        names = [name for name, a, b in zip(["centres", "labels", "model"], self.bytes, other.bytes) if a != b]
        return f"{names} {self.identity()[2]} / {other.identity()[2]}"


# ---- the definition --------------------------------------------------------------------------------------------------


def power_of_two(X):
    """What extreme data are multiplied by: squares must fit float64."""
    greatest = float(np.abs(X).max())
    if 0 < greatest < 2.0**-126 or greatest >= 2.0**128:
        fraction, exponent = math.frexp(greatest)
        return 2.0 ** min(-(exponent - 1 if fraction == 0.5 else exponent), 1000)
    return 1.0


def in_lanes(X, C, term):
    """Sums of terms in float64: 8 lanes by column mod 8, combined ((0+4)+(2+6))+((1+5)+(3+7))."""
    blocks = -(-X.shape[1] // 8)
    padding = ((0, 0), (0, blocks * 8 - X.shape[1]))
    X, C = np.pad(X, padding), np.pad(C, padding)
    result = np.empty((len(X), len(C)))
    step = max(1, 100_000 // len(C))
    for first in range(0, len(X), step):
        x = X[first:first + step]
        lane = np.zeros((len(x), len(C), 8))
        for block in range(blocks):
            here = slice(block * 8, block * 8 + 8)
            lane += term(x[:, None, here], C[None, :, here])
        lane = np.moveaxis(lane, 2, 0)
        result[first:first + step] = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) +
                                                                                    (lane[3] + lane[7]))
    return result


def distances(X, C):
    return in_lanes(X, C, lambda x, c: (x - c) * (x - c))


def products(X, C):
    return in_lanes(X, C, lambda x, c: x * c)


def lengths(X):
    return np.array([products(x[None], x[None])[0, 0] for x in X])


def unit(X):
    """Rows of length 1; those whose squares would not fit float64 are brought near 1 first."""
    X = X.astype(float)
    with np.errstate(over="ignore"):
        square = lengths(X)
    extreme = np.flatnonzero(~((square >= 2.0**-600) & (square <= 2.0**600)))
    X[extreme] = np.ldexp(X[extreme], -np.frexp(np.abs(X[extreme]).max(1, keepdims=True))[1])
    square[extreme] = lengths(X[extreme])
    return X * (1 / np.sqrt(square))[:, None]


def relocate(square, label, weight, k):
    """Empty clusters in index order take the farthest rows, greatest first, ties to the lowest; no cluster's last row
    of positive weight."""
    label = label.copy()
    size = np.bincount(label[weight > 0], minlength=k)
    own = square[np.arange(len(label)), label]
    order = [i for i in np.lexsort((np.arange(len(own)), -own)) if own[i] > 0 and weight[i] > 0]
    order = iter(order)
    for empty in range(k):
        if (weight[label == empty] > 0).any():
            continue
        for row in order:
            if size[label[row]] > 1:
                size[label[row]] -= 1
                size[empty] += 1
                label[row] = empty
                break
    return label


def mean_error(X, weight, label, before, after):
    """Greatest error of the centres `after` beside exact means, relative to the size of the column."""
    middle = (X.min(0) + X.max(0)) / 2
    size = np.maximum(np.abs(middle), np.abs(X - middle).max(0))
    worst = 0
    for j in range(len(after)):
        rows = label == j
        total = math.fsum(weight[rows])
        if total > 0:
            x = X[rows] * weight[rows, None]
            mean = np.array([math.fsum(column) for column in x.T.tolist()]) / total
        else:
            mean = before[j]
        error = np.maximum(np.abs(after[j] - mean) - 2.0**-1000, 0)  # extreme data were scaled to about 1
        with np.errstate(invalid="ignore", divide="ignore"):
            worst = max(worst, np.where(error > 0, error / np.maximum(size, np.abs(mean)), 0).max())
    return worst


class Euclidean:
    """What the learner sees of the rows, and what it makes of centres."""
    options = []

    def __init__(self, X):
        self.scale = power_of_two(X.astype(float))
        self.X = X.astype(float) * self.scale

    def centres(self, given):
        return given * self.scale

    def squares(self, centres):
        return distances(self.X, centres)

    def labels(self, centres):
        return self.squares(centres).argmin(1)

    def error(self, weight, label, before, after):
        return mean_error(self.X, weight, label, before, after)

    def told(self, objective):
        return objective / self.scale / self.scale


class Cosine:
    options = ["--metric", "cosine"]

    def __init__(self, X):
        self.X = unit(X)
        self.rounding = X.shape[1] / 8 + 16

    def centres(self, given):
        rounded = np.abs(lengths(given) - 1) <= self.rounding * 2.0**-52
        return np.where(rounded[:, None], given, unit(given))

    def squares(self, centres):
        square = distances(self.X, centres)
        return np.where(square > (self.rounding * 2.0**-53)**2, square, 0)

    def labels(self, centres):
        return products(self.X, centres).argmax(1)

    def error(self, weight, label, before, after):
        """Beside exact sums brought to length 1; what cancels out leaves less digits."""
        worst = 0
        for j, centre in enumerate(after):
            x = self.X[label == j] * weight[label == j, None]
            total = np.array([math.fsum(column) for column in x.T.tolist()])
            size, length = math.fsum(weight[label == j]), math.sqrt(math.fsum((total * total).tolist()))
            if length > 1e-13 * size:
                worst = max(worst, np.abs(centre - total / length).max() * length / size)
            elif size == 0:
                worst = max(worst, np.abs(centre - before[j]).max())
        return worst

    def told(self, objective):
        return objective / 2


def follow(name, X, path, start, steps, empty="farthest", weight=None, weight_path=None, metric=Euclidean):
    """One update at a time from a given start, each held against the definition; then all of them in one run."""
    seen = metric(X)
    centres = np.asarray(start, dtype=float)
    w = np.ones(len(X)) if weight is None else weight.astype(float)
    options = ["--tolerance", 0, "--empty", empty, *metric.options]
    options += ["--weights", weight_path] if weight_path else []
    first = save(centres)
    for step in range(steps):
        outcome = Outcome(path, ["--init", save(centres), "--iterations", 1, *options])
        if not check(f"{name}: step {step} runs", outcome.code == 0, outcome.error):
            return
        before, after = seen.centres(centres), seen.centres(outcome.centres)
        label = seen.labels(before)
        if empty == "farthest":
            label = relocate(seen.squares(before), label, w, len(centres))
        error = seen.error(w, label, before, after) if empty != "split" else 0
        check(f"{name}: centres of step {step}", error <= 1e-12, f"off by {error:.3g}")
        label = seen.labels(after)
        wrong = np.flatnonzero(label != outcome.labels)
        check(f"{name}: labels of step {step}", len(wrong) == 0, f"{len(wrong)} wrong, first at row {wrong[:1]}")
        own = seen.squares(after)[np.arange(len(label)), label]
        exact = seen.told(math.fsum((own * w).tolist()))
        told = outcome.about["objective"]
        told = math.inf if told is None else told  # JSON has no infinity
        close = math.isclose(told, exact, rel_tol=1e-9, abs_tol=sys.float_info.min)
        check(f"{name}: objective of step {step}", close, f"{told!r}, not {exact!r}")
        centres = outcome.centres
    whole = Outcome(path, ["--init", first, "--iterations", steps, *options])
    check(f"{name}: {steps} steps at once", whole.code == 0 and whole.bytes[:2] == outcome.bytes[:2],
          outcome.difference(whole))


# ---- the same everywhere ---------------------------------------------------------------------------------------------

kernels = kernels_here()
THREADS = [["--threads", threads] for threads in [1, 2, 3, 7]]
GRAINS = [[], *(["--grain", grain] for grain in [1, 7, 100, 5000])]
SOMEWHERE = [["--kernel", kernels[0], "--threads", 1], ["--kernel", kernels[len(kernels) > 1], "--threads", 1],
             ["--grain", 7, "--threads", 3], ["--kernel", kernels[-1], "--threads", 1, "--grain", 9]]


def everywhere(name):
    """Each kernel, number of threads and grain once; which of them meet depends on the name of the case, so that all
    pairs are met in some."""
    turn = zlib.crc32(name.encode())
    chosen = [["--kernel", kernel] for kernel in kernels] + [[]] * (len(GRAINS) - len(kernels))
    return [[*kernel, *THREADS[(i + turn) % 4], *GRAINS[(i + turn // 4) % 5]] for i, kernel in enumerate(chosen)]


def same(name, path, options, places=None, fails=False):
    """Equal files, and equal iterations and objective, wherever it runs; and twice in the same place, where all places
    are tried."""
    expected = Outcome(path, options)
    check(f"{name}: {'is refused' if fails else 'runs'}", (expected.code == 1) == fails, expected.error)
    for place in places or [[], *everywhere(name)]:
        outcome = Outcome(path, [*options, *place])
        check(f"{name}: {place}", outcome.identity() == expected.identity(), outcome.difference(expected))
    return expected


# ---- data ------------------------------------------------------------------------------------------------------------


def generator(seed):
    return np.random.default_rng(seed)


def blobs(rows, columns, centres, seed=0, spread=0.5, dtype="f4"):
    g = generator(seed)
    return (g.normal(size=(centres, columns))[g.integers(0, centres, rows)] * 2
            + g.normal(size=(rows, columns)) * spread).astype(dtype)


def rows_of(X, k, seed=0):
    return X[generator(seed).choice(len(X), k, replace=False)].astype(float)


CASES = []


def case(function):
    CASES.append(function)
    return function


def both(name, X, k, steps=3, start=None, places=None, **more):
    """The two kinds of test on one data set, from the same start."""
    path = save(X)
    start = rows_of(X, k) if start is None else start
    follow(name, X, path, start, steps, **more)
    options = ["--init", save(start), "--iterations", 12, "--tolerance", 0, *more.get("metric", Euclidean).options]
    options += ["--empty", more["empty"]] if "empty" in more else []
    options += ["--weights", more["weight_path"]] if "weight_path" in more else []
    return same(name, path, options, places)


@case
def test_shapes():
    for columns in [1, 2, 3, 8, 15, 16, 17, 31, 32, 33, 64, 127, 128, 129, 260]:
        both(f"blobs of {columns} columns", blobs(400, columns, 6, columns), 7, 2, places=SOMEWHERE)


@case
def test_many_centres():
    both("uniform, 150 centres", generator(1).random((900, 64), dtype=np.float32), 150)
    both("uniform, 300 centres", generator(2).random((700, 24), dtype=np.float32), 300)


@case
def test_many_columns():
    both("3000 columns", blobs(150, 3000, 5, 3, 3), 9, 2)
    both("3000 columns of bytes", generator(4).integers(0, 256, (120, 3000), dtype=np.uint8), 12, 2, places=SOMEWHERE)


@case
def test_more_rows():
    both("12,000 rows", blobs(12000, 20, 40, 5, 1.0), 40, 2)
    both("12,000 rows of bytes",
         np.clip(blobs(12000, 50, 30, 5) * 30 + 128, 0, 255).astype("u1"), 33, 2)


@case
def test_ties():
    grid = np.array(list(itertools.product(range(6), range(6), range(6))), "f4")
    both("grid", np.repeat(grid, 3, axis=0), 13)
    both("grid, centres between", np.repeat(grid, 2, axis=0), 8,
         start=np.array(list(itertools.product([1.5, 3.5], repeat=3))))
    both("grid, equal centres", grid, 8, start=np.repeat(grid[[0, 100, 43, 215]], 2, axis=0).astype(float))
    both("grid, all centres equal", grid, 5, start=np.repeat(grid[[100]], 5, axis=0).astype(float))
    few = generator(7).integers(0, 3, (50, 40))
    both("duplicated rows", few[generator(8).integers(0, 50, 1500)].astype("u1"), 20)
    both("duplicated rows, duplicated centres", np.repeat(few, 10, axis=0).astype("f4"), 40,
         start=np.repeat(few[:20], 2, axis=0).astype(float))
    both("one and zero", generator(9).integers(0, 2, (800, 64)).astype("?"), 12)


@case
def test_near_ties():
    X = generator(10).normal(size=(500, 48)).astype("f4")
    for apart in [1e-5, 1e-7, 1e-9, 1e-12, 1e-15]:
        start = np.repeat(rows_of(X, 4), 6, axis=0)
        start *= 1 + apart * generator(11).normal(size=start.shape)
        both(f"centres {apart} apart", X, 24, 2, start=start, places=SOMEWHERE)
    start = rows_of(X, 8)
    start[1::2] = np.nextafter(start[::2], np.inf)
    both("centres one bit apart", X.astype(float), 8, 2, start=start)
    middle = np.vstack([(start[a] + start[b]) / 2 for a, b in itertools.combinations(range(8), 2)])
    both("rows halfway between centres", np.vstack([middle] * 5), 8, 2, start=start, places=SOMEWHERE)


@case
def test_small():
    both("one row", np.array([[1.5, -2]], "f4"), 1)
    both("one value", np.array([[7]], "i8"), 1)
    both("one column", blobs(300, 1, 4, 12), 5)
    both("one column of integers", generator(13).integers(0, 9, (300, 1)), 6, start=np.arange(6)[:, None])
    both("K=1", blobs(500, 9, 3, 14), 1)
    X = blobs(60, 5, 3, 15)
    both("K=rows", X, 60, start=X.astype(float))
    for init in ["kmeans++", "parallel", "random"]:
        outcome = same(f"K=rows by {init}", save(X), ["-k", 60, "--init", init], SOMEWHERE)
        check(f"K=rows by {init} leaves no distance", outcome.code == 0 and outcome.about["objective"] == 0)
    X = np.repeat(X[:20], 3, axis=0)
    for init in ["kmeans++", "parallel"]:
        same(f"K > distinct rows by {init}", save(X), ["-k", 21, "--init", init], SOMEWHERE, fails=True)
        outcome = same(f"K = distinct rows by {init}", save(X), ["-k", 20, "--init", init], SOMEWHERE)
        check(f"K = distinct rows by {init} leaves no distance", outcome.code == 0 and outcome.about["objective"] == 0)


@case
def test_constant():
    X = blobs(300, 12, 4, 16)
    X[:, [0, 5, 11]] = [3.25, -1e6, 0]
    both("constant columns", X, 5)
    both("all columns constant", np.full((50, 4), 0.1, "f4"), 1)
    both("all columns constant, float64", np.full((50, 4), 0.1), 1)
    same("all columns constant, two clusters", save(np.full((50, 4), 0.1)), ["-k", 2, "--init", "kmeans++"], SOMEWHERE,
         fails=True)


@case
def test_scales():
    X = blobs(400, 20, 6, 17, dtype="f8")
    both("far from zero", X * 1e-3 + 1e6, 7)
    both("far from zero, float32", (X + 1e6).astype("f4"), 7)
    both("columns of many sizes", X * 10.0 ** np.arange(-10, 10), 7)
    both("integers of 60 bits", (X * 2.0**58).astype("i8"), 7, places=SOMEWHERE)
    both("unsigned integers of 64 bits", ((X - X.min()) * 2.0**58).astype("u8"), 7, places=SOMEWHERE)


@case
def test_outlier():
    for dtype, far in [("f4", 1e30), ("f8", 1e30), ("f4", -1e12), ("f8", 1e15), ("f8", 1e100), ("f4", 1e6)]:
        X = blobs(400, 10, 5, 18, dtype=dtype)
        X[17, 3] = far
        both(f"outlier {far} in {dtype}", X, 6)


@case
def test_limits():
    X = generator(19).uniform(-1, 1, (300, 11))
    for dtype, size in [("f4", 3e38), ("f4", 1e-37), ("f4", 1e-40), ("f4", 1e19), ("f4", 1e-20), ("f8", 1e139),
                        ("f8", 1e-300), ("f8", 1e-310), ("f8", 1e77), ("f8", 1e-162), ("f8", 1e39),
                        ("f8", 1e-45)]:
        both(f"{dtype} of size {size}", (X * size).astype(dtype), 6, 2, places=SOMEWHERE)
    tiny = np.round(X * 10) * 5e-324  # means are rounded when they are written, so nothing but equality holds
    same("the least numbers there are", save(tiny), ["--init", save(rows_of(tiny, 6))])
    X[:, 3] *= 1e139
    X[:, 4] *= 1e-139
    both("1e139 and 1e-139 side by side", X, 6, 2, places=SOMEWHERE)
    both("1e38 and 1e-44 side by side", (X[:, :8] * np.float64([1e38, 1, 1, 0, 0, 1e-44, 1e-30, 1e30])).astype("f4"), 6,
         2)


@case
def test_types():
    """The same numbers in every type that holds them: the same labels and centres."""
    whole = np.clip(blobs(500, 30, 8, 20, dtype="f8") * 12 + 60, 0, 127).round()
    start = save(rows_of(whole, 9))
    for options in [["--init", start],
                    *(["-k", 9, "--init", init, "--seed", 3] for init in ["kmeans++", "parallel", "random"])]:
        expected = None
        for dtype in ["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", ">f4", ">i2"]:
            outcome = same(f"{dtype} {options[-1]}", save(whole.astype(dtype)), options, SOMEWHERE[:1])
            expected = expected or outcome
            check(f"u1 and {dtype} {options[-1]}", outcome.bytes[:2] == expected.bytes[:2],
                  outcome.difference(expected))
    fortran = Outcome(save(np.asfortranarray(whole)), ["--init", start])
    check("Fortran order", fortran.bytes[:2] == Outcome(save(whole), ["--init", start]).bytes[:2])


@case
def test_seeding():
    data = {
        "blobs": (blobs(1500, 16, 10, 21), 10), "uniform": (generator(22).random((800, 64), dtype=np.float32), 90),
        "bytes": (generator(23).integers(0, 256, (600, 100),
                                         dtype=np.uint8), 60), "plane": (blobs(3000, 2, 15, 24, 0.1), 60)
    }
    for (name, (X, k)), init in itertools.product(data.items(), ["kmeans++", "parallel", "random"]):
        path = save(X)
        seeded = same(f"{name} by {init}", path, ["-k", k, "--init", init, "--iterations", 0, "--seed", 5])
        known = set(map(bytes, X.astype(float)))
        check(f"{name} by {init}: centres are rows", init == "parallel" or
              all(bytes(c) in known for c in seeded.centres))
        check(f"{name} by {init}: centres are distinct", len(set(map(bytes, seeded.centres))) == k)
        wrong = (distances(X.astype(float), seeded.centres).argmin(1) != seeded.labels).sum()
        check(f"{name} by {init}: labels", wrong == 0, f"{wrong} wrong")
        whole = same(f"{name} by {init}, clustered", path, ["-k", k, "--init", init, "--seed", 5], SOMEWHERE)
        given = Outcome(path, ["--init", save(seeded.centres)])
        check(f"{name} by {init}: seeding, then the rest", init == "parallel" or given.bytes[:2] == whole.bytes[:2],
              given.difference(whole))


@case
def test_runs():
    X = blobs(700, 6, 12, 25, 0.2)
    for init in ["kmeans++", "random", "parallel"]:
        best = same(f"the best of four by {init}", save(X), ["-k", 12, "--init", init, "--runs", 4])
        one = Outcome(save(X), ["-k", 12, "--init", init])
        check(f"the best of four is no worse by {init}", best.about["objective"] <= one.about["objective"])
        wrong = (distances(X.astype(float), best.centres).argmin(1) != best.labels).sum()
        check(f"the best of four by {init}: labels", wrong == 0, f"{wrong} wrong")


@case
def test_empty():
    X = blobs(500, 8, 5, 26)
    start = np.vstack([rows_of(X, 6), np.full((1, 8), 1e3), np.full((3, 8), -50.0), np.full((1, 8), 1e30)])
    for empty in ["farthest", "keep", "split"]:
        outcome = both(f"empty clusters, {empty}", X, 11, 4, start=start, empty=empty)
        left = (np.bincount(outcome.labels, minlength=11) == 0).sum() if outcome.code == 0 else -1
        check(f"empty clusters, {empty}: reported", outcome.code == 0 and outcome.about["empty_clusters"] == left)
        check(f"empty clusters, {empty}: left", left == 5 if empty == "keep" else left == 0, f"{left}")
    both("many empty clusters", X, 60, 3, start=np.vstack([rows_of(X, 10), np.full((50, 8), 99.0)]))
    both("empty clusters among bytes", (np.clip(X * 20 + 99, 0, 255)).astype("u1"), 20, 3,
         start=np.vstack([np.full((18, 8), 300.0), rows_of(X, 2)]))
    spots = np.repeat(np.arange(5.0)[:, None], 4, axis=0)
    both("more clusters than distinct rows", spots, 7, 3, start=np.arange(7.0)[:, None] * 10)


@case
def test_weights():
    X = blobs(600, 10, 6, 27)
    g = generator(28)
    start = rows_of(X, 7)
    for name, weight in {
            "whole": g.integers(0, 4, 600), "real": g.random(600), "some zero": g.random(600) * (g.random(600) < 0.5),
            "uneven": 10.0**g.uniform(-4, 4, 600), "large": g.random(600) * 1e30, "small": g.random(600) * 1e-30,
            "float32": g.random(600).astype("f4")
    }.items():
        both(f"weights: {name}", X, 7, start=start, weight=weight, weight_path=save(weight))
    weight = (np.arange(600) < 300).astype(float)
    start = np.vstack([rows_of(X[:300], 4), X[[450]] + 1e4, X[[451]] - 1e4])
    X[450:453] += 1e4
    for empty in ["farthest", "keep"]:
        both(f"a cluster of weight zero, {empty}", X, 6, start=start, weight=weight, weight_path=save(weight),
             empty=empty)
    start = np.vstack([rows_of(X, 12), np.full((18, 10), 70.0)])
    for seed in range(4):
        weight = (generator(seed).random(600) < 0.15) * 1.5
        both(f"empty clusters and weights of zero {seed}", X, 30, start=start, weight=weight, weight_path=save(weight))
    weights = save(g.integers(0, 5, 600))
    for init in ["kmeans++", "parallel", "random"]:
        same(f"weights and {init}", save(X), ["-k", 8, "--init", init, "--weights", weights, "--runs", 2])


@case
def test_far_centres():
    X = blobs(300, 9, 4, 29)
    for far in [1e10, 1e30, 1e100, 1e150]:
        start = np.vstack([rows_of(X, 3), rows_of(X, 2) * far])
        both(f"centres at {far}", X, 5, 2, start=start, empty="keep", places=SOMEWHERE)


@case
def test_predict():
    X = blobs(900, 33, 8, 30)
    C = np.vstack([rows_of(X, 15), rows_of(X, 5) * 1.0001])
    path, centres = save(X), save(C)
    square = distances(X.astype(float), C)
    expected = None
    for place in [[], *everywhere("predict"), *SOMEWHERE]:
        labels, far = folder / f"{next(counter)}.npy", folder / f"{next(counter)}.npy"
        result = shoal("predict", centres, path, "--labels", labels, "--distances", far, "--quiet", *place)
        if check(f"predict {place} runs", result.returncode == 0, result.stderr.decode()):
            found = labels.read_bytes(), far.read_bytes()
            expected = expected or found
            check(f"predict {place}", found == expected)
    check("predict: labels", (np.load(labels) == square.argmin(1)).all())
    check("predict: distances", (np.load(far) == np.sqrt(square.min(1))).all())


# ---- cosine ----------------------------------------------------------------------------------------------------------


def by_cosine(name, X, k, steps=2, start=None, places=None, **more):
    return both(f"cosine, {name}", X, k, steps, start, places, metric=Cosine, **more)


@case
def test_cosine_shapes():
    for columns in [1, 2, 3, 8, 17, 32, 33, 64, 129, 260]:
        by_cosine(f"blobs of {columns} columns", blobs(300, columns, 6, columns), 7, places=SOMEWHERE)
    by_cosine("uniform, 150 centres", generator(1).random((600, 64), dtype=np.float32), 150)
    by_cosine("3000 columns of bytes", generator(4).integers(0, 256, (90, 3000), dtype=np.uint8), 30, places=SOMEWHERE)
    X = np.clip(blobs(4000, 50, 30, 5) * 30 + 128, 1, 255).astype("u1")
    by_cosine("4,000 rows of bytes", X, 33)
    labels = {dtype: Outcome(save(X[:500].astype(dtype)), ["-k", 9, "--metric", "cosine"]).bytes[:2]
              for dtype in ["u1", "i2", "f4", "i8", "f8"]}
    check("cosine: the same numbers in any type", all(files == labels["u1"] for files in labels.values()))


@case
def test_cosine_ties():
    grid = np.array(list(itertools.product(range(5), repeat=3)), "f4")[1:]
    by_cosine("grid", grid, 13)
    corners = np.array(list(itertools.product([0, 1], repeat=3)), float)[1:]
    by_cosine("grid, symmetric centres", grid, 7, start=corners)
    by_cosine("grid, equal centres", grid, 8, start=np.repeat(corners[:4], 2, axis=0))
    by_cosine("grid, centres of one direction", grid, 6, start=np.outer(range(1, 7), [1, 2, 3]))
    X = generator(10).normal(size=(300, 48))
    for apart in [1e-7, 1e-12, 1e-15]:
        start = np.repeat(rows_of(X, 4), 5, axis=0)
        by_cosine(f"centres {apart} apart", X, 20,
                  start=start * (1 + apart * generator(11).normal(size=start.shape)), places=SOMEWHERE)
    by_cosine("rows of opposite directions", np.vstack([X[:20], -X[:20]]), 2, start=X[[0, 1]])


@case
def test_cosine_lengths():
    """A row's length is of no account, whatever it is."""
    X = generator(19).uniform(-1, 1, (200, 11))
    sizes = 2.0 ** generator(20).integers(-1000, 1000, (200, 1))
    start, far = rows_of(X, 6), ["--metric", "cosine", "--init"]
    expected = Outcome(save(X), [*far, save(start)])
    check("cosine: rows of any length", Outcome(save(X * sizes), [*far, save(start)]).bytes[:2] == expected.bytes[:2])
    small = Outcome(save(X), [*far, save(start * 2.0**-300)])
    check("cosine: centres of any length", small.bytes[:2] == expected.bytes[:2])
    for dtype, size in [("f4", 3e38), ("f4", 1e-40), ("f8", 1e300), ("f8", 1e-300), ("f8", 1e-310), ("f8", 1e-200)]:
        by_cosine(f"{dtype} of size {size}", (X * size).astype(dtype), 6, places=SOMEWHERE)
    X[:, 3] *= 1e250
    X[:, 4] *= 1e-250
    by_cosine("1e250 and 1e-250 side by side", X, 6, places=SOMEWHERE)
    by_cosine("columns of many sizes", X * 10.0 ** np.arange(-5, 6), 6)


@case
def test_cosine_choices():
    X = np.abs(blobs(700, 40, 10, 21))
    path, metric = save(X), ["--metric", "cosine"]
    for init, k in itertools.product(["kmeans++", "parallel", "random"], [10, 60]):
        seeded = same(f"cosine, {init}, {k}", path, ["-k", k, "--init", init, "--iterations", 0, *metric], SOMEWHERE)
        wrong = (products(unit(X), seeded.centres).argmax(1) != seeded.labels).sum()
        check(f"cosine, {init}, {k}: labels", wrong == 0, f"{wrong} wrong")
        check(f"cosine, {init}, {k}: distinct", len(set(map(bytes, seeded.centres))) == k)
    same("cosine, the best of three", path, ["-k", 12, "--runs", 3, *metric])
    copies = np.outer(range(1, 8), [1, 2, 3, 4, 5]).astype(float)
    for init in ["kmeans++", "parallel"]:
        options = ["-k", 2, "--init", init, *metric]
        same(f"cosine, one direction by {init}", save(copies), options, SOMEWHERE, fails=True)
    start = np.vstack([rows_of(X, 6), np.repeat(-rows_of(X, 1), 5, axis=0)])
    for empty in ["farthest", "keep", "split"]:
        by_cosine(f"empty clusters, {empty}", X, 11, 4, start=start, empty=empty)
    weight = generator(28).random(700) * (generator(29).random(700) < 0.7)
    by_cosine("weights", X, 7, weight=weight, weight_path=save(weight))
    standard = same("cosine, standardised", path, ["-k", 5, "--standardise", *metric], SOMEWHERE)
    again = (X.astype(float) - X.astype(float).mean(0)) / X.astype(float).std(0)
    known = Outcome(save(again.astype("f4")), ["-k", 5, *metric])
    agree = (known.labels == standard.labels).mean()
    check("cosine, standardised: as rows that were", agree > 0.95, f"{agree} agree")


@case
def test_cosine_predict():
    X = blobs(900, 33, 8, 30)
    model, labels, far = folder / "cosine.safetensors", folder / "cosine-l.npy", folder / "cosine-d.npy"
    trained = shoal("kmeans", save(X), "-k", 20, "--metric", "cosine", "--model", model, "--labels", labels, "--json")
    learnt, told, expected = np.load(labels), json.loads(trained.stdout), None
    for place in [[], *everywhere("cosine predict"), *SOMEWHERE]:
        result = shoal("predict", model, save(X), "--labels", labels, "--distances", far, "--json", *place)
        if check(f"cosine predict {place} runs", result.returncode == 0, result.stderr.decode()):
            found = labels.read_bytes(), far.read_bytes(), json.loads(result.stdout)["objective"]
            expected = expected or found
            check(f"cosine predict {place}", found == expected)
    check("cosine predict: labels", (np.load(labels) == learnt).all())
    check("cosine predict: objective", expected[2] == told["objective"])
    centres = folder / "cosine-c.npy"
    shoal("kmeans", save(X), "--init", model, "--metric", "cosine", "--iterations", 0, "--centres", centres)
    U, C = unit(X), np.load(centres)
    apart = np.maximum(1 - (U @ C.T).max(1), 0)
    check("cosine predict: distances", np.abs(np.load(far) - apart).max() < 1e-15 * 40)
    check("cosine predict: labels of numpy's own product", (np.load(labels) == (U @ C.T).argmax(1)).all())


def random_data(g):
    rows, columns = int(g.integers(1, 400)), int(g.choice([1, 2, 3, 7, 8, 16, 20, 33, 70, 140]))
    kind = g.integers(0, 6)
    if kind == 0:
        return g.integers(0, g.choice([2, 4, 256]), (rows, columns)).astype(g.choice(["u1", "u2", "f4", "i8"]))
    X = g.normal(size=(rows, columns))
    if kind == 1:
        X = X[g.integers(0, rows, rows)]  # copies
    elif kind == 2:
        X = X * 10.0 ** g.uniform(-12, 12, columns)
    elif kind == 3:
        X = X.round(1) + g.choice([0, 1e4])
    elif kind == 4:
        X[g.integers(0, rows), g.integers(0, columns)] = 10.0 ** g.uniform(3, 20)
    else:
        X = X * 10.0 ** g.uniform(-35, 35)
    return X.astype(g.choice(["f4", "f8"]))


def random_case(seed):
    g = generator(1000 + seed)
    X = random_data(g)
    metric = Cosine if seed % 4 == 3 else Euclidean
    if metric is Cosine:
        X[(X == 0).all(1)] = 1
    k = int(min(len(X), g.choice([1, 2, 5, 17, 40, 120])))
    start = rows_of(X, k, seed)
    if g.random() < 0.3:
        start = start[g.integers(0, k, k)]
    if g.random() < 0.3:
        start += np.abs(start).max() * g.normal(size=start.shape) * 10.0 ** g.uniform(-16, 0)
    more = {"empty": str(g.choice(["farthest", "keep"])), "metric": metric}
    if g.random() < 0.3:
        weight = g.choice([g.integers(0, 3, len(X)).astype(float), g.random(len(X))])
        if weight.sum() > 0:
            more.update(weight=weight, weight_path=save(weight))
    weights = "weights" if "weight" in more else "no weights"
    words = [metric.__name__, X.dtype, X.shape, f"K={k}", more["empty"], weights]
    name = f"random case {seed} ({', '.join(map(str, words))})"
    both(name, X, k, 2, start=start, places=SOMEWHERE, **more)


def guarded(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:  # one broken case must not hide the others
        check(f"{function.__name__} {arguments}", False, repr(error))


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for function in CASES:
        pool.submit(guarded, function)
    for seed in range(random_cases):
        pool.submit(guarded, random_case, seed)
shutil.rmtree(folder)
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
