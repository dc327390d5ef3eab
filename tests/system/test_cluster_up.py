#!/usr/bin/env python3
# Seconds: 60
"""Machines that are rented, do a job and end by themselves: `shoal cluster up`, `add`, `remove`, `show`, `down`,
against a stand-in for EC2 (ec2.py), where it says so with machines that are namespaces of this one and run their user
data.

    test_cluster_up.py PATH_TO_shoal [TEST]...
"""
import atexit
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import apart
import ec2
import nobody  # so that no run is in the history of whoever runs this
from processes import wait_until

SHOAL = os.path.abspath(sys.argv[1])
PLACE = f"aws:{ec2.REGION}/c7i.large,c7i.xlarge"
SECONDS = 300
DATA = ["gen:blobs?rows=20000&cols=16&centres=12", "-k", "12", "--iterations", "30"]
if "BUNDLES" not in os.environ:  # of all tests: the program with its libraries, compressed
    os.environ["BUNDLES"] = tempfile.mkdtemp(prefix="shoal-bundles-")
    atexit.register(shutil.rmtree, os.environ["BUNDLES"], ignore_errors=True)


def environment(cloud, **variables):
    known = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SHOAL_STORE"))}
    known.update(AWS_SHARED_CREDENTIALS_FILE="/nonexistent", AWS_CONFIG_FILE="/nonexistent", SHOAL_STORE="st",
                 XDG_CACHE_HOME=os.environ["BUNDLES"])
    known.update(cloud.environment() if cloud else {})
    known.update(variables)
    return {name: value for name, value in known.items() if value is not None}


def start(*arguments, cloud=None, **variables):
    return subprocess.Popen([SHOAL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            stdin=subprocess.DEVNULL, env=environment(cloud, **variables))


def run(*arguments, **options):
    process = start(*arguments, **options)
    out, err = process.communicate(timeout=SECONDS)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def succeeds(*arguments, **options):
    done = run(*arguments, **options)
    assert done.returncode == 0, (arguments, done)
    return done.stdout


def fails(code, pattern, *arguments, **options):
    done = run(*arguments, **options)
    assert done.returncode == code and re.search(pattern, done.stderr), (arguments, pattern, done)
    return done


def show(name, cloud):
    return json.loads(succeeds("cluster", "show", name, "--json", cloud=cloud))


def up(name, count, *more, cloud):
    return succeeds("cluster", "up", name, "--machines", PLACE, "-n", str(count), *more, cloud=cloud)


@contextlib.contextmanager
def machines_that_boot(**more):
    """Namespaces take root."""
    if os.geteuid() != 0:
        raise apart.Skipped("not root")
    with ec2.Ec2(os.path.abspath("cloud"), boots=True) as cloud:
        for name, value in more.items():
            setattr(cloud, name, value)
        yield cloud


# ---- money and names, with machines that do nothing ------------------------------------------------------------------


@apart.test
def a_cluster_comes_grows_shrinks_and_goes():
    with ec2.Ec2("cloud") as cloud:
        table = up("mine", 6, cloud=cloud)
        assert table.count(" running ") == 6, table
        machines = cloud.alive()
        assert len(machines) == 6 and len({machine.zone for machine in machines}) == 3
        assert all(machine.ends_itself and machine.asks_for_tokens and machine.spot for machine in machines)
        told = show("mine", cloud)
        assert told["reservations"] == 6 and told["usd_committed"] <= told["usd_budget"] and not told["usd_spent"], told
        assert all(row["in_ledger"] for row in told["machines"]), told
        fails(1, "more than|budget", "cluster", "add", "mine", "20", cloud=cloud)
        succeeds("cluster", "remove", "mine", "2", cloud=cloud)
        succeeds("cluster", "remove", "mine", cloud.alive()[0].id, cloud=cloud)
        assert len(cloud.alive()) == 3 and show("mine", cloud)["reservations"] == 3
        succeeds("cluster", "add", "mine", "2", cloud=cloud)
        assert len(cloud.alive()) == 5
        fails(1, "there is a cluster 'mine' in st", "cluster", "up", "mine", "--machines", PLACE, cloud=cloud)
        told = succeeds("cluster", "down", "mine", cloud=cloud)
        assert not cloud.alive() and "has no machines; it cost at most $0.0" in told, told
        fails(1, "there is no cluster 'mine'", "cluster", "down", "mine", cloud=cloud)
        assert succeeds("store", "ls", "st", cloud=cloud) == "" and not os.listdir("state/shoal/clusters")
        up("mine", 1, cloud=cloud)


@apart.test
def answers_that_are_lost_or_doubled_start_nothing_twice():
    with ec2.Ec2("cloud") as cloud:
        cloud.lost, cloud.doubled, cloud.throttled, cloud.lag = 0.2, 0.2, 0.1, 0.5
        up("mine", 8, cloud=cloud)
        assert len(cloud.machines) == 8, len(cloud.machines)
        assert len({machine.tag("shoal-reservation") for machine in cloud.machines.values()}) == 8
        succeeds("cluster", "down", "mine", cloud=cloud)
        assert not cloud.alive()


@apart.test
def another_pool_is_taken_where_one_has_nothing():
    with ec2.Ec2("cloud") as cloud:
        for zone in cloud.zones:
            for kind in cloud.types:
                cloud.room[kind, zone, True] = 0
        cloud.room["c7i.large", "eu-west-1b", True] = 2
        few = ["--machines", f"aws:{ec2.REGION}/c7i.large"]
        succeeds("cluster", "up", "mine", *few, "-n", "3", "--market", "mixed", cloud=cloud)
        machines = cloud.alive()
        assert sorted(machine.spot for machine in machines) == [False, True, True], machines
        done = fails(1, "1 of 2 machines run|0 of 2 machines run", "cluster", "up", "other", *few, "-n", "2",
                     "--wait", "2", cloud=cloud)
        assert "no Spot capacity" in done.stderr and len(cloud.alive()) == 3, done


@apart.test
def what_can_not_be_is_one_sentence_and_starts_nothing():
    with ec2.Ec2("cloud") as cloud:
        def refused(code, pattern, *more, name="mine", machines=PLACE, **variables):
            fails(code, pattern, "cluster", "up", name, "--machines", machines, "--wait", "1", *more, cloud=cloud,
                  **variables)
            assert not cloud.machines
        refused(1, "does not pay for the first minutes", "--budget", "0.002")
        refused(1, "may cost .* more than --budget", "--budget", "0.05USD", "--ttl", "8h", "-n", "4")
        refused(2, "names no type", machines="aws:eu-west-1")
        refused(2, "no such type", machines="aws:eu-west-1/c9z.large")
        refused(1, "at most --max-price", "--max-price", "0.001")
        refused(2, "--max-price 2e6: .* less than a million", "--max-price", "2e6")
        refused(1, "may cost .* more than --budget", "--max-price", "9e5", "--ttl", "366d", "-n", "1024",
                "--budget", "5")
        refused(2, "--ttl 2000d: .* a year at most", "--ttl", "2000d")
        refused(2, "--idle 0.0001: ", "--idle", "0.0001")
        refused(2, "--role is longer than 63 characters", "--role", "r" * 64)
        refused(2, "can't see a folder", AWS_ENDPOINT_URL_EC2=None)
        refused(2, "can't be a cluster's name", name="Mine")
        refused(2, "currency|is not", "--budget", "5EUR")
        refused(1, "no AWS credentials", AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None)
        cloud.permitted = False
        refused(1, "0 of 1 machines run: .*do not permit", name="denied")
        cloud.permitted, cloud.quota = True, 0
        refused(1, "current limit", name="quota")
        fails(2, "not a number of machines", "cluster", "add", "mine", "0", cloud=cloud)
        fails(1, "there is no cluster 'none'", "cluster", "show", "none", cloud=cloud)


@apart.test
def the_ledgers_secret_is_not_needed_to_end_machines():
    with ec2.Ec2("cloud") as cloud:
        up("mine", 2, cloud=cloud)
        other = dict(XDG_STATE_HOME=os.path.abspath("other"))
        assert len(succeeds("cluster", "show", "mine", cloud=cloud, **other).splitlines()) == 6
        fails(1, "secret of this cluster's ledger", "cluster", "add", "mine", "1", cloud=cloud, **other)
        succeeds("cluster", "down", "mine", cloud=cloud, **other)
        assert not cloud.alive()
        for harm in (["rm"], ["put", SHOAL]):
            up("mine", 1, cloud=cloud)
            ledger, = re.findall(r"ledger-\w+", succeeds("store", "ls", "st/clusters/mine/"))
            succeeds("store", *harm, f"st/clusters/mine/{ledger}")
            assert "what it cost is not known" in succeeds("cluster", "down", "mine", cloud=cloud)
            assert not cloud.alive()


@apart.test
def two_people_may_have_clusters_of_one_name():
    with ec2.Ec2("cloud") as cloud:
        up("mine", 2, cloud=cloud)
        succeeds("cluster", "up", "mine", "--machines", PLACE, "--store", "st2", cloud=cloud)
        succeeds("cluster", "down", "mine", cloud=cloud)
        assert len(cloud.alive()) == 1
        told = json.loads(succeeds("cluster", "show", "mine", "--json", "--store", "st2", cloud=cloud))
        assert len(told["machines"]) == 1, told


# ---- machines that boot ----------------------------------------------------------------------------------------------


@apart.test
def rented_machines_do_a_job_with_the_same_bits():
    succeeds("kmeans", *DATA, "--centres", "expected.npy")
    with machines_that_boot() as cloud:
        up("mine", 3, "--ttl", "10m", cloud=cloud)
        done = run("kmeans", *DATA, "--centres", "found.npy", "--store", "st", cloud=cloud)
        log = "".join(open(f"cloud/{name}/log", errors="replace").read() for name in cloud.machines)
        assert done.returncode == 0, (done, log)
        assert open("expected.npy", "rb").read() == open("found.npy", "rb").read()
        succeeds("cluster", "down", "mine", cloud=cloud)
        assert not cloud.alive()


@apart.test
def a_machine_is_off_when_its_permit_ends_or_it_is_idle_or_warned():
    with machines_that_boot() as cloud:
        up("permit", 1, "--ttl", "4s", cloud=cloud)
        machine, = cloud.alive()
        wait_until(lambda: not machine.alive(), 60, "the end of the permit")
        assert machine.state == "terminated" and machine.reason == "Client.InstanceInitiatedShutdown"
        up("idle", 1, "--idle", "1s", cloud=cloud)
        machine, = cloud.alive()
        wait_until(lambda: not machine.alive(), 60, "the end of a machine without a job")
        up("warned", 1, cloud=cloud)
        machine, = cloud.alive()
        wait_until(lambda: "serves the jobs" in open(f"cloud/{machine.id}/log").read(), 60, "a worker")
        machine.interrupt()
        wait_until(lambda: not machine.alive(), 60, "the end of a machine that was warned")
        assert machine.reason == "Client.InstanceInitiatedShutdown"


@apart.test
def a_starter_that_is_killed_leaves_nothing_that_lasts():
    chance = random.Random(7)
    with machines_that_boot() as cloud:
        for i in range(6):
            process = start("cluster", "up", f"c{i}", "--machines", PLACE, "-n", "2", "--ttl", "5s", "--budget", "0.05",
                            cloud=cloud)
            time.sleep(chance.uniform(0, 2))
            process.send_signal(signal.SIGKILL)
            process.communicate()
        wait_until(lambda: not cloud.alive(), 90, "the end of all machines")
        assert all(machine.seconds() <= 5 + 30 for machine in cloud.machines.values())
        assert cloud.bill() <= 6 * 0.05


apart.main(at_once=3)
