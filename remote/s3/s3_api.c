/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "s3/s3_api.h"

#include <string.h>

#define CREDENTIAL 2048

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

const char *
s3_split_url(const struct qdqr_remote *remote, char *base, size_t size)
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
    s3_split_url(http->remote, http->base, sizeof http->base);
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
    const char *prefix = s3_split_url(http->remote, NULL, 0);
    size_t len = strlen(prefix);
    bool has_slash = !len || prefix[len - 1] == '/';
    url[0] = '\0';
    return url_add(url, "/", "/", problem) && url_add(url, prefix, "/", problem) &&
           url_add(url, has_slash ? "" : "/", "/", problem) &&
           url_add(url, key, "/", problem);
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
