#!/usr/bin/python3
# Labels: quick asan
"""`shoal data patches` against numpy and Pillow, which read the same images by themselves.

    test_patches.py PATH_TO_shoal [NAME...]

Pictures of every kind are written here, by Pillow or by hand, and every patch must be the square of its image that a
search of all squares finds. Whitening must be numpy's. Parts that need ../shared/data say when it is absent.
"""
import io
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time
import zlib

import apart

try:
    import numpy as np
    from PIL import Image
except ImportError:
    print("python3-numpy or python3-pil is not here: skipped")
    sys.exit(77)

SHOAL = os.path.abspath(sys.argv[1])
SHARED = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data"
SECONDS = 600
WEIGHTS = np.array([19595, 38470, 7471])
KEPT = [162, 315, 41, 395, 391, 113, 309, 202]  # the first values of eight patches


def run(*words, **options):
    return subprocess.run([SHOAL, "data", "patches", *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=SECONDS, **options)


def cut(*words):
    """The patches, in the folder we are in."""
    done = run(*words, "out.npy", "--quiet")
    assert done.returncode == 0 and done.stdout == "" and done.stderr == "", (words, done.returncode, done.stderr)
    array = np.load("out.npy")
    os.unlink("out.npy")
    return array


def fails(code, says, *words):
    before = sorted(os.listdir("."))
    done = run(*words)
    lines = done.stderr.splitlines()
    assert done.returncode == code, (words, done.returncode, done.stderr)
    assert lines[0].startswith("shoal: ") and len(lines) == (2 if code == 2 else 1), (words, done.stderr)
    for text in says:
        assert text in lines[0], (words, text, done.stderr)
    assert sorted(os.listdir(".")) == before, (words, "left files")


def shares(array):
    """Values as shares of white, as the program is to have them."""
    return array if array.dtype.kind == "f" else array.astype(
        np.float64) / (1 if array.dtype == bool else np.iinfo(array.dtype).max)


def grey(array):
    """The grey of height x width x 3, in float64 and divided once."""
    if array.ndim == 2:
        return shares(array).astype(np.float64)
    white = 1 if array.dtype.kind == "f" else np.iinfo(array.dtype).max
    parts = array.astype(np.float64) * WEIGHTS
    return (parts[..., 0] + parts[..., 1] + parts[..., 2]) / (65536.0 * white)


def squares(image, size):
    """All squares of height x width [x channels] as rows."""
    windows = np.lib.stride_tricks.sliding_window_view(image, (size, size), axis=(0, 1))
    if image.ndim == 3:
        windows = np.moveaxis(windows, 2, -1)
    return windows.reshape(windows.shape[0] * windows.shape[1], -1)


def all_occur(patches, images, size):
    known = {row.tobytes() for image in images for row in squares(image.astype(patches.dtype), size)}
    missing = [i for i, row in enumerate(patches) if row.tobytes() not in known]
    assert not missing, f"{len(missing)} of {len(patches)} patches are in no image, such as {missing[0]}"


def picture(height=20, width=23, channels=3, dtype=np.uint8, seed=1):
    shape = (height, width, channels) if channels else (height, width)
    return np.random.default_rng(seed).integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def whole(path, *options):
    """All of a square image as one patch: what was decoded."""
    side = Image.open(path).size[0]
    return cut(path, "--size", side, "--count", 1, "--type", "float64", *options)[0]


# ---- PNG -------------------------------------------------------------------------------------------------------------

CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
PASSES = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2),
          (1, 0, 2, 1)]  # top, left, steps


def chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def packed(rows, depth):
    """Rows of samples as PNG stores them, each behind a filter byte of 0."""
    out = b""
    for row in rows:
        if depth == 16:
            out += b"\0" + row.astype(">u2").tobytes()
        elif depth == 8:
            out += b"\0" + row.astype(np.uint8).tobytes()
        else:
            bits = np.unpackbits(row.astype(np.uint8).reshape(-1, 1), axis=1)[:, 8 - depth:]
            out += b"\0" + np.packbits(bits.reshape(-1)).tobytes()
    return out


def write_png(path, samples, kind, depth, interlaced=False, palette=None, transparent=None):
    height, width = samples.shape[:2]
    flat = samples.reshape(height, width, CHANNELS[kind])
    parts = [flat[top::down, left::right] for top, left, down, right in PASSES] if interlaced else [flat]
    body = b"".join(packed(part.reshape(part.shape[0], -1), depth) for part in parts if part.size)
    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, int(interlaced))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head))
        if palette is not None:
            file.write(chunk(b"PLTE", palette.astype(np.uint8).tobytes()))
        if transparent is not None:
            file.write(chunk(b"tRNS", transparent))
        file.write(chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b""))


def over_white(levels, opacity, white):
    """Rounded to the nearest level, in exact integers."""
    levels, opacity = levels.astype(np.int64), opacity.astype(np.int64)
    return (2 * (levels * opacity + white * (white - opacity)) + white) // (2 * white)


@apart.test
def every_kind_of_png_is_decoded_as_it_was_made():
    generator = np.random.default_rng(3)
    for kind, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}.items():
        for depth in depths:
            for interlaced in (False, True):
                side, white = 13, 2 ** depth - 1
                samples = generator.integers(0, white + 1, (side, side, CHANNELS[kind]))
                palette = generator.integers(0, 256, (2 ** depth, 3)) if kind == 3 else None
                write_png("a.png", samples, kind, depth, interlaced, palette)
                if kind == 3:
                    expected = palette[samples[..., 0]] / 255
                elif kind in (4, 6):
                    expected = over_white(samples[..., :-1], samples[..., -1:], white) / white
                else:
                    expected = samples / white if depth >= 8 else (samples * (255 // white)) / 255
                expected = np.broadcast_to(expected, (side, side, 3))
                got = whole("a.png", "--colour").reshape(side, side, 3)
                assert np.array_equal(got, expected), (kind, depth, interlaced, np.abs(got - expected).max())
                read = Image.open("a.png")
                # Pillow must agree on the file, but rounds grey with alpha and cuts 16 bits
                if depth <= 8 and kind != 4:
                    white_paper = Image.new("RGBA", read.size, "white")
                    white_paper.alpha_composite(read.convert("RGBA"))
                    theirs = np.asarray(white_paper.convert("RGB")) / 255
                    assert np.abs(got - theirs).max() <= 1.01 / 255, (kind, depth, interlaced)
                    assert kind == 6 or np.array_equal(got, theirs), (kind, depth, interlaced)


@apart.test
def a_colour_that_stands_for_nothing_is_white():
    samples = np.random.default_rng(4).integers(0, 4, (9, 9, 1))
    write_png("a.png", samples, 0, 2, transparent=struct.pack(">H", 2))
    expected = np.where(samples == 2, 255, samples * 85)[..., 0] / 255
    assert np.array_equal(whole("a.png").reshape(9, 9), expected)
    palette = np.array([[10, 20, 30], [40, 50, 60], [200, 100, 0], [7, 8, 9]])
    write_png("a.png", samples, 3, 2, palette=palette, transparent=bytes([255, 0, 128]))
    opacity = np.array([255, 0, 128, 255])[samples]
    expected = over_white(palette[samples[..., 0]], opacity, 255) / 255
    assert np.array_equal(whole("a.png", "--colour").reshape(9, 9, 3), expected)
    colours = np.random.default_rng(5).integers(0, 2, (9, 9, 3)) * 60000
    write_png("a.png", colours, 2, 16, transparent=struct.pack(">HHH", 60000, 0, 0))
    clear = (colours == [60000, 0, 0]).all(axis=-1, keepdims=True)
    assert clear.any()
    assert np.array_equal(whole("a.png", "--colour").reshape(9, 9, 3), np.where(clear, 65535, colours) / 65535)


@apart.test
def png_that_pillow_wrote_is_what_pillow_reads():
    array = picture(17, 17)
    for mode in ("1", "L", "P", "RGB", "RGBA", "LA", "I;16"):
        source = Image.fromarray(picture(17, 17, 0,
                                         np.uint16)) if mode == "I;16" else Image.fromarray(array).convert(mode)
        source.save("a.png")
        got = whole("a.png", "--colour").reshape(17, 17, 3)
        if mode == "I;16":
            expected = np.asarray(Image.open("a.png")).astype(np.float64)[..., None] / 65535
        else:
            expected = np.asarray(Image.open("a.png").convert("RGBA").convert("RGB")) / 255
        assert np.array_equal(got, np.broadcast_to(expected, got.shape)), mode


# ---- JPEG ------------------------------------------------------------------------------------------------------------


@apart.test
def jpeg_is_what_pillow_reads():
    smooth = np.asarray(Image.fromarray(picture(6, 6)).resize((41, 41), Image.BICUBIC))
    for what, options in {"plain": {}, "progressive": {"progressive": True}, "fine": {"quality": 95, "subsampling": 0},
                          "half": {"subsampling": 1}, "optimised": {"optimize": True}}.items():
        Image.fromarray(smooth).save("a.jpg", **options)
        colour = whole("a.jpg", "--colour").reshape(41, 41, 3)
        assert np.array_equal(colour, np.asarray(Image.open("a.jpg")) / 255), what  # the same library in both
        read = Image.open("a.jpg")
        read.draft("L", read.size)
        assert read.mode == "L" and np.array_equal(whole("a.jpg").reshape(41, 41), np.asarray(read) / 255), what
        assert np.abs(grey(np.asarray(Image.open("a.jpg"))) - whole("a.jpg").reshape(41, 41)).max() < 4 / 255, what
    Image.fromarray(smooth).convert("L").save("a.jpg")
    expected = np.asarray(Image.open("a.jpg")) / 255
    assert np.array_equal(whole("a.jpg").reshape(41, 41), expected)
    assert np.array_equal(whole("a.jpg", "--colour").reshape(41, 41, 3), np.repeat(expected[..., None], 3, axis=2))
    Image.fromarray(smooth).convert("CMYK").save("a.jpg")
    inks = Image.open("a.jpg")
    assert inks.mode == "CMYK"
    theirs = np.asarray(inks.convert("RGB")) / 255
    assert np.array_equal(whole("a.jpg", "--colour").reshape(41, 41, 3), theirs)
    assert np.array_equal(whole("a.jpg").reshape(41, 41), grey(np.asarray(inks.convert("RGB"))))


# ---- patches ---------------------------------------------------------------------------------------------------------


@apart.test
def every_patch_is_a_square_of_an_image():
    os.mkdir("images")
    os.mkdir("images/below")
    arrays = [picture(20, 31, 3, seed=1), picture(9, 40, 3, seed=2), picture(33, 12, 3, seed=3)]
    for name, array in zip(("b.png", "below/c.PNG", "a.png"), arrays):
        Image.fromarray(array).save(f"images/{name}", format="PNG")
    for size in (1, 5, 8):
        for kind in ("float32", "float64"):
            patches = cut("images", "--size", size, "--count", 700, "--type", kind)
            assert patches.shape == (700, size * size) and patches.dtype == kind
            all_occur(patches, [grey(array) for array in arrays], size)
            patches = cut("images", "--size", size, "--count", 700, "--type", kind, "--colour")
            assert patches.shape == (700, 3 * size * size)
            all_occur(patches, [shares(array) for array in arrays], size)
    mixed = cut("images", "--colour", "--count", 6000, "--size", 8, "--type", "float64")
    for array in arrays:  # each image has its third, whatever its size, and each place its share
        own = {row.tobytes(): i for i, row in enumerate(squares(shares(array), 8))}
        places = np.array([own[row.tobytes()] for row in mixed if row.tobytes() in own])
        assert 1800 < len(places) < 2200, len(places)
        counts = np.bincount(places, minlength=len(own))
        expected = len(places) / len(own)
        assert counts.min() > 0 and ((counts - expected) ** 2 / expected).sum() < len(own) + 6 * (2 * len(own)) ** 0.5


@apart.test
def arrays_are_images_too():
    generator = np.random.default_rng(7)
    for dtype in ("u1", "u2", "f4", "f8", ">f4", ">u2", "b1"):
        many = (generator.standard_normal((4, 15, 12)) * 5).astype(dtype) if dtype[-2] == "f" else \
            generator.integers(0, 2 if dtype == "b1" else 250, (4, 15, 12)).astype(dtype)
        native = many.astype(many.dtype.newbyteorder("="))
        for fortran in (False, True):
            np.save("in.npy", np.asfortranarray(many) if fortran else many)
            all_occur(cut("in.npy", "--size", 6, "--count", 500, "--type", "float64"),
                      [grey(image) for image in native], 6)
        np.save("in.npy", many[0])
        all_occur(cut("in.npy", "--size", 6, "--count", 100, "--type", "float64"), [grey(native[0])], 6)
    colours = generator.random((3, 14, 13, 3)).astype("f4")
    np.save("in.npy", colours)
    all_occur(cut("in.npy", "--size", 6, "--count", 300, "--colour"), list(colours), 6)
    all_occur(cut("in.npy", "--size", 6, "--count", 300, "--type", "float64"), [grey(image) for image in colours], 6)
    np.save("in.npy", colours[0])
    all_occur(cut("in.npy", "--size", 6, "--count", 90, "--colour"), [colours[0]], 6)
    np.save("in.npy", colours[:1, :, :, :1])
    all_occur(cut("in.npy", "--size", 6, "--count", 90), [colours[0, :, :, 0]], 6)


@apart.test
def the_same_seed_gives_the_same_bytes():
    os.mkdir("images")
    for i in range(9):
        Image.fromarray(picture(30 + i, 40 - i, 3, seed=i)).save(f"images/{i}.png")
    options = ("--count", 2000, "--size", 5, "--colour", "--whiten", "--centre", "--range", "-1:1")
    first = cut("images", *options)
    for threads in (1, 2, 5):
        assert cut("images", *options, "--threads", threads).tobytes() == first.tobytes(), threads
    assert cut("images", *options, "--seed", 1).tobytes() != first.tobytes()
    # Other names in the same order, and files made in another order, are the same images.
    os.mkdir("others")
    for i in (4, 2, 8, 0, 1, 3, 5, 6, 7):
        os.link(f"images/{i}.png", f"others/x{i}.png")
    assert cut("others", *options).tobytes() == first.tobytes()
    assert cut(*(f"images/{i}.png" for i in range(9)), *options).tobytes() == first.tobytes()
    # Draws are a part of every result: these bytes may never change.
    np.save("in.npy", np.arange(600, dtype="f4").reshape(2, 15, 20))
    corners = cut("in.npy", "--count", 8, "--size", 4)[:, 0].astype(int).tolist()
    assert corners == KEPT, corners
    # More patches leave those before them as they were.
    assert cut("in.npy", "--count", 20, "--size", 4)[:8, 0].astype(int).tolist() == corners


# ---- what is done to them --------------------------------------------------------------------------------------------


def spread(values, low, high):
    reach = 3 * values.std(ddof=1)
    return (np.clip(values - values.mean(), -reach, reach) / reach + 1) / 2 * (high - low) + low


@apart.test
def ranges_are_those_of_the_notes():
    np.save("in.npy", np.random.default_rng(8).standard_normal((3, 40, 50)) ** 3)
    options = ("--count", 2000, "--size", 5, "--type", "float64")
    plain = cut("in.npy", *options)
    centred = plain - plain.mean(axis=1, keepdims=True)
    assert np.allclose(cut("in.npy", *options, "--centre"), centred, atol=1e-12)
    both = cut("in.npy", *options, "--normalise")
    assert np.allclose(both, spread(centred, 0.1, 0.9),
                       atol=1e-12) and both.min() == 0.1 and abs(both.max() - 0.9) < 1e-15
    assert np.array_equal(both, cut("in.npy", *options, "--centre", "--range", "0.1:0.9"))
    assert np.allclose(cut("in.npy", *options, "--range", "-1:3"), spread(plain, -1, 3), atol=1e-12)


def whitened(rows, epsilon):
    rows = rows.astype(np.float64)
    mean = rows.mean(axis=0)
    values, vectors = np.linalg.eigh((rows - mean).T @ (rows - mean) / len(rows))
    return (rows - mean) @ vectors / np.sqrt(np.maximum(values, 0) + epsilon), vectors, mean


@apart.test
def whitening_is_that_of_numpy():
    base = np.random.default_rng(9).random((12, 12, 3))
    smooth = np.asarray(Image.fromarray((base * 255).astype(np.uint8)).resize((200, 180), Image.BICUBIC))
    Image.fromarray(smooth).save("a.png")
    for size, colour, epsilon, kind in ((8, "--grey", 0.1, "float32"), (6, "--colour", 0.1, "float64"),
                                        (4, "--grey", 1e-5, "float64"), (9, "--grey", 0.01, "float32"),
                                        (1, "--colour", 0.1, "float64"), (1, "--grey", 0.1, "float64")):
        options = ("--size", size, colour, "--count", 3000, "--type", kind)
        plain = cut("a.png", *options)
        turned, vectors, mean = whitened(plain, epsilon)
        zca = cut("a.png", *options, "--whiten", "--epsilon", epsilon)
        assert zca.dtype == kind and np.abs(zca - turned @ vectors.T).max() < 1e-4, (size, colour, epsilon)
        pca = cut("a.png", *options, "--whiten-pca", "--epsilon", epsilon)
        strong = pca[:, : max(1, pca.shape[1] // 8)]  # directions of equal variance may be turned among themselves
        theirs = turned[:, ::-1][:, : strong.shape[1]]
        signs = np.sign((strong * theirs).sum(axis=0))
        assert np.abs(strong - theirs * signs).max() < 1e-3, (size, colour, epsilon)
        assert np.allclose((pca.astype("f8") ** 2).sum(axis=1), (turned ** 2).sum(axis=1), rtol=1e-3, atol=1e-3)
    # Without regularisation the covariance is the identity.
    np.save("in.npy", np.random.default_rng(1).random((5, 60, 60)))
    free = cut("in.npy", "--size", 4, "--whiten", "--epsilon", 0, "--type", "float64")
    assert np.allclose(free.T @ free / len(free), np.eye(16), atol=1e-10) and np.allclose(
        free.mean(axis=0), 0, atol=1e-12)


@apart.test
def a_saved_whitening_does_the_same_to_others():
    Image.fromarray(picture(60, 70, 3)).save("a.png")
    for more in (("--whiten",), ("--whiten-pca", "--centre", "--range", "0:1")):
        options = ("--count", 500, "--size", 4, "--colour", "--type", "float64")
        first = cut("a.png", *options, *more, "--save-whitening", "w.safetensors")
        assert np.array_equal(first, cut("a.png", *options, "--use-whitening", "w.safetensors"))
        with open("w.safetensors", "rb") as file:
            head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
            values = np.frombuffer(file.read(), "<f8")
        assert head["__metadata__"]["kind"] == "whitening" and head["matrix"]["shape"] == [
            48, 48
        ] and head["mean"]["shape"] == [48]
        if more == ("--whiten",):
            plain = cut("a.png", *options, "--seed", 5)
            mean, matrix = (values[head[name]["data_offsets"][0] // 8:head[name]["data_offsets"][1] // 8]
                            for name in ("mean", "matrix"))
            new = cut("a.png", *options, "--seed", 5, "--use-whitening", "w.safetensors")
            assert np.allclose(new, (plain - mean) @ matrix.reshape(48, 48).T, atol=1e-12)
            assert np.array_equal(matrix.reshape(48, 48), matrix.reshape(48, 48).T)


# ---- trouble ---------------------------------------------------------------------------------------------------------


@apart.test
def small_images_are_left_out_and_counted():
    os.mkdir("images")
    for i, side in enumerate((7, 8, 9)):
        Image.fromarray(picture(20, side, 3, seed=i)).save(f"images/{i}.png")
    done = run("images", "out.npy", "--json", "--count", 50)
    about = json.loads(done.stdout)
    assert (about["images"], about["files"], about["skipped"], about["broken"], about["patches"],
            about["columns"]) == (2, 2, 1, 0, 50, 64)
    assert about["seconds"] > 0
    assert "1 smaller image left out" in run("images", "out.npy").stdout
    os.unlink("out.npy")
    fails(1, ["none of 3 images has 21 x 21 pixels"], "images", "out.npy", "--size", 21)


@apart.test
def a_broken_file_fails_or_is_left_out():
    os.mkdir("images")
    arrays = {name: picture(30, 30, 3, seed=i) for i, name in enumerate("abcdef")}
    for name, array in arrays.items():
        Image.fromarray(array).save(f"images/{name}.png")
    for name in "bd":  # the header is good, so that it is found only when patches have been drawn from it
        data = open(f"images/{name}.png", "rb").read()
        open(f"images/{name}.png", "wb").write(data[: len(data) // 2])
    open("images/e.jpg", "w").write("no image at all")
    for threads in (1, 3):
        fails(1, ["images/e.jpg: neither PNG", "--skip-broken"], "images", "out.npy", "--threads", threads)
    os.unlink("images/e.jpg")
    for threads in (1, 3):
        fails(1, ["images/b.png: a broken PNG image", "--skip-broken"], "images", "out.npy", "--threads", threads)
    open("images/e.jpg", "w").write("no image at all")
    results = []
    for threads in (1, 4):
        done = run("images", "out.npy", "--skip-broken", "--count", 2000, "--size", 5, "--json", "--colour",
                   "--threads", threads)
        about = json.loads(done.stdout)
        assert done.returncode == 0 and about["broken"] == 3 and about["images"] == 4 and len(
            about["broken_files"]) == 3
        told = done.stderr.splitlines()
        assert [line.split(":")[2].strip() for line in told] == ["images/b.png", "images/d.png", "images/e.jpg"], told
        results.append(np.load("out.npy"))
    assert np.array_equal(*results)
    good = [shares(arrays[name]) for name in "acef"]
    all_occur(results[0], good, 5)
    for image in good:
        own = {row.tobytes() for row in squares(image.astype("f4"), 5)}
        assert 420 < sum(row.tobytes() in own for row in results[0]) < 580
    os.unlink("out.npy")
    fails(1, ["images/b.png: a broken PNG"], "images/b.png", "out.npy")
    done = run("images/b.png", "out.npy", "--skip-broken")
    assert done.returncode == 1 and "can be read" in done.stderr and not os.path.exists("out.npy")


def huge_png(width, height):
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(
        b"IEND", b"")


def huge_jpeg(width, height):
    stream = io.BytesIO()
    Image.fromarray(picture(16, 16)).save(stream, "JPEG")
    data = bytearray(stream.getvalue())
    at = data.index(b"\xff\xc0")
    data[at + 5:at + 9] = struct.pack(">HH", height, width)
    return bytes(data)


@apart.test
def headers_that_lie_take_no_memory():
    def limited():
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    for name, data, says in (("a.png", huge_png(900000, 900000), "900000 x 900000"), ("b.png", huge_png(11000, 11000),
                                                                                      "can't be in a file"),
                             ("c.jpg", huge_jpeg(65000, 65000),
                              "65000 x 65000"), ("d.jpg", huge_jpeg(11000, 11000),
                                                 "can't be in a file"), ("e.jpg", huge_jpeg(300, 200), "broken JPEG")):
        open(name, "wb").write(data)
        done = run(name, "out.npy", "--count", 10, "--threads", 1, preexec_fn=None if "asan" in SHOAL else limited)
        assert done.returncode == 1 and name in done.stderr and says in done.stderr, (name, done.returncode,
                                                                                      done.stderr)
        assert not os.path.exists("out.npy")


@apart.test
def every_cut_of_a_file_is_told():
    Image.fromarray(picture(24, 24)).save("whole.png")
    Image.fromarray(picture(24, 24)).save("whole.jpg")
    Image.fromarray(picture(24, 24)).save("slow.jpg", progressive=True)
    for name in ("whole.png", "whole.jpg", "slow.jpg"):
        data = open(name, "rb").read()
        for keep in sorted({0, 1, 3, 8, 20, len(data) // 3, len(data) // 2, len(data) - 12, len(data) - 3}):
            cut_name = "cut" + name[-4:]
            open(cut_name, "wb").write(data[:keep])
            done = run(cut_name, "out.npy", "--count", 3)
            assert done.returncode == 1 and done.stderr.startswith(f"shoal: {cut_name}: "), (name, keep,
                                                                                             done.returncode,
                                                                                             done.stderr)
    for name in ("whole.jpg", "slow.jpg"):  # all but the end marker is all of the picture
        open("cut.jpg", "wb").write(open(name, "rb").read()[:-2])
        assert np.array_equal(cut("cut.jpg", "--count", 3), cut(name, "--count", 3)), name


@apart.test
def wrong_input_is_told_in_a_sentence():
    Image.fromarray(picture(40, 40)).save("a.png")
    Image.fromarray(picture(40, 40)).save("b.png")
    np.save("three.npy", np.zeros((3, 20, 20, 4)))
    np.save("line.npy", np.zeros(20))
    np.save("whole.npy", np.zeros((20, 20), dtype="i4"))
    np.save("flat.npy", np.full((20, 20), 0.5))
    bad = np.zeros((2, 20, 20), dtype="f4")
    bad[:, :, :] = np.nan
    np.save("nan.npy", bad)
    np.save("great.npy", np.random.default_rng(1).random((20, 20)) * 1e300)
    open("text.png", "w").write("hello")
    open("empty.png", "w").close()
    os.mkdir("none")
    os.mkfifo("pipe")
    run("a.png", "w.npy", "--whiten", "--size", 4, "--save-whitening", "w.safetensors")
    steep = bytearray(open("w.safetensors", "rb").read())
    steep[-16 * 16 * 8:] = np.full(16 * 16, 1e60).tobytes()  # the matrix comes last
    open("steep.safetensors", "wb").write(steep)
    for code, says, words in ((2, ["IMAGES"], []), (2, ["OUT"], ["a.png"]), (2, ["b.png", "must end in .npy"],
                                                                             ["a.png", "b.png"]),
                              (2, ["OUT", "IMAGES",
                                   "same file"], ["a.png", "flat.npy",
                                                  "flat.npy"]), (1, ["absent.png",
                                                                     "No such file"], ["absent.png", "o.npy"]),
                              (1, ["none: no file in this folder"], ["none", "o.npy"]), (2, ["pipe: is neither"],
                                                                                         ["pipe", "o.npy"]),
                              (1, ["nowhere/o.npy"], ["a.png",
                                                      "nowhere/o.npy"]), (2, ["--size",
                                                                              "0"], ["a.png", "o.npy", "--size", "0"]),
                              (2, ["--count", "0"], ["a.png", "o.npy", "--count",
                                                     "0"]), (1, ["none of 1 images has 41 x 41 pixels", "a.png"],
                                                             ["a.png", "o.npy", "--size",
                                                              "41"]), (1, ["text.png: neither PNG, JPEG nor .npy"],
                                                                       ["text.png",
                                                                        "o.npy"]), (1, ["empty.png: the file is empty"],
                                                                                    ["empty.png", "o.npy"]),
                              (1, ["three.npy: an array of 4 dimensions"],
                               ["three.npy",
                                "o.npy"]), (1, ["line.npy: an array of 1 dimensions"],
                                            ["line.npy",
                                             "o.npy"]), (1, ["whole.npy: images of int32"],
                                                         ["whole.npy",
                                                          "o.npy"]), (1, ["nan.npy: image ", "row ", "column ",
                                                                          "nan"], ["nan.npy", "o.npy"]),
                              (1, ["all values of the patches are equal"],
                               ["flat.npy", "o.npy", "--range",
                                "0:1"]), (1, ["does not vary", "--epsilon"],
                                          ["flat.npy", "o.npy", "--whiten", "--epsilon",
                                           "0"]), (1, ["too great for a covariance"],
                                                   ["great.npy", "o.npy", "--whiten", "--type", "float64"
                                                    ]), (1, ["too great to be mapped to a range"],
                                                         ["great.npy", "o.npy", "--range", "0:1", "--type", "float64"]),
                              (1, ["great.npy: its values are up to", "beyond float32: use --type float64"],
                               ["great.npy",
                                "o.npy"]), (1, ["whitening makes values of patch 1 that are beyond float32"],
                                            ["a.png", "o.npy", "--use-whitening", "steep.safetensors", "--size",
                                             "4"]), (2, ["--range", "LOW:HIGH"],
                                                     ["a.png", "o.npy", "--range",
                                                      "3"]), (2, ["--range", "LOW:HIGH"],
                                                              ["a.png", "o.npy", "--range",
                                                               "1:1"]), (2, ["--range", "LOW:HIGH"],
                                                                         ["a.png", "o.npy", "--range", "1:x"]),
                              (2, ["--epsilon"],
                               ["a.png", "o.npy", "--whiten", "--epsilon",
                                "-1"]), (2, ["--epsilon"],
                                         ["a.png", "o.npy", "--whiten", "--epsilon",
                                          "nan"]), (2, ["--epsilon needs --whiten or --whiten-pca"],
                                                    ["a.png", "o.npy", "--epsilon",
                                                     "0.5"]), (2, ["--use-whitening", "leave out", "--epsilon"], [
                                                         "a.png", "o.npy", "--use-whitening", "w.safetensors",
                                                         "--epsilon", "0.5", "--size", "4"
                                                     ]), (2, ["--normalise and --range"],
                                                          ["a.png", "o.npy", "--normalise", "--range", "0:1"
                                                           ]), (2, ["--grey and --colour"],
                                                                ["a.png", "o.npy", "--grey", "--colour"
                                                                 ]), (2, ["--whiten and --whiten-pca"],
                                                                      ["a.png", "o.npy", "--whiten", "--whiten-pca"]),
                              (2, ["--save-whitening", "--whiten"],
                               ["a.png", "o.npy", "--save-whitening", "x.safetensors"
                                ]), (2, ["--use-whitening"],
                                     ["a.png", "o.npy", "--use-whitening", "w.safetensors", "--centre", "--size",
                                      "4"]), (2, ["w.safetensors is for grey patches of 4 x 4"],
                                              ["a.png", "o.npy", "--use-whitening", "w.safetensors"
                                               ]), (1, ["a.png: not a safetensors file"],
                                                    ["b.png", "o.npy", "--use-whitening", "a.png", "--size", "4"
                                                     ]), (1, ["absent.safetensors"],
                                                          ["b.png", "o.npy", "--use-whitening", "absent.safetensors"]),
                              (2, ["--whiten", "4107 values are too long"],
                               ["a.png", "o.npy", "--whiten", "--colour", "--size",
                                "37"]), (2, ["too many"], ["a.png", "o.npy", "--count", "1e18", "--size",
                                                           "40"]), (2, ["--type"],
                                                                    ["a.png", "o.npy", "--type",
                                                                     "uint8"]), (2, ["standard output"],
                                                                                 ["a.png", "/dev/stdout", "--json"])):
        fails(code, says, *words)


@apart.test
def a_folder_may_hold_arrays_instead_of_pictures():
    os.mkdir("arrays")
    np.save("arrays/a.npy", np.full((3, 9, 9), 0.25))
    words = ["--size", "4", "--count", "5", "--quiet"]
    assert run("arrays", "o.csv", *words).returncode == 0
    assert (np.loadtxt("o.csv", delimiter=",") == 0.25).all()
    fails(2, ["OUT arrays/a.npy is one of the images", "never overwritten"], "arrays", "arrays/a.npy", "--force",
          *words)
    fails(2, ["OUT o.csv", "numbers in 16 columns, not numbers in 9 columns", "--force"], "arrays", "o.csv", "--size",
          "3")


@apart.test
def a_signal_leaves_no_half_written_file():
    np.save("in.npy", np.random.default_rng(1).random((400, 400)))
    os.mkdir("out")
    for seconds in (0.05, 0.2, 0.5):
        process = subprocess.Popen([
            SHOAL, "data", "patches", "in.npy", "out/o.npy", "--count", "400000", "--size", "12", "--whiten"
        ], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
        left = os.listdir("out")
        assert left in ([], ["o.npy"]), left
        if left:
            assert np.load("out/o.npy", mmap_mode="r").shape == (400000, 144)
            os.unlink("out/o.npy")


@apart.test
def real_photographs():
    flowers = SHARED / "flowers"
    if not flowers.is_dir():
        raise apart.Skipped("../shared/data/flowers is not here")
    paths = sorted(flowers.rglob("*.jpg"), key=lambda path: os.fsencode(path))
    some = paths[::40]
    patches = cut(*some, "--count", 300, "--colour")
    all_occur(patches, [shares(np.asarray(Image.open(path).convert("RGB"))) for path in some], 8)
    done = run(flowers, "out.npy", "--json", "--count", 20000)
    assert json.loads(done.stdout)["images"] == len(paths), done.stderr


@apart.test
def bad_jpegs_end_in_a_sentence():
    bad = SHARED / "vectors" / "jpeg_bad"
    if not bad.is_dir():
        raise apart.Skipped("../shared/data/vectors/jpeg_bad is not here")
    for path in sorted(bad.iterdir()):
        done = run(path, "out.npy", "--size", 1, "--count", 10, "--colour", "--quiet")
        assert done.returncode in (0, 1), (path, done.returncode, done.stderr)
        assert done.returncode == 0 or (done.stderr.startswith(f"shoal: {path}: ") and
                                        done.stderr.count("\n") == 1), done.stderr
    done = run(bad, "out.npy", "--size", 1, "--skip-broken", "--json")
    about = json.loads(done.stdout)
    assert about["broken"] + about["files"] == len(list(bad.iterdir())) and about["broken"] > 30, about


apart.main(at_once=2)
