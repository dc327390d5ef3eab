#!/usr/bin/env python3
# Labels: asan
"""Ranks of MPI (shoal/ranks.h): every function of the plug-in under real launchers, finding the plug-in, and what goes
wrong with it.

    test_mpi_ranks.py PATH_TO_shoal [CASE...]

mpi_ranks.c makes the calls and checks what comes back.  Everything is done with each MPI of which there is a plug-in
and a launcher.
"""
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys

import apart
from processes import is_sanitized, wait_until

BUILD = os.path.dirname(os.path.abspath(sys.argv[1]))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RANKS = f"{BUILD}/tests/system/mpi_ranks"
SOON = 300  # seconds; a few are enough, but for a busy machine
FAILED = 3  # mpi_ranks could not open the ranks
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}
OF_A_LAUNCHER = re.compile("^(OMPI|PMI|PMIX|MV2|SLURM|HYDI|MPI|SHOAL_MPI)_")
ASAN = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # MPI itself keeps some memory


def launcher(kind):
    return shutil.which(f"mpirun.{kind}") or shutil.which(f"mpiexec.{kind}")


KINDS = [kind for kind in NAMES if os.path.exists(f"{BUILD}/mpi/{kind}/libshoal-mpi.so") and launcher(kind)]


def plugin(kind, name="libshoal-mpi.so"):
    return f"{BUILD}/mpi/{kind}/{name}"


def environment(**more):
    clean = {name: value for name, value in os.environ.items() if not OF_A_LAUNCHER.match(name)}
    return {**clean, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "ASAN_OPTIONS": ASAN,
            "TMPDIR": os.getcwd(), **more}


def words(kind, ranks, *command):
    return [launcher(kind), *(["--oversubscribe"] if kind == "openmpi" else []), "-np", str(ranks), *command]


def finish(process):
    """Ends by itself; otherwise it and all it started are ended."""
    try:
        out, err = process.communicate(timeout=SOON)
    except subprocess.TimeoutExpired as hung:
        os.killpg(process.pid, signal.SIGKILL)
        raise AssertionError(f"{' '.join(process.args)} hangs: {process.communicate()}") from hung
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def start(command, **more):
    return subprocess.Popen(command, env=environment(**more), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)


def run(kind, ranks, *command, **more):
    return finish(start(words(kind, ranks, *command), **more))


def alone(*command, **more):
    return finish(start([*command], **more))


def passes(kind, ranks, case, path="", **more):
    done = run(kind, ranks, RANKS, case, path or plugin(kind), **more)
    assert done.returncode == 0, done
    assert re.search(f"^done {case}, {ranks} of {NAMES[kind]} [0-9.]+$", done.stdout, re.MULTILINE), done
    assert "CHECK" not in done.stderr, done


def refused(done, *parts):
    """In one sentence, the same of each rank, with all these parts."""
    sentences = set(re.findall("^status -.*", done.stdout, re.MULTILINE))
    assert done.returncode == FAILED and len(sentences) == 1, done
    for part in parts:
        assert part in next(iter(sentences)), (part, done)


def compile_library(name, source, *more):
    with open(f"{name}.c", "w", encoding="ascii") as file:
        file.write(source)
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{SOURCE}/include", "-o", f"{name}.so", f"{name}.c", *more],
                   check=True)
    return os.path.abspath(f"{name}.so")


# ---- how a process was started ---------------------------------------------------------------------------------------


@apart.test
def the_environment_tells():
    step = {
        "SLURM_JOB_ID": "3", "SLURM_STEP_ID": "0", "SLURM_PROCID": "2", "SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "4"
    }
    pmix = {"PMIX_RANK": "2", "PMIX_NAMESPACE": "slurm.pmix.5.0"}
    pmi = {"PMI_RANK": "2", "PMI_SIZE": "4", "PMI_FD": "7"}
    open_mpi = {
        "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_RANK": "2", "PMIX_NAMESPACE": "1794048001"
    }
    batch = {"SLURM_JOB_ID": "3", "SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_NPROCS": "4"}
    for wanted, variables in [
            ("alone 0 1 - -", {}),
            ("ranks 2 4 mpirun openmpi", open_mpi),
            ("ranks 2 4 mpirun openmpi", {**open_mpi, **step}),
            ("ranks 0 1 mpirun openmpi", {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}),
            ("ranks 2 4 mpirun mpich", {**pmi, "HYDI_CONTROL_FD": "7"}),
            ("ranks 2 4 mpirun mpich", {**pmi, **step, "HYDI_CONTROL_FD": "7"}),
            ("ranks 2 4 mpirun mpich", {"MV2_COMM_WORLD_RANK": "2", "MV2_COMM_WORLD_SIZE": "4"}),
            ("ranks 2 4 srun mpich", {**pmi, **step}),
            ("ranks 2 4 srun -", {**pmix, **step}),
            ("ranks 0 1 srun -", {**pmix, **step, "PMIX_RANK": "0", "SLURM_STEP_NUM_TASKS": "1"}),
            ("ranks 2 4 srun - bare", step),
            ("alone 0 1 - -", {**step, "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}),
            ("alone 0 1 - -", batch),  # the script of sbatch itself
            ("alone 0 1 - -", {"SLURM_JOB_ID": "3", "SLURM_NTASKS": "4"}),  # and the shell of salloc
            ("alone 0 1 - -", {"OMPI_COMM_WORLD_RANK": "4", "OMPI_COMM_WORLD_SIZE": "4"}),  # nonsense
            ("alone 0 1 - -", {"OMPI_COMM_WORLD_RANK": "-1", "OMPI_COMM_WORLD_SIZE": "4"}),
            ("alone 0 1 - -", {"OMPI_COMM_WORLD_RANK": "1x", "OMPI_COMM_WORLD_SIZE": "4"}),
            ("alone 0 1 - -", {"OMPI_COMM_WORLD_RANK": "1"}),
            ("alone 0 1 - -", {"PMI_RANK": "", "PMI_SIZE": "99999999999999999999"}),
    ]:
        done = alone(RANKS, "find", **variables)
        assert done.stdout == wanted + "\n", (wanted, variables, done)


@apart.test
def launchers_are_recognised():
    for kind in KINDS:
        done = run(kind, 2, RANKS, "find")
        assert sorted(done.stdout.splitlines()) == [f"ranks {rank} 2 mpirun {kind}" for rank in (0, 1)], done


@apart.test
def srun_without_mpi():
    step = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4"}
    refused(alone(RANKS, "nothing", plugin(KINDS[0]), **step), "started by srun", "--mpi=pmix", "--mpi=list")
    step = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}
    refused(alone(RANKS, "nothing", plugin(KINDS[0]), **step), "started by srun", "--mpi=pmix")


# ---- every function --------------------------------------------------------------------------------------------------


def add_tables(kind, ranks):
    def every_function():
        passes(kind, ranks, "table")

    every_function.__name__ = f"every_function_{kind}_{ranks}"
    apart.test(every_function)


for _kind in KINDS:
    for _ranks in (5, 2) if is_sanitized(RANKS) else (8, 5, 3, 2, 1):
        add_tables(_kind, _ranks)


@apart.test
def messages_beyond_an_int():
    """By a plug-in that cuts them at 1,000 elements instead of 2 to the 30."""
    for kind in KINDS:
        for ranks in (1, 3):
            passes(kind, ranks, "table", plugin(kind, "libshoal-mpi-pieces.so"), MOST="20001")


@apart.test
def without_a_launcher():
    for kind in KINDS:
        for case in ("table", "alarms"):
            done = alone(RANKS, case, plugin(kind), MOST="1000")
            assert done.returncode == 0 and f"done {case}, 1 of {NAMES[kind]} " in done.stdout, done


@apart.test
def alarms_are_heard():
    for kind in KINDS:
        for ranks in (2, 5):
            passes(kind, ranks, "alarms")


@apart.test
def abort_ends_all():
    for kind in KINDS:
        done = run(kind, 3, RANKS, "aborts", plugin(kind))
        ours = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("shoal: ")]
        assert ours == [f"shoal: rank 2 on {os.uname().nodename}: the rows are gone"], done
        # MPICH's launcher ends with the code of the rank it hears of last: on a busy machine one that it has killed
        # (9), or that has lost it (1).
        codes = (1, 7, 9) if kind == "mpich" else (7,)
        assert done.returncode in codes and "met" not in done.stdout, done


@apart.test
def a_killed_rank_ends_all():
    for kind in KINDS:
        process = start(words(kind, 3, RANKS, "hangs", plugin(kind)))
        pids = [int(process.stdout.readline().split()[1]) for _ in range(3)]
        os.kill(pids[0], signal.SIGKILL)
        done = finish(process)
        assert done.returncode != 0 and "done" not in done.stdout, done
        wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), SOON, "all ranks are gone")


@apart.test
def in_a_program_that_uses_mpi():
    for kind in KINDS:
        done = run(kind, 2, RANKS, "guest", plugin(kind))
        lines = sorted(done.stdout.splitlines())
        assert done.returncode == 0 and lines[2:] == ["met 2", "met 2"], done
        assert all(line.startswith("left running; ") and "can't be started again" in line for line in lines[:2]), done


# ---- the plug-in -----------------------------------------------------------------------------------------------------


@apart.test
def places():
    """It is found in every place that the message names when it is in none of them."""
    os.makedirs("prefix/bin")
    program = shutil.copy(RANKS, "prefix/bin/program")
    for kind in KINDS:
        done = run(kind, 2, program, "nothing")
        refused(done, f"status -6: started by mpirun ({NAMES[kind]}), but libshoal-mpi.so is not here",
                "SHOAL_MPI_PLUGIN")
        looked = re.findall(r"/[^ ,;]*/libshoal-mpi\.so", done.stdout.splitlines()[0])
        here = os.path.realpath("prefix")
        assert looked[0] == f"{here}/bin/mpi/{kind}/libshoal-mpi.so" and len(looked) == 2, looked
        assert re.fullmatch(f"{here}/lib[^/]*(/[^/]+)?/shoal/{kind}/libshoal-mpi.so", looked[1]), looked
        for place in looked:
            os.makedirs(os.path.dirname(place))
            shutil.copy(plugin(kind), place)
            done = run(kind, 2, program, "nothing")
            assert done.returncode == 0 and "done nothing, 2 of" in done.stdout, done
            os.remove(place)
    done = alone(program, "nothing")
    refused(done, "status -6: libshoal-mpi.so is not here: looked for", "mpi/openmpi/", "mpi/mpich/")


@apart.test
def beside_the_library():
    library = f"{BUILD}/libshoal.so"
    if not os.path.exists(library) or "asan" in os.path.basename(BUILD):
        raise apart.Skipped(f"no {library}")
    script = f"""import ctypes, sys
shoal = ctypes.CDLL({library!r})
shoal.shoal_error.restype = ctypes.c_char_p
ranks = ctypes.c_void_p()
status = shoal.shoal_ranks_open(ctypes.byref(ranks), None)
shoal.shoal_ranks_close(ctypes.byref(ranks))
sys.stdout.write(f"{{status}} {{shoal.shoal_error().decode()}}\\n")  # at once: ranks share one output
"""
    for kind in KINDS:
        done = run(kind, 2, sys.executable, "-c", script)
        assert done.returncode == 0 and done.stdout == "0 \n" * 2, done


@apart.test
def named_by_the_environment():
    for kind in KINDS:
        done = run(kind, 2, RANKS, "nothing", SHOAL_MPI_PLUGIN=plugin(kind))
        assert done.returncode == 0 and "done nothing, 2 of" in done.stdout, done
        shutil.copy(plugin(kind), "bare.so")  # in the current folder, where the loader alone would not look
        done = run(kind, 2, RANKS, "nothing", SHOAL_MPI_PLUGIN="bare.so")
        assert done.returncode == 0, done
        done = run(kind, 2, RANKS, "nothing", plugin(kind), SHOAL_MPI_PLUGIN="/nowhere.so")  # the call comes first
        assert done.returncode == 0, done


@apart.test
def files_that_are_none():
    kind = KINDS[0]
    with open("text.so", "w", encoding="ascii") as file:
        file.write("this is no library\n")
    with open("empty.so", "w", encoding="ascii"):
        pass
    with open(plugin(kind), "rb") as whole, open("half.so", "wb") as half:
        half.write(whole.read()[:3000])
    os.mkdir("folder.so")
    for name in ("text.so", "empty.so", "half.so", "folder.so"):
        refused(alone(RANKS, "nothing", name),
                f"status -3: {os.path.realpath(name)}: the MPI plug-in can't be loaded: ")
    refused(alone(RANKS, "nothing", "nowhere.so"),
            "status -6: nowhere.so: the MPI plug-in can't be loaded: No such file")
    refused(run(kind, 2, RANKS, "nothing", "nowhere.so"), "status -6: nowhere.so: ")
    other = compile_library("other", "int other;\n")
    refused(alone(RANKS, "nothing", other), f"status -2: {other}: not an MPI plug-in of shoal")


@apart.test
def its_mpi_is_missing():
    gone = compile_library("libgone", "int MPI_Init(void) { return 0; }\n")
    needs = compile_library("needs", "int MPI_Init(void);\nint shoal_ranks_mpi(void) { return MPI_Init(); }\n", gone)
    os.remove(gone)
    refused(alone(RANKS, "nothing", needs), f"{needs}: the MPI plug-in can't be loaded: ", "libgone.so: cannot open")


@apart.test
def of_another_version():
    source = """#include <shoal/ranks.h>
static void leave(shoal_ranks *self) { self->version = 0; }
int shoal_ranks_mpi(shoal_ranks **out, uint32_t version, char *message, size_t size)
{
    static shoal_ranks ranks = {.version = SHOAL_RANKS_VERSION + 1, .bytes = sizeof ranks, .size = 1, .close = leave};
    (void)version, (void)message, (void)size;
    *out = &ranks;
    return 0;
}
"""
    newer = compile_library("newer", source)
    refused(alone(RANKS, "nothing", newer), f"status -2: {newer}: it belongs to another version of shoal")
    if "asan" in os.path.basename(BUILD):
        return  # such a library can't be loaded into python
    for kind in KINDS:
        entry = ctypes.CDLL(plugin(kind), mode=ctypes.RTLD_LOCAL).shoal_ranks_mpi
        message, ranks = ctypes.create_string_buffer(500), ctypes.c_void_p()
        assert entry(ctypes.byref(ranks), ctypes.c_uint32(99), message, ctypes.c_size_t(500)) == -1
        assert b"another version of shoal" in message.value and b"99" in message.value, message.value


@apart.test
def of_the_other_mpi():
    if len(KINDS) < 2:
        raise apart.Skipped("needs both Open MPI and MPICH (./dev deps test)")
    for kind, other in (KINDS, KINDS[::-1]):
        refused(run(kind, 2, RANKS, "nothing", plugin(other)), f"status -2: {plugin(other)}: ", f"for {NAMES[other]} ",
                f"sees only 1 of the 2 processes that {NAMES[kind]}'s mpirun started")


for _kind in NAMES:
    if _kind not in KINDS:
        print(f"SKIPPED {_kind}: no {plugin(_kind)}, or no mpirun.{_kind} (./dev deps test)")
if not KINDS:
    sys.exit(77)
apart.main(at_once=2)
