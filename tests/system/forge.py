"""What lies in a job's store, as fields that can be changed one by one, and stores that hold what was made of them.

    model = forge.read_model(forge.unframe(blob))        # Fields: a list of [name, kind, value]
    model.set("round.layout.cell[0].count", 1 << 62)
    blob = forge.frame("modl", model.encode())           # lengths and checksums fit again

It knows the formats of docs/engine-store.md, of src/learn/wire.c and of src/store/store_frame.c, and the tables of a
store that is a folder (src/store/folder): whoever may write to a store could write all of it.  Numbers of eight bytes
are whole numbers of 64 bits here, also where they are doubles; `bits` makes such a number of a double.
"""
import functools
import json
import math
import os
import sqlite3
import struct

import nobody  # so that no run is in the history of whoever runs this

FRAME_BYTES = 48
KMEANS_PHASES = ["range", "spread", "weigh", "fetch", "judge", "sample", "lloyd", "relocate", "label", "draw", "tally",
                 "scatter", "rate", "batch", "refill"]

# The words of models, in the order of the structs they are named after.
KMEANS_MODEL = """phase k columns rows start empty iterations runs seed tolerance weighted predicting
    distances metric prescale scale weight_scale weight_inverse weight_most variance square_total
    distance_most weight_total wide run filled iteration memo_round converged stopping objective_most
    finishing runs_done best_run best_iterations best_converged best_objective trials trial tried sample
    sampled searching rule chosen between away batch init_size patience reassignment batches
    extra_bytes""".split()
SEARCH = "parameters history iterations gradient_tolerance change_tolerance l1 l1_first l1_count".split()
LINE = """slope step best_step best_value best_slope other_step other_value other_slope width width_before wall
    evaluations bracketed settled again""".split()
GRADIENT_MODEL = [
    "phase", "own_bytes", "plan.sums", "plan.groups",
    *(f"plan.group[{i}].{name}" for i in range(10) for name in ("first", "count", "size", "narrow")),
    *(f"plan.search.{name}" for name in SEARCH), "plan.notes", *(f"quantum[{i}]" for i in range(10)),
    *(f"search.options.{name}" for name in SEARCH),
    *(f"search.{name}" for name in """iteration evaluations value gradient_most change end accepted pairs scale
        least_value least_gradient idle""".split()),
    *(f"search.curvature[{i}]" for i in range(60)), *(f"search.line.{name}" for name in LINE)]
LOGISTIC_OWN = """target features classes outputs intercept single iterations history start_outputs start_classes l1
    l2 tolerance weight""".split()
AUTOENCODER_OWN = """hidden columns activation output tied wide scaling iterations history seed starts sparsity
    sparsity_weight weight_decay tolerance change low high scale shift""".split()
MODELS = {
    "kmeans": KMEANS_MODEL, "predict": KMEANS_MODEL,
    "logistic": GRADIENT_MODEL + [f"own.{name}" for name in LOGISTIC_OWN],
    "autoencoder": GRADIENT_MODEL + [f"own.{name}" for name in AUTOENCODER_OWN],
    "logistic-predict": ["columns", "outputs", "classes", "probabilities"],
    "bayes": ["phase", "columns", "target", "classes", "uniform", "smoothing"],
    "bayes-predict": ["columns", "classes", "probabilities"],
    "features": AUTOENCODER_OWN,
}


def bits(value):
    """A double as the whole number that has the same bits."""
    return struct.unpack("<q", struct.pack("<d", value))[0]


# ---- checksums and frames ------------------------------------------------------------------------------------------


def make_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = make_table()


@functools.lru_cache(4096)
def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def frame(kind, body, magic=b"shoalblb", version=1, length=None, crc=None, head_crc=None):
    """The 48 bytes of store_frame.c and the body; what is not given is as it should be."""
    length = len(body) if length is None else length
    head = struct.pack("<8sHH4sQ16sI", magic, version, FRAME_BYTES, kind.encode(), length, bytes(16),
                       crc32c(body) if crc is None else crc)
    return head + struct.pack("<I", crc32c(head) if head_crc is None else head_crc) + body


def unframe(blob):
    assert blob[:8] == b"shoalblb" and crc32c(blob[FRAME_BYTES:]) == struct.unpack_from("<I", blob, 40)[0]
    return blob[FRAME_BYTES:]


# ---- fields --------------------------------------------------------------------------------------------------------

WIDTHS = {"u8": 1, "u32": 4, "i64": 8}


class Fields(list):
    """[name, kind, value] one after another, as they lie in the bytes.  Kinds: u8, u32, i64, text (its length before
    it in 32 bits), bytes."""

    def at(self, name):
        return next(i for i, field in enumerate(self) if field[0] == name)

    def get(self, name):
        return self[self.at(name)][2]

    def set(self, name, value):
        field = self[self.at(name)]
        self[self.at(name)] = [name, field[1], value]
        return self

    def copy(self):
        return Fields([list(field) for field in self])

    def names(self, *starts):
        return [field[0] for field in self if field[0].startswith(starts or "")]

    def run(self, start):
        """Where the fields lie whose names start so."""
        found = [i for i, field in enumerate(self) if field[0].startswith(start)]
        return found[0], found[-1] + 1

    def encode(self):
        parts = []
        for _, kind, value in self:
            if kind == "bytes":
                parts.append(value)
            elif kind == "text":
                parts.append(struct.pack("<I", len(value)) + value)
            else:
                width = WIDTHS[kind]
                parts.append((value & (1 << 8 * width) - 1).to_bytes(width, "little"))
        return b"".join(parts)


class Reader:
    """Takes fields off the front of bytes."""

    def __init__(self, data):
        self.data, self.place, self.fields = data, 0, Fields()

    def raw(self, name, size):
        assert self.place + size <= len(self.data), f"{name}: there are not so many bytes"
        value = self.data[self.place:self.place + size]
        self.place += size
        if size:
            self.fields.append([name, "bytes", value])
        return value

    def take(self, name, kind="i64"):
        width = WIDTHS.get(kind, 4)
        value = int.from_bytes(self.data[self.place:self.place + width], "little", signed=kind == "i64")
        self.place += width
        if kind == "text":
            value = self.data[self.place:self.place + value]
            self.place += len(value)
        self.fields.append([name, kind, value])
        return value

    def end(self):
        assert self.place == len(self.data), f"{len(self.data) - self.place} bytes are left"
        return self.fields


def read_round(reader, learner, start="round."):
    for name in ("number", "phase", "step", "steps", "k", "objective", "change"):
        reader.take(start + name, "text" if name == "phase" else "i64")
    for i in range(reader.take(start + "layout.cells", "u8")):
        cell = f"{start}layout.cell[{i}]."
        reader.take(cell + "name", "text")
        for name, kind in (("kind", "u8"), ("count", "i64"), ("bytes", "i64"), ("carried", "u8")):
            reader.take(cell + name, kind)
    for name, kind in (("memo_row_bytes", "i64"), ("carry_from", "i64"), ("writes_memo", "u8"), ("pick.key", "i64"),
                       ("pick.from", "i64"), ("pick.count", "i64"), ("pick.group", "i64"), ("part", "u8")):
        reader.take(f"{start}layout.{name}", kind)
    for i in range(reader.take(start + "keeps", "u8")):
        for name, kind in (("born", "i64"), ("bytes", "i64"), ("check", "u32")):
            reader.take(f"{start}kept[{i}].{name}", kind)
    left = reader.take(start + "model_bytes")
    for name in MODELS.get(learner, []):
        if left >= 8:
            reader.take(f"{start}model.{name}")
            left -= 8
    reader.raw(start + "model.rest", left)


def read_result(reader):
    reader.take("result.incomplete", "u8")
    for i in range(reader.take("result.tensors", "u32")):
        name = f"result.tensor[{i}]."
        reader.take(name + "name", "text")
        reader.take(name + "type", "u8")
        for j in range(reader.take(name + "rank", "u8")):
            reader.take(f"{name}shape[{j}]")
        reader.raw(name + "values", reader.take(name + "bytes"))
    for i in range(reader.take("result.numbers", "u32")):
        for name, kind in (("name", "text"), ("value", "i64"), ("whole", "u8"), ("truth", "u8")):
            reader.take(f"result.number[{i}].{name}", kind)


def read_trailer(reader):
    for i in range(reader.take("trailer.members")):
        for name, kind in (("worker", "i64"), ("slots", "u32"), ("roles", "u32")):
            reader.take(f"trailer.member[{i}].{name}", kind)
    for i in range(reader.take("trailer.pieces")):
        reader.take(f"trailer.holder[{i}]", "u32")
    for name in ("seconds", "doubled", *(f"counter[{i}]" for i in range(4))):
        reader.take(f"trailer.{name}")
    for i in range(reader.take("trailer.phases", "u32")):
        for name, kind in (("name", "text"), ("seconds", "i64"), ("rounds", "i64")):
            reader.take(f"trailer.phase[{i}].{name}", kind)
    for i in range(reader.take("trailer.steps")):
        for name in ("number", "step", "steps", "k", "objective", "change", "seconds", "phase"):
            reader.take(f"trailer.step[{i}].{name}", "text" if name == "phase" else "i64")


class Model:
    """A model: content and trailer.  The content's length is right unless it is given."""

    def __init__(self, content, trailer, length=None):
        self.content, self.trailer, self.length = content, trailer, length

    def copy(self):
        return Model(self.content.copy(), self.trailer.copy())

    def encode(self):
        content = self.content.encode()
        length = len(content) if self.length is None else self.length
        return struct.pack("<Q", length & (1 << 64) - 1) + content + self.trailer.encode()

    @property
    def state(self):
        return ["running", "done", "failed", "cancelled"][self.content.get("state")]

    @property
    def phase(self):
        """What the model itself says: a number."""
        return self.content.get("round.model.phase") if "round.model.phase" in self.content.names() else 0


def read_model(data, learner):
    length = struct.unpack_from("<Q", data)[0]
    reader = Reader(data[8:8 + length])
    reader.take("number")
    state = reader.take("state", "u8")
    if state == 0:
        read_round(reader, learner)
    elif state == 1:
        read_result(reader)
    else:
        reader.take("status")
        reader.take("message", "text")
    trailer = Reader(data[8 + length:])
    read_trailer(trailer)
    return Model(reader.end(), trailer.end())


def make_trailer(worker, pieces):
    """One that gives every piece to one worker."""
    fields = [["members", "i64", 1], ["member[0].worker", "i64", worker], ["member[0].slots", "u32", 2],
              ["member[0].roles", "u32", 7], ["pieces", "i64", pieces],
              *([f"holder[{i}]", "u32", 0] for i in range(pieces)),
              *([name, "i64", 0] for name in ("seconds", "doubled", *(f"counter[{i}]" for i in range(4)))),
              ["phases", "u32", 1], ["phase[0].name", "text", b"scan"], ["phase[0].seconds", "i64", bits(0.25)],
              ["phase[0].rounds", "i64", 1], ["steps", "i64", 1],
              *([f"step[0].{name}", "i64", 0] for name in "number step steps k objective change seconds".split()),
              ["step[0].phase", "text", b"scan"]]
    return Fields([f"trailer.{name}", kind, value] for name, kind, value in fields)


class Spec:
    """A spec: JSON and round 0."""

    def __init__(self, json_fields, first, text=None):
        self.json, self.first, self.text = json_fields, first, text

    def copy(self):
        return Spec(json.loads(json.dumps(self.json)), self.first.copy())

    def encode(self):
        text = json.dumps(self.json).encode() if self.text is None else self.text
        return struct.pack("<I", len(text)) + text + self.first.encode()


def read_spec(data):
    length = struct.unpack_from("<I", data)[0]
    fields = json.loads(data[4:4 + length])
    reader = Reader(data[4 + length:])
    read_round(reader, fields["algorithm"])
    return Spec(fields, reader.end())


def read_piece(data, makers):
    """Its head, the head of its partial, and values that nobody knows the meaning of without the layout."""
    reader = Reader(data)
    for name in ("round", "piece"):
        reader.take(name)
    reader.take("check", "u32")
    for i in range(5):
        reader.take(f"counter[{i}]")
    for i in range(makers):
        reader.take(f"maker[{i}]")
    reader.take("layout", "u32")
    for name in ("first_row", "rows"):
        reader.take(name)
    for i in range(min(4, (len(data) - reader.place) // 8)):
        reader.take(f"value[{i}]")
    reader.raw("values", len(data) - reader.place)
    return reader.end()


def read_record(data):
    reader = Reader(data)
    reader.take("worker")
    for name, kind in (("host", "text"), ("kernel", "text"), ("version", "text"), ("slots", "u32"), ("roles", "u32"),
                       ("seconds", "i64"), *((name, "i64") for name in """pid beats round rescuing deaths maps doubled
                       fetched hits bytes sent received price""".split()),
                       *((f"request[{i}]", "i64") for i in range(6)), *((f"cause[{i}]", "i64") for i in range(8)),
                       ("state", "text"), ("log", "text")):
        reader.take(name, kind)
    return reader.end()


# ---- what else learners take ---------------------------------------------------------------------------------------


def make_round(learner, words, rest, cells):
    """Round 0 of a learner that has one round only."""
    names = MODELS[learner]
    fields = [["number", "i64", 0], ["phase", "text", b"run"], ["step", "i64", 0], ["steps", "i64", 1],
              ["k", "i64", 0], ["objective", "i64", bits(math.nan)], ["change", "i64", bits(math.nan)],
              ["layout.cells", "u8", len(cells)]]
    for i, (name, kind, count, size) in enumerate(cells):
        fields += [[f"layout.cell[{i}].name", "text", name], [f"layout.cell[{i}].kind", "u8", kind],
                   [f"layout.cell[{i}].count", "i64", count], [f"layout.cell[{i}].bytes", "i64", size],
                   [f"layout.cell[{i}].carried", "u8", 0]]
    fields += [["layout.memo_row_bytes", "i64", 0], ["layout.carry_from", "i64", -1], ["layout.writes_memo", "u8", 0],
               *([f"layout.pick.{name}", "i64", 0] for name in ("key", "from", "count", "group")),
               ["layout.part", "u8", 0],
               ["keeps", "u8", 0], ["model_bytes", "i64", 8 * (len(names) + len(rest))]]
    fields += [[f"model.{name}", "i64", words.get(name, 0)] for name in names]
    fields.append(["model.rest", "bytes", struct.pack(f"<{len(rest)}d", *rest)])
    return Fields([f"round.{name}", kind, value] for name, kind, value in fields)


# ---- stores --------------------------------------------------------------------------------------------------------


class Store:
    """A store that is a folder, by its tables.  Nothing here waits for anyone: it is for a store that nobody writes to,
    and for looking into one that is in use."""

    def __init__(self, folder):
        self.folder = folder

    def open(self):
        connection = sqlite3.connect(os.path.join(self.folder, "index.db"), timeout=60, isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    def do(self, text, values=()):
        connection = self.open()
        try:
            return connection.execute(text, values).fetchall()
        finally:
            connection.close()

    def put(self, blobs, messages=()):
        """All blobs, by key, and messages, each a queue and bytes."""
        connection = self.open()
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("REPLACE INTO blobs(key, etag, time, size, data) VALUES(?, randomblob(16), 0, ?, ?)",
                                   ((key.encode(), len(data), data) for key, data in blobs.items()))
            connection.executemany("INSERT INTO messages(queue, visible, deliveries, size, data) VALUES(?, 0, 0, ?, ?)",
                                   ((queue.encode(), len(data), data) for queue, data in messages))
            connection.execute("COMMIT")
        finally:
            connection.close()

    def remove(self, key):
        self.do("DELETE FROM blobs WHERE key = ?", (key.encode(),))

    def keys(self, start):
        return [key.decode() for key, in self.do("SELECT key FROM blobs WHERE key >= ? AND key < ? ORDER BY key",
                                                 (start.encode(), start.encode() + b"\xff"))]

    def blobs(self, table="blobs"):
        """Everything, by key; of a table with all that was ever put (`remember`), a list."""
        found = [(key.decode(), data if file is None else self.body(file))
                 for key, file, data in self.do(f"SELECT key, file, data FROM {table}")]
        return dict(found) if table == "blobs" else found

    def body(self, number):
        with open(f"{self.folder}/bodies/{number:016x}", "rb") as file:
            return file.read()

    def messages(self):
        return [(queue.decode(), data) for queue, data in self.do("SELECT queue, data FROM messages ORDER BY id")]

    def remember(self):
        """From now on every blob that is put stays in the table `ever`, though it may be removed or replaced."""
        self.do("CREATE TABLE ever(key, file, data)")
        self.do("CREATE TRIGGER remembers AFTER INSERT ON blobs BEGIN "
                "INSERT INTO ever VALUES(NEW.key, NEW.file, NEW.data); END")
