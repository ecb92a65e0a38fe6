/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "qdq/tokenizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/text/added.h"
#include "files/text/bpe.h"
#include "files/text/normalize.h"
#include "files/text/split.h"
#include "files/text/word_piece.h"

/* The pattern of the pre-tokenizer ByteLevel, which is GPT-2's: endings after an apostrophe, letters,
   numbers and other signs with the space before them, and white space. */
static const char words_of_gpt2[] =
    "'(?:[stmd]|re|ve|ll)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* A pre-tokenizer at work. */
struct stage {
    const struct qdq_text_step *step;
    struct qdqi_pattern *pattern;   /* NULL: it has none */
    struct qdqi_text whole, mapped; /* the text as changed, and a piece of it */
    struct qdq_string text;         /* that is cut */
    bool is_first;                  /* the text begins where the input begins */
    struct qdq_tokenizer *tokenizer;
    size_t i;
};

struct qdq_tokenizer {
    struct qdqi_arena *arena;
    struct qdqi_vocab *vocab;
    struct qdqi_bpe *bpe; /* or, where it is NULL, */
    struct qdqi_word_piece *word_piece;
    struct qdqi_normalizer normalizer;
    struct qdqi_added *added, *normalized; /* before and behind the normalizer */
    struct stage *stages;
    size_t n_stages;
    uint32_t *before, *behind;
    size_t n_before, n_behind;
    struct qdqi_ids ids;
};

/* --- making one ----------------------------------------------------------------- */

static enum qdq_code
normalize_added(void *arg, struct qdq_string text, struct qdq_string *ret,
                struct qdq_error *err)
{
    struct qdq_tokenizer *t = arg;
    bool keeps_start = true;
    return qdqi_normalizer_run(&t->normalizer, text, ret, &keeps_start, err);
}

static enum qdq_code
find_pattern(const struct qdq_text_step *step, struct qdqi_pattern **ret,
             struct qdq_error *err)
{
    const struct qdq_string gpt2 = {words_of_gpt2, sizeof words_of_gpt2 - 1};
    if (step->op == QDQ_TEXT_SPLIT)
        return qdqi_pattern_new(step->pattern, step->is_regex, step->member, ret, err);
    if (step->op == QDQ_TEXT_BYTE_LEVEL && step->use_regex)
        return qdqi_pattern_new(gpt2, true, step->member, ret, err);
    if (step->op == QDQ_TEXT_METASPACE)
        return qdqi_pattern_new(step->content, false, step->member, ret, err);
    return QDQ_OK;
}

static enum qdq_code
make_stages(struct qdq_tokenizer *t, const struct qdq_tokenizer_form *form,
            struct qdq_error *err)
{
    const struct qdq_text_step *steps;
    const size_t n = form->n_pre_tokenizers;
    enum qdq_code code =
        qdqi_steps_copy(form->pre_tokenizers, n, t->arena, &steps, err);
    if (code != QDQ_OK)
        return code;
    t->stages = qdqi_arena_array(t->arena, n, sizeof *t->stages);
    if (!t->stages)
        return qdqi_no_memory(err);
    t->n_stages = n;
    for (size_t i = 0; i < n && code == QDQ_OK; i++) {
        t->stages[i].step = &steps[i];
        t->stages[i].tokenizer = t;
        t->stages[i].i = i;
        code = find_pattern(&steps[i], &t->stages[i].pattern, err);
    }
    return code;
}

static enum qdq_code
make_model(struct qdq_tokenizer *t, const struct qdq_tokenizer_form *form,
           struct qdq_error *err)
{
    enum qdq_code code = qdqi_vocab_new(form, t->arena, &t->vocab, err);
    qdqi_normalizer_allow(&t->normalizer, 0); /* for the added tokens */
    if (code == QDQ_OK)
        code = form->most_chars > 0
                   ? qdqi_word_piece_new(form, t->vocab, t->arena, &t->word_piece, err)
                   : qdqi_bpe_new(form, t->vocab, t->arena, &t->bpe, err);
    if (code == QDQ_OK)
        code = qdqi_added_new(form, t->vocab, false, normalize_added, t, t->arena,
                              &t->added, err);
    if (code == QDQ_OK)
        code = qdqi_added_new(form, t->vocab, true, normalize_added, t, t->arena,
                              &t->normalized, err);
    return code;
}

static bool
copy_ids(struct qdq_tokenizer *t, const struct qdq_tokenizer_form *form)
{
    t->before =
        qdqi_arena_copy(t->arena, form->before, form->n_before, sizeof *t->before);
    t->behind =
        qdqi_arena_copy(t->arena, form->behind, form->n_behind, sizeof *t->behind);
    t->n_before = form->n_before;
    t->n_behind = form->n_behind;
    return t->before && t->behind;
}

static enum qdq_code
make(struct qdq_tokenizer *t, const struct qdq_tokenizer_form *form,
     struct qdq_error *err)
{
    t->arena = qdqi_arena_new();
    if (!t->arena || !copy_ids(t, form))
        return qdqi_no_memory(err);
    if (!qdqi_unicode_is_there())
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "libutf8proc, which texts need, cannot be loaded");
    enum qdq_code code = qdqi_normalizer_init(form->normalizers, form->n_normalizers,
                                              t->arena, &t->normalizer, err);
    if (code == QDQ_OK)
        code = make_stages(t, form, err);
    return code == QDQ_OK ? make_model(t, form, err) : code;
}

enum qdq_code
qdq_tokenizer_new(const struct qdq_tokenizer_form *form, struct qdq_tokenizer **ret,
                  struct qdq_error *err)
{
    struct qdq_tokenizer *t = calloc(1, sizeof *t);
    enum qdq_code code = t ? make(t, form, err) : qdqi_no_memory(err);
    if (code == QDQ_OK)
        *ret = t;
    else
        qdq_tokenizer_free(&t);
    return code;
}

void
qdq_tokenizer_free(struct qdq_tokenizer **tokenizer)
{
    struct qdq_tokenizer *t = tokenizer ? *tokenizer : NULL;
    if (!t)
        return;
    for (size_t i = 0; i < t->n_stages; i++) {
        qdqi_pattern_free(&t->stages[i].pattern);
        free(t->stages[i].whole.data);
        free(t->stages[i].mapped.data);
    }
    qdqi_normalizer_fini(&t->normalizer);
    qdqi_bpe_free(t->bpe);
    qdqi_arena_free(&t->arena);
    free(t->ids.rows);
    free(t);
    *tokenizer = NULL;
}

/* --- pieces --------------------------------------------------------------------- */

/* Gives a text to the pre-tokenizer i, or to the model behind the last one. */
static enum qdq_code cut(struct qdq_tokenizer *t, size_t i, struct qdq_string text,
                         bool is_first, struct qdq_error *err);

static enum qdq_code
give_piece(void *arg, size_t start, size_t end, struct qdq_error *err)
{
    struct stage *stage = arg;
    struct qdq_string piece = {stage->text.data + start, end - start};
    if (stage->step->op == QDQ_TEXT_BYTE_LEVEL) {
        stage->mapped.size = 0;
        if (!qdqi_text_add_bytes(&stage->mapped, piece.data, piece.size))
            return qdqi_no_memory(err);
        piece = (struct qdq_string){stage->mapped.data, stage->mapped.size};
        const enum qdq_code code = qdqi_step_check(stage->step, piece.size, err);
        if (code != QDQ_OK)
            return code;
    }
    return cut(stage->tokenizer, stage->i + 1, piece, stage->is_first && start == 0,
               err);
}

static bool
begins_with(struct qdq_string text, struct qdq_string start)
{
    return text.size >= start.size && memcmp(text.data, start.data, start.size) == 0;
}

/* Puts a prefix before the stage's text, unless that begins with it. */
static bool
add_prefix(struct stage *stage, struct qdq_string prefix)
{
    const enum qdq_text_prefix when = stage->step->prefix;
    if (when == QDQ_TEXT_NEVER || (when == QDQ_TEXT_FIRST && !stage->is_first) ||
        begins_with(stage->text, prefix))
        return true;
    stage->whole.size = 0;
    if (!qdqi_text_add(&stage->whole, prefix.data, prefix.size) ||
        !qdqi_text_add(&stage->whole, stage->text.data, stage->text.size))
        return false;
    stage->text = (struct qdq_string){stage->whole.data, stage->whole.size};
    return true;
}

/* Replaces spaces by the step's character, with one more at the start where that is wanted. */
static enum qdq_code
replace_spaces(struct stage *stage, struct qdq_error *err)
{
    const struct qdq_string mark = stage->step->content, text = stage->text;
    const bool is_marked = text.data[0] == ' ' || begins_with(text, mark) ||
                           stage->step->prefix == QDQ_TEXT_NEVER ||
                           (stage->step->prefix == QDQ_TEXT_FIRST && !stage->is_first);
    bool ok = is_marked || qdqi_text_add(&stage->whole, mark.data, mark.size);
    for (size_t at = 0; ok && at < text.size;) {
        const char *space = memchr(text.data + at, ' ', text.size - at);
        const size_t end = space ? (size_t)(space - text.data) : text.size;
        ok = qdqi_text_add(&stage->whole, text.data + at, end - at) &&
             (!space || qdqi_text_add(&stage->whole, mark.data, mark.size));
        at = end + 1;
    }
    if (!ok)
        return qdqi_no_memory(err);
    stage->text = (struct qdq_string){stage->whole.data, stage->whole.size};
    return qdqi_step_check(stage->step, stage->text.size, err);
}

static enum qdq_code
cut_metaspace(struct stage *stage, const struct qdqi_piece_sink *to,
              struct qdq_error *err)
{
    stage->whole.size = 0;
    const enum qdq_code code = replace_spaces(stage, err);
    if (code != QDQ_OK)
        return code;
    return stage->step->split
               ? qdqi_split_pattern(stage->pattern, stage->text,
                                    QDQ_TEXT_MERGED_WITH_NEXT, false, to, err)
               : to->piece(to->arg, 0, stage->text.size, err);
}

static enum qdq_code
cut_stage(struct stage *stage, struct qdq_error *err)
{
    const struct qdq_text_step *step = stage->step;
    const struct qdqi_piece_sink to = {give_piece, stage};
    switch (step->op) {
    case QDQ_TEXT_BYTE_LEVEL:
        if (!add_prefix(stage, (struct qdq_string){" ", 1}))
            return qdqi_no_memory(err);
        return step->use_regex ? qdqi_split_pattern(stage->pattern, stage->text,
                                                    QDQ_TEXT_ISOLATED, false, &to, err)
                               : to.piece(to.arg, 0, stage->text.size, err);
    case QDQ_TEXT_SPLIT:
        return qdqi_split_pattern(stage->pattern, stage->text, step->behavior,
                                  step->invert, &to, err);
    case QDQ_TEXT_DIGITS:
        return qdqi_split_class(qdqi_char_is_numeric, stage->text, step->behavior, &to,
                                err);
    case QDQ_TEXT_PUNCTUATION:
        return qdqi_split_class(qdqi_char_is_punctuation, stage->text, step->behavior,
                                &to, err);
    case QDQ_TEXT_WHITESPACE:
        return qdqi_split_words(stage->text, &to, err);
    case QDQ_TEXT_WHITESPACE_SPLIT:
        return qdqi_split_class(qdqi_char_is_space, stage->text, QDQ_TEXT_REMOVED, &to,
                                err);
    case QDQ_TEXT_METASPACE:
        return cut_metaspace(stage, &to, err);
    default:
        return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_POINTER, step->member,
                             "it is no pre-tokenizer");
    }
}

static enum qdq_code
cut(struct qdq_tokenizer *t, size_t i, struct qdq_string text, bool is_first,
    struct qdq_error *err)
{
    if (text.size == 0)
        return QDQ_OK;
    if (i == t->n_stages)
        return t->bpe ? qdqi_bpe_encode(t->bpe, text.data, text.size, &t->ids, err)
                      : qdqi_word_piece_encode(t->word_piece, text, &t->ids, err);
    struct stage *stage = &t->stages[i];
    stage->text = text;
    stage->is_first = is_first;
    return cut_stage(stage, err);
}

/* --- texts ---------------------------------------------------------------------- */

/* Cuts a normalized text at the added tokens that are normalized, too. */
static enum qdq_code
encode_normalized(struct qdq_tokenizer *t, struct qdq_string text, bool is_first,
                  struct qdq_error *err)
{
    struct qdqi_cutting cutting = {.added = t->normalized, .text = text};
    struct qdqi_part part;
    enum qdq_code code = QDQ_OK;
    while (code == QDQ_OK && qdqi_added_next(&cutting, &part)) {
        const struct qdq_string piece = {text.data + part.start, part.end - part.start};
        if (!part.is_token)
            code = cut(t, 0, piece, is_first && part.start == 0, err);
        else if (!qdqi_ids_add(&t->ids, part.id))
            code = qdqi_no_memory(err);
    }
    return code;
}

static enum qdq_code
encode(struct qdq_tokenizer *t, struct qdq_string text, struct qdq_error *err)
{
    struct qdqi_cutting cutting = {.added = t->added, .text = text};
    struct qdqi_part part;
    enum qdq_code code = QDQ_OK;
    while (code == QDQ_OK && qdqi_added_next(&cutting, &part)) {
        struct qdq_string piece = {text.data + part.start, part.end - part.start};
        bool is_first = part.start == 0;
        if (part.is_token) {
            if (!qdqi_ids_add(&t->ids, part.id))
                code = qdqi_no_memory(err);
            continue;
        }
        code = qdqi_normalizer_run(&t->normalizer, piece, &piece, &is_first, err);
        if (code == QDQ_OK)
            code = encode_normalized(t, piece, is_first, err);
    }
    return code;
}

static enum qdq_code
check_text(const char *text, size_t size, struct qdq_error *err)
{
    char offset[32];
    if (size > QDQ_TOKENIZER_MOST_TEXT)
        return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                             "a text of more than %d bytes", QDQ_TOKENIZER_MOST_TEXT);
    const size_t valid = qdqi_utf8_check(text, size);
    snprintf(offset, sizeof offset, "%zu", valid);
    return valid == size
               ? QDQ_OK
               : qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_OFFSET, offset,
                               "the text is not UTF-8 at byte %zu", valid);
}

static bool
add_all(struct qdqi_ids *ids, const uint32_t *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!qdqi_ids_add(ids, rows[i]))
            return false;
    return true;
}

enum qdq_code
qdq_tokenizer_encode(struct qdq_tokenizer *t, const char *text, size_t size,
                     const uint32_t **ret, size_t *ret_n, struct qdq_error *err)
{
    enum qdq_code code = check_text(text, size, err);
    t->ids.n = 0;
    qdqi_normalizer_allow(&t->normalizer, size);
    for (size_t i = 0; i < t->n_stages; i++)
        if (t->stages[i].pattern)
            qdqi_pattern_allow(t->stages[i].pattern, size);
    if (code == QDQ_OK && !add_all(&t->ids, t->before, t->n_before))
        code = qdqi_no_memory(err);
    if (code == QDQ_OK)
        code = encode(t, (struct qdq_string){text, size}, err);
    if (code == QDQ_OK && !add_all(&t->ids, t->behind, t->n_behind))
        code = qdqi_no_memory(err);
    if (code == QDQ_OK) {
        *ret = t->ids.rows;
        *ret_n = t->ids.n;
    }
    return code;
}
