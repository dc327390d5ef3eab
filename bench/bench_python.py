#!/usr/bin/python3
"""The Python package beside the program and scikit-learn: what numpy arrays, ctypes and imports cost.

    ./dev bench python [--quick] [--work WORD] [--repetitions N]

Four groups: fit (KMeans.fit of an array in memory beside the program on the same .npy, the same seed and the same
bytes), apply (transform, predict and predict_proba beside scikit-learn with the same model, and the memory that
transform takes), import (what the package takes beyond numpy), rounds (100 short rounds of Master.run).  --work keeps
the groups whose name has WORD in it.  What is compared takes turns, and the fastest of each counts.  A table on stdout,
everything in bench/results/python.json.  Nothing here fails when a bar is missed: the table says so.
"""
import argparse
import gzip
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings

THREADS = 2
for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]:
    os.environ[name] = str(THREADS)  # before the libraries are loaded
os.environ["SHOAL_HISTORY"] = "off"

import numpy as np  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHOAL = ROOT / "build" / "shoal"
RESULTS = ROOT / "bench" / "results"
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz")
sys.path.insert(0, str(ROOT / "python"))

import shoal  # noqa: E402


def processor_seconds():
    """Of this process and of those that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def fastest(calls, repetitions):
    """Seconds of each, taking turns."""
    return [seconds[0] for seconds in fastest_by([time.perf_counter], calls, repetitions)]


def fastest_by(clocks, calls, repetitions):
    """What each clock says of each call."""
    taken = [[] for _ in calls]
    for _ in range(repetitions):
        for call, seconds in zip(calls, taken):
            started = [clock() for clock in clocks]
            call()
            seconds.append([clock() - start for clock, start in zip(clocks, started)])
    return [[min(column) for column in zip(*seconds)] for seconds in taken]


def say(results, group, what, ours, theirs, peer, bar):
    """One line of the table; `bar` is the greatest ratio that is aimed at."""
    ratio = ours / theirs
    verdict = "" if bar is None else f"bar {bar:g}: " + ("met" if ratio <= bar else "MISSED")
    print(f"{group:7} {what:44} {ours:10.5f} s {theirs:10.5f} s {ratio:7.3f}  {verdict}  ({peer})", flush=True)
    results.append({"group": group, "what": what, "seconds": ours, "peer_seconds": theirs, "peer": peer, "bar": bar})


# ---- fitting ---------------------------------------------------------------------------------------------------------


def fit_works(quick):
    random = np.random.default_rng(1)
    yield "200,000x50 float32, K=100", random.random((200_000, 50), dtype=np.float32), 100, 10
    if quick:
        return
    yield "1,000,000x20 float64, K=20", random.random((1_000_000, 20)), 20, 10
    if FASHION.exists():
        with gzip.open(FASHION) as file:
            yield "Fashion-MNIST 60,000x784 uint8, K=50", np.frombuffer(file.read(), np.uint8, offset=16).reshape(
                -1, 784), 50, 10


def bench_fit(results, arguments):
    for what, X, k, iterations in fit_works(arguments.quick):
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/x.npy", X)
            words = list(map(str, [SHOAL, "kmeans", f"{folder}/x.npy", "-k", k, "--seed", 1, "--iterations", iterations,
                                   "--tolerance", 0, "--labels", f"{folder}/l.npy", "--centres", f"{folder}/c.npy",
                                   "--quiet"]))
            model = shoal.KMeans(k, random_state=1, max_iter=iterations, tol=0)
            ours, theirs = fastest_by([time.perf_counter, processor_seconds],
                                      [lambda: model.fit(X), lambda: subprocess.run(words, check=True)],
                                      arguments.repetitions)
            same = model.labels_.tobytes() == np.load(f"{folder}/l.npy").tobytes() and \
                model.cluster_centers_.tobytes() == np.load(f"{folder}/c.npy").tobytes()
            if not same:
                sys.exit(f"{what}: the package and the program differ")
        say(results, "fit", what, ours[0], theirs[0], "the program, start to exit, the same bytes", 1.03)
        say(results, "fit", "  in seconds of processors", ours[1], theirs[1], "the same", 1.03)


# ---- applying --------------------------------------------------------------------------------------------------------


def peak_rise(call):
    """Bytes by which memory rises while it runs; None where that is not known."""
    def read(field):
        text = pathlib.Path("/proc/self/status").read_text()
        return 1024 * int(re.search(rf"{field}:\s+(\d+)", text)[1])
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before = read("VmRSS")
        call()
        return read("VmHWM") - before
    except OSError:
        return None


def bench_apply(results, arguments):
    from sklearn.cluster import KMeans as TheirKMeans
    from sklearn.linear_model import LogisticRegression as TheirLogistic
    warnings.simplefilter("ignore")  # a few iterations are enough here
    rows = 50_000 if arguments.quick else 200_000
    X = np.random.default_rng(2).random((rows, 50), dtype=np.float32)
    y = (X[:, 0] > X[:, 1]).astype(int) + (X[:, 2] > 0.5)
    ours = shoal.KMeans(100, random_state=0, max_iter=2).fit(X)
    theirs = TheirKMeans(100, init=ours.cluster_centers_.astype(X.dtype), n_init=1, max_iter=1).fit(X)
    logistic, their_logistic = shoal.LogisticRegression(max_iter=5).fit(X, y), TheirLogistic(max_iter=5).fit(X, y)
    cases = [("KMeans.transform", ours.transform, theirs.transform, X),
             ("KMeans.predict", ours.predict, theirs.predict, X),
             ("LogisticRegression.predict_proba", logistic.predict_proba, their_logistic.predict_proba, X),
             ("KMeans.predict of one row", ours.predict, theirs.predict, X[:1])]
    for what, mine, other, given in cases:
        times = fastest([lambda: mine(given), lambda: other(given)], 3 * arguments.repetitions)
        say(results, "apply", f"{what}, {len(given):,}x50, K=100" if "KM" in what else f"{what}, {len(given):,}x50",
            *times, "scikit-learn", None)
    rise, size = peak_rise(lambda: ours.transform(X)), len(X) * 100 * 8
    if rise is not None:
        print(f"apply   transform's result is {size / 2**20:.0f} MiB, and memory rises by {rise / 2**20:.0f} MiB")
        results.append({"group": "apply", "what": "memory of transform", "bytes": size, "rise": rise})


# ---- importing -------------------------------------------------------------------------------------------------------

IMPORT = """
import sys, time
import numpy
if {without}:
    sys.modules["sklearn"] = None
elif {loaded}:
    import sklearn.base
started = time.perf_counter()
import shoal
if {used}:
    shoal.KMeans
print(time.perf_counter() - started)
"""


def seconds_of_import(repetitions, **how):
    script = IMPORT.format(**{"without": False, "loaded": False, "used": False, **how})
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    return min(float(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True,
                                    env=environment).stdout) for _ in range(repetitions))


def bench_import(results, arguments):
    for what, how, bar in (("import shoal", {}, 0.1),
                           ("from shoal import KMeans, without scikit-learn", {"used": True, "without": True}, 0.1),
                           ("... scikit-learn imported before", {"used": True, "loaded": True}, 0.1),
                           ("... scikit-learn imported by it", {"used": True}, None)):
        seconds = seconds_of_import(arguments.repetitions, **how)
        verdict = "" if bar is None else f"bar {bar} s: " + ("met" if seconds <= bar else "MISSED")
        print(f"import  {what:44} {seconds:10.4f} s beyond numpy's  {verdict}", flush=True)
        results.append({"group": "import", "what": what, "seconds": seconds, "bar": bar})


# ---- rounds ----------------------------------------------------------------------------------------------------------


def total(params, dataset):
    return params * dataset.sum()


def bench_rounds(results, arguments):
    X = np.random.default_rng(3).random((10_000, 10))
    with shoal.Master(["local:2"], verbose=False) as master:
        started = time.perf_counter()
        master.run(total, 1.0, X)
        first = time.perf_counter() - started
        seconds = min(timed_rounds(master, X) for _ in range(arguments.repetitions))
    print(f"rounds  100 rounds of Master.run on local:2 {seconds:20.4f} s  bar 1 s: "
          f"{'met' if seconds < 1 else 'MISSED'}  (and {first:.2f} s for the first, which starts the workers)")
    results.append({"group": "rounds", "what": "100 rounds", "seconds": seconds, "first": first, "bar": 1})


def timed_rounds(master, X):
    started = time.perf_counter()
    for i in range(100):
        master.run(total, float(i), X)
    return time.perf_counter() - started


GROUPS = {"fit": bench_fit, "apply": bench_apply, "import": bench_import, "rounds": bench_rounds}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one small work of each group")
    parser.add_argument("--work", default="", metavar="WORD", help="only groups whose name has WORD in it")
    parser.add_argument("--repetitions", type=int, default=5, metavar="N")
    arguments = parser.parse_args()
    results = []
    print(f"{'':52} {'package':>12} {'peer':>12} {'ratio':>7}")
    for name, bench in GROUPS.items():
        if arguments.work in name:
            bench(results, arguments)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "python.json").write_text(json.dumps({"threads": THREADS, "load": os.getloadavg(), "results": results},
                                                    indent=1) + "\n")


if __name__ == "__main__":
    main()
