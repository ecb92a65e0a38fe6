/* SPDX-License-Identifier: Apache-2.0 */
/* The signatures were made by Python's hmac; the first one is the example of the
   specification Standard Webhooks. */
#include "config.h"
#include "api/signature.h"
#include "api.h"

#define STANDARD API_SIGNATURE_STANDARD
#define MLFLOW API_SIGNATURE_MLFLOW
#define NOW INT64_C(1614265330)
#define KEY "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define ID "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define TIME "1614265330"
#define BODY "{\"test\": 2432232314}"
#define GOOD "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
#define OTHER "v1,/485aUtxlie+TIScVpHggMfqOB4so2KWb7+Gf727B44="
#define MLFLOW_BODY "{\"a\": 1}"
#define MLFLOW_GOOD "v1,/dcW+qv1YpikQvYPFwEJykqQZI7O0/uMtciDtmyHxhg="

static const struct {
    enum api_signature_form form;
    const char *secret, *id, *timestamp, *signature, *body;
    int64_t now;
    bool valid;
} rows[] = {
    {STANDARD, KEY, ID, TIME, GOOD, BODY, NOW, true},
    {STANDARD, KEY "\n", ID, TIME, GOOD, BODY, NOW, true},
    {STANDARD, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", ID, TIME, GOOD, BODY, NOW, true},
    {STANDARD, KEY, ID, TIME, OTHER " " GOOD, BODY, NOW, true},
    {STANDARD, KEY, ID, TIME, GOOD " " OTHER, BODY, NOW, true},
    {STANDARD, KEY, ID, TIME, GOOD, BODY, NOW + 300, true},
    {STANDARD, KEY, ID, TIME, GOOD, BODY, NOW - 300, true},
    {MLFLOW, "my secret", "d-1", TIME, MLFLOW_GOOD, MLFLOW_BODY, NOW, true},
    {MLFLOW, " my secret\n", "d-1", TIME, MLFLOW_GOOD, MLFLOW_BODY, NOW, true},
    /* late, early, replayed with another time, id or body */
    {STANDARD, KEY, ID, TIME, GOOD, BODY, NOW + 301, false},
    {STANDARD, KEY, ID, TIME, GOOD, BODY, NOW - 301, false},
    {STANDARD, KEY, ID, "1614265331", GOOD, BODY, NOW, false},
    {STANDARD, KEY, "msg_1", TIME, GOOD, BODY, NOW, false},
    {STANDARD, KEY, ID, TIME, GOOD, "{\"test\": 2432232315}", NOW, false},
    {STANDARD, KEY, ID, TIME, GOOD, "", NOW, false},
    /* a dot moves between id and time */
    {STANDARD, KEY, ID "." TIME, TIME, GOOD, BODY, NOW, false},
    /* of another key, or form */
    {STANDARD, KEY, ID, TIME, OTHER, BODY, NOW, false},
    {STANDARD, "my secret", "d-1", TIME, MLFLOW_GOOD, MLFLOW_BODY, NOW, false},
    {MLFLOW, KEY, ID, TIME, GOOD, BODY, NOW, false},
    {MLFLOW, "", "d-1", TIME, MLFLOW_GOOD, MLFLOW_BODY, NOW, false},
    /* not whole */
    {STANDARD, KEY, NULL, TIME, GOOD, BODY, NOW, false},
    {STANDARD, KEY, ID, NULL, GOOD, BODY, NOW, false},
    {STANDARD, KEY, ID, TIME, NULL, BODY, NOW, false},
    {STANDARD, KEY, "", TIME, GOOD, BODY, NOW, false},
    {STANDARD, KEY, ID, "", GOOD, BODY, NOW, false},
    {STANDARD, KEY, ID, "1614265330x", GOOD, BODY, NOW, false},
    {STANDARD, KEY, ID, "-1", GOOD, BODY, 0, false},
    {STANDARD, KEY, ID, "9999999999999999999", GOOD, BODY, NOW, false},
    {STANDARD, KEY, ID, TIME, "", BODY, NOW, false},
    {STANDARD, KEY, ID, TIME, "v1,", BODY, NOW, false},
    {STANDARD, KEY, ID, TIME, "v1,g0hM9SsE", BODY, NOW, false},
    {STANDARD, KEY, ID, TIME, GOOD "=", BODY, NOW, false},
    {STANDARD, KEY, ID, TIME,
     "v2"
     ","
     "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
     BODY, NOW, false},
    {STANDARD, "whsec_", ID, TIME, GOOD, BODY, NOW, false},
    {STANDARD, "whsec_?", ID, TIME, GOOD, BODY, NOW, false},
};

UNIT_ROWS(judges, rows)
{
    const struct api_signed_message message = {rows[_i].id, rows[_i].timestamp,
                                               rows[_i].signature, rows[_i].body,
                                               strlen(rows[_i].body)};
    bool valid =
        api_signature_is_valid(rows[_i].form, rows[_i].secret, &message, rows[_i].now);
    ck_assert_msg(valid == rows[_i].valid, "row %d", _i);
}

UNIT_SUITE("api/signature")
