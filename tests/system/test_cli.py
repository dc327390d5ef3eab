#!/usr/bin/env python3
# Labels: quick asan
"""The program as a user meets it: exit codes, one-line errors, files that are whole or absent, signals, progress.

    test_cli.py PATH_TO_shoal [NAME...]

Every test runs in an empty folder of its own.  Nothing here waits by sleeping: a test reads what the program writes, or
polls for an event with a deadline.
"""
import fcntl
import gzip
import json
import os
import pty
import resource
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback

import numpy

import nobody  # so that no run is in the history of whoever runs this

SHOAL = os.path.abspath(sys.argv[1])
SECONDS = 600  # until something that never comes is a failure; generous, for sanitizers on a busy machine
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Done:
    def __init__(self, process, out, err):
        self.code, self.out, self.err = process.returncode, out, err


def run(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    process = subprocess.Popen([SHOAL, *map(str, arguments)], stdout=options.pop("stdout", subprocess.PIPE),
                               stderr=subprocess.PIPE, **options)
    out, err = process.communicate(timeout=SECONDS)
    return Done(process, out.decode() if out else "", err.decode())


def succeeds(*arguments, **options):
    done = run(*arguments, **options)
    assert done.code == 0, f"shoal {arguments} exits {done.code}: {done.err}"
    assert done.err == "", f"shoal {arguments} says on stderr: {done.err}"
    return done.out


def fails(code, says, *arguments, **options):
    """The exit code, one line on stderr that has every text of `says`, a hint after wrong usage, no new file."""
    before = sorted(os.listdir("."))
    done = run(*arguments, **options)
    lines = done.err.splitlines()
    told = f"shoal {' '.join(map(str, arguments))} exits {done.code} and says: {done.err!r}"
    assert done.code == code, f"{told}; expected {code}"
    assert len(lines) == (2 if code == 2 else 1), f"{told}; expected one line"
    assert lines[0].startswith("shoal: "), told
    assert code != 2 or lines[1].startswith("try 'shoal "), told
    for text in [says] if isinstance(says, str) else says:
        assert text in lines[0], f"{told}; expected {text!r}"
    assert all(0x20 <= ord(c) != 0x7F for line in lines for c in line), told
    assert done.out == "" or "stdout" in options, f"{told}; and prints {done.out!r}"
    assert sorted(os.listdir(".")) == before, f"{told}; and leaves {set(os.listdir('.')) - set(before)}"
    return lines[0]


def blobs(rows=60, columns=4, centres=3, seed=1):
    random = numpy.random.default_rng(seed)
    middle = random.normal(size=(centres, columns)) * 20
    return (middle[numpy.arange(rows) % centres] + random.normal(size=(rows, columns))).astype(numpy.float32)


def npy_with_header(name, header, body=b""):
    """A version 1 file whose header says whatever is wanted."""
    text = header.encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body)


def write(name, text):
    with open(name, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def read_safetensors(name):
    """A reader of the format that shares nothing with the program's."""
    with open(name, "rb") as file:
        content = file.read()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    metadata = header.pop("__metadata__", {})
    types = {"F64": "<f8", "F32": "<f4", "I32": "<i4"}
    tensors, values = {}, content[8 + length:]
    for key, entry in header.items():
        first, last = entry["data_offsets"]
        tensors[key] = numpy.frombuffer(values[first:last], types[entry["dtype"]]).reshape(entry["shape"])
    return tensors, metadata


# ---- usage ----------------------------------------------------------------------------------------------------------

@test
def the_five_lines_of_the_readme_run():
    """With fewer generated rows; in a folder that has the examples."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(f"{root}/README.md", encoding="utf-8") as file:
        lines = file.read().split("## Five lines of use\n\n")[1].split("\n\n")[0].splitlines()
    os.symlink(f"{root}/examples", "examples")
    assert len(lines) == 5
    for line in lines:
        words = shlex.split(line.replace("1e6", "1e3"), comments=True)
        assert words[0] == "build/shoal"
        succeeds(*words[1:])


@test
def wrong_usage_exits_2_with_a_hint():
    numpy.save("x.npy", blobs())
    fails(2, "needs a command")
    fails(2, ["unknown command 'kmean'", "did you mean 'kmeans'?"], "kmean", "x.npy")
    fails(2, ["unknown command 'data inf'", "'data info'"], "data", "inf", "x.npy")
    fails(2, "'data' needs a subcommand: info, head, convert, split, shuffle, patches, pack, verify or speed", "data")
    fails(2, "unknown option --bogus before the command", "--bogus")
    fails(2, "kmeans needs DATA", "kmeans", "-k", 3)
    fails(2, "needs -k K", "kmeans", "x.npy")
    succeeds("kmeans", "--kernel", "list")
    fails(2, "--device: 'gpu' is not auto", "kmeans", "x.npy", "-k", 3, "--device", "gpu", "--workers", "local:1",
          "--store", "store")
    fails(2, "--device: 'gpu' is not auto", "worker", "--device", "gpu", "--store", "store")
    fails(2, '--vary: "x" is an empty range: 1 is above 0', "sweep", "--vary", "x=1..0", "--run", "true {x}")
    fails(2, "has loss twice", "sweep", "--vary", "x=1..3", "--run", "true {x}", "--objective", "loss,loss")
    fails(2, "is longer than 255 bytes", "sweep", "--vary", "x=1..3", "--run", "true {x}", "--objective",
          256 * "a" + ":max")
    fails(2, "unexpected argument 'y.npy'", "kmeans", "x.npy", "y.npy", "-k", 3)
    fails(2, "predict needs DATA", "predict", "x.npy")
    fails(2, "data convert needs OUT", "data", "convert", "x.npy")
    fails(2, ["--iteration", "did you mean --iterations?"], "kmeans", "x.npy", "-k", 3, "--iteration", 5)
    fails(2, "-k must be at least 1, not 0", "kmeans", "x.npy", "-k", 0)
    fails(2, "-k must be at least 1, not -1", "kmeans", "x.npy", "-k", -1)
    fails(2, "-k: 'three' is not a number", "kmeans", "x.npy", "-k", "three")
    fails(2, "--tolerance: '1e-4x' is not a number", "kmeans", "x.npy", "-k", 3, "--tolerance", "1e-4x")
    fails(2, "--tolerance must be at least 0, not -1", "kmeans", "x.npy", "-k", 3, "--tolerance", -1)
    fails(2, "--threads must be at least 1, not 0", "kmeans", "x.npy", "-k", 3, "--threads", 0)
    fails(2, "--kernel: 'sse9' is not one of auto, portable", "kmeans", "x.npy", "-k", 3, "--kernel", "sse9")
    fails(2, "variable SHOAL_KERNEL: 'sse9' is not one of auto, portable", "kmeans", "x.npy", "-k", 3,
          env={**os.environ, "SHOAL_KERNEL": "sse9"})
    fails(2, ["--empty: 'keeep'", "did you mean keep?"], "kmeans", "x.npy", "-k", 3, "--empty", "keeep")
    fails(2, ["--init: 'kmeanspp'", "did you mean kmeans++?"], "kmeans", "x.npy", "-k", 3, "--init", "kmeanspp")
    fails(2, ["--picture-shape", "4x4"], "kmeans", "x.npy", "-k", 3, "--picture", "p.png", "--picture-shape", "4x4")
    fails(2, ["--picture-shape", "4by1"], "kmeans", "x.npy", "-k", 3, "--picture", "p.png", "--picture-shape", "4by1")


@test
def endings_choose_the_format():
    numpy.save("x.npy", blobs())
    kmeans = ["kmeans", "x.npy", "-k", 3, "--quiet"]
    succeeds(*kmeans, "--labels", "l.npy", "--centres", "c.npy")
    labels, centres = numpy.load("l.npy"), numpy.load("c.npy")
    for ending, delimiter in ((".csv", ","), (".tsv", "\t"), (".txt", " "), (".csv.gz", ",")):
        succeeds(*kmeans, "--labels", "l" + ending, "--centres", "c" + ending)
        assert (numpy.loadtxt("l" + ending, delimiter=delimiter) == labels).all()
        assert (numpy.loadtxt("c" + ending, delimiter=delimiter) == centres).all()
    succeeds(*kmeans, "--labels", "l.idx")
    assert open("l.idx", "rb").read() == b"\0\0\x0c\1" + struct.pack(">I", 60) + labels.astype(">i4").tobytes()
    assert succeeds(*kmeans, "--labels", "-") == open("l.csv").read()
    assert succeeds("predict", "c.csv", "x.npy", "--quiet", "--labels", "-") == open("l.csv").read()
    lines = succeeds(*kmeans, "--trace", "-").splitlines()
    assert all("phase" in json.loads(line) for line in lines)
    succeeds(*kmeans, "--picture", "p.svg")
    assert "<image " in open("p.svg").read() and "data:image/png;base64,iVBORw0KGgo" in open("p.svg").read()
    assert succeeds("data", "convert", "l.idx", "-") == open("l.csv").read()
    succeeds("data", "convert", "x.npy", "/dev/stdout", stdout=open("plain", "wb"))
    assert (numpy.load("plain") == numpy.load("x.npy")).all()
    for option, wrong, ending in (("--labels", "l", ".idx"), ("--labels", "l.png", ".npy"),
                                  ("--centres", "c.npz", ".tsv"), ("--model", "m.npy", ".safetensors"),
                                  ("--picture", "p.jpg", ".png or .svg"),
                                  ("--trace", "t.csv", ".jsonl"), ("--model", "-", ".safetensors")):
        fails(2, [option, wrong, "the name must end in", ending], *kmeans, option, wrong)
    fails(2, ["--labels l.foo", "must end in"], "predict", "c.npy", "x.npy", "--labels", "l.foo")
    fails(2, ["OUT o.foo", "must end in"], "data", "convert", "x.npy", "o.foo")
    fails(2, ["--out o.foo", "must end in .safetensors, .npy"], "run", "--exec", "cat", "x.npy", "-o", "o.foo")
    fails(2, ["--picture p.npy", "must end in .png or .svg"], "plan", "kmeans", "--rows", 10, "--cols", 2, "-k", 2,
          "--picture", "p.npy")


@test
def only_more_of_the_same_is_replaced():
    numpy.save("x.npy", blobs())
    numpy.save("truth.npy", numpy.arange(60))
    write("truth.csv", "row,animal\n1,cat\n")
    write("notes.txt", "buy milk\n")
    write("other.svg", "not a picture")
    write("drawing.svg", "<svg>my drawing</svg>")
    write("headed.csv", "a,b,c,d\n1,2,3,4\n5,6,7,8\n")
    write("known.csv", "label\n0\n1\n")
    write("weights.csv", "0.5\n1.5\n")
    write("comments.csv", "# my notes\n# more\n")
    write("bytes.raw", "".join(map(chr, range(64))))
    for name in ("empty.npy", "empty.csv"):
        write(name, "")
    kmeans = ["kmeans", "x.npy", "-k", 3, "--quiet"]
    every = ["--labels", "l.csv", "--centres", "c.npy", "--model", "m.safetensors", "--picture", "p.png", "--trace",
             "t.jsonl"]
    for _ in range(2):
        succeeds(*kmeans, *every)
    succeeds(*kmeans, "--labels", "l.npy")
    succeeds(*kmeans, "--labels", "empty.npy", "--centres", "empty.csv")
    before = {name: open(name, "rb").read() for name in os.listdir(".")}
    for option, old, holds in (("--labels", "truth.npy", "int64 with 1 dimension, not int32"),
                               ("--labels", "truth.csv", "words in 2 columns"), ("--labels", "c.npy", "float64"),
                               ("--centres", "l.csv", "integers in 1 column, not numbers in 4 columns"),
                               ("--centres", "headed.csv", "integers in 4 columns below a header, not numbers in 4"),
                               ("--labels", "known.csv", "integers in 1 column below a header, not integers in 1"),
                               ("--labels", "weights.csv", "numbers in 1 column, not integers in 1 column"),
                               ("--labels", "comments.csv", "text, not integers in 1 column"),
                               ("--labels", "bytes.raw", "unknown bytes, not int32 with 1 dimension"),
                               ("--picture", "drawing.svg", "an SVG picture that another program made; use another"),
                               ("--labels", "notes.txt", "words in 2 columns"),
                               ("--picture", "other.svg", "words in 1 column, not an SVG picture")):
        fails(2, [option, old, "the file holds", holds, "--force"], *kmeans, option, old)
    fails(2, ["--distances truth.npy", "not float64", "--force"], "predict", "c.npy", "x.npy", "--distances",
          "truth.npy")
    fails(2, ["OUT truth.npy", "int64 with 1 dimension, not float32 with 2 dimensions", "--force"], "data", "convert",
          "x.npy", "truth.npy")
    numpy.save("labelled.npy", numpy.c_[numpy.load("x.npy"), numpy.arange(60) % 2])
    fails(2, ["--model m.safetensors", "tensors of kmeans, not tensors of bayes", "--force"], "bayes", "labelled.npy",
          "--model", "m.safetensors")
    fails(2, ["OUT bytes.raw", "unknown bytes", "--force"], "data", "convert", "x.npy", "bytes.raw")
    fails(2, ["OUT headed.csv", "below a header, not numbers in 4 columns;"], "data", "convert", "x.npy", "headed.csv")
    assert all(open(name, "rb").read() == content for name, content in before.items())
    for name in ("again.raw", "again.csv"):
        for _ in range(2):
            succeeds("data", "convert", "headed.csv", name)
    assert open("again.csv").read() == open("headed.csv").read()
    for name in ("c.raw", "l.bin"):
        for _ in range(2):
            succeeds(*kmeans, "--centres" if name == "c.raw" else "--labels", name)
    write("bytes.bin", "\0" * 64)
    done = run(*kmeans, "--centres", "bytes.bin")
    assert done.code == 1 and "--centres bytes.bin" in done.err and "bytes-2.bin was written instead" in done.err
    assert os.path.getsize("bytes.bin") == 64 and os.path.getsize("bytes-2.bin") == 96
    # What `run` writes is known when it is there.
    done = run("run", "--exec", "cat", "x.npy", "--out", "l.npy")
    assert done.code == 1 and "--out l.npy" in done.err and "l-2.npy was written instead" in done.err, done.err
    fails(2, ["--out truth.npy and --send truth.npy are the same file"], "run", "--exec", "cat", "--send", "truth.npy",
          "x.npy", "--out", "truth.npy", "--force")
    fails(2, ["--labels -", "--centres -", "standard output"], *kmeans, "--labels", "-", "--centres", "-")
    fails(2, ["--labels /dev/stdout", "--trace -", "standard output"], *kmeans, "--trace", "-", "--labels",
          "/dev/stdout")
    succeeds(*kmeans, "--labels", "truth.npy", "--force")
    assert numpy.load("truth.npy").dtype == numpy.int32
    succeeds("data", "convert", "x.npy", "truth.csv", "--force")
    # An input stays whatever is given, under all of its names.
    os.link("x.npy", "hard.npy")
    os.symlink("x.npy", "soft.npy")
    for name in ("x.npy", "./x.npy", "hard.npy", "soft.npy"):
        fails(2, [name, "DATA x.npy", "never overwritten"], *kmeans, "--centres", name, "--force")
        fails(2, [name, "IN x.npy", "never overwritten"], "data", "convert", "x.npy", name, "--force")


@test
def a_file_that_appears_during_the_run_is_kept():
    running = Running("kmeans", *LONG, "--labels", "l.csv", "--centres", "c.npy")
    running.wait_for("run")
    write("l.csv", "name,animal\nTom,cat\n")
    running.process.send_signal(signal.SIGINT)
    done = running.finish()
    assert done.code == 1 and "--labels l.csv" in done.err and "l-2.csv was written instead" in done.err, done.err
    assert open("l.csv").read() == "name,animal\nTom,cat\n"
    assert len(open("l-2.csv").read().splitlines()) == 20000 and numpy.load("c.npy").shape == (200, 24)


@test
def pictures_have_any_shape():
    def picture(data, *options):
        done = run("kmeans", data, "-k", 4, "--picture", "p.png", *options)
        assert done.code == 0, done.err
        with open("p.png", "rb") as file:
            head = file.read(26)
        width, height, _, kind = struct.unpack(">IIBB", head[16:])
        return width, height, {0: "grey", 2: "colour"}[kind], done.err

    gap, random = 2, numpy.random.default_rng(1)
    for shape, size, kind in (((64,), (32, 32), "grey"), ((192,), (32, 32), "colour"), ((5, 7), (35, 25), "grey"),
                              ((4, 9, 3), (36, 16), "colour"), ((40, 30), (30, 40), "grey")):
        numpy.save("x.npy", random.random((20, *shape)))
        told = picture("x.npy", "--picture-columns", 4)
        assert told == (gap + 4 * (size[0] + gap), 2 * gap + size[1], kind, ""), (shape, told)
    numpy.save("x.npy", random.random((20, 12)))
    told = picture("x.npy", "--picture-columns", 1, "--scale", 2)
    assert told[:3] == (2 * gap + 8, gap + 4 * (6 + gap), "grey") and "drawn as images of 3x4" in told[3], told
    assert picture("x.npy", "--picture-columns", 1, "--picture-scale", 1, "--picture-shape", "2x2x3")[2:] == ("colour",
                                                                                                           "")
    assert picture("x.npy", "--picture-shape", "2x2")[2] == "colour"
    succeeds("autoencoder", "x.npy", "--hidden", 1, "--iterations", 1, "--rescale", "auto", "--picture", "a.png",
             "--scale", 5, "--picture-shape", "3x4")
    assert struct.unpack(">II", open("a.png", "rb").read(24)[16:]) == (2 * gap + 20, 2 * gap + 15)
    fails(2, ["--scale", "0:255"], "autoencoder", "x.npy", "--hidden", 1, "--scale", "0:255")
    numpy.save("x.npy", random.random((20, 13)))
    assert "images of 1x13" in picture("x.npy")[3]
    for wrong in ("2x2", "4by1", "13", "1x13x3", "1x13x2", "x", "1x13x"):
        fails(2, ["--picture-shape", wrong], "kmeans", "x.npy", "-k", 3, "--picture", "p.png", "--picture-shape", wrong)


@test
def options_have_the_names_of_other_programs_too():
    numpy.save("x.npy", blobs())
    succeeds("kmeans", "x.npy", "-k", 3, "--iterations", 7, "--runs", 2, "--seed", 5, "--centres", "own.npy", "--quiet")
    succeeds("kmeans", "x.npy", "--n-clusters", 3, "--max-iter", 7, "--n-init", 2, "--random-state", 5, "--n-jobs", -1,
             "--centers", "other.npy", "--quiet")
    assert open("own.npy", "rb").read() == open("other.npy", "rb").read()
    succeeds("kmeans", "x.npy", "--n_clusters=3", "--max_iter=7", "--n_init=2", "--random_state=5", "--quiet")
    for other, own in (("k-means++", "kmeans++"), ("k-means||", "parallel"), ("kmeans||", "parallel")):
        for init, name in ((own, "own.npy"), (other, "other.npy")):
            succeeds("kmeans", "x.npy", "-k", 3, "--init", init, "--centres", name, "--quiet")
        assert open("own.npy", "rb").read() == open("other.npy", "rb").read(), other
    fails(2, "--n-clusters must be at least 1, not 0", "kmeans", "x.npy", "--n-clusters", 0)
    fails(2, ["unknown option --max-ite", "did you mean --iterations?"], "kmeans", "x.npy", "-k", 3, "--max-ite", 7)


@test
def files_of_one_run_are_apart():
    numpy.save("x.npy", blobs())
    numpy.save("w.npy", numpy.ones(60))
    numpy.save("start.npy", blobs()[:3])
    os.symlink("x.npy", "link.npy")
    os.symlink("fresh.npy", "dangling.npy")
    os.mkdir("sub")
    before = open("x.npy", "rb").read()
    kmeans = ["kmeans", "x.npy", "-k", 3]
    fails(2, ["--centres o.npy", "--labels o.npy", "same file"], *kmeans, "--centres", "o.npy", "--labels", "o.npy")
    fails(2, ["--centres o.npy", "--trace sub/../o.npy"], *kmeans, "--centres", "o.npy", "--trace", "sub/../o.npy")
    fails(2, ["--centres fresh.npy", "--model dangling.npy"], *kmeans, "--centres", "fresh.npy", "--model",
          "dangling.npy")
    write("old.npy", "old")
    os.link("old.npy", "hard.npy")
    fails(2, ["--centres old.npy", "--labels hard.npy"], *kmeans, "--centres", "old.npy", "--labels", "hard.npy")
    fails(2, ["--labels ./x.npy", "DATA x.npy", "same file"], *kmeans, "--labels", "./x.npy")
    fails(2, ["--labels link.npy", "DATA x.npy"], *kmeans, "--labels", "link.npy")
    fails(2, ["--labels w.npy", "--weights w.npy"], *kmeans, "--weights", "w.npy", "--labels", "w.npy")
    fails(2, ["--centres start.npy", "--init start.npy"], *kmeans, "--init", "start.npy", "--centres", "start.npy")
    fails(2, ["--labels start.npy", "MODEL start.npy"], "predict", "start.npy", "x.npy", "--labels", "start.npy")
    fails(2, ["--distances x.npy", "DATA x.npy"], "predict", "start.npy", "x.npy", "--distances", "x.npy")
    with open("x.npy", "rb") as file:
        fails(2, ["--labels x.npy", "DATA -"], "kmeans", "-", "-k", 3, "--labels", "x.npy", stdin=file)
    # A checkpoint is removed when all is written, and would take the output with it.
    fails(2, ["checkpoint ./o.npy", "--centres o.npy", "same file"], *kmeans, "--centres", "o.npy", "--checkpoint", 9,
          "--checkpoint-file", "./o.npy")
    fails(2, ["l.npy", "--labels", "same file"], *kmeans, "--labels", "l.npy", "--checkpoint-file", "l.npy", "--resume")
    fails(2, ["t.npy", "--out", "same file"], "run", "--exec", "cat", "x.npy", "-o", "t.npy", "--resume",
          "--checkpoint-file", "t.npy")
    fails(1, ["x.npy", "is not a shoal checkpoint"], *kmeans, "--checkpoint", 9, "--checkpoint-file", "x.npy")
    fails(2, ["--checkpoint-file mem:here/c", "gone"], *kmeans, "--checkpoint", 9, "--checkpoint-file", "mem:here/c")
    assert open("x.npy", "rb").read() == before
    succeeds(*kmeans, "--labels", "/dev/null", "--centres", "/dev/null", "--quiet")


@test
def what_is_redirected_is_not_replaced():
    """An output that is standard output goes where standard output goes, before and after what else is there."""
    numpy.save("x.npy", blobs())
    kmeans = ["kmeans", "x.npy", "-k", 3]
    with open("out", "wb") as out:
        fails(2, ["--centres /dev/stdout", "--json"], *kmeans, "--json", "--centres", "/dev/stdout", stdout=out)
        fails(2, ["--labels out", "--json"], "predict", "x.npy", "x.npy", "--json", "--labels", "out", stdout=out)
        assert os.path.getsize("out") == 0
        out.write(b"before")
        out.flush()
        inode = os.fstat(out.fileno()).st_ino
        fails(2, ["--centres /dev/stdout and --labels out both go to standard output"], *kmeans, "--centres",
              "/dev/stdout", "--labels", "out", stdout=out)
        succeeds(*kmeans, "--quiet", "--centres", "/dev/stdout", stdout=out)
        succeeds("data", "convert", "x.npy", "out", "--format", "raw", stdout=out)
        assert os.stat("out").st_ino == inode
    with open("out", "rb") as file:
        assert file.read(6) == b"before"
        assert numpy.load(file).shape == (3, 4)
        assert file.read() == numpy.load("x.npy").tobytes()
    with open("err", "wb") as err:
        process = subprocess.run([SHOAL, *map(str, kmeans), "--json", "--trace", "/dev/stderr"], stdout=subprocess.PIPE,
                                 stderr=err)
        assert process.returncode == 0 and json.loads(process.stdout)["k"] == 3
        assert os.fstat(err.fileno()).st_ino == os.stat("err").st_ino
    assert all(json.loads(line)["phase"] for line in open("err"))
    assert "objective" in json.loads(succeeds(*kmeans, "--json", "--trace", "/dev/null"))


@test
def any_grain_gives_the_same_result():
    numpy.save("x.npy", blobs(rows=500))
    results = set()
    for grain in ([], ["--grain", 1], ["--grain", 499], ["--grain", "1e12"], ["--grain", 9223372036854775807]):
        succeeds("kmeans", "x.npy", "-k", 3, "--centres", "c.npy", "--labels", "l.npy", *grain)
        results.add(open("c.npy", "rb").read() + open("l.npy", "rb").read())
    assert len(results) == 1
    fails(2, "--grain", "kmeans", "x.npy", "-k", 3, "--grain", 9223372036854775808)


@test
def hints_name_the_verb():
    done = run("data", "head", "--bogus")
    assert done.code == 2 and done.err.splitlines()[1] == "try 'shoal data head -h'", done.err


# ---- bad input ------------------------------------------------------------------------------------------------------

@test
def files_that_are_missing_or_empty_are_named():
    write("empty.npy", b"")
    write("empty.csv", b"")
    os.mkdir("folder")
    for verb in (["kmeans", "-k", 2], ["data", "info"], ["data", "head"]):
        fails(1, ["nowhere.npy", "No such file"], *verb, "nowhere.npy")
        fails(1, "empty.npy", *verb, "empty.npy")
        fails(1, "empty.csv", *verb, "empty.csv")
        fails(1, "folder", *verb, "folder")
    fails(1, "nowhere.npy", "predict", "nowhere.npy", "empty.npy")
    if os.getuid() != 0:
        numpy.save("secret.npy", blobs())
        os.chmod("secret.npy", 0)
        fails(1, ["secret.npy", "ermission"], "kmeans", "-k", 2, "secret.npy")


@test
def npy_files_that_lie_are_refused():
    numpy.save("x.npy", blobs(rows=50))
    with open("x.npy", "rb") as file:
        whole = file.read()
    for size in (5, 9, 40, 128, len(whole) - 1):
        write("cut.npy", whole[:size])
        fails(1, "cut.npy", "kmeans", "cut.npy", "-k", 2)
    kind = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }"
    for shape in ("100, 4", "4611686018427387904, 4", "18446744073709551616, 4", "4294967296, 4294967296", "-1, 4"):
        npy_with_header("lies.npy", kind % shape, b"\0" * 64)
        fails(1, "lies.npy", "kmeans", "lies.npy", "-k", 2)
    for shape in ("0, 4", "4, 0"):
        npy_with_header("none.npy", kind % shape)
        fails(1, "none.npy", "kmeans", "none.npy", "-k", 2)
    for descr in ("|O", "<c8", "<U4", "<f2"):
        npy_with_header("kind.npy", f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (2, 2), }}", b"\0" * 64)
        fails(1, "kind.npy", "kmeans", "kind.npy", "-k", 2)


@test
def text_that_is_no_table_is_refused_by_row():
    write("ragged.csv", "1,2,3\n4,5,6\n7,8\n9,10,11\n")
    fails(1, ["ragged.csv", "3"], "kmeans", "ragged.csv", "-k", 2)
    write("word.csv", "a,b\n1,2\n3,four\n5,6\n")
    fails(1, ["word.csv", "3", "four"], "kmeans", "word.csv", "-k", 2)
    write("evil.csv", "a,b\n1,2\n3,\x1b[31mred\x07\n")
    fails(1, "evil.csv", "kmeans", "evil.csv", "-k", 2)
    fails(1, "?[31m", "kmeans", "\x1b[31m.npy", "-k", 2)


@test
def values_that_are_not_finite_are_refused_by_row_and_column():
    for value in (numpy.nan, numpy.inf, -numpy.inf):
        for kind in (numpy.float32, numpy.float64):
            rows = blobs().astype(kind)
            rows[41, 2] = value
            numpy.save("bad.npy", rows)
            fails(1, ["bad.npy", "row 42", "column 3"], "kmeans", "bad.npy", "-k", 2, "--labels", "l.npy", "--centres",
                  "c.npy", "--trace", "t.jsonl")
            os.remove("bad.npy")
    write("nan.csv", "1,2\n3,nan\n")
    fails(1, ["nan.csv", "row 2", "column 2"], "kmeans", "nan.csv", "-k", 1)


@test
def more_clusters_than_rows_are_refused():
    numpy.save("x.npy", blobs(rows=5))
    fails(1, ["x.npy", "-k 6", "5 rows"], "kmeans", "x.npy", "-k", 6, "--labels", "l.npy")
    succeeds("kmeans", "x.npy", "-k", 5, "--labels", "l.npy")
    assert sorted(numpy.load("l.npy")) == [0, 1, 2, 3, 4]


@test
def weights_are_checked():
    numpy.save("x.npy", blobs(rows=6))
    for values, says in (([1, 1, -1, 1, 1,
                           1], ["w.npy", "row 3"]), ([0.0] * 6, ["w.npy", "0"]), ([1.0] * 5, ["w.npy", "6 rows"]),
                         ([1, 1, 1, numpy.nan, 1, 1], ["w.npy", "row 4"]), ([1, 1, 1, 1, 1,
                                                                             numpy.inf], ["w.npy", "row 6"])):
        numpy.save("w.npy", numpy.array(values, dtype=numpy.float64))
        fails(1, says, "kmeans", "x.npy", "-k", 2, "--weights", "w.npy", "--labels", "l.npy")
    fails(1, "nowhere.npy", "kmeans", "x.npy", "-k", 2, "--weights", "nowhere.npy")
    for shape in ((6,), (6, 1), (1, 6)):
        numpy.save("w.npy", numpy.array([1, 2, 3, 4, 5, 6], dtype=numpy.int32).reshape(shape))
        succeeds("kmeans", "x.npy", "-k", 2, "--weights", "w.npy", "--centres", "c.npy")
    heavy = numpy.repeat(blobs(rows=6), [1, 2, 3, 4, 5, 6], axis=0)
    numpy.save("heavy.npy", heavy)
    numpy.save("start.npy", blobs(rows=6)[:2])
    for name, more in (("x.npy", ["--weights", "w.npy"]), ("heavy.npy", [])):
        succeeds("kmeans", name, "--init", "start.npy", "--centres", name + ".centres.npy", *more)
    numpy.testing.assert_allclose(numpy.load("x.npy.centres.npy"), numpy.load("heavy.npy.centres.npy"), rtol=1e-6)


@test
def given_centres_are_checked():
    rows = blobs()
    numpy.save("x.npy", rows)
    numpy.save("start.npy", rows[:3].astype(numpy.float64))
    fails(2, ["start.npy", "3 rows", "-k is 4"], "kmeans", "x.npy", "-k", 4, "--init", "start.npy")
    numpy.save("wide.npy", blobs(rows=3, columns=5))
    fails(1, ["wide.npy", "5 columns"], "kmeans", "x.npy", "-k", 3, "--init", "wide.npy")
    numpy.save("nan.npy", numpy.full((3, 4), numpy.nan))
    fails(1, ["nan.npy", "row 1"], "kmeans", "x.npy", "-k", 3, "--init", "nan.npy")
    fails(1, "nowhere.npy", "kmeans", "x.npy", "-k", 3, "--init", "nowhere.npy")
    succeeds("kmeans", "x.npy", "--init", "start.npy", "--iterations", 0, "--centres", "c.npy", "--labels", "l.npy")
    assert (numpy.load("c.npy") == rows[:3]).all()
    distances = ((rows[:, None].astype(float) - rows[None, :3]) ** 2).sum(axis=2)
    assert (numpy.load("l.npy") == distances.argmin(axis=1)).all()


@test
def models_are_checked():
    numpy.save("x.npy", blobs())
    succeeds("kmeans", "x.npy", "-k", 3, "--model", "m.safetensors", "--quiet")
    numpy.save("wide.npy", blobs(columns=5))
    fails(1, ["wide.npy", "5 columns", "m.safetensors"], "predict", "m.safetensors", "wide.npy", "--labels", "l.npy")
    with open("m.safetensors", "rb") as file:
        whole = file.read()
    for size in (0, 4, 20, len(whole) - 1):
        write("cut.safetensors", whole[:size])
        fails(1, "cut.safetensors", "predict", "cut.safetensors", "x.npy")
    header = b'{"other":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}'
    write("other.safetensors", struct.pack("<Q", len(header)) + header + b"\0" * 8)
    fails(1, ["other.safetensors", "centres"], "predict", "other.safetensors", "x.npy")


@test
def raw_files_need_their_shape():
    rows = blobs()
    write("x.bin", rows.tobytes())
    out = json.loads(succeeds("data", "info", "x.bin", "--cols", 4, "--type", "float32", "--json"))
    assert (out["rows"], out["columns"], out["type"]) == (60, 4, "float32"), out
    fails(2, "float33", "data", "info", "x.bin", "--cols", 4, "--type", "float33")
    done = run("data", "info", "x.bin", "--cols", 7, "--type", "float32")
    assert done.code in (1, 2) and "x.bin" in done.err, done.err
    done = run("data", "info", "x.bin", "--rows", 61, "--cols", 4, "--type", "float32")
    assert done.code in (1, 2) and "x.bin" in done.err, done.err


# ---- output that can't be written -----------------------------------------------------------------------------------

@test
def outputs_are_tried_before_the_work():
    numpy.save("x.npy", blobs())
    os.mkdir("folder")
    huge = "gen:uniform?rows=200000000&cols=100&seed=1"
    for option in ("--labels", "--centres", "--model", "--picture", "--trace"):
        output = "nowhere/o." + {"--model": "safetensors", "--picture": "png", "--trace": "jsonl"}.get(option, "npy")
        fails(1, [output, "No such file"], "kmeans", huge, "-k", 3, option, output)
        fails(1, "folder", "kmeans", huge, "-k", 3, option, "folder")
    fails(1, "nowhere/o.npy", "predict", "x.npy", huge, "--labels", "nowhere/o.npy")
    fails(1, "nowhere/o.npy", "data", "convert", huge, "nowhere/o.npy")


@test
def a_full_disk_is_told():
    """What it leaves is the matter of test_full_disk.py."""
    data = "gen:blobs?rows=40000&cols=2&seed=1&centres=3"
    fails(1, ["/dev/full", "No space left"], "kmeans", data, "-k", 3, "--quiet", "--labels", "/dev/full")
    fails(1, ["/dev/full", "No space left"], "kmeans", data, "-k", 3, "--quiet", "--model", "/dev/full")
    fails(1, ["/dev/full", "No space left"], "kmeans", data, "-k", 3, "--quiet", "--centres", "/dev/full")
    fails(1, ["/dev/full", "No space left"], "kmeans", data, "-k", 3, "--quiet", "--trace", "/dev/full")


@test
def a_file_over_the_limit_is_an_error():
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

    write("labels.npy", "old")
    fails(1, ["labels.npy", "too large"], "kmeans", "gen:blobs?rows=40000&cols=2&seed=1&centres=3", "-k", 3, "--quiet",
          "--force", "--labels", "labels.npy", preexec_fn=limit)
    assert open("labels.npy").read() == "old"


@test
def standard_output_that_fails_is_noticed():
    numpy.save("x.npy", blobs())
    for arguments in (["kmeans", "x.npy", "-k", 3], ["kmeans", "x.npy", "-k", 3, "--json"], ["data", "head", "x.npy"],
                      ["-h"], ["man", "kmeans"], ["data", "info", "x.npy"]):
        with open("/dev/full", "wb") as full:
            fails(1, ["standard output", "No space left"], *arguments, stdout=full)
    closed = subprocess.run(["sh", "-c", '"$0" --version >&-', SHOAL], capture_output=True, text=True)
    assert closed.returncode == 1 and "standard output" in closed.stderr, closed
    assert succeeds("kmeans", "x.npy", "-k", 3, "--quiet") == ""


@test
def a_reader_that_leaves_ends_the_program():
    """As with any Unix tool in a pipe to head: no message, no endless run."""
    reader, writer = os.pipe()
    process = subprocess.Popen([SHOAL, "data", "head", "gen:uniform?rows=10000000&cols=10", "-n", "10000000"],
                               stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert os.read(reader, 100)
    os.close(reader)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == -signal.SIGPIPE and err == b"", (process.returncode, err)


# ---- results --------------------------------------------------------------------------------------------------------

@test
def every_output_is_what_it_says():
    rows = blobs(rows=300, columns=16, centres=5)
    numpy.save("x.npy", rows)
    out = succeeds("kmeans", "x.npy", "-k", 5, "--centres", "c.npy", "--labels", "l.npy", "--model", "m.safetensors",
                   "--picture", "p.png", "--trace", "t.jsonl", "--json", "--seed", 3)
    report = json.loads(out)
    assert out.count("\n") == 1
    for key in ("learner", "rows", "columns", "k", "rounds", "iterations", "converged", "objective", "seconds",
                "kernel", "threads", "distances_computed", "distances_skipped", "peak_memory"):
        assert key in report, f"--json has no {key}: {out}"
    assert list(report["seconds"])[:4] == ["load", "scan", "seed", "run"
                                           ] and {"write", "total"} <= set(report["seconds"])
    assert (report["learner"], report["rows"], report["columns"], report["k"]) == ("kmeans", 300, 16, 5), out
    assert report["converged"] is True and report["peak_memory"] > 1 << 20
    centres, labels = numpy.load("c.npy"), numpy.load("l.npy")
    assert centres.dtype == numpy.float64 and centres.shape == (5, 16)
    assert labels.dtype == numpy.int32 and labels.shape == (300,)
    objective = ((rows - centres[labels]) ** 2).sum()
    assert abs(objective - report["objective"]) < 1e-9 * objective, (objective, report["objective"])
    tensors, metadata = read_safetensors("m.safetensors")
    assert list(tensors) == ["centres"] and (tensors["centres"] == centres).all()
    assert metadata["learner"] == "kmeans" and metadata["k"] == "5" and metadata["columns"] == "16"
    assert metadata["rows"] == "300" and metadata["seed"] == "3" and float(metadata["objective"]) == report["objective"]
    assert metadata["iterations"] == str(report["iterations"]) and metadata["version"]
    with open("p.png", "rb") as file:
        head = file.read(24)
    assert head[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", head[16:]) == (2 + 3 * 34, 2 + 2 * 34)
    with open("t.jsonl") as file:
        trace = [json.loads(line) for line in file]
    assert [line["round"] for line in trace] == list(range(report["rounds"])), trace
    assert all(set(line) == {"round", "phase", "step", "objective", "change", "seconds"} for line in trace)
    assert trace[-1]["objective"] == report["objective"]
    assert sorted(os.listdir(".")) == ["c.npy", "l.npy", "m.safetensors", "p.png", "t.jsonl", "x.npy"]


@test
def a_summary_is_printed_when_nothing_else_is_asked():
    numpy.save("x.npy", blobs())
    out = succeeds("kmeans", "x.npy", "-k", 3)
    for text in ("x.npy: 60 rows, 4 columns, float32", "clusters   3, of 20 rows each", "objective", "converged",
                 "time"):
        assert text in out, out
    assert os.listdir(".") == ["x.npy"]
    done = run("kmeans", "x.npy", "-k", 3, "--labels", "/dev/stdout", stdout=open("out", "wb"))
    assert done.code == 0 and "objective" in done.err, "a summary never mixes with an output on stdout"
    assert numpy.load("out").shape == (60,)


@test
def a_summary_counts_one_thing_as_one():
    numpy.save("x.npy", numpy.array([[0.0], [1.0], [1.5], [9.0]]))
    done = run("kmeans", "x.npy", "-k", 2, "--seed", 1, "--iterations", 1, "--labels", "-")
    for text in ("4 rows, 1 column,", "clusters   2, of 1 to 3 rows", "after 1 iteration, "):
        assert done.code == 0 and text in done.err, done.err
    assert "wrote" not in done.err, done.err
    assert "clusters   1, of 4 rows\n" in succeeds("kmeans", "x.npy", "-k", 1)
    assert "clusters   4, of 1 row each\n" in succeeds("kmeans", "x.npy", "-k", 4)
    numpy.save("wide.npy", numpy.zeros((4, 2)))
    fails(1, ["wide.npy: centres of 2 columns, but x.npy has 1"], "kmeans", "x.npy", "--init", "wide.npy")
    fails(1, ["x.npy: centres of 1 column, but wide.npy has 2"], "kmeans", "wide.npy", "--init", "x.npy")


@test
def predict_gives_the_labels_of_the_run():
    rows = blobs(rows=500, columns=8, centres=7)
    numpy.save("x.npy", rows)
    succeeds("kmeans", "x.npy", "-k", 7, "--labels", "l.npy", "--centres", "c.npy", "--model", "m.safetensors")
    for model in ("m.safetensors", "c.npy"):
        out = json.loads(succeeds("predict", model, "x.npy", "--labels", "p.npy", "--distances", "d.npy", "--json"))
        assert open("l.npy", "rb").read() == open("p.npy", "rb").read()
        expected = numpy.sqrt(((rows - numpy.load("c.npy")[numpy.load("l.npy")]) ** 2).sum(axis=1))
        numpy.testing.assert_allclose(numpy.load("d.npy"), expected, rtol=1e-12)
        assert out["rows"] == 500 and out["k"] == 7
    assert "objective" in succeeds("predict", "m.safetensors", "x.npy")
    assert succeeds("predict", "m.safetensors", "x.npy", "--quiet") == ""


@test
def unusual_data_have_the_right_result():
    numpy.save("one.npy", numpy.array([[3.0, 4.0]]))
    succeeds("kmeans", "one.npy", "-k", 1, "--centres", "c.npy")
    assert (numpy.load("c.npy") == [[3, 4]]).all()
    constant = blobs(rows=40)
    constant[:, 1] = 7
    numpy.save("constant.npy", constant)
    succeeds("kmeans", "constant.npy", "-k", 3, "--centres", "c.npy")
    assert (numpy.load("c.npy")[:, 1] == 7).all()
    numpy.save("same.npy", numpy.full((10, 3), 2.5, dtype=numpy.float32))
    out = json.loads(succeeds("kmeans", "same.npy", "-k", 1, "--json", "--centres", "c.npy"))
    assert out["objective"] == 0 and (numpy.load("c.npy") == 2.5).all()
    for kind in (numpy.float32, numpy.float64):
        great = min(float(numpy.finfo(kind).max), 1e140)
        numpy.save("great.npy", numpy.array([[great, 0], [-great, 0], [great, 1], [-great, 1]], dtype=kind))
        succeeds("kmeans", "great.npy", "-k", 2, "--centres", "c.npy", "--labels", "l.npy", "--seed", 1)
        labels, centres = numpy.load("l.npy"), numpy.load("c.npy")
        assert labels[0] == labels[2] != labels[1] == labels[3], labels
        assert numpy.isfinite(centres).all(), centres
        tiny = float(numpy.finfo(kind).smallest_subnormal)
        numpy.save("tiny.npy", numpy.array([[tiny, 0], [0, 0], [tiny, 0], [0, 0]], dtype=kind))
        succeeds("kmeans", "tiny.npy", "-k", 2, "--labels", "l.npy")
        labels = numpy.load("l.npy")
        assert labels[0] == labels[2] != labels[1] == labels[3], labels


@test
def more_clusters_than_distinct_rows_are_refused():
    numpy.save("x.npy", numpy.array([[0.0], [1], [0], [1], [0]]))
    numpy.save("tiny.npy", numpy.array([[0], [1], [1e-160]]))
    for init in ("kmeans++", "parallel"):
        fails(1, ["x.npy", "-k 4", "2 distinct rows"], "kmeans", "x.npy", "-k", 4, "--init", init, "--labels", "l.npy")
        # rows whose squared distance is as good as 0, though not quite: seeding must not search for ever finer quanta
        fails(1, ["tiny.npy", "-k 3", "2 distinct rows"], "kmeans", "tiny.npy", "-k", 3, "--init", init)
        succeeds("kmeans", "x.npy", "-k", 2, "--init", init, "--labels", "l.npy", "--centres", "c.npy")
        assert (numpy.load("c.npy")[numpy.load("l.npy")] == numpy.load("x.npy")).all()
        os.remove("l.npy")
        os.remove("c.npy")


@test
def a_header_is_found_whatever_columns_are_read():
    write("cities.csv", "city,2019,2020\nParis,2,3\nRome,4,5\n")
    says = 'line 2, column 1 (city): "Paris" is not a number; --drop-column city leaves the column out'
    fails(1, says, "kmeans", "cities.csv", "-k", 1)
    for column in ("city", "1", "-3"):
        assert succeeds("data", "head", "cities.csv", "--drop-column", column) == "2019\t2020\n2\t3\n4\t5\n"
    told = succeeds("kmeans", "cities.csv", "-k", 1, "--drop-column", "city").splitlines()[0]
    assert told.endswith("cities.csv: 2 rows, 2 columns, float64; the first line is a header: 2019, 2020"), told
    assert json.loads(succeeds("kmeans", "cities.csv", "-k", 1, "--columns", "2-3", "--json"))["header"] is True
    assert "; the first line is a header: 2020\n" in succeeds("data", "info", "cities.csv", "--columns", "2020")
    told = succeeds("kmeans", "cities.csv", "-k", 1, "--drop-column", "1", "--header", "no").splitlines()[0]
    assert "3 rows" in told and told.endswith("; no header"), told
    write("ids.csv", "Paris,2,3\nRome,4,5\n")
    for more in ([], ["--drop-column", "1"]):
        fails(1, ["ids.csv: line 1 (Paris,2,3) may be a header or a row", "--header yes", "--header no"], "data",
              "info", "ids.csv", *more)
    assert succeeds("data", "head", "ids.csv", "--drop-column", 1, "--header", "no") == "2\t3\n4\t5\n"
    fails(2, ["--header", "auto, yes, no"], "data", "info", "ids.csv", "--header", "maybe")


@test
def the_target_is_told():
    rows = "".join(f"{i % 7},{i % 3},{'cat' if i % 3 else 'dog'}\n" for i in range(30))
    write("t.csv", "a,b,kind\n" + rows)
    write("plain.csv", rows)
    write("y.txt", "".join(f"{i % 2}\n" for i in range(30)))
    told = succeeds("logistic", "t.csv")
    assert "t.csv: 30 rows, 3 columns" in told and "\ntarget     kind: cat, dog\n" in told, told
    assert "\ntarget     column 3: cat, dog\n" in succeeds("bayes", "plain.csv", "--header", "no")
    assert "\ntarget     b\n" in succeeds("logistic", "t.csv", "--target", "b", "--drop-column", "kind")
    told = succeeds("logistic", "t.csv", "--columns", "a,b", "--target", "y.txt")
    assert "t.csv: 30 rows, 2 columns, float64; the first line is a header: a, b\ntarget     y.txt\n" in told, told
    about = json.loads(succeeds("logistic", "t.csv", "--columns", "a,b", "--target", "y.txt", "--json"))
    assert about["columns"] == 2 and about["target"] == "y.txt", about
    fails(2, "--drop-column leaves open which column is the target", "logistic", "t.csv", "--drop-column", "kind")


@test
def values_that_are_too_great_are_refused():
    write("h.csv", "1e308,1\n-1e308,2\n1e308,3\n")
    for words in (["kmeans", "-k", 1], ["autoencoder", "--hidden", 1, "--rescale", "auto"], ["logistic"], ["bayes"]):
        told = run(*words, "h.csv")
        assert told.code == 1 and not told.out and "h.csv: " in told.err and len(told.err.splitlines()) == 1, told


@test
def tables_that_no_learner_takes_are_described():
    write("mixed.csv", "city,a,b,mayor\nParis,1,nan,Anne\nRome,,?,Roberto\nOslo,5,6,\n")
    told = succeeds("data", "info", "mixed.csv")
    assert told.endswith("names     city, a, b, mayor\ntext      column 1 (city), column 4 (mayor)\n"
                         "missing   3 values in 2 rows\n"), told
    told = json.loads(succeeds("data", "info", "mixed.csv", "--json"))
    assert told["text_columns"] == [1, 4] and told["missing_values"] == 3 and told["missing_rows"] == 2, told


@test
def head_shows_text_as_the_file_has_it():
    write("mixed.csv", 'city,a,b,mayor\nParis,1.50,nan,"Anne ""H"" X"\n# a comment\n\nRome,,?,"Ro,berto"\r\nOslo,5,6,')
    expected = ["city\ta\tb\tmayor", 'Paris\t1.50\tnan\tAnne "H" X', "Rome\t\t?\tRo,berto", "Oslo\t5\t6\t"]
    assert succeeds("data", "head", "mixed.csv").split("\n") == expected + [""]
    assert succeeds("data", "head", "mixed.csv", "-n", 1).split("\n") == expected[:2] + [""]
    assert succeeds("data", "head", "mixed.csv", "-n", 0).split("\n") == expected[:1] + [""]
    packed = gzip.compress(open("mixed.csv", "rb").read())
    for text in (open("mixed.csv", "rb").read(), packed):
        read, write_end = os.pipe()
        os.write(write_end, text)
        os.close(write_end)
        assert succeeds("data", "head", "-", stdin=read).split("\n") == expected + [""]
        os.close(read)
    chosen = succeeds("data", "head", "mixed.csv", "--columns", "mayor,1", "-n", 1)
    assert chosen == 'mayor\tcity\nAnne "H" X\tParis\n', chosen
    chosen = succeeds("data", "head", "mixed.csv", "--drop-column", "a,b,mayor")
    assert chosen == "city\nParis\nRome\nOslo\n", chosen
    # What is filled in is a number; words stay.
    filled = succeeds("data", "head", "mixed.csv", "--missing", "mean", "--drop-column", "mayor")
    assert filled == "city\ta\tb\nParis\t1.5\t6\nRome\t3.25\t6\nOslo\t5\t6\n", filled
    left = succeeds("data", "head", "mixed.csv", "--missing", "drop", "--drop-column", "mayor")
    assert left == "city\ta\tb\nOslo\t5\t6\n", left
    # Lines beyond those that are shown are not looked at.
    write("ragged.csv", "a,b\n1,2\n3,4\n5\n")
    assert succeeds("data", "head", "ragged.csv", "-n", 2) == "a\tb\n1\t2\n3\t4\n"
    fails(1, "ragged.csv: line 4 has fewer fields (1) than line 1 (2)", "data", "head", "ragged.csv", "-n", 3)
    write("open.csv", 'a,b\n1,"2\n3,4\n')
    fails(1, "open.csv: line 2: a quote is opened and never closed", "data", "head", "open.csv")
    write("old.txt", "a b\r1 x\r2 y\r")  # as old Macs have it
    assert succeeds("data", "head", "old.txt") == "a\tb\n1\tx\n2\ty\n"


@test
def info_takes_many_files():
    numpy.save("x.npy", numpy.zeros((3, 4), dtype="f4"))
    write("people.csv", "name,age\nAnn,3\nBob,\n")
    table = succeeds("data", "info", "x.npy", "people.csv").splitlines()
    assert table[0].split() == ["file", "format", "rows", "columns", "type", "detail"], table
    assert table[1].split()[:5] == ["x.npy", "npy", "3", "4", "float32"], table
    assert table[2].split()[:5] == ["people.csv", "text", "2", "2", "float64"], table
    assert table[1].endswith("npy version 1.0, C order, little-endian, mapped"), table
    assert len({line.index(word) for line, word in zip(table, ("type", "float32", "float64"))}) == 1, table
    done = run("data", "info", "x.npy", "absent.npy", "people.csv")
    assert done.code == 1 and [line.split()[0] for line in done.out.splitlines()] == ["file", "x.npy", "people.csv"]
    assert done.err.splitlines() == ["shoal: absent.npy: can't read: No such file or directory",
                                     "shoal: 1 of 3 files can't be described"], done.err
    done = run("data", "info", "x.npy", "absent.npy", "people.csv", "--json")
    told = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 1 and [one["path"] for one in told] == ["x.npy", "absent.npy", "people.csv"], told
    assert told[0]["rows"] == 3 and "No such file" in told[1]["error"] and told[2]["text_columns"] == [1], told


@test
def columns_are_chosen_in_any_format():
    X = numpy.arange(60.0).reshape(10, 6)
    numpy.save("x.npy", X)
    X.astype("f4").tofile("x.bin")
    numpy.savetxt("x.csv", X, delimiter=",", header="a,b,c,d,e,f", comments="", fmt="%g")
    raw = ["--cols", 6, "--type", "f4"]
    expected = "".join(f"{a:.0f}\t{b:.0f}\t{c:.0f}\n" for a, b, c in X[:10, [5, 0, 1]])
    for path, *more in (["x.npy"], ["x.bin", *raw], ["x.csv"]):
        for chosen in (["--columns", "-1,1-2"], ["--columns", "6,1-5", "--drop-column", "3-5"]):
            rows = succeeds("data", "head", path, *more, *chosen)
            assert rows.endswith(expected), rows
    assert succeeds("data", "head", "x.csv", "--columns", "f,a,2").startswith("f\ta\tb\n5\t0\t1\n")
    fails(2, ['x.csv: --columns: there is no column "g"', "the columns are a, b, c, d"], "kmeans", "x.csv", "-k", 2,
          "--columns", "g")
    fails(2, ["x.npy: --drop-column", "there are 6 columns, without names"], "kmeans", "x.npy", "-k", 2,
          "--drop-column", "7")
    numpy.save("few.npy", X[:, [4, 2]])
    succeeds("kmeans", "few.npy", "-k", 3, "--centres", "expected.npy", "--quiet")
    for path in ("x.npy", "x.csv"):
        for way in ([], ["--workers", "local:2"]):
            succeeds("kmeans", path, "-k", 3, "--columns", "5,3", "--centres", "c.npy", "--quiet", *way)
            assert (numpy.load("c.npy") == numpy.load("expected.npy")).all(), (path, way)


@test
def missing_values_are_refused_filled_in_or_left_out():
    write("m.csv", "a,b\n1,2\nNA,4\n5,?\n7,8\n9,10\n")
    says = "m.csv: 2 values are missing, the first in line 3, column 1 (a); --missing mean fills in"
    fails(1, says, "kmeans", "m.csv", "-k", 1)
    assert succeeds("data", "head", "m.csv", "--missing", "mean") == "a\tb\n1\t2\n5.5\t4\n5\t6\n7\t8\n9\t10\n"
    numpy.save("m.npy", [[1, 2], [numpy.nan, 4], [5, numpy.nan], [7, 8], [9, 10]])
    fails(1, "m.npy: 2 values are missing, the first in row 2, column 1; --missing mean", "kmeans", "m.npy", "-k", 1)
    numpy.save("w.npy", [1.0, 50, 60, 2, 3])
    for path in ("m.csv", "m.npy"):
        told = succeeds("kmeans", path, "-k", 1, "--missing", "drop", "--weights", "w.npy", "--centres", "c.npy")
        assert "3 rows" in told and "; 2 rows with missing values left out" in told, told
        assert numpy.allclose(numpy.load("c.npy"), [[(1 + 14 + 27) / 6, (2 + 16 + 30) / 6]]), numpy.load("c.npy")
        about = json.loads(succeeds("kmeans", path, "-k", 1, "--missing", "mean", "--json", "--model", "m.safetensors"))
        assert (about["missing"], about["rows_dropped"], about["rows"]) == (2, 0, 5), about
        succeeds("predict", "m.safetensors", path, "--missing", "mean", "--labels", "l.npy", "--quiet")
        assert len(numpy.load("l.npy")) == 5
        fails(2, ["--missing drop", "--missing mean"], "predict", "m.safetensors", path, "--missing", "drop")
    # Labels line up with the rows of the file.
    for way in ([], ["--workers", "local:2"]):
        for path in ("m.csv", "m.npy"):
            succeeds("kmeans", path, "-k", 2, "--missing", "drop", "--labels", "l.npy", "--quiet", "--force", *way)
            labels = numpy.load("l.npy")
            assert labels[1] == labels[2] == -1 and labels[3] == labels[4] == 1 - labels[0], labels
    succeeds("kmeans", "m.csv", "-k", 2, "--missing", "drop", "--labels", "r.npy", "--detach", "--store", "dir:jobs",
             "--job", "drops", "--quiet")
    succeeds("job", "resume", "drops", "--store", "dir:jobs", "--workers", "local:1", "--quiet")
    assert (numpy.load("r.npy") == labels).all(), numpy.load("r.npy")
    succeeds("autoencoder", "m.csv", "--hidden", 2, "--rescale", "auto", "--missing", "drop", "--features", "f.npy",
             "--quiet")
    assert (numpy.isnan(numpy.load("f.npy")).all(axis=1) == [False, True, True, False, False]).all()
    # Rows without missing values have means, too.
    numpy.save("whole.npy", numpy.array([[1, 2], [3, 7], [8, 9]], dtype="i4"))
    succeeds("kmeans", "whole.npy", "-k", 1, "--missing", "mean", "--model", "i.safetensors", "--quiet")
    succeeds("predict", "i.safetensors", "m.npy", "--missing", "mean", "--distances", "d.npy", "--quiet")
    assert numpy.allclose(numpy.load("d.npy")[1], 2), numpy.load("d.npy")
    succeeds("kmeans", "w.npy", "-k", 1, "--model", "plain.safetensors", "--quiet")
    fails(2, "plain.safetensors was not trained with this option", "predict", "plain.safetensors", "w.npy", "--missing",
          "mean")


@test
def data_verbs_show_and_convert():
    write("x.csv", "a,b,name\n1,2.5,7\n3,0.1,8\n5,-6e300,9\n")
    assert succeeds("data", "head", "x.csv", "-n", 2) == "a\tb\tname\n1\t2.5\t7\n3\t0.1\t8\n"
    assert succeeds("data", "head", "x.csv", "--drop-column", "name", "-n", 1) == "a\tb\n1\t2.5\n"
    assert succeeds("data", "head", "x.csv", "-n", 0) == "a\tb\tname\n"
    info = json.loads(succeeds("data", "info", "x.csv", "--json"))
    assert (info["rows"], info["columns"], info["names"]) == (3, 3, ["a", "b", "name"]), info
    assert "names     a, b, name" in succeeds("data", "info", "x.csv")
    succeeds("data", "convert", "x.csv", "x.npy")
    assert (numpy.load("x.npy") == [[1, 2.5, 7], [3, 0.1, 8], [5, -6e300, 9]]).all()
    succeeds("data", "convert", "x.npy", "y.csv.gz")
    assert gzip.open("y.csv.gz").read().count(b"\n") in (3, 4)
    assert json.loads(succeeds("data", "info", "y.csv.gz", "--json"))["rows"] == 3
    done = run("data", "convert", "x.csv", "x.what")
    assert done.code in (1, 2) and "x.what" in done.err and not os.path.exists("x.what"), done.err
    lines = succeeds("data", "convert", "x.csv", "/dev/stdout", "--format", "tsv")
    assert lines.splitlines()[:2] == ["a\tb\tname", "1\t2.5\t7"], lines
    succeeds("data", "convert", "x.csv", "named", "--format", "csv.gz")
    assert gzip.open("named").read().startswith(b"a,b,name\n1,2.5,7\n")
    fails(2, ["named.npy", "npy.gz"], "data", "convert", "x.csv", "named.npy", "--format", "npy.gz")
    fails(2, ["unknown format '.csv'"], "data", "convert", "x.csv", "named.npy", "--format", ".csv")
    data = subprocess.run([SHOAL, "data", "head", "-"], stdin=open("x.npy", "rb"), capture_output=True, text=True)
    assert data.stdout.startswith("1\t2.5\t7\n"), data


# ---- signals --------------------------------------------------------------------------------------------------------

# Rounds that are short, and many of them: uniform data converge slowly.
LONG = ["gen:uniform?rows=20000&cols=24&seed=5", "-k", "200", "--init", "random", "--tolerance", "0", "--iterations",
        "1000000"]


class Running:
    """A run whose trace comes through a pipe, so that a test knows which round it is in."""

    def __init__(self, *arguments, **options):
        self.reader, writer = os.pipe()
        self.process = subprocess.Popen([SHOAL, *map(str, arguments), "--trace", f"/dev/fd/{writer}"],
                                        pass_fds=[writer], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, **options)
        os.close(writer)
        self.file = os.fdopen(self.reader)

    def wait_for(self, phase):
        for line in self.file:
            if json.loads(line)["phase"] == phase:
                return
        raise AssertionError(f"no round of phase {phase}: {self.finish().err}")

    def finish(self):
        for _ in self.file:
            pass
        self.file.close()
        out, err = self.process.communicate(timeout=SECONDS)
        return Done(self.process, out.decode(), err.decode())


@test
def a_signal_ends_the_run_after_the_round():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        running = Running("kmeans", *LONG, "--centres", "c.npy", "--labels", "l.npy", "--json")
        running.wait_for("run")
        running.process.send_signal(number)
        done = running.finish()
        report = json.loads(done.out)
        assert done.code == 130, done.code
        assert done.err == (f"shoal: stopped after {report['iterations']} iterations; centres and labels are those of "
                            f"iteration {report['iterations']}\n"), done.err
        assert report["converged"] is False and report["stopped"] is True
        assert numpy.load("c.npy").shape == (200, 24) and numpy.load("l.npy").shape == (20000,)
        assert sorted(os.listdir(".")) == ["c.npy", "l.npy"]
        succeeds("predict", "c.npy", LONG[0], "--labels", "p.npy", "--quiet")
        assert open("p.npy", "rb").read() == open("l.npy",
                                                  "rb").read(), "labels belong to the centres that were written"
        for name in ("c.npy", "l.npy", "p.npy"):
            os.remove(name)


@test
def a_run_stopped_before_there_are_centres_writes_nothing():
    write("c.npy", "old")
    data = "gen:uniform?rows=100000&cols=64&seed=5"
    running = Running("kmeans", data, "-k", 2000, "--init", "kmeans++", "--centres", "c.npy", "--force")
    running.wait_for("scan")
    running.process.send_signal(signal.SIGINT)
    done = running.finish()
    assert done.code == 130 and done.err.startswith("shoal: ") and done.err.count("\n") == 1, (done.code, done.err)
    assert open("c.npy", "rb").read() == b"old" and os.listdir(".") == ["c.npy"]


@test
def a_run_stopped_while_the_next_one_seeds_writes_the_best_so_far():
    data = "gen:uniform?rows=20000&cols=24&seed=5"
    running = Running("kmeans", data, "-k", 200, "--init", "kmeans++", "--runs", 500, "--iterations", 1, "--tolerance",
                      0, "--centres", "c.npy", "--labels", "l.npy", "--json")
    running.wait_for("run")
    running.wait_for("seed")
    running.process.send_signal(signal.SIGINT)
    done = running.finish()
    assert done.code == 130, (done.code, done.err)
    assert done.err.startswith("shoal: stopped after ") and done.err.count("\n") == 1, done.err
    report = json.loads(done.out)
    assert report["stopped"] is True and report["iterations"] >= 1
    assert numpy.load("c.npy").shape == (200, 24) and numpy.load("l.npy").shape == (20000,)
    predicted = json.loads(succeeds("predict", "c.npy", data, "--labels", "p.npy", "--json"))
    assert open("p.npy", "rb").read() == open("l.npy", "rb").read()
    assert abs(predicted["objective"] - report["objective"]) < 1e-9 * report["objective"]
    assert sorted(os.listdir(".")) == ["c.npy", "l.npy", "p.npy"]


def poll(what, condition):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"never {what}"
        select.select([], [], [], 0.01)


@test
def a_second_signal_ends_it_at_once_and_leaves_nothing():
    write("t.jsonl", "old")
    process = subprocess.Popen([SHOAL, "kmeans", *LONG, "--trace", "t.jsonl", "--centres", "c.npy", "--force"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    temporary = f"t.jsonl.tmp-{process.pid}-"

    def is_running():
        names = [name for name in os.listdir(".") if name.startswith(temporary)]
        return any('"phase": "run"' in open(name).read() for name in names)

    poll("in a round", is_running)
    process.send_signal(signal.SIGSTOP)  # so that both signals are there when it goes on
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode in (-signal.SIGINT, -signal.SIGTERM), process.returncode
    assert out == b"" and err == b"", (out, err)
    assert os.listdir(".") == ["t.jsonl"] and open("t.jsonl").read() == "old", os.listdir(".")


@test
def a_conversion_that_is_interrupted_leaves_nothing():
    write("out.csv", "old")
    process = subprocess.Popen([SHOAL, "data", "convert", "gen:uniform?rows=100000000&cols=10", "out.csv", "--force"],
                               stderr=subprocess.PIPE)
    poll("writing", lambda: any(name.startswith("out.csv.tmp-") and os.path.getsize(name) for name in os.listdir(".")))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == -signal.SIGINT and err == b"", (process.returncode, err)
    assert os.listdir(".") == ["out.csv"] and open("out.csv").read() == "old"


@test
def a_signal_that_was_ignored_stays_ignored():
    running = Running("kmeans", "gen:uniform?rows=5000&cols=8&seed=5", "-k", 10, "--iterations", 5, "--init", "random",
                      preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    running.wait_for("scan")
    running.process.send_signal(signal.SIGINT)
    assert running.finish().code == 0


@test
def a_file_that_shrinks_while_it_is_read_is_told():
    for threads, left in ((1, 128), (2, 1000000), (2, 20000 * 24 * 4 + 128 - 4)):  # the last within the last page
        numpy.save("x.npy", numpy.random.default_rng(1).random((20000, 24), dtype=numpy.float32))
        running = Running("kmeans", "x.npy", *LONG[1:], "--threads", threads, "--centres", "c.npy", "--labels", "l.npy",
                          "--model", "m.safetensors")
        running.wait_for("run")
        os.truncate("x.npy", left)
        done = running.finish()
        assert done.code == 1, (done.code, done.err)
        assert done.err == f"shoal: x.npy: the file shrank from 1920128 to {left} bytes while it was in use\n", done.err
        assert done.out == "" and os.listdir(".") == ["x.npy"], (done.out, os.listdir("."))


@test
def a_file_that_shrinks_under_workers_is_told():
    numpy.save("x.npy", numpy.random.default_rng(1).random((20000, 24), dtype=numpy.float32))
    running = Running(
        "kmeans", "x.npy", *LONG[1:], "--workers", "local:2", "--centres", "c.npy", "--labels", "l.npy",
        env={**os.environ, "XDG_STATE_HOME": os.getcwd() + "/state", "XDG_CACHE_HOME": os.getcwd() + "/cache"})
    running.wait_for("run")
    os.truncate("x.npy", 1000000)
    done = running.finish()
    assert done.code == 1, (done.code, done.err)
    assert "/x.npy changed since the job was made: the file shrank\n" in done.err and done.err.count(
        "\n") == 1, done.err
    assert done.out == "" and not {"c.npy", "l.npy"} & set(os.listdir(".")), (done.out, os.listdir("."))


# ---- progress -------------------------------------------------------------------------------------------------------

def on_terminal(*arguments):
    """stderr as a terminal 100 columns wide sees it."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, 0x5414, struct.pack("HHHH", 24, 100, 0, 0))  # TIOCSWINSZ
    process = subprocess.Popen([SHOAL, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=slave)
    os.close(slave)
    seen = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, seen
    return seen.decode(), out.decode()


@test
def progress_is_shown_on_a_terminal_and_cleared():
    data = ["kmeans", "gen:uniform?rows=100000&cols=16&seed=5", "-k", 200, "--iterations", 60, "--tolerance", 0]
    seen, out = on_terminal(*data)
    lines = seen.split("\r\x1b[K")
    assert lines[0] == "" and lines[-1] == "", seen
    assert "loading gen:uniform" in lines[1], seen
    assert any("rows/s" in line for line in lines), seen
    assert any(line.startswith("run ") and "objective" in line and "left" in line for line in lines), seen
    assert all(len(line) < 100 and "\n" not in line for line in lines), seen
    assert "objective" in out
    seen, _ = on_terminal(*data, "--iterations", 3, "--quiet")
    assert seen == "", seen
    assert succeeds(*data, "--iterations", 3), "and nothing of it when stderr is no terminal"


# ---------------------------------------------------------------------------------------------------------------------

def main():
    wanted, failed = sys.argv[2:], 0
    chosen = [function for function in TESTS if not wanted or function.__name__ in wanted]
    home = os.getcwd()
    for function in chosen:
        folder = tempfile.mkdtemp(prefix="shoal-cli-")
        os.chdir(folder)
        try:
            function()
        except Exception:
            failed += 1
            print(f"FAILED: {function.__name__}")
            traceback.print_exc(file=sys.stdout)
        finally:
            os.chdir(home)
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
