#!/usr/bin/python3
# shoal data split and shuffle as people use them: sizes and proportions are those of scikit-learn's train_test_split,
# text keeps its lines, files are replaced only by more of the same, and wrong input is refused by one sentence.
# Labels: quick asan
#   test_data_split.py PATH_TO_shoal
import csv
import gzip
import json
import os
import pathlib
import random
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
folder = pathlib.Path(tempfile.mkdtemp(prefix="shoal-split-"))
os.chdir(folder)
passed = failed = 0


def check(what, condition, more=""):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {what} {more}")


def shoal(*words, stdin=None):
    return subprocess.run([program, "data", *map(str, words)], capture_output=True, timeout=120, input=stdin)


def does(*words, stdin=None):
    result = shoal(*words, stdin=stdin)
    check(f"shoal data {' '.join(map(str, words))}", result.returncode == 0, result.stderr)
    return result.stdout


def refused(code, parts, *words):
    """One sentence that has every part, and no file that was not there."""
    before = sorted(os.listdir())
    result = shoal(*words)
    lines = [line for line in result.stderr.decode().splitlines() if not line.startswith("try 'shoal")]
    told = f"shoal data {' '.join(map(str, words))} exits {result.returncode}: {result.stderr.decode()!r}"
    check("refused", result.returncode == code and len(lines) == 1 and result.stdout == b"", told)
    for part in [parts] if isinstance(parts, str) else parts:
        check(f"says {part!r}", part in lines[0], told)
    check("leaves no file", sorted(os.listdir()) == before, told)


def lines_of(path):
    return pathlib.Path(path).read_bytes().splitlines(keepends=True)


def write_flowers():
    generator = random.Random(1)
    with open("flowers.csv", "w", newline="\n") as file:
        file.write('petal,species,"note, free"\n')
        for i in range(143):
            kind = generator.choices(["setosa", "versi color", "æble"], [5, 3, 1])[0]
            note = ['"said ""so"""', '"two\nlines"', "", "NA", "x;y"][i % 5]
            file.write(f"{i}.50,{kind},{note}\n")


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def text_keeps_its_rows():
    write_flowers()
    whole = rows_of("flowers.csv")
    told = does("split", "flowers.csv", "train.csv", "test.csv", "--test", 0.2, "--stratify", "species", "--seed", 1)
    check("summary", told == b"114 rows to train.csv, 29 to test.csv; 3 classes of column species of flowers.csv\n",
          told)
    train, test = rows_of("train.csv"), rows_of("test.csv")
    check("headers", train[0] == test[0] == whole[0])
    check("all rows, once", sorted(train[1:] + test[1:]) == sorted(whole[1:]))
    text = pathlib.Path("flowers.csv").read_bytes()
    sizes = [os.path.getsize(f"{name}.csv") for name in ("train", "test")]
    check("bytes", len(text) + len(text.splitlines()[0]) + 1 == sum(sizes), sizes)
    check("mixed", [row[0] for row in train[1:]] != sorted((row[0] for row in train[1:]), key=float))
    # The same rows in any format, at any limit of memory, by number or name, from a pipe, compressed or not.
    with gzip.open("flowers.csv.gz", "wb") as file:
        file.write(text)
    options = ["--test_size", "29", "--stratify", 2, "--random-state", 1]
    for source, more in (("flowers.csv", ["--memory", 1]), ("flowers.csv", ["--memory", 4000]), ("flowers.csv.gz", [])):
        does("split", source, "a.csv", "b.csv", *options, *more)
        same = lines_of("a.csv") == lines_of("train.csv") and lines_of("b.csv") == lines_of("test.csv")
        check(f"{source} {more}", same)
    told = json.loads(does("split", "-", "a.csv", "b.csv", *options, "--json", stdin=text))
    check("from a pipe", lines_of("a.csv") == lines_of("train.csv"))
    check("json", told["rows"] == 143 and told["train"] == {"path": "a.csv", "rows": 114} and
          [one["class"] for one in told["classes"]] == ["setosa", "versi color", "æble"], told)
    does("split", "flowers.csv", "a.npy", "b.tsv.gz", *options, "--columns", "petal")
    check("as numbers", np.load("a.npy").tolist() == [[float(row[0])] for row in train[1:]])
    check("as packed text", gzip.open("b.tsv.gz").read().split()[1:] == [row[0].encode() for row in test[1:]])
    refused(1, ["line 2, column 2 (species)", "--drop-column species"], "split", "flowers.csv", "c.npy", "d.npy")


def delimiters_follow_the_endings():
    pathlib.Path("semi.csv").write_bytes(b"a;b\r\n1;x,y\r\n2;z\r\n3;w\r\n")
    does("shuffle", "semi.csv", "semi-2.csv", "--seed", 3)
    check("semicolons stay", sorted(lines_of("semi-2.csv")[1:]) == sorted(lines_of("semi.csv")[1:]))
    does("shuffle", "semi.csv", "semi.tsv", "--seed", 3)
    check("tabs", sorted(lines_of("semi.tsv")) == sorted([b"a\tb\r\n", b'1\t"x,y"\r\n', b"2\tz\r\n", b"3\tw\r\n"]))
    check("standard output", does("shuffle", "semi.csv", "-", "--seed", 3) == pathlib.Path("semi-2.csv").read_bytes())
    check("pipes", does("shuffle", "-", "-", "--seed", 3, stdin=pathlib.Path("semi.csv").read_bytes()) ==
          pathlib.Path("semi-2.csv").read_bytes())


def arrays_and_labels_stay_together():
    images = np.arange(500 * 6, dtype="u2").reshape(500, 2, 3)
    labels = (np.arange(500) % 7).astype("i4")
    np.save("images.npy", images)
    np.save("labels.npy", labels)
    for name in ("images", "labels"):
        parts = f"{name}-1.npy", f"{name}-2.npy"
        does("split", f"{name}.npy", *parts, "--test", 70, "--stratify", "labels.npy", "--seed", 4)
    for part in ("1", "2"):
        x, y = np.load(f"images-{part}.npy"), np.load(f"labels-{part}.npy")
        check("types", x.dtype == np.uint16 and y.dtype == np.int32 and x.shape[1:] == (2, 3) and y.ndim == 1)
        check("rows and labels", np.array_equal(labels[x[:, 0, 0] // 6], y))
        check("proportions", np.ptp(np.bincount(y)) <= 2, np.bincount(y))
    does("shuffle", "images.npy", "mixed.npy", "--seed", 4)
    mixed = np.load("mixed.npy")
    check("shuffled", mixed.shape == images.shape and not np.array_equal(mixed, images) and
          np.array_equal(np.sort(mixed[:, 0, 0]), images[:, 0, 0]))
    does("split", "images.npy", "first.npy", "last.npy", "--test", 0.1, "--in-order")
    check("in order", np.array_equal(np.load("first.npy"), images[:450]))
    check("in order", np.array_equal(np.load("last.npy"), images[450:]))
    images.tofile("images.raw")
    does("split", "images.raw", "a.raw", "b.raw", "--cols", 6, "--type", "u2", "--test", 70, "--stratify", "labels.npy",
         "--seed", 4)
    check("raw", pathlib.Path("b.raw").read_bytes() == np.load("images-2.npy").tobytes())


def order_is_uniform():
    """Every row comes to every place about as often: chi squared with 49 degrees of freedom."""
    np.save("eight.npy", np.arange(8, dtype="u1"))
    counts = np.zeros((8, 8))
    for seed in range(160):
        counts[np.arange(8), [int(line) for line in does("shuffle", "eight.npy", "-", "--seed", seed).split()]] += 1
    chi = ((counts - 20)**2 / 20).sum()
    check("uniform", chi < 110, chi)


def sizes_are_scikit_learns():
    try:
        from sklearn.model_selection import train_test_split
    except ImportError as error:
        print(f"{error}: skipped; Debian has python3-sklearn")
        return
    generator = np.random.default_rng(5)
    for rows in (7, 30, 143, 1000):
        labels = generator.choice(4, rows, p=[.55, .3, .1, .05])
        labels[:8] = [0, 1, 0, 1, 0, 1, 0] if rows == 7 else [0, 1, 2, 3, 0, 1, 2, 3]  # each class needs two
        np.save("y.npy", labels.astype("i8"))
        for test, train in ((0.25, None), (0.1, None), (0.07, None), (0.5, 0.3), (rows // 3 + 2, None), (None, 0.6)):
            options = [word for name, size in (("--test", test), ("--train", train)) if size for word in (name, size)]
            for stratify in ([], ["--stratify", 1]):
                try:
                    a, b = train_test_split(labels, test_size=test, train_size=train, random_state=0,
                                            stratify=labels if stratify else None)
                except ValueError as error:
                    refused(1, "y.npy", "split", "y.npy", "none-1.npy", "none-2.npy", *options, *stratify)
                    continue
                does("split", "y.npy", "y1.npy", "y2.npy", *options, *stratify, "--force")
                c, d = np.load("y1.npy"), np.load("y2.npy")
                what = f"{rows} rows {options} {stratify}"
                check(f"sizes of {what}", len(a) == len(c) and len(b) == len(d), (len(a), len(c), len(b), len(d)))
                for ours, theirs in ((c, a), (d, b)):
                    more = np.abs(np.bincount(ours, minlength=4) - np.bincount(theirs, minlength=4))
                    check(f"classes of {what}", not stratify or more.max() <= 1, more)


def old_files_are_replaced_by_more_of_the_same():
    write_flowers()
    does("split", "flowers.csv", "x.csv", "y.csv", "--seed", 1)
    does("split", "flowers.csv", "x.csv", "y.csv", "--seed", 2, "--test", 0.5)
    does("shuffle", "flowers.csv", "x.csv")
    typed = lines_of("flowers.csv")[0] + b"7.0,setosa,typed\n"
    for text in (b"mine\n1\n", typed, b"".join(lines_of("x.csv")[:-1]) + b"9"):
        pathlib.Path("x.csv").write_bytes(text)
        refused(2, ["OUT x.csv", "--force"], "shuffle", "flowers.csv", "x.csv")
        check("old file stays", pathlib.Path("x.csv").read_bytes() == text)
    does("shuffle", "flowers.csv", "x.csv", "--force")
    np.save("z.npy", np.zeros((4, 2), "f4"))
    does("shuffle", "gen:uniform?rows=9&cols=3", "z.npy")
    refused(2, ["OUT z.npy", "float32"], "shuffle", "flowers.csv", "z.npy", "--columns", 1)


def wrong_input_is_refused():
    write_flowers()
    os.symlink("flowers.csv", "link.csv")
    refused(2, ["TRAIN a1.csv", "TEST ./a1.csv", "same file"], "split", "flowers.csv", "a1.csv", "./a1.csv")
    refused(2, ["never overwritten"], "split", "flowers.csv", "link.csv", "a1.csv")
    refused(2, ["never overwritten"], "shuffle", "flowers.csv", "flowers.csv", "--force")
    refused(2, ["TEST a1", ".npy, .csv"], "split", "absent.csv", "a1.csv", "a1")
    refused(1, ["absent.csv"], "split", "absent.csv", "a1.csv", "a2.csv")
    refused(2, ["split needs TEST"], "split", "flowers.csv", "a1.csv")
    refused(2, ["unexpected argument 'a3.csv'"], "split", "flowers.csv", "a1.csv", "a2.csv", "a3.csv")
    refused(2, ["both go to standard output"], "split", "flowers.csv", "-", "/dev/stdout")
    refused(2, ["standard output", "--json"], "shuffle", "flowers.csv", "-", "--json")
    refused(2, ["--test: '20%'", "0.2"], "split", "flowers.csv", "a1.csv", "a2.csv", "--test", "20%")
    refused(2, ["--test: 1.0"], "split", "flowers.csv", "a1.csv", "a2.csv", "--test", "1.0")
    refused(1, ["143 of the 143 rows", "none for training"], "split", "flowers.csv", "a1.csv", "a2.csv", "--test", 143)
    refused(2, ["\"specie\"", "\"species\""], "split", "flowers.csv", "a1.csv", "a2.csv", "--stratify", "specie")
    refused(1, ["class 0.5 of column petal of flowers.csv has 1 row"], "split", "flowers.csv", "a1.csv", "a2.csv",
            "--stratify", "petal")
    with open("/dev/full", "wb") as full:
        result = subprocess.run([program, "data", "shuffle", "flowers.csv", "-"], stdout=full, stderr=subprocess.PIPE,
                                timeout=120)
    check("a full disk behind standard output", result.returncode == 1 and
          result.stderr.startswith(b"shoal: standard output: can't write: No space left"), result)
    pathlib.Path("holes.csv").write_text("a,kind\n1,x\n2,\n3,x\n4,NA\n")
    refused(1, ["2 values of column kind of holes.csv are missing", "row 2"], "split", "holes.csv", "a1.csv", "a2.csv",
            "--stratify", -1)
    refused(2, ["column", "\"petals\"", "did you mean \"petal\""], "split", "flowers.csv", "a1.csv", "a2.csv",
            "--columns", "petals")
    pathlib.Path("ragged.csv").write_text("a,b\n1,2\n3\n")
    refused(1, "ragged.csv: line 3 has fewer fields", "shuffle", "ragged.csv", "a1.csv")
    np.save("nan.npy", np.array([[1, 2.], [3, np.nan], [5, 2]]))
    refused(1, ["1 value of column 2 of nan.npy is missing", "row 2"], "split", "nan.npy", "a1.npy", "a2.npy",
            "--stratify", 2)
    does("shuffle", "nan.npy", "kept.npy")
    check("NaN stays", np.isnan(np.load("kept.npy")).sum() == 1)


for test in (text_keeps_its_rows, delimiters_follow_the_endings, arrays_and_labels_stay_together, order_is_uniform,
             sizes_are_scikit_learns, old_files_are_replaced_by_more_of_the_same, wrong_input_is_refused):
    test()
subprocess.run(["rm", "-r", folder])
print(f"{passed} checks passed, {failed} failed")
sys.exit(failed > 0)
