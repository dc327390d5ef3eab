#!/usr/bin/python3
# Seconds: 35
# The Python package: finding and loading the library, and k-means as an estimator.
#   test_python.py PATH_TO_shoal [TEST...]
# Prints one line for each failure and "N passed, M failed" at the end.
import concurrent.futures
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
import warnings

from scripts import Terminal, check, folder, main, program, raises, random_rows, root, run_notebook, run_python, skipped

import numpy as np
import shoal
from shoal import KMeans, _library, _sklearn, _validate


# ---- the library -----------------------------------------------------------------------------------------------------


def test_structs():
    """What _library.py says of structs is what the compiler says."""
    lines = []
    for c_name, struct in _library.STRUCTS.items():
        lines.append(f'printf("{c_name} %zu\\n", sizeof({c_name}));')
        for field, *_ in struct._fields_:
            lines.append(
                f'printf("{c_name}.{field} %zu %zu\\n", offsetof({c_name}, {field}), sizeof((({c_name} *)0)->{field}));'
            )
    source = "#include <stdio.h>\n#include <stddef.h>\n#include <shoal/shoal.h>\nint main(void) {" + "\n".join(
        lines) + "}\n"
    (folder / "structs.c").write_text(source)
    if not shutil.which("cc"):
        return skipped("structs", "there is no cc")
    subprocess.run(["cc", f"-I{root / 'include'}", "-o", folder / "structs", folder / "structs.c"], check=True,
                   timeout=300)
    said = dict(line.split(" ", 1) for line in subprocess.run([folder / "structs"], capture_output=True, text=True,
                                                              timeout=300).stdout.splitlines())
    for c_name, struct in _library.STRUCTS.items():
        check(f"size of {c_name}", said[c_name] == str(_library.ctypes.sizeof(struct)), said[c_name])
        for field, *_ in struct._fields_:
            about = getattr(struct, field)
            check(f"{c_name}.{field}", said[f"{c_name}.{field}"] == f"{about.offset} {about.size}",
                  said[f"{c_name}.{field}"])
    order = re.search(r"typedef enum shoal_type \{(.*?)SHOAL_TYPES", (root / "include/shoal/data.h").read_text(),
                      re.S)[1]
    names = [name.lower() for name in re.findall(r"SHOAL_(\w+),", order)]
    check("types", names == [dtype.name for dtype in _library.TYPES], names)
    return None


def test_finding():
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=300).stdout.split()
    check("the package's version is the program's", said[-1:] == [shoal.__version__], said)
    absent = run_python("import shoal\nshoal.Master\nfrom shoal import KMeans", SHOAL_LIBRARY="/nowhere/libshoal.so")
    check("a library that is not there is an ImportError", "ImportError: libshoal.so could not be loaded: /nowhere"
          in absent.stderr, absent.stderr)
    if shutil.which("cc"):
        (folder / "other.c").write_text('const char *shoal_version(void) { return "7.3.0"; }\n')
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "other.so", folder / "other.c"], check=True,
                       timeout=300)
        other = run_python("from shoal import KMeans", SHOAL_LIBRARY=str(folder / "other.so"))
        check(
            "another version is an ImportError",
            re.search(
                r"ImportError: .*other.so is version 7.3.0, but this package needs " + re.escape(shoal.__version__),
                other.stderr), other.stderr)
        (folder / "foreign.c").write_text("int nothing;\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "foreign.so", folder / "foreign.c"], check=True,
                       timeout=300)
        foreign = run_python("from shoal import KMeans", SHOAL_LIBRARY=str(folder / "foreign.so"))
        check("some other library is an ImportError",
              re.search(r"ImportError: .*foreign.so is not libshoal", foreign.stderr), foreign.stderr)
        (folder / "older.c").write_text(f'const char *shoal_version(void) {{ return "{shoal.__version__}"; }}\n')
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "older.so", folder / "older.c"], check=True,
                       timeout=300)
        older = run_python("from shoal import KMeans", SHOAL_LIBRARY=str(folder / "older.so"))
        check("a library without some function is an ImportError",
              re.search(r"ImportError: .*older.so has no shoal_\w+, so it is an older build of version", older.stderr),
              older.stderr)
    (folder / "text.so").write_text("this is no library\n")
    text = run_python("from shoal import KMeans", SHOAL_LIBRARY=str(folder / "text.so"))
    check("a file that is no library is an ImportError",
          re.search(r"ImportError: libshoal.so could not be loaded: .*text.so: .*; SHOAL_LIBRARY names another one$",
                    text.stderr), text.stderr)
    beside = folder / "beside"
    shutil.copytree(root / "python" / "shoal", beside / "shoal")
    shutil.copy(program.parent / "libshoal.so", beside / "shoal" / "libshoal.so")
    found = run_python("from shoal import _library\nprint(_library.PATH)", SHOAL_LIBRARY="", PYTHONPATH=str(beside))
    check("a library beside the package is used", found.stdout.strip() == str(beside / "shoal" / "libshoal.so"),
          found.stdout + found.stderr)


def pip(*words):
    return subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, timeout=200)


def test_installing():
    """pip makes a wheel that has the library and the program, and works away from the source tree."""
    for module in ("pip", "setuptools", "wheel"):
        if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, timeout=300).returncode != 0:
            return skipped("pip install", f"there is no {module}")
    made = pip("wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", folder / "wheels", root / "python")
    wheels = [path.name for path in (folder / "wheels").glob("*")] if made.returncode == 0 else []
    check("pip makes a wheel for this kind of machine, and any Python",
          wheels == [f"shoal-{shoal.__version__}-py3-none-linux_{os.uname().machine}.whl"], f"{wheels} {made.stderr}")
    target = folder / "installed"
    installed = pip("install", "--no-deps", "--no-index", "--target", target, *(folder / "wheels").glob("*"))
    check("pip install", installed.returncode == 0, installed.stderr)
    alone = {"PYTHONPATH": str(target), "SHOAL_LIBRARY": "", "SHOAL_PROGRAM": "", "PATH": "/usr/bin:/bin"}
    used = run_python("""
        import qjam.master.master, shoal
        from shoal import _library, _program
        def count(params, dataset):
            return params * len(dataset)
        print(shoal.__file__, _library.PATH, _program.find())
        print(shoal.KMeans(2).fit([[0], [1], [9]]).inertia_, shoal.Master('local').run(count, 2, [1, 2, 3]))
        print(shoal.GaussianNB(workers='local:2').fit([[0], [1], [9]], ['a', 'a', 'b']).predict([[9]])[0])
    """, cwd=folder, **alone)
    check("what pip installed works by itself", used.stdout.split() == [
        str(target / "shoal/__init__.py"), str(target / "shoal/libshoal.so"), str(target / "shoal/shoal"), "0.5", "6",
        "b"
    ] and (target / "shoal" / "py.typed").exists(), used.stdout + used.stderr)
    (target / "shoal" / "libshoal.so").unlink()
    without = run_python("from shoal import KMeans", cwd=folder, **alone)
    check("a wheel without the library is an ImportError",
          "ImportError: libshoal.so was not found beside the package, " in without.stderr, without.stderr)
    shutil.copytree(root / "python", folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    apart = pip("wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", folder, folder / "source")
    check("a package away from the source tree can't be built",
          f"{folder} is not the source tree of shoal, of which this package is the folder python" in apart.stderr,
          apart.stderr)
    return None


def test_importing():
    """`import shoal` brings nothing with it but itself; what needs more loads it when it is first used."""
    done = run_python("""
        import sys
        before = set(sys.modules)
        import shoal
        dir(shoal)
        print(*sorted(set(sys.modules) - before))
        import numpy
        before = set(sys.modules)
        shoal.Master, shoal.RemoteWorker
        print(*sorted(name for name in set(sys.modules) - before if "." not in name))
    """)
    first, second = done.stdout.splitlines()
    check("import shoal", first == "shoal shoal._errors shoal._version", first + done.stderr)
    check("shoal.Master", not set(second.split()) & {"sklearn", "scipy", "pandas", "IPython", "joblib"}, second)


# ---- k-means ---------------------------------------------------------------------------------------------------------


class Program:
    """What `shoal kmeans` makes of the same rows."""

    def __init__(self, X, *options, weights=None, start=None):
        np.save(folder / "x.npy", X)
        words = [
            program, "kmeans", folder / "x.npy", "--json", "--centres", folder / "c.npy", "--labels", folder / "l.npy",
            *options
        ]
        for option, array in (("--weights", weights), ("--init", start)):
            if array is not None:
                np.save(folder / f"{option[2:]}.npy", array)
                words += [option, folder / f"{option[2:]}.npy"]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=120, check=True)
        self.about = json.loads(done.stdout)
        self.centres, self.labels = np.load(folder / "c.npy"), np.load(folder / "l.npy")


def same(model, other):
    return (model.cluster_centers_.tobytes() == other.centres.tobytes() and
            model.labels_.tobytes() == other.labels.tobytes() and model.labels_.dtype == np.int32 and
            model.inertia_ == other.about["objective"] and model.n_iter_ == other.about["iterations"])


def test_same_bytes():
    weights = np.random.default_rng(5).uniform(0, 3, 700)
    for dtype in _library.TYPES:
        X = random_rows(700, 5, dtype, seed=3)
        check(f"the program's bytes, {dtype}",
              same(KMeans(6, random_state=11).fit(X), Program(X, "-k", 6, "--seed", 11)))
        check(f"{dtype} rows are not copied", np.shares_memory(_validate.as_rows(X), X))
    X = random_rows(700, 5)
    for init, word in (("auto", "auto"), ("k-means++", "kmeans++"), ("parallel", "parallel"), ("k-means||", "parallel"),
                       ("random", "random")):
        check(
            f"the program's bytes, init={init}",
            same(
                KMeans(9, init=init, random_state=2, n_init=3, max_iter=5, tol=0).fit(X),
                Program(X, "-k", 9, "--init", word, "--seed", 2, "--runs", 3, "--iterations", 5, "--tolerance", 0)))
    check("the program's bytes with weights", same(KMeans(4, random_state=0).fit(X, sample_weight=weights),
                                                   Program(X, "-k", 4, weights=weights)))
    start = X[:4] + 0.25
    for empty in ("farthest", "keep", "split"):
        far = np.vstack([start[:3], start[:1] + 1e6])  # its cluster has no rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(f"the program's bytes, empty={empty}", same(KMeans(4, init=far, empty=empty).fit(X),
                                                              Program(X, "--empty", empty, start=far)))
    whole = KMeans(7, random_state=1).fit(X)
    for more in ({"n_threads": 1}, {"n_threads": 3}, {"kernel": "portable"}):
        other = KMeans(7, random_state=1, **more).fit(X)
        check(f"the same bits with {more}", other.cluster_centers_.tobytes() == whole.cluster_centers_.tobytes()
              and other.inertia_ == whole.inertia_)


def test_layouts():
    X = random_rows(300, 4)
    expected = KMeans(3, random_state=0).fit(X)
    frame = {"list": X.tolist(), "Fortran order": np.asfortranarray(X), "every other row": np.repeat(X, 2, axis=0)[::2],
             "big-endian": X.astype(">f8"), "objects": X.astype(object), "longdouble": X.astype(np.longdouble)}
    read_only = X.copy()
    read_only.flags.writeable = False
    frame["read-only"] = read_only
    for name, rows in frame.items():
        model = KMeans(3, random_state=0).fit(rows)
        check(f"rows as {name}", model.cluster_centers_.tobytes() == expected.cluster_centers_.tobytes()
              and (model.predict(rows) == expected.labels_).all())
    half = X.astype("f2")
    check("float16",
          (KMeans(3, random_state=0).fit(half).labels_ == KMeans(3,
                                                                 random_state=0).fit(half.astype("f4")).labels_).all())


def test_methods():
    X, new = random_rows(500, 6), random_rows(200, 6, seed=9)
    weights = np.random.default_rng(1).uniform(0.5, 2, 200)
    model = KMeans(5, random_state=3).fit(X)
    squares = ((new[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    check("predict", (model.predict(new) == squares.argmin(axis=1)).all() and model.predict(new).dtype == np.int32)
    check("predict of the rows that were fitted", (model.predict(X) == model.labels_).all())
    check("transform", np.allclose(model.transform(new), np.sqrt(squares), rtol=1e-12, atol=0)
          and (model.transform(new).argmin(axis=1) == model.predict(new)).all())
    check("fit_transform", (KMeans(5, random_state=3).fit_transform(X) == model.transform(X)).all())
    check("fit_predict", (KMeans(5, random_state=3).fit_predict(X) == model.labels_).all())
    check("score", math.isclose(model.score(new), -squares.min(axis=1).sum(), rel_tol=1e-12)
          and model.score(X) == -model.inertia_)
    check("score with weights",
          math.isclose(model.score(new, sample_weight=weights), -(weights * squares.min(axis=1)).sum(), rel_tol=1e-12))
    check("fitted attributes", model.n_features_in_ == 6 and not hasattr(model, "feature_names_in_")
          and list(model.get_feature_names_out()) == [f"kmeans{i}" for i in range(5)])
    check("a weight of 2 is two rows", math.isclose(KMeans(5, init=X[:5]).fit(X, sample_weight=2.0).inertia_,
                                                    2 * KMeans(5, init=X[:5]).fit(X).inertia_, rel_tol=1e-12))
    seeds = [
        KMeans(8, init="random", max_iter=0, random_state=state).fit(X).inertia_
        for state in (1, 1, 2, np.random.RandomState(4), np.random.RandomState(4), np.random.default_rng(4),
                      np.random.default_rng(4))
    ]
    check("random_state", seeds[0] == seeds[1] != seeds[2] and seeds[3] == seeds[4] and
          seeds[5] == seeds[6] != seeds[3], seeds)
    free = {KMeans(8, init="random", max_iter=0).fit(X).inertia_ for _ in range(3)}
    check("without random_state each run is another", len(free) == 3, free)
    calls = []

    def first_rows(rows, count, random_state):
        calls.append(random_state)
        return rows[len(calls):len(calls) + count]
    model = KMeans(5, init=first_rows, n_init=3, random_state=0).fit(X)
    best = min(KMeans(5, init=X[i:i + 5]).fit(X).inertia_ for i in (1, 2, 3))
    check("a callable init, the best of three", len(calls) == 3 and model.inertia_ == best)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = KMeans(4, random_state=0).fit([[1.0, 2], [1, 2], [3, 4], [1, 2], [3, 4]])
    check("fewer different rows than clusters", model.inertia_ == 0 and len(set(model.labels_)) == 2
          and [str(w.message)[:31] for w in caught] == ["2 of n_clusters=4 clusters have"], caught)


def test_alone():
    """A fit is this process's alone: it leaves nothing on the machine, and whoever started it need not be met."""
    fit = """
        import numpy as np
        from shoal import KMeans
        X = np.random.default_rng(0).normal(size=(500, 3))
        print(KMeans(5, random_state=0).fit(X).inertia_.hex())
    """
    expected = KMeans(5, random_state=0).fit(np.random.default_rng(0).normal(size=(500, 3))).inertia_.hex()
    done = run_python(fit, XDG_STATE_HOME=str(folder / "state"))
    check("a fit", done.stdout.strip() == expected, done.stdout + done.stderr)
    check("a fit is not noted", not (folder / "state").exists())
    done = run_python(fit, OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_RANK="1")
    check("a fit of one of several ranks", done.stdout.strip() == expected, done.stdout + done.stderr)
    X = random_rows(400, 3)
    expected = [KMeans(4, random_state=seed).fit(X).inertia_ for seed in range(6)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        fits = [pool.submit(KMeans(4, random_state=seed).fit, X) for seed in range(6)]
        check("fits of several threads", [fit.result(120).inertia_ for fit in fits] == expected)


class Frame:
    """As much of a data frame as an estimator looks at."""

    def __init__(self, values, columns):
        self.values, self.columns = values, columns

    def __array__(self, dtype=None):
        return np.asarray(self.values, dtype)


def test_names():
    X = random_rows(50, 3)
    model = KMeans(2, random_state=0).fit(Frame(X, ["a", "b", "c"]))
    check("feature_names_in_", list(model.feature_names_in_) == ["a", "b", "c"])
    raises("names that fit did not see", ValueError, r"should match.*\n.*unseen at fit time:\n- d\n.*missing:\n- c\n",
           lambda: model.predict(Frame(X, ["a", "b", "d"])))
    raises("names in another order", ValueError, "in the same order",
           lambda: model.transform(Frame(X, ["b", "a", "c"])))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(X)
        KMeans(2, random_state=0).fit(X).predict(Frame(X, ["a", "b", "c"]))
    check("warnings about names",
          [str(w.message)[:28] for w in caught] == ["X does not have valid featur",
                                                    "X has feature names, but KMe"], [str(w.message) for w in caught])
    raises("names of two kinds", TypeError, "X has columns named by int and str",
           lambda: model.fit(Frame(X, ["a", 1, 2])))
    check("names are forgotten", not hasattr(model.fit(X), "feature_names_in_"))


def test_errors():
    X = random_rows(20, 3)
    bad = X.copy()
    bad[4, 1] = np.nan
    model = KMeans(3, random_state=0).fit(X)
    cases = [
        ("NaN", r"X: row 5, column 2 is NaN; k-means needs finite numbers", lambda: KMeans(3).fit(bad)),
        ("infinity in predict", r"row 1, column 1 is infinite", lambda: model.predict([[np.inf, 0, 0]])),
        ("too many clusters", r"^n_clusters=21 is more than the 20 rows of X", lambda: KMeans(21).fit(X)),
        ("no clusters", r"^n_clusters must be at least 1, not 0$", lambda: KMeans(0).fit(X)),
        ("clusters that are no number", r"^n_clusters must be a whole number, not '3'$", lambda: KMeans("3").fit(X)),
        ("half a cluster", r"^n_clusters must be a whole number, not 2.5$", lambda: KMeans(2.5).fit(X)),
        ("true clusters", r"^n_clusters must be a whole number, not True$", lambda: KMeans(True).fit(X)),
        ("a word for init", r"^init must be one of 'auto', .*, not 'kmean'$", lambda: KMeans(3, init="kmean").fit(X)),
        ("init of another shape",
         r"^init has the shape \(3, 2\), but n_clusters and the columns of X make it \(3, 3\)$",
         lambda: KMeans(3, init=np.zeros((3, 2))).fit(X)),
        ("init that is not finite", r"row 1, column 2 of the centres is not finite",
         lambda: KMeans(1, init=[[0, np.nan, 0]]).fit(X)),
        ("what a callable returned", r"^what init returned has the shape \(2, 3\)",
         lambda: KMeans(3, init=lambda X, k, random_state: X[:2]).fit(X)),
        ("n_init", r"^n_init must be at least 1, not 0$", lambda: KMeans(3, n_init=0).fit(X)),
        ("n_init word", r"^n_init must be a whole number or 'auto', not 'warn'$",
         lambda: KMeans(3, n_init="warn").fit(X)),
        ("max_iter", r"^max_iter must be at least 0, not -1$", lambda: KMeans(3, max_iter=-1).fit(X)),
        ("tol", r"^tol must be a finite number that is at least 0, not -1$", lambda: KMeans(3, tol=-1).fit(X)),
        ("tol NaN", r"^tol must be", lambda: KMeans(3, tol=math.nan).fit(X)),
        ("random_state", r"^random_state must be at least 0, not -1$", lambda: KMeans(3, random_state=-1).fit(X)),
        ("random_state word", r"^random_state must be a whole number, a", lambda: KMeans(3, random_state="x").fit(X)),
        ("n_threads", r"^n_threads must be at least 1, not 0$", lambda: KMeans(3, n_threads=0).fit(X)),
        ("kernel", r"'?sse9'?", lambda: KMeans(3, kernel="sse9").fit(X)),
        ("empty", r"^empty must be one of 'farthest', 'keep', 'split', not 'drop'$",
         lambda: KMeans(3, empty="drop").fit(X)),
        ("one dimension", r"X has 1 dimensions\. Reshape your data", lambda: KMeans(3).fit(X[0])),
        ("no rows", r"0 sample\(s\) \(shape=\(0, 3\)\)", lambda: KMeans(3).fit(X[:0])),
        ("no columns", r"0 feature\(s\) \(shape=\(20, 0\)\)", lambda: KMeans(3).fit(X[:, :0])),
        ("complex", r"^Complex data not supported", lambda: KMeans(3).fit(X + 1j)),
        ("dates", r"^X has values of type datetime64", lambda: KMeans(3).fit(np.zeros((4, 2), "M8[s]"))),
        ("other columns", r"^X has 2 features, but KMeans is expecting 3 features as input$",
         lambda: model.predict(X[:, :2])),
        ("few weights", r"^sample_weight.shape == \(19,\), expected \(20,\)",
         lambda: model.fit(X, sample_weight=np.ones(19))),
        ("a table of weights", r"^Sample weights must be 1D array or scalar",
         lambda: model.fit(X, sample_weight=np.ones((20, 2)))),
        ("a negative weight", r"the weight of row 3 is -1", lambda: model.fit(X, sample_weight=[1, 1, -1] + [1] * 17)),
        ("no weight at all", r"^all weights are zero$", lambda: model.fit(X, sample_weight=np.zeros(20))),
    ]
    for what, pattern, call in cases:
        raises(what, ValueError, pattern, call)
    error = raises("before fit", _sklearn.NotFittedError, "call fit before", lambda: KMeans().predict(X))
    check("before fit: its kinds", isinstance(error, ValueError) and isinstance(error, AttributeError))
    check(
        "a failed fit leaves nothing",
        not hasattr(raises("NaN again", ValueError, "NaN", lambda: KMeans(3).fit(bad)), "labels_") and
        not hasattr(KMeans(3), "labels_"))


def test_sklearn():
    try:
        from sklearn.cluster import KMeans as Theirs
    except ImportError as error:
        return skipped("scikit-learn", error)
    warnings.simplefilter("ignore")
    for seed in range(4):
        X = random_rows(900, 4, seed=seed)
        start = X[np.random.default_rng(seed).choice(900, 12, replace=False)] + 0.01
        ours, theirs = KMeans(12, init=start).fit(X), Theirs(12, init=start, n_init=1).fit(X)
        check(f"scikit-learn's labels from the same start, {seed}", (ours.labels_ == theirs.labels_).all()
              and ours.n_iter_ == theirs.n_iter_ and np.allclose(ours.cluster_centers_, theirs.cluster_centers_)
              and math.isclose(ours.inertia_, theirs.inertia_, rel_tol=1e-9))
        new = random_rows(300, 4, seed=seed + 50)
        check(f"scikit-learn's methods, {seed}", (ours.predict(new) == theirs.predict(new)).all() and
              np.allclose(ours.transform(new), theirs.transform(new)) and
              math.isclose(ours.score(new), theirs.score(new), rel_tol=1e-9))
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    check("clone", clone(KMeans(3, tol=0.5)).get_params() == KMeans(3, tol=0.5).get_params())
    check("in a pipeline",
          make_pipeline(StandardScaler(), KMeans(3, random_state=0)).fit_predict(random_rows(60, 3)).shape == (60, ))
    return None


def test_without_sklearn():
    alone = run_python("""
        import sys
        sys.modules['sklearn'] = None
        import numpy as np
        import shoal
        from shoal import KMeans, _sklearn
        assert not _sklearn.INSTALLED
        X = np.random.default_rng(0).normal(size=(200, 3))
        model = KMeans(n_clusters=4, random_state=0)
        assert repr(model) == 'KMeans(n_clusters=4, random_state=0)', repr(model)
        assert model.get_params()['tol'] == 1e-4
        try:
            model.predict(X)
        except ValueError as error:
            assert 'call fit before' in str(error)
        try:
            model.set_params(clusters=3)
        except ValueError as error:
            assert "Invalid parameter 'clusters'" in str(error)
        assert model.set_params(n_clusters=5) is model and model.fit(X) is model
        assert model.transform(X).shape == (200, 5) and (model.predict(X) == model.labels_).all()
        assert list(model.get_feature_names_out())[:2] == ['kmeans0', 'kmeans1']
        words = np.where(X[:, 0] > 0, 'right', 'left')
        for kind in (shoal.LogisticRegression, shoal.GaussianNB):
            assert kind().fit(X, words).score(X, words) > 0.9
        assert shoal.Autoencoder(2, random_state=0, tol=0.1).fit_transform(X).shape == (200, 2)
        print(model.inertia_.hex())
    """)
    expected = KMeans(5, random_state=0).fit(np.random.default_rng(0).normal(size=(200, 3))).inertia_
    check("without scikit-learn", alone.stdout.strip() == expected.hex(), alone.stdout + alone.stderr)


# ---- Ctrl-C and progress -------------------------------------------------------------------------------------------


def test_control_c_fit():
    terminal = Terminal("""
        import time
        import numpy as np
        from shoal import KMeans
        X = np.random.default_rng(0).normal(size=(60000, 40)).astype('f4')
        try:
            KMeans(60, init='random', tol=0, n_init=100000, max_iter=20, verbose=1, random_state=0).fit(X)
        except KeyboardInterrupt:
            print('interrupted')
        print('afterwards', KMeans(3, random_state=0).fit(X[:100]).labels_.shape)
    """)
    check("progress in a terminal", terminal.until(r"\r\x1b\[Krun \d+/\d+, objective [\d.e+]+, change .* rows/s"),
          terminal.seen[-300:])
    pressed = time.monotonic()
    terminal.type(b"\x03")
    check("Ctrl-C ends fit", terminal.until("interrupted"), terminal.seen[-300:])
    took = time.monotonic() - pressed
    check("within about a round", took < 10, took)
    check("the process goes on", terminal.end() == 0 and "afterwards (100,)" in terminal.seen, terminal.seen[-300:])
    check("the progress is gone", re.search(r"\r\x1b\[K(\^C)?\s*interrupted", terminal.seen),
          repr(terminal.seen[-200:]))


def test_verbose_elsewhere():
    quiet = run_python("from shoal import KMeans\nKMeans(2, verbose=1, random_state=0).fit([[1.], [2], [9]])")
    check("in a file there is a last line",
          re.fullmatch(r"k-means: \d+ iterations, objective 0.5, [\d.]+ s\n", quiet.stderr), quiet.stderr)
    book = run_notebook(
        "import numpy as np\nfrom shoal import KMeans, _progress\n_progress.SECONDS_BETWEEN['notebook'] = 0\n"
        "X = np.random.default_rng(0).normal(size=(30000, 30))\n"
        "model = KMeans(50, init='random', verbose=1, random_state=0, tol=0, max_iter=150, n_init=8).fit(X)")
    if "No module named 'IPython'" in book.stderr:
        return skipped("progress in a notebook", "IPython is not here")
    lines = book.stdout.strip().splitlines() or [""]
    check("progress in a notebook: one output, then updates of it", len(lines) >= 2 and lines[0].endswith("False")
          and all(line.endswith("True") for line in lines[1:]), book.stdout[-500:] + book.stderr[-500:])
    check("what a notebook shows", any(re.match(r"run \d+/150, objective", line) for line in lines)
          and re.match(r"k-means: \d+ iterations, objective", lines[-1]),
          book.stdout[-300:])
    return None


main(dict(globals()))
