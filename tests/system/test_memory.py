"""Peak memory: the data + 32 K D + 16 rows + 8 K D a thread + 64 MB, whatever the start and however many clusters are
empty.  Not for sanitizers, whose own memory would be counted."""
import json
import os
import subprocess
import sys
import tempfile

import nobody  # so that no run is in the history of whoever runs this

import numpy as np

SHOAL = os.path.abspath(sys.argv[1])
passed = failed = 0


def peak(path, *options):
    out = subprocess.run([SHOAL, "kmeans", path, "--threads", "2", "--json", *options], capture_output=True, text=True)
    if out.returncode != 0:
        raise SystemExit(out.stderr)
    return json.loads(out.stdout)["peak_memory"]


def check(name, path, rows, columns, size, k, *options):
    global passed, failed
    allowed = rows * columns * size + 32 * k * columns + 16 * rows + 2 * 8 * k * columns + 64e6
    used = peak(path, *options)
    passed += used <= allowed
    failed += used > allowed
    if used > allowed:
        print(f"FAILED {name}: {used / 1e6:.0f} MB, {allowed / 1e6:.0f} MB are allowed")


with tempfile.TemporaryDirectory() as folder:
    random = np.random.default_rng(3)
    wide = os.path.join(folder, "wide.npy")
    np.save(wide, random.random((30000, 600), dtype=np.float32))
    start = os.path.join(folder, "start.npy")
    near = random.random((800, 600)) * 1e-3  # nearly all of these lie in one corner: hundreds of clusters stay empty
    np.save(start, near)
    for how in ("random", "parallel"):
        check(f"K=800, {how}", wide, 30000, 600, 4, 800, "-k", "800", "--init", how, "--iterations", "4")
    check("K=800, most clusters empty", wide, 30000, 600, 4, 800, "--init", start, "--iterations", "3")
    check("K=40, k-means++", wide, 30000, 600, 4, 40, "-k", "40", "--init", "kmeans++", "--iterations", "4")
    small = os.path.join(folder, "bytes.npy")
    np.save(small, random.integers(0, 255, (100000, 100), dtype=np.uint8))
    for how in ("random", "kmeans++", "parallel"):
        check(f"bytes, {how}", small, 100000, 100, 1, 100, "-k", "100", "--init", how, "--iterations", "4")
    long = os.path.join(folder, "long.npy")
    np.save(long, random.random((2000000, 4), dtype=np.float32))
    check("few columns", long, 2000000, 4, 4, 20, "-k", "20", "--iterations", "4")

print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
