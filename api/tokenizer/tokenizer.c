/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tokenizer/reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- tokens ---------------------------------------------------------------------- */

static bool
read_added_token(struct reading *r, const struct json_place *m,
                 struct qdq_added_token *ret)
{
    return read_text(r, m, "content", &ret->content) &&
           read_flag(r, m, "single_word", &ret->single_word) &&
           read_flag(r, m, "lstrip", &ret->lstrip) &&
           read_flag(r, m, "rstrip", &ret->rstrip) &&
           read_flag(r, m, "normalized", &ret->normalized) &&
           read_flag(r, m, "special", &ret->special);
}

static bool
read_added(struct reading *r, const struct json_place *m)
{
    const size_t n = json_array_size(m->json);
    if (!m->json || json_is_null(m->json))
        return true;
    if (!json_is_array(m->json))
        return wrong_member(r, m, "an array");
    r->added = calloc(n + 1, sizeof *r->added);
    if (!r->added)
        return api_problem_no_memory(r->problem);
    for (size_t i = 0; i < n; i++) {
        const struct json_place item = item_at(m, i);
        if (!read_added_token(r, &item, &r->added[i]))
            return false;
    }
    r->form.added = r->added;
    r->form.n_added = n;
    return true;
}

/* A merge is an array of two texts or one text with a space between them. */
static bool
read_merge(struct reading *r, const struct json_place *merges, size_t i,
           struct qdq_merge *ret)
{
    json_t *json = json_array_get(merges->json, i);
    const json_t *left = json_array_get(json, 0), *right = json_array_get(json, 1);
    const char *text = json_string_value(json);
    const char *space = text ? strchr(text, ' ') : NULL;
    if (json_array_size(json) == 2 && json_is_string(left) && json_is_string(right)) {
        ret->left =
            (struct qdq_string){json_string_value(left), json_string_length(left)};
        ret->right =
            (struct qdq_string){json_string_value(right), json_string_length(right)};
        return true;
    }
    if (!space || strchr(space + 1, ' ')) {
        const struct json_place m = item_at(merges, i);
        return wrong_member(r, &m, "a merge: two texts, or one with a space in it");
    }
    const size_t n = (size_t)(space - text);
    ret->left = (struct qdq_string){text, n};
    ret->right = (struct qdq_string){space + 1, json_string_length(json) - n - 1};
    return true;
}

static bool
read_merges(struct reading *r, const struct json_place *m)
{
    size_t n = 0;
    if (!json_is_array(m->json))
        return wrong_member(r, m, "an array");
    r->merges = calloc(json_array_size(m->json) + 1, sizeof *r->merges);
    if (!r->merges)
        return api_problem_no_memory(r->problem);
    for (size_t i = 0; i < json_array_size(m->json); i++) {
        const char *text = json_string_value(json_array_get(m->json, i));
        if (text && strncmp(text, "#version", 8) == 0)
            continue; /* the first line of the files that such lists come from */
        if (!read_merge(r, m, i, &r->merges[n++]))
            return false;
    }
    r->form.merges = r->merges;
    r->form.n_merges = n;
    return true;
}

static bool
read_vocab(struct reading *r, const struct json_place *m)
{
    const char *text;
    size_t n = 0;
    json_t *id;
    if (!json_is_object(m->json))
        return wrong_member(r, m, "an object of texts and ids");
    r->vocab = calloc(json_object_size(m->json) + 1, sizeof *r->vocab);
    if (!r->vocab)
        return api_problem_no_memory(r->problem);
    json_object_foreach (m->json, text, id) {
        struct json_place item = {.json = id};
        uint32_t number = 0;
        if (!json_is_integer(id)) {
            item = member_at(m, text);
            return wrong_member(r, &item, "an id");
        }
        snprintf(item.where, sizeof item.where, "%s", m->where);
        if (!read_id(r, &item, &number))
            return false;
        r->vocab[n++] = (struct qdq_vocab_token){{text, strlen(text)}, number};
    }
    r->form.vocab = r->vocab;
    r->form.n_vocab = n;
    return true;
}

/* The members that only WordPiece has, and the values that others have without a word about them. */
static bool
read_word_piece(struct reading *r, const struct json_place *m)
{
    const struct json_place vocab = member_at(m, "vocab"),
                            most = member_at(m, "max_input_chars_per_word");
    struct qdq_tokenizer_form *form = &r->form;
    const json_int_t chars = most.json ? json_integer_value(most.json) : 100;
    form->unknown = (struct qdq_string){"[UNK]", 5};
    form->continuing_prefix = (struct qdq_string){"##", 2};
    if (chars < 1 || chars > INT32_MAX)
        return wrong_member(r, &most, "a number of characters, at least 1");
    form->most_chars = (size_t)chars;
    return read_vocab(r, &vocab) && read_optional(r, m, "unk_token", &form->unknown) &&
           read_optional(r, m, "continuing_subword_prefix", &form->continuing_prefix);
}

static bool
read_model(struct reading *r, const struct json_place *m)
{
    struct qdq_tokenizer_form *form = &r->form;
    const struct json_place vocab = member_at(m, "vocab"),
                            merges = member_at(m, "merges"),
                            dropout = member_at(m, "dropout"),
                            type = member_at(m, "type");
    if (!json_is_object(m->json))
        return wrong_member(r, m, "an object");
    if (strcmp(type_of(m), "WordPiece") == 0)
        return read_word_piece(r, m);
    if (type.json && strcmp(type_of(m), "BPE") != 0)
        return unknown_kind(r, &type, type_of(m));
    if (dropout.json && !json_is_null(dropout.json) &&
        json_number_value(dropout.json) != 0)
        return api_fail_at(r->problem, API_UNSUPPORTED, dropout.where,
                           "%s leaves merges out by chance, which is not done here",
                           dropout.where);
    return read_vocab(r, &vocab) && read_merges(r, &merges) &&
           read_optional(r, m, "unk_token", &form->unknown) &&
           read_optional(r, m, "continuing_subword_prefix", &form->continuing_prefix) &&
           read_optional(r, m, "end_of_word_suffix", &form->word_suffix) &&
           read_flag(r, m, "fuse_unk", &form->fuses_unknown) &&
           read_flag(r, m, "byte_fallback", &form->falls_back_to_bytes) &&
           read_flag(r, m, "ignore_merges", &form->ignores_merges);
}

/* --- the file -------------------------------------------------------------------- */

static bool
read_all(struct reading *r, const struct json_place *root)
{
    const struct json_place added = member_at(root, "added_tokens"),
                            normalizer = member_at(root, "normalizer"),
                            pre_tokenizer = member_at(root, "pre_tokenizer"),
                            post_processor = member_at(root, "post_processor"),
                            model = member_at(root, "model");
    if (!json_is_object(root->json))
        return wrong_member(r, root, "an object");
    r->form.normalizers = r->normalizers;
    r->form.pre_tokenizers = r->pre_tokenizers;
    r->form.before = r->before;
    r->form.behind = r->behind;
    return read_added(r, &added) && read_normalizers(r, &normalizer, 0) &&
           read_pre_tokenizers(r, &pre_tokenizer, 0) &&
           read_post_processors(r, &post_processor, 0) && read_model(r, &model);
}

bool
api_tokenizer_read(const char *text, size_t len, struct qdq_tokenizer **ret,
                   struct api_problem *problem)
{
    struct qdq_error err = {0};
    struct json_place root = {.json =
                                  api_json_load(text, len, API_INVALID_JSON, problem)};
    struct reading *r = root.json ? calloc(1, sizeof *r) : NULL;
    bool ok = r || (root.json && api_problem_no_memory(problem));
    if (r)
        r->problem = problem;
    ok = ok && read_all(r, &root);
    if (ok && qdq_tokenizer_new(&r->form, ret, &err) != QDQ_OK)
        ok = api_problem_set_engine(problem, &err);
    if (r) {
        free(r->added);
        free(r->vocab);
        free(r->merges);
    }
    free(r);
    json_decref(root.json);
    return ok;
}
