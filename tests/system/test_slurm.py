#!/usr/bin/env python3
# Seconds: 100
"""Workers on a Slurm cluster of two nodes, attached and as an array job.  The bytes are those of the threads engine.

    test_slurm.py PATH_TO_shoal [CASE...]

Needs root, Slurm and munge, and for the arrays Azurite (./dev deps test); skipped (77) where these are not available.
"""
import os
import shutil
import signal
import sys
import tempfile

import azurite
import far_jobs
import hosts
import slurm
from processes import wait_until

SHOAL = os.path.abspath(sys.argv[1])
ON_NODES = f"{slurm.FOLDER}/shoal"  # on a disk that all nodes see
CACHE = {"XDG_CACHE_HOME": f"{slurm.FOLDER}/cache"}  # there, too, as homes usually are
QUICK = ["gen:uniform?rows=6000&cols=8&seed=3", "-k", "8", "--init", "random", "--iterations", "20", "--tolerance", "0"]
LONG = [*QUICK[:-4], "--iterations", "40", "--tolerance", "0"]


# ---- attached --------------------------------------------------------------------------------------------------------


def attached_job(far, name, workers="slurm:4", work=None):
    return far_jobs.Job(SHOAL, far.folder, name, [workers], work=work or far_jobs.WORK,
                        variables={**slurm.Slurm.variables(), **CACHE})


def is_given_back(cluster):
    return not cluster.jobs()


def attached(far, cluster):
    """One agent a node, and the allocation is given back."""
    job = attached_job(far, "attached", "slurm:4?partition=base&time=5", QUICK)
    job.start()
    job.wait_for_saying("4 workers on 2 nodes")
    job.ends(0)
    job.agrees()
    wait_until(lambda: is_given_back(cluster), slurm.SOON, "the nodes are given back")


def attached_held(far, cluster):
    """It begins with one of the tasks that a range allows, and gets more, for which it lasts long enough."""
    job = far_jobs.Job(SHOAL, far.folder, "held", ["slurm:1..4?partition=base&time=5"],
                       ["--budget", "5usd", "--price", "1usd"], variables={**slurm.Slurm.variables(), **CACHE})
    with far[0].slow_link("4mbit"):
        job.start()
        job.wait_for(lambda about: about["workers"] > 1, "more workers than one")
    job.ends(0, "of their number; $0.0")
    job.agrees()
    wait_until(lambda: is_given_back(cluster), slurm.SOON, "the nodes are given back")


def attached_starter_dies(far, cluster):
    """Agents and workers end, the allocation too; the job can go on."""
    job = attached_job(far, "orphaned")
    with far[1].slow_link():
        job.start()
        job.wait_for_all(4)
        there = far_jobs.agents_and_workers(far)
        assert {name: len(pids) for name, pids in there.items()} == {"h1": 3, "h2": 3}, there
        job.process.send_signal(signal.SIGKILL)
        job.process.wait()
        wait_until(lambda: not far_jobs.agents_and_workers(far), 300, "agents and workers end")
        wait_until(lambda: is_given_back(cluster), slurm.SOON, "the nodes are given back")
    job.resumes("--workers", "slurm:2", "--workers", "local:1")
    job.ends(0)
    job.agrees()


def attached_is_cancelled(far, cluster):
    """By someone else: that is said, and the job can go on."""
    job = attached_job(far, "cancelled")
    with far[1].slow_link():
        job.start()
        job.wait_for_all(4)
        cluster.run("scancel", cluster.jobs()[0][0])
        job.ends(3, "was cancelled", "shoal job resume")
    job.resumes("--workers", "local:2")
    job.ends(0)
    job.agrees()


def attached_waits(far, cluster):
    """All cores are taken: the job waits for them, and says so."""
    other = cluster.run("sbatch", "--parsable", "--nodes=2", "--exclusive", "--output=/dev/null", "--chdir=/", "--wrap",
                        "sleep 1000").stdout.strip()
    wait_until(lambda: (other, "RUNNING", "h[1-2]") in cluster.jobs(), slurm.SOON, "the nodes are taken")
    job = attached_job(far, "waits", work=QUICK)
    job.start()
    job.wait_for_saying("queued and waiting for resources")
    cluster.run("scancel", other)
    job.ends(0)
    job.agrees()


# ---- an array --------------------------------------------------------------------------------------------------------


def array_job(far, cluster, name, workers=f"slurm:3?program={ON_NODES}", work=None):
    return far_jobs.Job(SHOAL, far.folder, name, [workers], work=work or LONG, store=f"az://{azurite.ACCOUNT}/{name}",
                        variables={**cluster.variables(), **cluster.azurite.variables(), **CACHE})


def begin(far, cluster, job):
    """Until all three workers are at work, and then slowly."""
    job.run("store", "put", "--create", "--quiet", "-", f"{job.store}/first")
    with far.delayed(0.01):
        job.start()
        job.wait_for_all(3)
    return {task: node for task, state, node in cluster.jobs("RUNNING")}


def array_is_requeued(far, cluster):
    """As a preemption does: the task starts again as another worker, and the job does not wait for it."""
    job = array_job(far, cluster, "requeued")
    tasks = begin(far, cluster, job)
    assert len(tasks) == 3 and "slurm: job " in job.said() and "3 workers submitted" in job.said(), (tasks, job.said())
    assert azurite.KEY not in cluster.run("scontrol", "show", "job").stdout
    with far.delayed(0.05):
        task = sorted(tasks)[1]
        cluster.run("scontrol", "requeue", task)
        wait_until(lambda: (task, "PENDING", "") in cluster.jobs("PENDING"), slurm.SOON, "it is requeued")
        # Not at once: a node counts in whole seconds, and refuses a task that was killed there in the same one.
        cluster.run("scontrol", "update", f"JobId={task}", "StartTime=now+3")
        wait_until(lambda: task in [one for one, *_ in cluster.jobs("RUNNING")], slurm.SOON, "it runs again")
        job.wait_for(lambda about: len(about["worker"]) == 4, "a fourth worker")
    job.ends(0)
    job.agrees()
    wait_until(lambda: is_given_back(cluster), slurm.SOON, "all tasks end")


def array_outlives_starter(far, cluster):
    """The tasks finish the job when the starter is killed; the outputs are written by who resumes it."""
    job = array_job(far, cluster, "outlives")
    begin(far, cluster, job)
    with far.delayed(0.05):
        job.process.send_signal(signal.SIGKILL)
        job.process.wait()
        before = job.show()["round"]
        wait_until(lambda: job.show()["round"] > before, far_jobs.SOON, "they go on")
    wait_until(lambda: is_given_back(cluster), slurm.SOON, "all tasks end")
    assert job.show()["state"] == "done", job.explain()
    job.resumes()
    job.ends(0)
    job.agrees()


def array_is_cancelled(far, cluster):
    """By someone else: one task is not missed, but with the last the program ends and says so.  Then by the job
    itself."""
    job = array_job(far, cluster, "undone")
    tasks = sorted(begin(far, cluster, job))
    with far.delayed(0.05):
        cluster.run("scancel", tasks[2])
        wait_until(lambda: len(cluster.jobs("RUNNING")) == 2, slurm.SOON, "one less")
        before = job.show()["round"]
        job.wait_for_round(before + 2)
        cluster.run("scancel", tasks[0], tasks[1])
        job.ends(3, "was cancelled", "shoal job resume")
        assert is_given_back(cluster), cluster.jobs()
        job.resumes()
        wait_until(lambda: len(cluster.jobs("RUNNING")) == 3, slurm.SOON, "three again")
        job.process.send_signal(signal.SIGINT)
        job.ends(3, "shoal job resume")
        wait_until(lambda: is_given_back(cluster), 300, "all tasks end with the job")
    job.resumes("--workers", "local:2")
    job.ends(0)
    job.agrees()


def array_fails(far, cluster):
    """Reasons come from the nodes, without a disk that both see, and from Slurm itself."""
    job = array_job(far, cluster, "fails", "slurm:2?program=/nowhere/shoal", QUICK)
    job.run("store", "put", "--create", "--quiet", "-", f"{job.store}/first")
    job.start()
    job.ends(3, "there is no /nowhere/shoal on h", "shoal job resume")
    job.workers = [f"slurm:2?program={ON_NODES}&partition=none"]
    job.resumes()
    job.ends(3, "nvalid partition")
    job.workers = [f"slurm:2?program={ON_NODES}&colour=red"]
    job.resumes()
    job.ends(2, "unknown option 'colour'")


ATTACHED = [attached, attached_held, attached_starter_dies, attached_is_cancelled, attached_waits]
ARRAYS = [array_is_requeued, array_outlives_starter, array_is_cancelled, array_fails]


def main():
    hosts.isolate(*slurm.PROGRAMS)
    wanted = [case for case in ATTACHED + ARRAYS if not sys.argv[2:] or case.__name__ in sys.argv[2:]]
    with tempfile.TemporaryDirectory(prefix="shoal-slurm-") as folder, hosts.Hosts(folder, 2) as far:
        with slurm.Slurm(far) as cluster:
            shutil.copy(SHOAL, ON_NODES)
            try:
                far_jobs.run_cases([case for case in wanted if case in ATTACHED], far, cluster)
                if azurite.PROGRAM is None:
                    print("arrays: left out: Azurite is not installed (./dev deps test)")
                    return
                with azurite.Server(folder, "azurite") as cluster.azurite:
                    cluster.azurite.wait()
                    far.forward(*cluster.azurite.ports[:2])
                    far_jobs.run_cases([case for case in wanted if case in ARRAYS], far, cluster)
            except BaseException:
                print(cluster.run("squeue", "--array", "--states=all").stdout)
                print(cluster.logs())
                raise


main()
