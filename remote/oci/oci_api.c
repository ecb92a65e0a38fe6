/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "oci/oci_api.h"
#include "base/kind.h"

#include <string.h>

#define TOKEN (32 << 10)

/* --- refs ----------------------------------------------------------------- */

bool
oci_is_tag(const char *tag)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_.-";
    size_t len = strlen(tag);
    return len > 0 && len <= 128 && strspn(tag, letters) == len && *tag != '.' &&
           *tag != '-';
}

/* Returns whether each part of the path begins and ends with a letter or a digit. */
static bool
is_repo(const char *repo)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789._-/";
    static const char marks[] = "._-/";
    size_t len = strlen(repo);
    if (!len || len > 255 || strspn(repo, letters) != len || strchr(marks, *repo) ||
        strchr(marks, repo[len - 1]))
        return false;
    for (const char *slash = repo; (slash = strchr(slash, '/')); slash++)
        if (strchr(marks, slash[1]) || strchr(marks, slash[-1]))
            return false;
    return true;
}

bool
parse_oci_ref(const char *ref, bool to_publish, struct oci_ref *ret,
              struct api_problem *problem)
{
    size_t len = strcspn(ref, ":@");
    *ret = (struct oci_ref){.repo = ""};
    bool ok = strlen(ref) < QDQR_REF;
    if (ok) {
        memcpy(ret->repo, ref, len);
        snprintf(ret->version, sizeof ret->version, "%s", ref + len + (ref[len] != 0));
        ok = is_repo(ret->repo) &&
             ((ref[len] == ':' && oci_is_tag(ret->version)) ||
              (ref[len] == '@' && !to_publish && digest_is_id(ret->version)) ||
              (!ref[len] && to_publish));
    }
    return ok || api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                                 "\"%.200s\" is no ref of a registry: %s", ref,
                                 to_publish ? "REPO:TAG, or REPO with an alias"
                                            : "REPO:TAG or REPO@sha256:DIGEST");
}

/* --- URLs ----------------------------------------------------------------- */

/* Returns the path behind the host of a URL, from its '/' on; "" where there is none. */
static const char *
path_of(const char *url)
{
    const char *host = strstr(url, "://");
    const char *path = strpbrk(host ? host + 3 : url, "/?");
    return path ? path : "";
}

bool
oci_url(const struct http *http, const char *repo, const char *rest, char url[HTTP_URL],
        struct api_problem *problem)
{
    const char *path = path_of(http->remote->url);
    size_t len = strlen(path);
    url[0] = '\0';
    bool ok = url_add(url, "/v2", "/", problem) && url_add(url, path, "/", problem);
    while (ok && len-- > 0 && url[strlen(url) - 1] == '/')
        url[strlen(url) - 1] = '\0';
    return ok && url_add(url, "/", "/", problem) && url_add(url, repo, "/", problem) &&
           url_add(url, rest, "/:", problem);
}

bool
oci_own_url(const struct http *http, const char *whole, char url[HTTP_URL],
            struct api_problem *problem)
{
    bool is_relative = whole[0] == '/' && whole[1] != '/';
    const char *path = is_relative ? whole : path_of(whole);
    if (!*path || strlen(path) >= HTTP_URL - 256 ||
        (!is_relative && !http_is_own(http, whole)))
        return api_problem_set(problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
                               "remote %s sends its clients to another host",
                               http->remote->name);
    snprintf(url, HTTP_URL, "%s", path);
    return true;
}

/* --- authentication ------------------------------------------------------- */

bool
oci_authenticate(struct http *http, struct api_problem *problem)
{
    const char *text = http->remote->credentials ? http->remote->credentials : "";
    http->base[strlen(http->base) - strlen(path_of(http->base))] = '\0';
    /* Checks their form. Only oci_login() knows whether they go to the registry itself. */
    bool ok = http_authenticate(http, problem);
    text += strspn(text, " \t\r\n");
    if (ok && strncmp(text, "bearer ", 7) != 0)
        curl_easy_setopt(http->curl, CURLOPT_USERPWD, NULL);
    return ok;
}

void
oci_parameter(const char *challenge, const char *name, char *ret, size_t size)
{
    size_t len = strlen(name);
    ret[0] = '\0';
    for (const char *at = challenge; (at = strstr(at, name)); at += len) {
        if (at[len] != '=' || at[len + 1] != '"' ||
            (at > challenge && !strchr(" ,\t", at[-1])))
            continue;
        at += len + 2;
        snprintf(ret, size, "%.*s", (int)strcspn(at, "\""), at);
        return;
    }
}

/* Adds the parameters of the request for a token to the URL. */
static bool
add_scope(const struct http *http, const char *challenge, const char *repo,
          bool to_push, char url[HTTP_URL], struct api_problem *problem)
{
    char service[512], scope[2 * QDQR_REF];
    const char *path = path_of(http->remote->url);
    const char *mark = strchr(url, '?') ? "&" : "?";
    path += strspn(path, "/");
    size_t len = strlen(path);
    while (len && path[len - 1] == '/')
        len--;
    oci_parameter(challenge, "service", service, sizeof service);
    snprintf(scope, sizeof scope, "repository:%.*s%s%s:pull%s", (int)len, path,
             len ? "/" : "", repo, to_push ? ",push" : "");
    return url_add(url, mark, mark, problem) &&
           url_add(url, "service=", "=", problem) &&
           url_add(url, service, "", problem) &&
           url_add(url, "&scope=", "&=", problem) && url_add(url, scope, "", problem);
}

/* Uses the token of an answer from now on. */
static bool
use_token(struct http *http, const struct http_answer *answer,
          struct api_problem *problem)
{
    json_t *json = json_loadb(answer->body ? answer->body : "", answer->len, 0, NULL);
    const char *token = json_string_value(json_object_get(json, "token"));
    if (!token)
        token = json_string_value(json_object_get(json, "access_token"));
    bool ok = token && *token && strlen(token) < TOKEN;
    CURLcode code = CURLE_OK;
    curl_easy_setopt(http->curl, CURLOPT_USERPWD, NULL);
    if (ok) {
        curl_easy_setopt(http->curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        code = curl_easy_setopt(http->curl, CURLOPT_XOAUTH2_BEARER, token);
    }
    json_decref(json);
    if (!ok)
        return api_problem_set(problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                               "remote %s answered without a token",
                               http->remote->name);
    return code == CURLE_OK || api_problem_no_memory(problem);
}

/* Answers a challenge: with the credentials, or with a token that they buy. */
static bool
answer_challenge(struct http *http, const char *challenge, const char *repo,
                 bool to_push, struct api_problem *problem)
{
    struct http_request request = {.method = NULL};
    struct http_answer answer;
    char realm[2048];
    if (strncasecmp(challenge, "bearer ", 7) != 0)
        return http_authenticate(http, problem);
    oci_parameter(challenge, "realm", realm, sizeof realm);
    if (!oci_own_url(http, realm, request.url, problem) ||
        !add_scope(http, challenge, repo, to_push, request.url, problem) ||
        !http_authenticate(http, problem) ||
        !http_send(http, &request, &answer, problem))
        return false;
    bool ok = (answer.status == 200 || http_fail(http, &answer, "a token", problem)) &&
              use_token(http, &answer, problem);
    http_answer_fini(&answer);
    return ok;
}

bool
oci_login(struct http *http, const char *repo, bool to_push,
          struct api_problem *problem)
{
    struct http_request request = {.url = "/v2/", .accepts_401 = true};
    struct http_answer answer;
    char challenge[4096];
    if (!http_send(http, &request, &answer, problem))
        return false;
    long status = answer.status;
    http_header(http, "WWW-Authenticate", challenge, sizeof challenge);
    if (status != 401 && status != 200)
        http_fail(http, &answer, "the interface of a registry", problem);
    http_answer_fini(&answer);
    return status == 200 ||
           (status == 401 && answer_challenge(http, challenge, repo, to_push, problem));
}
