/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signature, the provenance and the bill of materials of a result prove where it came from. These
 * documents are made of the record when somebody asks for them, and signed then where the service has
 * a key: a new key signs old results, too.
 */
#ifndef QDQD_JOBS_LINEAGE_H
#define QDQD_JOBS_LINEAGE_H

#include "library/library.h"
#include "settings/settings.h"
#include "api/lineage.h"

struct metrics;

enum lineage_document {
    LINEAGE_SIGNATURE,  /* a bundle of OpenSSF Model Signing; only with a key */
    LINEAGE_PROVENANCE, /* an in-toto statement; with a key in an envelope */
    LINEAGE_BOM,        /* CycloneDX */
    LINEAGE_N
};

/* A job that has succeeded, with everything that is said of it. */
struct lineage {
    struct store_model_files result, model;
    struct api_file *result_files, *model_files;
    char *spec;
    struct api_lineage facts; /* borrow from the rest and from the job's row */
};

/* Returns in *ret the bytes of memory that the documents of a job take at most. NOT_FOUND: the job
   ran under a version that did not keep its spec. */
bool lineage_cost(struct library *library, const struct store_job *row, uint64_t *ret,
                  struct api_problem *p);
/* Reads what the record has of a job, whose row outlives *ret, and checks that the files of its
   result are stored with the bytes that their digests name. The caller calls lineage_fini(), also
   after a failure. */
bool lineage_read(struct library *library, const struct store_job *row,
                  struct lineage *ret, struct api_problem *p);
void lineage_fini(struct lineage *lineage);

/* Makes a document, which the caller frees, and returns its media type in *ret_type. NULL: the
   problem is set, for a signature without a key with NOT_FOUND, else as signer_sign() says. */
char *lineage_document(const struct lineage *lineage, enum lineage_document which,
                       const struct settings *settings, struct metrics *metrics,
                       const char **ret_type, struct api_problem *p);

#endif
