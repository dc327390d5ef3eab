#!/usr/bin/env python3
# Seconds: 45
"""shoal calibrate: what is measured is kept, and what was there stays; stores and folders are left clean; wrong input
is told in one sentence before anything is measured; the history is listed, and refitted from.

    test_calibrate.py PATH_TO_shoal [NAME...]

Nothing here asserts how fast anything is, only that figures are there, positive and used.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import apart
import azurite

sys.dont_write_bytecode = True
SHOAL = os.path.abspath(sys.argv[1])
SITE = ["get", "put", "wait", "read", "write", "connections", "account", "sync", "straggle", "error"]


def environment(**more):
    kept = {
        name: value
        for name, value in os.environ.items() if name not in ("XDG_CONFIG_HOME", "SHOAL_STORE", "SHOAL_HISTORY")
    }
    return {**kept, "HOME": os.getcwd(), "XDG_CONFIG_HOME": os.path.join(os.getcwd(), "config"), **more}


def shoal(*arguments, code=0, env=None):
    done = subprocess.run([SHOAL, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=300, env=env or environment())
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def calibrate(*arguments, **more):
    return shoal("calibrate", "--quiet", *arguments, **more)


def refuses(code, sentence, *arguments, env=None):
    done = calibrate(*arguments, code=code, env=env)
    assert done.stderr.split("\n")[0] == f"shoal: {sentence}", done.stderr
    assert not done.stdout, done.stdout


def kept(path="config/shoal/calibration.json"):
    with open(path) as file:
        return json.load(file)


def phases(calibration, learner):
    return {pace["phase"]: pace for pace in calibration["paces"] if pace["learner"] == learner}


def check_paces(calibration, learner, names):
    found = phases(calibration, learner)
    assert set(found) == names, (learner, found)
    for pace in found.values():
        assert all(pace[name] >= 0 for name in ("value", "operation", "round", "model_byte")), pace
        # On a busy machine the fit may lay all of a phase's work on its rows, or even on its rounds.
        parts = ("value", "operation", "row", "round", "model_byte")
        assert sum(pace.get(part, 0) for part in parts) > 0 and pace["rounds"] == 0, pace


def check_site(calibration, store):
    site, = [site for site in calibration["sites"] if site["store"] == store]
    assert all(site[name] > 0 for name in SITE), site
    return site


@apart.test
def everything_is_measured_and_kept():
    done = calibrate("--seconds", 1)
    calibration = kept()
    check_paces(calibration, "kmeans", {"scan", "seed", "run"})
    check_paces(calibration, "logistic", {"scan", "run"})
    check_paces(calibration, "autoencoder", {"scan", "run"})
    site = check_site(calibration, "dir")
    assert len(calibration["sites"]) == 1 and site["get_price"] == 0 and site["connections"] == 1
    assert calibration["threads"] >= 1 and 0 <= calibration["thread_loss"] <= 1
    for word in ("machine", "kmeans", "autoencoder", "store      dir",
                 f"wrote      {os.getcwd()}/config/shoal/calibration.json"):
        assert word in done.stdout, (word, done.stdout)
    left = [
        name for _, folders, files in os.walk("state") for name in folders + files
        if "calibrate" in name or name == "history.jsonl"
    ]
    assert not left, left


@apart.test
def a_busy_machine_is_noticed():
    spinners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * os.cpu_count())]
    try:
        done = shoal("calibrate", "--seconds", 1, "--learner", "bayes")
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
    calibration = kept()
    assert 0.3 < calibration["busy"] <= 1 and calibration["error"] > 0.2, calibration
    assert check_site(calibration, "dir")["error"] > 0.2, calibration
    assert "of the processor went to other programs; times are scaled and intervals are wider" in done.stderr, done
    assert "busy  " in done.stdout, done.stdout
    check_paces(calibration, "bayes", {"scan", "run"})
    del calibration["busy"]  # as older versions wrote it
    with open("config/shoal/calibration.json", "w") as file:
        json.dump(calibration, file)
    listed = json.loads(shoal("plan", "bayes", "--rows", 1000, "--cols", 5, "--classes", 2, "--json").stdout)
    assert listed["calibration"]["busy"] == 0, listed


@apart.test
def what_was_not_measured_stays():
    calibrate("--seconds", 1, "--learner", "bayes", "-o", "a.json")
    before = kept("a.json")
    old = {**before["sites"][0], "store": "az://acct/box"}
    before["sites"].append(old)
    before["paces"].append(
        {"learner": "logistic", "phase": "run", "value": 1, "operation": 2, "round": 3, "model_byte": 4, "rounds": 5})
    with open("a.json", "w") as file:
        json.dump(before, file)
    words = ["--seconds", 1, "--learner", "logistic", "-o", "a.json"]
    out = json.loads(calibrate(*words, "--store", "st", "--json").stdout)
    after = kept("a.json")
    assert out.pop("path") == "a.json" and out == after, (out, after)
    assert phases(after, "bayes") and phases(after, "bayes") == phases(before, "bayes")
    check_paces(after, "logistic", {"scan", "run"})
    assert after["sites"][1] == old and check_site(after, "dir") != check_site(before, "dir")
    assert os.path.isdir("st") and not shoal("store", "ls", "--recursive", "st").stdout
    assert "there are no jobs" in shoal("job", "list", "--store", "st").stdout
    after["host"] = "elsewhere"
    with open("a.json", "w") as file:
        json.dump(after, file)
    calibrate(*words)
    moved = kept("a.json")
    assert not phases(moved, "bayes") and [site["store"]
                                           for site in moved["sites"]] == ["az://acct/box", "dir"], moved


@apart.test
def a_damaged_file_is_not_overwritten():
    with open("a.json", "w") as file:
        file.write("{\"version\": 1,\n \"date\": }")
    refuses(1, "a.json: line 2: unexpected token near '}'; use --fresh to start anew", "-o", "a.json", "--seconds", 1)
    with open("a.json") as file:
        assert file.read().endswith("}")
    refuses(1, "a.json: line 2: unexpected token near '}'", "-o", "a.json", "--refit")
    calibrate("--seconds", 1, "--learner", "logistic", "-o", "a.json", "--fresh")
    calibration = kept("a.json")
    calibration["sites"][0]["put"] = -1
    with open("a.json", "w") as file:
        json.dump(calibration, file)
    refuses(1, "a.json: site 1 (dir) 'put' is not a number of at least 0; use --fresh to start anew", "-o", "a.json",
            "--seconds", 1)


@apart.test
def another_file_is_not_replaced():
    for text in ('{"name": "mine", "version": "1.0"}', "my notes", "1,2,3\n", "[1]", "x" * (2 << 20)):
        with open("mine.json", "w") as file:
            file.write(text)
        for words in ([], ["--fresh"]):
            refuses(1, "mine.json: this is not a calibration, so it is not replaced: name another file", "-o",
                    "mine.json", "--seconds", 1, *words)
        with open("mine.json") as file:
            assert file.read() == text


@apart.test
def wrong_input_is_told_before_anything_is_measured():
    can = "use one of kmeans, logistic, bayes, autoencoder"
    refuses(2, "--learner: unknown learner 'kmaens'; did you mean 'kmeans'?", "--learner", "kmaens")
    refuses(2, f"--learner: unknown learner 'sort'; {can}", "--learner", "kmeans", "--learner", "sort")
    refuses(2, "--store needs the URL of a store", "--store", "")
    refuses(2, "--store mem:x: separate processes can't meet in such a store", "--store", "mem:x")
    refuses(2, "--history and --refit cannot be combined", "--history", "--refit")
    refuses(2, "--history writes nothing: omit --out", "--history", "--out", "x.json")
    refuses(2, "--refit measures nothing: omit --learner", "--refit", "--learner", "kmeans")
    refuses(2, "--out needs a file", "--out", "")
    refuses(2, "--workers must be at least 1, not 0", "--workers", 0)
    os.mkdir("folder")
    refuses(1, "folder: cannot read: Is a directory", "-o", "folder")
    refuses(1, "folder: can't write: it is a folder", "-o", "folder", "--fresh")
    with open("file", "w"):
        pass
    refuses(1, "file/a.json: can't write: Not a directory", "-o", "file/a.json")
    without = {name: value for name, value in environment().items() if name not in ("HOME", "XDG_CONFIG_HOME")}
    refuses(2,
            "cannot store the calibration: neither XDG_CONFIG_HOME nor HOME names a folder; use --out FILE",
            env=without)
    done = calibrate("--seconds", 1, "--store", "az://acct/box", code=1,
                     env=environment(AZURE_STORAGE_KEY="a2V5", AZURE_STORAGE_BLOB_ENDPOINT="http://127.0.0.1:9/acct",
                                     AZURE_STORAGE_QUEUE_ENDPOINT="http://127.0.0.1:9/acct"))
    assert done.stderr.startswith("shoal: ") and not os.path.exists("config/shoal/calibration.json"), done.stderr


def stop_when(seen, seconds):
    """Sends a signal once a key of the store is as wanted, and looks at what is left."""
    process = subprocess.Popen([
        SHOAL, "calibrate", "--quiet", "--seconds", seconds, "--learner", "logistic", "--store", "st"
    ], env=environment(), stderr=subprocess.PIPE)

    def keys():
        """None while there is no store yet."""
        listed = subprocess.run([SHOAL, "store", "ls", "--recursive", "st"], capture_output=True, text=True,
                                stdin=subprocess.DEVNULL)
        return listed.stdout.split() if listed.returncode == 0 else None

    deadline = time.monotonic() + 300
    while not any(map(seen, keys() or [])) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 130 and said == b"shoal: stopped\n", (process.returncode, said)
    assert keys() == [] and not os.path.exists("config/shoal/calibration.json"), keys()


@apart.test
def a_signal_leaves_nothing():
    stop_when(lambda key: "bench" in key, "60")


@apart.test
def a_signal_during_a_job_leaves_nothing():
    stop_when(lambda key: key.startswith("jobs/calibrate-"), "8")
    left = [name for _, _, files in os.walk("state") for name in files if "calibrate" in name]
    assert not left, left


@apart.test
def history_tells_of_runs():
    assert calibrate("--history").stdout == "no runs yet\n"
    empty = json.loads(calibrate("--history", "--json").stdout)
    assert empty["runs"] == [] and empty["median_error"] is None, empty
    refuses(
        1,
        f"{os.getcwd()}/config/shoal/calibration.json: no calibration to refit: run `shoal calibrate` first",
        "--refit")
    calibrate("--seconds", 1, "--learner", "kmeans")
    refuses(1, f"{os.getcwd()}/state/shoal/history.jsonl: no runs to refit from yet", "--refit")
    for rows in (40000, 80000):
        shoal("kmeans", f"gen:uniform?rows={rows}&cols=32", "-k", 60, "--iterations", 40, "--tolerance", 0, "--quiet")
    listed = json.loads(calibrate("--history", "--json").stdout)
    assert [run["rows"] for run in listed["runs"]] == [40000, 80000] and listed["damaged"] == 0, listed
    for run in listed["runs"]:
        assert all(isinstance(run[name], int) for name in ("rows", "columns", "workers", "threads")), run
        assert run["learner"] == "kmeans" and run["workers"] == 1 and run["store"] is None, run
        assert 0 < run["low"] < run["predicted"] < run["high"], run
        assert abs(run["ratio"] * run["predicted"] / run["actual"] - 1) < 1e-9, run
    errors = sorted(abs(run["ratio"] - 1) for run in listed["runs"])
    assert listed["predicted"] == 2 and listed["worst_error"] == errors[1] and listed["median_error"] == errors[
        0], listed
    with open("state/shoal/history.jsonl", "a") as file:
        file.write("{damaged\n")
    text = calibrate("--history").stdout
    assert "40,000 x 32" in text and "2 of 2 runs predicted: median error" in text, text
    assert f"1 line of {os.getcwd()}/state/shoal/history.jsonl could not be read and was left out" in text, text
    before = kept()
    calibrate("--refit")
    after = kept()
    assert phases(after, "kmeans") != phases(before, "kmeans") and after["sites"] == before["sites"], (before, after)


@apart.test
def a_store_elsewhere_is_measured_and_left_clean():
    if azurite.PROGRAM is None:
        raise apart.Skipped("azurite is not installed: ./dev deps test")
    with tempfile.TemporaryDirectory() as folder, azurite.Server(folder, "plain") as server:
        server.wait()
        env, url = environment(**server.variables()), "az://devstoreaccount1/box"
        done = calibrate("--seconds", 1, "--learner", "logistic", "--store", url, env=env, code=1)
        assert "box" in done.stderr and not os.path.exists("config/shoal/calibration.json"), done.stderr
        with open("hello", "w") as file:
            file.write("hello")
        shoal("store", "put", "--create", "hello", f"{url}/hello", "--quiet", env=env)
        calibrate("--seconds", 2, "--learner", "logistic", "--store", url, "--store", "st", env=env)
        site = check_site(kept(), url)
        check_site(kept(), "dir")
        assert site["get_price"] == 0.0044e-4 and site["put_price"] == 0.055e-4 and site["connections"] == 8, site
        assert site["requests_per_second"] > 0 and site["requests"] > 0, site
        names = shoal("store", "ls", "--recursive", url, env=env).stdout.split()
        assert names == ["hello"], names
        assert "there are no jobs" in shoal("job", "list", "--store", url, env=env).stdout


apart.main(at_once=2)
