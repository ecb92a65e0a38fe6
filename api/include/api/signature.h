/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of messages that come in, by Standard Webhooks or in MLflow's form. */
#ifndef API_SIGNATURE_H
#define API_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API_SIGNATURE_TOLERANCE 300 /* seconds that the two clocks may differ by */
#define API_SIGNATURE_ID 128        /* most bytes of a message's id */

/*
 * The forms. Both sign "ID.TIMESTAMP.BODY" by HMAC-SHA256, and state "v1," and the base64 of
 * it. They differ in the key: STANDARD has the bytes whose base64 stands behind "whsec_",
 * MLFLOW the text of the secret itself.
 */
enum api_signature_form { API_SIGNATURE_STANDARD, API_SIGNATURE_MLFLOW };

struct api_signature_headers {
    const char *id, *timestamp, *signature; /* names of the headers */
};

extern const struct api_signature_headers api_signature_headers[];

/* A message with the values of its headers; NULL: the header is absent. */
struct api_signed_message {
    const char *id;
    const char *timestamp; /* seconds since 1970, in decimal */
    const char
        *signature; /* STANDARD: several with spaces between, of which one must fit */
    const char *body;
    size_t body_len;
};

/* Returns whether the message was signed with the secret, the text of a file, within the
   tolerance of `now` (seconds since 1970). Takes as long for any signature of a length. */
bool api_signature_is_valid(enum api_signature_form form, const char *secret,
                            const struct api_signed_message *message, int64_t now);

#endif
