#!/usr/bin/env python3
# Labels: quick asan
"""shoal sweep: trials of commands and learners are run, kept, shown and resumed after kill -9 of anything; in strict
order all workers give the same log; wrong input and trials that misbehave are told in one sentence.

    test_sweep.py PATH_TO_shoal [NAME...]
"""
import csv
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

import apart
import azurite

sys.dont_write_bytecode = True
SHOAL = os.path.abspath(sys.argv[1])
FLOWERS = os.path.abspath("examples/flowers.csv")

# A trial of so many steps that goes on from the step in its folder, and keeps a list of all steps that anybody did.
TRIAL = """import os, sys, time
rate, folder, steps = float(sys.argv[1]), os.environ["SHOAL_FOLDER"], int(os.environ["SHOAL_STEPS"])
try:
    step = int(open(folder + "/step").read())
except FileNotFoundError:
    step = 0
while step < steps:
    step += 1
    time.sleep(float(sys.argv[2]))
    with open(os.environ.get("STEPS", "steps.txt"), "a") as file:
        file.write("%s %d\\n" % (os.environ["SHOAL_TRIAL"], step))
    print('{"step": %d, "loss": %.17g}' % (step, (rate - 0.3) ** 2 + 1 / step), flush=True)
    with open(folder + "/new", "w") as file:
        file.write(str(step))
    os.rename(folder + "/new", folder + "/step")
"""
RATE = ["--vary", "rate=0.0..1"]


def sweep(*words, expect=0):
    done = subprocess.run([SHOAL, "sweep", *map(str, words), "--store", "store"], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == expect, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout if expect == 0 else done.stderr


def trials_of(name):
    return json.loads(sweep("show", name, "--json"))["trials"]


def log_of(name):
    """The texts of the entries, without the frames around them."""
    keys = subprocess.run([SHOAL, "store", "ls", "-r", f"store/sweeps/{name}/log/"], capture_output=True, text=True,
                          check=True).stdout.split()
    return [
        subprocess.run([SHOAL, "store", "cat", f"store/sweeps/{name}/log/{os.path.basename(key)}"],
                       capture_output=True, check=True).stdout[48:] for key in keys
    ]


@apart.test
def command():
    out = sweep(*RATE, "--vary", "kind=a b,c", "--run", "echo {kind}; echo '{\"loss\": '{rate}'}'", "--trials", 12)
    trials = trials_of("sweep")
    assert len(trials) == 12 and all(t["state"] == "done" and t["value"] == t["parameters"]["rate"] for t in trials)
    best = min(trials, key=lambda t: t["value"])
    assert f"best       trial {best['trial']}: loss " in out, out
    assert sweep("best", "sweep").split("\n")[0] == "rate=%.6g" % best["value"]
    assert sweep("list") == "sweep\n"
    rows = list(csv.DictReader(sweep("export", "sweep").splitlines()))
    assert [float(r["value"]) for r in rows] == [t["value"] for t in trials]
    assert {r["kind"] for r in rows} == {"a b", "c"}
    sweep("export", "sweep", "trials.json")
    assert json.load(open("trials.json"))["trials"] == trials
    assert sweep("watch", "sweep").startswith("12 trials, 12 results, 0 running, best loss ")
    top = sweep("table", "sweep", "--top", 3).splitlines()
    assert len(top) == 4 and "*" in top[1]
    assert "12 results: the store has each" in sweep("check", "sweep")
    assert os.path.isdir("sweep.trials/11")


@apart.test
def conditions_and_grid():
    pathlib.Path("space.json").write_text('{"a": ["u", "v"], "n": {"low": 1, "high": 3, "type": "integer", "when": '
                                          '{"a": "v"}}, "c": 7}')
    sweep("space.json", "--run", "echo {a}{n} >> seen.txt; echo '{\"loss\": {c}}'", "--sampler", "grid", "--trials", 99)
    assert sorted(open("seen.txt").read().split()) == ["u", "v1", "v2", "v3"]
    assert [t["parameters"].get("n") for t in trials_of("space")] == [None, 1, 2, 3]


@apart.test
def early_stopping():
    pathlib.Path("trial.py").write_text(TRIAL)
    command = f"{sys.executable} trial.py {{rate}} 0"
    for rule in "asha", "hyperband", "median":
        if os.path.exists("steps.txt"):
            os.remove("steps.txt")
        sweep(*RATE, "--run", command, "--steps", 9, "--stop", rule, "--trials", 20, "--name", rule)
        trials = trials_of(rule)
        done = [t for t in trials if t["state"] == "done"]
        paused = [t for t in trials if t["state"] == "paused"]
        assert len(trials) == 20 and done and paused and all(t["step"] == 9 for t in done)
        assert all(t["step"] < 9 for t in paused)
        assert "each decision follows" in sweep("check", rule)


def curve_of(name, trial):
    """Every report of a trial that its results have, as they came."""
    curve = []
    for step in 1, 3, 9:  # the rungs
        key = f"store/sweeps/{name}/trial/{trial}/step/{step}"
        text = subprocess.run([SHOAL, "store", "cat", key], capture_output=True).stdout
        curve += json.loads(text[48:])["curve"] if text else []
    return curve


@apart.test
def learner():
    net = ["--target", "species", "--net", "dense 16 relu; dense 3 softmax", "--epochs", "9", "--validation", "0.2"]
    # One at a time: a trial that goes on was ended before, and has a checkpoint well beyond what is known of it.
    sweep("--vary", "rate=1e-3..1:log", "--vary", "batch=8,16,32", "--learner", f"train {FLOWERS} {shlex.join(net)} "
          "--model $SHOAL_FOLDER/model.safetensors", "--objective", "validation_loss", "--steps", 9, "--stop", "asha",
          "--trials", 9, "--workers", 1, "--name", "train")
    trials = trials_of("train")
    best = min((t for t in trials if t["state"] == "done"), key=lambda t: t["value"])
    assert os.path.exists(f"train.trials/{best['trial']}/model.safetensors") and best["step"] == 9
    # What the learner says by itself, with these values, is what its trials say, whether they were paused or not.
    for trial in [best, *(t for t in trials if t["step"] < 9)][:4]:
        own = subprocess.run([SHOAL, "train", FLOWERS, *net, "--rate", str(trial["parameters"]["rate"]), "--batch",
                              str(trial["parameters"]["batch"]), "--json"], capture_output=True, text=True, check=True)
        values = json.loads(own.stdout)["epoch_validation_loss"][:trial["step"]]
        assert curve_of("train", trial["trial"]) == [[i + 1, value] for i, value in enumerate(values)], trial
        assert min(values) == trial["value"]
    sweep("--vary", "clusters=2..5", "--learner", f"kmeans {FLOWERS} --drop-column species", "--objective",
          "objective", "--sampler", "grid", "--name", "kmeans")
    assert [t["parameters"]["clusters"] for t in trials_of("kmeans")] == [2, 3, 4, 5]


def steps_done():
    steps = [tuple(map(int, line.split())) for line in open("steps.txt")]
    return len(steps), len(set(steps))


@apart.test
def kill():
    """Whatever is killed, each result is there once, and at most a step of each running trial is done again."""
    pathlib.Path("trial.py").write_text(TRIAL)
    words = [SHOAL, "sweep", *RATE, "--run", f"exec {sys.executable} trial.py {{rate}} 0.01", "--steps", "9", "--stop",
             "asha", "--trials", "16", "--workers", "3", "--resume", "--name", "killed", "--store", "store"]
    kills = 0
    for number in range(7):
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(0.25 + 0.05 * number)
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
    assert subprocess.run(words, capture_output=True, timeout=60).returncode == 0
    all_steps, different = steps_done()
    # A trial that is paused may be stopped just before it keeps the step that it has reported.
    assert kills > 0 and all_steps - different <= 3 * kills + 16, (all_steps, different, kills)
    trials = trials_of("killed")
    assert len(trials) == 16 and all(t["state"] in ("done", "paused") for t in trials)
    for trial in trials:
        rate = trial["parameters"]["rate"]
        assert abs(trial["value"] - ((rate - 0.3)**2 + 1 / trial["step"])) < 1e-12
    assert "each decision follows" in sweep("check", "killed")


@apart.test
def several_processes():
    """Three processes share one sweep; one of them is killed."""
    pathlib.Path("trial.py").write_text(TRIAL)
    words = [SHOAL, "sweep", *RATE, "--run", f"exec {sys.executable} trial.py {{rate}} 0.01", "--steps", "4",
             "--trials", "24", "--workers", "1", "--resume", "--name", "shared", "--store", "store"]
    crew = [subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(3)]
    until = time.monotonic() + 20
    while time.monotonic() < until and not (os.path.exists("steps.txt") and steps_done()[0] > 12):
        time.sleep(0.01)
    crew[0].kill()
    crew[0].communicate()
    for process in crew[1:]:
        error = process.communicate(timeout=60)[1]
        assert process.returncode == 0, error
    all_steps, different = steps_done()
    assert different == 24 * 4 and all_steps <= different + 1, (all_steps, different)
    assert len(trials_of("shared")) == 24
    assert "24 results" in sweep("check", "shared")


# Stands for ssh: "hosts" of this machine that see other processes, have a home of their own and not this folder.
HOSTS = """#!/bin/sh
while [ $# -gt 0 ]; do case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac; done
HOME=%s/$1
export HOME TMPDIR="$HOME"
shift
mkdir -p "$HOME" && cd "$HOME" && exec unshare --pid --fork --mount-proc --kill-child sh -c "$*"
"""


def children_of(process):
    return [int(n) for n in open(f"/proc/{process}/task/{process}/children").read().split()]


@apart.test
def workers():
    """Trials run on the workers of jobs, here and elsewhere; one that dies is replaced, and who takes up a trial on
    another machine goes on from what the first has kept."""
    pathlib.Path("trial.py").write_text(TRIAL)
    os.environ["STEPS"] = os.path.abspath("steps.txt")
    pathlib.Path("ssh").write_text(HOSTS % os.path.abspath("hosts"))
    os.chmod("ssh", 0o755)
    far = ["--workers", "ssh:corn10,corn11", "--ssh", os.path.abspath("ssh"), "--send", "trial.py"]
    apart_too = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True)
    for name, where in {"near": ["--workers", "local:2"], "far": far}.items():
        if name == "far" and apart_too.returncode != 0:
            continue
        if os.path.exists("steps.txt"):
            os.remove("steps.txt")
        words = [*RATE, "--run", f"exec {sys.executable} trial.py {{rate}} 0.01; : {{rate}}", "--steps", 9, "--stop",
                 "asha", "--trials", 12, "--name", name, *where]
        process = subprocess.Popen([SHOAL, "sweep", *map(str, words), "--store", "store"], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        until = time.monotonic() + 60
        while time.monotonic() < until and not (os.path.exists("steps.txt") and steps_done()[0] > 6):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        if name == "near":
            os.kill(children_of(process.pid)[0], signal.SIGKILL)
        out = process.communicate(timeout=90)[0]
        assert process.returncode == 0, out
        trials = trials_of(name)
        assert len(trials) == 12 and all(t["state"] in ("done", "paused") for t in trials), trials
        all_steps, different = steps_done()
        assert different >= sum(t["step"] for t in trials), (different, trials)
        assert all_steps - different <= 12, (name, all_steps, different)
        best = min((t for t in trials if t["value"] is not None), key=lambda t: t["value"])["trial"]
        assert os.path.exists(f"{name}.trials/{best}/step")
        assert "each decision follows" in sweep("check", name)
    assert "is for workers elsewhere" in sweep(*RATE, "--run", "echo {rate}", "--send", "trial.py", expect=2)
    assert "is not one of" in sweep(*RATE, "--run", "echo {rate}", "--workers", "moon:3", "--name", "x", expect=2)
    assert "there is no such file" in sweep(*RATE, "--run", "echo {rate}", *far[:4], "--send", "gone", "--name", "y",
                                            expect=1)


@apart.test
def strict_order():
    """The same log, byte for byte, on 1, 4 and 16 workers, also when they are killed."""
    pathlib.Path("trial.py").write_text(TRIAL)
    logs = []
    for workers in 1, 4, 16:
        name = f"strict{workers}"
        words = [*RATE, "--run", f"exec {sys.executable} trial.py {{rate}} 0.003", "--steps", 3, "--stop", "asha",
                 "--trials", 20, "--order", "strict", "--ahead", 6, "--workers", workers, "--name", name, "--resume"]
        process = subprocess.Popen([SHOAL, "sweep", *map(str, words), "--store", "store"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        sweep(*words)
        assert "each decision follows" in sweep("check", name)
        logs.append(log_of(name))
    assert len(logs[0]) > 20 and logs[0] == logs[1] == logs[2]


@apart.test
def azure():
    """Two processes share a sweep in a store of Azure, and the first of them is killed."""
    if not azurite.PROGRAM:
        raise apart.Skipped("Azurite is not installed: ./dev deps test")
    pathlib.Path("trial.py").write_text(TRIAL)
    with azurite.Server(os.getcwd(), "azurite") as server:
        server.wait()
        environment = {**os.environ, **server.variables()}
        store = f"az://{azurite.ACCOUNT}/sweeps"
        subprocess.run([SHOAL, "store", "put", "--create", "--quiet", "trial.py", store + "/trial.py"],
                       env=environment, check=True)
        words = [SHOAL, "sweep", *RATE, "--run", f"exec {sys.executable} trial.py {{rate}} 0.01", "--steps", "3",
                 "--trials", "12", "--workers", "2", "--resume", "--name", "far", "--store", store]
        first = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while time.monotonic() < until and not (os.path.exists("steps.txt") and steps_done()[0] > 6):
            time.sleep(0.01)
        second = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        first.kill()
        first.wait()
        out = second.communicate(timeout=90)[0]
        assert second.returncode == 0, out
        all_steps, different = steps_done()
        assert different == 12 * 3 and all_steps <= different + 2, (all_steps, different)
        check = subprocess.run([SHOAL, "sweep", "check", "far", "--store", store], env=environment,
                               capture_output=True, text=True, timeout=60)
        assert "12 results" in check.stdout, check.stderr


@apart.test
def repeats():
    """What counts is the mean of several commands, step by step, also when the trial is taken up again."""
    run = ("for i in 1 2 3; do echo '{\"step\": '$i', \"loss\": '{x}$SHOAL_REPEAT.$i'}'; done; : {x}; "
           "test -d $SHOAL_FOLDER")
    sweep("--vary", "x=1,2,3,4", "--run", run, "--repeat", 3, "--steps", 3, "--stop", "asha", "--eta", 2, "--sampler",
          "grid", "--name", "mean")
    trials = trials_of("mean")
    assert any(t["state"] == "done" for t in trials) and any(t["state"] == "paused" for t in trials), trials
    for trial in trials:
        assert abs(trial["value"] - (10 * trial["parameters"]["x"] + 1 + 0.1)) < 1e-9, trials
    assert os.path.isdir("mean.trials/0/2")
    bad = "echo '{\"loss\": '{x}'}'; test $SHOAL_REPEAT != 1 || exit 7"
    assert "repeat 1: exit code 7" in sweep("--vary", "x=1,2", "--run", bad, "--repeat", 2, "--trials", 1, "--name",
                                            "bad", expect=1)
    sweep("--vary", "clusters=2,3", "--learner", f"kmeans {FLOWERS} --drop-column species", "--objective", "objective",
          "--repeat", 3, "--sampler", "grid", "--name", "kmeans")
    assert all(t["state"] == "done" for t in trials_of("kmeans"))
    assert "excludes --repeat" in sweep(*RATE, "--run", "echo {rate}", "--objective", "seconds", "--repeat", 2,
                                        expect=2)


@apart.test
def limits():
    words = [*RATE, "--run", "echo '{\"loss\": '{rate}'}'", "--name", "limits", "--sampler", "sobol"]
    sweep(*words, "--trials", 4)
    assert "there is a sweep 'limits' already" in sweep(*words, "--trials", 4, expect=2)
    sweep(*words, "--trials", 6, "--resume")
    assert len(trials_of("limits")) == 6
    sweep(*words, "--trials", 500, "--reach", 0.01, "--resume")
    trials = trials_of("limits")
    assert 6 < len(trials) < 500 and min(t["value"] for t in trials if t["value"] is not None) <= 0.01
    assert "sweep 'limits' has seed 1, and not 3" in sweep(*words, "--resume", "--seed", 3, expect=2)
    assert "sweep 'limits' has rate " in sweep("--vary", "rate=0.0..2", *words[2:], "--resume", expect=2)
    # The time is over, and then it is not.
    slow = [*RATE, "--run", "sleep 0.1; echo '{\"loss\": '{rate}'}'", "--name", "slow", "--workers", 1]
    assert "stopped    the time is over" in sweep(*slow, "--time", "0.5s")
    before = len(trials_of("slow"))
    sweep(*slow, "--trials", before + 2, "--resume")
    assert len(trials_of("slow")) == before + 2


@apart.test
def taking_over():
    """What another sweep found at points that the new space has counts, and is not tried again."""
    echo = ["--run", "test {a} != 5 && echo '{\"loss\": '{a}'}'", "--sampler", "grid"]
    sweep("--vary", "a=1,2,3,5", "--vary", "c=7", *echo[:1], echo[1] + " # {c}", *echo[2:], "--name", "old")
    out = sweep("--vary", "a=1..6", *echo, "--from", "old", "--name", "new", "--trials", 4)
    assert "taken over 4 of these from sweep 'old'" in out, out
    trials = trials_of("new")
    assert [t["parameters"]["a"] for t in trials] == [1, 2, 3, 5, 4, 6]
    assert [t["state"] for t in trials] == ["done", "done", "done", "failed", "done", "done"]
    assert "2 results" in sweep("check", "new")
    sweep("--vary", "a=1..6", *echo, "--from", "old", "--name", "new", "--trials", 4, "--resume")
    assert len(trials_of("new")) == 6
    assert "sweep 'new' has from \"old\"" in sweep("--vary", "a=1..6", *echo, "--name", "new", "--resume", expect=2)
    assert "--from old: its objective is loss:min, and not gain:max" in sweep(
        "--vary", "a=1..6", *echo, "--from", "old", "--name", "x", "--objective", "gain:max", expect=2)
    assert "there is no sweep 'none'" in sweep("--vary", "a=1..6", *echo, "--from", "none", "--name", "y", expect=1)


@apart.test
def measures():
    """Time and money count, further keys are kept, and a budget is held."""
    run = ["--run", "echo '{\"loss\": '{x}', \"size\": 9}'; sleep 0.0{x}", "--vary", "x=1,5", "--sampler", "grid"]
    sweep(*run, "--objective", "seconds,size:max", "--name", "time")
    values = [t["value"] for t in trials_of("time")]
    assert 0.01 < values[0] < 60 and 0.05 < values[1] < 60, values
    sweep(*run, "--objective", "cost,loss", "--price", "3600USD", "--name", "cost")
    assert 0.05 < trials_of("cost")[1]["value"] < 60
    out = sweep("--vary", "x=1..999", "--run", "sleep 0.05; echo '{\"loss\": '{x}'}'", "--trials", 999, "--workers", 1,
                "--price", "360USD", "--budget", "0.6", "--name", "budget")
    spent = float(out.split("spent      $")[1].split()[0])
    assert "stopped    the budget is spent" in out and 0.05 < spent <= 0.6, out
    assert "spent      $" in sweep("show", "budget")
    assert "--budget needs --price" in sweep(*run, "--budget", "5USD", expect=2)
    assert "--objective cost needs --price" in sweep(*run, "--objective", "cost", expect=2)
    assert "excludes --stop asha" in sweep(*run, "--objective", "seconds", "--stop", "asha", "--steps", 3, expect=2)
    assert "excludes --order strict" in sweep(*run, "--objective", "seconds", "--order", "strict", expect=2)
    assert "takes 1 to 4 keys" in sweep(*run, "--objective", "loss,a:min,b:min,c:min,d:min", expect=2)


@apart.test
def interrupt():
    process = subprocess.Popen([SHOAL, "sweep", *RATE, "--run", "sleep 0.2; echo '{\"loss\": '{rate}'}'", "--store",
                                "store", "--trials", "100"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while subprocess.run([SHOAL, "sweep", "best", "sweep", "--store", "store"], capture_output=True).returncode:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=30)
    assert process.returncode == 130 and "--resume goes on" in error and "best       trial" in out, (out, error)


def failure_of(command, *words, name):
    return sweep("--vary", "x=2..8", "--run", command, "--trials", 1, "--name", name, *words, expect=1)


@apart.test
def failing_trials():
    """One failed trial each, with a reason, and nothing is left running."""
    assert "exit code 3: bad luck" in failure_of("echo bad luck >&2; : {x}; exit 3", name="exit")
    assert "signal 9" in failure_of("kill -9 $$ {x}", name="signal")
    assert 'ended without reporting "loss"' in failure_of("echo nothing; : {x}", name="silent")
    assert "what is not a number" in failure_of("echo '{\"loss\": NaN}'; sleep 100.5 {x}", name="nan")
    assert "what is not a number" in failure_of("echo '{\"loss\": \"x\"}'; sleep 100.5 {x}", name="text")
    assert 'without a "step", which --steps counts' in failure_of("echo '{\"loss\": '{x}'}'", "--steps", 3, name="step")
    assert "no report for 0.3 seconds" in failure_of("sleep 100.5; : {x}", "--timeout", "0.3s", name="hangs")
    sweep("--vary", "x=2..8", "--run", "(sleep 100.5 &) ; head -c 30000000 /dev/zero | tr '\\0' y; echo; echo "
          "'{\"loss\": '{x}'}'", "--trials", 2, "--name", "loud")
    assert len(trials_of("loud")) == 2
    assert subprocess.run(["pgrep", "-f", "^sleep 100[.]5"]).returncode == 1
    # Some fail, and the sweep goes on.
    sweep("--vary", "x=1,2,3,4", "--run", "test {x} -gt 2 && echo '{\"loss\": '{x}'}'", "--sampler", "grid", "--name",
          "some")
    assert [t["state"] for t in trials_of("some")] == ["failed", "failed", "done", "done"]
    assert "failed     trial 1: exit code 1" in sweep("show", "some")


@apart.test
def pictures():
    pathlib.Path("trial.py").write_text(TRIAL)
    sweep(*RATE, "--vary", "size=1,2,4", "--run", f"SIZE={{size}} {sys.executable} trial.py {{rate}} 0", "--steps", 9,
          "--stop", "asha", "--trials", 12)
    shown = {"progress": ["best so far", "trial", "loss"], "time": ["best so far", "time", "loss"],
             "parallel": ["rate", "size", "4"], "contour": ["rate", "size", "darker"],
             "curves": ["learning curves", "step"]}
    for kind, words in shown.items():
        sweep("plot", "sweep", kind + ".svg", "--kind", kind)
        sweep("plot", "sweep", kind + ".png", "--kind", kind)
        text = open(kind + ".svg").read()
        assert all(word in text for word in words), (kind, text[:400])
        assert open(kind + ".png", "rb").read(4) == b"\x89PNG"
    sweep("plot", "sweep", "money.svg", "--kind", "money", "--price", "3USD")
    assert "cost" in open("money.svg").read()
    assert "--kind money needs --price" in sweep("plot", "sweep", "x.svg", "--kind", "money", expect=2)
    pathlib.Path("prices.csv").write_text("cloud,region,machine,vcpus,memory_gib,usd_per_hour\na,b,small,2,4,0.1\n"
                                          "a,b,large,8,16,0.4\na,b,dear,2,4,0.9\n")
    front = sweep("plot", "sweep", "map.svg", "--kind", "map", "--prices", "prices.csv", "--work", 100000,
                  "--json")
    front = [json.loads(line) for line in front.splitlines()]
    assert front and all(f["machine"] != "a:b/dear" for f in front), front
    for f in front:
        assert not any(g["seconds"] <= f["seconds"] and g["dollars"] < f["dollars"] for g in front), front
    assert "Pareto" in open("map.svg").read()
    assert 'no parameter "x"' in sweep("plot", "sweep", "x.svg", "--kind", "contour", "--x", "x", expect=2)
    assert "must end in .svg or .png" in sweep("plot", "sweep", "x.pdf", expect=2)
    sweep("--vary", "x=1,2", "--run", "exit {x}", "--name", "none", expect=1)
    assert "nothing to draw" in sweep("plot", "none", "x.svg", expect=1) and not os.path.exists("x.svg")


@apart.test
def wrong_input():
    run = ["--run", "echo {rate}"]
    assert "sweep needs a SPACE.json or --vary" in sweep(*run, expect=2)
    assert "sweep needs --run COMMAND or --learner" in sweep(*RATE, expect=2)
    assert "exclude each other" in sweep(*RATE, *run, "--learner", "train x", expect=2)
    assert "{raet} is not a parameter of --vary; did you mean {rate}?" in sweep(*RATE, "--run", "echo {raet}", expect=2)
    assert "does not use {rate}" in sweep(*RATE, "--run", "echo", expect=2)
    assert "first word is no learner" in sweep(*RATE, "--learner", "trian x", expect=2)
    assert "logistic has no option --rate" in sweep(*RATE, "--learner", "logistic x", expect=2)
    assert "say f1:min or f1:max" in sweep(*RATE, *run, "--objective", "f1", expect=2)
    assert "--stop asha compares trials on their way: it needs --steps" in sweep(*RATE, *run, "--stop", "asha",
                                                                                         expect=2)
    assert 'a grid needs a number of values for "rate"' in sweep(*RATE, *run, "--sampler", "grid", expect=2)
    assert "--reach much: is not a number" in sweep(*RATE, *run, "--reach", "much", expect=2)
    assert "is no name of a sweep" in sweep(*RATE, *run, "--name", "a/b", expect=2)
    assert "'banana' is not one of N, local:N" in sweep(*RATE, *run, "--workers", "banana", expect=2)
    assert "--send nosuch: there is no such file" in sweep(*RATE, *run, "--workers", "local:1", "--send", "nosuch",
                                                           expect=1)
    assert "nowhere.json: can't read" in sweep("nowhere.json", *run, expect=1)
    pathlib.Path("bad.json").write_text('{"rate": {"low": 0.0, "high": 1.0, "scale": "log"}}')
    assert 'bad.json: "rate": "scale": "log" needs "low" above 0' in sweep("bad.json", *run, expect=1)
    assert not os.path.exists("bad.trials") and not os.path.exists("sweep.trials")
    sweep("--vary", "rate=1,2", "--run", "echo '{\"loss\": '{rate}'}'", "--name", "there")
    assert "there is no sweep 'nothing'" in sweep("show", "nothing", expect=1)
    assert "must end in .csv or .json" in sweep("export", "there", "x.txt", expect=2)


apart.main(at_once=4)
