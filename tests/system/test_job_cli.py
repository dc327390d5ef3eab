#!/usr/bin/env python3
# Labels: asan
# Seconds: 30
"""Jobs on workers as a user meets them: shoal kmeans --workers, shoal worker and shoal job, over dir: stores.

    test_job_cli.py PATH_TO_shoal [NAME...]

Every test runs in a process and an empty folder of its own, which also has the user's state and cache, several at a
time: most of them wait most of the time. What a job finds is compared with what the same command finds without workers,
by bytes.
"""
import contextlib
import http.server
import json
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

import apart
import processes

SHOAL = os.path.abspath(sys.argv[1])
SECONDS = 600  # until something that never comes is a failure
DATA = "gen:blobs?rows=3000&cols=8&centres=12"
LEARN = ["-k", "10", "--iterations", "20"]
LONG = ["-k", "40", "--init", "kmeans++"]  # over eighty rounds
SLOW = "dir:st?faults=delay:1/20ms"  # every request takes up to 20 ms longer


class Done:
    def __init__(self, process, out, err):
        self.code, self.out, self.err = process.returncode, out, err


def start(*arguments, env={}, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    home = {"XDG_STATE_HOME": os.path.abspath("state"), "XDG_CACHE_HOME": os.path.abspath("cache")}
    inherited = {name: value for name, value in os.environ.items() if name != "SHOAL_STORE"}
    return subprocess.Popen([SHOAL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            errors="surrogateescape",
                            env={**inherited, **home, **env}, **options)


def end(process):
    out, err = process.communicate(timeout=SECONDS)
    return Done(process, out, err)


def run(*arguments, **options):
    return end(start(*arguments, **options))


def succeeds(*arguments, **options):
    done = run(*arguments, **options)
    assert done.code == 0, f"{arguments} exits {done.code}: {done.err}"
    return done


def fails(code, sentence, *arguments, **options):
    done = run(*arguments, **options)
    assert done.code == code, f"{arguments} exits {done.code}, not {code}: {done.out} {done.err}"
    first = done.err.splitlines()[0] if done.err else ""
    assert sentence in first, f"{arguments} says {done.err!r}, not {sentence!r}"
    return done


def waits_for(what, condition, seconds=SECONDS):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"this never came: {what}"
        time.sleep(0.02)


def same(a, b):
    with open(a, "rb") as first, open(b, "rb") as second:
        assert first.read() == second.read(), f"{a} and {b} differ"


def trace_of(path):
    with open(path) as lines:
        return [{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in lines]


def reference(*learn, data=DATA):
    """What the engine of threads finds, as centres.npy and so on in the folder `expected`."""
    os.makedirs("expected", exist_ok=True)
    succeeds("kmeans", data, *learn, *outputs("expected"))


def outputs(folder):
    return [
        "--centres", f"{folder}/centres.npy", "--labels", f"{folder}/labels.npy", "--model",
        f"{folder}/model.safetensors", "--picture", f"{folder}/picture.png", "--picture-shape", "2x4", "--trace",
        f"{folder}/trace.jsonl"
    ]


def agrees(folder, trace=True):
    for name in ("centres.npy", "labels.npy", "model.safetensors", "picture.png"):
        same(f"expected/{name}", f"{folder}/{name}")
    if trace:
        assert trace_of("expected/trace.jsonl") == trace_of(f"{folder}/trace.jsonl"), "the traces differ"


def show(store="st", *words):
    return json.loads(succeeds("job", "show", *words, "--json", "--store", store).out)


def jobs(store="st"):
    if store == "st" and not os.path.exists("st/shoal-store"):
        return []
    return [json.loads(line) for line in succeeds("job", "list", "--json", "--store", store).out.splitlines()]


def alive(pid):
    return processes.state(pid) not in ("", "Z")


def workers_of(store="st"):
    """The processes at work on the only job."""
    return [worker["pid"] for worker in show(store)["worker"] if worker["alive"]]


def at_work(count, store="st"):
    """Waits until so many workers are, and returns their processes."""
    waits_for(f"{count} workers at work", lambda: jobs(store) and len(workers_of(store)) == count)
    return workers_of(store)


def round_is(least, store="st"):
    waits_for(f"round {least}", lambda: jobs(store) and jobs(store)[0]["round"] >= least)


def moves_on(store="st"):
    """Waits for two more rounds."""
    round_is(jobs(store)[0]["round"] + 2, store)


def submit(*arguments, store="st"):
    """Submits the long job to a store that is slow for everybody but us, and returns its name."""
    return succeeds("kmeans", DATA, *LONG, "--store", store, "--detach", *arguments).out.strip()


# ---- the same result ---------------------------------------------------------------------------------------------

@apart.test
def workers_find_what_threads_find():
    reference(*LEARN)
    os.mkdir("found")
    done = succeeds("kmeans", DATA, *LEARN, *outputs("found"), "--workers", "local:3")
    agrees("found")
    line = next(line for line in done.out.splitlines() if line.startswith("job "))
    assert "3 workers" in line and "requests" in line, line
    line = next(line for line in done.out.splitlines() if line.startswith("kernel "))
    assert re.search(r", 3 workers with \d+ threads? each$", line), line
    assert ": 3000 rows, 8 columns, " in done.out, done.out
    done = succeeds("kmeans", "gen:uniform?rows=40&cols=1", "-k", "2", "--workers", "1", "--threads", "1")
    assert ": 40 rows, 1 column, " in done.out and ", 1 worker with 1 thread\n" in done.out, done.out
    assert "there are no jobs" in succeeds("job", "list").out, "a job that nobody asked to keep is gone"


@apart.test
def every_shape_of_reduction_finds_the_same():
    reference(*LEARN)
    for shape in (["--slices", "1"], ["--slices", "7", "--reduce", "flat"], ["--slices", "9", "--reduce", "two-level"],
                  ["--slices", "8", "--reduce", "tree:2"], ["--slices", "9", "--reduce", "ranged:3"],
                  ["--roles", "split", "--slices", "4"]):
        shutil.rmtree("found", ignore_errors=True)
        os.mkdir("found")
        succeeds("kmeans", DATA, *LEARN, *outputs("found"), "--workers", "local:2", "--threads", "1", *shape)
        agrees("found")


@apart.test
def split_roles_are_those_of_the_paper():
    succeeds("kmeans", DATA, *LEARN, "--workers", "local:4", "--roles", "split", "--slices", "4", "--store", "st")
    roles = sorted(worker["roles"] for worker in show()["worker"])
    assert roles == [["last"], *4 * [["map"]], *2 * [["reduce"]]], roles
    for worker in show()["worker"]:
        assert worker["mapped"] == 0 or "map" in worker["roles"], worker
    text = succeeds("job", "show", "--store", "st").out
    assert len(re.findall(r" 1 reduce +0 ", text)) == 2 and "roles: map (computes slices)" in text, text


@apart.test
def files_weights_and_given_centres():
    succeeds("data", "convert", "gen:uniform?rows=900&cols=8", "rows.npy")
    succeeds("data", "convert", "rows.npy", "rows.csv")
    succeeds("data", "convert", "gen:uniform?rows=900&cols=1", "weights.npy")
    succeeds("kmeans", "rows.npy", "-k", "6", "--iterations", "1", "--centres", "start.npy")
    for data in ("rows.npy", "rows.csv"):
        learn = ["--init", "start.npy", "--weights", "weights.npy", "--iterations", "8"]
        reference(*learn, data=data)
        shutil.rmtree("found", ignore_errors=True)
        os.mkdir("found")
        succeeds("kmeans", data, *learn, *outputs("found"), "--store", "st", "--workers", "local:2")
        agrees("found")


@apart.test
def rows_that_lie_in_a_store():
    succeeds("data", "convert", "gen:uniform?rows=700&cols=8", "rows.npy")
    succeeds("store", "put", "rows.npy", "data/")
    reference(*LEARN, data="rows.npy")
    os.mkdir("found")
    succeeds("kmeans", "dir:data/rows.npy", *LEARN, *outputs("found"), "--store", "st", "--workers", "local:2")
    agrees("found")
    assert show()["source"] == "stored"


@apart.test
def json_has_the_job():
    plain = json.loads(succeeds("kmeans", DATA, *LEARN, "--json").out)
    workers = ["--workers", "local:2", "--threads", "1", "--store", "st"]
    found = json.loads(succeeds("kmeans", DATA, *LEARN, "--json", *workers).out)
    for name in ("objective", "iterations", "converged", "rounds", "rows", "columns", "learner", "data"):
        assert plain[name] == found[name], name
    assert found["workers"] == 2 and found["lost"] == 0 and found["requests"] > 50 and found["threads"] == 2, found
    assert found["job"] == jobs()[0]["id"] and found["store"] == "st"
    net = json.loads(succeeds("autoencoder", "gen:uniform?rows=60&cols=3", "--hidden", "2", "--iterations", "2",
                              "--json", *workers).out)
    assert net["end"] == "iterations" and net["converged"] is False, net
    assert json.loads(succeeds("job", "result", net["job"], "--json", "--store", "st").out)["end"] == "iterations"
    assert re.search(r"^end +iterations$", succeeds("job", "result", net["job"], "--store", "st").out, re.M)


# ---- looking ------------------------------------------------------------------------------------------------------

@apart.test
def a_finished_job_tells_and_gives_all():
    reference(*LEARN)
    succeeds("kmeans", DATA, *LEARN, "--workers", "local:2", "--store", "st", "--job", "mine", "--slices", "5")
    [job] = jobs()
    assert job["id"].startswith("mine-") and job["state"] == "done" and job["learner"] == "kmeans"
    about = show("st", "mine")
    assert about["slices"] == 5 and len(about["worker"]) == 2 and about["requests"]["all"] > 50
    assert sum(about["phases"].values()) > 0 and set(about["phases"]) >= {"scan", "seed", "run"}
    assert sorted(i for worker in about["worker"]
                  for i in worker["slices"]) == list(range(5)), "every slice is held by one"
    assert about["settings"]["options"]["clusters"] == 10, about["settings"]
    text = succeeds("job", "show", "--store", "st").out
    for word in ("done", "slices     5", "requests", "workers", job["id"]):
        assert word in text, text
    assert job["id"] in succeeds("job", "list", "--store", "st").out
    assert succeeds("job", "logs", "--store", "st").out.count("worker ") >= 2
    assert "done" in succeeds("job", "watch", "--store", "st").out
    succeeds("job", "wait", "--store", "st")
    succeeds("job", "result", "--store", "st", "--out", "found")
    same("expected/centres.npy", "found/centres.npy")
    same("expected/labels.npy", "found/labels.npy")
    succeeds("job", "result", job["id"][-6:], "--store", "st", "--tensor", "centres", "--output", "one.npy")
    same("expected/centres.npy", "one.npy")
    numbers = json.loads(succeeds("job", "result", "--store", "st", "--json").out)
    assert numbers["converged"] is True and numbers["tensors"]["labels"] == [3000]
    fails(2, "no 'x', but centres", "job", "result", "--store", "st", "--tensor", "x", "--output", "x.npy")


@apart.test
def the_environment_names_a_store():
    succeeds("kmeans", DATA, *LEARN, "--workers", "local:1", "--store", "st")
    env = {"SHOAL_STORE": os.path.abspath("st")}
    assert "done" in succeeds("job", "list", env=env).out
    assert "there are no jobs" in succeeds("job", "list").out


@apart.test
def watching_shows_a_job_until_it_ends():
    submit("--workers", "local:2", store=SLOW)
    done = succeeds("job", "watch", "--store", "st", "--json", "--every", "0.2")
    states = [json.loads(line)["state"] for line in done.out.splitlines()]
    assert states[-1] == "done" and len(states) > 2 and "running" in states, states


# ---- coming and going ----------------------------------------------------------------------------------------------

@apart.test
def a_detached_job_goes_on_and_writes_its_outputs():
    reference(*LONG)
    os.mkdir("found")
    name = submit("--workers", "local:2", *outputs("found"), store=SLOW)
    assert jobs()[0]["id"] == name and jobs()[0]["state"] in ("waiting", "running"), "it returns before the job is done"
    assert not os.path.exists("found/centres.npy")
    succeeds("job", "wait", name, "--store", "st")
    waits_for("the trace, which is written last", lambda: os.path.exists("found/trace.jsonl"))
    agrees("found")
    waits_for("the end of all workers", lambda: not workers_of())
    assert json.loads(succeeds("kmeans", DATA, *LEARN, "--store", "st", "--detach", "--json").out)["store"] == "st"


@apart.test
def workers_from_elsewhere_do_a_job():
    reference(*LONG)
    os.mkdir("found")
    starter = start("kmeans", DATA, *LONG, *outputs("found"), "--store", "st")
    waits_for("the job", jobs)
    assert jobs()[0]["state"] == "waiting"
    workers = [start("worker", "--store", SLOW, "--job", "kmeans", "--slots", "1") for _ in range(2)]
    done = end(starter)
    assert done.code == 0, done.err
    assert f"waiting for workers: shoal worker --store st --job {jobs()[0]['id']}" in done.err
    for worker in workers:
        done = end(worker)
        assert done.code == 0, done.err
        assert "joins job" in done.err, done.err
    agrees("found")


@apart.test
def a_job_that_waits_says_what_for():
    succeeds("data", "convert", "gen:uniform?rows=900&cols=8", "rows.npy")
    name = succeeds("kmeans", "rows.npy", *LEARN, "--store", "st", "--detach").out.strip()
    text = succeeds("job", "show", "--store", "st").out
    command = f"shoal worker --store st --job {name} --data-root {shlex.quote(os.getcwd())}"
    assert f"it waits for workers, such as `{command}`" in text, text
    done = succeeds("worker", "--store", "st", "--idle", "0.1")
    assert f"may not read the file {os.getcwd()}/rows.npy: allow it with --data-root {os.getcwd()}" in done.err, \
        done.err
    succeeds(*shlex.split(command)[1:])
    assert jobs()[0]["state"] == "done" and "it waits" not in succeeds("job", "show", "--store", "st").out


@apart.test
def who_waits_for_the_only_job_that_runs_need_not_name_it():
    succeeds("kmeans", DATA, *LEARN, "--store", "st", "--workers", "1")
    submit()
    fails(3, "no worker has been seen for", "job", "wait", "--store", "st", "--patience", "0.3")
    submit()
    fails(2, "there are 3 jobs in st: name one of them", "job", "wait", "--store", "st", "--patience", "0.3")


@apart.test
def a_worker_tells_that_its_job_failed():
    with open("nan.c", "w") as file:
        file.write("#include <math.h>\n#include <shoal/module.h>\nstatic void map(double *sum, const double *m, "
                   "const shoal_rows *rows, const shoal_setting *s) { sum[0] = NAN; }\nSHOAL_MODULE(.map = map);\n")
    name = succeeds("run", "nan.c", DATA, "--store", "st", "--detach").out.strip()
    hashes = ",".join(show()["code"].values())
    done = fails(1, "joins job", "worker", "--store", "st", "--job", name, "--allow-code", hashes)
    assert f"shoal: job {name} failed: " in done.err and "ended: the job failed" in done.err, done.err


@apart.test
def the_dead_are_not_counted():
    submit("--lease", "1")
    worker = start("worker", "--store", SLOW, "--slots", "1")
    at_work(1)
    assert jobs()[0]["workers"] == 1 and jobs()[0]["state"] == "running"
    worker.kill()
    end(worker)
    waits_for("that it is silent", lambda: jobs()[0]["workers"] == 0)
    assert jobs()[0]["state"] == "waiting" and jobs()[0]["silent"] == 1
    assert "0 active, 1 silent" in succeeds("job", "show", "--store", "st").out


@apart.test
def a_worker_serves_whatever_jobs_there_are():
    first, second = submit("--job", "first"), submit("--job", "second")
    done = succeeds("worker", "--store", "st", "--idle", "0.5", "--slots", "2")
    assert first in done.err and second in done.err
    assert [job["state"] for job in jobs()] == ["done", "done"]


@apart.test
def a_worker_told_to_leave_is_gone_soon():
    reference(*LONG)
    name = submit()
    for number, word in ((signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "SIGINT")):
        worker = start("worker", "--store", SLOW, "--job", name, "--slots", "1")
        at_work(1)
        moves_on()
        began = time.monotonic()
        worker.send_signal(number)
        done = end(worker)
        took = time.monotonic() - began
        assert done.code == 0 and (took < 60), (done.code, took, done.err)
        states = [record["state"] for record in show()["worker"]]
        assert any(word in state for state in states) and not workers_of(), states
    fails(3, "no worker has been seen for", "job", "wait", "--store", "st", "--patience", "0.3")
    succeeds("worker", "--store", "st", "--job", name)
    succeeds("job", "result", "--store", "st", "--out", "found")
    same("expected/centres.npy", "found/centres.npy")


class Metadata(http.server.BaseHTTPRequestHandler):
    """Amazon's service, which tells of an interruption when there is a file `notice`, and that with a token alone."""

    def do_PUT(self):
        self.reply(200, "the-token")

    def do_GET(self):
        known = self.headers.get("X-aws-ec2-metadata-token") == "the-token"
        self.reply(401 if not known else 200 if os.path.exists("notice") else 404, '{"action": "about to go"}')

    def reply(self, status, text):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


@apart.test
def a_notice_makes_a_worker_leave():
    name = submit()
    metadata = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    threading.Thread(target=metadata.serve_forever, daemon=True).start()
    env = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://127.0.0.1:{metadata.server_port}"}
    for notice in (os.path.abspath("notice"), "test -e ./notice", "aws", "auto"):
        worker = start("worker", "--store", SLOW, "--job", name, "--slots", "1", "--notice", notice, env=env)
        at_work(1)
        with open("notice", "w"):
            began = time.monotonic()
        done = end(worker)
        took = time.monotonic() - began
        os.remove("notice")
        assert done.code == 0 and (took < 60), (done.code, took, done.err)
        assert "about to go" in done.err, done.err
    assert jobs()[0]["state"] == "waiting"


@apart.test
def workers_that_are_killed_are_replaced():
    reference(*LONG)
    os.mkdir("found")
    starter = start("kmeans", DATA, *LONG, *outputs("found"), "--store", SLOW, "--workers", "local:3", "--threads", "1",
                    "--lease", "2")
    for victim in at_work(3)[:2]:
        os.kill(victim, signal.SIGKILL)
    at_work(3)
    done = end(starter)
    assert done.code == 0, done.err
    agrees("found")
    assert "5 workers (2 lost)" in done.out, done.out
    states = [worker["state"] for worker in show()["worker"]]
    assert states.count("died: signal 9") == 2 and states.count("done") == 3, states


@apart.test
def the_number_of_workers_changes_on_request():
    name = submit("--workers", "local:1", "--threads", "1", "--runs", "500", store=SLOW)  # which nobody waits for
    at_work(1)
    assert "3 workers" in succeeds("job", "scale", name, "3", "--store", "st").out
    at_work(3)
    succeeds("job", "scale", "2", "--store", "st")
    at_work(2)
    assert show()["wanted"] == 2
    succeeds("job", "cancel", "--store", "st")
    fails(2, "is cancelled and needs no workers", "job", "scale", "4", "--store", "st")


# ---- stopping and going on -----------------------------------------------------------------------------------------

@apart.test
def a_signal_stops_the_starter_and_the_job_can_go_on():
    reference(*LONG)
    os.mkdir("found")
    with open("found/centres.npy", "w") as old:
        old.write("old")
    starter = start("kmeans", DATA, *LONG, *outputs("found"), "--force", "--store", SLOW, "--workers", "local:2")
    pids = at_work(2)
    round_is(5)
    began = time.monotonic()
    starter.send_signal(signal.SIGINT)
    done = end(starter)
    assert done.code == 3 and time.monotonic() - began < 60, (done.code, done.err)
    name = jobs()[0]["id"]
    resume = f"shoal job resume {name} --store {shlex.quote(SLOW)}"
    assert f"stopped; resume job {name} with `{resume}`" in done.err, done.err
    assert not any(alive(pid) for pid in pids), "its workers are gone"
    assert os.listdir("found") == ["centres.npy"] and open("found/centres.npy").read() == "old", "outputs are untouched"
    fails(3, "has no result yet: it is in round", "job", "result", "--store", "st")
    done = succeeds("job", "resume", name, "--store", SLOW)
    assert "4 workers" in done.out, f"as many workers as before: {done.out}"
    agrees("found", trace=False)
    rounds = [line["round"] for line in trace_of("found/trace.jsonl")]
    assert rounds[-1] == trace_of("expected/trace.jsonl")[-1]["round"], rounds
    assert rounds == list(range(rounds[0], rounds[-1] + 1)), rounds


@apart.test
def a_second_signal_leaves_no_worker():
    """Both come before the first is noticed: the process ends at once, its workers with it, and says how to resume."""
    starter = start("kmeans", DATA, *LONG, "--store", SLOW, "--workers", "local:2", "--lease", "1")
    pids = at_work(2)
    starter.send_signal(signal.SIGSTOP)
    starter.send_signal(signal.SIGINT)
    starter.send_signal(signal.SIGTERM)
    starter.send_signal(signal.SIGCONT)
    done = end(starter)
    assert -done.code in (signal.SIGINT, signal.SIGTERM), (done.code, done.err)
    name = jobs()[0]["id"]
    resume = f"shoal job resume {name} --store {shlex.quote(SLOW)}"
    assert done.err.endswith(f"shoal: stopped at once; resume the job with `{resume}`\n"), done.err
    waits_for("the end of all workers", lambda: not any(alive(pid) for pid in pids))
    assert jobs()[0]["state"] != "done"
    succeeds("job", "resume", name, "--store", SLOW)


@apart.test
def notes_of_jobs_that_are_gone_are_removed():
    """A job may be removed from another machine, or with its folder."""
    notes = "state/shoal/request"
    for store, count in (("st", 2), ("other", 1)):
        for _ in range(count):
            fails(3, "no worker", "kmeans", DATA, *LEARN, "--store", store, "--patience", "0.2", "--quiet")
    assert len(os.listdir(notes)) == 3
    gone, kept = sorted(job["id"] for job in jobs())
    succeeds("job", "remove", gone, "--store", "st", env={"XDG_STATE_HOME": os.path.abspath("elsewhere")})
    succeeds("job", "list", "--store", "dir:st")
    assert len(os.listdir(notes)) == 3, "a job that is being submitted has a note before it can be listed"
    old = time.time() - 7200
    for name in os.listdir(notes):
        os.utime(f"{notes}/{name}", (old, old))
    shutil.rmtree("other")
    succeeds("job", "list", "--store", "dir:st")
    assert f"{gone}.request" not in os.listdir(notes) and f"{kept}.request" in os.listdir(notes), os.listdir(notes)
    [elsewhere] = [name for name in os.listdir(notes) if name != f"{kept}.request"]
    os.utime(f"{notes}/{elsewhere}", (0, 0))
    succeeds("kmeans", DATA, *LEARN, "--store", "st", "--workers", "1")
    assert elsewhere not in os.listdir(notes) and len(os.listdir(notes)) == 2, os.listdir(notes)


@apart.test
def workers_survive_their_starter():
    reference(*LONG)
    os.mkdir("found")
    starter = start("kmeans", DATA, *LONG, *outputs("found"), "--store", SLOW, "--workers", "local:2")
    pids = at_work(2)
    starter.kill()
    starter.wait()
    succeeds("job", "wait", "--store", "st")
    waits_for("the end of all workers", lambda: not any(alive(pid) for pid in pids))
    assert os.listdir("found") == [] or all(".tmp-" in name for name in os.listdir("found"))
    succeeds("job", "resume", "--store", "st")
    agrees("found", trace=False)


@apart.test
def a_submission_that_is_cut_short_goes_on():
    succeeds("data", "convert", "gen:uniform?rows=4000&cols=8", "rows.csv")
    learn = ["rows.csv", *LEARN, "--grain", "50"]
    starter = start("kmeans", *learn, "--slices", "80", "--store", "dir:st?faults=delay:1/500ms", "--workers",
                    "local:2", "--centres", "found.npy")
    waits_for("the job", jobs)
    starter.kill()
    starter.wait()
    rows = [key for key in succeeds("store", "ls", "-r", "st").out.split() if "/data/" in key]
    assert len(rows) < 80 and jobs()[0]["state"] == "waiting", "it was killed before all rows were there"
    os.rename("rows.csv", "away.csv")
    done = fails(1, "lacks rows that were to be uploaded", "job", "resume", "--store", "st")
    assert os.path.abspath("rows.csv") in done.err, done.err
    os.rename("away.csv", "rows.csv")
    succeeds("job", "resume", "--store", "st")
    succeeds("kmeans", *learn, "--centres", "expected.npy")
    same("expected.npy", "found.npy")
    assert show()["doubled"] < 40, "slices are handed out anew, not found missing one by one"


@apart.test
def a_cancelled_job_goes_on():
    reference(*LONG)
    os.mkdir("found")
    starter = start("kmeans", DATA, *LONG, *outputs("found"), "--store", SLOW, "--workers", "local:2")
    at_work(2)
    round_is(4)
    assert "shoal job resume" in succeeds("job", "cancel", "--store", "st", "--why", "for lunch").out
    done = end(starter)
    assert done.code == 3 and "was cancelled: for lunch" in done.err, (done.code, done.err)
    assert jobs()[0]["state"] == "cancelled" and not workers_of()
    fails(3, "was cancelled: for lunch", "job", "wait", "--store", "st")
    fails(3, "was cancelled (for lunch) and has no result", "job", "result", "--store", "st")
    succeeds("job", "cancel", "--store", "st")
    succeeds("job", "resume", "--store", "st", "--workers", "local:1")
    agrees("found", trace=False)
    fails(2, "is done: there is nothing to cancel", "job", "cancel", "--store", "st")


@apart.test
def a_job_is_removed_with_all_it_has():
    succeeds("data", "convert", "gen:uniform?rows=900&cols=8", "rows.npy")
    with open("rows.npy", "rb") as rows:
        piped = subprocess.run([SHOAL, "kmeans", "-", *LONG, "--store", "st", "--detach"], stdin=rows,
                               capture_output=True, text=True,
                               env={**os.environ, "XDG_STATE_HOME": os.path.abspath("state")})
    assert piped.returncode == 0, piped.stderr
    name = piped.stdout.strip()
    assert show()["source"] == "uploaded"
    worker = start("worker", "--store", SLOW, "--job", name, "--slots", "1")
    round_is(2)
    fails(2, f"1 worker is at work on job {name}", "job", "remove", name, "--store", "st")
    assert f"removed job {name}" in succeeds("job", "remove", name, "--store", "st", "--force").out
    done = end(worker)
    assert done.code == 0, done.err
    assert jobs() == []
    left = succeeds("store", "ls", "-r", "st").out.split()
    assert left == [f"gone/{name}"], f"nothing but the tombstone is left: {left}"
    succeeds("kmeans", DATA, *LEARN, "--store", "st", "--workers", "local:1")
    submit()
    succeeds("job", "remove", "--all-done", "--store", "st")
    assert [job["state"] for job in jobs()] == ["waiting"]
    nothing = succeeds("job", "remove", "--all-done", "--store", "st").out
    assert nothing == "no job is done; shoal job list shows the others\n", nothing
    succeeds("job", "remove", "--all-unstarted", "--store", "st")
    nothing = succeeds("job", "remove", "--all-unstarted", "--store", "st").out
    assert nothing == "no job waits for its first worker\n", nothing


@apart.test
def as_many_launchers_as_there_can_be():
    """Also when another process looks after them, to which all are handed over."""
    many = ["--workers", "local:1"] * 32
    name = succeeds("kmeans", DATA, *LEARN, *many, "--store", "st", "--detach").out.strip()
    succeeds("job", "wait", name, "--store", "st")
    fails(2, "at most 32 times", "kmeans", DATA, *LEARN, *many, "--workers", "local:1")


@apart.test
def nobody_to_do_it_is_said_and_can_be_mended():
    done = fails(3, "no worker has been seen for", "kmeans", DATA, *LEARN, "--store", "st", "--patience", "0.5",
                 "--quiet")
    assert "shoal job resume" in done.err and "--store st" in done.err, done.err
    succeeds("job", "resume", "--store", "st", "--workers", "local:1")


@apart.test
def workers_that_fail_at_once_say_why():
    succeeds("data", "convert", "gen:uniform?rows=900&cols=8", "rows.npy")
    name = succeeds("kmeans", "rows.npy", *LEARN, "--store", "st", "--detach", "--lease", "1").out.strip()
    os.remove("rows.npy")
    done = fails(3, "the workers keep failing: the last one", "job", "resume", name, "--store", "st",
                 "--workers", "local:2", "--patience", "60")
    assert f"{os.path.abspath('rows.npy')}: can't read: No such file" in done.err, done.err
    assert done.err.count(name) == 2, f"once as the job's name and once in the command: {done.err}"


@apart.test
def wrong_rows_are_told_as_without_workers():
    with open("rows.csv", "w") as rows:
        rows.writelines(f"{i},{i * i % 7}\n" if i != 70 else "nan,1\n" for i in range(100))
    plain = fails(1, "rows.csv", "kmeans", "rows.csv", "-k", "3")
    done = fails(1, "rows.csv", "kmeans", "rows.csv", "-k", "3", "--workers", "local:2")
    assert done.err == plain.err, (done.err, plain.err)
    assert "there are no jobs" in succeeds("job", "list").out, "a job that can't be mended is not kept"
    done = fails(1, "rows.csv", "kmeans", "rows.csv", "-k", "3", "--workers", "local:2", "--store", "st")
    assert f"shoal job remove {jobs()[0]['id']} --store st" in done.err and jobs()[0]["state"] == "failed", done.err
    fails(1, jobs()[0]["message"], "job", "wait", "--store", "st")


# ---- wrong usage -----------------------------------------------------------------------------------------------------

@apart.test
def limits_are_those_of_the_library():
    limits = [("--lease", ["0.5", "at least 1"], ["604801", "at most 604800"], ["1", "604800"]),
              ("--keep-rounds", ["0", "at least 1"], ["1073741825", "at most 1073741824"], ["1", "1073741824"]),
              ("--patience", ["0.09", "at least 0.1"], ["1.1e9", "at most 1000000000"], ["0.1", "1e9"]),
              ("--slices", ["0", "at least 1"], ["65537", "at most 65536"], ["1"]),
              ("--threads", ["0", "at least 1"], ["4097", "at most 4096"], ["1", "4096"])]
    job = ["kmeans", DATA, *LEARN, "--store", "st", "--detach"]
    for option, below, above, good in limits:
        for value, sentence in (below, above):
            fails(2, f"{option} must be {sentence}, not {value}", *job, option, value)
            if option in ("--patience", "--threads"):
                fails(2, f"{option} must be {sentence}, not {value}", "job", "resume", "--store", "st", option, value)
        for value in good:
            succeeds(*job, option, value)
    fails(2, "--job must be a letter", *job, "--job", 47 * "a")
    name = succeeds(*job, "--job", 46 * "a").out.strip()
    for value, sentence in (limits[2][1], limits[2][2]):
        fails(2, f"--patience must be {sentence}, not {value}", "job", "wait", name, "--store", "st",
              "--patience", value)
    fails(2, "is not a number of workers from 0 to 4096", "job", "scale", name, "4097", "--store", "st")
    succeeds("job", "scale", name, "4096", "--store", "st")


@apart.test
def wrong_usage_is_told_in_one_sentence():
    def kmeans(code, sentence, *options, **more):
        done = fails(code, sentence, "kmeans", DATA, *LEARN, *options, **more)
        assert len([line for line in done.err.splitlines() if not line.startswith("try ")]) == 1, done.err

    kmeans(2, "--workers: 'farm:3' is not one of N, local:N", "--workers", "farm:3")
    kmeans(2, "--workers: 'local:0' should be local:N with N from 1", "--workers", "local:0")
    kmeans(2, "--workers: 'local:many'", "--workers", "local:many")
    kmeans(1, "slurm: there is no sinfo on this machine", "--workers", "slurm:2", "--store", "st",
           env={"PATH": "/nowhere"})
    for option in (["--detach"], ["--reduce", "flat"], ["--roles", "split"], ["--slices",
                                                                              "2"], ["--job", "a"], ["--patience",
                                                                                                     "1"]):
        kmeans(2, f"{option[0]} needs --workers WHERE or --store URL", *option)
    kmeans(2, "--slices must be at most 12, the grains that the rows make, not 5000", "--store", "st",
           "--slices", "5000")
    kmeans(2, "--workers: 'local:99999' should be local:N with N from 1 to", "--workers", "local:99999")
    kmeans(2, "SHOAL_STORE: nonsense://x", "--workers", "local:1", env={"SHOAL_STORE": "nonsense://x"})
    kmeans(2, "--roles is all or split, not 'half'", "--workers", "local:1", "--roles", "half")
    kmeans(2, "--reduce needs a whole number of at least 2", "--workers", "local:1", "--reduce", "tree:1")
    kmeans(2, "--job must be a letter and then at most 45 letters, digits and '-', not 'a/b'",
           "--workers", "local:1", "--job", "a/b")
    kmeans(2, "--store needs the URL", "--store", "")
    kmeans(2, "mem:x is the memory of this process", "--store", "mem:x", "--workers", "local:1")
    kmeans(2, "SHOAL_STORE: mem: is the memory of this process", "--workers", "local:1", env={"SHOAL_STORE": "mem:"})
    fails(2, "--parent 1 is not the process that started this worker", "worker", "--store", "st", "--parent", "1")
    kmeans(2, "a job that runs on with --detach has no standard output", "--store", "st", "--detach",
           "--centres", "/dev/stdout")
    assert not os.path.exists("st") or jobs() == [], "nothing of that has been submitted"
    fails(1, "there is no job nothing in st", "job", "show", "nothing", "--store", made("st"))
    fails(1, "there are no jobs in st", "job", "show", "--store", "st")
    fails(1, "there is no", "job", "list", "--store", "nowhere")
    fails(1, "there are no jobs yet in dir:", "job", "show")
    assert not os.path.exists("state/shoal/jobs"), "looking makes no store"
    first, second = submit(), submit()
    assert f"no worker has joined job {first} yet" in succeeds("job", "logs", first, "--store", "st").out
    fails(2, "name one of them", "job", "show", "--store", "st")
    fails(2, "is ambiguous: matches", "job", "show", "kmeans", "--store", "st")
    fails(2, "is not a number of workers from 0 to 4096", "job", "scale", first, "many", "--store", "st")
    fails(2, "--tensor NAME and --output FILE go together", "job", "result", first, "--tensor", "a", "--store",
          "st")
    fails(2, "job remove needs ID, --all-done or --all-unstarted", "job", "remove", "--store", "st")
    fails(2, "--roles: 'cook'", "worker", "--store", "st", "--roles", "cook")
    fails(2, "--id: 'xyz' is not 16", "worker", "--store", "st", "--id", "xyz")
    fails(2, "--spec: '12' is not a SHA-256", "worker", "--store", "st", "--spec", "12")
    fails(2, "--data-root", "worker", "--store", "st", "--data-root", "/nowhere")
    fails(2, "--allow-code: 'xyz' should be SHA-256", "job", "resume", first, "--store", "st", "--allow-code", "xyz")
    for option in (["--threads", "1"], ["--kernel", "portable"], ["--ssh", "x"], ["--roles", "all"],
                   ["--worker-memory", "1GiB"]):
        fails(2, f"{option[0]} is about workers that are started here", "job", "resume", first, "--store", "st",
              "--workers", "none", *option)
    fails(2, "--patience must be at most 1000000000, not 1e10", "worker", "--store", "st", "--patience", "1e10")
    fails(2, "--lease: '' is not a number", "kmeans", DATA, *LEARN, "--store", "st", "--lease", "")
    fails(2, "unknown kind of store 'ftp'", "worker", "--store", "st", "--data-root", "ftp://x")
    fails(1, "there is no job nothing", "worker", "--store", "st", "--job", "nothing")
    wrong = fails(1, "spec", "worker", "--store", "st", "--job", second, "--spec", "0" * 64)
    assert second in wrong.err, wrong.err


def made(store):
    succeeds("kmeans", DATA, *LEARN, "--store", store, "--detach")
    succeeds("job", "remove", jobs(store)[0]["id"], "--store", store)
    return store


@contextlib.contextmanager
def read_only(folder):
    """The folder under a name where it can't be written to; None where nobody can arrange for that."""
    if os.getuid() != 0:
        os.chmod(folder, 0o500)
        yield folder
        return os.chmod(folder, 0o700)
    os.mkdir("fixed")
    if subprocess.run(["mount", "--bind", folder, "fixed"], capture_output=True).returncode != 0:
        print("  left out: root may write everywhere, and this one may not mount")
        yield None
        return None
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", "fixed"], check=True)
        yield "fixed"
    finally:
        subprocess.run(["umount", "-l", "fixed"], check=True)


@apart.test
def a_store_that_can_only_be_read_can_be_looked_at():
    succeeds("kmeans", DATA, *LEARN, "--store", "st", "--workers", "local:1")
    name = jobs()[0]["id"]
    with read_only("st") as store:
        if store is None:
            return
        for verb in ("list", "show", "logs", "result", "wait"):
            succeeds("job", verb, "--store", store)
        for words in (["kmeans", DATA, *LEARN, "--workers", "local:1"], ["job", "cancel"], ["job", "resume"],
                      ["job", "scale", "2"], ["job", "remove", name], ["worker"], ["worker", "--job", name]):
            fails(1, f"{store}: can't be written to", *words, "--store", store)
    assert jobs()[0]["state"] == "done", "nothing happened to it"


@apart.test
def an_unreachable_store_is_told():
    nobody = "http://127.0.0.1:9"
    env = {
        "AWS_ENDPOINT_URL": nobody, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AZURE_STORAGE_KEY": "YQ==",
        "AZURE_STORAGE_BLOB_ENDPOINT": f"{nobody}/acct", "AZURE_STORAGE_QUEUE_ENDPOINT": f"{nobody}/acct"
    }
    for store in ("s3://bucket/jobs", "az://acct/box/jobs"):
        fails(1, "127.0.0.1", "job", "list", "--store", store, "--deadline", "1", env=env)
        fails(1, "127.0.0.1", "kmeans", DATA, *LEARN, "--store", store, "--workers", "local:1", "--patience", "1",
              "--quiet", env=env)
        fails(1, "127.0.0.1", "worker", "--store", store, "--patience", "1", env=env)


@apart.test
def what_is_printed_can_be_typed():
    folder = "a folder/it's für uns"
    os.makedirs(folder)
    succeeds("data", "convert", "gen:uniform?rows=900&cols=8", f"{folder}/rows.npy")
    done = fails(3, "waiting for workers", "kmeans", f"{folder}/rows.npy", *LEARN, "--store", f"dir:{folder}/st",
                 "--patience", "0.3", "--centres", f"{folder}/centres.npy")
    worker = done.err.splitlines()[0].split(": ", 1)[1]
    resume = done.err.split("`")[1]
    for command in (f"{worker} --idle 1", resume):
        words = shlex.split(command)
        assert words[0] == "shoal"
        succeeds(*words[1:])
    succeeds("kmeans", f"{folder}/rows.npy", *LEARN, "--centres", "expected.npy")
    same("expected.npy", f"{folder}/centres.npy")


@apart.test
def an_output_that_can_not_be_written_loses_nothing():
    done = fails(1, "/dev/full: can't write", "kmeans", DATA, *LEARN, "--workers", "local:1", "--centres", "/dev/full")
    words = shlex.split(done.err.split("`")[1])
    succeeds(*words[1:], "--out", "found")
    succeeds("kmeans", DATA, *LEARN, "--centres", "expected.npy")
    same("expected.npy", "found/centres.npy")
    fails(1, "/nowhere/c.npy: can't write", "kmeans", DATA, *LEARN, "--workers", "local:1", "--centres",
          "/nowhere/c.npy")


@apart.test
def a_result_that_was_damaged_is_computed_again():
    reference(*LEARN)
    os.mkdir("found")
    name = succeeds("kmeans", DATA, *LEARN, *outputs("found"), "--store", "st", "--workers", "local:2",
                    "--detach").out.strip()
    succeeds("job", "wait", name, "--store", "st")
    waits_for("the outputs", lambda: os.path.exists("found/trace.jsonl"))
    for folder, _, files in os.walk("found"):
        for file in files:
            os.remove(os.path.join(folder, file))
    keys = succeeds("store", "ls", "-r", f"st/jobs/{name}/round").out.split()
    assert len(keys) == 1, keys
    with open("junk", "wb") as file:
        file.write(b"not a model" * 10)
    succeeds("store", "put", "junk", f"st/jobs/{name}/round/{keys[0]}")
    about = show("st", name)
    assert about["state"] == "waiting" and about["round"] > 0 and about["message"].startswith("damaged: "), about
    told = fails(1, f"job {name}: its result is damaged", "job", "result", name, "--store", "st")
    assert "resume the job to compute it again" in told.err, told.err
    assert "no job waits" in succeeds("job", "remove", "--all-unstarted", "--store", "st").out
    succeeds("job", "resume", name, "--store", "st", "--workers", "local:2")
    agrees("found", trace=False)
    assert [job["state"] for job in jobs()] == ["done"]


# ---- specs that others wrote -----------------------------------------------------------------------------------------

def crc32c(data):
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def rewrite_blob(key, change):
    """Changes what is behind the frame of a blob, as someone can who may write to the store."""
    succeeds("store", "get", key, "blob")
    with open("blob", "rb") as file:
        whole = file.read()
    body = change(whole[48:])
    frame = whole[:16] + struct.pack("<Q", len(body)) + whole[24:40] + struct.pack("<I", crc32c(body))
    with open("blob", "wb") as file:
        file.write(frame + struct.pack("<I", crc32c(frame)) + body)
    succeeds("store", "put", "blob", key)
    os.remove("blob")


def rewrite_spec(name, change, store="st"):
    """The same for the JSON in a job's spec."""
    def change_json(body):
        length = struct.unpack_from("<I", body)[0]
        spec = json.loads(body[4:4 + length])
        change(spec)
        text = json.dumps(spec).encode()
        return struct.pack("<I", len(text)) + text + body[4 + length:]

    rewrite_blob(f"{store}/jobs/{name}/spec", change_json)


def rewrite_settings(name, **changes):
    def change(spec):
        spec["settings"] = json.dumps({**json.loads(spec["settings"]), **changes})

    rewrite_spec(name, change)


@apart.test
def a_worker_refuses_what_it_can_not_do_and_the_job_is_not_harmed():
    name = submit()
    succeeds("store", "get", f"st/jobs/{name}/spec", "original")
    for change, sentence in (({"format": 99}, "was written by a newer shoal (format 99"),
                             ({"version": "9.9.9"}, "was made by shoal 9.9.9"),
                             ({"fingerprint": "0" * 16}, "gives other bits than that of the job"),
                             ({"algorithm": "forest"}, "'forest', which this worker does not have"),
                             ({"extra": 1}, "the spec's field extra is not known")):
        rewrite_spec(name, lambda spec: spec.update(change))
        fails(1, sentence, "worker", "--store", "st", "--job", name)
        done = succeeds("worker", "--store", "st", "--idle", "0.1")
        assert sentence in done.err, done.err
        assert name in succeeds("job", "list", "--store", "st").out
        succeeds("store", "put", "original", f"st/jobs/{name}/spec")
    succeeds("worker", "--store", "st", "--job", name)
    assert jobs()[0]["state"] == "done"


@apart.test
def a_store_can_not_speak_to_a_terminal():
    name = submit()
    rewrite_spec(name, lambda spec: spec.update(algorithm="k\x1b[31m\x9b1m", version="\x1b]0;x\x07\u202e"))
    succeeds("job", "cancel", "--store", "st", "--why", "\x1b[2J\x9b2J\u202e")
    for words in (["list"], ["show"], ["logs"], ["wait"], ["result"], ["watch"], ["resume"], ["show", "--json"]):
        done = run("job", *words, "--store", "st")
        assert not set(done.out + done.err) & set("\x1b\x07\x9b\u202e"), (words, done.out, done.err)


@apart.test
def a_result_can_not_speak_to_a_terminal_or_leave_its_folder():
    succeeds("kmeans", DATA, *LEARN, "--store", "st", "--workers", "local:1", "--job", "forged")
    model = max(key for key in succeeds("store", "ls", "-r", "st").out.split() if key.endswith("/model"))

    def rename(old, new):
        assert len(old) == len(new)
        rewrite_blob(f"st/{model}", lambda body: body.replace(old, new))

    rewrite_spec(model.split("/")[1], lambda spec: spec.update(algorithm="forged"))  # one that nobody here could check
    rename(b"objective", b"\x1b[31m\xc2\x9b2J")
    rename(b"sizes", b"\x9b2J\xff!")
    for words in ([], ["--json"]):
        done = succeeds("job", "result", "--store", "st", *words)
        assert not set(done.out + done.err) & set("\x1b\x9b\udc9b"), done.out
    fails(1, "which is not a name for a file", "job", "result", "--store", "st", "--out", "found")
    rename(b"centres", b"../../x")
    os.makedirs("a/b")
    fails(1, "a tensor called '../../x', which is not a name for a file", "job", "result", "--store", "st", "--out",
          "a/b")
    assert not os.path.exists("x.npy")


@apart.test
def a_store_can_not_say_which_files_are_written():
    reference(*LEARN)
    os.mkdir("found")
    outputs = ["--centres", "found/centres.npy"]
    fails(3, "no worker", "kmeans", DATA, *LEARN, "--store", "st", "--patience", "0.2", "--quiet", *outputs)
    name = jobs()[0]["id"]
    succeeds("store", "get", f"st/jobs/{name}/spec", "original")
    rewrite_settings(name, outputs={"centres": os.path.abspath("victim.npy"),
                                    "trace": os.path.abspath("victim2.jsonl")})
    stranger = {"XDG_STATE_HOME": os.path.abspath("other")}
    with open("victim.npy", "w") as file:
        file.write("mine")
    done = succeeds("job", "resume", "--store", "st", "--workers", "local:1", env=stranger)
    assert "not written" in done.err and os.path.abspath("victim.npy") in done.err, done.err
    assert open("victim.npy").read() == "mine" and not os.path.exists("victim2.jsonl")
    fails(1, f"job {name} is not what it was: someone has replaced its spec", "job", "resume", "--store", "st")
    succeeds("job", "resume", "--store", "st", "--write-outputs", "--force", env=stranger)
    same("expected/centres.npy", "victim.npy")
    succeeds("store", "put", "original", f"st/jobs/{name}/spec")
    os.remove("victim2.jsonl")
    succeeds("job", "resume", "--store", "st")
    assert not os.path.exists("victim2.jsonl")
    same("expected/centres.npy", "found/centres.npy")
    assert os.listdir("state/shoal/request") == [f"{name}.request"]
    succeeds("job", "remove", name, "--store", "st")
    assert os.listdir("state/shoal/request") == [], "nothing is kept about a job that is gone"


@apart.test
def a_store_can_not_say_what_is_started():
    name = succeeds("kmeans", DATA, *LEARN, "--store", "st", "--detach").out.strip()
    called = os.path.abspath("called")
    rewrite_settings(name, workers=["ssh:h1", f"slurm:4?program={called}"], ssh=f"touch {called}", roles="split")
    stranger = {"XDG_STATE_HOME": os.path.abspath("other")}
    resume = ["job", "resume", name, "--store", "st"]
    sentence = (f"job {name} was submitted elsewhere and asks for --workers ssh:h1 "
                f"--workers 'slurm:4?program={called}'; to start workers, give --workers yourself")
    fails(1, sentence, *resume, env=stranger)
    fails(1, sentence, *resume, "--detach", env=stranger)
    fails(3, "waiting for workers", *resume, "--workers", "none", "--patience", "0.2", env=stranger)
    assert jobs()[0]["state"] == "waiting" and show()["worker"] == []
    succeeds("job", "scale", name, "9", "--store", "st")
    done = succeeds("job", "resume", name, "--store", "dir:st?faults=delay:1/5ms", "--workers", "local:1",
                    "--as-scaled", env=stranger)
    for ignored in (f"--ssh touch {called}", "--roles split"):
        assert f"submitted elsewhere, unless you give it yourself: {ignored}" in done.err, done.err
    assert len(show()["worker"]) == 1, "nobody else says how many are started here"
    assert not os.path.exists(called)
    succeeds(*resume, env=stranger)  # it is done: nothing has to be started


@apart.test
def a_store_can_not_say_what_is_read():
    os.mkdir("rows")
    succeeds("data", "convert", DATA, "rows/a.npy")
    succeeds("data", "convert", DATA, "rows/a.csv")
    succeeds("store", "put", "rows/a.npy", "far/")
    here = os.getcwd()
    stranger = {"XDG_STATE_HOME": f"{here}/other"}
    others = [f"{here}/{name}" for name in ("row", "rows2", "rows/b", "fa", "far2", "st")]
    for folder in others[:-1]:
        os.mkdir(folder)
    for data, place, root in (("rows/a.npy", f"{here}/rows/a.npy", f"{here}/rows"),
                              (f"dir:{here}/far/a.npy", f"{here}/far/a.npy", f"dir:{here}/far"),
                              ("rows/a.csv", f"{here}/rows/a.csv", f"{here}/rows")):
        name = succeeds("kmeans", data, *LEARN, "--store", "st", "--detach").out.strip()
        resume = ["job", "resume", name, "--store", "st", "--workers", "local:1", "--patience", "20"]
        if place.endswith(".csv"):  # rows that were uploaded, but for some that whoever did so had no time for
            succeeds("store", "rm", f"st/jobs/{name}/data/000000")
        done = fails(1, f"job {name} was submitted elsewhere and its", *resume, env=stranger)
        assert f" {place}; to allow that, give --data-root " in done.err, done.err
        for wrong in (",".join(others), "az://acct/box"):
            fails(1, "give --data-root", *resume, "--data-root", wrong, env=stranger)
        fails(2, "--data-root", *resume, "--data-root", f"{here}/nowhere", env=stranger)
        succeeds(*resume, "--data-root", root, env=stranger)


@apart.test
def a_store_can_not_say_what_columns_there_were():
    """Means of other columns would be used beyond the end of the centres."""
    name = succeeds("kmeans", DATA, *LEARN, "--standardise", "--store", "st", "--workers", "local:1", "--json",
                    "--centres", "c.npy").out
    name = json.loads(name)["job"]
    rewrite_settings(name, schema={"columns": 3, "standardise_mean": [0, 0, 0], "standardise_scale": [1, 1, 1]})
    fails(1, "a schema of 3 columns, but rows of", "job", "resume", name, "--store", "st", "--write-outputs",
          env={"XDG_STATE_HOME": os.path.abspath("other")})


@apart.test
def a_store_can_not_say_that_a_file_is_the_target():
    """What the settings call a column stays one, so that a job of others can't have a file of ours uploaded."""
    with open("secret", "w", encoding="ascii") as file:
        file.write("1\n2\n" * 20)
    name = succeeds("bayes", "gen:uniform?rows=40&cols=3&seed=1", "--target", "secret", "--store", "st",
                    "--detach").out.strip()
    secret = os.path.abspath("secret")
    rewrite_settings(name, data={"path": "gen:uniform?rows=40&cols=3&seed=1", "target": secret})
    succeeds("store", "rm", f"st/jobs/{name}/data/000000")
    fails(2, f'there is no column "{secret}"', "job", "resume", name, "--store", "st", "--workers", "local:1",
          "--data-root", os.getcwd(), env={"XDG_STATE_HOME": os.path.abspath("other")})


# ---- whoever looks after a job ---------------------------------------------------------------------------------------

def supervisor():
    """The process that looks after the workers of this folder's detached job."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if os.readlink(f"/proc/{pid}/cwd") == os.getcwd() and words[1:3] == [b"job", b"resume"]:
                return int(pid)
        except OSError:
            pass
    return None


@apart.test
def a_supervisor_that_is_stopped_or_killed_loses_nothing():
    reference(*LONG)
    os.mkdir("found")
    name = submit("--workers", "local:2", *outputs("found"), store=SLOW)
    pids = at_work(2)
    os.kill(supervisor(), signal.SIGTERM)
    waits_for("the end of its workers", lambda: not any(alive(pid) for pid in pids))
    waits_for("its last words",
              lambda: f"stopped; resume job {name} with" in succeeds("job", "logs", "--store", "st").out)
    assert jobs()[0]["state"] == "waiting" and os.listdir("found") == []
    assert succeeds("job", "resume", name, "--store", SLOW, "--detach").out.strip() == name
    at_work(2)
    os.kill(supervisor(), signal.SIGKILL)
    succeeds("job", "wait", name, "--store", "st")
    assert not os.path.exists("found/centres.npy")
    succeeds("job", "resume", name, "--store", "st")
    agrees("found", trace=False)


@apart.test
def finished_rounds_stay_as_asked():
    succeeds("kmeans", DATA, *LONG, "--store", "st", "--workers", "local:1", "--keep-rounds", "7")
    models = [key for key in succeeds("store", "ls", "-r", "st").out.split() if key.endswith("/model")]
    assert 7 <= len(models) <= 9, models


apart.main(at_once=6)
