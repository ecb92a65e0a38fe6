/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that a multipart form may have: PART(NAME, "name", KIND).
 *   MODEL, DATASET  a file, or in a job's form the text of a stored id
 *   TEXT            text of at most BODY_MAX_TEXT bytes
 *   REFUSED         known to the contract, but this version cannot do it
 * A form for one file (BODY of the route: FILE) takes one part of the kinds MODEL and
 * DATASET, whatever it is called.
 */
PART(MODEL, "model", MODEL)
PART(CALIBRATION, "calibration", DATASET)
PART(DATASET, "dataset", DATASET)
PART(SPEC, "spec", TEXT)
PART(LABELS, "labels", TEXT)
PART(PRIORITY, "priority", TEXT)
PART(FRESH, "fresh", TEXT)
PART(EXTERNAL, "external", REFUSED)
PART(EVALUATION, "evaluation", REFUSED)
