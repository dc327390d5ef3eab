#!/usr/bin/python3
"""A sweep while its processes are killed by SIGKILL: whether a result is lost or doubled, and what is done again.

    ./dev bench sweep_chaos [--kills 100] [--stores folder,azure,s3]

Three processes share one sweep, and two of jobs' workers run trials of it, too.  Every few tenths of a second one of
them is killed and started again.  A trial has nine steps, keeps each, and notes each that it does.  At the end each
result must be in the log and in the store once, each decision must follow, and a kill may cost what the trials that
died with it did since their last checkpoint: a step each.  The stores are a folder, Azurite, and Ceph's radosgw.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "system")]
import azurite  # noqa: E402
import radosgw  # noqa: E402

PROCESSES, WORKERS, EVERY = 3, 2, 0.3
TRIAL = """import os, sys, time
folder, steps = os.environ["SHOAL_FOLDER"], int(os.environ["SHOAL_STEPS"])
rate = float(sys.argv[1])
try:
    step = int(open(folder + "/step").read())
except FileNotFoundError:
    step = 0
while step < steps:
    step += 1
    time.sleep(0.05)
    with open(sys.argv[2], "a") as file:
        file.write("%s %d\\n" % (os.environ["SHOAL_TRIAL"], step))
    print('{"step": %d, "loss": %.17g}' % (step, (rate - 0.3) ** 2 + 1 / step), flush=True)
    with open(folder + "/new", "w") as file:
        file.write(str(step))
    os.rename(folder + "/new", folder + "/step")
"""


@contextlib.contextmanager
def open_store(kind, shoal, folder):
    """Its address and what is needed to reach it; None where there is no such server."""
    if kind == "folder":
        yield str(folder / "store"), {}
    elif kind == "azure" and azurite.PROGRAM:
        with azurite.Server(str(folder), "azurite") as server:
            server.wait()
            yield f"az://{azurite.ACCOUNT}/sweeps", server.variables()
    elif kind == "s3" and not radosgw.missing():
        (folder / "ceph").mkdir()
        with radosgw.Server(str(folder / "ceph")) as server:
            yield "s3://sweeps", {"AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL": server.address,
                                  "AWS_ACCESS_KEY_ID": server.key, "AWS_SECRET_ACCESS_KEY": server.secret}
    else:
        yield None, {}


def children_of(process):
    try:
        return [int(n) for n in open(f"/proc/{process}/task/{process}/children").read().split()]
    except OSError:
        return []


def workers_of(process):
    """Of one that started workers: itself and these."""
    return [process, *(n for n in children_of(process) if b"worker" in pathlib.Path(f"/proc/{n}/cmdline").read_bytes())]


def keep_killing(start, crew, kills, over):
    """Kills one after another, and starts again what is gone; how many were."""
    killed = 0
    while killed < kills and not over():
        time.sleep(EVERY * random.random() * 2)
        which = random.randrange(len(crew))
        if crew[which].poll() is not None:
            crew[which] = start(which)
            continue
        victims = workers_of(crew[which].pid) if which == PROCESSES else [crew[which].pid]
        with contextlib.suppress(ProcessLookupError):
            os.kill(random.choice(victims), signal.SIGKILL)
            killed += 1
        if crew[which].poll() is not None:
            crew[which] = start(which)
    return killed


def run_chaos(kind, shoal, kills, folder):
    with open_store(kind, shoal, folder) as (store, variables):
        if store is None:
            return None
        environment = {**os.environ, **variables}
        (folder / "trial.py").write_text(TRIAL)
        if kind != "folder":
            subprocess.run([shoal, "store", "put", "--create", "--quiet", folder / "trial.py", store + "/first"],
                           env=environment, check=True)
        words = [shoal, "sweep", "--vary", "rate=0.0..1", "--run", f"exec /usr/bin/python3 {folder}/trial.py {{rate}} "
                 f"{folder}/steps.txt", "--steps", "9", "--stop", "asha", "--name", "chaos", "--resume", "--store",
                 store, "--folder", f"{folder}/trials"]

        def start(which, trials=100000):
            how = ["--workers", f"local:{WORKERS}"] if which == PROCESSES else ["--workers", "1"]
            return subprocess.Popen([*words, "--trials", str(trials), *how], env=environment, cwd=folder,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        crew = [start(i) for i in range(PROCESSES + 1)]
        began = time.monotonic()
        killed = keep_killing(start, crew, kills, lambda: time.monotonic() - began > 600)
        for process in crew:
            process.kill()
            process.wait()
        show = [shoal, "sweep", "show", "chaos", "--json", "--store", store]
        shown = json.loads(subprocess.run(show, env=environment, check=True, capture_output=True).stdout)
        last = start(0, len(shown["trials"]) + 10)
        last.wait(300)
        check = subprocess.run([shoal, "sweep", "check", "chaos", "--store", store], env=environment,
                               capture_output=True, text=True)
        trials = json.loads(subprocess.run(show, env=environment, check=True, capture_output=True).stdout)["trials"]
    steps = [tuple(map(int, line.split())) for line in open(folder / "steps.txt")]
    done = set(steps)
    wrong = [t for t in trials if t["state"] not in ("done", "paused") or
             abs(t["value"] - ((t["parameters"]["rate"] - 0.3)**2 + 1 / t["step"])) > 1e-12 or
             not all((t["trial"], s) in done for s in range(1, t["step"] + 1))]
    return {"store": kind, "kills": killed, "trials": len(trials), "states": sorted({t["state"] for t in trials}),
            "wrong": len(wrong), "steps": len(steps), "again": len(steps) - len(done), "check": check.returncode == 0,
            "ended": last.returncode, "said": (check.stdout + check.stderr).strip().replace("\n", "; ")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--stores", default="folder,azure,s3")
    arguments = parser.parse_args()
    for kind in arguments.stores.split(","):
        with tempfile.TemporaryDirectory(prefix="shoal-chaos-") as folder:
            found = run_chaos(kind, str(arguments.build / "shoal"), arguments.kills, pathlib.Path(folder))
        print(f"{kind}: no such server here" if found is None else json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
