#!/usr/bin/python3
# Seconds: 60
# Logistic and softmax regression through the program: the minimum that scikit-learn finds, and the same bytes whoever
# computes.
#   test_logistic.py PATH_TO_shoal
# scikit-learn's newton-cg at tol 1e-10 is the yardstick for L2; with an L1 term the conditions of a minimum are checked
# in numpy.
# Prints one line for each failure and "N passed, M failed" at the end.
import itertools
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

import nobody  # so that no run is in the history of whoever runs this

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
try:
    import numpy as np
    from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
    from sklearn.linear_model import LogisticRegression
except ImportError as error:
    print(f"{error}: skipped; Debian has python3-numpy and python3-sklearn")
    sys.exit(77)

warnings.filterwarnings("ignore")  # newton-cg's own, of its last digits
program = os.path.abspath(sys.argv[1])
shared = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data"
folder = pathlib.Path(tempfile.mkdtemp(prefix="shoal-logistic-"))
os.chdir(folder)
os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = os.environ["XDG_DATA_HOME"] = str(folder / "home")
counter = itertools.count()
passed = failed = 0
CLOSE = 1e-5
SOON = 300


def check(what, condition, more=""):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {what} {more}", flush=True)


# ---- the program -----------------------------------------------------------------------------------------------------


def shoal(*words, **variables):
    return subprocess.run([program, *map(str, words)], capture_output=True, timeout=300, text=True,
                          env={**os.environ, **variables})


def save(array, name=None):
    path = name or f"{next(counter)}.npy"
    np.save(path, array)
    return path


def read_model(path):
    content = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    about = header.pop("__metadata__")
    tensors = {}
    for name, place in header.items():
        assert place["dtype"] == "F64"
        first, end = place["data_offsets"]
        tensors[name] = np.frombuffer(content[8 + size + first:8 + size + end], "f8").reshape(place["shape"])
    return tensors, about


class Model:
    """What one run wrote."""

    def __init__(self, *words, **variables):
        self.path = f"{next(counter)}.safetensors"
        result = shoal("logistic", *words, "--json", "--model", self.path, **variables)
        assert result.returncode == 0, f"{words}: {result.stderr}"
        self.about = json.loads(result.stdout)
        self.bytes = pathlib.Path(self.path).read_bytes()
        tensors, self.metadata = read_model(self.path)
        self.found = [tensors[name].tobytes() for name in sorted(tensors)]  # wherever the target was
        self.weights, self.intercept, self.classes = tensors["weights"], tensors["intercept"], tensors["classes"]


def refuses(code, sentence, *words):
    result = shoal("logistic", *words, "--model", "never.safetensors")
    check(f"refused: {sentence}", result.returncode == code and sentence in result.stderr and
          not os.path.exists("never.safetensors"), f"{words}: {result.returncode} {result.stderr.strip()}")


# ---- data ------------------------------------------------------------------------------------------------------------


def flowers(classes, rows, columns, seed, spread=1.2):
    """Overlapping clouds, one a class, whose columns differ in place and size."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, rows)
    X = random.normal(size=(classes, columns))[labels] + random.normal(size=(rows, columns)) * spread
    return X * 10.0 ** random.integers(-1, 3, columns) + 5 * random.integers(-2, 3, columns), labels


def objective(model, X, y, l2, l1=0, weights=None):
    Z = X @ model.weights.T + model.intercept
    if len(model.classes) == 2:
        Z = np.c_[np.zeros(len(Z)), Z]
    rows = np.logaddexp.reduce(Z, axis=1) - Z[np.arange(len(y)), np.searchsorted(model.classes, y)]
    loss = float(rows @ (np.ones(len(y)) if weights is None else weights))
    return loss + l2 / 2 * float((model.weights**2).sum()) + l1 * float(np.abs(model.weights).sum())


# ---- against scikit-learn --------------------------------------------------------------------------------------------


def agree(what, model, X, y, l2, weights=None, intercept=True):
    peer = LogisticRegression(C=1 / l2, solver="newton-cg", tol=1e-10, max_iter=10000, fit_intercept=intercept)
    peer.fit(X, y, sample_weight=weights)
    check(f"{what}: classes", np.array_equal(model.classes, peer.classes_))
    check(f"{what}: weights",
          np.abs(model.weights - peer.coef_).max() < CLOSE,
          np.abs(model.weights - peer.coef_).max())
    check(f"{what}: intercept",
          np.abs(model.intercept - peer.intercept_).max() < CLOSE,
          np.abs(model.intercept - peer.intercept_).max())
    value = objective(model, X, y, l2, weights=weights)
    check(f"{what}: objective", abs(model.about["objective"] - value) < 1e-9 * value, (model.about["objective"], value))
    share = np.average(peer.predict(X) == y, weights=weights)
    check(f"{what}: accuracy", abs(model.about["accuracy"] - share) < 1e-9, (model.about["accuracy"], share))
    check(f"{what}: converged", model.about["converged"], model.about)
    return peer


def minima_are_those_of_scikit_learn():
    for classes, l2 in itertools.product((2, 3, 5), (0.1, 1, 30)):
        X, y = flowers(classes, 700, 6, classes)
        path = save(np.c_[X, y])
        agree(f"{classes} classes, l2 {l2}", Model(path, "--l2", l2, "--tolerance", 1e-11), X, y, l2)
    X, y = flowers(3, 600, 5, 9)
    weights = np.random.default_rng(9).choice([0, 0.25, 1, 3], 600)
    file = save(weights)
    path = save(np.c_[X, 5 * y - 3])
    agree("weighted rows", Model(path, "--weights", file, "--tolerance", 1e-11), X, 5 * y - 3, 1, weights=weights)
    X, y = flowers(2, 500, 4, 10)
    agree("no intercept", Model(save(np.c_[y, X]), "--target", 1, "--no-intercept", "--tolerance", 1e-11), X, y, 1,
          intercept=False)
    X, y = flowers(4, 500, 4, 11)
    path = save(np.c_[X[:, :2], y, X[:, 2:]])
    agree("labels between columns", Model(path, "--target", -3, "--tolerance", 1e-11), X, y, 1)


def the_defaults_converge():
    """On data as people have it, unscaled: an objective no higher than scikit-learn's defaults reach, also as its newer
    versions stop, which average the loss over the rows."""
    wide = flowers(3, 1500, 8, 21)[0] * 10.0**np.arange(-3, 5) + 10.0**np.arange(-2, 6)
    sets = {bunch.__name__: bunch(return_X_y=True) for bunch in (load_iris, load_wine, load_breast_cancer, load_digits)}
    sets["columns of very different size"] = wide, flowers(3, 1500, 8, 21)[1]
    for name, (X, y) in sets.items():
        model = Model(save(np.c_[X, y]))
        check(f"{name}: the defaults converge", model.about["converged"], model.about)
        for C, weights in ((1, None), (len(X), np.full(len(X), 1 / len(X)))):
            peer = LogisticRegression(C=C).fit(X, y, sample_weight=weights)
            model.weights, model.intercept, ours = peer.coef_, peer.intercept_, model.about["objective"]
            theirs = objective(model, X, y, 1)
            check(f"{name}: an objective as low as that of scikit-learn's defaults", ours < (1 + 1e-4) * theirs,
                  (ours, theirs))


def digits():
    path = shared / "clustering" / "optdigits.csv"
    if not path.exists():
        print(f"SKIPPED digits: {path} is not here")
        return
    data = np.loadtxt(path, delimiter=",")
    X, y = data[:1500, :-1], data[:1500, -1]
    model = Model(save(np.c_[X, y].astype("u1")), "--l2", 50, "--tolerance", 1e-11)
    agree("digits", model, X, y, 50)


def float32_is_nearly_as_good():
    X, y = flowers(3, 3000, 6, 31)
    path = save(np.c_[X, y].astype("f4"))
    single, double = Model(path, "--precision", "float32", "--tolerance", 1e-9), Model(path, "--tolerance", 1e-9)
    check("float32: objective",
          abs(single.about["objective"] - double.about["objective"]) < 1e-6 * double.about["objective"],
          (single.about["objective"], double.about["objective"]))
    check("float32: converged", single.about["converged"] and single.about["iterations"] < 300, single.about)
    check("float32: weights", np.abs(single.weights - double.weights).max() < 2e-2 * np.abs(double.weights).max())
    check("float32 is another model", single.bytes != double.bytes)


# ---- L1 --------------------------------------------------------------------------------------------------------------


def l1_minima_meet_their_conditions():
    for classes, l1, l2 in ((2, 3, 0), (2, 8, 1), (3, 5, 0), (3, 12, 2)):
        random = np.random.default_rng(classes + l1)
        X, y = flowers(classes, 400, 4, 40 + classes)
        X = np.c_[(X - X.mean(0)) / X.std(0), random.normal(size=(400, 16))] + random.normal(size=20)
        model = Model(save(np.c_[X, y]), "--l1", l1, "--l2", l2, "--tolerance", 1e-11, "--iterations", 5000)
        Z = X @ model.weights.T + model.intercept
        if classes == 2:
            D = (1 / (1 + np.exp(-Z[:, 0])) - y)[:, None]
        else:
            P = np.exp(Z - Z.max(1, keepdims=True))
            D = P / P.sum(1, keepdims=True) - np.eye(classes)[y]
        G, W = D.T @ X + l2 * model.weights, model.weights
        zero = W == 0
        what = f"l1 {l1}, l2 {l2}, {classes} classes"
        check(f"{what}: some weights are 0 and some not", zero.sum() >= 5 and (~zero).sum() >= 3, int(zero.sum()))
        check(f"{what}: at weights",
              np.abs(G + l1 * np.sign(W))[~zero].max() < 1e-6 * 400,
              np.abs(G + l1 * np.sign(W))[~zero].max())
        check(f"{what}: at zeros", np.abs(G)[zero].max() <= l1 + 1e-6 * 400, np.abs(G)[zero].max())
        check(f"{what}: intercept", np.abs(D.sum(0)).max() < 1e-6 * 400)
        value = objective(model, X, y, l2, l1)
        check(f"{what}: objective",
              abs(value - model.about["objective"]) < 1e-9 * value, (value, model.about["objective"]))
        if l2 == 0:
            peer = LogisticRegression(penalty="l1", C=1 / l1, solver="saga", tol=1e-9, max_iter=100000).fit(X, y)
            check(f"{what}: saga", np.abs(peer.coef_ - W).max() < 1e-4, np.abs(peer.coef_ - W).max())


# ---- whoever computes ------------------------------------------------------------------------------------------------


def all_find_the_same_bytes():
    X, y = flowers(3, 1300, 7, 51)
    weights = save(np.random.default_rng(5).uniform(0, 2, 1300))
    for name, options in (("float64", []), ("float32", ["--precision",
                                                        "float32"]), ("l1", ["--l1",
                                                                             4]), ("weights", ["--weights", weights])):
        path = save(np.c_[X, y].astype("f4" if name == "float32" else "f8"))
        words = [path, "--grain", 100, *options]
        first = Model(*words, "--threads", 1)
        ways = {f"{count} threads": Model(*words, "--threads", count) for count in (2, 3)}
        for kernel in ("portable", "avx2", "avx512"):
            if shoal("logistic", *words, "--iterations", 0, "--quiet", SHOAL_KERNEL=kernel).returncode == 0:
                ways[kernel] = Model(*words, SHOAL_KERNEL=kernel)
        ways["local:1"] = Model(*words, "--workers", "local:1")
        ways["local:3"] = Model(*words, "--workers", "local:3", "--slices", 5)
        ways["another store"] = Model(*words, "--workers", "local:2", "--store", f"store-{name}")
        for way, model in ways.items():
            check(f"{name}: {way} finds the same bytes", model.bytes == first.bytes,
                  f"{model.about['objective']} {first.about['objective']}")
        check(f"{name}: another grain is near", np.abs(Model(path, *options).weights - first.weights).max() < 1e-3)


def labels_of_their_own():
    X, y = flowers(3, 400, 5, 61)
    whole = Model(save(np.c_[X, y]))
    for labels in (save(y.astype("u1")), save(y.astype("f4")[None, :]), save(y.astype("i8")[:, None])):
        check("labels from a file", Model(save(X), "--target", labels).found == whole.found)
    pathlib.Path("labels.csv").write_text("".join(f"{label}\n" for label in y))
    check("labels from a text file, on workers",
          Model(save(X), "--target", "labels.csv", "--workers", "local:2").found == whole.found)
    rows, store = save(X), f"dir:{pathlib.Path('named').absolute()}"
    done = shoal("logistic", rows, "--target", "labels.csv", "--store", store, "--workers", "local:1", "--quiet")
    shown = shoal("job", "show", "--store", store)
    check("rows with labels beside them keep their name", done.returncode == 0 and f"{rows}: 400 rows" in shown.stdout,
          (done.stderr, shown.stdout, shown.stderr))
    small = (np.abs(X) % 100).astype("i1")
    for labels, kind in ((y - 1, "i1"), (y * 300, "i2"), (y * 1e5, "f4"), (y + 0.5, "f4"), (y / 3, "f8")):
        joined = Model(save(small), "--target", save(np.asarray(labels, "f8")))
        model = Model(save(np.c_[small, labels].astype(kind)))
        check(f"labels beside int8 as {kind}",
              np.array_equal(joined.classes, np.unique(labels)) and np.array_equal(joined.weights, model.weights))
    names = "a,b,species,c\n"
    pathlib.Path("named.csv").write_text(names + "".join(f"{r[0]!r},{r[1]!r},{label},{r[2]!r}\n"
                                                         for r, label in zip(X.tolist(), y)))
    check("a column by its name",
          np.array_equal(Model("named.csv", "--target", "species").weights,
                         Model("named.csv", "--target", 3).weights))


def words_as_targets():
    """Words in a column of any place, or in a file, are classes in the order of their bytes."""
    X, y = flowers(3, 300, 4, 65)
    word = np.array(["oak", "Ash tree", "birch"])[y]
    classes = sorted(set(word))
    expected = Model(save(np.c_[X, np.searchsorted(classes, word)])).weights
    rows = X.tolist()

    def table(path, place, cell=lambda i: word[i], name="kind"):
        names = [f"x{k}" for k in range(4)]
        names.insert(place, name)
        lines = [",".join(names)]
        for i, row in enumerate(rows):
            cells = [repr(value) for value in row]
            cells.insert(place, cell(i))
            lines.append(",".join(cells))
        pathlib.Path(path).write_text("\n".join(lines) + "\n")

    table("last.csv", 4)
    table("middle.csv", 2)
    pathlib.Path("words.txt").write_text("".join(f"{w}\n" for w in word))
    pathlib.Path("named.txt").write_text("kind\n" + "".join(f"{w}\n" for w in word))
    ways = {
        "the last column": ["last.csv"], "a name": ["middle.csv", "--target", "kind"],
        "a number": ["middle.csv", "--target", "3"], "from the end": ["middle.csv", "--target=-3"],
        "beside chosen columns": ["middle.csv", "--target", "kind", "--columns", "x0,x1,x2,x3"],
        "a file": [save(X), "--target", "words.txt"], "a file with a name": [save(X), "--target", "named.txt"],
        "workers": ["middle.csv", "--target", "kind", "--workers", "local:2"],
        "a file, on workers": [save(X), "--target", "words.txt", "--workers", "local:2"]
    }
    for way, options in ways.items():
        model = Model(*options)
        check(f"words: {way}", np.array_equal(model.weights, expected) and list(model.classes) == [0, 1, 2])
        check(f"words: {way}: the model has their names", all(name in model.metadata["schema"] for name in classes),
              model.metadata)
    result = shoal("logistic", "last.csv", "--target", "kind", "--store", "dir:words", "--workers", "local:1",
                   "--detach", "--model", "detached.safetensors")
    waited = shoal("job", "wait", "--store", "dir:words")
    check("words: a detached job", result.returncode == 0 and waited.returncode == 0, (result.stderr, waited.stderr))
    deadline = time.monotonic() + SOON
    while not os.path.exists("detached.safetensors") and time.monotonic() < deadline:
        time.sleep(0.05)
    check("words: the detached job's model is the same",
          pathlib.Path("detached.safetensors").read_bytes() == Model("last.csv", "--target", "kind").bytes)
    pathlib.Path("kind").write_text("1\n")
    both = shoal("logistic", "last.csv", "--target", "kind")
    check("a column counts before a file, and that is told", both.returncode == 0 and "./kind" in both.stderr,
          both.stderr)
    os.remove("kind")

    table("gaps.csv", 4, lambda i: "" if i % 50 == 7 else word[i])
    kept = np.array([i % 50 != 7 for i in range(300)])
    refuses(1, "gaps.csv: 6 values are missing, the first in line 9, column 5 (kind)", "gaps.csv")
    refuses(1, "column 5 (kind) is the target and has missing values", "gaps.csv", "--missing", "mean")
    weights = np.arange(1.0, 301)
    dropped = Model("gaps.csv", "--missing", "drop", "--weights", save(weights))
    number = np.searchsorted(classes, word)[kept]
    check("rows of unknown class are left out with their weights",
          dropped.found == Model(save(np.c_[X[kept], number]), "--weights", save(weights[kept])).found)
    pathlib.Path("gaps.txt").write_text("".join(f"{w if k else 'NA'}\n" for w, k in zip(word, kept)))
    of_file = Model(save(X), "--target", "gaps.txt", "--missing", "drop", "--weights", save(weights))
    check("also those that a file does not know", of_file.found == dropped.found)
    refuses(2, "--columns leaves open which column is the target", "middle.csv", "--columns", "x0,x1")
    refuses(2, "--drop-column leaves out column 3, which is the target", "middle.csv", "--target", "kind",
            "--drop-column", "kind")
    refuses(2, 'middle.csv: --target: there is no column "kint" and no such file; did you mean "kind"?', "middle.csv",
            "--target", "kint")


# ---- stopping and going on -------------------------------------------------------------------------------------------


def round_of(store):
    listed = shoal("job", "list", "--json", "--store", store)
    lines = [json.loads(line) for line in listed.stdout.splitlines()] if listed.returncode == 0 else []
    return lines[0]["round"] if lines else -1


def a_killed_job_goes_on():
    X, y = flowers(3, 600, 6, 71)
    path, labels = save(X), save(y)
    words = [path, "--target", labels, "--grain", 60, "--l1", 2, "--l2", 0]
    expected = Model(*words)
    slow = "dir:killed?faults=delay:1/15ms"
    starter = subprocess.Popen([
        program, "logistic", *map(str, words), "--store", slow, "--workers", "local:2", "--model", "found.safetensors"
    ], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + SOON
    while round_of("killed") < 7 and time.monotonic() < deadline:
        time.sleep(0.05)
    shown = json.loads(shoal("job", "show", "--json", "--store", "killed").stdout)
    starter.kill()
    starter.wait()
    for worker in shown["worker"]:
        if worker["alive"]:
            os.kill(worker["pid"], signal.SIGKILL)
    check("it was killed on its way", shown["state"] == "running" and not os.path.exists("found.safetensors"),
          shown["state"])
    result = shoal("job", "resume", "--store", "killed", "--workers", "local:1", "--json")
    check("the job goes on", result.returncode == 0, result.stderr)
    check("to the same bytes",
          os.path.exists("found.safetensors") and pathlib.Path("found.safetensors").read_bytes() == expected.bytes)
    about = json.loads(result.stdout) if result.returncode == 0 else {}
    check("and says what it found", about.get("objective") == expected.about["objective"], about)


def a_submission_that_is_cut_short_goes_on():
    X, y = flowers(2, 400, 3, 75)
    words = [save(X), "--target", save(y), "--grain", 10]
    expected = Model(*words)
    starter = subprocess.Popen([
        program, "logistic", *map(str, words), "--slices", "40", "--store", "dir:cut?faults=delay:1/300ms", "--workers",
        "local:1", "--model", "cut.safetensors"
    ], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + SOON
    while round_of("cut") < 0 and time.monotonic() < deadline:
        time.sleep(0.02)
    starter.kill()
    starter.wait()
    there = [key for key in shoal("store", "ls", "-r", "cut").stdout.split() if "/data/" in key]
    check("it was killed before all rows were there", len(there) < 40, len(there))
    result = shoal("job", "resume", "--store", "cut", "--workers", "local:1", "--quiet")
    check("whoever goes on joins the labels again", result.returncode == 0 and
          pathlib.Path("cut.safetensors").read_bytes() == expected.bytes, result.stderr)


def an_earlier_model_saves_steps():
    X, y = flowers(4, 900, 8, 81)
    path = save(np.c_[X, y])
    cold = Model(path, "--tolerance", 1e-9)
    warm = Model(path, "--tolerance", 1e-9, "--start", cold.path)
    check("a start at the minimum ends at once", warm.about["iterations"] <= 2, warm.about["iterations"])
    near = Model(path, "--l2", 1.02, "--tolerance", 1e-6, "--start", cold.path)
    far = Model(path, "--l2", 1.02, "--tolerance", 1e-6)
    check("a start near the minimum is shorter", near.about["iterations"] < 0.8 * far.about["iterations"],
          (near.about["iterations"], far.about["iterations"]))
    check("and ends there too", np.abs(near.weights - far.weights).max() < 1e-3 * np.abs(far.weights).max())


def a_limit_is_told():
    X, y = flowers(2, 300, 3, 91)
    path = save(np.c_[X, y])
    few = Model(path, "--iterations", 3, "--tolerance", 1e-9)
    check("three iterations", few.about["iterations"] == 3 and not few.about["converged"], few.about)
    result = shoal("logistic", path, "--iterations", 3, "--tolerance", 1e-9)
    check("the summary says so", "not converged: raise --iterations or --tolerance" in result.stdout, result.stdout)
    separable = save(np.array([[-2.0, 0], [-1, 0], [1, 1], [2, 1]]))
    apart = Model(separable, "--l2", 0, "--iterations", 50)
    check("separable rows are no trouble", apart.about["accuracy"] == 1 and apart.about["loss"] < 1e-3, apart.about)


# ---- prediction ------------------------------------------------------------------------------------------------------


def predictions_are_those_of_scikit_learn():
    for classes in (2, 4):
        X, y = flowers(classes, 800, 6, 100 + classes)
        new, _ = flowers(classes, 333, 6, 200 + classes)
        model = Model(save(np.c_[X, 3 * y - 1]), "--tolerance", 1e-11)
        peer = LogisticRegression(C=1, solver="newton-cg", tol=1e-10, max_iter=10000).fit(X, 3 * y - 1)
        rows = save(new)
        result = shoal("predict", model.path, rows, "--labels", "l.npy", "--probabilities", "p.npy", "--json")
        check(f"{classes} classes: predict", result.returncode == 0, result.stderr)
        if result.returncode:
            continue
        labels, shares = np.load("l.npy"), np.load("p.npy")
        check(f"{classes} classes: labels", np.array_equal(labels, peer.predict(new)))
        check(f"{classes} classes: probabilities", shares.shape == (333, classes) and
              np.abs(shares - peer.predict_proba(new)).max() < 1e-5)
        for way in (["--threads", 1], ["--kernel", "portable"], ["--grain", 7]):
            shoal("predict", model.path, rows, "--labels", "l2.npy", "--probabilities", "p2.npy", *way)
            check(f"{classes} classes: {way} predicts the same bytes",
                  pathlib.Path("l.npy").read_bytes() == pathlib.Path("l2.npy").read_bytes() and
                  pathlib.Path("p.npy").read_bytes() == pathlib.Path("p2.npy").read_bytes())
        new[17, 2] = np.nan
        result = shoal("predict", model.path, save(new), "--labels", "l.npy")
        check("a row without a number", result.returncode == 1 and "the first in row 18, column 3" in result.stderr,
              result.stderr)
        result = shoal("predict", model.path, save(new[:, 1:]), "--labels", "l.npy")
        check("rows of another length", result.returncode == 1 and "5 columns" in result.stderr and
              "6" in result.stderr, result.stderr)


# ---- wrong input -----------------------------------------------------------------------------------------------------


def wrong_input_is_told():
    X, y = flowers(3, 60, 3, 111)
    good = save(np.c_[X, y])
    bad = np.c_[X, y]
    bad[40, 1] = np.nan
    bad[50, 0] = np.inf
    refuses(1, "1 value is missing, the first in row 41, column 2; --missing mean fills in", save(bad))
    refuses(1, "column 4, the target, is the same in every row; at least two classes are needed",
            save(np.c_[X, 0 * y + 7]))
    wide = np.random.default_rng(1).normal(size=(2000, 2))
    refuses(1, "column 2, the target, has more than 1000 different values", save(wide))
    refuses(2, 'there is no column "spezies" and no such file; there are 4 columns, without names', good, "--target",
            "spezies")
    refuses(2, 'there is no column "5"', good, "--target", 5)
    refuses(2, 'there is no column "0"', good, "--target", 0)
    refuses(2, 'there is no column "-5"', good, "--target=-5")
    refuses(2, "--l1", good, "--l1=-1")
    refuses(2, "--l2", good, "--l2=nan")
    refuses(2, "--history", good, "--history", 0)
    refuses(2, "known labels are given with --target FILE", good, "--labels", good)
    refuses(1, "59 rows and 1 column, but --target needs one value for each of the 60 rows", save(X), "--target",
            save(y[1:]))
    refuses(1, "18 values are missing, the first in row 2; --missing drop leaves out such rows", save(X), "--target",
            save(np.where(y > 0, y, np.nan)))
    same, many = save(0 * y + 7), save(np.arange(2000.0))
    refuses(1, f"{same}: the value is the same in every row; at least two classes", save(X), "--target", same)
    refuses(1, f"{many}: more than 1000 different values", save(wide), "--target", many)
    refuses(1, "needs rows with a target and at least one other column", save(y))
    refuses(1, "--weights needs one value for each of the 60 rows", good, "--weights", save(y[1:]))
    other = Model(save(np.c_[X, X[:, 0], y])).path
    refuses(1, "weights", good, "--start", other)
    fewer = Model(save(np.c_[X, y % 2])).path
    refuses(1, "the labels are not the 2 classes of the model to start from", good, "--start", fewer)
    centres = "k.safetensors"
    assert shoal("kmeans", good, "-k", 2, "--model", centres, "--quiet").returncode == 0
    refuses(1, "kmeans", good, "--start", centres)
    refuses(1, "too large for --precision float32", save(np.c_[X * 1e300, y]), "--precision", "float32")
    refuses(1, "are too large: scale the columns", save(np.c_[X * 1e100, y]))
    on_workers = shoal("logistic", save(bad), "--workers", "local:2", "--model", "never.safetensors")
    check("refused on workers too", on_workers.returncode == 1 and "row 41, column 2" in on_workers.stderr,
          on_workers.stderr)


def help_and_trace():
    X, y = flowers(2, 200, 3, 121)
    model = Model(save(np.c_[X, y]), "--trace", "trace.jsonl")
    lines = [json.loads(line) for line in open("trace.jsonl")]
    values = [line["objective"] for line in lines if line["objective"] is not None]
    check("the trace goes down to the objective",
          abs(values[-1] - model.about["objective"]) < 1e-12 and max(values) == values[0], values[:3])
    check("the metadata", model.metadata["learner"] == "logistic" and model.metadata["columns"] == "3" and
          float(model.metadata["option.l2"]) == 1 and model.metadata["converged"] == "true", model.metadata)


tests = [
    minima_are_those_of_scikit_learn, the_defaults_converge, digits, float32_is_nearly_as_good,
    l1_minima_meet_their_conditions, all_find_the_same_bytes, labels_of_their_own, words_as_targets,
    a_killed_job_goes_on, a_submission_that_is_cut_short_goes_on, an_earlier_model_saves_steps, a_limit_is_told,
    predictions_are_those_of_scikit_learn, wrong_input_is_told, help_and_trace
]
for run in tests:
    if len(sys.argv) > 2 and run.__name__ not in sys.argv[2:]:
        continue
    try:
        run()
    except Exception:
        check(run.__name__, False, traceback.format_exc())
os.chdir("/")
shutil.rmtree(folder)
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
