#!/usr/bin/python3
# Mini-batch k-means: the centres that numpy finds from the definition, bit for bit; the same bytes on any number of
# threads, workers and ranks, with every kernel set, and after a stop; what is refused; and as good as scikit-learn's.
#   test_kmeans_batch.py PATH_TO_shoal
# Prints one line for each failure and "N passed, M failed" at the end.
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import nobody  # so that no run is in the history of whoever runs this

os.environ.setdefault("OMP_NUM_THREADS", "1")  # other tests run beside it
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
try:
    import numpy as np
except ImportError as error:
    print(f"{error}: skipped; Debian has python3-numpy")
    sys.exit(77)

import batch_rows
import mpi

program = os.path.abspath(sys.argv[1])
shared = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data"
folder = pathlib.Path(tempfile.mkdtemp(prefix="shoal-batch-"))
os.chdir(folder)
FOR_BATCHES, TO_REFILL = 21, 2  # base/random.h, batch.h
passed = failed = 0
for lacking in filter(None, map(mpi.lacks, ("openmpi", "mpich"))):
    print(f"SKIPPED {lacking}", flush=True)


def check(what, condition, more=""):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {what} {more}", flush=True)
    return condition


def shoal(*words):
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=300)


class Outcome:
    """What a run wrote and said."""

    def __init__(self, *words):
        result = shoal("kmeans", *words, "--json", "--centres", "c.npy", "--labels", "l.npy")
        self.code, self.error = result.returncode, result.stderr
        if check(f"{words} runs", self.code == 0, self.error):
            self.about = json.loads(result.stdout)
            self.bytes = [pathlib.Path(name).read_bytes() for name in ("c.npy", "l.npy")]
            self.centres, self.labels = np.load("c.npy"), np.load("l.npy")


def save(name, array):
    np.save(name, array)
    return name


def blobs(rows, columns, centres, seed=0):
    """Whole numbers, so that float64 sums them exactly."""
    g = np.random.default_rng(seed)
    middle = g.integers(-400, 400, size=(centres, columns))
    return np.rint(middle[g.integers(0, centres, rows)] + g.normal(size=(rows, columns)) * 40)


# ---- the definition, with numpy --------------------------------------------------------------------------------------


def random64(seed, index, draw):
    low, high = batch_rows.philox(seed, FOR_BATCHES, index, draw)[:2]
    return high << 32 | low


class Reference:
    """docs/learn/kmeans.md, "Batches", from given centres."""

    def __init__(self, X, start, shape, weights=None, seed=0):
        self.X, self.shape, self.seed = X.astype(float), shape, seed
        self.weights = np.ones(len(X)) if weights is None else weights
        self.origin = (self.X.min(0) / 2 + self.X.max(0) / 2).astype(np.float32).astype(float)
        self.centres, self.seen = start.astype(float), np.zeros(len(start))
        self.batches = self.unchecked = self.unimproved = 0
        self.smoothed = self.least = None

    def distances(self, rows):
        return ((self.X[rows][:, None] - self.centres[None])**2).sum(2)

    def step(self, rows):
        """One batch; the mean objective of its rows under the centres before."""
        apart, weight = self.distances(rows), self.weights[rows]
        label = apart.argmin(1)
        objective = (apart.min(1) * weight).sum()
        for j in range(len(self.centres)):
            mine = rows[label == j]
            heavy = self.weights[mine].sum()
            if heavy > 0:
                total = ((self.X[mine] - self.origin) * self.weights[mine][:, None]).sum(0)
                all_so_far = self.seen[j] + heavy
                self.centres[j] = self.origin + (self.seen[j] * (self.centres[j] - self.origin) + total) / all_so_far
                self.seen[j] = all_so_far
        return objective / weight.sum() if weight.sum() > 0 else 0.0

    def improves(self, objective, rows, patience):
        share = min(2 * rows / (len(self.X) + 1), 1)
        if self.batches == 1 or rows == 0:
            return True
        self.smoothed = objective if self.smoothed is None else self.smoothed * (1 - share) + objective * share
        if self.least is None or self.smoothed < self.least:
            self.least, self.unimproved = self.smoothed, 0
        else:
            self.unimproved += 1
        return patience == 0 or self.unimproved < patience

    def refill(self, ratio, rows):
        hungry = min(int((self.seen < ratio * self.seen.max()).sum()), rows // 2)
        if hungry == 0:
            return
        key = random64(self.seed, self.batches, TO_REFILL)
        drawn = np.concatenate(self.shape.at(self.shape.orders_of(key), 0, hungry + len(self.shape.strata)))
        drawn = sorted((random64(key, int(row), 0), row) for row in drawn if self.weights[row] > 0)[-hungry:]
        order = np.lexsort((np.arange(len(self.seen)), self.seen))
        least = self.seen[order[len(drawn)]]
        for (_, row), j in zip(drawn, order):
            self.centres[j], self.seen[j] = self.X[row], least

    def run(self, batch, passes, patience=0, ratio=0.0, tolerance=0.0):
        variance = self.X.var(0).mean()
        for number in range(passes):
            moved = 0.0
            orders = list(self.shape.batches(self.seed, number, min(batch, len(self.X))))
            for parts in orders:
                rows, before, seen = np.concatenate(parts), self.centres.copy(), self.seen.copy()
                weighty = int((self.weights[rows] > 0).sum())
                objective = self.step(rows)
                self.batches += 1
                moved += ((self.centres - before)**2).sum()
                if not self.improves(objective, weighty, patience):
                    return True
                if parts is orders[-1] and tolerance > 0 and len(orders) * moved <= tolerance * variance:
                    return True
                self.unchecked += weighty
                if (seen == 0).any() or self.unchecked >= 10 * len(self.centres):
                    self.unchecked = 0
                    if (number, parts is orders[-1]) != (passes - 1, True):
                        self.refill(ratio, weighty)
        return False


def is_the_definition(name, X, k, batch, passes, grain=100, weights=None, seed=0, start=None, **how):
    start = X[np.random.default_rng(9).choice(len(X), k, replace=False)] if start is None else start
    strata = min(max(batch // 64, 16), 256)
    mine = Reference(X, start, batch_rows.Shape(len(X), grain, strata), weights, seed)
    ended = mine.run(batch, passes, **how)
    words = [save("x.npy", X), "--init", save("start.npy", start.astype(float)), "--batch", batch, "--iterations",
             passes, "--grain", grain, "--seed", seed, "--max-no-improvement", how.get("patience", 0),
             "--reassignment-ratio", how.get("ratio", 0), "--tolerance", how.get("tolerance", 0)]
    if weights is not None:
        words += ["--weights", save("w.npy", weights)]
    found = Outcome(*words)
    check(f"{name}: batches", found.about["batches"] == mine.batches, f"{found.about['batches']}, not {mine.batches}")
    check(f"{name}: converged", found.about["converged"] == ended, str(found.about))
    check(f"{name}: centres", (found.centres == mine.centres).all(),
          f"{np.abs(found.centres - mine.centres).max()} apart")
    check(f"{name}: labels", (found.labels == mine.distances(np.arange(len(X))).argmin(1)).all())


def centres_are_those_of_the_definition():
    g = np.random.default_rng(4)
    X = blobs(1501, 5, 9)
    is_the_definition("a pass", X, 9, 100, 1)
    is_the_definition("a seed, two passes", X, 9, 64, 2, seed=5)
    is_the_definition("many columns, bytes", (blobs(700, 70, 6) / 4 + 128).clip(0, 255).astype(np.uint8), 40, 90, 2)
    odd = (blobs(900, 37, 6) / 4 + 128).clip(0, 255).astype(np.uint8)
    is_the_definition("an odd number of columns, bytes", odd, 11, 90, 2)
    is_the_definition("bytes with weights", odd, 11, 90, 2, weights=g.integers(0, 4, len(odd)).astype(float))
    is_the_definition("bytes, starved clusters", odd, 40, 100, 3, ratio=0.1, start=np.repeat(odd[:2], 20, axis=0))
    is_the_definition("weights", X, 9, 100, 2, weights=g.integers(0, 4, len(X)).astype(float))
    is_the_definition("stops by itself", X, 9, 128, 60, patience=10)
    is_the_definition("stops when it is still", X, 9, 400, 60, tolerance=2e-3)
    is_the_definition("starved clusters", X, 40, 100, 3, ratio=0.1, start=np.repeat(X[:2], 20, axis=0))
    is_the_definition("starved, with weights", X, 30, 64, 4, ratio=0.3, patience=15,
                      weights=(np.arange(len(X)) % 3).astype(float))
    is_the_definition("hardly any rows for them", X, 200, 16, 1, ratio=0.5, grain=37)
    is_the_definition("larger than the data", X[:300], 5, 1024, 4)
    is_the_definition("one row at a time", X[:90], 4, 1, 2, grain=7)
    is_the_definition("one row", X[:1], 1, 10, 3)
    is_the_definition("one stratum", X[:90], 4, 20, 3, grain=1000, ratio=0.2)


def a_model_goes_on():
    """Centres of a model are means of rows that they have seen before, which count on."""
    first, then = blobs(900, 5, 9), blobs(700, 5, 9, seed=3)
    mine = Reference(first, first[:9], batch_rows.Shape(900, 100, 16))
    mine.run(64, 1)
    Outcome(save("x.npy", first), "--init", save("start.npy", first[:9]), "--batch", 64, "--iterations", 1, "--grain",
            100, "--max-no-improvement", 0, "--reassignment-ratio", 0, "--tolerance", 0, "--model", "m.safetensors")
    after = Reference(then, mine.centres, batch_rows.Shape(700, 100, 16))
    after.seen = mine.seen
    after.run(64, 2)
    found = Outcome(save("y.npy", then), "--init", "m.safetensors", "--batch", 64, "--iterations", 2, "--grain", 100,
                    "--max-no-improvement", 0, "--reassignment-ratio", 0, "--tolerance", 0)
    check("a model goes on", (found.centres == after.centres).all(), f"{np.abs(found.centres - after.centres).max()}")
    few = Outcome(save("few.npy", then[:4]), "--init", "m.safetensors", "--batch", 9, "--iterations", 1)
    check("fewer rows than centres", few.centres.shape == (9, 5))


# ---- the same bytes everywhere ---------------------------------------------------------------------------------------


def everywhere(name, *words, ranks=((0, 3),)):
    """`ranks`: numbers of a kind of MPI, of those that are here, and how many ranks of it."""
    alone = Outcome(*words, "--threads", 1)
    places = [["--threads", 2], ["--threads", 5], ["--kernel", "portable", "--threads", 2], ["--workers", "local:3"]]
    for more in places:
        other = Outcome(*words, *more)
        check(f"{name}: {more}", other.bytes == alone.bytes and
              all(other.about[key] == alone.about[key] for key in ("objective", "batches", "converged")))
    if mpi.KINDS:
        work = mpi.Work("kmeans", *words, files={"--centres": "c.npy", "--labels": "l.npy"})
        for kind, count in ranks:
            work.agrees(mpi.KINDS[kind % len(mpi.KINDS)], count)
    return alone


def nothing_changes_a_bit():
    X = np.random.default_rng(2).normal(size=(2000, 9)) + np.arange(2000)[:, None] % 11 * 3
    w = save("w.npy", np.random.default_rng(3).integers(0, 5, 2000) / 4)
    f8, f4 = save("f8.npy", X), save("f4.npy", X.astype(np.float32))
    u1 = save("u1.npy", (np.tile(X, (1, 5)) * 3 + 60).clip(0, 255).astype(np.uint8))
    everywhere("float64", f8, "-k", 11, "--batch", 150, "--grain", 70)
    everywhere("float32, weights, three runs", f4, "-k", 30, "--batch", 100, "--grain", 70, "--weights", w, "--runs", 3,
               ranks=[(kind, count) for kind in range(len(mpi.KINDS)) for count in (1, 2, 3, 4)])
    everywhere("bytes", u1, "-k", 12, "--batch", 256, "--grain", 70, "--init", "parallel", ranks=[(1, 2)])
    everywhere("the cosine", f4, "-k", 12, "--batch", 128, "--grain", 70, "--metric", "cosine", ranks=[(1, 4)])
    everywhere("rows that are made", "gen:blobs?rows=3000&cols=6&seed=2", "-k", 8, "--batch", 128, "--grain", 100)
    everywhere("more than there are", f8, "-k", 40, "--batch", 5000, "--init", "random", "--iterations", 4)


def bytes_are_the_numbers_they_stand_for():
    """Bytes go another way through scans, first centres and batches, to the same bits."""
    g = np.random.default_rng(9)
    kinds = {"all bytes": g.integers(0, 256, (3001, 45), dtype=np.uint8),
             "few of them": g.integers(7, 10, (3001, 45), dtype=np.uint8),
             "one value": np.where(np.arange(3001 * 40).reshape(3001, 40) % 41 == 0, 200, 3).astype(np.uint8),
             "truths": g.integers(0, 2, (3001, 33)).astype(bool)}
    for name, X in kinds.items():
        X[:, 3] = X[0, 3]  # a column without any width
        narrow, plain = save("narrow.npy", X), save("plain.npy", X.astype(np.float32))
        for words in (["--batch", 128, "--runs", 2], ["--batch", 128, "--init", "parallel"],
                      ["--batch", 64, "--tolerance", 0.01], ["--iterations", 5]):
            one, other = Outcome(narrow, "-k", 20, *words), Outcome(plain, "-k", 20, *words)
            check(f"{name}, {words}: bytes as float32", one.bytes == other.bytes)
            check(f"{name}, {words}: what is told", one.about["objective"] == other.about["objective"])


def until(batches, *words, stderr=None):
    """A run that has done so many batches."""
    run = subprocess.Popen([program, "kmeans", *map(str, words), "--trace", "/dev/stdout", "-q"],
                           stdout=subprocess.PIPE, stderr=stderr, text=True)
    for line in run.stdout:
        told = json.loads(line)
        if told["phase"] == "run" and told["step"] >= batches:
            return run
    check("a run that is long enough", False)
    return run


def runs_go_on():
    """Killed among its batches, a run goes on to the same bytes; another seed's checkpoint is refused."""
    words = [save("x.npy", blobs(30000, 12, 8)), "-k", 20, "--batch", 64, "--iterations", 4, "--max-no-improvement", 0]
    whole = Outcome(*words)
    run = until(700, *words, "--checkpoint", "0.001")
    run.kill()
    run.communicate()
    other = shoal("kmeans", *words, "--seed", 1, "--resume")
    check("another seed", other.returncode != 0 and "checkpoint" in other.stderr, other.stderr)
    again = Outcome(*words, "--resume")
    check("resumed: the same", again.bytes == whole.bytes and again.about["batches"] == whole.about["batches"])
    check("resumed: among its batches", 300 < again.about["resumed"] < again.about["rounds"], str(again.about))


def a_signal_ends_it():
    words = ["x.npy", "-k", 20, "--batch", 64, "--iterations", 4, "--max-no-improvement", 0]
    run = until(100, *words, "--labels", "stop.npy", stderr=subprocess.PIPE)
    run.send_signal(signal.SIGTERM)
    said = run.communicate(timeout=120)[1]
    check("stopped", run.returncode == 130 and "stopped" in said, said)
    check("stopped: labels", len(np.unique(np.load("stop.npy"))) == 20)


# ---- what is told, and what is refused -------------------------------------------------------------------------------


def refused(what, pattern, *words):
    result = shoal("kmeans", *words)
    lines = result.stderr.strip().splitlines()
    check(what, result.returncode != 0 and lines and pattern in lines[0], result.stderr)


def bad_input_is_named():
    x = save("x.npy", blobs(60, 3, 3))
    refused("several K", "--batch is for one K, but -k is 2..4", x, "-k", "2..4", "--batch", 10)
    refused("no rows", "--batch must be at least 1", x, "-k", 2, "--batch", 0)
    refused("--empty", "--empty is for updates that see all rows", x, "-k", 2, "--batch", 9, "--empty", "split")
    refused("a small sample", "--init-size 3 is too few rows to find 5 centres", x, "-k", 5, "--batch", 9,
            "--init-size", 3)
    for option, value in [("--init-size", 30), ("--max-no-improvement", 3), ("--reassignment-ratio", 0.1)]:
        refused(f"{option} alone", f"{option} is for mini-batch k-means and needs --batch", x, "-k", 2, option, value)
    refused("K of more than the rows", "-k 61 is more than the data's 60 rows", x, "-k", 61, "--batch", 10)
    same = save("same.npy", np.ones((60, 3)))
    refused("equal rows", "-k 2 is more than the data's 1 distinct row", same, "-k", 2, "--batch", 10, "--init-size",
            60)
    save("w.npy", np.r_[np.zeros(59), 1.0])
    refused("rows without weight", "has weight: ask for more with --init-size", x, "-k", 2, "--batch", 2, "--weights",
            "w.npy", "--init-size", 2)
    told = shoal("kmeans", x, "-k", 3, "--batch", 1000).stdout
    for batch, says in ((7, "of 7 rows, and of 4 at the end of each pass\n"), (20, "of 20 rows\n")):
        summary = shoal("kmeans", x, "-k", 3, "--batch", batch, "--max-no-improvement", 0).stdout
        check(f"batches of {batch}", says in summary, summary)
    check("more than there are", "of all 60 rows, since --batch 1000 is more than there are" in told, told)


# ---- how good it is --------------------------------------------------------------------------------------------------


def it_is_as_good_as_scikit_learns():
    try:
        from sklearn.cluster import MiniBatchKMeans
    except ImportError as error:
        print(f"SKIPPED scikit-learn: {error}", flush=True)
        return
    sets = {"blobs": (blobs(4000, 8, 30, seed=7), 30, 256)}
    if (shared / "clustering").exists():
        sets["S1"] = (np.loadtxt(shared / "clustering" / "s1.data.gz"), 15, 1024)
    else:
        print(f"SKIPPED S1: {shared} is not there", flush=True)
    for name, (X, k, batch) in sets.items():
        x = save("x.npy", X)
        mine = [Outcome(x, "-k", k, "--batch", batch, "--seed", s, "--runs", 3).about["objective"] for s in range(10)]
        peer = [MiniBatchKMeans(k, batch_size=batch, n_init=3, random_state=s).fit(X).inertia_ for s in range(10)]
        check(f"{name}: the mean objective", np.mean(mine) <= 1.05 * np.mean(peer), f"{np.mean(mine)} {np.mean(peer)}")


try:
    centres_are_those_of_the_definition()
    a_model_goes_on()
    nothing_changes_a_bit()
    bytes_are_the_numbers_they_stand_for()
    runs_go_on()
    a_signal_ends_it()
    bad_input_is_named()
    it_is_as_good_as_scikit_learns()
finally:
    os.chdir("/")
    shutil.rmtree(folder, ignore_errors=True)
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
