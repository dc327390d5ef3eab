#!/usr/bin/python3
"""shoal plan: the paper's numbers by the command line, choices that hold, prices, pictures, and wrong input.

    tests/system/test_plan.py SHOAL
"""
import json
import math
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as xml

import apart

SHOAL = os.path.abspath(sys.argv[1])
PAPER = [
    "--model", "paper", "--rows", "500000", "--cols", "1000", "-k", "1000", "--iterations", "10", "--flops", "669e6",
    "--bandwidth", "8e6"
]
CLOUD = ["--rows", "50e6", "--cols", "200", "-k", "500", "--iterations", "20", "--flops", "5e9"]
PRICES = """cloud,region,machine,vcpus,memory_gib,usd_per_hour,usd_per_hour_spot
here,one,small,2,8,0.1,0.03
here,one,large,16,64,0.9,
there,two,tiny,1,0.1,0.01,0.005
"""


def shoal(*words, code=0):
    """What it prints; or, where it is to fail, what it says."""
    done = subprocess.run([SHOAL, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=300)
    assert done.returncode == code, f"{words}: exit code {done.returncode}, {done.stderr}"
    return done.stderr if code else done.stdout


def plan(*words):
    return json.loads(shoal("plan", *words, "--json"))


@apart.test
def the_paper_by_its_command():
    mappers = [10, 50, 60, 70, 80, 90, 95, 100, 110, 120, 130, 140, 150, 160]
    printed = [0.63, 0.61, 0.60, 0.55, 0.53, 0.49, 0.48, 0.47, 0.43, 0.41, 0.37, 0.36, 0.33, 0.32]
    answer = plan("kmeans", *PAPER, "--workers", ",".join(map(str, mappers)))
    assert [row["workers"] for row in answer["rows"]] == mappers
    for row, efficiency in zip(answer["rows"], printed):
        assert abs(row["efficiency"] - efficiency) <= 0.01, row
        assert row["units"] == row["workers"] + -(-row["workers"] ** 0.5 // 1) + 1
        assert abs(row["speedup"] - row["sequential"] / row["seconds"]) < 1e-9
        assert row["cost"] > 0
    assert answer["best"]["workers"] == 171
    assert abs(answer["best"]["sequential"] - 22421.5) < 1
    said = " ".join(shoal("plan", "kmeans", *PAPER, "--workers", "10,160").split())
    assert "171 workers" in said and "= 171.3; of those listed, 160 take least" in said


@apart.test
def the_best_is_the_best_of_the_rows():
    words = ["kmeans", *CLOUD, "--machines", "aws:us-east-1/c7i.*", "--workers", "1..100"]
    for objective, key in (("time", lambda row: row["seconds"]), ("cost", lambda row: row["cost"]),
                           ("cost*time", lambda row: row["cost"] * row["seconds"])):
        answer = plan(*words, "--objective", objective)
        machines = list(dict.fromkeys(row["machine"] for row in answer["rows"]))
        assert [(row["machine"], row["workers"]) for row in answer["rows"]] == [(m, n) for m in machines
                                                                                for n in range(1, 101)]
        fitting = [row for row in answer["rows"] if row["fits"]]
        assert key(answer["best"]) == min(map(key, fitting)), objective
    deadline = 1.5 * answer["fastest"]["high"]
    answer = plan(*words, "--deadline", f"{deadline}s")
    met = [row for row in answer["rows"] if row["fits"] and row["high"] <= deadline]
    assert answer["best"]["cost"] == min(row["cost"] for row in met) and "cheapest" in answer["why"]
    budget = 1.5 * answer["cheapest"]["cost_high"]
    answer = plan(*words, "--budget", f"{budget}usd")
    met = [row for row in answer["rows"] if row["fits"] and row["cost_high"] <= budget]
    assert answer["best"]["seconds"] == min(row["seconds"] for row in met) and "fastest" in answer["why"]
    for row in answer["rows"]:
        beaten = any(other["seconds"] <= row["seconds"] and other["cost"] <= row["cost"] and
                     (other["seconds"], other["cost"]) != (row["seconds"], row["cost"]) for other in answer["rows"]
                     if other["fits"])
        assert not (row["front"] and beaten)


@apart.test
def a_table_of_ones_own_and_spot():
    path = "prices.csv"
    with open(path, "w") as file:
        file.write(PRICES)
    answer = plan("kmeans", *CLOUD, "--machines", path, "--workers", "64")
    assert {row["machine"] for row in answer["rows"]} == {"here:one/small", "here:one/large", "there:two/tiny"}
    assert [row["fits"] for row in answer["rows"]] == [True, True, False]
    spot = plan("kmeans", *CLOUD, "--prices", path, "--machines", "here:*", "--spot", "--workers", "64")
    assert [row["machine"] for row in spot["rows"]] == ["here:one/small"]
    assert spot["rows"][0]["parts"]["lost"] > 0 and spot["rows"][0]["cost"] < answer["rows"][0]["cost"]
    assert "lost" in spot["assumed"]


@apart.test
def every_learner():
    for words in (["kmeans", "-k", "10"], ["logistic"], ["autoencoder", "--hidden", "20"]):
        answer = plan(*words, "--rows", "1e6", "--cols", "50", "--flops", "1e9", "--iterations", "5", "--workers",
                      "1..20")
        assert answer["rows"][-1]["parts"]["map"] < answer["rows"][0]["parts"]["map"] / 10, words
        parts = sum(answer["best"]["parts"].values())
        assert abs(parts - answer["best"]["seconds"]) < 1e-9 * parts


@apart.test
def from_data_and_measured_on_the_spot():
    path = "rows.npy"
    shoal("data", "convert", "gen:uniform?rows=2000&cols=7", path)
    answer = plan("kmeans", path, "-k", "5", "--workers", "local:1..3", "--iterations", "4")
    assert answer["job"]["rows"] == 2000 and answer["job"]["columns"] == 7
    assert 0 < answer["best"]["seconds"] < 60 and answer["calibration"] is None


def processor_seconds(*words):
    """What a run takes of the processor, which others do not change."""
    process = subprocess.Popen([SHOAL, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return used.ru_utime + used.ru_stime


@apart.test
def this_machine_where_no_workers_are_named():
    shoal("data", "convert", "gen:uniform?rows=5000&cols=16", "rows.npy")
    answer = plan("kmeans", "rows.npy", "-k", "100")
    cores = answer["crew"]["cores"]
    threads = [row["threads"] for row in answer["rows"] if row["workers"] == 0]
    assert answer["here"] and answer["store"] == "dir" and answer["default_threads"] == cores
    assert threads == sorted(set(threads)) and threads[0] == 1 and threads[-1] == cores
    assert [row["workers"] for row in answer["rows"][len(threads):]][0] == 2
    # Small work is done by threads, in the time that it takes, or twenty times that where others have the processor
    # while it is tried: not in the 190 times of it that were said once, of one worker and a store far away.
    assert answer["best"]["workers"] == 0 and "threads here are fastest" in answer["why"]
    one, used = answer["rows"][0], processor_seconds("kmeans", "rows.npy", "-k", "100", "--threads", "1", "--quiet")
    assert used / 20 < one["seconds"] < 20 * used, (one, used)
    assert abs(one["speedup"] - 1) < 1e-9 and abs(one["efficiency"] - 1) < 1e-9, one
    said = shoal("plan", "kmeans", "rows.npy", "-k", "100")
    assert "--threads 1" in said and "--workers local:2" in said and "s3" not in said and "default" in said
    assert "as in a trial on all rows" in " ".join(said.split())
    one = plan("kmeans", "rows.npy", "-k", "100", "--threads", cores + 3)
    assert one["default_threads"] == cores + 3 and {row["threads"] for row in one["rows"]} > {1, cores + 3}
    asked = plan("kmeans", "rows.npy", "-k", "100", "--workers", "1..8")
    assert not asked["here"] and asked["without_workers"]["seconds"] < asked["best"]["seconds"]
    assert plan("kmeans", "rows.npy", "-k", "100", "--workers", 4)["crew"]["local"]
    said = shoal("plan", "kmeans", "rows.npy", "-k", "100", "--workers", "1..8")
    assert "faster without workers" in " ".join(said.split())


@apart.test
def a_busy_machine_is_told():
    shoal("data", "convert", "gen:uniform?rows=5000&cols=16", "rows.npy")
    spinners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * os.cpu_count())]
    try:
        words = ["kmeans", "rows.npy", "-k", "100", "--no-probe", "--flops", "1e10"]
        answer, said = plan(*words), " ".join(shoal("plan", *words).split())
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
    assert answer["busy"] > 0.3, answer
    assert re.search(r"busy other programs use \d+% of the processor now", said), said
    best = answer["best"]
    assert best["high"] / best["seconds"] > 1.5 * best["seconds"] / best["low"], best


@apart.test
def what_is_missing_is_told_as_the_command_does():
    shoal("data", "convert", "gen:uniform?rows=50&cols=3", "rows.npy")
    assert shoal("plan", "kmeans", "rows.npy", code=2) == shoal("kmeans", "rows.npy", code=2).replace(
        "shoal kmeans -h", "shoal plan kmeans -h")


@apart.test
def every_learner_here():
    shoal("data", "convert", "gen:uniform?rows=300&cols=4", "rows.csv")
    with open("rows.csv") as file:
        lines = file.read().split()
    with open("labelled.csv", "w") as file:
        file.write("".join(f"{line},{i % 2}\n" for i, line in enumerate(lines)))
    for words in (["kmeans", "rows.csv", "-k", "3"], ["logistic", "labelled.csv"], ["bayes", "labelled.csv"],
                  ["autoencoder", "rows.csv", "--hidden", "2", "--iterations", "3"]):
        answer = plan(*words)
        assert answer["here"] and answer["best"]["workers"] == 0 and answer["best"]["seconds"] < 10, words
        assert answer["best"]["parts"]["load"] > 0 and answer["best"]["parts"]["start"] > 0
    # Rows are read as the command reads them: columns that are left out, classes that are words.
    with open("words.csv", "w") as file:
        file.write("kind,a,b\n" + "".join(f"{'cat' if i % 3 else 'dog'},{i % 7},{i * i % 11}\n" for i in range(90)))
    for words in (["kmeans", "-k", "3", "--drop-column", "kind"], ["logistic", "--target", "kind", "--standardise"],
                  ["bayes", "-y", "1"]):
        answer = plan(words[0], "words.csv", *words[1:])
        assert answer["job"]["rows"] == 90 and answer["best"]["seconds"] < 10, words
    said = shoal("plan", "kmeans", "words.csv", "-k", "3", code=1)
    assert "words.csv" in said and "--drop-column kind" in said, said
    said = shoal("plan", "kmeans", "no-such-file.csv", "-k", "3", "--deadline", "soon", code=2)
    assert "--deadline" in said, said  # before rows are read


@apart.test
def a_picture_of_this_machine():
    shoal("plan", "kmeans", *CLOUD, "--picture", "here.svg")
    text = "".join(xml.parse("here.svg").getroot().itertext())
    assert "threads or processes" in text and "against workers" not in text


@apart.test
def a_picture():
    path = "plan.svg"
    shoal("plan", "kmeans", *CLOUD, "--machines", "aws:us-east-1/c7i.*", "--deadline", "2d", "--picture", path)
    root = xml.parse(path).getroot()
    assert root.tag.endswith("svg")
    text = "".join(root.itertext())
    assert "kmeans" in text and "c7i" in text
    shoal("plan", "kmeans", *CLOUD, "--machines", "aws:us-east-1/c7i.*", "--deadline", "2d", "--picture", "plan.png")
    with open("plan.png", "rb") as file:
        width, height = struct.unpack(">8x8xII", file.read(24))
    assert (width, height) == (2 * int(root.get("width")), math.ceil(2 * float(root.get("height"))))


@apart.test
def json_has_all_of_it():
    answer = plan("kmeans", *CLOUD, "--machines", "aws:us-east-1/c7i.*", "--workers", "1..100", "--deadline", "1d",
                  "--budget", "900usd", "--latency", "0.5", "--start", "0m")
    goal = answer["goal"]
    assert (goal["objective"], goal["deadline"], goal["budget"]) == ("cost", 86400, 900)
    met = [row for row in answer["rows"] if row["fits"] and row["in_time"] and row["in_budget"]]
    assert len(met) == goal["meeting"] and 0 < len(met) < len(answer["rows"])
    for row in answer["rows"]:
        assert row["in_time"] == (row["high"] <= 86400) and row["in_budget"] == (row["cost_high"] <= 900), row
    assert answer["constants"]["site"]["get"] == 0.5 and answer["constants"]["paces"][0]["operation"] == 1 / 5e9
    assert answer["crew"]["start"] == 0 and answer["job"]["rounds"] >= 20 and answer["prices_date"] == "2026-08"
    assert answer["priced"] and not plan("kmeans", *CLOUD)["priced"]


@apart.test
def a_table_fits_a_terminal():
    header = "cloud,region,machine,vcpus,memory_gib,usd_per_hour\n"
    with open("many.csv", "w") as file:
        file.write(header)
        file.writelines(f"here,one,machine{i},{1 + i % 64},{16 + i % 256},{0.01 * (1 + i % 97):.2f}\n"
                        for i in range(3000))
    for words in (["--workers", "1..3000"], ["--machines", "aws:us-east-1/c7i.*"], ["--workers", "local:1..8"],
                  ["--machines", "many.csv", "--objective", "cost", "--workers", "1..40"],
                  ["--price", "0.5", "--workers", "1..3000"]):
        lines = shoal("plan", "kmeans", *CLOUD, *words).splitlines()
        assert max(map(len, lines)) <= 80 and len(lines) <= 50, "\n".join(lines)
        assert sum(line.startswith("*") for line in lines) == 1
        assert any(line.startswith("best ") for line in lines)


@apart.test
def without_prices_there_is_no_price():
    said = shoal("plan", "kmeans", *CLOUD, "--workers", "1..256", "--deadline", "9d")
    assert "$" not in said and "price" not in said.splitlines()[0] and "unknown price" in " ".join(said.split())
    assert "fastest" in said


@apart.test
def calibrations_that_are_none():
    variables = dict(os.environ, XDG_CONFIG_HOME=os.path.abspath("config"))
    words = [SHOAL, "plan", "kmeans", *CLOUD]
    os.makedirs("config/shoal")
    with open("config/shoal/calibration.json", "w") as file:
        file.write('{"version": 1')
    done = subprocess.run(words, env=variables, capture_output=True, text=True)
    assert done.returncode == 1 and "calibration.json" in done.stderr and "--fresh" in done.stderr and not done.stdout
    assert subprocess.run([*words[:3], *PAPER], env=variables, capture_output=True).returncode == 0
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        variables.pop(name, None)
    done = subprocess.run(words, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@apart.test
def rows_that_a_learner_refuses():
    with open("rows.csv", "w") as file:
        file.write("".join(f"{i},{'nan' if i == 40 else i * i}\n" for i in range(200)))
    said = shoal("plan", "kmeans", "rows.csv", "-k", "3", "--workers", "local:2", code=1)
    assert said.startswith("shoal: rows.csv: ") and "row 41" in said


@apart.test
def the_same_twice():
    words = ["plan", "kmeans", *CLOUD, "--machines", "*", "--spot", "--workers", "1..50", "--json"]
    assert shoal(*words) == shoal(*words)


WRONG = [(["kmeans", "--rows", "0", "--cols", "3", "-k", "2"], 2, "--rows"),
         (["kmeans", "--rows", "1e30", "--cols", "3", "-k", "2"], 2, "--rows"),
         (["kmeans", "--rows", "5", "-k", "2"], 2, "--cols"), (["kmeans", "--rows", "5", "--cols", "3"], 2, "-k"),
         (["kmeans", "--rows", "5", "--cols", "3", "-k", "9"], 1, "-k 9"),
         (["kmeans", *CLOUD, "--workers", "0"], 2, "--workers"),
         (["kmeans", *CLOUD, "--workers", "9..3"], 2, "--workers"),
         (["kmeans", *CLOUD, "--workers", "1..2,,3"], 2, "--workers"),
         (["kmeans", *CLOUD, "--workers", "1..1000000"], 2, "--workers"),
         (["kmeans", *CLOUD, "--workers", "local:2", "--machines", "*"], 2, "--machines"),
         (["kmeans", *CLOUD, "--machines", "aws:us-east-1/c7j.*"], 2, "c7i"),
         (["kmeans", *CLOUD, "--machines", "none.csv"], 1, "none.csv"), (["kmeans", *CLOUD, "--spot"], 2, "--machines"),
         (["kmeans", *CLOUD, "--deadline", "soon"], 2, "--deadline"),
         (["kmeans", *CLOUD, "--budget", "-3"], 2, "--budget"),
         (["kmeans", *CLOUD, "--machines", "aws:*", "--budget", "1e-9usd"], 1, "the cheapest is"),
         (["kmeans", *CLOUD, "--machines", "aws:*", "--deadline", "1s"], 1, "the fastest is"),
         (["kmeans", *CLOUD, "--losses", "1e6"], 1, "--losses"), (["kmeans", *CLOUD, "--losses", "-1"], 2, "--losses"),
         (["kmeans", *CLOUD, "--straggle", "lots"], 2, "--straggle"),
         (["kmeans", *CLOUD, "--reduce", "star"], 2, "--reduce"), (["kmeans", "no.npy", "-k", "2"], 1, "no.npy"),
         (["logistic", "--model", "paper", "--rows", "5", "--cols", "3"], 2, "k-means only"),
         (["kmeans", *CLOUD, "--picture", "/nowhere/plan.svg"], 1, "/nowhere"), (["exec", "--rows",
                                                                                  "5"], 2, "plan exec"),
         # What would have no effect.
         (["kmeans", *CLOUD, "--price", "1", "--machines", "aws:*"], 2, "--price"),
         (["kmeans", *CLOUD, "--budget", "5usd"], 2, "--budget needs the price of a machine"),
         (["kmeans", *CLOUD, "--objective", "cost"], 2, "--objective needs the price of a machine"),
         (["kmeans", *CLOUD, "--billed", "1h"], 2, "--billed needs the price of a machine"),
         (["kmeans", *CLOUD, "--replace", "5m"], 2, "--losses"), (["kmeans", *CLOUD, "--price", "x"], 2, "--price"),
         (["kmeans", *CLOUD, "--store", "foo://x"], 2, "--store foo://x"),
         (["kmeans", *CLOUD, "--store", ""], 2, "--store"), (["kmeans", *CLOUD, "--picture", "plan.pdf"], 2, ".svg"),
         (["kmeans", "no.npy", "--type", "float64", "-k", "2"], 2, "--type"),
         (["kmeans", *CLOUD, "--machines", "aws:"], 2, "--machines aws:"),
         *((["kmeans", *PAPER, *words], 2, words[0])
           for words in (["--threads", "2"], ["--type", "uint8"], ["--source", "file"], ["--reduce", "flat"],
                         ["--roles", "split"], ["--spot"], ["--speed", "2"], ["--start", "5s"], ["--losses", "1"],
                         ["--replace", "1m"], ["--store", "dir"], ["--no-probe"], ["--account-bandwidth", "1e9"],
                         ["--latency", "1"], ["--connections", "2"], ["--straggle", "1"], ["--workers", "local:2"],
                         ["--machines", "*"], ["--prices", "prices.csv"])), ]


@apart.test
def wrong_input():
    for words, code, needle in WRONG:
        said = shoal("plan", *words, code=code)
        assert needle in said, f"{words}: '{said.strip()}' does not have '{needle}'"
        assert said.startswith("shoal: ") and len(said.splitlines()) <= 2, said


@apart.test
def wrong_price_tables():
    for change, needle in (("here,one,small,2,8,0.2,\n", "5"), ("here,one,odd,2,8,-3,\n", "5"),
                           ("here,one,odd,2\n", "5"), ("here,one,odd,2,8,,\n", "5")):
        path = "wrong.csv"
        with open(path, "w") as file:
            file.write(PRICES + change)
        said = shoal("plan", "kmeans", *CLOUD, "--machines", path, code=1)
        assert "wrong.csv" in said and needle in said, said
    with open(path, "w") as file:
        file.write("cloud,region,machine,vcpus\na,b,c,1\n")
    assert "memory_gib" in shoal("plan", "kmeans", *CLOUD, "--machines", path, code=1)


if __name__ == "__main__":
    apart.main(at_once=2)
