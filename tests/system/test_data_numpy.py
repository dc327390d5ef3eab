#!/usr/bin/python3
# numpy writes and shoal reads; shoal writes and numpy reads.  Labels: quick asan
#   test_data_numpy.py PATH_TO_shoal
# Prints one line for each failure and "N passed, M failed" at the end; parts that need ../shared say when it is absent.
import gzip
import io
import itertools
import json
import os
import pathlib
import struct
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
shared = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data"
folder = pathlib.Path(tempfile.mkdtemp(prefix="shoal-numpy-"))
passed = failed = 0
TYPES = ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"]


def check(what, condition, more=""):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {what} {more}")


def shoal(*words, stdin=None):
    return subprocess.run([program, "data", *map(str, words)], input=stdin, capture_output=True, timeout=120)


def info(path, *options):
    result = shoal("info", path, "--json", *options)
    return json.loads(result.stdout) if result.returncode == 0 else {"error": result.stderr.decode()}


def convert(source, target, *options, stdin=None):
    result = shoal("convert", source, folder / target, "--force", *options, stdin=stdin)
    if result.returncode != 0:
        print(result.stderr.decode().strip())
    return folder / target


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def sample(dtype, shape):
    generator = np.random.default_rng(len(shape) + shape[0])
    if dtype[-2] == "f":
        return (generator.standard_normal(shape) * 1e3).astype(dtype)
    if dtype[-2] == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return generator.integers(limits.min, limits.max, shape, dtype=dtype.lstrip("<>"), endpoint=True).astype(dtype)


def test_arrays():
    """Every type, byte order, axis order and number of dimensions arrives as numpy has it."""
    for kind, order, fortran, shape in itertools.product(TYPES, "<>", [False, True], [(7, ), (5, 3), (130, 70),
                                                                                      (3, 4, 5)]):
        if kind[1] == "1" and order == ">":
            continue
        array = sample(order + kind, shape)
        array = np.asfortranarray(array) if fortran else array
        path = folder / "in.npy"
        np.save(path, array)
        expected = np.ascontiguousarray(array.astype(kind))
        result = np.load(convert(path, "out.npy"))
        check(f"{order}{kind} fortran={fortran} {shape}", same(result, expected))
    about = info(path)
    wanted = {"format": "npy", "rows": 3, "columns": 20, "type": "bool", "bytes": 60, "path": str(path)}
    check("info of an npy file", all(about.get(key) == value for key, value in wanted.items()), about)
    check("the shape of a row", about.get("shape") == [4, 5], about)
    check("for people, too", b"\nshape     4 x 5\n" in shoal("info", path).stdout)
    copy = convert(path, "two.npy")
    check("a copy may be replaced by one", shoal("convert", path, copy).returncode == 0)
    chosen = np.load(convert(path, "out.npy", "--columns", "2-20"))
    check("a part of an array has no shape", chosen.shape == (3, 19), chosen.shape)
    array = sample("u1", (3, 4, 5))
    np.save(path, array)
    check("an array as idx and back", same(np.load(convert(convert(path, "out.idx"), "out.npy")), array))


def test_versions():
    for version in [(1, 0), (2, 0), (3, 0)]:
        array = np.arange(12, dtype="f4").reshape(3, 4)
        with open(folder / "v.npy", "wb") as file:
            np.lib.format.write_array(file, array, version=version)
        check(f"npy version {version}", same(np.load(convert(folder / "v.npy", "out.npy")), array))


def test_refused():
    """What is refused says why in one line that names the file, exits with 1 or 2, and leaves nothing behind."""
    np.save(folder / "complex.npy", np.ones(3, "c8"))
    np.save(folder / "text.npy", np.array(["a", "b"]))
    np.save(folder / "records.npy", np.zeros(2, [("x", "f4"), ("y", "i4")]))
    np.save(folder / "dates.npy", np.array(["2020-01-01"], "M8[D]"))
    np.save(folder / "single.npy", np.float64(3))
    np.save(folder / "norows.npy", np.ones((0, 3)))
    np.save(folder / "nocolumns.npy", np.ones((3, 0)))
    np.save(folder / "objects.npy", np.array([{}, None], object), allow_pickle=True)
    np.save(folder / "whole.npy", np.ones((30, 3)))
    whole = (folder / "whole.npy").read_bytes()
    (folder / "cut.npy").write_bytes(whole[:-1])
    (folder / "long.npy").write_bytes(whole + b"x")
    (folder / "cut.csv.gz").write_bytes(gzip.compress(b"1,2\n" * 1000)[:-9])
    (folder / "ragged.csv").write_text("1,2\n3\n")
    (folder / "word.csv").write_text("1,2\n3,cat\n")
    (folder / "hole.csv").write_text("1,2\n3,\n")
    (folder / "empty.csv").write_text("")
    names = "complex text records dates single norows nocolumns objects cut long".split()
    paths = [folder / f"{name}.npy" for name in names]
    paths += [folder / name for name in ["cut.csv.gz", "ragged.csv", "word.csv", "hole.csv", "empty.csv", "absent.npy"]]
    for path in paths + [folder]:
        result = shoal("convert", path, folder / "never.npy")
        text = result.stderr.decode()
        check(f"{path.name} is refused", result.returncode == 1 and str(path) in text and text.count("\n") == 1, text)
    for words in [["gen:uniform?rows=3", "x.npy"], [folder / "whole.npy", "x.jpg"], ["gen:other", "x.npy"]]:
        result = shoal("convert", words[0], folder / words[1])
        check(f"{words} is wrong use", result.returncode == 2, result.stderr)
    check("nothing is left behind", not list(folder.glob("never*")) and not list(folder.glob("*.tmp-*")))


def test_text():
    """Text of numpy is read to the bit, whatever the delimiter, with and without header and gzip."""
    array = np.random.default_rng(5).standard_normal((500, 7)) * np.logspace(-300, 300, 7)
    for delimiter, ending in [(",", "csv"), ("\t", "tsv"), (" ", "txt"), (";", "csv"), (", ", "csv")]:
        for header, fmt in [("", "%.18e"), ("a b c d e f g".replace(" ", delimiter), "%r"), ("", "%.5g")]:
            text = io.StringIO()
            if fmt == "%r":
                rows = [delimiter.join(repr(float(x)) for x in row) for row in array]
                text.write(header + "\n" + "\n".join(rows))
                expected = array
            else:
                np.savetxt(text, array, fmt=fmt, delimiter=delimiter, header=header)
                expected = np.array([[float(fmt % x) for x in row] for row in array])
            path = folder / f"t.{ending}"
            path.write_text(text.getvalue())
            check(f"text {delimiter!r} {fmt}", same(np.load(convert(path, "t.npy")), expected))
            path = folder / f"t.{ending}.gz"
            path.write_bytes(gzip.compress(text.getvalue().encode()))
            check(f"text {delimiter!r} {fmt} gzip", same(np.load(convert(path, "t.npy")), expected))
    check("text from standard input", same(np.load(convert("-", "t.npy", stdin=text.getvalue().encode())), expected))


def test_drop_column():
    (folder / "label.csv").write_text('x,"kind, of",y\n1,cat,2\n3,"dog, old",4\n')
    expected = np.array([[1.0, 2], [3, 4]])
    check("a column left out", same(np.load(convert(folder / "label.csv", "l.npy", "--drop-column", "2")), expected))
    (folder / "label.csv").write_text("x,kind,y\n1,cat,2\n3,dog,4\n")
    check("a named column left out",
          same(np.load(convert(folder / "label.csv", "l.npy", "--drop-column", "kind")), expected))
    result = shoal("convert", folder / "label.csv", folder / "l.npy", "--drop-column", "nine")
    check("a column that is not there", result.returncode == 2 and b'"nine"' in result.stderr)


def test_written_text():
    """Text that shoal writes is read by numpy as the same values."""
    for kind in TYPES:
        array = sample(kind, (40, 3))
        np.save(folder / "w.npy", array)
        for ending, delimiter in [("csv", ","), ("tsv", "\t"), ("txt", " "), ("csv.gz", ",")]:
            path = convert(folder / "w.npy", f"w.{ending}")
            kept = "f8" if kind == "b1" else kind
            result = np.loadtxt(path, dtype=kept, delimiter=delimiter)
            check(f"{kind} as {ending}", np.array_equal(result, array.astype(kept)))


def test_written_idx():
    codes = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}
    for kind, code in codes.items():
        array = sample(kind, (9, 4))
        np.save(folder / "w.npy", array)
        expected = bytes([0, 0, code, 2]) + struct.pack(">II", 9, 4) + array.astype(">" + kind).tobytes()
        check(f"{kind} as idx", convert(folder / "w.npy", "w.idx").read_bytes() == expected)
        check(f"{kind} as idx.gz", gzip.decompress(convert(folder / "w.npy", "w.idx.gz").read_bytes()) == expected)
        check(f"{kind} from idx", same(np.load(convert(folder / "w.idx", "w2.npy")), array))


def test_raw():
    for kind, order in itertools.product(TYPES, "<>"):
        array = sample(kind, (11, 6))
        array.astype(order + kind).tofile(folder / "r.bin")
        name = array.dtype.name if order == "<" else order + kind
        path = convert(folder / "r.bin", "r.npy", "--cols", 6, "--type", name)
        check(f"raw {order}{kind}", same(np.load(path), array))
        check(f"raw {kind} written", convert(path, "r.raw").read_bytes() == array.tobytes())


def test_generated():
    address = "gen:uniform?rows=300&cols=33&seed=7"
    whole = np.load(convert(address, "g.npy"))
    check("uniform", whole.dtype == np.float32 and whole.min() >= 0 and whole.max() < 1 and
          abs(whole.mean() - 0.5) < 0.02)
    lines = shoal("head", address, "-n", 5).stdout.decode().splitlines()
    check("head of generated data", np.array_equal(np.array([row.split("\t") for row in lines], "f4"), whole[:5]))
    longer = np.load(convert("gen:uniform?rows=400&cols=33&seed=7", "g.npy"))
    check("more rows change none", np.array_equal(longer[:300], whole))
    blobs = np.load(convert("gen:blobs?rows=5000&cols=4&centres=1&spread=2&type=float64", "g.npy"))
    check("blobs", np.all(np.abs(blobs.std(axis=0) - 2) < 0.1))


def test_head():
    np.save(folder / "h.npy", np.arange(60).reshape(20, 3))
    lines = shoal("head", folder / "h.npy").stdout.decode().splitlines()
    check("head", len(lines) == 10 and lines[1] == "3\t4\t5", lines)


def test_shared():
    if not shared.is_dir():
        print(f"{shared} is not here: real data are skipped")
        return
    for path in sorted((shared / "vectors" / "npy").glob("*.npy")):
        result = shoal("info", path)
        check(f"{path.name} is refused", result.returncode == 1 and b"objects" in result.stderr, result.stderr)
    path = shared / "mnist" / "t10k-images-idx3-ubyte.gz"
    expected = np.frombuffer(gzip.decompress(path.read_bytes())[16:], "u1").reshape(10000, 28, 28)
    check("MNIST", same(np.load(convert(path, "mnist.npy")), expected))
    path = shared / "clustering" / "optdigits.csv"
    expected = np.loadtxt(path, delimiter=",")
    check("optdigits", same(np.load(convert(path, "o.npy")), expected))
    check("optdigits, no class", same(np.load(convert(path, "o.npy", "--drop-column", 65)), expected[:, :64].copy()))
    for name in ["s1", "a3", "birch1", "unbalance"]:
        path = shared / "clustering" / f"{name}.data.gz"
        check(name, same(np.load(convert(path, "s.npy")), np.loadtxt(path)))
    path = shared / "patches" / "natural_5000x100.npy"
    check("patches", same(np.load(convert(path, "p.npy")), np.ascontiguousarray(np.load(path))))


for name, test in list(globals().items()):
    if name.startswith("test_"):
        try:
            test()
        except Exception as error:
            check(name, False, repr(error))
for path in folder.iterdir():
    path.unlink()
folder.rmdir()
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
