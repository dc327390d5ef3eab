#!/usr/bin/python3
# Files that other programs write: numpy's .npz, scipy's .mat, FAISS's vectors, scikit-learn's svmlight, h5py's HDF5.
# What shoal makes of them has the bits that their own readers give.  Labels: quick asan
#   test_data_formats.py PATH_TO_shoal
import json
import os
import pathlib
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
folder = pathlib.Path(tempfile.mkdtemp(prefix="shoal-formats-"))
passed = failed = 0


def check(what, condition, more=""):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {what} {more}")


def shoal(*words, **settings):
    return subprocess.run([program, *map(str, words)], capture_output=True, timeout=120, text=True,
                          env=os.environ | settings)


def convert(source, *options):
    result = shoal("data", "convert", source, folder / "out.npy", "--force", *options)
    if result.returncode != 0:
        print(result.stderr.strip())
        return np.zeros(0)
    return np.load(folder / "out.npy")


def info(source):
    result = shoal("data", "info", source, "--json")
    return json.loads(result.stdout) if result.returncode == 0 else {"error": result.stderr}


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def refused(what, path, *parts, **settings):
    """One line on standard error that names the file and says each part; nothing else, and no file."""
    result = shoal("data", "convert", path, folder / "never.npy", **settings)
    lines = [line for line in result.stderr.splitlines() if not line.startswith("try 'shoal")]
    check(what, result.returncode in (1, 2) and len(lines) == 1 and not (folder / "never.npy").exists(), result.stderr)
    for part in (os.path.basename(path).split(":")[0], *parts):
        check(f"{what} says '{part}'", part in result.stderr, result.stderr)


# ---- svmlight ------------------------------------------------------------------------------------------------------


def test_svmlight():
    try:
        from sklearn.datasets import dump_svmlight_file, load_svmlight_file
    except ImportError as error:
        print(f"{error}: skipped; Debian has python3-sklearn")
        return
    generator = np.random.default_rng(1)
    values = generator.standard_normal((300, 40)) * 10.0**generator.integers(-30, 30, (300, 40))
    values[generator.random(values.shape) < 0.7] = 0
    values[:, -1] = 1  # so that the last column is there
    labels = generator.integers(-1, 4, 300).astype(float)
    path = folder / "rows.svm"
    for zero_based in (True, False):
        for query in (None, np.arange(300)):
            dump_svmlight_file(values, labels, str(path), zero_based=zero_based, comment="by a test", query_id=query)
            rows, target = load_svmlight_file(str(path))
            expected = np.column_stack([rows.toarray(), target])
            check(f"svmlight zero_based={zero_based} query={query is not None}", same(convert(path), expected))
    about = info(path)
    check("info of svmlight", about.get("format") == "svmlight" and about.get("names", [""])[-1] == "label", about)

    # Training and test files whose last features nobody has: the model says how many there are.
    labels = (values[:, 3] > 0).astype(float) + (values[:, 5] > 0)
    values = np.sign(values)
    np.save(folder / "rows.npy", np.column_stack([values, labels]))
    dump_svmlight_file(values, labels, str(path), zero_based=False)
    fewer = values[:50].copy()
    fewer[:, -1] = 0
    dump_svmlight_file(fewer, labels[:50], str(folder / "fewer.svm"), zero_based=False)
    np.save(folder / "fewer.npy", fewer)
    for learner, options in (("logistic", []), ("kmeans", ["-k", "3"])):
        model, predicted = folder / f"{learner}.safetensors", folder / "predicted.npy"
        result = shoal(learner, path, *options, "--model", model)
        check(f"{learner} of svmlight", result.returncode == 0, result.stderr)
        check(f"{learner} tells of the label", ("left out 'label'" in result.stdout) == (learner == "kmeans"), result)
        answers = []
        for rows in ("fewer.svm", "fewer.npy"):
            result = shoal("predict", model, folder / rows, "--labels", predicted, "--force")
            check(f"predict of {rows} by {learner}", result.returncode == 0, result.stderr)
            answers.append(np.load(predicted) if result.returncode == 0 else rows)
        check(f"predictions of {learner} agree", np.array_equal(*answers))


# ---- HDF5 ----------------------------------------------------------------------------------------------------------

TYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"]


def sample(kind, shape):
    generator = np.random.default_rng(len(shape) + shape[0])
    if kind[-2] == "f":
        values = generator.standard_normal(shape) * 10.0**generator.integers(-9, 4, shape)
        values.flat[:3] = [np.inf, -0.0, -np.inf]
        return values.astype(kind)
    if kind[-2] == "b":
        return generator.integers(0, 2, shape).astype(kind)
    limits = np.iinfo(kind)
    return generator.integers(limits.min, limits.max, shape, dtype=kind[-2:], endpoint=True).astype(kind)


def rows_of(array):
    """As shoal has it: native order, float16 as float32."""
    kind = array.dtype.newbyteorder("=")
    return np.ascontiguousarray(array.astype("f4" if kind == np.float16 else kind))


def hdf5_arrays(h5py):
    """Every type, byte order and way of storing, as h5py reads it itself."""
    storages = [{}, {"chunks": (7, 4)}, {"chunks": (7, 4), "compression": "gzip"},
                {"chunks": (7, 4), "compression": "gzip", "shuffle": True}, {"chunks": (16, 13), "compression": "gzip"},
                {"chunks": (7, 4), "fletcher32": True}, {"chunks": (7, 4), "shuffle": True}, {"chunks": (16, 13)}]
    with h5py.File(folder / "arrays.h5", "w") as file:
        for kind in TYPES:
            for order in "<>":
                for i, storage in enumerate(storages if kind in ("f4", "i2") else [storages[0], storages[3]]):
                    file.create_dataset(f"{kind}/{order}/{i}", data=sample(order + kind, (50, 13)), **storage)
        file.create_dataset("deep/images", data=sample("u1", (20, 9, 11)), chunks=(3, 4, 11), compression="gzip")
        file["line"] = np.arange(7.0)
        file.create_dataset("some", (50, 13), "f4", chunks=(7, 4), fillvalue=7)[:8] = 1
        file.create_dataset("none", (50, 13), "f8", fillvalue=3)
        file.create_dataset("growing", data=sample("i2", (50, 13)), maxshape=(None, 13))
        file.create_dataset("part_filters", data=sample("i4", (4, 6)), chunks=(4, 3), compression="gzip")
        chunk = file["part_filters"][:, :3]
        file["part_filters"].id.write_direct_chunk((0, 0), np.ascontiguousarray(chunk).tobytes(), filter_mask=1)
        names = []
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    with h5py.File(folder / "arrays.h5") as file:
        for name in names:
            check(f"HDF5 {name}", same(convert(f"{folder}/arrays.h5:{name}"), rows_of(file[name][:])))
    about = [info(f"{folder}/arrays.h5:{name}").get("detail", "") for name in ("/f4/</0", "f2/</0", "f8/>/0", "f4/</2")]
    for detail, part in zip(about, ("mapped", "float16 read as float32", "other byte order", "compressed chunks")):
        check(f"HDF5 detail '{part}'", part in detail, detail)
    listed = shoal("data", "info", folder / "arrays.h5")
    check("HDF5 lists its arrays", listed.returncode == 0 and "/deep/images: 20x9x11 uint8" in listed.stdout, listed)


def hdf5_one_and_several(h5py):
    """One array needs no name, learners read it where it lies, and the sentence about several shows what to write."""
    rows = np.random.default_rng(5).integers(0, 5, (60, 4)).astype(float)
    np.save(folder / "one.npy", rows)
    with h5py.File(folder / "one.h5", "w") as file:
        file["only"] = rows
        file["name"] = "a text beside it"
        file["again"] = h5py.SoftLink("/only")
        file["away"] = h5py.ExternalLink("arrays.h5", "/line")
        file["circle/back"] = file["/"]
    same_run = [shoal("kmeans", folder / name, "-k", 3, "--labels", folder / "out.npy", "--force").returncode
                or np.load(folder / "out.npy").tolist() for name in ("one.h5", "one.npy", "one.h5:only")]
    check("k-means of HDF5 is that of npy", same_run[0] == same_run[1] == same_run[2] != 1, same_run)
    refused("a text of HDF5", f"{folder}/one.h5:name", "text")
    refused("a link to another file", f"{folder}/one.h5:away", "a link to another file")
    refused("a link to another name", f"{folder}/one.h5:again", "a link to another name")
    refused("a name that is not there", f"{folder}/one.h5:onyl", 'no array "onyl"', "did you mean",
            "/only 60x4 float64")
    with h5py.File(folder / "several.h5", "w") as file:
        file["train/x"] = rows
        file["train/y"] = rows[:, 0]
    refused("several arrays", folder / "several.h5", "2 arrays: /train/x 60x4 float64, /train/y 60 float64",
            f"as in {folder}/several.h5:/train/x")


def hdf5_refused(h5py):
    with h5py.File(folder / "odd.h5", "w") as file:
        file["text"] = np.array([b"a", b"bc"])
        file["words"] = ["a", "b"]
        file["complex"] = np.ones(3, "c8")
        file["table"] = np.zeros(3, [("a", "f4"), ("b", "i4")])
        file["single"] = 3.0
        file["empty"] = h5py.Empty("f4")
        file.create_dataset("lists", (2, ), h5py.vlen_dtype("i4"))
        file["arrow"] = np.array([file["single"].ref], h5py.ref_dtype)
        file.create_dataset("lzf", data=np.ones((50, 4)), chunks=(5, 4), compression="lzf")
        file.create_dataset("huge", (2**30, 2**20), "f8", chunks=(1024, 1024))
        file.create_dataset("overflow", (2**40, 2**40), "f8", chunks=(1024, 1024))
        file.create_dataset("outside", (4, 3), "f8", external=[(str(folder / "one.npy"), 0, 96)])
        layout = h5py.VirtualLayout((60, 4), "f8")
        layout[:] = h5py.VirtualSource(str(folder / "one.h5"), "only", (60, 4))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("nothing", (0, 3), "f4")
    for name, part in [("text", "text"), ("words", "text"), ("complex", "complex numbers"), ("table", "compound"),
                       ("single", "a single value"), ("empty", "empty"), ("lists", "lists of different length"),
                       ("arrow", "references"), ("lzf", "the filter lzf (number 32000)"), ("huge", "never written"),
                       ("overflow", "bits"), ("outside", "in other files"), ("virtual", "in other files"),
                       ("nothing", "there are no rows")]:
        refused(f"HDF5 {name}", f"{folder}/odd.h5:{name}", part)
    whole = (folder / "arrays.h5").read_bytes()
    (folder / "cut.h5").write_bytes(whole[:len(whole) // 2])
    refused("a cut HDF5 file", folder / "cut.h5", "cut off")
    (folder / "start.h5").write_bytes(whole[:600])
    refused("the start of an HDF5 file", folder / "start.h5", "cut off")
    with h5py.File(folder / "bad.h5", "w") as file:
        file.create_dataset("x", data=sample("f8", (5000, 13)), chunks=(50, 13), compression="gzip")
        middle = file["x"].id.get_chunk_info(50).byte_offset
    broken = bytearray((folder / "bad.h5").read_bytes())
    broken[middle + 20:middle + 60] = bytes(40)
    (folder / "bad.h5").write_bytes(broken)
    refused("a damaged chunk", folder / "bad.h5", "the rows of /x can't be read")
    compressed = subprocess.run(["gzip", "-c", folder / "one.h5"], capture_output=True, check=True).stdout
    (folder / "one.h5.gz").write_bytes(compressed)
    refused("a compressed HDF5 file", folder / "one.h5.gz", "a plain file")
    refused("no libhdf5", folder / "one.h5", "is an HDF5 file", "libhdf5", "h5py", SHOAL_HDF5_LIBRARY="/nowhere.so")


def hdf5_matlab(h5py):
    """As MATLAB -v7.3 writes: a page of text before the file, dimensions in reverse order, classes as attributes."""

    def put(file, name, array, kind, **attributes):
        file.create_dataset(name, data=array.T, **attributes).attrs["MATLAB_class"] = np.bytes_(kind)

    numbers, images = sample("f8", (30, 7)), sample("u1", (5, 4, 3))
    with h5py.File(folder / "new.mat", "w", userblock_size=512) as file:
        put(file, "X", numbers, "double")
        put(file, "Z", numbers, "double", chunks=(3, 8), compression="gzip")
        put(file, "images", images, "uint8")
        put(file, "flags", numbers > 0, "logical")
        del file["flags"]
        put(file, "flags", (numbers > 0).astype("u1"), "logical")
        put(file, "name", np.array([[104, 105]], "u2"), "char")
        file.create_group("s").attrs["MATLAB_class"] = np.bytes_("struct")
        file.create_group("sp").attrs["MATLAB_sparse"] = np.uint64(3)
    with open(folder / "new.mat", "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\2IM")
    for name, expected in [("X", numbers), ("Z", numbers), ("images", images), ("flags", numbers > 0)]:
        check(f"MATLAB 7.3 {name}", same(convert(f"{folder}/new.mat:{name}"), rows_of(expected)))
    for name, part in [("name", "text"), ("s", "a struct"), ("sp", "a sparse matrix")]:
        refused(f"MATLAB 7.3 {name}", f"{folder}/new.mat:{name}", part)
    check("MATLAB 7.3 detail", "MATLAB 7.3" in info(f"{folder}/new.mat:X").get("detail", ""))


def test_hdf5():
    try:
        import h5py
    except ImportError as error:
        print(f"{error}: skipped; Debian has python3-h5py")
        return
    probe = shoal("data", "info", "tests/fuzz/corpus/hdf5/plain")
    if "built without" in probe.stderr:
        print("built without libhdf5: its files are left out")
        return
    hdf5_arrays(h5py)
    hdf5_one_and_several(h5py)
    hdf5_refused(h5py)
    hdf5_matlab(h5py)


# ---- numpy's archives ----------------------------------------------------------------------------------------------


def test_npz():
    """Every type and order, stored and deflated; learners and workers read them where they lie."""
    arrays = {kind + order.replace("<", "l").replace(">", "b"): sample(order + kind, (50, 13))
              for kind in TYPES for order in "<>"}
    arrays |= {"fortran": np.asfortranarray(arrays["f8l"]), "images": sample("u1", (20, 9, 11)), "line": np.arange(7.0)}
    for save in (np.savez, np.savez_compressed):
        save(folder / "all.npz", **arrays)
        for name, array in np.load(folder / "all.npz").items():
            check(f"{save.__name__} {name}", same(convert(f"{folder}/all.npz:{name}"), rows_of(array)))
    check("float16 of .npy", all(same(convert(save_npy(order)), rows_of(arrays["f2" + order])) for order in "lb"))
    rows = np.random.default_rng(5).integers(0, 5, (60, 4)).astype(float)
    np.savez(folder / "two.npz", rows_of_it=rows, y=(rows[:, 0] > 2).astype(int))  # by its name, aligned
    np.save(folder / "x.npy", rows)
    np.save(folder / "y.npy", (rows[:, 0] > 2).astype(int))
    models = []
    for x, y in (("two.npz:rows_of_it", "two.npz:y"), ("x.npy", "y.npy")):
        result = shoal("logistic", folder / x, "--target", folder / y, "--model", folder / "m.safetensors", "--force")
        check(f"logistic of {x}", result.returncode == 0, result.stderr)
        models.append(result.returncode or (folder / "m.safetensors").read_bytes())
    check("a model of .npz is that of .npy", models[0] == models[1])
    labels = []
    check("a member is mapped", "mapped" in info(f"{folder}/two.npz:rows_of_it").get("detail", ""))
    for x in ("two.npz:rows_of_it", "x.npy"):
        result = shoal("kmeans", folder / x, "-k", 3, "--workers", 2, "--labels", folder / "out.npy", "--force")
        labels.append(np.load(folder / "out.npy").tolist() if result.returncode == 0 else result.stderr)
    check("workers read .npz", labels[0] == labels[1], labels[0])
    refused("several arrays of .npz", folder / "two.npz", "2 arrays: rows_of_it 60x4 float64, y 60 int64",
            "two.npz:rows_of_it")
    result = subprocess.run([program, "data", "info", "-"], stdin=open(folder / "two.npz", "rb"), capture_output=True)
    check(".npz from a pipe", result.returncode == 1 and b"not from a pipe" in result.stderr, result.stderr)
    np.savez(folder / "odd.npz", o=np.array([1, None], dtype=object), c=np.ones(3, "c8"), d=np.zeros(2, "M8[s]"),
             r=np.zeros(2, [("a", "f4")]))
    for name, what in (("o", "Python objects"), ("c", "complex numbers"), ("d", "dates"), ("r", "records")):
        refused(f".npz {what}", f"{folder}/odd.npz:{name}", f"{name} is {what}")
    whole = bytearray((folder / "two.npz").read_bytes())
    whole[500] ^= 1
    (folder / "bad.npz").write_bytes(whole)
    refused("a damaged .npz", f"{folder}/bad.npz:rows_of_it", "it is damaged: the checksum")


def save_npy(order):
    np.save(folder / "half.npy", sample({"l": "<", "b": ">"}[order] + "f2", (50, 13)))
    return folder / "half.npy"


def test_scipy():
    try:
        import scipy.io
        import scipy.sparse
    except ImportError as error:
        print(f"{error}: skipped; Debian has python3-scipy")
        return
    matrix = scipy.sparse.csr_matrix(np.eye(5))
    scipy.sparse.save_npz(folder / "sparse.npz", matrix)
    refused("a sparse .npz", folder / "sparse.npz", "a sparse matrix of scipy", "toarray()")
    arrays = {kind.replace("b1", "flags"): sample("<" + kind, (50, 13)) for kind in TYPES if kind != "f2"}
    arrays |= {"images": sample("u1", (20, 9, 11)), "one": np.array([[3.0]]), "bytes": np.uint8([[1, 2], [3, 4]])}
    others = {"text": "hello", "s": {"a": 1}, "cell": np.array([1, "a"], dtype=object), "z": np.ones((2, 2), "c8"),
              "sparse": matrix, "empty": np.zeros((0, 3))}
    for compressed in (False, True):
        scipy.io.savemat(folder / "all.mat", arrays | others, do_compression=compressed)
        loaded = scipy.io.loadmat(folder / "all.mat")
        for name in arrays:
            expected = arrays[name] if name == "flags" else loaded[name]
            check(f"MATLAB {name}, compressed {compressed}",
                  same(convert(f"{folder}/all.mat:{name}"), rows_of(expected)))
        for name, what in (("text", "text"), ("s", "a struct"), ("cell", "a cell array"), ("z", "complex numbers"),
                           ("sparse", "a sparse matrix"), ("empty", "empty")):
            refused(f"MATLAB {what}", f"{folder}/all.mat:{name}", what)
    refused("several arrays of .mat", folder / "all.mat", "arrays: ", "f4 50x13 float32")


# ---- rows as FAISS keeps them --------------------------------------------------------------------------------------


def test_vecs():
    """As numpy reads them: each row behind its number of columns."""
    for ending, kind in (("fvecs", "f4"), ("bvecs", "u1"), ("ivecs", "i4")):
        rows, path = sample("<" + kind, (500, 13)), folder / f"rows.{ending}"
        path.write_bytes(b"".join(np.int32(13).tobytes() + row.tobytes() for row in rows))
        check(f".{ending}", same(convert(path), rows))
        path.rename(folder / "rows.bin")
        check(f"--type {ending}", same(convert(folder / "rows.bin", "--type", ending), rows))
        with open(folder / "rows.bin", "rb") as pipe:
            result = subprocess.run([program, "data", "convert", "-", folder / "out.npy", "--type", ending, "--force"],
                                    stdin=pipe, capture_output=True)
        check(f".{ending} from standard input", result.returncode == 0 and same(np.load(folder / "out.npy"), rows))
    (folder / "cut.fvecs").write_bytes((folder / "rows.bin").read_bytes()[:-1])
    refused("a cut .fvecs", folder / "cut.fvecs", "not a whole number of rows of 13 values")


# ---- what is not read ----------------------------------------------------------------------------------------------


def test_foreign():
    import pickle
    import sqlite3
    import zipfile
    (folder / "x.pkl").write_bytes(pickle.dumps(np.ones(3)))
    base = sqlite3.connect(folder / "x.db")
    base.execute("create table t (a)")
    base.commit()
    base.close()
    with zipfile.ZipFile(folder / "x.xlsx", "w") as file:
        file.writestr("xl/workbook.xml", "<workbook/>")
    (folder / "x.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    (folder / "x.parquet").write_bytes(b"PAR1\x15\x04\x15\x00PAR1")
    for name, *parts in (("x.pkl", "a pickle of Python", "never loaded", "pandas.read_pickle("),
                         ("x.db", "an SQLite database", "sqlite3 -csv"), ("x.xlsx", "an Excel workbook", "read_excel("),
                         ("x.jsonl", "a JSON file", "lines=True"), ("x.parquet", "a Parquet file", "read_parquet(")):
        refused(name, folder / name, *parts, "which shoal does not read; it reads npy, npz")
        result = shoal("kmeans", folder / name, "-k", 2)
        check(f"k-means of {name}", result.returncode == 1 and parts[0] in result.stderr, result.stderr)


def main():
    for name, function in sorted(globals().items()):
        if name.startswith("test_"):
            function()
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
