#!/usr/bin/env python3
# Labels: quick
"""The help text and the manual page of every verb say the same, and the manual renders without a warning.

    test_help.py PATH_TO_shoal
"""
import re
import shutil
import subprocess
import sys

import nobody  # so that no run is in the history of whoever runs this

SHOAL = sys.argv[1]
failures = []
passed = 0


def check(truth, what):
    global passed
    if truth:
        passed += 1
    else:
        failures.append(what)
        print("FAILED:", what)


def shoal(*arguments):
    done = subprocess.run([SHOAL, *arguments], capture_output=True, text=True, timeout=300)
    check(done.returncode == 0 and done.stderr == "", f"shoal {' '.join(arguments)} exits 0 without a word on stderr")
    return done.stdout


def squeeze(text):
    return " ".join(text.split())


def options_of_help(text):
    """{"-k, --clusters K": "number of clusters"} from the text of -h, which wraps at any space."""
    found, heading, name = {}, None, None
    for line in text.splitlines():
        if re.match(r"^\S.*:$", line):
            heading, name = line, None
        elif heading == "Examples:" or heading is None:
            continue
        elif re.match(r"^  (-\w, |    )--", line):
            parts = re.split(r"  +", line.strip(), maxsplit=1)
            name = parts[0]
            found[name] = parts[1] if len(parts) > 1 else ""
        elif line.strip() and name:
            found[name] += " " + line.strip()
        elif not line.strip():
            name = None
    return {name: squeeze(text) for name, text in found.items()}


def plain(roff):
    roff = re.sub(r"\\f[BIR]", "", roff)
    for escape, text in (("\\-", "-"), ("\\(aq", "'"), ("\\(ga", "`"), ("\\(ti", "~"), ("\\(ha", "^"), ("\\&", "")):
        roff = roff.replace(escape, text)
    return roff.replace("\\e", "\\")


def options_of_manual(roff):
    section = roff.split(".SH OPTIONS\n", 1)[1].split("\n.SH ", 1)[0]
    found = {}
    for entry in section.split(".TP\n")[1:]:
        name, text = entry.split("\n", 1)
        text = re.sub(r"^\.SS .*\n?", "", text, flags=re.M)
        found[plain(name)] = squeeze(plain(text)).removesuffix(".")
    return found


def sections(roff):
    return re.findall(r"^\.SH (.*)$", roff, flags=re.M)


def renders(roff, page):
    if not shutil.which("groff"):
        print("SKIPPED: groff is not here")
        return
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-rLL=80n", "-P-cbou"], input=roff, capture_output=True,
                          text=True)
    check(done.returncode == 0 and done.stderr == "", f"{page} renders without warnings: {done.stderr.strip()}")
    check("NAME" in done.stdout and "SYNOPSIS" in done.stdout, f"{page} shows its sections")


overview = shoal("-h")
commands, topics = overview.split("\nTopics:\n")
listed = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  +\S", commands, flags=re.M)
topics = re.findall(r"^  ([a-z-]+)  +\S", topics, flags=re.M)
pages = shoal("man", "--list").split()
check(sorted(pages) == sorted(name.replace(" ", "-") for name in listed), "man --list has the commands of -h")
check({"kmeans", "predict", "data-info", "data-head", "data-convert", "help", "man"} <= set(pages),
      "every verb is listed")
check(shoal("help") == overview and shoal("--help") == overview, "help, -h and --help are the same")
check(re.fullmatch(r"shoal \d+\.\d+\.\d+\n", shoal("--version")), "--version prints one line")

program = shoal("man")
check(shoal("man", "shoal") == program, "man shoal is the overview")
check(sections(program) == ["NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS"]
      + [topic.upper() for topic in topics if topic not in ("exit-codes", "environment")]
      + ["EXIT STATUS", "ENVIRONMENT", "SEE ALSO"], "shoal(1) has its sections")
for name in listed:
    check(f"\\fBshoal {name}\\fR" in program, f"shoal(1) names {name}")
renders(program, "shoal(1)")
for family in {name.split()[0] for name in listed if " " in name}:
    check(all(name in shoal("help", family) for name in listed if name.startswith(family + " ")),
          f"help {family} lists")
    check(shoal(family, "-h") == shoal("help", family), f"{family} -h is help {family}")

check({"data", "targets", "outputs", "workers", "stores", "exit-codes", "environment"} <= set(topics), "the topics")
options = {name: set(re.findall(r"--[a-z0-9-]+", shoal(*name.split(), "-h"))) for name in listed}
known = set().union(*options.values())
for topic in topics:
    text = shoal("help", topic)
    check(f"{topic}: " in text and len(text.split(f"{topic}: ", 1)[1].splitlines()) <= 40, f"help {topic} is short")
    check(all(len(line) <= 80 for line in text.splitlines()), f"help {topic} has a line over 80")
    used = set(re.findall(r"--[a-z][a-z0-9-]*", text)) if topic != "aliases" else set()
    check(used <= known, f"help {topic} names options that exist, not {used - known}")
check(shoal("help", "exit", "codes") == shoal("help", "exit-codes"), "a topic may be two words")
wrong = subprocess.run([SHOAL, "help", "wrokers"], capture_output=True, text=True)
check(wrong.returncode == 2 and "unknown command or topic 'wrokers'; did you mean 'workers'?" in wrong.stderr,
      f"help of an unknown topic names a near one, not {wrong.stderr}")

for name in listed:
    words = name.split()
    text, roff = shoal(*words, "-h"), shoal("man", *words)
    check(shoal("help", *words) == text and shoal(*words, "--help") == text, f"help {name} is {name} -h")
    check(shoal("man", name.replace(" ", "-")) == roff, f"man takes {name} with a dash")
    in_help, in_manual = options_of_help(text), options_of_manual(roff)
    check(len(in_help) >= 1 and any("--help" in option for option in in_help), f"{name} -h lists its options")
    check(set(in_help) == set(in_manual), f"{name}: options of -h and man differ: {set(in_help) ^ set(in_manual)}")
    for option in set(in_help) & set(in_manual):
        check(in_help[option] == in_manual[option],
              f"{name} {option}: '{in_help[option]}' is not '{in_manual[option]}'")
        check(in_help[option] and not in_help[option].endswith("."),
              f"{name} {option} has a sentence without a full stop")
    names = [re.sub(r"^-\w, ", "", option).split()[0] for option in in_help]
    check(len(names) == len(set(names)), f"{name}: an option is there twice")
    letters = [option[1] for option in in_help if not option.startswith("--")]
    check(len(letters) == len(set(letters)), f"{name}: a letter is there twice")
    check(f"usage: shoal {name} " in text, f"{name} -h has a usage line")
    check(sections(roff) == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "ENVIRONMENT",
                             "SEE ALSO"], f"{name}(1) has its sections")
    examples = text.split("\nExamples:\n")[1].split("\n\n")[0]
    check(f"  shoal {name} " in examples, f"{name} has an example")
    commands = re.findall(r"^  shoal .*$", examples, flags=re.M)
    for command in commands:
        if not command.startswith(f"  shoal {name} "):
            continue  # what another verb does with the outcome: its options are looked at with that verb
        used = re.findall(r" (--[a-z0-9-]+)", command)
        verb = next(verb for verb in (" ".join(command.split()[1:3]), command.split()[1]) if verb in options)
        check(set(used) <= options[verb], f"the example '{command.strip()}' uses options that exist")
        check(command.strip() in plain(roff), f"the manual has the example '{command.strip()}'")
    for line in text.splitlines():
        check(len(line) <= 80 or line.startswith("  shoal") or "|" in line, f"{name} -h has a line over 80: {line}")
    renders(roff, name)

print(f"{passed} passed, {len(failures)} failed")
sys.exit(bool(failures))
