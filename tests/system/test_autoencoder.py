#!/usr/bin/python3
# The sparse autoencoder through the program: the cost of Stanford's notes in numpy, the minimum that SciPy finds, the
# same bytes whatever computes them, and a sentence for every bad input.
#   test_autoencoder.py PATH_TO_shoal
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

import nobody  # so that no run is in the history of whoever runs this

try:
    import numpy as np
    from scipy.optimize import minimize
except ImportError:
    print("python3-numpy or python3-scipy is not here: skipped")
    sys.exit(77)

program = os.path.abspath(sys.argv[1])
folder = pathlib.Path(tempfile.mkdtemp(prefix="shoal-autoencoder-"))
counter = itertools.count()
passed = failed = 0
patches = pathlib.Path("../shared/data/patches/natural_5000x100.npy")


def check(what, condition, more=""):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {what} {more}", flush=True)
    return condition


def fresh(ending):
    return folder / f"{next(counter)}{ending}"


def save(array):
    path = fresh(".npy")
    np.save(path, array)
    return path


def shoal(*words, **environment):
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **environment})


class Model:
    """A safetensors file: its tensors as numpy arrays, its metadata as text."""

    def __init__(self, path):
        self.bytes = pathlib.Path(path).read_bytes()
        size = struct.unpack("<Q", self.bytes[:8])[0]
        header = json.loads(self.bytes[8:8 + size])
        self.metadata = header.pop("__metadata__")
        values = self.bytes[8 + size:]
        self.tensor = {
            name: np.frombuffer(values[at["data_offsets"][0]:at["data_offsets"][1]], "<f8").reshape(at["shape"])
            for name, at in header.items()
        }
        self.tied = "decoder.weight" not in self.tensor

    def point(self):
        """The parameters in the order of the definition below."""
        t = self.tensor
        decoder = [] if self.tied else [t["decoder.weight"].ravel()]
        return np.concatenate([t["encoder.weight"].ravel(), *decoder, t["encoder.bias"], t["decoder.bias"]])


def train(data, *options, expect=0, **environment):
    """Trains, and returns the model and what --json says."""
    path = fresh(".safetensors")
    result = shoal("autoencoder", data, *options, "--model", path, "--json", **environment)
    if not check(f"autoencoder {' '.join(map(str, options))}", result.returncode == expect, result.stderr):
        sys.exit(1)
    return Model(path), json.loads(result.stdout)


# ---- the definition --------------------------------------------------------------------------------------------------


def logistic(z):
    return 1 / (1 + np.exp(-z))


functions = {
    "logistic": (logistic, lambda y: y * (1 - y)), "tanh": (np.tanh, lambda y: 1 - y * y),
    "relu": (lambda z: np.maximum(z, 0), lambda y: (y > 0) * 1.0), "linear": (lambda z: z, lambda y: 1 + 0 * y)
}


class Network:
    def __init__(self, data, hidden, activation="logistic", output=None, tied=False, sparsity=0.01, beta=3.0,
                 decay=1e-4):
        self.x, self.h = np.asarray(data, "f8"), hidden
        self.activation = activation
        self.f, self.g = functions[activation], functions[output or ("linear" if activation == "relu" else activation)]
        self.tied, self.sparsity, self.beta, self.decay = tied, sparsity, beta, decay

    def divergence(self, mean):
        if self.activation == "relu":
            return mean.sum(), np.ones_like(mean)
        half = 0.5 if self.activation == "tanh" else 1
        p, s = ((1 + mean) / 2 if self.activation == "tanh" else mean), self.sparsity
        return (s * np.log(s / p) + (1 - s) * np.log((1 - s) / (1 - p))).sum(), half * ((1 - s) / (1 - p) - s / p)

    def cost(self, point):
        x, h, rows, d = self.x, self.h, *self.x.shape
        size = h * d
        encoder = point[:size].reshape(h, d)
        decoder = encoder.T if self.tied else point[size:2 * size].reshape(d, h)
        bias = (1 if self.tied else 2) * size
        hidden = self.f[0](x @ encoder.T + point[bias:bias + h])
        output = self.g[0](hidden @ decoder.T + point[bias + h:])
        divergence, factor = self.divergence(hidden.mean(0)) if self.beta else (0, np.zeros(h))
        weights = point[:bias]
        value = ((output - x)**2).sum() / (2 * rows) + self.decay / 2 * (weights**2).sum() + self.beta * divergence
        outer = (output - x) * self.g[1](output) / rows
        inner = (outer @ decoder + self.beta * factor / rows) * self.f[1](hidden)
        encoder_slope, decoder_slope = inner.T @ x, outer.T @ hidden
        if self.tied:
            slope = [(encoder_slope + decoder_slope.T + self.decay * encoder).ravel()]
        else:
            slope = [(encoder_slope + self.decay * encoder).ravel(), (decoder_slope + self.decay * decoder).ravel()]
        return value, np.concatenate([*slope, inner.sum(0), outer.sum(0)])


def near(a, b, tolerance):
    return abs(a - b) <= tolerance * abs(b)


def smooth_rows(rows, side, seed):
    """Something to learn: sums of a few blobs, between 0 and 1."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side]
    images = np.zeros((rows, side, side))
    for _ in range(3):
        centre, width = random.uniform(0, side, (rows, 2, 1, 1)), random.uniform(0.7, 2, (rows, 1, 1))
        images += np.exp(-((y - centre[:, 0])**2 + (x - centre[:, 1])**2) / (2 * width**2))
    return np.clip(images / 2, 0, 1).reshape(rows, side * side)


cases = [
    ("the defaults", ["--hidden", 6], dict(hidden=6)),
    ("tanh", ["--hidden", 5, "--activation", "tanh", "--sparsity", 0.3, "--weight-decay", 1e-3],
     dict(hidden=5, activation="tanh", sparsity=0.3, decay=1e-3)),
    ("relu", ["--hidden", 5, "--activation", "relu", "--sparsity-weight", 0.02, "--weight-decay", 1e-2],
     dict(hidden=5, activation="relu", beta=0.02, decay=1e-2)),
    ("tied", ["--hidden", 6, "--tied", "--sparsity", 0.1, "--sparsity-weight", 0.5],
     dict(hidden=6, tied=True, sparsity=0.1, beta=0.5)),
    ("linear outputs", ["--hidden", 4, "--output", "linear", "--weight-decay", 1e-3, "--sparsity-weight", 0],
     dict(hidden=4, output="linear", decay=1e-3, beta=0)),
]


def test_trajectory():
    data = smooth_rows(500, 5, 1)
    path = save(data)
    for name, options, definition in cases:
        network = Network(data, **definition)
        for iterations in [0, 1, 2, 5, 20]:
            model, about = train(path, *options, "--iterations", iterations, "--change", 0, "--tolerance", 0)
            value, slope = network.cost(model.point())
            check(f"{name}: iterations", about["iterations"] == iterations)
            check(f"{name}: cost after {iterations}", near(about["objective"], value, 1e-12),
                  (about["objective"], value))
            check(f"{name}: gradient after {iterations}", near(about["gradient"], np.abs(slope).max(), 1e-9))
            check(f"{name}: terms",
                  near(about["error"] + about["decay"] + about["divergence"], about["objective"], 1e-14))
    first, _ = train(path, "--hidden", 6, "--iterations", 0)
    weights, most = first.tensor["encoder.weight"], np.sqrt(6 / (6 + 25 + 1))
    check("first weights", np.abs(weights).max() <= most and np.abs(weights).max() > 0.95 * most and
          abs(weights.mean()) < 0.1 * most and not first.tensor["encoder.bias"].any())
    other, _ = train(path, "--hidden", 6, "--iterations", 0, "--seed", 1)
    check("another seed", (other.tensor["encoder.weight"] != weights).all())


def test_minimum():
    data = smooth_rows(150, 4, 2)
    path = save(data)
    for name, options, definition in cases:
        network = Network(data, **definition)
        start, _ = train(path, *options, "--iterations", 0)
        model, about = train(path, *options, "--threads", 1, "--iterations", 20000, "--change", 0, "--tolerance", 1e-6)
        found = minimize(network.cost, start.point(), jac=True, method="L-BFGS-B",
                         options=dict(maxiter=20000, maxfun=40000, ftol=1e-14, gtol=1e-6))
        check(f"{name}: converged", about["converged"] and (name == "relu" or about["gradient"] <= 1e-6),
              about)  # relu has kinks
        # There are many minima close to each other, and which one a descent ends in hangs on the last bits of the BLAS
        # that numpy has: so it must be as low as SciPy's, but for a little, and SciPy must find nothing below it.
        check(f"{name}: as low a minimum", near(about["objective"], found.fun, 1e-3), (about["objective"], found.fun))
        below = minimize(network.cost, model.point(), jac=True, method="L-BFGS-B",
                         options=dict(maxiter=200, ftol=1e-14, gtol=1e-6))
        check(f"{name}: a minimum", near(about["objective"], below.fun, 1e-6), (about["objective"], below.fun))
        polished = minimize(network.cost, model.point(), jac=True, method="L-BFGS-B", options=dict(maxiter=100))
        check(f"{name}: no lower point beside it", about["objective"] <= polished.fun * (1 + 1e-5),
              (about["objective"], polished.fun))


# ---- bits ------------------------------------------------------------------------------------------------------------


def test_bytes():
    data = smooth_rows(700, 6, 3)
    for kind, array, more in [("float32", data.astype("f4"), []), ("float64", data, ["--tied"]),
                              ("uint8", np.rint(data * 255).astype("u1"), ["--rescale", "0:255", "--activation",
                                                                           "tanh"])]:
        path = save(array)
        options = ["--hidden", 7, "--iterations", 12, *more]
        expected, _ = train(path, *options, "--threads", 1, "--kernel", "portable")
        for way in (["--threads", 2], ["--threads", 3], ["--workers", "local:1"], ["--workers", "local:3"]):
            model, _ = train(path, *options, *way)
            check(f"{kind} {way}: same bytes", model.bytes == expected.bytes)
        for kernel in ["portable", "avx2", "avx512", "vnni"]:
            if shoal("kmeans", path, "-k", 1, "--quiet", SHOAL_KERNEL=kernel).returncode != 0:
                continue
            model, about = train(path, *options, SHOAL_KERNEL=kernel)
            check(f"{kind} {kernel}: same bytes", model.bytes == expected.bytes and about["kernel"] == kernel)
    with_float32, about32 = train(save(data), "--hidden", 7, "--iterations", 12, "--precision", "float32")
    with_float64, about64 = train(save(data), "--hidden", 7, "--iterations", 12)
    check("float32 is near float64", near(about32["objective"], about64["objective"], 1e-4) and
          with_float32.bytes != with_float64.bytes)


# ---- use -------------------------------------------------------------------------------------------------------------


def test_features():
    data = smooth_rows(300, 5, 4) * 200 - 40
    path, features, picture = save(data), fresh(".npy"), fresh(".png")
    model, about = train(path, "--hidden", 9, "--iterations", 15, "--rescale", "-40:160", "--features", features,
                         "--picture", picture)
    scaled = data * about["scale"] + about["shift"]
    check("scale", near(about["scale"], 1 / 200, 1e-12) and near(about["shift"], 0.2, 1e-12))
    expected = logistic(scaled @ model.tensor["encoder.weight"].T + model.tensor["encoder.bias"])
    found = np.load(features)
    check("features", found.dtype == np.float64 and found.shape == (300, 9) and
          np.allclose(found, expected, 1e-13, 1e-15))
    check("activity", np.allclose(model.tensor["activity"], expected.mean(0), 1e-12))
    check("picture", picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n")
    saved, again = fresh(".safetensors"), fresh(".npy")
    saved.write_bytes(model.bytes)
    result = shoal("predict", saved, path, "--features", again)
    check("predict", result.returncode == 0 and again.read_bytes() == features.read_bytes(), result.stderr)
    workers = fresh(".npy")
    result = shoal("autoencoder", path, "--hidden", 9, "--iterations", 15, "--rescale", "-40:160", "--features",
                   workers, "--workers", "local:2")
    check("features on workers", result.returncode == 0 and workers.read_bytes() == features.read_bytes(),
          result.stderr)
    result = shoal("autoencoder", path, "--hidden", 9, "--picture", fresh(".png"), "--picture-shape", "4x5",
                   "--rescale", "auto")
    check("picture shape", result.returncode == 2 and "4x5 does not make the 25 columns" in result.stderr,
          result.stderr)


def test_start():
    path = save(smooth_rows(300, 5, 5))
    long, about = train(path, "--hidden", 5, "--iterations", 60)
    half, _ = train(path, "--hidden", 5, "--iterations", 30)
    start = fresh(".safetensors")
    start.write_bytes(half.bytes)
    same, told = train(path, "--start", start, "--iterations", 0)
    check("start without --hidden",
          all((same.tensor[name] == half.tensor[name]).all() for name in half.tensor if name != "activity"))
    check("start: activity", np.allclose(same.tensor["activity"], half.tensor["activity"], 1e-12))
    _, more = train(path, "--start", start, "--hidden", 5, "--iterations", 60)
    check("start goes on", more["objective"] < told["objective"] and more["objective"] < about["objective"] * 1.05)
    here, away = (train(path, "--start", start, "--iterations", 4, *way)[0] for way in ([], ["--workers", "local:2"]))
    check("start on workers: same bytes", here.bytes == away.bytes)
    narrow = save(smooth_rows(50, 4, 5))
    for options, sentence, code in [
        ([path, "--start", start, "--hidden",
          7], "a model of 5 hidden units and 25 columns, but --hidden is 7 and the data has 25 "
         "columns", 1),
        ([narrow, "--start",
          start], "a model of 5 hidden units and 25 columns, but --hidden is 5 and the data has 16 columns", 1),
        ([path, "--start", start, "--tied"], "a separate decoder can't be --tied", 1),
        ([path, "--start", start, "--activation", "tanh"], "are logistic, those of --activation tanh", 2),
        ([path, "--start", start, "--output",
          "linear"], "was found with --output auto, which is not --output linear", 2),
        ([path, "--start", start, "--seed", 3], "--seed: the first weights are those of --start", 2),
        ([path, "--start", path], f"{path}: not a safetensors file", 1),
    ]:
        result = shoal("autoencoder", *options)
        check(f"start {sentence}", result.returncode == code and sentence in result.stderr,
              (result.returncode, result.stderr))


def test_resume():
    path, store = save(smooth_rows(400, 5, 6)), fresh("-jobs")
    outputs = {
        kind: fresh(ending)
        for kind, ending in [("--model", ".safetensors"), ("--features", ".npy"), ("--picture", ".png")]
    }
    words = [word for pair in outputs.items() for word in pair]
    options = ["--hidden", 5, "--iterations", 25]
    here = shoal("autoencoder", path, *options, *words)
    check("here", here.returncode == 0, here.stderr)
    expected = [output.read_bytes() for output in outputs.values()]
    for output in outputs.values():
        output.unlink()
    result = shoal("autoencoder", path, *options, *words, "--store", f"dir:{store}", "--detach", "--json")
    if not check("detached", result.returncode == 0, result.stderr):
        return
    job = json.loads(result.stdout)["job"]
    result = shoal("job", "resume", "--store", f"dir:{store}", job, "--workers", "local:2")
    check("resumed", result.returncode == 0, result.stderr)
    check("a resumed job writes the same bytes",
          [output.read_bytes() if output.exists() else None for output in outputs.values()] == expected)


def test_patches():
    """Units of natural images prefer smooth spots and edges, not noise."""
    if not patches.exists():
        print(f"SKIPPED natural patches: {patches} is not here")
        return
    model, about = train(patches, "--hidden", 25, "--rescale", "auto", "--iterations", 400, "--picture", fresh(".png"))
    start, before = train(patches, "--hidden", 25, "--rescale", "auto", "--iterations", 0)
    check("patches: cost falls", about["objective"] < 0.3 * before["objective"],
          (about["objective"], before["objective"]))
    activity = model.tensor["activity"]
    check("patches: sparse", activity.max() < 0.05 and activity.min() > 0.002, activity)

    def smoothness(weights):
        """Mean correlation of neighbouring pixels over all units."""
        tiles = weights.reshape(-1, 10, 10)
        return np.mean([
            np.corrcoef(np.r_[t[:, :-1].ravel(), t[:-1].ravel()], np.r_[t[:, 1:].ravel(), t[1:].ravel()])[0, 1]
            for t in tiles
        ])

    check("patches: units are not noise", smoothness(model.tensor["encoder.weight"]) > 0.5 >
          0.2 > smoothness(start.tensor["encoder.weight"]), smoothness(model.tensor["encoder.weight"]))


# ---- trouble ---------------------------------------------------------------------------------------------------------


def refuse(data, options, sentence, code=1):
    model = fresh(".safetensors")
    result = shoal("autoencoder", data, *options, "--model", model)
    lines = result.stderr.strip().splitlines() # the second says where there is help on usage
    check(f"{options}: refused", result.returncode == code and len(lines) == code and sentence in lines[0] and
          not model.exists(), (result.returncode, result.stderr))


def test_bad_input():
    good, data = smooth_rows(64, 4, 7), smooth_rows(64, 4, 7)
    data[16, 2] = 2.5
    path = save(data)
    hidden = ["--hidden", 3]
    refuse(
        path, hidden,
        f"{path}: row 17, column 3: 2.5 is outside 0 to 1, the range of logistic outputs; --rescale auto maps the "
        "data's own range to it, or use --output linear")
    refuse(path, [*hidden, "--activation", "tanh"],
           "row 17, column 3: 2.5 is outside -1 to 1, the range of tanh outputs")
    refuse(path, [*hidden, "--rescale", "0:2"],
           "row 17, column 3: 2.5 is outside 0 to 2, which --rescale maps to 0 to 1")
    for options in (["--output", "linear"], ["--rescale", "auto"], ["--rescale", "0:3"],
                    ["--activation", "relu", "--sparsity-weight", 0.1]):
        train(path, *hidden, "--iterations", 2, *options)
    data[40, 0], data[41, 0] = np.nan, np.inf
    path = save(data)
    refuse(path, [*hidden, "--output", "linear"],
           f"{path}: 1 value is missing, the first in row 41, column 1; --missing mean fills in")
    refuse(path, [*hidden, "--rescale", "auto"], "1 value is missing, the first in row 41, column 1")
    data[40, 0] = 0
    refuse(save(data), [*hidden, "--rescale", "auto"], "row 42, column 1 is infinite")
    refuse(save(np.full((20, 3), 7.0)), [*hidden, "--rescale", "auto"],
           "every value is 7: --rescale auto finds no range to map")
    path = save(good)
    refuse(path, [], "autoencoder needs --hidden H", 2)
    refuse(path, ["--hidden", 0], "--hidden must be at least 1, not 0", 2)
    for sparsity in (0, 1, -0.1, 1.5):
        refuse(path, [*hidden, "--sparsity", sparsity],
               f"--sparsity must be greater than 0 and less than 1, not {sparsity}", 2)
    refuse(path, [*hidden, "--sparsity-weight", -1], "--sparsity-weight must be at least 0", 2)
    refuse(path, [*hidden, "--weight-decay", -1e-4], "--weight-decay must be at least 0", 2)
    refuse(path, [*hidden, "--activation", "relu"], "--activation relu needs an explicit --sparsity-weight", 2)
    refuse(path, [*hidden, "--activation", "relu", "--sparsity-weight", 0.1, "--sparsity", 0.1],
           "relu units have no mean "
           "activation to aim at", 2)
    refuse(path, [*hidden, "--activation", "step"], "--activation", 2)
    refuse(path, [*hidden, "--rescale", "1:0"], "--rescale: 1:0 is not a number, a colon and a greater number", 2)
    refuse(path, [*hidden, "--rescale=-1e308:1e308"],
           "--rescale: -1e308:1e308 is not a number, a colon and a greater number", 2)
    refuse(path, [*hidden, "--history", 0], "--history must be at least 1", 2)
    refuse(path, ["--hidden", 10**9], "make more than 2^31 weights", 2)
    refuse(save(np.zeros((0, 4))), hidden, "rows")
    refuse(save(np.full((8, 3), 1e200)), [*hidden, "--output", "linear"],
           "the cost is not a finite number at the point where the "
           "search starts")
    # Finite sums that no quantum has room for: they must not be asked for again and again.
    refuse(save(np.full((64, 4), 9e152)), [*hidden, "--output", "linear"],
           "the cost is not a finite number at the point where the "
           "search starts")
    refuse(save(np.full((8, 3), 1e39)), [*hidden, "--output", "linear", "--precision", "float32"],
           "row 1, column 1: 1e+39 is beyond float32: only a model of --precision float64 takes it")


def write_model(path, metadata, tensors):
    header, body = {"__metadata__": metadata}, b""
    for name, values in tensors.items():
        values = np.asarray(values, "<f8")
        header[name] = {
            "dtype": "F64", "shape": list(values.shape), "data_offsets": [len(body),
                                                                          len(body) + values.nbytes]
        }
        body += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def test_diverged():
    # The only way down is to let the unit grow, and on that way the output is beyond all numbers after a step of 1e-97:
    # column 1 is 1e100, and the weight from the unit to column 2 is 1e150.
    path, start = save(np.array([[1e100, (1 + i / 64) * 1e-100] for i in range(64)])), fresh(".safetensors")
    tensors = {
        "encoder.weight": [[0.0, 0.0]], "encoder.bias": [1e-300], "decoder.weight": [[0.0], [1e150]],
        "decoder.bias": [1e100, 0.0]
    }
    write_model(start, {"learner": "autoencoder", "option.activation": "relu"}, tensors)
    found = []
    for way in ([], ["--workers", "local:1"]):
        outputs = {
            name: fresh(ending)
            for name, ending in (("--model", ".safetensors"), ("--features", ".npy"), ("--trace", ".jsonl"))
        }
        result = shoal("autoencoder", path, "--start", start, "--activation", "relu", "--sparsity-weight", 0,
                       "--weight-decay", 0, "--json", *way, *(word for pair in outputs.items() for word in pair))
        lines = result.stderr.strip().splitlines()
        check(
            f"diverged {way}: code and sentence", result.returncode == 1 and len(lines) == 1 and
            lines[0].startswith(f"shoal: {path}: diverged in round ") and
            lines[0].endswith("the model is that of iteration 0"), (result.returncode, lines))
        if not check(f"diverged {way}: all is written", result.stdout and all(output.exists()
                                                                              for output in outputs.values())):
            return
        told, model = json.loads(result.stdout), Model(outputs["--model"])
        check(f"diverged {way}: told", told["diverged"] is True and told["converged"] is False and
              told["iterations"] == 0, told)
        check(f"diverged {way}: the last good model",
              all((model.tensor[name] == values).all() for name, values in tensors.items()))
        check(f"diverged {way}: the trace", len(outputs["--trace"].read_text().splitlines()) == told["rounds"])
        found.append(model.bytes)
    check("diverged: the same bytes", found[0] == found[1])


def wait_for(what, condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            check(what, False, "never happened")
            return False
        time.sleep(0.01)
    return True


def test_signal():
    path, model, events = save(smooth_rows(2000, 8, 8)), fresh(".safetensors"), fresh("-events")
    process = subprocess.Popen([
        program, "autoencoder", path, "--hidden", "20", "--iterations", "1000000", "--change", "0", "--tolerance", "0",
        "--model", model, "--tensorboard", events, "--quiet"
    ], stderr=subprocess.PIPE, text=True)
    grown = wait_for("rounds before the signal", lambda: sum(f.stat().st_size for f in events.glob("*")) > 1000)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=300)[1]
    check("signal: exit code", grown and process.returncode == 130, (process.returncode, error))
    check("signal: sentence", "stopped after" in error and "the weights are those of iteration" in error, error)
    if check("signal: a model", model.exists()):
        found = Model(model)
        value, _ = Network(np.load(path), 20).cost(found.point())
        check("signal: its cost",
              near(float(found.metadata["objective"]), value, 1e-12) and int(found.metadata["iterations"]) > 0)


tests = [
    test_trajectory, test_minimum, test_bytes, test_features, test_start, test_resume, test_patches, test_bad_input,
    test_diverged, test_signal
]
for test in tests:
    if len(sys.argv) < 3 or test.__name__ in sys.argv[2:]:
        test()
shutil.rmtree(folder, ignore_errors=True)
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
