#!/usr/bin/python3
"""Stores beside what the machine, curl and the vendor's own client do.

    ./dev bench store [--quick] [--only WORD] [--rounds N] [--markdown]

The programs take turns, and medians of the rounds count.  A table on stdout, everything in bench/results/store.json.
--quick takes a minute: fewer and shorter rounds, no https, no S3.  --only keeps the groups whose name has WORD in it
(puts, sync, copies, latency, http, https, s3), --markdown prints the last results as bench/README.md has them.
Nothing here fails when a bar is missed: the table says so.
"""
import argparse
import base64
import contextlib
import copy
import hashlib
import hmac
import json
import os
import pathlib
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
PEERS = ROOT / "build" / "peers" / "node_modules"
MIB = 1 << 20

# Every emulator of Azure has this account and key; they are no secret.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

sys.path.insert(0, str(ROOT / "tests" / "system"))


class Bench:
    """What all groups need: how much to do, where, and what was found so far."""

    def __init__(self, quick, rounds, build, folder):
        self.quick, self.rounds, self.folder = quick, rounds, pathlib.Path(folder)
        self.rates = build / "bench_store_rates"
        self.shoal = build / "shoal"
        self.rows, self.notes = [], []

    def store_rates(self, *words, environment=None):
        return json.loads(run([self.rates, *words], environment))

    def few(self, many, few):
        return few if self.quick else many

    def fresh(self, name):
        """An empty folder; what an earlier round left there would be in the way."""
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def add(self, group, work, unit, figures, bar=None, against=None):
        """A row of the table. figures: program -> one figure a round, more is better; the bar is for the ratio of shoal
        to `against`, round by round, or for shoal's own figure when there is none."""
        ratios = [ours / theirs for ours, theirs in zip(figures["shoal"], figures[against])] if against else []
        row = {"group": group, "work": work, "unit": unit, "against": against, "bar": bar, "figures": figures,
               "medians": {who: statistics.median(found) for who, found in figures.items()},
               "ratio": statistics.median(ratios) if ratios else None}
        judged = row["ratio"] if against else row["medians"]["shoal"]
        row["met"] = None if bar is None else judged >= bar
        self.rows.append(row)
        say(f"    {work}: " + ", ".join(f"{who} {figure_text(value)}" for who, value in row["medians"].items()) +
            (f" {unit}; ratio {row['ratio']:.2f}" if ratios else f" {unit}"))


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(words, environment=None, stdin=None):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, input=stdin,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        raise RuntimeError(
            f"{pathlib.Path(str(words[0])).name} exits with {done.returncode}: {done.stderr.strip()[:500]}")
    return done.stdout


# ---- a folder --------------------------------------------------------------------------------------------------------


def bench_puts(bench):
    """Small puts of four processes at once, with and without a condition, in turn."""
    kinds = {"always": "unconditional", "absent": "put-if-absent"}
    puts, shares, bodies = {kind: [] for kind in kinds}, {kind: [] for kind in kinds}, "100 B"
    for _ in range(bench.rounds):
        for kind in kinds:
            store = bench.fresh("puts")
            found = bench.store_rates("puts", f"dir:{store}/store", 4, bench.few(3, 1), 100, kind)
            puts[kind].append(sum(found["puts"]) / found["seconds"])
            shares[kind].append(min(found["puts"]) / max(found["puts"]))
    for kind, text in kinds.items():
        bench.add("folder", f"puts of {bodies}, {text}, 4 processes", "a second", {"shoal": puts[kind]}, 20_000)
    for kind, text in kinds.items():
        bench.add("folder", f"the same: slowest of the processes / fastest, {text}", "", {"shoal": shares[kind]}, 0.25)


def bench_sync(bench):
    """Puts that wait for the disk, beside a loop of write and fdatasync."""
    disk, ours, seconds = {}, {1: [], 4: []}, bench.few(3, 1)
    peers = {"fdatasync, file grows": (4096, "append"), "fdatasync, within a file": (4096, "rewrite"),
             "fdatasync of 100 B, file grows": (100, "append")}
    store = bench.fresh("sync")
    for _ in range(bench.rounds):
        for processes in ours:
            found = bench.store_rates("puts", f"dir:{store}/store?sync=full", processes, seconds, 100, "always")
            ours[processes].append(sum(found["puts"]) / found["seconds"])
            for name, (size, how) in peers.items():
                found = bench.store_rates("syncs", store / "file", seconds / 4, size, how)
                disk.setdefault((processes, name), []).append(found["syncs"] / found["seconds"])
    for processes, rates in ours.items():
        figures = {"shoal": rates, **{name: disk[processes, name] for name in peers}}
        bench.add("folder", f"sync=full: puts of 100 B, {processes} process{'es' if processes > 1 else ''}", "a second",
                  figures, 0.7, "fdatasync, file grows")


def bench_copies(bench):
    """Large bodies beside plain files, all in one process and in turn."""
    size = 64 * MIB
    pairs = [("put", ["write", "cp"], 0.8), ("get", ["read"], 0.8), ("get into a buffer", ["read into a buffer"], 0.8)]
    for policy in ["", "?sync=full"]:
        folder = bench.fresh("copies")
        found = bench.store_rates("copies", f"dir:{folder}/store{policy}", folder, size, bench.rounds)
        rates = {kind: [size / seconds / 1e6 for seconds in times] for kind, times in found.items()}
        for ours, peers, bar in pairs:
            if policy and ours != "put":
                continue  # nothing is synced when reading
            peer_names = {peer: f"{peer}{' + fdatasync' if policy else ''}" for peer in peers}
            bench.add("folder", f"{'sync=full: ' if policy else ''}{ours} of 64 MiB", "MB/s",
                      {"shoal": rates[ours], **{name: rates[peer] for peer, name in peer_names.items()}}, bar,
                      peer_names[peers[0]])


def bench_latency(bench):
    """What `shoal store bench` says of a folder."""
    store = bench.fresh("latency")
    words = [
        bench.shoal, "store", "bench", f"dir:{store}/store", "--create", "--json", "--quiet", "--seconds",
        bench.few(10, 4)
    ]
    try:
        bench.notes.append({"store bench": json.loads(run(words))})
    except (RuntimeError, ValueError) as error:
        say(f"    shoal store bench: {error}")


# ---- servers ---------------------------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def azurite(folder, authority=None):
    """The emulator on loopback; gives its blob endpoint.  With an authority it speaks https."""
    blob, queue, table = free_port(), free_port(), free_port()
    words = [
        "node", PEERS / "azurite/dist/src/azurite.js", "--silent", "--disableTelemetry", "--skipApiVersionCheck",
        "--location", folder, "--blobHost", "127.0.0.1", "--blobPort", blob, "--queueHost", "127.0.0.1", "--queuePort",
        queue, "--tableHost", "127.0.0.1", "--tablePort", table, "--blobKeepAliveTimeout", 60,
        "--queueKeepAliveTimeout", 60
    ]
    if authority:
        words += ["--cert", authority["certificate"], "--key", authority["key"]]
    server = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        wait_for_port(server, blob)
        yield f"{'https' if authority else 'http'}://127.0.0.1:{blob}/{ACCOUNT}"
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def wait_for_port(server, port):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("Azurite did not start")


def make_authority(folder):
    """An authority of our own, and a certificate for 127.0.0.1 that it signed."""
    folder.mkdir(exist_ok=True)
    files = {name: folder / f"{name}.pem" for name in ["authority", "authority_key", "certificate", "key"]}
    run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", 2, "-subj", "/CN=bench authority",
         "-keyout", files["authority_key"], "-out", files["authority"]])
    run(["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-keyout", files["key"],
         "-out", folder / "request.pem"])
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    run([
        "openssl", "x509", "-req", "-in", folder / "request.pem", "-CA", files["authority"], "-CAkey",
        files["authority_key"], "-CAcreateserial", "-days", 2, "-extfile", folder / "names", "-out",
        files["certificate"]
    ])
    return files


def container_signature(container):
    """A shared access signature for one container, so that curl need not sign."""
    fields = {"sp": "racwdl", "st": "", "se": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86400)),
              "resource": f"/blob/{ACCOUNT}/{container}", "si": "", "sip": "", "spr": "", "sv": "2018-11-09", "sr": "c",
              "snapshot": "", "rscc": "", "rscd": "", "rsce": "", "rscl": "", "rsct": ""}
    digest = hmac.new(base64.b64decode(KEY), "\n".join(fields.values()).encode(), hashlib.sha256).digest()
    shown = {name: fields[name] for name in ["sp", "se", "sv", "sr"]}
    return urllib.parse.urlencode({**shown, "sig": base64.b64encode(digest).decode()})


# ---- programs that talk to a server ----------------------------------------------------------------------------------
# Each moves `count` blobs of `size` bytes on so many connections, and gives the seconds it took.


class Curl:
    """One process for all URLs, which keeps its connections.  What starting it takes is not counted."""

    def __init__(self, bench, address, query="", settings=(), upload_headers=()):
        self.folder, self.address, self.query, self.keep = bench.folder, address, query, None
        self.settings, self.upload_headers = list(settings), list(upload_headers)
        self.start = min(self.seconds_of(["curl", "--version"])[0] for _ in range(5))
        self.connections = 0

    @staticmethod
    def seconds_of(words, stdin=None):
        started = time.perf_counter()
        out = run(words, stdin=stdin)
        return time.perf_counter() - started, out

    def body(self, size):
        path = self.folder / f"body-{size}"
        if not path.exists():
            path.write_bytes(os.urandom(size))
        return path

    def keeping(self, folder):
        """The same, but what it gets stays in memory, as a program's own would; otherwise it goes to /dev/null."""
        other = copy.copy(self)
        other.keep = folder
        return other

    def output(self, i):
        return f"{self.keep}/{i}" if self.keep else "/dev/null"

    def move(self, how, size, count, connections):
        lines = ["silent", "fail", "http1.1", 'write-out = "%{http_code} %{num_connects}\\n"', *self.settings]
        if connections > 1:
            lines += ["parallel", "parallel-immediate", f"parallel-max = {connections}"]
        if how == "put":
            lines += [f'header = "{header}"' for header in self.upload_headers]
        for i in range(count):
            lines.append(f'url = "{self.address}/{size}/{i}{self.query}"')
            lines.append(f'upload-file = "{self.body(size)}"' if how == "put" else f'output = "{self.output(i)}"')
        seconds, out = self.seconds_of(["curl", "-K", "-"], "\n".join(lines) + "\n")
        told = [line.split() for line in out.splitlines()[-count:]]
        if len(told) != count or any(not code.endswith(("200", "201")) for code, _ in told):
            raise RuntimeError("curl: not every request was answered well")
        self.connections = sum(int(made) for _, made in told)
        return seconds - self.start


class Shoal:
    def __init__(self, bench, url, environment):
        self.bench, self.url, self.environment = bench, url, environment

    def move(self, how, size, count, connections):
        # A whole get asks for several ranges at once; on a given number of connections they come one after the other.
        verb = {"put": "put", "get": "ranges" if size >= MIB else "get", "whole get": "get"}[how]
        return self.bench.store_rates("moves", self.url, verb, size, count, connections,
                                      environment=self.environment)["seconds"]


class Node:
    def __init__(self, container, environment):
        self.container, self.environment = container, {**environment, "NODE_PATH": str(PEERS)}

    def move(self, how, size, count, connections):
        out = run(["node", ROOT / "bench/store_node.js", self.container, how, size, count, connections],
                  self.environment)
        return json.loads(out)["seconds"]


def size_text(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size // 1000} KB"


def take_turns(rounds, programs, how, size, count, connections):
    """Seconds of every program, by round; each round another one begins."""
    names, found = list(programs), {name: [] for name in programs}
    for round_number in range(rounds):
        for i in range(len(names)):
            name = names[(i + round_number) % len(names)]
            found[name].append(programs[name].move(how, size, count, connections))
    return found


def rates_of(seconds, size, count):
    amount = count if size < MIB else size * count / 1e6
    return {name: [amount / value for value in values] for name, values in seconds.items()}


def measure_server(bench, group, programs, size, bar):
    unit = "a second" if size < MIB else "MB/s"
    small = size < MIB
    # Enough to keep eight connections busy for a while: what opening a store takes is counted, and would hide the rest.
    few, many = {4000: (120, 240), 8 * MIB: (16, 64), 64 * MIB: (3, 8)}[size]
    few, many = bench.few(few, few // 2), bench.few(many, many // 2)
    rounds = bench.rounds * (3 if small else 1)  # short turns, since the figures of small requests move most
    kept = tempfile.TemporaryDirectory(dir="/dev/shm", prefix="bench-")
    programs["shoal"].move("put", size, many,
                           1)  # all that will be read is there, and all that is put replaces something
    for connections, count in [(1, few), (8, many)]:
        for how in ["put", "get"]:
            more = {} if small or how == "put" else {"curl, kept": programs["curl"].keeping(kept.name)}
            found = take_turns(rounds, {**programs, **more}, how, size, count, connections)
            bench.add(group, f"{how} {size_text(size)}, {connections} connection{'s' if connections > 1 else ''}", unit,
                      rates_of(found, size, count), bar, "curl")
    if size > 8 * MIB:
        found = {"shoal": [], "curl": []}
        for _ in range(bench.rounds):
            found["shoal"].append(programs["shoal"].move("whole get", size, few, 1))
            found["curl"].append(programs["curl"].move("get", size, few, 1))
        bench.add(group, f"get {size_text(size)} whole, into fresh memory (curl: 1 connection)", unit,
                  rates_of(found, size, few), None, "curl")
    kept.cleanup()


def bench_azure(bench, scheme):
    if not (PEERS / "azurite").exists():
        return say("    no Azurite below build/peers: ./dev deps bench")
    container = "bench"
    authority = make_authority(bench.folder / "authority") if scheme == "https" else None
    for size in [4000, 8 * MIB] if bench.quick else [4000, 8 * MIB, 64 * MIB]:
        # A fresh server for each size: Azurite gets slower, and its folder larger, with all that was ever put.
        with azurite(bench.fresh("azurite"), authority) as endpoint:
            environment = {
                "AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol={scheme};AccountName={ACCOUNT};"
                f"AccountKey={KEY};BlobEndpoint={endpoint};QueueEndpoint={endpoint}"
            }
            settings = []
            if authority:
                environment |= dict.fromkeys(["CURL_CA_BUNDLE", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"],
                                             str(authority["authority"]))
                settings = [f'cacert = "{authority["authority"]}"']
            programs = {
                "shoal": Shoal(bench, f"az://{ACCOUNT}/{container}", environment),
                "curl": Curl(bench, f"{endpoint}/{container}", "?" + container_signature(container), settings,
                             ["x-ms-blob-type: BlockBlob", "x-ms-version: 2021-12-02", "Expect:"])
            }  # no waiting for 100
            if (PEERS / "@azure/storage-blob").exists():
                programs["Node client"] = Node(container, environment)
            measure_server(bench, f"Azure, {scheme}", programs, size, 0.9)
        shutil.rmtree(bench.folder / "azurite", ignore_errors=True)


def bench_s3(bench):
    import radosgw
    if radosgw.missing():
        return say(f"    no {radosgw.missing()[0]}: left out")
    with radosgw.Server(str(bench.fresh("radosgw"))) as server:
        environment = {
            "AWS_ACCESS_KEY_ID": server.key, "AWS_SECRET_ACCESS_KEY": server.secret, "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": server.address
        }
        programs = {"shoal": Shoal(bench, "s3://bench", environment),
                    "curl": Curl(bench, f"{server.address}/bench", "",
                                 ['aws-sigv4 = "aws:amz:us-east-1:s3"', f'user = "{server.key}:{server.secret}"',
                                  'header = "x-amz-content-sha256: UNSIGNED-PAYLOAD"'])}
        for size in [4000, 8 * MIB]:  # its memory holds no more
            measure_server(bench, "S3, radosgw", programs, size, None)


# ---- printing --------------------------------------------------------------------------------------------------------


def figure_text(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def bar_text(row):
    if row["bar"] is None:
        return "-"
    return f"{row['bar']:g}" if row["against"] or row["bar"] < 1 else f"{row['bar']:,}"


def print_rows(rows, columns):
    print("| work | unit | shoal | " + " | ".join(columns) + " | ratio | bar | met |")
    print("|---|---|---:|" + "---:|" * len(columns) + "---:|---:|---|")
    for row in rows:
        cells = [figure_text(row["medians"][name]) if name in row["medians"] else "-" for name in columns]
        met = "-" if row["met"] is None else "yes" if row["met"] else "NO"
        print(f"| {row['work']} | {row['unit']} | {figure_text(row['medians']['shoal'])} | {' | '.join(cells)} "
              f"| {'-' if row['ratio'] is None else format(row['ratio'], '.2f')} | {bar_text(row)} | {met} |")
    print()


def print_folder(rows):
    """Peers differ from row to row: each is named beside its figure."""
    print("| work | unit | shoal | peer | peer's | ratio | bar | met | other peers |")
    print("|---|---|---:|---|---:|---:|---:|---|---|")
    for row in rows:
        medians, peer = row["medians"], row["against"]
        others = ", ".join(f"{name} {figure_text(value)}" for name, value in medians.items()
                           if name not in ("shoal", peer))
        met = "-" if row["met"] is None else "yes" if row["met"] else "NO"
        print(
            f"| {row['work']} | {row['unit'] or '-'} | {figure_text(medians['shoal'])} | {peer or '-'} "
            f"| {figure_text(medians[peer]) if peer else '-'} "
            f"| {'-' if row['ratio'] is None else format(row['ratio'], '.2f')} "
            f"| {bar_text(row)} | {met} | {others or '-'} |")
    print()


def print_latency(found):
    """What `shoal store bench --json` says, but for the bandwidths."""
    print("`shoal store bench` of a folder:\n")
    print("| 4 KiB | median, ms | 99th percentile, ms |\n|---|---:|---:|")
    for name, text in [("get", "get"), ("put", "put"), ("take", "take"),
                       ("seen", "put until a waiting reader has seen it")]:
        print(f"| {text} | {found[name]['median_ms']:.3f} | {found[name]['p99_ms']:.3f} |")
    print()


def print_report(report):
    print(
        f"Measured {report['when']} on {report['cpu']}, {report['cores']} cores, {report['disk']}, "
        f"{report['versions']}; {report['rounds']} rounds in turn{', quick' if report['quick'] else ''}, "
        f"load before {report['load']:.1f}.\n")
    groups = {}
    for row in report["rows"]:
        groups.setdefault(row["group"], []).append(row)
    for group, rows in groups.items():
        if group == "folder":
            print_folder(rows)
        else:
            print(f"{group}:\n")
            print_rows(rows, [
                name for name in ["curl", "curl, kept", "Node client"] if any(name in row["medians"] for row in rows)
            ])
    for note in report["notes"]:
        if "store bench" in note:
            print_latency(note["store bench"])
        else:
            print(f"Left out: {note['left out']}\n")


# ---- all of it -------------------------------------------------------------------------------------------------------


def cpu_name():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def disk_name(folder):
    """The file system a folder lies on: "ext4 on /dev/vda"."""
    found = json.loads(run(["findmnt", "--json", "--target", folder, "--output", "SOURCE,FSTYPE"]))["filesystems"][0]
    return f"{found['fstype']} on {found['source']}"


def versions():
    named = [f"curl {run(['curl', '--version']).split()[1]}"]
    for name in ["azurite", "@azure/storage-blob"]:
        with contextlib.suppress(OSError):
            named.append(f"{name} {json.loads((PEERS / name / 'package.json').read_text())['version']}")
    return ", ".join(named)


def build_rates(build):
    built = subprocess.run(["cmake", "--build", build, "--target", "bench_store_rates"], capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(f"bench: bench_store_rates was not built:\n{built.stdout[-2000:]}")


GROUPS = {
    "puts": bench_puts, "sync": bench_sync, "copies": bench_copies, "latency": bench_latency,
    "http": lambda bench: bench_azure(bench, "http"), "https": lambda bench: bench_azure(bench, "https"), "s3": bench_s3
}


def main():
    parser = argparse.ArgumentParser(prog="./dev bench store", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="a minute: fewer and shorter rounds, no https, no S3")
    parser.add_argument("--only", default="", help=f"one group of {', '.join(GROUPS)}")
    parser.add_argument("--rounds", type=int, help="of every measurement (5; quick: 2)")
    parser.add_argument("--folder", default=str(RESULTS),
                        help="where stores and files are made: the disk that is measured")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="the build that is measured")
    parser.add_argument("--markdown", action="store_true", help="print the last results and measure nothing")
    options = parser.parse_args()
    if options.markdown:
        return print_report(json.loads((RESULTS / "store.json").read_text()))
    if options.only and options.only not in GROUPS:
        parser.error(f"there is no group {options.only}: {', '.join(GROUPS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of what stops the servers
    RESULTS.mkdir(parents=True, exist_ok=True)
    build_rates(options.build)
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="store-") as folder:
        bench = Bench(options.quick, options.rounds or (2 if options.quick else 5), options.build, folder)
        report = {
            "when": time.strftime("%Y-%m-%d"), "cpu": cpu_name(), "cores": os.cpu_count(), "disk": disk_name(folder),
            "load": os.getloadavg()[0], "versions": versions(), "rounds": bench.rounds, "quick": options.quick,
            "rows": bench.rows, "notes": bench.notes
        }
        wanted = [options.only] if options.only else [g for g in GROUPS if not (options.quick and g in ("https", "s3"))]
        for group in wanted:
            say(group)
            try:
                GROUPS[group](bench)
            except RuntimeError as error:  # a server that does not start, say: the other groups still count
                bench.notes.append({"left out": f"{group}: {error}"})
                say(f"    left out: {error}")
            name = "store.json" if not options.only else f"store-{options.only}.json"
            (RESULTS / name).write_text(json.dumps(report, indent=1) + "\n")
    print_report(report)


if __name__ == "__main__":
    main()
