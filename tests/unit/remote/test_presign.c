/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures in URLs of S3, with the example of Amazon's documentation. */
#include "config.h"
#include "s3/s3_presign.h"
#include "unit.h"

#include <string.h>

#define ID "AKIAIOSFODNN7EXAMPLE"
#define SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define URL "https://examplebucket.s3.amazonaws.com/test.txt"
#define SINCE 1369353600 /* 2013-05-24 */

static const struct s3_key key = {ID, SECRET, "", "us-east-1"};

static void
check(const struct s3_key *with, const char *method, const char *of, const char *wanted)
{
    char url[2048];
    snprintf(url, sizeof url, "%s", of);
    ck_assert(
        s3_presign(with, method, (struct s3_while){SINCE, 86400}, url, sizeof url));
    const char *signature = strstr(url, "&X-Amz-Signature=");
    ck_assert(signature && strncmp(url, of, strlen(of)) == 0);
    ck_assert_str_eq(signature + strlen("&X-Amz-Signature="), wanted);
}

UNIT_TEST(the_example)
{
    check(&key, "GET", URL,
          "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

UNIT_TEST(the_port_of_the_scheme)
{
    check(&key, "GET", "https://examplebucket.s3.amazonaws.com:443/test.txt",
          "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

/* All that the signature is about changes it. */
UNIT_TEST(what_is_signed)
{
    static const struct s3_key other = {ID, SECRET, "token", "us-east-1"};
    char urls[4][2048];
    const struct {
        const struct s3_key *key;
        const char *method;
        struct s3_while when;
    } rows[] = {{&key, "GET", {SINCE, 86400}},
                {&key, "DELETE", {SINCE, 86400}},
                {&key, "GET", {SINCE, 86401}},
                {&other, "GET", {SINCE, 86400}}};
    for (size_t i = 0; i < 4; i++) {
        snprintf(urls[i], sizeof urls[i], "%s", URL);
        ck_assert(s3_presign(rows[i].key, rows[i].method, rows[i].when, urls[i],
                             sizeof urls[i]));
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(strstr(urls[i], "Signature="),
                             strstr(urls[j], "Signature="));
    }
    ck_assert(strstr(urls[3], "&X-Amz-Security-Token=token&X-Amz-SignedHeaders=host&"));
}

UNIT_TEST(no_room)
{
    char url[128] = URL;
    ck_assert(
        !s3_presign(&key, "GET", (struct s3_while){SINCE, 86400}, url, sizeof url));
}

UNIT_SUITE("presign")
