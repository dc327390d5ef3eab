#!/usr/bin/env python3
# Labels: asan
# Seconds: 30
"""Learners that go down a gradient, on every engine of this machine: one model, byte by byte, whatever dies on the way.

    test_gradient_jobs.py PATH_TO_shoal [NAME...]

Their rounds keep an optimiser's history for whoever leads next (docs/engine-store.md, "kept"): it is lost, damaged and
exchanged here, and leaders are killed at any write. Every test runs in a process and an empty folder of its own,
several at a time: most of them wait most of the time. Workers on other machines: test_gradient_hosts.py; at random:
test_job_chaos_gradient.py.
"""
import contextlib
import json
import os
import random
import signal
import subprocess
import sys

import apart
import azurite
from gradient_work import LEARNERS, make_data, rounds
from processes import is_sanitized, wait_until

SHOAL = os.path.abspath(sys.argv[1])
SECONDS = 600  # until something that never comes is a failure
DELAYS = (10, 40, 160, 640)  # milliseconds that a request may take longer


def slow(delay):
    return f"dir:st?faults=delay:1/{delay}ms"


def start(*words, env={}, before=()):
    home = {"XDG_STATE_HOME": os.path.abspath("state"), "XDG_CACHE_HOME": os.path.abspath("cache")}
    inherited = {name: value for name, value in os.environ.items() if name != "SHOAL_STORE"}
    return subprocess.Popen([*before, SHOAL, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env={**inherited, **home, **env})


def run(*words, code=0, **options):
    process = start(*words, **options)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == code, f"{words} exits {process.returncode}, not {code}: {out} {err}"
    return out


def same(a, b):
    with open(a, "rb") as first, open(b, "rb") as second:
        assert first.read() == second.read(), f"{a} and {b} differ"


def learn(learner, *words, **options):
    """Runs a learner on its work; the model is found.safetensors."""
    return run(learner, *LEARNERS[learner], "--model", "found.safetensors", "--quiet", "--force", *words, **options)


def expect(learner):
    """What one thread finds."""
    make_data(".", run)
    run(learner, *LEARNERS[learner], "--model", "expected.safetensors", "--quiet", "--force", "--threads", 1)


def agrees():
    same("expected.safetensors", "found.safetensors")
    os.unlink("found.safetensors")


def submit(learner, *words):
    """A job that waits for workers, and that `finish` will end; its name."""
    return learn(learner, "--store", "st", "--detach", "--lease", 1, *words).strip()


def show(job, store="st"):
    return json.loads(run("job", "show", job, "--store", store, "--json"))


def finish(job, *words):
    run("job", "resume", job, "--store", "st", "--quiet", *(words or ["--workers", "local:2"]))
    agrees()


def keys(job, name=""):
    """Of what lies below its rounds, those whose last word is the name; oldest first."""
    found = [key for key in run("store", "ls", "-r", "st").split() if key.startswith(f"jobs/{job}/round/")]
    return sorted(key for key in found if not name or key.endswith(f"/{name}"))


def submit_and_stop(learner, least, *words):
    """A job whose only worker is slow, and is killed when it has come at least to this round, so that nothing changes
    any more.
    Where the machine is so busy that the job ends before anybody looks, the next one's worker is slower."""
    for delay in DELAYS:
        job = submit(learner, *words)
        worker = start("worker", "--store", slow(delay), "--job", job, "--slots", 1, "--data-root", "/")
        wait_until(lambda: show(job)["round"] >= least or worker.poll() is not None, SECONDS, f"round {least}")
        worker.kill()
        said = worker.communicate()[1]
        if show(job)["state"] == "running":
            assert worker.returncode == -signal.SIGKILL, f"the worker ends with {worker.returncode}: {said}"
            return job
    raise AssertionError(f"no worker was slow enough to be stopped in round {least}")


# ---- one model, whoever computes it ----------------------------------------------------------------------------------

ENGINES = [["--threads", 2], ["--threads", 2, "--kernel", "portable"], ["--workers", "local:1"],
           ["--workers", "local:3"], ["--workers", "local:2", "--threads", 1, "--slices", 6, "--reduce", "tree:2"],
           ["--workers", "local:2", "--slices", 4, "--roles", "split", "--reduce", "ranged:3"]]


def agree_on_all_engines(learner):
    expect(learner)
    for words in ENGINES:
        learn(learner, *words)
        try:
            agrees()
        except AssertionError as error:
            raise AssertionError(f"{learner} {' '.join(map(str, words))}: {error}") from None


@apart.test
def autoencoder_on_all_engines():
    agree_on_all_engines("autoencoder")


@apart.test
def logistic_on_all_engines():
    agree_on_all_engines("logistic")


@apart.test
def nets_on_all_engines():
    agree_on_all_engines("train")


@apart.test
def workers_that_meet_at_a_server():
    if azurite.PROGRAM is None:
        raise apart.Skipped("Azurite is not installed (./dev deps test)")
    with azurite.Server(".", "azurite") as server:
        server.wait()
        store, env = f"az://{azurite.ACCOUNT}/gradient", server.variables()
        run("store", "put", "--create", "--quiet", "-", f"{store}/first", env=env)
        for learner in LEARNERS:
            make_data(".", run)
            few = rounds(learner, 6)
            run(learner, *LEARNERS[learner], *few, "--model", "expected.safetensors", "--quiet", "--force", "--threads",
                1)
            learn(learner, *few, "--store", store, "--workers", "local:2", "--job", learner, "--reduce", "ranged:2",
                  env=env)
            agrees()
            run("job", "remove", learner, "--store", store, env=env)
        left = run("store", "ls", "-r", f"{store}", env=env)
        assert "round" not in left and "kept" not in left, f"jobs that were removed have left {left}"


# ---- what rounds keep ------------------------------------------------------------------------------------------------


def damage(which):
    """Changes one bit in the middle of what lies there."""
    run("store", "get", f"st/{which}", "blob", "--quiet")
    with open("blob", "r+b") as file:
        file.seek(os.path.getsize("blob") // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 0x10]))
    run("store", "put", "blob", f"st/{which}", "--quiet")
    os.unlink("blob")


def exchange(one, other):
    """Puts what lies under one key under the other, whole and with a good frame."""
    run("store", "get", f"st/{one}", "blob", "--quiet")
    run("store", "put", "blob", f"st/{other}", "--quiet")
    os.unlink("blob")


def remove(*which):
    for key in which:
        run("store", "rm", f"st/{key}", "--quiet")


HARM = {
    "the newest is lost": lambda job, kept: remove(kept[-1]),
    "the oldest is lost": lambda job, kept: remove(kept[0]),
    "all are lost": lambda job, kept: remove(*kept),
    "one in the middle is damaged": lambda job, kept: damage(kept[len(kept) // 2]),
    "the newest is damaged": lambda job, kept: damage(kept[-1]),
    "another's is in its place": lambda job, kept: exchange(kept[0], kept[-1]),
    "all are lost, and the model": lambda job, kept: remove(*kept, *keys(job, "model")),
}


def harm_what_is_kept(learner, harms):
    expect(learner)
    for what in harms:  # jobs that are done stay: removing one whose worker was killed takes seconds
        job = submit_and_stop(learner, 6)
        kept, round_then = keys(job, "kept"), show(job)["round"]
        assert len(kept) >= 3, f"few things are kept in round {round_then}: {keys(job)}"
        HARM[what](job, kept)
        try:
            finish(job)
        except AssertionError as error:
            raise AssertionError(f"{learner}, {what}: {error}\n{run('job', 'logs', job, '--store', 'st')}") from None
        told = run("job", "logs", job, "--store", "st")
        assert "goes back" in told or "model" in what, f"{what}: nobody went back:\n{told}"


@apart.test
def lost_history_is_computed_again():
    harm_what_is_kept("autoencoder", ["the newest is lost", "all are lost", "all are lost, and the model"])


@apart.test
def damaged_history_is_computed_again():
    harm_what_is_kept("autoencoder", ["one in the middle is damaged", "another's is in its place"])


@apart.test
def history_of_the_other_learners():
    harm_what_is_kept("logistic", ["the oldest is lost", "the newest is damaged"])
    harm_what_is_kept("train", ["the newest is lost"])


@apart.test
def history_does_not_pile_up():
    make_data(".", run)
    job = submit_and_stop("autoencoder", 35, "--history", 3)
    oldest, newest = (int(keys(job, "kept")[end].split("/")[-2]) for end in (0, -1))
    # removed some rounds at a time
    assert newest - oldest < 25, f"in round {show(job)['round']} there is still what round {oldest} kept"
    run("job", "resume", job, "--store", "st", "--quiet", "--workers", "local:1")
    assert keys(job) == keys(job, "model") and len(keys(job)) == 1, f"a finished job has left {keys(job)}"
    run("job", "remove", job, "--store", "st")
    left = [key for key in run("store", "ls", "-r", "st").split() if job in key]
    assert all(key.startswith("gone/") for key in left), f"a removed job has left {left}"


@apart.test
def a_stopped_job_is_removed_whole():
    make_data(".", run)
    job = submit_and_stop("autoencoder", 6)
    assert keys(job, "kept")
    run("job", "remove", job, "--store", "st", "--force")
    left = [key for key in run("store", "ls", "-r", "st").split() if job in key]
    assert all(key.startswith("gone/") for key in left), f"a removed job has left {left}"


# ---- death -----------------------------------------------------------------------------------------------------------


def die_at_writes(learner, writes):
    """A worker alone, which leads; each dies when it writes to the store for the n-th time, another n each."""
    if subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        raise apart.Skipped("this process may not trace others")
    expect(learner)
    job, reached = submit(learner), [0]
    for number in writes:
        before = ["strace", "-f", "-qq", "-o", "/dev/null", f"--inject=pwrite64:signal=SIGKILL:when={number}"]
        worker = start("worker", "--store", "st", "--job", job, "--slots", 1, "--data-root", "/", before=before)
        worker.communicate(timeout=SECONDS)
        assert worker.returncode in (-signal.SIGKILL,
                                     128 + signal.SIGKILL), f"write {number}: the worker ends with {worker.returncode}"
        reached.append(show(job)["round"])
    assert reached[-1] > 3, f"too little has happened: rounds {reached}"
    finish(job)


def make_death_test(learner, part, parts):
    def some_die():
        die_at_writes(learner, range(90 + part, 90 + 28, parts))
    some_die.__name__ = f"{learner}_leaders_die_at_write_{part + 1}_of_{parts}"
    return apart.test(some_die)


# Most of the time each waits for a lease to end.  When a leader dies is nothing that a sanitizer looks at.
for part in range(1 if is_sanitized(SHOAL) else 4):
    make_death_test("autoencoder", part, 4)


def kill_starter_and_workers(learner, chance, delay):
    """The job, unless it has ended before."""
    starter = start(learner, *LEARNERS[learner], "--model", "found.safetensors", "--quiet", "--force", "--store",
                    slow(delay),
                    "--workers", "local:2", "--lease", 1, "--job", f"{learner}-{delay}")

    def find_job():
        listed = run("job", "list", "--json", "--store", "st") if os.path.exists("st/shoal-store") else ""
        return next((about["id"]
                     for about in map(json.loads, listed.splitlines()) if about["id"].startswith(f"{learner}-{delay}")),
                    None)
    wait_until(find_job, SECONDS, "the job")
    job = find_job()
    wait_until(lambda: show(job)["round"] >= 5 or starter.poll() is not None, SECONDS, "round 5")
    workers = [worker["pid"] for worker in show(job)["worker"] if worker["alive"]]
    for pid in [starter.pid, *chance.sample(workers, len(workers))]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    starter.communicate()
    if show(job)["state"] == "running":
        return job
    with contextlib.suppress(FileNotFoundError):
        os.unlink("found.safetensors")
    return None


@apart.test
def starter_and_workers_are_killed():
    chance = random.Random(6)
    for learner in LEARNERS:
        expect(learner)
        job = next(filter(None, (kill_starter_and_workers(learner, chance, delay) for delay in DELAYS)))
        assert not os.path.exists("found.safetensors")
        finish(job)


apart.main(at_once=6)
