#!/usr/bin/env python3
# Seconds: 20
"""What people meet when they train nets: best weights, early stopping, rates that diverge, augmentation, validation
sets, sorted files, pictures, every kind of file, and what is said of wrong input.

    test_train_people.py PATH_TO_shoal
"""
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import nobody  # so that no run is in the history of whoever runs this

import numpy as np

import mpi

SHOAL = os.path.abspath(sys.argv[1])
LINEAR = "dense 4 softmax"
failed = 0


def check(what, condition, more=""):
    global failed
    if not condition:
        failed += 1
        print(f"FAILED {what} {more}", flush=True)


def shoal(*words, **more):
    return subprocess.run([SHOAL, *map(str, words)], capture_output=True, text=True, timeout=300, **more)


def save_images(name, rows, channels=1, seed=0, side=10, bright=120):
    """Images of four classes, each a bright square in another quarter, as bytes; height, width, channels."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 4, rows)
    images = random.integers(0, 90, (rows, side, side, channels)).astype(np.uint8)
    for image, label in zip(images, labels):
        y, x = label // 2 * side // 2, label % 2 * side // 2
        image[y:y + side // 2 - 1, x:x + side // 2 - 1] += bright
    np.save(f"{name}.npy", images[..., 0] if channels == 1 else images)
    np.save(f"{name}-labels.npy", labels.astype(np.uint8))
    return images, labels


def read_model(path):
    content = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    about = header.pop("__metadata__")
    kinds = {"F32": "<f4", "F64": "<f8"}
    return {name: np.frombuffer(content[8 + size:][slice(*place["data_offsets"])], kinds[place["dtype"]])
            .reshape(place["shape"]).astype(float) for name, place in header.items()}, about


def run(data, *options, model="model.safetensors", **more):
    return shoal("train", f"{data}.npy", "--target", f"{data}-labels.npy", "--model", model, "--force", *options,
                 **more)


def train(data, *options, model="model.safetensors", **more):
    done = run(data, "--json", *options, model=model, **more)
    assert done.returncode == 0, (options, done.stderr)
    return json.loads(done.stdout), read_model(model)[0]


def weights_of(tensors):
    return {name: value for name, value in tensors.items() if name != "history"}


def same_weights(a, b):
    return all(np.array_equal(value, b[name]) for name, value in weights_of(a).items())


# ---- which weights a model has ---------------------------------------------------------------------------------------


# Noise that a net learns by heart: the validation loss goes down, and up again.
HEART = ["--net", "dense 30 relu; dense 4 softmax", "--validation", 0.4, "--schedule", "constant", "--rate", 0.1,
         "--batch", 16]


def best_weights():
    save_images("noise", 200, seed=3, bright=8)
    told, best = train("noise", *HEART, "--epochs", 30)
    losses = best["history"][:, 2]
    epoch = int(losses.argmin()) + 1
    check("epochs after the best one", 1 < epoch < 25, losses)
    check("the best epoch is told", told["epoch"] == epoch and told["epochs"] == 30 and
          told["validation_loss"] == losses.min(), told)
    _, last = train("noise", *HEART, "--epochs", epoch, "--keep", "last")
    check("the weights are those of the best epoch", same_weights(best, last))
    told, final = train("noise", *HEART, "--epochs", 30, "--keep", "last")
    check("--keep last", not same_weights(best, final) and told["epoch"] == 30, told)
    for way in (["--threads", 1], ["--workers", "local:2"]):
        _, again = train("noise", *HEART, "--epochs", 30, *way)
        check(f"the same with {way}", same_weights(best, again))
    told, early = train("noise", *HEART, "--epochs", 30, "--early-stop", 3)
    since = [i for i in range(30) if losses[i] < losses[:i].min(initial=np.inf)]
    ends = next(i for i in range(30) if i - max(j for j in since if j <= i) >= 3) + 1
    check("--early-stop", told["stopped_early"] and told["epochs"] == ends, (told, ends, losses))
    done = run("noise", *HEART, "--epochs", 30, "--early-stop", 3)
    check("it is said", "the validation loss has not improved for 3 epochs" in done.stdout and
          "whose weights are kept" in done.stdout, done.stdout)


def resumed_in_the_middle():
    """Killed again and again, and resumed with other threads: best weights, history and augmentation go on."""
    words = ["train", "noise.npy", "--target", "noise-labels.npy", *HEART, "--shape", "10x10", "--augment",
             "flip,crop:2,shift:1", "--epochs", 60, "--early-stop", 40, "--force"]
    done = shoal(*words, "--model", "whole.safetensors")
    assert done.returncode == 0, done.stderr
    kept = [*words, "--model", "resumed.safetensors", "--quiet", "--checkpoint", 0.001, "--checkpoint-file", "c"]
    for threads in (1, 2):
        running = subprocess.Popen([SHOAL, *map(str, kept), "--resume", "--threads", str(threads)])
        before = os.stat("c").st_mtime_ns if os.path.exists("c") else 0
        while running.poll() is None and (not os.path.exists("c") or os.stat("c").st_mtime_ns == before):
            pass
        running.send_signal(signal.SIGKILL)
        running.wait()
    done = shoal(*kept, "--resume", "--threads", 3)
    check("resumed", done.returncode == 0, done.stderr)
    check("the same bytes", pathlib.Path("whole.safetensors").read_bytes() ==
          pathlib.Path("resumed.safetensors").read_bytes())


def stopped():
    """Ctrl-C in the middle of a run: the best weights so far are written, and the exit code says so."""
    for more in ([], ["--workers", "local:1"]):
        words = ["noise.npy", "--target", "noise-labels.npy", *HEART, "--epochs", 1000000, "--model", "c.safetensors",
                 "--force", "--trace", "trace.fifo", *more]
        if os.path.exists("trace.fifo"):
            os.remove("trace.fifo")
        os.mkfifo("trace.fifo")
        running = subprocess.Popen([SHOAL, "train", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        with open("trace.fifo") as trace:
            for line in trace:
                if json.loads(line).get("step", 0) >= 250:
                    running.send_signal(signal.SIGINT)
                    break
            for line in trace:
                pass
        told = running.communicate(timeout=60)
        if more:
            check("a job can go on", running.returncode == 3 and "job resume" in told[1], told)
            continue
        _, best = train("noise", *HEART, "--epochs", 30)
        check("stopped", running.returncode == 130 and "the weights are those that epoch" in told[1], told)
        check("the best weights", same_weights(read_model("c.safetensors")[0], best))


def diverges():
    """A penalty so great that weights grow in every step, until they are no numbers."""
    save_images("some", 700, seed=4)
    bad = ["--net", LINEAR, "--optimiser", "sgd", "--rate", 0.5, "--l2", 5, "--schedule", "constant"]
    for more, epoch in (([], 1), (["--workers", "local:2"], 1), (["--keep", "last"], None)):
        if os.path.exists("d.safetensors"):
            os.remove("d.safetensors")
        done = run("some", *bad, "--epochs", 90, *more, model="d.safetensors")
        found = "the loss is no longer finite in epoch" in done.stderr and "try a lower --rate than 0.5" in done.stderr
        check(f"diverged {more}", done.returncode == 1 and found, done.stderr)
        tensors, _ = read_model("d.safetensors")
        ended = len(tensors["history"])
        check("the good epoch is told", done.stderr.endswith(f"the weights are those of epoch {epoch or ended}\n"),
              done.stderr)
        _, good = train("some", *bad, "--epochs", epoch or ended)
        check("its weights are written", ended > 5 and same_weights(tensors, good), (more, ended))
    for more in ([], ["--validation", 0.2]):  # the last step of all goes beyond float32, and no gradient follows
        done = run("some", *bad[:4], "--rate", 1e6, "--l2", 1e6, "--schedule", "constant", "--batch", 700, "--epochs",
                   4, *more, model="d.safetensors")
        check("a last step too far", done.returncode == 1 and "no longer finite in epoch 4, step 1" in done.stderr,
              done.stderr)
        check("weights of before", all(np.isfinite(t).all() for name, t in read_model("d.safetensors")[0].items()
                                       if name != "history"))


# ---- validation rows of their own, sorted files, curves --------------------------------------------------------------


def arrangement(rows, held, per_grain, strata):
    """Places of held rows among all, as docs/learn/train.md and shoal/learn.h say."""
    whole = rows + held
    grains = -(-whole // per_grain)
    bounds = [min(s * grains // strata * per_grain, whole) for s in range(strata + 1)]
    ends = [bound * held // whole for bound in bounds]
    places = []
    for first, end, before, after in zip(bounds, bounds[1:], ends, ends[1:]):
        places += range(end - (after - before), end)
    return places


def validation_data():
    """Rows of a file of their own are held out: as a file in which they lie where a share of it is held out."""
    images, labels = save_images("some", 700, seed=4, bright=40)
    other, known = save_images("other", 140, seed=5, bright=40)
    net = ["--net", "conv 4 3x3 relu; pool 2; dense 4 softmax", "--epochs", 3, "--grain", 28]
    apart = ["--validation", "other.npy", "--validation-target", "other-labels.npy"]
    told, best = train("some", *net, *apart, model="apart.safetensors")
    places = arrangement(700, 140, 28, 8)
    all_images, all_labels = np.zeros((840, 10, 10), np.uint8), np.zeros(840, np.uint8)
    own = np.setdiff1d(np.arange(840), places)
    all_images[own], all_labels[own] = images[..., 0], labels
    all_images[places], all_labels[places] = other[..., 0], known
    np.save("whole.npy", all_images)
    np.save("whole-labels.npy", all_labels)
    _, whole = train("whole", *net, "--validation", 1 / 6)
    check("dealt behind each stratum", same_weights(best, whole) and
          np.array_equal(best["history"], whole["history"]), best["history"])
    check("both are told", told["rows"] == 700 and told["validation_rows"] == 140 and
          told["validation_data"] == "other.npy", told)
    done = shoal("predict", "apart.safetensors", "other.npy", "--target", "other-labels.npy", "--score", "--json")
    score = json.loads(done.stdout)["score"]
    check("its score is predict's", abs(score["accuracy"] - told["validation_accuracy"]) < 1e-12 and
          abs(score["log_loss"] - told["validation_loss"]) < 1e-6, (score, told))
    for way in (["--threads", 1], ["--threads", 3], ["--workers", "local:3"]):
        check(f"the same with {way}", same_weights(best, train("some", *net, *apart, *way)[1]))
    for kind in mpi.KINDS:
        work = mpi.Work("train", "some.npy", "--target", "some-labels.npy", *net, *apart,
                        files={"--model": "ranks.safetensors"})
        check("ranks are compared with these", same_weights(best, read_model(f"{work.expected}/ranks.safetensors")[0]))
        work.agrees(kind, 2)
    done = run("some", *net, *apart, "--store", "dir:jobs/", "--detach", "--shuffle-rows", model="job.safetensors")
    os.makedirs("elsewhere")
    done = shoal("job", "resume", done.stdout.strip(), "--store", "dir:../jobs", "--workers", "local:1", "--json",
                 cwd="elsewhere")
    told = json.loads(done.stdout or "{}")
    check("a job remembers it", told.get("rows") == 700 and told.get("validation_rows") == 140 and same_weights(
        read_model("job.safetensors")[0], train("some", *net, *apart, "--shuffle-rows")[1]), done)
    lines = "\n".join(f"{image.sum()},{label},{'abcd'[label]}" for image, label in zip(other, known))
    pathlib.Path("words.csv").write_text("a,b,kind\n" + lines + "\n")
    pathlib.Path("fewer.csv").write_text("a,b,kind\n" + "\n".join(
        line for line in lines.split("\n") if "c" not in line) + "\n")
    table = ["--net", "dense 4 softmax", "--target", "kind", "--validation"]
    done = shoal("train", "words.csv", *table, "fewer.csv", "--epochs", 1, "--model", "w.safetensors", "--force")
    check("classes in words", done.returncode == 0, done.stderr)
    np.save("wide.npy", np.zeros((9, 11, 10), np.uint8))
    np.save("turned.npy", np.zeros((9, 20, 5), np.uint8))
    np.save("floats.npy", np.zeros((140, 10, 10), np.float32))
    np.save("nine.npy", np.arange(9, dtype=np.uint8) % 4)
    np.save("far.npy", np.full(140, 7, np.uint8))
    pathlib.Path("nan.csv").write_text("a,b,kind\n1,2,a\n1,nan,b\n")
    pathlib.Path("more.csv").write_text("a,b,kind\n1,2,a\n1,3,e\n")
    pathlib.Path("other.csv").write_text("a,x,kind\n1,2,a\n1,3,b\n")
    cases = [
        (["some", "other.npy"], "other.npy has 100 columns with its target, but the rows to train on have 101; "
         "--validation-target FILE says"),
        (["some", "wide.npy", "nine.npy"], "wide.npy has 111 columns"),
        (["some", "turned.npy", "nine.npy"], "turned.npy has images of another shape"),
        (["some", "floats.npy", "other-labels.npy"],
         "floats.npy has float32 values, but the rows to train on have uint8"),
        (["some", "other.npy", "far.npy"], "row 1 of other.npy is of class 7, which no row of some.npy is"),
        (["some", "none.npy"], "--validation: none.npy: can't read"),
        (["words.csv", "nan.csv"], "nan.csv: 1 value is missing, the first in row 2"),
        (["words.csv", "more.csv"], "row 2 of more.csv is 'e', which no row of words.csv is"),
        (["words.csv", "other.csv"], "other.csv has a column 'x' where the rows to train on have 'b'"),
    ]
    for (data, held, *target), says in cases:
        more = ["--validation-target", *target] if target else []
        if data == "some":
            done = run(data, "--net", LINEAR, "--validation", held, *more, model="never.safetensors")
        else:
            done = shoal("train", data, *table, held, "--model", "never.safetensors")
        check(f"{held} is refused", done.returncode in (1, 2) and says in done.stderr and
              not os.path.exists("never.safetensors"), done)
    done = run("some", "--net", LINEAR, *apart, model="other.npy")
    check("a file that is read is not written", done.returncode == 2 and "--validation" in done.stderr, done.stderr)
    done = run("some", "--net", LINEAR, "--validation", 0.1, "--validation-target", "far.npy")
    check("a target of nothing", done.returncode == 2 and "--validation-target needs --validation DATA" in done.stderr)


def sorted_files():
    images, labels = save_images("some", 3000, seed=4, bright=40)
    order = np.argsort(labels, kind="stable")
    np.save("sorted.npy", images[order, ..., 0])
    np.save("sorted-labels.npy", labels[order])
    options = ["--net", LINEAR, "--epochs", 2, "--validation", 0.1, "--strata", 3]
    says = "the rows are sorted by class, so that "
    for way in ([], ["--workers", "local:2"]):
        done = run("sorted", *options, *way)
        check(f"it is told {way}", done.returncode == 0 and done.stderr.count(says) == 1 and
              "--shuffle-rows" in done.stderr, done.stderr)
        check("what that means", way or "those held out have other classes" in done.stderr, done.stderr)
    mixed = run("some", *options)
    check("nothing is told of mixed rows", mixed.stderr == "", mixed.stderr)
    done = run("sorted", *options, "--shuffle-rows", model="shuffled.safetensors")
    check("--shuffle-rows mends it", done.returncode == 0 and done.stderr == "", done.stderr)
    shuffled = read_model("shuffled.safetensors")[0]
    for way in (["--threads", 1], ["--workers", "local:3"]):
        check(f"shuffled alike {way}", same_weights(shuffled, train("sorted", *options, "--shuffle-rows", *way)[1]))
    _, other = train("sorted", *options, "--shuffle-rows", "--seed", 1)
    check("--seed says how", not same_weights(shuffled, other))
    np.save("table.npy", np.column_stack([images.reshape(3000, -1), labels]).astype(np.uint8))
    put = shoal("store", "put", "table.npy", "st/", "--quiet")
    assert put.returncode == 0, put.stderr
    plain = train("some", "--net", LINEAR, "--epochs", 1, "--validation", "table.npy", "--shuffle-rows")[1]
    done = shoal("train", "dir:st/table.npy", "--net", LINEAR, "--shape", "10x10", "--epochs", 1, "--shuffle-rows",
                 "--validation", "dir:st/table.npy", "--model", "far.safetensors", "--force")
    here = shoal("train", "table.npy", "--net", LINEAR, "--shape", "10x10", "--epochs", 1, "--shuffle-rows",
                 "--validation", "table.npy", "--model", "here.safetensors", "--force")
    check("without workers they are fetched", done.returncode == here.returncode == 0 and same_weights(
        read_model("far.safetensors")[0], read_model("here.safetensors")[0]), (done.stderr, here.stderr))
    done = run("some", "--net", LINEAR, "--epochs", 1, "--validation", "dir:st/table.npy", "--shuffle-rows",
               "--workers", "local:2")
    check("a file to hold out may be in a store", done.returncode == 0 and same_weights(
        plain, read_model("model.safetensors")[0]), done.stderr)
    for more in (["--shuffle-rows"], ["--validation", "some.npy"]):
        says = f"{more[0]}: the rows of dir:st/table.npy stay in their store"
        done = shoal("train", "dir:st/table.npy", *options, *more, "--workers", "local:1")
        check("rows in a store stay as they are", done.returncode == 2 and says in done.stderr, done.stderr)


def curves():
    """What --json, --trace and TensorBoard tell of epochs is the model's history."""
    save_images("some", 700, seed=4, bright=40)
    for way in ([], ["--workers", "local:2"]):
        told, tensors = train("some", "--net", LINEAR, "--epochs", 4, "--validation", 0.1, "--trace", "t.jsonl",
                              "--tensorboard", "events", *way)
        names = ["loss", "accuracy", "validation_loss", "validation_accuracy", "rate"]
        lines = [json.loads(line) for line in pathlib.Path("t.jsonl").read_text().splitlines()]
        epochs = [line for line in lines if line["phase"] == "epoch"]
        if way:  # an epoch that is over before its starter looks is told at the end
            epochs.sort(key=lambda line: line["step"])
        for k, name in enumerate(names):
            check(f"{name} {way}", told[f"epoch_{name}"] == list(tensors["history"][:, k]) ==
                  [line[name] for line in epochs], epochs)
        check("epochs in order", [line["step"] for line in epochs] == [1, 2, 3, 4], epochs)
    check("events", b"validation_accuracy" in next(pathlib.Path("events").iterdir()).read_bytes())


def progress():
    """The line on a terminal, of a run that ends once all of it has been seen."""
    whole = re.compile(r"epoch \d+/1000000, step \d+/5, loss [\d.e-]+, validation [\d.]+%, [\d.]+[kM]? rows/s, "
                       r"at most \d+:\d\d(:\d\d)? left")
    save_images("some", 700, seed=4, bright=40)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
    words = ["some.npy", "--target", "some-labels.npy", "--net", "dense 50 relu; dense 4 softmax", "--validation", 0.1,
             "--early-stop", 1000000, "--epochs", 1000000, "--rate", 1e-6]
    running = subprocess.Popen([SHOAL, "train", *map(str, words)], stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    seen, deadline = "", time.monotonic() + 60
    while not whole.search(seen) and time.monotonic() < deadline:
        if select.select([ours], [], [], 1)[0]:
            seen += os.read(ours, 4096).decode()
    running.send_signal(signal.SIGINT)
    while running.poll() is None:
        if select.select([ours], [], [], 0.1)[0]:
            with contextlib.suppress(OSError):  # its end
                os.read(ours, 4096)
    os.close(ours)
    check("epoch, step, loss, validation, rate, time left", whole.search(seen) and running.returncode == 130,
          seen[-500:])


def pictures():
    """Curves and filters; what there is nothing of is left out."""
    save_images("some", 700, 3, seed=4, bright=40)
    net = "conv 5 3x3 relu; pool 2; dense 4 softmax"
    said = ["Learning curves: some.npy", ">training<", ">validation<", ">weights kept: epoch = ",
            ">Filters of layer 0: conv 5 3x3<"]
    for more in ([], ["--workers", "local:1"]):
        done = run("some", "--net", net, "--epochs", 3, "--validation", 0.1, "--picture", "p.svg", *more)
        text = pathlib.Path("p.svg").read_text()
        check(f"all is drawn {more}", done.returncode == 0 and all(part in text for part in said) and
              text.count("data:image/png") == 6, text[:900])
    done = run("some", "--net", LINEAR, "--epochs", 1, "--picture", "p.svg")
    text = pathlib.Path("p.svg").read_text()
    check("no filters, no validation", done.returncode == 0 and not any(part in text for part in said[1:]),
          text[:900])
    done = run("some", "--net", net, "--epochs", 0, "--picture", "p.png")
    check("of no epochs", done.returncode == 0 and pathlib.Path("p.png").read_bytes()[:4] == b"\x89PNG", done.stderr)


# ---- what data pack writes, and labels of any kind -------------------------------------------------------------------


def packed_images():
    """Photographs in shards, with their shape and classes, as JPEG and raw; of several shards, and as validation."""
    try:
        from PIL import Image
    except ImportError as error:
        print(f"SKIPPED packed images: {error}; Debian has python3-pil", flush=True)
        return
    random = np.random.default_rng(11)
    for kind, colour in (("red", 0), ("green", 1), ("blue", 2)):
        os.makedirs(f"photos/{kind}", exist_ok=True)
        for i in range(40):
            pixels = random.integers(0, 100, (24, 30 + i % 3, 3)).astype(np.uint8)
            pixels[..., colour] += 120
            Image.fromarray(pixels).save(f"photos/{kind}/{i}.jpg", quality=95)
    net = ["--net", "conv 4 3x3 stride 2 relu; global pool; dense 3 softmax", "--epochs", 15, "--batch", 8,
           "--model", "p.safetensors", "--force"]
    for encode in ("jpeg", "raw"):
        packed = shoal("data", "pack", "photos", encode, "--size", "16x16", "--shuffle", 1, "--shards", 2, "--encode",
                       encode)
        assert packed.returncode == 0, packed.stderr
        first, second = sorted(str(path) for path in pathlib.Path(encode).glob("*.tfrec"))
        done = shoal("train", first, *net, "--validation", second, "--json")
        told = json.loads(done.stdout or "{}")
        check(f"{encode}: trained", told.get("validation_accuracy", 0) > 0.9 and told["rows"] == 60 and
              told["class_names"] == ["blue", "green", "red"] and [told[s] for s in ("height", "width", "channels")] ==
              [16, 16, 3], done)
        scored = shoal("predict", "p.safetensors", second, "--score", "--json", "--labels", "l.csv", "--force")
        check(f"{encode}: scored", json.loads(scored.stdout)["score"]["accuracy"] == told["validation_accuracy"] and
              set(pathlib.Path("l.csv").read_text().split()) <= {"label", "labels", "red", "green", "blue"}, scored)
        _, here = read_model("p.safetensors"), read_model("p.safetensors")[0]
        done = shoal("train", first, *net, "--validation", second, "--workers", "local:2")
        check(f"{encode}: the same by workers", done.returncode == 0 and
              same_weights(here, read_model("p.safetensors")[0]), done.stderr)
        both = pathlib.Path(first).read_bytes() + pathlib.Path(second).read_bytes()
        done = shoal_of_bytes(both, "train", "-", *net, "--json")
        check(f"{encode}: all shards in a pipe", json.loads(done.stdout or "{}").get("rows") == 120, done.stderr)
        pathlib.Path("cut.tfrec").write_bytes(both[:len(both) * 2 // 3])
        done = shoal("train", "cut.tfrec", *net)
        check(f"{encode}: a truncated file", done.returncode == 1 and "cut.tfrec" in done.stderr and
              done.stderr.count("\n") == 1, done.stderr)
    shoal("store", "put", "jpeg", "st/", "-r", "--quiet")
    done = shoal("train", f"dir:st/{first.replace('raw', 'jpeg')}", *net, "--workers", "local:1")
    check("shards in a store are fetched first", done.returncode == 1 and "fetch it first with shoal store get" in
          done.stderr, done.stderr)
    shoal("data", "pack", "photos", "small", "--size", "8x8", "--shards", 1, "--encode", "raw")
    pathlib.Path("unequal.tfrec").write_bytes(both + next(pathlib.Path("small").glob("*.tfrec")).read_bytes())
    done = shoal("train", "unequal.tfrec", *net)
    check("images of different sizes", done.returncode == 1 and "unequal.tfrec: record 121" in done.stderr and
          done.stderr.count("\n") == 1, done.stderr)


def shoal_of_bytes(given, *words):
    return subprocess.run([SHOAL, *map(str, words)], input=given, capture_output=True, timeout=300)


def labels_of_any_kind():
    """Bytes are divided by 255 whatever type the target needs beside them."""
    _, labels = save_images("some", 700, seed=4, bright=40)
    _, plain = train("some", "--net", LINEAR, "--epochs", 2)
    for name, values in (("negative", labels.astype(int) - 9), ("large", labels.astype(int) * 1000),
                         ("halves", labels / 2)):
        np.save("any-labels.npy", values)
        for way in ([], ["--workers", "local:1"]):
            done = run("some", "--net", LINEAR, "--epochs", 2, "--target", "any-labels.npy", *way)
            found = read_model("model.safetensors")[0]
            check(f"{name} labels {way}", done.returncode == 0 and all(
                np.array_equal(found[part], plain[part]) for part in ("1.weight", "1.bias")), done.stderr)
        shoal("predict", "model.safetensors", "some.npy", "--labels", "l.npy", "--force")
        check(f"{name} labels are predicted", set(np.load("l.npy")) <= set(values.astype(float)))


def scores_of_many_classes():
    """The share of rows whose class is among the five most probable, as scikit-learn's top_k_accuracy_score has it."""
    random = np.random.default_rng(2)
    kinds = random.integers(0, 12, 600)
    points = random.normal(size=(600, 6)).astype(np.float32) + np.eye(12, 6, dtype=np.float32)[kinds] * 2
    np.save("points.npy", points)
    np.save("points-labels.npy", kinds)
    train("points", "--net", "dense 12 softmax", "--epochs", 4)
    score = ["predict", "model.safetensors", "points.npy", "--target", "points-labels.npy", "--score"]
    done = shoal(*score, "--json", "--probabilities", "p.npy", "--force")
    shares, top = np.load("p.npy"), json.loads(done.stdout)["score"]["top_5"]
    expected = ((shares > shares[np.arange(600), kinds][:, None]).sum(1) < 5).mean()
    check("top 5", abs(top - expected) < 1e-12 and 0.3 < top < 1, (top, expected))
    done = shoal(*score, "--confusion", "c.svg")
    check("told and drawn", f"{100 * top:.2f}%: the known class" in done.stdout and os.path.exists("c.svg"),
          done.stdout)


# ---- augmentation ----------------------------------------------------------------------------------------------------


def philox(seed, purpose, index, draw):
    key, counter = [seed & 0xffffffff, seed >> 32], [draw, purpose, index & 0xffffffff, index >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [b >> 32 ^ counter[1] ^ key[0], b & 0xffffffff, a >> 32 ^ counter[3] ^ key[1], a & 0xffffffff]
        key = [(key[0] + 0x9E3779B9) & 0xffffffff, (key[1] + 0xBB67AE85) & 0xffffffff]
    return counter


def augmented(image, seed, epoch, row, crop, shift):
    """As docs/learn/train.md says; height, width, channels."""
    first = philox(seed, 23, epoch, 0)
    key = first[0] | first[1] << 32
    a, b = philox(key, 23, row, 0), philox(key, 23, row, 1)
    if a[0] < 1 << 31:
        image = image[:, ::-1]
    height, width = image.shape[:2]
    y, x = a[1] * (2 * crop + 1) >> 32, a[2] * (2 * crop + 1) >> 32
    image = np.pad(image, ((crop, crop), (crop, crop), (0, 0)))[y:y + height, x:x + width]
    y, x = b[0] * (2 * shift + 1) >> 32, b[1] * (2 * shift + 1) >> 32
    return np.pad(image, ((shift, shift), (shift, shift), (0, 0)), mode="edge")[y:y + height, x:x + width]


def augmentation():
    """One step of a linear net tells the images it saw: its gradient is computed anew from those of the definition."""
    seed = 2**40 + 77
    for channels in (1, 3):
        images, labels = save_images("few", 60, channels, seed=8)
        options = ["--net", LINEAR, "--batch", 60, "--optimiser", "sgd", "--rate", 64, "--schedule", "constant",
                   "--seed", seed, "--rescale", "0.5:0.25", "--augment", "flip,shift:2,crop:3"]
        steps = [train("few", *options, "--epochs", n)[1] for n in range(3)]
        layer = [name for name in steps[0] if name.endswith("weight")][0]
        for epoch in range(2):
            seen = np.array([augmented(image, seed, epoch, row, 3, 2) for row, image in enumerate(images)])
            x = ((seen / 255 - 0.5) / 0.25).transpose(0, 3, 1, 2).reshape(60, -1)
            z = x @ steps[epoch][layer].T + steps[epoch][layer.replace("weight", "bias")]
            p = np.exp(z - z.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            p[np.arange(60), labels] -= 1
            slope, told = p.T @ x / 60, (steps[epoch][layer] - steps[epoch + 1][layer]) / 64
            check(f"augmented images of epoch {epoch}, {channels} channels", np.abs(slope - told).max() < 1e-5 *
                  np.abs(slope).max(), np.abs(slope - told).max())
    save_images("some", 700, 3, seed=4)
    options = ["--net", "conv 4 3x3 relu; pool 2; dense 4 softmax", "--augment", "flip,crop:2,shift:1", "--validation",
               0.2, "--epochs", 2]
    _, whole = train("some", *options)
    for way in (["--threads", 1], ["--threads", 3], ["--kernel", "portable"], ["--workers", "local:2"]):
        check(f"augmented alike with {way}", same_weights(whole, train("some", *options, *way)[1]))
    _, other = train("some", *options[:2], *options[4:])
    check("--augment changes something", not same_weights(whole, other))


def refused():
    save_images("small", 300)
    table = "\n".join(f"{i % 7},{i % 5},{'ab'[i % 2]}" for i in range(60))
    pathlib.Path("table.csv").write_text("x,y,kind\n" + table + "\n")
    cases = [
        (["--augment", "flop"], "--augment: 'flop' is not flip, crop:P or shift:P"),
        (["--augment", "flip,,crop:1"], "--augment: '' is not"),
        (["--augment", "crop:0"], "--augment: 'crop:0' is not"),
        (["--augment", "shift:10"], "--augment: shift:10 on images of 10x10 leaves nothing of them"),
        (["--early-stop", 2], "--early-stop needs --validation"),
        (["--validation", 0.001], "--validation 0.001 of 300 rows holds out none of them"),
        (["--validation", 1], "--validation 1: a share is between 0 and 0.95"),
        (["--validation", "-0.5"], "--validation -0.5: a share is between 0 and 0.95"),
    ]
    for options, says in cases:
        done = run("small", "--net", LINEAR, *options, model="never.safetensors")
        check(f"{options} is refused", done.returncode in (1, 2) and says in done.stderr and
              done.stderr.count("\n") <= 2 and not os.path.exists("never.safetensors"), done)
    big = ["--net", "dense 4000 relu; dense 2000 relu; dense 4 softmax", "--memory"]
    for limit, threads, advice in (("600MB", 4, "use --threads 2 or fewer"), ("300MB", 1, "ask for a smaller model")):
        done = run("small", *big, limit, "--threads", threads)
        check("more than there is memory for", done.returncode == 1 and advice in done.stderr and
              f"on {threads} thread" in done.stderr and f"but --memory allows {limit[:-2]} MB" in done.stderr, done)
    done = shoal("train", "table.csv", "--net", "dense 2 softmax", "--augment", "flip")
    check("lists are not augmented", done.returncode == 2 and "--shape HxW says" in done.stderr, done)


folder = tempfile.mkdtemp(prefix="shoal-people-")
home = os.getcwd()
os.environ.update(XDG_CACHE_HOME=f"{folder}/cache", TMPDIR=folder)
os.chdir(folder)
try:
    for test in (best_weights, resumed_in_the_middle, stopped, diverges, validation_data, sorted_files, curves,
                 progress, pictures, packed_images, labels_of_any_kind,
                 scores_of_many_classes, augmentation, refused):
        test()
finally:
    os.chdir(home)
    shutil.rmtree(folder)
sys.exit(failed > 0)
