#!/usr/bin/python3
"""Logistic regression by default settings beside scikit-learn's: does it converge, and how far from the minimum?

    ./dev bench logistic [--quick] [--work WORD]

Each data set is solved three times: by shoal's defaults, by scikit-learn's (solver lbfgs, tol 1e-4, max_iter 100), and
by shoal until rounding stops it, which is the minimum that both are compared with.  Newer versions of scikit-learn
average the loss over the rows before they look at the gradient; that rule is measured, too, by weights of 1/rows.  A
table on stdout, everything in bench/results/logistic.json.  --quick leaves out the sets of 784 columns, --work keeps
the sets whose name has WORD in it.
"""
import argparse
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "2")  # before the libraries are loaded

import numpy as np  # noqa: E402
from sklearn import datasets  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHOAL = ROOT / "build" / "shoal"
RESULTS = ROOT / "bench" / "results"
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
LONG = 30_000  # iterations for the minimum


# ---- data ------------------------------------------------------------------------------------------------------------


def standardised(X):
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation == 0, 1, deviation)


def fashion():
    def read(name, head):
        with gzip.open(FASHION / f"t10k-{name}-ubyte.gz") as file:
            return np.frombuffer(file.read(), np.uint8, offset=head)
    return read("images-idx3", 16).reshape(-1, 784) / 255, read("labels-idx1", 8)


def works(quick):
    """Names, rows and labels: as they are, unless the name says otherwise."""
    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield name.replace("_", " "), *getattr(datasets, f"load_{name}")(return_X_y=True)
    X, y = datasets.load_digits(return_X_y=True)
    yield "digits, standardised", standardised(X), y
    yield "blobs", *datasets.make_blobs(20_000, 10, centers=5, cluster_std=6, random_state=0)
    X, y = datasets.make_classification(10_000, 20, n_informative=10, n_redundant=4, n_classes=4, random_state=0)
    yield "columns of very different size", X * 10.0**np.linspace(-3, 4, 20) + 10.0**np.linspace(-2, 5, 20), y
    if not quick and FASHION.exists():
        X, y = fashion()
        yield "Fashion-MNIST, 10,000 rows", X, y
        yield "Fashion-MNIST, standardised", standardised(X), y


# ---- one set ---------------------------------------------------------------------------------------------------------


def by_shoal(path, *options):
    began = time.perf_counter()
    done = subprocess.run([SHOAL, "logistic", path, "--json", *options], stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    return {"seconds": time.perf_counter() - began, **{name: found[name] for name in
                                                       ("iterations", "objective", "accuracy", "converged")}}


def by_scikit_learn(X, y, mean):
    began = time.perf_counter()
    peer = LogisticRegression(C=len(X) if mean else 1)
    peer.fit(X, y, sample_weight=np.full(len(X), 1 / len(X)) if mean else None)
    seconds = time.perf_counter() - began
    likely = peer.predict_log_proba(X)[np.arange(len(X)), np.searchsorted(peer.classes_, y)]
    return {"seconds": seconds, "iterations": int(peer.n_iter_[0]), "accuracy": peer.score(X, y),
            "objective": float(np.square(peer.coef_).sum() / 2 - likely.sum()),
            "converged": bool(peer.n_iter_[0] < peer.max_iter)}


def measure(name, X, y, folder):
    path = folder / "rows.npy"
    np.save(path, np.column_stack([X, y]))
    row = {"work": name, "rows": X.shape[0], "columns": X.shape[1],
           "minimum": by_shoal(path, "--tolerance", "0", "--iterations", str(LONG)),
           "shoal": by_shoal(path), "scikit-learn": by_scikit_learn(X, y, False),
           "scikit-learn, mean": by_scikit_learn(X, y, True)}
    for way in ("shoal", "scikit-learn", "scikit-learn, mean"):
        row[way]["gap"] = row[way]["objective"] / row["minimum"]["objective"] - 1
    return row


def print_row(row):
    for way in ("shoal", "scikit-learn", "scikit-learn, mean"):
        found = row[way]
        print(f"{row['work'] if way == 'shoal' else '':32} {way:20} {found['iterations']:5} {found['gap']:9.1e} "
              f"{found['accuracy']:8.4f} {found['seconds']:8.2f}  {'yes' if found['converged'] else 'no'}", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench logistic", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="without the sets of 784 columns")
    parser.add_argument("--work", default="", metavar="WORD", help="only sets whose name has WORD in it")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")  # scikit-learn's, that it did not converge: the table says so
    print(f"{'data':32} {'by the defaults of':20} {'steps':>5} {'gap':>9} {'accuracy':>8} {'seconds':>8}  converged")
    rows = []
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        for work in works(options.quick):
            if options.work in work[0]:
                rows.append(measure(*work, pathlib.Path(folder)))
                print_row(rows[-1])
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "logistic.json").write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
