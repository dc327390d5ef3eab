#!/usr/bin/env python3
# Seconds: 60
"""Nets through the program: gradients and steps of PyTorch in float64, the same bytes whoever computes, models that
PyTorch can read, and what is refused.

    test_train.py PATH_TO_shoal
"""
import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import nobody  # so that no run is in the history of whoever runs this

import numpy as np

import mpi

SHOAL = os.path.abspath(sys.argv[1])
MNIST = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data" / "mnist"
NET = ("conv 4 3x3 pad 1; pool 2 relu; conv 6 2x2; batch norm relu; save a; depthwise 3x3 pad same; "
       "conv 6 1x1 groups 2; batch norm; add a tanh; conv 18 2x2 pad 1 relu; pool 2; dropout 0.25; dense 12 "
       "relu; dense 4 softmax")
failed = 0


def check(what, condition, more=""):
    global failed
    if not condition:
        failed += 1
        print(f"FAILED {what} {more}", flush=True)


def shoal(*words, **variables):
    return subprocess.run([SHOAL, *map(str, words)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **variables})


def save_images(name, rows, channels=1, seed=0, side=10):
    """Images of four classes, each a bright square in another quarter, as bytes; height, width, channels."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 4, rows)
    images = random.integers(0, 90, (rows, side, side, channels)).astype(np.uint8)
    for image, label in zip(images, labels):
        y, x = label // 2 * side // 2, label % 2 * side // 2
        image[y:y + side // 2 - 1, x:x + side // 2 - 1] += 120
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


def write_tensors(path, tensors):
    header, values = {}, b""
    for name, tensor in tensors.items():
        place = [len(values), len(values) + tensor.nbytes]
        header[name] = {"dtype": {"f": "F32", "i": "I64"}[tensor.dtype.kind], "shape": tensor.shape,
                        "data_offsets": place}
        values += tensor.tobytes()
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + values)


def train(data, *options, model="model.safetensors", **variables):
    done = shoal("train", f"{data}.npy", "--target", f"{data}-labels.npy", "--model", model, "--force", "--json",
                 *options, **variables)
    assert done.returncode == 0, (options, done.stderr)
    return json.loads(done.stdout), *read_model(model)


# ---- PyTorch ---------------------------------------------------------------------------------------------------------


def modules_of(torch, net, channels):
    """nn.Sequential of the nets that are tried below."""
    nn = torch.nn

    class Add(nn.Module):
        def __init__(self, source):
            super().__init__()
            self.source = source

    class Sequential(nn.Sequential):
        def forward(self, x):
            gave = {-1: x}
            for i, module in enumerate(self):
                gave[i] = x = x + gave[module.source] if isinstance(module, Add) else module(x)
            return x

    nets = {
        "lenet": [nn.Conv2d(channels, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 7, 2), nn.ReLU(), nn.Flatten(),
                  nn.Linear(28, 25), nn.Tanh(), nn.Linear(25, 4)],
        "pooled": [nn.Conv2d(channels, 5, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(5, 17, 2),
                   nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(68, 4)],
        "all": [nn.Conv2d(channels, 6, 3, padding=1), nn.ReLU6(), nn.AvgPool2d(2), nn.Conv2d(6, 17, 3, stride=2),
                nn.Sigmoid(), nn.Conv2d(17, 9, 1), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(9, 8),
                nn.Tanh(), nn.Linear(8, 4)],
        "every": [nn.BatchNorm2d(channels), nn.Conv2d(channels, 8, 3, padding=1, stride=2),
                  nn.BatchNorm2d(8, 0.01, 0.3), nn.ReLU6(), nn.Conv2d(8, 16, 1), nn.BatchNorm2d(16), nn.ReLU(),
                  nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 1),
                  nn.BatchNorm2d(8), Add(3), nn.Conv2d(8, 12, 3, groups=4), nn.Tanh(), nn.Conv2d(12, 12, 2, groups=12),
                  nn.AvgPool2d(2, stride=1), nn.Flatten(), nn.Linear(12, 20), nn.BatchNorm1d(20), nn.Sigmoid(),
                  nn.Linear(20, 20), Add(20), nn.ReLU(), nn.Linear(20, 4)],
    }
    return Sequential(*nets[net]).double()


TEXTS = {
    "lenet": "conv 20 5x5 relu; pool 2; conv 7 2x2 relu; dense 25 tanh; dense 4 softmax",
    "pooled": "conv 5 3x3 pad 1 relu; pool 2; conv 17 2x2; pool 2 relu; dense 4 softmax",
    "all": "conv 6 3x3 pad 1 relu6; pool average 2; conv 17 3x3 stride 2 logistic; conv 9 1x1 relu; global pool max; "
           "dense 8 tanh; dense 4 softmax",
    "every": "batch norm; conv 8 3x3 pad 1 stride 2; batch norm momentum 0.3 epsilon 0.01 relu6; save a; conv 16 1x1; "
             "batch norm relu; depthwise 3x3 pad same; batch norm relu; conv 8 1x1; batch norm; add a; conv 12 3x3 "
             "groups 4 tanh; depthwise 2x2; pool average 2 stride 1; dense 20; batch norm logistic; save a; dense 20; "
             "add a relu; dense 4 softmax",
}
STEPS = {
    "sgd": lambda torch, p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda torch, p: torch.optim.SGD(p, lr=0.05, momentum=0.8),
    "nesterov": lambda torch, p: torch.optim.SGD(p, lr=0.05, momentum=0.8, nesterov=True),
    "adam": lambda torch, p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda torch, p: torch.optim.AdamW(p, lr=0.01, weight_decay=0),
}


def load(torch, module, tensors):
    module.load_state_dict({name: torch.from_numpy(values.copy()) for name, values in tensors.items()
                            if name not in ("classes", "history")})


def gradients_are_those_of_pytorch():
    """One step of a whole batch, at a rate that is a power of two, tells the gradient; six steps tell the optimiser."""
    try:
        import torch
    except ImportError as error:
        print(f"SKIPPED PyTorch: {error}; Debian has python3-torch", flush=True)
        return
    for name, channels in (("lenet", 1), ("pooled", 2), ("all", 3), ("every", 3)):
        rows, every = 96, name == "every"
        images, labels = save_images("few", rows, channels)
        x = torch.from_numpy(images.transpose(0, 3, 1, 2) / 255.0)
        y = torch.from_numpy(labels)
        options = ["--net", TEXTS[name], "--batch", rows, "--schedule", "constant", "--seed", 3,
                   *(("--strata", 1, "--group", rows) if every else ("--strata", 4))]
        _, before, _ = train("few", *options, "--epochs", 0)
        _, after, _ = train("few", *options, "--epochs", 1, "--optimiser", "sgd", "--rate", 64)
        module = modules_of(torch, name, channels)
        load(torch, module, before)
        check(f"{name}: names", set(before) - {"classes", "history"} ==
              {n for n, _ in module.state_dict().items() if not n.endswith("num_batches_tracked")})
        loss = torch.nn.CrossEntropyLoss()(module(x), y)
        loss.backward()
        off = most = 0
        for tensor, parameter in module.named_parameters():
            slope = parameter.grad.numpy()
            off += (((before[tensor] - after[tensor]) / 64 - slope)**2).sum()
            most += (slope**2).sum()
        check(f"{name}: gradient", (off / most)**0.5 < 1e-6, (off / most)**0.5)
        for optimiser, make in STEPS.items():
            if every and optimiser.startswith("adam"):
                continue  # makes steps of the noise that is the gradient of biases before a batch norm
            extra = ["--rate", 0.01 if optimiser.startswith("adam") else 0.05, "--momentum", 0.8]
            told, after, _ = train("few", *options, "--epochs", 6, "--optimiser", optimiser, *extra)
            module = modules_of(torch, name, channels)
            load(torch, module, before)
            steps = make(torch, module.parameters())
            for _ in range(6):
                steps.zero_grad()
                loss = torch.nn.CrossEntropyLoss()(module(x), y)
                loss.backward()
                steps.step()
            off = max(np.abs(after[n] - p.detach().numpy()).max() for n, p in module.state_dict().items()
                      if n in after)
            check(f"{name}: {optimiser}", off < 2e-5, off)
            check(f"{name}: {optimiser}: loss", abs(told["loss"] * 6 - 0) > 0 and
                  abs(after["history"][5, 0] - float(loss)) < 1e-5, (after["history"], float(loss)))
        done = shoal("predict", "model.safetensors", "few.npy", "--probabilities", "shares.npy", "--force")
        with torch.no_grad():
            off = np.abs(np.load("shares.npy") - torch.softmax(module.eval()(x), 1).numpy()).max()
        check(f"{name}: predict", done.returncode == 0 and off < 1e-4, (off, done.stderr))


# ---- the same bytes --------------------------------------------------------------------------------------------------


def weights_are_the_same_everywhere():
    save_images("some", 700, 1, seed=4)
    options = ["--net", NET, "--batch", 48, "--epochs", 2, "--validation", 0.15, "--optimiser", "adam", "--seed", 9,
               "--l2", 1e-3]

    def found(*more, **variables):
        done = shoal("train", "some.npy", "--target", "some-labels.npy", *options, "--model", "same.safetensors",
                     "--force", "--quiet", *more, **variables)
        check(f"{more}", done.returncode == 0, done.stderr)
        return hashlib.sha256(pathlib.Path("same.safetensors").read_bytes()).hexdigest()

    first = found("--threads", 1)
    ways = [("--threads", n) for n in range(2, 9)]
    ways += [("--kernel", name, "--threads", 2) for name in ("portable", "avx2", "avx512")]
    ways += [("--workers", f"local:{n}") for n in (1, 2, 3, 4)]
    for way in ways:
        probe = ["train", "some.npy", "--target", "some-labels.npy", "--net", NET, "--describe", *way]
        if way[0] == "--kernel" and shoal(*probe).returncode != 0:
            print(f"SKIPPED kernel set {way[1]}: not on this machine", flush=True)
            continue
        check(f"the same bytes with {way}", found(*way) == first)
    check("another seed, other weights", found("--seed", 10) != first)
    for kind in mpi.KINDS:
        work = mpi.Work("train", "some.npy", "--target", "some-labels.npy", *options,
                        files={"--model": "ranks.safetensors"})
        check("ranks are compared with the same bytes", hashlib.sha256(
            pathlib.Path(f"{work.expected}/ranks.safetensors").read_bytes()).hexdigest() == first)
        for ranks in (1, 2, 3, 4):
            work.agrees(kind, ranks)


def checkpoints_go_on_in_the_middle():
    """Killed in the middle of an epoch, by threads or ranks, and resumed by others."""
    save_images("some", 700, 1, seed=4)
    words = ["train", "some.npy", "--target", "some-labels.npy", "--net", NET, "--batch", "16", "--epochs", "6",
             "--validation", "0.1", "--quiet", "--force"]
    assert shoal(*words, "--model", "whole.safetensors").returncode == 0
    kept = [*words, "--model", "resumed.safetensors", "--checkpoint", 1e-6, "--checkpoint-file", "net.checkpoint"]
    first, last = ([], []) if not mpi.KINDS else (mpi.launcher(mpi.KINDS[0], 3), mpi.launcher(mpi.KINDS[-1], 2))
    for killed, then in (([], first), (first, last), (last, [])):
        followed = mpi.Followed()
        with mpi.Job([*killed, SHOAL, *kept, "--threads", 1, "--trace", followed.path]) as job:
            followed.rounds(job, 60)
            job.kill()
        followed.remove()
        with mpi.Job([*then, SHOAL, *kept, "--threads", 2, "--resume", "--json"]) as job:
            done = job.end()
        told = json.loads(done.out or "{}")
        check(f"killed: {killed}, resumed: {then}", done.code == 0 and told.get("resumed", 0) >= 50 and
              pathlib.Path("whole.safetensors").read_bytes() == pathlib.Path("resumed.safetensors").read_bytes(), done)


# ---- what people do --------------------------------------------------------------------------------------------------


def it_learns():
    _, labels = save_images("many", 3000, 3, seed=1)
    save_images("new", 500, 3, seed=2)
    pathlib.Path("net.txt").write_text("# small\nconv 6 3x3 relu\npool 2\ndense 4 softmax\n")
    told, tensors, about = train("many", "--net", "net.txt", "--epochs", 3, "--validation", 0.2)
    whole = pathlib.Path("model.safetensors").read_bytes()
    train("many", "--net", about["net"], "--epochs", 3, "--validation", 0.2)
    check("a model does not tell where its text lay", whole == pathlib.Path("model.safetensors").read_bytes())
    check("it learns", told["validation_accuracy"] > 0.98 and told["steps"] == 3 * 19, told)
    check("the text is in the model", about["net"] == "conv 6 3x3 relu;pool 2;dense 4 softmax", about)
    check("shapes", tensors["0.weight"].shape == (6, 3, 3, 3) and tensors["4.weight"].shape == (4, 96), tensors.keys())
    check("history", tensors["history"].shape == (3, 5) and tensors["history"][2, 3] == told["validation_accuracy"])
    done = shoal("predict", "model.safetensors", "new.npy", "--target", "new-labels.npy", "--score", "--json",
                 "--labels", "found.npy", "--probabilities", "shares.npy", "--force")
    scores = json.loads(done.stdout)
    known, found, shares = np.load("new-labels.npy"), np.load("found.npy"), np.load("shares.npy")
    share = (found == known).mean()
    check("predict", share > 0.98 and abs(scores["score"]["accuracy"] - share) < 1e-12, (scores, share))
    check("probabilities", np.allclose(shares.sum(axis=1), 1) and (shares.argmax(axis=1) == found).all())
    table = shoal("train", "many.npy", "--target", "many-labels.npy", "--net", "net.txt", "--describe")
    check("--describe", table.returncode == 0 and "6 x 8 x 8" in table.stdout and "556" in table.stdout, table)
    alone = shoal("train", "--net", "net.txt", "--shape", "10x10x3", "--describe")
    check("--describe without rows", alone.returncode == 0 and alone.stdout == table.stdout, alone)


def starts_are_weights_by_their_names():
    """A model's, and those of a file without metadata, as PyTorch's users have them."""
    save_images("many", 3000, 3, seed=1)
    options = ["--net", "conv 6 3x3 relu; pool 2; dense 4 softmax", "--seed", 5]
    _, first, _ = train("many", *options, "--epochs", 0, model="first.safetensors")
    _, whole, _ = train("many", *options, "--epochs", 1)
    _, started, _ = train("many", *options, "--epochs", 1, "--start", "first.safetensors")
    check("from the first weights", all(np.array_equal(whole[n], started[n]) for n in whole if n != "history"))
    foreign = {name: (first[name] + 1).astype("<f4") for name in ("0.weight", "0.bias", "4.weight", "4.bias")}
    write_tensors("foreign.safetensors", foreign)
    _, taken, _ = train("many", *options, "--epochs", 0, "--start", "foreign.safetensors")
    check("from foreign weights", all(np.array_equal(taken[name], foreign[name]) for name in foreign))
    done = shoal("train", "many.npy", "--target", "many-labels.npy", "--net", "dense 4 softmax", "--start",
                 "foreign.safetensors")
    check("weights of another net", done.returncode == 1 and "foreign.safetensors has no weights for this net" in
          done.stderr, done.stderr)


def batch_norms_have_tensors():
    """As PyTorch saves them, with a count that we don't need; a variance below 0 is refused."""
    options = ["--net", "batch norm; dense 4 softmax"]
    norm = {"0.weight": 3, "0.bias": 1, "0.running_mean": -2, "0.running_var": 0.5}
    foreign = {"2.weight": np.ones((4, 300), "<f4"), "2.bias": np.zeros(4, "<f4"),
               **{name: np.full(3, value, "<f4") for name, value in norm.items()}}
    write_tensors("foreign.safetensors", {**foreign, "0.num_batches_tracked": np.array(7, "<i8")})
    _, taken, _ = train("many", *options, "--epochs", 0, "--start", "foreign.safetensors", model="norm.safetensors")
    check("tensors of a batch norm", all(np.array_equal(taken[name], foreign[name]) for name in foreign), taken)
    content = pathlib.Path("norm.safetensors").read_bytes()
    half, below = struct.pack("<f", 0.5) * 3, struct.pack("<f", -0.5) * 3
    assert content.count(half) == 1
    pathlib.Path("bad.safetensors").write_bytes(content.replace(half, below))
    done = shoal("predict", "bad.safetensors", "many.npy", "--labels", "never.npy")
    check("a variance below 0", done.returncode == 1 and "a running variance of layer 0 is -0.5, which is below 0" in
          done.stderr, (done.returncode, done.stderr))


def layers_may_have_names():
    """Weights whose layers are not numbered: found by their shapes, or by --start-names."""
    save_images("many", 3000, 3, seed=1)
    random = np.random.default_rng(7)
    shapes = {"stem": (6, 3, 3, 3), "head": (4, 9), "middle": (9, 96), "left": (9, 9)}
    weights = {name: random.normal(size=shape).astype("<f4") for name, shape in shapes.items()}
    net = "conv 6 3x3 relu; pool 2; dense 9 relu; dense 4 softmax"
    write_tensors("named.safetensors", {f"net.{name}.weight": weights[name] for name in ("head", "middle", "stem")})
    start = ["--epochs", 0, "--start", "named.safetensors"]
    done = shoal("train", "many.npy", "--target", "many-labels.npy", "--net", net, *start, "--model", "m.safetensors")
    check("found by their shapes", done.returncode == 0 and "in the order of the net, net.stem, net.middle, net.head" in
          done.stderr, done.stderr)
    found = read_model("m.safetensors")[0]
    check("and taken", all(np.array_equal(found[f"{at}.weight"], weights[name]) and not found[f"{at}.bias"].any()
                           for at, name in ((0, "stem"), (4, "middle"), (6, "head"))), found.keys())
    write_tensors("two.safetensors", {f"{name}.weight": weights[name] for name in ("middle", "left", "head", "stem")} |
                  {"right.weight": weights["left"] + 1})
    two = ["--net", "conv 6 3x3 relu; pool 2; dense 9 relu; dense 9 relu; dense 9 relu; dense 4 softmax", "--epochs", 0,
           "--start", "two.safetensors"]
    _, found, _ = train("many", *two, "--start-names", "stem,middle,right,left,head")
    check("by --start-names", np.array_equal(found["8.weight"], weights["left"]) and
          np.array_equal(found["6.weight"], weights["left"] + 1), found.keys())
    for names, says in (([], "'left' may be any of 2 layers: --start-names"),
                        (["--start-names", "stem,middle,left"], "--start-names has fewer names"),
                        (["--start-names", "stem,middle,left,right,head,head"], "--start-names has more names"),
                        (["--start-names", "stem,middle,head,right,head"],
                         "'head' of two.safetensors does not have the tensors of layer 6")):
        done = shoal("train", "many.npy", "--target", "many-labels.npy", *two, *names)
        check(f"{names} is refused", done.returncode != 0 and says in done.stderr, done.stderr)


def a_net_from_elsewhere():
    """Trained by others, with batch norms, whose authors say how many of the test images it gets right."""
    weights = MNIST.parent / "vectors/safetensors/mnist_convnet.safetensors"
    images, labels = MNIST / "t10k-images-idx3-ubyte.gz", MNIST / "t10k-labels-idx1-ubyte.gz"
    if not weights.exists() or not images.exists():
        print(f"SKIPPED a net from elsewhere: there is no {weights} or no {images}", flush=True)
        return
    net = "conv 8 3x3 relu; conv 16 3x3 relu; conv 24 3x3 relu; batch norm; dense 32 relu; dropout 0.3; dense 10; " \
          "batch norm; softmax"
    done = shoal("train", images, "--target", labels, "--net", net, "--start", weights, "--rescale", ".1307:.3081",
                 "--epochs", 0, "--model", "convnet.safetensors")
    check("its layers are found", done.returncode == 0 and "conv1, conv2, conv3, norm1, fc1, fc2, norm2" in done.stderr,
          done.stderr)
    done = shoal("predict", "convnet.safetensors", images, "--target", labels, "--score", "--json")
    check("9,917 of 10,000", json.loads(done.stdout)["score"]["right"] == 9917, done.stdout[:300])


def pytorch_loads_models():
    """A model's tensors are the state of nn.Sequential, all of it, and give the same probabilities."""
    try:
        import torch
    except ImportError:
        return  # and said so above
    nn = torch.nn
    images, _ = save_images("few", 96, 3)
    net = "conv 6 3x3 pad 1; batch norm relu; pool 2; depthwise 3x3 relu; dense 5 tanh; dense 4 softmax"
    _, tensors, _ = train("few", "--net", net, "--epochs", 2)
    module = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
                           nn.Conv2d(6, 6, 3, groups=6), nn.ReLU(), nn.Flatten(), nn.Linear(54, 5), nn.Tanh(),
                           nn.Linear(5, 4))
    state = {name: torch.from_numpy(value.astype(np.float32)) for name, value in tensors.items()
             if name not in ("classes", "history")}
    state["1.num_batches_tracked"] = torch.tensor(0)
    module.load_state_dict(state)
    module.eval()
    with torch.no_grad():
        there = torch.softmax(module(torch.from_numpy((images.transpose(0, 3, 1, 2) / 255).astype(np.float32))), 1)
    shoal("predict", "model.safetensors", "few.npy", "--probabilities", "p.npy", "--force")
    off = np.abs(np.load("p.npy") - there.numpy()).max()
    check("PyTorch says the same", off < 1e-5, off)


def tables_and_words():
    """Columns of a text file, with a target of words that is not the last column; --shape says they are images."""
    random = np.random.default_rng(5)
    points = random.normal(size=(400, 4))
    words = np.where(points[:, 0] > 0, "right", "left")
    lines = [f"{a:.6g},{w},{b:.6g},{c:.6g},{d:.6g}" for (a, b, c, d), w in zip(points, words)]
    pathlib.Path("table.csv").write_text("a,side,b,c,d\n" + "\n".join(lines) + "\n")
    for net, more in (("dense 8 tanh; dense 2 softmax", []), ("conv 4 2x2 relu; dense 2 softmax", ["--shape", "2x2"])):
        done = shoal("train", "table.csv", "--target", "side", "--net", net, "--epochs", 30, "--batch", 16, "--model",
                     "words.safetensors", "--force", "--json", *more)
        told = json.loads(done.stdout or "{}")
        check(f"{net} on a table", told.get("accuracy", 0) > 0.95, done)
        done = shoal("predict", "words.safetensors", "table.csv", "--labels", "words.csv", "--force", "--score")
        check("labels are words", done.returncode == 0 and
              (np.array(pathlib.Path("words.csv").read_text().split()[-400:]) == words).mean() > 0.95, done)


def batch_norms_see_groups():
    """What is normalised by is found in each group; averages count groups by their rows, and single rows are left
    out: of images that are all the same a batch norm leaves nothing, so that the loss of each row is log 4."""
    images, labels = save_images("few", 40)
    options = ["--batch", 40, "--strata", 1, "--epochs", 1, "--rate", 0.125, "--optimiser", "sgd"]
    _, without, _ = train("few", "--net", "batch norm; dense 4 softmax", *options)
    _, tensors, _ = train("few", "--net", "batch norm; dense 4 softmax", *options, "--l2", 1, "--l1", 1)
    check("running means are those of the batch", abs(tensors["0.running_mean"][0] / (images / 2550).mean() - 1) < 1e-6,
          (tensors["0.running_mean"], images.mean()))
    check("there are no penalties of a batch norm", tensors["0.weight"][0] == without["0.weight"][0] and
          np.abs(tensors["2.weight"]).sum() < np.abs(without["2.weight"]).sum(), tensors["0.weight"])
    for rows in (17, 33):
        np.save("few.npy", np.full((rows, 6, 6), 77, np.uint8))
        np.save("few-labels.npy", np.arange(rows) % 4)
        told, tensors, _ = train("few", "--net", "batch norm; conv 3 2x2; batch norm; dense 4 softmax", "--batch", rows,
                                 "--strata", 1, "--epochs", 1)
        check(f"{rows} rows: the loss", abs(tensors["history"][0, 0] - np.log(4)) < 1e-6, tensors["history"])
        told, tensors, _ = train("few", "--net", "batch norm; dense 4 softmax", "--batch", 16, "--strata", 1,
                                 "--epochs", 1, "--optimiser", "adam")
        check(f"{rows} rows: a batch of one row", told["steps"] == (rows + 15) // 16 and
              np.isfinite(tensors["2.weight"]).all() and tensors["0.running_mean"][0] > 0, (told, tensors))


def refused():
    save_images("small", 300)
    np.save("zeros-labels.npy", np.zeros(300, np.uint8))
    cases = [
        (["--net", "conv 3 11x11; dense 4 softmax"], "layer 1, 'conv 3 11x11': a kernel of 11x11 does not fit"),
        (["--net", "dense 5 softmax"], "the target has 4 classes, 0 to 3, but the net's softmax has 5 values"),
        (["--net", "dense 4 softmax", "--validation", 1.5], "--validation 1.5: a share is between 0 and 0.95"),
        (["--net", "dense 4 softmax", "--early-stop", 3], "--early-stop needs --validation"),
        (["--net", "dense 4 softmax", "--shape", "3x3"], "--shape 3x3 makes 9 values, but the rows have 100"),
        (["--net", "none/net.txt"], "--net none/net.txt: there is no such file"),
        (["--net", "dense 9 relu; dense 9 relu; dense 4 softmax", "--batch", 8, "--rate", 1e6], "try a lower --rate"),
        (["--net", "dense 4 softmax", "--rescale", "1:0"], "--rescale: 1:0 is not MEAN:DEVIATION"),
        (["--net", "dense 4 softmax", "--rescale", "0:1e-300"], "--rescale: 0:1e-300 leads beyond float32"),
        (["--net", "dense 4 softmax", "--rescale", "1e300:1"], "--rescale: 1e300:1 leads beyond float32"),
        ([], "--net is missing"),
        (["--net", "dense 4 softmax", "--rate", 0], "--rate must be at least 1e-37, not 0"),
        (["--net", "dense 4 softmax", "--target", "zeros-labels.npy"], "at least two classes"),
        (["--net", "dense 4 softmax", "--optimiser", "adm"], "optimiser"),
        (["--net", "batch norm; dense 4 softmax", "--group", 1], "--group 1: a batch norm finds its averages in each"),
        (["--net", "batch norm; dense 4 softmax", "--batch", 7, "--strata", 4],
         "a batch norm needs groups of at least two rows, but a batch of 7 has one or none of each of 4 strata"),
        (["--net", "conv 4 1x1; save a; pool 2; add a; dense 4 softmax"],
         "layer 4, 'add a': 'a' of layer 2 is 4 x 10 x 10, but what comes before this is 4 x 5 x 5"),
    ]
    for options, says in cases:
        done = shoal("train", "small.npy", "--target", "small-labels.npy", "--model", "never.safetensors", *options)
        check(f"{options} is refused", done.returncode in (1, 2) and says in done.stderr and
              not os.path.exists("never.safetensors"), (done.returncode, done.stderr))
    train("small", "--net", "dense 4 softmax", "--batch", 16, "--epochs", 1)
    content = pathlib.Path("model.safetensors").read_bytes()
    scale = float(read_model("model.safetensors")[1]["scale"])
    check("the scale of bytes is a float32", scale == float(np.float32(1) / np.float32(255)), scale)
    for old, new, says in [(b'"10"', b'"11"', "'1.weight' has shape"), (b"dense 4", b"dense 5", "'classes' has shape"),
                           (b"softmax", b"softmux", "'softmux' is not understood"),
                           (b"0.0039", b"1e0309", "'scale' is "), (b"0.0039", b"1e0038", "'scale' is ")]:
        assert old in content
        pathlib.Path("bad.safetensors").write_bytes(content.replace(old, new))
        done = shoal("predict", "bad.safetensors", "small.npy", "--labels", "never.npy")
        check(f"a model with {new}", done.returncode == 1 and says in done.stderr, (done.returncode, done.stderr))


def digits():
    if not MNIST.exists():
        print(f"SKIPPED MNIST: there is no {MNIST}", flush=True)
        return
    done = shoal("train", MNIST / "t10k-images-idx3-ubyte.gz", "--target", MNIST / "t10k-labels-idx1-ubyte.gz", "--net",
                 f"{home}/examples/digits.net", "--epochs", 2, "--validation", 0.2, "--json")
    told = json.loads(done.stdout)
    check("digits", told["parameters"] == 36845 and told["validation_accuracy"] > 0.95, told)


folder = tempfile.mkdtemp(prefix="shoal-train-")
home = os.getcwd()
os.environ.update(XDG_CACHE_HOME=f"{folder}/cache", TMPDIR=folder)
os.chdir(folder)
try:
    for test in (gradients_are_those_of_pytorch, weights_are_the_same_everywhere, checkpoints_go_on_in_the_middle,
                 it_learns, starts_are_weights_by_their_names, batch_norms_have_tensors, layers_may_have_names,
                 a_net_from_elsewhere, pytorch_loads_models, tables_and_words, batch_norms_see_groups, refused, digits):
        test()
finally:
    os.chdir(home)
    shutil.rmtree(folder)
sys.exit(failed > 0)
