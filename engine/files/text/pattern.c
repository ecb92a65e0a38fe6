/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/text/pattern.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "ground/base/arena.h"

/*
 * The bounds. A match is looked for at so many places of the text by one call, with few steps for
 * each; where these do not suffice, a place gets many. So a call ends soon, and the time is looked
 * at between calls.
 */
enum {
    PLACES = 4096,
    FEW_STEPS = 10000,
    MANY_STEPS = 50000000,
    MOST_KIB = 65536, /* of memory for one match */
    CALLS = 64,       /* between two looks at the time */
    SECONDS = 10,     /* of the processor for any text */
    SECONDS_PER_MIB = 10,
};

struct qdqi_pattern {
    struct qdq_string plain; /* where there is no code */
    char member[128];
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
    unsigned calls;
    double end; /* of the thread's processor time */
};

static double
seconds(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0)
        return 0;
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void
qdqi_pattern_allow(struct qdqi_pattern *pattern, size_t size)
{
    pattern->end = seconds() + SECONDS + (double)size / (1 << 20) * SECONDS_PER_MIB;
}

static enum qdq_code
compile(struct qdqi_pattern *p, const struct qdqi_text *text, struct qdq_error *err)
{
    int number = 0;
    PCRE2_SIZE offset = 0;
    pcre2_compile_context *how = pcre2_compile_context_create(NULL);
    if (!how)
        return qdq_error_set(
            err, QDQ_IO, QDQ_AT_NOTHING, NULL,
            "libpcre2-8, which the patterns of a tokenizer need, cannot "
            "be loaded");
    pcre2_set_newline(how, PCRE2_NEWLINE_LF);
    p->code =
        pcre2_compile((PCRE2_SPTR)text->data, text->size,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_NO_AUTO_CAPTURE | PCRE2_MULTILINE |
                          PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT,
                      &number, &offset, how);
    pcre2_compile_context_free(how);
    if (!p->code) {
        PCRE2_UCHAR why[128] = "";
        pcre2_get_error_message(number, why, sizeof why);
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, p->member,
                             "a regular expression cannot be read: %s",
                             (const char *)why);
    }
    p->data = pcre2_match_data_create_from_pattern(p->code, NULL);
    p->context = pcre2_match_context_create(NULL);
    if (!p->data || !p->context)
        return qdqi_no_memory(err);
    pcre2_set_heap_limit(p->context, MOST_KIB);
    return QDQ_OK;
}

static enum qdq_code
compile_regex(struct qdqi_pattern *p, struct qdq_string pattern, struct qdq_error *err)
{
    struct qdqi_text text = {0};
    enum qdq_code code = qdqi_pattern_rewrite(pattern, p->member, &text, err);
    if (code == QDQ_OK && text.size == 0)
        code = qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, p->member,
                             "a regular expression is empty");
    if (code == QDQ_OK)
        code = compile(p, &text, err);
    free(text.data);
    return code;
}

enum qdq_code
qdqi_pattern_new(struct qdq_string pattern, bool is_regex, const char *member,
                 struct qdqi_pattern **ret, struct qdq_error *err)
{
    struct qdqi_pattern *p = calloc(1, sizeof *p);
    if (!p)
        return qdqi_no_memory(err);
    qdq_text_copy(p->member, sizeof p->member, member);
    char *plain = NULL;
    enum qdq_code code = QDQ_OK;
    if (is_regex)
        code = compile_regex(p, pattern, err);
    else if (pattern.size == 0)
        code = qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, p->member,
                             "the pattern is empty");
    else if (!(plain = malloc(pattern.size)))
        code = qdqi_no_memory(err);
    else
        memcpy(plain, pattern.data, pattern.size);
    p->plain = (struct qdq_string){plain, pattern.size};
    if (code != QDQ_OK)
        qdqi_pattern_free(&p);
    else
        *ret = p;
    return code;
}

void
qdqi_pattern_free(struct qdqi_pattern **pattern)
{
    struct qdqi_pattern *p = *pattern;
    if (!p)
        return;
    if (p->context)
        pcre2_match_context_free(p->context);
    if (p->data)
        pcre2_match_data_free(p->data);
    if (p->code)
        pcre2_code_free(p->code);
    free((void *)(uintptr_t)p->plain.data);
    free(p);
    *pattern = NULL;
}

static enum qdq_code
took_too_long(const struct qdqi_pattern *p, struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_POINTER, p->member,
                         "the regular expression takes too long for this text");
}

/* Looks for a match that begins at one of `places` places from `at` on. */
static int
look(struct qdqi_pattern *p, const struct qdqi_matches *m, size_t at, size_t places,
     uint32_t steps)
{
    const size_t last = places - 1 < m->size - at ? at + places - 1 : m->size;
    pcre2_set_match_limit(p->context, steps);
    pcre2_set_offset_limit(p->context, last);
    return pcre2_match(p->code, (PCRE2_SPTR)m->text, m->size, at, PCRE2_NO_UTF_CHECK,
                       p->data, p->context);
}

static size_t
behind_char(const struct qdqi_matches *m, size_t at)
{
    if (at < m->size)
        qdqi_utf8_next(m->text, m->size, &at);
    return at;
}

/* Returns the number of PCRE2's for the first match from *at on: that of the last call. */
static int
search(struct qdqi_pattern *p, const struct qdqi_matches *m, size_t at)
{
    for (;;) {
        if ((++p->calls % CALLS == 0) && seconds() > p->end)
            return PCRE2_ERROR_MATCHLIMIT;
        int found = look(p, m, at, PLACES, FEW_STEPS);
        size_t next = m->size - at < PLACES ? SIZE_MAX : at + PLACES;
        if (found == PCRE2_ERROR_MATCHLIMIT) {
            found = seconds() > p->end ? found : look(p, m, at, 1, MANY_STEPS);
            next = at < m->size ? behind_char(m, at) : SIZE_MAX;
        }
        if (found != PCRE2_ERROR_NOMATCH || next == SIZE_MAX)
            return found;
        at = next;
        while (at < m->size && ((unsigned char)m->text[at] & 0xc0) == 0x80)
            at++;
    }
}

static enum qdq_code
next_regex(struct qdqi_matches *m, struct qdqi_match *ret, struct qdq_error *err)
{
    struct qdqi_pattern *p = m->pattern;
    const int found = search(p, m, m->at);
    *ret = (struct qdqi_match){.found = found >= 0};
    if (found == PCRE2_ERROR_NOMEMORY)
        return qdqi_no_memory(err);
    if (found < 0 && found != PCRE2_ERROR_NOMATCH)
        return took_too_long(p, err);
    if (ret->found) {
        const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(p->data);
        ret->start = bounds[0];
        ret->end = bounds[1];
    }
    return QDQ_OK;
}

static void
next_plain(const struct qdqi_matches *m, struct qdqi_match *ret)
{
    const struct qdq_string *plain = &m->pattern->plain;
    const char *at = memmem(m->text + m->at, m->size - m->at, plain->data, plain->size);
    *ret = (struct qdqi_match){.found = at};
    if (at) {
        ret->start = (size_t)(at - m->text);
        ret->end = ret->start + plain->size;
    }
}

enum qdq_code
qdqi_matches_next(struct qdqi_matches *m, struct qdqi_match *ret, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    bool again = true;
    while (code == QDQ_OK && again) {
        if (!m->pattern->code)
            next_plain(m, ret);
        else
            code = next_regex(m, ret, err);
        again = code == QDQ_OK && ret->found && ret->start == ret->end &&
                ret->end == m->last;
        if (again && m->at == m->size) {
            ret->found = false;
            again = false;
        } else if (again)
            m->at = behind_char(m, m->at);
    }
    if (code == QDQ_OK && ret->found)
        m->at = m->last = ret->end;
    return code;
}
