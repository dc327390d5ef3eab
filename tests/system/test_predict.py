#!/usr/bin/env python3
# Labels: quick
"""shoal predict: a model of any learner, applied as its definition says; models that do not fit, told in one sentence.

    test_predict.py PATH_TO_shoal [NAME...]

Models are written here by ten lines of Python, and what predict makes of them is computed again by numpy.
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

import apart

sys.dont_write_bytecode = True
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
try:
    import numpy as np
except ImportError:
    print("python3-numpy is not here: skipped")
    sys.exit(77)

SHOAL = os.path.abspath(sys.argv[1])
TYPES = {"float64": "F64", "float32": "F32", "int64": "I64", "int32": "I32"}
DOCUMENTED = (pathlib.Path(__file__).resolve().parents[2] /
              "docs/models.md").read_text().split("```python\n")[1].split("```")[0]


def shoal(*arguments, code=0):
    """Outputs replace whatever has their names: tests use a few names again and again."""
    force = ["--force"] if arguments[0] in ("predict", "kmeans", "logistic", "bayes", "autoencoder") else []
    done = subprocess.run([SHOAL, *map(str, arguments), *force], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done


def refuses(code, sentence, *arguments):
    done = shoal("predict", *arguments, code=code)
    assert done.stderr.split("\n")[0] == f"shoal: {sentence}", done.stderr
    assert not done.stdout, done.stdout


def write_model(path, metadata, **tensors):
    header, values, at = {}, b"", 0
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, tensor in tensors.items():
        tensor = np.ascontiguousarray(tensor)
        end = at + tensor.nbytes
        header[name.replace(
            "_", ".")] = {"dtype": TYPES[str(tensor.dtype)], "shape": tensor.shape, "data_offsets": [at, end]}
        values += tensor.tobytes()
        at = end
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + values)


def read_model(path):
    """By the lines of Python that docs/models.md has for it."""
    found = {}
    exec(DOCUMENTED.replace('"model.safetensors"', repr(path)), found)
    return found["metadata"], found["tensors"]


def rows(count, columns, seed=0, type_="f8"):
    return np.random.default_rng(seed).normal(size=(count, columns)).astype(type_)


def same_everywhere(model, data, option, path):
    """Writes the output with other threads, kernels and grains, which must not change a bit of it."""
    with open(path, "rb") as file:
        expected = file.read()
    for words in (["--threads", 1], ["--threads", 3, "--kernel", "portable"], ["--kernel", "portable", "--grain", 7]):
        shoal("predict", model, data, option, "other.npy", "--quiet", *words)
        with open("other.npy", "rb") as file:
            assert file.read() == expected, (option, words)


# ---- kmeans ----------------------------------------------------------------------------------------------------------


@apart.test
def kmeans_labels_and_distances():
    X, centres = rows(500, 3), rows(7, 3, 1)
    np.save("x.npy", X)
    np.save("centres.npy", centres)
    shoal("kmeans", "x.npy", "-k", 7, "--iterations", 0, "--init", "centres.npy", "--model", "own.safetensors",
          "--quiet")
    write_model("alone.safetensors", None, centres=centres)
    write_model("narrow.safetensors", {"learner": "kmeans"}, centres=centres.astype("f4"))
    # As versions before options were kept wrote them.
    write_model(
        "old.safetensors", {
            "learner": "kmeans", "k": "7", "columns": "3", "rows": "500", "objective": "1", "iterations": "3",
            "seed": "0", "version": "0.1.0"
        }, centres=centres)
    for model in ("centres.npy", "own.safetensors", "alone.safetensors", "narrow.safetensors", "old.safetensors"):
        used = centres.astype("f4").astype("f8") if model.startswith("narrow") else centres
        square = ((X[:, None] - used) ** 2).sum(2)
        summary = shoal("predict", model, "x.npy", "--labels", "l.npy", "--distances", "d.npy").stdout
        assert (np.load("l.npy") == square.argmin(1)).all() and np.load("l.npy").dtype == np.int32, model
        assert np.allclose(np.load("d.npy"), np.sqrt(square.min(1)), rtol=1e-12), model
        assert "\ncentres    7\n" in summary and "\nwrote      l.npy, d.npy\n" in summary, summary
        shoal("predict", model, "x.npy", "--all-distances", "a.npy")
        assert np.allclose(np.load("a.npy"), np.sqrt(square), rtol=1e-12), model
        assert (np.load("a.npy").min(1) == np.load("d.npy")).all(), model
        told = json.loads(shoal("predict", model, "x.npy", "--json").stdout)
        assert told["k"] == 7 and told["model"] == "kmeans" and abs(told["objective"] / square.min(1).sum() -
                                                                    1) < 1e-12, told
    same_everywhere("own.safetensors", "x.npy", "--labels", shutil.copy("l.npy", "first.npy"))
    gives = "which gives --labels, --distances, --all-distances and --plot"
    refuses(2, f"--features: centres.npy is a model of kmeans, {gives}", "centres.npy", "x.npy", "--features", "f.npy")
    refuses(2, f"--probabilities: own.safetensors is a model of kmeans, {gives}", "own.safetensors", "x.npy",
            "--labels", "new.npy", "--probabilities", "p.npy")
    assert not os.path.exists("new.npy") and not os.path.exists("p.npy")


# ---- logistic --------------------------------------------------------------------------------------------------------


def probabilities(X, weights, intercept):
    outputs = X @ weights.T + intercept
    if len(weights) == 1:
        outputs = np.hstack([np.zeros_like(outputs), outputs])
    outputs -= outputs.max(1, keepdims=True)
    return np.exp(outputs) / np.exp(outputs).sum(1, keepdims=True)


@apart.test
def logistic_labels_and_probabilities():
    X = rows(400, 4)
    X[0] *= 1e3  # far from every boundary
    np.save("x.npy", X)
    for classes in ([-1.0, 2.5], [0.0, 1.0, 7.0], list(range(30))):
        outputs = 1 if len(classes) == 2 else len(classes)
        weights, intercept = rows(outputs, 4, 2), rows(outputs, 1, 3)[:, 0]
        write_model("m.safetensors", {"learner": "logistic"}, classes=np.array(classes, "f8"), weights=weights,
                    intercept=intercept)
        summary = shoal("predict", "m.safetensors", "x.npy", "--labels", "l.npy", "--probabilities", "p.npy").stdout
        expected = probabilities(X, weights, intercept)
        found, labels = np.load("p.npy"), np.load("l.npy")
        assert found.shape == (400, len(classes)) and found.dtype == np.float64
        assert np.allclose(found, expected, rtol=1e-12, atol=1e-300), abs(found - expected).max()
        assert (labels == np.array(classes)[expected.argmax(1)]).all() and labels.dtype == np.float64
        counts = [int((labels == label).sum()) for label in classes]
        assert f"\nclasses    {classes[0]:g}: {counts[0]} rows, {classes[1]:g}: {counts[1]} rows" in summary, summary
        assert (", and 10 more\n" in summary) == (len(classes) == 30), summary
        told = json.loads(shoal("predict", "m.safetensors", "x.npy", "--json").stdout)
        assert told["classes"] == classes and told["counts"] == counts and told["model"] == "logistic", told
        same_everywhere("m.safetensors", "x.npy", "--probabilities", "p.npy")
    refuses(2, "--distances: m.safetensors is a model of logistic, which gives --labels and --probabilities",
            "m.safetensors", "x.npy", "--distances", "d.npy")


@apart.test
def logistic_models_of_a_run():
    X = rows(300, 3)
    labels = (X[:, 0] + 0.3 * rows(300, 1, 5)[:, 0] > 0).astype("f8") + 4
    np.save("xy.npy", np.column_stack([X, labels]))
    np.save("x.npy", X)
    told = json.loads(shoal("logistic", "xy.npy", "--model", "m.safetensors", "--json").stdout)
    metadata, tensors = read_model("m.safetensors")
    assert metadata["learner"] == "logistic" and metadata["option.l2"] == "1" and float(
        metadata["objective"]) == told["objective"]
    shoal("predict", "m.safetensors", "x.npy", "--probabilities", "p.npy", "--labels", "l.npy", "--quiet")
    assert np.allclose(np.load("p.npy"), probabilities(X, tensors["weights"], tensors["intercept"]), rtol=1e-12)
    assert (np.load("l.npy") == labels).mean() > 0.9
    # Rows that still hold the target, which the model knows by its number.
    summary = shoal("predict", "m.safetensors", "xy.npy", "--labels", "xy-l.npy").stdout
    assert "\ncolumns    left out column 4\n" in summary, summary
    assert (np.load("xy-l.npy") == np.load("l.npy")).all()
    np.save("wide.npy", rows(10, 5))
    refuses(1, "wide.npy has 5 columns, but m.safetensors is a model for 3", "m.safetensors", "wide.npy")


@apart.test
def logistic_models_that_lie():
    np.save("x.npy", rows(10, 4))
    good = {"classes": np.arange(3.0), "weights": rows(3, 4), "intercept": np.zeros(3)}
    cases = [("classes", np.zeros((3, 1)), "tensor 'classes' has shape 3 x 1, not one dimension"),
             ("classes", np.zeros(1), "tensor 'classes' has one value; at least two classes are needed"),
             ("classes", np.zeros(2), "tensor 'weights' has shape 3 x 4, not 1 x columns"),
             ("weights", rows(2, 4), "tensor 'weights' has shape 2 x 4, not 3 x columns"),
             ("weights", np.zeros((3, 0)), "tensor 'weights' has shape 3 x 0, not 3 x columns"),
             ("weights", np.full((3, 4), np.inf), "tensor 'weights': row 1, column 1 is infinite, not a finite number"),
             ("intercept", np.zeros(2), "tensor 'intercept' has shape 2, not 3"),
             ("intercept", None, "there is no tensor 'intercept' of 3")]
    for name, value, sentence in cases:
        tensors = {key: tensor for key, tensor in {**good, name: value}.items() if tensor is not None}
        write_model("m.safetensors", {"learner": "logistic"}, **tensors)
        refuses(1, f"m.safetensors: {sentence}", "m.safetensors", "x.npy", "--labels", "l.npy")
    assert not os.path.exists("l.npy")


# ---- autoencoder -----------------------------------------------------------------------------------------------------


ACTIVATIONS = {"logistic": lambda z: 1 / (1 + np.exp(-z)), "tanh": np.tanh, "relu": lambda z: np.maximum(z, 0)}


def about(**more):
    return {
        "learner": "autoencoder", "scale": "1", "shift": "0", "option.activation": "logistic",
        "option.precision": "auto", **more
    }


@apart.test
def autoencoder_features():
    X, weights, bias = rows(300, 6), rows(4, 6, 1), rows(4, 1, 2)[:, 0]
    np.save("x8.npy", X)
    np.save("x4.npy", X.astype("f4"))
    for name, activation in ACTIVATIONS.items():
        for scale, shift in ((1, 0), (0.25, -1.5)):
            expected = activation((X * scale + shift) @ weights.T + bias)
            for data, precision, type_ in (("x8.npy", "auto", "f8"), ("x4.npy", "auto", "f4"),
                                           ("x4.npy", "float64", "f8"), ("x8.npy", "float32", "f4")):
                write_model("m.safetensors", about(scale=str(scale), shift=str(shift), **{"option.activation": name,
                            "option.precision": precision}), encoder_weight=weights, encoder_bias=bias)
                summary = shoal("predict", "m.safetensors", data, "--features", "f.npy").stdout
                found = np.load("f.npy")
                assert found.shape == (300, 4) and found.dtype == type_, found.dtype
                exact = data == "x8.npy" and type_ == "f8"
                assert np.allclose(found, expected, rtol=1e-12 if exact else 1e-5,
                                   atol=1e-13 if exact else 1e-5), (name, data, precision)
                assert f"\nhidden     4 units, mean activation {found.astype('f8').mean():.3g}"[:-1] in summary, summary
        same_everywhere("m.safetensors", "x8.npy", "--features", "f.npy")
    told = json.loads(shoal("predict", "m.safetensors", "x8.npy", "--json").stdout)
    assert told["hidden"] == 4 and told["model"] == "autoencoder", told
    refuses(2, "--labels: m.safetensors is a model of autoencoder, which gives --features", "m.safetensors", "x8.npy",
            "--labels", "l.npy")


@apart.test
def autoencoder_features_of_a_run():
    for words in ([], ["--tied"], ["--activation", "tanh"], ["--activation", "relu", "--sparsity-weight",
                                                             0], ["--rescale", "0:2"], ["--precision", "float32"]):
        np.save("x.npy", np.random.default_rng(1).random((200, 9)) * 0.8 + 0.1)
        shoal("autoencoder", "x.npy", "--hidden", 4, "--iterations", 20, *words, "--model", "m.safetensors",
              "--features", "own.npy", "--quiet")
        shoal("predict", "m.safetensors", "x.npy", "--features", "f.npy", "--quiet")
        with open("own.npy", "rb") as own, open("f.npy", "rb") as found:
            assert own.read() == found.read(), words
        metadata, tensors = read_model("m.safetensors")
        assert metadata["option.hidden"] == "4" and tensors["encoder.weight"].shape == (4, 9), metadata


@apart.test
def autoencoder_models_that_lie():
    np.save("x.npy", rows(10, 6))
    cases = [({}, {"encoder_bias": np.zeros(3)}, "tensor 'encoder.bias' has shape 3, not 4"),
             ({}, {"encoder_weight": np.zeros(6)}, "tensor 'encoder.weight' has shape 6, not rows x columns"),
             ({"option.activation": "cubic"}, {},
              "'option.activation' is 'cubic' in its metadata, not one of logistic, tanh, relu"),
             ({"option.precision": None}, {},
              "its metadata lack 'option.precision', which must be one of auto, float32, float64"),
             ({"scale": "nan"}, {}, "'scale' is 'nan' in its metadata, not a number"),
             ({"shift": None}, {}, "its metadata lack 'shift', which must be a number")]
    for entries, tensors, sentence in cases:
        metadata = {key: text for key, text in about(**entries).items() if text is not None}
        write_model("m.safetensors", metadata, **{"encoder_weight": rows(4, 6), "encoder_bias": np.zeros(4), **tensors})
        refuses(1, f"m.safetensors: {sentence}", "m.safetensors", "x.npy", "--features", "f.npy")
    assert not os.path.exists("f.npy")


# ---- columns by name -------------------------------------------------------------------------------------------------


def write_csv(path, names, *columns):
    with open(path, "w") as file:
        print(*names, sep=",", file=file)
        for row in zip(*columns):
            print(*row, sep=",", file=file)


def pen_strokes(count):
    """Rows of 16 columns and ten classes, whose columns in another order are other classes: as pendigits has them."""
    generator = np.random.default_rng(7)
    labels = np.arange(count) % 10
    X = generator.integers(0, 100, (10, 16))[labels] + generator.normal(size=(count, 16)) * 12
    names = [f"{axis}{i}" for i in range(8) for axis in "xy"]
    return X.round(2), labels, names


@apart.test
def columns_are_matched_by_name():
    X, labels, names = pen_strokes(1000)
    order = np.random.default_rng(1).permutation(16)
    write_csv("train.csv", names + ["digit"], *X.T, labels)
    write_csv("moved.csv", ["id"] + [names[i] for i in order] + ["digit"], range(1000), *X.T[order], labels)
    np.savetxt("bare.csv", X[:, order], delimiter=",")
    for learner, words in (("logistic", []), ("bayes", [])):
        shoal(learner, "train.csv", "--target", "digit", *words, "--model", "m.safetensors", "--quiet")
        shoal("predict", "m.safetensors", "train.csv", "--labels", "l.npy", "--quiet")
        summary = shoal("predict", "m.safetensors", "moved.csv", "--labels", "moved.npy").stdout
        assert (np.load("l.npy") == labels).mean() > 0.95
        assert (np.load("moved.npy") == np.load("l.npy")).all()
        assert "\ncolumns    reordered by name, left out 'id', 'digit'\n" in summary, summary
        shoal("predict", "m.safetensors", "bare.csv", "--labels", "bare.npy", "--quiet")  # by number
        assert (np.load("bare.npy") == labels).mean() < 0.5
    for learner, words, option in (("kmeans", ["-k", 10], "--labels"),
                                   ("autoencoder", ["--hidden", 4, "--iterations", 5, "--output", "linear"],
                                    "--features")):
        shoal(learner, "train.csv", "--drop-column", "digit", *words, "--model", "m.safetensors", "--quiet")
        shoal("predict", "m.safetensors", "train.csv", option, "l.npy", "--quiet")
        shoal("predict", "m.safetensors", "moved.csv", option, "moved.npy", "--quiet")
        assert (np.load("moved.npy") == np.load("l.npy")).all()
    write_csv("less.csv", names[:-2] + ["y_7"], *X.T[:15])
    refuses(1, "less.csv has no columns 'x7', 'y7', which m.safetensors needs; did you mean 'y_7'?", "m.safetensors",
            "less.csv")


@apart.test
def a_start_is_matched_by_name():
    X, labels, names = pen_strokes(500)
    write_csv("train.csv", names + ["digit"], *X.T, labels)
    write_csv("moved.csv", ["digit", "id"] + names[::-1], labels, range(500), *X.T[::-1])
    first = json.loads(shoal("logistic", "train.csv", "--model", "m.safetensors", "--json").stdout)
    then = json.loads(
        shoal("logistic", "moved.csv", "--target", "digit", "--start", "m.safetensors", "--iterations", 0, "--model",
              "then.safetensors", "--json").stdout)
    assert then["objective"] == first["objective"] and then["columns_note"] == "reordered by name, left out 'id'", then
    schema = json.loads(read_model("then.safetensors")[0]["schema"])
    assert schema["names"] == names and schema["target"] == "digit", schema
    done = shoal("logistic", "moved.csv", "--target", "x3", "--start", "m.safetensors", code=2)
    assert "--target: 'x3' is one of the columns that m.safetensors was trained on" in done.stderr, done.stderr
    # The job keeps the names, so that workers and whoever resumes it write the same model.
    for words in (["--workers", "local:2"], ["--detach", "--store", "dir:jobs", "--job", "by-name"]):
        shoal("logistic", "train.csv", *words, "--model", "w.safetensors", "--quiet")
        if "--detach" in words:
            shoal("job", "resume", "by-name", "--store", "dir:jobs", "--workers", "local:1", "--quiet")
        with open("m.safetensors", "rb") as one, open("w.safetensors", "rb") as other:
            assert one.read() == other.read(), words
        os.remove("w.safetensors")


@apart.test
def a_start_has_the_same_classes():
    for name, words in (("ants", "ant bee cat"), ("dogs", "bee cat dog"), ("two", "ant bee"), ("numbers", "0 1 2")):
        classes = words.split()
        with open(f"{name}.csv", "w") as file:
            file.write("x,kind\n" + "".join(f"{i % len(classes)}.{i},{classes[i % len(classes)]}\n" for i in range(60)))
    shoal("logistic", "ants.csv", "--model", "ants.safetensors", "--quiet")
    for data, sentence in (("dogs", "'ant' is a class of ants.safetensors, but not of dogs.csv"),
                           ("two", "'cat' is a class of ants.safetensors, but not of two.csv"),
                           ("numbers", "the classes of ants.safetensors are words, and those of numbers.csv are "
                            "numbers")):
        done = shoal("logistic", f"{data}.csv", "--start", "ants.safetensors", code=2)
        assert f"--start: {sentence}" in done.stderr, done.stderr
    shoal("logistic", "two.csv", "--model", "two.safetensors", "--quiet")
    done = shoal("logistic", "ants.csv", "--start", "two.safetensors", code=2)
    assert "--start: 'cat' is a class of ants.csv, but not of two.safetensors" in done.stderr, done.stderr
    shoal("logistic", "ants.csv", "--start", "ants.safetensors", "--quiet")


@apart.test
def a_target_from_a_file_is_not_a_column():
    """One of DATA may be called target, and keeps its name in the model."""
    write_csv("x.csv", ["a", "target"], rows(40, 1)[:, 0], rows(40, 1, 1)[:, 0])
    write_csv("turned.csv", ["target", "a"], rows(40, 1, 1)[:, 0], rows(40, 1)[:, 0])
    np.save("y.npy", (rows(40, 1) + rows(40, 1, 1) * 2 > 0).astype(int))
    shoal("bayes", "x.csv", "--target", "y.npy", "--model", "m.safetensors", "--quiet")
    assert schema_of("m.safetensors") == {"columns": 2, "names": ["a", "target"]}, schema_of("m.safetensors")
    for name in ("x", "turned"):
        shoal("predict", "m.safetensors", f"{name}.csv", "--labels", f"{name}.npy", "--quiet", "--score", "--target",
              "y.npy")
    assert (np.load("x.npy") == np.load("turned.npy")).all()


@apart.test
def means_of_a_model_are_for_its_columns_only():
    np.savetxt("x.csv", np.hstack([rows(30, 3), np.arange(30)[:, None] % 2]), delimiter=",")
    shoal("logistic", "x.csv", "--missing", "mean", "--model", "m.safetensors", "--quiet")
    with open("wide.csv", "w") as file:
        file.write(",".join(["1"] * 2000) + "\n" + ",".join(["1"] * 1999) + ",\n")
    refuses(1, "wide.csv has 2000 columns, but m.safetensors is a model for 3", "m.safetensors", "wide.csv",
            "--missing", "mean")


@apart.test
def rows_without_a_target_are_dropped_from_generated_data():
    with open("y.csv", "w") as file:
        file.write("".join(("NA" if i == 7 else str(i % 2)) + "\n" for i in range(60)))
    done = shoal("logistic", "gen:blobs?rows=60&cols=3", "--target", "y.csv", "--missing", "drop")
    assert "59 rows" in done.stdout, done.stdout


def flowers(path, header=True):
    """Four columns of numbers and two of text, the first and the last."""
    X, kinds = rows(60, 4) + np.arange(60)[:, None] % 3 * 4, ["iris", "lily", "rose"]
    with open(path, "w") as file:
        file.write("id,a,b,c,d,kind\n" if header else "")
        for i, row in enumerate(X):
            file.write(f"plant{i}," + ",".join(map(str, row)) + f",{kinds[i % 3]}\n")
    return X


@apart.test
def columns_of_text_that_a_model_does_not_use_are_left_out():
    np.save("x.npy", flowers("x.csv"))
    flowers("plain.csv", header=False)
    for data, drop, told in (("x.csv", "id,kind", "'id', 'kind'"), ("plain.csv", "1,6", "column 1, column 6")):
        shoal("kmeans", data, "-k", 3, "--drop-column", drop, "--model", "k.safetensors", "--quiet")
        shoal("predict", "k.safetensors", "x.npy", "--labels", "expected.npy", "--quiet")
        done = shoal("predict", "k.safetensors", data, "--labels", "l.npy").stdout
        assert f"\ncolumns    left out {told}\n" in done, done
        assert (np.load("l.npy") == np.load("expected.npy")).all()
    done = shoal("predict", "k.safetensors", "plain.csv", "--drop-column", "2", code=1).stderr
    assert done.startswith("shoal: plain.csv: line 1, column 1: \"plant0\" is not a number\n"), done
    shoal("logistic", "x.csv", "--drop-column", "id", "--model", "m.safetensors", "--quiet")
    assert score("m.safetensors", "x.csv")["accuracy"] == 1
    np.savetxt("y.csv", np.array(["iris", "lily", "rose"] * 20), fmt="%s")
    assert score("m.safetensors", "x.csv", "--target", "y.csv")["accuracy"] == 1
    # What is missing in the model's columns is told first; then what is not a number in them, without false hints.
    with open("city.csv", "w") as file:
        file.write("city,x\nParis,1\n")
    refuses(1, "city.csv has no columns 'a', 'b', 'c' and 1 more, which m.safetensors needs", "m.safetensors",
            "city.csv")
    with open("bad.csv", "w") as file:
        file.write("id,a,b,c,d\nplant1,much,2,3,4\n")
    refuses(1, "bad.csv: line 2, column 2 (a): \"much\" is not a number", "m.safetensors", "bad.csv")


@apart.test
def missing_values_matter_where_a_model_looks():
    flowers("x.csv")
    for words, advice in (([], "fill in what is missing, or train m.safetensors with --missing mean"),
                          (["--missing", "mean"],
                           "--missing mean fills in the means that m.safetensors was trained with")):
        shoal("kmeans", "x.csv", "-k", 3, "--drop-column", "id,kind", "--model", "m.safetensors", "--quiet", *words)
        with open("gap.csv", "w") as file:
            file.write("id,a,b,c,d\n,1,2,3,4\nplant1,1,,3,NA\n")
        refuses(1, f"gap.csv: 2 values are missing, the first in row 2, column 2 (b); {advice}", "m.safetensors",
                "gap.csv")
    shoal("predict", "m.safetensors", "gap.csv", "--missing", "mean", "--quiet")


@apart.test
def schemas_that_lie():
    np.save("x.npy", rows(10, 2))
    for schema, sentence in (("no JSON", "its schema is not a JSON object"),
                             ({"columns": 3}, "a schema of 3 columns, but a model of 2"),
                             ({"columns": 2, "names": ["a", "a"]}, "'names' of its schema has the same text twice"),
                             ({"columns": 2, "classes": ["a", "b"]}, "a schema of 2 classes, but a model of 0")):
        text = schema if isinstance(schema, str) else json.dumps(schema)
        write_model("m.safetensors", {"learner": "kmeans", "schema": text}, centres=rows(2, 2))
        refuses(1, f"m.safetensors: {sentence}", "m.safetensors", "x.npy", "--labels", "l.npy")
    write_model("m.safetensors", {
        "learner": "logistic", "schema": json.dumps({"columns": 2, "classes": ["cat", "dog"]})
    }, classes=np.array([1.0, 2.0]), weights=rows(1, 2), intercept=np.zeros(1))
    refuses(1, "m.safetensors: its classes have names, but are not numbered from 0", "m.safetensors", "x.npy")
    assert not os.path.exists("l.npy")


# ---- columns of one scale --------------------------------------------------------------------------------------------


def schema_of(path):
    return json.loads(read_model(path)[0]["schema"])


@apart.test
def standardised_rows():
    X = rows(700, 4) * [1, 1e4, 1e-3, 0] + [0, 50, 1, 0.1]
    labels = (X[:, 0] + X[:, 1] / 1e4 > 0.3).astype("f8")
    np.save("x.npy", X)
    np.save("xy.npy", np.column_stack([X, labels]))
    learners = (("kmeans", "x.npy", ["-k", 5], "--labels"), ("logistic", "xy.npy", [], "--probabilities"),
                ("bayes", "xy.npy", [], "--probabilities"),
                ("autoencoder", "x.npy", ["--hidden", 3, "--iterations", 5, "--output", "linear"], "--features"))
    for learner, data, words, option in learners:
        shoal(learner, data, *words, "--standardise", "--model", "m.safetensors", "--quiet")
        schema = schema_of("m.safetensors")
        mean, scale = np.array(schema["standardise_mean"]), np.array(schema["standardise_scale"])
        assert np.allclose(mean, X.mean(0), rtol=1e-13, atol=1e-15) and scale[3] == 1, (learner, mean)
        assert np.allclose(scale[:3], X.std(0)[:3], rtol=1e-13), (learner, scale)
        # What a user would have to do by hand, and its bits.
        Z = (X - mean) / scale
        np.save("z.npy", Z)
        np.save("zy.npy", np.column_stack([Z, labels]))
        shoal(learner, data.replace("x", "z"), *words, "--model", "by-hand.safetensors", "--quiet")
        found, by_hand = read_model("m.safetensors")[1], read_model("by-hand.safetensors")[1]
        assert all((found[name] == by_hand[name]).all() for name in found), learner
        shoal("predict", "m.safetensors", "x.npy", option, "p.npy", "--quiet")
        shoal("predict", "by-hand.safetensors", "z.npy", option, "q.npy", "--quiet")
        assert (np.load("p.npy") == np.load("q.npy")).all(), learner
        same_everywhere("m.safetensors", "x.npy", option, "p.npy")
        with open("m.safetensors", "rb") as file:
            expected = file.read()
        for more in (["--threads", 1], ["--kernel", "portable"], ["--workers", "local:2"],
                     ["--detach", "--store", f"dir:{learner}", "--job", learner]):
            shoal(learner, data, *words, "--standardise", "--model", "other.safetensors", "--quiet", *more)
            if "--detach" in more:
                shoal("job", "resume", learner, "--store", f"dir:{learner}", "--workers", "local:1", "--quiet")
            with open("other.safetensors", "rb") as file:
                assert file.read() == expected, (learner, more)
    try:
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        print("python3-sklearn is not here: not compared with it")
    else:
        scaler = StandardScaler().fit(X)
        assert np.allclose(scaler.mean_, mean, rtol=1e-13) and np.allclose(scaler.scale_, scale, rtol=1e-13)
    # The labels of a run are those that its model gives to the same rows.
    shoal("kmeans", "x.npy", "-k", 5, "--standardise", "--model", "k.safetensors", "--labels", "l.npy", "--centres",
          "c.npy", "--quiet")
    schema, centres = schema_of("k.safetensors"), np.load("c.npy")  # of DATA, unlike those that the model has
    inside = read_model("k.safetensors")[1]["centres"]
    assert np.array_equal(centres, inside * schema["standardise_scale"] + schema["standardise_mean"])
    again = json.loads(shoal("kmeans", "x.npy", "--init", "c.npy", "--standardise", "--json").stdout)
    assert again["iterations"] <= 1, again
    shoal("predict", "k.safetensors", "x.npy", "--labels", "p.npy", "--quiet")
    assert (np.load("l.npy") == np.load("p.npy")).all()


@apart.test
def starts_of_standardised_models():
    X = rows(300, 3) * [1, 100, 1e-2] + 3
    np.save("x.npy", np.column_stack([X, X[:, 1] > 0]))
    first = json.loads(shoal("logistic", "x.npy", "--standardise", "--model", "m.safetensors", "--json").stdout)
    then = json.loads(shoal("logistic", "x.npy", "--start", "m.safetensors", "--iterations", 0, "--model",
                            "then.safetensors", "--json").stdout)
    assert then["objective"] == first["objective"] and schema_of("then.safetensors") == schema_of("m.safetensors")
    shoal("logistic", "x.npy", "--model", "plain.safetensors", "--quiet")
    done = shoal("logistic", "x.npy", "--start", "plain.safetensors", "--standardise", code=2)
    assert "--standardise: plain.safetensors was trained without it; leave out one of the two" in done.stderr
    first = json.loads(shoal("kmeans", "x.npy", "-k", 3, "--standardise", "--model", "k.safetensors", "--json").stdout)
    then = json.loads(shoal("kmeans", "x.npy", "--init", "k.safetensors", "--iterations", 0, "--json").stdout)
    assert then["objective"] == first["objective"], (then, first)
    # What is missing is filled in first, with the means that the model keeps.
    gaps = rows(200, 2) * [1, 1000] + 5
    gaps[::7, 1] = np.nan
    np.save("gaps.npy", gaps)
    words = ["gaps.npy", "--missing", "mean"]
    shoal("kmeans", *words, "-k", 3, "--standardise", "--model", "k.safetensors", "--labels", "l.npy", "--quiet")
    shoal("predict", "k.safetensors", *words, "--labels", "p.npy", "--quiet")
    assert (np.load("l.npy") == np.load("p.npy")).all()
    shoal("store", "put", "--create", "x.npy", f"dir:{os.getcwd()}/box/")
    done = shoal("kmeans", f"dir:{os.getcwd()}/box/x.npy", "-k", 2, "--standardise", code=2)
    assert "stay in their store; fetch them first with shoal store get" in done.stderr, done.stderr
    X[7, 1] = np.inf
    np.save("bad.npy", X)
    done = shoal("kmeans", "bad.npy", "-k", 2, "--standardise", code=1)
    assert "bad.npy: row 8, column 2 is not a finite number; --standardise needs finite numbers" in done.stderr


# ---- scores ----------------------------------------------------------------------------------------------------------


def score(*words):
    return json.loads(shoal("predict", *words, "--score", "--json").stdout)["score"]


@apart.test
def scores_of_classes():
    X, labels, names = pen_strokes(600)
    write_csv("train.csv", names + ["digit"], *X.T, labels)
    write_csv("moved.csv", ["digit"] + names[::-1], labels, *X.T[::-1])
    write_csv("bare.csv", names, *X.T)
    np.save("y.npy", labels)
    for learner in ("logistic", "bayes"):
        shoal(learner, "train.csv", "--model", "m.safetensors", "--quiet")
        shoal("predict", "m.safetensors", "train.csv", "--labels", "l.npy", "--probabilities", "p.npy", "--quiet")
        found, p = np.load("l.npy").astype(int), np.load("p.npy")
        confusion = np.zeros((10, 10), int)
        np.add.at(confusion, (labels, found), 1)
        loss = -np.log(np.clip(p[np.arange(600), labels], 2.0**-52, 1)).mean()
        first = score("m.safetensors", "train.csv")
        assert first["confusion"] == confusion.tolist() and first["known"] == [str(i) for i in range(10)], first
        assert first["accuracy"] == (found == labels).mean() and abs(first["log_loss"] / loss - 1) < 1e-12, first
        for words in (["moved.csv"], ["bare.csv", "--target", "y.npy"], ["train.csv", "--target", "digit"],
                      ["train.csv", "--target", -1, "--threads", 1], ["train.csv", "--kernel", "portable"]):
            assert score("m.safetensors", *words) == first, (learner, words)
        summary = shoal("predict", "m.safetensors", "train.csv", "--score").stdout
        right = int((found == labels).sum())
        assert f"\naccuracy   {100 * right / 600:.2f}%: {right} of 600 rows\n" in summary, summary
        assert f"\nlog loss   {loss:.6g}\n" in summary, summary
        assert "\nconfusion  rows: known classes; columns: predicted classes\n" in summary, summary
    assert "training accuracy" in shoal("logistic", "train.csv").stdout
    write_csv("truth.csv", ["known"], labels)
    os.link("truth.csv", "linked.csv")
    for known in ("truth.csv", "linked.csv"):
        refuses(2, f"--labels truth.csv and --target {known} are the same file: an input is never overwritten; "
                "write to another file", "m.safetensors", "bare.csv", "--score", "--target", known, "--labels",
                "truth.csv", "--force")
    refuses(2, "--score: bare.csv does not hold the target of m.safetensors, 'digit'; give the known classes with "
            "--target COLUMN|FILE", "m.safetensors", "bare.csv", "--score")
    np.save("y.npy", np.where(np.arange(600) < 5, 12, labels))  # a class that no row of training had
    strange = score("m.safetensors", "bare.csv", "--target", "y.npy")
    assert strange["known"][-1] == "12" and strange["unknown_classes"] == 1 and strange["log_loss"] is None, strange
    write_csv("words.csv", names + ["digit"], *X.T, ["one" if i == 1 else "other" for i in labels])
    refuses(1, "words.csv: the target holds words, but the classes of the model are numbers", "m.safetensors",
            "words.csv", "--score")
    try:
        from sklearn.metrics import confusion_matrix, log_loss
    except ImportError:
        return print("python3-sklearn is not here: not compared with it")
    assert (confusion_matrix(labels, found) == confusion).all() and abs(log_loss(labels, p) - loss) < 1e-12


@apart.test
def scores_of_clusters_and_networks():
    X, labels, names = pen_strokes(500)
    write_csv("x.csv", names + ["digit"], *X.T, labels)
    shoal("kmeans", "x.csv", "--drop-column", "digit", "-k", 7, "--model", "m.safetensors", "--labels", "l.npy",
          "--centres", "c.npy", "--quiet")
    plain = score("m.safetensors", "x.csv")
    assert "adjusted_rand_index" not in plain and plain["objective"] > 0, plain
    known = score("m.safetensors", "x.csv", "--target", "digit")
    table = np.zeros((10, 7), int)
    np.add.at(table, (labels, np.load("l.npy")), 1)
    assert known["confusion"] == table.tolist() and known["objective"] == plain["objective"], known
    assert score("c.npy", "x.csv", "--target", "digit")["confusion"] == table.tolist()  # centres alone are a model
    np.save("itself.npy", np.load("l.npy"))
    assert score("m.safetensors", "x.csv", "--target", "itself.npy")["adjusted_rand_index"] == 1
    try:
        from sklearn.metrics import adjusted_rand_score
    except ImportError:
        print("python3-sklearn is not here: not compared with it")
    else:
        assert abs(known["adjusted_rand_index"] - adjusted_rand_score(labels, np.load("l.npy"))) < 1e-12, known
    for words in ([], ["--tied"], ["--activation", "tanh"], ["--output", "linear"]):
        np.save("a.npy", np.random.default_rng(1).random((200, 9)) * 0.8 + 0.1)
        told = json.loads(
            shoal("autoencoder", "a.npy", "--hidden", 4, "--iterations", 20, "--precision", "float64", *words,
                  "--model", "a.safetensors", "--json").stdout)
        first = score("a.safetensors", "a.npy", "--threads", 1)
        assert abs(first["error"] / told["error"] - 1) < 1e-12, (words, first, told["error"])
        assert score("a.safetensors", "a.npy", "--threads", 3) == first


@apart.test
def long_and_foreign_words_in_a_table():
    names = ["Überlängeäöüßéèêëxyz", "ab", "日本"]
    X = rows(60, 2) + 8 * np.repeat(np.arange(3), 20)[:, None]
    write_csv("foreign.csv", ["a", "b", "kind"], *X.T, np.repeat(names, 20))
    shoal("bayes", "foreign.csv", "--model", "m.safetensors", "--quiet")
    table = shoal("predict", "m.safetensors", "foreign.csv", "--score").stdout.split("confusion  ")[1].split("\n")[1:5]
    assert [len(line) for line in table] == [78] * 4 and table[2].strip().startswith(names[0][:16] + "  "), table


@apart.test
def only_a_list_of_words_is_replaced_by_one():
    write_csv("w.csv", ["a", "kind"], np.arange(6.0), ["x", "y"] * 3)
    shoal("bayes", "w.csv", "--model", "m.safetensors", "--quiet")
    np.save("square.npy", np.array([["x", "y"], ["y", "x"]]))
    np.save("records.npy", np.array([("x", 1)], dtype=[("f0", "<U5"), ("f1", "<i4")]))
    np.save("list.npy", np.array(["x", "other"]))
    for name, code in (("square", 2), ("records", 2), ("list", 0)):
        done = subprocess.run([SHOAL, "predict", "m.safetensors", "w.csv", "--labels", f"{name}.npy", "--quiet"],
                              capture_output=True, text=True)
        assert done.returncode == code and ("--force" in done.stderr) == (code == 2), (name, done)


@apart.test
def words_as_classes():
    X, labels, names = pen_strokes(400)
    animals = np.array(["cat", "dog", "eel", "wasp", "ant", "bee", "cow", "fox", "gnu", "hen"])[labels]
    write_csv("x.csv", names + ["animal"], *X.T, animals)
    for learner in ("logistic", "bayes"):
        for words in ([], ["--workers", "local:2"], ["--detach", "--store", f"dir:{learner}", "--job", learner]):
            shoal(learner, "x.csv", *words, "--model", "m.safetensors", "--quiet")
            if "--detach" in words:
                shoal("job", "resume", learner, "--store", f"dir:{learner}", "--workers", "local:1", "--quiet")
            assert schema_of("m.safetensors")["classes"] == sorted(set(animals)), learner
        told = json.loads(shoal(learner, "x.csv", "--json").stdout)
        assert told["class_names"] == sorted(set(animals)), told
        told = json.loads(shoal("predict", "m.safetensors", "x.csv", "--score", "--json").stdout)
        assert told["classes"] == told["score"]["known"] == sorted(set(animals)), told
        assert told["score"]["accuracy"] > 0.95 and sum(told["counts"]) == 400, told
        shoal("predict", "m.safetensors", "x.csv", "--labels", f"{learner}.csv", "--quiet")
        shoal("predict", "m.safetensors", "x.csv", "--labels", f"{learner}.npy", "--quiet")
        written = np.load(f"{learner}.npy")
        assert (written == animals).mean() == told["score"]["accuracy"] and written.dtype.kind == "U", written
        with open(f"{learner}.csv") as file:
            assert file.read().split() == list(written), learner
        again = shoal("predict", "m.safetensors", "x.csv", "--drop-column", "animal", "--score", "--target",
                      f"{learner}.csv").stdout
        assert "\naccuracy   100.00%: 400 of 400 rows\n" in again, again  # what was written is read as known classes
        assert "\nclasses    ant: 40 rows, bee: 40 rows" in shoal("predict", "m.safetensors", "x.csv").stdout
        shoal("predict", "m.safetensors", "x.csv", "--labels", "l.npy", "--quiet")
        found = np.load("l.npy")
        assert found.dtype == np.dtype("<U4") and (found == animals).mean() > 0.95
        assert shoal("predict", "m.safetensors", "x.csv", "--labels", "-", "--quiet").stdout.split() == list(found)
        refuses(2, "--labels l.idx: .idx files hold numbers, but these classes are words; .npy and .csv hold both",
                "m.safetensors", "x.csv", "--labels", "l.idx")


# ---- what is no model ------------------------------------------------------------------------------------------------


@apart.test
def what_does_not_fit_is_told():
    np.save("x.npy", rows(10, 4))
    write_model("m.safetensors", {"learner": "kmeans"}, centres=rows(2, 3))
    refuses(1, "x.npy has 4 columns, but m.safetensors is a model for 3: leave one out with --drop-column, or, if it "
            "is the known class, name it with --score --target COLUMN", "m.safetensors", "x.npy")
    write_model("m.safetensors", {"learner": "forest"}, trees=rows(2, 3))
    refuses(1, "m.safetensors: a model of 'forest', a learner this program does not know", "m.safetensors",
            "x.npy")
    write_model("m.safetensors", {"version": "1"}, trees=rows(2, 3))
    refuses(1, "m.safetensors: not a model: its metadata do not name a learner, and it has no tensor 'centres'",
            "m.safetensors", "x.npy")
    write_model("m.safetensors", {"learner": "kmeans"}, trees=rows(2, 3))
    refuses(1, "m.safetensors: there is no tensor 'centres' of rows x columns", "m.safetensors", "x.npy")
    write_model("m.safetensors", {"learner": "kmeans"}, centres=rows(2, 4))
    with open("m.safetensors", "rb") as file:
        whole = file.read()
    for cut in (0, 4, 8, 20, len(whole) - 1):
        with open("cut.safetensors", "wb") as file:
            file.write(whole[:cut])
        done = shoal("predict", "cut.safetensors", "x.npy", code=1)
        assert done.stderr.startswith("shoal: cut.safetensors: "), done.stderr


@apart.test
def nan_in_the_data_is_told():
    for name, metadata, tensors in (("logistic", {"learner": "logistic"},
                                     {"classes": np.arange(2.0), "weights": rows(1, 4), "intercept": np.zeros(1)
                                      }), ("autoencoder", about(),
                                           {"encoder_weight": rows(3, 4), "encoder_bias": np.zeros(3)}),
                                    ("kmeans", {"learner": "kmeans"}, {"centres": rows(3, 4)})):
        X = rows(10, 4)
        X[6, 2] = np.nan
        np.save("x.npy", X)
        write_model("m.safetensors", metadata, **tensors)
        done = shoal("predict", "m.safetensors", "x.npy", code=1)
        assert "x.npy" in done.stderr and "row 7" in done.stderr, (name, done.stderr)


apart.main(at_once=2)
