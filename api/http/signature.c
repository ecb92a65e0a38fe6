/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/signature.h"
#include "api/digest.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "whsec_"
#define MOST_SECRET 512
#define MOST_DIGITS 18
#define SIGNATURE (3 + 44) /* "v1," and the base64 of a digest */

const struct api_signature_headers api_signature_headers[] = {
    [API_SIGNATURE_STANDARD] = {"webhook-id", "webhook-timestamp", "webhook-signature"},
    [API_SIGNATURE_MLFLOW] = {"X-MLflow-Delivery-Id", "X-MLflow-Timestamp",
                              "X-MLflow-Signature"},
};

struct key {
    unsigned char bytes[MOST_SECRET];
    size_t len;
};

/* Makes the key of a secret, without the white space around it. */
static bool
make_key(enum api_signature_form form, const char *secret, struct key *ret)
{
    size_t len;
    while (isspace((unsigned char)*secret))
        secret++;
    for (len = strlen(secret); len && isspace((unsigned char)secret[len - 1]); len--)
        continue;
    if (form == API_SIGNATURE_STANDARD) {
        size_t skipped =
            strncmp(secret, PREFIX, sizeof PREFIX - 1) == 0 ? sizeof PREFIX - 1 : 0;
        return len - skipped <= MOST_SECRET &&
               digest_unbase64(secret + skipped, len - skipped, ret->bytes, &ret->len);
    }
    if (!len || len > MOST_SECRET)
        return false;
    memcpy(ret->bytes, secret, len);
    ret->len = len;
    return true;
}

static bool
is_in_time(const char *timestamp, int64_t now)
{
    size_t len = strlen(timestamp);
    if (!len || len > MOST_DIGITS || strspn(timestamp, "0123456789") != len)
        return false;
    int64_t late = now - strtoll(timestamp, NULL, 10);
    return late <= API_SIGNATURE_TOLERANCE && late >= -API_SIGNATURE_TOLERANCE;
}

/* Writes the signature that the message must have. */
static bool
sign(const struct key *key, const struct api_signed_message *message,
     char ret[SIGNATURE + 1])
{
    unsigned char digest[DIGEST_BYTES];
    const struct digest_part parts[] = {
        {message->id, strlen(message->id)},
        {".", 1},
        {message->timestamp, strlen(message->timestamp)},
        {".", 1},
        {message->body, message->body_len},
    };
    if (!digest_hmac(key->bytes, key->len, parts, sizeof parts / sizeof *parts, digest))
        return false;
    memcpy(ret, "v1,", 3);
    digest_base64(digest, sizeof digest, ret + 3);
    return true;
}

/* Returns whether one of the words of a list is the signature. */
static bool
lists(const char *list, const char *signature)
{
    bool found = false;
    for (size_t len; *list; list += len + (list[len] == ' ')) {
        len = strcspn(list, " ");
        if (len == SIGNATURE && digest_is_equal(list, signature, SIGNATURE))
            found = true;
    }
    return found;
}

bool
api_signature_is_valid(enum api_signature_form form, const char *secret,
                       const struct api_signed_message *message, int64_t now)
{
    struct key key;
    char signature[SIGNATURE + 1];
    if (!message->id || !message->timestamp || !message->signature || !*message->id ||
        strlen(message->id) > API_SIGNATURE_ID || strchr(message->id, '.') ||
        !is_in_time(message->timestamp, now))
        return false;
    bool ok = make_key(form, secret, &key) && sign(&key, message, signature) &&
              lists(message->signature, signature);
    digest_cleanse(&key, sizeof key);
    return ok;
}
