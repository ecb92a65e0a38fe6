# SPDX-License-Identifier: Apache-2.0
"""Trains tokenizers as decoders have them, makes texts, and writes what the library `tokenizers`
makes of them. The Python that runs this has that library alone (pins/tokenizers.txt).

    encode_texts.py FOLDER [SEED]     FOLDER/NAME/tokenizer.json, long.txt, N.txt and ids.json: {file: ids}
"""

import json
import pydoc_data.topics
import random
import re
import sys
import unicodedata
from pathlib import Path

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace("{1,3}", "")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|"
         r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEXTS = [text for _, text in sorted(pydoc_data.topics.topics.items())]
WORDS = re.findall(r"\S+", " ".join(TEXTS[:40]))
SINGLE, LONG = 60, 3000  # texts of files of their own, and those in the long file


def assigned():
    """Characters that this Python's version of Unicode has, by planes, and some that none has."""
    planes = {}
    for c in range(0x110000):
        if unicodedata.category(chr(c)) not in ("Cs", "Cn", "Co"):
            planes.setdefault(c >> 16, []).append(chr(c))
    # Most of these planes is ideographs, which would hide everything else.
    planes[0] = [c for c in planes[0] if not "\u3400" <= c <= "\u9fff" and
                 not "\uac00" <= c <= "\ud7a3"] + list("漢字仮名交じり文中文測試한국어텍스트") * 20
    planes[4] = [chr(c) for c in (0x40000, 0x5ffff, 0xe0fff, 0xf0000, 0x10fffd, 0xfffe, 0xfdd0, 0xe000)]
    return planes


PLANES = assigned()
MARKS = [c for c in PLANES[0] + PLANES[1] if unicodedata.category(c)[0] == "M"]
SPACES = list(" \t\n\r\x0b\x0c\x85\xa0\u1680\u180e\u2003\u2028\u2029\u202f\u205f\u3000\u200b\ufeff")
PIECES = ["'s", "'LL", "'re", "'ſ", "’s", "don't", "İstanbul", "ﬁ", "Å", "e\u0301", "e\u0301\u0323",
          "\u1100\u1161\u11a8", "각", "👩‍👩‍👧‍👦", "🇩🇪", "❤️", "½", "Ⅷ", "٣٤٥", "１２３", "12345678",
          "3.14159", "a_b-c", "\r\n", "\n\n\n", "▁", "▁▁", "\x00", "\x7f", "<0x0A>", "##", "</w>",
          "ſtraße", "ǅ", "ℵ", "Ⓐ", "🄰", "مرحبا", "नमस्ते", "สวัสดี", "日本語、テスト。", "￼"]


def piece(rnd, added):
    kind = rnd.randrange(12)
    if kind < 3:
        return " ".join(rnd.choices(WORDS, k=rnd.randrange(1, 9)))
    if kind == 3:
        return "".join(rnd.choices(PLANES[rnd.choice(list(PLANES))], k=rnd.randrange(1, 12)))
    if kind == 4:
        return rnd.choice("ae가नA") + "".join(rnd.choices(MARKS, k=rnd.randrange(1, 9)))
    if kind == 5:
        return "".join(rnd.choices(SPACES, k=rnd.randrange(1, 6)))
    if kind == 6:
        return rnd.choice([" ", "\n", "a", "0", "ab", "漢", "🙂", "=", "\u0301", " \n"]) * \
            rnd.choice([1, 2, 3, 7, 40, 300])
    if kind == 7:
        return str(rnd.randrange(10 ** rnd.randrange(1, 14)))
    if kind == 8:
        return rnd.choice(added)
    if kind == 9:
        return rnd.choice(added)[:-1]
    return rnd.choice(PIECES)


def text(rnd, added):
    return "".join(piece(rnd, added) + rnd.choice(["", "", " ", "  ", "\n"])
                   for _ in range(rnd.randrange(1, 14)))


def trained(tokenizer, size, texts=TEXTS, **options):
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, show_progress=False,
                                                             **options))
    return tokenizer


def byte_level(pre_tokenizer, normalizer=None, **model):
    t = Tokenizer(models.BPE())
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizer
    t.decoder = decoders.ByteLevel()
    trained(t, 2000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    state = json.loads(t.to_str())
    state["model"].update(model)
    return Tokenizer.from_str(json.dumps(state))


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def gpt2():
    t = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))
    t.post_processor = processors.ByteLevel()
    t.add_special_tokens(["<|endoftext|>"])
    return t


def roberta():
    t = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True))
    t.add_special_tokens(["<s>", "</s>", AddedToken("<mask>", lstrip=True, special=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")),
                                                    ("<s>", t.token_to_id("<s>")))
    return t


def llama3():
    t = byte_level(split(LLAMA3), ignore_merges=True)
    t.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"])
    t.post_processor = processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(
        "<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>",
                                                 t.token_to_id("<|begin_of_text|>"))])])
    return t


def qwen():
    t = byte_level(split(QWEN), normalizers.NFC())
    t.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    t.add_tokens([AddedToken("<tool_call>", normalized=False, special=False),
                  AddedToken("Café", normalized=True)])
    return t


def gpt4o():
    return byte_level(split(GPT4O))


def smollm():
    t = byte_level(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                            pre_tokenizers.ByteLevel(add_prefix_space=False)]))
    t.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<repo_name>"])
    return t


def with_bytes(t):
    """Adds the tokens of bytes to the vocabulary."""
    state = json.loads(t.to_str())
    vocab = state["model"]["vocab"]
    for b in range(256):
        vocab.setdefault(f"<0x{b:02X}>", len(vocab))
    state["model"]["byte_fallback"] = True
    return Tokenizer.from_str(json.dumps(state))


def llama2():
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    # Words alone are trained, which is faster; the tokenizer has no pre-tokenizer.
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    trained(t, 1500, special_tokens=["<unk>", "<s>", "</s>"])
    state = json.loads(with_bytes(t).to_str())
    state["pre_tokenizer"] = None
    t = Tokenizer.from_str(json.dumps(state))
    t.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    return t


def metaspace(scheme, split, **model):
    t = Tokenizer(models.BPE(unk_token="<unk>", **model))
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    trained(t, 1200, TEXTS[:60] if split else [w for one in TEXTS[:20] for w in one.split("\n")],
            special_tokens=["<unk>", "<s>", "</s>"])
    t.add_tokens([AddedToken("<sep>", rstrip=True), AddedToken("<both>", lstrip=True, rstrip=True)])
    return t


def gemma():
    t = with_bytes(metaspace("never", False, fuse_unk=True))
    t.normalizer = normalizers.Replace(" ", "▁")
    state = json.loads(t.to_str())
    state["pre_tokenizer"] = {"type": "Split", "pattern": {"String": " "},
                              "behavior": "MergedWithPrevious", "invert": False}
    return Tokenizer.from_str(json.dumps(state))


def words():
    """Decoders seldom have these: words with marks of their ends, forms, classes of characters."""
    t = Tokenizer(models.BPE(unk_token="[UNK]", continuing_subword_prefix="##"))
    t.normalizer = normalizers.Sequence([
        normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip(),
        normalizers.Replace(Regex(r"[0-9]+:\s?"), "#"), normalizers.NFC()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.Digits(),
        pre_tokenizers.Split("-", "merged_with_previous"),
        pre_tokenizers.Split(Regex("e[rs]"), "merged_with_next"),
        pre_tokenizers.Split(Regex(r"[a-m]+"), "contiguous", invert=True)])
    trained(t, 900, TEXTS[:60], special_tokens=["[UNK]"], continuing_subword_prefix="##")
    t.add_tokens([AddedToken("word", single_word=True), AddedToken("The Name", normalized=True),
                  AddedToken("RAW", normalized=False)])
    return t


def clip():
    t = Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>", fuse_unk=False))
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(),
                                               pre_tokenizers.Punctuation("removed")])
    trained(t, 900, TEXTS[:60], special_tokens=["<|endoftext|>"], end_of_word_suffix="</w>")
    return t


def bert(lowercase, **normalizer):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=30))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase, **normalizer)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(TEXTS[:200], trainers.WordPieceTrainer(
        vocab_size=2000, show_progress=False, special_tokens=special,
        initial_alphabet=list("漢字仮名中文ßæøéé½Ⅷ")))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def pieces():
    """WordPiece without a pre-tokenizer, and with a prefix of its own."""
    t = Tokenizer(models.WordPiece(unk_token="<unk>", max_input_chars_per_word=12,
                                   continuing_subword_prefix="@"))
    t.normalizer = normalizers.BertNormalizer(clean_text=False, strip_accents=True, lowercase=False)
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    words = sorted(set("".join(WORDS[:3000]))) + ["▁", "▁the", "the", "@the", "@s", "@ing", "日", "@本"]
    vocab = {"<unk>": 0}
    for word in words + ["@" + word for word in words]:
        vocab.setdefault(word, len(vocab))
    state = json.loads(t.to_str())
    state["model"]["vocab"] = vocab
    return Tokenizer.from_str(json.dumps(state))


TOKENIZERS = {"gpt2": gpt2, "roberta": roberta, "llama3": llama3, "qwen": qwen, "gpt4o": gpt4o,
              "smollm": smollm, "llama2": llama2, "gemma": gemma, "words": words, "clip": clip,
              "first": lambda: metaspace("first", True),
              "bert": lambda: bert(True), "bert_cased": lambda: bert(False),
              "bert_accents": lambda: bert(True, strip_accents=False, clean_text=False,
                                           handle_chinese_chars=False),
              "pieces": pieces,
              "always": lambda: metaspace("always", True, fuse_unk=True)}


def main(folder, seed=7):
    for name, make in TOKENIZERS.items():
        rnd = random.Random(f"{seed} {name}")
        tokenizer = make()
        # Between the texts of the long file, so that each stands alone.
        tokenizer.add_special_tokens(["<|between|>"])
        place = Path(folder, name)
        place.mkdir()
        tokenizer.save(str(place / "tokenizer.json"))
        added = [row["content"] for row in json.loads(tokenizer.to_str())["added_tokens"]]
        texts = {f"{i}.txt": text(rnd, added) for i in range(SINGLE)}
        texts["long.txt"] = "<|between|>".join(text(rnd, added) for _ in range(LONG)) + \
            "<|between|>" * 600
        for file, one in texts.items():
            (place / file).write_bytes(one.encode())
        # A text may have no token at all.
        ids = {file: tokenizer.encode(one).ids for file, one in texts.items()}
        (place / "ids.json").write_text(json.dumps(ids))


if __name__ == "__main__":
    main(*sys.argv[1:])
