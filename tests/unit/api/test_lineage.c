/* SPDX-License-Identifier: Apache-2.0 */
/* The keys and certificates, which serve nothing but this test, were made by OpenSSL's command. */
#include "config.h"
#include "api/lineage.h"
#include "api.h"

#define A "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define PRIVATE                                                          \
    "-----BEGIN EC PRIVATE KEY-----\n"                                   \
    "MHcCAQEEIP7mybAQ42Qx6Pr9M4VBeN2GcCRtkHmfjREY2K3tNmIzoAoGCCqGSM49\n" \
    "AwEHoUQDQgAES3Gd9TsOTW2yPncqOLe3t1V+8mqr4aD/nqDerJbOKMgi9/iva+61\n" \
    "WAgS3ENzFKg7lZkgyIWhPLnfsTJcHxBDgA==\n"                             \
    "-----END EC PRIVATE KEY-----\n"
#define PUBLIC                                                           \
    "-----BEGIN PUBLIC KEY-----\n"                                       \
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAES3Gd9TsOTW2yPncqOLe3t1V+8mqr\n" \
    "4aD/nqDerJbOKMgi9/iva+61WAgS3ENzFKg7lZkgyIWhPLnfsTJcHxBDgA==\n"     \
    "-----END PUBLIC KEY-----\n"
#define OTHER_CURVE                                                      \
    "-----BEGIN EC PRIVATE KEY-----\n"                                   \
    "MIGkAgEBBDC2u35+bvppdR1W5pGajPVEI3HQbTGjTICynwb85yraUSD6qG4dHAwb\n" \
    "rXwtwUxO24agBwYFK4EEACKhZANiAARVOLM0Ukrpcmd04tmhgONZ7rFywWTtvZSs\n" \
    "KWs4GyBgyCqjDQUswNqHqb7tJ5iByHUccAT+KTGOFeilYyNPWTT3wR0/5Vrrwyq5\n" \
    "aHC5KrXIeNtxDDORE9pEis2FZR1SmcY=\n"                                 \
    "-----END EC PRIVATE KEY-----\n"
#define WITH_PASSWORD                                                    \
    "-----BEGIN EC PRIVATE KEY-----\n"                                   \
    "Proc-Type: 4,ENCRYPTED\n"                                           \
    "DEK-Info: AES-128-CBC,222A1171B858234FCD8E06626C2F83BB\n"           \
    "\n"                                                                 \
    "0CFU+mnM2AMfb5NJkH1QDHLEgW6g595N9925f3jlz11DO+ZCUfZ1jFFg8Pv34mxH\n" \
    "kKNHudZqilun2aEPMC43VZMmtYfis4Shd+5xHDaWIUAIgM0zCX4jb8+IRE0rbZnw\n" \
    "w5fHhPE+1lq7BalQG/yTZXuLnhxwYPPzOhpSWUjuF6Q=\n"                     \
    "-----END EC PRIVATE KEY-----\n"
#define CERTIFICATE                                                      \
    "-----BEGIN CERTIFICATE-----\n"                                      \
    "MIIBejCCAR+gAwIBAgIUAO1MbHOFzrlQ9VSp0pmq0+rv+vEwCgYIKoZIzj0EAwIw\n" \
    "ETEPMA0GA1UEAwwGc2lnbmVyMCAXDTI2MTEyODE4MDkyMFoYDzIxMjYxMTA0MTgw\n" \
    "OTIwWjARMQ8wDQYDVQQDDAZzaWduZXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n" \
    "AARLcZ31Ow5NbbI+dyo4t7e3VX7yaqvhoP+eoN6sls4oyCL3+K9r7rVYCBLcQ3MU\n" \
    "qDuVmSDIhaE8ud+xMlwfEEOAo1MwUTAdBgNVHQ4EFgQU5o5buRNkjy2GBM39Z98i\n" \
    "kyeUgRYwHwYDVR0jBBgwFoAU5o5buRNkjy2GBM39Z98ikyeUgRYwDwYDVR0TAQH/\n" \
    "BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEAqTnvQiz0i8aTZY0HbYnWRw+bnxPq\n" \
    "AQp2vDPUygc5gqgCIQCuFMFtOP8IQRJ8tJLRqPTo9K+5tCJJNQ1hDAywdrN7/Q==\n" \
    "-----END CERTIFICATE-----\n"
#define OTHER_CERTIFICATE                                                \
    "-----BEGIN CERTIFICATE-----\n"                                      \
    "MIIBdzCCAR2gAwIBAgIUQ9fmCaR9/Bpwd691hfwsSWZS50UwCgYIKoZIzj0EAwIw\n" \
    "EDEOMAwGA1UEAwwFb3RoZXIwIBcNMjYxMTI4MTgwOTIwWhgPMjEyNjExMDQxODA5\n" \
    "MjBaMBAxDjAMBgNVBAMMBW90aGVyMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n" \
    "5M1FsRSjMKhz8f2S+zr7QZ90bk8SZ/usTC8VHl4rOmFcyozdDrUN8afnkNIU6pFM\n" \
    "5jc0p0LBoY+u1mXjSOJ3/6NTMFEwHQYDVR0OBBYEFD9/zsUsuCfy8khjPJ+y1Ows\n" \
    "0ElyMB8GA1UdIwQYMBaAFD9/zsUsuCfy8khjPJ+y1Ows0ElyMA8GA1UdEwEB/wQF\n" \
    "MAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhAKiohsG0ZFRR8s9uLPBb1tqqvZCBK1ms\n" \
    "UH8L0aAveODGAiBzupeee7AVUl9b8EoQUccznNQVqj6E2jEqYY+kjgGgTg==\n"     \
    "-----END CERTIFICATE-----\n"
/* The signature of a folder with a file model.onnx, by model-signing 1.1.1. */
#define FOREIGN                                                                    \
    "{\"mediaType\":\"application/vnd.dev.sigstore.bundle.v0.3+json\",\"verifica"  \
    "tionMaterial\":{\"publicKey\":{\"hint\":\"b1da760a9b2aca2ceb31f38f8054ec7752" \
    "ddaa4e4cee8b7ad817cdda85362606\"},\"tlogEntries\":[]},\"dsseEnvelope\":{\"pa" \
    "yload\":\"ewogICJfdHlwZSI6ICJodHRwczovL2luLXRvdG8uaW8vU3RhdGVtZW50L3YxIi"     \
    "wKICAic3ViamVjdCI6IFsKICAgIHsKICAgICAgIm5hbWUiOiAibSIsCiAgICAgICJkaWdl"       \
    "c3QiOiB7CiAgICAgICAgInNoYTI1NiI6ICI5NTk1YzlkZjkwMDc1MTQ4ZWIwNjg2MDM2NW"       \
    "RmMzM1ODRiNzViZmY3ODJhNTEwYzZjZDQ4ODNhNDE5ODMzZDUwIgogICAgICB9CiAgICB9"       \
    "CiAgXSwKICAicHJlZGljYXRlVHlwZSI6ICJodHRwczovL21vZGVsX3NpZ25pbmcvc2lnbm"       \
    "F0dXJlL3YxLjAiLAogICJwcmVkaWNhdGUiOiB7CiAgICAicmVzb3VyY2VzIjogWwogICAg"       \
    "ICB7CiAgICAgICAgImRpZ2VzdCI6ICIyY2YyNGRiYTVmYjBhMzBlMjZlODNiMmFjNWI5ZT"       \
    "I5ZTFiMTYxZTVjMWZhNzQyNWU3MzA0MzM2MjkzOGI5ODI0IiwKICAgICAgICAiYWxnb3Jp"       \
    "dGhtIjogInNoYTI1NiIsCiAgICAgICAgIm5hbWUiOiAibW9kZWwub25ueCIKICAgICAgfQ"       \
    "ogICAgXSwKICAgICJzZXJpYWxpemF0aW9uIjogewogICAgICAiaGFzaF90eXBlIjogInNo"       \
    "YTI1NiIsCiAgICAgICJhbGxvd19zeW1saW5rcyI6IGZhbHNlLAogICAgICAiaWdub3JlX3"       \
    "BhdGhzIjogWwogICAgICAgICIuZ2l0IiwKICAgICAgICAiLmdpdGF0dHJpYnV0ZXMiLAog"       \
    "ICAgICAgICIuZ2l0aHViIiwKICAgICAgICAiLmdpdGlnbm9yZSIKICAgICAgXSwKICAgIC"       \
    "AgIm1ldGhvZCI6ICJmaWxlcyIKICAgIH0KICB9Cn0=\",\"payloadType\":\"application"   \
    "/vnd.in-toto+json\",\"signatures\":[{\"sig\":\"MEYCIQD+OADL5mAZVSzjYx417M6dj" \
    "LMvdYBlsANUZWCLYq66ygIhALwl5NIBr1ncT/Fr+FwjYxR9bGgOZvDQxa+DXrGEwgX1\",\""     \
    "keyid\":\"\"}]}}"

/* The SHA-256 of the public key's PEM, as sha256sum says it. */
#define HINT "b1da760a9b2aca2ceb31f38f8054ec7752ddaa4e4cee8b7ad817cdda85362606"

static const struct api_file result[] = {{"model.onnx", A, 10},
                                         {"model.onnx.data", B, 20}};
static const struct api_file model[] = {{"net.onnx", C, 5}, {"sub/w.bin", B, 6}};

static struct api_lineage
make_lineage(void)
{
    return (struct api_lineage){
        .job = "j1",
        .started_at = 1000,
        .ended_at = 2500,
        .result = result,
        .n_result = 2,
        .model = model,
        .n_model = 2,
        .model_id = A,
        .calibration = B,
        .spec = "{\"target\":\"tensorrt\",\"x\":0.1}",
        .spec_id = C,
        .report_id = B,
        .summary = "{\"verdict\":\"good\",\"made_by\":{\"engine\":\"1.2\",\"build\":"
                   "\"ab\",\"runtime\":\"1.31.1\",\"processor\":\"avx2\"}}"};
}

/* --- the encoding that is signed ------------------------------------------------- */

static const struct {
    const char *type, *payload, *wanted;
} encodings[] = {
    /* the example of DSSE's protocol.md */
    {"http://example.com/HelloWorld", "hello world",
     "DSSEv1 29 http://example.com/HelloWorld 11 hello world"},
    {"", "", "DSSEv1 0  0 "},
    {"a", "b c", "DSSEv1 1 a 3 b c"},
};

UNIT_ROWS(test_encoding, encodings)
{
    size_t len;
    unsigned char *got = api_payload_encoding(encodings[_i].type, encodings[_i].payload,
                                              strlen(encodings[_i].payload), &len);
    ck_assert_ptr_nonnull(got);
    ck_assert_uint_eq(len, strlen(encodings[_i].wanted));
    ck_assert_mem_eq(got, encodings[_i].wanted, len);
    free(got);
}

/* --- statements ------------------------------------------------------------------ */

/* The root is the SHA-256 of 32 bytes 0xaa and 32 bytes 0xbb, whatever the order of the files. */
UNIT_LOOP(test_manifest, 2)
{
    static const struct api_file turned[] = {{"model.onnx.data", B, 20},
                                             {"model.onnx", A, 10}};
    expect_json(
        api_manifest_encode(_i ? turned : result, 2),
        "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[{\"name\":"
        "\"model\",\"digest\":{\"sha256\":"
        "\"e2d80f78d79027556d6619a1400605abbdca6bb6eb24e0831e33ecd5466fa5f6\"}}],"
        "\"predicateType\":\"https://model_signing/signature/v1.0\",\"predicate\":{"
        "\"resources\":[{\"name\":\"model.onnx\",\"algorithm\":\"sha256\",\"digest\":"
        "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"},{"
        "\"name\":\"model.onnx.data\",\"algorithm\":\"sha256\",\"digest\":"
        "\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\"}],"
        "\"serialization\":{\"method\":\"files\",\"hash_type\":\"sha256\","
        "\"allow_symlinks\":false,\"ignore_paths\":[]}}}");
}

#define HEX(c) "\"" c c c c c c c c c c c c c c c c "\""
#define SHA(c) "{\"sha256\":" HEX(c) "}"

UNIT_TEST(test_provenance)
{
    struct api_lineage lineage = make_lineage();
    expect_json(
        api_provenance_encode(&lineage),
        "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[{\"name\":"
        "\"model.onnx\",\"digest\":" SHA(
            "aaaa") "},{\"name\":\"model.onnx.data\","
                    "\"digest\":" SHA(
                        "bbbb") "}],\"predicateType\":\"https://slsa.dev/provenance/"
                                "v1\","
                                "\"predicate\":{\"buildDefinition\":{\"buildType\":"
                                "\"urn:qdqd:quantization:v1\","
                                "\"externalParameters\":{\"spec\":{\"target\":"
                                "\"tensorrt\",\"x\":0.1}},"
                                "\"internalParameters\":{\"processor\":\"avx2\"},"
                                "\"resolvedDependencies\":[{"
                                "\"name\":\"model\",\"digest\":" SHA(
                                    "cccc") ",\"annotations\":{\"id\":\"" A
                                            "\",\"path\":\"net.onnx\"}},{\"name\":"
                                            "\"external\",\"digest\":" SHA(
                                                "bbbb") ",\"annotations\":{\"path\":"
                                                        "\"sub/"
                                                        "w.bin\"}},{\"name\":"
                                                        "\"calibration\","
                                                        "\"digest\":" SHA(
                                                            "bbbb") "},{\"name\":"
                                                                    "\"runtime\","
                                                                    "\"annotations\":{"
                                                                    "\"name\":\"ONNX "
                                                                    "Runtime\","
                                                                    "\"version\":\"1."
                                                                    "31.1\"}}]},"
                                                                    "\"runDetails\":{"
                                                                    "\"builder\":{"
                                                                    "\"id\":\"urn:"
                                                                    "qdqd\","
                                                                    "\"version\":{"
                                                                    "\"qdqd\":\"1.2\","
                                                                    "\"build\":\"ab\"}}"
                                                                    ",\"metadata\":{"
                                                                    "\"invocationId\":"
                                                                    "\"j1\","
                                                                    "\"startedOn\":"
                                                                    "\"1970-01-01T00:"
                                                                    "00:01.000Z\","
                                                                    "\"finishedOn\":"
                                                                    "\"1970-01-01T00:"
                                                                    "00:02.500Z\"},"
                                                                    "\"byproducts\":[{"
                                                                    "\"name\":"
                                                                    "\"report\","
                                                                    "\"digest\":" SHA(
                                                                        "bbbb") "},{"
                                                                                "\"name"
                                                                                "\":"
                                                                                "\"spec"
                                                                                "\","
                                                                                "\"dige"
                                                                                "st\""
                                                                                ":" SHA(
                                                                                    "cc"
                                                                                    "c"
                                                                                    "c") "}]}}}");
}

/* Facts that an older version's record does not have are left out. */
UNIT_TEST(test_unknown_facts)
{
    struct api_lineage lineage = make_lineage();
    lineage.summary = "{\"verdict\":null}";
    lineage.started_at = lineage.ended_at = 0;
    lineage.calibration = NULL;
    char *text = api_provenance_encode(&lineage);
    json_t *json = json_loads(text, 0, NULL), *predicate;
    predicate = json_object_get(json, "predicate");
    json_t *build = json_object_get(predicate, "buildDefinition");
    json_t *run = json_object_get(predicate, "runDetails");
    ck_assert_uint_eq(json_object_size(json_object_get(build, "internalParameters")),
                      0);
    ck_assert_uint_eq(json_array_size(json_object_get(build, "resolvedDependencies")),
                      2);
    ck_assert_uint_eq(json_object_size(json_object_get(run, "metadata")), 1);
    json_decref(json);
    free(text);
}

/* A model that is not stored any more is named by its id. */
UNIT_TEST(test_removed_model)
{
    struct api_lineage lineage = make_lineage();
    struct api_statement statement;
    struct api_problem p = {0};
    lineage.n_model = 0;
    char *text = api_provenance_encode(&lineage);
    ck_assert_ptr_nonnull(strstr(text, "{\"name\":\"model\",\"uri\":\"urn:qdqd:model:" A
                                       "\",\"annotations\":{\"id\":\"" A "\"}}"));
    ck_assert(api_statement_decode(text, strlen(text), &statement, &p));
    ck_assert_str_eq(statement.model_id, A);
    api_statement_fini(&statement);
    free(text);
    text = api_bom_encode(&lineage);
    ck_assert_ptr_nonnull(strstr(text,
                                 "{\"type\":\"machine-learning-model\",\"bom-ref\":"
                                 "\"source\",\"name\":\"model\"}"));
    free(text);
}

static char *
encode_provenance(void)
{
    struct api_lineage lineage = make_lineage();
    return api_provenance_encode(&lineage);
}

static char *
encode_bom(void)
{
    struct api_lineage lineage = make_lineage();
    return api_bom_encode(&lineage);
}

UNIT_LOOP(test_no_memory, 2)
{
    expect_survives_no_memory(_i ? encode_bom : encode_provenance);
}

UNIT_TEST(test_bom)
{
    char *text = encode_bom();
    json_t *json = json_loads(text, 0, NULL), *component;
    component = json_object_get(json_object_get(json, "metadata"), "component");
    ck_assert_str_eq(api_text_at(json, "bomFormat"), "CycloneDX");
    ck_assert_str_eq(api_text_at(json, "serialNumber"),
                     "urn:uuid:aaaaaaaa-aaaa-8aaa-8aaa-aaaaaaaaaaaa");
    ck_assert_str_eq(api_text_at(component, "type"), "machine-learning-model");
    /* two files of the model, the result's data, calibration data, and the runtime */
    ck_assert_uint_eq(json_array_size(json_object_get(json, "components")), 5);
    json_decref(json);
    free(text);
}

/* --- signed and read back --------------------------------------------------------- */

static struct api_signing_key *
read_key(const char *pem, bool is_private)
{
    struct api_signing_key *key = NULL;
    struct api_problem p = {0};
    bool ok = is_private ? api_signing_key_read(pem, strlen(pem), &key, &p)
                         : api_public_key_read(pem, strlen(pem), &key, &p);
    ck_assert_msg(ok, "%s", p.detail);
    ck_assert_str_eq(api_signing_key_hint(key), HINT);
    return key;
}

static void
expect_verifies(char *text, bool valid, const struct api_signing_key *key)
{
    struct api_statement statement;
    struct api_problem p = {0};
    ck_assert_ptr_nonnull(text);
    bool read = api_statement_decode(text, strlen(text), &statement, &p);
    ck_assert_int_eq(read && api_statement_verify(&statement, key, &p), valid);
    if (read)
        api_statement_fini(&statement);
    free(text);
}

/* Every bit of the statement and of the signature counts. */
UNIT_TEST(test_signed)
{
    struct api_signing_key *private = read_key(PRIVATE, true);
    struct api_signing_key *public = read_key(PUBLIC, false);
    struct api_signature signature;
    struct api_problem p = {0};
    char *payload = api_manifest_encode(result, 2);
    ck_assert(api_sign(private, payload, strlen(payload), &signature, &p));
    expect_verifies(api_bundle_encode(payload, &signature), true, public);
    expect_verifies(api_envelope_encode(payload, &signature), true, public);
    for (size_t i = 0; i < signature.len * 8; i += 7) {
        signature.bytes[i / 8] ^= (unsigned char)(1u << i % 8);
        expect_verifies(api_bundle_encode(payload, &signature), false, public);
        signature.bytes[i / 8] ^= (unsigned char)(1u << i % 8);
    }
    for (size_t i = 0; i < strlen(payload) * 8; i += 7) {
        payload[i / 8] ^= (char)(1u << i % 8);
        if (!memchr(payload, 0, i / 8 + 1))
            expect_verifies(api_bundle_encode(payload, &signature), false, public);
        payload[i / 8] ^= (char)(1u << i % 8);
    }
    expect_verifies(api_bundle_encode(payload, &signature), true, public);
    /* a hint of another key, and a statement without a signature */
    signature.hint[0] ^= 1;
    expect_verifies(api_bundle_encode(payload, &signature), false, public);
    expect_verifies(payload, false, public);
    api_signature_fini(&signature);
    api_signing_key_free(&private);
    api_signing_key_free(&public);
}

UNIT_TEST(test_foreign_signature)
{
    struct api_signing_key *public = read_key(PUBLIC, false);
    expect_verifies(strdup(FOREIGN), true, public);
    api_signing_key_free(&public);
}

UNIT_TEST(test_provenance_read_back)
{
    struct api_statement statement;
    struct api_problem p = {0};
    char *text = encode_provenance();
    ck_assert_msg(api_statement_decode(text, strlen(text), &statement, &p), "%s",
                  p.detail);
    ck_assert_uint_eq(statement.n, 2);
    ck_assert_str_eq(statement.files[1].path, "model.onnx.data");
    ck_assert_str_eq(statement.files[1].digest, B);
    ck_assert_str_eq(statement.spec, "{\"target\":\"tensorrt\",\"x\":0.1}");
    ck_assert_str_eq(statement.model_id, A);
    ck_assert_str_eq(statement.calibration, B);
    ck_assert_ptr_null(statement.evaluation);
    ck_assert_str_eq(statement.engine, "1.2");
    ck_assert_str_eq(statement.runtime, "1.31.1");
    api_statement_fini(&statement);
    free(text);
}

#define STATEMENT(type, rest)                                                  \
    "{\"_type\":\"https://in-toto.io/Statement/v1\",\"predicateType\":\"" type \
    "\"" rest "}"
#define MANIFEST(rest) STATEMENT("https://model_signing/signature/v1.0", rest)
#define PROVENANCE(rest) STATEMENT("https://slsa.dev/provenance/v1", rest)
#define FILES(resources)                                                 \
    MANIFEST(",\"predicate\":{\"serialization\":{\"method\":\"files\"}," \
             "\"resources\":" resources "}")

static const struct {
    const char *text, *said;
} refused[] = {
    {"", "unexpected token"},
    {"7", "_type"},
    {"{}", "_type"},
    {"{\"payload\":\"\"}", "payloadType"},
    {"{\"payload\":\"\",\"payloadType\":\"application/vnd.in-toto+json\"}",
     "signatures"},
    {"{\"payload\":\"e30=\",\"payloadType\":\"application/vnd.in-toto+json\","
     "\"signatures\":[{\"sig\":\"AB==\"}]}",
     "base64"}, /* the bits that are left are not zeros */
    {"{\"dsseEnvelope\":{}}", "mediaType"},
    {STATEMENT("other", ""), "predicateType"},
    {MANIFEST(""), "serialization"},
    {FILES("[]"), "no files"},
    {FILES("[{\"name\":\"a\",\"algorithm\":\"blake2b\",\"digest\":\"00\"}]"),
     "algorithm"},
    {FILES("[{\"name\":\"a\",\"algorithm\":\"sha256\",\"digest\":\"00\"}]"), "SHA-256"},
    {FILES("[{\"name\":\"../a\",\"algorithm\":\"sha256\",\"digest\":" HEX("aaaa") "}]"),
     "path"},
    {FILES("[{\"name\":\"a\",\"algorithm\":\"sha256\",\"digest\":" HEX("aaaa") "}]"),
     "subject"},
    {FILES("[{\"name\":\"a\",\"algorithm\":\"sha256\",\"digest\":" HEX(
         "aaaa") "},{\"name\":\"a\",\"algorithm\":\"sha256\","
                 "\"digest\":" HEX("aaaa") "}]"),
     "more than once"},
    {PROVENANCE(""), "buildType"},
    {PROVENANCE(",\"predicate\":{\"buildDefinition\":{\"buildType\":"
                "\"urn:qdqd:quantization:v1\"}}"),
     "no spec"},
    {PROVENANCE(",\"subject\":[{\"name\":\"a\",\"digest\":" SHA(
         "aaaa") "}],\"predicate\":{\"buildDefinition\":{\"buildType\":"
                 "\"urn:qdqd:quantization:v1\",\"externalParameters\":{"
                 "\"spec\":{}}}}"),
     "no model"},
};

UNIT_ROWS(test_refused, refused)
{
    struct api_statement statement;
    struct api_problem p = {0};
    const char *text = refused[_i].text;
    ck_assert(!api_statement_decode(text, strlen(text), &statement, &p));
    ck_assert_msg(strstr(p.detail, refused[_i].said), "%s", p.detail);
}

/* --- keys ------------------------------------------------------------------------- */

static const struct {
    const char *pem;
    bool is_private;
} no_keys[] = {
    {"", true},       {"", false},         {PUBLIC, true},
    {PRIVATE, false}, {OTHER_CURVE, true}, {WITH_PASSWORD, true},
};

UNIT_ROWS(test_no_key, no_keys)
{
    struct api_signing_key *key = NULL;
    struct api_problem p = {0};
    const char *pem = no_keys[_i].pem;
    ck_assert(!(no_keys[_i].is_private
                    ? api_signing_key_read(pem, strlen(pem), &key, &p)
                    : api_public_key_read(pem, strlen(pem), &key, &p)));
    ck_assert_msg(strstr(p.detail, "P-256"), "%s", p.detail);
    ck_assert_ptr_null(key);
}

UNIT_TEST(test_certificates)
{
    struct api_signing_key *key = read_key(PRIVATE, true);
    struct api_signature signature;
    struct api_problem p = {0};
    ck_assert(!api_signing_key_certify(key, PUBLIC, strlen(PUBLIC), &p));
    ck_assert_ptr_nonnull(strstr(p.detail, "none in PEM"));
    p = (struct api_problem){0};
    ck_assert(!api_signing_key_certify(key, OTHER_CERTIFICATE,
                                       strlen(OTHER_CERTIFICATE), &p));
    ck_assert_ptr_nonnull(strstr(p.detail, "not that of the signing key"));
    ck_assert(api_signing_key_certify(key, CERTIFICATE, strlen(CERTIFICATE), &p));
    ck_assert(api_sign(key, "{}", 2, &signature, &p));
    ck_assert_uint_eq(signature.n_certificates, 1);
    char *text = api_bundle_encode("{}", &signature);
    ck_assert_ptr_nonnull(strstr(text, "\"x509CertificateChain\":{\"certificates\":[{"
                                       "\"rawBytes\":\"MII"));
    ck_assert_ptr_null(strstr(text, "hint"));
    free(text);
    api_signature_fini(&signature);
    api_signing_key_free(&key);
}

UNIT_SUITE("api/lineage")
