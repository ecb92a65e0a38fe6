/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a multipart form: PART(NAME, "name", KIND).
 *   MODEL, DATASET  a file, or in a job's form the text of a stored id or of a place in a
 *                   remote
 *   EXTERNAL        the same, beside a model; any number of them
 *   TEXT            text of at most BODY_MAX_TEXT bytes
 *   EVALUATION      a file or the text of a stored id, in a job's form alone
 * The BODY of the route decides which are accepted: FILE accepts one part of the kind
 * DATASET (or MODEL, whatever its name), MODEL accepts one of MODEL and those of
 * EXTERNAL, JOB accepts all.
 */
PART(MODEL, "model", MODEL)
PART(CALIBRATION, "calibration", DATASET)
PART(DATASET, "dataset", DATASET)
PART(SPEC, "spec", TEXT)
PART(LABELS, "labels", TEXT)
PART(PRIORITY, "priority", TEXT)
PART(FRESH, "fresh", TEXT)
PART(PUBLISH, "publish", TEXT)
PART(EXTERNAL, "external", EXTERNAL)
PART(EVALUATION, "evaluation", EVALUATION)
