"""Table 3 of the paper of bench_seed002.py: a net trained on photographs of flowers, by batch size and strategy, beside
the paper's figures; and what freezing its layers saves.

The 200 flowers of ../shared/data are packed at 192x192 into 16 shards, of which 13 are trained on and 3 are scored, as
in the paper.  Its strategies are ways to run the same command here: none is one thread, mirrored is a thread for each
core, multi-worker mirrored is four worker processes.  For one batch size all of them must give the same weights and
accuracies to the last bit, which is checked.
"""
import hashlib
import json
import os
import pathlib
import resource
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHOAL = ROOT / "build" / "shoal"
NET = ROOT / "examples" / "flowers.net"
STRATEGIES = {"none": ["--threads", 1], "mirrored": [], "multi-worker mirrored": ["--workers", "local:4"]}
BATCHES = (32, 64, 128)
SHARDS, TRAINED = 16, 13

# Batch size, strategy, machine: seconds of 25 epochs, accuracy after them, and the greatest.
PAPER = ((32, "none", "complex_model_l_gpu", 157.434, 0.362, 0.362),
         (64, "none", "complex_model_l_gpu", 157.434, 0.308, 0.320),
         (128, "none", "complex_model_l_gpu", 153.631, 0.519, 0.519),
         (32, "none", "standard_gpu", 172.481, 0.243, 0.256),
         (64, "none", "standard_gpu", 157.205, 0.449, 0.449),
         (128, "none", "standard_gpu", 153.911, 0.487, 0.487),
         (32, "mirrored", "complex_model_l_gpu", 144.300, 0.242, 0.258),
         (64, "mirrored", "complex_model_l_gpu", 101.342, 0.399, 0.410),
         (128, "mirrored", "complex_model_l_gpu", 83.517, 0.502, 0.502),
         (32, "multi-worker mirrored", "standard_gpu - 4 workers", 143.234, 0.353, 0.353),
         (64, "multi-worker mirrored", "standard_gpu - 4 workers", 96.113, 0.401, 0.419),
         (128, "multi-worker mirrored", "standard_gpu - 4 workers", 76.851, 0.363, 0.369))


def pack(folder, flowers):
    """Two files, of the shards that are trained on and of the others."""
    packed = folder / "packed"
    subprocess.run([SHOAL, "data", "pack", flowers, packed, "--shards", str(SHARDS), "--shuffle", "1", "-q"],
                   check=True)
    shards = sorted(packed.glob("*.tfrec"))
    assert len(shards) == SHARDS, shards
    for name, some in (("train", shards[:TRAINED]), ("held", shards[TRAINED:])):
        (folder / f"{name}.tfrec").write_bytes(b"".join(shard.read_bytes() for shard in some))


def train(folder, *words, model="model.safetensors"):
    """What it tells, with the seconds by the clock and of processors, and the SHA-256 of the model."""
    command = [SHOAL, "train", "train.tfrec", "--validation", "held.tfrec", "--optimiser", "adam", "--rate", 0.003,
               "--keep", "last", "--model", model, "--force", "--json", *words]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise SystemExit(f"shoal train: {done.stderr}")
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    told = json.loads(done.stdout)
    return {"seconds": seconds, "of_processors": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "accuracy": told["validation_accuracy"], "greatest": max(told["epoch_validation_accuracy"]),
            "sha256": hashlib.sha256((folder / model).read_bytes()).hexdigest()}


def table_3(folder, epochs):
    rows = []
    for batch in BATCHES:
        ways = {}
        for strategy, words in STRATEGIES.items():
            ways[strategy] = train(folder, "--net", NET, "--batch", batch, "--epochs", epochs, *words,
                                   model=f"flowers{batch}.safetensors")
            rows.append({"batch": batch, "strategy": strategy, **ways[strategy]})
        if len({(way["accuracy"], way["greatest"], way["sha256"]) for way in ways.values()}) != 1:
            raise SystemExit(f"batch {batch}: the strategies differ: {ways}")
    return rows


def last_of_the_body(folder):
    """The layer before the head, as --describe counts them: the global pool."""
    table = subprocess.run([SHOAL, "train", "train.tfrec", "--net", NET, "--describe"], capture_output=True, text=True,
                           check=True, cwd=folder).stdout
    return [line.split()[0] for line in table.splitlines() if " average pool " in line][-1]


def course(folder, epochs):
    """The net of batch 32 gets a new head: all of it is trained, or its body is frozen, with a memo of what that gives
    and, since flipped images are computed anew, without."""
    text = NET.read_text().rsplit("dropout 0.2", 1)[0] + "flatten\ndense 5 softmax\n"
    (folder / "head.net").write_text(text)
    words = ["--net", "head.net", "--start", "flowers32.safetensors", "--batch", 64, "--epochs", epochs]
    frozen = ["--freeze", last_of_the_body(folder)]
    ways = {"all layers are trained": [], "the body is frozen, with --augment flip": [*frozen, "--augment", "flip"],
            "the body is frozen": frozen}
    return {name: train(folder, *words, *more) for name, more in ways.items()}


def print_table_3(rows, epochs, cores):
    print(f"A net of 117,637 parameters (examples/flowers.net), {epochs} epochs, 13 of 16 shards. This machine has "
          f"{cores} core{'s' * (cores > 1)}.\n")
    print("| batch | strategy | paper: on | seconds | accuracy | greatest | here: seconds | of processors | accuracy | "
          "greatest | SHA-256 |\n|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---|")
    for row in rows:
        for batch, strategy, machine, seconds, accuracy, greatest in PAPER:
            if (batch, strategy) != (row["batch"], row["strategy"]):
                continue
            print(f"| {batch} | {strategy} | {machine} | {seconds:.1f} | {accuracy:.3f} | {greatest:.3f} | "
                  f"{row['seconds']:.1f} | {row['of_processors']:.1f} | {row['accuracy']:.3f} | "
                  f"{row['greatest']:.3f} | {row['sha256'][:8]} |")


def print_course(told, epochs):
    print(f"\nThe net of batch 32 goes on with a new head, {epochs} epochs of batch 64.\n")
    print("| | seconds | of processors | accuracy |\n|---|---:|---:|---:|")
    for name, way in told.items():
        print(f"| {name} | {way['seconds']:.2f} | {way['of_processors']:.2f} | {way['accuracy']:.3f} |")


def measure(folder, flowers, quick):
    epochs = 2 if quick else 25
    pack(folder, flowers)
    load = os.getloadavg()[0]
    return {"epochs": epochs, "cores": len(os.sched_getaffinity(0)), "load_before": load,
            "table_3": table_3(folder, epochs), "course": course(folder, epochs)}


def show(report):
    print_table_3(report["table_3"], report["epochs"], report["cores"])
    print_course(report["course"], report["epochs"])
    print(f"\nFor each batch size weights and accuracies of all strategies have the same bits. Load before: "
          f"{report['load_before']:.1f}.")
