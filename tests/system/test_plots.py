#!/usr/bin/env python3
# Labels: quick
"""Pictures of what was learnt: --plot shows each row where it belongs, the same bytes from any threads, kernel and
engine; what can't be drawn is told in one sentence.

    test_plots.py PATH_TO_shoal [NAME...]

SVG files are read as XML and PNG files by Pillow; where rows lie is computed again by numpy.
"""
import base64
import io
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

import apart

sys.dont_write_bytecode = True
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
try:
    import numpy as np
    from PIL import Image
except ImportError:
    print("python3-numpy and python3-pil are not here: skipped")
    sys.exit(77)

SHOAL = os.path.abspath(sys.argv[1])
SVG = "{http://www.w3.org/2000/svg}"
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#d55e00"]


def shoal(*arguments, code=0, stdin=subprocess.DEVNULL):
    done = subprocess.run([SHOAL, *map(str, arguments), "--force"], stdin=stdin, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done


def refuses(sentence, *arguments, code=2):
    done = shoal(*arguments, code=code)
    assert done.stderr.split("\n")[0] == f"shoal: {sentence}", done.stderr


def content(path):
    with open(path, "rb") as file:
        return file.read()


def blobs(count=300, columns=5, groups=3, seed=0):
    """Groups far apart, whose columns have different spreads."""
    chance = np.random.default_rng(seed)
    centres = chance.normal(size=(groups, columns)) * 20
    return centres[np.arange(count) % groups] + chance.normal(size=(count, columns)) * (1 + np.arange(columns))


class Plot:
    """What a plot as SVG shows: its texts, and the places of its dots by their colour, in the units of the axes."""

    def __init__(self, path):
        root = xml.parse(path).getroot()
        self.title = root.find(SVG + "title").text
        drawn = [(text.get("x"), text.get("y"), text.get("text-anchor"), text.text) for text in root.iter(SVG + "text")]
        self.texts = [text for *_, text in drawn]
        frame = next(rect for rect in reversed(list(root.iter(SVG + "rect"))) if rect.get("stroke"))
        self.bottom = float(frame.get("y")) + float(frame.get("height"))
        self.left = float(frame.get("x"))
        self.across = self.axis([(float(x), text) for x, y, _, text in drawn if y and float(y) == self.bottom + 16])
        self.up = self.axis([(float(y) - 4, text) for x, y, anchor, text in drawn
                             if anchor == "end" and x and float(x) == self.left - 6])
        self.dots = {}
        for part in root.iter(SVG + "path"):
            places = re.findall(r"M([-\d.]+) ([-\d.]+)h0", part.get("d"))
            if places and float(part.get("opacity", 1)) < 1:
                self.dots[part.get("stroke")] = self.places(places)
        circles = [(circle.get("cx"), circle.get("cy")) for circle in root.iter(SVG + "circle")]
        self.centres = self.places(circles)
        self.image = root.find(f".//{SVG}image")

    @staticmethod
    def axis(ticks):
        at, value = np.array([[place, float(text)] for place, text in ticks]).T
        return np.polyfit(at, value, 1)

    def places(self, pixels):
        x, y = np.array(pixels, dtype=float).T
        return np.stack([np.polyval(self.across, x), np.polyval(self.up, y)], 1)

    def near(self, places, expected):
        """Coordinates have two digits after the point, of about 600 pixels."""
        slack = 0.01 * np.abs([self.across[0], self.up[0]]) * 1.01
        return places.shape == expected.shape and (np.abs(places - expected) <= slack).all()


def components(X):
    """The first two, with the sign that their greatest component is positive."""
    centred = X - X.mean(0)
    _, singular, directions = np.linalg.svd(centred, full_matrices=False)
    directions = directions[:2] * np.sign(
        np.take_along_axis(directions[:2], np.abs(directions[:2]).argmax(1)[:, None], 1))
    return X.mean(0), directions, singular[:2] ** 2 / (singular ** 2).sum()


@apart.test
def two_columns_are_the_axes():
    X = blobs(columns=2) + [1.7e9, 0]  # such as seconds since 1970, of which float32 would not tell a day
    with open("x.csv", "w") as file:
        file.write("when,how much\n" + "".join(f"{a!r},{b!r}\n" for a, b in X.tolist()))
    for more in ([], ["--standardise"]):
        shoal("kmeans", "x.csv", "-k", 3, "--plot", "p.svg", "--labels", "l.npy", "--centres", "c.npy", *more)
        plot, labels = Plot("p.svg"), np.load("l.npy")
        assert plot.title == "x.csv: 300 rows in 3 clusters" and plot.title in plot.texts
        assert "when" in plot.texts and "how much" in plot.texts
        for group in range(3):
            assert plot.near(plot.dots[COLOURS[group]], X[labels == group]), (more, group)
            assert f"{group}: {(labels == group).sum()} rows" in plot.texts and str(group) in plot.texts
        assert plot.near(plot.centres, np.load("c.npy"))


@apart.test
def columns_are_chosen_by_name_or_number():
    X = blobs()
    np.savetxt("x.csv", X, delimiter=",", header="a,b,c,d,e", comments="")
    np.save("x.npy", X)
    shoal("kmeans", "x.csv", "-k", 2, "--plot", "p.svg", "--plot-columns", "e,b", "--labels", "l.npy", "--model",
          "m.safetensors")
    plot, labels = Plot("p.svg"), np.load("l.npy")
    assert "e" in plot.texts and "b" in plot.texts
    assert plot.near(plot.dots[COLOURS[1]], X[labels == 1][:, [4, 1]])
    shoal("kmeans", "x.csv", "-k", 2, "--plot", "n.svg", "--plot-columns", "-1,2")
    assert content("n.svg") == content("p.svg")
    shoal("predict", "m.safetensors", "x.csv", "--plot", "n.svg", "--plot-columns", "5,b")
    assert content("n.svg") == content("p.svg")
    shoal("kmeans", "x.npy", "-k", 2, "--plot", "n.svg", "--plot-columns", "5,2")
    assert "column 5" in Plot("n.svg").texts


@apart.test
def more_columns_are_seen_by_principal_components():
    X = blobs(columns=6)
    np.save("x.npy", X)
    for more in ([], ["--standardise"], ["--metric", "cosine"]):
        shoal("kmeans", "x.npy", "-k", 3, "--plot", "p.svg", "--labels", "l.npy", "--model", "m.safetensors",
              "--centres", "c.npy", *more)
        plot, labels, seen = Plot("p.svg"), np.load("l.npy"), X
        if "--standardise" in more:
            seen = (X - X.mean(0)) / X.std(0)
        if "cosine" in more:
            seen = X / np.linalg.norm(X, axis=1, keepdims=True)
        mean, directions, shares = components(seen)
        for axis, share in enumerate(shares):
            assert f"PC{axis + 1} ({share:.0%})" in plot.texts, (plot.texts, shares)
        for group in range(3):
            assert plot.near(plot.dots[COLOURS[group]], (seen[labels == group] - mean) @ directions.T), (more, group)
        if not more:
            assert plot.near(plot.centres, (np.load("c.npy") - mean) @ directions.T)
        shoal("predict", "m.safetensors", "x.npy", "--plot", "again.svg")
        assert content("again.svg") == content("p.svg"), more


@apart.test
def extreme_values_are_drawn():
    for scale in (1e100, 1e-100):
        X = blobs(columns=4)
        np.save("x.npy", X * scale)
        for more in ([], ["--plot-columns", "1,2"]):
            shoal("kmeans", "x.npy", "-k", 3, "--plot", "p.svg", "--labels", "l.npy", *more)
            plot, labels = Plot("p.svg"), np.load("l.npy")
            mean, directions, _ = components(X)
            expected = X[:, :2] if more else (X - mean) @ directions.T
            for group in range(3):
                assert plot.near(plot.dots[COLOURS[group]], expected[labels == group] * scale), (scale, more, group)


@apart.test
def extreme_values_around_zero_are_drawn():
    """Their centre says nothing of how far apart they are."""
    X = blobs(columns=3)
    X = np.concatenate([X, -X])
    for scale in (1e100, 1e-100):
        np.save("x.npy", X * scale)
        shoal("kmeans", "x.npy", "-k", 1, "--plot", "p.svg", "--plot-columns", "1,2")
        plot = Plot("p.svg")
        assert plot.near(plot.dots[COLOURS[0]], X[:, :2] * scale), scale


@apart.test
def rows_that_were_left_out_are_not_drawn():
    X = blobs(columns=2)
    X[::50, 1] = np.nan
    np.savetxt("x.csv", X, delimiter=",")
    shoal("kmeans", "x.csv", "-k", 3, "--missing", "drop", "--plot", "p.svg")
    assert sum(len(dots) for dots in Plot("p.svg").dots.values()) == 294


@apart.test
def many_rows_are_a_density():
    chance = np.random.default_rng(1)
    X = np.concatenate([chance.random((40000, 2)), chance.random((40000, 2)) + [2, 0]])
    np.save("x.npy", X)
    np.save("c.npy", [[0.5, 0.5], [2.5, 0.5]])
    shoal("kmeans", "x.npy", "--init", "c.npy", "--plot", "p.svg")
    plot = Plot("p.svg")
    assert not plot.dots and len(content("p.svg")) < 1_000_000
    image = Image.open(io.BytesIO(base64.b64decode(plot.image.get("href").split(",", 1)[1]))).convert("RGBA")
    pixels = np.asarray(image)
    seen = pixels[pixels[..., 3] > 0][:, :3]
    one, other = (np.array([int(colour[i:i + 2], 16) for i in (1, 3, 5)]) for colour in COLOURS[:2])
    assert ((np.abs(seen - one).max(1) <= 4) | (np.abs(seen - other).max(1) <= 4)).all()  # the clusters are apart
    half = pixels.shape[1] // 2
    left = pixels[:, :half][pixels[:, :half, 3] > 0][:, :3]
    assert (np.abs(left - one).max(1) <= 4).all() and len(left) > 40000
    assert pixels[:, half - 100:half + 100, 3].max() == 0
    shoal("kmeans", "x.npy", "--init", "c.npy", "--plot", "p.png")
    assert Image.open("p.png").size[1] == 1200


@apart.test
def the_same_bytes_from_threads_kernels_workers_and_a_resumed_job():
    np.save("x.npy", blobs(30000, 45).astype("f4"))  # a sample of the rows, and a density
    first = ["kmeans", "x.npy", "-k", 3, "--seed", 4]
    shoal(*first, "--plot", "p.svg", "--plot-columns", "3,9")
    shoal(*first, "--plot", "p.png", "--model", "m.safetensors")
    for more in (["--threads", 1], ["--threads", 3, "--kernel", "portable", "--grain", 100], ["--workers", "local:2"]):
        shoal(*first, "--plot", "other.png", *more)
        assert content("other.png") == content("p.png"), more
    shoal("predict", "m.safetensors", "x.npy", "--plot", "other.png", "--threads", 1, "--kernel", "portable")
    assert content("other.png") == content("p.png")
    with open("x.npy", "rb") as rows:  # what comes through a pipe is still in memory
        shoal("kmeans", "-", *first[2:], "--plot", "piped.svg", "--plot-columns", "3,9", "--workers", "local:1",
              stdin=rows)
    assert content("piped.svg").replace(b"standard input", b"x.npy") == content("p.svg")
    # Who resumes a job writes what it was submitted with.
    name = shoal(*first, "--plot", "later.svg", "--plot-columns", "3,9", "--store", "st", "--detach").stdout.strip()
    done = subprocess.run([SHOAL, "job", "resume", name, "--store", "st", "--workers", "local:1"], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert content("later.svg") == content("p.svg")


@apart.test
def rows_in_a_store_are_fetched():
    np.save("x.npy", blobs(2000, 7))
    shoal("kmeans", "x.npy", "-k", 3, "--plot", "p.svg")
    os.makedirs("st")
    subprocess.run([SHOAL, "store", "put", "x.npy", "dir:st/"], check=True, capture_output=True)
    shoal("kmeans", "dir:st/x.npy", "-k", 3, "--plot", "q.svg")
    assert content("q.svg") == content("p.svg")
    shoal("kmeans", "dir:st/x.npy", "-k", 3, "--plot", "r.svg", "--workers", "local:1", "--store", "dir:jobs")
    assert content("r.svg") == content("p.svg")
    refuses(
        "--plot: dir:st/x.npy has 0.000112 GB, and all of it would be fetched here, where --memory is 0.0001 GB; "
        "give more, or apply the model near the rows: shoal predict MODEL DATA --plot FILE", "kmeans",
        "dir:st/x.npy", "-k", 3, "--plot", "s.svg", "--workers", "local:1", "--store", "dir:jobs", "--memory",
        "100000")
    assert not os.path.exists("s.svg")


@apart.test
def what_cannot_be_drawn_is_told_before_the_run():
    X = blobs(40, 3)
    np.savetxt("x.csv", X, delimiter=",", header="a,b,c", comments="")
    np.save("one.npy", X[:, :1])
    base = ["kmeans", "x.csv", "-k", 3]
    refuses("--plot: one.npy has one column, and a plot needs two", "kmeans", "one.npy", "-k", 3, "--plot", "p.svg")
    refuses("--plot p.pdf: the name must end in .png or .svg", *base, "--plot", "p.pdf")
    refuses("--plot-columns chooses the axes of --plot FILE: add --plot FILE", *base, "--plot-columns", "a,b")
    refuses("--plot-columns a: a plot has two axes, and this is 1 column", *base, "--plot", "p.svg", "--plot-columns",
            "a")
    refuses("--plot-columns 1-3: a plot has two axes, and this is 3 columns", *base, "--plot", "p.svg",
            "--plot-columns", "1-3")
    refuses('x.csv: --plot-columns: there is no column "d"; the columns are a, b, c', *base, "--plot", "p.svg",
            "--plot-columns", "a,d")
    refuses('x.csv: --plot-columns: column "a" is listed twice', *base, "--plot", "p.svg", "--plot-columns", "a,a")
    shoal(*base, "--model", "m.safetensors")
    refuses("--plot: one.npy has one column, and a plot needs two", "predict", "one.npy", "one.npy", "--plot", "p.svg")
    refuses("--plot p.npy: the name must end in .png or .svg", "predict", "m.safetensors", "x.csv", "--plot", "p.npy")
    refuses("--plot-columns chooses the axes of --plot FILE: add --plot FILE", "predict", "m.safetensors", "x.csv",
            "--plot-columns", "a,b")
    assert sorted(os.listdir(".")) == ["m.safetensors", "one.npy", "x.csv"], os.listdir(".")


# ---- confusion matrices ----------------------------------------------------------------------------------------------


class Matrix:
    """What a confusion matrix as SVG shows: its texts, and the counts by the middles of their cells."""

    def __init__(self, path):
        root = xml.parse(path).getroot()
        self.texts = [text.text for text in root.iter(SVG + "text")]
        cells = [rect for rect in root.iter(SVG + "rect") if rect.get("fill") not in ("none", "#fff")]
        self.fills = [cell.get("fill") for cell in cells]
        across = sorted({float(cell.get("x")) for cell in cells})
        down = sorted({float(cell.get("y")) for cell in cells})
        side = float(cells[0].get("width"))
        self.table = np.zeros((len(down), len(across)), dtype=int)
        for text in root.iter(SVG + "text"):
            if text.text.isdigit() and not text.get("transform") and text.get("text-anchor") == "middle":
                column, row = ((float(text.get(name)) - first) / side
                               for name, first in (("x", across[0]), ("y", down[0])))
                if 0 < row < len(down):  # names of columns are below
                    self.table[int(row), int(column)] = int(text.text)


def three_classes(words):
    """Rows of three classes that overlap."""
    X = blobs(600, 3) / 8
    y = np.arange(600) % 3
    with open("x.csv", "w") as file:
        file.write("a,b,c,kind\n" + "".join(
            f"{a},{b},{c},{words[k]}\n" for (a, b, c), k in zip(X.round(3).tolist(), y)))
    return y


@apart.test
def confusion_matrices_show_what_score_counts():
    words = ["ant", "bee & wasp", "fly"]
    three_classes(words)
    shoal("logistic", "x.csv", "--target", "kind", "--l2", 100, "--model", "m.safetensors")
    plain = shoal("predict", "m.safetensors", "x.csv", "--score").stdout
    told = shoal("predict", "m.safetensors", "x.csv", "--confusion", "c.svg").stdout
    score = [line for line in plain.splitlines() if not re.match("time|kernel|wrote", line)]
    assert [line for line in told.splitlines() if not re.match("time|kernel|wrote", line)] == score  # it is a --score
    assert "wrote      c.svg" in told
    for more in ([], ["--threads", 1, "--kernel", "portable"]):
        done = shoal("predict", "m.safetensors", "x.csv", "--json", "--confusion", "d.svg", *more)
        assert content("d.svg") == content("c.svg")
    table = np.array(json.loads(done.stdout)["score"]["confusion"])
    drawn = Matrix("c.svg")
    assert (drawn.table == table).all() and 0 < np.trace(table) < 600, (drawn.table, table)
    assert all(drawn.texts.count(word) == 2 for word in words), drawn.texts
    assert f"x.csv: {np.trace(table) / 6:.2f}% of 600 rows are right" in drawn.texts
    assert f"{table[0, 0] / 2:.0f}%" in drawn.texts
    shoal("predict", "m.safetensors", "x.csv", "--confusion", "c.png")
    picture = np.asarray(Image.open("c.png").convert("RGB")).reshape(-1, 3).astype(int)
    assert (picture[:, 2] > picture[:, 0] + 100).sum() > 3 * 80 * 80  # the diagonal is blue


@apart.test
def clusters_are_shown_beside_known_classes():
    y = three_classes(["ant", "bee", "fly"])
    shoal("kmeans", "x.csv", "-k", 2, "--drop-column", "kind", "--model", "m.safetensors", "--labels", "l.npy")
    shoal("predict", "m.safetensors", "x.csv", "--target", "kind", "--confusion", "c.svg")
    drawn, labels = Matrix("c.svg"), np.load("l.npy")
    assert "cluster" in drawn.texts and "share" in drawn.texts
    for kind in range(3):
        for cluster in range(2):
            assert drawn.table[kind, cluster] == ((y == kind) & (labels == cluster)).sum()


@apart.test
def many_classes_fit_a_picture_and_too_many_are_told():
    chance = np.random.default_rng(3)
    y = np.arange(4000) % 120
    X = np.stack([y % 11 * 3.0, y // 11 * 3.0], 1) + chance.normal(size=(4000, 2)) * 0.5
    np.savetxt("x.csv", np.column_stack([X, y]), delimiter=",")
    shoal("bayes", "x.csv", "--model", "m.safetensors")
    shoal("predict", "m.safetensors", "x.csv", "--confusion", "c.png")
    assert max(Image.open("c.png").size) < 2400
    np.save("rows.npy", X)
    np.savetxt("ids.csv", np.arange(4000))
    refuses("--confusion: 4000 by 120 classes are more than the 1000 a picture shows: --score --json prints the table",
            "predict", "m.safetensors", "rows.npy", "--target", "ids.csv", "--confusion", "d.png", "--labels", "l.npy")
    assert not os.path.exists("d.png") and not os.path.exists("l.npy")


@apart.test
def what_has_no_table_is_told_before_the_run():
    X = blobs(40, 3)
    np.save("x.npy", X)
    shoal("autoencoder", "x.npy", "--hidden", 2, "--iterations", 2, "--output", "linear", "--model", "a.safetensors")
    shoal("kmeans", "x.npy", "-k", 3, "--model", "k.safetensors")
    refuses("--confusion: a.safetensors is a model of autoencoder, which has neither classes nor clusters", "predict",
            "a.safetensors", "x.npy", "--confusion", "c.svg")
    refuses("--score: x.npy does not hold the target of k.safetensors; give the known classes with --target "
            "COLUMN|FILE", "predict", "k.safetensors", "x.npy", "--confusion", "c.svg")
    refuses("--confusion c.csv: the name must end in .png or .svg", "predict", "k.safetensors", "x.npy", "--confusion",
            "c.csv")
    assert not os.path.exists("c.svg")


# ---- weights ---------------------------------------------------------------------------------------------------------


def images(path):
    """The images of an SVG file as arrays, and its texts."""
    root = xml.parse(path).getroot()
    found = [
        np.asarray(Image.open(io.BytesIO(base64.b64decode(image.get("href").split(",", 1)[1]))).convert("RGB"))
        for image in root.iter(SVG + "image")
    ]
    return found, [text.text for text in root.iter(SVG + "text")]


def bars(count=400, size=6):
    """Images of three kinds, each with a bright line of pixels elsewhere, and their kinds."""
    chance = np.random.default_rng(5)
    kinds = np.arange(count) % 3
    X = chance.random((count, size, size)) * 0.1
    for kind in range(3):
        X[kinds == kind, 2 * kind] += 1
    return X, kinds


@apart.test
def weights_of_classes_are_red_where_a_pixel_speaks_for_them():
    X, kinds = bars()
    np.save("x.npy", X)
    np.save("y.npy", kinds)
    with open("words.csv", "w") as file:
        file.write("\n".join(["ant", "bee", "cat"][kind] for kind in kinds) + "\n")
    train = ["logistic", "x.npy", "--target", "y.npy", "--l2", 1]
    shoal(*train, "--picture", "w.svg", "--model", "m.safetensors")
    (*found, scale), texts = images("w.svg")
    assert [image.shape for image in found] == [(6, 6, 3)] * 3 and {"0", "1", "2"} <= set(texts), texts
    for kind, image in enumerate(found):
        red, blue = image[..., 0].astype(int), image[..., 2].astype(int)
        assert (red[2 * kind] > blue[2 * kind] + 50).all()
        assert (blue[2 * ((kind + 1) % 3)] > red[2 * ((kind + 1) % 3)] + 20).all()
        assert (image[1] > 180).all()  # next to nothing
    assert (scale[0, scale.shape[1] // 2] == 255).all()
    for more in (["--threads", 1, "--kernel", "portable"], ["--workers", "local:2"]):
        shoal(*train, "--picture", "other.svg", *more)
        assert content("other.svg") == content("w.svg"), more
    shoal("logistic", "x.npy", "--target", "words.csv", "--l2", 1, "--picture", "words.svg")
    assert {"ant", "bee", "cat"} <= set(images("words.svg")[1])
    shoal(*train, "--picture", "w.png", "--picture-scale", 4, "--picture-columns", 1)
    assert Image.open("w.png").size[1] > 3 * 24
    np.save("two.npy", X[kinds < 2])
    np.save("two_y.npy", kinds[kinds < 2] + 4)
    shoal("logistic", "two.npy", "--target", "two_y.npy", "--l2", 1, "--picture", "two.svg")
    found, texts = images("two.svg")
    assert "5 (red) or 4 (blue)" in texts and len(found) == 2, texts  # with the scale


@apart.test
def weights_of_rows_that_are_no_images_are_told():
    X, kinds = bars(60)
    np.savetxt("x.csv", np.column_stack([X.reshape(60, 36)[:, :35], kinds]), delimiter=",")
    train = ["logistic", "x.csv", "--iterations", 3]
    done = shoal(*train, "--picture", "w.svg")
    assert ("--picture: the 35 columns of the data are drawn as images of 5x7; --picture-shape HxW chooses another "
            "shape") in done.stderr, done.stderr
    assert images("w.svg")[0][0].shape == (5, 7, 3)
    shoal(*train, "--picture", "w.svg", "--picture-shape", "7x5")
    assert images("w.svg")[0][0].shape == (7, 5, 3)
    refuses("--picture-shape: 6x6 does not make the 35 columns of the data", *train, "--picture", "w.svg",
            "--picture-shape", "6x6")
    refuses("--picture w.jpg: the name must end in .png or .svg", *train, "--picture", "w.jpg")
    refuses("--picture-shape, --picture-columns and --picture-scale change how --picture FILE is drawn: add --picture "
            "FILE", *train, "--picture-shape", "5x7")


@apart.test
def rows_that_are_all_equal_are_drawn():
    np.save("x.npy", np.full((10, 4), 0.1))
    shoal("kmeans", "x.npy", "-k", 1, "--plot", "p.svg")
    plot = Plot("p.svg")
    assert "PC1" in plot.texts and len(plot.dots[COLOURS[0]]) == 10


apart.main(at_once=4)
