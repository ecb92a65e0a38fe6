/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http/framing.h"
#include "http/request.h"
#include "api/utf8.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool
refuse(struct api_problem *p, const char *what)
{
    return api_fail(p, API_BAD_REQUEST, "%s", what);
}

/* --- the target ----------------------------------------------------------- */

/* Returns whether `text` has the escape of a byte, in capital or small letters. */
static bool
has_escape(const char *text, size_t len, const char *digits)
{
    for (size_t i = 0; i + 3 <= len; i++)
        if (text[i] == '%' && !strncasecmp(text + i + 1, digits, 2))
            return true;
    return false;
}

static int
hex(char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

/* Returns whether the target is UTF-8 once its escapes are decoded. A database takes no other
   text. */
static bool
is_utf8(const char *target)
{
    char *text = strdup(target);
    size_t len = 0;
    for (const char *at = target; text && *at; at++) {
        int high = *at == '%' ? hex(at[1]) : -1;
        int low = high >= 0 ? hex(at[2]) : -1;
        text[len++] = low >= 0 ? (char)(high << 4 | low) : *at;
        at += low >= 0 ? 2 : 0;
    }
    if (text)
        text[len] = '\0';
    bool ok = text && api_utf8_is_valid(text);
    free(text);
    return ok;
}

bool
framing_check_target(const char *target, struct api_problem *p)
{
    size_t path = strcspn(target, "?"), len = strlen(target);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)target[i] <= ' ' || target[i] == 0x7f)
            return refuse(p, "the request's path or query has a space or a control "
                             "character; escape it");
    if (has_escape(target, len, "00"))
        return refuse(p, "the request's path or query has the escape %00");
    if (has_escape(target, path, "2f"))
        return refuse(p, "the request's path has the escape %2f; a name in a path "
                         "cannot have a slash");
    if (!is_utf8(target))
        return refuse(p, "the request's path or query is not UTF-8");
    return true;
}

const char *
framing_path(const char *target)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t len = strlen(schemes[i]);
        if (strncasecmp(target, schemes[i], len) != 0)
            continue;
        const char *path = target + len + strcspn(target + len, "/");
        return *path ? path : "/";
    }
    return target;
}

/* --- the head ------------------------------------------------------------- */

/* The findings in the fields of a head. */
struct fields {
    int hosts, lengths, encodings;
    const char *encoding; /* value of the first Transfer-Encoding */
    const char *wrong;    /* what is wrong with a field; NULL: nothing */
    unsigned seen;        /* bits of the fields of `singles` that came */
    const char *twice;    /* one of these that came again; NULL: none */
};

/* Fields that stand in a request once, beside those that are counted: a proxy that reads the
   second one would read another request. */
static const char *const singles[] = {"Authorization", "Content-Type",
                                      "Idempotency-Key", "Qdqd-Tenant"};

static void
check_single(struct fields *fields, const char *name)
{
    for (size_t i = 0; i < sizeof singles / sizeof *singles; i++) {
        if (strcasecmp(name, singles[i]) != 0)
            continue;
        if (fields->seen & 1u << i)
            fields->twice = singles[i];
        fields->seen |= 1u << i;
    }
}

/* Returns whether a field's name is a token (RFC 9110, 5.6.2). */
static bool
is_token(const char *name)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (const char *c = name; *c; c++)
        if (!strchr(marks, *c) && !(*c >= '0' && *c <= '9') &&
            !((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z'))
            return false;
    return *name != '\0';
}

static bool
has_control(const char *value)
{
    for (const char *c = value; *c; c++)
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
            return true;
    return false;
}

static enum MHD_Result
check_field(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct fields *fields = arg;
    bool is_encoding = !strcasecmp(name, "Transfer-Encoding");
    (void)kind;
    if (!is_token(name))
        fields->wrong = "the name of a header has a character that no name may have; "
                        "nothing stands between a name and its colon";
    else if (value && has_control(value))
        fields->wrong = "the value of a header has a control character";
    check_single(fields, name);
    fields->hosts += !strcasecmp(name, "Host");
    fields->lengths += !strcasecmp(name, "Content-Length");
    if (is_encoding && !fields->encodings++)
        fields->encoding = value;
    return MHD_YES;
}

bool
framing_check_head(const struct request *request, const char *version,
                   struct api_problem *p)
{
    struct fields fields = {0};
    bool is_old = !strcmp(version, "HTTP/1.0");
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, check_field,
                              &fields);
    if (fields.wrong)
        return refuse(p, fields.wrong);
    if (fields.twice)
        return api_fail(p, API_BAD_REQUEST, "the request has more than one header %s",
                        fields.twice);
    if (fields.lengths + fields.encodings > 1)
        return refuse(p, "the request says its length more than once");
    if (fields.hosts > 1)
        return refuse(p, "the request has more than one Host header");
    if (!fields.hosts && !is_old)
        return refuse(p, "the request has no Host header");
    if (fields.encodings && is_old)
        return refuse(p, "a request of HTTP/1.0 has no Transfer-Encoding");
    if (fields.encodings &&
        (!fields.encoding || strcasecmp(fields.encoding, "chunked") != 0))
        return refuse(p, "the only Transfer-Encoding of a request is \"chunked\"");
    return true;
}

/* --- the query ------------------------------------------------------------ */

/* The parameters that routes read. */
static const char *const parameters[] = {"cursor", "histograms", "label", "limit",
                                         "state",  "tenant",     "wait",  "with"};

struct query {
    unsigned seen; /* bits of the parameters that came */
    const char *wrong, *what;
};

static enum MHD_Result
check_parameter(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct query *query = arg;
    (void)kind;
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        if (strcmp(name, parameters[i]) != 0)
            continue;
        if (!value || query->seen & 1u << i) {
            query->wrong = parameters[i];
            query->what = value ? "stands there twice" : "has no value";
        }
        query->seen |= 1u << i;
    }
    return query->wrong ? MHD_NO : MHD_YES;
}

bool
framing_check_query(const struct request *request, struct api_problem *p)
{
    struct query query = {0};
    MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND,
                              check_parameter, &query);
    return !query.wrong ||
           api_fail(p, API_BAD_REQUEST, "the query's %s %s", query.wrong, query.what);
}

/* --- the library ---------------------------------------------------------- */

/* Returns whether the library has a strict level that refuses a bare line feed as the
   end of a line, in heads and in chunked bodies: versions from 1.0 on do. */
static bool
can_be_strict(void)
{
    return MHD_get_version()[0] != '0';
}

bool
framing_ends_connection(const struct request *request)
{
    return !can_be_strict() &&
           MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
                                       "Transfer-Encoding");
}

int
framing_strictness(void)
{
    return can_be_strict() ? 1 : 0;
}
