/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of a bucket (ListObjectsV2). Elements are read where they stand in the answer, so that no
 * entry is too long; what cannot be read is an error, because an object that is left out would
 * count as absent.
 */
#include "config.h"
#include "s3/s3_api.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_PAGES 100
#define PREFIX 1100 /* keys have at most 1024 bytes */

/* A part of the answer. */
struct span {
    const char *at, *end;
};

static size_t
length(struct span span)
{
    return (size_t)(span.end - span.at);
}

/* Finds the next element of that name and moves within->at behind it. */
static bool
find_element(struct span *within, const char *name, struct span *ret)
{
    char open[64], close[64];
    snprintf(open, sizeof open, "<%s>", name);
    snprintf(close, sizeof close, "</%s>", name);
    const char *begin = memmem(within->at, length(*within), open, strlen(open));
    if (!begin)
        return false;
    begin += strlen(open);
    const char *end =
        memmem(begin, (size_t)(within->end - begin), close, strlen(close));
    if (!end)
        return false;
    *ret = (struct span){begin, end};
    within->at = end + strlen(close);
    return true;
}

/* Copies the element of that name; "" where it is absent or longer. */
static void
copy_element(struct span within, const char *name, char *ret, size_t size)
{
    struct span found;
    ret[0] = '\0';
    if (find_element(&within, name, &found) && length(found) < size)
        snprintf(ret, size, "%.*s", (int)length(found), found.at);
}

/* Appends a character as UTF-8. Returns the byte behind it. */
static char *
put_character(char *to, unsigned long c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *to++ = (char)(first[more] | c >> 6 * more);
    while (more--)
        *to++ = (char)(0x80 | (c >> 6 * more & 0x3f));
    return to;
}

/* Decodes the reference to a character at `at`, "&#233;" or "&#xe9;". Returns 0 where it is
   none. */
static unsigned long
decode_reference(const char *at, const char **ret_end)
{
    char *end;
    if (strncmp(at, "&#", 2) != 0)
        return 0;
    bool is_hex = at[2] == 'x';
    unsigned long c = strtoul(at + 2 + is_hex, &end, is_hex ? 16 : 10);
    *ret_end = end + 1;
    return *end == ';' && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff) ? c : 0;
}

/* Decodes the five entities and all references to characters in place. None becomes longer. */
static void
decode_entities(char *text)
{
    static const struct {
        const char *name, character;
    } rows[] = {{"&amp;", '&'},
                {"&lt;", '<'},
                {"&gt;", '>'},
                {"&quot;", '"'},
                {"&apos;", '\''}};
    enum { N_ROWS = sizeof rows / sizeof *rows };
    char *to = text;
    for (const char *at = text; *at;) {
        size_t row = 0;
        const char *end;
        while (row < N_ROWS && strncmp(at, rows[row].name, strlen(rows[row].name)) != 0)
            row++;
        unsigned long c = row == N_ROWS ? decode_reference(at, &end) : 0;
        if (row < N_ROWS) {
            *to++ = rows[row].character;
            at += strlen(rows[row].name);
        } else if (c) {
            to = put_character(to, c);
            at = end;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
}

bool
s3_element(const char **at, const char *name, char *ret, size_t size)
{
    struct span within = {*at, *at + strlen(*at)}, found;
    if (!find_element(&within, name, &found) || length(found) >= size)
        return false;
    snprintf(ret, size, "%.*s", (int)length(found), found.at);
    *at = within.at;
    return true;
}

/* Parses "2026-01-31T12:00:00.000Z". Returns 0 for anything else. */
static int64_t
parse_time(const char *text)
{
    struct tm tm = {0};
    return strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) ? (int64_t)timegm(&tm) : 0;
}

static bool
fail_list(struct api_problem *problem)
{
    return api_problem_set(problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                           "the bucket answered with a list that cannot be read");
}

/* Visits the object of an entry. */
static bool
visit_entry(struct span entry, size_t skip, s3_visit_fn visit, void *arg,
            struct api_problem *problem)
{
    struct span found, within = entry;
    char etag[256], size[32], time[64];
    copy_element(entry, "Size", size, sizeof size);
    copy_element(entry, "ETag", etag, sizeof etag);
    copy_element(entry, "LastModified", time, sizeof time);
    decode_entities(etag);
    if (!find_element(&within, "Key", &found) || !*size)
        return fail_list(problem);
    char *key = strndup(found.at, length(found));
    if (!key)
        return api_problem_no_memory(problem);
    decode_entities(key);
    bool ok = true;
    if (strlen(key) >= skip) {
        const struct s3_object object = {key + skip, etag, strtoll(size, NULL, 10),
                                         parse_time(time)};
        ok = visit(arg, &object, problem);
    }
    free(key);
    return ok;
}

bool
s3_visit_page(const char *page, size_t skip, s3_visit_fn visit, void *arg,
              struct api_problem *problem)
{
    struct span left = {page, page + strlen(page)}, entry;
    while (find_element(&left, "Contents", &entry))
        if (!visit_entry(entry, skip, visit, arg, problem))
            return false;
    /* An entry without its end was cut. */
    return !strstr(left.at, "<Contents>") || fail_list(problem);
}

/* Writes the URL of a page; the parameters are sorted, as the signature needs them. */
static bool
page_url(const char *prefix, const char *token, char url[HTTP_URL],
         struct api_problem *problem)
{
    url[0] = '\0';
    return url_add(url, "?", "?", problem) &&
           (!*token ||
            (url_add(url, "continuation-token=", "=", problem) &&
             url_add(url, token, "", problem) && url_add(url, "&", "&", problem))) &&
           url_add(url, "list-type=2&prefix=", "=&", problem) &&
           url_add(url, prefix, "", problem);
}

/* Reads the token of the page that follows; "" when there is none. A list that has more pages and
   does not say where is an error, and not its end. */
static bool
next_token(const char *page, char token[S3_TOKEN], struct api_problem *problem)
{
    struct span whole = {page, page + strlen(page)};
    char truncated[16];
    token[0] = '\0';
    copy_element(whole, "IsTruncated", truncated, sizeof truncated);
    if (strcmp(truncated, "true") != 0)
        return true;
    copy_element(whole, "NextContinuationToken", token, S3_TOKEN);
    decode_entities(token);
    return *token || fail_list(problem);
}

/* Returns whether an answer is a whole list; a proxy's page is none, and lists no object. */
static bool
is_list(const char *body)
{
    return strstr(body, "<ListBucketResult") && strstr(body, "</ListBucketResult>");
}

bool
s3_list_page(struct http *http, const char *prefix, char token[S3_TOKEN],
             s3_visit_fn visit, void *arg, struct api_problem *problem)
{
    char whole[2 * PREFIX];
    const char *base = s3_split_url(http->remote, NULL, 0);
    size_t len = strlen(base);
    const char *slash = len && base[len - 1] != '/' ? "/" : "";
    struct http_request request = {.headers = {S3_NO_BODY}};
    struct http_answer answer;
    if (snprintf(whole, sizeof whole, "%s%s%s", base, slash, prefix) > PREFIX)
        return api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "the key is too long");
    if (!page_url(whole, token, request.url, problem) ||
        !http_send(http, &request, &answer, problem))
        return false;
    const char *body = answer.body ? answer.body : "";
    bool ok = (answer.status == 200 ||
               http_fail(http, &answer, "the list of the bucket", problem)) &&
              (is_list(body) || fail_list(problem)) &&
              s3_visit_page(body, len + strlen(slash), visit, arg, problem) &&
              next_token(body, token, problem);
    http_answer_fini(&answer);
    return ok;
}

bool
s3_list(struct http *http, const char *prefix, s3_visit_fn visit, void *arg,
        struct api_problem *problem)
{
    char token[S3_TOKEN] = "";
    for (int page = 0; page < MOST_PAGES; page++) {
        if (!s3_list_page(http, prefix, token, visit, arg, problem))
            return false;
        if (!*token)
            return true;
    }
    return api_problem_set(problem, API_REMOTE_TOO_LARGE, QDQ_AT_NOTHING, NULL,
                           "remote %s lists more than %d pages of keys",
                           http->remote->name, MOST_PAGES);
}
