#!/usr/bin/python3
# Formats of files beyond .npy, IDX and text, against those that make them: Python, numpy, zstd.  Labels: quick asan
#   test_data_packed.py PATH_TO_shoal
# Prints one line for each failure and "N passed, M failed" at the end.
import bz2
import gzip
import io
import lzma
import os
import pathlib
import shutil
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
folder = pathlib.Path(tempfile.mkdtemp(prefix="shoal-packed-"))
passed = failed = 0


def check(what, good, more=""):
    global passed, failed
    passed += bool(good)
    failed += not good
    if not good:
        print(f"FAILED: {what} {more}")


def shoal(*words, stdin=b""):
    return subprocess.run([program, *map(str, words)], input=stdin, capture_output=True, timeout=60)


def convert(source, name, *options):
    path = folder / name
    path.unlink(missing_ok=True)
    result = shoal("data", "convert", source, path, *options)
    check(f"{source} converts", result.returncode == 0, result.stderr.decode())
    return path


def refused(status, parts, *words):
    """The command fails with one line that holds all parts."""
    result = shoal(*words)
    text = result.stderr.decode().replace("try 'shoal data convert -h'\n", "")
    check(f"{words} is refused", result.returncode == status and text.count("\n") == 1, text)
    for part in parts:
        check(f"{words}: {part}", part in text, text)


def same(got, expected):
    return got.dtype == expected.dtype and got.shape == expected.shape and got.tobytes() == expected.tobytes()


def packers():
    """Name of the format, ending, and how others pack and unpack."""
    yield "xz", "xz", lzma.compress, lzma.decompress
    yield "bzip2", "bz2", bz2.compress, bz2.decompress
    if shutil.which("zstd"):
        def run(*options):
            return lambda data: subprocess.run(["zstd", "-q", "-c", *options], input=data, capture_output=True,
                                               check=True).stdout
        yield "zstd", "zst", run(), run("-d")


def test_compressed():
    """What others compress is read, in one stream or several, and what shoal compresses others read."""
    array = np.random.default_rng(1).standard_normal((3000, 5))
    text = io.BytesIO()
    np.savetxt(text, array, fmt="%.17g", delimiter=",")
    text = text.getvalue()
    npy = io.BytesIO()
    np.save(npy, array)
    for name, ending, pack, unpack in packers():
        path = folder / f"x.csv.{ending}"
        path.write_bytes(pack(text))
        check(f"{name}", same(np.load(convert(path, "o.npy")), array))
        path.write_bytes(pack(text[:7777]) + pack(text[7777:]))
        check(f"{name}, two streams", same(np.load(convert(path, "o.npy")), array))
        path.write_bytes(pack(text)[:-30])
        refused(1, [f"x.csv.{ending}: the {name} data ends early: the file is cut off"],
                "data", "convert", path, folder / "never.npy")
        (folder / "renamed").write_bytes(pack(npy.getvalue()))
        check(f"{name} of npy", same(np.load(convert(folder / "renamed", "o.npy")), array))
        written = convert(folder / "o.npy", f"w.csv.{ending}").read_bytes()
        plain = convert(folder / "o.npy", "w.csv").read_bytes()
        check(f"{name} written", unpack(written) == plain and len(written) < len(plain))
        again = convert(folder / f"w.csv.{ending}", f"w2.csv.{ending}")
        check(f"{name} read and written again", again.read_bytes() == written)
        result = shoal("data", "convert", folder / "o.npy", again)
        check(f"{name} replaced by the same", result.returncode == 0, result.stderr)
        result = shoal("data", "convert", folder / "o.npy", "/dev/stdout", "--format", f"tsv.{ending}")
        check(f"{name} by --format", unpack(result.stdout).count(b"\t") == 3000 * 4)
        refused(2, [f"o.npy.{ending}", "the name must end in"],
                "data", "convert", folder / "o.npy", folder / f"o.npy.{ending}")
    (folder / "was.csv.xz").write_bytes(gzip.compress(text))
    refused(2, ["was.csv.xz: the file holds", "compressed by gzip"],
            "data", "convert", folder / "o.npy", folder / "was.csv.xz")


try:
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
finally:
    shutil.rmtree(folder)
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
