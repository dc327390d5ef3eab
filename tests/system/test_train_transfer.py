#!/usr/bin/env python3
# Seconds: 40
"""Transfer learning with nets: layers that keep weights, heads of another shape, what is told of both, and what frozen
layers give, which is computed once.

    test_train_transfer.py PATH_TO_shoal
"""
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import nobody  # so that no run is in the history of whoever runs this

import numpy as np

import mpi

SHOAL = os.path.abspath(sys.argv[1])
BODY = "conv 5 3x3 pad 1 relu; pool 2; conv 18 3x3 tanh; dropout 0.25; dense 12 relu; "
ROWS = 1300
FROZEN = ("0.weight", "0.bias", "3.weight", "3.bias")
failed = 0


def check(what, condition, more=""):
    global failed
    if not condition:
        failed += 1
        print(f"FAILED {what} {more}", flush=True)


def shoal(*words):
    return subprocess.run([SHOAL, *map(str, words)], capture_output=True, text=True, timeout=300)


def save_images(name, rows, classes, seed):
    """Images of classes, each with a bright square at another place, as bytes."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, rows)
    images = random.integers(0, 90, (rows, 10, 10)).astype(np.uint8)
    for image, label in zip(images, labels):
        image[3 * (label // 3):3 * (label // 3) + 4, 3 * (label % 3):3 * (label % 3) + 4] += 120
    np.save(f"{name}.npy", images)
    np.save(f"{name}-labels.npy", labels.astype(np.uint8))
    return images, labels


def read_model(path):
    content = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    header.pop("__metadata__")
    kinds = {"F32": "<f4", "F64": "<f8"}
    return {name: np.frombuffer(content[8 + size:][slice(*place["data_offsets"])], kinds[place["dtype"]])
            .reshape(place["shape"]) for name, place in header.items()}


def run(data, *options, model="model.safetensors"):
    return shoal("train", f"{data}.npy", "--target", f"{data}-labels.npy", "--model", model, "--force", *options)


def train(data, *options, model="model.safetensors"):
    done = run(data, *options, "--json", model=model)
    assert done.returncode == 0, (options, done.stderr)
    return json.loads(done.stdout), read_model(model)


def heads():
    """Layers of the same shape are taken, the others begin at random, and people are told which."""
    new = ["--net", BODY + "dense 5 softmax", "--epochs", 0, "--seed", 8]
    _, random = train("new", *new)
    body = read_model("body.safetensors")
    done = run("new", *new, "--start", "body.safetensors")
    check("what is told", "layers 0 to 7 from body.safetensors; layer 9 begins at random" in done.stderr, done)
    taken = read_model("model.safetensors")
    check("the body is taken", all(np.array_equal(taken[name], body[name]) for name in (*FROZEN, "7.weight")))
    check("the head is random", np.array_equal(taken["9.weight"], random["9.weight"]))
    done = run("old", "--net", BODY + "dense 4 softmax", "--epochs", 0, "--start", "body.safetensors")
    check("all is taken", done.returncode == 0 and "random" not in done.stderr, done)
    done = run("new", "--net", "conv 5 3x3 relu; pool 2; conv 9 3x3; dense 12 relu; dense 5 softmax", "--epochs", 0,
               "--start", "body.safetensors")
    check("holes", "layer 0 from body.safetensors; layers 3 to 7 begin at random" in done.stderr, done)


def words():
    """A head tells its own classes apart: one for others begins anew, even where it has as many."""
    points = np.random.default_rng(2).normal(size=(60, 3))
    for name, kinds in (("pets", ("cat", "dog")), ("trees", ("elm", "yew"))):
        lines = [f"{a:.4g},{b:.4g},{c:.4g},{kinds[int(a > 0)]}" for a, b, c in points]
        pathlib.Path(f"{name}.csv").write_text("a,b,c,kind\n" + "\n".join(lines) + "\n")
    net = ["--net", "dense 4 tanh; dense 2 softmax", "--epochs", 3, "--batch", 16, "--force"]
    done = shoal("train", "pets.csv", *net, "--model", "pets.safetensors")
    check("words", done.returncode == 0, done)
    for name, told in (("pets", False), ("trees", True)):
        done = shoal("train", f"{name}.csv", *net, "--model", "more.safetensors", "--start", "pets.safetensors")
        told_so = "layer 2 begins at random" in done.stderr
        check(f"from pets to {name}", done.returncode == 0 and told == told_so, done)


def frozen_weights_stay():
    body = read_model("body.safetensors")
    options = ["--net", BODY + "dense 5 softmax", "--start", "body.safetensors", "--epochs", 3, "--batch", 48,
               "--strata", 3]
    for optimiser in ("sgd", "nesterov", "adam", "adamw"):
        _, after = train("new", *options, "--freeze", 4, "--optimiser", optimiser, "--l2", 0.01, "--l1", 0.001)
        check(f"{optimiser}: frozen", all(np.array_equal(after[name], body[name]) for name in FROZEN))
        check(f"{optimiser}: the others move", not np.array_equal(after["7.weight"], body["7.weight"]))
    table = run("new", *options, "--freeze", "0-3", "--describe").stdout
    check("--describe", "4 tanh, frozen" in table and "5 dropout 0.25  " in table and
          [line.split()[1] for line in table.splitlines() if "  trained" in line] == ["2,021"], table)


def steps_of_pytorch():
    """The head, and what is before it, as PyTorch trains them behind layers without gradients."""
    try:
        import torch
    except ImportError as error:
        print(f"SKIPPED PyTorch: {error}; Debian has python3-torch", flush=True)
        return
    nn = torch.nn
    images, labels = np.load("new.npy"), np.load("new-labels.npy")
    text = "conv 5 3x3 pad 1 relu; pool 2; conv 18 3x3 tanh; dense 12 relu; dense 5 softmax"
    options = ["--net", text, "--batch", len(labels), "--schedule", "constant", "--optimiser", "adam", "--rate", 0.01,
               "--strata", 4]
    train("new", *options, "--epochs", 2, model="begun.safetensors")
    begun = read_model("begun.safetensors")
    _, after = train("new", *options, "--epochs", 6, "--start", "begun.safetensors", "--freeze", 3)
    module = nn.Sequential(nn.Conv2d(1, 5, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(5, 18, 3), nn.Tanh(),
                           nn.Flatten(), nn.Linear(162, 12), nn.ReLU(), nn.Linear(12, 5)).double()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(torch.from_numpy(begun[name].astype(float)))
            parameter.requires_grad = int(name[0]) > 3
    x, y = torch.from_numpy(images[:, None] / 255.0), torch.from_numpy(labels.astype(np.int64))
    steps = torch.optim.Adam([p for p in module.parameters() if p.requires_grad], lr=0.01)
    for _ in range(6):
        steps.zero_grad()
        nn.CrossEntropyLoss()(module(x), y).backward()
        steps.step()
    off = max(np.abs(after[name] - p.detach().numpy()).max() for name, p in module.named_parameters())
    check("PyTorch's steps", off < 2e-5, off)


SAME = ["--net", BODY + "dense 5 softmax", "--start", "body.safetensors", "--freeze", 3, "--epochs", 4, "--batch", 48,
        "--validation", 0.2, "--optimiser", "adam", "--seed", 9, "--l2", 1e-3]


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def the_same_with_memory_and_without():
    """What frozen layers give is computed once where there is memory for it, and for each step where there is none; the
    weights have the same bytes, whoever computes."""
    told, _ = train("new", *SAME, "--threads", 1)
    first, rows, steps = sha256("model.safetensors"), ROWS, 4 * ROWS
    check("computed once", (told["frozen_computed"], told["frozen_remembered"]) == (rows, steps), told)
    for words in (["--threads", 2], ["--threads", 7], ["--kernel", "portable"], ["--kernel", "avx2"]):
        done = run("new", *SAME, *words, "--json")
        if words[0] == "--kernel" and "kernel set" in done.stderr:
            print(f"SKIPPED kernel set {words[1]}: not on this machine", flush=True)
            continue
        check(f"{words}", done.returncode == 0 and sha256("model.safetensors") == first, done.stderr)
        check(f"{words}: computed once", json.loads(done.stdout)["frozen_computed"] == rows, done.stdout)
    done = run("new", *SAME, "--memory", 600000, "--threads", 2, "--json")
    told = json.loads(done.stdout or "{}")
    check("without memory", sha256("model.safetensors") == first and told["frozen_remembered"] == 0 and
          told["frozen_computed"] == steps, done)
    check("which is told", "takes 842 kB for the rows of this process, more than there is memory for" in done.stderr,
          done.stderr)
    for workers in ("local:1", "local:3"):
        done = run("new", *SAME, "--workers", workers)
        check(workers, done.returncode == 0 and sha256("model.safetensors") == first, done.stderr)
    for kind in mpi.KINDS:
        work = mpi.Work("train", "new.npy", "--target", "new-labels.npy", *SAME, files={"--model": "ranks.safetensors"})
        check(f"{kind}: one process", sha256(f"{work.expected}/ranks.safetensors") == first)
        for ranks in (2, 3):
            work.agrees(kind, ranks)


def augmented_images_are_computed_anew():
    told, _ = train("new", *SAME, "--augment", "flip")
    check("--augment", told["frozen_remembered"] == 0 and told["frozen_computed"] == 4 * ROWS, told)
    told, _ = train("new", *SAME, "--epochs", 1)
    check("one epoch", told["frozen_remembered"] == 0 and told["frozen_computed"] == ROWS, told)


def killed_and_resumed():
    """The memo is lost with the process: the epoch goes on without it, and the next one has it again."""
    words = ["train", "new.npy", "--target", "new-labels.npy", *SAME, "--epochs", 12, "--batch", 16, "--quiet",
             "--force"]
    words = list(map(str, words))
    assert shoal(*words, "--model", "whole.safetensors").returncode == 0
    kept = [*words, "--model", "resumed.safetensors", "--checkpoint", "1e-6", "--checkpoint-file", "net.checkpoint"]
    followed = mpi.Followed()
    with mpi.Job([SHOAL, *kept, "--threads", "1", "--trace", followed.path]) as job:
        followed.rounds(job, 40)
        job.kill()
    followed.remove()
    done = shoal(*kept, "--threads", 2, "--resume", "--json")
    told = json.loads(done.stdout or "{}")
    check("resumed", done.returncode == 0 and told.get("resumed", 0) >= 30 and
          sha256("whole.safetensors") == sha256("resumed.safetensors"), done)
    check("the memo is filled anew", told["frozen_remembered"] > 0, told)


def blocks():
    """Where an addition reaches back over the border, what is kept is from before it."""
    net = ["--net", "conv 4 3x3 pad same; batch norm relu; save a; conv 4 3x3 pad same; batch norm; add a; relu; "
           "conv 6 3x3; batch norm; pool 2; dense 5 softmax", "--batch", 32]
    train("new", *net, "--epochs", 2, model="residual.safetensors")
    body = read_model("residual.safetensors")
    for last in (1, 3, 4, 6, 8):
        options = [*net, "--epochs", 3, "--start", "residual.safetensors", "--freeze", last]
        told, after = train("new", *options)
        whole = sha256("model.safetensors")
        left_out = 3 * ROWS - told["frozen_remembered"]  # groups of one row, where there are batch norms behind
        check(f"{last}: remembered", left_out == 0 if last == 8 else 0 <= left_out <= 12, told)
        stays = {name: np.array_equal(after[name], body[name]) for name in body if name not in ("classes", "history")}
        check(f"{last}: frozen", all(same == (int(name.split(".")[0]) <= last) for name, same in stays.items()), stays)
        train("new", *options, "--memory", 450000, "--threads", 1)
        check(f"{last}: without memory", sha256("model.safetensors") == whole)


def frozen_layers_give_what_they_gave():
    """A net all of whose body is frozen scores as it did, with every kind of layer in it, for weights that stay."""
    net = ["--net", "conv 6 3x3 pad same; batch norm relu6; save a; depthwise 3x3 pad same; batch norm; conv 6 1x1; "
           "add a; conv 8 3x3 groups 2 tanh; pool average 2; conv 8 2x2 relu; pool 2; dense 9 logistic; dropout 0.4; "
           "dense 5 softmax", "--batch", 32, "--validation", 0.2, "--keep", "last"]
    told, _ = train("new", *net, "--epochs", 3, model="every.safetensors")
    table = run("new", *net, "--describe").stdout
    last = [line.split()[0] for line in table.splitlines() if " logistic " in line][-1]
    for more in (["--epochs", 1], ["--epochs", 3]):
        again, _ = train("new", *net, *more, "--start", "every.safetensors", "--freeze", last, "--rate", 1e-30)
        check(f"{more}: the same score", again["validation_loss"] == told["validation_loss"] and
              again["validation_accuracy"] == told["validation_accuracy"], (told, again))


def refused():
    net = ["--net", BODY + "dense 5 softmax"]
    start = [*net, "--start", "body.safetensors"]
    for options, sentence in (
        ([*start, "--freeze", "x"], "--freeze x: not the number of a layer"),
        ([*start, "--freeze", "11"], "--freeze 11: the layers are 0 to 10"),
        ([*start, "--freeze", "9"], "--freeze 9: layer 9 is the last with weights, and must be trained"),
        ([*net, "--freeze", "3"], "--freeze 3: layer 0 is to keep weights, but --start gives it none: there is no"),
        (["--net", "conv 5 3x3 relu; conv 3 3x3; dense 5 softmax", "--start", "body.safetensors", "--freeze", "2"],
         "--freeze 2: layer 2 is to keep weights, but --start gives it none of its shape"),
        (["--net", "dense 5 softmax", "--start", "body.safetensors"], "has no weights for this net"),
    ):
        done = run("new", *options)
        check(f"{options[2:]}", done.returncode != 0 and sentence in done.stderr, done)


def main():
    os.chdir(tempfile.mkdtemp(prefix="shoal-transfer-"))
    save_images("old", 600, 4, seed=1)
    save_images("new", ROWS, 5, seed=2)
    train("old", "--net", BODY + "dense 4 softmax", "--epochs", 3, "--batch", 32, model="body.safetensors")
    for part in (heads, words, frozen_weights_stay, steps_of_pytorch, the_same_with_memory_and_without,
                 augmented_images_are_computed_anew, killed_and_resumed, blocks, frozen_layers_give_what_they_gave,
                 refused):
        part()
    sys.exit(failed > 0)


main()
