/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/text/split.h"

/* Spans of the text come one behind the other, matches and what lies between; a span may have to
   wait for the next one. */
struct splitter {
    enum qdq_text_behavior behavior;
    const struct qdqi_piece_sink *to;
    bool waits;        /* a span waits */
    bool was_match;    /* of the last span */
    size_t start, end; /* of the span that waits */
    struct qdq_error *err;
};

static enum qdq_code
give(const struct splitter *s, size_t start, size_t end)
{
    return start < end ? s->to->piece(s->to->arg, start, end, s->err) : QDQ_OK;
}

/* Gives the span that waits, and has the new one wait. */
static enum qdq_code
wait_next(struct splitter *s, size_t start, size_t end)
{
    const enum qdq_code code = s->waits ? give(s, s->start, s->end) : QDQ_OK;
    s->waits = true;
    s->start = start;
    s->end = end;
    return code;
}

static enum qdq_code
span(struct splitter *s, size_t start, size_t end, bool is_match)
{
    bool joins = false;
    switch (s->behavior) {
    case QDQ_TEXT_ISOLATED:
        return give(s, start, end);
    case QDQ_TEXT_REMOVED:
        return is_match ? QDQ_OK : give(s, start, end);
    case QDQ_TEXT_CONTIGUOUS:
        joins = s->waits && is_match == s->was_match;
        break;
    case QDQ_TEXT_MERGED_WITH_PREVIOUS:
        joins = s->waits && is_match && !s->was_match;
        break;
    case QDQ_TEXT_MERGED_WITH_NEXT:
        joins = s->waits && !is_match && s->was_match;
        break;
    }
    s->was_match = is_match;
    if (!joins)
        return wait_next(s, start, end);
    s->end = end;
    return QDQ_OK;
}

static enum qdq_code
finish(const struct splitter *s)
{
    return s->waits ? give(s, s->start, s->end) : QDQ_OK;
}

enum qdq_code
qdqi_split_pattern(struct qdqi_pattern *pattern, struct qdq_string text,
                   enum qdq_text_behavior behavior, bool invert,
                   const struct qdqi_piece_sink *to, struct qdq_error *err)
{
    struct splitter s = {.behavior = behavior, .to = to, .err = err};
    struct qdqi_matches matches = {pattern, text.data, text.size, 0, SIZE_MAX};
    struct qdqi_match match = {.found = true};
    size_t at = 0;
    enum qdq_code code = QDQ_OK;
    while (code == QDQ_OK) {
        code = qdqi_matches_next(&matches, &match, err);
        if (code != QDQ_OK || !match.found)
            break;
        if (match.start > at)
            code = span(&s, at, match.start, invert);
        if (code == QDQ_OK)
            code = span(&s, match.start, match.end, !invert);
        at = match.end;
    }
    if (code == QDQ_OK && at < text.size)
        code = span(&s, at, text.size, invert);
    return code == QDQ_OK ? finish(&s) : code;
}

enum qdq_code
qdqi_split_class(bool (*is_one)(uint32_t c), struct qdq_string text,
                 enum qdq_text_behavior behavior, const struct qdqi_piece_sink *to,
                 struct qdq_error *err)
{
    struct splitter s = {.behavior = behavior, .to = to, .err = err};
    size_t taken = 0;
    enum qdq_code code = QDQ_OK;
    for (size_t at = 0; at < text.size && code == QDQ_OK;) {
        const size_t start = at;
        if (!is_one(qdqi_utf8_next(text.data, text.size, &at)))
            continue;
        if (start > taken)
            code = span(&s, taken, start, false);
        if (code == QDQ_OK)
            code = span(&s, start, at, true);
        taken = at;
    }
    if (code == QDQ_OK && taken < text.size)
        code = span(&s, taken, text.size, false);
    return code == QDQ_OK ? finish(&s) : code;
}

enum kind { SPACE, WORD, OTHER };

static enum kind
kind_of(uint32_t c)
{
    return qdqi_char_is_word(c) ? WORD : qdqi_char_is_space(c) ? SPACE : OTHER;
}

enum qdq_code
qdqi_split_words(struct qdq_string text, const struct qdqi_piece_sink *to,
                 struct qdq_error *err)
{
    const struct splitter s = {.to = to, .err = err};
    enum kind kind = SPACE;
    size_t start = 0;
    enum qdq_code code = QDQ_OK;
    for (size_t at = 0; at < text.size && code == QDQ_OK;) {
        const size_t here = at;
        const enum kind next = kind_of(qdqi_utf8_next(text.data, text.size, &at));
        if (next == kind)
            continue;
        if (kind != SPACE)
            code = give(&s, start, here);
        start = here;
        kind = next;
    }
    return code == QDQ_OK && kind != SPACE ? give(&s, start, text.size) : code;
}
