/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizers, pre-tokenizers and post-processors of a tokenizer.json. Sequences of them become one
   list each. */
#include "config.h"
#include "tokenizer/reading.h"

#include <stdio.h>
#include <string.h>

/* --- lists ----------------------------------------------------------------------- */

/* Returns the next step of a list, or NULL with a problem. */
static struct qdq_text_step *
add_step(struct reading *r, const struct json_place *m, struct qdq_text_step *steps,
         size_t *n, enum qdq_text_op op)
{
    if (*n == MOST_STEPS) {
        api_fail_at(r->problem, API_LIMIT_EXCEEDED, m->where,
                    "%s: at most %d steps are read", m->where, MOST_STEPS);
        return NULL;
    }
    char *member = r->members[r->n_members++];
    snprintf(member, sizeof r->members[0], "%s", m->where);
    steps[*n] = (struct qdq_text_step){.op = op, .member = member};
    return &steps[(*n)++];
}

static struct qdq_text_step *
add_normalizer(struct reading *r, const struct json_place *m, enum qdq_text_op op)
{
    return add_step(r, m, r->normalizers, &r->form.n_normalizers, op);
}

static struct qdq_text_step *
add_pre_tokenizer(struct reading *r, const struct json_place *m, enum qdq_text_op op)
{
    return add_step(r, m, r->pre_tokenizers, &r->form.n_pre_tokenizers, op);
}

typedef bool (*read_fn)(struct reading *r, const struct json_place *m, int depth);

/* Reads all items of the member `name` of a sequence. */
static bool
read_sequence(struct reading *r, const struct json_place *m, const char *name,
              read_fn read, int depth)
{
    const struct json_place items = member_at(m, name);
    if (!json_is_array(items.json))
        return wrong_member(r, &items, "an array");
    if (depth == MOST_NESTED)
        return api_fail_at(r->problem, API_LIMIT_EXCEEDED, m->where,
                           "%s lies within too many sequences", m->where);
    for (size_t i = 0; i < json_array_size(items.json); i++) {
        const struct json_place item = item_at(&items, i);
        if (!read(r, &item, depth + 1))
            return false;
    }
    return true;
}

/* Reads {"String": TEXT} or {"Regex": TEXT}. */
static bool
read_pattern(struct reading *r, const struct json_place *of, struct qdq_text_step *step)
{
    const struct json_place m = member_at(of, "pattern");
    step->is_regex = json_object_get(m.json, "Regex") != NULL;
    if (json_object_size(m.json) != 1)
        return wrong_member(r, &m, "{\"String\": TEXT} or {\"Regex\": TEXT}");
    return read_text(r, &m, step->is_regex ? "Regex" : "String", &step->pattern);
}

static bool
read_behavior(struct reading *r, const struct json_place *of, bool may_lack,
              enum qdq_text_behavior *ret)
{
    static const struct {
        const char *name;
        enum qdq_text_behavior behavior;
    } rows[] = {
        {"Isolated", QDQ_TEXT_ISOLATED},
        {"Removed", QDQ_TEXT_REMOVED},
        {"Contiguous", QDQ_TEXT_CONTIGUOUS},
        {"MergedWithPrevious", QDQ_TEXT_MERGED_WITH_PREVIOUS},
        {"MergedWithNext", QDQ_TEXT_MERGED_WITH_NEXT},
    };
    const struct json_place m = member_at(of, "behavior");
    const char *name = json_string_value(m.json);
    if (!m.json && may_lack)
        return true;
    for (size_t i = 0; name && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(name, rows[i].name) == 0) {
            *ret = rows[i].behavior;
            return true;
        }
    return wrong_member(r, &m,
                        "Isolated, Removed, Contiguous, MergedWithPrevious or "
                        "MergedWithNext");
}

static bool
is_none(const struct json_place *m)
{
    return !m->json || json_is_null(m->json);
}

/* --- normalizers ------------------------------------------------------------------ */

/* Those without members. */
static const struct {
    const char *name;
    enum qdq_text_op op;
} plain_normalizers[] = {
    {"NFC", QDQ_TEXT_NFC},
    {"NFD", QDQ_TEXT_NFD},
    {"NFKC", QDQ_TEXT_NFKC},
    {"NFKD", QDQ_TEXT_NFKD},
    {"Lowercase", QDQ_TEXT_LOWERCASE},
    {"StripAccents", QDQ_TEXT_DROP_MARKS},
    {"ByteLevel", QDQ_TEXT_TO_BYTES},
};

static bool
read_strip(struct reading *r, const struct json_place *m)
{
    struct qdq_text_step *step = add_normalizer(r, m, QDQ_TEXT_STRIP);
    return step && read_flag(r, m, "strip_left", &step->left) &&
           read_flag(r, m, "strip_right", &step->right);
}

static bool
read_prepend(struct reading *r, const struct json_place *m)
{
    struct qdq_text_step *step = add_normalizer(r, m, QDQ_TEXT_PREPEND);
    return step && read_text(r, m, "prepend", &step->content);
}

static bool
read_replace(struct reading *r, const struct json_place *m)
{
    struct qdq_text_step *step = add_normalizer(r, m, QDQ_TEXT_REPLACE);
    return step && read_pattern(r, m, step) &&
           read_text(r, m, "content", &step->content);
}

/* BertNormalizer is several steps. Without a word about accents, they are dropped where letters become
   small ones. */
static bool
read_bert_normalizer(struct reading *r, const struct json_place *m)
{
    bool cleans = true, spaces = true, lowers = true, strips;
    if (!read_flag(r, m, "clean_text", &cleans) ||
        !read_flag(r, m, "handle_chinese_chars", &spaces) ||
        !read_flag(r, m, "lowercase", &lowers))
        return false;
    strips = lowers;
    return read_flag(r, m, "strip_accents", &strips) &&
           (!cleans || add_normalizer(r, m, QDQ_TEXT_CLEAN)) &&
           (!spaces || add_normalizer(r, m, QDQ_TEXT_SPACE_IDEOGRAPHS)) &&
           (!strips || (add_normalizer(r, m, QDQ_TEXT_NFD) &&
                        add_normalizer(r, m, QDQ_TEXT_DROP_NONSPACING))) &&
           (!lowers || add_normalizer(r, m, QDQ_TEXT_LOWERCASE));
}

bool
read_normalizers(struct reading *r, const struct json_place *m, int depth)
{
    const char *type = type_of(m);
    const struct json_place kind = member_at(m, "type");
    if (is_none(m))
        return true;
    for (size_t i = 0; i < sizeof plain_normalizers / sizeof *plain_normalizers; i++)
        if (strcmp(type, plain_normalizers[i].name) == 0)
            return add_normalizer(r, m, plain_normalizers[i].op);
    if (strcmp(type, "Sequence") == 0)
        return read_sequence(r, m, "normalizers", read_normalizers, depth);
    if (strcmp(type, "Strip") == 0)
        return read_strip(r, m);
    if (strcmp(type, "Prepend") == 0)
        return read_prepend(r, m);
    if (strcmp(type, "BertNormalizer") == 0)
        return read_bert_normalizer(r, m);
    return strcmp(type, "Replace") == 0 ? read_replace(r, m)
                                        : unknown_kind(r, &kind, type);
}

/* --- pre-tokenizers ---------------------------------------------------------------- */

static bool
read_byte_level(struct reading *r, const struct json_place *m)
{
    struct qdq_text_step *step = add_pre_tokenizer(r, m, QDQ_TEXT_BYTE_LEVEL);
    bool has_prefix = true, use_regex = true;
    if (!step || !read_flag(r, m, "add_prefix_space", &has_prefix) ||
        !read_flag(r, m, "use_regex", &use_regex))
        return false;
    step->prefix = has_prefix ? QDQ_TEXT_ALWAYS : QDQ_TEXT_NEVER;
    step->use_regex = use_regex;
    return true;
}

static bool
read_split(struct reading *r, const struct json_place *m)
{
    struct qdq_text_step *step = add_pre_tokenizer(r, m, QDQ_TEXT_SPLIT);
    return step && read_pattern(r, m, step) &&
           read_behavior(r, m, false, &step->behavior) &&
           read_flag(r, m, "invert", &step->invert);
}

static bool
read_delimiter(struct reading *r, const struct json_place *m)
{
    struct qdq_text_step *step = add_pre_tokenizer(r, m, QDQ_TEXT_SPLIT);
    if (step)
        step->behavior = QDQ_TEXT_REMOVED;
    return step && read_text(r, m, "delimiter", &step->pattern);
}

static bool
read_digits(struct reading *r, const struct json_place *m)
{
    struct qdq_text_step *step = add_pre_tokenizer(r, m, QDQ_TEXT_DIGITS);
    bool individual = false;
    if (!step || !read_flag(r, m, "individual_digits", &individual))
        return false;
    step->behavior = individual ? QDQ_TEXT_ISOLATED : QDQ_TEXT_CONTIGUOUS;
    return true;
}

static bool
read_punctuation(struct reading *r, const struct json_place *m)
{
    struct qdq_text_step *step = add_pre_tokenizer(r, m, QDQ_TEXT_PUNCTUATION);
    return step && read_behavior(r, m, true, &step->behavior);
}

static bool
read_whitespace(struct reading *r, const struct json_place *m)
{
    return add_pre_tokenizer(r, m, QDQ_TEXT_WHITESPACE);
}

static bool
read_whitespace_split(struct reading *r, const struct json_place *m)
{
    return add_pre_tokenizer(r, m, QDQ_TEXT_WHITESPACE_SPLIT);
}

static bool
read_bert(struct reading *r, const struct json_place *m)
{
    return add_pre_tokenizer(r, m, QDQ_TEXT_WHITESPACE_SPLIT) &&
           add_pre_tokenizer(r, m, QDQ_TEXT_PUNCTUATION);
}

/* Reads when the mark is put before a text: prepend_scheme, which files of old versions lack; they
   have add_prefix_space. */
static bool
read_scheme(struct reading *r, const struct json_place *m, enum qdq_text_prefix *ret)
{
    const struct json_place scheme = member_at(m, "prepend_scheme");
    const char *name = json_string_value(scheme.json);
    bool has_prefix = true;
    *ret = QDQ_TEXT_ALWAYS;
    if (!read_flag(r, m, "add_prefix_space", &has_prefix))
        return false;
    if (is_none(&scheme)) {
        *ret = has_prefix ? QDQ_TEXT_ALWAYS : QDQ_TEXT_NEVER;
        return true;
    }
    if (!name || (strcmp(name, "always") != 0 && strcmp(name, "never") != 0 &&
                  strcmp(name, "first") != 0))
        return wrong_member(r, &scheme, "always, never or first");
    if (!has_prefix && strcmp(name, "never") != 0)
        return wrong_member(r, &scheme, "never where add_prefix_space is false");
    *ret = strcmp(name, "always") == 0  ? QDQ_TEXT_ALWAYS
           : strcmp(name, "first") == 0 ? QDQ_TEXT_FIRST
                                        : QDQ_TEXT_NEVER;
    return true;
}

static bool
read_metaspace(struct reading *r, const struct json_place *m)
{
    struct qdq_text_step *step = add_pre_tokenizer(r, m, QDQ_TEXT_METASPACE);
    if (!step)
        return false;
    step->split = true;
    return read_text(r, m, "replacement", &step->content) &&
           read_scheme(r, m, &step->prefix) && read_flag(r, m, "split", &step->split);
}

static const struct {
    const char *name;
    bool (*read)(struct reading *r, const struct json_place *m);
} pre_tokenizers[] = {
    {"ByteLevel", read_byte_level},
    {"Split", read_split},
    {"CharDelimiterSplit", read_delimiter},
    {"Digits", read_digits},
    {"Punctuation", read_punctuation},
    {"Whitespace", read_whitespace},
    {"WhitespaceSplit", read_whitespace_split},
    {"BertPreTokenizer", read_bert},
    {"Metaspace", read_metaspace},
};

bool
read_pre_tokenizers(struct reading *r, const struct json_place *m, int depth)
{
    const char *type = type_of(m);
    const struct json_place kind = member_at(m, "type");
    if (is_none(m))
        return true;
    for (size_t i = 0; i < sizeof pre_tokenizers / sizeof *pre_tokenizers; i++)
        if (strcmp(type, pre_tokenizers[i].name) == 0)
            return pre_tokenizers[i].read(r, m);
    return strcmp(type, "Sequence") == 0
               ? read_sequence(r, m, "pretokenizers", read_pre_tokenizers, depth)
               : unknown_kind(r, &kind, type);
}

/* --- special tokens around a sequence ----------------------------------------------- */

static bool
put_id(struct reading *r, const struct json_place *m, bool is_behind, uint32_t id)
{
    size_t *n = is_behind ? &r->form.n_behind : &r->form.n_before;
    if (*n == MOST_IDS)
        return api_fail_at(r->problem, API_LIMIT_EXCEEDED, m->where,
                           "%s: at most %d tokens stand around a text", m->where,
                           MOST_IDS);
    (is_behind ? r->behind : r->before)[(*n)++] = id;
    return true;
}

/* Puts n ids, of which the last are new, before the older ones. */
static void
put_first(uint32_t *ids, size_t n, size_t n_old)
{
    uint32_t old[MOST_IDS];
    memcpy(old, ids, n_old * sizeof *old);
    memmove(ids, ids + n_old, (n - n_old) * sizeof *ids);
    memcpy(ids + (n - n_old), old, n_old * sizeof *old);
}

/* Adds the ids of a special token of a template. */
static bool
read_special(struct reading *r, const struct json_place *template,
             const struct json_place *item, bool is_behind)
{
    const struct json_place special = member_at(item, "SpecialToken");
    struct qdq_string name;
    if (!read_text(r, &special, "id", &name))
        return false;
    const struct json_place all = member_at(template, "special_tokens"),
                            token = member_at(&all, name.data),
                            ids = member_at(&token, "ids");
    if (!json_is_array(ids.json))
        return wrong_member(r, &ids, "an array of ids");
    for (size_t i = 0; i < json_array_size(ids.json); i++) {
        const struct json_place one = item_at(&ids, i);
        uint32_t id;
        if (!read_id(r, &one, &id) || !put_id(r, item, is_behind, id))
            return false;
    }
    return true;
}

static bool
read_template(struct reading *r, const struct json_place *m)
{
    const struct json_place single = member_at(m, "single");
    const size_t n_before = r->form.n_before;
    size_t n_texts = 0;
    if (!json_is_array(single.json))
        return wrong_member(r, &single, "an array");
    for (size_t i = 0; i < json_array_size(single.json); i++) {
        const struct json_place item = item_at(&single, i);
        json_t *sequence = json_object_get(item.json, "Sequence");
        n_texts += sequence != NULL;
        if (sequence && (n_texts > 1 || strcmp(api_text_at(sequence, "id"), "A") != 0))
            return wrong_member(r, &item, "the sequence A, once");
        if (!sequence && !read_special(r, m, &item, n_texts > 0))
            return false;
    }
    if (n_texts == 0)
        return wrong_member(r, &single, "an array with the sequence A");
    put_first(r->before, r->form.n_before, n_before);
    return true;
}

/* Reads ["TEXT", ID]. */
static bool
read_pair(struct reading *r, const struct json_place *of, const char *name,
          bool is_behind)
{
    const struct json_place m = member_at(of, name), number = item_at(&m, 1);
    uint32_t id;
    return read_id(r, &number, &id) && put_id(r, &m, is_behind, id);
}

static bool
read_around(struct reading *r, const struct json_place *m)
{
    const size_t n_before = r->form.n_before;
    if (!read_pair(r, m, "cls", false) || !read_pair(r, m, "sep", true))
        return false;
    put_first(r->before, r->form.n_before, n_before);
    return true;
}

bool
read_post_processors(struct reading *r, const struct json_place *m, int depth)
{
    const char *type = type_of(m);
    const struct json_place kind = member_at(m, "type");
    if (is_none(m) || strcmp(type, "ByteLevel") == 0)
        return true;
    if (strcmp(type, "TemplateProcessing") == 0)
        return read_template(r, m);
    if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0)
        return read_around(r, m);
    return strcmp(type, "Sequence") == 0
               ? read_sequence(r, m, "processors", read_post_processors, depth)
               : unknown_kind(r, &kind, type);
}
