/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ground/base/errors.h"

static const struct {
    const char *slug, *meaning;
} codes[QDQ_N_CODES] = {
    [QDQ_OK] = {"ok", "no error"},
#define QDQ_CODE(name, slug, meaning) [QDQ_##name] = {slug, meaning},
#include "qdq/codes.h"
#undef QDQ_CODE
};

static const char *const wheres[QDQ_N_WHERES] = {
    [QDQ_AT_NOTHING] = "",      [QDQ_AT_POINTER] = "pointer",
    [QDQ_AT_NODE] = "node",     [QDQ_AT_TENSOR] = "tensor",
    [QDQ_AT_INPUT] = "input",   [QDQ_AT_SAMPLE] = "sample",
    [QDQ_AT_OFFSET] = "offset",
};

enum qdq_code
qdq_error_set(struct qdq_error *err, enum qdq_code code, enum qdq_where kind,
              const char *where, const char *fmt, ...)
{
    if (!err || err->code != QDQ_OK)
        return code;
    err->code = code;
    err->kind = where ? kind : QDQ_AT_NOTHING;
    qdq_text_copy(err->where, sizeof err->where, where ? where : "");
    va_list args;
    va_start(args, fmt);
    qdq_text_vprint(err->text, sizeof err->text, fmt, args);
    va_end(args);
    return code;
}

const char *
qdq_code_slug(enum qdq_code code)
{
    return (unsigned)code < QDQ_N_CODES ? codes[code].slug : "internal";
}

const char *
qdq_code_meaning(enum qdq_code code)
{
    return (unsigned)code < QDQ_N_CODES ? codes[code].meaning : "a bug in qdqd";
}

const char *
qdq_where_name(enum qdq_where kind)
{
    return (unsigned)kind < QDQ_N_WHERES ? wheres[kind] : "";
}

enum qdq_code
qdqi_error_copy(const struct qdq_error *why, struct qdq_error *err)
{
    return why->code
               ? qdq_error_set(err, why->code, why->kind, why->where, "%s", why->text)
               : QDQ_OK;
}
