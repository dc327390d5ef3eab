#!/usr/bin/env python3
"""Completion in real shells: a person types into an interactive bash, zsh or fish and presses Tab.

    test_completion.py PATH_TO_shoal [SHELL...]

Each shell runs in a terminal of its own with the script that `shoal completion SHELL` prints.  The test waits for what
it shows, never for a time.  A shell that is not installed is named and left out.
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

import nobody  # so that no run is in the history of whoever runs this  # noqa: F401

SHOAL = os.path.abspath(sys.argv[1])
SECONDS = 120  # until something that never comes is a failure
START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
# Prompts are a mark that nothing else prints, so that it is seen when a shell is ready.
PREPARE = {
    "bash": "PS1='READY''> '; bind 'set completion-query-items 0' 'set page-completions off'; . ./script\n",
    "zsh": "PS1='READY''> '; autoload -Uz compinit && compinit -u -d ./dump; . ./script\n",
    "fish": "function fish_prompt; echo -n READY'> '; end; source ./script\n",
}


class Shell:
    def __init__(self, name):
        with open("script", "w") as file:
            subprocess.run([SHOAL, "completion", name], stdout=file, check=True)
        self.shown = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            environment = {"PATH": os.path.dirname(SHOAL) + ":" + os.environ["PATH"], "HOME": os.getcwd(),
                           "TERM": "dumb" if name != "fish" else "xterm", "LC_ALL": "C.UTF-8", "COLUMNS": "200"}
            os.execvpe(START[name][0], START[name], environment)
        self.type(PREPARE[name])
        self.waits_for("READY> ")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def waits_for(self, *texts):
        """Reads until all texts are shown, in any order, and forgets what was shown up to there."""
        deadline = time.monotonic() + SECONDS
        while not all(text in self.shown for text in texts):
            assert time.monotonic() < deadline, f"{texts} are not in {self.shown!r}"
            if select.select([self.terminal], [], [], 1)[0]:
                new = os.read(self.terminal, 65536).decode(errors="replace")
                self.answer_queries(new)
                self.shown += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()=>][B0]?|\r|\x07", "", new)
        self.shown = self.shown[max(self.shown.index(text) + len(text) for text in texts):]

    def answer_queries(self, new):
        """What a terminal says when it is asked who it is; without it a newer fish would wait."""
        for _ in re.findall(r"\x1b\[0?c", new):
            self.type("\x1b[?62c")

    def completes(self, typed, shown):
        """Types and presses Tab: the rest of what is meant appears."""
        self.type(typed + "\t")
        self.waits_for(shown)
        self.type("\x15\n")  # throw the line away
        self.waits_for("READY> ")

    def offers(self, typed, *shown):
        """Types and presses Tab until there is a list."""
        self.type(typed + "\t\t")
        self.waits_for(*shown)
        self.type("\x15\n")  # throw the line away
        self.waits_for("READY> ")

    def close(self):
        self.type("\x15exit\n")
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


def try_shell(name):
    open("measurements.npy", "w").close()
    os.makedirs("st/jobs", exist_ok=True)
    shell = Shell(name)
    shell.completes("shoal kme", "ans")
    shell.completes("shoal data conv", "ert")
    shell.completes("shoal kmeans --cent", "res")
    shell.completes("shoal kmeans x.npy --empty far", "thest")
    shell.completes("shoal kmeans x.npy --empty=far", "thest")
    shell.completes("shoal kmeans meas", "urements.npy")
    shell.completes("shoal kmeans x.npy --labels=meas", "urements.npy")
    shell.completes("shoal kmeans --workers local:4 --emp", "ty")
    shell.completes("shoal help environ", "ment")
    shell.offers("shoal store ", "copy", "get")
    shell.offers("shoal kmeans x.npy --empty ", "farthest", "keep", "split")
    if name != "bash":  # these show what an option is for
        shell.offers("shoal kmeans --t", "--tolerance", "number of threads")
    shell.close()


def candidates(*words):
    done = subprocess.run([SHOAL, "completion", "candidates", "--", *words], capture_output=True, text=True, check=True)
    assert done.stderr == "", done.stderr
    kind, *lines = done.stdout.splitlines()
    return kind, [line.split("\t")[0] for line in lines]


def what_may_follow_comes_from_the_tables():
    commands = candidates("")[1]
    assert len(commands) == len(set(commands)) and {"kmeans", "predict", "data", "completion"} <= set(commands)
    assert candidates("data", "") == (":words", ["info", "head", "convert", "split", "shuffle", "patches",
                                                     "pack", "verify", "speed"])
    assert "--tolerance" in candidates("kmeans", "--")[1] and "--l2" not in candidates("kmeans", "--")[1]
    assert candidates("kmeans", "-k", "") == (":words", [])  # a number: nothing to offer
    assert candidates("kmeans", "-k", "3", "") == candidates("kmeans", "-qk3", "") == (":files", [])
    assert candidates("kmeans", "x.npy", "") == (":words", [])  # one DATA is enough
    assert candidates("kmeans", "--kernel", "") == (":words", ["auto", "portable", "avx2", "avx512", "vnni"])
    assert candidates("kmeans", "--max-iter", "") == (":words", [])  # an alias awaits its value too
    assert candidates("kmeans", "--labels", "") == candidates("kmeans", "--labels=x") == (":files", [])
    assert candidates("kmeans", "--", "--l") == (":files", [])
    assert candidates("store", "put", "a", "b", "c", "") == (":files", [])
    assert candidates("help", "data", "")[1] == candidates("data", "")[1]
    topics = candidates("help", "")[1]
    assert "exit-codes" in topics and len(topics) == len(set(topics))
    assert candidates("completion", "")[1] == ["bash", "zsh", "fish"]
    assert candidates("bogus", "x", "")[1] == candidates("bogus", "")[1] == []
    assert candidates("kmeans", "--bogus", "") == (":files", [])


def names_of_jobs_are_offered():
    store = os.path.join(os.getcwd(), "jobs store")
    done = subprocess.run([SHOAL, "kmeans", "gen:blobs?rows=50&cols=2", "-k", "2", "--store", store, "--detach"],
                          capture_output=True, text=True, check=True)
    name = done.stdout.strip().splitlines()[0].split()[-1]
    assert candidates("job", "show", "--store", store, "") == (":words", [name])
    assert candidates("job", "show", "--store", "az://nowhere/jobs", "") == (":words", [])  # nobody waits for a network


def refuses_other_shells():
    done = subprocess.run([SHOAL, "completion", "tcsh"], capture_output=True, text=True)
    assert done.returncode == 2 and "'tcsh' is not one of bash, zsh, fish" in done.stderr, done.stderr


def main():
    os.chdir(tempfile.mkdtemp(prefix="shoal-completion-"))
    try:
        what_may_follow_comes_from_the_tables()
        names_of_jobs_are_offered()
        refuses_other_shells()
        for name in sys.argv[2:] or START:
            if shutil.which(name):
                try_shell(name)
                print(f"ok: {name}")
            else:
                print(f"SKIPPED {name}: it is not installed")
    finally:
        shutil.rmtree(os.getcwd(), ignore_errors=True)


main()
