#!/usr/bin/python3
"""Rented machines: how soon they compute, what kill -9 costs, what lost answers start, how soon a warned one is gone.

    ./dev bench cluster [--quick] [--only WORD]

The provider is the stand-in of the tests (tests/system/ec2.py); its machines are namespaces of this machine that run
their user data, which takes root.  A table on stdout, everything in bench/results/cluster.json.  --only keeps the parts
whose name has WORD in it (start, kill, lost, notice, loss).
"""
import argparse
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
SHOAL = str(ROOT / "build" / "shoal")
PLACE = "aws:eu-west-1/c7i.large,c7i.xlarge"
DATA = ["gen:blobs?rows=400000&cols=32&centres=40", "-k", "60", "--iterations", "60", "--init", "random"]

sys.path[:0] = [str(ROOT / "tests" / "system")]
import ec2  # noqa: E402


def start(cloud, *arguments):
    return subprocess.Popen([SHOAL, *arguments], env={**os.environ, **cloud.environment(), "SHOAL_STORE": "st"},
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(cloud, *arguments):
    process = start(cloud, *arguments)
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0, (arguments, out)
    return out


def up(cloud, name, count, *more):
    return run(cloud, "cluster", "up", name, "--machines", PLACE, "-n", str(count), *more)


def wait_for(condition, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def serves(cloud, machine):
    try:
        return "serves the jobs" in pathlib.Path(f"cloud/{machine.id}/log").read_text()
    except OSError:
        return False


def measure_start(rounds):
    """From the command to eight workers that look for jobs, without what the provider takes."""
    pending, taken = 1.0, []
    for i in range(rounds + 1):
        with ec2.Ec2(f"{os.getcwd()}/start{i}", boots=True) as cloud:
            os.path.islink("cloud") and os.unlink("cloud")
            os.symlink(f"start{i}", "cloud")
            cloud.pending = pending
            began = time.monotonic()
            up(cloud, f"start{i}", 8)
            machines = cloud.alive()
            wait_for(lambda: all(serves(cloud, machine) for machine in machines))
            taken.append(time.monotonic() - began - pending)
            run(cloud, "cluster", "down", f"start{i}")
    return dict(first=taken[0], seconds=taken[1:])  # the first compresses the program


def measure_kill(rounds):
    """The starter is killed at a random moment, and then whoever looks after the cluster."""
    chance, budget, permit = random.Random(4), 0.03, 5
    with ec2.Ec2(f"{os.getcwd()}/kill", boots=True) as cloud:
        for i in range(rounds):
            starter = start(cloud, "cluster", "up", f"k{i}", "--machines", PLACE, "-n", "3", "--ttl", f"{permit}s",
                            "--budget", str(budget))
            time.sleep(chance.uniform(0, 4))
            starter.send_signal(signal.SIGKILL)
            leader = start(cloud, "cluster", "show", f"k{i}")
            time.sleep(chance.uniform(0, 1))
            leader.send_signal(signal.SIGKILL)
            starter.communicate()
            leader.communicate()
        began = time.monotonic()
        wait_for(lambda: not cloud.alive() or time.monotonic() - began > permit + 60)
        left = len(cloud.alive())
        machines = list(cloud.machines.values())
        bills = {}
        for machine in machines:
            name = machine.tag("shoal-cluster")
            bills[name] = bills.get(name, 0) + max(60, machine.seconds()) * machine.price / 3600
        return dict(kills=2 * rounds, started=len(machines), clusters=len(bills), left=left, budget=budget,
                    over=max((machine.seconds() - permit for machine in machines), default=0),
                    dearest=max(bills.values(), default=0))


def measure_lost(rounds):
    twice = missing = forgotten = 0
    for i in range(rounds):
        with ec2.Ec2(f"{os.getcwd()}/lost{i}", seed=i) as cloud:
            cloud.lost = cloud.doubled = 0.2
            up(cloud, f"lost{i}", 8)
            reservations = {machine.tag("shoal-reservation") for machine in cloud.machines.values()}
            twice += len(cloud.machines) - len(reservations)
            missing += 8 - len(reservations)
            run(cloud, "cluster", "down", f"lost{i}")
            forgotten += len(cloud.alive())
    return dict(clusters=rounds, twice=twice, missing=missing, forgotten=forgotten)


def measure_notice(rounds):
    taken = []
    with ec2.Ec2(f"{os.getcwd()}/notice", boots=True) as cloud:
        os.path.islink("cloud") and os.unlink("cloud")
        os.symlink("notice", "cloud")
        up(cloud, "warned", rounds)
        for machine in cloud.alive():
            wait_for(lambda: serves(cloud, machine))
            began = time.monotonic()
            machine.interrupt()
            wait_for(lambda: not machine.alive())
            taken.append(machine.ended - began)
    return dict(seconds=taken)


def measure_loss():
    """Every twelve seconds a machine of five vanishes without a word, and another is added."""
    run_here = subprocess.run([SHOAL, "kmeans", *DATA, "--centres", "expected.npy"], capture_output=True)
    assert run_here.returncode == 0, run_here
    with ec2.Ec2(f"{os.getcwd()}/loss", boots=True) as cloud:
        up(cloud, "lossy", 5, "--budget", "10")
        began, lost, chance = time.monotonic(), 0, random.Random(1)
        job = start(cloud, "kmeans", *DATA, "--centres", "found.npy", "--store", "st", "--lease", "3")
        while job.poll() is None:
            time.sleep(4 if lost == 0 else 12)
            if job.poll() is None:
                chance.choice(cloud.alive()).end("Server.SpotInstanceTermination")
                lost += 1
                run(cloud, "cluster", "add", "lossy", "1")
        out, _ = job.communicate()
        run(cloud, "cluster", "down", "lossy")
        same = pathlib.Path("expected.npy").read_bytes() == pathlib.Path("found.npy").read_bytes()
        return dict(code=job.returncode, lost=lost, seconds=time.monotonic() - began, same=same,
                    said=out if job.returncode else "")


def print_table(found):
    def row(what, bar, measured):
        print(f"| {what} | {bar} | {measured} |")
    row("what", "bar", "measured")
    print("|---|---|---|")
    if "start" in found:
        seconds = found["start"]["seconds"]
        row("8 machines up and looking for jobs, beyond the provider's time", "≤ 10 s",
            f"{statistics.median(seconds):.1f} s (best {min(seconds):.1f}; first {found['start']['first']:.1f})")
    if "kill" in found:
        kill = found["kill"]
        row(f"{kill['kills']} × kill -9 of starter and leader", "none alive after permit + 30 s; spent ≤ budget",
            f"{kill['started']} machines started, {kill['left']} left, at most {kill['over']:.1f} s over the permit; "
            f"${kill['dearest']:.4f} of ${kill['budget']:.4f}")
    if "lost" in found:
        lost = found["lost"]
        row("20% of answers lost, 20% doubled", "none twice, none forgotten",
            f"{lost['clusters']} clusters of 8: {lost['twice']} twice, {lost['missing']} missing, "
            f"{lost['forgotten']} forgotten")
    if "notice" in found:
        seconds = found["notice"]["seconds"]
        row("notice to gone", "≤ 2 s", f"{statistics.median(seconds):.2f} s (longest {max(seconds):.2f})")
    if "loss" in found:
        loss = found["loss"]
        row("machines lost while a job runs", "the same bytes",
            f"{loss['lost']} lost of 5 in {loss['seconds']:.0f} s: {'the same' if loss['same'] else 'OTHERS'}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    parts = dict(start=lambda: measure_start(1 if options.quick else 5),
                 lost=lambda: measure_lost(2 if options.quick else 20),
                 notice=lambda: measure_notice(2 if options.quick else 10), loss=measure_loss,
                 kill=lambda: measure_kill(5 if options.quick else 100))
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "cluster.json"
    found = json.loads(path.read_text()) if path.exists() and options.only else {}
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        os.chdir(folder)
        os.environ.update(XDG_STATE_HOME=f"{folder}/state", XDG_CACHE_HOME=f"{folder}/cache", SHOAL_HISTORY="off",
                          AWS_SHARED_CREDENTIALS_FILE="/nonexistent", AWS_CONFIG_FILE="/nonexistent")
        for name, measure in parts.items():
            if options.only in name:
                found[name] = measure()
                path.write_text(json.dumps(found, indent=1))
    print_table(found)


main()
