"""Several hosts on one machine: network namespaces on one bridge, each with its own sshd, host name, home and /tmp.

    hosts.isolate()                             # first of all: the rest of the test runs in namespaces of its own
    with hosts.Hosts(folder, 4) as far:
        subprocess.run(["ssh", "-F", far.ssh_config, "h1", "hostname"])
        far[1].cut()                            # packets vanish, no reset
        far[1].heal()

Nothing of this can meet another test that runs at the same time: bridge, addresses, names and process ids exist only in
the namespaces that isolate() makes, and all processes in there end with the test, however it ends, since the kernel
kills them. A host sees neither the repository nor the /tmp and the home of this machine, unless it is told what is
shared; it has its own. It starts each time with an empty home. Needs root and Debian's iproute2, openssh-server and
openssh-client; where these are not available isolate() exits with 77.
"""
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import peers
from processes import command, read, reap, state, wait_until

CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x00020000, 0x20000000, 0x40000000
PR_SET_PDEATHSIG = 1
SKIPPED = 77
PROGRAMS = "ip tc mount nsenter unshare ssh ssh-keygen /usr/sbin/sshd".split()
NEAR = "10.78.0.1"
SOON = 300  # seconds within which anything of the harness itself happens, on a busy machine
RUN = "/run/hosts"  # what all hosts see, and nobody outside
CPU_GROUPS = "/sys/fs/cgroup/cpu"


# ---- namespaces of this test -----------------------------------------------------------------------------------------


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(SKIPPED)


def isolate(*programs):
    """Returns in a process of which nothing outside can be seen; the one that called waits for its end, with which all
    its descendants end. `programs` are needed besides."""
    missing = [program for program in [*PROGRAMS, *programs] if not find(program)]
    if missing:
        skip(f"{', '.join(missing)} not found (./dev deps test)")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET) != 0:
        skip(f"this process may not make namespaces: {os.strerror(ctypes.get_errno())}")
    sys.stdout.flush()
    inside = os.fork()
    if inside != 0:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(inside, 0)[1]) % 256)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The first process of its namespace would ignore what has no handler.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))
    if os.getppid() != 0:
        raise AssertionError("not the first process of a namespace")
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    os.environ["LC_ALL"] = "C"
    for words in (["mount", "--make-rprivate", "/"], ["mount", "-t", "proc", "proc", "/proc"],
                  ["mount", "-t", "tmpfs", "-o", "mode=755", "run", "/run"], ["ip", "link", "set", "lo", "up"]):
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            skip(f"{' '.join(words)}: {done.stderr.strip()}")
    with open("/run/nsswitch.conf", "w", encoding="ascii") as file:  # nobody here answers questions for names
        file.write("passwd: files\ngroup: files\nshadow: files\nhosts: files\n")
    call("mount", "--bind", "/run/nsswitch.conf", "/etc/nsswitch.conf")


def cables():
    """Network devices of this machine: bytes that came in and that went out, by name."""
    lines = [line.replace(":", " ").split() for line in read("/proc/net/dev").decode().splitlines()[2:]]
    return {words[0]: (int(words[1]), int(words[9])) for words in lines}


def find(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def call(*words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SOON)
    assert done.returncode == 0, f"{' '.join(words)} exits {done.returncode}: {done.stderr}"
    return done.stdout


# ---- one host --------------------------------------------------------------------------------------------------------

# Set up in a mount namespace of its own; then it only keeps that alive.
BOOT = """
set -e
hostname "$1"; shift
for folder; do [ ! -d "$folder" ] || mount -t tmpfs -o mode=755 own "$folder"; done # one may be below another
chmod 1777 /tmp /dev/shm
echo ready
exec sleep 1000000
"""

SSHD = """ListenAddress {address}
Port 22
HostKey {run}/host_key
PidFile {run}/{name}.pid
AuthorizedKeysFile {run}/authorized_keys
StrictModes no
PermitRootLogin yes
UsePAM no
UseDNS no
PrintMotd no
"""
KEYS_ONLY = ("PasswordAuthentication no", "KbdInteractiveAuthentication no")
PASSWORDS_ONLY = ("PubkeyAuthentication no", "PasswordAuthentication yes", "KbdInteractiveAuthentication yes")


class Host:
    """Number i of them is called hi.  Its sshd has the limits that sshd has by itself."""

    def __init__(self, number, hidden):
        self.name, self.address, self.hidden = f"h{number}", f"10.78.0.{10 + number}", hidden
        self.cable, self.group = f"v{number}", None
        self.holder = self.sshd = None
        self.services = set()  # processes that make it a host, besides these two
        self.options = KEYS_ONLY
        call("ip", "netns", "add", self.name)
        call("ip", "link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        call("ip", "link", "set", self.cable, "master", "bridge", "up")
        call("ip", "-n", self.name, "addr", "add", f"{self.address}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            call("ip", "-n", self.name, "link", "set", device, "up")
        self.space = os.stat(f"/run/netns/{self.name}").st_ino
        self.boot()

    def boot(self):
        self.holder = subprocess.Popen(
            ["ip", "netns", "exec", self.name, "unshare", "--mount", "--uts", "sh", "-c", BOOT, "boot", self.name,
             "/root", "/tmp", "/dev/shm", *self.hidden], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "ready\n", f"{self.name} does not start"
        self.start_sshd()

    def start_sshd(self, *options):
        """With other options than before, if some are given."""
        self.options = options or self.options
        if self.sshd:
            self.sshd.kill()
            self.sshd.wait()
        with open(f"{RUN}/{self.name}.conf", "w", encoding="ascii") as file:
            file.write(SSHD.format(address=self.address, run=RUN, name=self.name) + "\n".join(self.options) + "\n")
        self.sshd = subprocess.Popen([*self.enter(), "/usr/sbin/sshd", "-D", "-f", f"{RUN}/{self.name}.conf", "-E",
                                      f"{RUN}/{self.name}.log"], stdin=subprocess.DEVNULL, start_new_session=True)
        wait_until(self.is_listening, SOON, f"sshd of {self.name} listens")

    def is_listening(self):
        assert self.sshd.poll() is None, f"sshd of {self.name} ends with {self.sshd.returncode}: {self.log()}"
        try:
            socket.create_connection((self.address, 22), 1).close()
            return True
        except OSError:
            return False

    def enter(self):
        """What goes before a command that is to run there."""
        return ["nsenter", f"--target={self.holder.pid}", "--mount", "--uts", "--net", "--wd=/"]

    def run(self, *words):
        return call(*self.enter(), *words)

    def write(self, path, text, mode=0o644):
        script = 'mkdir -p "$(dirname "$1")" && printf %s "$2" >"$1" && chmod "$3" "$1"'
        self.run("sh", "-c", script, "write", path, text, f"{mode:o}")

    def log(self):
        return read(f"{RUN}/{self.name}.log").decode(errors="replace")

    # What runs there.

    def processes(self, word=None):
        """Those that run there besides what makes it a host, by their ids; with `word`, those that have it among
        theirs."""
        ours = {self.holder.pid, self.sshd.pid, *self.services}
        found = []
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{pid}/ns/net").st_ino == self.space and pid not in ours and (
                        word is None or word in command(pid)):
                    found.append(pid)
        return found

    def kill(self):
        """All that others started there, sshd's own sessions too.  How many there were."""
        killed, left = set(), self.processes()
        end = time.monotonic() + SOON
        while left:
            assert time.monotonic() < end, f"{self.name}: {left} can't be killed"
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                reap(pid)
            killed |= set(left)
            left = self.processes()
        return len(killed)

    def off(self):
        """The power goes, and with it all that was in its memory and on its disks."""
        self.cut()
        self.services.clear()
        self.kill()
        for process in (self.sshd, self.holder):
            process.kill()
            process.wait()
        self.holder.stdout.close()
        self.sshd = None

    def on(self):
        self.heal()
        self.boot()

    def traffic(self):
        """Bytes that have gone to it so far, and come from it."""
        came, went = cables()[self.cable]
        return went, came

    # What is wrong with it.

    def cut(self):
        call("ip", "link", "set", self.cable, "down")

    def heal(self):
        call("ip", "link", "set", self.cable, "up")

    def rate(self, rate):
        """As tc writes it, "10mbit", in both directions; None: as fast as it goes."""
        what = ["root", "tbf", "rate", rate, "burst", "64k", "latency", "50ms"] if rate else ["root"]
        verb = "replace" if rate else "del"
        call("tc", "qdisc", verb, "dev", self.cable, *what)
        call("ip", "netns", "exec", self.name, "tc", "qdisc", verb, "dev", "eth0", *what)

    @contextlib.contextmanager
    def slow_link(self, rate="1mbit"):
        self.rate(rate)
        try:
            yield
        finally:
            self.rate(None)

    def limit_cpu(self, percent):
        """Of one core, for all that will be started there; False where control groups are not available."""
        group = f"{CPU_GROUPS}/shoal-test-{os.urandom(8).hex()}"
        try:
            os.mkdir(group)
            self.group = group
            for name, value in (("cpu.cfs_quota_us", percent * 1000), ("cgroup.procs", self.sshd.pid)):
                with open(f"{group}/{name}", "w", encoding="ascii") as file:
                    file.write(str(value))
        except OSError:
            return False
        return True

    def disk(self, path, options):
        """A disk of its own there, "size=64k" or "ro", say."""
        self.run("mkdir", "-p", path)
        self.run("mount", "-t", "tmpfs", "-o", options, "disk", path)

    def replace(self, program, text):
        """A script in place of a program there."""
        self.write(f"/dev/shm/replaced{program}", text, 0o755)
        self.run("mount", "--bind", f"/dev/shm/replaced{program}", program)

    def release(self):
        if self.sshd:
            self.off()
        if self.group:
            wait_until(self.is_group_gone, SOON, f"{self.group} is removed")

    def is_group_gone(self):
        with contextlib.suppress(OSError):
            os.rmdir(self.group)
        return not os.path.exists(self.group)


# ---- all of them -----------------------------------------------------------------------------------------------------


class Hosts:
    """`far[1]` to `far[count]`. `hidden` are folders of this machine in whose place each host has its own, besides
    /root, /tmp and /dev/shm. ssh_config has nothing that keeps ssh from asking for a password."""

    def __init__(self, folder, count, hidden=(peers.ROOT,)):
        self.folder, self.ssh_config, self.forwards, self.all = folder, f"{folder}/ssh_config", [], []
        os.makedirs(RUN, exist_ok=True)
        os.makedirs("/run/sshd", exist_ok=True)
        for key in (f"{folder}/id", f"{RUN}/host_key"):
            call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
        shutil.copy(f"{folder}/id.pub", f"{RUN}/authorized_keys")
        call("ip", "link", "add", "bridge", "type", "bridge")
        call("ip", "addr", "add", f"{NEAR}/24", "dev", "bridge")
        call("ip", "link", "set", "bridge", "up")
        for number in range(1, count + 1):
            self.all.append(Host(number, hidden))
        self.write_ssh_config()

    def write_ssh_config(self):
        with open(self.ssh_config, "w", encoding="ascii") as file:
            for host in self.all:
                file.write(f"Host {host.name}\n  HostName {host.address}\n")
            file.write(f"Host *\n  User root\n  IdentityFile {self.folder}/id\n  IdentitiesOnly yes\n"
                       f"  UserKnownHostsFile {self.folder}/known_hosts\n  StrictHostKeyChecking accept-new\n")

    def __getitem__(self, number):
        return self.all[number - 1]

    def __iter__(self):
        return iter(self.all)

    def forward(self, *ports):
        """On loopback of every host these ports lead to the same ones of this machine."""
        for host in self.all:
            for port in ports:
                self.forwards.append(Forward(host, port))

    @contextlib.contextmanager
    def delayed(self, seconds):
        """What goes through these ports takes so long."""
        for forward in self.forwards:
            forward.delay = seconds
        try:
            yield
        finally:
            for forward in self.forwards:
                forward.delay = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for forward in self.forwards:
            forward.close()
        for host in self.all:
            host.release()
            call("ip", "link", "del", host.cable)  # before the kernel takes the namespace down, in its own time
            call("ip", "netns", "del", host.name)
        call("ip", "link", "del", "bridge")
        shutil.rmtree(RUN)


# ---- what listens on a host and answers here -------------------------------------------------------------------------


class Forward:
    """A socket belongs to the namespace in which it was made, and may be used from any."""

    def __init__(self, host, port):
        self.port, self.delay = port, 0
        self.server = listen_in(host, port)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):  # it was closed
            while True:
                far = self.server.accept()[0]
                try:
                    near = socket.create_connection(("127.0.0.1", self.port), SOON)
                except OSError:  # nobody is there
                    far.close()
                    continue
                near.settimeout(None)
                for one, other in ((far, near), (near, far)):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=self.copy, args=(one, other), daemon=True).start()

    def copy(self, one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                time.sleep(self.delay)
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        with contextlib.suppress(OSError):
            self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


def listen_in(host, port):
    made = []

    def make():
        with open(f"/run/netns/{host.name}", "rb") as space:
            if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), CLONE_NEWNET) != 0:
                return
        made.append(socket.create_server(("127.0.0.1", port)))
    thread = threading.Thread(target=make)  # which ends there
    thread.start()
    thread.join()
    assert made, f"can't listen on {host.name}"
    return made[0]


def are_gone(pids):
    """Whether none of these processes runs any more."""
    for pid in pids:
        if state(pid) == "Z":
            reap(pid)
    return all(state(pid) in ("", "Z") for pid in pids)
