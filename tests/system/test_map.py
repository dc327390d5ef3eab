#!/usr/bin/python3
# Seconds: 30
# shoal map: commands for many arguments, beside GNU parallel where that is installed.
#   test_map.py PATH_TO_shoal [TEST...]
# Hosts are reached by a stand-in for ssh that runs the command here.  Prints one line for each failure and
# "N passed, M failed" at the end.
import os
import shutil
import signal
import subprocess
import sys
import time

from processes import children
from scripts import check, folder, main, make_ssh, program, skipped

place = folder / "map"
place.mkdir()
ODD = ["a/b.c", "d e.f", "x'y\"z", "new\nline", "", "-n", "--help", "*", "$HOME", "`id`", "back\\slash", "{}", "ö",
       "a.b.c", "/", "no/dot.d/x", ";&|<>()", " ", "~", "#", "end\\", "!x"]


def run(*words, stdin="", cwd=place, command=(str(program), "map")):
    return subprocess.run([*command, *map(str, words)], input=stdin, capture_output=True, text=True, timeout=120,
                          cwd=cwd, env={**os.environ, "SHELL": "/bin/sh", "PARALLEL_SHELL": "/bin/sh"})


def is_wrong(what, words, pattern, **more):
    done = run(*words, **more)
    check(what, done.returncode in (1, 2) and pattern in done.stderr and done.stdout == "",
          (done.returncode, done.stdout, done.stderr))


def test_words():
    show = "printf '<%s>' {} {.} {/} {//} {/.} {#}; echo"
    done = run("-k", show, ":::", *ODD)
    expected = []
    for number, value in enumerate(ODD, 1):
        name = value.rpartition("/")[2]
        stem = name.rpartition(".")[0] if "." in name else name
        above = value.rpartition("/")[0] if "/" in value else "."
        whole = value[:len(value) - len(name)] + stem
        expected.append("".join(f"<{part}>" for part in (value, whole, name, above or "/", stem, number)) + "\n")
    check("any argument", done.stdout == "".join(expected) and done.returncode == 0, (done.stdout, done.stderr))
    check("arguments that end with NUL", run("-0", "-k", "printf '<%s>'", stdin="a\nb\0c\0").stdout == "<a\nb><c>")
    done = run("-k", "echo", "{2}-{1}", "{3/.}", ":::", "a", "b", ":::", "1", "2", ":::+", "x/y.z", "v", "w")
    check("sources that make combinations and sources that go along", done.stdout == "1-a y\n2-a v\n1-b y\n2-b v\n",
          done.stdout + done.stderr)
    (place / "list").write_text("one\ntwo\n")
    check("a file of arguments", run("-k", "-a", "list", "echo").stdout == "one\ntwo\n"
          and run("-k", "echo", "::::", "list", ":::", "x").stdout == "one x\ntwo x\n")
    check("standard input", run("-k", "echo", "got", stdin="a b\n\nlast").stdout == "got a b\ngot \ngot last\n")
    check("no arguments", run("echo", stdin="").stdout == "" and run("echo", ":::").returncode == 0)
    check("arguments that are commands", run("-k", stdin="echo 1\necho 2 3\n").stdout == "1\n2 3\n")
    done = run("--dry-run", "-k", "echo {} {#}", ":::", "a b", "c")
    check("what would be run", done.stdout == "echo 'a b' 1\necho c 2\n", done.stdout)
    check("another shell", not shutil.which("bash") or run("--shell", "bash", "[[ {} == a* ]] && echo yes", ":::",
                                                           "ab").stdout == "yes\n")
    check("options of the command", run("-k", "printf", "%s-", "-k", "--jobs", ":::", "a").stdout == "-k---jobs-a-")
    done = run("-k", "echo", ":::", "--workers", "x", "--workers", "local:1", "--workers", "local:1")
    check("workers at the end of the line", done.stdout == "--workers\nx\n" and done.returncode == 0, done)
    is_wrong("a source that is not there", ["echo {3}", ":::", "a"], "'{3}' names a source of arguments that is not")
    is_wrong("a slot", ["echo {%}", ":::", "a"], "{%} is not known")
    is_wrong("nothing to go with", ["echo", ":::+", "a"], "nothing stands before ':::+'")
    is_wrong("a file that is not there", ["-a", "absent", "echo"], "absent: No such file")
    is_wrong("a NUL", ["echo"], "argument 1 has a NUL byte", stdin="a\0b\n")
    is_wrong("resume without a log", ["--resume", "echo", ":::", "a"], "--resume needs the --joblog")
    is_wrong("halt", ["--halt", "later", "echo", ":::", "a"], "--halt: 'later' is none of")
    is_wrong("jobs", ["-j", "few", "echo", ":::", "a"], "--jobs: 'few' is none of N, +N, -N and N%")
    is_wrong("jobs of elsewhere", ["-j50%", "--workers", "local:1", "echo", ":::", "a"], "'50%' counts the cores of")
    is_wrong("no such workers", ["--workers", "cloud:1", "echo", ":::", "a"], "'cloud:1' is not one of")


def test_jobs():
    done = run("exit {}", ":::", 0, 3, 0, 1)
    check("the exit code counts failures", done.returncode == 2, done)
    check("up to 101", run("false", stdin="\n" * 120).returncode == 101)
    done = run("-k", "echo out {}; echo err {} >&2", ":::", 1, 2)
    check("both outputs", done.stdout == "out 1\nout 2\n" and done.stderr == "err 1\nerr 2\n", done)
    done = run("-k", "sleep 0.{}; echo {}", ":::", 5, 1, 3)
    check("the order of arguments", done.stdout == "5\n1\n3\n", done.stdout)
    done = run("-j3", "-k", "n={}; echo $PWD", ":::", 1)
    check("in this folder", done.stdout == f"{place}\n", done.stdout)
    begun = time.monotonic()
    done = run("--timeout", "0.3", "sleep", ":::", 100, 0)
    check("a job that takes too long", done.returncode == 1
          and "job 1: the command took longer than 0.3 s" in done.stderr and time.monotonic() - begun < 60, done)
    (place / "tries").write_text("")
    done = run("--retries", 3, ": {}; echo x >> tries; test $(wc -l < tries) = 3", ":::", 1)
    check("a job that is tried again", done.returncode == 0 and (place / "tries").read_text() == "x\n" * 3, done)
    done = run("-j1", "--halt", "now,fail=1", "test {} != 3 || exit 7; sleep {}00", ":::", 0, 3, 5, 6)
    check("halt", done.returncode == 7, done)
    done = run("-j2", "--halt", "soon,fail=1", "-k", "echo {}; test {} != 2", ":::", *range(40))
    check("halt soon", done.returncode == 1 and "0\n1\n2\n" in done.stdout and "30" not in done.stdout, done)
    done = run("--eta", "true", ":::", 1)
    check("no progress but on a terminal", done.stderr == "", done.stderr)
    check("a large output", len(run("head -c {} /dev/zero", ":::", 3_000_000).stdout) == 3_000_000)
    done = run(": {}; kill -9 $$", ":::", 1)
    check("a signal", done.returncode == 1 and "job 1: the command was ended by signal 9" in done.stderr, done)
    with subprocess.Popen([program, "map", "echo >> started; sleep", ":::", "1000"], cwd=place,
                          stderr=subprocess.PIPE, text=True) as stopped:
        while not (place / "started").exists():
            time.sleep(0.01)
        stopped.send_signal(signal.SIGINT)
        said = stopped.communicate(timeout=60)[1]
    check("Ctrl-C", stopped.returncode == 130 and "stopped after 0 of 1 jobs" in said, (stopped.returncode, said))
    with subprocess.Popen([program, "map", "-j2", "seq 100000; :", ":::", *map(str, range(20))], cwd=place,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as unread:
        unread.stdout.readline()
        unread.stdout.close()
        said = unread.stderr.read()
    check("nobody reads", unread.returncode == -signal.SIGPIPE and said == b"", (unread.returncode, said))
    check("leaves nothing", not list((folder / "tmp").glob("shoal-map-*")) and not children(os.getpid()))


def read_log(path):
    return [line.split("\t") for line in path.read_text().splitlines()]


def test_log():
    log = place / "log"
    command = "echo {} >> ran; test {} != b"
    done = run("-j1", "--joblog", "log", command, ":::", "a", "b", "c")
    lines = read_log(log)
    check("a log", done.returncode == 1 and lines[0] == "Seq Host Starttime JobRuntime Send Receive Exitval Signal "
          "Command".split() and [(line[0], line[6], line[8]) for line in lines[1:]] == [
              (str(i + 1), str(int(x == "b")), command.replace("{}", x)) for i, x in enumerate("abc")], lines)
    done = run("-j1", "--joblog", "log", "--resume", command, ":::", "a", "b", "c", "d")
    check("what is missing is run", done.returncode == 0 and (place / "ran").read_text() == "a\nb\nc\nd\n", done)
    done = run("--joblog", "log", "--resume-failed", command, ":::", "a", "b", "c", "d")
    check("what has failed is run", done.returncode == 1 and (place / "ran").read_text() == "a\nb\nc\nd\nb\n", done)
    check("nothing is left to do", run("--joblog", "log", "--resume", command, ":::", *"abcd").returncode == 0)
    (place / "other").write_text("no log\n")
    is_wrong("a file that is no log", ["--joblog", "other", "--resume", "true", ":::", "a"],
             "other is not a log of jobs")


def test_parallel():
    """The same as GNU parallel prints and logs."""
    if not shutil.which("parallel"):
        return skipped("beside GNU parallel", "parallel is not here")
    (place / "args").write_text("".join(f"{i}/x y{i}.tar.gz\n" for i in range(30)))
    for words, stdin in ((["-k", "echo {} {.} {/} {//} {/.} {#}", ":::", *ODD[:3], *ODD[5:]], ""),
                         (["-k", "-a", "args", "printf '[%s]' {/.} {//}"], ""),
                         (["-k", "echo {1} {2} {}", ":::", "a", "b", ":::", "1", "2", ":::+", "x", "y"], ""),
                         (["-k", "echo {2}{1.}", "::::", "args", ":::", "p", "q"], ""),
                         (["-k", "echo"], "a b\n\nc\n"), (["-k"], "echo 1; false\nexit 3\n"),
                         (["-k", "echo {}; echo e{} >&2; exit {}", ":::", 0, 1, 2, 0], ""),
                         (["--dry-run", "-k", "echo {} {#}", ":::", "a", "b"], ""),
                         (["-k", "echo {/} {//} {/.}", ":::", "a/b/", "/a/", "a//b", "//", "a/b.c//"], ""),
                         (["-k", "-j50%", "expr", "1", "+", "{}", ":::", 1, 2], ""),
                         (["-kj0", "--", "echo", "-n", "{}", "--", ":::", "a", "b"], ""),
                         (["-kj+1", "grep", "-c", "x", "-a", "args", ";", ":"], "y\n"),
                         (["-k", "--retries", 2, "echo {}; false", ":::", 1], "")):
        ours, theirs = run(*words, stdin=stdin), run(*words, stdin=stdin, command=("parallel", "--will-cite"))
        check(f"as parallel {words[:3]}", (ours.stdout, ours.stderr, ours.returncode)
              == (theirs.stdout, theirs.stderr, theirs.returncode), (ours, theirs))
    logs = []
    for name, command in (("ours", (str(program), "map")), ("theirs", ("parallel", "--will-cite"))):
        run("-j1", "--joblog", name, "echo {}; exit {}", ":::", 0, 4, 1, command=command)
        logs.append([(line[0], line[1], *line[4:]) for line in read_log(place / name)])
    check("the same log", logs[0] == logs[1], logs)
    done = run("-j1", "--joblog", "theirs", "--resume", "echo {}; exit {}", ":::", 0, 4, 1, 0)
    check("a log of parallel's is resumed", done.stdout == "0\n" and done.returncode == 0, done)
    return None


def test_workers():
    data = place / "far"
    (data / "in").mkdir(parents=True)
    for i in range(6):
        (data / "in" / f"number {i}.txt").write_text(f"{i}\n")
    (data / "add.sh").write_text("echo $(($(cat \"$1\") + 10)) > \"$2\"\nls | tr '\\n' ' '\n")
    words = ["--transfer", "--send", "add.sh", "--return", "{.}.out", "-k", "sh add.sh {} {.}.out; pwd >&2", ":::",
             *sorted(str(path.relative_to(data)) for path in (data / "in").iterdir())]
    for workers in (["--workers", "local:2"], ["--workers", "ssh:corn10:1,corn11:1", "--ssh", make_ssh()], []):
        done = run(*workers, *words, cwd=data)
        made = sorted((data / "in").glob("*.out"))
        check(f"files go there and come back {workers[1:2]}", done.returncode == 0 and done.stdout == "add.sh in " * 6
              and [path.read_text() for path in made] == [f"{i + 10}\n" for i in range(6)]
              and str(data) not in done.stderr, done)
        for path in made:
            path.unlink()
    done = run("--workers", "local:2", "-k", "echo {}; pwd", ":::", 1, 2, cwd=data)
    check("workers here run jobs here", done.stdout == f"1\n{data}\n2\n{data}\n", done)
    for name, pattern in (("../x", "can't be brought to a job"), ("/etc/hosts", "can't be brought to a job"),
                          ("absent", "absent: No such file"), ("in", "in is not a plain file")):
        is_wrong(f"a file that can't be brought: {name}", ["--transfer", "cat", ":::", name], pattern, cwd=data)
    done = run("--return", "made", "true", ":::", 1, cwd=data)
    check("a file that was not made is left out", done.returncode == 0 and not (data / "made").exists(), done)
    is_wrong("a store that is not there", ["--store", "/proc/none", "echo", ":::", "a"], "/proc/none")


main(dict(globals()))
