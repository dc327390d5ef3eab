#!/usr/bin/env python3
# Labels: asan
# Seconds: 60
"""shoal store ls, get, put, cat, rm, du, copy and bench over dir: stores, as a user meets them.

    test_store_cli.py PATH_TO_shoal [NAME...]

Every test runs in an empty folder of its own, which also has the journals.  Runs that are killed are killed at random
moments:
whenever that is, nothing half-written has a final name, and the same command given again finishes.
"""
import json
import os
import pty
import random
import resource
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback

import nobody  # so that no run is in the history of whoever runs this
from processes import is_sanitized

SHOAL = os.path.abspath(sys.argv[1])
SECONDS = 600  # until something that never comes is a failure
TESTS = []
SLOW = "?faults=delay:1/30ms"  # every request takes 30 ms longer
SANITIZED = is_sanitized(SHOAL)
PIECE = 16 << 20  # larger blobs move in pieces of so many bytes


def test(function):
    TESTS.append(function)
    return function


class Done:
    def __init__(self, process, out, err):
        self.code, self.out, self.err = process.returncode, out, err


def start(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options["env"] = {**os.environ, "XDG_STATE_HOME": os.path.abspath("state"), **options.get("env", {})}
    return subprocess.Popen([SHOAL, "store", *arguments], stderr=subprocess.PIPE, **options)


def run(*arguments, input=None, **options):
    if input is not None:
        options["stdin"] = subprocess.PIPE
    process = start(*arguments, **options)
    out, err = process.communicate(input, timeout=SECONDS)
    return Done(process, out, err.decode(errors="replace"))


def succeeds(*arguments, **options):
    done = run(*arguments, **options)
    assert done.code == 0, f"shoal store {arguments} exits {done.code}: {done.err}"
    assert done.err == "", f"shoal store {arguments} says on stderr: {done.err}"
    return done.out.decode() if done.out is not None else ""


def report(*arguments, **options):
    return json.loads(succeeds(*arguments, "--json", **options))


def fails(code, says, *arguments, lines=1, **options):
    """The exit code, one line on stderr with every text of `says`, a hint after wrong usage."""
    done = run(*arguments, **options)
    told = f"shoal store {arguments} exits {done.code} and says {done.err!r}"
    said = done.err.splitlines()
    assert done.code == code, f"{told}; expected {code}"
    assert len(said) == (lines + 1 if code == 2 else lines), f"{told}; expected {lines} line(s)"
    assert all(line.startswith("shoal: ") for line in said[:lines]), told
    assert code != 2 or said[-1].startswith("try 'shoal store "), told
    for text in [says] if isinstance(says, str) else says:
        assert text in done.err, f"{told}; expected {text!r}"
    assert all(0x20 <= ord(c) != 0x7F for line in said for c in line), told
    return done


def write(path, content):
    if os.path.dirname(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def read(path):
    with open(path, "rb") as file:
        return file.read()


def tree(folder):
    """{relative path: bytes} of all files below a folder."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            found[os.path.relpath(path, folder)] = read(path)
    return found


def content(url):
    """{key: bytes} of a store, by ls and cat."""
    sizes = {}
    for line in succeeds("ls", "-rl", url).splitlines():
        size, _, name = line.split(maxsplit=2)
        sizes[name] = int(size)
    body = run("cat", *(f"{url}/{name}" for name in sizes)).out if sizes else b""
    found, at = {}, 0
    for name, size in sizes.items():
        found[name] = body[at:at + size]
        at += size
    assert at == len(body), f"cat gives {len(body)} bytes, ls {at}"
    return found


def some_files(folder="src", count=30, seed=1):
    chance = random.Random(seed)
    for i in range(count):
        write(f"{folder}/{'abc'[i % 3]}/{i:03}", chance.randbytes(chance.choice([0, 1, 100, 5000, 70000])))
    write(f"{folder}/top", "top")
    return tree(folder)


# ---- what the verbs do ----------------------------------------------------------------------------------------------

@test
def files_come_back_as_they_were():
    files = some_files()
    assert succeeds("put", "-r", "src", "st").startswith("put 31 files, ")
    assert succeeds("ls", "-r", "st").splitlines() == sorted(files)
    assert content("st") == files
    assert succeeds("get", "-r", "st", "out").startswith("got 31 files, ")
    assert tree("out") == files
    assert succeeds("copy", "-r", "st", "other").startswith("copied 31 files, ")
    assert content("other") == files
    succeeds("copy", "-r", "--verify", "st/a", "other/deep/er", "--quiet")
    assert content("other/deep/er") == {name[2:]: bytes for name, bytes in files.items() if name.startswith("a/")}
    succeeds("get", "-r", "--verify", "other/deep", "deep", "--quiet")
    assert tree("deep/er") == tree("src/a")


@test
def ls_shows_a_level_or_all():
    for name in ("a", "a-b", "a/x", "a/y/z", "b/1", "a0"):
        write("src/" + name.replace("a/", "A/"), name)
        succeeds("put", "src/" + name.replace("a/", "A/"), "st/" if name == "a" else "st/" + name)
    assert succeeds("ls", "st").splitlines() == ["a", "a-b", "a/", "a0", "b/"]
    assert succeeds("ls", "st/a/").splitlines() == ["x", "y/"]
    assert succeeds("ls", "st/a").splitlines() == ["a", "x", "y/"], "the key and what is below it"
    assert succeeds("ls", "st/a/x").splitlines() == ["x"]
    assert succeeds("ls", "-r", "st").splitlines() == ["a", "a-b", "a/x", "a/y/z", "a0", "b/1"]
    assert succeeds("ls", "-r", "st/a/").splitlines() == ["x", "y/z"]
    detailed = [line.split() for line in succeeds("ls", "-l", "st").splitlines()]
    assert [line[0] for line in detailed] == ["1", "3", "-", "2", "-"] and all(len(line) in (2, 3) for line in detailed)
    lines = [json.loads(line) for line in succeeds("ls", "--json", "st").splitlines()]
    assert [line.get("key") or line["prefix"] for line in lines] == ["a", "a-b", "a/", "a0", "b/"]
    assert lines[0]["size"] == 1 and lines[0]["etag"]
    os.mkdir("empty")
    succeeds("put", "-r", "empty", "none")
    assert succeeds("ls", "none") == "" and succeeds("ls", "-r", "none/") == ""


@test
def du_sums_by_first_segment():
    files = some_files()
    succeeds("put", "-r", "src", "st", "--quiet")
    lines = [json.loads(line) for line in succeeds("du", "--json", "st").splitlines()]
    assert [line.get("name") for line in lines] == ["a/", "b/", "c/", "top", None]
    for line in lines[:3]:
        below = [bytes for name, bytes in files.items() if name.startswith(line["name"])]
        assert (line["keys"], line["bytes"]) == (len(below), sum(map(len, below))), line
    assert lines[-1] == {"total": True, "keys": 31, "bytes": sum(map(len, files.values()))}
    both = [json.loads(line) for line in succeeds("du", "--json", "st/a", "st/top").splitlines()]
    assert both[-1]["keys"] == 11 and both[-2] == {"name": "top", "keys": 1, "bytes": 3}
    assert succeeds("du", "st").splitlines()[-1].split()[-2:] == ["31", "total"]


@test
def targets_are_a_name_or_a_place():
    write("one", "1")
    write("two", "2")
    write("sub/three", "3")
    succeeds("put", "one", "st/")
    succeeds("put", "one", "st/renamed")
    succeeds("put", "one", "two", "sub/three", "st/many")
    succeeds("put", "-r", "sub", "st/as")
    succeeds("put", "-r", "sub", "st/below/")
    succeeds("put", "-r", "sub", "one", "st/both")
    keys = [
        "as/three", "below/sub/three", "both/one", "both/sub/three", "many/one", "many/three", "many/two", "one",
        "renamed"
    ]
    assert succeeds("ls", "-r", "st").splitlines() == keys
    succeeds("get", "st/one", "file")
    succeeds("get", "st/one", "folder/")
    succeeds("get", "st/many/two", "st/one", "folder")
    succeeds("get", "-r", "st/both", "as")
    succeeds("get", "-r", "st/both", "below/")
    succeeds("get", "-r", "st/both", "st/many", "two-of-them")
    assert read("file") == b"1" and tree("folder") == {"one": b"1", "two": b"2"}
    assert sorted(tree("as")) == ["one", "sub/three"] and sorted(tree("below")) == ["both/one", "both/sub/three"]
    assert sorted(tree("two-of-them")) == ["both/one", "both/sub/three", "many/one", "many/three", "many/two"]
    succeeds("copy", "st/one", "st/copy")
    succeeds("copy", "st/one", "st/in/")
    succeeds("copy", "st/many/two", "st")
    assert content("st")["copy"] == b"1" and content("st")["in/one"] == b"1" and content("st")["two"] == b"2"
    os.makedirs("sub/state/shoal")
    os.chdir("sub")
    succeeds("put", "-r", "../sub/.", "../st/dot/", env={"XDG_STATE_HOME": "/dev/null/nowhere"})
    os.chdir("..")
    assert succeeds("ls", "-r", "st/dot").splitlines() == ["three"], "'.' has no name to go below"


@test
def streams_are_ends_too():
    body = os.urandom(3 * PIECE + 17)
    succeeds("put", "-r", "--quiet", os.path.dirname(os.path.abspath(__file__)) + "/../lint", "st")
    for size in (0, 1, 70000, len(body)):
        succeeds("put", "-", "st/in", input=body[:size])
        assert run("cat", "st/in").out == body[:size]
        assert run("get", "st/in", "-").out == body[:size]
    write("x", "x")
    succeeds("put", "x", "st/x")
    assert run("cat", "st/x", "st/in", "st/x").out == b"x" + body + b"x"
    succeeds("get", "st/in", "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with open("redirected", "wb") as out:
        succeeds("get", "st/x", "/dev/stdout", stdout=out)
    assert read("redirected") == b"x"
    with open("/dev/full", "wb") as full:
        fails(1, "No space left", "cat", "st/in", stdout=full)


@test
def rm_removes_what_it_is_told():
    files = some_files()
    succeeds("put", "-r", "src", "st", "--quiet")
    assert succeeds("rm", "st/top") == "removed 1 key, 3 bytes\n"
    fails(1, ["st/top", "no such key"], "rm", "st/top")
    fails(1, ["st/a", "-r"], "rm", "st/a")
    fails(2, ["st", "whole store"], "rm", "st")
    fails(2, ["st", "--all"], "rm", "-r", "st")
    size = sum(len(bytes) for name, bytes in files.items() if name.startswith("a/"))
    out = report("rm", "-r", "st/a")
    assert (out["keys"], out["bytes"]) == (10, size) and out["requests"]["remove"] == 10
    assert not [name for name in content("st") if name.startswith("a/")]
    fails(1, ["st/a", "nothing below"], "rm", "-r", "st/a")
    assert succeeds("rm", "st/b/001", "st/c/002").startswith("removed 2 keys")
    assert succeeds("rm", "-r", "--all", "st").startswith("removed 18 keys")
    assert succeeds("ls", "st") == ""
    assert report("rm", "-r", "--all", "st")["keys"] == 0


@test
def a_prefix_of_many_pages_is_gone_through():
    count = 2500
    for i in range(count):
        write(f"src/{i:05}", str(i))
    succeeds("put", "src/00000", "st/", "--quiet")
    assert report("put", "-r", "src", "st/many")["files"] == count
    assert succeeds("ls", "st/many").splitlines() == [f"{i:05}" for i in range(count)]
    assert report("copy", "-r", "st/many", "st/again")["files"] == count
    assert report("copy", "-r", "st/many", "st/again")["skipped"] == count
    assert report("rm", "-r", "st/many")["keys"] == count
    assert report("get", "-r", "st/again", "out")["files"] == count
    assert tree("out") == tree("src")


# ---- going on -------------------------------------------------------------------------------------------------------

@test
def what_is_done_is_not_done_again():
    files = some_files()
    for arguments in (["put", "-r", "src", "st"], ["get", "-r", "st", "out"], ["copy", "-r", "st", "other"]):
        first, again = report(*arguments), report(*arguments)
        assert (first["files"], first["skipped"], first["failed"]) == (31, 0, 0), first
        assert first["bytes"] == sum(map(len, files.values()))
        assert (again["files"], again["skipped"]) == (0, 31), again
        assert again["requests"]["get"] == again["requests"]["put"] == 0, f"the journal knows: {again}"
        shutil.rmtree("state")
        compared = report(*arguments)
        assert (compared["files"], compared["skipped"]) == (0, 31), f"without a journal bytes are compared: {compared}"
        assert compared["requests"]["put"] == 0 and compared["requests"]["get"] > 0


@test
def what_has_changed_is_copied_again():
    some_files()
    for arguments, source in ((["put", "-r", "src", "st"], "src/top"), (["get", "-r", "st", "out"], None)):
        report(*arguments)
        if source:
            write(source, "new")  # as long as before
        else:
            succeeds("put", "-", "st/top", input=b"pot")
        out = report(*arguments)
        assert (out["files"], out["skipped"]) == (1, 30), out
    assert read("out/top") == b"pot"
    write("out/top", "bad")  # the target has changed, with a journal that knows the old one
    write("out/a/000", b"longer than it was")
    out = report("get", "-r", "st", "out")
    assert (out["files"], out["skipped"]) == (2, 29) and read("out/top") == b"pot", out
    shutil.rmtree("state")
    write("out/top", "bad")
    assert report("get", "-r", "st", "out")["files"] == 1 and read("out/top") == b"pot"
    succeeds("rm", "st/top")
    succeeds("put", "-r", "src", "st", "--quiet")
    assert content("st") == tree("src"), "a key that was removed is put again, whatever the journal says"


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


@test
def what_looks_the_same_but_is_not_is_copied():
    write("x", "one")
    os.utime("x", (10**9, 10**9))
    succeeds("put", "x", "st/")
    with open("x", "r+b") as file:
        file.write(b"two")
    os.utime("x", (10**9, 10**9))
    assert report("put", "x", "st/")["files"] == 1 and content("st") == {"x": b"two"}, "the same size, time and file"
    zeros, other = bytes(5), (0x82F63B78 << 1 | 1).to_bytes(5, "little")  # they differ by the polynomial
    assert crc32c(zeros) == crc32c(other) and crc32c(b"123456789") == 0xE3069283
    write("y", zeros)
    succeeds("put", "y", "st/")
    write("y", other)
    assert report("put", "y", "st/")["files"] == 1 and content("st")["y"] == other, "the same checksum"


@test
def journals_may_be_damaged():
    some_files()
    report("put", "-r", "src", "st")
    [name] = os.listdir("state/shoal")
    journal = read("state/shoal/" + name)
    assert len(journal) == 16 * 32
    for damaged in (b"", b"x", b"something else, quite as long as a journal", journal[:-5], journal[:16],
                    journal[:40] + bytes(len(journal) - 40)):
        write("state/shoal/" + name, damaged)
        out = report("put", "-r", "src", "st")
        assert (out["files"], out["skipped"]) == (0, 31), out
        assert len(read("state/shoal/" + name)) == 16 * 32, "it is whole again"
    write("state/shoal/" + name, journal + os.urandom(16000))
    report("put", "-r", "src", "st")
    assert sorted(read("state/shoal/" + name)) == sorted(journal), "what nobody asks for is dropped"
    os.remove("state/shoal/" + name)
    os.mkdir("state/shoal/" + name)
    assert report("put", "-r", "src", "st")["skipped"] == 31, "none can be written"


def kill_at_random(arguments, check, chance):
    """Kills runs of a command at random moments, later and later ones, until one finishes; calls check after each."""
    killed, most = 0, 0.2
    for _ in range(50):
        most *= 1.2
        process = start(*arguments, "--jobs", "3")
        try:
            process.communicate(timeout=chance.uniform(0.005, most))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        if process.returncode == 0:
            return killed
        assert process.returncode == -signal.SIGKILL, (arguments, process.returncode)
        killed += 1
        check()
    raise AssertionError(f"{arguments} never finishes")


@test
def killed_runs_leave_nothing_half_written():
    files = some_files(count=60)
    write("src/large", os.urandom(PIECE + 100000))
    files = tree("src")
    here = os.getcwd()
    chance = random.Random(7)

    def no_half_keys(url):
        def check():
            if os.path.exists("st/shoal-store"):
                sizes = {line.split()[2]: int(line.split()[0]) for line in succeeds("ls", "-rl", url).splitlines()} \
                    if run("ls", url).code == 0 else {}
                assert all(len(files[name]) == size for name, size in sizes.items()), sizes
        return check

    def no_half_files():
        for name, bytes in tree("out").items():
            assert ".shoal-part-" in name or files[name] == bytes, name

    succeeds("put", "src/top", "st/")
    killed = kill_at_random(["put", "-r", "src", f"dir:{here}/st/x{SLOW}"], no_half_keys("st/x"), chance)
    assert content("st/x") == files
    killed += kill_at_random(["get", "-r", f"dir:{here}/st/x{SLOW}", "out"], no_half_files, chance)
    assert tree("out") == files, "nothing else is left either"
    killed += kill_at_random(["copy", "-r", f"dir:{here}/st/x{SLOW}", "st/y"], no_half_keys("st/y"), chance)
    assert content("st/y") == files
    assert killed >= 3, f"only {killed} runs were killed before they were done"


@test
def a_large_file_goes_on_from_where_it_was():
    body = os.urandom(6 * PIECE + 12345)
    write("large", body)
    succeeds("put", "large", "st/", "--quiet")
    here = os.getcwd()
    slow = ["get", f"dir:{here}/st/large?faults=delay:1/300ms", "out", "--jobs", "1"]
    before = journal_bytes()
    process = start(*slow)
    until = time.monotonic() + SECONDS
    while journal_bytes() < before + 16 * 3 and time.monotonic() < until:
        time.sleep(0.01)  # until two pieces are in its journal
    process.kill()
    process.communicate()
    assert not os.path.exists("out")
    [part] = [name for name in os.listdir(".") if name.startswith(".shoal-part-")]
    out = report(*slow[:1], slow[1], "out", "--jobs", "1")
    assert out["resumed_bytes"] >= 2 * PIECE and out["resumed_bytes"] < len(body), out
    assert out["requests"]["get"] == 7 - out["resumed_bytes"] // PIECE, out
    assert read("out") == body and not os.path.exists(part)
    os.remove("out")
    write(part, bytes(5 * PIECE))  # what a machine that lost power may leave
    out = report("get", slow[1], "out")
    assert out["resumed_bytes"] == 0 and read("out") == body
    process = start(*slow)  # the source changes meanwhile: what there is of the old one is of no use
    os.remove("out")
    while not os.path.exists(part):
        time.sleep(0.01)
    other = os.urandom(len(body))
    write("large", other)
    succeeds("put", "large", "st/", "--quiet")
    process.communicate(timeout=SECONDS)
    if process.returncode != 0:
        succeeds("get", "st/large", "out", "--quiet")
    assert read("out") in (body, other)
    succeeds("get", "st/large", "out", "--quiet")
    assert read("out") == other


def journal_bytes():
    return sum(os.path.getsize(f"state/shoal/{name}") for name in os.listdir("state/shoal"))


@test
def a_signal_stops_and_the_next_run_goes_on():
    files = some_files(count=60)
    here = os.getcwd()
    succeeds("put", "src/top", "st/", "--quiet")
    for arguments, done in ((["put", "-r", "src", f"dir:{here}/st/x{SLOW}"], lambda: content("st/x") == files),
                            (["get", "-r", f"dir:{here}/st/x{SLOW}", "out"], lambda: tree("out") == files)):
        for number in (signal.SIGINT, signal.SIGTERM):
            before = journal_bytes()
            process = start(*arguments, "--jobs", "2")
            until = time.monotonic() + SECONDS
            while journal_bytes() < before + 64 and process.poll() is None and time.monotonic() < until:
                time.sleep(0.005)
            process.send_signal(number)
            _, err = process.communicate(timeout=SECONDS)
            assert process.returncode == 130 and b"run the same command again" in err, (process.returncode, err)
            assert not [name for name in (tree("out") if os.path.isdir("out") else {}) if name not in files]
        again = report(*arguments)
        assert again["skipped"] > 0 and again["failed"] == 0 and done(), again
    for source, threads in ((f"dir:{here}/st/x/top?faults=delay:1/3600s", 2), (f"dir:{here}/st/x?faults=delay:1/3600s",
                                                                               2)):
        hangs = start("get", "-r", source, "hung", "--jobs", "1")  # in the very first request, which asks for names
        until = time.monotonic() + SECONDS
        while len(os.listdir(f"/proc/{hangs.pid}/task")) < 1 + threads and time.monotonic() < until:
            time.sleep(0.005)
        hangs.send_signal(signal.SIGINT)
        _, err = hangs.communicate(timeout=SECONDS)
        assert hangs.returncode == 130 and b"run the same command again" in err, (hangs.returncode, err)


@test
def two_at_once_do_not_disturb_each_other():
    files = some_files(count=90)
    succeeds("put", "src/top", "st/", "--quiet")
    processes = [start("put", "-r", "src", "st/x", "--quiet") for _ in range(4)]
    processes += [start("put", "-r", "src", f"st/{i}", "--quiet") for i in range(3)]
    for process in processes:
        _, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, err
    for name in ("x", "0", "1", "2"):
        assert content("st/" + name) == files
    processes = [start("get", "-r", "st/x", "out", "--quiet") for _ in range(3)]
    results = [(process.communicate(timeout=SECONDS), process.returncode) for process in processes]
    for (_, err), code in results:
        assert code == 0, err
    report("get", "-r", "st/x", "out")
    assert tree("out") == files


# ---- names ----------------------------------------------------------------------------------------------------------

@test
def awkward_names_are_kept():
    names = [
        "ä ö", "日本語/名前", "a%20b", "what?", "#1", "a&b=c", "back\\slash", "'quote\"", "-dash", "~", ".hidden", "..x",
        "x" * 200, "emoji 🐟", "a:b", "sp ace/ lead", "trail /x", "*", "[a]", "+", ";", ".shoal-part-x", "a/.shoal/x"
    ]
    for name in names:
        write("src/" + name, name)
    succeeds("put", "-r", "src", "st")
    assert sorted(succeeds("ls", "-r", "st").splitlines()) == sorted(names)
    succeeds("get", "-r", "st", "out")
    succeeds("copy", "-r", "st", "st2")
    succeeds("get", "-r", "st2", "out2")
    assert tree("out") == tree("out2") == tree("src")
    assert run("cat", "st/what?").out == b"what?", "a bare path is no URL: nothing in it is special"
    assert run("cat", f"dir:{os.getcwd()}/st/what%3f").out == b"what?"
    assert {json.loads(line)["key"] for line in succeeds("ls", "-r", "--json", "st").splitlines()} == set(names)
    assert {line["name"] for line in map(json.loads, succeeds("du", "--json", "st").splitlines()) if "name" in line} \
        == {name.split("/")[0] + "/" * ("/" in name) for name in names}


@test
def names_that_can_not_be_keys_are_told():
    bad = [b"new\nline", b"tab\t", b"\xff\xfe", b"dot.", b"sub./x", b"\x7f", b"\xc2\x85", b"/".join([b"y" * 200] * 3)]
    for name in bad:
        path = b"src/" + name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(name)
    write("src/good", "good")
    write("src/.shoal/own", "own")
    done = fails(1, ["and 4 more", "9 of 10 could not be copied"], "put", "-r", "src", "st", lines=7)
    assert b"put 1 file" in done.out and content("st") == {"good": b"good"}
    again = run("put", "-r", "src", "st", "--json")
    out = json.loads(again.out)
    assert again.code == 1 and (out["files"], out["skipped"], out["failed"], len(out["errors"])) == (0, 1, 9, 5), out
    os.mkdir("one")
    write("one/x.", "x")
    write("one/y", "y")
    fails(1, ["one/x.", "ends with a dot", "the other 1 are done"], "put", "-r", "one", "st/one")
    fails(1, ["one/x.", "ends with a dot"], "put", "one/x.", "st/one/")
    for bad in ("st/a\x01b", "st/dot./x", "st/dot.", f"dir:{os.getcwd()}/st/a%0ab", b"st/\xff"):
        fails(2, "the key", "put", "one/y", bad)
        fails(2, "the key", "copy", "st/good", bad)
    fails(2, ".shoal", "ls", "st/.shoal/x")


@test
def keys_that_can_not_be_files_are_told():
    write("x", "x")
    write("y", "y")
    succeeds("put", "x", "st/")
    for key in ("a", "a-b", "a/b", "a/c", "d/e", "d/e/f/g"):
        succeeds("put", "x" if len(key) == 1 else "y", "st/" + key)
    done = fails(1, ["out/a/b", "out/a,", "3 of 7", "out/d/e/f/g"], "get", "-r", "st", "out", lines=4)
    assert b"got 4 files" in done.out
    assert tree("out") == {"a": b"x", "a-b": b"y", "d/e": b"y", "x": b"x"}
    fails(1, ["out/a", "folder"], "get", "st/x", "out/a/")
    os.remove("out/a")
    write("out/a/b", "mine")
    fails(1, ["out/a"], "get", "st/a", "out/a/b/c/")
    assert read("out/a/b") == b"mine"
    fails(1, ["out2/b", "out2,"], "get", "-r", "st/a", "out2", lines=3)
    assert read("out2") == b"x", "the key itself"
    out = report("copy", "-r", "st", "other")
    assert out["files"] == 7 and content("other") == content("st"), "stores have no such trouble"


@test
def links_and_special_files_are_told():
    write("src/file", "file")
    write("elsewhere/x", "x")
    os.symlink("file", "src/link")
    os.symlink("../elsewhere", "src/folder")
    os.symlink("nowhere", "src/dangling")
    os.mkfifo("src/pipe")
    done = fails(1, ["src/folder", "link to a folder", "src/dangling", "src/pipe", "3 of 5"], "put", "-r", "src", "st",
                 lines=4)
    assert b"put 2 files" in done.out and content("st") == {"file": b"file", "link": b"file"}
    fails(2, "neither a file nor a folder", "put", "src/pipe", "st/")
    succeeds("put", "-r", "src/folder", "st/given")
    assert content("st/given") == {"x": b"x"}, "a link that was named is followed"
    write("real", "old")
    os.chmod("real", 0o640)
    os.symlink("real", "target")
    succeeds("get", "st/file", "target")
    assert os.path.islink("target") and read("real") == b"file" and stat.S_IMODE(os.stat("real").st_mode) == 0o640


# ---- wrong input ----------------------------------------------------------------------------------------------------

@test
def wrong_input_is_one_clear_sentence():
    write("x", "x")
    write("src/x", "x")
    succeeds("put", "x", "st/")
    succeeds("put", "x", "st/sub/x")
    os.mkdir("plain")
    for verb, more in (("ls", []), ("cat", []), ("rm", []), ("du", []), ("bench", []), ("get", ["y"]), ("copy",
                                                                                                        ["st/y"])):
        fails(2, ["foo://x", "unknown kind of store", "'foo'"], verb, "foo://x", *more)
        fails(2, ["must not contain a secret", "sig="], verb, "az://acct/box/x?sig=abc", *more)
        fails(1, ["no store at", "nowhere"], verb, "nowhere/x", *more)
    secret = fails(2, "must not contain", "ls", "az://user:hunter2@acct/box")
    assert "hunter2" not in secret.err
    fails(1, ["plain", "no store"], "ls", "plain")
    fails(2, "unknown option 'bogus'", "ls", f"dir:{os.getcwd()}/st?bogus=1")
    fails(1, ["nofile", "No such file"], "put", "nofile", "st/")
    fails(1, ["nofile", "No such file"], "put", "x", "nofile", "st/")
    fails(2, ["src", "is a folder", "-r"], "put", "src", "st/")
    fails(1, ["new/y", "no store here or in a folder above", "'new/y/'"], "put", "x", "new/y")
    assert not os.path.exists("new")
    fails(2, ["plain", "is a folder", "plain/"], "get", "st/x", "plain")
    fails(1, ["st/nope", "no such key"], "get", "st/nope", "y")
    fails(1, ["st/nope", "no such key"], "get", "-r", "st/nope", "y")
    fails(1, ["st/sub", "-r"], "get", "st/sub", "y")
    fails(2, ["st", "whole store", "-r"], "get", "st", "y")
    fails(2, ["st", "names a store"], "cat", "st")
    fails(1, ["st/nope"], "cat", "st/nope")
    fails(1, ["st/sub"], "cat", "st/sub")
    fails(1, ["st/nope", "nothing below"], "ls", "st/nope")
    fails(1, ["st/nope", "nothing below"], "du", "st/nope")
    fails(2, ["st/x and ./st/x", "the same"], "copy", "st/x", "./st/x")
    fails(2, ["the same"], "copy", "-r", "st", f"dir:{os.getcwd()}/st")
    fails(2, ["below", "into itself"], "copy", "-r", "st", "st/copy")
    fails(2, ["below", "into itself"], "copy", "-r", "st/sub", "st/sub/copy")
    fails(2, ["into itself"], "put", "-r", ".", "st/here")
    fails(2, ["standard input", "full key, not a prefix"], "put", "-", "st/")
    fails(2, ["-r", "'-'"], "get", "-r", "st", "-")
    fails(2, "TARGET is empty", "get", "st/x", "")
    fails(2, "URL of a store is empty", "ls", "")
    fails(2, "store ls needs URL", "ls")
    fails(2, "store put needs FILE", "put")
    fails(2, "store put needs URL", "put", "x")
    fails(2, "store get needs TARGET", "get", "st/x")
    fails(2, "unexpected argument", "ls", "st", "st")
    fails(2, "unexpected argument", "copy", "st", "st2", "st3")
    fails(2, "--jobs must be at least 1", "put", "x", "st/", "--jobs", "0")
    fails(2, ["--recursve", "--recursive"], "put", "x", "st/", "--recursve")
    assert not os.path.exists("y") and sorted(content("st")) == ["sub/x", "x"]


@test
def parts_are_no_files():
    """What a get has left unfinished is not put, and no key is fetched to where another file is being written."""
    write("src/.shoal-part-0123456789abcdef", "half")
    write("src/x", "x")
    fails(1, ["src/.shoal-part-0123456789abcdef", "is incomplete", "the other 1"], "put", "-r", "src", "st")
    assert content("st") == {"x": b"x"}
    succeeds("put", "src/x", "st/sub/.shoal-part-0123456789abcdef")
    fails(1, [".shoal-part-0123456789abcdef", "can't be a file", "the other 1"], "get", "-r", "st", "out")
    assert tree("out") == {"x": b"x"}
    succeeds("put", "src/x", "st/sub/.shoal/y")
    fails(1, ["the other 1"], "get", "-r", "st/sub", "sub")
    assert tree("sub") == {".shoal/y": b"x"}, "below a name .shoal is a name like others"


@test
def nothing_is_fetched_into_a_store():
    write("x", "x")
    succeeds("put", "x", "st/")
    succeeds("put", "x", "st/index.db")
    before = sorted(os.listdir("st"))
    os.symlink("st/bodies", "link")
    for target in ("st/", "st/y", "st/index.db", "st/new/folder/y", "st/../st/y", "link/y",
                   os.path.abspath("st/temp/y")):
        fails(2, [target, "folder of a store"], "get", "st/x", target)
    fails(2, ["st", "folder of a store"], "get", "-r", "st", "st")
    assert sorted(os.listdir("st")) == before and content("st") == {"x": b"x", "index.db": b"x"}


@test
def a_copy_upwards_replaces_nothing_that_is_to_be_copied():
    for key in ("a/b/b/x", "a/b/x", "c/d/x", "c/d/d-e"):
        write("src/" + key, key)
    succeeds("put", "-r", "src", "st")
    before = content("st")
    fails(2, ["st/a/b", "another 'b'"], "copy", "-r", "st/a/b", "st/a")
    assert content("st") == before
    succeeds("copy", "-r", "st/c/d", "st/c")
    succeeds("copy", "-r", "st/a/b", "st")
    assert content("st") == {**before, "c/x": b"c/d/x", "c/d-e": b"c/d/d-e", "x": b"a/b/x", "b/x": b"a/b/b/x"}


@test
def sources_of_one_name_are_refused():
    for name in ("a/same", "b/same", "b/other"):
        write(name, name)
    fails(2, ["a/same", "b/same", "the same name"], "put", "a/same", "b/other", "b/same", "st/")
    assert not os.path.exists("st"), "nothing was begun"
    succeeds("put", "-r", "a", "b", "st/")
    fails(2, ["st/a/same", "st/b/same", "the same name"], "get", "st/a/same", "st/b/same", "out/")
    assert not os.path.exists("out")
    succeeds("get", "st/a/same", "st/b/other", "out/")
    assert tree("out") == {"same": b"a/same", "other": b"b/other"}


@test
def a_file_that_changes_before_its_turn_is_told():
    for name, size in (("small", 1000), ("large", PIECE + 1)):
        some_files(name, count=20)
        write(f"{name}/z", bytes(size))
        process = start("put", "-r", "-j", "1", name, f"dir:{os.getcwd()}/st-{name}?faults=delay:1/100ms", "--json")
        end = time.monotonic() + SECONDS
        while len(run("ls", "-r", "st-" + name).out.splitlines()) < 3:  # by then all files have been found
            assert time.monotonic() < end and process.poll() is None
        os.truncate(f"{name}/z", 1)
        out, err = process.communicate(timeout=SECONDS)
        told = [f"{name}/z: changed while being read; put it again"]
        assert process.returncode == 1 and json.loads(out)["errors"] == told, (out, err)
        assert name == "large" or "z" not in content("st-" + name), "what can be read at once is not put then"
        succeeds("put", "-r", name, "st-" + name)
        assert content("st-" + name) == tree(name)


@test
def a_closed_output_is_told():
    write("x", "x")
    succeeds("put", "x", "st/")
    for arguments in (["cat", "st/x"], ["get", "st/x", "-"], ["ls", "st"]):
        fails(1, ["standard output", "can't write"], *arguments, preexec_fn=lambda: os.close(1))


@test
def what_stays_out_of_reach_is_given_up():
    """Not every one of many files is tried for as long as a request may be."""
    some_files(count=300)
    succeeds("put", "src/top", "st/", "--quiet")
    for seed in range(200):  # until the one request for a page of names comes through
        url = f"dir:{os.getcwd()}/st/{seed}?faults=seed:{seed},before:0.98/unreachable"
        done = run("put", "-r", "src", url, "--deadline", "0.1", "--json")
        out = json.loads(done.out)
        if out["failed"]:
            break
    assert done.code == 1 and done.err.endswith(
        "because nothing gets through; run the same command again to continue\n"), done.err
    assert 3 <= out["failed"] <= 200 and len(out["errors"]) == min(out["failed"], 5), out
    again = report("put", "-r", "src", f"st/{seed}")
    assert again["files"] + again["skipped"] == 301 and again["files"] >= 100, again


@test
def if_absent_never_replaces():
    write("x", "old")
    succeeds("put", "x", "st/", "--if-absent")
    assert report("put", "x", "st/", "--if-absent")["skipped"] == 1, "the same content is what was wanted"
    write("x", "new")
    fails(1, ["x", "already exists"], "put", "x", "st/", "--if-absent")
    write("longer", "longer")
    fails(1, ["x", "already exists"], "put", "longer", "st/x", "--if-absent")
    succeeds("put", "longer", "st/y")
    fails(1, ["x", "already exists"], "copy", "st/y", "st/x", "--if-absent")
    assert content("st") == {"x": b"old", "y": b"longer"}
    processes = []
    for i in range(8):
        write(f"racer{i}", f"racer {i}")
        processes.append(start("put", f"racer{i}", "st/race", "--if-absent"))
    results = [(process.communicate(timeout=SECONDS), process.returncode)[1] for process in processes]
    assert sorted(results) == [0] + [1] * 7, results
    assert content("st")["race"] == f"racer {results.index(0)}".encode()


@test
def what_may_not_be_written_is_told():
    write("x", "x")
    succeeds("put", "x", "st/")
    os.mkdir("locked", 0o555)
    for where, _, names in [(".", [], [])] + list(os.walk("st")):
        os.chmod(where, 0o777)
        for name in names:
            os.chmod(os.path.join(where, name), 0o666)
    os.chmod("locked", 0o555)
    user = {} if os.getuid() else {"preexec_fn": lambda: os.setuid(65534)}
    fails(1, ["locked/x", "ermission denied"], "get", "st/x", "locked/", **user)
    fails(1, ["locked", "ermission denied"], "put", "x", "locked/", **user)
    assert os.listdir("locked") == []
    write("secret", "s")
    os.chmod("secret", 0)
    fails(1, ["secret", "ermission denied"], "put", "secret", "st/", **user)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

    write("src/large", bytes(300000))
    succeeds("put", "src/large", "st/", "--quiet")
    write("large", "old")
    fails(1, ["large", "too large"], "get", "st/large", "large", preexec_fn=limit)
    assert read("large") == b"old" and not [name for name in os.listdir(".") if name.startswith(".shoal-part")]


@test
def troubles_that_pass_are_waited_for():
    files = some_files()
    here = os.getcwd()
    succeeds("put", "src/top", "st/", "--quiet")
    faults = "?faults=seed:3,before:0.2/cut,after:0.1/timeout,throttle:0.1"
    succeeds("put", "-r", "src", f"dir:{here}/st/x{faults}", "--verify", "--quiet")
    succeeds("get", "-r", f"dir:{here}/st/x{faults}", "out", "--verify", "--quiet")
    succeeds("copy", "-r", f"dir:{here}/st/x{faults}", f"dir:{here}/st/y{faults}", "--quiet", "--if-absent")
    assert tree("out") == files and content("st/x") == content("st/y") == files
    began = time.monotonic()
    fails(1, ["gave up"], "get", f"dir:{here}/st/x/top?faults=before:1/unreachable", "y", "--deadline", "0.5")
    assert time.monotonic() - began < 30


@test
def verify_finds_a_flipped_bit():
    """On a disk that does not keep what it is given, which a library in front of the system's plays."""
    if SANITIZED or not shutil.which("cc"):
        return
    write("flip.c", """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <string.h>
        #include <unistd.h>
        ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at)
        {
            ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
            char copy[64];
            if (size == 0 || size > sizeof copy)
                return real(file, bytes, size, at);
            memcpy(copy, bytes, size);
            copy[size / 2] ^= 4;
            return real(file, copy, size, at);
        }
        ssize_t pwrite(int file, const void *bytes, size_t size, off_t at) { return pwrite64(file, bytes, size, at); }
        """)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "flip.so", "flip.c", "-ldl"], check=True)
    write("x", "what is kept")
    succeeds("put", "x", "st/")
    flips = {"LD_PRELOAD": os.path.abspath("flip.so")}
    succeeds("get", "st/x", "unnoticed", env=flips)
    assert read("unnoticed") != read("x"), "the bit is flipped"
    fails(1, ["noticed", "differs from what was written"], "get", "st/x", "noticed", "--verify", env=flips)


# ---- memory, secrets, printing --------------------------------------------------------------------------------------

@test
def a_large_file_takes_little_memory():
    size = 200 << 20
    with open("large", "wb") as file:
        for _ in range(size >> 20):
            file.write(os.urandom(1 << 20))
    limits = {}
    if not SANITIZED:  # whose shadow is memory too
        limits["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_DATA, (100 << 20, 100 << 20))
    succeeds("put", "large", "st/", "--jobs", "2", "--verify", "--quiet", **limits)
    succeeds("copy", "st/large", "st/copy", "--jobs", "2", "--quiet", **limits)
    succeeds("get", "st/copy", "back", "--jobs", "2", "--verify", "--quiet", **limits)
    assert subprocess.run(["cmp", "large", "back"]).returncode == 0
    with open("piped", "wb") as out:
        succeeds("cat", "st/copy", stdout=out, **limits)
    assert subprocess.run(["cmp", "large", "piped"]).returncode == 0
    with open("large", "rb") as file:
        succeeds("put", "-", "st/stdin", "--quiet", stdin=file, **limits)
    assert json.loads(succeeds("ls", "--json", "st/stdin"))["size"] == size


def dies_with_a_core(**environment):
    """Whether a program that holds these variables leaves a core when it is killed."""
    def allow():
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    process = start("get", f"dir:{os.getcwd()}/st/x?faults=delay:1/60s", "y", env=environment, preexec_fn=allow)
    until = time.monotonic() + SECONDS
    while len(os.listdir(f"/proc/{process.pid}/task")) < 2 and time.monotonic() < until:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGQUIT)
    _, status = os.waitpid(process.pid, 0)
    process.returncode = -signal.SIGQUIT
    process.stdout.close()
    process.stderr.close()
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGQUIT, status
    return os.WCOREDUMP(status)


@test
def secrets_are_in_no_core_dump():
    write("x", "x")
    succeeds("put", "x", "st/")
    with open("/proc/sys/kernel/core_pattern") as file:
        if file.read().startswith("|") or resource.getrlimit(resource.RLIMIT_CORE)[1] == 0 or SANITIZED:
            return
    if not dies_with_a_core():
        return  # this machine writes none
    for name in ("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "IDENTITY_HEADER",
                 "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN"):
        assert not dies_with_a_core(**{name: "secret"}), name


def on_terminal(*arguments):
    """What a terminal shows that is standard error."""
    master, slave = pty.openpty()
    process = subprocess.Popen([SHOAL, "store", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=slave, env={**os.environ, "XDG_STATE_HOME": os.path.abspath("state")})
    os.close(slave)
    seen, until = b"", time.monotonic() + SECONDS
    while time.monotonic() < until:
        ready, _, _ = select.select([master], [], [], 1)
        try:
            more = os.read(master, 65536) if ready else b""
        except OSError:
            break
        if not more and process.poll() is not None:
            break
        seen += more
    os.close(master)
    out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, (process.returncode, seen)
    return seen.decode(), out.decode()


@test
def progress_is_shown_on_a_terminal_and_cleared():
    some_files(count=60)
    here = os.getcwd()
    succeeds("put", "src/top", "st/", "--quiet")
    command = ["put", "-r", "src", f"dir:{here}/st/x{SLOW}", "--jobs", "1"]
    seen, out = on_terminal(*command)
    lines = seen.split("\r\x1b[K")
    assert lines[0] == "" and lines[-1] == "", seen
    assert any(" of 61 files, " in line and "/s" in line and " left" in line for line in lines), seen
    assert all(len(line) < 100 and "\n" not in line for line in lines), seen
    assert out.startswith("put 61 files, ")
    succeeds("rm", "-r", "st/x")
    seen, out = on_terminal(*command, "--quiet")
    assert (seen, out) == ("", "")


@test
def summaries_say_what_was_asked():
    some_files()
    out = report("put", "-r", "src", "st")
    assert set(out) == {"files", "bytes", "skipped", "resumed_bytes", "failed", "seconds", "requests", "sent",
                        "received", "price", "errors"}
    assert set(out["requests"]) == {"get", "put", "list", "remove", "queue", "other"} and out["requests"]["put"] == 31
    assert out["requests"]["get"] == 0, "a put is one put"
    assert out["price"] == 0 and out["errors"] == []
    assert succeeds("put", "-r", "src", "st", "--quiet") == ""
    assert succeeds("put", "-r", "src", "st") == "put 0 files; 31 there already\n"


# ---- bench ----------------------------------------------------------------------------------------------------------

@test
def bench_measures_and_leaves_nothing():
    write("x", "x")
    succeeds("put", "x", "st/")
    for seconds in (1, 3, 9, 27, 60):  # on a busy machine a figure may have had no time
        out = json.loads(succeeds("bench", "st/below", "--seconds", str(seconds), "--size", "64KiB", "--json"))
        figures = [out[what]["median_ms"] for what in ("get", "put", "take", "seen")]
        figures += [level[what] for level in out["bandwidth"] for what in ("read_mb_s", "write_mb_s")]
        if None not in figures:
            break
    for what in ("get", "put", "take", "seen"):
        assert 0 < out[what]["median_ms"] <= out[what]["p99_ms"] and out[what]["samples"] > 0, out
    assert [level["connections"] for level in out["bandwidth"]] == [1, 2, 4, 8, 16]
    assert all(level["read_mb_s"] > 0 and level["write_mb_s"] > 0 for level in out["bandwidth"]), out
    assert out["scheme"] == "dir" and out["wakes"] is True and out["size"] == 65536 and out["requests"]["queue"] > 0
    assert succeeds("ls", "-r", "st").splitlines() == ["x"]
    began = time.monotonic()
    table = succeeds("bench", "st", "--seconds", "1", "--size", "1kB")
    assert time.monotonic() - began < 30
    assert [line.split()[0] for line in table.splitlines() if line] == \
        ["latency", "get", "put", "take", "seen", "connections", "1", "2", "4", "8", "16"], table
    assert succeeds("ls", "-r", "st").splitlines() == ["x"]
    fails(1, "no store at", "bench", "none")
    succeeds("bench", "none", "--create", "--seconds", "1")


@test
def bench_cleans_up_after_a_signal_and_a_failure():
    write("x", "x")
    succeeds("put", "x", "st/")
    process = start("bench", "st", "--seconds", "60")
    until = time.monotonic() + SECONDS
    while len(succeeds("ls", "-r", "st").splitlines()) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, (process.returncode, err)
    assert succeeds("ls", "-r", "st").splitlines() == ["x"]
    done = run("bench", f"dir:{os.getcwd()}/st?faults=seed:1,before:0.5/cut", "--seconds", "2", "--deadline", "0.3")
    assert done.code in (0, 1), done.err
    assert succeeds("ls", "-r", "st").splitlines() == ["x"], done.err


# ---------------------------------------------------------------------------------------------------------------------

def main():
    wanted, failed = sys.argv[2:], 0
    chosen = [function for function in TESTS if not wanted or function.__name__ in wanted]
    home = os.getcwd()
    for function in chosen:
        folder = tempfile.mkdtemp(prefix="shoal-store-")
        os.chdir(folder)
        os.makedirs("state/shoal")
        began = time.monotonic()
        try:
            function()
        except Exception:
            failed += 1
            print(f"FAILED: {function.__name__}")
            traceback.print_exc(file=sys.stdout)
        finally:
            os.chdir(home)
            shutil.rmtree(folder, ignore_errors=True)
        print(f"{function.__name__}: {time.monotonic() - began:.1f} s")
    print(f"{len(chosen) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
