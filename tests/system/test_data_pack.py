#!/usr/bin/env python3
# Labels: asan
# Seconds: 20
"""`shoal data pack`: what others read of its shards, the same bytes from threads, workers, ranks and stores, broken
images, and runs that are killed.

    test_data_pack.py PATH_TO_shoal [NAME...]

TFRecords are taken apart by hand and by protobuf, tar by tarfile, arrays by numpy, pictures by Pillow; one shard is
read by npm's tfrecord, where it is installed.
"""
import fcntl
import filecmp
import hashlib
import io
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import time

import apart
import azurite
import mpi
import peers
from processes import children, is_sanitized, wait_until

try:
    import numpy as np
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from PIL import Image
except ImportError:
    print("python3-numpy, python3-pil or python3-protobuf is not here: skipped")
    sys.exit(77)

SHOAL = os.path.abspath(sys.argv[1])
SECONDS = 600
CLASSES = ["ash", "beech", "cedar"]


def run(*words, **options):
    return subprocess.run([SHOAL, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=SECONDS, **options)


def pack(*words, code=0, says=()):
    done = run("data", "pack", *words)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    for text in says:
        assert text in done.stderr, (words, text, done.stderr)
    if code == 0 and "--workers" not in words:
        assert not done.stderr, done.stderr
    return done.stdout


def photographs(count=12, folder="trees"):
    """So many pictures in the folders of three classes, JPEG and PNG, of many sizes."""
    random = np.random.default_rng(5)
    for i in range(count):
        path = pathlib.Path(folder, CLASSES[i % 3], f"{i:03}.{'png' if i % 5 == 4 else 'jpg'}")
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse = random.integers(0, 256, (6, 7, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((90 + 11 * i % 70, 80 + 7 * i % 50), Image.BICUBIC).save(path, quality=90)
    return folder


def names_of(folder):
    return sorted(str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*") if path.is_file())


def same(a, b):
    assert names_of(a) == names_of(b), (names_of(a), names_of(b))
    for name in names_of(a):
        assert filecmp.cmp(os.path.join(a, name), os.path.join(b, name), shallow=False), name


def manifest(folder):
    return json.loads(pathlib.Path(folder, "manifest.json").read_text())


# ---- readers ---------------------------------------------------------------------------------------------------------


def crc_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


CRC = crc_table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    """Offset and bytes of each record."""
    data, at = pathlib.Path(path).read_bytes(), 0
    while at < len(data):
        length, check = struct.unpack_from("<QI", data, at)
        assert check == masked_crc(data[at:at + 8])
        body = data[at + 12:at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked_crc(body)
        yield at, body
        at += 16 + length


def example_class():
    """tf.train.Example, as TensorFlow's own .proto files define it."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="test", syntax="proto3")

    def message(name, *fields, inside=None):
        made = (inside.nested_type if inside else file.message_type).add(name=name)
        for number, (called, kind, label, of) in enumerate(fields, 1):
            made.field.add(name=called, number=number, type=kind, label=label, type_name=of)
        return made

    one, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    message("BytesList", ("value", field.TYPE_BYTES, many, None))
    message("FloatList", ("value", field.TYPE_FLOAT, many, None))
    message("Int64List", ("value", field.TYPE_INT64, many, None))
    message("Feature", *[(name, field.TYPE_MESSAGE, one, f".test.{of}")
                         for name, of in (("bytes_list", "BytesList"), ("float_list", "FloatList"),
                                          ("int64_list", "Int64List"))])
    features = message("Features", ("feature", field.TYPE_MESSAGE, many, ".test.Features.FeatureEntry"))
    entry = message("FeatureEntry", ("key", field.TYPE_STRING, one, None),
                    ("value", field.TYPE_MESSAGE, one, ".test.Feature"), inside=features)
    entry.options.map_entry = True
    message("Example", ("features", field.TYPE_MESSAGE, one, ".test.Features"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("test.Example"))


# ---- formats ---------------------------------------------------------------------------------------------------------


@apart.test
def records_are_examples():
    trees = photographs()
    out = pack(trees, "out", "--size", "40x48", "--shards", 5, "--index")
    assert out.startswith("packed     12 images into 4 shards"), out  # three each are all
    told, Example = manifest("out"), example_class()
    assert told["classes"] == CLASSES and told["images"] == told["written"] == 12 and not told["skipped"], told
    images = sorted(pathlib.Path(trees).rglob("*.*"))
    seen = 0
    for number, shard in enumerate(told["shards"]):
        path = pathlib.Path("out", shard["name"])
        assert shard["name"] == f"trees{number:02}-3.tfrec" and path.stat().st_size == shard["bytes"], shard
        assert hashlib.sha256(path.read_bytes()).hexdigest() == shard["sha256"], shard
        index = path.with_suffix(".idx").read_text().splitlines()
        for line, (at, body) in zip(index, records(path), strict=True):
            assert line == f"{at} {16 + len(body)}", line
            example = Example.FromString(body)
            feature = example.features.feature
            assert sorted(feature) == ["class", "image", "label", "one_hot_class", "size"], sorted(feature)
            label = CLASSES.index(images[seen].parent.name)
            assert list(feature["class"].int64_list.value) == [label]
            assert feature["label"].bytes_list.value[0].decode() == CLASSES[label]
            assert list(feature["one_hot_class"].float_list.value) == [float(i == label) for i in range(3)]
            assert list(feature["size"].int64_list.value) == [40, 48]
            picture = Image.open(io.BytesIO(feature["image"].bytes_list.value[0]))
            assert picture.format == "JPEG" and picture.size == (48, 40)
            # What protobuf writes of it with sorted keys is what was read: nothing is left out or said twice.
            assert example.SerializeToString(deterministic=True) == body
            seen += 1
    assert seen == 12


@apart.test
def npm_reads_a_shard():
    if not peers.npm_peer("tfrecord/package.json"):
        raise apart.Skipped("npm's tfrecord is not installed (./dev deps test)")
    pack(photographs(3), "out", "--size", "16x16", "--shards", 1)
    script = """
const tfrecord = require(process.argv[1]);
(async () => {
  const reader = await tfrecord.createReader(process.argv[2]);
  for (let e = await reader.readExample(); e; e = await reader.readExample()) {
    const f = e.features.feature;
    console.log(f.class.int64List.value[0].toString(), Buffer.from(f.label.bytesList.value[0]).toString());
  }
})();"""
    folder = os.path.dirname(peers.npm_peer("tfrecord/package.json"))
    done = subprocess.run(["node", "-e", script, folder, "out/trees00-3.tfrec"], capture_output=True, text=True,
                          timeout=SECONDS)
    assert done.stdout.split() == ["0", "ash", "1", "beech", "2", "cedar"], (done.stdout, done.stderr)


@apart.test
def tar_is_what_webdataset_reads():
    pack(photographs(7), "out", "--size", "24x24", "--format", "tar", "--shards", 2, "--chroma", "420")
    shards = manifest("out")["shards"]
    assert [shard["name"] for shard in shards] == ["trees00-4.tar", "trees01-3.tar"]
    number = 0
    for shard in shards:
        with tarfile.open(os.path.join("out", shard["name"])) as tar:
            members = tar.getmembers()
            for picture, label in zip(members[::2], members[1::2], strict=True):
                assert (picture.name, label.name) == (f"{number:09}.jpg", f"{number:09}.cls")
                assert picture.mtime == 0 and picture.mode == 0o444 and picture.uid == 0
                assert Image.open(tar.extractfile(picture)).size == (24, 24)
                assert int(tar.extractfile(label).read()) == [0, 0, 0, 1, 1, 2, 2][number]
                number += 1
        done = subprocess.run(["tar", "tf", os.path.join("out", shard["name"])], capture_output=True)
        assert done.returncode == 0 and not done.stderr, done.stderr
    assert number == 7


@apart.test
def arrays_hold_the_pixels_of_the_records():
    trees = photographs(7)
    pack(trees, "arrays", "--size", "24x20", "--format", "npy", "--encode", "raw", "--shards", 2)
    pack(trees, "records", "--size", "24x20", "--encode", "raw", "--shards", 2)
    Example, number = example_class(), 0
    for a, r in zip(manifest("arrays")["shards"], manifest("records")["shards"], strict=True):
        pixels = np.load(os.path.join("arrays", a["name"]))
        labels = np.load(os.path.join("arrays", a["name"].replace(".npy", ".classes.npy")))
        assert pixels.dtype == np.uint8 and pixels.shape[1:] == (24, 20, 3) and labels.dtype == np.int32
        for row, label, (_, body) in zip(pixels, labels, records(os.path.join("records", r["name"])), strict=True):
            feature = Example.FromString(body).features.feature
            assert feature["image"].bytes_list.value[0] == row.tobytes()
            assert feature["class"].int64_list.value[0] == label
            number += 1
    assert number == 7
    info = json.loads(run("data", "info", f"arrays/{manifest('arrays')['shards'][0]['name']}", "--json").stdout)
    assert info["rows"] == 4 and info["columns"] == 24 * 20 * 3, info


@apart.test
def a_sheet_shows_what_was_packed():
    """Pictures of one colour each: how many of each colour there are on the sheet is what was chosen."""
    colours = {"ash": (250, 20, 30), "beech": (20, 200, 60), "cedar": (30, 40, 240)}
    counts = {"ash": 30, "beech": 9, "cedar": 3}
    for name, count in counts.items():
        os.makedirs(f"trees/{name}")
        for i in range(count):
            Image.new("RGB", (24, 24), colours[name]).save(f"trees/{name}/{i:03}.png")
    pathlib.Path("trees", "ash", "x.png").write_bytes(b"")
    usual = ["trees", "--size", "16x16", "--skip-broken", "--shards", 43]  # one each, of which 25 are read
    for number, more in enumerate((["--format", "tar"], ["--format", "npy", "--encode", "raw"], ["--workers", 2])):
        out = pack(*usual, *more, f"out{number}", "--picture", f"{number}.png")
        assert f"wrote      {number}.png" in out, out
        pixels = np.asarray(Image.open(f"{number}.png").convert("RGB"), dtype=int)
        seen = {name: int((abs(pixels - colour).max(2) < 12).sum() / (2 * 96) ** 2 + 0.5)
                for name, colour in colours.items()}
        assert seen == {"ash": 18, "beech": 5, "cedar": 1}, seen
    pack(*usual, "dir:st/packed", "--picture", "store.png")
    assert filecmp.cmp("2.png", "store.png", shallow=False)
    pack(*usual, "svg", "--picture", "sheet.svg")
    text = pathlib.Path("sheet.svg").read_text()
    assert "trees: 24 of 42 packed images" in text, text[:400]
    pack(*usual[:-2], "--shards", 5, "few", "--picture", "few.svg")  # all are read, and each class has its share
    text = pathlib.Path("few.svg").read_text()
    assert [text.count(f">{name}<") for name in colours] == [30, 9, 3], text.count(">ash<")
    pack("trees/cedar", "beside", "--size", "8x8", "--picture", "beside/sheet.png")
    assert "sheet.png" in names_of("beside") and manifest("beside")["written"] == 3
    pathlib.Path("notes.png").write_text("no picture")
    pack(*usual, "other", "--picture", "notes.png", code=2, says=["--picture", "--force"])
    pack(*usual, "other", "--picture", "sheet.gif", code=2, says=["--picture", ".png"])
    pack(*usual, "other", "--picture", "notes.png", "--force")
    pack("trees/ash/x.png", "none", "--skip-broken", "--picture", "none.png", code=1,
         says=["--picture none.png: no image was packed"])


# ---- the same bytes --------------------------------------------------------------------------------------------------


@apart.test
def threads_workers_ranks_and_stores_make_the_same_bytes():
    trees = photographs(14)
    usual = [trees, "--size", "32x32", "--shards", 6, "--shuffle", 7]
    pack(*usual, "one", "--threads", 1)
    for threads in (2, 5):
        pack(*usual, f"out{threads}", "--threads", threads)
        same("one", f"out{threads}")
    pack(*usual, "away", "--workers", 2)
    same("one", "away")
    pack(*usual, "dir:st/packed", "--workers", 2, "--store", "jobs")
    assert run("store", "get", "-r", "dir:st/packed", "got").returncode == 0
    same("one", "got")
    assert run("store", "put", "-r", trees, "dir:st/photos/").returncode == 0
    pack("dir:st/photos/trees", *usual[1:], "from")
    same("one", "from")
    assert run("job", "list", "--store", "jobs").stdout.count("pack-") == 1  # --store keeps it
    for kind in [] if is_sanitized(SHOAL) else mpi.KINDS:
        done = mpi.run(kind, 3, "data", "pack", *usual, kind)
        assert done.code == 0, done
        same("one", kind)


@apart.test
def names_and_order_are_of_the_images_alone():
    trees = photographs(9)
    pack(trees, "whole", "--size", "16x16", "--shards", 2)
    files = sorted(map(str, pathlib.Path(trees).rglob("*.*")), reverse=True)
    pack(*files, *files[:2], "files", "--size", "16x16", "--shards", 2)  # in any order, and twice
    same("whole", "files")
    pack(f"{trees}/ash", "ash", "--size", "16x16", "--shards", 1)
    assert manifest("ash")["classes"] == ["ash"] and manifest("ash")["shards"][0]["name"] == "ash00-3.tfrec"
    pack(trees, "none", "--size", "16x16", "--classes", "none", "--name", "x")
    assert manifest("none")["classes"] == [] and manifest("none")["shards"][0]["name"] == "x00-1.tfrec"
    rows = "".join(f"{path.parent.name}/{path.name},{'tall' if i % 2 else 'small'}\n"
                   for i, path in enumerate(sorted(pathlib.Path(trees).rglob("*.*"))))
    pathlib.Path("classes.csv").write_text("name,class\n" + rows)
    pack(trees, "own", "--size", "16x16", "--classes", "classes.csv", "--shards", 1)
    labels = [example_class().FromString(body).features.feature["label"].bytes_list.value[0].decode()
              for _, body in records("own/trees00-9.tfrec")]
    assert labels == ["small", "tall"] * 4 + ["small"], labels


# ---- what is broken --------------------------------------------------------------------------------------------------


@apart.test
def broken_images_are_told_or_left_out():
    trees = photographs(6)
    whole = pathlib.Path(trees, "ash", "000.jpg").read_bytes()
    pathlib.Path(trees, "beech", "empty.jpg").write_bytes(b"")
    pathlib.Path(trees, "cedar", "half.jpg").write_bytes(whole[:len(whole) // 2])
    pathlib.Path(trees, "cedar", "page.png").write_bytes(b"<!DOCTYPE html><html></html>")
    usual = [trees, "--size", "16x16", "--shards", 3]
    for more in ([], ["--workers", 2]):
        pack(*usual, "out", *more, code=1, says=[f"shoal: {os.path.realpath(trees)}/beech/empty.jpg: ",
                                                     "--skip-broken leaves such images out"])
        assert not os.path.exists("out/manifest.json")
    for name, more in (("here", ["--resume"]), ("away", ["--workers", 2])):
        out = pack(*usual, name, "--skip-broken", *more)
        assert "skipped    3 images" in out, out
    same("here", "away")
    told = manifest("here")
    assert [skipped["name"] for skipped in told["skipped"]] == ["beech/empty.jpg", "cedar/half.jpg",
                                                                "cedar/page.png"], told
    assert all(skipped["why"] and skipped["name"] not in skipped["why"] for skipped in told["skipped"]), told
    assert told["images"] == 9 and told["written"] == 6
    assert [(shard["items"], shard["written"]) for shard in told["shards"]] == [(3, 3), (3, 2), (3, 1)], told["shards"]


@apart.test
def what_can_not_be_opened_is_told_or_left_out():
    """Links in a circle and to nowhere, pipes, and files of others: known when images are listed, so that workers which
    may read more leave out the same."""
    trees = photographs(6)
    for name, make in (("circle.jpg", lambda path: os.symlink("circle.jpg", path)),
                       ("nowhere.jpg", lambda path: os.symlink("/nowhere/x.jpg", path)),
                       ("pipe.png", os.mkfifo)):
        make(f"{trees}/beech/{name}")
        pack(trees, "out", "--size", "8x8", code=1, says=[f"beech/{name}: ", "; --skip-broken leaves such images out"])
        if name != "pipe.png":
            os.unlink(f"{trees}/beech/{name}")
    os.symlink("circle.jpg", f"{trees}/beech/circle.jpg")
    pathlib.Path(trees, "ash", "secret.jpg").write_bytes(b"not for everybody")
    os.chmod(f"{trees}/ash/secret.jpg", 0)
    os.chmod(".", 0o777)
    who = {"user": "nobody"} if os.geteuid() == 0 else {}
    home = os.path.abspath("home")
    env = {**os.environ, "HOME": home, "XDG_STATE_HOME": home, "XDG_CACHE_HOME": home}
    os.mkdir(home)
    os.chmod(home, 0o777)
    usual = ["data", "pack", trees, "--size", "16x16", "--shards", 3]
    done = run(*usual, "out", env=env, **who)
    assert done.returncode == 1 and "ash/secret.jpg: it may not be read (permission denied)" in done.stderr, done
    for more in ([], ["--workers", 2]):
        done = run(*usual, f"out{len(more)}", "--skip-broken", *more, env=env, **who)
        assert done.returncode == 0 and "skipped    3 images" in done.stdout, done
    same("out0", "out2")
    assert [(skipped["name"], skipped["why"]) for skipped in manifest("out0")["skipped"]] == [
        ("ash/secret.jpg", "it may not be read (permission denied)"),
        ("beech/circle.jpg", "there is no file behind this link"), ("beech/pipe.png", "it is not a plain file")]


@apart.test
def names_of_any_bytes_are_packed_or_told():
    """What is a name elsewhere may be no line of a manifest: such images are told or left out, and no others."""
    trees = photographs(6)
    shutil.copytree(trees, "plain")
    bytes_of_one = pathlib.Path(trees, "ash", "000.jpg").read_bytes()
    for name in (b"100%s%n.jpg", b"back\\slash.jpg", "ü.jpg".encode(), b"latin\xe9.jpg"):
        with open(os.path.join(os.fsencode(trees), b"beech", name), "wb") as out:
            out.write(bytes_of_one)
    pack(trees, "out", "--size", "8x8", "--shards", 3)
    assert manifest("out")["written"] == 10
    with open(os.path.join(os.fsencode(trees), b"beech", b"no\xe9.jpg"), "wb") as out:
        out.write(b"broken")
    pack(trees, "told", "--size", "8x8", code=1, says=["shoal: beech/no?.jpg: neither PNG nor JPEG; --skip-broken"])
    os.mkdir(f"{trees}/new\nline")
    for name in ("\x1b[31mred.jpg", "new\nline/x.jpg"):
        pathlib.Path(trees, name).write_bytes(bytes_of_one)
    pack(trees, "told", "--size", "8x8", code=1,
         says=["trees/?[31mred.jpg: its name has control characters", "; --skip-broken leaves such images out"])
    for more in ([], ["--workers", 2]):
        pack(trees, f"left{len(more)}", "--size", "8x8", "--shards", 3, "--skip-broken", *more)
    same("left0", "left2")
    told = manifest("left0")
    assert told["classes"] == CLASSES and told["written"] == 10, told
    assert [(skipped["name"], skipped["why"].split(",")[0]) for skipped in told["skipped"]] == [
        ("?[31mred.jpg", "its name has control characters"), ("beech/no?.jpg", "neither PNG nor JPEG"),
        ("new?line/x.jpg", "its name has control characters")], told["skipped"]


@apart.test
def wrong_input_is_told():
    trees = photographs(3)
    np.save("rows.npy", np.zeros((3, 3)))
    os.mkdir("empty")
    pathlib.Path("wrong.csv").write_text("ash/000.jpg,small,more\n")
    pathlib.Path("few.csv").write_text("ash/000.jpg,small\n")
    pathlib.Path("twice.csv").write_text("ash/000.jpg,small\nash/000.jpg,tall\n")
    for words, code, says in (
        ([trees, "out", "--size", "0x5"], 2, "--size: '0x5' should be HEIGHTxWIDTH"),
        ([trees, "out", "--size", "192"], 2, "--size: '192' should be HEIGHTxWIDTH"),
        ([trees, "out", "--size", " 5x+5"], 2, "--size: ' 5x+5' should be HEIGHTxWIDTH"),
        ([trees, "out", "--size", "5x99999999999"], 2, "--size: '5x99999999999' should be HEIGHTxWIDTH"),
        ([trees, "out", "--quality", 101], 2, "--quality"),
        ([trees, "out", "--encode", "raw", "--quality", 90], 2, "--quality is about JPEG, and --encode raw makes none"),
        ([trees, "out", "--encode", "raw", "--chroma", 420], 2, "--chroma is about JPEG"),
        ([trees, "out", "--encode", "raw", "--huffman", "best"], 2, "--huffman is about JPEG"),
        ([trees, "out", "--format", "zip"], 2, "--format"),
        ([trees, "out", "--format", "npy"], 2, "give --encode raw, too"),
        ([trees, "out", "--format", "tar", "--encode", "raw"], 2, "--format tar holds JPEG files"),
        ([trees, "out", "--format", "tar", "--index"], 2, "--index is about tfrecord"),
        ([trees, "out", "--name", "a/b"], 2, "--name: 'a/b' can't begin the name of a file"),
        ([trees, "out", "--shuffle", "x"], 2, "--shuffle"),
        ([trees, "out", "--classes", "absent.csv"], 2, "--classes: 'absent.csv' is not folders, none, or a CSV file"),
        ([trees, "out", "--classes", "wrong.csv"], 1, "wrong.csv: line 1 has 3 fields, not a name and a class"),
        ([trees, "out", "--classes", "few.csv"], 1, "few.csv: no class for beech/001.jpg"),
        ([trees, "out", "--classes", "twice.csv"], 1,
         "twice.csv: line 2: ash/000.jpg has the class small further up, and here tall"),
        (["absent", "out"], 1, "absent: can't read"),
        (["empty", "out"], 1, "empty: no file in this folder ends with"),
        (["rows.npy", "out"], 2, "rows.npy: an array is no image file"),
        ([trees, "dir:st/x", "out"], 2, "images come from folders and files, or from one place in a store"),
        ([trees, "rows.npy"], 1, "rows.npy: can't make the folder"),
        ([trees], 2, "data pack needs"),
        ([trees, trees], 2, "trees: shards would lie among the images that they are made of"),
        ([".", f"{trees}/ash/"], 2, "ash/: shards would lie among the images"),
        ([trees, ""], 2, "OUT is empty"),
        (["", "out"], 2, "the name of an image or of a folder is empty"),
    ):
        pack(*words, code=code, says=[says])
    pack(trees, "out", "--size", "16x16")
    pack(trees, "out", "--size", "16x16", code=2, says=["out already holds packed images", "--force"])
    pack(trees, "out", "--size", "08X8", "--force")
    assert manifest("out")["size"] == "8x8"
    pack(trees, "out", "--resume", code=2, says=["already holds packed images"])
    pack(trees, "other", "--resume", "--workers", 1, code=2, says=["shoal job resume"])
    assert not os.path.exists("other")
    pack("absent", "other", code=1)
    assert not os.path.exists("other")  # nothing is left of a command that was wrong


@apart.test
def what_is_replaced_leaves_nothing():
    trees = photographs(6)
    pathlib.Path("out").mkdir()
    pathlib.Path("out", "own.tfrec").write_text("is nobody else's")
    usual = [trees, "--size", "8x8", "--force", "out"]
    pack(*usual, "--shards", 3, "--index")
    told = manifest("out")
    told["shards"] += [{"name": name} for name in ("../trees/ash/000.jpg", "/etc/x.tar", "classes.csv", ".tar", 7)]
    pathlib.Path("out", "manifest.json").write_text(json.dumps(told))  # a forged one removes nothing else
    pathlib.Path("out", "classes.csv").write_text("")
    pack(*usual, "--shards", 2)
    expected = ["classes.csv", "manifest.json", "own.tfrec", "trees00-3.tfrec", "trees01-3.tfrec"]
    assert names_of("out") == expected, names_of("out")
    assert len(names_of(trees)) == 6
    pack(*usual, "--shards", 1, "--format", "npy", "--encode", "raw")
    pack(*usual, "--shards", 1, "--format", "npy", "--encode", "raw", "--classes", "none")
    assert names_of("out") == ["classes.csv", "manifest.json", "own.tfrec", "trees00-6.npy"], names_of("out")
    pathlib.Path("out", "manifest.json").write_text("no JSON")
    pack(*usual, "--shards", 1, "--workers", 1)
    assert "trees00-6.tfrec" in names_of("out") and manifest("out")["written"] == 6


@apart.test
def folders_whose_names_begin_alike_have_their_own_images():
    photographs(3, "rose")
    photographs(6, "roses")
    pack("rose", "roses", "out", "--size", "8x8", "--shards", 1)
    folder = os.path.basename(os.getcwd())
    assert [shard["name"] for shard in manifest("out")["shards"]] == [f"{folder}00-9.tfrec"], manifest("out")
    pack("rose/ash/000.jpg", "roses/ash", "few", "--size", "8x8", "--shards", 1)
    assert manifest("few")["images"] == 3 and manifest("few")["classes"] == ["ash"], manifest("few")


@apart.test
def a_terminal_sees_how_far_it_is():
    trees = photographs(12)
    for more, says in (([], b" of 12 files, "), (["--workers", "1"], b"fetching what workers made")):
        far, near = os.openpty()
        done = subprocess.run([SHOAL, "data", "pack", trees, f"out{len(more)}", "--size", "64x64", "--threads", "1",
                               *more], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=near,
                              timeout=SECONDS)
        os.close(near)
        shown = b""
        try:
            while part := os.read(far, 65536):
                shown += part
        except OSError:  # the other end is closed
            pass
        os.close(far)
        assert done.returncode == 0 and says in shown, shown


# ---- what is killed --------------------------------------------------------------------------------------------------


def parts(folder):
    return [name for name in names_of(folder) if name.endswith(".part")] if os.path.isdir(folder) else []


@apart.test
def a_run_that_was_killed_resumes():
    trees = photographs(60)
    usual = [trees, "--size", "256x256", "--shards", 30, "--huffman", "best"]
    pack(*usual, "whole")
    assert not parts("whole")
    process = subprocess.Popen([SHOAL, "data", "pack", *map(str, usual), "out", "--threads", "1", "-q"])
    wait_until(lambda: len(parts("out")) >= 3 or process.poll() is not None, SECONDS, "three shards are there")
    process.kill()
    process.wait()
    kept = parts("out")
    assert 3 <= len(kept) < 30 and not os.path.exists("out/manifest.json"), kept
    times = {name: os.stat(f"out/{name.replace('.part', '.tfrec')}").st_mtime_ns for name in kept}
    pathlib.Path("out", kept[0].replace(".part", ".tfrec")).write_bytes(b"short")  # is made again
    for name in names_of("out"):  # what the killed process was writing
        if ".tmp-" in name:
            os.unlink(os.path.join("out", name))
    pack(*usual, "out", "--resume")
    same("whole", "out")
    for name in kept[1:]:
        assert os.stat(f"out/{name.replace('.part', '.tfrec')}").st_mtime_ns == times[name], name


@apart.test
def what_a_killed_run_left_is_not_read_beside_new_shards():
    """Shards that another run has left would give some images twice to whoever reads all of a folder."""
    trees = photographs(20)
    small = [trees, "--size", "16x16", "--shards"]
    pack(*small, 5, "new")
    pack(*small, 10, "--index", "left")
    shutil.copytree("left", "out")
    os.unlink("out/manifest.json")  # as if it had been killed before the end
    left = [name.removesuffix(".tfrec") for name in names_of("out") if name.endswith(".tfrec")]
    for stem in left:
        pathlib.Path("out", stem + ".part").touch()
    temporary = [f"{left[0]}.tfrec.tmp-77-0123456789abcdef", "mine.tfrec.tmp-1-2"]
    for name in [*temporary, "mine.part"]:
        pathlib.Path("out", name).touch()
    before = names_of("out")
    for options in [[5], [5, "--resume"], [10], [10, "--format", "tar"]]:  # 10 would leave the indices
        pack(*small, *options, "out", code=2,
             says=["OUT holds shards of another run, which was not finished (trees0", "--force"])
    assert [name for name in names_of("out") if name not in temporary] == \
        [name for name in before if name not in temporary]
    shutil.copytree("out", "again")
    pack(*small, 10, "--index", "again")
    assert names_of("again") == sorted([*names_of("left"), temporary[1], "mine.part"])
    pack(*small, 5, "out", "--force")
    assert names_of("out") == sorted([*names_of("new"), temporary[1], "mine.part"] +
                                     [name for name in temporary[:1] if name in names_of("out")])


@apart.test
def a_folder_is_written_by_one_run_at_a_time():
    trees = photographs(6)
    pathlib.Path("out").mkdir()
    folder = os.open("out", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    pack(trees, "out", code=2, says=["out: another run is writing into this folder"])
    assert names_of("out") == []
    os.close(folder)
    pack(trees, "out")


@apart.test
def a_run_that_was_done_resumes():
    """Nothing is made again, and a sheet can still be drawn; what is not the same is not replaced."""
    trees = photographs(20)
    pathlib.Path(trees, "ash", "x.jpg").write_bytes(b"broken")
    usual = [trees, "--size", "32x32", "--shards", 5, "--skip-broken"]
    pack(*usual, "out", "--picture", "first.png")
    shutil.copytree("out", "before")
    times = {name: os.stat(f"out/{name}").st_mtime_ns for name in names_of("out") if name.endswith(".tfrec")}
    pack(*usual, "out", "--resume", "--picture", "again.png")
    assert filecmp.cmp("first.png", "again.png", shallow=False)
    assert all(os.stat(f"out/{name}").st_mtime_ns == times[name] for name in times)
    pack(*usual, "out", "--resume", "--quality", 50, code=2, says=["already holds packed images", "--force"])
    pathlib.Path(trees, "ash", "new.jpg").write_bytes(pathlib.Path(trees, "ash", "000.jpg").read_bytes())
    pack(*usual, "out", "--resume", code=2, says=["already holds packed images", "--force"])
    same("before", "out")
    pack(*usual, "out", "--resume", "--force")
    assert manifest("out")["written"] == 21


@apart.test
def shards_are_compared_with_their_manifest():
    """Each kind of damage is named, and --resume makes those shards again, and those that lack a file beside them."""
    trees = photographs(20)
    usual = [trees, "--size", "16x16", "--shards", 5]
    pack(*usual, "out")
    shutil.copytree("out", "whole")
    done = run("data", "verify", "out")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("out: 20 images in 5 shards, "), done
    shards = [pathlib.Path("out", shard["name"]) for shard in manifest("out")["shards"]]
    data = bytearray(shards[0].read_bytes())
    data[200] ^= 1
    shards[0].write_bytes(data)
    shards[1].unlink()
    os.truncate(shards[2], 100)
    shards[3].write_bytes(shards[3].read_bytes() + b"x")
    done = run("data", "verify", "out")
    assert done.returncode == 1 and "out: 4 of 5 shards are not as manifest.json says; " in done.stderr, done
    assert done.stdout.splitlines() == [
        f"{shards[0].name}: has other bytes than it had", f"{shards[1].name}: is not there",
        f"{shards[2].name}: is shorter than it was", f"{shards[3].name}: is longer than it was"], done.stdout
    told = json.loads(run("data", "verify", "out", "--json").stdout)
    assert [wrong["name"] for wrong in told["wrong"]] == [path.name for path in shards[:4]], told
    assert told["images"] == 4, told
    time_before = shards[4].stat().st_mtime_ns
    pack(*usual, "out", "--resume")
    same("whole", "out")
    assert shards[4].stat().st_mtime_ns == time_before
    for more, ending in ((["--index"], ".idx"), (["--format", "npy", "--encode", "raw"], ".classes.npy")):
        folder = f"out{ending}"
        pack(*usual, *more, folder)
        beside = min(pathlib.Path(folder).glob(f"*{ending}"))
        before = beside.read_bytes()
        for damaged, why in ((None, "is not there"), (before[:-1] + b"\x07", "has other bytes than it had")):
            beside.unlink()
            if damaged:
                beside.write_bytes(damaged)
            done = run("data", "verify", folder)
            assert done.returncode == 1 and done.stdout == f"{beside.name}: {why}\n", done
            pack(*usual, *more, folder, "--resume")
            assert beside.read_bytes() == before and run("data", "verify", folder).returncode == 0
    assert run("store", "put", "-r", "whole", "dir:st/there/", "--create").returncode == 0
    assert run("data", "verify", "dir:st/there/whole").returncode == 0
    for place, code, says in (("absent", 1, "absent: can't read"), (shards[0], 2, "tfrec: is not a folder")):
        done = run("data", "verify", place)
        assert done.returncode == code and says in done.stderr, done
    forged = {"shards": [{"name": "../trees/ash/000.jpg", "bytes": 1, "written": 1, "sha256": 64 * "a"}]}
    for text, says in ((None, "there is no manifest.json"), ("{}", "manifest.json is none of packed images"),
                       (json.dumps({"shards": [{"name": "x"}]}), "shard 1 lacks its name, size or SHA-256"),
                       (json.dumps(forged), "can't be the name of a blob")):
        os.makedirs("other", exist_ok=True)
        if text:
            pathlib.Path("other", "manifest.json").write_text(text)
        done = run("data", "verify", "other")
        assert done.returncode == 1 and says in done.stderr and not done.stdout, done


@apart.test
def an_upload_that_was_cut_off_goes_on():
    """As after the death of who submitted the job.  Whoever did not submit it has no say in what is uploaded, and does
    not wait for pictures that will not come."""
    trees = photographs(8)
    os.mkfifo(f"{trees}/pipe.jpg")  # is not uploaded in any case
    pack(trees, "whole", "--skip-broken")
    pack(trees, "out", "--skip-broken", "--workers", "ssh:nowhere", "--ssh", "false", "--patience", "1", "--store",
         "jobs", code=3, says=["nowhere: can't be reached"])
    job = next(word for word in run("job", "list", "--store", "jobs").stdout.split() if word.startswith("pack-"))
    below = f"dir:jobs/jobs/{job}/from/"
    names = run("store", "ls", below).stdout.split()
    assert len(names) == 8, names
    for name in names[:3]:
        assert run("store", "rm", f"{below}{name}").returncode == 0
    resume = ["job", "resume", job, "--store", "jobs", "--workers", "1"]
    done = run(*resume, env={**os.environ, "XDG_STATE_HOME": f"{os.getcwd()}/other"})
    assert done.returncode == 1 and "lacks 3 blobs that were to be uploaded" in done.stderr, done.stderr
    os.rename(trees, "moved")
    done = run(*resume)
    assert done.returncode == 1 and "trees" in done.stderr, done.stderr
    os.rename("moved", trees)
    done = run(*resume)
    assert done.returncode == 0, done.stderr
    same("whole", "out")


@apart.test
def workers_on_azure_may_be_killed():
    if not azurite.PROGRAM:
        raise apart.Skipped("azurite is not installed (./dev deps test)")
    if is_sanitized(SHOAL):
        raise apart.Skipped("nothing else would be found than without a sanitizer")
    trees = photographs(40)
    usual = ["--size", "400x400", "--shards", 20, "--huffman", "best"]
    pack(trees, *usual, "one")
    with azurite.Server(".", "plain") as server:
        server.wait()
        os.environ.update(server.variables())
        done = run("store", "put", "-r", trees, "az://devstoreaccount1/box/photos/", "--create")
        assert done.returncode == 0, done.stderr
        words = [SHOAL, "data", "pack", "az://devstoreaccount1/box/photos/trees", *map(str, usual),
                 "az://devstoreaccount1/box/packed", "--workers", "8", "--store", "az://devstoreaccount1/box/jobs",
                 "--lease", "2"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def shards_put():
            return run("store", "ls", "-r", "az://devstoreaccount1/box/jobs/").stdout.count(".tfrec")

        wait_until(lambda: shards_put() >= 2 or process.poll() is not None, SECONDS, "two shards are there")
        workers = children(process.pid)
        for pid in workers[:3]:
            os.kill(pid, signal.SIGKILL)
        assert len(workers) == 8 and shards_put() < 20, "no worker was killed in the middle"
        out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, err
        assert run("store", "get", "-r", "az://devstoreaccount1/box/packed", "got").returncode == 0
        done = run("data", "speed", "az://devstoreaccount1/box/packed", "az://devstoreaccount1/box/photos/trees",
                   "--batch-sizes", "3", "--batches", "2", "--repeat", "1", "--json")
        told = json.loads(done.stdout)["sources"]
        assert [(source["kind"], source["files"]) for source in told] == [("tfrecord", 20), ("images", 40)], done
    same("one", "got")


apart.main(at_once=3)
