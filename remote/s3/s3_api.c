/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "s3/s3_api.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_PAGES 100
#define CREDENTIAL 2048
#define KEY 1100 /* keys have at most 1024 bytes */

/* --- credentials ---------------------------------------------------------- */

/* Copies the value of a line "KEY = VALUE", the first in the file. */
static void
find_value(const char *text, const char *key, char *ret, size_t size)
{
    ret[0] = '\0';
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += !!*line) {
        const char *at = line + strspn(line, " \t\r");
        if (strncmp(at, key, strlen(key)) != 0)
            continue;
        at += strlen(key);
        at += strspn(at, " \t");
        if (*at != '=')
            continue;
        at += 1 + strspn(at + 1, " \t");
        size_t len = strcspn(at, " \t\r\n");
        if (len < size)
            snprintf(ret, size, "%.*s", (int)len, at);
        return;
    }
}

/* Splits the URL of the remote: http->base is the bucket, and the rest is left. */
static const char *
split_url(const struct qdqr_remote *remote, char *base, size_t size)
{
    const char *host = strstr(remote->url, "://");
    host = host ? host + 3 : remote->url;
    size_t host_len = strcspn(host, "/");
    const char *bucket = host + host_len + strspn(host + host_len, "/");
    size_t bucket_len = strcspn(bucket, "/");
    if (base && remote->path_style)
        snprintf(base, size, "%.*s%.*s/%.*s", (int)(host - remote->url), remote->url,
                 (int)host_len, host, (int)bucket_len, bucket);
    else if (base)
        snprintf(base, size, "%.*s%.*s.%.*s", (int)(host - remote->url), remote->url,
                 (int)bucket_len, bucket, (int)host_len, host);
    return bucket + bucket_len + strspn(bucket + bucket_len, "/");
}

static const char *
region_of(const struct qdqr_remote *remote)
{
    return remote->region && *remote->region ? remote->region : "us-east-1";
}

/* Reads the lines of the remote's credentials; "" for each that is absent. */
static void
read_credentials(const struct qdqr_remote *remote, char ret[3][CREDENTIAL])
{
    static const char *const names[] = {"aws_access_key_id", "aws_secret_access_key",
                                        "aws_session_token"};
    for (int i = 0; i < 3; i++)
        find_value(remote->credentials ? remote->credentials : "", names[i], ret[i],
                   CREDENTIAL);
}

bool
s3_authenticate(struct http *http, struct api_problem *problem)
{
    const char *text = http->remote->credentials ? http->remote->credentials : "";
    char values[3][CREDENTIAL], pair[4200], provider[128];
    split_url(http->remote, http->base, sizeof http->base);
    if (!text[strspn(text, " \t\r\n")])
        return true; /* a public bucket */
    read_credentials(http->remote, values);
    bool ok = *values[0] && *values[1];
    snprintf(pair, sizeof pair, "%s:%s", values[0], values[1]);
    snprintf(provider, sizeof provider, "aws:amz:%.60s:s3", region_of(http->remote));
    if (ok && *values[2])
        snprintf(http->token, sizeof http->token, "x-amz-security-token: %s",
                 values[2]);
    CURLcode code = ok ? curl_easy_setopt(http->curl, CURLOPT_USERPWD, pair) : CURLE_OK;
    if (ok && code == CURLE_OK)
        code = curl_easy_setopt(http->curl, CURLOPT_AWS_SIGV4, provider);
    http->is_signed = ok;
    explicit_bzero(values, sizeof values);
    explicit_bzero(pair, sizeof pair);
    if (!ok)
        return api_problem_set(problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
                               "the credentials of remote %s have no lines "
                               "aws_access_key_id and aws_secret_access_key",
                               http->remote->name);
    return code == CURLE_OK || api_problem_no_memory(problem);
}

bool
s3_sign_url(const struct http *http, const char *method, struct s3_while when,
            char url[HTTP_URL], struct api_problem *problem)
{
    char values[3][CREDENTIAL], whole[2 * HTTP_URL];
    if (!http->is_signed)
        return true;
    read_credentials(http->remote, values);
    const struct s3_key key = {values[0], values[1], values[2],
                               region_of(http->remote)};
    size_t base = (size_t)snprintf(whole, sizeof whole, "%s", http->base);
    snprintf(whole + base, sizeof whole - base, "%s", url);
    bool ok =
        s3_presign(&key, method, when, whole, sizeof whole) &&
        (size_t)snprintf(url, HTTP_URL, "%s", whole + base) == strlen(whole + base) &&
        strlen(whole + base) < HTTP_URL;
    explicit_bzero(values, sizeof values);
    return ok || api_problem_no_memory(problem);
}

/* --- requests ------------------------------------------------------------- */

bool
s3_url(const struct http *http, const char *key, char url[HTTP_URL],
       struct api_problem *problem)
{
    const char *prefix = split_url(http->remote, NULL, 0);
    size_t len = strlen(prefix);
    bool has_slash = !len || prefix[len - 1] == '/';
    url[0] = '\0';
    return url_add(url, "/", "/", problem) && url_add(url, prefix, "/", problem) &&
           url_add(url, has_slash ? "" : "/", "/", problem) &&
           url_add(url, key, "/", problem);
}

/* Decodes the five entities and character references below 128 in place. */
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
    char *to = text;
    for (const char *at = text; *at;) {
        size_t row = 0;
        char *end;
        while (row < 5 && strncmp(at, rows[row].name, strlen(rows[row].name)) != 0)
            row++;
        if (row < 5) {
            *to++ = rows[row].character;
            at += strlen(rows[row].name);
            continue;
        }
        bool is_hex = strncmp(at, "&#x", 3) == 0;
        long n = strncmp(at, "&#", 2) == 0
                     ? strtol(at + 2 + is_hex, &end, is_hex ? 16 : 10)
                     : 0;
        if (n > 0 && n < 128 && *end == ';') {
            *to++ = (char)n;
            at = end + 1;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
}

bool
s3_element(const char **at, const char *name, char *ret, size_t size)
{
    char open[64], close[64];
    snprintf(open, sizeof open, "<%s>", name);
    snprintf(close, sizeof close, "</%s>", name);
    const char *begin = strstr(*at, open);
    const char *end = begin ? strstr(begin, close) : NULL;
    if (!end)
        return false;
    begin += strlen(open);
    if ((size_t)(end - begin) >= size)
        return false;
    memcpy(ret, begin, (size_t)(end - begin));
    ret[end - begin] = '\0';
    *at = end + strlen(close);
    return true;
}

/* Parses "2026-01-31T12:00:00.000Z". Returns 0 for anything else. */
static int64_t
parse_time(const char *text)
{
    struct tm tm = {0};
    return strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) ? (int64_t)timegm(&tm) : 0;
}

bool
s3_visit_page(const char *page, size_t skip, s3_visit_fn visit, void *arg,
              struct api_problem *problem)
{
    char contents[4 * KEY], key[3 * KEY], etag[256], size[32], time[64];
    for (const char *at = page;
         s3_element(&at, "Contents", contents, sizeof contents);) {
        const char *in_key = contents, *in_etag = contents, *in_size = contents;
        const char *in_time = contents;
        if (!s3_element(&in_key, "Key", key, sizeof key) ||
            !s3_element(&in_size, "Size", size, sizeof size))
            continue;
        if (!s3_element(&in_etag, "ETag", etag, sizeof etag))
            etag[0] = '\0';
        if (!s3_element(&in_time, "LastModified", time, sizeof time))
            time[0] = '\0';
        decode_entities(key);
        decode_entities(etag);
        if (strlen(key) < skip)
            continue;
        struct s3_object object = {key + skip, etag, strtoll(size, NULL, 10),
                                   parse_time(time)};
        if (!visit(arg, &object, problem))
            return false;
    }
    return true;
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

/* Reads the token of the page that follows; "" when there is none. */
static void
next_token(const char *page, char token[S3_TOKEN])
{
    char truncated[16];
    const char *at = page;
    token[0] = '\0';
    if (!s3_element(&at, "IsTruncated", truncated, sizeof truncated) ||
        strcmp(truncated, "true") != 0)
        return;
    at = page;
    if (s3_element(&at, "NextContinuationToken", token, S3_TOKEN))
        decode_entities(token);
    else
        token[0] = '\0';
}

bool
s3_list_page(struct http *http, const char *prefix, char token[S3_TOKEN],
             s3_visit_fn visit, void *arg, struct api_problem *problem)
{
    char whole[2 * KEY];
    const char *base = split_url(http->remote, NULL, 0);
    size_t len = strlen(base);
    const char *slash = len && base[len - 1] != '/' ? "/" : "";
    struct http_request request = {.headers = {S3_NO_BODY}};
    struct http_answer answer;
    if (snprintf(whole, sizeof whole, "%s%s%s", base, slash, prefix) > KEY)
        return api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "the key is too long");
    if (!page_url(whole, token, request.url, problem) ||
        !http_send(http, &request, &answer, problem))
        return false;
    const char *body = answer.body ? answer.body : "";
    bool ok = (answer.status == 200 ||
               http_fail(http, &answer, "the list of the bucket", problem)) &&
              s3_visit_page(body, len + strlen(slash), visit, arg, problem);
    next_token(body, token);
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

bool
s3_find(struct http *http, const char *key, bool *ret_there,
        struct api_problem *problem)
{
    struct http_request request = {.method = "HEAD", .headers = {S3_NO_BODY}};
    struct http_answer answer;
    if (!s3_url(http, key, request.url, problem) ||
        !http_send(http, &request, &answer, problem))
        return false;
    *ret_there = answer.status == 200;
    bool ok =
        *ret_there || answer.status == 404 || http_fail(http, &answer, key, problem);
    http_answer_fini(&answer);
    return ok;
}

bool
s3_is_data_ending(const char *ending)
{
    return strcmp(ending, ".data") == 0 || strncmp(ending, "_data", 5) == 0;
}
