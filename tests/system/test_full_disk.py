#!/usr/bin/env python3
# Labels: asan
"""A disk that fills up leaves the old file and nothing else.

    test_full_disk.py PATH_TO_shoal

Needs a disk of 64 KiB, which only a process that may mount can make; where it may not, the test is skipped (77), and
what /dev/full and file size limits show in test_cli.py has to do.
"""
import os
import subprocess
import sys
import tempfile

import nobody  # so that no run is in the history of whoever runs this

SHOAL = os.path.abspath(sys.argv[1])
DATA = "gen:blobs?rows=40000&cols=2&seed=1&centres=3"
INSIDE = "SHOAL_TEST_FOLDER"


def fails(*arguments):
    done = subprocess.run([SHOAL, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    told = f"shoal {' '.join(arguments)} exits {done.returncode} and says {done.stderr!r}"
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "No space left" in done.stderr, told
    assert arguments[-1] in done.stderr, told


def fill():
    with open("labels.npy", "w") as file:
        file.write("old")
    fails("kmeans", DATA, "-k", "3", "--quiet", "--force", "--labels", "labels.npy")
    assert open("labels.npy").read() == "old" and os.listdir(".") == ["labels.npy"], os.listdir(".")
    for name in ("out.csv", "out.csv.gz", "out.npy", "out.idx"):
        fails("data", "convert", DATA, name)
        assert os.listdir(".") == ["labels.npy"], os.listdir(".")
    for name in ("out.csv", "out.tsv.gz", "out.npy"):
        fails("data", "shuffle", DATA, name)
        assert os.listdir(".") == ["labels.npy"], os.listdir(".")
    fails("kmeans", "gen:uniform?rows=400&cols=400", "-k", "40", "--iterations", "1", "--quiet", "--model",
          "m.safetensors")
    assert os.listdir(".") == ["labels.npy"], os.listdir(".")
    with tempfile.TemporaryDirectory(prefix="shoal-store-") as elsewhere: # a disk that has room
        while subprocess.run(["sh", "-c", "head -c 4096 /dev/zero >>filler 2>/dev/null"]).returncode == 0:
            pass # until not a page is free
        for name in ("test.npy", "test.csv", "test.csv.gz"):
            fails("data", "split", "gen:uniform?rows=8&cols=1", f"{elsewhere}/train.npy", name)
            assert os.listdir(elsewhere) == [], os.listdir(elsewhere) # neither file without the other
        os.remove("filler")
        for name in ("a", "b"):
            with open(f"{elsewhere}/{name}", "wb") as file:
                file.write(os.urandom(100000))
        put = subprocess.run([SHOAL, "store", "put", f"{elsewhere}/a", f"{elsewhere}/b", f"{elsewhere}/st/"],
                             capture_output=True)
        assert put.returncode == 0, put.stderr
        fails("store", "get", "--quiet", f"{elsewhere}/st/a", "labels.npy")
        fails("store", "get", "--quiet", f"{elsewhere}/st/a", "new")
        assert open("labels.npy").read() == "old" and os.listdir(".") == ["labels.npy"], os.listdir(".")


def main():
    """Mounts in a namespace of its own, so that nothing outside sees the disk and nothing has to be unmounted."""
    if INSIDE in os.environ:
        os.chdir(os.environ[INSIDE])
        fill()
        return 0
    with tempfile.TemporaryDirectory(prefix="shoal-disk-") as folder:
        mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
        for enter in (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]):
            if subprocess.run(enter + mount, capture_output=True).returncode == 0:
                script = 'folder=$1 && shift && mount -t tmpfs -o size=64k tmpfs "$folder" && exec "$@"'
                command = enter + ["sh", "-c", script, "sh", folder, sys.executable, os.path.abspath(__file__), SHOAL]
                return subprocess.run(command, env={**os.environ, INSIDE: folder}).returncode
    print("SKIPPED: this process may not mount a small disk")
    return 77


sys.exit(main())
