"""What an attacker who may write to a store could put there: jobs that are real but for one thing, by name.

    for forgery in forgeries.all_of(jobs, seed, False):
        blobs, messages = forgery.build(id)        # of a job of that name

`jobs` are real ones (class Real).  Checksums, lengths and hashes fit unless they are what is forged.  What may come of
a forgery is one of

    SAME    the job ends with the real result, or is refused: only hints, or what the learner can tell, was changed
    SHAPE   what was forged is the truth itself (centres, sums): a result may be another, of the same tensors
    OTHER   it is another job: any result, or none
    REFUSED no result at all
    ENDED   the forgery is an end, which the worker leaves alone if it can be read at all
"""
import hashlib
import json
import math
import random
import struct

import forge
from forge import bits

WORKER = 0x5EC0DE5EC0DE5EC0  # who serves the forged jobs, so that trailers can name it
SECRET = b"SECRET-b7e15162-"  # in the settings of every spec, so in the worker's heap; never in a blob that it puts
RAN = "code-of-a-job-ran"  # a file that code which is brought along would make where the worker runs
SAME, SHAPE, OTHER, REFUSED, ENDED = "same", "shape", "other", "refused", "ended"

WORDS = [0, -1, 1, 2, 1 << 31, -(1 << 31), (1 << 32) + 1, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63), bits(math.nan),
         bits(math.inf), bits(-math.inf), bits(1e300), bits(5e-324), bits(-1.0), "+", "-"]
HALVES = [0, 1, 2, 65536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, "+", "-"]
BYTES = [0, 1, 2, 3, 4, 5, 12, 13, 64, 65, 127, 255, "+", "-"]
TEXTS = [b"", b"x", b"%n%s%n%s", b"a" * 23, b"a" * 24, b"a" * 4000, b"a\0b", b"\xff\xfe", b"../../x", b"run"]
JSON_VALUES = [0, -1, 1, 1 << 27, 1 << 31, 1 << 62, (1 << 63) - 1, 1 << 63, 1.5, 1e308, "", "x", "a" * 5000, None, True,
               [], {}, "+", "-", "missing", math.nan]


class Real:
    """A real job, as it was submitted and as it went."""

    def __init__(self, name, spec):
        self.name, self.spec = name, spec
        self.learner = spec.json["algorithm"]
        self.data = {}  # key below the job: blob, of rows and weights
        self.models, self.kept, self.pieces = {}, {}, {}  # by round; pieces as {key: body}
        self.records, self.messages = [], []
        self.end = None  # the last model

    @property
    def tree(self):
        """How many pieces there are on each level."""
        counts = [len(self.spec.json["slices"]["grains"])]
        for fan in self.spec.json["reduce"]:
            counts.append(-(-counts[-1] // fan))
        return counts

    def makers(self, key):
        """How many slices the piece of this key covers."""
        level, index = int(key.split("/")[-3]), int(key.split("/")[-1])
        span = math.prod(self.spec.json["reduce"][:level])
        return min(self.tree[0], (index + 1) * span) - index * span

    def points(self):
        """Rounds that differ in their phase, and the second of each: (what it is called, round)."""
        seen, found = {}, []
        for number, model in sorted(self.models.items()):
            count = seen[model.phase] = seen.get(model.phase, 0) + 1
            if count <= 2:
                name = forge.KMEANS_PHASES[model.phase] if self.learner in ("kmeans", "predict") else str(model.phase)
                found.append((f"{name}{count}", number))
        return found


class Job:
    """A job that is about to be put: its parts, still to be changed."""

    def __init__(self, real, round_number):
        self.real, self.round = real, round_number
        self.spec = real.spec.copy()
        self.model = self.record = None  # to be put, the record as that of another worker
        self.kept, self.pieces = {}, {}
        self.blobs = {}  # more, or instead, by key below the job; None: none
        self.frames = {}  # of a key: what is wrong in its frame
        if round_number:
            self.model = real.models[round_number].copy() if round_number in real.models else real.end.copy()
            self.model.trailer = forge.make_trailer(WORKER, sum(real.tree))
            self.keep()
        self.messages = list(real.messages)  # also later: who goes back to round 0 then need not wait for others

    def keep(self):
        """What the model keeps, as it lay in the store."""
        for name in self.model.content.names("round.kept["):
            if name.endswith("born") and self.model.content.get(name) in self.real.kept:
                self.kept[self.model.content.get(name)] = self.real.kept[self.model.content.get(name)]

    def renumber(self, number):
        self.round = number
        for name in ("number", "round.number"):
            self.model.content.set(name, number)
        return self

    def encode(self, job):
        """Blobs by key, and messages by queue."""
        spec = self.spec.copy()
        spec.text = self.spec.text
        spec.json["id"] = spec.json.get("id") and job
        parts = {"spec": ("spec", spec.encode())}
        if self.model:
            parts[f"round/{self.round:08}/model"] = ("modl", self.model.encode())
        for born, body in self.kept.items():
            parts[f"round/{born:08}/kept"] = ("kept", body)
        for key, fields in self.pieces.items():
            parts[key] = ("part", fields.encode())
        if self.record:
            parts[f"worker/{self.record.get('worker') & (1 << 64) - 1:016x}"] = ("work", self.record.encode())
        blobs = {key: forge.frame(kind, body, **self.frames.get(key, {})) for key, (kind, body) in parts.items()}
        blobs = {f"jobs/{job}/{key}": blob for key, blob in {**self.real.data, **blobs, **self.blobs}.items()
                 if blob is not None}
        return {**blobs, f"open/{job}": b""}, [(f"jobs/{job}/{queue}", data) for queue, data in self.messages]


class Forgery:
    def __init__(self, name, real, may, make):
        self.name, self.real, self.may, self.make = name, real, may, make

    def build(self, job):
        """Blobs by key, and messages: pairs of a queue and bytes."""
        return self.make().encode(job)


# ---- changing one field --------------------------------------------------------------------------------------------


class Choice:
    """Chooses values by the names of fields, so that a forgery is the same whatever else there is."""

    def __init__(self, seed):
        self.seed = seed

    def of(self, values, *name):
        return random.Random(f"{self.seed} {name}").choice(values)


def values_of(kind):
    return {"i64": WORDS, "u32": HALVES, "u8": BYTES, "text": TEXTS}[kind]


def changed(value, how):
    if how == "+":
        return value + 1
    return value - 1 if how == "-" else how


def show(value):
    if isinstance(value, bytes):
        return f"{value[:12]!r}" + (f"*{len(value)}" if len(value) > 12 else "")
    return str(value)[:24]


def each_field(fields, choice, *where):
    """(name, value as text, fields with that one changed) of every number and text."""
    for name, kind, value in fields:
        if kind == "bytes":
            continue
        how = choice.of(values_of(kind), name, *where)
        if changed(value, how) != value:
            yield name, show(how), fields.copy().set(name, changed(value, how))


# ---- specs ---------------------------------------------------------------------------------------------------------

HINTS = ("lease", "keep_rounds", "workers", "created", "settings", "reduce", "data.name")


def json_leaves(value, path=()):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from json_leaves(inner, path + (name,))
    if isinstance(value, list):
        for i, inner in enumerate(value):
            yield from json_leaves(inner, path + (i,))
    if path:
        yield path, value


def set_json(spec, path, how):
    at = spec.json
    for step in path[:-1]:
        at = at[step]
    if how == "missing":
        del at[path[-1]]
    elif how in ("+", "-"):
        at[path[-1]] = changed(at[path[-1]], how) if isinstance(at[path[-1]], (int, float)) else how
    else:
        at[path[-1]] = how


def spec_json_forgeries(real, choice, each):
    for path, _ in json_leaves(real.spec.json):
        name = ".".join(map(str, path))
        for how in [choice.of(JSON_VALUES, name, real.name, i) for i in range(each)]:
            if name == "lease" and isinstance(how, (int, float)) and how > 10:
                continue  # an honest job, whose worker waits for others as long as it is told to
            def make(path=path, how=how):
                job = Job(real, 0)
                set_json(job.spec, path, how)
                return job
            yield Forgery(f"spec.{name}={show(how)}", real, SAME if name.startswith(HINTS) else OTHER, make)


def spec_with(real, change):
    job = Job(real, 0)
    change(job.spec)
    return job


def set_shape(spec, **more):
    spec.json["shape"].update(more)


def name_data(spec, kind, place, **more):
    """Rows that lie elsewhere, without the hashes that uploaded ones have where theirs are not asked for."""
    spec.json["data"].update(kind=kind, place=place, offset=0, size=1 << 20, **more)
    if kind == "ranges":
        spec.json["slices"].pop("hashes")


def one_slice(spec, rows, columns=4, **more):
    """All rows in one slice of one grain, generated: nothing of them has to be in the store."""
    spec.json["data"] = {"name": "x", "kind": "generated", "place": f"gen:uniform?rows={rows}&cols={columns}&seed=1"}
    spec.json["shape"] = {"rows": rows, "columns": columns, "type": "float32", "weighted": False,
                          "rows_per_grain": rows, "grains": 1, **more}
    spec.json["slices"] = {"grains": [1]}
    spec.json["reduce"] = [1]


def spec_forgeries(real):
    """Whole parts of a spec."""
    changes = {
        "names a local file": lambda spec: name_data(spec, "file", "/etc/passwd"),
        "names a device": lambda spec: name_data(spec, "file", "/dev/zero"),
        "names what the worker is": lambda spec: name_data(spec, "file", "/proc/self/mem"),
        "names another store": lambda spec: name_data(spec, "ranges", "rows", etag="x", store="dir:/nonexistent"),
        "names a store on the network": lambda spec: name_data(spec, "ranges", "rows", etag="x",
                                                               store="s3://nobody/x?endpoint=http://127.0.0.1:9"),
        "names a blob of its own store": lambda spec: name_data(spec, "ranges", "open/x", etag="x"),
        "generates from a file": lambda spec: spec.json["data"].update(kind="generated", place="/etc/passwd"),
        "generates nonsense": lambda spec: spec.json["data"].update(kind="generated", place="gen:uniform?rows=-1"),
        "2^27 rows in one grain": lambda spec: one_slice(spec, 1 << 27),
        "2^30 rows in one grain": lambda spec: one_slice(spec, 1 << 30),
        "2^40 columns": lambda spec: one_slice(spec, 1, 1 << 40),
        "2^60 bytes": lambda spec: one_slice(spec, 1 << 28, 1 << 29),
        "one row": lambda spec: one_slice(spec, 1),
        "other columns than the model": lambda spec: one_slice(spec, 200, 5),
        "fewer columns than the model": lambda spec: one_slice(spec, 200, 1),
        "other rows than the model": lambda spec: one_slice(spec, 100),
        "more rows than the model": lambda spec: one_slice(spec, 300),
        "other type": lambda spec: one_slice(spec, 200, type="uint8"),
        "workers 2^63-1": lambda spec: spec.json.update(workers=(1 << 63) - 1),
        "keeps 2^63-1 rounds": lambda spec: spec.json.update(keep_rounds=(1 << 63) - 1),
        "another version": lambda spec: spec.json.update(version="99.0.0"),
        "a newer format": lambda spec: spec.json.update(format=1 << 40),
        "another fingerprint": lambda spec: spec.json.update(fingerprint="0" * 16),
        "another's name": lambda spec: spec.json.update(id=""),
        "65537 slices": lambda spec: spec.json["slices"].update(grains=[1] * 65537),
        "slices of 2^62 grains": lambda spec: spec.json["slices"].update(grains=[1 << 62, 1 << 62, 1, 1]),
        "a tree of many levels": lambda spec: spec.json.update(reduce=[2] * 64),
        "fans of 2^62": lambda spec: spec.json.update(reduce=[1 << 62]),
        "a field nobody knows": lambda spec: spec.json.update(more=1),
        "weights that are not there": lambda spec: set_shape(spec, weighted=not spec.json["shape"]["weighted"]),
        "no JSON": lambda spec: setattr(spec, "text", b"{" * 100000),
        "JSON twice": lambda spec: setattr(spec, "text", json.dumps(spec.json).encode() * 2),
        "JSON with a NUL": lambda spec: setattr(spec, "text", json.dumps(spec.json).encode() + b"\0"),
        "doubled names": lambda spec: setattr(spec, "text", b'{"format": 1, "format": 1}'),
        "no text": lambda spec: setattr(spec, "text", b""),
        "no round": lambda spec: spec.first.clear(),
        "two rounds": lambda spec: spec.first.extend(spec.first.copy()),
    }
    for what, change in changes.items():
        hint = what.startswith(("workers", "keeps"))
        yield Forgery(f"spec: {what}", real, SAME if hint else OTHER, lambda change=change: spec_with(real, change))
    for learner in sorted(forge.MODELS) + ["exec", "module", "kmeans\0", "%n"]:
        if learner != real.learner:
            yield Forgery(f"spec: is for {learner}", real, OTHER,
                          lambda learner=learner: spec_with(real, lambda spec: spec.json.update(algorithm=learner)))


# ---- models --------------------------------------------------------------------------------------------------------

FOR_PEOPLE = ("round.step", "round.k", "round.objective", "round.change", "round.phase")


def truth_of(real):
    """What may come of a forged truth; what classes there are is known from the data alone."""
    return OTHER if real.learner in ("logistic", "bayes") else SHAPE


def model_may(real, name):
    """What the model says in two places, or is for people only, can't change a result."""
    return truth_of(real) if name.startswith("round.model.") else SAME


def spec_round_forgeries(real, choice, turn):
    """Every field of round 0, which is in the spec: another job, or none."""
    for name, value, fields in each_field(real.spec.first, choice, real.name, turn):
        def make(fields=fields):
            job = Job(real, 0)
            job.spec.first = fields
            return job
        yield Forgery(f"spec.{name}={value}", real, SAME if name.startswith(FOR_PEOPLE) else OTHER, make)


def model_forgeries(real, point, number, choice, turn):
    """Every field of a round's content."""
    for name, value, fields in each_field(real.models[number].content, choice, real.name, point, turn):
        def make(fields=fields):
            job = Job(real, number)
            job.model.content = fields
            return job
        yield Forgery(f"model.{point}.{name}={value}", real, model_may(real, name), make)


def with_model(real, number, change):
    job = Job(real, number)
    change(job)
    return job


def drop_cell(content, index):
    first, end = content.run(f"round.layout.cell[{index}].")
    del content[first:end]
    content.set("round.layout.cells", content.get("round.layout.cells") - 1)


def add_cells(content, more, kind=0, count=1, size=8):
    at = content.at("round.layout.memo_row_bytes")
    have = content.get("round.layout.cells")
    for i in range(more):
        fields = (("name", "text", b"more"), ("kind", "u8", kind), ("count", "i64", count), ("bytes", "i64", size),
                  ("carried", "u8", 0))
        content[at:at] = [[f"round.layout.more[{i}].{name}", width, value] for name, width, value in fields]
    content.set("round.layout.cells", have + more)


def swap_cells(content):
    first, end = content.run("round.layout.cell[0].")
    cell = content[first:end]
    del content[first:end]
    at = content.run("round.layout.cell[1].")[1]
    content[at:at] = cell


def resize_model(job, more):
    """Behind its end there is more, or some of it is missing; the length says so."""
    content = job.model.content
    size = content.get("round.model_bytes") + more
    body = forge.Fields(content[content.at("round.model_bytes") + 1:]).encode()
    del content[content.at("round.model_bytes") + 1:]
    content.set("round.model_bytes", max(size, 0))
    content.append(["round.model.rest", "bytes", (body + bytes(max(more, 0)))[:max(size, 0)]])


def model_structures(real, point, number):
    """Layouts, sizes and places of a round's content as a whole."""
    cells = real.models[number].content.get("round.layout.cells")
    changes = {"no cell": lambda job: [drop_cell(job.model.content, i) for i in reversed(range(cells))],
               "one more cell": lambda job: add_cells(job.model.content, 1),
               "many cells": lambda job: add_cells(job.model.content, 100),
               "a cell of 2^58 values": lambda job: add_cells(job.model.content, 1, count=1 << 58),
               "a cell of 2^28 values": lambda job: add_cells(job.model.content, 1, count=1 << 28),
               "a record of 2^58 bytes": lambda job: add_cells(job.model.content, 1, kind=3, size=1 << 58),
               "a row of 2^50 bytes": lambda job: add_cells(job.model.content, 1, kind=4, count=0, size=1 << 50),
               "a memo of 2^50 bytes": lambda job: job.model.content.set("round.layout.memo_row_bytes", 1 << 50),
               "no model": lambda job: resize_model(job, -job.model.content.get("round.model_bytes")),
               "a model of one byte": lambda job: resize_model(job, 1 - job.model.content.get("round.model_bytes")),
               "a shorter model": lambda job: resize_model(job, -8),
               "half a word less": lambda job: resize_model(job, -4),
               "a longer model": lambda job: resize_model(job, 64),
               "a model of 1 MiB more": lambda job: resize_model(job, 1 << 20),
               "content is cut": lambda job: setattr(job.model, "length", 40),
               "content is longer": lambda job: setattr(job.model, "length", 1 << 62),
               "content has no end": lambda job: setattr(job.model, "length", -1),
               "nothing is kept any more": lambda job: job.kept.clear(),
               "only a frame": lambda job: job.blobs.update({f"round/{number:08}/model": forge.frame("modl", b"")}),
               "only a word": lambda job: job.blobs.update({f"round/{number:08}/model": b"rubbish"}),
               "round far ahead": lambda job: job.renumber(1 << 31),
               "round farther ahead": lambda job: job.renumber((1 << 63) - 2),
               "last round there is": lambda job: job.renumber((1 << 63) - 1)}
    if cells > 1:
        changes["cells swapped"] = lambda job: swap_cells(job.model.content)
    for i in range(cells):
        changes[f"no cell {i}"] = lambda job, i=i: drop_cell(job.model.content, i)
        for kind in range(6):
            changes[f"cell {i} of kind {kind}"] = lambda job, i=i, kind=kind: job.model.content.set(
                f"round.layout.cell[{i}].kind", kind)
    for what, change in changes.items():
        may = SHAPE if "ahead" in what or "last round" in what else SAME
        yield Forgery(f"model.{point}: {what}", real, may, lambda change=change: with_model(real, number, change))


def other_models(reals, real):
    """Models of other learners, of other jobs of this one, and of this one in another round's place."""
    number = max(real.models)
    for other in reals:
        if other is real:
            continue
        for point, at in other.points()[:6]:
            def make(other=other, at=at):
                job = Job(real, number)
                job.model.content = other.models[at].content.copy()
                return job.renumber(number)
            may = truth_of(real) if other.learner == real.learner else SAME
            yield Forgery(f"model of {other.name} {point}", real, may, make)
    for point, at in real.points():
        for place in (1, number + 40):
            if at and place != at:
                yield Forgery(f"model {point} as round {place}", real, SHAPE,
                              lambda at=at, place=place: Job(real, at).renumber(place))


def trailer_forgeries(real, choice, each):
    number = max(real.models)
    trailer = forge.make_trailer(WORKER, sum(real.tree))
    for turn in range(each):
        for name, value, fields in each_field(trailer, choice, real.name, turn):
            def make(fields=fields):
                job = Job(real, number)
                job.model.trailer = fields
                return job
            yield Forgery(f"{name}={value}", real, SAME, make)
    changes = {"no trailer": lambda job: job.model.trailer.clear(),
               "two trailers": lambda job: job.model.trailer.extend(job.model.trailer.copy()),
               "pieces of nobody": lambda job: [job.model.trailer.set(name, (1 << 32) - 1)
                                                for name in job.model.trailer.names("trailer.holder")],
               "pieces of a stranger": lambda job: job.model.trailer.set("trailer.member[0].worker", 77)}
    for what, change in changes.items():
        yield Forgery(f"trailer: {what}", real, SAME, lambda change=change: with_model(real, number, change))


def kept_forgeries(real):
    number = max(real.models)
    job = Job(real, number)
    for born, body in sorted(job.kept.items()):
        words = len(body) // 8
        changes = {"empty": b"", "short": body[:-8], "long": body + bytes(8), "other": bytes(len(body)),
                   "infinite": struct.pack("<d", math.inf) * words, "no number": struct.pack("<d", math.nan) * words}
        for what, other in changes.items():
            def make(born=born, other=other, sealed=False):
                made = Job(real, number)
                made.kept[born] = other
                index = next(name for name in made.model.content.names("round.kept[")
                             if name.endswith("born") and made.model.content.get(name) == born)[:-4]
                if sealed:
                    made.model.content.set(f"{index}check", forge.crc32c(other)).set(f"{index}bytes", len(other))
                return made
            yield Forgery(f"kept {born} {what}", real, SAME, make)
            yield Forgery(f"kept {born} {what}, sealed", real, SHAPE if len(other) == len(body) else SAME,
                          lambda make=make: make(sealed=True))


# ---- pieces, records, messages, frames, ends -----------------------------------------------------------------------


def piece_forgeries(real, point, number, choice):
    if number not in real.pieces:
        return
    for key, body in sorted(real.pieces[number].items())[::3]:
        fields = forge.read_piece(body, real.makers(key))
        def make(key, fields):
            job = Job(real, number)
            job.pieces[key] = fields
            return job
        place = key.split("/", 2)[2]
        for name, value, changed_fields in each_field(fields, choice, real.name, point, place):
            may = truth_of(real) if name.startswith("value") else SAME
            yield Forgery(f"piece.{point}.{place}.{name}={value}", real, may,
                          lambda key=key, fields=changed_fields: make(key, fields))
        for what, change in {"cut": lambda f: f.pop(), "empty": lambda f: f.clear(),
                             "longer": lambda f: f.append(["more", "bytes", bytes(8)]),
                             "with 2^61 records": lambda f: f.append(["more", "i64", 1 << 61])}.items():
            def change_all(key=key, fields=fields, change=change):
                other = fields.copy()
                change(other)
                return make(key, other)
            yield Forgery(f"piece.{point}.{place} {what}", real, SAME, change_all)
        for other_key, other in sorted(real.pieces[number].items()):
            if other_key != key:
                yield Forgery(f"piece.{point}.{place} is {other_key.split('/', 2)[2]}", real, SAME,
                              lambda key=key, other_key=other_key, other=other: make(
                                  key, forge.read_piece(other, real.makers(other_key))))
                break


def record_forgeries(real, choice):
    fields = forge.read_record(real.records[0])
    for name, value, changed_fields in each_field(fields, choice, real.name):
        def make(fields=changed_fields):
            job = Job(real, 0)
            job.record = fields
            return job
        yield Forgery(f"record.{name}={value}", real, SAME, make)
    for what, body in {"is rubbish": b"rubbish", "is empty": b"", "is long": fields.encode() + bytes(1 << 16)}.items():
        def make_other(body=body):
            job = Job(real, 0)
            job.blobs.update({f"worker/{i:016x}": forge.frame("work", body) for i in range(1, 9)})
            job.blobs.update({f"left/{i:016x}": forge.frame("work", body) for i in range(1, 9)})
            job.blobs.update({"worker/x": b"", "left/../../x": b"", f"worker/{WORKER:016x}": forge.frame("work", body)})
            return job
        yield Forgery(f"record {what}", real, SAME, make_other)


def message_forgeries(real):
    texts = {"rubbish": [b"rubbish"] * 9, "empty": [b""] * 9, "negative": [b"-1"] * 9, "huge": [b"9" * 30] * 9,
             "2^63": [str(1 << 63).encode()] * 9, "far": [b"7", b"65536", b"4294967296"] * 3, "long": [b"1" * 5000] * 9,
             "with a NUL": [b"1\0002"] * 9, "doubled": [b"0", b"0", b"1", b"1", b"6", b"6", b"6", b"0", b"3"],
             "of another queue": [b"6", b"5", b"4"] * 3, "spaces": [b" 1", b"1 ", b"+1"] * 3}
    for what, more in texts.items():
        for before in (True, False):
            def make(more=more, before=before):
                job = Job(real, 0)
                strange = [(queue, text) for queue in ("map", "reduce", "last", "setup") for text in more]
                job.messages = strange + job.messages if before else job.messages + strange
                return job
            yield Forgery(f"messages: {what}, {'before' if before else 'behind'} the real ones", real, SAME, make)


def frame_forgeries(real):
    number = max(real.models)
    wrong = {"no magic": {"magic": b"shoalblc"}, "version 0": {"version": 0}, "version 65535": {"version": 65535},
             "length 0": {"length": 0}, "length 2^63": {"length": 1 << 63}, "length 2^64-1": {"length": (1 << 64) - 1},
             "wrong CRC": {"crc": 1}, "wrong CRC of the head": {"head_crc": 1}}
    for what, fields in wrong.items():
        for key in ("spec", f"round/{number:08}/model"):
            def make(key=key, fields=fields):
                job = Job(real, number)
                job.frames[key] = fields
                return job
            yield Forgery(f"frame of {key.split('/')[-1]}: {what}", real, SAME, make)
    for key in ("spec", f"round/{number:08}/model"):
        for what, blob in {"no bytes": b"", "10 bytes": b"shoalblb12", "zeros": bytes(4096),
                           "other kind": forge.frame("kept", b"x" * 100)}.items():
            def make_blob(key=key, blob=blob):
                job = Job(real, number)
                job.blobs[key] = blob
                return job
            yield Forgery(f"{key.split('/')[-1]} is {what}", real, SAME, make_blob)


def key_forgeries(real):
    """Keys that look nearly like those of a job, beside a real one."""
    names = ["round/1/model", "round/00000001/modelx", "round/0000000000000000001/model",
             "round/99999999999999999999/model", "round/-0000001/model", "round/00000001/00/000000/999999",
             "round/00000001/99/000000/000000", "round/00000000/00/000007/000000", "round/00000001/kept", "worker/0",
             "worker/" + "g" * 16, "left/" + "0" * 17, "data/999999", "code/" + "0" * 64, "want", "round/", "spec/x"]
    for name in names:
        def make(name=name):
            job = Job(real, 0)
            job.blobs[name] = b"rubbish"
            return job
        yield Forgery(f"key {name}", real, SAME, make)
    for want in (b"-1", b"9" * 18, b"x", b"", b"1e9", b"9" * 400):
        def make_want(want=want):
            job = Job(real, 0)
            job.blobs["want"] = want
            return job
        yield Forgery(f"want {show(want)}", real, SAME, make_want)


def add_tensor(content, name):
    """One value, behind the others."""
    have = content.get("result.tensors")
    at = content.at("result.numbers")
    content[at:at] = [[f"result.tensor[{have}].{field}", kind, value] for field, kind, value in (
        ("name", "text", name), ("type", "u8", 1), ("rank", "u8", 1), ("shape[0]", "i64", 1), ("bytes", "i64", 8),
        ("values", "bytes", bytes(8)))]
    content.set("result.tensors", have + 1)


def end_forgeries(real, choice, reals):
    """Ends: done with a result of another shape, failed and cancelled with any text."""
    number = max(real.models) + 1
    for name, value, fields in each_field(real.end.content, choice, real.name):
        def make(fields=fields):
            job = Job(real, number)
            job.model.content = fields
            return job
        yield Forgery(f"end.{name}={value}", real, ENDED, make)
    for other in reals:
        if other.learner != real.learner:
            def make_other(other=other):
                job = Job(real, number)
                job.model.content = other.end.content.copy().set("number", number)
                return job
            yield Forgery(f"end of {other.name}", real, ENDED, make_other)
    for tensor in (b"../escaped", b"x/../../escaped", b"/escaped", b"..", b""):
        def make_tensor(tensor=tensor):
            job = Job(real, number)
            add_tensor(job.model.content, tensor)
            return job
        yield Forgery(f"end: one more tensor {show(tensor)}", real, ENDED, make_tensor)
    for state, text in ((2, b"a" * 100000), (2, b"\x1b[2J\n\n%n"), (3, b""), (2, b"\xff\xfe")):
        def make_text(state=state, text=text):
            job = Job(real, number)
            job.model.content = forge.Fields([["number", "i64", number], ["state", "u8", state], ["status", "i64", -2],
                                              ["message", "text", text]])
            return job
        yield Forgery(f"end: state {state} with {show(text)}", real, ENDED, make_text)


def code_forgeries(real):
    """Jobs that bring a program or a module, which a worker that was not told to trust them never runs."""
    program = b"#!/bin/sh\ntouch " + RAN.encode() + b"\n"
    hashed = hashlib.sha256(program).hexdigest()
    for learner, name in (("exec", "files/run.sh"), ("module", "module.so"), (real.learner, "module.so"),
                          ("exec", "../run.sh"), ("exec", "/tmp/run.sh"), ("exec", "a" * 300)):
        def make(learner=learner, name=name):
            job = Job(real, 0)
            job.spec.json.update(algorithm=learner, code=[{"name": name, "size": len(program), "sha256": hashed}])
            job.blobs[f"code/{hashed}"] = program
            return job
        yield Forgery(f"code {show(name)} for {learner}", real, REFUSED, make)


class Bare:
    """A marker of a job that is not there, or of one that has nothing but what is given."""

    def __init__(self, blobs):
        self.blobs = blobs

    def encode(self, job):
        return {f"open/{job}": b"", **{f"jobs/{job}/{key}": blob for key, blob in self.blobs.items()}}, []


def bare_forgeries(real):
    for what, blobs in {"no job": {}, "only a model": {"round/00000001/model": forge.frame("modl", b"x")},
                        "a folder as spec": {"spec/x": b""}}.items():
        for i in range(3):
            yield Forgery(f"marker of {what} {i}", real, SAME, lambda blobs=blobs: Bare(blobs))


# ---- all -----------------------------------------------------------------------------------------------------------


def all_of(reals, seed, thorough):
    """Every forgery.  A field meets one value in each job and phase, of those for its kind, and four if `thorough`."""
    choice = Choice(seed)
    each = 4 if thorough else 1
    for real in reals:
        for forgery in of_real(real, reals, choice, each):
            forgery.name = f"{real.name}: {forgery.name}"
            yield forgery


def of_real(real, reals, choice, each):
    first = real is reals[0]
    yield from spec_json_forgeries(real, choice, 3 * each if first else each)
    yield from spec_forgeries(real)
    for turn in range(each):
        yield from spec_round_forgeries(real, choice, turn)
        for point, number in real.points():
            if number:
                yield from model_forgeries(real, point, number, choice, turn)
    for point, number in real.points():
        if number:
            yield from model_structures(real, point, number)
        yield from piece_forgeries(real, point, number, choice)
    yield from record_forgeries(real, choice)
    yield from end_forgeries(real, choice, reals)
    if max(real.models) > 0:
        yield from other_models(reals, real)
        yield from trailer_forgeries(real, choice, each)
        yield from kept_forgeries(real)
        yield from frame_forgeries(real)
    if first or real.learner in ("logistic", "bayes", "autoencoder"):
        yield from code_forgeries(real)
    if first or each > 1:
        yield from message_forgeries(real)
        yield from key_forgeries(real)
        yield from bare_forgeries(real)
