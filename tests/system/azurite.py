"""Azurite, the emulator of Azure's blobs and queues, on loopback and with authentication on.

    with azurite.Server(folder, "plain") as server:
        server.wait()
        os.environ.update(server.variables())       # what az://devstoreaccount1/CONTAINER needs

PROGRAM is None where it is not installed (./dev deps test).  kill() makes it forget up to five seconds of acknowledged
writes, stop() makes it forget nothing; after either, start() goes on with what it has on disk.  stop() waits until all
is written, not until the process ends by itself: it would stay for as long as a client keeps a request open, which it
answers no more.
"""
import base64
import hashlib
import os
import signal
import subprocess

import peers
from processes import read, wait_until

PROGRAM = peers.npm_peer("azurite/dist/src/azurite.js")
ACCOUNT = "devstoreaccount1"
KEY = base64.b64encode(hashlib.sha512(b"a key of this test's own").digest()).decode()


class Server:
    def __init__(self, folder, name, *options):
        self.folder, self.options = os.path.join(folder, name), options
        self.scheme = "https" if "--cert" in options else "http"
        self.ports = peers.free_ports(3)
        self.said = os.path.join(self.folder, "said.log")
        os.mkdir(self.folder)
        self.start()

    def start(self):
        blob, queue, table = map(str, self.ports)
        environment = {**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
        with open(self.said, "wb") as said:
            self.process = subprocess.Popen(
                ["node", PROGRAM, "--silent", "--disableTelemetry", "--location", self.folder, "--blobHost",
                 "127.0.0.1", "--blobPort", blob, "--queueHost", "127.0.0.1", "--queuePort", queue, "--tableHost",
                 "127.0.0.1", "--tablePort", table, *self.options], env=environment, stdin=subprocess.DEVNULL,
                stdout=said, stderr=subprocess.DEVNULL)

    def wait(self):
        for port in self.ports[:2]:
            peers.wait_for_port(port, self.process)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)  # on which it writes all it has
            wait_until(self.has_written, 300, "Azurite writes all it has")
        self.kill()

    def has_written(self):
        """Whether it says so of blobs, queues and tables."""
        return self.process.poll() is not None or read(self.said).count(b" successfully closed") == 3

    def kill(self):
        wait_until(self.is_whole, 60, "Azurite writes where its blobs lie")
        self.process.kill()
        self.process.wait(300)

    def is_whole(self):
        """Every five seconds it writes which blobs there are, and some milliseconds later where their bytes lie. Killed
        in between, it would answer for such a blob with a failure for ever, which no store that forgets does."""
        def written(name):
            path = os.path.join(self.folder, name)
            return os.stat(path).st_mtime_ns if os.path.exists(path) else 0
        return self.process.poll() is not None or \
            written("__azurite_db_blob_extent__.json") >= written("__azurite_db_blob__.json")

    def endpoints(self):
        return {"AZURE_STORAGE_BLOB_ENDPOINT": f"{self.scheme}://127.0.0.1:{self.ports[0]}/{ACCOUNT}",
                "AZURE_STORAGE_QUEUE_ENDPOINT": f"{self.scheme}://127.0.0.1:{self.ports[1]}/{ACCOUNT}"}

    def variables(self):
        return {**self.endpoints(), "AZURE_STORAGE_KEY": KEY}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
