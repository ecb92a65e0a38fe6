# SPDX-License-Identifier: Apache-2.0
"""JPEG and PNG files as calibration data: what a model gets is what Pillow and NumPy make of them."""

import io
import json
import resource
import subprocess
import tarfile
import zipfile
import zlib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from service import INSTALLED, QUANTIZE

QDQ = INSTALLED / "bin" / "qdq"
RESAMPLE = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "nearest": Image.NEAREST}
MODES = ["RGB", "L", "P", "RGBA", "LA", "1"]


def picture(random, mode="RGB", size=None):
    """Returns a picture of smooth colors and some noise, as photographs have them."""
    width, height = size or random.integers(9, 70, 2)
    rough = random.integers(0, 256, (4, 5, 3), np.uint8)
    image = Image.fromarray(rough).resize((int(width), int(height)), Image.BICUBIC)
    noise = random.integers(-20, 21, (int(height), int(width), 3))
    image = Image.fromarray(np.clip(np.asarray(image) + noise, 0, 255).astype(np.uint8))
    if mode in ("RGBA", "LA"):
        image.putalpha(Image.fromarray(random.integers(0, 256, (int(height), int(width)), np.uint8)))
    return image.convert(mode)


def encoded(image, form, **options):
    data = io.BytesIO()
    image.save(data, form, **options)
    return data.getvalue()


def pictures(n, forms=("png", "jpg"), seed=1):
    """Returns n files by name, of all modes that their forms have."""
    random = np.random.default_rng(seed)
    files = {}
    for i in range(n):
        form = forms[i % len(forms)]
        mode = MODES[i // 2 % len(MODES)] if form == "png" else ["RGB", "L"][i // 2 % 2]
        options = {"progressive": i % 3 == 0, "quality": 60 + i % 35,
                   "subsampling": i % 3} if form == "jpg" else {}
        data = encoded(picture(random, mode), "JPEG" if form == "jpg" else "PNG", **options)
        files[f"{i:04}.{form}"] = data
    return files


def tar_of(path, files):
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def zip_of(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def folder_of(path, files):
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def net(path, height=24, width=20, channels=3, last=False):
    """Writes a model of one convolution and returns its path."""
    shape = ["n", height, width, channels] if last else ["n", channels, height, width]
    random = np.random.default_rng(5)
    weight = random.normal(0, 0.5, (8, channels, 3, 3)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x"], ["c"])]
    nodes = [helper.make_node("Transpose", ["image"], ["x"], perm=[0, 3, 1, 2])] if last else [
        helper.make_node("Identity", ["image"], ["x"])]
    nodes += [helper.make_node("Conv", ["x", "w"], ["c"], "conv"),
              helper.make_node("Relu", ["c"], ["r"]),
              helper.make_node("GlobalAveragePool", ["r"], ["y"])]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8, 1, 1])],
        [numpy_helper.from_array(weight, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                ir_version=8), path)
    return path


def expected(data, row, height=24, width=20, channels=3):
    """Returns what Pillow and NumPy make of a file."""
    image = Image.open(io.BytesIO(data)).convert("L" if channels == 1 else "RGB")
    resample = RESAMPLE.get(row.get("resize", "bilinear"))
    size = row.get("size", [height, width])
    if isinstance(size, int):
        w, h = image.size
        size = [size, size * w // h] if h <= w else [size * h // w, size]
    if resample is not None:
        image = image.resize((size[1], size[0]), resample)
    if "crop" in row:
        h, w = row["crop"]
        left = round((image.width - w) / 2)
        top = round((image.height - h) / 2)
        image = image.crop((left, top, left + w, top + h))
    pixels = np.asarray(image, np.float32).reshape(image.height, image.width, channels)
    if row.get("channels") == "bgr":
        pixels = pixels[:, :, ::-1]
    values = pixels * np.float32(row.get("scale", 1))
    values = (values - np.float32(row.get("mean", 0))) / np.float32(row.get("std", 1))
    return values if row.get("layout") == "nhwc" else values.transpose(2, 0, 1)


def run(*arguments, **options):
    return subprocess.run([QDQ, *map(str, arguments)], capture_output=True, text=True,
                          timeout=300, stdin=subprocess.DEVNULL, **options)


def spec_of(path, row, **more):
    path.write_text(json.dumps({"preprocess": {"image": row}, **more}))
    return path


def samples_of(tmp_path, data, model, row):
    out = tmp_path / "samples.npy"
    out.unlink(missing_ok=True)
    done = run("data", data, "--model", model, "--spec", spec_of(tmp_path / "s.json", row),
               "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    return np.load(out), json.loads(done.stdout)


IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225],
            "scale": 0.00392156862745098}
PREPROCESSINGS = [
    {}, {"resize": "bicubic"}, {"resize": "nearest"},
    {"scale": 0.00392156862745098},
    IMAGENET,
    {**IMAGENET, "layout": "nhwc"},
    {"channels": "bgr", "mean": [103.939, 116.779, 123.68]},
    {"channels": "gray", "scale": 0.00392156862745098},
    {"size": [24, 20], "resize": "bicubic", "layout": "nhwc", "channels": "bgr"},
    {"size": 31, "crop": [24, 20]},
    {"size": [40, 33], "crop": [24, 20], "resize": "bicubic", **IMAGENET},
    {"size": 27, "crop": [24, 20], "resize": "nearest", "mean": 127.5, "std": 127.5},
]


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    files = pictures(1000)
    return files, tar_of(tmp_path_factory.mktemp("images") / "images.tar", files)


@pytest.mark.parametrize("row", PREPROCESSINGS, ids=lambda row: ",".join(
    f"{k}={v}" for k, v in row.items() if k not in ("mean", "std", "scale")) + f",{len(row)}")
def test_as_pillow_and_numpy(tmp_path, thousand, row):
    files, tar = thousand
    channels = 1 if row.get("channels") == "gray" else 3
    model = net(tmp_path / "m.onnx", channels=channels, last=row.get("layout") == "nhwc")
    got, said = samples_of(tmp_path, tar, model, row)
    wanted = np.stack([expected(data, row, channels=channels) for data in files.values()])
    assert got.shape == wanted.shape and said["samples"] == 1000
    assert said["model_inputs"][0]["shape"] == [1, *wanted.shape[1:]]
    # one step of a pixel, as it is after scaling
    step = abs(row.get("scale", 1)) / np.min(np.abs(row.get("std", 1)))
    assert np.max(np.abs(got - wanted)) <= step * 1.001
    is_png = [name.endswith(".png") for name in files]
    np.testing.assert_array_equal(got[is_png], wanted[is_png])


FORMS = {"tar": ("d.tar", tar_of), "tar.gz": ("d.tar.gz", tar_of), "zip": ("d.zip", zip_of),
         "folder": ("d", folder_of)}


@pytest.mark.parametrize("form", FORMS)
def test_same_model_as_from_arrays(tmp_path, form):
    files = pictures(40, forms=["png"])
    row = {**IMAGENET, "resize": "bicubic"}
    name, make = FORMS[form]
    data = make(tmp_path / name, dict(reversed(files.items())))
    model = net(tmp_path / "m.onnx")
    np.savez(tmp_path / "d.npz", image=np.stack([expected(d, row) for d in files.values()]))
    results = []
    for given, spec in (data, {"preprocess": {"image": row}}), (tmp_path / "d.npz", {}):
        (tmp_path / "s.json").write_text(json.dumps(spec))
        out = tmp_path / "o.onnx"
        done = subprocess.run([*QUANTIZE, model, "--spec", tmp_path / "s.json",
                               "--calibration", given, "-o", out,
                               "--report", tmp_path / "r.json"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        loaded = onnx.load(out)
        del loaded.metadata_props[:]
        results.append(loaded.SerializeToString())
        if given == data:
            report = json.loads((tmp_path / "r.json").read_text())
            frozen = report["spec"]["preprocess"]["image"]
            assert frozen["resize"] == "bicubic" and frozen["layout"] == "nchw"
    assert results[0] == results[1]


def test_folders_are_labels(tmp_path):
    files = pictures(9, forms=["png"])
    named = {f"{'cat' if i < 6 else 'dog'}/{name}": data
             for i, (name, data) in enumerate(files.items())}
    done = run("data", folder_of(tmp_path / "d", named), "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["classes"] == ["cat", "dog"] and said["labels"] == [6, 3]
    assert said["inputs"][0]["name"] == "images" and said["inputs"][1]["name"] == "labels"
    # Samples are taken from the folders in turn.
    got, _ = samples_of(tmp_path, tmp_path / "d", net(tmp_path / "m.onnx"), {})
    order = [0, 6, 1, 7, 2, 8, 3, 4, 5]
    all_of = list(files.values())
    np.testing.assert_array_equal(got, [expected(all_of[i], {}) for i in order])
    done = run("data", tmp_path / "d")
    assert "label     0 cat: 6" in done.stdout.splitlines()


def test_classes_are_in_the_order_of_their_names(tmp_path):
    names = ["cat-big", "cat", "cat.2", "a b", "a", "é"]
    files = {f"{name}/0.png": encoded(picture(np.random.default_rng(1)), "PNG")
             for name in names}
    said = json.loads(run("data", folder_of(tmp_path / "d", files), "--json").stdout)
    assert said["classes"] == sorted(names)
    files = {f"set/{name}": data for name, data in files.items()}
    said = json.loads(run("data", zip_of(tmp_path / "d.zip", files), "--json").stdout)
    assert said["classes"] == sorted(names)


def test_links_to_nothing(tmp_path):
    folder = folder_of(tmp_path / "d", pictures(2))
    (folder / "notes.txt").symlink_to("nowhere")
    assert run("data", folder).returncode == 0
    (folder / "x.png").symlink_to("nowhere")
    done = run("data", folder)
    assert done.returncode == 1 and "x.png: No such file" in done.stderr


@pytest.mark.parametrize("label", [b"", b"cat", b"3.0", b"1\0", b"1 2", b"-2", b"9" * 23])
def test_labels_that_are_no_numbers(tmp_path, label):
    files = {**pictures(1, ["jpg"]), "0000.cls": label}
    done = run("data", tar_of(tmp_path / "d.tar", files))
    assert done.returncode == 1 and "'0000.cls'" in done.stderr, done.stdout


def test_two_labels_of_one_image(tmp_path):
    path = tmp_path / "d.tar"
    with tarfile.open(path, "w") as archive:
        for name, data in [("a.jpg", pictures(1, ["jpg"]).popitem()[1]),
                           ("a.cls", b"1"), ("a.cls", b"2")]:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    done = run("data", path)
    assert done.returncode == 1 and "two labels" in done.stderr and "'a.cls'" in done.stderr


def test_shard_of_webdataset(tmp_path):
    files = {}
    for i, data in enumerate(pictures(6, forms=["jpg"]).values()):
        files[f"{i:03}.jpg"] = data
        files[f"{i:03}.cls"] = f"{i % 3}\n".encode()
        files[f"{i:03}.json"] = b"{}"
    said = json.loads(run("data", tar_of(tmp_path / "d.tar", files), "--json").stdout)
    assert said["samples"] == 6 and said["labels"] == [2, 2, 2]
    del files["004.cls"]
    done = run("data", tar_of(tmp_path / "d.tar", files))
    assert done.returncode == 1 and "'004.jpg'" in done.stderr and "004.cls" in done.stderr


def test_sixteen_bits_and_interlaced(tmp_path):
    wide = np.arange(24 * 20, dtype=np.uint16).reshape(24, 20) * 136
    files = {"a.png": encoded(Image.fromarray(wide), "PNG")}
    got, _ = samples_of(tmp_path, tar_of(tmp_path / "d.tar", files),
                        net(tmp_path / "m.onnx", channels=1), {})
    np.testing.assert_array_equal(got[0, 0], wide >> 8)


def bomb(width, height):
    def chunk(kind, data):
        return (len(data).to_bytes(4, "big") + kind + data +
                zlib.crc32(kind + data).to_bytes(4, "big"))
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) +
            chunk(b"IDAT", zlib.compress(bytes(1 << 20))) + chunk(b"IEND", b""))


def wrong_files():
    random = np.random.default_rng(3)
    png = encoded(picture(random, size=(64, 64)), "PNG")
    jpg = encoded(picture(random, size=(64, 64)), "JPEG")
    jpeg_bomb = bytearray(jpg)
    at = jpg.index(b"\xff\xc0") + 5
    jpeg_bomb[at:at + 4] = (60000).to_bytes(2, "big") * 2
    return {
        "cut.png": (png[:len(png) // 2], "cut short"),
        "cut.jpg": (jpg[:len(jpg) // 2], "cut short"),
        "start.jpg": (jpg[:20], "cut short"),
        "page.jpg": (b"<!DOCTYPE html><html></html>", "HTML"),
        "bomb.png": (bomb(60000, 60000), "3600000000 pixels"),
        "bomb.jpg": (bytes(jpeg_bomb), "3600000000 pixels"),
        "empty.png": (b"", "empty"),
        "cmyk.jpg": (encoded(picture(random).convert("CMYK"), "JPEG"), "CMYK"),
        "zeros.png": (bytes(100), "neither a JPEG nor a PNG"),
        "none.png": (bomb(0, 5), "no pixels"),
    }


@pytest.mark.parametrize("name", wrong_files())
def test_wrong_files(tmp_path, name):
    data, text = wrong_files()[name]
    good = pictures(3, forms=["png"])
    tar = tar_of(tmp_path / "d.tar", {**good, name: data})
    memory = 1 << 30
    done = run("data", tar, "--model", net(tmp_path / "m.onnx"), "--spec",
               spec_of(tmp_path / "s.json", {}),
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)))
    assert done.returncode == 1
    line = done.stderr.strip().splitlines()[-1]
    assert f"'{name}'" in line and text in line and "docs/reference/data.md" in line


@pytest.mark.parametrize("row, text", [
    (None, '"calibration": {"cast": true}'),
    ({"layout": "nhwc"}, "its last axis is no 1 or 3 channels"),
    ({"size": 30}, '"crop"'),
    ({"crop": [24, 20]}, '"size"'),
    ({"size": [30, 30]}, "another height or width"),
    ({"channels": "gray"}, "another number of channels"),
    ({"resize": "none"}, 'let "resize" change it'),
    ({"size": 10, "crop": [24, 20]}, "larger than it"),
])
def test_what_to_do(tmp_path, row, text):
    tar = tar_of(tmp_path / "d.tar", pictures(3))
    spec = spec_of(tmp_path / "s.json", row) if row else None
    done = run("data", tar, "--model", net(tmp_path / "m.onnx"),
               *(["--spec", spec] if spec else []))
    assert done.returncode == 1 and text in done.stderr, done.stderr


@pytest.mark.parametrize("row, text", [
    ({"size": [1, 2, 3]}, "[height, width]"), ({"size": 0}, "1 to"), ({"crop": [3]}, "[height"),
    ({"resize": "lanczos"}, "bilinear"), ({"channels": "hsv"}, "rgb"),
    ({"mean": 1e300}, "range of float32"), ({"std": [1, 1e39, 1]}, "range of float32"),
    ({"scale": 1e39}, "range of float32")])
def test_wrong_specs(tmp_path, row, text):
    done = run("data", tar_of(tmp_path / "d.tar", pictures(2)), "--spec",
               spec_of(tmp_path / "s.json", row))
    assert done.returncode == 1 and text in done.stderr, done.stderr


def test_members_of_images_need_images(tmp_path):
    np.savez(tmp_path / "d.npz", image=np.zeros((4, 3, 24, 20), np.float32))
    done = run("data", tmp_path / "d.npz", "--model", net(tmp_path / "m.onnx"), "--spec",
               spec_of(tmp_path / "s.json", {"size": [24, 20]}))
    assert done.returncode == 1 and "are for images" in done.stderr


def test_arrays(tmp_path):
    np.savez(tmp_path / "d.npz", image=np.float32([[1, 2], [3, np.nan]]),
             labels=np.array([4, 0]))
    done = run("data", tmp_path / "d.npz", "--json")
    said = json.loads(done.stdout)
    facts = said["arrays"][0]
    assert (facts["min"], facts["max"], facts["mean"], facts["not_finite"]) == (1, 3, 2, 1)
    assert said["labels"] == [1, 0, 0, 0, 1] and said["preprocess"] is None


def test_arrays_named_as_those_of_images(tmp_path):
    np.savez(tmp_path / "d.npz", images=np.zeros((3, 3, 4, 4), np.uint8),
             labels=np.array([1, 1, 2]))
    assert json.loads(run("data", tmp_path / "d.npz", "--json").stdout)["labels"] == [0, 2, 1]


def plain_net(path, shapes):
    """Writes a model that adds up its inputs of these shapes."""
    inputs = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, shape)
              for i, shape in enumerate(shapes)]
    node = helper.make_node("Sum", [value.name for value in inputs], ["y"])
    graph = helper.make_graph([node], "net", inputs, [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                ir_version=8), path)
    return path


def test_written_samples(tmp_path):
    """The file has what the model got: whole batches, of one size and one input."""
    data = np.random.default_rng(1).normal(size=(10, 3)).astype(np.float32)
    np.save(tmp_path / "d.npy", data)
    out = tmp_path / "o.npy"
    done = run("data", tmp_path / "d.npy", "--model", plain_net(tmp_path / "m.onnx", [[4, 3]]),
               "-o", out)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(out), data[:8])

    np.savez(tmp_path / "d.npz", x0=data, x1=data)
    done = run("data", tmp_path / "d.npz", "--model",
               plain_net(tmp_path / "two.onnx", [["n", 3]] * 2), "-o", tmp_path / "2.npy")
    assert done.returncode == 1 and "2 inputs" in done.stderr
    assert not (tmp_path / "2.npy").exists()

    files = {f"test_data_set_{i}/input_0.pb": numpy_helper.from_array(
        np.zeros((1, 2 + i), np.float32), "x0").SerializeToString() for i in range(2)}
    done = run("data", zip_of(tmp_path / "d.zip", files), "--model",
               plain_net(tmp_path / "open.onnx", [["n", "k"]]), "-o", tmp_path / "3.npy")
    assert done.returncode == 1 and "differ in size" in done.stderr
    assert not (tmp_path / "3.npy").exists()


def test_through_the_daemon(tmp_path, daemon):
    """Uploads, labels and the task, in a worker's walls."""
    named = {f"{i % 8}/{name}": data
             for i, (name, data) in enumerate(pictures(32).items())}
    model = net(tmp_path / "m.onnx")
    spec = {"preprocess": {"image": IMAGENET}}
    job = daemon.submit(model=daemon.upload("models", model), spec=spec,
                        calibration=daemon.upload("datasets", tar_of(tmp_path / "d.tar", named)))
    daemon.succeeded(job)
    (tmp_path / "s.json").write_text(json.dumps(spec))
    done = subprocess.run([*QUANTIZE, model, "--spec", tmp_path / "s.json", "--calibration",
                           folder_of(tmp_path / "d", named), "-o", tmp_path / "o.onnx"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ours, theirs = onnx.load(tmp_path / "o.onnx"), onnx.load_from_string(daemon.result(job))
    assert ours.graph == theirs.graph
