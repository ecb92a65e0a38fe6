/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remotes: model registries and webhooks, each kind behind one vtable (remote/kind.h). This
 * room opens connections and nothing else: it reads no configuration, opens no file and
 * writes no log. Credentials, certificates and files come in as bytes and descriptors, so
 * that a process without paths can use it.
 *
 * Errors: calls return false with a problem. The codes are REMOTE_UNAVAILABLE (a later
 * attempt may succeed; see retry_after), REMOTE_DENIED, REMOTE_NOT_FOUND, REMOTE_TOO_LARGE,
 * REMOTE_DIGEST_MISMATCH, BAD_REQUEST for a bad ref, CANCELLED, IO for a descriptor of the
 * caller's, and NO_MEMORY. Credentials, queries of URLs and texts of the remote's are in
 * no problem.
 *
 * Threads: qdqr_init() comes first, on one thread. Afterwards each call may run on any thread
 * at any time; a struct qdqr_call, a struct qdqr_source and a descriptor belong to one call
 * at a time. No call changes signals or environment.
 */
#ifndef REMOTE_REMOTE_H
#define REMOTE_REMOTE_H

#include <stdint.h>

#include "api/digest.h"
#include "api/problem.h"

#define QDQR_REF 1024 /* most bytes of a ref, with its NUL */

/* A remote. The caller owns all texts, which must outlive the calls. NULL stands for "". */
struct qdqr_remote {
    const char *name; /* for messages */
    const char *kind; /* "mlflow", "oci", "s3", "webhook" */
    /* http:// or https://, without user and password; of s3 with the bucket as the first
       part of the path, and behind it a prefix of all keys. */
    const char *url;
    /* Text of the file: "bearer TOKEN", "basic USER:PASSWORD"; of s3 an AWS credentials
       file. */
    const char *credentials;
    const char *region; /* of s3; "": us-east-1 */
    bool path_style; /* of s3: the bucket stays in the path; else it leads the host */
    const void *ca;  /* PEM of the authorities; NULL: the file of the system, by path */
    size_t ca_len;
    const char *secret, *secret_old; /* "whsec_...", of a webhook */
    bool allow_private; /* whether loopback and private addresses may be used */
    int64_t timeout;    /* seconds without a byte; 0: a minute */
    int64_t
        min_rate; /* lowest bytes a second of a file, over the timeout; 0: any rate */
    int64_t
        total_timeout; /* seconds that the requests of a call may take; 0: no limit */
    int64_t max_bytes; /* most bytes of a pull; 0: no limit */
    /* For mlflow: endpoint, bucket and prefix of its artifacts with the URI s3://, and an AWS
       credentials file's text. Without the latter, signed URLs of that host are used. NULL or
       "": none. */
    const char *artifacts_url, *artifacts_credentials;
};

/* Callbacks and results that all calls share. Zeroed, it is a call without callbacks. */
struct qdqr_call {
    /* Called several times a second while bytes move, and also while none do. `total` is 0
       where it is not known. Returns false to cancel the call. NULL: none. */
    bool (*on_progress)(void *arg, int64_t done, int64_t total);
    void *arg;
    /* Set on REMOTE_UNAVAILABLE: seconds that the remote asked to wait; 0: it said nothing. */
    int64_t retry_after;
    /* Set when the first connection is opened: ms of the monotonic clock, from which
       total_timeout counts. Calls that belong together share the structure. */
    int64_t began_ms;
};

/* Prepares libcurl and its TLS library. Returns false when libcurl cannot be used. */
bool qdqr_init(void);

/* Checks kind, URL, credentials and secrets without a connection. */
bool qdqr_check(const struct qdqr_remote *remote, struct api_problem *problem);
/* Checks the form of a ref without a connection. A ref for publishing (`to_publish`) names
   a model without a version: "models:/NAME", with or without "@ALIAS". */
bool qdqr_check_ref(const struct qdqr_remote *remote, const char *ref, bool to_publish,
                    struct api_problem *problem);

/* --- pull ----------------------------------------------------------------- */

/* How a file belongs to the model. */
enum qdqr_role {
    QDQR_MODEL, /* the ONNX file; of s3, whatever the key names that is the ref */
    QDQR_DATA,  /* a file with external data of the model, beside it */
    QDQR_OTHER, /* described by the remote, and not needed to load the model */
    QDQR_REPORT,
    QDQR_SPEC,
    QDQR_SIGNATURE,  /* a bundle of OpenSSF Model Signing */
    QDQR_PROVENANCE, /* an in-toto statement, alone or in an envelope (DSSE) */
    QDQR_BOM,        /* a bill of materials, CycloneDX */
    QDQR_N_ROLES
};

/* The names of the documents that prove where a model came from. */
#define QDQR_SIGNATURE_NAME "model.sig"
#define QDQR_PROVENANCE_NAME "provenance.json"
#define QDQR_BOM_NAME "bom.json"

struct qdqr_file {
    char *name;               /* relative path with '/', without "..", never absolute */
    int64_t size;             /* -1: not known before the pull */
    char digest[DIGEST_SIZE]; /* "sha256:..." where the remote says it, else "" */
    enum qdqr_role role;
};

/* A ref that was resolved: the exact version and its files. */
struct qdqr_source {
    char *resolved; /* the ref of this version alone, "models:/glyph/3" */
    /* An identity of the content: equal means that nothing has to be pulled again. "" where
       the remote has none. */
    char *digest;
    char *place; /* for the kind's own use */
    struct qdqr_file *files;
    size_t n_files;
};

/* Finds the version that a ref names, and lists its files. The caller frees *ret. */
bool qdqr_resolve(const struct qdqr_remote *remote, const char *ref,
                  struct qdqr_call *call, struct qdqr_source **ret,
                  struct api_problem *problem);
void qdqr_source_free(struct qdqr_source **source);

/*
 * Writes a file of the source to a regular file that is open for reading and writing. Bytes
 * that are there already are taken as the file's beginning: the remote is asked for the
 * rest, and sends all where it knows no ranges. A connection that breaks is resumed a few
 * times. On success the descriptor has exactly the file, and *ret_digest its SHA-256, which
 * was compared with the remote's. On failure the bytes that did arrive stay for the next
 * attempt, except after REMOTE_DIGEST_MISMATCH and REMOTE_TOO_LARGE.
 */
bool qdqr_pull(const struct qdqr_remote *remote, const struct qdqr_source *source,
               size_t file, int fd, struct qdqr_call *call,
               char ret_digest[DIGEST_SIZE], struct api_problem *problem);

/* --- versions -------------------------------------------------------------- */

/* A question for versions of models. Texts are borrowed. */
struct qdqr_question {
    const char *models;     /* patterns of names, as api_rule_matches() reads them */
    const char *tag_prefix; /* see is_tagged */
    int64_t since; /* ms since 1970: versions that were created before are left out */
};

struct qdqr_version {
    char *name, *version;
    int64_t created; /* ms since 1970, of the remote's clock */
    bool is_tagged;  /* it has a tag whose name begins with tag_prefix */
};

/* Lists the versions, the newest first. The caller frees the list. */
bool qdqr_versions(const struct qdqr_remote *remote,
                   const struct qdqr_question *question, struct qdqr_call *call,
                   struct qdqr_version **ret, size_t *ret_n,
                   struct api_problem *problem);
void qdqr_versions_free(struct qdqr_version *list, size_t n);

/* --- publish -------------------------------------------------------------- */

struct qdqr_pair {
    const char *name, *value;
};
struct qdqr_metric {
    const char *name;
    double value;
};
struct qdqr_upload {
    const char *name; /* as qdqr_file.name: the model and its data keep their names */
    int fd;           /* readable and seekable; read from the start */
    int64_t size;
    const char *digest; /* "sha256:..." */
    enum qdqr_role role;
};

/* A publication. The caller owns everything in it. */
struct qdqr_publication {
    const char *ref;      /* where to: "models:/glyph-int8" */
    const char *alias;    /* moved to the new version, at the end; "" or NULL: none */
    const char *delivery; /* the tag that makes the publication idempotent: an own id */
    /* The resolved ref that the model was made of, where it is of the same remote; else NULL.
       Its description (MLmodel) becomes that of the new version. */
    const char *source;
    const struct qdqr_upload *files;
    size_t n_files;
    const struct qdqr_pair *tags;
    size_t n_tags;
    const struct qdqr_metric *metrics;
    size_t n_metrics;
};

/*
 * Publishes the files as a new version. The remote is asked first for a version with this
 * delivery: such a version is only completed by the alias. *ret_location, which the caller
 * frees, is the ref of the version.
 */
bool qdqr_publish(const struct qdqr_remote *remote,
                  const struct qdqr_publication *publication, struct qdqr_call *call,
                  char **ret_location, struct api_problem *problem);

/*
 * Makes metrics of the figures of a report (JSON): sqnr_db, cosine and top1_agreement of the
 * outputs, as deployed where the report has that, and size_ratio. Where there are several
 * outputs, the name of each stands behind those of its figures. Bytes that are no report make
 * no metrics. The caller frees *ret, which stays NULL where there are none.
 */
bool qdqr_metrics_of_report(const char *report, size_t len, struct qdqr_metric **ret,
                            size_t *ret_n, struct api_problem *problem);
void qdqr_metrics_free(struct qdqr_metric *metrics, size_t n);

/* --- events --------------------------------------------------------------- */

struct qdqr_event {
    const char *id;    /* the same for each attempt */
    int64_t timestamp; /* seconds since 1970, of this attempt */
    const char *body;  /* JSON */
    size_t body_len;
};

/* Sends an event, signed as Standard Webhooks demands. Succeeds with any status 2xx. */
bool qdqr_deliver(const struct qdqr_remote *remote, const struct qdqr_event *event,
                  struct qdqr_call *call, struct api_problem *problem);

#endif
