"""Ceph's radosgw, a real S3 server, on loopback and in memory.

    with radosgw.Server(folder) as server:
        server.address, server.key, server.secret

Three daemons (monitor, object store, gateway) are children of this process and are ended by it; they take about 15
seconds to start and 700 MB.  Needs Debian's radosgw, ceph-mon, ceph-osd and ceph-common; missing() tells what is not
there.
"""
import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
import uuid

import peers

PROGRAMS = ("radosgw", "radosgw-admin", "ceph-mon", "ceph-osd", "ceph", "ceph-authtool", "monmaptool")

CONFIGURATION = """[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{ports[1]},v1:127.0.0.1:{ports[2]}]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
keyring = {folder}/keyring
run dir = {folder}/run
admin socket = {folder}/run/$name.asok
log file = {folder}/$name.log
crash dir = {folder}/crash
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 1000
mon data avail crit = 1
mon data avail warn = 1
osd objectstore = memstore
memstore device bytes = 4294967296
osd data = {folder}/osd.$id
mon data = {folder}/mon.$id
[client.rgw.a]
rgw frontends = beast endpoint=127.0.0.1:{ports[0]} tcp_nodelay=1
rgw data = {folder}/rgw
"""


def missing():
    return [name for name in PROGRAMS if not shutil.which(name)]


class Server:
    key, secret = "shoalkey", "shoalsecret"

    def __init__(self, folder):
        self.folder = folder
        self.daemons = []

    def run(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command[:3])} ... exits {done.returncode}: {done.stderr}")

    def start_daemon(self, *command):
        log = open(os.path.join(self.folder, "daemons.log"), "ab")
        self.daemons.append(subprocess.Popen((*command, "-f", "-c", self.configuration), stdin=subprocess.DEVNULL,
                                             stdout=log, stderr=log))
        log.close()

    def make_user(self, name, key, secret):
        self.run("radosgw-admin", "-c", self.configuration, "user", "create", "--uid", name, "--display-name", name,
                 "--access-key", key, "--secret", secret)

    def start(self):
        folder, fsid, osd = self.folder, str(uuid.uuid4()), str(uuid.uuid4())
        ports = peers.free_ports(3)
        keyring, monitors = os.path.join(folder, "keyring"), os.path.join(folder, "monmap")
        self.configuration = conf = os.path.join(folder, "ceph.conf")
        self.address = f"http://127.0.0.1:{ports[0]}"
        for name in ("mon.a", "osd.0", "rgw", "run", "crash"):
            os.mkdir(os.path.join(folder, name))
        with open(conf, "w") as file:
            file.write(CONFIGURATION.format(folder=folder, fsid=fsid, ports=ports))
        self.run("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
        for name, caps in (("client.admin", ("mon", "allow *", "osd", "allow *", "mgr", "allow *")),
                           ("client.rgw.a", ("mon", "allow rw", "osd", "allow rwx")),
                           ("osd.0", ("mon", "allow profile osd", "osd", "allow *"))):
            pairs = [word for i in range(0, len(caps), 2) for word in ("--cap", caps[i], caps[i + 1])]
            self.run("ceph-authtool", keyring, "--gen-key", "-n", name, *pairs)
        self.run("monmaptool", "--create", "--fsid", fsid, "--addv", "a",
                 f"[v2:127.0.0.1:{ports[1]},v1:127.0.0.1:{ports[2]}]", monitors)
        self.run("ceph-mon", "-c", conf, "--mkfs", "-i", "a", "--monmap", monitors, "--keyring", keyring)
        self.start_daemon("ceph-mon", "-i", "a")
        self.run("ceph", "-c", conf, "osd", "new", osd, "0")
        self.run("ceph-osd", "-c", conf, "-i", "0", "--mkfs", "--osd-uuid", osd)
        self.start_daemon("ceph-osd", "-i", "0")
        self.make_user("shoal", self.key, self.secret)
        self.start_daemon("radosgw", "-n", "client.rgw.a")
        self.wait_for_answer()

    def wait_for_answer(self):
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            for daemon in self.daemons:
                if daemon.poll() is not None:
                    raise RuntimeError(f"{daemon.args[0]} has ended; see {self.folder}/daemons.log")
            try:
                urllib.request.urlopen(self.address, timeout=10).close()
                return
            except urllib.error.HTTPError:
                return  # a refusal is an answer
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("radosgw does not answer")

    def stop(self):
        for daemon in reversed(self.daemons):  # the object store waits for the monitor
            if daemon.poll() is None:
                daemon.send_signal(signal.SIGTERM)
                try:
                    daemon.wait(5)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
        self.daemons = []

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()
