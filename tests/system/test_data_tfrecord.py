#!/usr/bin/env python3
"""TFRecord files of others and of our own, read by `shoal data info|head|convert` and by learners.

    test_data_tfrecord.py PATH_TO_shoal [NAME...]

Records are written by protobuf, by npm's tfrecord where it is installed, by TensorFlow (the shared vectors) and by
`shoal data pack`; pictures by Pillow.  What is expected is computed by numpy.
"""
import filecmp
import gzip
import io
import json
import os
import pathlib
import struct
import subprocess
import sys

import apart
import mpi
import peers

try:
    import numpy as np
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from PIL import Image
except ImportError:
    print("python3-numpy, python3-pil or python3-protobuf is not here: skipped")
    sys.exit(77)

SHOAL = os.path.abspath(sys.argv[1])
SHARED = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data"
SECONDS = 120


def run(*words, **options):
    return subprocess.run([SHOAL, *map(str, words)], capture_output=True, timeout=SECONDS, **options)


def convert(path, *options, **settings):
    done = run("data", "convert", path, "out.npy", "--force", *options, **settings)
    assert done.returncode == 0, done.stderr
    return np.load("out.npy")


def info(path, *options):
    done = run("data", "info", path, "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(path, *says, options=()):
    done = run("data", "convert", path, "never.npy", *options)
    assert done.returncode in (1, 2) and not os.path.exists("never.npy"), done
    for text in says:
        assert text in done.stderr.decode(), (text, done.stderr)


def example_class():
    """tf.train.Example as example.proto and feature.proto have it."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="records.proto", package="records", syntax="proto3")

    def message(name, *fields, within=None):
        made = (within or file.message_type if within is None else within.nested_type).add(name=name)
        for number, (called, kind, label, of) in enumerate(fields, 1):
            made.field.add(name=called, number=number, type=kind, label=label, type_name=of)
        return made

    one, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    for name, kind in [("BytesList", field.TYPE_BYTES), ("FloatList", field.TYPE_FLOAT),
                       ("Int64List", field.TYPE_INT64)]:
        message(name, ("value", kind, many, None))
    feature = message("Feature", *[(name, field.TYPE_MESSAGE, one, f".records.{of}")
                                   for name, of in [("bytes_list", "BytesList"), ("float_list", "FloatList"),
                                                    ("int64_list", "Int64List")]])
    feature.oneof_decl.add(name="kind")
    for part in feature.field:
        part.oneof_index = 0
    features = message("Features", ("feature", field.TYPE_MESSAGE, many, ".records.Features.FeatureEntry"))
    entry = message("FeatureEntry", ("key", field.TYPE_STRING, one, None),
                    ("value", field.TYPE_MESSAGE, one, ".records.Feature"), within=features)
    entry.options.map_entry = True
    message("Example", ("features", field.TYPE_MESSAGE, one, ".records.Features"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("records.Example"))


Example = example_class()


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def frame(body):
    length = struct.pack("<Q", len(body))
    return length + struct.pack("<I", crc32c(length)) + body + struct.pack("<I", crc32c(body))


def record(**features):
    """A record by protobuf; '__' in a name is a '/'."""
    made = Example()
    for name, values in features.items():
        values = values if isinstance(values, (list, tuple)) else [values]
        feature = made.features.feature[name.replace("__", "/")]
        kind = {bytes: feature.bytes_list, float: feature.float_list, int: feature.int64_list}[type(values[0])]
        kind.value.extend(values)
    return frame(made.SerializeToString())


def picture(random, height, width, kind="PNG", mode="RGB"):
    image = Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8)).convert(mode)
    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue(), np.array(image)


@apart.test
def tables_by_protobuf():
    random = np.random.default_rng(1)
    floats, whole = random.standard_normal((50, 4)).astype("f4"), random.integers(-2**40, 2**40, (50, 2))
    rows = [record(x=list(map(float, f)), n=list(map(int, n))) for f, n in zip(floats, whole)]
    pathlib.Path("t.tfrecord").write_bytes(b"".join(rows))
    expected = np.hstack([whole.astype("f8"), floats.astype("f8")])
    assert np.array_equal(convert("t.tfrecord"), expected)
    assert info("t.tfrecord")["names"] == ["n.1", "n.2", "x.1", "x.2", "x.3", "x.4"]
    only = convert("t.tfrecord", "--columns", "x.3,n.1")
    assert np.array_equal(only, expected[:, [4, 0]])
    pathlib.Path("x").write_bytes(b"".join(record(x=list(map(float, f))) for f in floats))
    assert convert("x").dtype == np.float32 and np.array_equal(convert("x"), floats)
    pathlib.Path("n").write_bytes(b"".join(record(n=list(map(int, n))) for n in whole))
    assert convert("n").dtype == np.int64 and np.array_equal(convert("n"), whole)
    pathlib.Path("t.gz").write_bytes(gzip.compress(b"".join(rows)))
    assert np.array_equal(convert("t.gz"), expected)
    assert np.array_equal(convert("-", stdin=open("t.gz", "rb")), expected)


@apart.test
def pictures_of_other_tools():
    random = np.random.default_rng(2)
    for kind, mode, names in [("PNG", "RGB", ("image/encoded", "image/class/label")),
                              ("JPEG", "RGB", ("image", "class")), ("PNG", "L", ("picture", "label")),
                              ("JPEG", "L", ("image", "label"))]:
        made = [picture(random, 13, 17, kind, mode) for _ in range(9)]
        body = [record(**{names[0].replace("/", "__"): data, names[1].replace("/", "__"): i % 3})
                for i, (data, _) in enumerate(made)]
        pathlib.Path("p.tfrec").write_bytes(b"".join(body))
        images = np.stack([np.array(Image.open(io.BytesIO(data))) for data, _ in made])
        assert info("p.tfrec")["shape"] == list(images.shape[1:]), info("p.tfrec")
        found = convert("p.tfrec", "--drop-column", "label")
        if kind == "PNG":
            assert found.dtype == np.uint8 and np.array_equal(found, images)
        else:  # decoders may differ a little
            assert found.shape == images.shape and np.abs(found.astype(int) - images).max() <= 4
        assert list(convert("p.tfrec", "--columns", "label").ravel()) == [i % 3 for i in range(9)]
    grey, colour = picture(random, 5, 4, mode="L"), picture(random, 5, 4)
    pathlib.Path("both").write_bytes(record(image=grey[0]) + record(image=colour[0]))
    assert np.array_equal(convert("both"), np.stack([np.repeat(grey[1][:, :, None], 3, 2), colour[1]]))


@apart.test
def what_pack_writes():
    random = np.random.default_rng(3)
    for i in range(12):
        path = pathlib.Path("trees", ["ash", "beech", "cedar"][i % 3], f"{i:02}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(random, 20 + i, 30)[0])
    assert run("data", "pack", "trees", "packed", "--size", "12x10", "--shards", 3, "--encode", "raw").returncode == 0
    assert run("data", "pack", "trees", "array", "--size", "12x10", "--shards", 1, "--encode", "raw", "--format",
               "npy").returncode == 0
    shards = sorted(pathlib.Path("packed").glob("*.tfrec"))
    assert len(shards) == 3
    pathlib.Path("all.tfrec").write_bytes(b"".join(shard.read_bytes() for shard in shards))
    array = np.load(next(path for path in pathlib.Path("array").glob("*.npy") if "classes" not in path.name))
    assert np.array_equal(convert("all.tfrec", "--drop-column", "label"), array)
    assert np.array_equal(convert("packed", "--drop-column", "label"), array)
    # A learner gets the same rows from either, and the names of folders as classes.
    np.save("array.npy", array)
    for source in ("all.tfrec", "array.npy"):
        assert run("kmeans", source, "-k", 3, "--centres", f"{source}.c.npy").returncode == 0
    assert pathlib.Path("all.tfrec.c.npy").read_bytes() == pathlib.Path("array.npy.c.npy").read_bytes()
    done = run("bayes", "all.tfrec", "--model", "m.safetensors")
    assert done.returncode == 0 and b"ash, beech, cedar" in done.stdout, done
    done = run("predict", "m.safetensors", "all.tfrec", "--score")
    assert done.returncode == 0 and b"beech: 4 rows" in done.stdout, done
    # Rows are dealt out by class, and stay images.
    done = run("data", "split", "all.tfrec", "train.npy", "test.npy", "--test", 3, "--stratify", "label",
               "--drop-column", "label")
    assert done.returncode == 0 and np.load("test.npy").shape == (3, 12, 10, 3), done
    done = run("kmeans", "all.tfrec", "-k", 3, "--picture", "c.png", "--picture-scale", 1)
    assert done.returncode == 0 and b"left out 'label'" in done.stdout + done.stderr, done
    assert Image.open("c.png").mode == "RGB"  # 12x10x3 is no square: the file told


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 255
    path.write_bytes(data)


@apart.test
def a_folder_of_files_is_one_data_set():
    """Files are read one by one: what is cut off in one takes nothing from the next, and each is named."""
    rows = [record(x=[float(i), float(-i)]) for i in range(9)]
    size = len(rows[0])
    parts = {"a.tfrecord-00000": rows[:4], "b.tfrec": [], "c.tfrec": rows[4:6], "d/e.tfrec.gz": rows[6:]}
    os.makedirs("many/d")
    for name, part in parts.items():
        data = b"".join(part)
        pathlib.Path("many", name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    for name in ("a.idx", "b.tfrec.idx", "c.tfrec.tmp-7-ab", "x.npy", ".h.tfrec"):
        pathlib.Path("many", name).write_bytes(b"not to be read")
    expected = np.array([[i, -i] for i in range(9)], np.float32)
    assert np.array_equal(convert("many"), expected)
    assert "in 4 files" in info("many/")["detail"], info("many/")
    np.save("many.npy", expected)
    for more in ([], ["--workers", 2]):
        for source in ("many", "many.npy"):
            assert run("kmeans", source, "-k", 2, "--centres", f"{source}.c.npy", "--force", *more).returncode == 0
        assert filecmp.cmp("many.c.npy", "many.npy.c.npy", shallow=False), more
    flip(pathlib.Path("many/a.tfrecord-00000"), size + 14)
    refused("many", f"many/a.tfrecord-00000: record 2, byte {size}: it is damaged")
    os.truncate("many/c.tfrec", 2 * size - 5)
    refused("many", f"many/c.tfrec: record 2, byte {size}: the file is cut off", "and the other files")
    done = run("data", "convert", "many", "left.npy", "--skip-broken")
    told = done.stderr.decode()
    assert done.returncode == 0 and np.array_equal(np.load("left.npy"), np.delete(expected, [1, 5], 0)), done
    assert told.startswith("shoal: many: 2 broken records were left out: many/a.tfrecord-00000: record 2, byte "), told
    assert f"; many/c.tfrec: record 2, byte {size}: the file is cut off" in told, told
    pathlib.Path("many/c.tfrec").write_bytes(record(x=1.0))
    refused("many", 'many/c.tfrec: record 1, byte 0: "x" has 1 value, and in record 1 of a.tfrecord-00000 it has 2',
            options=["--skip-broken"])
    pathlib.Path("many/d/e.part").touch()
    refused("many", "many/d: images are still being packed here, or that was cut off (e.part is there, and no")
    pathlib.Path("many/d/manifest.json").touch()
    refused("many", '"x" has 1 value', options=["--skip-broken"])
    os.mkdir("none")
    pathlib.Path("none/b.tfrec.idx").touch()
    refused("none", "none: can't read: it is a folder, and no names in it have .tfrec in them")
    pathlib.Path("none/b.tfrec").touch()
    refused("none", "none: there is no record")
    refused("many", "--rows, --cols and --type are for raw files", options=["--cols", 2, "--type", "f4"])


@apart.test
def npm_writes_records():
    package = peers.npm_peer("tfrecord/package.json")
    if not package:
        raise apart.Skipped("npm's tfrecord is not installed (./dev deps test)")
    script = """
const tfrecord = require(process.argv[1]);
(async () => {
  const writer = await tfrecord.createWriter(process.argv[2]);
  for (let i = 0; i < 5; i++) {
    const builder = tfrecord.createBuilder();
    builder.setInteger('count', i - 2);
    builder.setFloats('x', [i / 2, -i]);
    builder.setBinary('word', new Uint8Array([97 + i]));
    await writer.writeExample(builder.releaseExample());
  }
  await writer.close();
})();"""
    done = subprocess.run(["node", "-e", script, os.path.dirname(package), "npm.tfrecord"], capture_output=True,
                          text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    expected = np.array([[i - 2, i / 2, -i] for i in range(5)], "f8")
    assert np.array_equal(convert("npm.tfrecord", "--drop-column", "word"), expected)
    refused("npm.tfrecord", 'column 2, "word", is text')


@apart.test
def tensorflow_wrote_records():
    vectors = SHARED / "vectors" / "tfrecord"
    if not vectors.is_dir():
        raise apart.Skipped(f"{vectors} is not here")
    about = info(vectors / "example.tfrecord")
    assert about["rows"] == 4 and about["names"][0] == "x_byte" and about["text_columns"] == [1], about
    found = convert(vectors / "example.tfrecord", "--drop-column", "x_byte")
    numbers = np.arange(40).reshape(4, 10)
    assert np.array_equal(found, np.hstack([numbers, 10 * numbers]))
    assert "without the lists" in info(vectors / "sequence_example.tfrecord")["detail"]
    done = run("data", "info", *sorted(vectors.glob("*.gz")), "--json")
    taxis = [json.loads(line) for line in done.stdout.splitlines()]
    assert [taxi["rows"] for taxi in taxis] == [424, 425, 424, 424] and taxis[0]["columns"] == 18, taxis
    done = run("logistic", sorted(vectors.glob("*.gz"))[0], "--target", "payment_type", "--missing", "mean",
               "--columns", "fare,tips,trip_miles", "--standardise")
    assert done.returncode == 0 and b"Cash" in done.stdout, done


@apart.test
def damage_is_told():
    rows = [record(x=float(i)) for i in range(3)]
    whole, second = b"".join(rows), len(rows[0])
    pathlib.Path("d.tfrec").write_bytes(whole[:second + 14] + b"\xff" + whole[second + 15:])
    refused("d.tfrec", f"d.tfrec: record 2, byte {second}: it is damaged")
    pathlib.Path("d.tfrec").write_bytes(whole[:second] + b"\1" + whole[second + 1:])
    refused("d.tfrec", f"d.tfrec: record 2, byte {second}: its length has another checksum")
    pathlib.Path("d.tfrec").write_bytes(whole[:-5])
    refused("d.tfrec", "d.tfrec: record 3, byte", "cut off")
    random = np.random.default_rng(4)
    one, other = picture(random, 8, 9)[0], picture(random, 9, 8)[0]
    pathlib.Path("s.tfrec").write_bytes(record(image=one) + record(image=other))
    refused("s.tfrec", "record 2", "9 x 8 pixels, and that of record 1 has 8 x 9")
    pathlib.Path("s.tfrec").write_bytes(record(image=one) + record(image=one[:-30]))
    refused("s.tfrec", "s.tfrec: record 2, byte")


@apart.test
def damaged_records_can_be_left_out():
    """Learners find what they find in the others, here, on workers and on ranks, and a line says what is missing."""
    random = np.random.default_rng(7)
    rows = [record(x=list(map(float, row))) for row in random.standard_normal((60, 3))]
    size = len(rows[0])

    def turned(frame, at):
        return frame[:at] + bytes([frame[at] ^ 255]) + frame[at + 1:]

    broken = [turned(row, 20) if i in (0, 7, 8, 30, 41) else row for i, row in enumerate(rows)]
    broken[50] = turned(broken[50], 2)  # of its length
    pathlib.Path("b.tfrec").write_bytes(b"".join(broken))
    pathlib.Path("g.tfrec").write_bytes(b"".join(rows[i] for i in range(50) if i not in (0, 7, 8, 30, 41)))
    says = (f"shoal: b.tfrec: 6 broken records were left out: record 1, byte 0: it is damaged: its bytes have another "
            f"checksum; record 8, byte {7 * size}: it is damaged: its bytes have another checksum; record 9, byte "
            f"{8 * size}: it is damaged: its bytes have another checksum; and 2 more; record 51, byte {50 * size}: its "
            f"length has another checksum, so neither it nor what follows can be read\n")
    refused("b.tfrec", "b.tfrec: record 51, byte")
    for verb, out in (("info", b"rows      45; 6 broken records left out\n"), ("head", b"\t")):
        done = run("data", verb, "b.tfrec", "--skip-broken")
        assert done.returncode == 0 and out in done.stdout and done.stderr.decode() == says, done
    assert info("b.tfrec", "--skip-broken")["records_skipped"] == 6
    assert np.array_equal(convert("b.tfrec", "--skip-broken"), convert("g.tfrec"))
    assert run("data", "shuffle", "b.tfrec", "s.npy", "--skip-broken").stderr.decode() == says
    usual = ["-k", 3, "--seed", 1]
    assert run("kmeans", "g.tfrec", *usual, "--model", "g.safetensors").returncode == 0
    for number, more in enumerate(([], ["--threads", 1], ["--workers", 2])):
        done = run("kmeans", "b.tfrec", *usual, *more, "--skip-broken", "--centres", f"{number}.npy")
        assert done.returncode == 0 and says in done.stderr.decode() and b"6 broken records" in done.stdout, done
        assert run("kmeans", "g.tfrec", *usual, "--centres", "g.npy", "--force").returncode == 0
        assert filecmp.cmp(f"{number}.npy", "g.npy", shallow=False), number
    for kind in mpi.KINDS:
        done = mpi.run(kind, 3, "kmeans", "b.tfrec", *usual, "--skip-broken", "--centres", f"{kind}.npy")
        assert done.code == 0 and done.err.count("broken records") == 1, done
        assert filecmp.cmp(f"{kind}.npy", "g.npy", shallow=False), kind
    done = run("plan", "kmeans", "b.tfrec", "-k", 3, "--skip-broken", "--workers", "none")  # before it measures
    assert b"unknown option" not in done.stderr and b"damaged" not in done.stderr, done
    done = run("predict", "g.safetensors", "b.tfrec", "--skip-broken", "--labels", "l.npy")
    assert done.returncode == 0 and says in done.stderr.decode() and len(np.load("l.npy")) == 45, done
    pathlib.Path("x.csv").write_text("1,2\n")
    refused("x.csv", "--skip-broken is for TFRecord, and this is text", options=["--skip-broken"])


apart.main(at_once=2)
