#!/usr/bin/python3
"""k-means beside scikit-learn and FAISS, two threads each, from the same start, for the same number of iterations.

    ./dev bench kmeans [--quick] [--work WORD] [--repetitions N] [--scale F] [--markdown]

The programs take turns and the fastest run of each counts.  A table on stdout, everything in bench/results/kmeans.json.
--quick takes two minutes: fewer works, iterations and repetitions.  --work keeps the works whose name has WORD in it,
--scale shrinks the rows (to try the bench itself), --markdown prints the last results as bench/README.md has them.
Nothing here fails when a bar is missed: the table says so.
"""
import argparse
import contextlib
import gzip
import itertools
import json
import os
import pathlib
import platform
import subprocess
import sys
import time
import warnings

THREADS = 2
for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]:
    os.environ[name] = str(THREADS)  # before the libraries are loaded

import numpy as np  # noqa: E402

import openblas  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
RESULTS = ROOT / "bench" / "results"
DATA = RESULTS / "data"
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz")
GIB = 2.0**30

CAPTION = """\
seconds: the fastest of the repetitions.  The peers have float32 arrays in memory and are timed around fit (FAISS: train
and the search that gives labels).  shoal is timed by its own report, scan + run (seeding: scan + seed): all but opening
the file and writing results; `process` is the whole program from start to exit.  ratio: fastest peer / shoal.  Behind a
peer's name are the kernels of OpenBLAS that were fastest for it, where these are not its own choice (openblas.py)."""


# ---- work ------------------------------------------------------------------------------------------------------------


def uniform(rows):
    return np.random.default_rng(11).random((rows, 1000), dtype=np.float32)


def blobs(rows, columns, centres):
    """Centres of standard deviation 2, rows of 1 around them; as ../shared/prototypes/gen.py."""
    g = np.random.default_rng(rows + columns)
    c = g.normal(size=(centres, columns)) * 2
    X = c[g.integers(0, centres, rows)].astype(np.float32)
    X += g.standard_normal(size=X.shape, dtype=np.float32)
    return X


def fashion(rows):
    with gzip.open(FASHION) as file:
        return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)[:rows]


class Work:
    def __init__(self, name, data, make, rows, k, iterations, bar, kernel="auto", seeding=False):
        self.name, self.data, self.make, self.rows, self.k = name, data, make, rows, k
        self.iterations, self.bar, self.kernel, self.seeding = iterations, bar, kernel, seeding


def works(quick, best_kernel):
    def its(full, few):
        return few if quick else full
    all_works = [
        Work("uniform 50,000x1,000, K=1,000", "uniform", uniform, 50_000, 1000, its(10, 3),
             4 if best_kernel == "vnni" else 2),
        Work("the same without AVX-512 (--kernel avx2)", "uniform", uniform, 50_000, 1000, its(10, 3), 2, "avx2"),
        Work("blobs 200,000x128, K=1,000", "blobs128", lambda n: blobs(n, 128, 1000), 200_000, 1000, 10, 7),
        Work("blobs 1,000,000x16, K=100", "blobs16", lambda n: blobs(n, 16, 100), 1_000_000, 100, its(20, 5), 4),
        Work("Fashion-MNIST 60,000x784 bytes, K=100", "fashion", fashion, 60_000, 100, its(25, 10), 3),
        Work("Fashion-MNIST 60,000x784 bytes, K=1,000", "fashion", fashion, 60_000, 1000, 25, 5),
        Work("k-means++ seeding, 200,000x128, K=1,000", "blobs128", lambda n: blobs(n, 128, 1000), 200_000, 1000, 0, 6,
             seeding=True),
    ]
    left_out = ["blobs128", "fashion1000"] if quick else []
    return [w for w in all_works if w.data not in left_out and f"{w.data}{w.k}" not in left_out]


def prepare(work, scale):
    """Paths of the data and of the start, made once, and both as they lie there."""
    DATA.mkdir(parents=True, exist_ok=True)
    rows, k = max(int(work.rows * scale), 200), max(int(work.k * min(1, scale * 10)), 5)
    path, start = DATA / f"{work.data}-{rows}.npy", DATA / f"{work.data}-{rows}-start-{k}.npy"
    if not path.exists():
        save(path, work.make(rows))
    X = np.load(path, mmap_mode="r")
    if not start.exists():
        chosen = np.random.default_rng(1).choice(len(X), k, replace=False)
        save(start, X[chosen].astype(np.float32))
    return path, start, X, np.load(start)


def save(path, array):
    """An interrupted bench must not leave half a file to the next one."""
    whole = path.with_suffix(".part.npy")
    np.save(whole, array)
    whole.rename(path)


# ---- the programs ----------------------------------------------------------------------------------------------------
# Each gives seconds, and what else there is to know.


def shoal(work, path, start, program=BUILD / "shoal"):
    words = [program, "kmeans", path, "--threads", THREADS, "--kernel", work.kernel, "--tolerance", 0, "--json"]
    words += ["--init", "kmeans++", "-k", len(np.load(start, mmap_mode="r"))] if work.seeding else ["--init", start]
    words += ["--iterations", work.iterations]
    # By way of a small shell: Linux counts what the parent held at the time of exec as the child's own peak memory.
    words = ["/bin/sh", "-c", '"$@"; exit $?', "sh", *map(str, words)]
    started = time.perf_counter()
    result = subprocess.run(words, capture_output=True)
    process = time.perf_counter() - started
    if result.returncode != 0:
        raise RuntimeError(f"shoal: {result.stderr.decode().strip()}")
    about = json.loads(result.stdout)
    seconds = about["seconds"]["scan"] + about["seconds"]["seed" if work.seeding else "run"]
    return seconds, {
        "process": process, "objective": about["objective"], "iterations": about["iterations"], "about": about
    }


# The peers' are called by way of openblas.py, each in a process of its own: paths of data and start, iterations, and
# how many of the rows.


def as_peers_want(path, start, rows):
    return np.ascontiguousarray(np.load(path, mmap_mode="r")[:rows], dtype=np.float32), np.load(start)


def fit_scikit(algorithm, path, start, iterations, rows):
    from sklearn.cluster import KMeans
    X, first = as_peers_want(path, start, rows)
    learner = KMeans(len(first), init=first, n_init=1, max_iter=iterations, tol=0, algorithm=algorithm)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        learner.fit(X)
        seconds = time.perf_counter() - started
    return seconds, {"objective": float(learner.inertia_), "iterations": int(learner.n_iter_)}


def fit_lloyd(path, start, iterations, rows=None):
    return fit_scikit("lloyd", path, start, iterations, rows)


def fit_elkan(path, start, iterations, rows=None):
    return fit_scikit("elkan", path, start, iterations, rows)


def fit_faiss(path, start, iterations, rows=None):
    import faiss
    X, first = as_peers_want(path, start, rows)
    faiss.omp_set_num_threads(THREADS)
    learner = faiss.Kmeans(X.shape[1], len(first), niter=iterations, max_points_per_centroid=len(X),
                           min_points_per_centroid=1, seed=1)
    started = time.perf_counter()
    learner.train(X, init_centroids=first)
    distances, _ = learner.index.search(X, 1)
    return time.perf_counter() - started, {"objective": float(distances.sum(dtype=float)), "iterations": iterations}


def seed_scikit(path, start, iterations, rows=None):
    from sklearn.cluster import kmeans_plusplus
    X, first = as_peers_want(path, start, rows)
    started = time.perf_counter()
    chosen, _ = kmeans_plusplus(X, len(first), random_state=0)
    seconds = time.perf_counter() - started
    return seconds, {"objective": objective(X, chosen), "iterations": iterations}


def objective(X, centres):
    import faiss
    index = faiss.IndexFlatL2(X.shape[1])
    index.add(centres)
    return float(index.search(X, 1)[0].sum(dtype=float))


def available_memory():
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def peers_of(work, X, start, quick):
    """The names of functions above."""
    if work.seeding:
        return {} if quick else {"scikit-learn": "seed_scikit"}
    peers = {"FAISS": "fit_faiss", "scikit-learn lloyd": "fit_lloyd"}
    # Elkan keeps a bound for every row and centre, and takes a minute to set them up when there are many.
    if 4 * len(X) * len(start) < min(2 * GIB, available_memory() / 4) and not (quick and len(start) >= 1000):
        peers["scikit-learn elkan"] = "fit_elkan"
    return peers


def choose_cores(peers, work, path, start):
    """OpenBLAS's kernels for each peer, by a short run of the same columns and centres."""
    few = min(work.iterations, 2), 2_000 if work.seeding else 20_000
    cores = {who: openblas.best("bench_kmeans", function, path, start, *few) for who, function in peers.items()}
    for who, (core, tried) in cores.items():
        print(f"    {who}: OpenBLAS's kernels {openblas.describe(core, tried)}", file=sys.stderr, flush=True)
    return {who: core for who, (core, _) in cores.items()}


# ---- measuring -------------------------------------------------------------------------------------------------------

HOPELESS = 4  # a peer so many times slower than the fastest one is not run again
LONG = 45  # seconds after which one run of scikit-learn's seeding is enough


def enough(name, runs, seeding):
    """Whether a peer that has run need not run again."""
    if name not in runs:
        return False
    fastest = min(min(seconds) for peer, seconds in runs.items() if not isinstance(peer, Work))
    return min(runs[name]) > HOPELESS * fastest or (seeding and min(runs[name]) > LONG)


def measure(group, path, start_path, X, start, repetitions, quick):
    """Runs the programs in turn: shoal as each work of the group wants it, and the peers.  Seconds and more, by work or
    by the peer's name."""
    runs, more = {}, {}
    peers = peers_of(group[0], X, start, quick)
    cores = choose_cores(peers, group[0], path, start_path)
    for _ in range(repetitions):
        for who in [*group, *peers]:
            if isinstance(who, Work):
                seconds, about = shoal(who, path, start_path)
            elif enough(who, runs, group[0].seeding):
                continue
            else:
                seconds, about = openblas.call(cores[who], "bench_kmeans", peers[who], path, start_path,
                                               group[0].iterations)
                about["core"] = cores[who]
            if who not in runs or seconds < min(runs[who]):
                more[who] = about
            runs.setdefault(who, []).append(seconds)
            print(f"    {'shoal ' + who.kernel if isinstance(who, Work) else who:20} {seconds:8.3f} s", file=sys.stderr,
                  flush=True)
    return runs, more


def only(work, found):
    """What was found for one work of a group, and for the peers."""
    return {"shoal" if who is work else who: value for who, value in found.items()
            if who is work or not isinstance(who, Work)}


def memory_allowed(path, X, start):
    """The issue's bound: data, 32 K D, 16 a row, 8 K D a thread, 64 MB; mapped pages count as data."""
    cells = start.shape[0] * X.shape[1]
    return path.stat().st_size + 32 * cells + 16 * len(X) + 8 * cells * THREADS + 64_000_000


def entry_of(work, path, X, start, runs, more, rates):
    fastest = {name: min(seconds) for name, seconds in runs.items()}
    ours, told = fastest.pop("shoal"), more["shoal"]
    peer = min(fastest, key=fastest.get, default=None)
    about = told["about"]
    passes = work.iterations + 1
    entry = {
        "work": work.name, "rows": len(X), "columns": X.shape[1], "k": len(start), "iterations": work.iterations,
        "kernel": about["kernel"], "bar": work.bar, "shoal": ours, "process": told["process"], "peer": peer,
        "peers": fastest, "runs": runs, "ratio": fastest[peer] / ours if peer else None,
        "cores": {name: m["core"] for name, m in more.items() if name != "shoal"},
        "objective": {name: m["objective"]
                      for name, m in more.items()}, "done": {name: m["iterations"]
                                                             for name, m in more.items()
                                                             }, "distances_skipped": about["distances_skipped"] /
        max(about["distances_computed"] + about["distances_skipped"], 1), "peak_memory": about["peak_memory"],
        "memory_allowed": memory_allowed(path, X, start)
    }
    if rates and not work.seeding and about["kernel"] in rates:
        # As if every distance were computed in float32: more than 1 means that work was saved, not done faster.
        entry["share_of_fma"] = 2.0 * X.size * len(start) * passes / ours / (rates[about["kernel"]]["fma_gflops"] * 1e9)
        entry["share_of_read"] = path.stat().st_size * (passes + 2) / ours / (rates["read_gbytes"] * 1e9)
    return entry


def measure_rates(repetitions, rates=None):
    """The machine's own rates with as many threads; the best seen so far.  None when the program can't be built."""
    program = BUILD / "bench_rates"
    if rates is None:
        built = subprocess.run(["cmake", "--build", BUILD, "--target", "bench_rates"], capture_output=True)
        if built.returncode != 0 or not program.exists():
            print("bench: bench_rates was not built: no shares of the machine's rates", file=sys.stderr)
            return None
        rates = {}
    for _ in range(repetitions):
        found = json.loads(subprocess.run([program, str(THREADS)], capture_output=True, check=True).stdout)
        for name, value in found.items():
            if isinstance(value, dict):
                best = rates.setdefault(name, {"fma_gflops": 0, "dense_gflops": 0, "shares": []})
                best["fma_gflops"] = max(best["fma_gflops"], value["fma_gflops"])
                best["dense_gflops"] = max(best["dense_gflops"], value["dense_gflops"])
                best["shares"].append(value["dense_share"])
                best["dense_share"] = float(np.median(best["shares"]))
            else:
                rates[name] = max(rates.get(name, 0), value)
    return rates


# ---- printing --------------------------------------------------------------------------------------------------------


def verdict(entry):
    return "-" if entry["ratio"] is None else "yes" if entry["ratio"] >= entry["bar"] else "NO"


def peer_text(entry):
    """The fastest peer, and the kernels that it had of OpenBLAS."""
    if not entry["peer"]:
        return "not run"
    core = entry["cores"][entry["peer"]]
    return f"{entry['peer']}, {core}" if core else entry["peer"]


def ratio_text(entry):
    return f"{entry['ratio']:.2f}" if entry["ratio"] else "-"


def print_table(report):
    line = "{:43} {:>4} {:>30} {:>9} {:>9} {:>9} {:>6} {:>5} {:>4}"
    print(line.format("work", "its", "fastest peer", "seconds", "shoal", "process", "ratio", "bar", "met"))
    for e in report["works"]:
        peer = f"{e['peers'][e['peer']]:.3f}" if e["peer"] else "-"
        print(
            line.format(e["work"], e["iterations"], peer_text(e), peer, f"{e['shoal']:.3f}",
                        f"{e['process']:.3f}", ratio_text(e), f"{e['bar']}x", verdict(e)))
    print("\n" + CAPTION)
    print_machine(report)
    print_memory(report)


def print_machine(report):
    rates = report["rates"]
    if not rates:
        return
    print(f"\nthe machine, {THREADS} threads: " + ", ".join(
        f"{name} {r['fma_gflops']:.0f} GFLOP/s of FMA" for name, r in rates.items() if isinstance(r, dict)) +
        f"; reads {rates['read_gbytes']:.1f} GB/s")
    for name, r in rates.items():
        if isinstance(r, dict):
            print(
                f"one dense float32 pass, {name}: {r['dense_gflops']:.0f} GFLOP/s at best, "
                f"{100 * r['dense_share']:.0f}% of the FMA rate of the same threads, bar 70%: "
                f"{'yes' if r['dense_share'] >= 0.7 else 'NO'}")
    for e in report["works"]:
        if "share_of_fma" in e:
            print(
                f"{e['work']}: {100 * e['share_of_fma']:.0f}% of the FMA rate if all distances were computed densely "
                f"({100 * e['distances_skipped']:.0f}% were skipped), {100 * e['share_of_read']:.0f}% of the read rate")


def print_memory(report):
    print()
    for e in report["works"]:
        met = "yes" if e["peak_memory"] <= e["memory_allowed"] else "NO"
        print(
            f"peak memory, {e['work']}: {e['peak_memory'] / 1e6:.0f} MB of {e['memory_allowed'] / 1e6:.0f} MB "
            f"allowed: {met}"
        )


def print_markdown(report):
    """The table of bench/README.md and README.md."""
    print(f"Measured {report['when']} on {report['cpu']}, {THREADS} threads, {report['repetitions']} repetitions, "
          f"{report['versions']}.\n")
    print(
        "| work | iterations | fastest peer | peer, s | shoal, s | ratio | bar | met |\n"
        "|---|---:|---|---:|---:|---:|---:|---|"
    )
    for e in report["works"]:
        peer = f"{e['peers'][e['peer']]:.2f}" if e["peer"] else "-"
        print(
            f"| {e['work']} | {e['iterations']} | {peer_text(e)} | {peer} | {e['shoal']:.2f} | {ratio_text(e)} "
            f"| {e['bar']} | {verdict(e)} |")
    rates = report["rates"]
    if rates:
        print("\n| kernel | FMA, GFLOP/s | dense float32 pass, GFLOP/s | share (bar 70%) |\n|---|---:|---:|---:|")
        for name, r in rates.items():
            if isinstance(r, dict):
                print(f"| {name} | {r['fma_gflops']:.0f} | {r['dense_gflops']:.0f} | {100 * r['dense_share']:.0f}% |")
        print(f"\nMemory is read at {rates['read_gbytes']:.1f} GB/s.\n")
    print(
        "| work | share of FMA rate, as if dense | distances skipped | share of read rate | peak memory, MB "
        "| allowed, MB |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    for e in report["works"]:
        shares = [
            f"{100 * e[name]:.0f}%" if name in e else "-"
            for name in ["share_of_fma", "distances_skipped", "share_of_read"]
        ]
        print(
            f"| {e['work']} | {' | '.join(shares)} | {e['peak_memory'] / 1e6:.0f} | {e['memory_allowed'] / 1e6:.0f} |")


# ---- all of it -------------------------------------------------------------------------------------------------------


def cpu_name():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def check_peers():
    """Says what the peers are, and warns when a slow BLAS would make the comparison unfair."""
    import faiss
    import sklearn
    from threadpoolctl import threadpool_info, threadpool_limits
    import scipy.linalg  # noqa: F401
    threadpool_limits(THREADS)
    blas = {f"{pool['internal_api']} {pool['version']}" for pool in threadpool_info() if pool["user_api"] == "blas"}
    if not blas:
        print("bench: the peers have no fast BLAS; install libopenblas0-pthread", file=sys.stderr)
    names = ", ".join(sorted(blas)) or "reference BLAS"
    return f"scikit-learn {sklearn.__version__}, FAISS {faiss.__version__}, {names}"


def best_kernel():
    about = subprocess.run([BUILD / "shoal", "kmeans", "gen:uniform?rows=9&cols=2", "-k", "1", "--json"],
                           capture_output=True)
    return json.loads(about.stdout)["kernel"]


@contextlib.contextmanager
def own_rows(folder, quick):
    """For against.py: each work, by the seconds that count above."""
    def row(work):
        path, start, _, _ = prepare(work, 1)
        return work.name, "s", lambda program: shoal(work, path, start, program)[0]
    yield [row(work) for work in works(quick, best_kernel())]


def write(report, scale):
    RESULTS.mkdir(parents=True, exist_ok=True)
    name = "kmeans.json" if scale == 1 else "kmeans-scaled.json"
    (RESULTS / name).write_text(json.dumps(report, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench kmeans", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="two minutes: fewer works, iterations and repetitions")
    parser.add_argument("--work", default="", help="only works whose name has this in it")
    parser.add_argument("--repetitions", type=int, help="runs of each program (3; quick: 2)")
    parser.add_argument("--scale", type=float, default=1,
                        help="rows, as a share of the real number: to try the bench itself")
    parser.add_argument("--markdown", action="store_true",
                        help="print the last results as Markdown and measure nothing")
    options = parser.parse_args()
    if options.markdown:
        return print_markdown(json.loads((RESULTS / "kmeans.json").read_text()))
    repetitions = options.repetitions or (2 if options.quick else 3)
    kernel = best_kernel()
    report = {
        "when": time.strftime("%Y-%m-%d"), "cpu": cpu_name(), "threads": THREADS, "quick": options.quick,
        "scale": options.scale, "repetitions": repetitions, "kernel": kernel, "versions": check_peers(), "works": []
    }
    rates = measure_rates(2)
    wanted = [w for w in works(options.quick, kernel) if options.work.lower() in w.name.lower()]
    for _, group in itertools.groupby(wanted, lambda w: (w.data, w.k, w.iterations, w.seeding)):
        group = list(group)
        print(f"{group[0].name}, {group[0].iterations} iterations", file=sys.stderr, flush=True)
        path, start_path, X, start = prepare(group[0], options.scale)
        runs, more = measure(group, path, start_path, X, start, repetitions, options.quick)
        if rates:
            rates = measure_rates(1, rates)
        report["rates"] = rates
        for work in group:
            report["works"].append(entry_of(work, path, X, start, only(work, runs), only(work, more), rates))
        write(report, options.scale)
    if report["works"]:
        print_table(report)
        print(f"\n{report['cpu']}, {report['versions']}, best of {repetitions}")
        if options.quick:
            print("quick: fewer iterations than the bars are meant for, and each saves shoal more than the one before")


if __name__ == "__main__":
    main()
