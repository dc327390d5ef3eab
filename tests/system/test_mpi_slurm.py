#!/usr/bin/env python3
# Seconds: 40
"""Ranks that srun starts on a Slurm cluster of two nodes: the bytes are those of one process, also when one is killed
on the way.

    test_mpi_slurm.py PATH_TO_shoal [CASE...]

Needs root, Slurm and munge (slurm.py), and the plug-in of an MPI that it can start: of Open MPI by PMIx, of MPICH by
PMI-2; skipped (77) where these are not available.
"""
import json
import os
import signal
import sys
import tempfile
import time

import hosts
import mpi
import slurm
from processes import command, wait_until

sys.dont_write_bytecode = True
mpi.require()
SHARED = "/run/mpi-test"  # a disk that all nodes see
PLAIN = {"openmpi": "pmix", "mpich": "pmi2"}  # what srun and each MPI have in common
KMEANS = ["kmeans", "x.npy", "-k", 48, "--init", "random", "--runs", 4, "--iterations", 60, "--tolerance", 0]
KMEANS_FILES = {"--centres": "c.npy", "--labels": "l.npy"}
AUTOENCODER = ["autoencoder", "x.npy", "--hidden", 6, "--iterations", 30, "--tolerance", 0, "--change", 0]
AUTOENCODER_FILES = {"--model": "m.safetensors", "--features": "f.npy"}


def start(cluster, kind, ranks, *words, program=(f"{SHARED}/bin/shoal",)):
    """`kind` None: without --mpi.  Slurm itself ends the others of a rank that was killed only when it is told to; of
    tasks that do not know each other it would end those that have not said no yet."""
    how = ["--kill-on-bad-exit=1", f"--mpi={PLAIN[kind]}"] if kind else ["--kill-on-bad-exit=0"]
    return mpi.Job([
        "srun", "--quiet", "-N",
        min(ranks, 2), "-n", ranks, *how, *program, *words
    ], env={**cluster.variables(), "TMPDIR": "/tmp"})


def run(cluster, kind, ranks, *words, **how):
    with start(cluster, kind, ranks, *words, **how) as job:
        return job.end()


def agrees(cluster, kind, ranks, work, *more):
    os.mkdir("found")
    done = run(cluster, kind, ranks, *work.words, *work.outputs("found"), *more, "--json")
    assert done.code == 0, done
    told = json.loads(done.out)
    assert told["ranks"] == ranks and told["hosts"] == 2, done
    work.compare("found", (kind, ranks))
    return told


def programs(far):
    """By rank, on all nodes."""
    found = {}
    for host in far:
        for pid in host.processes():
            if command(pid)[:1] == [f"{SHARED}/bin/shoal"]:
                found[mpi.rank_of(pid)] = pid
    return found


# ---- cases -----------------------------------------------------------------------------------------------------------


def learners(_, cluster):
    kmeans = mpi.Work(*KMEANS, files=KMEANS_FILES)
    for kind in mpi.KINDS:
        agrees(cluster, kind, 4, kmeans)
    agrees(cluster, mpi.KINDS[0], 4, mpi.Work(*AUTOENCODER, files=AUTOENCODER_FILES), "--verify", 1)


def without_mpi(_, cluster):
    """One sentence that tells what to add, and no run at all."""
    for words in ([], ["--engine", "mpi"]):
        done = run(cluster, None, 4, "kmeans", "x.npy", "-k", 3, "--labels", "l.npy", *words)
        assert done.code == 2 and len(done.told()) == 1 and "add --mpi=" in done.told()[0] and not done.out, done
        assert not os.path.exists("l.npy")
    done = run(cluster, None, 1, "kmeans", "x.npy", "-k", 3, "--quiet")  # a task alone is nothing but a process
    assert done.code == 0, done


def what_fails(_, cluster):
    """Told once, and srun exits with the code."""
    for kind in mpi.KINDS:
        done = run(cluster, kind, 4, "kmeans", "none.npy", "-k", 3)
        assert done.code == 1 and done.told() == ["shoal: none.npy: can't read: No such file or directory"], done
    here = mpi.by_rank("[ $(hostname) != h2 ] || cd /tmp", program=f"{SHARED}/bin/shoal")
    done = run(cluster, mpi.KINDS[0], 4, "kmeans", "x.npy", "-k", 3, program=here)
    assert done.code == 1 and len(done.told()) == 1 and " on h2: x.npy: can't read" in done.told()[0], done


def a_rank_is_killed(far, cluster):
    work = mpi.Work(*KMEANS, files=KMEANS_FILES)
    for kind, killed in zip(mpi.KINDS, (3, 0)):
        os.mkdir("found")
        followed = mpi.Followed()
        with start(cluster, kind, 4, *work.words, *work.outputs("found"), "--checkpoint", 1e-6, "--trace",
                   followed.path) as job:
            followed.rounds(job, 30)
            there = programs(far)
            assert sorted(there) == [0, 1, 2, 3], there
            os.kill(there[killed], signal.SIGKILL)
            done = job.end()
        assert done.code != 0 and os.listdir("found") == [] and os.path.exists("kmeans.checkpoint"), done
        followed.remove()
        wait_until(lambda: not cluster.jobs() and not programs(far), slurm.SOON, "the step has ended")
        os.rmdir("found")
        told = agrees(cluster, kind, 3, work, "--checkpoint", 100, "--resume")
        assert told["resumed"] >= 29 and not os.path.exists("kmeans.checkpoint"), told


CASES = [learners, without_mpi, what_fails, a_rank_is_killed]


def main():
    hosts.isolate(*slurm.PROGRAMS)
    wanted = [case for case in CASES if not sys.argv[2:] or case.__name__ in sys.argv[2:]]
    with tempfile.TemporaryDirectory(prefix="shoal-mpi-") as folder, hosts.Hosts(folder,
                                                                                 2) as far, slurm.Slurm(far) as cluster:
        known = cluster.run("srun", "--mpi=list").stdout + cluster.run("srun", "--mpi=list").stderr
        for kind in list(mpi.KINDS):
            if PLAIN[kind] not in known.split():
                print(f"SKIPPED {kind}: srun has no --mpi={PLAIN[kind]}")
                mpi.KINDS.remove(kind)
        if not mpi.KINDS:
            sys.exit(77)
        mpi.install(f"{SHARED}/bin")
        os.chdir(SHARED)
        mpi.alone("data", "convert", "gen:uniform?rows=2000&cols=8&seed=3&type=float64", "x.npy")
        try:
            for case in wanted:
                began = time.monotonic()
                case(far, cluster)
                print(f"{case.__name__}: {time.monotonic() - began:.1f} s", flush=True)
        except BaseException:
            print(cluster.logs())
            raise


main()
