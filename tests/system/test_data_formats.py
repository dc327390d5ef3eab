#!/usr/bin/python3
# Files that other programs write: scikit-learn's svmlight.  What shoal makes of them has the bits that their own
# reader gives.  Labels: quick asan
#   test_data_formats.py PATH_TO_shoal
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import nobody  # so that no run is in the history of whoever runs this

try:
    import numpy as np
except ImportError:
    print("python3-numpy is not here: skipped")
    sys.exit(77)

program = os.path.abspath(sys.argv[1])
folder = pathlib.Path(tempfile.mkdtemp(prefix="shoal-formats-"))
passed = failed = 0


def check(what, condition, more=""):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {what} {more}")


def shoal(*words):
    return subprocess.run([program, *map(str, words)], capture_output=True, timeout=120, text=True)


def convert(source, *options):
    result = shoal("data", "convert", source, folder / "out.npy", "--force", *options)
    if result.returncode != 0:
        print(result.stderr.strip())
        return np.zeros(0)
    return np.load(folder / "out.npy")


def info(source):
    result = shoal("data", "info", source, "--json")
    return json.loads(result.stdout) if result.returncode == 0 else {"error": result.stderr}


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def refused(what, path, *parts):
    """One line on standard error that names the file and says each part; nothing else, and no file."""
    result = shoal("data", "convert", path, folder / "never.npy")
    lines = result.stderr.splitlines()
    check(what, result.returncode in (1, 2) and len(lines) == 1 and not (folder / "never.npy").exists(), result.stderr)
    for part in (os.path.basename(path), *parts):
        check(f"{what} says '{part}'", part in result.stderr, result.stderr)


# ---- svmlight ------------------------------------------------------------------------------------------------------


def test_svmlight():
    try:
        from sklearn.datasets import dump_svmlight_file, load_svmlight_file
    except ImportError as error:
        print(f"{error}: skipped; Debian has python3-sklearn")
        return
    generator = np.random.default_rng(1)
    values = generator.standard_normal((300, 40)) * 10.0**generator.integers(-30, 30, (300, 40))
    values[generator.random(values.shape) < 0.7] = 0
    values[:, -1] = 1  # so that the last column is there
    labels = generator.integers(-1, 4, 300).astype(float)
    path = folder / "rows.svm"
    for zero_based in (True, False):
        for query in (None, np.arange(300)):
            dump_svmlight_file(values, labels, str(path), zero_based=zero_based, comment="by a test", query_id=query)
            rows, target = load_svmlight_file(str(path))
            expected = np.column_stack([rows.toarray(), target])
            check(f"svmlight zero_based={zero_based} query={query is not None}", same(convert(path), expected))
    about = info(path)
    check("info of svmlight", about.get("format") == "svmlight" and about.get("names", [""])[-1] == "label", about)

    # Training and test files whose last features nobody has: the model says how many there are.
    labels = (values[:, 3] > 0).astype(float) + (values[:, 5] > 0)
    values = np.sign(values)
    np.save(folder / "rows.npy", np.column_stack([values, labels]))
    dump_svmlight_file(values, labels, str(path), zero_based=False)
    fewer = values[:50].copy()
    fewer[:, -1] = 0
    dump_svmlight_file(fewer, labels[:50], str(folder / "fewer.svm"), zero_based=False)
    np.save(folder / "fewer.npy", fewer)
    for learner, options in (("logistic", []), ("kmeans", ["-k", "3"])):
        model, predicted = folder / f"{learner}.safetensors", folder / "predicted.npy"
        result = shoal(learner, path, *options, "--model", model)
        check(f"{learner} of svmlight", result.returncode == 0, result.stderr)
        check(f"{learner} tells of the label", ("left out 'label'" in result.stdout) == (learner == "kmeans"), result)
        answers = []
        for rows in ("fewer.svm", "fewer.npy"):
            result = shoal("predict", model, folder / rows, "--labels", predicted, "--force")
            check(f"predict of {rows} by {learner}", result.returncode == 0, result.stderr)
            answers.append(np.load(predicted) if result.returncode == 0 else rows)
        check(f"predictions of {learner} agree", np.array_equal(*answers))


def main():
    for name, function in sorted(globals().items()):
        if name.startswith("test_"):
            function()
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
