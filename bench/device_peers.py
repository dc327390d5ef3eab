"""What PyTorch does on the same GPU, for bench_device.py: one JSON object on standard output.

    device_peers.py rate|upload|lloyd|argmin|plusplus ROWS COLUMNS K
"""
import json
import sys
import time

import torch


def timed(function, turns=5):
    """Least and mean seconds of some turns, after one that is not counted."""
    function()
    torch.cuda.synchronize()
    seconds = []
    for _ in range(turns):
        began = time.perf_counter()
        function()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return min(seconds), sum(seconds) / turns


def rate():
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
    b = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
    least, _ = timed(lambda: a @ b, 20)
    return {"tflops": 2 * 8192**3 / least / 1e12}


def upload():
    host = torch.empty(1 << 30, dtype=torch.uint8).pin_memory()
    least, _ = timed(lambda: host.to("cuda", non_blocking=True))
    return {"gb_per_s": host.numel() / least / 1e9}


def lloyd(rows, columns, k, dtype):
    """Ten rounds: products, argmin, sums by index_add_, means."""
    x = torch.rand(rows, columns, device="cuda")
    start = x[:: rows // k][:k].clone()
    narrow, block = x.to(dtype), max(1, (1 << 30) // k)

    def rounds():
        centres = start.clone()
        for _ in range(10):
            half = (centres.float() ** 2).sum(1) / 2
            c = centres.to(dtype)
            labels = torch.cat([(half - (narrow[i : i + block] @ c.T)).argmin(1) for i in range(0, rows, block)])
            sums = torch.zeros(k, columns, device="cuda").index_add_(0, labels, x)
            counts = torch.bincount(labels, minlength=k).clamp(min=1)
            centres = sums / counts[:, None]

    least, mean = timed(rounds, 3)
    return {"least_ms": 1e3 * least, "mean_ms": 1e3 * mean}


def argmin(rows, columns, k):
    """Products and argmin alone, in bfloat16, as large a block at a time as is best."""
    x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    c = torch.randn(k, columns, device="cuda", dtype=torch.bfloat16)
    best = float("inf")
    for block in (1 << 14, 1 << 16, 1 << 18):

        def once():
            for i in range(0, rows, block):
                (x[i : i + block] @ c.T).argmax(1)

        best = min(best, timed(once, 1)[0])
    return {"least_ms": 1e3 * best}


def plusplus(rows, columns, k):
    """Plain k-means++: one row drawn for each centre."""
    x = torch.rand(rows, columns, device="cuda")
    square = (x**2).sum(1)

    def seed():
        chosen = x[torch.randint(rows, (1,), device="cuda")]
        nearest = torch.full((rows,), float("inf"), device="cuda")
        for _ in range(k - 1):
            distance = square - 2 * (x @ chosen[-1:].T)[:, 0] + (chosen[-1] ** 2).sum()
            nearest = torch.minimum(nearest, distance.clamp(min=0))
            at = torch.searchsorted(nearest.cumsum(0), torch.rand(1, device="cuda") * nearest.sum())
            chosen = torch.cat([chosen, x[at.clamp(max=rows - 1)]])

    least, _ = timed(seed, 1)
    return {"least_ms": 1e3 * least}


def main():
    what, sizes = sys.argv[1], [int(word) for word in sys.argv[2:5]]
    functions = {
        "rate": rate,
        "upload": upload,
        "lloyd": lambda *s: {
            "float32": lloyd(*s, torch.float32),
            "bfloat16": lloyd(*s, torch.bfloat16),
        },
        "argmin": argmin,
        "plusplus": plusplus,
    }
    print(json.dumps(functions[what](*sizes)))


if __name__ == "__main__":
    main()
