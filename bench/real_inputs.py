# SPDX-License-Identifier: Apache-2.0
"""Models of other people, from their own packages, with inputs whose right answers are known.

The packages are those of tests/e2e/models.txt, which tools/venv unpacks. Inputs are made here
from fixed seeds and prepared as the packages do it: texts are drawn, spoken and hidden in
noise, notes are played, and files are those of Python and of this project. The function of a
model returns its samples for calibration, its samples for the test, and the task: a function
of the outputs of all test samples that returns the share of right answers."""

import bz2
import ctypes
import functools
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import sys
import sysconfig
import tarfile
import wave
import zipfile
import zlib
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = next((folder for folder in (Path(sys.prefix) / "models",
                                       ROOT / "build" / "venv" / "models")
                 if folder.is_dir()), Path(sys.prefix) / "models")
MODELS = {
    "magika": "magika/models/standard_v3_3/model.onnx",
    "silero_vad": "silero_vad/data/silero_vad.onnx",
    "ppocr_cls": "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
    "basic_pitch": "basic_pitch/saved_models/icassp_2022/nmp.onnx",
}
# Other models of the same packages, which have no task here.
RAPID, SILERO = "rapidocr_onnxruntime/models", "silero_vad/data"
MORE = {
    "ppocr_det": f"{RAPID}/ch_PP-OCRv4_det_infer.onnx",
    "ppocr_rec": f"{RAPID}/ch_PP-OCRv4_rec_infer.onnx",
    "silero_vad_16k": f"{SILERO}/silero_vad_16k_op15.onnx",
    "silero_vad_ifless": f"{SILERO}/silero_vad_op18_ifless.onnx",
    "silero_vad_half": f"{SILERO}/silero_vad_half.onnx",
    "silero_vad_openvino": f"{SILERO}/silero_vad_openvino_16k.onnx",
}
WORDS = ("the model reads a line of text that nobody has seen before and says which way up "
         "it stands seven quick engines measure every morning how much noise the street "
         "makes between nine and ten while rain falls on old roofs of the harbour").split()


def pillow():
    """Imports Pillow from the packages of the models."""
    if str(PACKAGES) not in sys.path:
        sys.path.append(str(PACKAGES))
    from PIL import Image, ImageDraw, ImageFont
    return Image, ImageDraw, ImageFont


def sentence(rng, least, most):
    return " ".join(rng.choice(WORDS, rng.integers(least, most + 1)))


# --- magika: bytes of a file to its type -----------------------------------------------

def of_ending(rng, ending, n):
    """Returns the bytes of n files of Python, of its packages and of this project."""
    found = []
    for folder in (Path(sysconfig.get_path("stdlib")), Path(sys.prefix) / "lib",
                   ROOT / "engine", ROOT / "docs", ROOT / "daemon", ROOT / "tools"):
        found += sorted(folder.rglob("*" + ending))
    found = [p for p in found if p.is_file() and 400 < p.stat().st_size < 4 << 20]
    return [found[i].read_bytes() for i in rng.permutation(len(found))[:n]]


def image(rng, kind):
    Image, ImageDraw, _ = pillow()
    made = Image.new("RGB", tuple(int(n) for n in rng.integers(30, 200, 2)))
    draw = ImageDraw.Draw(made)
    for _ in range(30):
        left, top, wide, high = (int(n) for n in rng.integers(1, 150, 4))
        draw.ellipse([left, top, left + wide, top + high],
                     fill=tuple(int(c) for c in rng.integers(0, 256, 3)))
    to = io.BytesIO()
    made.save(to, kind)
    return to.getvalue()


def archive(rng, kind, texts, to):
    bodies = [texts[i][:20000] for i in rng.integers(0, len(texts), rng.integers(1, 5))]
    if kind == "zip":
        with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as made:
            for i, body in enumerate(bodies):
                made.writestr(f"folder/file{i}.py", body)
        return
    with tarfile.open(fileobj=to, mode="w") as made:
        for i, body in enumerate(bodies):
            row = tarfile.TarInfo(f"folder/file{i}.py")
            row.size = len(body)
            made.addfile(row, io.BytesIO(body))


def packed(rng, kind, texts):
    """Returns a file of a kind that other files or numbers are made into."""
    to = io.BytesIO()
    if kind in ("zip", "tar"):
        archive(rng, kind, texts, to)
    elif kind == "npz":
        np.savez(to, a=rng.normal(size=200), b=rng.integers(0, 9, 300))
    elif kind == "npy":
        np.save(to, rng.normal(size=int(rng.integers(200, 900))))
    elif kind == "wav":
        with wave.open(to, "wb") as sound:
            sound.setparams((1, 2, 16000, 0, "NONE", ""))
            sound.writeframes((rng.normal(size=3000) * 4000).astype("<i2").tobytes())
    elif kind == "sqlite":
        base = sqlite3.connect(":memory:")
        base.execute("create table words (id integer primary key, word text)")
        base.executemany("insert into words (word) values (?)",
                         [(str(word),) for word in rng.choice(WORDS, 300)])
        base.commit()
        to.write(base.serialize())
    elif kind == "pickle":
        pickle.dump({w: rng.normal(size=4).tolist() for w in WORDS}, to, protocol=4)
    elif kind == "csv":
        rows = [",".join(map(str, rng.integers(0, 1000, 6))) for _ in range(60)]
        to.write("\n".join(["id,width,height,left,top,count", *rows]).encode())
    elif kind == "ini":
        for section in rng.choice(WORDS, 12):
            rows = [f"{key} = {rng.integers(1000)}\n" for key in rng.choice(WORDS, 5)]
            to.write("".join([f"[{section}]\n", *rows]).encode())
    else:
        pack = {"gzip": gzip.compress, "bzip": bz2.compress, "xz": lzma.compress,
                "zlibstream": zlib.compress}[kind]
        to.write(pack(texts[rng.integers(len(texts))]))
    return to.getvalue()


def features(content):
    """Returns the tokens of a file, as magika.Magika makes them."""
    first, last = content[:4096].lstrip(), content[-4096:].rstrip()
    if len(content) <= 4096:
        first = last = content.strip()
    first, last = first[:1024], last[-1024:]
    tokens = np.full((1, 2048), 256, np.int32)
    tokens[0, :len(first)] = np.frombuffer(first, np.uint8)
    tokens[0, 2048 - len(last):] = np.frombuffer(last, np.uint8)
    return tokens


def magika(_):
    rng = np.random.default_rng(1)
    config = (PACKAGES / MODELS["magika"]).with_name("config.min.json")
    types = json.loads(config.read_text())["target_labels_space"]
    files = []
    for ending, kind in ((".py", "python"), (".pyc", "pythonbytecode"), (".c", "c"),
                         (".md", "markdown"), (".so", "elf"), (".json", "json"),
                         (".js", "javascript"), (".css", "css"), (".html", "html"),
                         (".lua", "lua")):
        files += [(body, kind) for body in of_ending(rng, ending, 14)]
    texts = [body for body, kind in files if kind in ("python", "c", "markdown")]
    for kind in ("png", "jpeg", "gif", "bmp", "tiff", "webp"):
        files += [(image(rng, kind), kind) for _ in range(9)]
    for kind in ("zip", "tar", "npz", "npy", "wav", "sqlite", "pickle", "csv", "ini", "gzip",
                 "bzip", "xz", "zlibstream"):
        files += [(packed(rng, kind, texts), kind) for _ in range(9)]
    files = [files[i] for i in rng.permutation(len(files))]
    feeds = [{"bytes": features(body)} for body, _ in files]
    labels = np.array([types.index(kind) for _, kind in files[64:]])
    return feeds[:64], feeds[64:], lambda outputs: np.mean(
        outputs[0].reshape(len(labels), -1).argmax(1) == labels)


# --- silero_vad: is this speech? -------------------------------------------------------

class Voice:
    """Speaks English by eSpeak NG."""

    def __init__(self):
        folder = PACKAGES / "espeakng_loader"
        self.library = ctypes.CDLL(str(folder / "libespeak-ng.so"))
        # The mode 2 calls a function with the sound before espeak_Synth() returns.
        self.rate = self.library.espeak_Initialize(2, 0, str(folder).encode(), 0)
        self.library.espeak_SetVoiceByName(b"en")
        self.heard = []
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int,
                                ctypes.c_void_p)
        self.callback = kind(self.on_sound)
        self.library.espeak_SetSynthCallback(self.callback)

    def on_sound(self, sound, n, _):
        if sound and n > 0:
            self.heard.append(np.ctypeslib.as_array(sound, (n,)).copy())
        return 0

    def say(self, text, words_a_minute, pitch):
        """Returns sound at 16 kHz."""
        self.heard = []
        self.library.espeak_SetParameter(1, int(words_a_minute), 0)
        self.library.espeak_SetParameter(3, int(pitch), 0)
        body = text.encode() + b"\0"
        self.library.espeak_Synth(body, ctypes.c_size_t(len(body)), 0, 0, 0, 1, None, None)
        sound = np.concatenate(self.heard).astype(np.float32) / 32768
        at = np.arange(0, len(sound) - 1, self.rate / 16000)
        return np.interp(at, np.arange(len(sound)), sound).astype(np.float32)


@functools.cache
def english():
    """Returns the voice of this process: eSpeak NG cannot be opened twice."""
    return Voice()


def stream(rng, voice):
    """Returns sound, and how loud the speech is in each 512 samples of it."""
    sound, speech = [], []
    for _ in range(5):
        if rng.random() < 0.6:
            part = voice.say(sentence(rng, 3, 7), rng.integers(130, 220),
                             rng.integers(20, 80)) * rng.uniform(0.3, 1)
            speech.append(part)
        else:
            n = int(rng.integers(8000, 24000))
            part = np.sin(np.arange(n) * rng.uniform(0.02, 0.4)) * rng.choice([0, 0.1])
            speech.append(np.zeros(n))
        sound.append(part)
    sound, speech = np.concatenate(sound), np.concatenate(speech)
    sound = sound + rng.normal(size=len(sound)) * 10 ** rng.uniform(-3.5, -1.7)
    n = len(sound) // 512
    loud = np.sqrt((speech[:n * 512].reshape(n, 512) ** 2).mean(1))
    return sound.astype(np.float32), loud


def silero_vad(session):
    """Feeds the state that the float model has, so that each sample stands alone. A chunk has
    a right answer where its neighbours are all loud or all quiet."""
    rng, voice = np.random.default_rng(2), english()
    known, rows = {one.name for one in session.get_inputs()}, []
    for _ in range(12):
        sound, loud = stream(rng, voice)
        state, context = np.zeros((2, 1, 128), np.float32), np.zeros(64, np.float32)
        for i, level in enumerate(loud):
            chunk = sound[i * 512:(i + 1) * 512]
            feed = {"input": np.concatenate([context, chunk])[None], "state": state,
                    "sr": np.array(16000, np.int64)}
            feed = {name: feed[name] for name in feed if name in known}
            state, context = session.run(None, feed)[1], chunk[-64:]
            near = loud[max(0, i - 3):i + 4]
            if near.min() > 0.01 or near.max() < 1e-4:
                rows.append((feed, level > 0.01))
    rows = [rows[i] for i in rng.permutation(len(rows))[:396]]
    feeds, labels = [feed for feed, _ in rows], np.array([row[1] for row in rows[96:]])
    return feeds[:96], feeds[96:], lambda outputs: np.mean(
        (outputs[0].reshape(-1) > 0.5) == labels)


# --- ppocr_cls: is the text upside down? -----------------------------------------------

def line(rng, most=192, upright=False):
    """Returns a drawn line of text, prepared as RapidOCR does it, and whether it is turned."""
    Image, ImageDraw, ImageFont = pillow()
    font = ImageFont.load_default(int(rng.integers(22, 40)))
    text = sentence(rng, 1, 3)
    box = font.getbbox(text)
    paper = tuple(int(c) for c in rng.integers(150, 256, 3))
    ink = tuple(int(c) for c in rng.integers(0, 100, 3))
    made = Image.new("RGB", (int(box[2]) + 12, int(box[3]) + 12), paper)
    ImageDraw.Draw(made).text((6, 4), text, fill=ink, font=font)
    made = made.rotate(float(rng.uniform(-2, 2)), fillcolor=paper)
    turned = not upright and bool(rng.random() < 0.5)
    if turned:
        made = made.rotate(180)
    width = min(most, -(-48 * made.width // made.height))
    pixels = np.asarray(made.resize((width, 48)), np.float32)[:, :, ::-1]
    pixels = np.clip(pixels + rng.normal(size=pixels.shape) * rng.uniform(0, 20), 0, 255)
    fed = np.zeros((1, 3, 48, most), np.float32)
    fed[0, :, :, :width] = pixels.transpose(2, 0, 1) / 127.5 - 1
    return fed, turned


def ppocr_cls(_):
    rng = np.random.default_rng(3)
    rows = [line(rng) for _ in range(168)]
    feeds = [{"x": fed} for fed, _ in rows]
    labels = np.array([int(turned) for _, turned in rows[48:]])
    return feeds[:48], feeds[48:], lambda outputs: np.mean(
        outputs[0].reshape(len(labels), -1).argmax(1) == labels)


def ppocr_rec(_):
    rng = np.random.default_rng(5)
    feeds = [{"x": line(rng, 320, upright=True)[0]} for _ in range(80)]
    return feeds[:32], feeds[32:], None


def ppocr_det(_):
    """Pages of four lines each, as large as RapidOCR's smallest."""
    rng, feeds = np.random.default_rng(6), []
    for _ in range(36):
        page = np.full((1, 3, 320, 320), rng.uniform(0.2, 1), np.float32)
        for row in range(4):
            at = 20 + 76 * row
            page[:, :, at:at + 48] = line(rng, 320, upright=True)[0]
        feeds.append({"x": page})
    return feeds[:16], feeds[16:], None


# --- basic_pitch: which notes are played? ----------------------------------------------

LENGTH, FRAME, FRAMES, RATE = 43844, 256, 172, 22050


def music(rng):
    """Returns two seconds of notes, and which of the 88 keys sound in each frame."""
    sound, keys = np.zeros(LENGTH), np.zeros((FRAMES, 88), bool)
    for _ in range(int(rng.integers(4, 9))):
        key, first = int(rng.integers(24, 64)), int(rng.integers(0, LENGTH - 9000))
        n = min(int(rng.integers(6000, 16000)), LENGTH - first)
        at, dull = np.arange(n) / RATE, rng.uniform(1, 2)
        tone = sum(np.sin(2 * np.pi * 27.5 * 2 ** (key / 12) * h * at) / h ** dull
                   for h in range(1, 9))
        shape = np.minimum(at / 0.01, 1) * np.exp(-at * rng.uniform(0.5, 3))
        shape *= np.minimum((n - np.arange(n)) / 500, 1)
        sound[first:first + n] += tone * shape * rng.uniform(0.1, 0.25)
        keys[first // FRAME:(first + n) // FRAME, key] = True
    sound += rng.normal(size=LENGTH) * 10 ** rng.uniform(-4, -2.5)
    return sound.astype(np.float32).reshape(1, LENGTH, 1), keys


def f1(outputs, keys):
    """Returns the F1 of the notes, frame by frame. The notes are the output of 88 keys that
    is on for longer than the other, which has their onsets."""
    found = max((o.reshape(keys.shape) > 0.5 for o in outputs if o.shape[-1] == 88),
                key=np.sum)
    return 2 * np.sum(found & keys) / (found.sum() + keys.sum())


def basic_pitch(session):
    rng = np.random.default_rng(4)
    rows = [music(rng) for _ in range(40)]
    name = session.get_inputs()[0].name
    feeds = [{name: sound} for sound, _ in rows]
    keys = np.stack([row[1] for row in rows[16:]])
    return feeds[:16], feeds[16:], lambda outputs: f1(outputs, keys)


INPUTS = {"magika": magika, "silero_vad": silero_vad, "ppocr_cls": ppocr_cls,
          "basic_pitch": basic_pitch, "ppocr_det": ppocr_det, "ppocr_rec": ppocr_rec,
          **{name: silero_vad for name in MORE if name.startswith("silero")}}


def dataset(feeds):
    """Returns the arrays of a dataset: lists of samples."""
    return {name: np.stack([feed[name] for feed in feeds]) for name in feeds[0]}
