#!/usr/bin/env python3
# Labels: quick
"""After a run the summary and --json tell what was predicted and what happened, and one line goes into the history;
nothing of that can fail a run.

    test_predicted.py PATH_TO_shoal [NAME...]

The calibration is written here, with paces that make what is predicted a matter of counting: a round of each phase
takes a time of its own and nothing else takes any.
"""
import json
import math
import os
import re
import subprocess
import sys

import apart

sys.dont_write_bytecode = True
SHOAL = os.path.abspath(sys.argv[1])
os.environ.pop("SHOAL_HISTORY", None)  # off for all other tests
ROUND = {"scan": 0.5, "seed": 0.25, "run": 0.125}
DATA = "gen:blobs?rows=3000&cols=6"
LONG = "gen:uniform?rows=200000&cols=32"  # takes a fifth of a second or more with -k 60 and no tolerance
WORDS = [LONG, "-k", 60, "--iterations", 40, "--tolerance", 0]


def shoal(*arguments, code=0, env=None, clean=True):
    variables = {name: value for name, value in {**os.environ, **(env or {})}.items() if value is not None}
    done = subprocess.run([SHOAL, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120, env=variables)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    assert not clean or not done.stderr, done.stderr
    return done


def calibrate(path="config/shoal/calibration.json", learners=("kmeans", "logistic", "autoencoder"), **more):
    paces = [dict(learner=learner, phase=phase, value=0.0, operation=0.0, round=seconds, model_byte=0.0, rounds=1.0)
             for learner in learners for phase, seconds in ROUND.items()]
    site = dict(store="dir", date="2026-10-01T00:00:00Z", get=0.0, put=0.0, wait=0.0, read=1e18, write=1e18,
                connections=1.0, worker=0.0, account=0.0, account_write=0.0, get_price=0.0, put_price=0.0, requests=0.0,
                requests_per_second=0.0, start=100.0, hash=0.0, sync=1.0, crowd=0.0, straggle=0.0, thread_loss=0.0,
                error=0.2)
    whole = dict(version=1, date="2026-10-01T00:00:00Z", host="here", kernel="any", threads=2, thread_loss=0.0,
                 error=0.1, paces=paces, sites=[site])
    whole.update(more)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        json.dump(whole, file)


def history(path="state/shoal/history.jsonl"):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file]


def near(a, b):
    return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)


def of_rounds(line):
    return sum(phase["rounds"] * ROUND[phase["name"]] for phase in line["phases"])


@apart.test
def predicted_and_happened():
    calibrate()
    found = json.loads(shoal("kmeans", DATA, "-k", 5, "--json").stdout)
    line, = history()
    told = found["predicted"]
    assert near(told["phases"]["scan"], 2 * 0.5) and near(told["phases"]["seed"], 11 * 0.25), told
    assert near(told["phases"]["run"], (found["iterations"] + 1) * 0.125), told
    assert near(told["seconds"], sum(told["phases"].values())) and near(told["rounds_seconds"], told["seconds"]), told
    assert near(told["low"], told["seconds"] * math.exp(-1.6448536 * 0.1)), told
    assert near(told["high"], told["seconds"] * math.exp(1.6448536 * 0.1)), told
    assert told["rounds"] == found["rounds"], (told, found)
    took = sum(found["seconds"][phase] for phase in ("scan", "seed", "run"))
    assert near(told["took"], took) and near(line["seconds"], took), (told, took, line)
    assert line["learner"] == "kmeans" and line["store"] == "" and line["rows"] == 3000 and line["columns"] == 6, line
    assert near(line["predicted"], told["seconds"]) and near(line["low"], told["low"]) and near(
        line["high"], told["high"]), line
    assert not line["partial"] and line["source"] == "generated" and line["kernel"] == found["kernel"] and line[
        "threads"] == found["threads"], line
    assert [phase["name"] for phase in line["phases"]] == ["scan", "seed", "run"], line
    assert [phase["expected_rounds"] for phase in line["phases"]] == [2, 11, 301], line


@apart.test
def the_summary_has_one_line():
    calibrate()
    lines = shoal("kmeans", *WORDS).stdout.splitlines()
    at, = (i for i, line in enumerate(lines) if line.startswith("predicted"))
    time = r"\d+(\.\d)? (ms|s)"
    pattern = fr"predicted  {time} \({time} to {time}\) for these \d+ rounds, took {time}"
    assert re.fullmatch(pattern, lines[at]), lines[at]
    assert lines[at - 1].startswith("time  ") and lines[at + 1].startswith("kernel  "), lines


@apart.test
def nothing_is_said_of_short_runs():
    calibrate()
    found = json.loads(shoal("kmeans", "gen:uniform?rows=9&cols=2", "-k", 1, "--iterations", 1, "--json").stdout)
    if found["predicted"]["took"] < 0.05:  # a busy machine may need longer for it
        said = shoal("kmeans", "gen:uniform?rows=9&cols=2", "-k", 1, "--iterations", 1)
        took = history()[-1]["seconds"]
        assert took >= 0.05 or "predict" not in said.stdout, said.stdout


def remember(line, *seconds, date=None):
    """Earlier runs like the one of a line of the history, which took so long."""
    with open("state/shoal/history.jsonl", "a") as file:
        for each in seconds:
            file.write(json.dumps({**line, "seconds": each, "date": date or line["date"]}) + "\n")


@apart.test
def what_is_known_to_be_bad_is_not_printed():
    calibrate()
    shoal("kmeans", *WORDS, "-q")
    line, = history()
    os.remove("state/shoal/history.jsonl")
    remember(line, *[2.5 * line["predicted"]] * 4)
    told = json.loads(shoal("kmeans", *WORDS, "--json").stdout)["predicted"]
    assert told["reliable"] and told["judged_by"] == 4 and told["median_error"] > 0.5, told
    # Three runs that were off are enough to widen the interval.
    assert 2 * told["low"] < told["seconds"] < told["high"] / 2, told
    remember(line, *[2.5 * line["predicted"]] * 4)
    said = shoal("kmeans", *WORDS).stdout
    sentence = "no reliable prediction: the last 9 runs were off by 150% (median; worst: 150%); "
    assert sentence + "run `shoal calibrate --refit`" in said.splitlines() and "\npredicted" not in said, said
    told = json.loads(shoal("kmeans", *WORDS, "--json").stdout)["predicted"]
    assert not told["reliable"] and told["judged_by"] == 10 and history()[-1]["predicted"] > 0, told
    # A plan that relies on the calibration alone says so, too.
    calibrate(host=history()[-1]["host"], kernel=history()[-1]["kernel"])
    planned = json.loads(shoal("plan", "kmeans", DATA, "-k", 5, "--no-probe", "--json").stdout)
    assert "runs were off by 150% (median" in planned["caution"], planned
    assert 2 * planned["best"]["low"] < planned["best"]["seconds"], planned["best"]
    listed = shoal("calibrate", "--history").stdout
    assert "predictions are not reliable: run `shoal calibrate --refit`" in listed, listed
    # Another learner is not blamed for it.
    words = ["gen:uniform?rows=500&cols=7", "--hidden", 3, "--iterations", 5, "--json"]
    told = json.loads(shoal("autoencoder", *words).stdout)["predicted"]
    assert told["reliable"] and told["judged_by"] == 0, told


@apart.test
def figures_that_say_nothing_are_not_printed():
    calibrate()
    shoal("kmeans", *WORDS, "-q")
    line, = history()
    os.remove("state/shoal/history.jsonl")
    remember(line, *[0.001, 0.01, 0.03] * 9)  # too short to count
    told = json.loads(shoal("kmeans", *WORDS, "--json").stdout)["predicted"]
    assert told["reliable"] and told["judged_by"] == 0, told
    os.remove("state/shoal/history.jsonl")
    remember(line, *[140 * line["predicted"]] * 3)  # an interval of decades
    said = shoal("kmeans", *WORDS).stdout
    assert "no reliable prediction: the last 3 runs were off by a factor of 140" in said, said
    assert "\npredicted" not in said and not re.search(r"\d{4,}%", said), said


@apart.test
def a_refit_is_advised_once():
    calibrate()
    shoal("kmeans", *WORDS, "-q")
    line, = history()
    calibrate(host=line["host"], kernel=line["kernel"])
    os.remove("state/shoal/history.jsonl")
    remember(line, *[factor * line["predicted"] for factor in (0.1, 10)] * 6)  # which no constants fit
    assert "run `shoal calibrate --refit`" in shoal("kmeans", *WORDS).stdout
    assert "run `shoal calibrate --refit`" in shoal("calibrate", "--history").stdout
    shoal("calibrate", "--refit", clean=False)
    said = shoal("kmeans", *WORDS).stdout
    assert "no reliable prediction" in said and "even after a refit" in said and "--refit" not in said, said
    assert "--refit" not in shoal("calibrate", "--history").stdout


@apart.test
def without_a_calibration():
    done = shoal("kmeans", DATA, "-k", 3)
    assert "predicted" not in done.stdout, done.stdout
    assert json.loads(shoal("kmeans", DATA, "-k", 3, "--json").stdout)["predicted"] is None
    assert [line["predicted"] for line in history()] == [0, 0]
    calibrate(learners=("autoencoder",))  # of another learner alone
    assert json.loads(shoal("kmeans", DATA, "-k", 3, "--json").stdout)["predicted"] is None
    assert len(history()) == 3


@apart.test
def every_learner():
    calibrate()
    with open("labelled.csv", "w") as file:
        for i in range(400):
            file.write(f"{(i * 37 % 101) / 101},{(i * 53 % 97) / 97},{i * 7 % 4}\n")
    found = json.loads(shoal("logistic", "labelled.csv", "--model", "m.safetensors", "--json").stdout)
    line = history()[-1]
    assert line["learner"] == "logistic" and near(found["predicted"]["seconds"], of_rounds(line)), (found, line)
    assert line["phases"][1]["operations_per_row"] == 4 * 4 * 2 and line[
        "source"] == "file", line  # of the four classes that there were
    found = json.loads(
        shoal("autoencoder", "gen:uniform?rows=500&cols=7", "--hidden", 3, "--iterations", 5, "--json").stdout)
    line = history()[-1]
    assert line["learner"] == "autoencoder" and near(found["predicted"]["seconds"], of_rounds(line)), (found, line)
    assert line["phases"][1]["operations_per_row"] == 12 * 3 * 7, line
    found = json.loads(shoal("run", "--exec", "cat", "gen:uniform?rows=500&cols=7", "--collect", "--json").stdout)
    line = history()[-1]
    assert line["learner"] == "exec" and line["predicted"] == 0 and found["predicted"] is None, (found, line)
    assert [phase["name"] for phase in line["phases"]] == ["scan", "run"], line


@apart.test
def predict_is_no_run():
    calibrate()
    shoal("kmeans", DATA, "-k", 3, "--model", "m.safetensors")
    found = json.loads(shoal("predict", "m.safetensors", DATA, "--json").stdout)
    assert "predicted" not in found and len(history()) == 1, found


@apart.test
def workers_of_this_machine():
    calibrate()
    found = json.loads(shoal("kmeans", DATA, "-k", 3, "--workers", "local:2", "--threads", 1, "--json").stdout)
    line, = history()
    assert line["store"] == "dir" and line["workers"] == 2 and line["machines"] == 1 and line["threads"] == 1, line
    assert line["requests"] == found["requests"] and line["source"] == "generated" and not line["partial"], line
    # A second a round besides, and the start of the workers.
    assert near(found["predicted"]["seconds"], 100 + of_rounds(line) + found["rounds"]), (found["predicted"], line)
    assert near(found["predicted"]["took"], line["seconds"]), (found["predicted"], line)
    assert line["seconds"] >= max(phase["seconds"] for phase in line["phases"]), line
    assert line["seconds"] < found["seconds"]["total"], (line, found)


@apart.test
def a_job_that_is_resumed():
    calibrate()
    job = shoal("kmeans", DATA, "-k", 3, "--store", "dir:st", "--detach", "--model", "m.safetensors",
                clean=False).stdout.strip()
    assert not history()
    found = json.loads(shoal("job", "resume", job, "--store", "dir:st", "--workers", "local:1", "--json").stdout)
    line, = history()
    assert line["partial"] and line["store"] == "dir" and line["workers"] == 1 and line["job"] == job, line
    assert near(found["predicted"]["seconds"], of_rounds(line)), (found["predicted"], line)
    assert near(found["predicted"]["took"],
                sum(phase["seconds"] for phase in line["phases"])), (found["predicted"], line)
    shoal("job", "resume", job, "--store", "dir:st", "--json")  # it is done: only its outputs are written again
    assert len(history()) == 1


@apart.test
def a_job_that_goes_on_by_itself():
    calibrate()
    job = shoal("kmeans", DATA, "-k", 3, "--workers", "local:1", "--detach").stdout.strip()
    shoal("job", "wait", job)
    for _ in range(200):  # whoever looks after it ends a little later
        if history():
            break
        subprocess.run(["sleep", "0.05"], check=True)
    line, = history()
    assert line["partial"] and line["predicted"] > 0, line


@apart.test
def a_damaged_calibration():
    plain = shoal("kmeans", DATA, "-k", 3, "--centres", "a.npy")
    for text in ("", "{", "[]", '{"version": 99}', '{"version": 1}', "\0" * 100, '{"version": 1, "paces": 7}'):
        calibrate()
        with open("config/shoal/calibration.json", "w") as file:
            file.write(text)
        done = shoal("kmeans", DATA, "-k", 3, "--centres", "b.npy", "--json", clean=False)
        assert json.loads(done.stdout)["predicted"] is None
        sentence, = done.stderr.splitlines()
        assert sentence.startswith("shoal: ") and "config/shoal/calibration.json" in sentence, sentence
        assert open("a.npy", "rb").read() == open("b.npy", "rb").read()
    os.remove("config/shoal/calibration.json")
    os.mkdir("config/shoal/calibration.json")
    done = shoal("kmeans", DATA, "-k", 3, clean=False)
    assert len(done.stderr.splitlines()) == 1 and "calibration.json" in done.stderr, done.stderr
    assert "predicted" not in plain.stdout


@apart.test
def a_history_that_can_not_be_written():
    calibrate()
    places = {"file": "a file where a folder should be", "pipe": "a pipe", "folder": "a folder"}
    for kind in places:
        state = os.path.abspath(f"odd-{kind}")
        os.makedirs(f"{state}/shoal")
        path = f"{state}/shoal/history.jsonl"
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            os.mkdir(path)
        else:
            os.rmdir(f"{state}/shoal")
            open(f"{state}/shoal", "w").close()
        done = shoal("kmeans", *WORDS, env={"XDG_STATE_HOME": state}, clean=False)
        sentence, = done.stderr.splitlines()
        assert sentence.startswith(f"shoal: {path}: "), sentence
        assert "\npredicted  " in done.stdout, done.stdout
        done = shoal("kmeans", *WORDS, env={"XDG_STATE_HOME": state, "SHOAL_HISTORY": "off"})
        assert "\npredicted  " in done.stdout, done.stdout


@apart.test
def it_can_be_turned_off():
    calibrate()
    found = json.loads(shoal("kmeans", DATA, "-k", 3, "--json", env={"SHOAL_HISTORY": "off"}).stdout)
    assert found["predicted"]["seconds"] > 0 and not os.path.exists("state"), found
    assert "SHOAL_HISTORY" in shoal("man").stdout


@apart.test
def where_the_files_are():
    here = os.getcwd()
    nowhere = {"XDG_STATE_HOME": None, "XDG_CONFIG_HOME": None}
    calibrate("home/.config/shoal/calibration.json")
    found = json.loads(shoal("kmeans", DATA, "-k", 3, "--json", env={**nowhere, "HOME": f"{here}/home"}).stdout)
    assert found["predicted"]["seconds"] > 0 and len(history("home/.local/state/shoal/history.jsonl")) == 1, found
    mode = os.stat("home/.local/state/shoal/history.jsonl").st_mode & 0o777
    assert mode == 0o600, oct(mode)
    found = json.loads(shoal("kmeans", DATA, "-k", 3, "--json",
                             env={**nowhere, "HOME": None}).stdout)  # no place, and no word about it
    assert found["predicted"] is None, found
    relative = {"XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config",
                "HOME": f"{here}/home"}  # which the specification has ignored
    shoal("kmeans", DATA, "-k", 3, env=relative)
    assert len(history("home/.local/state/shoal/history.jsonl")) == 2 and not os.path.exists("state")


@apart.test
def many_runs_at_once():
    calibrate()
    runs = [
        subprocess.Popen([SHOAL, "kmeans", DATA, "-k", str(2 + i), "-q"], stdin=subprocess.DEVNULL) for i in range(12)
    ]
    assert [run.wait() for run in runs] == [0] * 12
    lines = history()
    assert len(lines) == 12 and len({line["phases"][1]["expected_rounds"] for line in lines}) == 12, lines


apart.main(at_once=2)
