#!/usr/bin/env python3
# Labels: quick
"""The programs that are copied to other machines need what they may need, and compute what the ordinary one computes.

    test_portable.py PATH_TO_shoal

They are in the folder `portable` beside the program; where they could not be built, the test is skipped (77).  The
static one also runs in a root folder that holds nothing else, and in one of another distribution, busybox, for which
the machine must let this process change its root; where it does not, these two cases are left out, by name.
"""
import filecmp
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import nobody  # so that no run is in the history of whoever runs this

SHOAL = pathlib.Path(sys.argv[1]).resolve()
PORTABLE = SHOAL.parent / "portable"
SHARED, STATIC = PORTABLE / "shoal", PORTABLE / "shoal-static"
OF_THE_C_LIBRARY = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
WORK = [
    "kmeans", "gen:blobs?rows=8000&cols=40&seed=7&centres=60&spread=3", "-k", "50", "--iterations", "8", "--tolerance",
    "0", "--threads", "2", "--quiet"
]


def run(*words, **options):
    return subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120, **options)


def fine(*words, **options):
    done = run(*words, **options)
    assert done.returncode == 0, f"{' '.join(map(str, words))} exits with {done.returncode}: {done.stderr}"
    return done.stdout


def refused(sentence, *words):
    done = run(*words)
    told = f"{' '.join(map(str, words))} exits with {done.returncode} and says {done.stderr!r}, not {sentence!r}"
    assert done.returncode == 2 and sentence in done.stderr, told


# ---- what they need --------------------------------------------------------------------------------------------------


def test_needs():
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", fine("readelf", "--dynamic", SHARED)))
    assert "libc.so.6" in needed and needed <= OF_THE_C_LIBRARY, f"{SHARED} needs {needed}"
    assert "(NEEDED)" not in fine("readelf", "--dynamic", STATIC), f"{STATIC} needs libraries"
    assert "INTERP" not in fine("readelf", "--program-headers", STATIC), f"{STATIC} needs a dynamic loader"


def test_small():
    """They travel: neither debug information nor a library that drags in all of its relatives is among them."""
    for program in (SHARED, STATIC):
        assert program.stat().st_size < 8 << 20, f"{program} has {program.stat().st_size:,} bytes"
        assert ".debug" not in fine("readelf", "--section-headers", "--wide", program), f"{program} is not stripped"


def public_symbols(program):
    return set(re.findall(r" [A-Z] (shoal_\w+)$", fine("nm", "--dynamic", "--defined-only", program), re.M))


def test_symbols():
    """Modules find in the programs what they would find in the library, and nothing of others' libraries."""
    public = public_symbols(SHOAL.parent / "libshoal.so")
    assert "shoal_fail" in public, public
    for program in (SHOAL, SHARED):
        differ = public_symbols(program) ^ public
        assert not differ, f"{program} has not the symbols of the library: {sorted(differ)}"
    assert not re.search(r" T (sqlite3|png|inflate|json|SHA256)_?", fine("nm", "--dynamic", "--defined-only", SHARED))


# ---- what they do ----------------------------------------------------------------------------------------------------


def test_same_version():
    for program in (SHARED, STATIC):
        assert fine(program, "--version") == fine(SHOAL, "--version"), program


def kernels_here():
    return [name for name in ("portable", "avx2", "avx512", "vnni")
            if run(SHOAL, "kmeans", "gen:uniform?rows=1&cols=1", "-k", 1, "--kernel", name, "--quiet").returncode == 0]


def test_same_bytes():
    with tempfile.TemporaryDirectory(prefix="shoal-portable-") as folder:
        fine(SHOAL, *WORK, "--kernel", "portable", "--centres", f"{folder}/wanted.npy", "--labels",
             f"{folder}/wanted.csv")
        kernels = kernels_here()
        assert "portable" in kernels, kernels
        for program in (SHARED, STATIC):
            for kernel in kernels:
                fine(program, *WORK, "--kernel", kernel, "--centres", f"{folder}/got.npy", "--labels",
                     f"{folder}/got.csv")
                for kind in ("npy", "csv"):
                    assert filecmp.cmp(f"{folder}/got.{kind}", f"{folder}/wanted.{kind}",
                                       False), f"{program}, {kernel}: .{kind}"


def test_no_cloud():
    for program in (SHARED, STATIC):
        for url in ("az://account/box", "s3://bucket/prefix?region=here"):
            refused(f"{url}: this is the portable build of shoal, which has no az:// or s3:// stores", program, "store",
                    "ls", url)


def test_no_hdf5():
    for program in (SHARED, STATIC):
        refused("plain is an HDF5 file, and this shoal was built without libhdf5", program, "data",
                "info", "tests/fuzz/corpus/hdf5/plain")


def test_modules():
    """The shared one loads a module, the static one says that it does not."""
    with tempfile.TemporaryDirectory(prefix="shoal-portable-") as folder:
        fine("cc", "-shared", "-fPIC", "-I", "include", "-o", f"{folder}/sum.so", "examples/sum_rows.c")
        data = ["gen:uniform?rows=1000&cols=3", "-o"]
        fine(SHOAL, "run", f"{folder}/sum.so", *data, f"{folder}/wanted.npy")
        fine(SHARED, "run", f"{folder}/sum.so", *data, f"{folder}/got.npy")
        assert filecmp.cmp(f"{folder}/wanted.npy", f"{folder}/got.npy", False)
        done = run(STATIC, "run", f"{folder}/sum.so", *data, f"{folder}/none.npy")
        assert done.returncode != 0 and "the static build of shoal, which cannot load modules" in done.stderr, done
        assert "sum.so" in done.stderr and not os.path.exists(f"{folder}/none.npy"), done


# ---- on other machines -----------------------------------------------------------------------------------------------

# Processes of the new root have a namespace of their own, so that its /proc shows them and all end with the first one.
ENTER = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
BARE = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}  # all that the environment says


def how_to_enter(root):
    """The command that runs another one with its root there; None where that is not allowed."""
    for enter in (ENTER, ENTER + ["--map-root-user"]):
        if run(*enter, "chroot", root, "/shoal", "--version", env=BARE).returncode == 0:
            return enter
    return None


def compare_root(root, wanted):
    for name in ("centres.npy", "labels.npy"):
        assert filecmp.cmp(f"{root}/{name}", f"{wanted}/{name}", False), f"{root}/{name}"


def test_elsewhere():
    busybox = shutil.which("busybox")
    with tempfile.TemporaryDirectory(prefix="shoal-root-") as folder:
        wanted, bare, other = f"{folder}/wanted", f"{folder}/bare", f"{folder}/other"
        outputs = ["--centres", "centres.npy", "--labels", "labels.npy"]
        for root in (wanted, bare, other):
            os.makedirs(f"{root}/proc")
        shutil.copy(STATIC, f"{bare}/shoal")
        enter = how_to_enter(bare)
        if not enter:
            print("left out: a root folder of its own (not allowed here)")
            return
        fine(SHOAL, *WORK, *outputs, cwd=wanted)
        fine(*enter, "chroot", bare, "/shoal", *WORK, *outputs, env=BARE)
        compare_root(bare, wanted)
        if not busybox:
            print("left out: busybox (Debian: busybox-static)")
            return
        os.makedirs(f"{other}/bin")
        os.makedirs(f"{other}/dev")
        pathlib.Path(f"{other}/dev/null").touch()  # a file does as well
        for name in ("busybox", "sh", "mount"):
            shutil.copy(busybox, f"{other}/bin/{name}")
        shutil.copy(STATIC, f"{other}/bin/shoal")
        # The job's workers, too, are this program; who starts them finds it by /proc.
        script = 'mount -t proc proc /proc && exec shoal "$@" --store dir:/store --workers local:2'
        fine(*enter, "chroot", other, "/bin/sh", "-c", script, "sh", *WORK, *outputs, env=BARE)
        compare_root(other, wanted)


def main():
    if not STATIC.exists():
        print(f"{STATIC} is not here: skipped")
        return 77
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(f"ok {name}")
    return 0


sys.exit(main())
