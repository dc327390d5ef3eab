#!/usr/bin/python3
"""Reading files as people have them, beside the reader that each format comes with: numpy, h5py, scipy.

    ./dev bench data [--quick] [--work WORD]

Each file holds the same gigabyte of float32 (--quick: 128 MiB), and is in the cache of the system when it is read. A
reader is done when all values are in memory: shoal (bench/read_rates.c) opens the file and touches every page of what
it mapped. Programs take turns, six times (--quick: twice), in either order, each in a process of its own that is timed
within; the fastest run of each counts, and the memory is the most that the process ever had, less what it has without
rows. A table on stdout, everything in bench/results/data.json. --work keeps the files whose name has WORD in it.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
RESULTS = ROOT / "bench" / "results"
COLUMNS = 128
BAR = 0.8

# The peers: what people write to get the array, and what that needs.
READ = {
    "numpy.load": "numpy.load(path)",
    "numpy.load of .npz": "numpy.load(path)['x']",
    "h5py": "h5py.File(path)['x'][:]",
    "numpy.fromfile, as faiss.contrib": "numpy.ascontiguousarray(numpy.fromfile(path, 'i4').reshape(-1, %d)[:, 1:])"
                                        ".view('f4')" % (COLUMNS + 1),
    "scipy.io.loadmat": "numpy.ascontiguousarray(scipy.io.loadmat(path)['x'])",
    "numpy.load and astype": "numpy.load(path).astype('f4')",
}
IMPORTS = {"h5py": "h5py", "scipy.io.loadmat": "scipy.io"}


def make_rows(mib):
    """Half of the values are small integers, so that compression finds something."""
    generator = np.random.default_rng(1)
    rows = generator.standard_normal((mib * 2**20 // 4 // COLUMNS, COLUMNS), dtype="f4")
    rows[:, ::2] = np.round(rows[:, ::2] * 4)
    return rows


def write_hdf5(path, rows, **storage):
    import h5py
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=rows, **storage)


def write_vectors(path, rows):
    framed = np.empty((len(rows), COLUMNS + 1), "i4")
    framed[:, 0] = COLUMNS
    framed[:, 1:] = rows.view("i4")
    framed.tofile(path)


def write_matlab(path, rows):
    import scipy.io
    scipy.io.savemat(path, {"x": rows})


# Name, the peer, the ending of the file, and what writes it.
CHUNKS = {"chunks": (4096, COLUMNS)}
WORKS = [
    ("npy", "numpy.load", ".npy", np.save),
    ("npz, stored", "numpy.load of .npz", ".npz", lambda path, rows: np.savez(path, x=rows)),
    ("HDF5, in one piece", "h5py", ".h5", write_hdf5),
    ("HDF5, in chunks", "h5py", ".h5", lambda path, rows: write_hdf5(path, rows, **CHUNKS)),
    ("HDF5, chunks by gzip", "h5py", ".h5",
     lambda path, rows: write_hdf5(path, rows, compression="gzip", compression_opts=1, **CHUNKS)),
    ("fvecs", "numpy.fromfile, as faiss.contrib", ".fvecs", write_vectors),
    ("npz, deflated", "numpy.load of .npz", ".npz", lambda path, rows: np.savez_compressed(path, x=rows)),
    ("npy, float16", "numpy.load and astype", ".npy", lambda path, rows: np.save(path, rows.astype("f2"))),
    ("MATLAB 5", "scipy.io.loadmat", ".mat", write_matlab),
]


def by_shoal(path, _=None):
    done = subprocess.run([BUILD / "bench_read_rates", path], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


PEER = """
import json, re, sys, time
import numpy, {module}
path = sys.argv[1]
peak = lambda: int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) * 1024
before = peak()
began = time.perf_counter()
x = {read}
took = time.perf_counter() - began
print(json.dumps({{"seconds": took, "bytes": x.nbytes,
                  "memory": peak() - before}}))
"""


def by_peer(path, peer):
    text = PEER.format(module=IMPORTS.get(peer, "numpy"), read=READ[peer])
    done = subprocess.run([sys.executable, "-c", text, path], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def measure(name, peer, path, base, repetitions):
    """Memory that another process has just given back is slower or faster to get, so that the order matters."""
    runs = {by_shoal: [], by_peer: []}
    by_shoal(path), by_peer(path, peer)  # so that the file is in the cache
    for turn in range(repetitions):
        for run in (by_shoal, by_peer) if turn % 2 else (by_peer, by_shoal):
            runs[run].append(run(path, peer))
    ours, theirs = runs[by_shoal], runs[by_peer]
    size = ours[0]["bytes"]
    assert all(run["bytes"] == size for run in ours + theirs), name
    seconds, peer_seconds = (min(run["seconds"] for run in each) for each in (ours, theirs))
    return {"work": name, "peer": peer, "bytes": size, "detail": ours[0]["detail"], "seconds": seconds,
            "peer_seconds": peer_seconds, "ratio": peer_seconds / seconds,
            "memory": (max(run["memory"] for run in ours) - base) / size,
            "peer_memory": max(run["memory"] for run in theirs) / size, "runs": ours, "peer_runs": theirs}


def print_row(row):
    print(f"| {row['work']} | {row['peer']} | {row['bytes'] / row['peer_seconds'] / 1e9:.2f} | "
          f"{row['bytes'] / row['seconds'] / 1e9:.2f} | {row['ratio']:.2f} | {BAR} | "
          f"{'yes' if row['ratio'] >= BAR else 'NO'} | {row['peer_memory']:.2f} | {row['memory']:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench data", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="128 MiB, two turns")
    parser.add_argument("--work", default="", metavar="WORD", help="only files whose name has WORD in it")
    options = parser.parse_args()
    subprocess.run(["cmake", "--build", BUILD, "--target", "bench_read_rates"], check=True, stdout=subprocess.DEVNULL)
    found = []
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        folder = pathlib.Path(name)
        np.save(folder / "nothing.npy", np.zeros((1, 1), "f4"))
        base = by_shoal(folder / "nothing.npy")["memory"]
        print("| file | peer | peer, GB/s | shoal, GB/s | ratio | bar | met | peer's memory | shoal's memory |")
        print("|---|---|---:|---:|---:|---:|---|---:|---:|")
        rows = make_rows(128 if options.quick else 1024)
        for work, peer, ending, write in WORKS:
            if options.work not in work:
                continue
            path = folder / f"rows{ending}"
            write(path, rows)
            found.append(measure(work, peer, path, base, 2 if options.quick else 6))
            print_row(found[-1])
            path.unlink()
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "data.json").write_text(json.dumps(found, indent=1))


main()
