"""shoal under the launchers of MPI: starting ranks, ending them, and what must be true of what they write.

    work = mpi.Work("kmeans", "x.npy", "-k", 5, files={"--centres": "c.npy"})     # what one process makes of it
    for kind in mpi.KINDS:
        work.agrees(kind, 3)                                                     # and what three ranks do, byte by byte
    mpi.refuses("openmpi", 3, 1, "none.npy: ", "kmeans", "none.npy", "-k", 5)

A kind of MPI is there when its launcher is, and the plug-in for it lies where the program was built. Ranks run in the
current folder, which also has what their launcher leaves behind. Nothing here waits forever: what takes too long is
killed with all that it started, and what it said is shown.
"""
import fcntl
import filecmp
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from processes import children, command, read, state, wait_until

SHOAL = os.path.abspath(sys.argv[1])
SOON = 300  # seconds within which anything happens, on a busy machine
RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"
        )  # where launchers tell a process which one it is
OURS = ("OMPI_", "PMI_", "PMIX_", "HYDI_", "MPI", "SLURM_", "SHOAL_")
# As root, more ranks than cores, which let others compute while they wait.
SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_mpi_yield_when_idle": "1", "SHOAL_HISTORY": "off"
}


def plugin(kind):
    return f"{os.path.dirname(SHOAL)}/mpi/{kind}/libshoal-mpi.so"


def lacks(kind):
    """Why there is no MPI of this kind here; None when there is."""
    if not shutil.which(f"mpirun.{kind}"):
        return f"mpirun.{kind} is not installed (./dev deps test)"
    if not os.path.exists(plugin(kind)):
        return f"there is no {plugin(kind)}: the build left it out"
    return None


KINDS = [kind for kind in ("openmpi", "mpich") if not lacks(kind)]


def require():
    """Says which kind of MPI is not here, once; exits with 77 when there is none."""
    if len(sys.argv) <= 2 or not KINDS:
        for kind in ("openmpi", "mpich"):
            if lacks(kind):
                print(f"SKIPPED {kind}: {lacks(kind)}", flush=True)
    if not KINDS:
        sys.exit(77)


def install(folder):
    """The program and its plug-ins there, as in a build folder."""
    os.makedirs(folder)
    shutil.copy(SHOAL, folder)
    for kind in KINDS:
        os.makedirs(f"{folder}/mpi/{kind}")
        shutil.copy(plugin(kind), f"{folder}/mpi/{kind}")


def environment(more=None):
    """Nothing of a launcher that this test itself may be below."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    here = os.getcwd()  # also what ranks of one host share, which stays behind when all are killed
    clean["ASAN_OPTIONS"] = clean.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # MPI itself keeps some memory
    return {**clean, **SETTINGS, "TMPDIR": here, "OMPI_MCA_btl_vader_backing_directory": here, **(more or {})}


# ---- starting and ending ---------------------------------------------------------------------------------------------


def by_rank(script, program=SHOAL):
    """The words of a program before which each rank does this, knowing its number as $RANK."""
    ranks = "".join(f"${{{name}:-" for name in RANK) + "}" * len(RANK)
    return ["sh", "-c", f'RANK={ranks}\n{script}\nexec "$0" "$@"', program]


def launcher(kind, ranks):
    return [f"mpirun.{kind}", "-n", str(ranks)]


def family(pid):
    """A process and all below it."""
    return [pid] + [one for child in children(pid) for one in family(child)]


def rank_of(pid):
    """As its launcher told it; None for what is no rank."""
    for line in read(f"/proc/{pid}/environ").decode(errors="replace").split("\0"):
        name, _, value = line.partition("=")
        if name in RANK and value.isdigit():
            return int(value)
    return None


class Done:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def told(self):
        """What the program itself said, without what its launcher did."""
        return [line for line in self.err.splitlines() if line.startswith("shoal: ")]

    def __repr__(self):
        return f"exit code {self.code}\n---- out:\n{self.out[-3000:]}\n---- err:\n{self.err[-3000:]}"


class Job:
    """A launcher and its ranks, in the background."""

    def __init__(self, words, env=None, stdin=None):
        self.words = list(map(str, words))
        self.out, self.err = (tempfile.TemporaryFile("w+", errors="replace") for _ in range(2))
        self.process = subprocess.Popen(self.words, stdin=stdin or subprocess.DEVNULL, stdout=self.out, stderr=self.err,
                                        env=environment(env), start_new_session=True)

    def ranks(self):
        """The processes of the program, by rank, on this machine."""
        programs = [
            pid for pid in family(self.process.pid) if os.path.basename(read_link(f"/proc/{pid}/exe")) == "shoal"
        ]
        return {rank_of(pid): pid for pid in programs if rank_of(pid) is not None}

    def said(self):
        found = []
        for file in (self.out, self.err):
            file.seek(0)
            found.append(file.read())
        return found

    def end(self, seconds=SOON):
        """Until it has ended; if it does not, by force, which is a failure."""
        try:
            return Done(self.process.wait(seconds), *self.said())
        except subprocess.TimeoutExpired:
            where = "\n".join(f"{pid} {state(pid)} {' '.join(command(pid))[:200]}" for pid in family(self.process.pid))
            self.kill()
            raise AssertionError(
                f"{' '.join(self.words)} did not end within {seconds} s: {Done(None, *self.said())}\n{where}") from None

    def kill(self):
        for pid in family(self.process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()


def read_link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def start(kind, ranks, *words, program=(SHOAL,), **how):
    return Job([*launcher(kind, ranks), *program, *words], **how)


def run(kind, ranks, *words, **how):
    with start(kind, ranks, *words, **how) as job:
        return job.end()


def alone(*words, env=None, stdin=None, code=0, program=SHOAL):
    """The program without a launcher."""
    with Job([program, *words], env=env, stdin=stdin) as job:
        done = job.end()
    assert done.code == code, f"shoal {' '.join(map(str, words))}: {done}"
    return done


def ours():
    """Files here, without the session folders of Open MPI, which it leaves behind when it is ended at once."""
    return sorted(name for name in os.listdir(".") if not name.startswith("ompi."))


def refuses(kind, ranks, code, sentence, *words, **how):
    """It ends with this code, and says this once, whatever the number of ranks; nothing is written."""
    before = ours()
    done = run(kind, ranks, *words, **how)
    assert done.code == code and len(done.told()) == 1 and sentence in done.told()[0] and not done.out, (kind, words,
                                                                                                         sentence, done)
    wait_until(lambda: ours() == before, SOON, f"nothing is left in {before}: {os.listdir('.')}")
    return done.told()[0]


# ---- work whose bytes are known --------------------------------------------------------------------------------------


class Work:
    """Words of the program, and the files it writes: {option: name}.  One process has done it in the folder
    expected."""

    made = 0

    def __init__(self, *words, files, stdin=None):
        Work.made += 1
        self.words, self.files, self.stdin, self.told = words, files, stdin, None
        self.expected = f"expected-{Work.made}"
        os.mkdir(self.expected)
        self.printed = alone(*words, *self.outputs(self.expected), "--engine", "threads", stdin=self.input()).out

    def input(self):
        return open(self.stdin, "rb") if self.stdin else None

    def report(self):
        """What --json says of it."""
        if not self.told:
            self.told = json.loads(alone(*self.words, "--engine", "threads", "--json").out)
        return self.told

    def outputs(self, folder):
        return [word for option, name in self.files.items() for word in (option, f"{folder}/{name}")]

    def agrees(self, kind, ranks, *more, folder=None, **how):
        """That so many ranks write the same, bytes and all."""
        folder = folder or f"{self.expected}-{kind}-{ranks}"
        os.makedirs(folder, exist_ok=True)
        done = run(kind, ranks, *self.words, *self.outputs(folder), *more, stdin=self.input(), **how)
        assert done.code == 0, (kind, ranks, self.words, more, done)
        self.compare(folder, (kind, ranks, more))
        return done

    def compare(self, folder, what):
        for name in self.files.values():
            if name.endswith(".jsonl"):
                assert trace(f"{folder}/{name}") == trace(f"{self.expected}/{name}"), (what, name, self.words)
            else:
                assert filecmp.cmp(f"{folder}/{name}", f"{self.expected}/{name}",
                                   shallow=False), (what, name, self.words, "other bytes")
        assert sorted(os.listdir(folder)) == sorted(self.files.values()), (what, os.listdir(folder))
        shutil.rmtree(folder)


def trace(path):
    """Its rounds, without the time they took."""
    with open(path, encoding="utf-8") as file:
        return [{**json.loads(line), "seconds": None} for line in file]


# ---- runs that stand still when they are told to ---------------------------------------------------------------------


class Followed:
    """A pipe for --trace that takes a page: whoever writes a line for each round waits when nobody reads on.

        followed = mpi.Followed()
        with mpi.start(kind, 3, ..., "--trace", followed.path) as job:
            followed.rounds(job, 30)                # now it is in round 30 or one of the next, and stays there
    """

    def __init__(self, path="trace.pipe"):
        self.path = path
        os.mkfifo(path)
        self.file = os.open(path, os.O_RDWR | os.O_NONBLOCK)  # nobody waits for the other end
        fcntl.fcntl(self.file, fcntl.F_SETPIPE_SZ, 4096)

    def rounds(self, job, count):
        """Until there were so many more."""
        deadline = time.monotonic() + SOON
        while count > 0:
            assert job.process.poll() is None, f"ended early: {Done(job.process.returncode, *job.said())}"
            assert time.monotonic() < deadline, f"{count} rounds are still to come: {Done(None, *job.said())}"
            if select.select([self.file], [], [], 0.1)[0]:
                count -= os.read(self.file, 100).count(b"\n")

    def remove(self):
        os.close(self.file)
        os.unlink(self.path)
