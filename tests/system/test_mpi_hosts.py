#!/usr/bin/env python3
# Seconds: 35
"""Ranks on three hosts, which mpirun reaches by ssh: the bytes are those of one process, also when a host fails on the
way.

    test_mpi_hosts.py PATH_TO_shoal [CASE...]

Needs root, sshd and network namespaces (hosts.py), a launcher of MPI and the plug-in for it; skipped (77) where these
are not available.
"""
import os
import signal
import sys
import tempfile
import time

import hosts
import mpi
from processes import command, wait_until

sys.dont_write_bytecode = True
mpi.require()
SHARED = "/run/mpi-test"  # a disk that all hosts see, as clusters have one: the program is there, and where it runs
KMEANS = ["kmeans", "x.npy", "-k", 48, "--init", "random", "--runs", 4, "--iterations", 60, "--tolerance", 0]
KMEANS_FILES = {"--centres": "c.npy", "--labels": "l.npy"}
AUTOENCODER = ["autoencoder", "x.npy", "--hidden", 6, "--iterations", 30, "--tolerance", 0, "--change", 0]
AUTOENCODER_FILES = {"--model": "m.safetensors", "--features": "f.npy"}


def launcher_openmpi(far, ranks, names):
    with open(f"{far.folder}/hostfile", "w", encoding="ascii") as file:
        file.write("".join(f"{name} slots=8\n" for name in names))
    settings = {
        "plm_rsh_agent": f"ssh -F {far.ssh_config}", "plm_rsh_no_tree_spawn": 1, "mpi_yield_when_idle": 1, "pml": "ob1",
        "btl": "self,vader,tcp", "btl_tcp_if_include": "10.78.0.0/24", "oob_tcp_if_include": "10.78.0.0/24"
    }
    return ["mpirun.openmpi", "--hostfile", f"{far.folder}/hostfile", "--map-by", "node", "-n", ranks,
            *[word for name, value in settings.items() for word in ("--mca", name, value)]]


def launcher_mpich(far, ranks, names):
    ssh = f"{far.folder}/ssh"
    with open(ssh, "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
        file.write(f'#!/bin/sh\nexec ssh -F {far.ssh_config} "$@"\n')
    addresses = ",".join(host.address for host in far if host.name in names)
    return ["mpirun.mpich", "-localhost", hosts.NEAR, "-launcher", "ssh", "-launcher-exec", ssh, "-hosts", addresses,
            "-genv", "UCX_TLS", "tcp,self,sm", "-genv", "UCX_NET_DEVICES", "eth0", "-n", ranks]


LAUNCHERS = {"openmpi": launcher_openmpi, "mpich": launcher_mpich}


class Ranks:
    """What mpi.Work runs with, on these hosts."""

    def __init__(self, kind, far, names=("h1", "h2", "h3"), before=()):
        self.kind, self.far, self.names, self.before = kind, far, names, before

    def start(self, ranks, *words):
        # Paths that a launcher leaves things in are of the hosts' own /tmp, not of this machine's.
        launcher = LAUNCHERS[self.kind](self.far, ranks, self.names)
        return mpi.Job([*launcher, *self.before, f"{SHARED}/bin/shoal", *words], env={"TMPDIR": "/tmp"})

    def run(self, ranks, *words):
        with self.start(ranks, *words) as job:
            return job.end()


def agrees(ranks, count, work, *more):
    os.mkdir("found")
    done = ranks.run(count, *work.words, *work.outputs("found"), *more)
    assert done.code == 0, done
    work.compare("found", (ranks.kind, count))
    return done


def programs(host):
    return [pid for pid in host.processes() if command(pid)[:1] == [f"{SHARED}/bin/shoal"]]


# ---- cases -----------------------------------------------------------------------------------------------------------


def learners(far):
    kmeans, autoencoder = mpi.Work(*KMEANS, files=KMEANS_FILES), mpi.Work(*AUTOENCODER, files=AUTOENCODER_FILES)
    done = agrees(Ranks(mpi.KINDS[0], far), 6, kmeans, "--json")
    assert '"ranks": 6, "hosts": 3' in done.out, done
    agrees(Ranks(mpi.KINDS[0], far), 4, autoencoder)
    agrees(Ranks(mpi.KINDS[-1], far), 3, mpi.Work(*KMEANS[:6], files=KMEANS_FILES), "--verify",
           1)  # MPICH waits by computing


def rows_that_are_parsed(far):
    """By one rank of each host."""
    agrees(Ranks(mpi.KINDS[0], far), 5, mpi.Work("kmeans", "x.csv", "-k", 9, "--weights", "w.csv", files=KMEANS_FILES))


def crowded_on_one_host(far):
    """Two ranks share the only core that they may use, and two others have one each: they wait in other ways, and still
    meet."""
    core = min(os.sched_getaffinity(0))
    for kind in mpi.KINDS:
        agrees(Ranks(kind, far, before=("taskset", "-c", core)), 4, mpi.Work(*KMEANS[:6], files=KMEANS_FILES),
               "--verify", 1)


def data_that_a_host_lacks(far):
    """What only two of three have is told with the rank and the host that lack it."""
    for lacking, rank in ((far[2], 1), (far[1], 0)):
        for host in far:
            host.run("mkdir", "-p", "/tmp/data")
            host.run(
                "sh", "-c",
                "cp /run/mpi-test/x.npy /run/mpi-test/x.csv /tmp/data" if host is not lacking else "rm -f /tmp/data/*")
        for name in ("x.npy", "x.csv")[:rank + 1]:
            done = Ranks(mpi.KINDS[0], far).run(3, "kmeans", f"/tmp/data/{name}", "-k", 3, "--labels", "l.npy")
            expected = f"shoal: rank {rank} on {lacking.name}: /tmp/data/{name}: can't read: No such file or directory"
            assert done.code == 1 and done.told() == [expected] and not os.path.exists("l.npy"), done


def a_host_fails(far):
    """The ranks of one are killed: all end.  The rest of it is done by ranks on the others."""
    work = mpi.Work(*KMEANS, files=KMEANS_FILES)
    for kind in mpi.KINDS:
        os.mkdir("found")
        followed = mpi.Followed()
        words = [*work.words, *work.outputs("found"), "--checkpoint", 1e-6, "--trace", f"{SHARED}/{followed.path}"]
        each = 2 if kind == "openmpi" else 1
        with Ranks(kind, far).start(3 * each, *words) as job:
            followed.rounds(job, 30)
            there = programs(far[3])
            assert len(there) == each, there
            for pid in there:
                os.kill(pid, signal.SIGKILL)
            done = job.end()
        assert done.code != 0 and os.listdir("found") == [] and os.path.exists("kmeans.checkpoint"), done
        followed.remove()
        wait_until(lambda: not any(programs(host) for host in far), mpi.SOON, "no rank is left anywhere")
        os.rmdir("found")
        done = agrees(Ranks(kind, far, ("h1", "h2")), 2 * each, work, "--checkpoint", 100, "--resume", "--json")
        assert '"hosts": 2' in done.out and not os.path.exists("kmeans.checkpoint"), done


CASES = [learners, rows_that_are_parsed, crowded_on_one_host, data_that_a_host_lacks, a_host_fails]


def make_data():
    mpi.alone("data", "convert", "gen:uniform?rows=2000&cols=8&seed=3&type=float64", "x.npy")
    mpi.alone("data", "convert", "gen:uniform?rows=2000&cols=8&seed=4&type=float64", "x.csv")
    mpi.alone("data", "convert", "gen:uniform?rows=2000&cols=1&seed=5&type=float64", "w.csv")


def main():
    hosts.isolate()
    wanted = [case for case in CASES if not sys.argv[2:] or case.__name__ in sys.argv[2:]]
    with tempfile.TemporaryDirectory(prefix="shoal-mpi-") as folder, hosts.Hosts(folder, 3) as far:
        mpi.install(f"{SHARED}/bin")
        os.chdir(SHARED)
        make_data()
        for case in wanted:
            began = time.monotonic()
            case(far)
            print(f"{case.__name__}: {time.monotonic() - began:.1f} s", flush=True)


main()
