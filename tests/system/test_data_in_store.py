#!/usr/bin/env python3
"""DATA in a store, without workers: every learner fetches the rows itself and finds the same bytes as from the file.

    test_data_in_store.py PATH_TO_shoal [NAME...]

On a folder, and on Azurite where it is installed. A blob that is replaced, gone or no matrix that can be used where it
lies is told in one sentence.
"""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

import apart
import azurite
import mpi
from gradient_work import LEARNERS, make_data, rounds

SHOAL = os.path.abspath(sys.argv[1])
SGD = pathlib.Path(__file__).resolve().parents[2] / "examples/sgd.c"
SUM_ROWS = pathlib.Path(__file__).resolve().parents[2] / "examples/sum_rows.c"
SECONDS = 600  # until something that never comes is a failure


def start(*words):
    return subprocess.Popen([SHOAL, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def end(process, code=0):
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == code, f"{process.args} exits {process.returncode}, not {code}: {out} {err}"
    return out, err


def run(*words, code=0):
    return end(start(*words), code)[0]


def refuses(code, sentence, *words):
    _, err = end(start(*words), code)
    lines = [line for line in err.splitlines() if not line.startswith("try ")]
    assert len(lines) == 1 and sentence in lines[0], f"{words} says {err!r}, not {sentence!r}"


def same(a, b):
    assert pathlib.Path(a).read_bytes() == pathlib.Path(b).read_bytes(), f"{a} and {b} differ"


@contextlib.contextmanager
def folder():
    yield "dir:st/"


@contextlib.contextmanager
def azure():
    if not azurite.PROGRAM:
        raise apart.Skipped("Azurite is not installed: ./dev deps test")
    with azurite.Server(os.getcwd(), "azurite") as server:
        server.wait()
        os.environ.update(server.variables())
        yield f"az://{azurite.ACCOUNT}/rows/"


def put(store, *names):
    run("store", "put", "--create", "--quiet", *names, store)


def files_that_are_written(what, data, *options):
    """Runs a learner on the data and moves what it wrote to names that start with `what`."""
    outputs = {"kmeans": ["--centres", "--labels"], "autoencoder": ["--model", "--features"],
               "predict": ["--labels", "--distances"], "run": ["--out"]}.get(options[0], ["--model"])
    written = [
        f"{what}{number}.{'safetensors' if option == '--model' else 'npy'}" for number, option in enumerate(outputs)
    ]
    places = [word for pair in zip(outputs, written) for word in pair]
    run(*[data if word == "DATA" else word for word in options], *places, "--quiet", "--force")
    return written


def agrees(file, url, *options, more=([],)):
    """The same bytes from the file and from the store, the latter also with each of `more`."""
    expected = files_that_are_written("expected", file, *options)
    for words in more:
        for a, b in zip(expected, files_that_are_written("found", url, *options, *words)):
            same(a, b)


def every_learner(store):
    run("data", "convert", "gen:blobs?rows=5000&cols=7&centres=9", "rows.npy")
    run("data", "convert", "rows.npy", "rows.raw")
    make_data(".", run)
    put(store, "rows.npy", "rows.raw", "pictures.npy", "labelled.npy")
    anywhere = [[], ["--threads", 3, "--grain", 100], ["--memory", 1000]]
    agrees("rows.npy", f"{store}rows.npy", "kmeans", "DATA", "-k", 9, more=anywhere)
    agrees("rows.raw", f"{store}rows.raw", "kmeans", "DATA", "-k", 9, "--cols", 7, "--type", "f4")
    run("data", "convert", "gen:uniform?rows=5000&cols=1", "weights.npy")
    agrees("rows.npy", f"{store}rows.npy", "kmeans", "DATA", "-k", 4, "--weights", "weights.npy")
    for learner in LEARNERS:
        name, *options = LEARNERS[learner]
        agrees(name, f"{store}{name}", learner, "DATA", *options, *rounds(learner, 5))
    run("kmeans", "rows.npy", "-k", 5, "--model", "model.safetensors", "--quiet")
    agrees("rows.npy", f"{store}rows.npy", "predict", "model.safetensors", "DATA", more=anywhere)
    agrees("rows.npy", f"{store}rows.npy", "run", "--exec", "cat", "DATA", "--collect")
    if shutil.which(os.environ.get("CC", "cc")):
        agrees("rows.npy", f"{store}rows.npy", "run", SUM_ROWS, "DATA", more=[[], ["--threads", 2]])
        batches = ["run", SGD, "DATA", "--params", '{"epochs": 2, "batch": 300}', "--grain", 200]
        agrees("labelled.npy", f"{store}labelled.npy", *batches, more=[["--threads", 2], ["--memory", 1000]])


@apart.test
def every_learner_on_a_folder():
    with folder() as store:
        every_learner(store)
        run("kmeans", f"{store}rows.npy", "-k", 9, "--workers", "local:2", "--centres", "workers.npy", "--quiet")
        run("kmeans", f"{store}rows.npy", "-k", 9, "--centres", "threads.npy", "--quiet")
        same("workers.npy", "threads.npy")
        # What the store alone has is what is read, from any folder.
        os.rename("rows.npy", "elsewhere.npy")
        os.mkdir("below")
        os.chdir("below")
        run("kmeans", "dir:../st/rows.npy", "-k", 9, "--centres", "here.npy", "--quiet")
        same("here.npy", "../threads.npy")
        os.chdir("..")


@apart.test
def every_learner_on_azure():
    with azure() as store:
        every_learner(store)


def need_ranks():
    if not mpi.KINDS:
        raise apart.Skipped("; ".join(filter(None, map(mpi.lacks, ("openmpi", "mpich")))))


@apart.test
def ranks_on_a_folder():
    """The weights come through a pipe, which can be read once: one rank does, for all."""
    need_ranks()
    with folder() as store:
        run("data", "convert", "gen:blobs?rows=5000&cols=7&centres=9", "rows.npy")
        run("data", "convert", "gen:uniform?rows=5000&cols=1", "weights.csv")
        put(store, "rows.npy")
        run("kmeans", "rows.npy", "-k", 9, "--weights", "weights.csv", "--centres", "expected.npy", "--quiet")
        os.mkfifo("pipe")
        for kind in mpi.KINDS:
            words = [
                "kmeans", f"{store}rows.npy", "-k", "9", "--weights", "pipe", "--centres", f"{kind}.npy", "--quiet"
            ]
            with subprocess.Popen(["sh", "-c", "exec cat weights.csv > pipe"]) as writer:
                try:
                    subprocess.run([*mpi.launcher(kind, 3), SHOAL, *words], env=mpi.environment(),
                                   stdin=subprocess.DEVNULL, check=True, timeout=SECONDS)
                finally:
                    writer.kill()
            same("expected.npy", f"{kind}.npy")


@apart.test
def ranks_on_azure():
    need_ranks()
    with azure() as store:
        run("data", "convert", "gen:blobs?rows=5000&cols=7&centres=9", "rows.npy")
        put(store, "rows.npy")
        run("kmeans", "rows.npy", "-k", 9, "--centres", "expected.npy", "--labels", "expected_labels.npy", "--quiet")
        for kind in mpi.KINDS:
            words = [
                "kmeans", f"{store}rows.npy", "-k", "9", "--centres", "found.npy", "--labels", "labels.npy", "--quiet"
            ]
            subprocess.run([*mpi.launcher(kind, 3), SHOAL, *words], env=mpi.environment(), stdin=subprocess.DEVNULL,
                           check=True, timeout=SECONDS)
            same("expected.npy", "found.npy")
            same("expected_labels.npy", "labels.npy")


def changes(store, change, *reasons):
    """The weights come through a pipe, which is opened after the data: what happens to the blob then is seen by whoever
    fetches rows."""
    if not os.path.exists("pipe"):
        os.mkfifo("pipe")
    put(store, "rows.npy")
    process = start("kmeans", f"{store}rows.npy", "-k", 3, "--weights", "pipe", "--centres", "none.npy")
    with open("pipe", "w", encoding="ascii") as pipe:
        change()
        pipe.write("1\n" * 600)
    _, err = end(process, 1)
    lines = err.splitlines()
    sentences = [f"rows.npy: the rows changed since they were opened: the blob {reason}" for reason in reasons]
    assert len(lines) == 1 and lines[0].startswith("shoal: ") and lines[0].endswith(tuple(sentences)), err
    assert lines[0].count("rows.npy") == 1 and not os.path.exists("none.npy"), err


def a_blob_changes(store):
    run("data", "convert", "gen:uniform?rows=600&cols=40", "rows.npy")
    run("data", "convert", "gen:uniform?rows=600&cols=40&seed=2", "other.npy")
    changes(store, lambda: run("store", "put", "--quiet", "other.npy", f"{store}rows.npy"), "has another version")
    # A server may look at the condition before it looks for the blob.
    changes(store, lambda: run("store", "rm", "--quiet", f"{store}rows.npy"), "is gone", "has another version")
    put(store, "rows.npy")
    run("kmeans", f"{store}rows.npy", "-k", 3, "--quiet")


@apart.test
def a_blob_that_changes_in_a_folder():
    with folder() as store:
        a_blob_changes(store)


@apart.test
def a_blob_that_changes_on_azure():
    with azure() as store:
        a_blob_changes(store)


def what_can_not_be_used(store, named):
    pathlib.Path("table.csv").write_text("1,2\n3,4\n" * 50, encoding="ascii")
    run("data", "convert", "table.csv", "table.csv.gz")
    run("data", "convert", "table.csv", "table.npy")
    pathlib.Path("empty").touch()
    pathlib.Path("short.npy").write_bytes(pathlib.Path("table.npy").read_bytes()[:-3])
    put(store, "table.csv", "table.csv.gz", "table.npy", "empty", "short.npy")
    for name in ("table.csv", "table.csv.gz"):
        for verb in (["kmeans", "-k", 2], ["autoencoder", "--hidden", 2], ["logistic", "--target",
                                                                           1], ["run", "--exec", "cat"]):
            refuses(1, "can't be used where it lies in a store; fetch it first with shoal store get", *verb,
                    f"{store}{name}")
    refuses(1, f"{named}none.npy: there is no such key", "kmeans", f"{store}none.npy", "-k", 2)
    refuses(1, "the blob is empty", "kmeans", f"{store}empty", "-k", 2)
    refuses(1, "short.npy: 100 rows take 1600 bytes, and there are 1597", "kmeans", f"{store}short.npy", "-k", 2)
    refuses(2, "names a store, but no blob in it", "kmeans", store, "-k", 2)
    refuses(2, "columns can't be chosen while the rows lie in a store", "kmeans", f"{store}table.npy", "-k", 2,
            "--drop-column", "1")
    refuses(2, "are for raw files, and this is npy", "kmeans", f"{store}table.npy", "-k", 2, "--cols", 2, "--type",
            "f8")
    refuses(2, "stay in their store, so the target must be one of its columns", "logistic", f"{store}table.npy",
            "--target", "table.npy")
    refuses(1, "--weights needs one value for each of the 100 rows", "kmeans", f"{store}table.npy", "-k", 2,
            "--weights", "table.npy")
    refuses(1, "but model.npy is a model for 3", "predict", model(), f"{store}table.npy")


def model():
    run("data", "convert", "gen:uniform?rows=2&cols=3", "model.npy")
    return "model.npy"


@apart.test
def what_can_not_be_used_in_a_folder():
    with folder() as store:
        what_can_not_be_used(store, f"dir:{os.getcwd()}/st/")
    refuses(1, "there is no store at", "kmeans", "dir:nowhere/x.npy", "-k", 2)
    refuses(2, "must not contain a secret", "kmeans", "az://account/box/x.npy?sig=abc", "-k", 2)


@apart.test
def what_can_not_be_used_on_azure():
    with azure() as store:
        what_can_not_be_used(store, store)
        os.environ["AZURE_STORAGE_KEY"] = "bm90IHRoZSBrZXk="
        refuses(1, store[:-1], "kmeans", f"{store}table.npy", "-k", 2)


apart.main(at_once=4)
