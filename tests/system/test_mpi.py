#!/usr/bin/env python3
# Seconds: 40
"""The same command under mpirun, of Open MPI and of MPICH, with any number of ranks: it writes the bytes that one
process writes.

    test_mpi.py PATH_TO_shoal [NAME...]

Needs a launcher of MPI and the plug-in for it, which lies where the program was built; what is not here is left out,
and told.
"""
import gzip
import json
import os
import re
import sys

import apart
import azurite
import mpi

sys.dont_write_bytecode = True
mpi.require()
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
try:
    import numpy as np
except ImportError:
    print("SKIPPED: python3-numpy is not here")
    sys.exit(77)

EXAMPLES = os.path.abspath("examples")
KMEANS = {
    "--centres": "c.npy", "--labels": "l.npy", "--model": "m.safetensors", "--picture": "p.png", "--plot": "q.svg",
    "--trace": "t.jsonl"
}
AUTOENCODER = {"--model": "m.safetensors", "--features": "f.npy", "--picture": "p.png", "--trace": "t.jsonl"}


def rows(count=3000, columns=9, seed=1):
    """Between 0 and 1, around a few centres, as numbers of few digits."""
    chance = np.random.default_rng(seed)
    centres = chance.random((12, columns))
    return np.clip(np.round(centres[chance.integers(12, size=count)] + chance.normal(size=(count, columns)) * 0.15, 3),
                   0, 1)


def save_csv(path, data):
    text = "\n".join(",".join(f"{value:g}" for value in row) for row in data) + "\n"
    with (gzip.open if path.endswith(".gz") else open)(path, "wt", encoding="ascii") as file:
        file.write(text)


def another(number):
    """One kind of MPI and then the other, where all need not do the same."""
    return mpi.KINDS[number % len(mpi.KINDS)]


# ---- learners with any number of ranks -------------------------------------------------------------------------------


def any_number_of_ranks(kind, sizes, work):
    for ranks in sizes:
        told = json.loads(work.agrees(kind, ranks, "--json").out)
        assert told["ranks"] == ranks and told["hosts"] == 1 and told["all_threads"] >= ranks, told


def kmeans_ranks(kind):
    np.save("x.npy", rows())
    sizes = (1, 2, 3, 4, 7)
    any_number_of_ranks(kind, sizes, mpi.Work("kmeans", "x.npy", "-k", 20, "--runs", 2, "--tolerance", 0, files=KMEANS))
    files = {**KMEANS, "--sample-labels": "s.npy", "--elbow": "e.svg"}
    metric = {"openmpi": "euclidean", "mpich": "cosine"}[kind]
    mpi.Work("kmeans", "x.npy", "-k", "2..6", "--sample", 200, "--metric", metric, files=files).agrees(kind, 3)


def autoencoder_ranks(kind):
    """What the kinds of MPI do not share has been tried with k-means: here each number is tried with one of them."""
    np.save("x.npy", rows())
    sizes = {"openmpi": (1, 3, 7), "mpich": (2, 4)}[kind]
    work = mpi.Work("autoencoder", "x.npy", "--hidden", 6, "--iterations", 30, "--tolerance", 0, files=AUTOENCODER)
    any_number_of_ranks(kind, sizes, work)


@apart.test
def kmeans_under_openmpi():
    with_kind("openmpi", kmeans_ranks)


@apart.test
def kmeans_under_mpich():
    with_kind("mpich", kmeans_ranks)


@apart.test
def autoencoder_under_openmpi():
    with_kind("openmpi", autoencoder_ranks)


@apart.test
def autoencoder_under_mpich():
    with_kind("mpich", autoencoder_ranks)


def with_kind(kind, case):
    if mpi.lacks(kind):
        raise apart.Skipped(mpi.lacks(kind))
    case(kind)


@apart.test
def logistic_and_predict():
    X = rows()
    np.save("x.npy", X)
    np.save("xy.npy", np.column_stack([X, (X[:, 0] + X[:, 1] * X[:, 2] > 0.8).astype(float) + (X[:, 3] > 0.7)]))
    files = {"--model": "m.safetensors", "--trace": "t.jsonl"}
    mpi.Work("logistic", "xy.npy", "--iterations", 30, files=files).agrees(another(0), 3)
    for verb, words in (("kmeans", ["x.npy", "-k", 30]), ("logistic", ["xy.npy", "--iterations", 5]),
                        ("autoencoder", ["x.npy", "--hidden", 5, "--iterations", 5])):
        mpi.alone(verb, *words, "--model", f"{verb}.safetensors", "--quiet")
    made = {
        "kmeans": {"--labels": "l.npy", "--distances": "d.npy"},
        "logistic": {"--labels": "l.npy", "--probabilities": "p.npy"}, "autoencoder": {"--features": "f.npy"}
    }
    for number, (learner, files) in enumerate(made.items()):
        work = mpi.Work("predict", f"{learner}.safetensors", "x.npy", files=files)
        done = work.agrees(another(number), 4)
        assert without_times(done.out) == without_times(work.printed), (done, work.printed)


@apart.test
def labels_from_a_file_of_their_own():
    X = rows()
    save_csv("x.csv", X)
    np.save("y.npy", (X[:, 0] > 0.5).astype(float))
    np.save("w.npy", np.arange(len(X)) % 5 / 2)
    work = mpi.Work("logistic", "x.csv", "--target", "y.npy", "--weights", "w.npy", "--l1", 0.5, "--iterations", 15,
                    files={"--model": "m.safetensors", "--trace": "t.jsonl"})
    for number, ranks in enumerate((2, 5)):
        work.agrees(another(number), ranks)


@apart.test
def named_and_standardised_columns():
    X = rows(1500)
    words = np.where(X[:, 0] + X[:, 1] > 1, "near", "far")

    def save_named(path, order):
        with open(path, "w", encoding="ascii") as file:
            print("kind", *(f"c{i}" for i in order), sep=",", file=file)
            for word, row in zip(words, X):
                print(word, *row[order], sep=",", file=file)

    save_named("x.csv", np.arange(9))
    save_named("moved.csv", np.arange(9)[::-1])
    known = ["--target", "kind", "--iterations", 8]
    files = {"--model": "m.safetensors"}
    mpi.Work("logistic", "x.csv", *known, "--standardise", files=files).agrees(another(0), 3)
    mpi.alone("logistic", "x.csv", *known, "--standardise", "--model", "first.safetensors", "--quiet")
    mpi.Work("logistic", "moved.csv", *known, "--start", "first.safetensors", files=files).agrees(another(1), 4)
    work = mpi.Work("predict", "first.safetensors", "moved.csv", "--score", files={"--probabilities": "p.npy"})
    for number, ranks in enumerate((2, 3)):
        done = work.agrees(another(number), ranks)
        assert without_times(done.out) == without_times(work.printed) and "accuracy" in done.out, done


@apart.test
def words_and_missing_values():
    """Ranks of a host share rows that one of them read: words, means and rows left out are those of a run alone."""
    X = rows(600, 3)
    words = np.where(X[:, 0] > 0.5, "oak", np.where(X[:, 1] > 0.5, "ash", "fir"))
    cells = [[f"{value!r}" for value in row] for row in X.tolist()]
    for i in range(5, 600, 50):
        cells[i][i % 3] = "NA"
    text = "".join(f"{a},{word},{b},{c}\n" for (a, b, c), word in zip(cells, words))
    with open("x.csv", "w") as file:
        file.write("a,kind,b,c\n" + text)
    np.save("w.npy", np.arange(600) % 5 / 2)
    for number, missing in enumerate(("mean", "drop")):
        work = mpi.Work("logistic", "x.csv", "--target", "kind", "--columns", "c,a,b", "--missing", missing,
                        "--weights", "w.npy", "--iterations", 10, files={"--model": "m.safetensors"})
        work.agrees(another(number), 3)


@apart.test
def modules_and_programs():
    np.save("x.npy", rows(2000, 4) * [1, 1e3, 1e6, 1e9])
    X = rows(2000, 4)
    np.save("xy.npy", np.column_stack([X, X[:, 0] > 0.5]))
    out = {"--out": "o.npy"}
    mpi.Work("run", f"{EXAMPLES}/sum_rows.c", "x.npy", files=out).agrees(another(0), 3)
    mpi.Work("run", f"{EXAMPLES}/logistic.c", "xy.npy", "--params", '{"rate": 1, "rounds": 20}', "--grain", 100,
             files={**out, "--trace": "t.jsonl"}).agrees(another(1), 3)
    command = f"{sys.executable} {EXAMPLES}/sum.py"
    for kind in mpi.KINDS:  # rounds that are batches, from strata that ranks share
        work = mpi.Work("run", f"{EXAMPLES}/sgd.c", "xy.npy", "--params", '{"batch": 50}', "--grain", 40, files=out)
        any_number_of_ranks(kind, (1, 2, 3, 4), work)
    mpi.Work("run", "--exec", command, "x.npy", "--grain", 300, "--threads", 1, files=out).agrees(another(0), 2)
    with open("double.py", "w", encoding="ascii") as file:
        example = open(f"{EXAMPLES}/sum.py", encoding="utf-8").read()
        file.write(example.replace("rows.sum(axis=0, dtype=wide)", "rows * 2"))
    command = f"{sys.executable} double.py"
    mpi.Work("run", "--exec", command, "x.npy", "--collect", "--grain", 300, "--threads", 1,
             files=out).agrees(another(1), 3)
    # Without a file the numbers are printed, by one rank.
    words = ["run", f"{EXAMPLES}/sum_rows.c", "x.npy"]
    assert mpi.run(another(0), 3, *words).out == mpi.alone(*words).out


# ---- where the rows come from ----------------------------------------------------------------------------------------


@apart.test
def files_of_every_kind():
    X = rows(1500)
    np.save("x.npy", X)
    save_csv("x.csv", X)
    save_csv("x.csv.gz", X)
    (X * 1000).astype("<i2").tofile("x.raw")
    mpi.alone("store", "put", "x.npy", "st/", "--quiet")
    outputs = {"--centres": "c.npy", "--labels": "l.npy"}
    for number, words in enumerate((["x.csv"], ["x.csv.gz"], ["x.raw", "--cols", "9", "--type", "i2"],
                                    ["gen:blobs?rows=1500&cols=9&seed=2"], ["dir:st/x.npy"])):
        local = ["x.npy"] if words == ["dir:st/x.npy"] else words
        work = mpi.Work("kmeans", *local, "-k", 8, files=outputs)
        work.words = ("kmeans", *words, "-k", 8)
        work.agrees(another(number), 3)


@apart.test
def standard_input():
    """Launchers give it to the first rank alone, and that of MPICH only as much as a pipe holds."""
    save_csv("x.csv", rows(400))
    work = mpi.Work("kmeans", "-", "-k", 8, "--grain", 70, files={"--centres": "c.npy", "--labels": "l.npy"},
                    stdin="x.csv")
    for kind in mpi.KINDS:
        work.agrees(kind, 3)


@apart.test
def rows_on_azure():
    """Each rank fetches its own; and the checkpoint is there as well."""
    if azurite.PROGRAM is None:
        raise apart.Skipped("Azurite is not installed (./dev deps test)")
    np.save("x.npy", rows(1500))
    words = ["-k", 8, "--tolerance", 0]
    work = mpi.Work("kmeans", "x.npy", *words, files={"--centres": "c.npy", "--labels": "l.npy"})
    os.mkdir("azure")
    with azurite.Server(os.path.abspath("azure"), "azurite") as server:
        server.wait()
        place = f"az://{azurite.ACCOUNT}/box"
        mpi.alone("store", "put", "x.npy", f"{place}/", "--create", "--quiet", env=server.variables())
        work.words = ("kmeans", f"{place}/x.npy", *words)
        work.agrees(another(0), 3, "--checkpoint", 0.01, "--checkpoint-file", f"{place}/saved", env=server.variables())
        assert mpi.alone("store", "ls", f"{place}/", env=server.variables()).out.split()[-1] == "x.npy"


@apart.test
def rows_that_are_made_again_each_round():
    work = mpi.Work("kmeans", "gen:uniform?rows=4000&cols=16&seed=2", "-k", 8, "--iterations", 4,
                    files={"--labels": "l.npy"})
    work.agrees(another(0), 3, "--memory", "10k")


@apart.test
def seeding_and_weights():
    X = rows(2500)
    np.save("x.npy", X)
    np.save("x4.npy", X.astype("f4"))
    np.save("w.npy", np.arange(len(X)) % 7 / 3)
    save_csv("w.csv", (np.arange(len(X)) % 7 / 3)[:, None])
    np.save("first.npy", X[:40])
    cases = [["x.npy", "-k", 60, "--init", "parallel", "--weights", "w.npy"],
             ["x4.npy", "-k", 40, "--init", "kmeans++", "--weights", "w.csv"],
             ["x.npy", "--init", "first.npy", "--empty", "split"],
             ["x4.npy", "-k", 300, "--init", "random", "--empty", "farthest"]]
    for number, words in enumerate(cases):
        mpi.Work("kmeans", *words, files=KMEANS).agrees(another(number), 3 + number % 2)


# ---- options ---------------------------------------------------------------------------------------------------------


def without_times(summary):
    """What one process prints, and many: all but how long it took and who computed it."""
    timed = "(time|kernel|ranks|wrote|sharing|predicted|no) "
    return [line for line in summary.splitlines() if not re.match(timed, line)]


@apart.test
def one_rank_prints():
    np.save("x.npy", rows())
    cases = [(["kmeans", "x.npy", "-k", 6], KMEANS),
             (["autoencoder", "x.npy", "--hidden", 3, "--iterations", 9], AUTOENCODER)]
    for number, (words, files) in enumerate(cases):
        work = mpi.Work(*words, files=files)
        done = work.agrees(another(number), 4)
        assert without_times(done.out) == without_times(
            work.printed) and len(without_times(done.out)) >= 3, (done, work.printed)
        assert not done.told() and not done.err.strip(), done
        assert "4 ranks" in done.out, done
        done = work.agrees(another(number), 2, "--quiet")
        assert not done.out and not done.err.strip(), done
    os.mkdir("board")
    done = mpi.run(another(0), 3, "kmeans", "x.npy", "-k", 6, "--tensorboard", "board")
    assert done.code == 0 and len(os.listdir("board")) == 1, (done, os.listdir("board"))


@apart.test
def threads_kernels_and_verify():
    np.save("x.npy", rows())
    kmeans = mpi.Work("kmeans", "x.npy", "-k", 20, files=KMEANS)
    learnt = mpi.Work("autoencoder", "x.npy", "--hidden", 6, "--iterations", 20, files=AUTOENCODER)
    for number, words in enumerate((["--threads", 3], ["--kernel", "portable"], ["--verify", 1], ["--verify",
                                                                                                  0], ["--grain", 70])):
        told = json.loads(kmeans.agrees(another(number), 2, "--json", *words).out)
        assert words[0] != "--threads" or (told["threads"], told["all_threads"]) == (3, 6), told
        assert words[0] != "--kernel" or told["kernel"] == "portable", told
    for number, words in enumerate((["--threads", 2], ["--verify", 1, "--kernel", "portable"])):
        learnt.agrees(another(number), 3, *words)


@apart.test
def more_ranks_than_grains():
    """The others idle, which is said once."""
    np.save("x.npy", rows(1000))
    for kind in mpi.KINDS:
        work = mpi.Work("kmeans", "x.npy", "-k", 9, "--grain", 400, files={"--centres": "c.npy", "--labels": "l.npy"})
        done = work.agrees(kind, 5)
        assert len(done.told()) == 1 and "2 of 5 ranks" in done.told()[0], done
        done = work.agrees(kind, 3)
        assert not done.told(), done
    np.save("one.npy", rows(1))
    work = mpi.Work("kmeans", "one.npy", "-k", 1, files={"--centres": "c.npy", "--labels": "l.npy"})
    assert "3 of 4 ranks" in work.agrees(another(0), 4).told()[0]


@apart.test
def words_that_are_no_run():
    """Told once, also where it is not known what ranks should do."""
    first, last = mpi.KINDS[0], mpi.KINDS[-1]
    mpi.refuses(first, 3, 2, "unknown command 'kmean'; did you mean 'kmeans'?", "kmean", "x.npy")
    mpi.refuses(last, 3, 2, "shoal needs a command, such as kmeans")
    mpi.refuses(last, 3, 2, "unknown option --wrong before the command", "--wrong")
    for kind in mpi.KINDS:
        done = mpi.run(kind, 3, "kmeans", "-h")
        assert done.code == 0 and done.out == mpi.alone("kmeans", "-h").out, done


@apart.test
def the_engine_that_was_asked_for():
    np.save("x.npy", rows(800))
    words = ["kmeans", "x.npy", "-k", 9]
    work = mpi.Work(*words, files={"--centres": "c.npy"})
    for kind in mpi.KINDS:
        told = json.loads(work.agrees(kind, 1, "--engine", "threads", "--json").out)
        assert told.get("ranks", 1) == 1, told
        assert json.loads(work.agrees(kind, 2, "--engine", "mpi", "--json").out)["ranks"] == 2
    os.mkdir("found")  # without a launcher: one rank
    told = json.loads(mpi.alone(*words, "--engine", "mpi", "--json", "--centres", "found/c.npy").out)
    assert told["ranks"] == 1, told
    work.compare("found", "without a launcher")


apart.main(at_once=2)
