/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "oci/oci_referrers.h"

#include <stdlib.h>
#include <string.h>

const char *
oci_referrer_type(enum qdqr_role role)
{
    static const char *const types[QDQR_N_ROLES] = {
        [QDQR_REPORT] = "application/vnd.qdqd.report.v1+json",
        [QDQR_SIGNATURE] = "application/vnd.dev.sigstore.bundle.v0.3+json",
        [QDQR_PROVENANCE] = "application/vnd.in-toto+json",
        [QDQR_BOM] = "application/vnd.cyclonedx+json"};
    return types[role];
}

/* Gets an index. An index that is not there has no entries; *ret_status is the answer's. */
static json_t *
get_index(struct http *http, const struct http_request *request, long *ret_status,
          struct api_problem *problem)
{
    struct http_answer answer;
    json_t *json = NULL;
    if (!http_send(http, request, &answer, problem))
        return NULL;
    *ret_status = answer.status;
    if (answer.status == 200)
        json = json_loadb(answer.body ? answer.body : "", answer.len, 0, NULL);
    else
        json = json_pack("{s:i, s:s, s:[]}", "schemaVersion", 2, "mediaType", OCI_INDEX,
                         "manifests");
    http_answer_fini(&answer);
    if (json_is_array(json_object_get(json, "manifests")))
        return json;
    json_decref(json);
    api_problem_set(problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                    "remote %s answered with a list of referrers that is no index",
                    http->remote->name);
    return NULL;
}

/* Writes the URL of the index that clients keep. */
static bool
make_tag_url(struct http *http, const char *repo, const char *subject,
             char url[HTTP_URL], struct api_problem *problem)
{
    char rest[DIGEST_SIZE + 16];
    snprintf(rest, sizeof rest, "/manifests/%s", subject);
    *strchr(rest, ':') = '-';
    return oci_url(http, repo, rest, url, problem);
}

/* Gets the index that clients keep. */
static json_t *
get_tagged(struct http *http, const char *repo, const char *subject,
           struct api_problem *problem)
{
    struct http_request request = {.headers = {"Accept: " OCI_INDEX}};
    long status = 0;
    if (!make_tag_url(http, repo, subject, request.url, problem))
        return NULL;
    json_t *json = get_index(http, &request, &status, problem);
    if (json && status != 200 && status != 404) {
        api_problem_set(problem, API_REMOTE_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                        "remote %s answers a question for referrers with status %ld",
                        http->remote->name, status);
        json_decref(json);
        json = NULL;
    }
    return json;
}

json_t *
oci_referrers(struct http *http, const char *repo, const char *subject,
              struct api_problem *problem)
{
    struct http_request request = {.headers = {"Accept: " OCI_INDEX}};
    char rest[DIGEST_SIZE + 16];
    long status = 0;
    snprintf(rest, sizeof rest, "/referrers/%s", subject);
    if (!oci_url(http, repo, rest, request.url, problem))
        return NULL;
    json_t *json = get_index(http, &request, &status, problem);
    if (!json || status == 200)
        return json;
    json_decref(json);
    return get_tagged(http, repo, subject, problem);
}

static bool
has_entry(const json_t *index, const char *digest)
{
    const json_t *entry;
    size_t i;
    json_array_foreach (json_object_get(index, "manifests"), i, entry) {
        const char *text = json_string_value(json_object_get(entry, "digest"));
        if (text && strcmp(text, digest) == 0)
            return true;
    }
    return false;
}

/* Sends the index that clients keep. */
static bool
put_index(struct http *http, const char *repo, const char *subject, const json_t *index,
          struct api_problem *problem)
{
    struct http_request request = {.method = "PUT",
                                   .headers = {"Content-Type: " OCI_INDEX}};
    struct http_answer answer;
    char *text = json_dumps(index, JSON_COMPACT);
    if (!text)
        return api_problem_no_memory(problem);
    request.body = text;
    request.body_len = strlen(text);
    bool ok = make_tag_url(http, repo, subject, request.url, problem) &&
              http_send(http, &request, &answer, problem);
    free(text);
    if (!ok)
        return false;
    ok = answer.status == 201 ||
         http_fail(http, &answer, "the list of referrers", problem);
    http_answer_fini(&answer);
    return ok;
}

bool
oci_add_referrer(struct http *http, const char *repo, const char *subject,
                 const json_t *entry, struct api_problem *problem)
{
    json_t *index = get_tagged(http, repo, subject, problem);
    if (!index)
        return false;
    bool ok = has_entry(index, json_string_value(json_object_get(entry, "digest")));
    if (!ok)
        ok = (json_array_append(json_object_get(index, "manifests"),
                                (json_t *)(uintptr_t)entry) == 0 ||
              api_problem_no_memory(problem)) &&
             put_index(http, repo, subject, index, problem);
    json_decref(index);
    return ok;
}
