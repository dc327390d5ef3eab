#!/usr/bin/env python3
# Seconds: 20
"""What `shoal cluster` asks of a provider, and what it says when there is no answer; against a stand-in for EC2 that
reads every request by the vendor's own description and recomputes every signature (ec2.py).

    test_cluster_ec2.py PATH_TO_shoal [TEST]...
"""
import json
import os
import re
import subprocess
import sys

import apart
import ec2
import nobody  # so that no run is in the history of whoever runs this

SHOAL = os.path.abspath(sys.argv[1])
PLACE = f"aws:{ec2.REGION}"
SECONDS = 300


def run(*arguments, cloud=None, **variables):
    known = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SHOAL_STORE"))}
    known.update(AWS_SHARED_CREDENTIALS_FILE="/nonexistent", AWS_CONFIG_FILE="/nonexistent",
                 AWS_EC2_METADATA_DISABLED="true")
    known.update(cloud.environment() if cloud else {})
    known.update(variables)
    return subprocess.run([SHOAL, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=SECONDS, env={name: value for name, value in known.items() if value is not None})


def succeeds(*arguments, **options):
    done = run(*arguments, **options)
    assert done.returncode == 0 and done.stderr == "", (arguments, done)
    return done.stdout


def fails(code, pattern, *arguments, **options):
    """Ends with this code and one sentence."""
    done = run(*arguments, **options)
    lines = done.stderr.splitlines()
    assert done.returncode == code, (arguments, done)
    assert lines and re.search(pattern, lines[0]) and len(lines) <= 2, (arguments, pattern, done.stderr)
    assert len(lines) == 1 or lines[1].startswith("try 'shoal"), done.stderr


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def start(cloud, kind="c7i.large", zone="eu-west-1a", cluster="one", **more):
    """A machine that somebody else has started."""
    tags = [{"Key": "shoal-cluster", "Value": cluster}] if cluster else [{"Key": "Name", "Value": "a web server"}]
    machine = ec2.Machine(cloud, kind, zone, True, dict(
        TagSpecifications=[dict(ResourceType="instance", Tags=tags)], **more))
    cloud.machines[machine.id] = machine
    return machine


# ---- prices ----------------------------------------------------------------------------------------------------------


@apart.test
def prices_are_the_providers_of_each_zone():
    with ec2.Ec2("cloud") as cloud:
        cloud.page = 2
        rates = lines(succeeds("cluster", "prices", f"{PLACE}/c7i.large,c7i.x*", "--json", cloud=cloud))
        told = {(rate["type"], rate["zone"]): rate["usd_per_hour_spot"] for rate in rates}
        assert told == {pool: price for pool, price in cloud.prices.items() if pool[0].startswith("c7i")}, told
        assert all(rate["asked"] for rate in rates) and cloud.requests["DescribeSpotPriceHistory"] == 3
        cores = [rate["usd_per_hour_spot"] / rate["cores"] for rate in rates]
        assert cores == sorted(cores), cores
        assert {rate["usd_per_hour"] for rate in rates} == {0.09576, 0.19152}, rates
        table = succeeds("cluster", "prices", f"{PLACE}/c7i.large", cloud=cloud)
        assert len(table.splitlines()) == 5 and "list prices of 2026-08" in table, table


@apart.test
def prices_without_credentials_are_the_tables_and_say_so():
    table = succeeds("cluster", "prices", f"{PLACE}/c7i.large")
    assert "eu-west-1 " in table and "0.04460" in table, table
    assert "was not asked: there are no AWS credentials" in table, table


# ---- listing ---------------------------------------------------------------------------------------------------------


@apart.test
def machines_are_found_by_their_tag_alone():
    with ec2.Ec2("cloud") as cloud:
        assert succeeds("cluster", "list", cloud=cloud) == "there are no machines of clusters\n"
        machines = [start(cloud, cluster=name) for name in ("one", "one", "two")]
        machines[1].end("Server.SpotInstanceTermination")
        start(cloud, cluster=None)
        cloud.page = 2
        told = lines(succeeds("cluster", "list", PLACE, "--json", cloud=cloud))
        assert [row["machine"] for row in told] == [machines[0].id, machines[2].id], told
        assert told[0]["market"] == "spot" and told[0]["cluster"] == "one" and told[0]["zone"] == "eu-west-1a", told
        told = lines(succeeds("cluster", "list", PLACE, "--all", "--json", cloud=cloud))
        assert [row["state"] for row in told][1] == "ended" and "SpotInstanceTermination" in told[1]["reason"], told
        assert "two" in succeeds("cluster", "list", cloud=cloud)


@apart.test
def what_is_passing_is_tried_again():
    with ec2.Ec2("cloud") as cloud:
        for i in range(5):
            start(cloud)
        cloud.page, cloud.throttled, cloud.lost = 1, 0.2, 0.2
        assert len(lines(succeeds("cluster", "list", "--json", cloud=cloud))) == 5


# ---- checking --------------------------------------------------------------------------------------------------------


@apart.test
def a_check_says_what_is_missing():
    with ec2.Ec2("cloud") as cloud:
        table = succeeds("cluster", "check", f"{PLACE}/c7i.large,c7i.xlarge", cloud=cloud)
        assert table.count(" yes ") == 7 and "2 cores, 4096 MiB" in table and not cloud.machines, table
        for change, words in ((dict(permitted=False), "do not permit"), (dict(subnets=0), "no zone has a default")):
            for name, value in change.items():
                before = getattr(cloud, name)
                setattr(cloud, name, value)
            done = run("cluster", "check", f"{PLACE}/c7i.large", cloud=cloud)
            assert done.returncode == 1 and words in done.stdout and done.stderr == "", done
            setattr(cloud, name, before)
        done = run("cluster", "check", f"{PLACE}/c9z.large,c8g.large", cloud=cloud)
        assert done.returncode == 1 and "do not exist: [c9z.large]" in done.stdout and "of arm64" in done.stdout, done
        done = run("cluster", "check", PLACE)
        assert done.returncode == 1 and "there are no AWS credentials" in done.stdout, done


# ---- bad input -------------------------------------------------------------------------------------------------------


@apart.test
def wrong_words_are_refused():
    for place, words in (("ec2:x", "no such provider"), ("aws:eu west", "a region has"), ("aws:r/", "is missing"),
                         ("aws:r/a,,b", "a type is missing"), ("aws:r/a b", "a type has letters"), ("", "no such"),
                         ("aws:r/" + "x" * 99, "too long"), ("aws:r/" + ",".join("abcdefgh" * 5), "too many types")):
        fails(2, words, "cluster", "prices", place)
    fails(2, "needs a region", "cluster", "list", AWS_REGION=None)
    fails(2, "not a server's address", "cluster", "list", AWS_REGION="r", AWS_ENDPOINT_URL="http://127.0.0.1/x?y")
    fails(2, "unencrypted http", "cluster", "list", AWS_REGION="r", AWS_ENDPOINT_URL="http://example.com",
          AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b")


@apart.test
def credentials_that_do_not_do_are_told_of():
    with ec2.Ec2("cloud") as cloud:
        fails(1, "no AWS credentials", "cluster", "list", cloud=cloud, AWS_ACCESS_KEY_ID=None,
              AWS_SECRET_ACCESS_KEY=None)
        fails(1, "secret key does not belong", "cluster", "list", cloud=cloud, AWS_SECRET_ACCESS_KEY="wrong")
        fails(1, "does not know these credentials", "cluster", "list", cloud=cloud, AWS_ACCESS_KEY_ID="AKIDOTHER")
        cloud.clock = 3600
        fails(1, "clock is 3[56].. seconds behind", "cluster", "list", cloud=cloud, AWS_SECRET_ACCESS_KEY="wrong")


@apart.test
def a_provider_that_never_answers_is_given_up():
    with ec2.Ec2("cloud") as cloud:
        cloud.silent = True
        fails(1, "does not answer", "cluster", "list", "--deadline", "1", cloud=cloud)


apart.main(at_once=4)
