/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/text/normalize.h"

#include <stdlib.h>
#include <string.h>

/* --- steps -------------------------------------------------------------------- */

static bool
copy_string(struct qdqi_arena *arena, struct qdq_string *s)
{
    if (s->size == 0) {
        *s = (struct qdq_string){"", 0};
        return true;
    }
    s->data = qdqi_arena_copy(arena, s->data, s->size, 1);
    return s->data;
}

enum qdq_code
qdqi_steps_copy(const struct qdq_text_step *steps, size_t n, struct qdqi_arena *arena,
                const struct qdq_text_step **ret, struct qdq_error *err)
{
    if (n > QDQI_MOST_STEPS)
        return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_POINTER,
                             steps[QDQI_MOST_STEPS].member, "at most %d steps are read",
                             QDQI_MOST_STEPS);
    struct qdq_text_step *copy = qdqi_arena_array(arena, n, sizeof *copy);
    if (!copy)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        copy[i] = steps[i];
        copy[i].member = qdqi_arena_strdup(arena, steps[i].member);
        if (!copy[i].member || !copy_string(arena, &copy[i].pattern) ||
            !copy_string(arena, &copy[i].content))
            return qdqi_no_memory(err);
    }
    *ret = copy;
    return QDQ_OK;
}

enum qdq_code
qdqi_step_check(const struct qdq_text_step *step, size_t size, struct qdq_error *err)
{
    return size <= QDQI_MOST_CHANGED
               ? QDQ_OK
               : qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_POINTER, step->member,
                               "it makes more than %d bytes of a text",
                               QDQI_MOST_CHANGED);
}

enum qdq_code
qdqi_normalizer_init(const struct qdq_text_step *steps, size_t n,
                     struct qdqi_arena *arena, struct qdqi_normalizer *ret,
                     struct qdq_error *err)
{
    enum qdq_code code = qdqi_steps_copy(steps, n, arena, &ret->steps, err);
    if (code != QDQ_OK)
        return code;
    ret->patterns = qdqi_arena_array(arena, n, sizeof(struct qdqi_pattern *));
    if (!ret->patterns)
        return qdqi_no_memory(err);
    ret->n = n;
    for (size_t i = 0; i < n && code == QDQ_OK; i++)
        if (steps[i].op == QDQ_TEXT_REPLACE)
            code = qdqi_pattern_new(steps[i].pattern, steps[i].is_regex,
                                    ret->steps[i].member, &ret->patterns[i], err);
    return code;
}

void
qdqi_normalizer_allow(struct qdqi_normalizer *normalizer, size_t size)
{
    for (size_t i = 0; i < normalizer->n; i++)
        if (normalizer->patterns[i])
            qdqi_pattern_allow(normalizer->patterns[i], size);
}

void
qdqi_normalizer_fini(struct qdqi_normalizer *normalizer)
{
    for (size_t i = 0; i < normalizer->n; i++)
        qdqi_pattern_free(&normalizer->patterns[i]);
    for (size_t i = 0; i < 2; i++)
        free(normalizer->buffers[i].data);
}

/* --- one text ----------------------------------------------------------------- */

static enum qdq_code
replace(const struct qdq_text_step *step, struct qdqi_pattern *pattern,
        struct qdq_string text, struct qdqi_text *to, bool *keeps_start,
        struct qdq_error *err)
{
    struct qdqi_matches matches = {pattern, text.data, text.size, 0, SIZE_MAX};
    struct qdqi_match match = {.found = true};
    enum qdq_code code = QDQ_OK;
    for (size_t at = 0; code == QDQ_OK && match.found;) {
        code = qdqi_matches_next(&matches, &match, err);
        if (code != QDQ_OK)
            return code;
        const size_t end = match.found ? match.start : text.size;
        if (!qdqi_text_add(to, text.data + at, end - at) ||
            (match.found && !qdqi_text_add(to, step->content.data, step->content.size)))
            return qdqi_no_memory(err);
        if (match.found && match.start == 0 && match.end > 0 && step->content.size == 0)
            *keeps_start = false;
        at = match.end;
        code = qdqi_step_check(step, to->size, err);
    }
    return code;
}

static struct qdq_string
strip(const struct qdq_text_step *step, struct qdq_string text, bool *keeps_start)
{
    size_t start = 0, end = text.size, next;
    for (; step->left && start < end; start = next) {
        next = start;
        if (!qdqi_char_is_space(qdqi_utf8_next(text.data, text.size, &next)))
            break;
    }
    while (step->right && end > start &&
           qdqi_char_is_space(qdqi_utf8_before(text.data, end)))
        do
            end--;
        while (end > start && ((unsigned char)text.data[end] & 0xc0) == 0x80);
    *keeps_start = *keeps_start && start == 0;
    return (struct qdq_string){text.data + start, end - start};
}

static bool
prepend(const struct qdq_text_step *step, struct qdq_string text, struct qdqi_text *to)
{
    return (text.size == 0 ||
            qdqi_text_add(to, step->content.data, step->content.size)) &&
           qdqi_text_add(to, text.data, text.size);
}

/* Appends the characters that are not of the class. */
static bool
drop(struct qdq_string text, bool (*is_one)(uint32_t c), bool spaces_are_plain,
     struct qdqi_text *to, bool *keeps_start)
{
    for (size_t at = 0; at < text.size;) {
        const size_t start = at;
        const uint32_t c = qdqi_utf8_next(text.data, text.size, &at);
        if (is_one(c)) {
            *keeps_start = *keeps_start && start > 0;
            continue;
        }
        const bool is_plain = spaces_are_plain && qdqi_char_is_space(c);
        if (!qdqi_text_add(to, is_plain ? " " : text.data + start,
                           is_plain ? 1 : at - start))
            return false;
    }
    return true;
}

static bool
space_ideographs(struct qdq_string text, struct qdqi_text *to)
{
    bool ok = true;
    for (size_t at = 0; at < text.size && ok;) {
        const size_t start = at;
        const bool is_one =
            qdqi_char_is_ideograph(qdqi_utf8_next(text.data, text.size, &at));
        ok = (!is_one || qdqi_text_add(to, " ", 1)) &&
             qdqi_text_add(to, text.data + start, at - start) &&
             (!is_one || qdqi_text_add(to, " ", 1));
    }
    return ok;
}

static enum qdq_code
run(struct qdqi_normalizer *normalizer, size_t i, struct qdq_string text,
    struct qdqi_text *to, bool *keeps_start, struct qdq_error *err)
{
    const struct qdq_text_step *step = &normalizer->steps[i];
    struct qdq_string stripped;
    bool ok = true;
    switch (step->op) {
    case QDQ_TEXT_NFC:
    case QDQ_TEXT_NFD:
    case QDQ_TEXT_NFKC:
    case QDQ_TEXT_NFKD:
        ok = qdqi_text_add_form(to, text.data, text.size, step->op);
        break;
    case QDQ_TEXT_LOWERCASE:
        ok = qdqi_text_add_lower(to, text.data, text.size);
        break;
    case QDQ_TEXT_STRIP:
        stripped = strip(step, text, keeps_start);
        ok = qdqi_text_add(to, stripped.data, stripped.size);
        break;
    case QDQ_TEXT_DROP_MARKS:
        ok = qdqi_text_add_unmarked(to, text.data, text.size);
        break;
    case QDQ_TEXT_CLEAN:
        ok = drop(text, qdqi_char_is_control, true, to, keeps_start);
        break;
    case QDQ_TEXT_SPACE_IDEOGRAPHS:
        ok = space_ideographs(text, to);
        break;
    case QDQ_TEXT_DROP_NONSPACING:
        ok = drop(text, qdqi_char_is_nonspacing, false, to, keeps_start);
        break;
    case QDQ_TEXT_PREPEND:
        ok = prepend(step, text, to);
        break;
    case QDQ_TEXT_REPLACE:
        return replace(step, normalizer->patterns[i], text, to, keeps_start, err);
    case QDQ_TEXT_TO_BYTES:
        ok = qdqi_text_add_bytes(to, text.data, text.size);
        break;
    default:
        return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_POINTER, step->member,
                             "it is no normalizer");
    }
    return ok ? qdqi_step_check(step, to->size, err) : qdqi_no_memory(err);
}

enum qdq_code
qdqi_normalizer_run(struct qdqi_normalizer *normalizer, struct qdq_string text,
                    struct qdq_string *ret, bool *keeps_start, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < normalizer->n && code == QDQ_OK; i++) {
        struct qdqi_text *to = &normalizer->buffers[i % 2];
        to->size = 0;
        code = run(normalizer, i, text, to, keeps_start, err);
        text = (struct qdq_string){to->size ? to->data : "", to->size};
    }
    if (code == QDQ_OK)
        *ret = text;
    return code;
}
