#!/usr/bin/env python3
# Seconds: 60
"""s3:// against real servers: Ceph's radosgw, which keeps the promises, and s3rver, which does not and is refused.

    test_store_s3.py PATH_TO_shoal

The conformance suite runs over radosgw; before it what only a real server shows: what it says to wrong keys, a wrong
clock and a key that may only read, keys from an instance's role, and that a large put that fails leaves nothing behind.
"""
import ctypes
import hashlib
import hmac
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import peers
import radosgw

SHOAL = os.path.abspath(sys.argv[1])
BUILT = os.path.dirname(SHOAL)

# Codes of include/shoal/error.h.
OK, INVALID, ABSENT, UNKNOWN, AGAIN, DENIED = 0, -2, -6, -9, -10, -11


# ---- the library, in a process of its own so that it has an environment of its own ----------------------------------


class Options(ctypes.Structure):
    _fields_ = [("create", ctypes.c_bool), ("read_only", ctypes.c_bool)]


class Etag(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 128)]


class Blob(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t), ("whole", ctypes.c_int64), ("etag", Etag),
                ("age", ctypes.c_double), ("memory", ctypes.c_void_p)]


def inside(order):
    """Opens a store and does one thing with it; prints what came of it."""
    library = ctypes.CDLL(os.path.join(BUILT, "libshoal.so"))
    library.shoal_error.restype = ctypes.c_char_p
    library.shoal_after.restype = ctypes.c_int64
    library.shoal_after.argtypes = [ctypes.c_double]

    def after(seconds):
        return ctypes.c_int64(library.shoal_after(seconds))

    store, etag, blob = ctypes.c_void_p(), Etag(), Blob()
    options = Options(order.get("create", False), order.get("read_only", False))
    status = library.shoal_store_open(ctypes.byref(store), order["url"].encode(), ctypes.byref(options), after(20))
    result = {}
    if status == OK and "put" in order:
        body = bytes(range(256)) * (order["put"] // 256)
        status = library.shoal_store_put(store, b"large", body, ctypes.c_size_t(len(body)), None, ctypes.byref(etag),
                                         after(order.get("seconds", 60)))
        result["etag"] = etag.text.decode()
    if status == OK and "get" in order:
        status = library.shoal_store_get(store, b"large", ctypes.byref(blob), after(60))
        if status == OK:
            result["right"] = ctypes.string_at(blob.data, blob.size) == bytes(range(256)) * (order["get"] // 256)
            result["found"] = blob.etag.text.decode()
            result["age"] = blob.age
    if status < 0:
        result["message"] = library.shoal_error().decode()
    library.shoal_store_close(ctypes.byref(store))
    print(json.dumps({"status": status, **result}))


def environment(server, **changes):
    """What a user would set, and nothing that this machine may have of its own."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    clean.update(HOME="/nonexistent", AWS_EC2_METADATA_DISABLED="true", AWS_ENDPOINT_URL=server.address,
                 AWS_ACCESS_KEY_ID=server.key, AWS_SECRET_ACCESS_KEY=server.secret)
    clean.update(changes)
    return {name: value for name, value in clean.items() if value}


def order(env, url, **options):
    command = [sys.executable, os.path.abspath(__file__), SHOAL, json.dumps({"url": url, **options})]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        assert env.get(name) is None or env[name] not in result.get("message", ""), "a secret is in a message"
    return result


def expect(result, status, *words):
    assert result["status"] == status, result
    for word in words:
        assert word in result.get("message", ""), result


# ---- requests of our own, to arrange things and to look -------------------------------------------------------------


def ask(server, method, path, query="", headers=()):
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    signed = sorted([("host", urllib.parse.urlsplit(server.address).netloc), ("x-amz-date", moment),
                     ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"), *headers])
    names = ";".join(name for name, _ in signed)
    canonical = "\n".join([method, path, query, *(f"{name}:{value}" for name, value in signed), "", names,
                           "UNSIGNED-PAYLOAD"])
    scope = f"{moment[:8]}/us-east-1/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = b"AWS4" + server.secret.encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    proof = f"AWS4-HMAC-SHA256 Credential={server.key}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
    request = urllib.request.Request(server.address + path + ("?" + query if query else ""), method=method,
                                     headers={**dict(signed), "Authorization": proof})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode()


# ---- servers that stand in ------------------------------------------------------------------------------------------


class Instance(http.server.BaseHTTPRequestHandler):
    """The metadata service of an instance that has a role (IMDSv2)."""

    keys = {}
    protocol_version = "HTTP/1.1"

    def say(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PUT(self):
        good = self.path == "/latest/api/token" and self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
        self.say(200 if good else 400, "the token")

    def do_GET(self):
        if self.headers.get("X-aws-ec2-metadata-token") != "the token":
            return self.say(401, "")
        if self.path == "/latest/meta-data/iam/security-credentials/":
            return self.say(200, "worker")
        if self.path == "/latest/meta-data/iam/security-credentials/worker":
            return self.say(200, json.dumps(self.keys))
        return self.say(404, "")

    def log_message(self, *_):
        pass


WRONG_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
enum { AHEAD = 3600 };
int clock_gettime(clockid_t clock, struct timespec *out)
{
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, out);
    out->tv_sec += clock == CLOCK_REALTIME ? AHEAD : 0;
    return result;
}
time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
"""


def make_wrong_clock(folder):
    """A library that sets the clock an hour ahead for whoever loads it; None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    source, library = os.path.join(folder, "clock.c"), os.path.join(folder, "clock.so")
    with open(source, "w") as file:
        file.write(WRONG_CLOCK)
    if not compiler:
        return None
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


# ---- what is tried --------------------------------------------------------------------------------------------------


def refuses_a_server_without_conditions(folder):
    started = start_s3rver(folder)
    if started is None:
        print("left out: npm's s3rver is not here")
        return
    process, server = started
    try:
        expect(order(environment(server), "s3://a-bucket", create=True), INVALID, "does not honour conditional writes",
               "If-None-Match", server.address)
        expect(order(environment(server), "s3://a-bucket", read_only=True), OK)
        assert ".shoal" not in ask(server, "GET", "/a-bucket", "list-type=2"), "the probe was left behind"
    finally:
        process.terminate()
        process.wait()


class Address:
    key, secret = "S3RVER", "S3RVER"

    def __init__(self, address):
        self.address = address


def start_s3rver(folder):
    program = peers.npm_peer("s3rver/bin/s3rver.js")
    if program is None:
        return None
    port = peers.free_ports(1)[0]
    data = os.path.join(folder, "s3rver")
    os.mkdir(data)
    with open(os.path.join(folder, "s3rver.log"), "wb") as log:
        process = subprocess.Popen(["node", program, "-d", data, "-a", "127.0.0.1", "-p", str(port)],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        peers.wait_for_port(port, process)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process, Address(f"http://127.0.0.1:{port}")


def makes_a_bucket(server):
    env = environment(server)
    expect(order(env, "s3://jobs"), ABSENT, "s3://jobs: there is no such bucket", "404 NoSuchBucket", "request tx")
    expect(order(env, "s3://jobs", create=True), OK)
    expect(order(env, "s3://jobs", create=True), OK)
    expect(order(env, "s3://jobs"), OK)
    assert ".shoal" not in ask(server, "GET", "/jobs", "list-type=2"), "the probe was left behind"


def conforms(server):
    """The suite, as it is and with faults, at the same time since both mostly wait."""
    suite = os.path.join(BUILT, "tests", "conform", "test_store")
    done = subprocess.run([
        suite, "--budget", "12", "s3://jobs/conform", "--budget", "6", "--seed", "3", "s3://jobs/faults"
    ], env=environment(server), timeout=200, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    assert done.returncode == 0, done.stdout
    print(done.stdout, end="")


def refusals_have_sentences(server, folder):
    expect(order(environment(server, AWS_SECRET_ACCESS_KEY="wr0ng"), "s3://jobs"), DENIED,
           "the secret key does not belong", "403 SignatureDoesNotMatch")
    expect(order(environment(server, AWS_ACCESS_KEY_ID="nobody"), "s3://jobs"), DENIED,
           "does not know this access key id")
    expect(order(environment(server, AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY=""), "s3://jobs"), DENIED,
           "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    clock = make_wrong_clock(folder)
    if clock:
        wrong = order(environment(server, LD_PRELOAD=clock), "s3://jobs")
        expect(wrong, DENIED, "this machine's clock is 3", "seconds ahead of the server's")
    else:
        print("left out: without a compiler there is no wrong clock")


def a_key_that_only_reads(server):
    server.make_user("reader", "readerkey", "readersecret")
    reader = {"AWS_ACCESS_KEY_ID": "readerkey", "AWS_SECRET_ACCESS_KEY": "readersecret"}
    expect(order(environment(server, **reader), "s3://jobs"), DENIED, "do not permit it", "403 AccessDenied")
    ask(server, "PUT", "/public", headers=[("x-amz-acl", "public-read")])
    expect(order(environment(server, **reader), "s3://public"), DENIED, "may not write here")
    expect(order(environment(server, **reader), "s3://public", read_only=True), OK)


def keys_of_a_role(server):
    service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Instance)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    try:
        Instance.keys = {"Code": "Success", "AccessKeyId": server.key, "SecretAccessKey": server.secret,
                         "Expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))}
        env = environment(server, AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="", AWS_EC2_METADATA_DISABLED="",
                          AWS_EC2_METADATA_SERVICE_ENDPOINT=f"http://127.0.0.1:{service.server_port}")
        expect(order(env, "s3://jobs"), OK)
        Instance.keys = {"Code": "Success", "AccessKeyId": server.key, "SecretAccessKey": "another"}
        expect(order(env, "s3://jobs"), DENIED, "the secret key does not belong")
    finally:
        service.shutdown()


def large_bodies(server):
    size = 80 << 20
    result = order(environment(server), "s3://jobs/large", put=size, get=size)
    expect(result, OK)
    assert result["right"] and result["etag"] == result["found"] and result["etag"].endswith("-10"), result
    assert 0 <= result["age"] < 30, result
    failed = order(environment(server), "s3://jobs/large", put=4 * size, seconds=0.3)
    assert failed["status"] in (AGAIN, UNKNOWN), failed
    assert "<UploadId>" not in ask(server, "GET", "/jobs", "uploads="), "parts of a failed upload were left"


def main():
    missing = radosgw.missing()
    if missing:
        print(f"SKIPPED: {', '.join(missing)} not here (Debian: radosgw ceph-mon ceph-osd ceph-common)")
        return 77
    with tempfile.TemporaryDirectory(prefix="shoal-s3-") as folder:
        refuses_a_server_without_conditions(folder)
        with radosgw.Server(folder) as server:
            makes_a_bucket(server)
            refusals_have_sentences(server, folder)
            a_key_that_only_reads(server)
            keys_of_a_role(server)
            large_bodies(server)
            conforms(server)
    return 0


if len(sys.argv) > 2:
    inside(json.loads(sys.argv[2]))
    sys.exit(0)
sys.exit(main())
