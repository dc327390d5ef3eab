#!/usr/bin/env python3
# Labels: quick
"""--tensorboard: events as TensorBoard reads them, with the numbers of --trace, while a run goes on and after it was
killed.

    test_tensorboard.py PATH_TO_shoal [NAME...]

Files are read by Google's protocol buffers, from descriptions made here of the fields that TensorBoard's event.proto
and summary.proto have, and by a reader of frames of our own; where build/peers has the npm package tfrecord, by that
one too.
"""
import glob
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import time

import apart
from forge import crc32c

sys.dont_write_bytecode = True
try:
    import numpy
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:
    print("python3-numpy or python3-protobuf is not here: skipped")
    sys.exit(77)

SHOAL = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 600  # until something that never comes is a failure
LONG = [
    "kmeans", "gen:uniform?rows=200000&cols=8&seed=1", "-k", 100, "--iterations", 100000, "--tolerance", 0, "--quiet"
]


def shoal(*arguments, code=0):
    done = subprocess.run([SHOAL, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=SECONDS)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done


def waits_for(what, condition):
    deadline = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} never came"
        time.sleep(0.01)
    return found


# ---- readers ---------------------------------------------------------------------------------------------------------


def masked_crc(data):
    crc = crc32c(bytes(data))
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path, cut=False):
    """The records of a file; with `cut` its last one may be half there."""
    data = pathlib.Path(path).read_bytes()
    found, at = [], 0
    while at < len(data):
        head = data[at:at + 12]
        length = struct.unpack("<Q", head[:8])[0] if len(head) == 12 else 0
        if len(head) < 12 or len(data) < at + 16 + length:
            assert cut, f"{path} ends within a record"
            break
        body, check = data[at + 12:at + 12 + length], data[at + 12 + length:at + 16 + length]
        assert struct.unpack("<I",
                             head[8:])[0] == masked_crc(head[:8]), f"{path}: the length at {at} has another checksum"
        assert struct.unpack("<I", check)[0] == masked_crc(body), f"{path}: the record at {at} has another checksum"
        found.append(body)
        at += 16 + length
    return found


def event_class():
    """The class of an Event, with the fields that TensorBoard's own description gives these numbers."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="test", syntax="proto3")
    value = descriptor_pb2.DescriptorProto(name="Value")
    value.field.add(name="tag", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    value.field.add(name="simple_value", number=2, type=field.TYPE_FLOAT, label=field.LABEL_OPTIONAL, oneof_index=0)
    value.oneof_decl.add(name="value")
    summary = file.message_type.add(name="Summary")
    summary.nested_type.append(value)
    summary.field.add(name="value", number=1, type=field.TYPE_MESSAGE, label=field.LABEL_REPEATED,
                      type_name=".test.Summary.Value")
    event = file.message_type.add(name="Event")
    event.field.add(name="wall_time", number=1, type=field.TYPE_DOUBLE, label=field.LABEL_OPTIONAL)
    event.field.add(name="step", number=2, type=field.TYPE_INT64, label=field.LABEL_OPTIONAL)
    event.field.add(name="file_version", number=3, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL, oneof_index=0)
    event.field.add(name="summary", number=5, type=field.TYPE_MESSAGE, label=field.LABEL_OPTIONAL, oneof_index=0,
                    type_name=".test.Summary")
    event.oneof_decl.add(name="what")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    description = pool.FindMessageTypeByName("test.Event")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(description)
    return message_factory.MessageFactory(pool).GetPrototype(description)


Event = event_class()


def events(path, cut=False):
    """What a file says: [(step, wall time, {tag: value})], once its first event is the version."""
    parsed = []
    for record in records(path, cut):
        event = Event()
        assert event.ParseFromString(record) == len(record)
        assert not len(event.UnknownFields()) if hasattr(event, "UnknownFields") else True, "a field that is no event's"
        assert event.SerializeToString(deterministic=True) is not None
        parsed.append(event)
    assert parsed and parsed[0].file_version == "brain.Event:2" and parsed[0].WhichOneof("what") == "file_version", path
    assert all(event.WhichOneof("what") == "summary" for event in parsed[1:])
    times = [event.wall_time for event in parsed]
    assert times == sorted(times) and abs(times[-1] - os.stat(path).st_mtime) < 5, times
    return [(event.step, event.wall_time, {value.tag: value.simple_value for value in event.summary.value})
            for event in parsed[1:]]


def event_files(folder):
    found = sorted(glob.glob(f"{folder}/*"))
    assert all(os.path.basename(path).startswith("events.out.tfevents.") for path in found), found
    return found


def only_events(folder, cut=False):
    found = event_files(folder)
    assert len(found) == 1, found
    return events(found[0], cut)


def trace_of(path):
    with open(path, encoding="ascii") as file:
        return [json.loads(line) for line in file]


def float32(value):
    return float(numpy.float32(value))


def agrees(folder, trace_path):
    """The events of the folder say what the trace says."""
    lines = trace_of(trace_path)
    found = only_events(folder)
    assert [step for step, _, _ in found] == [line["round"] for line in lines], found
    for (_, _, values), line in zip(found, lines):
        told = {name: float32(line[name]) for name in ("objective", "change", "seconds") if line[name] is not None}
        assert values == told, (values, line)
    return lines


def tell_the_same(here, away):
    """Whoever looks late finds the last 64 rounds of a job alone."""
    for line in here + away:
        del line["seconds"]
    assert away[-1] == here[-1] and len(away) > len(here) / 2 and all(line in here for line in away), (here, away)


# ---- tests -----------------------------------------------------------------------------------------------------------


@apart.test
def events_say_what_the_trace_says():
    shoal("kmeans", "gen:blobs?rows=5000&cols=4&seed=1", "-k", 6, "--tensorboard", "runs/first/", "--trace", "t.jsonl")
    lines = agrees("runs/first", "t.jsonl")
    assert len(lines) > 10 and sum(line["objective"] is not None for line in lines) > 3
    summary = shoal("kmeans", "gen:blobs?rows=5000&cols=4&seed=1", "-k", 6, "--tensorboard", "more").stdout
    assert "\nwrote      more\n" in summary, summary


@apart.test
def a_run_of_each_learner_can_be_followed():
    numpy.save("x.npy", numpy.random.default_rng(1).normal(size=(400, 5)) * 0.1 + 0.5)
    labels = numpy.random.default_rng(2).integers(0, 3, size=(400, 1)).astype(float)
    numpy.save("xy.npy", numpy.hstack([numpy.load("x.npy"), labels]))
    verbs = {"logistic": ["xy.npy", "--l2", 1, "--tolerance", 1e-9],
             "autoencoder": ["x.npy", "--hidden", 3, "--iterations", 10]}
    for verb, words in verbs.items():
        shoal(verb, *words, "--tensorboard", f"runs/{verb}", "--trace", f"{verb}.jsonl", "--quiet")
        lines = agrees(f"runs/{verb}", f"{verb}.jsonl")
        told = [line["objective"] for line in lines if line["objective"] is not None]
        assert len(told) > 5 and told[-1] < told[0], (verb, lines)
        shoal(verb, *words, "--tensorboard", f"away/{verb}", "--trace", f"away-{verb}.jsonl", "--quiet", "--workers",
              "local:2")
        away = agrees(f"away/{verb}", f"away-{verb}.jsonl")
        tell_the_same(lines, away)


@apart.test
def a_module_can_be_followed():
    pathlib.Path("halve.c").write_text("""
        #include <shoal/module.h>
        static void map(double *sum, const double *model, const shoal_rows *rows, const shoal_setting *setting)
        {
            for (int64_t i = 0; i < rows->count; i++)
                *sum += rows->values[i] - *model;
        }
        static bool update(double *model, const double *sum, int64_t round, const shoal_setting *setting)
        {
            *model += *sum / 2;
            return round == 5;
        }
        static double objective(const double *model, const double *sum, const shoal_setting *setting)
        { return *sum * *sum; }
        SHOAL_MODULE(.map = map, .update = update, .objective = objective);
    """)
    numpy.save("x.npy", numpy.ones((1, 1)))
    shoal("run", "halve.c", "x.npy", "--tensorboard", "tb", "--trace", "t.jsonl")
    assert [line["objective"] for line in agrees("tb", "t.jsonl")][:3] == [1, 0.25, 0.0625]


@apart.test
def another_program_reads_the_frames():
    peer = ROOT / "build/peers/node_modules/tfrecord/lib/record_reader"
    if not shutil.which("node") or not peer.with_suffix(".js").exists():
        raise apart.Skipped("build/peers has no tfrecord")
    shoal("kmeans", "gen:blobs?rows=5000&cols=4&seed=1", "-k", 6, "--tensorboard", "tb", "--quiet")
    path, = event_files("tb")
    script = f"""
        const {{RecordReader}} = require({json.dumps(str(peer))});
        (async () => {{
            const reader = await RecordReader.create({json.dumps(path)});
            for (let record; (record = await reader.readRecord()); ) console.log(Buffer.from(record).toString('hex'));
        }})().catch(error => {{ console.error(error); process.exit(1); }});
    """
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [record.hex() for record in records(path)]


@apart.test
def a_run_can_be_followed_and_killed():
    process = subprocess.Popen([SHOAL, *map(str, LONG), "--tensorboard", "tb"])
    try:
        path, = waits_for("the file", lambda: event_files("tb"))
        waits_for("the file's first event", lambda: os.path.getsize(path) > 0)
        waits_for("an objective", lambda: sum("objective" in values for _, _, values in events(path, cut=True)) > 2)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    steps = [step for step, _, _ in only_events("tb", cut=True)]
    assert steps == list(range(len(steps))), steps


@apart.test
def a_run_that_is_stopped_tells_its_last_round():
    process = subprocess.Popen([SHOAL, *map(str, LONG), "--tensorboard", "tb", "--trace", "t.jsonl"],
                               stderr=subprocess.PIPE, text=True)
    path, = waits_for("the file", lambda: event_files("tb"))
    waits_for("an objective",
              lambda: os.path.getsize(path) and any("objective" in values for _, _, values in events(path, cut=True)))
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=SECONDS)[1]
    assert process.returncode == 130 and "stopped after" in said, (process.returncode, said)
    agrees("tb", "t.jsonl")


@apart.test
def workers_tell_the_same():
    data = ["kmeans", "gen:blobs?rows=5000&cols=4&seed=1", "-k", 6, "--quiet"]
    shoal(*data, "--tensorboard", "here", "--trace", "here.jsonl")
    shoal(*data, "--tensorboard", "away", "--trace", "away.jsonl", "--workers", "local:2")
    here, away = agrees("here", "here.jsonl"), agrees("away", "away.jsonl")
    tell_the_same(here, away)
    shoal(*data, "--tensorboard", "alone", "--workers", "local:2")  # without a trace every round is told as well
    alone = only_events("alone")
    assert len(alone) > len(here) / 2 and alone[-1][0] == here[-1]["round"], alone


@apart.test
def a_job_that_goes_on_writes_another_file():
    words = [*LONG, "--store", "st", "--workers", "local:2", "--tensorboard", "tb", "--job", "followed"]
    words[words.index("--iterations") + 1] = 60
    process = subprocess.Popen([SHOAL, *map(str, words)], stderr=subprocess.PIPE, text=True)
    path, = waits_for("the file", lambda: event_files("tb"))
    waits_for("a round", lambda: os.path.getsize(path) and len(events(path, cut=True)) > 2)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=SECONDS)[1]
    assert process.returncode == 3, (process.returncode, said)
    shoal("job", "resume", "followed", "--store", "st", "--quiet")
    files = event_files("tb")
    assert len(files) == 2 and files[0] == path, files
    first, second = events(path), events(files[1])
    for steps in ([step for step, _, _ in first], [step for step, _, _ in second
                                                   ]):  # a job remembers its last 64 rounds, so some may lack
        assert steps == sorted(set(steps)), steps
    assert second[-1][0] > first[-1][0]
    result = json.loads(shoal(*LONG[:5], *words[5:8], "--json").stdout)
    assert second[-1][0] == result["rounds"] - 1 and second[-1][2]["objective"] == float32(result["objective"])


@apart.test
def a_store_can_not_say_which_folder_is_written():
    shoal(*LONG[:4], "--iterations", 3, "--quiet", "--store", "st", "--workers", "local:1", "--tensorboard", "tb",
          "--job", "theirs")
    shutil.rmtree("tb")
    shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)  # whoever submitted it is someone else now
    done = shoal("job", "resume", "theirs", "--store", "st")
    assert not os.path.exists("tb") and "not written" in done.stderr and "/tb" in done.stderr, done.stderr
    shoal("job", "resume", "theirs", "--store", "st", "--write-outputs", "--quiet")
    assert event_files("tb")


@apart.test
def a_folder_that_can_not_be_written_is_told_first():
    pathlib.Path("file").write_text("x")
    for folder in ("file", "file/below"):
        done = shoal("kmeans", "nowhere.npy", "-k", 3, "--tensorboard", folder, code=1)
        assert done.stderr.startswith(
            f"shoal: --tensorboard {folder}: can't write to this folder: Not a directory"), done.stderr
    done = shoal("kmeans", "nowhere.npy", "-k", 3, "--tensorboard", "", code=2)
    assert "--tensorboard" in done.stderr
    done = shoal("kmeans", "nowhere.npy", "-k", 3, "--tensorboard", "tb", code=1)
    assert "nowhere.npy" in done.stderr and not os.path.exists("tb"), "a run that never began left a folder"
    assert pathlib.Path("file").read_text() == "x"


apart.main(at_once=2)
