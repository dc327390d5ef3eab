#!/usr/bin/python3
"""Sparse autoencoders: qjam's table, PyTorch on the same work, the machine's own rate, and logistic regression and
naive Bayes beside scikit-learn.

    ./dev bench autoencoder [--quick] [--only WORD] [--rounds N] [--markdown]

Hosts are network namespaces of this machine, each with an sshd (tests/system/hosts.py), which takes root: without it
only threads are in qjam's table.  A table on stdout, everything in bench/results/autoencoder.json.  --quick takes three
minutes: fewer and shorter runs.  --only keeps the groups whose name has WORD in it (qjam, pytorch, logistic, bayes),
--markdown prints the last results as bench/README.md has them.  Nothing here fails when a bar is missed: the table says
so.
"""
import argparse
import contextlib
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

THREADS = 2
for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]:
    os.environ[name] = str(THREADS)  # before the libraries are loaded

import numpy as np  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
DATA = RESULTS / "data"
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
HOSTS = 4
ROWS = 100_000
HISTORY = 10
ITERATIONS = 50
COST = {"sparsity": 0.01, "sparsity_weight": 3.0, "weight_decay": 1e-4}
WORKERS = (1, 2, 4, 8, 16)
PATCHES = (1_000, 10_000, 100_000)
QJAM = {(1, 1_000): 0.1458, (1, 10_000): 0.7310, (1, 100_000): 10.0282,  # seconds an iteration, its table 1
        (2, 1_000): 0.1752, (2, 10_000): 0.3321, (2, 100_000): 4.6782,
        (4, 1_000): 0.2634, (4, 10_000): 0.3360, (4, 100_000): 2.4858,
        (8, 1_000): 0.5339, (8, 10_000): 0.5251, (8, 100_000): 1.8046,
        (16, 1_000): 0.9969, (16, 10_000): 1.0186, (16, 100_000): 1.5862}

sys.path[:0] = [str(ROOT / "tests" / "system"), str(ROOT / "bench")]
import bench_engine  # noqa: E402
import bench_kmeans  # noqa: E402
import hosts  # noqa: E402
import openblas  # noqa: E402
from bench_engine import say  # noqa: E402


# ---- work ------------------------------------------------------------------------------------------------------------


def pink_images(chance, count, side):
    """Noise whose amplitude falls as 1/f, as that of natural images does."""
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None])
    frequency[0, 0] = np.inf
    for _ in range(count):
        noise = np.fft.rfft2(chance.standard_normal((side, side)))
        yield np.fft.irfft2(noise / frequency, (side, side))


def make_patches(rows, size=8):
    """8x8 patches, each less its own mean, cut off at three standard deviations, between 0.1 and 0.9: as in the
    Stanford notes."""
    chance, found = np.random.default_rng(8), []
    for image in pink_images(chance, 10, 512):
        corners = chance.integers(0, 512 - size + 1, (rows // 10, 2))
        windows = np.lib.stride_tricks.sliding_window_view(image, (size, size))
        found.append(windows[corners[:, 0], corners[:, 1]].reshape(-1, size * size))
    patches = np.concatenate(found)
    patches -= patches.mean(axis=1, keepdims=True)
    most = 3 * patches.std()
    return (np.clip(patches / most, -1, 1) * 0.4 + 0.5).astype(np.float32)


def read_idx(name, offset):
    with gzip.open(FASHION / name) as file:
        return np.frombuffer(file.read(), np.uint8, offset=offset)


def make_pictures(rows):
    """Fashion-MNIST: all 70,000 pictures, and as many mirrored ones as it takes."""
    pictures = np.concatenate([read_idx(f"{part}-images-idx3-ubyte.gz", 16)
                               for part in ("train", "t10k")]).reshape(-1, 28, 28)
    pictures = np.concatenate([pictures, pictures[:, :, ::-1]])[:rows]
    return (pictures.reshape(-1, 784) / np.float32(255)).astype(np.float32)


def kept(name, make, *arguments):
    """The path of an array that is made once, from a fixed seed."""
    DATA.mkdir(parents=True, exist_ok=True)
    path = DATA / f"{name}.npy"
    if not path.exists():
        bench_kmeans.save(path, make(*arguments))
    return path


def draw_start(columns, hidden, number):
    """Weights by their names, of float32 values."""
    chance, r = np.random.default_rng([columns, number]), (6 / (columns + hidden + 1)) ** 0.5
    drawn = {
        "encoder.weight": chance.uniform(-r, r, (hidden, columns)), "encoder.bias": np.zeros(hidden),
        "decoder.weight": chance.uniform(-r, r, (columns, hidden)), "decoder.bias": np.zeros(columns)
    }
    return {name: values.astype(np.float32) for name, values in drawn.items()}


class Net:
    """Data, and weights that all programs start with: as many of these as are wanted, of float32 values."""

    def __init__(self, columns, hidden, data, bar, starts, folder):
        self.columns, self.hidden, self.data, self.bar, self.starts = columns, hidden, data, bar, starts
        self.name, self.start_path = f"{columns}-{hidden}-{columns}", folder / f"start-{columns}.safetensors"

    def save_start(self, number):
        """The weights as a file, as shoal wants them."""
        save_model(
            self.start_path, draw_start(self.columns, self.hidden, number), {
                "learner": "autoencoder", "option.activation": "logistic", "option.output": "auto",
                "option.tied": "false", "scale": 1, "shift": 0
            })

    def operations(self, products):
        """Of one evaluation: a product is rows x columns x hidden multiply-adds."""
        return products * 2.0 * ROWS * self.columns * self.hidden


def save_model(path, tensors, about):
    """As safetensors has it: the head's length, the head as JSON, the values."""
    head, place = {"__metadata__": {name: str(value) for name, value in about.items()}}, 0
    for name, values in tensors.items():
        end = place + 8 * values.size
        head[name] = {"dtype": "F64", "shape": list(values.shape), "data_offsets": [place, end]}
        place = end
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for values in tensors.values():
            file.write(values.astype("<f8").tobytes())


class Bench(bench_engine.Bench):
    """With hosts, if there are any, and autoencoders."""

    def __init__(self, shoal, folder, quick, rounds, far):
        super().__init__(shoal, folder, quick, rounds)
        self.far, self.more = far, {}
        if far:
            self.variables["SHOAL_SSH"] = f"ssh -F {far.ssh_config} -oLogLevel=ERROR"

    def autoencoder(self, data, hidden, iterations, *words):
        """One run, as it is for whoever asks for nothing but its result: what it says of itself."""
        cost = [word for option, value in COST.items() for word in (f"--{option.replace('_', '-')}", value)]
        return json.loads(
            self.run("autoencoder", data, "--hidden", hidden, *cost, "--iterations", iterations, "--history", HISTORY,
                     "--tolerance", 0, "--change", 0, *words, "--quiet", "--json"))


# ---- qjam's table ----------------------------------------------------------------------------------------------------


def where(workers):
    """As --workers writes it: on as many hosts as can be."""
    used = min(workers, HOSTS)
    return "ssh:" + ",".join(f"h{number}:{workers // used}" for number in range(1, used + 1))


def seconds_a_round(bench, patches, *words):
    """What a long run takes more than a short one, by which all have joined, for each round that it has more."""
    data = kept(f"patches-{patches}", make_patches, patches)
    few, many = bench.few({1_000: (200, 600), 10_000: (50, 200), 100_000: (10, 50)},
                          {1_000: (50, 150), 10_000: (20, 60), 100_000: (5, 20)})[patches]
    short, long = (bench.autoencoder(data, 30, iterations, *words) for iterations in (few, many))
    return (long["seconds"]["run"] - short["seconds"]["run"]) / (long["rounds"] - short["rounds"])


def bench_qjam(bench):
    """64-30-64; the ways to run it take turns."""
    ways = {f"{threads} thread{'s'[:threads - 1]}": ["--threads", threads] for threads in (1, THREADS)}
    if bench.far:
        for workers in WORKERS:
            ways[workers] = ["--workers", where(workers), "--threads", 1]
    table = {}
    for patches in PATCHES:
        for _ in range(bench.rounds):
            for way, words in ways.items():
                store = ["--store", bench.new_folder_store()] if isinstance(way, int) else []
                table.setdefault(f"{way}", {}).setdefault(patches,
                                                          []).append(seconds_a_round(bench, patches, *words, *store))
        say(f"    {patches:,} patches: " + ", ".join(f"{way} {1e3 * statistics.median(row[patches]):.2f} ms"
                                                     for way, row in table.items()))
    bench.more["qjam"] = table
    if bench.far:
        more = [1e3 * (sixteen - one) for sixteen, one in zip(table["16"][1_000], table["1"][1_000])]
        bench.add("qjam", "1,000 patches, 64-30-64: a round of 16 workers over ssh, less that of 1", "ms", more, 20,
                  f"qjam's paper {1e3 * (QJAM[16, 1_000] - QJAM[1, 1_000]):.0f} ms")
    bench.add("qjam", f"100,000 patches, 64-30-64: a round on {THREADS} threads", "s",
              table[f"{THREADS} threads"][100_000], 0.04,
              f"qjam's paper {QJAM[2, 100_000]:.1f} s with 2 workers, {QJAM[16, 100_000]:.1f} s with 16")


# ---- PyTorch ---------------------------------------------------------------------------------------------------------


def check_blas():
    """What computes PyTorch's products, as this process has it loaded; the reference BLAS would cripple it."""
    import torch
    torch.set_num_threads(THREADS)
    loaded = {line.split()[-1] for line in open("/proc/self/maps") if "blas" in line}
    fast = [pathlib.Path(path).name for path in sorted(loaded) if "openblas" in pathlib.Path(path).name]
    if not fast:
        sys.exit(f"bench: PyTorch has no fast BLAS, only {', '.join(sorted(loaded))}; install libopenblas0-pthread")
    return f"PyTorch {torch.__version__}, {fast[0]}"


def torch_cost(X, W1, b1, W2, b2):
    """The same function as shoal's, as PyTorch's users write it."""
    import torch
    from torch.nn.functional import linear, mse_loss
    rho = COST["sparsity"]
    hidden = torch.sigmoid(linear(X, W1, b1))
    output = torch.sigmoid(linear(hidden, W2, b2))
    active = hidden.mean(0)
    divergence = (rho * torch.log(rho / active) + (1 - rho) * torch.log((1 - rho) / (1 - active))).sum()
    decay = W1.square().sum() + W2.square().sum()
    return mse_loss(output, X, reduction="sum") / (
        2 * len(X)) + COST["weight_decay"] / 2 * decay + COST["sparsity_weight"] * divergence


# What is called by way of openblas.py.


def run_torch(data, hidden, number, iterations, rows=None):
    """Seconds an evaluation, and the least cost after each."""
    import torch
    torch.set_num_threads(THREADS)
    X = torch.from_numpy(np.load(data)[:rows])
    start = draw_start(X.shape[1], hidden, number)
    parameters = [torch.from_numpy(values).requires_grad_() for values in start.values()]
    search = torch.optim.LBFGS(parameters, max_iter=iterations, max_eval=20 * iterations, history_size=HISTORY,
                               tolerance_grad=0, tolerance_change=0, line_search_fn="strong_wolfe")
    costs = []

    def evaluate():
        search.zero_grad()
        cost = torch_cost(X, *parameters)
        cost.backward()
        costs.append(float(cost))
        return cost
    began = time.perf_counter()
    search.step(evaluate)
    return (time.perf_counter() - began) / len(costs), np.minimum.accumulate(costs).tolist()


def multiply(m, n, k, seconds):
    """Seconds of a product of OpenBLAS, the best of what fits into the time."""
    a, b = (np.random.default_rng(1).random(shape, dtype=np.float32) for shape in ((m, k), (k, n)))
    out, best, end = np.empty((m, n), np.float32), np.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        np.matmul(a, b, out=out)
        best = min(best, time.perf_counter() - began)
    return best, None


def run_shoal(bench, net, iterations):
    """The same of shoal.  Rounds in which sums had to be asked for again count as time, not as evaluations."""
    trace = bench.folder / "trace.jsonl"
    about = bench.autoencoder(net.data, net.hidden, iterations, "--start", net.start_path, "--precision", "float32",
                              "--threads", THREADS, "--trace", trace)
    lines = [json.loads(line) for line in open(trace)]
    costs = [line["objective"] for line in lines if line["phase"] == "run" and line["objective"] is not None]
    return about["seconds"]["run"] / about["evaluations"], costs, about


def first_below(costs, target):
    """How many evaluations it took."""
    return 1 + next(number for number, cost in enumerate(costs) if cost <= target)


def sgemm_rate(m, n, k, seconds):
    """GFLOP/s of OpenBLAS with the kernels that are best for it."""
    _, tried = openblas.best("bench_autoencoder", "multiply", m, n, k, seconds)
    return 2e-9 * m * n * k / min(tried.values())


def measure_rates(bench, net, rates):
    """What the machine can do at this moment; the best seen so far counts. Squares, and the shapes of this net:
    forwards (rows x columns by columns x hidden) and as the gradient has it (columns x rows by rows x hidden)."""
    c, h = net.columns, net.hidden
    for name, shape in {"squares of 2,048": (2048, 2048, 2048), "forwards": (ROWS, h, c),
                        "gradient": (c, h, ROWS)}.items():
        rates[name] = max(rates.get(name, 0), sgemm_rate(*shape, seconds=bench.few(0.5, 0.3)))
    program = pathlib.Path(bench.shoal).parent / "bench_rates"
    found = json.loads(
        subprocess.run([program, str(THREADS), str(ROWS), str(c), str(h)], capture_output=True, check=True).stdout)
    kernel = found["net"][-1]  # the last is the best that this machine has
    for name in ("fma_gflops", "product_gflops"):
        rates[name] = max(rates.get(name, 0), kernel[name])
    rates["kernel"] = kernel["kernel"]
    rates.setdefault("shares", []).append(kernel["product_gflops"] / kernel["fma_gflops"])


def bench_net(bench, net):
    """Both programs in turn, from another start each time, and the machine's own rates in between."""
    iterations, rates, turns = bench.few(ITERATIONS, 10), {}, []
    core, tried = openblas.best("bench_autoencoder", "run_torch", net.data, net.hidden, 0, 2, 20_000)
    say(f"    {net.name}: PyTorch has OpenBLAS's kernels {openblas.describe(core, tried)}")
    for number in range(net.starts):
        measure_rates(bench, net, rates)
        net.save_start(number)
        theirs, their_costs = openblas.call(core, "bench_autoencoder", "run_torch", net.data, net.hidden, number,
                                            iterations)
        ours, our_costs, about = run_shoal(bench, net, iterations)
        apart, target = abs(our_costs[0] - their_costs[0]) / their_costs[0], max(our_costs[-1], their_costs[-1])
        if not apart < 1e-5:
            raise RuntimeError(
                f"{net.name}: the cost at the start is {our_costs[0]}, PyTorch's {their_costs[0]}: not the same work")
        turns.append({
            "ours": ours, "pytorch": theirs, "apart": apart, "our_costs": list(our_costs),
            "pytorch_costs": list(their_costs),
            "evaluations": [first_below(our_costs, target),
                            first_below(their_costs, target)], "about": about
        })
        say(f"    {net.name}: {ours:.4f} s an evaluation, PyTorch {theirs:.4f} s; to a cost of {target:.6g} in "
            "{} and {}".format(*turns[-1]["evaluations"]))
    bench.more.setdefault("nets", {})[net.name] = {"turns": turns, "rates": rates, "core": core}
    add_net(bench, net, turns, rates, core)


def add_net(bench, net, turns, rates, core):
    """The rows of a net."""
    seconds, peer = (statistics.median(turn[who] for turn in turns) for who in ("ours", "pytorch"))
    bench.add("pytorch", f"{ROWS:,} rows, {net.name}: an evaluation / PyTorch's", "",
              [turn["ours"] / turn["pytorch"] for turn in turns], 1 / net.bar,
              f"{seconds:.4f} s beside {peer:.4f}: {peer / seconds:.1f} times as fast, bar {net.bar}"
              + (f"; OpenBLAS's kernels: {core}" if core else ""))
    spent = [sum(turn["evaluations"][who] for turn in turns) for who in (0, 1)]
    ends = [f"{statistics.mean(turn[who][-1] for turn in turns):.5g}" for who in ("our_costs", "pytorch_costs")]
    bench.add(
        "pytorch", f"the same: evaluations to the same cost, less PyTorch's, {len(turns)} start{'s'[:len(turns) > 1]}",
        "", [spent[0] - spent[1]], 0,
        f"{spent[0]} and {spent[1]}; the mean cost after {len(turns[0]['our_costs'])} and "
        f"{len(turns[0]['pytorch_costs'])}: {ends[0]} and {ends[1]}")
    square = rates["squares of 2,048"]
    shares = [1e-9 * net.operations(products) / seconds / square for products in (5, 6)]
    bench.add(
        "pytorch", "the same: OpenBLAS's rate / that of an evaluation, 5 products", "", [1 / shares[0]], None,
        f"{100 * shares[0]:.0f}% of {square:.0f} GFLOP/s, with the sixth, of the sparsity, {100 * shares[1]:.0f}%; "
        f"OpenBLAS at these shapes {rates['forwards']:.0f} and {rates['gradient']:.0f}; our products alone "
        f"{rates['product_gflops']:.0f} of {rates['fma_gflops']:.0f} ({rates['kernel']})")


def nets(folder, starts_small, starts_large):
    """A small net and a large one, each with the number of its starts."""
    return (Net(64, 30, kept(f"patches-{ROWS}", make_patches, ROWS), 4, starts_small, folder),
            Net(784, 196, kept(f"pictures-{ROWS}", make_pictures, ROWS), 1.6, starts_large, folder))


def bench_pytorch(bench):
    bench.more["versions"] = check_blas()
    build = pathlib.Path(bench.shoal).parent
    built = subprocess.run(["cmake", "--build", build, "--target", "bench_rates"], capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(f"bench: bench_rates was not built:\n{built.stdout[-2000:]}")
    for net in nets(bench.folder, bench.few(8, 3), bench.rounds):
        bench_net(bench, net)


# ---- logistic regression ---------------------------------------------------------------------------------------------


def make_blobs():
    """Two classes that overlap: 200,000 rows of 50 columns, the label last."""
    chance = np.random.default_rng(50)
    labels = chance.integers(0, 2, 200_000)
    rows = chance.standard_normal((200_000, 50)) + 0.3 * labels[:, None] * chance.standard_normal(50)
    return np.column_stack([rows, labels]).astype(np.float32)


def make_labelled_pictures():
    """Fashion-MNIST's 60,000 with their labels behind them."""
    labels = read_idx("train-labels-idx1-ubyte.gz", 8)
    return np.column_stack([make_pictures(60_000), labels.astype(np.float32)])


def scikit_objective(X, y, learner, l2):
    """Sum of row losses and the penalty."""
    scores = X @ learner.coef_.T + learner.intercept_
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(X)), scores])
    most = scores.max(axis=1)
    losses = np.log(np.exp(scores - most[:, None]).sum(axis=1)) + most - scores[np.arange(len(X)), y]
    return float(losses.sum() + l2 / 2 * np.square(learner.coef_).sum())


def run_scikit(path, l2, iterations, rows=None):
    """By way of openblas.py."""
    from sklearn.linear_model import LogisticRegression
    table = np.load(path)[:rows]
    X, y = table[:, :-1].astype(np.float64), table[:, -1].astype(np.int64)  # it would convert float32 in its time
    learner = LogisticRegression(C=1 / l2, solver="lbfgs", tol=0, max_iter=iterations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        learner.fit(X, y)
        seconds = time.perf_counter() - began
    return seconds, scikit_objective(X, y, learner, l2), int(learner.n_iter_[0])


def logistic_trace(bench, path, l2, iterations):
    """Seconds and objective of each round, of the scan and the descent."""
    trace = bench.folder / "trace.jsonl"
    bench.run("logistic", path, "--target", -1, "--l2", l2, "--iterations", iterations, "--tolerance", 0, "--threads",
              THREADS, "--trace", trace, "--quiet", "--json")
    return [(line["seconds"], line["objective"]) for line in map(json.loads, open(trace))]


def run_logistic(bench, path, l2, iterations, target):
    """Seconds and iterations until the objective is no greater than the target."""
    seconds = 0
    for number, (took, objective) in enumerate(logistic_trace(bench, path, l2, iterations)):
        seconds += took
        if objective is not None and objective <= target:
            return seconds, number
    raise RuntimeError(f"shoal logistic does not come to {target} in {iterations} iterations, only to {objective}")


def logistic_works(quick):
    """Names, data, L2 penalties and iterations."""
    return (("200,000x50, 2 classes", kept("logistic-two", make_blobs), 1.0, 50),
            ("Fashion-MNIST 60,000x784, 10 classes", kept("logistic-pictures", make_labelled_pictures), 1.0,
             30 if quick else 100))


def bench_logistic(bench):
    """scikit-learn's L-BFGS goes as far as it goes; shoal until it is as low."""
    import sklearn
    bench.more["scikit-learn"] = sklearn.__version__
    for name, path, l2, iterations in logistic_works(bench.quick):
        core, tried = openblas.best("bench_autoencoder", "run_scikit", path, l2, 5, 20_000)
        say(f"    {name}: scikit-learn has OpenBLAS's kernels {openblas.describe(core, tried)}")
        ours, theirs = [], []
        for _ in range(bench.rounds):
            peer, target, done = openblas.call(core, "bench_autoencoder", "run_scikit", path, l2, iterations)
            seconds, rounds = run_logistic(bench, path, l2, 3 * iterations, target * (1 + 1e-6))
            ours.append(seconds)
            theirs.append(peer)
            say(f"    {name}: {seconds:.3f} s, scikit-learn {peer:.3f} s")
        bench.add(
            "logistic", f"logistic, {name}: seconds / scikit-learn's", "", [a / b for a, b in zip(ours, theirs)], None,
            f"{statistics.median(ours):.2f} s in {rounds} rounds beside {statistics.median(theirs):.2f} s in {done} "
            f"iterations, to {target:.8g}" + (f"; OpenBLAS's kernels: {core}" if core else ""))


# ---- naive Bayes -----------------------------------------------------------------------------------------------------


def run_scikit_bayes(path):
    from sklearn.naive_bayes import GaussianNB
    table = np.load(path)
    X, y = table[:, :-1].copy(), table[:, -1].astype(np.int64)
    began = time.perf_counter()
    GaussianNB().fit(X, y)
    return time.perf_counter() - began


def run_bayes(bench, path):
    """Seconds of the three rounds."""
    trace = bench.folder / "trace.jsonl"
    bench.run("bayes", path, "--threads", THREADS, "--trace", trace, "--quiet", "--json")
    return sum(json.loads(line)["seconds"] for line in open(trace))


def bench_bayes(bench):
    """The data of logistic regression, which are float32 for both."""
    import sklearn
    bench.more["scikit-learn"] = sklearn.__version__
    for name, path, *_ in logistic_works(bench.quick):
        ours, theirs = [], []
        for _ in range(bench.rounds):
            theirs.append(run_scikit_bayes(path))
            ours.append(run_bayes(bench, path))
            say(f"    {name}: {ours[-1]:.3f} s, scikit-learn {theirs[-1]:.3f} s")
        bench.add("bayes", f"bayes, {name}: seconds / scikit-learn's", "", [a / b for a, b in zip(ours, theirs)], None,
                  f"{statistics.median(ours):.3f} s beside {statistics.median(theirs):.3f} s")


@contextlib.contextmanager
def own_rows(folder, quick):
    """For against.py: evaluations of the nets, and descents of so many iterations."""
    def bench_of(program):
        return Bench(program, folder, quick, 1, None)

    def evaluation(net):
        net.save_start(0)
        return lambda program: run_shoal(bench_of(program), net, 10 if quick else ITERATIONS)[0]

    def descent(path, l2, iterations):
        return lambda program: sum(took for took, _ in logistic_trace(bench_of(program), path, l2, iterations))
    yield [(f"{ROWS:,} rows, {net.name}: an evaluation", "s", evaluation(net)) for net in nets(folder, 1, 1)] + \
        [(f"logistic, {name}: {iterations} iterations", "s", descent(path, l2, iterations))
         for name, path, l2, iterations in logistic_works(quick)]


GROUPS = {"qjam": bench_qjam, "pytorch": bench_pytorch, "logistic": bench_logistic, "bayes": bench_bayes}


# ---- printing --------------------------------------------------------------------------------------------------------


def qjam_lines(report):
    """Seconds a round beside the paper's seconds an iteration, under a head."""
    lines = [["workers", *(word for patches in PATCHES for word in (f"{patches:,} patches", "qjam"))]]
    for way, row in report.get("qjam", {}).items():
        lines.append([way])
        for patches in PATCHES:
            paper = QJAM.get((int(way), patches)) if way.isdigit() else None
            lines[-1] += [f"{statistics.median(row[str(patches)]):.4f}", f"{paper:.4f}" if paper else "-"]
    return lines


def print_table(report):
    if report.get("qjam"):
        for line in qjam_lines(report):
            print("{:12}".format(line[0]) + "".join(f"{ours:>16} {paper:>8}"
                                                    for ours, paper in zip(line[1::2], line[2::2])))
        print()
    bench_engine.print_table(report)
    print(report.get("versions", ""))


def print_markdown(report):
    if report.get("qjam"):
        print("Seconds a round of 64-30-64, beside qjam's seconds an iteration:\n")
        head, *rows = qjam_lines(report)
        for row in [head, ["---", *["---:"] * 2 * len(PATCHES)], *rows]:
            print(f"| {' | '.join(row)} |")
        print()
    bench_engine.print_markdown(report)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench autoencoder", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="three minutes: fewer and shorter runs")
    parser.add_argument("--only", default="", help="only groups whose name has this in it: " + ", ".join(GROUPS))
    parser.add_argument("--rounds", type=int, help="how often the programs take turns (3; quick: 1)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="where the program is")
    parser.add_argument("--folder", help="where files are made (default: the usual place of temporary files)")
    parser.add_argument("--markdown", action="store_true",
                        help="print the last results as Markdown and measure nothing")
    options = parser.parse_args()
    if options.markdown:
        return print_markdown(json.loads((RESULTS / "autoencoder.json").read_text()))
    before, groups = os.getloadavg()[0], [name for name in GROUPS if options.only in name]
    has_hosts = "qjam" in groups and os.geteuid() == 0
    if has_hosts:
        hosts.isolate()
    elif "qjam" in groups:
        say("bench: hosts take root: threads alone are in qjam's table")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-bench-", dir=options.folder))
        far = stack.enter_context(hosts.Hosts(folder, HOSTS)) if has_hosts else None
        bench = Bench(options.build.resolve() / "shoal", folder, options.quick, options.rounds or
                      (1 if options.quick else 3), far)
        for name in groups:
            say(name)
            GROUPS[name](bench)
    report = {"when": time.strftime("%Y-%m-%d"), "cpu": bench_kmeans.cpu_name(), "cores": len(os.sched_getaffinity(0)),
              "quick": options.quick, "load": [before, os.getloadavg()[0]], "rows": bench.rows, **bench.more}
    report = json.loads(json.dumps(report))  # as it will be read again
    if not options.only:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "autoencoder.json").write_text(json.dumps(report, indent=1) + "\n")
    print_table(report)
    return None


if __name__ == "__main__":
    main()
