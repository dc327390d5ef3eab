#!/usr/bin/env python3
# Seconds: 50
"""Machines that have nothing but a shell, and what can be wrong with them: --workers ssh: and shoal check over a
stand-in for ssh.

    test_ssh_bootstrap.py PATH_TO_shoal [NAME...]

The stand-in is a script that runs the command on this machine, as another "host" with a home and a TMPDIR of its own,
after doing whatever a test wants to see survived. So no test needs root, but for those with full disks and the like,
which are left out without it. Every test runs in a process and an empty folder of its own, several at a time.
"""
import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time

import apart

SHOAL = os.path.abspath(sys.argv[1])
SECONDS = 600  # until something that never comes is a failure
DATA = "gen:blobs?rows=3000&cols=8&centres=12"
LEARN = ["-k", "10", "--iterations", "20"]
LONG = ["-k", "40", "--init", "kmeans++"]  # over eighty rounds
SLOW = "dir:st?faults=delay:1/20ms"  # every request takes up to 20 ms longer


# ---- running things ------------------------------------------------------------------------------------------------


class Done:
    def __init__(self, process, out, err):
        self.code, self.out, self.err = process.returncode, out, err


def start(*arguments, env={}, shoal=SHOAL, **options):
    home = {"XDG_STATE_HOME": os.path.abspath("state"), "XDG_CACHE_HOME": os.path.abspath("cache"),
            "SHOAL_SSH": os.path.abspath("ssh"), "SHOAL_PORTABLE": "none"}
    inherited = {name: value for name, value in os.environ.items() if name != "SHOAL_STORE"}
    whole = {name: value for name, value in {**inherited, **home, **env}.items() if value is not None}
    return subprocess.Popen([shoal, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=whole, **options)


def end(process):
    out, err = process.communicate(timeout=SECONDS)
    return Done(process, out, err)


def run(*arguments, **options):
    return end(start(*arguments, **options))


def succeeds(*arguments, **options):
    done = run(*arguments, **options)
    assert done.code == 0, f"{arguments} exits {done.code}: {done.out} {done.err}"
    return done


def waits_for(what, condition, seconds=SECONDS):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"this never came: {what}"
        time.sleep(0.02)


def contains(text, *parts):
    for part in parts:
        assert part in text, f"{part!r} is not in {text!r}"


# ---- the stand-in for ssh ------------------------------------------------------------------------------------------

SSH = """#!/bin/sh
while [ $# -gt 2 ]; do
    case $1 in *BatchMode=yes) asks_nobody=1 ;; esac
    shift
done
host=$1 command=$2
[ "$asks_nobody" ] || {{ echo "ssh would ask" >&2; exit 255; }}
case $PATH in */fake:*) ;; *) PATH={here}/fake:$PATH ;; esac
export HOME={here}/$host/home TMPDIR={here}/$host/tmp PATH
unset XDG_CACHE_HOME XDG_RUNTIME_DIR SHOAL_PORTABLE
mkdir -p "$HOME" "$TMPDIR"
cd "$HOME"
{body}
"""
REACH = 'exec sh -c "$command"'


def program(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o755)


def far(body=REACH):
    os.makedirs("fake", exist_ok=True)
    program("ssh", SSH.format(here=os.path.abspath("."), body=body))


def bin_of(host="h1"):
    return f"{host}/home/.cache/shoal/bin"


def binaries(folder):
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def check(*hosts, code=0, env={}):
    """What shoal check says of each host."""
    done = run("check", "--workers", "ssh:" + ",".join(hosts), "--json", env=env)
    assert done.code == code, f"exits {done.code}, not {code}: {done.out} {done.err}"
    return json.loads(done.out)["workers"]


def reason(host="h1", env={}):
    """Why a host can't be used; every such sentence has its name."""
    (row,) = check(host, code=1, env=env)
    assert row["why"].startswith(f"{host}: "), row
    return row["why"]


def computes(spec, *more, learn=LEARN, env={}):
    """Runs a job there, whose centres must be those that threads find."""
    succeeds("kmeans", DATA, *learn, "--centres", "expected.npy")
    with contextlib.suppress(FileNotFoundError):
        os.remove("found.npy")
    done = succeeds("kmeans", DATA, *learn, "--centres", "found.npy", "--workers", spec, *more, env=env)
    agrees()
    return done


def agrees():
    with open("expected.npy", "rb") as first, open("found.npy", "rb") as second:
        assert first.read() == second.read(), "the centres differ"


# ---- processes on the "hosts" --------------------------------------------------------------------------------------


def words_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().split("\0")
    except OSError:
        return []


def far_processes(verb, host=""):
    """Those that run this verb from the cache of a host."""
    here, found = os.path.abspath(host or "."), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            exe = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue
        if exe.startswith(here + "/") and verb in words_of(pid)[1:2]:
            found.append(int(pid))
    return found


def processes_of(host):
    """All that run in the home of a host, or below it."""
    home, found = os.path.abspath(host) + "/", []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/cwd").startswith(home):
                found.append(int(pid))
    return found


def nothing_is_left(seconds=15, killed=0):
    """Of agents but the folders of those that were killed."""
    waits_for("the end of the agent and its workers",
              lambda: not far_processes("agent") and not far_processes("worker"), seconds)
    waits_for("the end of the socket", lambda: len(sockets()) == killed, seconds)


def sockets():
    return [f"{host}/tmp/{entry}/s" for host in ("h1", "h2") if os.path.isdir(f"{host}/tmp")
            for entry in os.listdir(f"{host}/tmp") if entry.startswith("shoal-agent-")]


# ---- shells and banners --------------------------------------------------------------------------------------------


@apart.test
def every_login_shell_will_do():
    shells = [shell for shell in ("sh", "bash", "dash", "tcsh", "fish", "zsh", "ksh") if shutil.which(shell)]
    if shutil.which("busybox"):
        shells.append("busybox sh")
    assert len(shells) >= 2, shells
    for shell in shells:
        far(f'exec {shell} -c "$command"')
        (row,) = check(shell.replace(" ", "-"))
        assert row["reached"] and not row["cached"] and row["cores"] > 0, (shell, row)


@apart.test
def tools_of_busybox_will_do():
    if not shutil.which("busybox"):
        raise apart.Skipped("busybox is not here")
    tools = "sh id wc sha256sum touch find rm mkdir ls head cat chmod mv uname".split()
    for tool in tools:
        program(f"fake/{tool}", f'#!/bin/sh\nexec {shutil.which("busybox")} {tool} "$@"\n')
    far(f'PATH={os.path.abspath("fake")}\nexec sh -c "$command"')
    (row,) = check("h1")
    assert row["reached"] and not row["cached"], row
    (row,) = check("h1")
    assert row["cached"], row


@apart.test
def junk_on_stdout_is_skipped():
    for name, junk in {"line": "echo Welcome", "no end of line": "printf 'Welcome: '",
                       "much": "head -c 200000 /dev/zero | tr '\\0' 'x'; echo", "binary": "head -c 3000 /dev/urandom",
                       "colours": "printf '\\033[2J\\033[31mhello\\n'"}.items():
        far(f'{junk}\n{REACH}')
        (row,) = check("h1")
        assert row["reached"], (name, row)
    far(f'echo Welcome to h1\n{REACH}')
    computes("ssh:h1:2")


@apart.test
def junk_without_an_end_is_shown():
    far("yes 'This account is closed'")
    contains(reason(), "can't be reached", "This account is closed")


@apart.test
def a_shell_that_refuses_is_shown():
    far("echo 'This account is currently not available.'; exit 1")
    contains(reason(), "can't be reached", "This account is currently not available.")
    far("echo 'fork: no more processes' >&2; exit 1")
    contains(reason(), "can't be reached", "fork: no more processes")
    far("exit 7")
    contains(reason(), "exit code 7")


# ---- the program over there ----------------------------------------------------------------------------------------


@apart.test
def the_program_is_copied_once():
    far()
    (row,) = check("h1")
    assert not row["cached"], row
    (name,) = binaries(bin_of())
    assert len(name) == 64, name
    before = os.stat(f"{bin_of()}/{name}").st_ino
    (row,) = check("h1")
    assert row["cached"] and row["folder"].endswith("/h1/home/.cache/shoal"), row
    assert row["round_trip_seconds"] > 0 and row["to_host_bytes_per_second"] > 0, row
    assert os.stat(f"{bin_of()}/{name}").st_ino == before
    assert stat.S_IMODE(os.stat(f"{bin_of()}/{name}").st_mode) == 0o700


@apart.test
def a_damaged_program_is_copied_again():
    far()
    check("h1")
    (name,) = binaries(bin_of())
    path = f"{bin_of()}/{name}"
    with open(path, "rb") as file:
        good = file.read()
    damages = {"cut": good[:100000], "empty": b"", "one bit": good[:50000] + bytes([good[50000] ^ 1]) + good[50001:]}
    for what, bad in damages.items():
        os.remove(path)
        with open(path, "wb") as file:
            file.write(bad)
        os.chmod(path, 0o700)
        (row,) = check("h1")
        assert not row["cached"], (what, row)
        assert binaries(bin_of()) == [name], what
        with open(path, "rb") as file:
            assert file.read() == good, what


@apart.test
def a_host_without_sha256sum_will_do():
    program("fake/sha256sum", "#!/bin/sh\nexit 127\n")
    os.chmod("fake/sha256sum", 0o644)
    tools = "sh id wc touch find rm mkdir ls head cat chmod mv uname getconf".split()
    os.makedirs("few")
    for tool in tools:
        os.symlink(shutil.which(tool), f"few/{tool}")
    far(f'PATH={os.path.abspath("few")}\nexec sh -c "$command"')
    (row,) = check("h1")
    assert row["reached"] and not row["cached"], row
    (row,) = check("h1")
    assert row["cached"], row


@apart.test
def old_programs_are_removed():
    far()
    check("h1")
    old, young = f"{bin_of()}/{'0' * 64}", f"{bin_of()}/{'1' * 64}"
    for path in (old, young):
        program(path, "#!/bin/sh\n")
    os.utime(old, (time.time() - 40 * 86400,) * 2)
    check("h1")
    assert not os.path.exists(old) and os.path.exists(young), binaries(bin_of())


@apart.test
def another_architecture_is_refused():
    far()
    program("fake/uname", '#!/bin/sh\ncase $1 in -m) echo aarch64 ;; *) echo Linux ;; esac\n')
    contains(reason(), "can't run workers", "Linux on aarch64", f"Linux on {os.uname().machine}")
    program("fake/uname", f'#!/bin/sh\ncase $1 in -m) echo {os.uname().machine} ;; *) echo FreeBSD ;; esac\n')
    contains(reason(), "FreeBSD")
    assert binaries(bin_of()) == [], "nothing was copied"


def portable(usual, static):
    """A folder of portable builds, one or both of which are programs of the test's own."""
    os.makedirs("portable", exist_ok=True)
    for name, text in (("shoal", usual), ("shoal-static", static)):
        path = f"portable/{name}"
        if text is None:
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
        elif text == "":
            shutil.copy(SHOAL, path)
            with open(path, "ab") as file:
                file.write(name.encode())  # so that it has another hash
        else:
            program(path, text)
    return {"SHOAL_PORTABLE": os.path.abspath("portable")}


def sent(host="h1"):
    """Which of the builds is on the host."""
    (name,) = binaries(bin_of(host))
    with open(f"{bin_of(host)}/{name}", "rb") as file:
        bytes = file.read()
    return "static" if bytes.endswith(b"shoal-static") else "usual"


@apart.test
def the_build_suits_the_c_library():
    env = portable("", "")
    far()
    for host, library, build in (("h1", "glibc 9.99", "usual"), ("h2", "glibc 2.5", "static"), ("h3", "musl",
                                                                                                "static")):
        program("fake/getconf", f"#!/bin/sh\n{'exit 1' if library == 'musl' else 'echo ' + library}\n")
        program("fake/ldd", "#!/bin/sh\necho 'musl libc (x86_64)' >&2\nexit 1\n")
        (row,) = check(host, env=env)
        assert sent(host) == build, (library, row)
        contains(row["system"], "musl libc" if library == "musl" else library)


@apart.test
def portable_builds_beside_the_program_are_sent_unless_outdated():
    far()
    for folder in ("portable", "../libexec/shoal"):
        os.makedirs("own/bin")
        shutil.copy(SHOAL, "own/bin/shoal")
        os.makedirs(f"own/bin/{folder}")
        shutil.copy(SHOAL, f"own/bin/{folder}/shoal")
        with open(f"own/bin/{folder}/shoal", "ab") as file:
            file.write(b"portable")
        for age, other in ((60, True), (7200, False)):
            os.utime(f"own/bin/{folder}/shoal", (time.time() - age,) * 2)
            succeeds("check", "--workers", "ssh:h1", env={"SHOAL_PORTABLE": None},
                     shoal=os.path.abspath("own/bin/shoal"))
            (name,) = binaries(bin_of())
            with open(f"{bin_of()}/{name}", "rb") as file:
                assert file.read().endswith(b"portable") == other, (folder, age)
            shutil.rmtree(bin_of())
        shutil.rmtree("own")


MISSING = ("#!/bin/sh\necho '/x/shoal: error while loading shared libraries: libjansson.so.4: cannot open shared "
           "object file' >&2\nexit 127\n")


@apart.test
def missing_libraries_are_named():
    far()
    why = reason(env=portable(MISSING, None))
    contains(why, "does not start there", "libjansson.so.4: cannot open")
    assert binaries(bin_of()) == [], binaries(bin_of())


@apart.test
def where_libraries_are_missing_the_static_build_is_sent():
    far()
    (row,) = check("h1", env=portable(MISSING, ""))
    assert row["reached"] and sent() == "static", row


@apart.test
def a_machine_with_nothing_but_busybox():
    static, busybox = os.path.join(os.path.dirname(SHOAL), "portable", "shoal-static"), shutil.which("busybox")
    if not os.path.exists(static) or not busybox:
        raise apart.Skipped("busybox or the portable build is not here")
    if os.stat(static).st_mtime < os.stat(SHOAL).st_mtime - 60:
        raise apart.Skipped("the portable build is older than the program")
    if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        raise apart.Skipped("only root can change the root")
    for folder in ("bin", "tmp", "proc", "dev/shm", "root"):
        os.makedirs(f"machine/{folder}")
    libraries = subprocess.run(["ldd", busybox], capture_output=True, text=True).stdout.split()
    for path in [busybox, *(word for word in libraries if word.startswith("/"))]:
        os.makedirs("machine" + os.path.dirname(path), exist_ok=True)
        shutil.copy(path, "machine" + path)
    for tool in "sh id wc sha256sum touch find rm mkdir ls head cat chmod mv uname".split():
        os.symlink(busybox, f"machine/bin/{tool}")
    far(f"""export command HOME=/root PATH=/bin; unset TMPDIR
PATH=$PATH:/usr/bin:/usr/sbin exec unshare -m --propagation private sh -c 'cd {os.path.abspath("machine")}
mount -t proc proc proc
mount -t tmpfs own dev; : >dev/null; exec chroot . /bin/sh -c "$command"'""")
    (row,) = check("h1", env={"SHOAL_PORTABLE": os.path.dirname(static)})
    assert row["reached"] and row["folder"] == "/root/.cache/shoal", row
    with open(static,
              "rb") as first, open(f"machine/root/.cache/shoal/bin/{binaries('machine/root/.cache/shoal/bin')[0]}",
                                   "rb") as second:
        assert first.read() == second.read(), "the static build was sent"
    computes("ssh:h1:2", env={"SHOAL_PORTABLE": os.path.dirname(static)})


@apart.test
def another_version_is_refused():
    far()
    body = f'#!/bin/sh\n[ "$1" = version ] && exec echo shoal 0.0.1\nexec {SHOAL} "$@"\n'
    check("h1", env=portable(body, None))  # a wrapper that runs this very program is fine
    contains(
        reason(env=portable('#!/bin/sh\n[ "$1" = version ] && exit 0\necho "shoal: no such verb" >&2\nexit 2\n', None)),
        "the agent does not start there", "no such verb")


# ---- folders -------------------------------------------------------------------------------------------------------


@apart.test
def without_a_cache_folder_there_is_tmp():
    far(f'mkdir -p "$HOME"; touch "$HOME/.cache"\n{REACH}')
    (row,) = check("h1")
    assert row["folder"].endswith(f"/h1/tmp/shoal-{os.getuid()}"), row
    assert stat.S_IMODE(os.stat(row["folder"]).st_mode) == 0o700
    (row,) = check("h1")
    assert row["cached"], row
    succeeds("data", "convert", "gen:uniform?rows=4000&cols=16", "rows.npy")
    succeeds("kmeans", "rows.npy", *LEARN, "--centres", "expected.npy")
    succeeds("kmeans", "rows.npy", *LEARN, "--centres", "found.npy", "--workers", "ssh:h1:2")
    agrees()
    assert os.listdir(row["folder"] + "/slices"), "rows are kept there, too"


@apart.test
def folders_of_others_are_not_used():
    shared = f"/dev/shm/shoal-{os.getuid()}"
    if os.path.exists(shared):
        raise apart.Skipped(f"{shared} is in use")
    far(f'mkdir -p "$HOME"; touch "$HOME/.cache"\n{REACH}')
    os.makedirs(f"h1/tmp/shoal-{os.getuid()}", mode=0o755)
    try:
        (row,) = check("h1")
        assert row["folder"] == shared, row
        assert binaries(f"h1/tmp/shoal-{os.getuid()}/bin") == []
        os.rmdir(f"h1/tmp/shoal-{os.getuid()}")
        os.makedirs("elsewhere", mode=0o700)
        os.symlink(os.path.abspath("elsewhere"), f"h1/tmp/shoal-{os.getuid()}")
        (row,) = check("h1")
        assert row["folder"] == shared and os.listdir("elsewhere") == [], row
    finally:
        shutil.rmtree(shared, ignore_errors=True)


def in_mounts(*mounts):
    """The command sees these file systems, and nobody else does."""
    if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        raise apart.Skipped("only root can mount")
    lines = "; ".join(f'mkdir -p "{folder}"; mount -t tmpfs -o mode=1777,{options} own "{folder}"'
                      for folder, options in mounts)
    far(f'export command\nexec unshare -m --propagation private sh -c \'{lines}; cd "$HOME"; {REACH}\'')


@apart.test
def a_full_disk_is_passed_over():
    in_mounts(("$HOME/.cache", "size=1m"), ("/dev/shm", "size=64k"))
    (row,) = check("h1")
    assert "/h1/tmp/" in row["folder"], row
    computes("ssh:h1:2")


@apart.test
def full_disks_everywhere_are_named():
    in_mounts(("$HOME/.cache", "size=1m"), ("$TMPDIR", "size=1m"), ("/dev/shm", "size=64k"))
    contains(reason(), "no folder", "/home/.cache/shoal", f"/h1/tmp/shoal-{os.getuid()}", "/dev/shm/shoal-",
             "No space left on device")


@apart.test
def a_folder_that_nothing_runs_from_is_passed_over():
    in_mounts(("$HOME/.cache", "noexec"), ("/dev/shm", "noexec"))
    (row,) = check("h1")
    assert "/h1/tmp/" in row["folder"], row
    in_mounts(("$HOME/.cache", "noexec"), ("$TMPDIR", "noexec"), ("/dev/shm", "noexec"))
    contains(reason("h2"), "no folder", "ermission denied")


# ---- ssh's own troubles --------------------------------------------------------------------------------------------

REFUSALS = {
    "root@h1: Permission denied (publickey,password).": "asks for a password or refuses the key",
    "Host key verification failed.": "its host key is unknown",
    "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\\nHost key verification failed.":
        "its host key differs from the known one",
    "ssh: Could not resolve hostname h1: Name or service not known": "there is no such host",
}


@apart.test
def what_ssh_refuses_fails_at_once():
    for said, meaning in REFUSALS.items():
        far(f'echo "$host" >>{os.path.abspath("tries")}; printf "{said}\\n" >&2; exit 255')
        with contextlib.suppress(FileNotFoundError):
            os.remove("tries")
        began = time.monotonic()
        done = run("kmeans", DATA, *LEARN, "--workers", "ssh:h1")
        assert done.code == 1, (done.code, done.err)
        contains(done.err, "h1: can't be reached", meaning, said.split("\\n")[-1], "the job is removed")
        assert "there are no jobs" in run("job", "list").out
        assert time.monotonic() - began < 20, "it took its time"
        with open("tries") as file:
            assert len(file.readlines()) == 1, "it was tried again"


@apart.test
def what_may_pass_is_tried_again():
    far(f'''n=$(cat {os.path.abspath("tries")} 2>/dev/null || echo 0); echo $((n + 1)) >{os.path.abspath("tries")}
if [ $n -lt 2 ]; then echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255; fi
{REACH}''')
    done = computes("ssh:h1:2")
    contains(done.err, "h1: can't be reached: ssh: connect to host h1 port 22: Connection refused; trying again",
             "h1: reached again")
    assert done.err.count("trying again") == 1, done.err
    with open("tries") as file:
        assert file.read().strip() == "3"


@apart.test
def nobody_who_answers_ends_the_job():
    far('echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255')
    done = run("kmeans", DATA, *LEARN, "--workers", "ssh:h1,h2")
    assert done.code == 1, (done.code, done.err)
    reasons = ["h1: can't be reached", "h2: can't be reached", "No route to host"]
    contains(done.err.splitlines()[-1], *reasons, "the job is removed")
    assert "there are no jobs" in run("job", "list").out
    done = run("kmeans", DATA, *LEARN, "--workers", "ssh:h1,h2", "--store", "st")
    assert done.code == 3, (done.code, done.err)
    contains(done.err.splitlines()[-1], *reasons, "resume job ", "`shoal job resume",
             "or remove it with `shoal job remove")
    assert "removed job " in run("job", "remove", "--all-unstarted", "--store", "st").out
    done = run("kmeans", DATA, *LEARN, "--workers", "ssh:h1,h2", "--store", "st", "--detach")
    assert done.code == 1, (done.code, done.err)
    contains(done.err, "h1: can't be reached", "No route to host; and 1 more")
    assert "there are no jobs" in run("job", "list", "--store", "st").out, "it was submitted"


@apart.test
def the_rest_goes_on_without_one():
    far(f'if [ $host = h1 ]; then echo "h1: Permission denied (publickey)." >&2; exit 255; fi\n{REACH}')
    done = computes("ssh:h1,h2:2")
    contains(done.err, "h1: can't be reached", "the job continues without it")
    done = computes("ssh:h1", "--workers", "local:1")
    contains(done.err, "h1: can't be reached")


@apart.test
def a_prompt_never_hangs():
    far('printf "root@$host\'s password: " >&2; sleep 1000; exit 1')
    began = time.monotonic()
    contains(reason(), "nothing came for 30 s", "root@h1's password:")
    assert time.monotonic() - began < 60
    waits_for("the end of the command and of what it started", lambda: not processes_of("h1"), 10)


@apart.test
def an_option_that_ssh_does_not_know_is_shown():
    far('printf "unknown option -- Z\\r\\nusage: ssh [-46]\\n           destination [command]\\n" >&2; exit 255')
    contains(reason(), "ssh does not know an option (unknown option -- Z)")


@apart.test
def a_command_that_is_not_there():
    (row,) = check("h1", code=1, env={"SHOAL_SSH": "/nowhere/ssh -v"})
    contains(row["why"], "h1: can't start /nowhere/ssh")
    done = run("check", "--workers", "ssh:h1", "--ssh", "ssh 'a")
    assert done.code == 2, done.code
    contains(done.err, "a quote has no end")
    far()
    program("the ssh/of mine", f'#!/bin/sh\nexec {os.path.abspath("ssh")} "$@"\n')
    (row,) = check("h1", env={"SHOAL_SSH": f"'{os.path.abspath('the ssh/of mine')}' -v"})
    assert row["reached"], row


# ---- what else shoal check looks at ----------------------------------------------------------------------------------


def looks(*arguments, code=0, **env):
    done = run("check", "--json", *arguments, env={"PATH": os.path.abspath("fake") + ":" + os.environ["PATH"], **env})
    assert done.code == code, f"exits {done.code}, not {code}: {done.out} {done.err}"
    return json.loads(done.out)


@apart.test
def this_machine_and_stores():
    report = looks("--workers", "local:3", "--workers", "local:1", "--store", "mem:x")
    first, second = report["workers"]
    assert first["reached"] and first["workers"] == 3 and second["workers"] == 1, report
    assert first["cores"] >= 1 and first["memory"] > 1 << 20 and first["kernel"], first
    assert report["store"]["reached"] and report["store"]["round_trip_seconds"] >= 0, report
    report = looks("--store", "nowhere", code=1)
    assert not report["store"]["reached"] and "nowhere" in report["store"]["why"], report
    for wrong in ([], ["--workers", "nonsense:3"], ["--workers", "ssh:"], ["--store", "what://is/this"]):
        assert run("check", *wrong).code == 2, wrong


@apart.test
def what_sinfo_says_is_shown():
    program("fake/sinfo", """#!/bin/sh
echo "$*" >>asked
case "$*" in
*nothing*) ;;
*spot*) echo 'spot|down|0/0/4/4|8|4096' ;;
*) echo 'debug*|up|1/2/0/3|4|2048+'; echo 'long|up|0/1/0/1|2|1024' ;;
esac
""")
    debug, long = looks("--workers", "slurm:5")["workers"]
    assert debug["where"] == "slurm:debug" and debug["reached"] and debug["nodes"] == 3, debug
    assert debug["cores"] == 4 and debug["memory"] == 2048 << 20, debug
    assert long["where"] == "slurm:long" and long["nodes"] == 1, long
    (spot,) = looks("--workers", "slurm:5?partition=spot", code=1)["workers"]
    contains(spot["why"], "slurm:spot", "down")
    (nothing,) = looks("--workers", "slurm:5?partition=nothing", code=1)["workers"]
    contains(nothing["why"], "no partition")
    with open("asked") as file:
        contains(file.read().splitlines()[1], "-p spot")


# ---- jobs and their ends -------------------------------------------------------------------------------------------


@apart.test
def a_job_on_two_hosts_finds_what_threads_find():
    far()
    computes("ssh:h1:2,h2:2")
    nothing_is_left()
    assert os.path.isdir("h1/home/.cache/shoal") and os.path.isdir("h2/home/.cache/shoal")


def begins(count, hosts="h1:2"):
    """A long job whose workers are all at work; where it is and where to look at it."""
    succeeds("kmeans", DATA, *LONG, "--centres", "expected.npy")
    process = start("kmeans", DATA, *LONG, "--centres", "found.npy", "--store", SLOW, "--workers", "ssh:" + hosts,
                    "--lease", "3")
    try:
        waits_for("workers at work", lambda: process.poll() is not None or live() >= count)
    except BaseException:
        process.kill()
        raise
    assert process.poll() is None, f"ended before it began: {end(process).err}"
    return process


def live():
    if not os.path.exists("st/shoal-store"):
        return 0
    jobs = run("job", "show", "--json", "--store", "st")
    return sum(worker["alive"] for worker in json.loads(jobs.out)["worker"]) if jobs.code == 0 else 0


def ends_well(process, killed=0):
    done = end(process)
    assert done.code == 0, f"exits {done.code}: {done.err}"
    agrees()
    nothing_is_left(killed=killed)
    return done


@apart.test
def an_agent_that_is_killed_comes_back():
    far()
    process = begins(2)
    (agent,) = far_processes("agent")
    workers = far_processes("worker")
    assert len(workers) == 2, workers
    os.kill(workers[0], signal.SIGSTOP)  # one that can't notice
    os.kill(agent, signal.SIGKILL)
    waits_for("the end of its workers", lambda: not set(workers) & set(far_processes("worker")), 10)
    done = ends_well(process, killed=1)
    contains(done.err, "h1: the link broke", "trying again", "h1: reached again")
    (left,) = sockets()
    check("h1")
    assert sockets() == [left], "one as young as this may belong to an agent that is about to listen"
    os.utime(left, (time.time() - 100,) * 2)
    check("h1")
    assert sockets() == [], "what a killed agent left is removed by a later one"


@apart.test
def a_connection_that_is_killed_comes_back():
    far()
    process = begins(4, "h1:2,h2:2")
    (agent,) = far_processes("agent", "h1")
    os.kill(os.getpgid(agent), signal.SIGKILL)  # the stand-in became the agent: this is what a broken connection ends
    contains(ends_well(process, killed=1).err, "h1: the link broke", "h1: reached again")


@apart.test
def a_worker_that_is_killed_comes_back():
    far()
    process = begins(2)
    first = far_processes("worker")
    os.kill(first[0], signal.SIGKILL)
    waits_for("another worker", lambda: set(far_processes("worker")) - set(first) or process.poll() is not None)
    assert "the link broke" not in ends_well(process).err


@apart.test
def whoever_started_it_dies_and_so_does_the_rest():
    far()
    process = begins(2)
    process.kill()
    process.communicate()
    nothing_is_left()
    succeeds("job", "resume", "--store", "st", "--workers", "ssh:h1:2")
    agrees()
    nothing_is_left()


@apart.test
def a_signal_ends_everything():
    far()
    process = begins(2)
    process.send_signal(signal.SIGINT)
    done = end(process)
    assert done.code == 3, (done.code, done.err)
    contains(done.err, "resume job ")
    nothing_is_left(5)


@apart.test
def a_signal_to_the_terminal_leaves_in_order():
    far(f'trap "touch {os.path.abspath("interrupted")}" INT\nexec 3<&0\nsh -c "$command" <&3 3<&- &\nwait $!')
    succeeds("kmeans", DATA, *LONG, "--centres", "expected.npy")
    process = start("kmeans", DATA, *LONG, "--centres", "found.npy", "--store", SLOW, "--workers", "ssh:h1:2",
                    start_new_session=True)
    waits_for("workers at work", lambda: live() >= 2)
    os.killpg(process.pid, signal.SIGINT)
    done = end(process)
    assert done.code == 3, (done.code, done.err)
    nothing_is_left(5)
    assert not os.path.exists("interrupted"), "ssh was interrupted, too"
    left = json.loads(run("job", "show", "--json", "--store", "st").out)["worker"]
    assert all("left" in worker["state"] or "SIGTERM" in worker["state"] for worker in left), left


@apart.test
def more_and_fewer_workers():
    far()
    process = begins(2)
    succeeds("job", "scale", "4", "--store", "st")
    waits_for("four workers", lambda: len(far_processes("worker")) == 4 or process.poll() is not None)
    assert process.poll() is None, "the job was too short"
    succeeds("job", "scale", "1", "--store", "st")
    waits_for("one worker", lambda: len(far_processes("worker")) == 1 or process.poll() is not None)
    assert process.poll() is None, "the job was too short"
    ends_well(process)


@apart.test
def rows_are_sent_once():
    far()
    succeeds("data", "convert", "gen:uniform?rows=40000&cols=16", "rows.npy")
    succeeds("kmeans", "rows.npy", *LEARN, "--centres", "expected.npy")
    fetched = []
    for store in ("one", "two"):
        succeeds("kmeans", "rows.npy", *LEARN, "--centres", "found.npy", "--store", store, "--workers", "ssh:h1:2",
                 "--slices", "4")
        agrees()
        workers = json.loads(succeeds("job", "show", "--json", "--store", store).out)["worker"]
        fetched.append(sum(worker["fetched"] for worker in workers))
    assert fetched[0] >= 4 and fetched[1] == 0, fetched


apart.main(at_once=4)
