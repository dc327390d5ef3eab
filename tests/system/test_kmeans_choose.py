#!/usr/bin/python3
# Labels: quick
# Seconds: 25
# Choosing K: `shoal kmeans -k 2..9` beside scikit-learn's scores of the same labels, the same bytes wherever it runs,
# whatever stops it, and what is refused.
#   test_kmeans_choose.py PATH_TO_shoal
# Prints one line for each failure and "N passed, M failed" at the end.
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import nobody  # so that no run is in the history of whoever runs this

os.environ.setdefault("OMP_NUM_THREADS", "1")  # other tests run beside it
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
try:
    import numpy as np
    from sklearn.metrics import calinski_harabasz_score, silhouette_score
except ImportError as error:
    print(f"{error}: skipped; Debian has python3-numpy and python3-sklearn")
    sys.exit(77)

program = os.path.abspath(sys.argv[1])
folder = pathlib.Path(tempfile.mkdtemp(prefix="shoal-choose-"))
os.chdir(folder)
FILES = {"--centres": "c.npy", "--labels": "l.npy", "--sample-labels": "s.npy", "--model": "m.safetensors",
         "--elbow": "e.svg"}
passed = failed = 0


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


def save(name, array):
    np.save(name, array)
    return name


def blobs(rows, columns, centres, seed=0, spread=0.4):
    g = np.random.default_rng(seed)
    return g.normal(size=(centres, columns))[g.integers(0, centres, rows)] * 5 + g.normal(size=(rows, columns)) * spread


class Outcome:
    """What a run wrote and said."""

    def __init__(self, *words):
        shutil.rmtree("out", ignore_errors=True)
        os.mkdir("out")
        files = [word for option, name in FILES.items() for word in (option, f"out/{name}")]
        result = shoal("kmeans", *words, "--json", *files)
        self.code, self.error = result.returncode, result.stderr
        if not check(f"{words} runs", self.code == 0, self.error):
            return
        self.read(result.stdout)

    def read(self, printed):
        self.about = json.loads(printed)
        self.bytes = {name: pathlib.Path("out", name).read_bytes() for name in FILES.values()}
        sample = np.load("out/s.npy")
        self.rows, self.labels = sample[:, 0], sample[:, 1:]

    def identity(self):
        scores = ["k", "ks", "objectives", "silhouettes", "calinski_harabasz", "iterations_by_k", "rounds", "sample"]
        return self.bytes, [self.about[name] for name in scores]


# ---- the scores ------------------------------------------------------------------------------------------------------


def unit(X):
    return X / np.sqrt((X * X).sum(1, keepdims=True))


def near(a, b, what):
    worst = max(abs(x - y) / max(1, abs(y)) for x, y in zip(a, b, strict=True))
    check(what, worst <= 1e-9, f"{worst} apart: {a} {b}")


def scores_agree(name, X, *words, metric="euclidean"):
    """Silhouettes on the sampled rows, and Calinski-Harabasz scores where those are all there are, as scikit-learn has
    them for the same labels."""
    outcome = Outcome(save("x.npy", X), *words)
    seen = X.astype(float)
    if "--standardise" in words:
        seen = (seen - seen.mean(0)) / seen.std(0)
    seen = unit(seen) if metric == "cosine" else seen
    rows = outcome.rows
    check(f"{name}: rows in order", (np.diff(rows) > 0).all() and 0 <= rows[0] and rows[-1] < len(X))
    check(f"{name}: the size of the sample", outcome.about["sample"] == len(rows))
    near(outcome.about["silhouettes"],
         [silhouette_score(seen[rows], labels, metric=metric) for labels in outcome.labels.T], f"{name}: silhouettes")
    if len(rows) == len(X):
        near(outcome.about["calinski_harabasz"], [calinski_harabasz_score(seen, labels) for labels in outcome.labels.T],
             f"{name}: Calinski-Harabasz")
    chosen = outcome.about["ks"].index(outcome.about["k"])
    check(f"{name}: labels of the chosen K", (np.load("out/l.npy")[rows] == outcome.labels[:, chosen]).all())
    check(f"{name}: its objective", outcome.about["objectives"][chosen] == outcome.about["objective"])
    check(f"{name}: picks", outcome.about["pick_silhouette"] == outcome.about["ks"][np.argmax(
        outcome.about["silhouettes"])])
    return outcome


def test_scores():
    X = blobs(700, 6, 5)
    found = scores_agree("all rows", X, "-k", "2..9")
    check("all rows: finds the groups", found.about["k"] == 5 and found.about["pick_calinski_harabasz"] == 5)
    scores_agree("a sample", X.astype("f4"), "-k", "2,3,7..11..2", "--sample", 150)
    scores_agree("bytes", np.random.default_rng(3).integers(0, 256, (400, 30), dtype=np.uint8), "-k", "2..6")
    scores_agree("cosine", X, "-k", "2..9", "--metric", "cosine", metric="cosine")
    scores_agree("cosine, a sample", X, "-k", "2..5", "--metric", "cosine", "--sample", 99, metric="cosine")
    scores_agree("standardised", X * [1, 1e3, 1e-3, 5, 1, 1], "-k", "2..9", "--standardise")
    scores_agree("very small values", X * 1e-60, "-k", "2..4")
    scores_agree("more than one start", X, "-k", "2..4", "--runs", 3, "--choose", "elbow")


def test_weights():
    """A weight counts as so many rows for the objective and for Calinski-Harabasz, never for silhouettes."""
    X, weight = blobs(400, 3, 4, 1), np.random.default_rng(2).integers(0, 4, 400)
    outcome = Outcome(save("x.npy", X), "-k", "2..6", "--weights", save("w.npy", weight.astype(float)))
    many = np.repeat(np.arange(len(X)), weight)
    near(outcome.about["calinski_harabasz"],
         [calinski_harabasz_score(X[many], labels[many]) for labels in outcome.labels.T], "weights: Calinski-Harabasz")
    near(outcome.about["silhouettes"], [silhouette_score(X, labels) for labels in outcome.labels.T],
         "weights: silhouettes")


def test_dropped_rows():
    """Row numbers are those of DATA."""
    X = blobs(300, 3, 3, 5)
    gone = np.arange(300) % 7 == 2
    lines = [",".join("" if gone[i] and j == 1 else repr(float(value)) for j, value in enumerate(row))
             for i, row in enumerate(X)]
    pathlib.Path("gaps.csv").write_text("\n".join(lines) + "\n")
    outcome = Outcome("gaps.csv", "-k", "2..4", "--missing", "drop", "--sample", 80)
    check("dropped rows are none of the sample", len(outcome.rows) == 80 and not gone[outcome.rows].any())
    near(outcome.about["silhouettes"], [silhouette_score(X[outcome.rows], labels) for labels in outcome.labels.T],
         "dropped rows: silhouettes")


def test_no_worse():
    """Not by much worse than a run for each K alone, and better on the whole."""
    X = blobs(3000, 8, 12, 7, spread=3).astype("f4")
    together = Outcome(save("x.npy", X), "-k", "2..16").about["objectives"]
    alone = [json.loads(shoal("kmeans", "x.npy", "-k", k, "--json").stdout)["objective"] for k in range(2, 17)]
    ratios = np.array(together) / alone
    check("inertias", ratios.max() < 1.02 and ratios.mean() <= 1, f"{ratios}")


# ---- wherever it runs ------------------------------------------------------------------------------------------------


def kernels_here():
    return [name for name in ["portable", "avx2", "avx512", "vnni"]
            if shoal("kmeans", "x.npy", "-k", 1, "--kernel", name, "--quiet").returncode == 0]


def test_same_everywhere():
    save("x.npy", blobs(900, 20, 6, 3).astype("f4"))
    save("w.npy", np.random.default_rng(2).random(900))
    for name, words in {"euclidean": ["--sample", 200], "cosine": ["--metric", "cosine", "--weights", "w.npy"]}.items():
        words = ["x.npy", "-k", "2..7", *words]
        expected = Outcome(*words).identity()
        places = [["--kernel", kernel, "--threads", 1 + i % 3] for i, kernel in enumerate(kernels_here())]
        for place in [*places, ["--grain", 7, "--threads", 3], ["--workers", "local:2", "--threads", 1]]:
            check(f"{name}: {place}", Outcome(*words, *place).identity() == expected)


def test_resume():
    """Killed while it tries one K after another, it continues where it stopped."""
    save("x.npy", blobs(20000, 16, 9, 3, spread=4).astype("f4"))
    words = ["x.npy", "-k", "2..12", "--tolerance", "0"]
    expected = Outcome(*words)
    traced = [program, "kmeans", *words, "--checkpoint", "0.001", "--trace", "/dev/stdout", "-q"]
    run = subprocess.Popen(traced, stdout=subprocess.PIPE, text=True)
    for line in run.stdout:
        if json.loads(line).get("k", 0) >= 6:
            break
    run.kill()
    run.wait()
    check("there is a checkpoint", os.path.exists("kmeans.checkpoint"))
    again = Outcome(*words, "--resume")
    check("resumed: the same", again.identity() == expected.identity())
    check("resumed: in the midst", 20 < again.about["resumed"] < again.about["rounds"], again.about.get("resumed"))


def test_job_resume():
    """A job whose starter and workers are killed: others go on with it."""
    expected = Outcome("x.npy", "-k", "2..12", "--tolerance", 0)
    os.mkdir("again")
    files = [word for option, name in FILES.items() for word in (option, f"again/{name}")]
    run = subprocess.Popen([program, "kmeans", "x.npy", "-k", "2..12", "--tolerance", "0", "--store", "st", "--workers",
                            "local:2", "--trace", "/dev/stdout", "-q", *files], stdout=subprocess.PIPE, text=True)
    for line in run.stdout:
        if json.loads(line).get("k", 0) >= 4:
            break
    run.kill()
    run.wait()
    result = shoal("job", "resume", "--store", "st", "--workers", "local:2", "--json")
    check("the job is resumed", result.returncode == 0, result.stderr)
    same = all(pathlib.Path("again", name).read_bytes() == expected.bytes[name] for name in FILES.values())
    about = json.loads(result.stdout.splitlines()[-1])  # behind the lines of the trace
    check("the job: the same", same and about["silhouettes"] == expected.about["silhouettes"])


def test_stop():
    """A signal ends it after the round it is in: what has been tried is compared, and the best of it is written."""
    save("x.npy", blobs(20000, 16, 9, 3, spread=4).astype("f4"))
    words = ["x.npy", "-k", "2..40", "--tolerance", "0", "--trace", "/dev/stderr", "--json", "--labels", "stop.npy"]
    run = subprocess.Popen([program, "kmeans", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in run.stderr:
        if json.loads(line).get("k", 0) >= 5:
            break
    run.send_signal(signal.SIGTERM)
    printed, said = run.communicate(timeout=120)
    about = json.loads(printed)
    check("stopped", run.returncode == 130 and about["stopped"], said)
    check("stopped: those that were tried", about["ks"] == list(range(2, 2 + len(about["ks"]))) and about["k"] in about[
        "ks"] and 3 <= len(about["ks"]) < 39, about["ks"])
    check("stopped: labels", len(np.unique(np.load("stop.npy"))) == about["k"])


# ---- what people see -------------------------------------------------------------------------------------------------


def test_summary():
    lines = shoal("kmeans", save("x.npy", blobs(700, 6, 5)), "-k", "2..7").stdout.splitlines()
    table = [line.split() for line in lines if line.split()[:1] and line.split()[0] in "2 3 4 5 6 7".split()]
    check("a row for each K", [row[0] for row in table] == list("234567") and all(row[5] == "#" * len(row[5])
                                                                                 for row in table), f"{lines}")
    check("picks", any(line.startswith("picks      silhouette 5, Calinski-Harabasz 5, elbow ") for line in lines))
    check("the sample", "sample     700 of 700 rows, for the silhouettes" in lines)
    check("chosen", "chosen     K = 5, by silhouette; outputs are of this K" in lines)
    lines = shoal("kmeans", "x.npy", "-k", "4,5", "--choose", "elbow").stdout
    check("no elbow", "K = 5, by silhouette, since elbow picks none; outputs" in lines, lines)
    lines = shoal("kmeans", "x.npy", "-k", "1..1").stdout
    check("one", "K = 1, the first, since no rule picks one; outputs" in lines, lines)


def test_pictures():
    x = save("x.npy", blobs(300, 3, 3))
    for name in ["e.svg", "e.png"]:
        for _ in range(2):  # a picture of ours is replaced
            result = shoal("kmeans", x, "-k", "1..4", "--elbow", name, "-q")
            check(f"{name} is written", result.returncode == 0, result.stderr)
    svg = pathlib.Path("e.svg").read_text()
    words = ["elbow: K = ", "silhouette: K = ", "Calinski-Harabasz: K = ", "objective", ">mean silhouette<"]
    check("the picks are named", all(word in svg for word in words))
    check("a PNG", pathlib.Path("e.png").read_bytes()[:4] == b"\x89PNG")


def refused(code, sentence, *words):
    result = shoal("kmeans", *words)
    check(f"{words} is refused", result.returncode == code and sentence in result.stderr, result.stderr)


def test_refusals():
    x = save("x.npy", blobs(100, 3, 3))
    for words, sentence in [
        (["-k", "5..2"], "-k: 5..2 runs downwards: write 2..5"),
        (["-k", "2..2000000"], "more than 60 numbers"),
        (["-k", "2,2,3"], "each number must be greater than the one before"),
        (["-k", "2..9..0"], "the step of 2..9..0 must be at least 1"),
        (["-k", "0..4"], "must be at least 1"),
        (["-k", "2.."], "is neither a number nor a range or list"),
        (["-k", "2..5", "--init", "c.npy"], "has the first centres of one K, but -k is 2..5"),
        (["-k", "2..5", "--sample", "1"], "--sample must be at least 2"),
        (["-k", "3", "--choose", "elbow"], "--choose needs several K"),
        (["-k", "3", "--sample", "9"], "--sample needs several K"),
        (["-k", "3", "--elbow", "e.svg"], "--elbow needs several K to choose from, as in -k 2..20"),
        (["-k", "3", "--sample-labels", "s.npy"], "--sample-labels needs several K"),
        (["-k", "2..5", "--elbow", "e.txt"], "--elbow e.txt"),
    ]:
        refused(2, sentence, x, *words)
    refused(1, "-k 101 is more than the data's 100 rows", x, "-k", "2..101..3")
    three = save("three.npy", np.arange(90.).reshape(-1, 1) % 3)
    refused(1, "-k 4 is more than the data's 3 distinct rows", three, "-k", "2..5")


for function in [test_scores, test_weights, test_dropped_rows, test_no_worse, test_same_everywhere, test_resume,
                 test_job_resume, test_stop, test_summary, test_pictures, test_refusals]:
    try:
        function()
    except Exception as error:  # one broken case must not hide the others
        check(function.__name__, False, repr(error))
os.chdir("/")
shutil.rmtree(folder)
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
