/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that a multipart form may have: PART(NAME, "name", KIND).
 *   MODEL, DATASET  a file, or in a job's form the text of a stored id
 *   EXTERNAL        likewise, beside a model; any number of them
 *   TEXT            text of at most BODY_MAX_TEXT bytes
 *   REFUSED         known to the contract, but this version cannot do it
 * By BODY of the route: FILE takes one part of the kind DATASET (or MODEL, whatever it is
 * called), MODEL one of MODEL and those of EXTERNAL, JOB all.
 */
PART(MODEL, "model", MODEL)
PART(CALIBRATION, "calibration", DATASET)
PART(DATASET, "dataset", DATASET)
PART(SPEC, "spec", TEXT)
PART(LABELS, "labels", TEXT)
PART(PRIORITY, "priority", TEXT)
PART(FRESH, "fresh", TEXT)
PART(EXTERNAL, "external", EXTERNAL)
PART(EVALUATION, "evaluation", REFUSED)
