/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of Standard Webhooks, with the example of the specification's libraries. */
#include "config.h"
#include "webhook/signature.h"
#include "unit.h"

#include <string.h>

static const struct {
    const char *secret, *signature; /* NULL: it is no secret */
} rows[] = {
    {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
     "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
    {" whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",
     "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
    {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", NULL},
    {"whsec_", NULL},
    {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", NULL},
    {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa!!", NULL},
    {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLQ==", NULL}, /* 22 bytes */
    {"", NULL},
};

UNIT_ROWS(signatures, rows)
{
    static const char body[] = "{\"test\": 2432232314}";
    const struct signed_event event = {"msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330",
                                       body, sizeof body - 1};
    char signature[SIGNATURE_SIZE] = "";
    bool ok = sign_standard(rows[_i].secret, &event, signature);
    ck_assert(ok == (rows[_i].signature != NULL));
    if (ok)
        ck_assert_str_eq(signature, rows[_i].signature);
}

UNIT_SUITE("signature")
