#!/usr/bin/python3
# k-means on real data against scikit-learn: the same labels from the same start, and first centres as good.
#   test_kmeans_sklearn.py PATH_TO_shoal
# scikit-learn computes in float64.  Data are Fashion-MNIST (Debian's dataset-fashion-mnist) and, where it is there,
# ../shared/data.  Prints one line for each failure and "N passed, M failed" at the end.
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

import nobody  # so that no run is in the history of whoever runs this

os.environ.setdefault("OMP_NUM_THREADS", "1")  # other tests run beside it
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
try:
    import numpy as np
    from sklearn.cluster import KMeans
except ImportError as error:
    print(f"{error}: skipped; Debian has python3-numpy and python3-sklearn")
    sys.exit(77)

warnings.filterwarnings(
    "ignore")  # "Number of distinct clusters found smaller than n_clusters", and that it did not converge
program = os.path.abspath(sys.argv[1])
fashion = pathlib.Path("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz")
shared = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data"
folder = pathlib.Path(tempfile.mkdtemp(prefix="shoal-sklearn-"))
passed = failed = 0


def check(what, condition, more=""):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {what} {more}", flush=True)


# ---- data: a name, the file shoal reads with its options, the same as float64, K -------------------------------------


def images(path, rows):
    with gzip.open(path) as file:
        return np.frombuffer(file.read(16 + rows * 784), np.uint8, offset=16).reshape(rows, 784)


def table(name):
    path = shared / "clustering" / f"{name}.data.gz"
    return path, [], np.loadtxt(path)


def thinned(name, every):
    """The rows of a table at such distances, which keep its shape."""
    X = table(name)[2][::every]
    np.save(folder / f"{name}.npy", X)
    return folder / f"{name}.npy", [], X


def pictures(name, path, rows):
    X = images(path, rows)
    np.save(folder / f"{name}.npy", X)
    return folder / f"{name}.npy", [], X.astype(float)


def digits():
    path = shared / "clustering" / "optdigits.csv"
    return path, ["--drop-column", "65"], np.loadtxt(path, delimiter=",")[:, :64]


def all_data():
    sets = {}
    if fashion.exists():
        sets["fashion"] = (*pictures("fashion", fashion, 1500), 20)
    else:
        print(f"SKIPPED Fashion-MNIST: {fashion} is not here (Debian's dataset-fashion-mnist)")
    if (shared / "clustering").exists():
        for name, k in [("s1", 15), ("s2", 15), ("a3", 50), ("unbalance", 8)]:
            sets[name] = (*table(name), k)
        sets["birch1"] = (*thinned("birch1", 5), 100)
        sets["optdigits"] = (*digits(), 10)
        sets["mnist"] = (*pictures("mnist", shared / "mnist" / "train-images-idx3-ubyte.gz", 1000), 25)
    else:
        print(f"SKIPPED S1, S2, A3, Birch1, Unbalance, optdigits, MNIST: {shared} is not here")
    return sets


def some_rows(X, k, seed=1):
    """Not quite rows: between rows of whole numbers there are exact ties, which scikit-learn breaks by its rounding."""
    g = np.random.default_rng(seed)
    return X[g.choice(len(X), k, replace=False)] + g.normal(size=(k, X.shape[1])) * 0.01


def spread_rows(X, k):
    """Rows apart from each other, so that no cluster becomes empty."""
    from sklearn.cluster import kmeans_plusplus
    return kmeans_plusplus(X, k, random_state=0)[0]


# ---- the two programs ------------------------------------------------------------------------------------------------


class Shoal:
    def __init__(self, path, options, *more):
        files = {name: folder / f"out.{name}" for name in ["centres.npy", "labels.npy", "model.safetensors"]}
        words = [
            "--centres", files["centres.npy"], "--labels", files["labels.npy"], "--model", files["model.safetensors"]
        ]
        result = subprocess.run([program, "kmeans", path, *options, *map(str, more), "--json", *words],
                                capture_output=True, timeout=120)
        if result.returncode != 0:
            raise RuntimeError(result.stderr.decode())
        self.about = json.loads(result.stdout)
        self.objective, self.iterations = self.about["objective"], self.about["iterations"]
        self.centres, self.labels = np.load(files["centres.npy"]), np.load(files["labels.npy"])
        self.centre_bytes, self.model = files["centres.npy"].read_bytes(), files["model.safetensors"]


def save(array):
    path = folder / "given.npy"
    np.save(path, array)
    return path


def save_weights(array):
    path = folder / "weights.npy"
    np.save(path, array)
    return path


def lloyd(X, start, iterations=300, tolerance=0, weight=None):
    return KMeans(len(start), init=start, n_init=1, max_iter=iterations, tol=tolerance,
                  algorithm="lloyd").fit(X, sample_weight=weight)


def close(a, b, relative):
    return abs(a - b) <= relative * abs(b)


# ---- tests -----------------------------------------------------------------------------------------------------------


def test_same_labels(name, path, options, X, k):
    """Given the same start and tolerance 0: the same labels, and the objective to 1e-6."""
    for how, start in {"rows": some_rows(X, k), "far apart": spread_rows(X, k)}.items():
        theirs = lloyd(X, start, 40)
        ours = Shoal(path, options, "--init", save(start), "--iterations", 40, "--tolerance", 0)
        differ = (ours.labels != theirs.labels_).sum()
        check(f"{name}, {how}: labels", differ == 0, f"{differ} of {len(X)} differ")
        check(f"{name}, {how}: objective", close(ours.objective, theirs.inertia_, 1e-6),
              f"{ours.objective}, not {theirs.inertia_}")
        check(f"{name}, {how}: centres",
              np.allclose(ours.centres, theirs.cluster_centers_, rtol=1e-9, atol=1e-9 * np.abs(X).max()))
        check(f"{name}, {how}: iterations", ours.iterations == theirs.n_iter_,
              f"{ours.iterations}, not {theirs.n_iter_}")


def test_tolerance(name, path, options, X, k):
    """--tolerance means what tol means: as many iterations, or one more or less where rounding decides."""
    start = spread_rows(X, k)
    for tolerance in [1e-4, 1e-2]:
        theirs = lloyd(X, start, tolerance=tolerance)
        ours = Shoal(path, options, "--init", save(start), "--tolerance", tolerance)
        check(f"{name}: tolerance {tolerance}",
              abs(ours.iterations - theirs.n_iter_) <= 1, f"{ours.iterations}, not {theirs.n_iter_}")
        check(f"{name}: tolerance {tolerance} says converged", ours.about["converged"])


def test_weights(name, path, options, X, k):
    """sample_weight, and what must hold between weighted runs, bit for bit."""
    start = spread_rows(X, k)
    weight = np.random.default_rng(2).integers(0, 4, len(X)) / 2
    theirs = lloyd(X, start, 15, weight=weight)
    given = ["--init", save(start), "--iterations", 15, "--tolerance", 0]
    ours = Shoal(path, options, *given, "--weights", save_weights(weight))
    differ = (ours.labels != theirs.labels_).sum()
    check(f"{name}: weighted labels", differ == 0, f"{differ} of {len(X)} differ")
    check(f"{name}: weighted objective", close(ours.objective, theirs.inertia_, 1e-6),
          f"{ours.objective}, not {theirs.inertia_}")
    scaled = Shoal(path, options, *given, "--weights", save_weights(weight * 1024))
    check(f"{name}: 1,024 times the weights, same centres", scaled.centre_bytes == ours.centre_bytes)
    check(f"{name}: 1,024 times the weights and objective", scaled.objective == ours.objective * 1024)
    plain = Shoal(path, options, *given)
    ones = Shoal(path, options, *given, "--weights", save_weights(np.ones(len(X))))
    check(
        f"{name}: weights of one change nothing", ones.centre_bytes == plain.centre_bytes and
        (ones.labels == plain.labels).all() and ones.objective == plain.objective)


def test_duplicates(name, path, options, X, k):
    """Weights of 2 are rows given twice.  The quanta of both runs are the same power of two, so whole numbers (all of
    these data sets) give the same centres bit for bit; others agree to the rounding of a cell."""
    start = spread_rows(X, k)
    given = ["--init", save(start), "--iterations", 10, "--tolerance", 0]
    heavy = Shoal(path, options, *given, "--weights", save_weights(np.full(len(X), 2)))
    np.save(folder / "twice.npy", np.vstack([X, X]))
    twice = Shoal(folder / "twice.npy", [], *given)
    check(f"{name}: weights of 2 and rows given twice, centres", heavy.centre_bytes == twice.centre_bytes)
    check(f"{name}: weights of 2 and rows given twice, labels", (np.tile(heavy.labels, 2) == twice.labels).all())
    check(f"{name}: weights of 2 and rows given twice, objective", close(heavy.objective, twice.objective, 1e-12))
    real = X * 0.1
    start = save(start * 0.1)
    np.save(folder / "once.npy", real)
    np.save(folder / "twice.npy", np.vstack([real, real]))
    heavy = Shoal(folder / "once.npy", [], "--init", start, "--iterations", 10, "--weights",
                  save_weights(np.full(len(X), 2)))
    twice = Shoal(folder / "twice.npy", [], "--init", start, "--iterations", 10)
    check(f"{name}: the same for real numbers",
          np.allclose(heavy.centres, twice.centres, rtol=1e-14, atol=1e-14 * np.abs(real).max()))


def test_empty(name, path, options, X, k):
    """From a start that leaves most clusters empty, every cluster ends with rows."""
    start = np.vstack([some_rows(X, 2), np.repeat(X.max(0)[None] * 3 + np.arange(1, X.shape[1] + 1), k - 2, axis=0)])
    for empty in ["farthest", "split"]:
        ours = Shoal(path, options, "--init", save(start), "--empty", empty)
        left = (np.bincount(ours.labels, minlength=k) == 0).sum()
        check(f"{name}: {empty} leaves no cluster empty", left == 0, f"{left} of {k}")
        check(f"{name}: {empty} converges", ours.about["converged"])


def test_quality(name, path, options, X, k):
    """The default seeding, five runs each: no worse than scikit-learn's; k-means|| near greedy k-means++."""
    best = KMeans(k, n_init=5, random_state=0).fit(X).inertia_
    ours = Shoal(path, options, "-k", k, "--runs", 5).objective
    check(f"{name}: quality of the default", ours <= 1.05 * best, f"{ours / best:.4f} of scikit-learn's")
    greedy = Shoal(path, options, "-k", k, "--runs", 5, "--init", "kmeans++").objective
    check(f"{name}: quality of kmeans++", greedy <= 1.05 * best, f"{greedy / best:.4f} of scikit-learn's")
    parallel = Shoal(path, options, "-k", k, "--runs", 5, "--init", "parallel").objective
    check(f"{name}: quality of parallel", parallel <= 1.10 * greedy, f"{parallel / greedy:.4f} of kmeans++")


def test_predict(name, path, options, X, k):
    """The model labels its own data as training did; scikit-learn's prediction agrees."""
    ours = Shoal(path, options, "-k", k, "--iterations", 5)
    labels, far = folder / "predicted.npy", folder / "far.npy"
    words = [program, "predict", ours.model, path, *options, "--labels", labels, "--distances", far, "--quiet"]
    subprocess.run(words, check=True, timeout=120)
    check(f"{name}: predicted labels", (np.load(labels) == ours.labels).all())
    exact = np.sqrt(((X - ours.centres[ours.labels]) ** 2).sum(1))
    check(f"{name}: predicted distances", np.allclose(np.load(far), exact, rtol=1e-12))


PLAN = {test_same_labels: ["fashion", "s1", "s2", "a3", "birch1", "unbalance", "optdigits", "mnist"],
        test_tolerance: ["fashion", "s1", "a3", "optdigits"],
        test_weights: ["fashion", "s2", "a3", "optdigits"],
        test_duplicates: ["fashion", "s1", "optdigits"],
        test_empty: ["fashion", "s1", "unbalance", "optdigits"],
        test_quality: ["s1", "s2", "a3", "birch1", "unbalance", "optdigits"],
        test_predict: ["fashion", "s1", "birch1", "optdigits"]}

sets = all_data()
for test, names in PLAN.items():
    for name in names:
        if name in sets:
            try:
                test(name, *sets[name])
            except Exception as error:  # one broken case must not hide the others
                check(f"{name}: {test.__name__}", False, repr(error))
shutil.rmtree(folder)
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0 if sets else 77)
