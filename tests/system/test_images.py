#!/usr/bin/python3
# Labels: asan
"""Pictures made ready for training beside numpy and Pillow, which read the same files by themselves.

    test_images.py PATH_TO_shoal [NAME...]

What tf.image.resize computes is written here plainly, in numpy; antialiased items are Pillow's within one level.
Pictures of every kind are made by Pillow or by hand.  Parts that need ../shared/data say when it is absent.
"""
import io
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import zlib

import apart

try:
    import numpy as np
    from PIL import Image, ImageOps
except ImportError:
    print("python3-numpy or python3-pil is not here: skipped")
    sys.exit(77)

ITEMS = pathlib.Path(sys.argv[1]).resolve().parent / "tests" / "system" / "image_items"
SHARED = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data"
if not ITEMS.exists():
    print(f"{ITEMS} is not built: skipped")
    sys.exit(77)


# ---- the definition --------------------------------------------------------------------------------------------------


def cover(h, w, height, width):
    """The size that covers the item, its long side truncated, and where the item lies in it."""
    h, w = (h * width // w, width) if w * height < h * width else (height, w * height // h)
    return h, w, (h - height) // 2, (w - width) // 2


def places(source, size, offset, count):
    """Each pixel's two neighbours and the second one's share: half-pixel centres, in float32."""
    at = (np.arange(offset, offset + count).astype("f4") + np.float32(0.5)) * (
        np.float32(source) / np.float32(size)) - np.float32(0.5)
    below = np.floor(at)
    first = np.clip(below.astype(int), 0, source - 1)
    return first, np.clip(below.astype(int) + 1, 0, source - 1), (at - below).astype("f4")


def resize_tf(picture, height, width):
    h, w, top, left = cover(*picture.shape[:2], height, width)
    picture = picture.astype("f4")
    y0, y1, down = places(picture.shape[0], h, top, height)
    x0, x1, across = places(picture.shape[1], w, left, width)
    across, down = across[None, :, None], down[:, None, None]
    rows = picture[:, x0] + (picture[:, x1] - picture[:, x0]) * across
    return (rows[y0] + (rows[y1] - rows[y0]) * down).astype("u1")


def resize_pillow(picture, height, width):
    h, w, top, left = cover(*picture.shape[:2], height, width)
    resized = Image.fromarray(picture).resize((w, h), Image.BILINEAR)
    return np.asarray(resized.crop((left, top, left + width, top + height)))


# ---- running ---------------------------------------------------------------------------------------------------------


def make(paths, size="192x192", resize="tf", encode="raw", quality=95, huffman="fixed", chroma="444",
         orient="as-is"):
    """The items of files, bytes; or sentences, text."""
    subprocess.run([ITEMS, size, resize, encode, str(quality), huffman, chroma, orient, *paths], check=True,
                   timeout=600)
    found = []
    for path in paths:
        item, why = pathlib.Path(f"{path}.item"), pathlib.Path(f"{path}.why")
        assert item.exists() != why.exists(), path
        found.append(item.read_bytes() if item.exists() else why.read_text())
        (item if item.exists() else why).unlink()
    return found


def pixels(item, height=192, width=192):
    assert isinstance(item, bytes), item
    return np.frombuffer(item, "u1").reshape(height, width, 3)


def picture(height, width, seed=1):
    """Smooth, with edges and noise."""
    y, x = np.mgrid[:height, :width]
    planes = [(np.sin(x / 17 + c) + np.cos(y / (11 + c))) * 60 + 128 + (x // 23 + y // 19 + c) % 2 * 40
              for c in range(3)]
    noise = np.random.default_rng(seed).integers(-20, 20, (height, width, 3))
    return np.clip(np.stack(planes, -1) + noise, 0, 255).astype("u1")


def decode(path):
    return np.asarray(Image.open(path).convert("RGB"))


# ---- tests -----------------------------------------------------------------------------------------------------------

SIZES = [(333, 500), (500, 333), (240, 320), (192, 192), (100, 80), (193, 700), (1000, 201), (1, 40), (7, 1),
         (640, 641)]


@apart.test
def items_are_those_of_the_definition_and_of_pillow():
    paths = []
    for i, (h, w) in enumerate(SIZES):
        path = f"{i}.jpg"
        Image.fromarray(picture(h, w)).save(path, quality=90, subsampling=i % 3, progressive=i % 4 == 3)
        paths.append(path)
    for size, height, width in (("192x192", 192, 192), ("64x100", 64, 100), ("31x9", 31, 9)):
        for path, item in zip(paths, make(paths, size)):
            assert np.array_equal(pixels(item, height, width), resize_tf(decode(path), height, width)), (path, size)
        for path, item in zip(paths, make(paths, size, "antialias")):
            expected = resize_pillow(decode(path), height, width)
            away = np.abs(pixels(item, height, width).astype(int) - expected)
            assert away.max() <= 1 and away.mean() < 0.25, (path, size, away.max(), away.mean())


@apart.test
def every_kind_of_picture_is_read():
    base = picture(50, 70)
    image = Image.fromarray(base)
    wide = base.astype("u4") * 256 + 77
    alpha = np.dstack([base, np.arange(50 * 70).reshape(50, 70) % 256]).astype("u1")
    over_white = (base * (alpha[..., 3:] / 255) + 255 * (1 - alpha[..., 3:] / 255))
    expected = {}
    for name, save, pixels_of in (
            ("grey.jpg", lambda p: image.convert("L").save(p), None),
            ("cmyk.jpg", lambda p: image.convert("CMYK").save(p), None),
            ("progressive.jpg", lambda p: image.save(p, progressive=True), None),
            ("grey.png", lambda p: image.convert("L").save(p), None),
            ("bits.png", lambda p: image.convert("1").save(p), None),
            ("palette.png", lambda p: image.quantize(40).save(p), None),
            ("alpha.png", lambda p: Image.fromarray(alpha).save(p), over_white),
            ("really_a_png.jpg", lambda p: image.save(p, "PNG"), base),
            ("really_a_jpeg.png", lambda p: image.save(p, "JPEG"), None),
            ("wide.png", lambda p: save_wide(p, wide), wide * 255 / 65535),
    ):
        save(name)
        expected[name] = decode(name) if pixels_of is None else np.rint(pixels_of).astype("u1")
    for name, item in zip(expected, make(list(expected), "50x70")):
        away = np.abs(pixels(item, 50, 70).astype(int) - expected[name])
        assert away.max() <= (1 if name in ("cmyk.jpg", "alpha.png") else 0), (name, away.max())


def save_wide(path, samples):
    """A PNG of three colours of 16 bits, which Pillow does not write."""
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in samples)

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", samples.shape[1], samples.shape[0], 16, 2, 0, 0, 0)
    pathlib.Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
                                   chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


@apart.test
def other_files_are_named_as_what_they_are():
    image = Image.fromarray(picture(40, 40))
    says = {}
    for name, format, kind in (("a.jpg", "GIF", "a GIF image"), ("b.jpg", "WEBP", "a WebP image"),
                               ("c.png", "BMP", "a BMP image"), ("d.jpeg", "TIFF", "a TIFF image")):
        try:
            image.save(name, format)
        except (KeyError, OSError):  # a Pillow without it
            continue
        says[name] = f"{name}: neither PNG nor JPEG: it is {kind}"
    for name, data, text in (("e.jpg", b"<!DOCTYPE html><html>404", "neither PNG nor JPEG: it is a page of HTML"),
                             ("f.jpg", b"", "the file is empty"), ("g.jpg", b"nothing", "neither PNG nor JPEG")):
        pathlib.Path(name).write_bytes(data)
        says[name] = f"{name}: {text}"
    for (name, text), found in zip(says.items(), make(list(says))):
        assert isinstance(found, str) and found.startswith(text) and "\n" not in found, (name, found)


@apart.test
def whole_files_are_told_from_those_that_are_cut_off():
    image = Image.fromarray(picture(300, 200))
    for name, options in (("plain.jpg", {}), ("slow.jpg", {"progressive": True})):
        image.save(name, **options)
        data = pathlib.Path(name).read_bytes()
        pathlib.Path("no_end.jpg").write_bytes(data[:-2])
        pathlib.Path("more.jpg").write_bytes(data + b"<trailing bytes>" * 9)
        pathlib.Path("cut.jpg").write_bytes(data[:-3])
        pathlib.Path("half.jpg").write_bytes(data[:len(data) // 2])
        whole, no_end, more, cut, half = make([name, "no_end.jpg", "more.jpg", "cut.jpg", "half.jpg"])
        assert isinstance(whole, bytes) and whole == no_end == more, name
        assert "cut off" in cut and "cut off" in half, (cut, half)


@apart.test
def orientation_is_that_of_pillow():
    for orientation in range(1, 9):
        for name in ("a.jpg", "a.png"):
            exif = Image.Exif()
            exif[0x112] = orientation
            Image.fromarray(picture(60, 90)).save(name, exif=exif)
            upright = np.asarray(ImageOps.exif_transpose(Image.open(name)).convert("RGB"))
            turned, = make([name], "40x30", orient="upright")
            as_is, = make([name], "40x30")
            assert np.array_equal(pixels(turned, 40, 30), resize_tf(upright, 40, 30)), (name, orientation)
            assert np.array_equal(pixels(as_is, 40, 30), resize_tf(decode(name), 40, 30)), (name, orientation)


@apart.test
def jpegs_are_what_pillow_makes_of_the_same_pixels():
    """Pillow's libjpeg may be another build; the quantised values are the same, so are the decoded pixels."""
    Image.fromarray(picture(250, 300)).save("a.png")
    item = pixels(*make(["a.png"]))
    for chroma, subsampling in (("444", 0), ("420", 2)):
        for quality in (30, 95):
            fixed, = make(["a.png"], encode="jpeg", quality=quality, chroma=chroma)
            best, = make(["a.png"], encode="jpeg", quality=quality, chroma=chroma, huffman="best")
            theirs = io.BytesIO()
            Image.fromarray(item).save(theirs, "JPEG", quality=quality, subsampling=subsampling, optimize=True)
            decoded = [np.asarray(Image.open(io.BytesIO(data))) for data in (fixed, best, theirs.getvalue())]
            assert np.array_equal(decoded[0], decoded[1]), (chroma, quality)
            assert np.array_equal(decoded[0], decoded[2]), (chroma, quality)
            assert len(best) == len(theirs.getvalue()), (len(best), len(theirs.getvalue()))
            assert len(best) < len(fixed) < (1.2 if quality == 95 else 1.5) * len(best), (len(fixed), len(best))


@apart.test
def photographs_are_as_defined():
    flowers = SHARED / "flowers"
    if not flowers.is_dir():
        raise apart.Skipped("../shared/data/flowers is not here")
    paths = []
    for i, path in enumerate(sorted(flowers.rglob("*.jpg"))[::7]):
        shutil.copy(path, f"{i}.jpg")
        paths.append(f"{i}.jpg")
    for path, item in zip(paths, make(paths)):
        assert np.array_equal(pixels(item), resize_tf(decode(path), 192, 192)), path
    for path, item in zip(paths, make(paths, resize="antialias")):
        away = np.abs(pixels(item).astype(int) - resize_pillow(decode(path), 192, 192))
        assert away.max() <= 1, (path, away.max())
    fixed, best = (sum(map(len, make(paths, encode="jpeg", huffman=huffman))) for huffman in ("fixed", "best"))
    assert best < fixed < 1.02 * best, (fixed, best)


@apart.test
def the_processor_changes_nothing():
    """libjpeg-turbo without its vector instructions, with fewer, and with all of them."""
    paths = []
    for i, (h, w) in enumerate(SIZES):
        paths.append(f"{i}.jpg")
        Image.fromarray(picture(h, w)).save(paths[-1], subsampling=i % 3, progressive=i % 2 == 1)
    for options in ({}, {"encode": "jpeg"}, {"encode": "jpeg", "chroma": "420", "huffman": "best", "quality": 60}):
        items = make(paths, "90x120", **options)
        for variable in ("JSIMD_FORCENONE", "JSIMD_FORCESSE2"):
            os.environ[variable] = "1"
            assert make(paths, "90x120", **options) == items, (variable, options)
            del os.environ[variable]


@apart.test
def memory_that_runs_out_is_told():
    if "asan" in str(ITEMS):
        raise apart.Skipped("the address sanitizer needs much memory itself")
    Image.fromarray(picture(64, 64)).save("small.jpg")
    Image.fromarray(np.zeros((6000, 6000, 3), "u1")).save("large.jpg", progressive=True, subsampling=0)
    command = ["bash", "-c", 'ulimit -v 200000 && exec "$@"', "-", ITEMS, "8x8", "tf", "raw", "95", "fixed", "444",
               "as-is", "large.jpg", "small.jpg"]
    subprocess.run(command, check=True, timeout=600)
    assert pathlib.Path("large.jpg.why").read_text() == "large.jpg: out of memory for an image"
    assert pathlib.Path("small.jpg.item").exists()  # the same maker goes on


@apart.test
def bad_jpegs_end_in_a_sentence():
    bad = SHARED / "vectors" / "jpeg_bad"
    if not bad.is_dir():
        raise apart.Skipped("../shared/data/vectors/jpeg_bad is not here")
    paths = []
    for path in sorted(bad.iterdir()):
        shutil.copy(path, path.name)
        paths.append(path.name)
    found = make(paths, "64x64", encode="jpeg")
    for path, what in zip(paths, found):
        assert isinstance(what, bytes) or (what.startswith(f"{path}: ") and "\n" not in what), (path, what)
    assert sum(isinstance(what, str) for what in found) > 30
    turned = make(paths, "64x64", encode="jpeg", orient="upright")  # the same files are whole, read as a whole
    for path, one, other in zip(paths, found, turned):
        assert isinstance(one, str) == isinstance(other, str), (path, one, other)


apart.main(at_once=2)
