/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every key of a section [remote NAME], one row each:
 *   REMOTE_TEXT(key, default, KINDS, text)
 *   REMOTE_CHOICE(key, default, "one or another", KINDS, text)
 *   REMOTE_NUMBER(key, default, min, max, UNIT, KINDS, text)
 *
 * KINDS are the kinds of remotes that the key is for. All keys can change at SIGHUP.
 */
REMOTE_CHOICE(kind, "", "mlflow oci s3 webhook", ALL_KINDS,
              "The protocol that the remote speaks. Must be given.")
REMOTE_TEXT(
    url, "", ALL_KINDS,
    "Where it is: http:// or https://, host, port and path; no user or password. "
    "For s3 the first part of the path is the bucket, and the rest a prefix of "
    "all keys. Must be given.")
REMOTE_TEXT(credentials, "", STORES,
            "File with \"bearer TOKEN\" or \"basic USER:PASSWORD\"; for s3 an AWS "
            "credentials file. Only its owner may read it (mode 0600). Empty: none.")
REMOTE_TEXT(artifacts_url, "", MLFLOW,
            "Where artifacts with the URI s3:// are: http:// or https://, host, port, "
            "bucket and "
            "prefix. Signed URLs may lead to that host, too. Empty: nowhere.")
REMOTE_TEXT(artifacts_credentials, "", MLFLOW,
            "AWS credentials file for artifacts_url (mode 0600). Empty: artifacts with "
            "the URI s3:// "
            "are public, and others are pulled by signed URLs.")
REMOTE_TEXT(region, "us-east-1", MLFLOW | S3,
            "The region that requests to S3 are signed for.")
REMOTE_CHOICE(path_style, "true", "true false", MLFLOW | S3,
              "Whether the bucket stands in the path; else it is the first part of the "
              "host's name.")
REMOTE_TEXT(
    ca, "", ALL_KINDS,
    "PEM file of the authorities that may have issued the remote's certificate; "
    "empty: those of the system.")
REMOTE_CHOICE(allow_private, "false", "false true", ALL_KINDS,
              "Whether the remote may have a loopback, link-local or private address.")
REMOTE_TEXT(
    signers, "", STORES,
    "PEM file with public keys: a model of this remote is taken only with a signature "
    "beside it (OpenSSF Model Signing) by one of them. Empty: models need no "
    "signature.")
REMOTE_TEXT(
    tenants, "*", ALL_KINDS,
    "Tenants that may use the remote, with commas between; -: the tenant without "
    "a name; *: all.")
REMOTE_TEXT(
    scopes, "submit", ALL_KINDS,
    "Scopes of access tokens, with commas between, of which one is needed to use "
    "the remote: read, submit, admin.")
REMOTE_NUMBER(
    timeout, 60, 1, 3600, SECONDS, ALL_KINDS,
    "A request to the remote is given up when nothing arrives for this long; one "
    "that moves no file after ten times as long.")
REMOTE_NUMBER(min_rate, 1 << 10, 0, 1 << 30, BYTES, STORES,
              "Lowest number of bytes per second of a file, measured over timeout. A "
              "request that moves fewer is given up. 0: no lowest rate.")
REMOTE_NUMBER(
    total_timeout, 86400, 0, 100000000, SECONDS, ALL_KINDS,
    "Longest time that one attempt of a fetch, a delivery or a poll may take, "
    "over all its requests; 0: no limit.")
REMOTE_NUMBER(max_bytes, INT64_C(16) << 30, 1, INT64_MAX, BYTES, STORES,
              "Most bytes that one model or dataset may have.")
REMOTE_TEXT(events, "job.succeeded,job.failed,job.rejected,delivery.failed", WEBHOOK,
            "Events that the remote is told, with commas between.")
REMOTE_TEXT(label, "", WEBHOOK,
            "KEY=VALUE: tells only events of jobs with this label; empty: of all jobs.")
REMOTE_TEXT(
    secret, "", WEBHOOK,
    "File with the secret whsec_... that signs the messages (mode 0600). Must be "
    "given.")
REMOTE_TEXT(
    secret_old, "", WEBHOOK,
    "File with the secret before that, which signs too while receivers change to "
    "the new one; empty: none.")
