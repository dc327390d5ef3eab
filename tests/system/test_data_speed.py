#!/usr/bin/env python3
# Labels: asan
# Seconds: 6
"""`shoal data speed`: its figures beside numpy's from the runs that it writes down, sources of every kind, and what is
refused.

    test_data_speed.py PATH_TO_shoal [NAME...]
"""
import csv
import json
import os
import pathlib
import subprocess
import sys

import apart

try:
    import numpy as np
    from PIL import Image
except ImportError:
    print("python3-numpy or python3-pil is not here: skipped")
    sys.exit(77)

SHOAL = os.path.abspath(sys.argv[1])
SECONDS = 600
FEW = ["--size", "16x16", "--batch-sizes", "2", "--batches", "1", "--repeat", "2"]


def run(*words, code=0, says=()):
    done = subprocess.run([SHOAL, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=SECONDS)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    for text in says:
        assert text in done.stderr, (words, text, done.stderr)
    return done.stdout


def speed(*words, **options):
    return run("data", "speed", *words, **options)


def photographs(count=12):
    random = np.random.default_rng(5)
    for i in range(count):
        path = pathlib.Path("photos", "abc"[i % 3], f"{i:03}.{'png' if i % 5 == 4 else 'jpg'}")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (20 + i, 24, 3), dtype=np.uint8)).save(path)
    run("data", "pack", "photos", "packed", "--size", "16x16", "--shards", 3)
    return "photos", "packed"


def near(value, expected, what):
    assert abs(value - expected) <= 1e-5 * max(abs(expected), 1e-12), (what, value, expected)


def check_estimate(found, value, error, limit, what):
    near(found["value"], value, what)
    near(found["high"] - found["low"], 2 * limit * error, what)


def check_source(source, rows):
    """A source's figures by numpy; 1.96 and Student's t for 22 and 21 degrees of freedom are from tables."""
    column = {name: np.array([float(row[name]) for row in rows]) for name in rows[0] if name not in ("source", "kind")
              and row_has(rows, name)}
    column["data_size"] = column["batch_size"] * column["batches"]
    assert (column["images"] == column["data_size"]).all()
    rate = column["images"] / column["seconds"]
    assert np.allclose(rate, column["images_per_second"], rtol=1e-6)
    near(source["mean"], rate.mean(), "mean")
    near(source["median"], np.median(rate), "median")
    near(source["processor_seconds"], column["processor_seconds"].sum() / column["images"].sum(), "processor")
    for name, factor in source["factors"].items():
        x = column[name]
        r = np.corrcoef(x, rate)[0, 1]
        near(factor["correlation"]["value"], r, name)
        near(factor["correlation"]["low"], np.tanh(np.arctanh(r) - 1.959963985 / np.sqrt(len(x) - 3)), name)
        values, errors, r2 = least_squares(np.column_stack([np.ones_like(x), x]), rate)
        check_estimate(factor["slope"], values[1], errors[1], 2.0738730679, name)
        check_estimate(factor["intercept"], values[0], errors[0], 2.0738730679, name)
        assert abs(factor["r2"] - r2) < 1e-6, name
    design = np.column_stack([np.ones_like(rate), column["batches"], column["images"]])
    values, errors, r2 = least_squares(design, column["seconds"])
    for i, name in enumerate(("setup", "batch", "image")):
        check_estimate(source["fit"][name], values[i], errors[i], 2.0796138447, name)
    assert abs(source["fit"]["r2"] - r2) < 1e-6
    work, errors, _ = least_squares(design, column["processor_seconds"])
    for i, name in enumerate(("setup", "batch", "image")):
        check_estimate(source["processor_fit"][name], work[i], errors[i], 2.0796138447, name)
    explained = column["images"] / (design @ values)
    for name, factor in source["factors"].items():
        r = np.corrcoef(column[name], explained)[0, 1]
        assert abs(factor["correlation_of_fit"] - r) < 1e-4, (name, factor, r)


def row_has(rows, name):
    return all(row[name] for row in rows)


def least_squares(design, y):
    values = np.linalg.lstsq(design, y, rcond=None)[0]
    left = y - design @ values
    variance = left @ left / (len(y) - design.shape[1])
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * variance)
    return values, errors, 1 - left @ left / ((y - y.mean()) @ (y - y.mean()))


@apart.test
def figures_are_those_of_numpy():
    photos, packed = photographs()
    run("store", "put", "-r", "packed", "dir:st/there/", "--create")
    out = speed(photos, packed, "dir:st/there/packed", "--size", "16x16", "--batch-sizes", "2,3,5,8", "--batches",
                "1..2,4", "--repeat", 2, "--csv", "runs.csv", "--picture", "speed.svg", "--json", "--seed", 3)
    told = json.loads(out)
    rows = list(csv.DictReader(open("runs.csv", newline="", encoding="utf-8")))
    assert len(rows) == told["runs"] == 3 * 24, told["runs"]
    assert [source["kind"] for source in told["sources"]] == ["images", "tfrecord", "tfrecord"]
    assert [source["files"] for source in told["sources"]] == [12, 3, 3]
    assert told["size"] == "16x16" and told["cached"] and not told["cold"] and told["threads"] == 1
    combinations = {(row["source"], row["batch_size"], row["batches"], row["repetition"]) for row in rows}
    assert len(combinations) == len(rows)
    assert len({row["source"] for row in rows[:24]}) > 1  # the sources' runs are mixed
    for source in told["sources"]:
        check_source(source, [row for row in rows if row["source"] == source["name"]])
    near(told["seconds"][0], sum(float(row["seconds"]) for row in rows), "seconds")
    drawn = pathlib.Path("speed.svg").read_text()
    for text in ("photos (images)", "packed (TFRecord)", "batch size", "cores at work",
                 "cached: the runs are made once"):
        assert text in drawn, text
    assert drawn.count("r = ") == 3 * 4, drawn.count("r = ")


@apart.test
def what_people_see():
    photos, packed = photographs()
    out = speed(photos, packed, *FEW, "--cold", "--cached", "no", "--picture", "speed.png")
    for text in ("photos: images a second by", "batch size ", "data size", "in memory", "not cached: ",
                 "each of the 5 regressions", "needs runs of several batch sizes"):
        assert text in out, (text, out)
    assert pathlib.Path("speed.png").read_bytes().startswith(b"\x89PNG")
    assert Image.open("speed.png").size[0] == 2400
    out = speed(packed, *FEW, "--csv", "-", "-q").splitlines()
    assert len(out) == 3 and out[0].startswith("source,kind,pass,") and out[1].startswith('"packed",tfrecord,1,2,1,')
    assert speed(packed, *FEW, "-q") == ""
    shards = sorted(map(str, pathlib.Path(packed).glob("*.tfrec")))
    told = json.loads(speed(*shards, "photos/a/000.jpg", *FEW, "--json", "--threads", 3))
    assert [source["name"] for source in told["sources"]] == [f"{shards[0]} and 2 more", "photos/a/000.jpg"]
    assert told["sources"][0]["fit"]["setup"]["value"] is None and told["threads"] == 3


@apart.test
def broken_things_are_named_or_passed_over():
    photos, packed = photographs()
    shard = sorted(pathlib.Path(packed).glob("*.tfrec"))[1]
    data = bytearray(shard.read_bytes())
    data[60] ^= 1
    shard.write_bytes(data)
    many = ["--size", "16x16", "--batch-sizes", 12, "--batches", 2, "--repeat", 1]
    speed(packed, *many, code=1, says=[f"{shard}: record 1, byte 0: it is damaged"])
    out = speed(packed, *many, "--skip-broken")
    assert "passed over" in out and f"the first was {shard}: record 1, byte 0: it is damaged" in out, out
    told = json.loads(speed(packed, *many, "--skip-broken", "--json"))["sources"][0]
    assert told["skipped"] >= 2 and "it is damaged" in told["broken"], told
    os.truncate("photos/b/001.jpg", 300)
    speed(photos, *many, code=1, says=["photos/b/001.jpg: a broken JPEG image: the file is cut off"])
    assert "photos/b/001.jpg: a broken" in speed(photos, *many, "--skip-broken")


@apart.test
def wrong_input_gets_a_sentence():
    photos, packed = photographs(3)
    pathlib.Path("empty").mkdir()
    pathlib.Path("both").mkdir()
    for name in ("both/a.jpg", "both/b.tfrec", "own.csv"):
        pathlib.Path(name).write_text("of somebody else")
    run("store", "put", "-r", "packed", "dir:st/there/", "--create")
    for words, code, says in (
        ([], 2, "data speed needs"),
        (["absent"], 1, "absent: can't read"),
        (["empty"], 1, "empty: nothing to read: no names there end with .jpg"),
        (["both"], 2, "both: holds both images and TFRecords"),
        (["own.csv"], 1, "own.csv: is neither an image nor TFRecords"),
        (["/dev/null"], 2, "/dev/null: is neither a file nor a folder"),
        (["dir:st/there/nowhere"], 1, "dir:st/there/nowhere: nothing to read"),
        (["dir:absent/x"], 1, "there is no store"),
        (["dir:st/there", "--cold"], 2, "dir:st/there: --cold is for files of this machine"),
        ([packed, "--batch-sizes", "5,x"], 2, "--batch-sizes"),
        ([packed, "--batch-sizes", "0"], 2, "--batch-sizes"),
        ([packed, "--batches", "9..3"], 2, "--batches"),
        ([packed, "--repeat", "0"], 2, "--repeat"),
        ([packed, "--size", "16"], 2, "--size: '16' should be HEIGHTxWIDTH"),
        ([packed, "--cached", "maybe"], 2, "--cached"),
        ([packed, "--batch-sizes", "1000000", "--batches", "1000000"], 2, "are too many for a run"),
        ([packed, "--batch-sizes", "1000000", "--size", "16000x8000"], 1, "does not fit into memory"),
        ([packed, "--batch-sizes", "1..60", "--batches", "1..60", "--repeat", "1000"], 2, "runs; 100000 are the most"),
        ([packed, "--csv", "runs.txt"], 2, "--csv runs.txt: the name must end with .csv"),
        ([packed, "--csv", "own.csv"], 2, "--csv own.csv: the file holds something else"),
        ([packed, "--csv", "-", "--json"], 2, "--csv"),
        ([packed, "--picture", "speed.gif"], 2, "--picture"),
    ):
        speed(*words, code=code, says=[says])
    assert pathlib.Path("own.csv").read_text() == "of somebody else"
    speed(packed, *FEW, "-q", "--csv", "own.csv", "--force")
    speed(packed, *FEW, "-q", "--csv", "own.csv")  # now it is one of ours


apart.main(at_once=3)
