#!/usr/bin/env python3
# Seconds: 50
"""What `shoal store put` costs, and that a large one that was killed goes on, with Azurite and with Ceph's radosgw.

    test_store_put.py PATH_TO_shoal

Between the program and the server stands a relay, which counts what is sent as blocks or parts, and which can hold
them: so the program is killed when as many have arrived as the test wants, and not by the clock.  A server that is not
installed is left out.
"""
import contextlib
import http.client
import http.server
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import urllib.parse

import azurite
import radosgw

SHOAL = os.path.abspath(sys.argv[1])
SECONDS = 40
MIB = 1 << 20
SIZE, PIECE, PIECES = 66 * MIB + 5, 8 * MIB, 9


class Relay(http.server.ThreadingHTTPServer):
    """Passes requests on as they are.  Those that carry a piece of a large put are counted, and held after `let`."""
    daemon_threads = True

    def __init__(self, port, let=None):
        super().__init__(("127.0.0.1", 0), Passing)
        self.port, self.let = port, let
        self.begun = self.pieces = self.bytes = 0
        self.lock = threading.Condition()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def begin(self):
        """Whether this piece may pass."""
        with self.lock:
            self.begun += 1
            return self.let is None or self.begun <= self.let

    def end(self, size):
        with self.lock:
            self.pieces += 1
            self.bytes += size
            self.lock.notify_all()

    def wait(self, pieces):
        with self.lock:
            assert self.lock.wait_for(lambda: self.pieces >= pieces, SECONDS), f"{pieces} pieces never came"


class Passing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def pass_on(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query, keep_blank_values=True)
        piece = self.command == "PUT" and (query.get("comp") == ["block"] or "partNumber" in query)
        if self.headers.get("Expect"):
            self.send_response_only(100)
            self.end_headers()
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        if len(body) < size:  # whoever sent it was killed
            self.close_connection = True
            return
        if piece and not self.server.begin():
            self.close_connection = True
            threading.Event().wait(SECONDS)  # whoever waits for an answer is killed meanwhile
            return
        server = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=SECONDS)
        server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("expect", "connection"):
                server.putheader(name, value)
        server.endheaders(body if body else None)
        answer = server.getresponse()
        content = answer.read()
        if piece and answer.status in (200, 201):
            self.server.end(len(body))
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        if self.command == "HEAD" and answer.getheader("Content-Length"):
            self.send_header("Content-Length", answer.getheader("Content-Length"))
        else:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        server.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = pass_on

    def handle_one_request(self):
        with contextlib.suppress(ConnectionError):  # of a program that was killed
            super().handle_one_request()

    def log_message(self, *_):
        pass


# ---- the program ---------------------------------------------------------------------------------------------------


class Store:
    """A store behind a relay: a new one for every run, so that nothing of a run that was killed comes late."""

    def __init__(self, url, folder, port, endpoint, variables):
        self.url, self.folder, self.port, self.endpoint = url, folder, port, endpoint
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "AZURE_", "SHOAL_"))}
        self.environment = {**clean, "HOME": "/nonexistent", "XDG_STATE_HOME": f"{folder}/state", **variables}

    def start(self, *words, let=None):
        self.relay = Relay(self.port, let)
        name, path = self.endpoint
        environment = {**self.environment, name: f"http://127.0.0.1:{self.relay.server_port}{path}"}
        return subprocess.Popen([SHOAL, "store", *words], env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words):
        process = self.start(*words, "--json")
        out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, (words, out, err)
        return json.loads(out)

    def write(self, name, seed, size=SIZE):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(random.Random(seed).randbytes(size))
        return path

    def expect(self, key, path):
        found = os.path.join(self.folder, "found")
        self.run("get", f"{self.url}/{key}", found)
        with open(path, "rb") as a, open(found, "rb") as b:
            assert a.read() == b.read(), f"{key} is not what was put"
        os.remove(found)

    def break_off(self, path, key, pieces):
        """A put that is killed when so many pieces of it have arrived; their bytes."""
        process = self.start("put", path, f"{self.url}/{key}", let=pieces)
        try:
            self.relay.wait(pieces)
        finally:
            process.kill()
            process.communicate()
        return self.relay.bytes


# ---- the tests -----------------------------------------------------------------------------------------------------


def a_small_put_is_one_put(store):
    """But for what opening the store costs."""
    small = [store.write(f"small{i}", i, 1000) for i in range(4)]
    one, three = store.run("put", small[0], f"{store.url}/"), store.run("put", *small[1:], f"{store.url}/")
    assert three["requests"]["put"] - one["requests"]["put"] == 2 and three["requests"]["get"] == 0, (one, three)
    checked = store.run("put", small[0], f"{store.url}/checked", "--verify")
    assert checked["requests"]["put"] == one["requests"]["put"] and checked["requests"]["get"] == 1, (one, checked)
    store.expect("small0", small[0])


def a_put_that_was_killed_goes_on(store):
    large = store.write("large", 2)
    before = store.break_off(large, "large", 4) + store.break_off(large, "large", 2)
    done = store.run("put", large, f"{store.url}/large")
    assert done["requests"]["get"] == 0, done
    assert store.relay.pieces == PIECES - 6 and store.relay.bytes == SIZE - before, (store.relay.pieces, before, done)
    assert done["sent"] < SIZE - before + MIB, done
    assert done["resumed_bytes"] == before, (before, done)
    store.expect("large", large)


def pieces_of_two_files_are_never_mixed(store):
    first = store.write("first", 4)
    store.break_off(first, "mixed", 4)
    with open(first, "rb") as file:
        content = file.read()
    second = os.path.join(store.folder, "second")
    with open(second, "wb") as file:  # the same size, and one other byte in every piece but the last two
        for at in range(0, SIZE, PIECE):
            file.write((b"x" if at < 7 * PIECE else content[at:at + 1]) + content[at + 1:at + PIECE])
    store.run("put", second, f"{store.url}/mixed")
    store.expect("mixed", second)


def test(store):
    for function in (a_small_put_is_one_put, a_put_that_was_killed_goes_on, pieces_of_two_files_are_never_mixed):
        function(store)
        print(f"passed {function.__name__}: {store.url}", flush=True)


def with_azurite(folder):
    with azurite.Server(folder, "azurite") as server:
        server.wait()
        store = Store(f"az://{azurite.ACCOUNT}/box", folder, server.ports[0],
                      ("AZURE_STORAGE_BLOB_ENDPOINT", f"/{azurite.ACCOUNT}"), server.variables())
        store.run("put", "--create", store.write("first-of-all", 0, 10), f"{store.url}/first-of-all")
        test(store)


def with_radosgw(folder):
    with radosgw.Server(folder) as server:
        store = Store("s3://box", folder, urllib.parse.urlsplit(server.address).port, ("AWS_ENDPOINT_URL", ""),
                      {"AWS_EC2_METADATA_DISABLED": "true", "AWS_ACCESS_KEY_ID": server.key,
                       "AWS_SECRET_ACCESS_KEY": server.secret})
        store.run("put", "--create", store.write("first-of-all", 0, 10), f"{store.url}/first-of-all")
        test(store)


def main():
    wanted = sys.argv[2:] or ["azurite", "radosgw"]
    left_out = 0
    for name, function, why in (("azurite", with_azurite, "" if azurite.PROGRAM else "Azurite is not installed"),
                                ("radosgw", with_radosgw, " ".join(radosgw.missing()))):
        if name not in wanted:
            continue
        if why:
            print(f"left out {name}: {why}", flush=True)
            left_out += 1
            continue
        with tempfile.TemporaryDirectory(prefix="shoal-put-") as folder:
            function(folder)
    sys.exit(77 if left_out == len(wanted) else 0)


main()
