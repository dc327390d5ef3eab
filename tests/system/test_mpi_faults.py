#!/usr/bin/env python3
# Seconds: 90
"""Ranks that go wrong: what one of them can't do is told once, with its number and host, and all end; killed ones are
resumed.

    test_mpi_faults.py PATH_TO_shoal [NAME...]

Needs a launcher of MPI and the plug-in for it, which lies where the program was built; what is not here is left out,
and told.
"""
import json
import os
import shutil
import signal
import socket
import sys

import apart
import mpi
from processes import wait_until

sys.dont_write_bytecode = True
mpi.require()
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
try:
    import numpy as np
except ImportError:
    print("SKIPPED: python3-numpy is not here")
    sys.exit(77)

EXAMPLES = os.path.abspath("examples")
HOST = socket.gethostname()
FIRST = mpi.KINDS[0]
LAST = mpi.KINDS[-1]
# More rounds than a page of their lines has, each of which takes a moment.
LONG = ["kmeans", "x.npy", "-k", 48, "--init", "random", "--runs", 4, "--iterations", 60, "--tolerance", 0]
FILES = {"--centres": "c.npy", "--labels": "l.npy"}
OFTEN = ["--checkpoint", 1e-6]  # after every round


def rows(count=2000, columns=8, seed=1):
    return np.random.default_rng(seed).random((count, columns))


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# ---- what all ranks find ---------------------------------------------------------------------------------------------


@apart.test
def wrong_words_are_told_once():
    np.save("x.npy", rows())
    cases = [(2, "unknown option --iterationz", ["kmeans", "x.npy", "-k", 3, "--iterationz", 5]),
             (2, "--checkpoint", ["kmeans", "x.npy", "-k", 3, "--checkpoint", -1]),
             (2, "--checkpoint-file needs", ["kmeans", "x.npy", "-k", 3, "--checkpoint-file", "f"]),
             (2, "--engine", ["kmeans", "x.npy", "-k", 3, "--engine", "pvm"]),
             (2, "workers", ["kmeans", "x.npy", "-k", 3, "--workers", "local:2"]),
             (1, "-k 3000 is more than", ["kmeans", "x.npy", "-k", 3000]),
             (1, "none.npy: can't read", ["kmeans", "none.npy", "-k", 3]),
             (1, "none.npy: can't read", ["kmeans", "x.npy", "-k", 3, "--weights", "none.npy"]),
             (1, "/nowhere/c.npy: can't write", ["kmeans", "x.npy", "-k", 3, "--centres", "/nowhere/c.npy"]),
             (1, "none.c: can't read the module", ["run", "none.c", "x.npy"])]
    for number, (code, sentence, words) in enumerate(cases):
        told = mpi.refuses(mpi.KINDS[number % len(mpi.KINDS)], 3, code, sentence, *words)
        assert "rank " not in told, told
    mpi.refuses(FIRST, 3, 2, "", "kmeans", "x.npy")
    done = mpi.run(FIRST, 3, "kmeanz", "x.npy")
    assert done.code == 2, done


@apart.test
def rows_that_can_not_be():
    X = rows()
    np.savetxt("x.csv", X[:200], delimiter=",", fmt="%g")
    lines = open("x.csv", encoding="ascii").read().splitlines()
    lines[56] = lines[56].replace("0.", "zero.", 1)
    write("x.csv", "\n".join(lines) + "\n")
    told = mpi.refuses(FIRST, 3, 1, "x.csv", "kmeans", "x.csv", "-k", 3, "--labels", "l.npy")
    assert "57" in told, told
    X[1990, 3] = np.nan
    np.save("x.npy", X)
    for kind in mpi.KINDS:
        mpi.refuses(kind, 4, 1, "x.npy: 1 value is missing, the first in row 1991, column 4", "kmeans", "x.npy", "-k",
                    3, "--labels", "l.npy")
    told = mpi.refuses(LAST, 3, 1, "x.npy", "autoencoder", "x.npy", "--hidden", 3, "--features", "f.npy")
    assert "row 1991" in told, told


@apart.test
def outputs_that_can_not_be_written():
    """At the end, by rank 0; the others do not wait forever."""
    np.save("x.npy", rows())
    done = mpi.run(FIRST, 3, "kmeans", "x.npy", "-k", 3, "--centres", "/dev/full", "--quiet")
    assert done.code == 1 and len(done.told()) == 1 and "/dev/full" in done.told()[0], done
    done = mpi.run(LAST, 3, "kmeans", "x.npy", "-k", 3, program=mpi.by_rank("[ $RANK != 0 ] || exec >/dev/full"))
    assert done.code == 1 and len(done.told()) == 1, done


# ---- what one rank finds ---------------------------------------------------------------------------------------------


@apart.test
def data_that_one_rank_can_not_see():
    np.save("x.npy", rows())
    np.savetxt("x.csv", rows(1000), delimiter=",")
    os.mkdir("elsewhere")
    for kind in mpi.KINDS:
        for number, whose in ((0, ""), (2, f"rank 2 on {HOST}: ")):  # the first of a host speaks for all of it
            there = mpi.by_rank(f"[ $RANK != {number} ] || cd elsewhere")
            mpi.refuses(kind, 3, 1, f"shoal: {whose}x.npy: can't read", "kmeans", "x.npy", "-k", 3, "--labels",
                        f"{os.getcwd()}/l.npy", program=there)
    # Nor may it be another file of that name.
    np.save("elsewhere/x.npy", rows(1999))
    there = mpi.by_rank("[ $RANK != 1 ] || cd elsewhere")
    mpi.refuses(FIRST, 3, 1, f"rank 1 on {HOST} ", "kmeans", "x.npy", "-k", 3, program=there)
    # What the first rank of a host has parsed is not read again.
    done = mpi.run(FIRST, 3, "kmeans", "x.csv", "-k", 3, "--quiet", program=there)
    assert done.code == 0 and not done.told(), done


@apart.test
def options_that_differ():
    np.save("x.npy", rows())
    words = ["kmeans", "x.npy", "-k", 5, "--iterations", 20]
    cases = [("--seed 7", "set of options"), ("-k 6", "set of options"), ("--iterations 21", "set of options"),
             ("--tolerance 0.5", "set of options"), ("--verify 3", "--verify"), ("--resume", "--resume"),
             ("--grain 100", "grain")]
    for number, (other, what) in enumerate(cases):
        program = mpi.by_rank(f'[ $RANK != 2 ] || set -- "$@" {other}')
        told = mpi.refuses(mpi.KINDS[number % len(mpi.KINDS)], 3, 1, f"rank 2 on {HOST} has another ", *words,
                           program=program)
        assert what in told, (other, told)
    # Several programs, as launchers have them, of which each is right alone.
    for kind in mpi.KINDS:
        others = [
            *words, "--labels", "l.npy", ":", "-n", 1, mpi.SHOAL, "autoencoder", "x.npy", "--hidden", 3, "--model",
            "m.safetensors"
        ]
        mpi.refuses(kind, 1, 1, f"rank 1 on {HOST} has another learner than rank 0", *others)
    # What rank 0 alone writes is its own, though all make it.
    network = mpi.Work("autoencoder", "x.npy", "--hidden", 3, "--iterations", 5, files={"--features": "f.npy"})
    for kind in mpi.KINDS:
        os.mkdir("found")
        done = mpi.run(kind, 1, *network.words, *network.outputs("found"), ":", "-n", 2, mpi.SHOAL, *network.words)
        assert done.code == 0, done
        network.compare("found", kind)
    # One that is wrong alone.
    program = mpi.by_rank('[ $RANK != 2 ] || set -- "$@" --seed none')
    mpi.refuses(FIRST, 3, 2, f"rank 2 on {HOST}: ", *words, program=program)


@apart.test
def kernel_sets_that_differ():
    """Told where bits depend on it, which is so for none of our own learners."""
    np.save("x.npy", rows())
    np.save("i.npy", np.arange(2000).reshape(-1, 4))
    mixed = mpi.by_rank("[ $RANK != 1 ] || export SHOAL_KERNEL=portable")
    best = json.loads(mpi.alone("kmeans", "x.npy", "-k", 3, "--json").out)["kernel"]
    mpi.Work("kmeans", "x.npy", "-k", 9, files=FILES).agrees(FIRST, 3, program=mixed)
    mpi.Work("autoencoder", "x.npy", "--hidden", 5, "--iterations", 9,
             files={"--model": "m.safetensors"}).agrees(LAST, 3, program=mixed)
    with open(f"{EXAMPLES}/sum_matrix.c", encoding="utf-8") as file:
        text = file.read().split("int main")[0].replace(".kernel_free = true", ".kernel_free = false")
    write("bound.c", text + "#include <shoal/module.h>\nSHOAL_MODULE(.algorithm = &sum_matrix);\n")
    mpi.alone("run", "bound.c", "i.npy")  # compiled
    done = mpi.run(FIRST, 3, "run", "bound.c", "i.npy")
    assert done.code == 0, done
    if best != "portable":
        mpi.refuses(FIRST, 3, 1, f"rank 1 on {HOST} has another kernel set (--kernel ", "run", "bound.c", "i.npy",
                    program=mixed)
    done = mpi.run(FIRST, 3, "run", "bound.c", "i.npy", "--kernel", "portable", program=mixed)
    assert done.code == 0, done


@apart.test
def versions_that_differ():
    """A program whose every byte is the same but for its version's last digit."""
    np.save("x.npy", rows())
    version = mpi.alone("--version").out.split()[1]
    other = version[:-1] + ("8" if version[-1] != "8" else "9")
    with open(mpi.SHOAL, "rb") as file:
        program = file.read()
    os.mkdir("other")
    with open("other/shoal", "wb", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
        file.write(program.replace(version.encode() + b"\0", other.encode() + b"\0"))
    found = mpi.alone("--version", program="other/shoal").out.split()[1]
    assert found == other, (found, other)
    for kind in mpi.KINDS:
        two = mpi.by_rank('[ $RANK != 1 ] || exec other/shoal "$@"')
        told = mpi.refuses(kind, 3, 1, f"rank 1 on {HOST} has another version of shoal", "kmeans", "x.npy", "-k", 3,
                           program=two, env={"SHOAL_MPI_PLUGIN": mpi.plugin(kind)})
        assert told, told


# ---- launchers and plug-ins that do not go together ------------------------------------------------------------------


@apart.test
def without_the_plugin():
    """One sentence, and no run at all: not as many as there are ranks."""
    np.save("x.npy", rows())
    os.mkdir("alone")
    shutil.copy(mpi.SHOAL, "alone/shoal")
    words = ["kmeans", "x.npy", "-k", 3, "--labels", "l.npy"]
    for kind in mpi.KINDS:
        mpi.refuses(kind, 4, 1, "/nowhere/lib.so", *words, env={"SHOAL_MPI_PLUGIN": "/nowhere/lib.so"})
        told = mpi.refuses(kind, 4, 1, "libshoal-mpi.so", *words, program=["alone/shoal"])
        assert "mpirun" in told, told
        # One host lacks it: the others do not wait forever.
        lacking = mpi.by_rank("test $RANK != 2 || export SHOAL_MPI_PLUGIN=/nowhere/lib.so")
        told = mpi.refuses(kind, 3, 1, "/nowhere/lib.so", *words, program=lacking)
        assert told.startswith("shoal: rank 2 on "), told
        # A file that is something else.
        mpi.refuses(kind, 2, 1, "x.npy", *words, env={"SHOAL_MPI_PLUGIN": f"{os.getcwd()}/x.npy"})
    told = mpi.alone(*words, "--engine", "mpi", program="alone/shoal", code=1).told()
    assert len(told) == 1 and "libshoal-mpi.so" in told[0], told
    mpi.alone(*words, "--quiet", program="alone/shoal")  # which needs none


@apart.test
def the_launcher_of_another_mpi():
    if len(mpi.KINDS) < 2:
        raise apart.Skipped("there is one kind of MPI here")
    np.save("x.npy", rows())
    for kind, other in (("openmpi", "mpich"), ("mpich", "openmpi")):
        told = mpi.refuses(kind, 3, 1, "", "kmeans", "x.npy", "-k", 3, "--labels", "l.npy",
                           env={"SHOAL_MPI_PLUGIN": mpi.plugin(other)})
        assert "Open MPI" in told and "MPICH" in told, told


# ---- functions that go wrong on one rank -----------------------------------------------------------------------------

MODULE = """#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <shoal/module.h>
static int rank(void)
{
    const char *text = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
    return text ? atoi(text) : 0;
}
static void map(double *sum, const double *model, const shoal_rows *rows, const shoal_setting *setting)
{ sum[0] += rows->count; MAP }
static bool update(double *model, const double *sum, int64_t round, const shoal_setting *setting)
{ model[0] += sum[0]; UPDATE return round == 40; }
SHOAL_MODULE(.map = map, .update = update);
"""


@apart.test
def updates_that_differ_are_found():
    np.save("x.npy", rows())
    write("m.c", MODULE.replace("MAP", "").replace("UPDATE", "if (rank() == 2 && round == 21) model[0] += 1e-9;"))
    mpi.alone("run", "m.c", "x.npy")  # compiled
    for kind in mpi.KINDS:
        mpi.refuses(kind, 4, 1, f"rank 2 on {HOST} has another model after the same rounds than ", "run", "m.c",
                    "x.npy", "--grain", 100, "--verify", 1, "--out", "o.npy")
    mpi.refuses(FIRST, 4, 1, f"rank 2 on {HOST} has another model", "run", "m.c", "x.npy", "--grain", 100, "--out",
                "o.npy")


@apart.test
def maps_that_fail():
    np.save("x.npy", rows())
    write("m.c", MODULE.replace("MAP", "if (rank() == 1) sum[1] = NAN;").replace("UPDATE", ""))
    mpi.alone("run", "m.c", "x.npy")
    for kind in mpi.KINDS:
        told = mpi.refuses(kind, 3, 1, f"rank 1 on {HOST}: ", "run", "m.c", "x.npy", "--grain", 100, "--out", "o.npy")
        assert "the module's sum 2 of rows" in told and "is NaN" in told, told
    write("f.sh", "[ ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} != 2 ] || { echo no such luck >&2; exit 3; }\ncat\n")
    told = mpi.refuses(LAST, 3, 1, f"rank 2 on {HOST}: ", "run", "--exec", "sh f.sh", "x.npy", "--collect", "--grain",
                       100, "--threads", 1, "--out", "o.npy")
    assert "no such luck" in told or "3" in told, told


@apart.test
def maps_that_crash():
    """Nobody can tell more than the launcher does, but nobody waits forever."""
    np.save("x.npy", rows())
    write("m.c", MODULE.replace("MAP", "if (rank() == 1 && model[0] > 1e4) abort();").replace("UPDATE", ""))
    mpi.run(FIRST, 1, "run", "m.c", "x.npy", "--quiet")  # compiled
    for kind in mpi.KINDS:
        done = mpi.run(kind, 3, "run", "m.c", "x.npy", "--grain", 100, "--out", "o.npy")
        assert done.code != 0 and not os.path.exists("o.npy"), done


# ---- killed and resumed ----------------------------------------------------------------------------------------------


def version(place):
    """Another one whenever the file was replaced; the number alone comes back when a file was replaced twice."""
    about = os.stat(place)
    return about.st_ino, about.st_mtime_ns


def begin(kind, ranks, work, *more, rounds=30, place="kmeans.checkpoint"):
    """The job, in the middle of its rounds, where it stands still; its checkpoint was written again and again."""
    os.makedirs("found", exist_ok=True)
    followed = mpi.Followed()
    words = [*work.words, *work.outputs("found"), *OFTEN, *more, "--trace", followed.path]
    job = mpi.start(kind, ranks, *words) if kind else mpi.Job([mpi.SHOAL, *words])
    try:
        followed.rounds(job, rounds)
        before = place and version(place)
        followed.rounds(job, 5)
        while place and version(place) == before:  # a full pipe takes more only once all of its page was read
            followed.rounds(job, 1)
    except BaseException:
        job.kill()
        raise
    job.followed = followed
    return job


def break_off(job, pid=None):
    """Kills this process, or all; nothing is written, and nothing but the checkpoint left."""
    if pid:
        os.kill(pid, signal.SIGKILL)
        done = job.end()
        assert done.code != 0, done
    else:
        job.kill()
    job.followed.remove()
    assert os.listdir("found") == [], os.listdir("found")


def resumes(kind, ranks, work, *more, place="kmeans.checkpoint"):
    """To the same bytes; it does not begin again."""
    words = [*work.words, *work.outputs("found"), "--checkpoint", 100, "--resume", *more, "--json"]
    done = mpi.run(kind, ranks, *words) if kind else mpi.alone(*words)
    assert done.code == 0, done
    told = json.loads(done.out)
    assert told["resumed"] >= 30, told
    for name in ("rounds", "iterations", "objective"):
        assert told[name] == work.report()[name], (name, told, work.report())
    work.compare("found", (kind, ranks))
    assert not place or not os.path.exists(place)


@apart.test
def a_rank_is_killed():
    np.save("x.npy", rows())
    work = mpi.Work(*LONG, files=FILES)
    for kind, killed, others in ((FIRST, 2, 2), (FIRST, 0, 5), (LAST, 1, 3), (LAST, 0, 1)):
        job = begin(kind, 3, work)
        break_off(job, job.ranks()[killed])
        resumes(kind, others, work)


@apart.test
def a_learner_by_gradients_is_killed():
    np.save("x.npy", rows())
    work = mpi.Work("autoencoder", "x.npy", "--hidden", 6, "--iterations", 120, "--tolerance", 0, "--change", 0,
                    files={"--model": "m.safetensors", "--features": "f.npy"})
    for kind, others in ((FIRST, 4), (LAST, 2)):
        job = begin(kind, 3, work, place="autoencoder.checkpoint")
        break_off(job, job.ranks()[1])
        resumes(kind, others, work, place="autoencoder.checkpoint")


@apart.test
def ranks_and_threads_resume_each_other():
    np.save("x.npy", rows())
    work = mpi.Work(*LONG, files=FILES)
    job = begin(FIRST, 3, work)
    break_off(job, job.ranks()[1])
    resumes(None, 0, work)
    break_off(begin(None, 0, work))
    resumes(LAST, 3, work)
    # And once more: a checkpoint of what was resumed.
    break_off(begin(None, 0, work))
    job = begin(FIRST, 2, work, "--resume", rounds=1)
    break_off(job, job.ranks()[1])
    resumes(LAST, 3, work, "--kernel", "portable", "--threads", 2)


@apart.test
def checkpoints_in_a_store():
    np.save("x.npy", rows())
    write("first", "")
    mpi.alone("store", "put", "first", "st/", "--quiet")
    work = mpi.Work(*LONG, files=FILES)
    where = ["--checkpoint-file", "dir:st/saved/one"]
    job = begin(FIRST, 3, work, *where, place=None)
    break_off(job, job.ranks()[0])
    assert mpi.alone("store", "ls", "-r", "dir:st/").out.split() and "saved" in mpi.alone(
        "store", "ls", "-r", "dir:st/").out
    mpi.refuses(LAST, 2, 1, "dir:st/saved/one exists, from a run that did not finish", *work.words, *OFTEN, *where)
    resumes(FIRST, 4, work, *where, place=None)
    assert "saved" not in mpi.alone("store", "ls", "-r", "dir:st/").out


@apart.test
def checkpoints_that_do_not_fit():
    np.save("x.npy", rows())
    np.save("y.npy", rows(seed=2))
    work = mpi.Work(*LONG, files=FILES)
    job = begin(FIRST, 3, work)
    break_off(job, job.ranks()[1])
    with open("kmeans.checkpoint", "rb") as file:
        whole = file.read()
    of_another = ("kmeans.checkpoint belongs to another run: other data, options, module or command, or another "
                  "version of shoal")
    go_on = [*OFTEN, "--resume"]
    mpi.refuses(FIRST, 3, 1,
                "kmeans.checkpoint exists, from a run that did not finish: resume it with --resume, or remove it",
                *LONG, *OFTEN)
    mpi.refuses(FIRST, 3, 1, of_another, *LONG[:3], 47, *LONG[4:], *go_on)
    mpi.refuses(LAST, 2, 1, of_another, "kmeans", "y.npy", *LONG[2:], *go_on)
    mpi.refuses(LAST, 2, 1, of_another, *LONG, "--seed", 5, *go_on)
    changed = whole[:40] + bytes([whole[40] ^ 1]) + whole[41:]
    for broken in (whole[:-1], whole[:len(whole) // 2], b"", changed, whole + b"x"):
        with open("kmeans.checkpoint", "wb") as file:
            file.write(broken)
        done = mpi.alone(*LONG, *go_on, code=1)
        assert "kmeans.checkpoint" in done.err, done
        if broken is changed:
            mpi.refuses(LAST, 2, 1, "kmeans.checkpoint", *LONG, *go_on)
        with open("kmeans.checkpoint", "rb") as file:
            assert file.read() == broken
    with open("kmeans.checkpoint", "wb") as file:
        file.write(whole)
    resumes(FIRST, 2, work)
    # Without one it begins at the beginning; where none can be written it does not begin.
    mpi.refuses(FIRST, 2, 1, "/nowhere/f", *LONG, *OFTEN, "--checkpoint-file", "/nowhere/f")
    work.agrees(LAST, 3, *go_on, folder="again")
    assert not os.path.exists("kmeans.checkpoint")


@apart.test
def a_checkpoint_that_can_not_be_written_any_more():
    np.save("x.npy", rows())
    os.mkdir("place")
    work = mpi.Work(*LONG, files=FILES)
    job = begin(FIRST, 3, work, "--checkpoint-file", "place/one", place="place/one")
    os.rename("place", "gone")
    while job.process.poll() is None:  # it goes on to the next checkpoint
        try:
            job.followed.rounds(job, 1)
        except AssertionError:
            break
    done = job.end()
    assert done.code == 1 and len(done.told()) == 1 and "place/one" in done.told()[0], done
    assert os.listdir("found") == []


# ---- asked to stop ---------------------------------------------------------------------------------------------------


@apart.test
def asked_to_stop():
    """All are, or one: what there is is written, as one process does it, and can go on."""
    np.save("x.npy", rows())
    work = mpi.Work(*LONG, files=FILES)
    for kind, chosen in ((FIRST, None), (LAST, None), (FIRST, 2)):
        os.makedirs("found", exist_ok=True)
        job = begin(kind, 3, work, "--json")
        for rank, pid in job.ranks().items():
            if chosen in (None, rank):
                os.kill(pid, signal.SIGTERM)
        while job.process.poll() is None:
            try:
                job.followed.rounds(job, 1)
            except AssertionError:
                break
        done = job.end()
        job.followed.remove()
        assert done.code == 130 and len(done.told()) == 1 and "stopped after " in done.told()[0], done
        assert json.loads(done.out)["stopped"] is True, done
        mpi.alone("predict", "found/c.npy", "x.npy", "--labels", "p.npy", "--quiet")
        with open("p.npy", "rb") as predicted, open("found/l.npy", "rb") as labels:
            assert predicted.read() == labels.read(), "labels belong to the centres that were written"
        resumes(kind, 2, work)


apart.main(at_once=2)
