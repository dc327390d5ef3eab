#!/usr/bin/python3
"""Small wrongs that the tests must notice: each mutant of mutants.txt is built and tested, one at a time.

    ./dev test --mutants [--list] [NAME]...

A mutant is killed when one of its tests fails or does not end, and survives when all of them pass: then a test is
missing.  One whose lines are not in its file any more is an error: mutants.txt is kept up with the code, and
./dev lint says so at once.  NAME keeps the mutants whose names have it in them.

The work is done on a copy of the tree below build/mutants, which stays, so that the next run compiles little.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / "tests" / "mutants" / "mutants.txt"
COPY = ROOT / "build" / "mutants"
BUILD = COPY / "build"
SECONDS = 240  # that a test may take before the mutant counts as killed by it


class Mutant:
    """One change: the lines `before` of a file become `after`.  `tests` are names that ctest knows, or their starts."""

    def __init__(self, name):
        self.name, self.file, self.tests, self.before, self.after = name, "", [], [], []

    def apply(self, text):
        """The file's text with the change; a sentence when it can't be made."""
        old, new = ("".join(line + "\n" for line in lines) for lines in (self.before, self.after))
        found = ("\n" + text).count("\n" + old)
        if found != 1:
            where = "is not there" if found == 0 else f"is there {found} times"
            return None, f"{self.file}: what it changes {where}: {self.before[0].strip()}"
        at = ("\n" + text).index("\n" + old)
        return text[:at] + new + text[at + len(old):], None


def read_mutants(path):
    """Blocks of lines: mutant NAME, file PATH, tests NAME..., then lines with - and with + as in a patch."""
    mutants = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        word, _, rest = line.partition(" ")
        if word == "mutant":
            mutants.append(Mutant(rest.strip()))
        elif line[:1] in "-+" and line:
            (mutants[-1].before if line[0] == "-" else mutants[-1].after).append(line[1:])
        elif word == "file":
            mutants[-1].file = rest.strip()
        elif word == "tests":
            mutants[-1].tests = rest.split()
        elif line and not line.startswith("#"):
            sys.exit(f"{path.name}:{number}: neither a comment nor a part of a mutant: {line}")
    for mutant in mutants:
        if not (mutant.file and mutant.tests and mutant.before):
            sys.exit(f"{path.name}: mutant {mutant.name} needs a file, tests, and a line to change")
    if len({mutant.name for mutant in mutants}) < len(mutants):
        sys.exit(f"{path.name}: two mutants have one name")
    return mutants


def check(mutants):
    """Whether all of them apply, in words for those that do not."""
    wrong = 0
    for mutant in mutants:
        path = ROOT / mutant.file
        why = mutant.apply(path.read_text())[1] if path.is_file() else f"{mutant.file} is not there"
        if why:
            print(f"mutant {mutant.name} does not apply: {why}")
            wrong += 1
    return wrong


# ---- the copy --------------------------------------------------------------------------------------------------------


def make_copy():
    """All that git knows or would know, as it is now.  What has not changed keeps its time: ninja need not look."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, check=True, text=True).stdout
    names = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        source, copy = ROOT / name, COPY / name
        if copy.is_file() and copy.read_bytes() == source.read_bytes():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)  # the time is now's
    for folder, folders, files in os.walk(COPY):
        if folder == str(COPY):
            folders.remove("build") if "build" in folders else None
        for name in files:
            path = pathlib.Path(folder, name)
            if str(path.relative_to(COPY)) not in names and "__pycache__" not in path.parts:
                path.unlink()
    BUILD.mkdir(parents=True, exist_ok=True)
    peers = BUILD / "peers"
    if not peers.exists() and (ROOT / "build" / "peers").exists():
        peers.symlink_to(ROOT / "build" / "peers")


def configure():
    words = ["cmake", "--preset", "release", "-DCMAKE_COMPILE_WARNING_AS_ERROR=OFF"]
    if shutil.which("ccache"):
        words.append("-DCMAKE_C_COMPILER_LAUNCHER=ccache")
    subprocess.run(words, cwd=COPY, check=True, stdout=subprocess.DEVNULL)


# ---- tests -----------------------------------------------------------------------------------------------------------


def pattern(names):
    """A test by its name; one that ends with '*' stands for all that start so."""
    return "^(" + "|".join(re.escape(name[:-1]) + ".*" if name.endswith("*") else re.escape(name)
                           for name in names) + ")$"


def target_of(test):
    """What makes a test's program; None for one that runs the program itself.  Parts have a number behind their
    name."""
    kind, name = test.split("/")
    for stem in (name, re.sub(r"_\d+$", "", name)):
        if (COPY / "tests" / kind / f"test_{stem}.c").is_file():
            return f"{kind}_test_{stem}"
    return None


def find_targets(names):
    """What has to be built for these tests."""
    shown = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1", "-R", pattern(names)], check=True,
                           capture_output=True, text=True)
    found = [test["name"] for test in json.loads(shown.stdout)["tests"]]
    for name in names:
        if not any(re.match(pattern([name]), each) for each in found):
            sys.exit(f"mutants.txt: there is no test {name}")
    return sorted({target_of(test) or "shoal" for test in found})


def build(names):
    done = subprocess.run(["cmake", "--build", BUILD, "--target", *find_targets(names)], capture_output=True, text=True)
    return None if done.returncode == 0 else done.stdout[-3000:]


def run_tests(names):
    """The first test that fails; None when all pass."""
    done = subprocess.run(["ctest", "--test-dir", BUILD, "--stop-on-failure", "--timeout", str(SECONDS), "-R",
                           pattern(names)], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    failed = re.search(r"Test +#\d+: (\S+) \.+ *\*\*\*(\w+)", done.stdout)
    return f"{failed[1]} ({failed[2].lower()})" if failed else "ctest itself: " + done.stdout[-300:]


def try_mutant(mutant):
    """killed, SURVIVED, or why neither can be said; and by what."""
    path = COPY / mutant.file
    before = path.read_text()
    after, _ = mutant.apply(before)
    try:
        path.write_text(after)
        said = build(mutant.tests)
        if said:
            return "BROKEN", "it does not compile:\n" + said
        by = run_tests(mutant.tests)
        return ("killed", by) if by else ("SURVIVED", "all of " + " ".join(mutant.tests))
    finally:
        path.write_text(before)


def main():
    words = sys.argv[1:]
    options = {word for word in words if word.startswith("-")}
    if options - {"--list", "--check"}:
        sys.exit(__doc__)
    names = [word for word in words if word not in options]
    mutants = [mutant for mutant in read_mutants(LIST) if not names or any(name in mutant.name for name in names)]
    if not mutants:
        sys.exit(f"no mutant has {' or '.join(names)} in its name")
    if "--list" in options:
        return print("\n".join(f"{mutant.name:40} {mutant.file}" for mutant in mutants))
    wrong = check(mutants)
    if "--check" in options or wrong:
        sys.exit(1 if wrong else 0)
    make_copy()
    configure()
    every = sorted({name for mutant in mutants for name in mutant.tests})
    said = build(every)
    if said:
        sys.exit(f"the tree does not build as it is:\n{said}")
    by = run_tests(every)
    if by:
        sys.exit(f"a test fails without any mutant: {by}")
    counts = {"killed": 0, "SURVIVED": 0, "BROKEN": 0}
    for mutant in mutants:
        began = time.monotonic()
        end, what = try_mutant(mutant)
        counts[end] += 1
        print(f"{end:9} {mutant.name:40} {time.monotonic() - began:6.1f} s  {what}", flush=True)
    print(f"{counts['killed']} killed, {counts['SURVIVED']} survived, {counts['BROKEN']} broken")
    sys.exit(0 if counts["killed"] == len(mutants) else 1)


if __name__ == "__main__":
    main()
