#!/usr/bin/python3
# Seconds: 40
# The estimators of the Python package: scikit-learn's checks, the program's models and predictions, files and workers,
# pickles, forks and threads, and what they refuse.
#   test_python_estimators.py PATH_TO_shoal [TEST...]
# Prints one line for each failure and "N passed, M failed" at the end.
import concurrent.futures
import copy
import doctest
import importlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import warnings

from scripts import check, folder, main, program, raises, random_rows, root, run_python, skipped

import numpy as np
import shoal
from shoal import (Autoencoder, GaussianNB, KMeans, LogisticRegression, MiniBatchKMeans, NetClassifier, _estimator,
                   _validate)

os.chdir(folder)
ESTIMATORS = [KMeans(), MiniBatchKMeans(), LogisticRegression(), GaussianNB(), Autoencoder(), NetClassifier()]

X = random_rows(300, 4, seed=1)
NUMBERS = (X[:, 0] > X[:, 1]).astype(int) + 2 * (X[:, 2] > 9)
WORDS = np.array(["elm", "oak", "ash", "fir"])[NUMBERS]
WEIGHTS = np.random.default_rng(3).uniform(0.5, 2, 300)
NAMES = ["height", "width", "age", "leaves"]
np.save("x.npy", X)
np.save("y.npy", NUMBERS)
np.save("w.npy", WEIGHTS)


class Frame:
    """As much of a data frame as an estimator looks at."""

    def __init__(self, values, columns):
        self.values, self.columns = values, columns

    def __array__(self, dtype=None):
        return np.asarray(self.values, dtype)


def write_csv(path, values, names, words=None):
    rows = [",".join(map(repr, row)) for row in np.asarray(values).tolist()]
    rows = rows if words is None else [f"{row},{word}" for row, word in zip(rows, words)]
    with open(path, "w") as file:
        file.write("\n".join([",".join(names), *rows]) + "\n")


write_csv("trees.csv", X, [*NAMES, "kind"], WORDS)
write_csv("turned.csv", X[:, ::-1], NAMES[::-1])


def model_of(estimator):
    """The bytes that save() writes."""
    estimator.save("mine.safetensors")
    with open("mine.safetensors", "rb") as file:
        return file.read()


def run_program(*words):
    done = subprocess.run(list(map(str, [program, *words, "--quiet"])), capture_output=True, text=True, timeout=120)
    check(f"shoal {' '.join(map(str, words))}", done.returncode == 0, done.stderr)


def programs_model(*words):
    run_program(*words, "--model", "theirs.safetensors", "--force")
    with open("theirs.safetensors", "rb") as file:
        return file.read()


# ---- scikit-learn's own checks ---------------------------------------------------------------------------------------


def run_checks(estimator):
    from sklearn.exceptions import SkipTestWarning
    from sklearn.utils.estimator_checks import check_estimator
    kind, count = type(estimator).__name__, 0
    for one, test in check_estimator(estimator, generate_only=True):
        name = f"{kind}: {test.func.__name__}"
        count += 1
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                test(one)
            for warning in caught:
                if issubclass(warning.category, SkipTestWarning):
                    skipped(name, warning.message)
            check(name, True)
        except BaseException as error:
            if type(error).__name__ == "SkipTest":
                skipped(name, error)
            else:
                check(name, False, f"{type(error).__name__}: {error}")
    check(f"{kind} has checks", count >= 34, count)


def test_check_estimator():
    try:
        import sklearn.utils.estimator_checks  # noqa: F401
    except ImportError as error:
        return skipped("check_estimator", error)
    warnings.simplefilter("ignore")
    for estimator in ESTIMATORS:
        run_checks(estimator)
    return None


def decisions(model, rows):
    """Without what the outputs of a row have in common, which means nothing where there are more than two."""
    outputs = model.decision_function(rows)
    return outputs if outputs.ndim == 1 else outputs - outputs.mean(axis=1, keepdims=True)


def test_beside_sklearn():
    try:
        from sklearn.linear_model import LogisticRegression as TheirLogistic
        from sklearn.naive_bayes import GaussianNB as TheirBayes
    except ImportError as error:
        return skipped("scikit-learn's results", error)
    new = random_rows(200, 4, seed=8)
    for parameters in ({}, {"C": 0.1}, {"fit_intercept": False}, {"class_weight": "balanced"},
                       {"class_weight": {"elm": 3, "oak": 0.5}}):
        for labels in (WORDS, np.where(NUMBERS > 1, "elm", "oak")):
            ours = LogisticRegression(tol=1e-9, **parameters).fit(X, labels, sample_weight=WEIGHTS)
            theirs = TheirLogistic(tol=1e-9, max_iter=5000, solver="newton-cg", **parameters)
            theirs.fit(X, labels, sample_weight=WEIGHTS)
            check(f"logistic, {parameters}", np.allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-5)
                  and np.allclose(decisions(ours, new), decisions(theirs, new), atol=1e-3)
                  and (ours.classes_ == theirs.classes_).all() and ours.coef_.shape == theirs.coef_.shape)
    ours = LogisticRegression("elasticnet", l1_ratio=0.5, C=0.05, tol=1e-9).fit(X, NUMBERS > 1)
    theirs = TheirLogistic("elasticnet", l1_ratio=0.5, C=0.05, tol=1e-9, solver="saga", max_iter=20000)
    theirs.fit(X, NUMBERS > 1)
    check("elasticnet", np.allclose(ours.coef_, theirs.coef_, atol=1e-4), (ours.coef_, theirs.coef_))
    ours, theirs = (kind().fit(X, WORDS, sample_weight=WEIGHTS) for kind in (GaussianNB, TheirBayes))
    check("naive Bayes", np.allclose(ours.theta_, theirs.theta_) and np.allclose(ours.var_, theirs.var_) and
          np.allclose(ours.class_count_, theirs.class_count_) and np.allclose(ours.class_prior_, theirs.class_prior_)
          and np.isclose(ours.epsilon_, theirs.epsilon_))
    check("naive Bayes predicts", (ours.predict(new) == theirs.predict(new)).all() and
          np.allclose(ours.predict_proba(new), theirs.predict_proba(new)) and
          ours.score(new, WORDS[:200]) == theirs.score(new, WORDS[:200]))
    return None


# ---- the program's models --------------------------------------------------------------------------------------------


def test_batches():
    """What MiniBatchKMeans has beside KMeans."""
    model = MiniBatchKMeans(5, batch_size=40, random_state=7, max_iter=3, max_no_improvement=None,
                            n_init=1).fit(X)
    check("batches: steps and passes", (model.n_steps_, model.n_iter_) == (24, 3), (model.n_steps_, model.n_iter_))
    check("batches: labels", (model.labels_ == model.predict(X)).all())
    check("batches: the labels are left out",
          not hasattr(MiniBatchKMeans(2, compute_labels=False, random_state=0).fit(X), "labels_"))
    model.save("batches.safetensors")
    again = shoal.load("batches.safetensors")
    check("batches: loaded", type(again) is MiniBatchKMeans and again.get_params() == model.get_params(), again)
    given = [MiniBatchKMeans(3, init=X[:3], batch_size=50, random_state=s).fit(X).cluster_centers_ for s in (0, 0, 1)]
    check("batches: those of given centres are drawn", (given[0] == given[1]).all() and (given[0] != given[2]).any())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        MiniBatchKMeans(9, init_size=4, random_state=0).fit(X)
    check("batches: a small sample", [str(w.message) for w in caught] == [
        "init_size=4 is less than n_clusters=9: 27 is used"], [str(w.message) for w in caught])
    for name, value, pattern in [("batch_size", 0, "^batch_size must be at least 1, not 0$"),
                                 ("max_no_improvement", 0, "^max_no_improvement must be at least 1, not 0$"),
                                 ("reassignment_ratio", 1.5, "^reassignment_ratio must be a finite number that is at"),
                                 ("compute_labels", 1, "^compute_labels must be True or False, not 1$"),
                                 ("init_size", 0, "^init_size must be at least 1, not 0$"),
                                 ("max_iter", 0, "^max_iter must be at least 1, not 0$")]:
        raises(f"batches: {name}", ValueError, pattern, lambda: MiniBatchKMeans(2, **{name: value}).fit(X))
    raises("batches: options", ValueError, "^options has 'batch', which a parameter of MiniBatchKMeans or fit says",
           lambda: MiniBatchKMeans(2, options={"batch": 3}).fit(X))
    KMeans(2, random_state=0).fit(X).save("all.safetensors")
    raises("batches: a model without", ValueError, "^this model was not found by batches: shoal.KMeans loads it$",
           lambda: MiniBatchKMeans.load("all.safetensors"))


def test_partial_fit():
    """Rows that come bit by bit: each centre is the mean of all that it has been nearest to, as numpy finds it."""
    parts = [random_rows(70, 3, seed=s) for s in range(4)] + [random_rows(3, 3, seed=9)]  # fewer rows than clusters
    model = MiniBatchKMeans(4, init=parts[0][:4], random_state=1, reassignment_ratio=0.0)
    centres, seen = parts[0][:4].copy(), np.zeros(4)
    for part in parts:
        label = ((part[:, None] - centres)**2).sum(2).argmin(1)
        for j in np.unique(label):
            mine = part[label == j]
            centres[j] = (seen[j] * centres[j] + mine.sum(0)) / (seen[j] + len(mine))
            seen[j] += len(mine)
        model.partial_fit(part)
    check("partial_fit: means", np.allclose(model.cluster_centers_, centres, rtol=1e-12), model.cluster_centers_)
    check("partial_fit: steps and labels", model.n_steps_ == 5 and len(model.labels_) == 3, model.n_steps_)
    model.save("parts.safetensors")
    again = shoal.load("parts.safetensors").set_params(reassignment_ratio=0.0).partial_fit(parts[1])
    check("partial_fit: goes on from a file",
          (again.cluster_centers_ == model.partial_fit(parts[1]).cluster_centers_).all())
    heavy, twice = [MiniBatchKMeans(4, init=parts[0][:4]) for _ in range(2)]
    heavy.partial_fit(parts[0], sample_weight=np.full(70, 2.0)).partial_fit(parts[1])
    twice.partial_fit(np.repeat(parts[0], 2, axis=0)).partial_fit(parts[1])
    check("partial_fit: weights", np.allclose(heavy.cluster_centers_, twice.cluster_centers_, rtol=1e-12))
    starved = MiniBatchKMeans(4, init=np.vstack([parts[0][:3], [[1e6] * 3]]), random_state=0)
    starved.partial_fit(parts[0]).partial_fit(parts[1])
    check("partial_fit: a centre without rows moves", np.abs(starved.cluster_centers_).max() < 1e3)
    found = MiniBatchKMeans(3, random_state=0).partial_fit(parts[0])
    check("partial_fit: first centres", len(np.unique(found.labels_)) == 3 and found.n_steps_ == 1)
    raises("partial_fit: other columns", ValueError, "^X has 4 features, but MiniBatchKMeans is expecting 3",
           lambda: found.partial_fit(X))


def test_models_are_the_programs():
    rows, weights, target = ["x.npy"], ["--weights", "w.npy"], ["--target", "y.npy"]
    cases = [
        ("kmeans", KMeans(5, random_state=7, metric="cosine"), ["-k", 5, "--seed", 7, "--metric", "cosine"], [], {}),
        ("kmeans", KMeans(5, random_state=7), ["-k", 5, "--seed", 7], weights, {"sample_weight": WEIGHTS}),
        ("kmeans", MiniBatchKMeans(5, batch_size=40, random_state=7, n_init=3, init_size=90, max_no_improvement=None,
                                   max_iter=4, tol=1e-4, reassignment_ratio=0.2),
         ["-k", 5, "--batch", 40, "--seed", 7, "--runs", 3, "--init-size", 90, "--max-no-improvement", 0,
          "--iterations", 4, "--reassignment-ratio", 0.2, "--init", "kmeans++"], weights, {"sample_weight": WEIGHTS}),
        ("logistic", LogisticRegression("elasticnet", l1_ratio=0.25, C=0.5), ["--l1", 0.5, "--l2", 1.5],
         target + weights, {"y": NUMBERS, "sample_weight": WEIGHTS}),
        ("logistic", LogisticRegression(options={"standardise": True}), ["--standardise"], target, {"y": NUMBERS}),
        ("bayes", GaussianNB(priors="uniform", var_smoothing=1e-3), ["--priors", "uniform", "--smoothing", "1e-3"],
         target + weights, {"y": NUMBERS, "sample_weight": WEIGHTS}),
        ("autoencoder", Autoencoder(3, random_state=4, max_iter=20, tied=True, precision="float32"),
         ["--hidden", 3, "--seed", 4, "--iterations", 20, "--tied", "--rescale", "auto", "--precision", "float32"], [],
         {}),
        ("train", NetClassifier("dense 9 tanh; dense 4 softmax", epochs=3, batch_size=16, optimizer="adam", l2=0.01,
                                learning_rate=0.01, schedule="constant", validation_fraction=0.25, n_iter_no_change=2,
                                random_state=6),
         ["--net", "dense 9 tanh; dense 4 softmax", "--epochs", 3, "--batch", 16, "--optimiser", "adam", "--l2", 0.01,
          "--rate", 0.01, "--schedule", "constant", "--validation", 0.25, "--early-stop", 2, "--seed", 6], target,
         {"y": NUMBERS}),
    ]
    warnings.simplefilter("ignore")  # twenty iterations are few
    for verb, estimator, options, more, given in cases:
        theirs = programs_model(verb, *rows, *more, *options)
        check(f"{verb}: the program's bytes", model_of(estimator.fit(X, **given)) == theirs)
        check(f"{verb}: of a file", model_of(estimator.fit("x.npy", **given)) == theirs)
        check(f"{verb}: by two workers", model_of(estimator.set_params(workers="local:2").fit(X, **given)) == theirs)
        named = {name: {"y": "y.npy", "sample_weight": "w.npy"}[name] for name in given}
        estimator.set_params(workers=["local:1"], n_threads=1, kernel="portable")
        check(f"{verb}: of files, by a worker", model_of(estimator.fit("x.npy", **named)) == theirs)
    for kind, verb in ((LogisticRegression, "logistic"), (GaussianNB, "bayes")):
        theirs = programs_model(verb, "trees.csv", "--target", "kind")
        for target in ("kind", None, 5, -1):
            check(f"{verb}: y={target!r}", model_of(kind().fit("trees.csv", target)) == theirs)


def test_images():
    """Images have a shape, which a net keeps and asks for; its weights have the names of PyTorch's."""
    random = np.random.default_rng(4)
    y = random.integers(0, 3, 300)
    images = random.integers(0, 60, (300, 8, 6, 3)).astype(np.uint8)
    images[np.arange(300), y * 2 + 1, :, y] += 150
    np.save("images.npy", images)
    np.save("kinds.npy", y)
    net = NetClassifier("conv 5 3x3 relu; pool 2", epochs=6, batch_size=32, validation_fraction=0.2, random_state=1,
                        augment="flip")
    net.fit(images, y)
    programs_model("train", "images.npy", "--target", "kinds.npy", "--net",
                            "conv 5 3x3 relu; pool 2; dense 3 softmax", "--epochs", 6, "--batch", 32, "--validation",
                            0.2, "--seed", 1, "--augment", "flip")
    state, mine = net.state_dict(), NetClassifier.load("theirs.safetensors")
    check("images: the program's weights", all((mine.state_dict()[name] == state[name]).all() for name in state))
    check("images: attributes", net.input_shape_ == (8, 6, 3) and net.n_features_in_ == 144 and net.n_iter_ == 6 and
          net.history_["validation_accuracy"][net.best_iter_ - 1] > 0.9 and len(net.loss_curve_) == 6 and
          set(state) == {"0.weight", "0.bias", "4.weight", "4.bias"} and state["0.weight"].shape == (5, 3, 3, 3))
    check("images: or rows, or a file", (net.predict(images) == net.predict(images.reshape(300, -1))).all() and
          (net.predict("images.npy") == net.predict(images)).all() and mine.score(images, y) > 0.9)
    net.save("net.safetensors")
    again = shoal.load("net.safetensors")
    check("images: a model that was loaded", again.predict_proba(images).tobytes() ==
          net.predict_proba(images).tobytes() and again.net == "conv 5 3x3 relu; pool 2; dense 3 softmax" and
          again.augment == "flip" and again.learning_rate is None and again.n_iter_no_change is None,
          again.get_params())
    grey = NetClassifier("dense 5", epochs=1, random_state=0).fit(images[..., 0], y)
    check("grey images", grey.input_shape_ == (8, 6) and len(grey.predict(images[..., :1])) == 300)
    raises("images of another shape", ValueError, r"^X has rows of shape \(6, 8, 3\), but NetClassifier was fitted "
           r"with \(8, 6, 3\)$", lambda: net.predict(images.transpose(0, 2, 1, 3)))


def test_files():
    """Rows in files, whose columns are matched by name, give what rows in memory give."""
    frame = Frame(X, NAMES)
    model = LogisticRegression().fit("trees.csv", "kind")
    check("names of a file", list(model.feature_names_in_) == NAMES and model.n_features_in_ == 4 and
          list(model.classes_) == ["ash", "elm", "fir", "oak"])
    check("predictions of files", (model.predict("turned.csv") == model.predict(frame)).all() and
          model.predict_proba("trees.csv").tobytes() == model.predict_proba(frame).tobytes())
    right = (model.predict(frame) == WORDS).mean()
    check("scores of files", model.score("trees.csv") == model.score("trees.csv", "kind") == model.score(frame, WORDS)
          == model.score("x.npy", WORDS) == right, right)
    check("rows of a file, labels in memory", (LogisticRegression().fit("x.npy", WORDS).predict(X) ==
                                               LogisticRegression().fit(X, WORDS).predict(X)).all())
    scaled = KMeans(3, random_state=0, options={"standardise": True}).fit("turned.csv")
    check("centres in the units of X", np.allclose([X[:, ::-1][scaled.labels_ == k].mean(axis=0) for k in range(3)],
                                                   scaled.cluster_centers_))
    start = X[[5, 77, 201], ::-1]
    np.save("start.npy", start)
    run_program("kmeans", "turned.csv", "--init", "start.npy", "--standardise", "--labels", "l.npy", "--centres",
                "c.npy", "--force")
    given = KMeans(3, init=start, options={"standardise": True}).fit("turned.csv")
    check("given centres are in the units of X, too", given.labels_.tobytes() == np.load("l.npy").tobytes() and
          given.cluster_centers_.tobytes() == np.load("c.npy").tobytes())
    check("distances of files", scaled.transform("turned.csv").tobytes() ==
          scaled.transform(Frame(X[:, ::-1], NAMES[::-1])).tobytes() and
          (scaled.predict("trees.csv") == scaled.labels_).all())
    check("the objective of a file", scaled.score("turned.csv") == -scaled.inertia_)
    write_csv("holes.csv", np.where(np.arange(1200).reshape(300, 4) % 97 == 5, np.nan, X), NAMES)
    filled = KMeans(3, random_state=0, options={"missing": "mean"}).fit("holes.csv")
    check("what is missing is filled in again", (filled.predict("holes.csv") == filled.labels_).all())
    coder = Autoencoder(2, random_state=0, max_iter=30, tol=0.1).fit(X)
    rebuilt = (coder.inverse_transform(coder.transform(X)) - X) * coder.scale_
    check("the score of an autoencoder", np.isclose(coder.score(X), -(rebuilt**2).sum(axis=1).mean() / 2) and
          coder.score(X) == coder.score("x.npy"))
    check("features of float32 rows", Autoencoder(2, random_state=0, tol=1).fit(X.astype("f4"))
          .transform(X.astype("f4")).dtype == np.float32)


def test_save_and_load():
    fitted = [KMeans(3, random_state=5, tol=0.5, n_init=2).fit(X),
              LogisticRegression("elasticnet", l1_ratio=0.5, C=2.0, fit_intercept=False).fit(X, WORDS),
              LogisticRegression(None, max_iter=3000).fit(X, NUMBERS > 1), GaussianNB(priors="uniform").fit(X, NUMBERS),
              NetClassifier("dense 3 relu; dense 4 softmax", random_state=3,
                            validation_fraction=0.1).fit(Frame(X, NAMES), WORDS),
              Autoencoder(3, random_state=0, activation="tanh", output="linear", rescale="none",
                          tol=0.01).fit(Frame(X, NAMES))]
    for estimator in fitted:
        name, method = type(estimator).__name__, getattr(estimator, "transform", None) or estimator.predict_proba
        expected = method(Frame(X, NAMES) if hasattr(estimator, "feature_names_in_") else X)
        written = model_of(estimator)
        for how, other in (("shoal.load", shoal.load("mine.safetensors")),
                           ("load", type(estimator).load(folder / "mine.safetensors")),
                           ("pickle", pickle.loads(pickle.dumps(estimator))), ("deepcopy", copy.deepcopy(estimator))):
            again = getattr(other, method.__name__)(Frame(X, NAMES) if hasattr(other, "feature_names_in_") else X)
            check(f"{name}: {how}", type(other) is type(estimator) and again.tobytes() == expected.tobytes()
                  and model_of(other) == written)
            check(f"{name}: parameters by {how}", other.get_params() == estimator.get_params(),
                  (other.get_params(), estimator.get_params()))
            if hasattr(estimator, "classes_"):
                check(f"{name}: classes by {how}", list(other.classes_) == list(estimator.classes_))
    run_program("predict", "mine.safetensors", "x.npy", "--features", "f.npy",
                "--force")
    check("the program applies the package's model", np.load("f.npy").tobytes() == expected.tobytes())
    programs_model("kmeans", "x.npy", "-k", 4, "--seed", 2)
    check("the package applies the program's model", (shoal.load("theirs.safetensors").predict(X) ==
                                                      KMeans(4, random_state=2).fit(X).labels_).all())
    left = [path.name for path in folder.iterdir() if path.name.startswith(".mine")]
    check("nothing half written is left", not left, left)
    check("what was learned can't be changed by accident", not fitted[0].cluster_centers_.flags.writeable)


def test_pickles_of_other_versions():
    model = KMeans(3, random_state=0).fit(X)
    _estimator.version, ours = "0.9.3", _estimator.version
    try:
        other = pickle.dumps(model)
    finally:
        _estimator.version = ours
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check("a pickle of another version works", (pickle.loads(other).predict(X) == model.labels_).all())
    check("and is told", [str(one.message).partition(",")[0] for one in caught] ==
          [f"this KMeans was pickled by shoal 0.9.3 and is used by {ours}"], [str(w.message) for w in caught])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pickle.loads(pickle.dumps(model))
    check("a pickle of this version tells nothing", not caught, caught)
    state = model.__getstate__()
    state["_model"] = state["_model"][:-9]
    raises("a pickle that can't be read", ValueError,
           f"^this KMeans, which was pickled by shoal {ours}, can't be read by {ours}: a pickled KMeans: ",
           lambda: KMeans().__setstate__(state))


# ---- documentation and types -----------------------------------------------------------------------------------------


def test_examples():
    """What docstrings and docs/python.md show is so."""
    counts = {name: doctest.testmod(importlib.import_module(f"shoal.{name}"))
              for name in ("autoencoder", "bayes", "choose", "executor", "kmeans", "logistic", "models")}
    for name, (failed, tried) in counts.items():
        check(f"examples of shoal.{name}", tried > 0 and failed == 0, (failed, tried))
    text = (root / "docs" / "python.md").read_text().replace("\n```", "\n\n```")  # which ends what an example prints
    shown = doctest.DocTestParser().get_doctest(text, {}, "docs/python.md", None, 0)
    (folder / "notebook").mkdir()
    os.chdir(folder / "notebook")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            failed, tried = doctest.DocTestRunner().run(shown)
    finally:
        os.chdir(folder)
    check("docs/python.md", tried > 30 and failed == 0, (failed, tried))


def test_types():
    """A type checker finds nothing wrong in the package, and what is wrong in a program that uses it."""
    mypy = shutil.which("mypy")
    if mypy is None:
        return skipped("types", "there is no mypy")
    (folder / "typed.py").write_text(textwrap.dedent("""
        import numpy as np
        import shoal
        model = shoal.KMeans(n_clusters=2, random_state=0).fit(np.zeros((5, 2)))
        reveal_type(model)
        reveal_type(model.predict("x.npy"))
        reveal_type(model.cluster_centers_)
        reveal_type(shoal.LogisticRegression().fit("x.csv", "y").score("x.csv"))
        reveal_type(shoal.choose_k("x.npy", range(2, 4)).model)
        reveal_type(shoal.GaussianNB.load("m.safetensors"))
        reveal_type(shoal.Master(["local"], timeout=3))
        shoal.KMeans(n_cluster=2)
        shoal.KMeans("3")
    """))
    done = subprocess.run([mypy, "--ignore-missing-imports", "--python-executable", sys.executable, "--cache-dir",
                           folder / "mypy", root / "python" / "shoal", "typed.py"],
                          capture_output=True, text=True, timeout=300,
                          env={**os.environ, "MYPYPATH": str(root / "python")})
    said = [line.split(": ", 2)[2] for line in done.stdout.splitlines()
            if line.count(": ") >= 2 and not line.endswith("defined here")]
    check("types", said == [
        'Revealed type is "shoal.kmeans.KMeans"', 'Revealed type is "numpy.ndarray[Any, Any]"',
        'Revealed type is "numpy.ndarray[Any, Any]"', 'Revealed type is "builtins.float"',
        'Revealed type is "shoal.kmeans.KMeans"', 'Revealed type is "shoal.bayes.GaussianNB"',
        'Revealed type is "shoal.qjam.Master"',
        'Unexpected keyword argument "n_cluster" for "KMeans"; did you mean "n_clusters"?  [call-arg]',
        'Argument 1 to "KMeans" has incompatible type "str"; expected "int"  [arg-type]'
    ], done.stdout + done.stderr)
    return None


# ---- several at a time -----------------------------------------------------------------------------------------------


def test_forks():
    """After a fork, even one in the middle of a fit of another thread, the child fits and predicts, and ends."""
    model = KMeans(3, random_state=0).fit(X)
    stop = threading.Event()

    def fit_on():
        while not stop.is_set():
            KMeans(20, random_state=0, max_iter=20).fit(X)
    busy = threading.Thread(target=fit_on)
    for other in (False, True):
        if other:
            busy.start()
        for _ in range(8):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                fine = (KMeans(3, random_state=0).fit(X).labels_ == model.labels_).all() and \
                    (model.predict(X) == model.labels_).all()
                os._exit(0 if fine else 1)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            check(f"a forked process{' during a fit' * other}", status == 0, status)
    stop.set()
    busy.join()
    fork_inside_hdf5()
    done = run_python("""
        import multiprocessing
        import numpy as np
        import shoal
        X = np.random.default_rng(0).normal(size=(300, 3))
        def score(seed):
            return shoal.KMeans(4, random_state=seed).fit(X).inertia_
        here = [score(seed) for seed in range(4)]
        with multiprocessing.get_context('fork').Pool(2) as pool:
            assert pool.map(score, range(4)) == here
        print('fine')
    """)
    check("multiprocessing", done.stdout == "fine\n", done.stdout + done.stderr)


def fork_inside_hdf5():
    """libhdf5 does not survive a fork in the middle of a call: the child is told, and does not wait for ever."""
    made = run_python("""
        import h5py
        import numpy as np
        h5py.File("rows.h5", "w")["x"] = np.random.default_rng(0).normal(size=(2000, 8))
    """, cwd=folder)
    if made.returncode != 0:
        return skipped("forks while HDF5 files are read", made.stderr[-100:])
    KMeans(2, random_state=0).fit("rows.h5")
    ends, stop = set(), threading.Event()

    def read_on():
        while not stop.is_set():
            KMeans(2, random_state=0, max_iter=1).fit("rows.h5")
    busy = [threading.Thread(target=read_on) for _ in range(2)]
    for thread in busy:
        thread.start()
    for _ in range(30):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                KMeans(2, random_state=0).fit("rows.h5")
                os._exit(0)
            except shoal.Error as error:
                os._exit(3 if "can't be read here: this process was forked while" in str(error) else 4)
        ends.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    stop.set()
    for thread in busy:
        thread.join()
    check("forks while HDF5 files are read", ends and ends <= {0, 3}, ends)
    return None


def test_threads():
    models = [KMeans(4, random_state=0).fit(X), GaussianNB().fit(X, WORDS), LogisticRegression().fit(X, WORDS)]
    expected = [model.predict(X).tolist() for model in models]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda i: models[i % 3].predict(X).tolist(), range(60)))
        check("one model of many threads", all(said[i] == expected[i % 3] for i in range(60)))
        fits = list(pool.map(lambda _: model_of_bytes(GaussianNB().fit(X, WORDS)), range(24)))
        check("fits of many threads", len(set(fits)) == 1)


def model_of_bytes(estimator):
    return estimator._model.bytes()


# ---- choosing K ------------------------------------------------------------------------------------------------------


def test_scores_of_classifiers():
    """Every label counts for its own row, or there is no score."""
    fitted, numbered = GaussianNB().fit(X, WORDS), GaussianNB().fit(X, NUMBERS)
    right = (fitted.predict(X) == WORDS).mean()
    check("a share of the rows", 0.5 < right < 1 and fitted.score(X, WORDS) == right)
    check("labels as objects", fitted.score(X, WORDS.astype(object)) == right)
    check("weights", np.isclose(fitted.score(X, WORDS, WEIGHTS),
                                np.average(fitted.predict(X) == WORDS, weights=WEIGHTS)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal._sklearn.DataConversionWarning)
        check("a column of labels", fitted.score(X, WORDS.reshape(-1, 1)) == right)
    cases = [
        ("no labels", "^GaussianNB requires y to be passed", lambda: fitted.score(X, None)),
        ("one label", "X has 300 rows, and y 1 labels$", lambda: fitted.score(X, WORDS[:1])),
        ("few labels", "X has 300 rows, and y 299 labels$", lambda: fitted.score(X, WORDS[1:])),
        ("few labels of a file", "X has 300 rows, and y 299 labels$", lambda: fitted.score("x.npy", WORDS[1:])),
        ("a column's name", "^y names a column or a file, which needs X to be", lambda: fitted.score(X, "kind")),
        ("numbers for words", "^y has values of type int64, but the classes are <U3$",
         lambda: fitted.score(X, NUMBERS)),
        ("bytes for words", "^y has values of type .S3, but the classes are <U3$",
         lambda: fitted.score(X, WORDS.astype("S"))),
        ("words for numbers", "^y has values of type <U3, but the classes are int64$",
         lambda: numbered.score(X, WORDS)),
        ("few weights", r"^sample_weight.shape == \(2,\), expected \(300,\)",
         lambda: fitted.score(X, WORDS, [1, 2])),
    ]
    for what, pattern, call in cases:
        raises(f"a score of {what}", ValueError, pattern, call)


def test_choose_k():
    rows = np.repeat(np.random.default_rng(5).normal(size=(4, 3)) * 20, 60, axis=0)
    rows += np.random.default_rng(6).normal(size=rows.shape)
    chosen = shoal.choose_k(rows, "2..8", random_state=0)
    check("the K of four heaps", chosen.k == 4 and chosen.picks == {"silhouette": 4, "calinski_harabasz": 4,
                                                                    "elbow": 4}, chosen.picks)
    check("one value for each K", chosen.ks.tolist() == list(range(2, 9)) and
          all(len(values) == 7 for values in (chosen.inertias, chosen.silhouettes, chosen.calinski_harabasz,
                                              chosen.n_iter)))
    check("its model", chosen.model.n_clusters == 4 and (chosen.model.predict(rows) == chosen.model.labels_).all()
          and chosen.model.inertia_ == chosen.inertias[2])
    check("labels of the sample", len(chosen.sample) == 240 and
          (chosen.sample_labels[:, 2] == chosen.model.labels_[chosen.sample]).all())
    check("as text", str(chosen).splitlines()[-1] ==
          "picks: silhouette 4, calinski_harabasz 4, elbow 4; chosen: 4" and len(str(chosen).splitlines()) == 9,
          str(chosen))
    some = shoal.choose_k("x.npy", range(3, 6), rule="elbow", sample=50, random_state=0, sample_weight=WEIGHTS)
    check("of a file, from a range", some.ks.tolist() == [3, 4, 5] and len(some.sample) == 50 and
          some.k == (some.picks["elbow"] or some.k))
    raises("one K", ValueError, r"^k must be several numbers of clusters, not \[3\]$", lambda: shoal.choose_k(X, [3]))
    raises("one K as text", ValueError, "^k must be several numbers of clusters, .*, not '3'$",
           lambda: shoal.choose_k(X, "3"))
    raises("no numbers", ValueError, "^k must be numbers of clusters", lambda: shoal.choose_k(X, 3))
    raises("bytes", ValueError, "^k must be several numbers of clusters, not b'2..4'$",
           lambda: shoal.choose_k(X, b"2..4"))
    raises("n_clusters beside k", TypeError, "^choose_k tries the numbers of clusters that k says, and has no para",
           lambda: shoal.choose_k(X, "2..4", n_clusters=3))
    chosen.model.save("chosen.safetensors")
    again = shoal.load("chosen.safetensors")
    check("its model, loaded", again.n_clusters == 4 and (again.predict(rows) == chosen.model.labels_).all())
    check("and pickled", (pickle.loads(pickle.dumps(chosen)).model.predict(rows) == chosen.model.labels_).all())
    check("numbers in any order", shoal.choose_k(X, [5, 3, 5], sample=50, random_state=0).ks.tolist() == [3, 5])
    raises("a range that is none", ValueError, "^n_clusters: '2..x' is neither a number nor a range",
           lambda: shoal.choose_k(X, "2..x"))
    raises("a rule", ValueError, "^rule must be one of 'silhouette', 'calinski_harabasz', 'elbow', not 'best'$",
           lambda: shoal.choose_k(X, rule="best"))
    raises("too many", ValueError, "^n_clusters=301 is more than X's 300 rows", lambda: shoal.choose_k(X, [2, 301]))
    raises("a parameter", TypeError, "n_cluster", lambda: shoal.choose_k(X, n_cluster=3))
    try:
        from sklearn.metrics import calinski_harabasz_score, silhouette_score
    except ImportError as error:
        return skipped("scikit-learn's scores", error)
    whole = shoal.choose_k(rows, [4, 5], random_state=0, sample=len(rows))
    check("scikit-learn's scores", np.isclose(whole.silhouettes[0], silhouette_score(rows, whole.model.labels_),
                                              rtol=1e-9) and
          np.isclose(whole.calinski_harabasz[0], calinski_harabasz_score(rows, whole.model.labels_), rtol=1e-9))
    return None


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_layouts():
    """What is not as the library reads it is converted, and nothing that is."""
    odd = np.frombuffer(b"-" + X.tobytes(), offset=1).reshape(X.shape)  # where no float64 may lie
    read_only = X.copy()
    read_only.flags.writeable = False
    kinds = {"Fortran order": np.asfortranarray(X), "every other row": np.repeat(X, 2, axis=0)[::2],
             "columns of a wider array": np.hstack([X, X])[:, :4], "objects": X.astype(object), "a list": X.tolist(),
             "read-only": read_only, "big-endian": X.astype(">f8"), "numbers as text": X.astype(str),
             "odd addresses": odd}
    check("aligned", not odd.flags.aligned and _validate.as_rows(odd).flags.aligned and
          np.shares_memory(_validate.as_rows(X), X) and
          _validate.as_weights(odd.ravel()[:300], _validate.Rows(None, X, None)).flags.aligned)
    for estimator in (LogisticRegression(), GaussianNB()):
        expected = estimator.fit(X, NUMBERS).predict_proba(X).tobytes()
        for name, rows in kinds.items():
            check(f"{type(estimator).__name__}: {name}",
                  estimator.fit(rows, NUMBERS).predict_proba(rows).tobytes() == expected)
    labels = {"a list of words": WORDS.tolist(), "objects": WORDS.astype(object), "bytes": WORDS.astype("S")}
    expected = GaussianNB().fit(X, WORDS).predict(X)
    for name, y in labels.items():
        check(f"labels: {name}", (GaussianNB().fit(X, y).predict(X).astype(str) == expected).all())
    for dtype in (bool, "i1", "u8", "f4", object):
        y = NUMBERS.astype(dtype)
        model = GaussianNB().fit(X, y)
        check(f"labels of type {dtype}", model.classes_.dtype == np.dtype(dtype) and
              model.predict(X).dtype == np.dtype(dtype) and
              model.predict_proba(X).tobytes() == GaussianNB().fit(X, y.astype(int)).predict_proba(X).tobytes())


def test_refused():
    fitted, big = LogisticRegression().fit(X, WORDS), [2**53, 2**53 + 1] * 150
    objects = X.astype(object)
    objects[4, 2] = "tall"
    broken = X.copy()
    broken[6, 1] = np.inf
    cases = [
        ("text in an array", ValueError, "^X: row 5, column 3 is 'tall', not a number: leave columns of text out, or",
         lambda: GaussianNB().fit(objects, NUMBERS)),
        ("text in a frame", ValueError, "^X: row 5, column 'age' is 'tall', not a number",
         lambda: KMeans(3).fit(Frame(objects, NAMES))),
        ("infinity", ValueError, r"^X: row 7, column 2 is infinite.*\(rows and columns are counted from 1\)$",
         lambda: LogisticRegression().fit(broken, NUMBERS)),
        ("infinity among weights of 0", ValueError, "^X: row 7, column 2 is infinite",
         lambda: LogisticRegression().fit(broken, NUMBERS, sample_weight=np.arange(300) > 3)),
        ("no labels", ValueError, "^GaussianNB requires y to be passed, but the target y is None$",
         lambda: GaussianNB().fit(X)),
        ("few labels", ValueError, "X has 300 rows, and y 299 labels$", lambda: GaussianNB().fit(X, NUMBERS[1:])),
        ("few labels of a file", ValueError, "needs one value for each of the 300 rows of x.npy",
         lambda: GaussianNB().fit("x.npy", NUMBERS[1:])),
        ("one class", ValueError, "^y has 1 class, 7, but at least two classes are needed$",
         lambda: GaussianNB().fit(X, np.full(300, 7))),
        ("one class that weighs", ValueError, "^y has 1 class, ",
         lambda: GaussianNB().fit(X, NUMBERS > 1, sample_weight=NUMBERS > 1)),
        ("labels that are no classes", ValueError, "^Unknown label type: y has values such as ",
         lambda: GaussianNB().fit(X, X[:, 0])),
        ("labels of two kinds", ValueError, "^Unknown label type: y has both int and str",
         lambda: GaussianNB().fit(X, np.array([1, "a", 2] * 100, dtype=object))),
        ("a label that is missing", ValueError, "^y: row 3 is nan, but each row needs a class$",
         lambda: GaussianNB().fit(X, np.where(np.arange(300) == 2, np.nan, 1.0))),
        ("dates", ValueError, "^y has values of type datetime64", lambda: GaussianNB().fit(X, np.zeros(300, "M8[s]"))),
        ("labels beyond float64", ValueError, "^y has whole numbers that no float64 tells apart",
         lambda: GaussianNB().fit(X, big)),
        ("a table of labels", ValueError, r"^y should be a 1d array, got an array of shape \(300, 4\)",
         lambda: GaussianNB().fit(X, X)),
        ("a column's name and an array", ValueError, "^y names a column or a file, which needs X to be the name of",
         lambda: GaussianNB().fit(X, "kind")),
        ("a column that is not there", ValueError, "^trees.csv: y: there is no column \"kin\".*did you mean \"kind\"",
         lambda: GaussianNB().fit("trees.csv", "kin")),
        ("a column of text", ValueError, "^trees.csv: line 2, column 5 .kind.: \"", lambda: KMeans(3).fit("trees.csv")),
        ("a file that is not there", shoal.Error, "^no.npy: can't read: No such file", lambda: KMeans(3).fit("no.npy")),
        ("a file to predict", shoal.Error, "^no.npy: can't read: No such file", lambda: fitted.predict("no.npy")),
        ("a file of other columns", ValueError, "holes2.csv", lambda: fitted.predict("holes2.csv")),
        ("few weights of a file", ValueError, "^sample_weight: 299 rows and 1 column, but sample_weight needs one",
         lambda: KMeans(3).fit("x.npy", sample_weight=WEIGHTS[1:])),
        ("weights of a file that is scored", ValueError, "^sample_weight needs X in memory: a file is scored without$",
         lambda: KMeans(3, random_state=0).fit(X).score("x.npy", sample_weight=WEIGHTS)),
        ("one weight of a file", ValueError, "^sample_weight must be one number for each row, or a file, where X is",
         lambda: KMeans(3).fit("x.npy", sample_weight=2.0)),
        ("a file of weights", ValueError, "^sample_weight names a file, which needs X to be the name of a file, too$",
         lambda: KMeans(3).fit(X, sample_weight="w.npy")),
        ("a callable init of a file", ValueError, "^a callable init needs X in memory",
         lambda: KMeans(3, init=lambda *_, **__: 1).fit("x.npy")),
        ("an option", ValueError, "^logistic has no option 'fromage'",
         lambda: LogisticRegression(options={"fromage": 1}).fit(X, NUMBERS)),
        ("options", ValueError, "^options must be a dict", lambda: KMeans(options=["a"]).fit(X)),
        ("an option that is a parameter", ValueError, "^options has 'max_iter', which a parameter of KMeans or fit say",
         lambda: KMeans(options={"max_iter": 3}).fit(X)),
        ("a parameter by its name in the program", ValueError, "^options has 'clusters', which a parameter of KMeans",
         lambda: KMeans(options={"clusters": 3}).fit(X)),
        ("a parameter by another name of the program", ValueError, "^options has 'k', which a parameter of KMeans",
         lambda: KMeans(options={"k": 3}).fit(X)),
        ("workers that are no text", ValueError, r"^workers must be a text such as 'local:4', .*, not 0.5$",
         lambda: KMeans(workers=0.5).fit(X)),
        ("masked values", ValueError, r"^X has masked values, .*X.filled\(np.nan\)",
         lambda: KMeans(3).fit(np.ma.masked_greater(X, 9))),
        ("few different rows, one of them with NaN", ValueError, "^n_clusters=4 is more than X's 3 distinct rows",
         lambda: KMeans(4, options={"missing": "mean"}).fit([[1, 1], [1, np.nan], [1, 1], [2, 2.0], [2, 2.0]])),
        ("a label that is not UTF-8", ValueError, r"^y has the label .*; words must be UTF-8 and have no NUL$",
         lambda: GaussianNB().fit(X, np.array([b"ash", b"\xff"] * 150))),
        ("a label with a NUL", ValueError, r"^y has the label 'a\\x00b'; words must be UTF-8 and have no NUL$",
         lambda: GaussianNB().fit(X, np.array(["a\0b", "a\0c"] * 150, dtype=object))),
        ("workers", ValueError, "'lokal:2' is not one of N, local:N, ", lambda: KMeans(workers="lokal:2").fit(X)),
        ("a net without an end", ValueError, "^net must end with a softmax where y is not in memory",
         lambda: NetClassifier("dense 4").fit("trees.csv", "kind")),
        ("a wrong net", ValueError, "^net, layer 1, 'dans 4': ", lambda: NetClassifier("dans 4").fit(X, NUMBERS)),
        ("no text", ValueError, r"^net must be a text such as 'dense 100 relu', not \[100\]$",
         lambda: NetClassifier([100]).fit(X, NUMBERS)),
        ("learning_rate", ValueError, "^learning_rate must be a finite number", lambda: NetClassifier(
            learning_rate=-1).fit(X, NUMBERS)),
        ("n_iter_no_change", ValueError, "^n_iter_no_change needs validation_fraction", lambda: NetClassifier(
            n_iter_no_change=2).fit(X, NUMBERS)),
        ("penalty", ValueError, "^penalty must be one of 'l2', 'l1', 'elasticnet', None, not 'l3'$",
         lambda: LogisticRegression("l3").fit(X, NUMBERS)),
        ("C", ValueError, "^C must be a finite number above 0, not 0$",
         lambda: LogisticRegression(C=0).fit(X, NUMBERS)),
        ("l1_ratio", ValueError, "^l1_ratio must be a number between 0 and 1, not None$",
         lambda: LogisticRegression("elasticnet").fit(X, NUMBERS)),
        ("class_weight", ValueError, "^class_weight has a weight for 'yew', which is not a class of y$",
         lambda: LogisticRegression(class_weight={"yew": 2}).fit(X, WORDS)),
        ("class_weight of a file", ValueError, "^class_weight needs X and y in memory",
         lambda: LogisticRegression(class_weight="balanced").fit("trees.csv", "kind")),
        ("fit_intercept", ValueError, "^fit_intercept must be True or False, not 1$",
         lambda: LogisticRegression(fit_intercept=1).fit(X, NUMBERS)),
        ("decisions of a file", ValueError, "^decision_function needs X in memory",
         lambda: fitted.decision_function("x.npy")),
        ("priors", ValueError, "^priors must be None, .* or 'uniform', not ",
         lambda: GaussianNB(priors=[0.5, 0.5]).fit(X, NUMBERS)),
        ("rescale", ValueError, "^rescale must be 'auto', 'none' or 'LOW:HIGH', not 'low'$",
         lambda: Autoencoder(3, rescale="low").fit(X)),
        ("values out of range", ValueError, "^X: row 1, column .: .* is outside 0 to 1, .*; rescale auto maps X's own",
         lambda: Autoencoder(3, rescale="none").fit(X)),
        ("relu", ValueError, "^activation relu needs an explicit sparsity_weight",
         lambda: Autoencoder(3, activation="relu").fit(X)),
        ("features of another network", ValueError, "^X has 4 columns, but there are 3 hidden units$",
         lambda: Autoencoder(3, tol=1, random_state=0).fit(X).inverse_transform(X)),
        ("a model of another name", ValueError, "^m.npz: the name of a model must end in .safetensors$",
         lambda: fitted.save("m.npz")),
        ("a model in no folder", FileNotFoundError, "No such file or directory: 'none/m.safetensors'$",
         lambda: fitted.save("none/m.safetensors")),
        ("rows as a model", ValueError, "^x.npy is a table of rows, not a model", lambda: shoal.load("x.npy")),
        ("a model of another learner", ValueError, "^other.safetensors is a model of logistic, not of kmeans; shoal",
         lambda: KMeans.load("other.safetensors")),
        ("a model that is cut short", ValueError, "^short.safetensors: ", lambda: shoal.load("short.safetensors")),
    ]
    write_csv("holes2.csv", X, ["height", "width", "age", "leafs"])
    LogisticRegression().fit("trees.csv", "kind").save("other.safetensors")
    (folder / "short.safetensors").write_bytes((folder / "other.safetensors").read_bytes()[:-5])
    fitted = LogisticRegression.load("other.safetensors")
    for what, kind, pattern, call in cases:
        raises(what, kind, pattern, call)
    raises("before fit", shoal._sklearn.NotFittedError, "This GaussianNB instance is not fitted yet",
           lambda: GaussianNB().predict(X))
    raises("saving before fit", shoal._sklearn.NotFittedError, "not fitted yet", lambda: KMeans().save("m.safetensors"))


def test_scipy_and_pandas():
    try:
        import pandas
        from scipy import sparse
    except ImportError as error:
        return skipped("sparse matrices and data frames", error)
    for estimator in ESTIMATORS:
        raises("a sparse matrix", TypeError, r"^X is a sparse matrix, but shoal needs dense rows; X.toarray\(\) makes",
               lambda: estimator.fit(sparse.csr_matrix(X), NUMBERS))
    frame = pandas.DataFrame(X, columns=NAMES).assign(leaves=lambda all_: all_.leaves.astype("float32"))
    model = LogisticRegression().fit(frame, pandas.Series(WORDS, dtype="category"))
    check("a data frame and a series", list(model.feature_names_in_) == NAMES and
          (model.predict(frame) == model.predict("trees.csv")).all())
    check("the model knows the names", shoal.load(save(model)).predict("turned.csv").tolist() ==
          model.predict(frame).tolist())
    raises("a data frame with a column of text", ValueError, "^X: row 1, column 'kind' is '.*', not a number: leave",
           lambda: KMeans(3).fit(frame.assign(kind=WORDS)))
    return None


def save(model):
    model.save("frame.safetensors")
    return "frame.safetensors"


def test_convergence():
    """What did not converge is told, as scikit-learn does; how it goes on is shown."""
    for estimator, pattern in ((LogisticRegression(max_iter=2), "LogisticRegression has not converged after 2 iter"),
                               (Autoencoder(3, max_iter=2, random_state=0), "Autoencoder has not converged after 2 i")):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimator.fit(X, NUMBERS)
        check(pattern, [str(one.message)[:len(pattern)] for one in caught] == [pattern] and
              caught[0].category is shoal._sklearn.ConvergenceWarning and caught[0].filename == __file__,
              [(str(one.message), one.filename) for one in caught])
    done = run_python("""
        import numpy as np
        import shoal
        X = np.random.default_rng(0).random((100, 4))
        shoal.LogisticRegression(verbose=1).fit(X, X[:, 0] > 0.5)
        shoal.GaussianNB(verbose=1).fit(X, X[:, 0] > 0.5)
        shoal.Autoencoder(2, verbose=1, random_state=0).fit(X)
        shoal.choose_k(X, '2..4', verbose=1, random_state=0)
    """)
    check("the last lines of progress", [line.split(":")[0] for line in done.stderr.splitlines()] ==
          ["logistic regression", "naive Bayes", "autoencoder", "k-means"], done.stderr)


main(dict(globals()))
