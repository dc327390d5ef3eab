"""k-means on a GPU, with the rows there, beside PyTorch: ./dev bench device (see bench/README.md).

Every program runs under a time limit of its own, and is killed there: a GPU that hangs costs minutes.  Nothing but the
C library, Python and, for the peers, PyTorch is needed, so --programs may be a folder that was copied to the machine.
"""
import argparse
import json
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))

# rows, columns, K, form, blobs, rounds, and bar and stretch in milliseconds
WORKS = [
    (500_000, 1000, 1000, "float32", 0, 10, 22, 18),
    (1_000_000, 128, 1024, "float32", 0, 10, 7.5, 6),
    (8_000_000, 128, 1024, "float32", 0, 10, 56, 42),
    (1_000_000, 128, 1024, "float32", 1000, 10, None, None),
]


def run(command, seconds):
    """What a program prints as JSON; {} with a line on standard error if it did not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError) as error:
        told = getattr(locals().get("done"), "stderr", "") or error
        print(f"missing: {' '.join(map(str, command))}: {told}", file=sys.stderr)
        return {}


class Bench:
    def __init__(self, options):
        self.options = options
        self.rows = []

    def shoal(self, *words, seconds=60):
        return run([os.path.join(self.options.programs, "bench_device_rounds"), self.options.device, *map(str, words)],
                   seconds)

    def peer(self, *words, seconds=60):
        return run([self.options.python, os.path.join(here, "device_peers.py"), *map(str, words)], seconds)

    def tell(self, what, ours, bar, stretch="–", peer="–"):
        self.rows.append((what, ours, bar, stretch, peer))
        print(f"| {what} | {ours} | {bar} | {stretch} | {peer} |", flush=True)

    def rounds(self):
        for rows, columns, k, form, blobs, rounds, bar, stretch in WORKS:
            ours = self.shoal(rows, columns, k, form, blobs, rounds, 7)
            peers = self.peer("lloyd", rows, columns, k) if not blobs and not self.options.quick else {}
            told = " / ".join(f"{peers[d]['least_ms']:.1f}" for d in ("float32", "bfloat16") if d in peers)
            value = ours.get("least_ms")
            if value:
                each = sorted(ours["turns_ms"])
                text = f"{each[len(each) // 2]:.2f} ({each[0]:.2f} to {each[-1]:.2f}) ms"
                met = "" if bar is None else " yes" if each[len(each) // 2] <= bar else " NO"
            self.tell(f"{rows:,}×{columns}, K={k}{', blobs' if blobs else ''}", text if value else "missing",
                      f"{bar}{met}" if value and bar else "–", stretch or "–", f"PyTorch {told} ms" if told else "–")

    def bytes_of_many_rows(self, rate):
        rows, columns, k, rounds = 10**8, 128, 4096, 10
        ours = self.shoal(rows, columns, k, "uint8", 0, rounds, 1, seconds=120)
        products = 2e3 * rows * columns * k * rounds / (rate * 1e12) if rate else 0
        value = ours.get("least_ms")
        self.tell("10⁸×128 uint8, K=4096", f"{value:.0f} ms" if value else "missing",
                  f"{1.3 * products:.0f} (1.3 × {products:.0f}) {'yes' if value and value <= 1.3 * products else 'NO'}")

    def many_centres(self):
        rows, columns, k = 10**7, 128, 65536
        ours = self.shoal(rows, columns, k, "float32", k, 1, 2, seconds=120)
        peer = self.peer("argmin", rows, columns, k, seconds=120).get("least_ms")
        value = ours.get("least_ms")
        self.tell("blobs 10⁷×128, K=65,536, one round", f"{value:.0f} ms" if value else "missing",
                  f"{peer:.0f} {'yes' if value and value <= peer else 'NO'}" if peer else "peer missing")

    def whole_program(self, pinned):
        import numpy

        place = "/dev/shm/shoal-bench-device.npy"
        rows, columns, k = 500_000, 1000, 1000
        made = numpy.lib.format.open_memmap(place, "w+", numpy.float32, (rows, columns))
        made[:] = numpy.random.default_rng(1).random((rows, columns), numpy.float32)
        del made
        command = [os.path.join(self.options.programs, "shoal"), "kmeans", place, "-k", str(k), "--init", "random",
                   "--iterations", "10", "--tolerance", "0", "--device", self.options.device, "--json"]
        ours = run(command, 60)
        phases = ours.get("seconds", {})
        upload = rows * columns * 4 / (pinned * 1e9) * 1e3 if pinned else 0
        self.tell("file to centres, 2 GB", json.dumps(phases) if phases else "missing",
                  f"2 × ({upload:.0f} ms + rounds)")
        os.remove(place)

    def seeding(self):
        rows, columns, k = 10**6, 128, 1024
        command = [os.path.join(self.options.programs, "shoal"), "kmeans",
                   f"gen:uniform?rows={rows}&cols={columns}&seed=3", "-k", str(k), "--init", "kmeans++",
                   "--iterations", "1", "--device", self.options.device, "--json"]
        ours = run(command, 60).get("seconds", {})
        peer = self.peer("plusplus", rows, columns, k).get("least_ms")
        self.tell("k-means++ 10⁶×128, K=1,024", json.dumps(ours) if ours else "missing",
                  f"{peer / 5:.0f} ms" if peer else "peer missing", peer=f"{peer:.0f} ms" if peer else "–")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the rounds alone, without peers")
    parser.add_argument("--device", default="cuda", help="as for shoal (default: cuda)")
    parser.add_argument("--programs", default="build", help="the folder with shoal and bench_device_rounds")
    parser.add_argument("--python", default="python3", help="one that has PyTorch (default: python3)")
    options = parser.parse_args()
    bench = Bench(options)
    if options.programs == "build":
        subprocess.run(["cmake", "--build", "build", "--target", "bench_device_rounds"], check=True,
                       stdout=subprocess.DEVNULL)
    if "failed" in bench.shoal(1000, 16, 4, "float32", 0, 1, 1) or not bench.shoal(1000, 16, 4, "float32", 0, 1, 1):
        print("there is no GPU here that shoal can use: nothing is measured", file=sys.stderr)
        return 0
    print("| what | shoal | bar | stretch | peer |\n|---|---|---|---|---|")
    bench.rounds()
    if not options.quick:
        rate, pinned = bench.peer("rate").get("tflops"), bench.peer("upload").get("gb_per_s")
        print(f"measured: {rate} TFLOP/s in fp16, pinned upload {pinned} GB/s", flush=True)
        bench.bytes_of_many_rows(rate)
        bench.many_centres()
        bench.whole_program(pinned)
        bench.seeding()
    return 0


if __name__ == "__main__":
    sys.exit(main())
