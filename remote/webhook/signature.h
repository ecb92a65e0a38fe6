/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of webhooks by the specification Standard Webhooks. */
#ifndef REMOTE_WEBHOOK_SIGNATURE_H
#define REMOTE_WEBHOOK_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>

#define SIGNATURE_SIZE 64

struct signed_event {
    const char *id, *timestamp; /* seconds since 1970, in decimal */
    const char *body;
    size_t body_len;
};

/* Writes "v1," and the base64 of the signature. White space around the secret, the text
   of a file, is dropped. Returns false when the secret is not "whsec_" with the base64 of
   24 to 64 bytes, or when memory is out. */
bool sign_standard(const char *secret, const struct signed_event *event,
                   char ret[SIGNATURE_SIZE]);

#endif
