/* SPDX-License-Identifier: Apache-2.0 */
/* The refs of each kind, and remotes that cannot be used. */
#include "config.h"
#include "remote/remote.h"
#include "unit.h"

#include <string.h>

#define SHA "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
    const char *kind, *ref;
    bool to_publish;
    enum api_code code; /* API_N_CODES: the ref is good */
} rows[] = {
    {"mlflow", "models:/glyph/1", false, API_N_CODES},
    {"mlflow", "models:/glyph@champion", false, API_N_CODES},
    {"mlflow", "models:/a b é/12", false, API_N_CODES},
    {"mlflow", "models:/glyph-int8", true, API_N_CODES},
    {"mlflow", "models:/glyph-int8@challenger", true, API_N_CODES},
    {"mlflow", "", false, API_BAD_REQUEST},
    {"mlflow", "glyph/1", false, API_BAD_REQUEST},
    {"mlflow", "models:/", false, API_BAD_REQUEST},
    {"mlflow", "models:/glyph", false, API_BAD_REQUEST},
    {"mlflow", "models:/glyph/", false, API_BAD_REQUEST},
    {"mlflow", "models:/glyph/0", false, API_BAD_REQUEST},
    {"mlflow", "models:/glyph/latest", false, API_BAD_REQUEST},
    {"mlflow", "models:/glyph/1/2", false, API_BAD_REQUEST},
    {"mlflow", "models:/glyph/-1", false, API_BAD_REQUEST},
    {"mlflow", "models:/glyph/99999999999999999999", false, API_BAD_REQUEST},
    {"mlflow", "models:/glyph@", false, API_BAD_REQUEST},
    {"mlflow", "models:/glyph@a@b", false, API_BAD_REQUEST},
    {"mlflow", "models:/glyph@a/b", false, API_BAD_REQUEST},
    {"mlflow", "models:/../1", false, API_BAD_REQUEST},
    {"mlflow", "models:/./1", false, API_BAD_REQUEST},
    {"mlflow", "models:/a%2fb/1", false, API_BAD_REQUEST},
    {"mlflow", "models:/a\\b/1", false, API_BAD_REQUEST},
    {"mlflow", "models://host/glyph/1", false, API_BAD_REQUEST},
    {"mlflow", "models:/glyph\n/1", false, API_BAD_REQUEST},
    {"mlflow", "http://127.0.0.1/x", false, API_BAD_REQUEST},
    {"mlflow", "models:/glyph/1", true, API_BAD_REQUEST},
    {"oci", "glyph:1.0", false, API_N_CODES},
    {"oci", "team/glyph-int8:latest", false, API_N_CODES},
    {"oci", "glyph@" SHA, false, API_N_CODES},
    {"oci", "glyph:1.0", true, API_N_CODES},
    {"oci", "glyph", true, API_N_CODES},
    {"oci", "glyph", false, API_BAD_REQUEST},
    {"oci", "glyph:", false, API_BAD_REQUEST},
    {"oci", "glyph:", true, API_BAD_REQUEST},
    {"oci", "glyph@" SHA, true, API_BAD_REQUEST},
    {"oci", "glyph@sha256:12", false, API_BAD_REQUEST},
    {"oci", "glyph@latest", false, API_BAD_REQUEST},
    {"oci", "glyph:a/b", false, API_BAD_REQUEST},
    {"oci", "glyph:-a", false, API_BAD_REQUEST},
    {"oci", "glyph:a:b", false, API_BAD_REQUEST},
    {"oci", "Glyph:1", false, API_BAD_REQUEST},
    {"oci", "../glyph:1", false, API_BAD_REQUEST},
    {"oci", "a/../glyph:1", false, API_BAD_REQUEST},
    {"oci", "a//glyph:1", false, API_BAD_REQUEST},
    {"oci", "/glyph:1", false, API_BAD_REQUEST},
    {"oci", "glyph/:1", false, API_BAD_REQUEST},
    {"oci", "gl%79ph:1", false, API_BAD_REQUEST},
    {"oci", ":1", false, API_BAD_REQUEST},
    {"s3", "glyph.onnx", false, API_N_CODES},
    {"s3", "models/glyph/1/", false, API_N_CODES},
    {"s3", "a&b <c> é/m.onnx", true, API_N_CODES},
    {"s3", "models/", true, API_N_CODES},
    {"s3", "", false, API_BAD_REQUEST},
    {"s3", "/", false, API_BAD_REQUEST},
    {"s3", "/glyph.onnx", false, API_BAD_REQUEST},
    {"s3", "../glyph.onnx", false, API_BAD_REQUEST},
    {"s3", "a/../glyph.onnx", false, API_BAD_REQUEST},
    {"s3", "a/..", true, API_BAD_REQUEST},
    {"s3", "a//b", false, API_BAD_REQUEST},
    {"s3", "a//", false, API_BAD_REQUEST},
    {"s3", "a\\b", false, API_BAD_REQUEST},
    {"s3", "a\nb", false, API_BAD_REQUEST},
    {"webhook", "models:/glyph/1", false, API_UNSUPPORTED},
    {"gopher", "models:/glyph/1", false, API_UNSUPPORTED},
};

UNIT_ROWS(refs, rows)
{
    struct qdqr_remote remote = {.name = "prod", .kind = rows[_i].kind};
    struct api_problem problem = {0};
    bool ok = qdqr_check_ref(&remote, rows[_i].ref, rows[_i].to_publish, &problem);
    ck_assert_msg(ok == (rows[_i].code == API_N_CODES), "%s", rows[_i].ref);
    if (!ok)
        ck_assert_msg(problem.code == rows[_i].code, "%s: %s", rows[_i].ref,
                      problem.detail);
}

UNIT_TEST(long_refs)
{
    char ref[2 * QDQR_REF] = "models:/";
    struct qdqr_remote remote = {.name = "prod", .kind = "mlflow"};
    struct api_problem problem = {0};
    memset(ref + 8, 'x', sizeof ref - 16);
    ck_assert(!qdqr_check_ref(&remote, ref, true, &problem));
    ck_assert_int_eq(problem.code, API_BAD_REQUEST);
}

/* Words that no message may repeat. */
#define TOKEN "s3cr3t-w0rd"

static const struct {
    const char *kind, *credentials, *secret;
    bool ok;
} checks[] = {
    {"mlflow", NULL, NULL, true},
    {"mlflow", "", NULL, true},
    {"mlflow", "bearer " TOKEN "\n", NULL, true},
    {"mlflow", "basic user:" TOKEN, NULL, true},
    {"mlflow", TOKEN, NULL, false},
    {"oci", NULL, NULL, true},
    {"oci", "basic user:" TOKEN, NULL, true},
    {"oci", TOKEN, NULL, false},
    {"s3", NULL, NULL, true},
    {"s3", "[default]\naws_access_key_id = a\naws_secret_access_key=" TOKEN "\n", NULL,
     true},
    {"s3", "[default]\naws_secret_access_key=" TOKEN "\n", NULL, false},
    {"s3", "bearer " TOKEN, NULL, false},
    {"webhook", NULL, "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD\n", true},
    {"webhook", NULL, TOKEN, false},
    {"webhook", NULL, NULL, false},
};

UNIT_ROWS(remotes, checks)
{
    struct qdqr_remote remote = {.name = "prod",
                                 .kind = checks[_i].kind,
                                 .url = "https://registry.example/bucket",
                                 .credentials = checks[_i].credentials,
                                 .secret = checks[_i].secret};
    struct api_problem problem = {0};
    ck_assert(qdqr_check(&remote, &problem) == checks[_i].ok);
    ck_assert_ptr_null(strstr(problem.detail, TOKEN));
    ck_assert(checks[_i].ok || strstr(problem.detail, "remote prod"));
}

UNIT_LOOP(private_addresses, 5)
{
    struct qdqr_remote remote = {
        .name = "prod", .kind = "mlflow", .url = "http://127.0.0.1:9"};
    struct qdqr_call call = {0};
    struct qdqr_source *source = NULL;
    struct api_problem problem = {0};
    static const char *const urls[] = {"http://127.0.0.1:9", "http://[::1]:9",
                                       "http://[::ffff:127.0.0.1]:9",
                                       "http://localhost:9", "http://0x7f.1:9"};
    remote.url = urls[_i];
    ck_assert(qdqr_init());
    ck_assert(!qdqr_resolve(&remote, "models:/glyph/1", &call, &source, &problem));
    ck_assert_msg(problem.code == API_REMOTE_DENIED, "%s: %s", urls[_i],
                  problem.detail);
    ck_assert_ptr_nonnull(strstr(problem.detail, "allow_private"));
    problem = (struct api_problem){0};
    remote.allow_private = true; /* nobody listens on port 9 */
    ck_assert(!qdqr_resolve(&remote, "models:/glyph/1", &call, &source, &problem));
    ck_assert_msg(problem.code == API_REMOTE_UNAVAILABLE, "%s", problem.detail);
}

UNIT_SUITE("refs")
