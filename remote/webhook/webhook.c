/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Webhooks by the specification Standard Webhooks: the signature is an HMAC-SHA256 over
 * "ID.TIMESTAMP.BODY" with the bytes behind "whsec_", which are base64. With two secrets
 * there are two signatures, and the receiver needs one of them.
 */
#include "config.h"
#include "base/kind.h"
#include "webhook/signature.h"

#include <string.h>

static bool
check_secret(const struct qdqr_remote *remote, const char *secret, const char *key,
             struct api_problem *problem)
{
    char signature[SIGNATURE_SIZE];
    struct signed_event none = {"", "", "", 0};
    return sign_standard(secret, &none, signature) ||
           api_problem_set(
               problem, API_REMOTE_DENIED, QDQ_AT_NOTHING, NULL,
               "the %s of remote %s is not whsec_ and the base64 of 24 to 64 "
               "bytes",
               key, remote->name);
}

static bool
check(const struct qdqr_remote *remote, struct api_problem *problem)
{
    const char *old = remote->secret_old ? remote->secret_old : "";
    return check_secret(remote, remote->secret ? remote->secret : "", "secret",
                        problem) &&
           (!*old || check_secret(remote, old, "secret_old", problem));
}

static bool
deliver(struct http *http, const struct qdqr_event *event, struct api_problem *problem)
{
    char id[256], timestamp[64], signature[2 * SIGNATURE_SIZE + 32], number[24];
    char signatures[2][SIGNATURE_SIZE] = {"", ""};
    const char *old = http->remote->secret_old ? http->remote->secret_old : "";
    snprintf(number, sizeof number, "%lld", (long long)event->timestamp);
    struct signed_event message = {event->id, number, event->body, event->body_len};
    if (!sign_standard(http->remote->secret, &message, signatures[0]) ||
        (*old && !sign_standard(old, &message, signatures[1])))
        return api_problem_no_memory(problem);
    if (snprintf(id, sizeof id, "webhook-id: %s", event->id) >= (int)sizeof id)
        return api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "the id of an event is too long");
    snprintf(timestamp, sizeof timestamp, "webhook-timestamp: %s", number);
    snprintf(signature, sizeof signature, "webhook-signature: %s%s%s", signatures[0],
             *old ? " " : "", signatures[1]);
    struct http_request request = {
        .method = "POST",
        .headers = {"Content-Type: application/json", id, timestamp, signature},
        .body = event->body,
        .body_len = event->body_len,
        .max_body = 64 << 10,
    };
    struct http_answer answer;
    bool ok = http_send(http, &request, &answer, problem) &&
              ((answer.status >= 200 && answer.status <= 299) ||
               http_fail(http, &answer, "an event", problem));
    http_answer_fini(&answer);
    return ok;
}

const struct remote_kind_row remote_webhook = {
    .name = "webhook",
    .authenticate = http_authenticate,
    .check = check,
    .deliver = deliver,
};
