#!/usr/bin/python3
"""Gaussian naive Bayes through the program: what scikit-learn's GaussianNB finds, the same bytes whoever computes, and
wrong input in one sentence.

    test_bayes.py PATH_TO_shoal [NAME...]
"""
import json
import os
import struct
import subprocess
import sys

import apart
import mpi

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
try:
    import numpy as np
    from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
    from sklearn.naive_bayes import GaussianNB
except ImportError as error:
    print(f"{error}: skipped; Debian has python3-numpy and python3-sklearn")
    sys.exit(77)

SHOAL = os.path.abspath(sys.argv[1])
CLOSE = 1e-9


def shoal(*words, code=0):
    done = subprocess.run([SHOAL, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == code, (words, done.returncode, done.stderr)
    return done


def read_model(path):
    with open(path, "rb") as file:
        content = file.read()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    about = header.pop("__metadata__")
    return about, {
        name: np.frombuffer(content[8 + size:][slice(*place["data_offsets"])], "f8").reshape(place["shape"])
        for name, place in header.items()
    }


def near(found, expected):
    """The greatest difference, as a share; of what is 0, as it is."""
    return float(np.max(np.abs(found - expected) / np.where(expected == 0, 1, np.abs(expected))))


def agrees(data, X, y, *words, weights=None, **peer):
    """Runs it, and compares all it says with what GaussianNB says."""
    told = json.loads(shoal("bayes", data, "--model", "m.safetensors", "--json", *words).stdout)
    about, model = read_model("m.safetensors")
    peer = GaussianNB(**peer).fit(X, y, sample_weight=weights)
    assert np.array_equal(model["classes"], peer.classes_), model
    for name, expected in (("means", peer.theta_), ("variances", peer.var_), ("priors", peer.class_prior_),
                           ("counts", peer.class_count_)):
        assert near(model[name], expected) < CLOSE, (data, name, near(model[name], expected))
    assert about["learner"] == "bayes" and int(about["columns"]) == X.shape[1] and int(about["rows"]) == len(X), about
    assert told["classes"] == len(peer.classes_) and near(told["smoothing"], peer.epsilon_) < CLOSE, told
    squares = (X[:, None, :] - peer.theta_)**2 / peer.var_ + np.log(2 * np.pi * peer.var_)
    joint = (np.log(peer.class_prior_) - squares.sum(axis=2) / 2)[np.arange(len(y)), np.searchsorted(peer.classes_, y)]
    likelihood = float(joint @ (np.ones(len(y)) if weights is None else weights))
    assert near(told["log_likelihood"], likelihood) < CLOSE, (told, likelihood)
    np.save("x.npy", X)
    said = json.loads(
        shoal("predict", "m.safetensors", "x.npy", "--labels", "l.npy", "--probabilities", "p.npy", "--json").stdout)
    shares, expected = np.load("p.npy"), peer.predict_proba(X)
    likely = expected > 1e-12  # the others have lost digits there, not here
    assert near(shares[likely], expected[likely]) < CLOSE, (data, near(shares[likely], expected[likely]))
    assert np.abs(shares.sum(axis=1) - 1).max() < 1e-12 and np.abs(shares - expected).max() < CLOSE
    assert np.array_equal(np.load("l.npy"), peer.predict(X)), data
    assert sum(said["counts"]) == len(X) and said["classes"] == list(peer.classes_), said


@apart.test
def models_are_those_of_scikit_learn():
    for load in (load_iris, load_wine, load_breast_cancer, load_digits):
        X, y = load(return_X_y=True)
        np.save("d.npy", np.c_[X, y])
        agrees("d.npy", X, y)
    X, y = load_wine(return_X_y=True)
    np.save("d.npy", np.c_[X[:, :4], 10 - 3 * y, X[:, 4:]])
    agrees("d.npy", X, 10 - 3 * y, "--target", 5, "--smoothing", 0.01, var_smoothing=0.01)
    agrees("d.npy", X, 10 - 3 * y, "--target", -10, "--priors", "uniform", priors=[1 / 3] * 3)


@apart.test
def files_of_all_kinds():
    X, y = load_iris(return_X_y=True)
    with open("iris.csv", "w") as file:
        file.write("kind,a,b,c,d\n" + "".join(f"{k},{a},{b},{c},{d}\n" for k, (a, b, c, d) in zip(y, X)))
    agrees("iris.csv", X, y, "--target", "kind")
    np.save("only.npy", X)
    np.save("y.npy", y)
    agrees("only.npy", X, y, "--target", "y.npy")
    X, y = load_digits(return_X_y=True)
    np.save("bytes.npy", np.c_[X, y].astype("u1"))
    agrees("bytes.npy", X, y)


# scikit-learn's epsilon is of the rows without their weights, so none here.
@apart.test
def weights_of_rows():
    X, y = load_breast_cancer(return_X_y=True)
    weights = np.random.default_rng(3).choice([0, 0.25, 1, 3.7], len(y))
    np.save("d.npy", np.c_[X, y])
    np.save("w.npy", weights)
    agrees("d.npy", X, y, "--weights", "w.npy", "--smoothing", 0, weights=weights, var_smoothing=0)
    whole = weights.round().astype(int)
    np.save("w.npy", whole.astype("f8"))
    np.save("copies.npy", np.repeat(np.c_[X, y], whole, axis=0))
    shoal("bayes", "d.npy", "--weights", "w.npy", "--model", "w.safetensors")
    shoal("bayes", "copies.npy", "--model", "c.safetensors")
    weighted, copied = read_model("w.safetensors")[1], read_model("c.safetensors")[1]
    for name in weighted:
        assert near(weighted[name], copied[name]) < 1e-14, (name, near(weighted[name], copied[name]))


# ---- bits ------------------------------------------------------------------------------------------------------------


def content(path):
    with open(path, "rb") as file:
        return file.read()


@apart.test
def the_same_bytes_whoever_computes():
    random = np.random.default_rng(7)
    y = random.integers(0, 4, 5000)
    X = (random.normal(size=(5000, 6)) * 10.0**random.integers(-3, 9, 6) + y[:, None]).astype("f4")
    np.save("d.npy", np.c_[X, y].astype("f4"))
    np.save("x.npy", X)
    np.save("w.npy", random.random(5000))
    run = ["bayes", "d.npy", "--weights", "w.npy", "--quiet", "--model"]
    apply = ["predict", "one.safetensors", "x.npy", "--quiet", "--probabilities"]
    shoal(*run, "one.safetensors")
    shoal(*apply, "one.npy")
    for words in (["--threads", 1], ["--threads", 3, "--grain", 7], ["--kernel", "portable"],
                  ["--kernel", "portable", "--grain", 5000]):
        shoal(*run, "other.safetensors", *words)
        assert content("other.safetensors") == content("one.safetensors"), words
        shoal(*apply, "other.npy", *words)
        assert content("other.npy") == content("one.npy"), words
    shoal(*run, "other.safetensors", "--workers", "local:2", "--grain", 100)
    assert content("other.safetensors") == content("one.safetensors")
    for kind in mpi.KINDS[:1]:
        mpi.Work("bayes", "d.npy", "--weights", "w.npy", files={"--model": "m.safetensors"}).agrees(kind, 2)
        mpi.Work("predict", "one.safetensors", "x.npy", files={"--labels": "l.npy", "--probabilities":
                                                               "p.npy"}).agrees(kind, 2)


# ---- what else a learner has -----------------------------------------------------------------------------------------


@apart.test
def plans_and_help():
    plan = json.loads(
        shoal("plan", "bayes", "--rows", "1e8", "--cols", 50, "--classes", 7, "--flops", "1e9", "--workers", "1,10",
              "--store", "dir", "--json").stdout)
    assert plan["learner"] == "bayes", plan
    for words in (["bayes", "-h"], ["plan", "bayes", "-h"], ["man", "bayes"]):
        assert "smoothing" in shoal(*words).stdout, words
    assert "of bayes --labels and --probabilities" in " ".join(shoal("man", "predict").stdout.replace("\\",
                                                                                                    "").split())


@apart.test
def wrong_input_is_told():

    def refuses(code, sentence, *words):
        done = shoal("bayes", *words, "--model", "never.safetensors", code=code)
        where = f"{words[0]}: " if code == 1 else ""
        assert done.stderr.split("\n")[0] == f"shoal: {where}{sentence}", done.stderr
        assert not os.path.exists("never.safetensors")

    np.save("one.npy", np.array([[1.0, 5], [2, 5]]))
    np.save("bad.npy", np.array([[1.0, 5], [np.nan, 6]]))
    np.save("flat.npy", np.array([[1.0, 5], [1, 5], [2, 6], [3, 6]]))
    np.save("good.npy", np.array([[1.0, 5], [2, 5], [2, 6], [3, 6]]))
    np.save("three.npy", np.ones((4, 3)))
    np.save("none.npy", np.array([1.0, 1, 0, 0]))
    np.save("many.npy", np.c_[np.arange(1001.0), np.arange(1001.0)])
    refuses(1, "column 2, the target, is the same in every row; at least two classes are needed", "one.npy")
    refuses(1, "1 value is missing, the first in row 2, column 1; --missing mean fills in the mean of the column, "
            "--missing drop leaves out such rows", "bad.npy")
    refuses(1, "column 2, the target, has more than 1000 different values; choose another with --target",
            "many.npy")
    refuses(1, "column 1 is 1 in every row with label 5: with a variance of 0 --smoothing must be greater than 0",
            "flat.npy", "--smoothing", 0)
    refuses(1, "every row with label 6 has a weight of 0: leave these rows out", "good.npy", "--weights", "none.npy")
    refuses(2, 'good.npy: --target: there is no column "3" and no such file; there are 2 columns, without names',
            "good.npy", "--target", 3)
    refuses(2, "unknown option --labels; known labels are given with --target FILE", "good.npy", "--labels", "none.npy")
    refuses(2, "--smoothing must be at least 0, not -1", "good.npy", "--smoothing", -1)
    done = shoal("bayes", "good.npy", "--priors", "even", code=2)
    assert "--priors" in done.stderr and "uniform" in done.stderr, done.stderr
    shoal("bayes", "good.npy", "--model", "m.safetensors")
    shoal("predict", "m.safetensors", "good.npy", "--labels", "l.npy")  # which holds the target still
    done = shoal("predict", "m.safetensors", "three.npy", "--labels", "never.npy", code=1)
    assert "three.npy has 3 columns, but m.safetensors is a model for 1" in done.stderr, done.stderr


apart.main(at_once=3)
