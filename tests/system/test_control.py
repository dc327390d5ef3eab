#!/usr/bin/env python3
# Seconds: 15
"""Jobs that are held to a deadline and a budget while they run, over dir: stores.

    test_control.py PATH_TO_shoal [NAME...]

When a machine is slow or loaded other numbers of workers are chosen: what is tested is what holds anyway.
"""
import json
import os
import signal
import subprocess
import sys
import time

import apart
from processes import children

SHOAL = os.path.abspath(sys.argv[1])
SECONDS = 600  # until something that never comes is a failure
DATA = "gen:blobs?rows=3000&cols=8&centres=12"
LONG = ["-k", "40", "--init", "random", "--iterations", "200", "--tolerance", "0"]
SLOW = "dir:st?faults=delay:1/20ms"  # every request takes up to 20 ms longer
SLOWER = "dir:st?faults=delay:1/100ms"
MANY_ROUNDS = ["gen:uniform?rows=20000&cols=8", *LONG]


def start(*arguments, **options):
    home = {"XDG_STATE_HOME": os.path.abspath("state"), "XDG_CACHE_HOME": os.path.abspath("cache")}
    inherited = {name: value for name, value in os.environ.items() if name != "SHOAL_STORE"}
    return subprocess.Popen([SHOAL, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env={**inherited, **home}, **options)


def end(process):
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out, err


def succeeds(*arguments):
    code, out, err = end(start(*arguments))
    assert code == 0, f"{arguments} exits {code}: {err}"
    return out


def fails(expected, sentence, *arguments):
    code, out, err = end(start(*arguments))
    assert code == expected, f"{arguments} exits {code}, not {expected}: {out} {err}"
    assert sentence in err, f"{arguments} says {err!r}, not {sentence!r}"


def waits_for(what, condition):
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until, f"this never came: {what}"
        time.sleep(0.05)


def held():
    """How the only job stands."""
    if not os.path.exists("st/shoal-store"):
        return {}
    code, out, _ = end(start("job", "show", "--json", "--store", "st"))
    return (json.loads(out)["held"] or {}) if code == 0 else {}


def begin(*words, work=(DATA, *LONG), store=SLOW):
    """A job that takes a while, held as the words say, once its workers are decided on."""
    process = start("kmeans", *work, "--store", store, "--centres", "c.npy", *words)
    waits_for("a job that is held", lambda: held().get("workers"))
    return process


def same(a, b):
    with open(a, "rb") as first, open(b, "rb") as second:
        assert first.read() == second.read(), f"{a} and {b} differ"


@apart.test
def wrong_words_are_refused_in_a_sentence():
    some = ["kmeans", DATA, "-k", "3"]
    held_by = ["--workers", "local:1..2"]
    for sentence, words in (
        ("a range of workers needs --deadline or --budget", held_by),
        ("'local:0..2' should be a range such as 1..8", ["--workers", "local:0..2", "--deadline", "1m"]),
        ("'local:3..2' should be a range such as 1..8", ["--workers", "local:3..2", "--deadline", "1m"]),
        ("--deadline needs --workers", ["--deadline", "1m"]),
        ("--deadline and --budget need --workers", ["--store", "st", "--deadline", "1m"]),
        ("--deadline: '-5m'", [*held_by, "--deadline", "-5m"]),
        ("--deadline: 'soon'", [*held_by, "--deadline", "soon"]),
        ("--price needs --budget or --deadline", ["--workers", "local:1", "--price", "1usd"]),
        ("'ssh:1..2': hosts have no range", ["--workers", "ssh:1..2", "--deadline", "1m"]),
        ("--budget needs --price MONEY", [*held_by, "--budget", "1usd"]),
        ("'1eur' is not an amount in US dollars", [*held_by, "--budget", "1eur", "--price", "1usd"]),
        ("'1eur' is not an amount in US dollars", [*held_by, "--budget", "1usd", "--price", "1eur"]),
        ("is less than the first minute of one worker", [*held_by, "--budget", "0.01usd", "--price", "1usd"]),
        ("--or-stop needs --deadline or --budget", [*held_by, "--or-stop"]),
        ("--held-picture needs --deadline or --budget", ["--workers", "local:2", "--held-picture", "h.svg"]),
        ("--held-picture h.txt: ", [*held_by, "--deadline", "1m", "--held-picture", "h.txt"]),
        ("work with --roles all only", [*held_by, "--deadline", "1m", "--roles", "split"]),
    ):
        fails(2, sentence, *some, *words)
    assert not os.path.exists("st")


@apart.test
def a_deadline_is_told_changed_and_held_by_whoever_resumes():
    succeeds("kmeans", *MANY_ROUNDS, "--centres", "expected.npy")
    job = begin("--workers", "local:1..2", "--deadline", "1h", work=MANY_ROUNDS, store=SLOWER)
    before = held()
    assert before["workers_least"] == 1 and before["workers_most"] == 2 and before["budget"] is None, before
    assert 3000 < before["deadline"] - time.time() <= 3600, before
    fails(2, "is held to its deadline, which decides how many workers it has", "job", "scale", "2", "--store", "st")
    fails(2, "job deadline: 'soon'", "job", "deadline", "soon", "--store", "st")
    fails(2, "job budget needs --price MONEY", "job", "budget", "5usd", "--store", "st")
    assert "is held to a deadline of 1s from now" in succeeds("job", "deadline", "1s", "--store", "st")
    waits_for("all workers", lambda: held().get("workers") == 2 and held()["verdict"] == "late")
    workers = children(job.pid)
    for pid in (job.pid, *workers):  # whoever started it dies, and its workers, who might end the job meanwhile
        os.kill(pid, signal.SIGKILL)
    job.communicate()
    succeeds("job", "deadline", "2h", "--store", "st")
    resumed = start("job", "resume", "--store", "st")
    code, _, err = end(resumed)
    assert code == 0, err
    assert "before its deadline" in err or "before its deadline" in succeeds("job", "show", "--store", "st") or \
        held()["deadline"] - time.time() > 6000, err
    same("expected.npy", "c.npy")
    fails(2, "is done and can't be held to anything", "job", "deadline", "1h", "--store", "st")


@apart.test
def a_job_whose_budget_cannot_be_read_is_not_resumed_without_it():
    job = begin("--workers", "local:1..2", "--budget", "1usd", "--price", "1usd", work=MANY_ROUNDS, store=SLOWER)
    name = json.loads(succeeds("job", "show", "--json", "--store", "st"))["id"]
    workers = children(job.pid)
    for pid in (job.pid, *workers):
        os.kill(pid, signal.SIGKILL)
    job.communicate()
    with open("forged", "wb") as file:
        file.write(b"no aim")
    succeeds("store", "put", "forged", f"st/jobs/{name}/aim")
    fails(1, f"jobs/{name}/aim", "job", "resume", "--store", "st", "--workers", "local:2")
    assert not os.path.exists("c.npy")


@apart.test
def what_cannot_be_met_stops_where_that_was_asked_for():
    job = start("kmeans", DATA, *LONG, "--store", SLOW, "--workers", "local:1..2", "--deadline", "1s", "--or-stop")
    code, _, err = end(job)
    assert code == 3, (code, err)
    assert "the deadline " in err and "--or-stop stops" in err and "resume job" in err, err
    code, _, err = end(start("kmeans", DATA, *LONG, "--store", "dir:st2?faults=delay:1/200ms", "--workers", "local:1",
                             "--deadline", "0.2s", "--or-stop"))
    assert code == 3 and "the deadline has passed; --or-stop stops the job" in err, (code, err)


@apart.test
def what_others_write_in_its_place_is_no_matter():
    job = begin("--workers", "local:1..2", "--deadline", "1h", "--trace", "t.jsonl", "--held-picture", "h.svg")
    name = json.loads(succeeds("job", "show", "--json", "--store", "st"))["id"]
    for kind in ("aim", "held"):
        with open("forged", "wb") as file:
            file.write(b'{"deadline": 1e300}' * 3)
        succeeds("store", "put", "forged", f"st/jobs/{name}/{kind}")
    code, _, err = end(job)
    assert code == 0, err
    assert os.path.exists("c.npy")
    with open("t.jsonl") as lines:
        told = [line for line in map(json.loads, lines) if line.get("held")]
    assert told and all(line["workers"] in (0, 1, 2) for line in told), told
    with open("h.svg") as file:
        drawn = file.read()
    assert "deadline" in drawn and "Workers" in drawn and "Money" not in drawn


apart.main(at_once=3)
