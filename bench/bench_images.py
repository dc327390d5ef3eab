#!/usr/bin/python3
"""Pictures made ready for training beside OpenCV and Pillow: processor time an image.

    ./dev bench images [--quick] [--json]

The 200 flowers of ../shared/data are decoded, resized to cover 192x192, cropped and, where a row says so, encoded as
JPEG of quality 95.  Every way does the same on one thread: libjpeg-turbo decodes, bilinear resizing without antialias,
central crop (Pillow's BILINEAR has antialias; it has no other that is as good).  The ways take turns; of three passes
each the fastest counts (--quick: of one).  Then `shoal data pack` packs 2,000 images, each flower under ten names, with
one thread and with two, in turn: the fastest of five counts, on the clock.  A table on stdout, everything in
bench/results/images.json.
"""
import argparse
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
FLOWERS = ROOT.parent / "shared" / "data" / "flowers"
RATES = ROOT / "build" / "bench_image_rates"
SHOAL = ROOT / "build" / "shoal"
RESULTS = ROOT / "bench" / "results"
SIDE = 192

# What is compared: our way, theirs, how much faster it should be, and whose bytes are compared.
ROWS = [("raw 192x192", "raw", "OpenCV raw", 1.2), ("raw 192x192, of decoding alone", "raw", "decoding alone", 0.85),
        ("JPEG, optimised tables", "best", "Pillow optimised", 1.25),
        ("JPEG, fixed tables", "fixed", "Pillow optimised", 1.8),
        ("JPEG 4:2:0, fixed tables", "fixed420", "OpenCV 4:2:0", 1.15),
        ("JPEG 4:2:0, optimised tables", "best420", "OpenCV 4:2:0 optimised", 1.15),
        ("reading TFRecords, warm", "TFRecords", "the folder", 2.3)]


def covers(h, w):
    h, w = (h * SIDE // w, SIDE) if w < h else (SIDE, w * SIDE // h)
    return h, w, (h - SIDE) // 2, (w - SIDE) // 2


def peers(cv2, np, Image):
    cv2.setNumThreads(1)

    def by_opencv(data):
        picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        h, w, top, left = covers(*picture.shape[:2])
        return cv2.resize(picture, (w, h), interpolation=cv2.INTER_LINEAR)[top:top + SIDE, left:left + SIDE]

    def by_pillow(data):
        picture = Image.open(io.BytesIO(data)).convert("RGB")
        h, w, top, left = covers(picture.height, picture.width)
        return picture.resize((w, h), Image.BILINEAR).crop((left, top, left + SIDE, top + SIDE))

    def saved(data):
        out = io.BytesIO()
        by_pillow(data).save(out, "JPEG", quality=95, subsampling=0, optimize=True)
        return out.getvalue()

    def encoded(data, optimise):
        options = [cv2.IMWRITE_JPEG_QUALITY, 95, cv2.IMWRITE_JPEG_OPTIMIZE, optimise]
        return cv2.imencode(".jpg", by_opencv(data), options)[1]

    return {"OpenCV raw": by_opencv, "OpenCV 4:2:0": lambda data: encoded(data, 0),
            "OpenCV 4:2:0 optimised": lambda data: encoded(data, 1), "Pillow optimised": saved}


def pass_of_peer(way, files):
    began = time.process_time()
    total = sum(size_of(way(data)) for data in files)
    return (time.process_time() - began) / len(files) * 1e6, total / len(files)


def size_of(item):
    return len(item) if isinstance(item, bytes) else item.size


def pass_of_ours(way, paths):
    done = subprocess.run([RATES, "1", way, *paths], stdout=subprocess.PIPE, check=True, text=True)
    return tuple(map(float, done.stdout.split()))


def pass_of_reading(source):
    done = subprocess.run([SHOAL, "data", "speed", source, "--batch-sizes", "20", "--batches", "50", "--repeat", "1",
                           "--size", f"{SIDE}x{SIDE}", "--json"], stdout=subprocess.PIPE, check=True, text=True)
    told = json.loads(done.stdout)["sources"][0]
    return 1e6 * told["processor_seconds"], told["bytes"] / len(list(FLOWERS.rglob("*.jpg")))


def measure(passes, packed):
    import cv2
    import numpy as np
    from PIL import Image
    paths = sorted(FLOWERS.rglob("*.jpg"))
    files = [path.read_bytes() for path in paths]
    ways = {name: lambda way=way: pass_of_peer(way, files) for name, way in peers(cv2, np, Image).items()}
    for way in ("decode", "raw", "fixed", "best", "fixed420", "best420", "antialias"):
        ways["decoding alone" if way == "decode" else way] = lambda way=way: pass_of_ours(way, paths)
    subprocess.run([SHOAL, "data", "pack", FLOWERS, packed, "--size", f"{SIDE}x{SIDE}", "-q"], check=True)
    ways["TFRecords"] = lambda: pass_of_reading(packed)
    ways["the folder"] = lambda: pass_of_reading(FLOWERS)
    runs = {name: [] for name in ways}
    for _ in range(passes):
        for name, way in ways.items():
            runs[name].append(way())
    return runs


def pack_seconds(images, out, threads):
    began = time.perf_counter()
    subprocess.run([SHOAL, "data", "pack", images, out, "--shards", "40", "--threads", str(threads)],
                   stdout=subprocess.DEVNULL, check=True)
    seconds = time.perf_counter() - began
    shutil.rmtree(out)
    return seconds


def measure_threads(passes):
    """Seconds of each pass with one thread, and with two."""
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        images = pathlib.Path(folder) / "images"
        for path in FLOWERS.rglob("*.jpg"):
            (images / path.parent.name).mkdir(parents=True, exist_ok=True)
            for i in range(10):
                shutil.copy(path, images / path.parent.name / f"{i}-{path.name}")
        passes = [[pack_seconds(images, pathlib.Path(folder) / "out", threads) for threads in (1, 2)]
                  for _ in range(passes)]
    return [list(seconds) for seconds in zip(*passes)]


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--quick", action="store_true", help="one pass of each, not the fastest of three")
    options.add_argument("--json", action="store_true", help="print what is written to bench/results/images.json")
    options = options.parse_args()
    if not FLOWERS.is_dir():
        print(f"SKIPPED: {FLOWERS} is not here: without photographs there is nothing to measure", file=sys.stderr)
        return
    subprocess.run(["cmake", "--build", ROOT / "build", "--target", "bench_image_rates", "shoal"], check=True,
                   stdout=subprocess.DEVNULL)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        runs = measure(1 if options.quick else 3, pathlib.Path(folder) / "packed")
    one, two = measure_threads(1 if options.quick else 5)
    best = {name: min(passes) for name, passes in runs.items()}
    rows = [{"what": what, "ours_us": best[ours][0], "peer": peer, "peer_us": best[peer][0],
             "ratio": best[peer][0] / best[ours][0], "bar": bar, "bytes": best[ours][1], "peer_bytes": best[peer][1]}
            for what, ours, peer, bar in ROWS]
    report = {"rows": rows, "runs": runs, "fixed_bytes_of_best": best["fixed"][1] / best["best"][1],
              "antialias_us": best["antialias"][0], "load_before": load, "pack_seconds": {"1": one, "2": two},
              "two_threads_of_one": min(one) / min(two)}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "images.json").write_text(json.dumps(report, indent=1) + "\n")
    if options.json:
        print(json.dumps(report, indent=1))
        return
    print("| what | us an image | peer | us an image | ratio | bar | met |\n|---|---:|---|---:|---:|---:|---|")
    for row in rows:
        print(f"| {row['what']} | {row['ours_us']:.0f} | {row['peer']} | {row['peer_us']:.0f} | {row['ratio']:.2f} "
              f"| {row['bar']:g} | {'yes' if row['ratio'] >= row['bar'] else 'NO'} |")
    more = report["fixed_bytes_of_best"]
    print(f"\nFixed tables take {100 * (more - 1):.1f}% more bytes than optimised ones ({best['fixed'][1]:.0f} and "
          f"{best['best'][1]:.0f} an image); the bar is 2%: {'yes' if more <= 1.02 else 'NO'}.")
    print(f"--resize antialias, raw: {best['antialias'][0]:.0f} us an image.")
    ratio = report["two_threads_of_one"]
    print(f"data pack, 2,000 images into 40 shards: {min(one):.2f} s with one thread, {min(two):.2f} s with two, "
          f"{ratio:.2f} times as fast; the bar is 1.9: {'yes' if ratio >= 1.9 else 'NO'}.  Load before: {load:.1f}.")


main()
