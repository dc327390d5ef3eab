#!/usr/bin/env python3
# Seconds: 40
"""az:// against Azurite with authentication on, over http and over https with an authority of its own.

    test_store_azure.py PATH_TO_shoal

The conformance suite runs over both; meanwhile a third Azurite is stopped and started again under writers, who must
lose nothing that was acknowledged, and each way in which credentials can be wrong gives a sentence of its own, in which
no secret stands.  Skipped (77) where Azurite is not installed.
"""
import base64
import ctypes
import datetime
import hashlib
import hmac
import http.server
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from azurite import ACCOUNT, KEY, PROGRAM, Server

SHOAL = os.path.abspath(sys.argv[1])
BUILT = os.path.dirname(SHOAL)
WRONG_KEY = base64.b64encode(hashlib.sha512(b"another").digest()).decode()

# Codes of include/shoal/error.h.
OK, USAGE, INVALID, ABSENT, CONFLICT, LOST, UNKNOWN, AGAIN, DENIED = 0, -1, -2, -6, -7, -8, -9, -10, -11

told = []  # every message, which must not hold a secret


# ---- the library ----------------------------------------------------------------------------------------------------


class Options(ctypes.Structure):
    _fields_ = [("create", ctypes.c_bool), ("read_only", ctypes.c_bool)]


class Blob(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t), ("whole", ctypes.c_int64),
                ("etag", ctypes.c_char * 128), ("age", ctypes.c_double), ("memory", ctypes.c_void_p)]


class Message(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t), ("deliveries", ctypes.c_int64),
                ("lease_ends", ctypes.c_int64), ("receipt", ctypes.c_char * 768)]


def load():
    library = ctypes.CDLL(os.path.join(BUILT, "libshoal.so"))
    library.shoal_error.restype = ctypes.c_char_p
    library.shoal_after.restype = ctypes.c_int64
    library.shoal_after.argtypes = [ctypes.c_double]
    pointer, text, size, moment = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64
    library.shoal_store_open.argtypes = [pointer, text, pointer, moment]
    library.shoal_store_put.argtypes = [pointer, text, text, size, pointer, pointer, moment]
    library.shoal_store_get.argtypes = [pointer, text, pointer, moment]
    library.shoal_store_push.argtypes = [pointer, text, text, size, moment]
    library.shoal_store_take.argtypes = [pointer, text, ctypes.c_double, pointer, moment]
    library.shoal_store_finish.argtypes = [pointer, text, pointer, moment]
    return library


class Store:
    """A store; what fails returns a negative status, and the message is kept."""

    def __init__(self, url, create=False, seconds=15):
        self.store, self.message = ctypes.c_void_p(), ""
        self.status = self.note(LIBRARY.shoal_store_open(ctypes.byref(self.store), url.encode(),
                                                         ctypes.byref(Options(create, False)), self.after(seconds)))

    @staticmethod
    def after(seconds):
        return LIBRARY.shoal_after(seconds)

    def note(self, status):
        if status < 0:
            self.message = LIBRARY.shoal_error().decode()
            told.append(self.message)
        return status

    def put(self, key, body, seconds=15):
        return self.note(LIBRARY.shoal_store_put(self.store, key.encode(), body, len(body), None, None,
                                                 self.after(seconds)))

    def get(self, key, seconds=15):
        blob = Blob()
        status = self.note(LIBRARY.shoal_store_get(self.store, key.encode(), ctypes.byref(blob), self.after(seconds)))
        body = ctypes.string_at(blob.data, blob.size) if status == OK else status
        LIBRARY.shoal_blob_release(ctypes.byref(blob))
        return body

    def push(self, queue, body, seconds=15):
        return self.note(LIBRARY.shoal_store_push(self.store, queue.encode(), body, len(body), self.after(seconds)))

    def take(self, queue, seconds=15):
        """Takes a message and finishes it; its body, or a status."""
        message = Message()
        status = self.note(LIBRARY.shoal_store_take(self.store, queue.encode(), 60.0, ctypes.byref(message),
                                                    self.after(seconds)))
        body = ctypes.string_at(message.data, message.size) if status == OK else status
        if status == OK:
            status = self.note(LIBRARY.shoal_store_finish(self.store, queue.encode(), ctypes.byref(message),
                                                          self.after(seconds)))
            assert status == OK, self.message
        LIBRARY.shoal_message_release(ctypes.byref(message))
        return body

    def close(self):
        LIBRARY.shoal_store_close(ctypes.byref(self.store))


# ---- credentials ----------------------------------------------------------------------------------------------------


def use(variables):
    """Only these credentials are in the environment."""
    for name in list(os.environ):
        if name.startswith(("AZURE_", "IDENTITY_", "SSL_CERT", "CURL_CA")) or name.lower().endswith("_proxy"):
            del os.environ[name]
    os.environ.update(variables)


def with_key(server, **more):
    return {**server.variables(), **more}


def make_certificates(folder):
    """An authority, and a certificate by it for 127.0.0.1."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority", "-days", "2",
            "-addext", "basicConstraints=critical,CA:TRUE")
    openssl("req", *curve, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server")
    with open(os.path.join(folder, "names"), "w") as file:
        file.write("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out",
            "server.pem", "-days", "2", "-extfile", "names")
    return [os.path.join(folder, name) for name in ("ca.pem", "server.pem", "server.key")]


def signature(permissions, hours):
    """A shared access signature of the account that ends so many hours from now."""
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=hours)
    fields = {"sv": "2021-12-02", "ss": "bq", "srt": "sco", "sp": permissions, "st": "2020-01-01T00:00:00Z",
              "se": end.strftime("%Y-%m-%dT%H:%M:%SZ"), "spr": "https,http"}
    text = "\n".join([ACCOUNT, permissions, "bq", "sco", fields["st"], fields["se"], "", fields["spr"], fields["sv"],
                      "", ""])
    fields["sig"] = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
    return urllib.parse.urlencode(fields)


# ---- stand-ins ------------------------------------------------------------------------------------------------------


def serve(answer, date=None):
    """A server on loopback in a thread, whose answers are (status, headers, body) of answer(request)."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self):
            status, headers, body = answer(self)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = respond

        def date_time_string(self, timestamp=None):
            return super().date_time_string(time.time() + date if date else timestamp)

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def token():
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
    now = int(time.time())
    return ".".join([part({"alg": "RS256", "typ": "JWT"}),
                     part({"aud": "https://storage.azure.com", "iss": "https://sts.windows.net/tenant/",
                           "iat": now - 60, "nbf": now - 60, "exp": now + 3600}), part("unsigned")])


# ---- the tests ------------------------------------------------------------------------------------------------------


def start_conformance(server, variables, budget):
    """The suite over a server, in the background."""
    use(variables)
    server.wait()
    program = os.path.join(BUILT, "tests", "conform", "test_store")
    return subprocess.Popen([program, "--budget", str(budget), f"az://{ACCOUNT}/conform/{server.scheme}"],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=dict(os.environ))


def finish_conformance(process):
    output = process.communicate(timeout=240)[0]
    told.append(output)
    assert process.returncode == 0, f"the conformance suite over Azurite fails:\n{output}"


def check_refused(url, status, *words, key="k"):
    """Opening or the first use is refused, with a sentence that has these words."""
    store = Store(url)
    if store.status == OK:
        store.status = store.put(key, b"x")
    assert store.status == status, (url, store.status, store.message)
    for word in words:
        assert word in store.message, (word, store.message)
    store.close()


def check_wrong_credentials(server):
    url = f"az://{ACCOUNT}/box"
    use(with_key(server))
    store = Store(url, create=True)
    assert store.status == OK and store.put("k", b"value") == OK, store.message
    store.close()
    check_refused(f"az://{ACCOUNT}/missing", ABSENT, "az://devstoreaccount1/missing", "no such container")
    use(with_key(server) | {"AZURE_STORAGE_KEY": WRONG_KEY})
    check_refused(url, DENIED, "the key does not belong to account", "Azure says Auth", "request ")
    use({**server.endpoints(), "AZURE_STORAGE_SAS_TOKEN": signature("rl", 1)})
    check_refused(url, DENIED, "az://devstoreaccount1/box/k", "AuthorizationPermissionMismatch", "do not permit")
    store = Store(url)
    assert store.get("k") == b"value", store.message
    store.close()
    use({**server.endpoints(), "AZURE_STORAGE_SAS_TOKEN": signature("rwdlacup", 1)})
    store = Store(url)
    assert store.put("k2", b"value") == OK and store.push("q", b"m") == OK and store.take("q") == b"m", store.message
    store.close()
    use({**server.endpoints(), "AZURE_STORAGE_SAS_TOKEN": signature("rwdlacup", -1)})
    check_refused(url, DENIED, "expired", "Azure says Auth")
    use(with_key(server, AZURE_STORAGE_ACCOUNT="someoneelse"))
    check_refused(url, DENIED, "someoneelse")
    use({"AZURE_STORAGE_KEY": KEY, "AZURE_STORAGE_BLOB_ENDPOINT": "http://203.0.113.1/acct"})
    check_refused(url, USAGE, "unencrypted http")
    use(with_key(server) | {"AZURE_STORAGE_BLOB_ENDPOINT": server.endpoints()["AZURE_STORAGE_BLOB_ENDPOINT"].replace(
        "http:", "https:")})
    check_refused(url, INVALID, f"{url}: 127.0.0.1 does not speak TLS on this port")
    use({"AZURE_STORAGE_CONNECTION_STRING":
         f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={server.endpoints()['AZURE_STORAGE_BLOB_ENDPOINT']};"})
    store = Store(url)
    assert store.get("k") == b"value", store.message
    store.close()


def check_clock():
    """A server whose clock is two hours behind ours, which is what a clock of ours that is ahead looks like."""
    def refuse(request):
        return 403, {"x-ms-error-code": "AuthenticationFailed", "x-ms-request-id": "1-2-3"}, b""
    server = serve(refuse, date=-7200)
    use({"AZURE_STORAGE_KEY": KEY, "AZURE_STORAGE_BLOB_ENDPOINT": f"http://127.0.0.1:{server.server_port}/{ACCOUNT}"})
    check_refused(f"az://{ACCOUNT}/box", DENIED, "this machine's clock is 120 minutes ahead", "request 1-2-3")
    server.shutdown()


def check_identity(server, authority):
    """Tokens by a stand-in for the metadata service."""
    secret, asked = token(), []

    def metadata(request):
        asked.append((request.path, request.headers.get("Metadata")))
        answer = {"access_token": secret, "expires_in": "3599"}
        return 200, {"Content-Type": "application/json"}, json.dumps(answer).encode()
    stand_in = serve(metadata)
    use({**server.endpoints(), "SSL_CERT_FILE": authority,
         "AZURE_POD_IDENTITY_AUTHORITY_HOST": f"http://127.0.0.1:{stand_in.server_port}"})
    store = Store(f"az://{ACCOUNT}/identity", create=True)
    assert store.status == OK and store.put("k", b"v") == OK and store.get("k") == b"v", store.message
    assert store.push("q", b"m" * 60000) == OK and store.take("q") == b"m" * 60000, store.message
    store.close()
    assert len(asked) == 1 and asked[0][1] == "true" and "storage.azure.com" in asked[0][0], asked
    secret = base64.urlsafe_b64encode(b"no token at all").decode()
    check_refused(f"az://{ACCOUNT}/identity", DENIED, "the token of this machine's identity")
    stand_in.shutdown()


def check_silent_name_server(folder):
    """A name server that never answers does not hold a call beyond its deadline.  Needs to mount, or is passed over."""
    settings = os.path.join(folder, "resolv.conf")
    with open(settings, "w") as file:
        file.write("nameserver 127.0.0.77\noptions timeout:30 attempts:1\n")
    use({"AZURE_STORAGE_KEY": KEY})
    mount = f"mount --bind {settings} /etc/resolv.conf"
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode != 0:
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.77", 53))
        began = time.monotonic()
        command = f'{mount} && exec "$0" store ls az://{ACCOUNT}/box --deadline 1'
        done = subprocess.run(["unshare", "-m", "sh", "-c", command, SHOAL], capture_output=True, text=True)
        took = time.monotonic() - began
    assert done.returncode != 0 and f"az://{ACCOUNT}/box: " in done.stderr, done
    assert took < 15, took


def check_authority(server):
    """Without its authority the certificate is not trusted, and nothing is sent."""
    use(with_key(server))
    check_refused(f"az://{ACCOUNT}/box", INVALID, f"az://{ACCOUNT}/box: the certificate", "not trusted",
                  "SSL_CERT_FILE")
    use(with_key(server, SSL_CERT_FILE="/etc/ssl/certs/ca-certificates.crt",
                 CURL_CA_BUNDLE="/etc/ssl/certs/ca-certificates.crt"))  # which goes before the other
    check_refused(f"az://{ACCOUNT}/box", INVALID, "not trusted", "CURL_CA_BUNDLE can name")


def check_restart(server):
    """Writers go on while Azurite is stopped and started; what was acknowledged before or after is there."""
    use(with_key(server))
    store = Store(f"az://{ACCOUNT}/restart", create=True)
    assert store.status == OK, store.message
    acknowledged, pushed, failures, stopped = {}, set(), [], threading.Event()
    counted = threading.Condition()

    def write(writer):
        number = 0
        while not stopped.is_set():
            name = f"{writer}-{number}"
            body = name.encode() * (1 if number % 4 else 20000)  # some of the messages' bodies are blobs
            put, push = store.put(name, body, 60), store.push("jobs", body, 60)
            if put != OK or push != OK:
                failures.append(store.message)
                return
            with counted:
                acknowledged[name] = body
                pushed.add(body)
                counted.notify_all()
            number += 1

    def wait_for_more(count):
        with counted:
            target = len(acknowledged) + count
            assert counted.wait_for(lambda: len(acknowledged) >= target or failures, 60), "the writers stand still"
            assert not failures, failures

    writers = [threading.Thread(target=write, args=(i,)) for i in range(3)]
    for writer in writers:
        writer.start()
    wait_for_more(20)
    for _ in range(2):
        server.stop()
        server.start()
        wait_for_more(20)
    stopped.set()
    for writer in writers:
        writer.join(90)
    assert not failures, failures
    for name, body in acknowledged.items():
        assert store.get(name) == body, (name, store.message)
    while (body := store.take("jobs")) != ABSENT:
        assert isinstance(body, bytes), store.message
        pushed.discard(body)  # after a lost answer a message may be there twice
    assert not pushed, f"{len(pushed)} messages that were acknowledged are gone"
    store.close()


def main():
    with tempfile.TemporaryDirectory(prefix="shoal-azure-") as folder:
        servers, suites = [], []
        try:
            authority, certificate, key = make_certificates(folder)
            servers += [Server(folder, "plain"),
                        Server(folder, "secure", "--cert", certificate, "--key", key, "--oauth", "basic"),
                        Server(folder, "restarted")]
            plain, secure, restarted = servers
            suites.append(start_conformance(plain, with_key(plain), 8))
            suites.append(start_conformance(secure, with_key(secure, SSL_CERT_FILE=authority), 5))
            check_wrong_credentials(plain)
            check_clock()
            check_silent_name_server(folder)
            check_authority(secure)
            check_identity(secure, authority)
            restarted.wait()
            check_restart(restarted)
            for suite in suites:
                finish_conformance(suite)
        finally:
            for suite in suites:
                if suite.poll() is None:
                    suite.kill()
                    suite.wait()
            for server in servers:
                server.stop()
    secrets = [KEY, WRONG_KEY, "sig=", urllib.parse.quote(KEY, safe=""), token().split(".")[0]]
    for text in told:
        for secret in secrets:
            assert secret not in text, f"a secret stands in: {text}"
    assert len(told) > 8


if PROGRAM is None:
    print("SKIPPED: Azurite is not installed (./dev deps test)")
    sys.exit(77)
LIBRARY = load()
main()
