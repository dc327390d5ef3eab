"""Work for learners that go down a gradient, small but of many grains, for the tests of engines; of nets, by batches.

    make_data(folder, run)          # run(*words) calls the program
    run("autoencoder", *LEARNERS["autoencoder"], "--model", "found.safetensors")        # in that folder
"""
import os
import random

LEARNERS = {  # each does as many iterations as it may
    "autoencoder": ["pictures.npy", "--hidden", 6, "--iterations", 40, "--tolerance", 0, "--change", 0],
    "logistic": ["labelled.npy", "--target", -1, "--iterations", 40, "--l2", 0.01, "--tolerance", 0],
    "train": ["labelled.npy", "--target", -1, "--net", "dense 9 tanh; dropout 0.2; dense 3 softmax", "--batch", 256,
              "--epochs", 7, "--optimiser", "adam"],
}


def rounds(learner, count):
    """Options for about so many rounds instead, behind the others."""
    return ["--epochs", (count + 5) // 6] if learner == "train" else ["--iterations", count]


def make_data(folder, run):
    """1,500 rows of 16 values that depend on each other, between 0 and 1; and with one of three labels behind them."""
    chance = random.Random(16)
    causes = [[chance.gauss(0, 1) for _ in range(16)] for _ in range(4)]
    with open(f"{folder}/pictures.csv", "w", encoding="ascii") as pictures, open(f"{folder}/labelled.csv", "w",
                                                                                 encoding="ascii") as labelled:
        for _ in range(1500):
            kind = chance.randrange(3)
            shares = [chance.random() + (kind == number) for number in range(4)]
            row = [
                min(max(0.5 + 0.1 * sum(s * c[i] for s, c in zip(shares, causes)) + chance.gauss(0, 0.05), 0), 1)
                for i in range(16)
            ]
            text = ",".join(f"{value:.4f}" for value in row)
            pictures.write(f"{text}\n")
            labelled.write(f"{text},{kind}\n")
    for name in ("pictures", "labelled"):
        run("data", "convert", f"{folder}/{name}.csv", f"{folder}/{name}.npy")
        os.unlink(f"{folder}/{name}.csv")
