/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes ids of tokens of a text, as Hugging Face's library `tokenizers` does it by a tokenizer.json
 * with a model of the kind BPE (byte pair encoding) or WordPiece: tokens that were added, normalizers,
 * pre-tokenizers, merges and the special tokens around a sequence. api/tokenizer.h reads the file.
 *
 * A tokenizer is for one thread at a time. Nothing in its form or in a text makes it run on for ever:
 * the work of its patterns is bounded, which is LIMIT_EXCEEDED, and merging takes n log n.
 *
 * Texts are UTF-8 with a size and may hold NUL.
 */
#ifndef QDQ_TOKENIZER_H
#define QDQ_TOKENIZER_H

#include "qdq/error.h"

struct qdq_string {
    const char *data;
    size_t size;
};

/* The kinds of steps: normalizers change a text, pre-tokenizers cut it into pieces. */
enum qdq_text_op {
    /* normalizers */
    QDQ_TEXT_NFC,
    QDQ_TEXT_NFD,
    QDQ_TEXT_NFKC,
    QDQ_TEXT_NFKD,
    QDQ_TEXT_LOWERCASE,
    QDQ_TEXT_STRIP,      /* left, right */
    QDQ_TEXT_DROP_MARKS, /* StripAccents */
    QDQ_TEXT_PREPEND,    /* content */
    QDQ_TEXT_REPLACE,    /* pattern, content */
    QDQ_TEXT_TO_BYTES,   /* each byte becomes the character that stands for it */
    /* pre-tokenizers */
    QDQ_TEXT_BYTE_LEVEL,  /* prefix, use_regex */
    QDQ_TEXT_SPLIT,       /* pattern, behavior, invert */
    QDQ_TEXT_DIGITS,      /* behavior */
    QDQ_TEXT_PUNCTUATION, /* behavior */
    QDQ_TEXT_WHITESPACE,  /* words and runs of other characters, without white space */
    QDQ_TEXT_WHITESPACE_SPLIT,
    QDQ_TEXT_METASPACE, /* content: the character for a space; prefix, split */
    /* normalizers: the parts of BertNormalizer beside QDQ_TEXT_LOWERCASE */
    QDQ_TEXT_CLEAN,            /* without control characters, white space as spaces */
    QDQ_TEXT_SPACE_IDEOGRAPHS, /* a space before each and one behind it */
    QDQ_TEXT_DROP_NONSPACING,  /* marks of the category Mn */
};

/* The ways in which a text is cut at the matches of a pattern. */
enum qdq_text_behavior {
    QDQ_TEXT_ISOLATED,
    QDQ_TEXT_REMOVED,
    QDQ_TEXT_CONTIGUOUS,
    QDQ_TEXT_MERGED_WITH_PREVIOUS,
    QDQ_TEXT_MERGED_WITH_NEXT,
};

enum qdq_text_prefix { QDQ_TEXT_NEVER, QDQ_TEXT_FIRST, QDQ_TEXT_ALWAYS };

struct qdq_text_step {
    enum qdq_text_op op;
    const char *member; /* its place in the file, as a JSON pointer, for errors */
    struct qdq_string pattern, content;
    bool
        is_regex; /* of the pattern: a regular expression of Oniguruma's, else a text */
    enum qdq_text_behavior behavior;
    enum qdq_text_prefix prefix;
    bool invert, left, right, use_regex, split;
};

struct qdq_added_token {
    struct qdq_string content;
    bool single_word, lstrip, rstrip, normalized, special;
};

struct qdq_vocab_token {
    struct qdq_string text;
    uint32_t id;
};

struct qdq_merge {
    struct qdq_string left, right;
};

/* A tokenizer's description. Everything in it is borrowed until qdq_tokenizer_new() returns. */
struct qdq_tokenizer_form {
    size_t n_normalizers, n_pre_tokenizers, n_added, n_vocab, n_merges;
    const struct qdq_text_step *normalizers, *pre_tokenizers;
    const struct qdq_added_token *added;
    const struct qdq_vocab_token *vocab; /* no two have the same text */
    const struct qdq_merge *merges;      /* the first is the first to be done */
    struct qdq_string unknown;           /* data NULL: none */
    struct qdq_string continuing_prefix, word_suffix; /* size 0: none */
    bool fuses_unknown, falls_back_to_bytes, ignores_merges;
    /* the ids of special tokens before and behind a sequence */
    size_t n_before, n_behind;
    const uint32_t *before, *behind;
    /* WordPiece: words of more characters than that are unknown; 0: the model is BPE */
    size_t most_chars;
};

enum {
    /* Bytes of one text: its pieces and their symbols are held in memory. */
    QDQ_TOKENIZER_MOST_TEXT = 16 << 20,
};

struct qdq_tokenizer;

/* UNSUPPORTED or INVALID_DATASET with the member of the file, LIMIT_EXCEEDED, NO_MEMORY; IO where a
   library for patterns or for Unicode cannot be loaded. */
QDQ_API enum qdq_code qdq_tokenizer_new(const struct qdq_tokenizer_form *form,
                                        struct qdq_tokenizer **ret,
                                        struct qdq_error *err) QDQ_MUST_CHECK;
QDQ_API void qdq_tokenizer_free(struct qdq_tokenizer **tokenizer);

/*
 * Makes the ids of a text, with the special tokens around it. *ret belongs to the tokenizer and is
 * valid until its next call. INVALID_DATASET with the offset of a byte that is not UTF-8, or where a
 * character has no token; LIMIT_EXCEEDED, NO_MEMORY.
 */
QDQ_API enum qdq_code qdq_tokenizer_encode(struct qdq_tokenizer *tokenizer,
                                           const char *text, size_t size,
                                           const uint32_t **ret, size_t *ret_n,
                                           struct qdq_error *err) QDQ_MUST_CHECK;

#endif
