#!/usr/bin/env python3
# Labels: quick asan
"""shoal plan search: configurations are tried, kept and resumed; commands fail, hang and are stopped; wrong input is
told in one sentence.

    test_plan_search.py PATH_TO_shoal [NAME...]

The commands are real; what they would take is computed from machine and count, so that every search has one right
course.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys

import apart
import processes

sys.dont_write_bytecode = True
SHOAL = os.path.abspath(sys.argv[1])
PRICES = """cloud,region,machine,vcpus,memory_gib,usd_per_hour,usd_per_hour_spot
x,here,small,2,4,0.1,0.03
x,here,medium,4,16,0.2,0.07
x,here,large,8,64,0.5,
x,there,medium,4,16,0.3,0.1
"""
SPACE = {"machines": ["x:here/small", "x:here/medium", "large"], "count": [1, 2, 4, 8]}
VCPUS = {"small": 2, "medium": 4, "large": 8}
DOLLARS = {"small": 0.1, "medium": 0.2, "large": 0.5}
# Says what it would take, and keeps a list of all its calls.
JOB = """#!/bin/sh
echo "$1 $2" >> calls.txt
case $1 in small) v=2;; medium) v=4;; *) v=8;; esac
echo working
awk "BEGIN { print \\"seconds=\\" 4000 / ($v * $2) + 30 * $2 }"
"""


def seconds_of(machine, count):
    return 4000 / (VCPUS[machine] * count) + 30 * count


def cost_of(machine, count):
    return seconds_of(machine, count) * DOLLARS[machine] * count / 3600


def write(path, text):
    pathlib.Path(path).write_text(text if isinstance(text, str) else json.dumps(text))
    return path


def script(path, text):
    write(path, text)
    os.chmod(path, 0o755)


def prepare(space=SPACE):
    write("prices.csv", PRICES)
    write("space.json", space)
    script("job", JOB)


def words(*more, run="./job {machine} {count}"):
    return [
        "plan", "search", "--space", "space.json", "--prices", "prices.csv", *(["--run", run] if run else []),
        *map(str, more)
    ]


def shoal(*arguments, code=0):
    done = subprocess.run([SHOAL, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=200)
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def search(*more, code=0, **other):
    return json.loads(shoal(*words("--json", *more, **other), code=code).stdout)


def refuses(code, sentence, *arguments):
    done = shoal(*arguments, code=code)
    assert done.stderr.split("\n")[0] == f"shoal: {sentence}", done.stderr
    assert not done.stdout, done.stdout


def calls():
    return pathlib.Path("calls.txt").read_text().split("\n")[:-1] if os.path.exists("calls.txt") else []


def journal(path="space.trials.jsonl"):
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]


# ---- searching -------------------------------------------------------------------------------------------------------

@apart.test
def the_trials_are_what_the_command_did():
    prepare()
    found = search("--objective", "cost")
    trials = found["trials"]
    assert [f"{trial['machine']} {trial['count']}" for trial in trials] == calls()
    assert len(set(calls())) == len(calls()) and 6 <= len(trials) <= 12, trials
    for number, trial in enumerate(trials, 1):
        assert trial["trial"] == number and trial["outcome"] == "done"
        assert abs(trial["seconds"] / seconds_of(trial["machine"], trial["count"]) - 1) < 1e-4, trial
        assert abs(trial["cost"] /
                   (trial["seconds"] * DOLLARS[trial["machine"]] * trial["count"] / 3600) - 1) < 1e-12, trial
    assert found["best"] == min(trials, key=lambda trial: trial["cost"])
    assert found["objective"] == "cost" and found["configurations"] == 12 and found["stopped_because"]
    header, *lines = journal()
    assert header["journal"] == "shoal plan search" and header["objective"] == "cost" and header[
        "command"] == "./job {machine} {count}"
    assert lines == trials
    assert pathlib.Path("space.trials.output/1.stdout.txt").read_text().startswith("working\nseconds=")
    untried = [(m, c) for m in VCPUS for c in SPACE["count"] if f"{m} {c}" not in calls()]
    if untried:
        expected = found["expected"]
        assert (expected["machine"],
                expected["count"]) in untried and expected["low"] <= expected["value"] <= expected["high"], expected


@apart.test
def the_table_tells_what_was_tried_and_why():
    prepare()
    done = shoal(*words("--objective", "cost"))
    head, *rows = done.stdout.split("\n\n")[0].splitlines()
    assert head.split() == ["trial", "machine", "count", "time", "cost", "why"], head
    assert len(rows) == len(calls())
    assert [" ".join(row.split()[1:3]) for row in rows] == calls()
    assert all("start" in row for row in rows[:3]), rows
    end = done.stdout.split("\n\n")[1]
    best = min((trial for trial in journal()[1:]), key=lambda trial: trial["cost"])
    assert end.startswith(f"best       {best['count']} of {best['machine']}: "), end
    assert f"why        the cheapest of {len(rows)} trials\n" in end, end
    assert "compared   the next best is" in end and "stopped    " in end, end
    quiet = shoal(*words("--objective", "cost", "--quiet"))
    assert quiet.stdout.strip() == end.strip() and not quiet.stderr, quiet


@apart.test
def every_configuration_can_be_tried():
    prepare()
    found = search("--objective", "time", "--improvement", 0)
    assert len(found["trials"]) == 12 and found["expected"] is None
    best = min(((m, c) for m in VCPUS for c in SPACE["count"]), key=lambda one: seconds_of(*one))
    assert (found["best"]["machine"], found["best"]["count"]) == best


@apart.test
def trials_are_limited():
    prepare()
    assert len(search("--trials", 4)["trials"]) == 4
    assert len(search("--trials", 5)["trials"]) == 5 and len(calls()) == 5


@apart.test
def objectives_and_limits_choose_the_best():
    prepare()
    every = [(m, c) for m in VCPUS for c in SPACE["count"]]
    for number, (more, key) in enumerate([(["--objective", "cost*time"], lambda one: cost_of(*one) * seconds_of(*one)),
                                          (["--objective", "cost", "--deadline", "5m"], lambda one: cost_of(*one)
                                           if seconds_of(*one) <= 300 else 1e9),
                                          (["--deadline", "5m"], lambda one: cost_of(*one)
                                           if seconds_of(*one) <= 300 else 1e9),
                                          (["--objective", "time", "--budget", "0.11usd"], lambda one: seconds_of(*one)
                                           if cost_of(*one) <= 0.11 else 1e9)]):
        found = search("--improvement", 0, "--journal", f"{number}.jsonl", *more)
        assert (found["best"]["machine"], found["best"]["count"]) == min(every, key=key), (more, found["best"])


@apart.test
def spot_prices_count():
    prepare({"machines": ["x:here/*"], "count": "1..2"})
    found = search("--objective", "cost", "--spot", "--improvement", 0)
    assert {trial["machine"] for trial in found["trials"]} == {"small", "medium"}
    for trial in found["trials"]:
        assert abs(trial["cost"] -
                   trial["seconds"] * {"small": 0.03, "medium": 0.07}[trial["machine"]] * trial["count"] / 3600) < 1e-12


@apart.test
def the_same_seed_does_the_same():
    prepare()
    shoal(*words("--journal", "a.jsonl", "--objective", "cost"))
    shoal(*words("--journal", "b.jsonl", "--objective", "cost"))
    assert pathlib.Path("a.jsonl").read_bytes() == pathlib.Path("b.jsonl").read_bytes()


# ---- the space -------------------------------------------------------------------------------------------------------

@apart.test
def any_parameter_can_be_searched():
    prepare({"machines": [{"name": "my box", "vcpus": 4, "memory_gib": 8, "usd_per_hour": 1, "disk": 3},
                          {"name": "it's $HOME", "vcpus": 8, "memory_gib": 8, "usd_per_hour": 1.5, "disk": 0}],
             "batch": [0.5, 32], "mode": ["fast & safe", "`id`"], "verbose": [True, False], "only": "x"})
    script("show", '#!/bin/sh\nprintf "%s|" "$@" >> shown.txt; echo >> shown.txt\n')
    found = search("--improvement", 0, "--objective", "cost",
                   run="./show {machine} {count} {batch} {mode} {verbose} {only} {{count}} {} { ${HOME%%%%*}")
    shown = pathlib.Path("shown.txt").read_text().splitlines()
    assert len(found["trials"]) == 16 and len(set(shown)) == 16
    for trial, line in zip(found["trials"], shown):
        assert line.split("|")[:9] == [
            trial["machine"], "1", f"{trial['batch']:g}", trial["mode"],
            str(trial["verbose"]).lower(), "x", "{count}", "{}", "{"
        ], (trial, line)
        assert line.split("|")[9] == os.environ["HOME"]
    assert {trial["mode"] for trial in found["trials"]} == {"fast & safe", "`id`"}


@apart.test
def machines_nobody_knows_need_no_numbers_for_time():
    write("space.json", {"machines": ["here", "there", "elsewhere"], "count": "1,2,4..5"})
    done = shoal("plan", "search", "--space", "space.json", "--json", "--improvement", 0, "--run",
                 "echo {machine} >/dev/null; echo seconds={count}")
    found = json.loads(done.stdout)
    assert len(found["trials"]) == 12 and found["best"]["seconds"] == 1
    assert {trial["count"] for trial in found["trials"]} == {1, 2, 4, 5}
    assert "cost" not in found["best"]


@apart.test
def features_can_be_named():
    prepare({**SPACE, "features": ["vcpus", "count"]})
    assert len(search("--objective", "cost")["trials"]) >= 6


@apart.test
def wrong_spaces_are_told():
    write("prices.csv", PRICES)
    here = {"machines": ["small", "large"], "count": [1, 2]}
    told = "space.json: "
    cases = [
        ('{"machines": ["small"],\n "count": [1,]}', told + "line 2: not JSON: "), ('', told + "line 1: not JSON: "),
        ('{"count": 1, "count": 2}', told + "line 1: not JSON: duplicate object key"),
        ('[]', told + 'must be an object, such as {"machines": ["c7i.large"], "count": [2, 4, 8]}'),
        ({"count": [1]}, told + '"machines" is missing: a list of names, or a pattern such as "aws:us-east-1/c7i.*"'),
        ({**here, "machines": []}, told + '"machines" is missing: '),
        ({**here, "machines": 7}, told + '"machines" must have names, patterns, or objects with a "name"'),
        ({**here, "machines": ["smal"]},
         told + '"machines": smal: prices.csv has no such machine; the nearest is small'),
        ({**here, "machines": "x:nowhere/*"}, told + '"machines": x:nowhere/*: '),
        ({**here, "machines": ["small", "small"]}, told + '"machines" has small twice'),
        ({**here, "machines": ["medium"]},
         told + 'medium is ambiguous: it is in x:here and in x:there; write "x:here/medium"'),
        ({**here, "machines": [""]}, told + '"machines": '),
        ({**here, "machines": [{"vcpus": 2}]}, told + '"machines": entry 1 has no "name"'),
        ({**here, "machines": [{"name": "mine"}]}, told + 'machine mine has no price: give it "usd_per_hour"'),
        ({**here, "machines": [{"name": "mine", "usd_per_hour": -1}]},
         told + 'machine mine: "usd_per_hour" is -1; it must be more than 0'),
        ({**here, "machines": [{"name": "mine",
                                "usd_per_hour": "1"}]}, told + 'machine mine: "usd_per_hour" must be a number'),
        ({**here, "machines": ["small", {"name": "mine", "usd_per_hour": 1,
                                         "disk": 3}]}, told + 'machine small has no "disk", which others have'),
        ({**here, "machines": [{"name": "a\nb",
                                "usd_per_hour": 1}]}, told + '"machines" has a text with a control character: '),
        ({**here, "machines": [{"name": "a" * 100, "usd_per_hour": 1}]}, told + "the machine's name aaaa"),
        ({**here, "count": 0}, told + '"count" has 0; it must be 1 to 1000000'),
        ({**here, "count": [2, -4]}, told + '"count" has -4; it must be 1 to 1000000'),
        ({**here, "count": [1.5]}, told + '"count" has 1.5, which is not a whole number'),
        ({**here, "count": [2, 4, 2]}, told + '"count" has 2 twice'),
        ({**here, "count": "1..4,3"}, told + '"count" has 3 twice'),
        ({**here, "count": "4..1"}, told + '"count" has the range 4..1, '),
        ({**here, "count": "1..1e9"}, told + '"count" has the range 1..1e9, '),
        ({**here, "count": "few"}, told + '"count" must be a number, a list of them, or a range such as "2..16"'),
        ({**here, "count": ["2"]}, told + '"count" must be a number, a list of them, or a range such as "2..16"'),
        ({**here, "count": []}, told + '"count" is an empty list'),
        ({**here, "count": {}}, told + '"count" must be a number'),
        ({**here, "counts": [1]}, told + 'unknown name "counts"; did you mean "count"?'),
        ({**here, "machine": [1]}, told + 'unknown name "machine"; did you mean "machines"?'),
        ({**here, "a b": [1]}, told + '"a b" is not a parameter name'),
        ({**here, "cost": [1]}, told + 'a parameter can\'t be called "cost": trials have a field of that name'),
        ({**here, "batch": [1, "a"]},
         told + '"batch" must be a list of numbers, or one of texts; its entry 2 is something else'),
        ({**here, "batch": [None]},
         told + '"batch" must be a list of numbers, or one of texts; its entry 1 is something else'),
        ({**here, "batch": [1, 1.0]}, told + '"batch" has 1 twice'),
        ({**here, "mode": ["a", ""]}, told + '"mode" has an empty text'),
        ({**here, "features": ["speed"]},
         told + '"features" names speed, which is neither a parameter nor a number of a machine'),
        ({**here, "features": "count"}, told + '"features" must be a list of names'),
        ({**here, "machines": [{"name": "mine", "usd_per_hour": 1}],
          "features": ["vcpus"]}, told + '"features" names vcpus, which machine mine does not have'),
        ({**here, "count": "1..9000", "batch": "1..9000"}, told + "there are more than 10000 configurations"),
        ({**here, "mode": [str(i) + "x" for i in range(17)]},
         told + '"mode" has 17 values that are known by their names alone; 16 is the most'),
    ]
    for space, sentence in cases:
        write("space.json", space)
        done = shoal(*words("--objective", "cost", run="true {machine} {count}"), code=1)
        assert done.stderr.startswith(f"shoal: {sentence}") and done.stderr.count("\n") == 1, (space, done.stderr)
        assert not os.path.exists("space.trials.jsonl"), space
    os.unlink("space.json")
    assert shoal(*words(), code=1).stderr.startswith("shoal: space.json: can't read: No such file")
    os.mkdir("space.json")
    assert shoal(*words(), code=1).stderr.startswith("shoal: space.json: ")


@apart.test
def prices_must_be_there_for_what_costs():
    write("space.json", {"machines": ["medium", "nothing"], "count": 1})
    write("prices.csv", PRICES.replace("x,there,medium,4,16,0.3,0.1\n", ""))
    refuses(
        1,
        'space.json: "machines": nothing: prices.csv has no machine of such a name; it has small, '
        'medium, large',
        *words("--objective", "cost", run="true {machine}"))
    write("space.json", {"machines": ["medium", "large"], "count": 1})
    done = shoal(*words("--objective", "cost", "--spot", run="true {machine}"), code=1)
    assert "large" in done.stderr and "spot price" in done.stderr, done.stderr
    write("prices.csv", "cloud\n")
    assert shoal(*words("--objective", "cost", run="true {machine}"), code=1).stderr.startswith("shoal: prices.csv: ")


# ---- commands --------------------------------------------------------------------------------------------------------

@apart.test
def placeholders_are_checked():
    prepare()
    refuses(2, "--run: {cout} is not a parameter of space.json; did you mean {count}?",
            *words(run="./job {machine} {cout}"))
    refuses(2, "--run: {print} is not a parameter of space.json; write {{print}} for that text itself",
            *words(run="awk '{print}' {machine} {count}"))
    refuses(2, "--run: the command does not use {count}, which has 4 values in space.json",
            *words(run="./job {machine}"))
    refuses(2, "--run: the command does not use {machine}, which has 3 values in space.json",
            *words(run=""" ./job {count}"""))
    prepare({"machines": ["small"], "count": 1})
    refuses(2, "--run: the command is empty", *words(run=" "))
    prepare({"machines": [{"name": "a b"}]})
    for run in ("echo '{machine}'", 'echo "{machine}"', "echo `cat {machine}`", 'echo "$(cat "{machine}")"',
                "# it's\necho '{machine}'", "cat <<E\n{machine}\nE"):
        done = shoal(*words(run=run), code=2)
        assert done.stderr.startswith(
            "shoal: --run: {machine} stands between quotes or in a command with ` or <<, where its value 'a b' can't "
            "be quoted"
        ), (run, done.stderr)
    for number, run in enumerate(
        ("# it's\necho {machine}", "echo \"x\"{machine}'y'", "echo \\'{machine}", "echo $(echo {machine})")):
        search("--journal", f"{number}.jsonl", run=run)
        shown = pathlib.Path(f"{number}.output/1.stdout.txt").read_text()
        assert "a b" in shown and "''" not in shown, (run, shown)


@apart.test
def figures_that_a_command_tells_count():
    write("space.json", {"machines": [{"name": "a", "usd_per_hour": 3600}], "case": "0..15"})
    script("say", r"""#!/bin/sh
case $1 in
0) echo seconds=12.5;;
1) printf 'seconds=12.5';;
2) echo cost=0.25; echo seconds=7;;
3) echo 'seconds=7 cost=0.25'; echo;;
4) echo seconds=1; echo then; echo seconds=2;;
5) echo seconds=1; echo seconds=2;;
6) echo seconds=1; echo this was all;;
7) echo seconds=nothing;;
8) echo seconds=-1;;
9) echo seconds=3 >&2;;
10) echo 'it took seconds=3';;
11) head -c 100000 /dev/zero; echo; echo seconds=4;;
12) echo seconds=5; exit 1;;
13) echo 'seconds=500 were wasted';;
14) echo 'seconds=1 seconds=2';;
15) echo 'seconds=none at all';;
esac
""")
    found = json.loads(
        shoal("plan", "search", "--space", "space.json", "--run", "./say {case}", "--objective", "cost",
              "--improvement", 0, "--json").stdout)
    trials = {trial["case"]: trial for trial in found["trials"]}
    expected = {
        0: (12.5, 12.5), 1: (12.5, 12.5), 2: (7, 0.25), 3: (7, 0.25), 4: (2, 2), 5: (2, 2), 11: (4, 4), 14: (2, 2)
    }
    for case, (seconds, cost) in expected.items():
        assert trials[case]["outcome"] == "done" and (trials[case]["seconds"],
                                                      trials[case]["cost"]) == (seconds, cost), trials[case]
        assert trials[case].get("cost_told", False) == (case in (2, 3)), trials[case]
    for case in (6, 9, 10, 13, 15):
        assert trials[case][
            "outcome"] == "done" and 0 < trials[case]["seconds"] < 1 and trials[case]["seconds"] != 1, trials[case]
    for case, said in ((7, "seconds=nothing"), (8, "seconds=-1")):
        assert trials[case]["outcome"] == "failed" and trials[case]["said"] == said, trials[case]
    assert trials[12]["outcome"] == "failed" and trials[12]["exit"] == 1 and trials[12]["seconds"] != 5, trials[12]


@apart.test
def failures_are_trials():
    prepare({"machines": ["small", "large"], "count": [1, 2, 4]})
    script(
        "job",
        "#!/bin/sh\n[ $1 = large ] || { echo first; echo too small >&2; exit 3; }\n"
        "[ $2 = 4 ] && kill -9 $$\necho seconds=$2\n"
    )
    done = shoal(*words("--improvement", 0, run="exec ./job {machine} {count}"))
    rows = journal()[1:]
    assert len(rows) == 6
    for row in rows:
        if row["machine"] == "small":
            assert row["outcome"] == "failed" and row["exit"] == 3 and "signal" not in row
        elif row["count"] == 4:
            assert row["outcome"] == "failed" and row["signal"] == 9 and "exit" not in row
        else:
            assert row["outcome"] == "done"
    assert done.stderr.count("| too small") == 3 and "first" not in done.stderr, done.stderr
    assert done.stdout.count("(exit code 3 after ") == 3 and done.stdout.count("(signal 9 after ") == 1, done.stdout
    assert "; 4 failed" in done.stdout and "best       1 of large: 1.0 s" in done.stdout, done.stdout


@apart.test
def nothing_that_works_is_told():
    prepare()
    done = shoal(*words("--json", run="echo no {machine} {count} >&2; exit 7"), code=1)
    found = json.loads(done.stdout)
    assert found["best"] is None and found["trials"] and all(trial["outcome"] == "failed" for trial in found["trials"])
    assert done.stderr.endswith(
        f"shoal: all {len(found['trials'])} trials failed; the last: exit code 7\n"), done.stderr


@apart.test
def limits_that_nothing_meets_are_told():
    prepare()
    done = shoal(*words("--objective", "cost", "--deadline", "2m", "--improvement", 0, "--json"), code=1)
    assert json.loads(done.stdout)["best"] is None
    assert done.stderr.endswith(
        "shoal: nothing that was tried meets the deadline of 2.0 min: the fastest was 4 of large: 4.1 min, $0.136\n"
    ), done.stderr
    done = shoal(
        *words("--journal", "b.jsonl", "--objective", "cost", "--budget", "$0.01", "--improvement", 0, "--quiet"),
        code=1)
    assert done.stderr == (
        "shoal: nothing that was tried meets the budget of $0.0100: the fastest was 4 of large: 4.1 min, $0.136; "
        "the cheapest was 1 of small: 33.8 min, $0.0564\n").replace("33.8", "34"), done.stderr


@apart.test
def time_outs_end_everything_the_command_started():
    prepare({"machines": ["small"], "count": [1, 2]})
    script(
        "job",
        "#!/bin/sh\n[ $2 = 2 ] && trap '' TERM\nsleep 1000 & echo $! >> pids.txt\necho $$ >> pids.txt\n"
        "sleep 1000; sleep 1000\n"
    )
    done = shoal(*words("--timeout", "3s", "--json"), code=1)
    for trial in json.loads(done.stdout)["trials"]:
        assert trial["outcome"] == "timed out" and trial["seconds"] == 3
        assert abs(trial["cost"] - 3 * 0.1 * trial["count"] / 3600) < 1e-12
    pids = [int(pid) for pid in pathlib.Path("pids.txt").read_text().split()]
    assert pids
    processes.wait_until(lambda: all(processes.state(pid) in ("", "Z") for pid in pids), 300,
                         "the end of what was killed")
    assert done.stderr.endswith("shoal: all 2 trials failed; the last: timed out\n"), done.stderr


@apart.test
def what_a_command_leaves_behind_is_ended():
    prepare({"machines": ["small"], "count": 1})
    search(run="sleep 1000 & echo $! > pid.txt; echo {machine}")
    left = int(pathlib.Path("pid.txt").read_text())
    processes.wait_until(lambda: processes.state(left) in ("", "Z"), 300, "the end of what was left behind")


@apart.test
def commands_read_nothing_and_have_their_own_group():
    prepare({"machines": ["small"], "count": 1})
    search(run="cat; ps -o pgid= -p $$ | tr -d ' '; echo $$")
    group, leader = pathlib.Path("space.trials.output/1.stdout.txt").read_text().split()
    assert group == leader


# ---- the journal -----------------------------------------------------------------------------------------------------

# Stops at its n-th call until a file is there.
WAITING = JOB.replace("echo working\n",
                      "[ $(wc -l < calls.txt) = 4 ] && [ ! -e go ] && { echo $$ > waiting; sleep 1000; }\n")


def start_waiting(*more):
    """A search whose fourth command hangs."""
    script("job", WAITING)
    running = subprocess.Popen([SHOAL, *words("--objective", "cost", "--journal", "cut.jsonl", *more)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    processes.wait_until(lambda: os.path.exists("waiting") and pathlib.Path("waiting").read_text().endswith("\n"), 300,
                         "the fourth trial")
    return running, int(pathlib.Path("waiting").read_text())


def goes_on_like(reference):
    """The search that was cut goes on to the very journal of the one that was not."""
    write("go", "")
    before = len(journal("cut.jsonl")) - 1
    done = shoal(*words("--objective", "cost", "--journal", "cut.jsonl"))
    assert pathlib.Path("cut.jsonl").read_bytes() == pathlib.Path(reference).read_bytes()
    assert f"shoal: resumed with {before} trials from cut.jsonl\n" in done.stderr, done.stderr
    return done


@apart.test
def a_search_that_was_killed_goes_on():
    prepare()
    whole = shoal(*words("--objective", "cost", "--journal", "whole.jsonl"))
    os.unlink("calls.txt")
    running, command = start_waiting()
    running.kill()
    running.communicate()
    processes.wait_until(lambda: processes.state(command) in ("", "Z"), 300, "the command's end")
    assert len(journal("cut.jsonl")) == 4
    done = goes_on_like("whole.jsonl")
    assert done.stdout.replace("cut.jsonl", "whole.jsonl") == whole.stdout
    again = shoal(*words("--objective", "cost", "--journal", "cut.jsonl"))
    assert again.stdout == done.stdout
    assert len(calls()) == len(journal("whole.jsonl")) - 1 + 1


@apart.test
def a_signal_keeps_what_is_done():
    prepare()
    shoal(*words("--objective", "cost", "--journal", "whole.jsonl"))
    os.unlink("calls.txt")
    running, command = start_waiting()
    running.send_signal(signal.SIGINT)
    out, error = running.communicate(timeout=300)
    assert running.returncode == 130, error
    assert error.endswith(
        "shoal: interrupted; 3 trials are kept in cut.jsonl; run the same command to resume\n"), error
    processes.wait_until(lambda: processes.state(command) in ("", "Z"), 300, "the command's end")
    assert len(journal("cut.jsonl")) == 4
    os.unlink("waiting")
    write("calls.txt", "a\nb\nc\n")
    running, command = start_waiting("--json")
    running.terminate()
    out, error = running.communicate(timeout=300)
    assert running.returncode == 130 and json.loads(out)["stopped_because"] == "interrupted" and len(
        json.loads(out)["trials"]) == 3, (out, error)
    goes_on_like("whole.jsonl")


@apart.test
def a_line_that_was_cut_off_is_dropped():
    prepare()
    shoal(*words("--objective", "cost", "--journal", "whole.jsonl"))
    whole = pathlib.Path("whole.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    for text in (b"".join(lines[:4]) + lines[4][:20], b"".join(lines[:4]) + b"\0\0\0\0\n", b"".join(lines[:2]) + b"{",
                 lines[0][:30], b"", lines[0][:5]):
        pathlib.Path("cut.jsonl").write_bytes(text)
        done = shoal(*words("--objective", "cost", "--journal", "cut.jsonl"))
        assert pathlib.Path("cut.jsonl").read_bytes() == whole, text
        assert ("shoal: cut.jsonl: the last line was incomplete and is dropped\n"
                in done.stderr) == bool(text), (text, done.stderr)


@apart.test
def lines_can_be_removed_and_a_last_newline_too():
    prepare()
    shoal(*words("--objective", "cost", "--improvement", 0))
    path, output = pathlib.Path("space.trials.jsonl"), pathlib.Path("space.trials.output")
    lines = path.read_text().splitlines()
    kept = {name.name: name.read_bytes() for name in output.iterdir()}
    gone = json.loads(lines.pop(3))
    path.write_text("\n".join(lines))
    done = shoal(*words("--objective", "cost", "--improvement", 0))
    assert "resumed with 11 trials" in done.stderr and "incomplete" not in done.stderr, done.stderr
    header, *trials = journal()
    assert [json.loads(line) for line in lines] == [header, *trials[:-1]]
    assert (trials[-1]["machine"], trials[-1]["count"], trials[-1]["trial"]) == (gone["machine"], gone["count"],
                                                                                 13), trials[-1]
    assert all(
        (output / name).read_bytes() == text for name, text in kept.items()) and (output / "13.stdout.txt").exists()


@apart.test
def journals_of_something_else_are_left_alone():
    prepare()
    shoal(*words("--objective", "cost"))
    kept = pathlib.Path("space.trials.jsonl").read_bytes()
    tail = "; use --journal to name another file, or move this one away"
    refuses(2, "space.trials.jsonl has the trials of a search with another objective" + tail,
            *words("--objective", "time"))
    refuses(2, "space.trials.jsonl has the trials of a search with another command" + tail,
            *words("--objective", "cost", run="./job {machine} {count} "))
    write("prices.csv", PRICES.replace("0.5", "0.6"))
    refuses(2, "space.trials.jsonl has the trials of a search with other prices" + tail, *words("--objective", "cost"))
    prepare({**SPACE, "count": [1, 2, 4]})
    refuses(2, "space.trials.jsonl has the trials of a search with other machines or parameters" + tail,
            *words("--objective", "cost"))
    assert pathlib.Path("space.trials.jsonl").read_bytes() == kept
    prepare()
    for text in ("not mine\n", "not mine", "{}\n", '{"journal": 7}\n', "\n", "\0" * 5000):
        write("other.jsonl", text)
        refuses(1, "other.jsonl: not the journal of a search; use --journal to name another file",
                *words("--journal", "other.jsonl"))
        assert pathlib.Path("other.jsonl").read_text() == text
    lines = kept.decode().splitlines(keepends=True)
    for at, line, sentence in ((2, "{\n", "line 3: not JSON"), (2, lines[1],
                                                               "line 3 has the configuration of line 2 again"),
                               (1, '{"machine":"small","count":3}\n', 'line 2: no "count" that space.json has'),
                               (1, '{"machine":"small","count":4}\n', "line 2: outcome or seconds are missing"),
                               (1, lines[1].replace('"seconds":', '"seconds":-'),
                                "line 2: outcome or seconds are missing")):
        write("damaged.jsonl", "".join([*lines[:at], line, *lines[at + 1:]]))
        before = pathlib.Path("damaged.jsonl").read_text()
        done = shoal(*words("--journal", "damaged.jsonl", "--objective", "cost"), code=1)
        assert done.stderr == f"shoal: damaged.jsonl: {sentence}\n", done.stderr
        assert pathlib.Path("damaged.jsonl").read_text() == before
    write("later.jsonl", lines[0].replace('"version":1', '"version":2'))
    refuses(1, "later.jsonl: was written by another version of this program",
            *words("--journal", "later.jsonl", "--objective", "cost"))


@apart.test
def journals_that_cannot_be_written_are_told():
    prepare()
    refuses(1, "nowhere/j.jsonl: can't write the journal: No such file or directory",
            *words("--journal", "nowhere/j.jsonl"))
    refuses(1, ".: can't write the journal: Is a directory", *words("--journal", "."))
    refuses(2, "/dev/null: a journal must be a regular file", *words("--journal", "/dev/null"))
    write("full.output", "a file where the folder should be")
    done = shoal(*words("--journal", "full.jsonl"), code=1)
    assert "full.output/1.stdout.txt: can't write: Not a directory" in done.stderr, done.stderr
    assert not calls()


@apart.test
def a_full_disk_leaves_whole_lines():
    prepare()
    done = subprocess.run(["/bin/bash", "-c", 'ulimit -f 1; exec "$@"', "bash", SHOAL, *words("--objective", "cost")],
                          capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and "shoal: space.trials.jsonl: can't write the trial: " in done.stderr, done.stderr
    text = pathlib.Path("space.trials.jsonl").read_text()
    assert text.endswith("\n") and 2 < len(journal()) < 10
    shoal(*words("--objective", "cost"))
    assert pathlib.Path("space.trials.jsonl").read_text().startswith(text)


@apart.test
def two_searches_do_not_share_a_journal():
    prepare()
    running, _ = start_waiting()
    refuses(2, "cut.jsonl: another search is writing to it", *words("--objective", "cost", "--journal", "cut.jsonl"))
    running.terminate()
    running.communicate(timeout=300)


# ---- trials from elsewhere -------------------------------------------------------------------------------------------

@apart.test
def trials_from_elsewhere_are_taken_as_told():
    prepare()
    write("results.csv", "# measured before\n\nseconds,count,machine,outcome,cost,date\n"
          "2030,1,small,,,monday\n 300 , 4,large,done, 0.01 ,\n\"1\",8,\"large\",failed,,x\n500,2,medium,timed out,,\n")
    done = shoal(*words("--from", "results.csv", "--json", "--objective", "cost", run=None))
    found = json.loads(done.stdout)
    assert done.stderr == "shoal: results.csv: columns that are ignored: date\n", done.stderr
    assert [(t["machine"], t["count"], t["seconds"], t["outcome"])
            for t in found["trials"]] == [("small", 1, 2030, "done"), ("large", 4, 300, "done"),
                                          ("large", 8, 1, "failed"), ("medium", 2, 500, "timed out")]
    assert found["best"]["cost"] == 0.01 and "stopped_because" not in found
    following = (found["next"]["machine"], found["next"]["count"])
    assert following not in [("small", 1), ("large", 4), ("large", 8), ("medium", 2)] and found["next"]["why"]
    assert not os.path.exists("space.trials.jsonl") and not calls()
    people = shoal(*words("--from", "results.csv", "--objective", "cost", run=None)).stdout
    assert f"next       try {following[1]} of {following[0]}: " in people, people
    # With a command the search goes on from there, and tries first what it said.
    found = search("--from", "results.csv", "--objective", "cost")
    assert calls()[0] == f"{following[0]} {following[1]}" and len(
        found["trials"]) == 4 + len(calls()) == 4 + len(journal()) - 1
    assert search("--from", "results.csv", "--objective", "cost") == found


@apart.test
def wrong_results_are_told_by_line():
    prepare()
    head = "machine,count,seconds\n"
    for text, sentence in (
        ("", ": it has no trials"), (head, ": it has no trials"), ("machine,seconds\nsmall,3\n",
                                                                                     ": line 1 has no column count"),
        ("machine,count\nsmall,3\n", ": line 1 has no column seconds"), ("machine,count,seconds,count\n",
                                                                         ": line 1 has the column count twice"),
        (head + "smal,1,3\n", ": line 2: space.json has no machine smal; did you mean small?"),
        (head + "small,3,3\n", ": line 2: space.json has no count 3"), (head + "small,x,3\n",
                                                                        ": line 2: space.json has no count x"),
        (head + "small\n",
         ": line 2: space.json has no count that is empty"), (head + "small,1,-3\n",
                                                              ": line 2: seconds '-3' is not a number above 0"),
        (head + "small,1,\n",
         ": line 2: seconds '' is not a number above 0"), (head + "small,1,nan\n",
                                                            ": line 2: seconds 'nan' is not a number above 0"),
        (head + "small,1,3\n\nlarge,1,3\nsmall,1.0,4\n",
         ": line 5 has the configuration of line 2 again"), (head + "small,1,3,4\n",
                                                             ": line 2 has 4 fields, more than the 3 of the first"),
        ("machine,count,seconds,outcome\nsmall,1,3,lost\n",
         ": line 2: outcome 'lost' is not one of done, failed and timed out"),
        ("machine,count,seconds,cost\nsmall,1,3,free\n", ": line 2: cost 'free' is not a number above 0")):
        write("results.csv", text)
        done = shoal(*words("--from", "results.csv", "--json", run=None), code=1)
        assert done.stderr == f"shoal: results.csv{sentence}\n", (text, done.stderr)
    refuses(1, "none.csv: can't read: No such file or directory", *words("--from", "none.csv", "--json", run=None))


# ---- usage -----------------------------------------------------------------------------------------------------------

@apart.test
def wrong_usage_is_told():
    prepare()
    here = ("plan", "search")
    refuses(2, "plan search needs --space SPACE.json", *here)
    refuses(2, "plan search needs --run COMMAND to try configurations, or --from RESULTS.csv to print what to try next",
            *words(run=None))
    refuses(2, "--journal needs --run", *words("--from", "x", "--journal", "y", run=None))
    refuses(2, "--deadline: 'soon' is not a duration such as 30s, 90m, 2h, 1d or 1h30m", *words("--deadline", "soon"))
    refuses(2, "--timeout: '0s' is not more than 0", *words("--timeout", "0s"))
    refuses(2, "--budget: '5eur' is not an amount in US dollars such as 5usd or $5", *words("--budget", "5eur"))
    shoal(*words("--objective", "fame"), code=2)
    shoal(*words("--trials", 0), code=2)
    shoal(*words("--improvement", 2), code=2)
    assert not os.path.exists("space.trials.jsonl")


if __name__ == "__main__":
    apart.main(at_once=4)
