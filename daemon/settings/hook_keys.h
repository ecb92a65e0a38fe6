/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every key of a section [hook NAME], one row each:
 *   HOOK_TEXT(key, default, text)
 *   HOOK_CHOICE(key, default, "one or another", text)
 *   HOOK_NUMBER(key, default, min, max, UNIT, text)
 *
 * All keys can change at SIGHUP.
 */
HOOK_TEXT(tenant, "", "The tenant whose jobs they are; empty: the one without a name.")
HOOK_CHOICE(signature, "standard", "standard mlflow",
            "How a message is signed: standard (Standard Webhooks) or mlflow "
            "(X-MLflow-Signature).")
HOOK_TEXT(
    secret, "",
    "File with the secret of the signatures (mode 0600). Must be given, unless poll "
    "is; without it every message is refused.")
HOOK_TEXT(remote, "",
          "The remote that has the models, and that gets the results. Must be given.")
HOOK_TEXT(
    models, "",
    "Names of registered models, with commas between; * stands for any text. Must be "
    "given.")
HOOK_TEXT(spec, "", "File with the spec of the jobs; empty: the default spec.")
HOOK_TEXT(calibration, "",
          "Calibration data of the jobs: the id sha256:... of a stored dataset, or "
          "REMOTE:REF; empty: none.")
HOOK_TEXT(
    publish, "",
    "Where the results go, in the remote's notation, with {name} and {version} for "
    "those of the model, for example models:/{name}-int8@challenger. Must be "
    "given.")
HOOK_NUMBER(poll, 0, 0, 86400, SECONDS,
            "A remote of kind mlflow is asked for new versions this often; 0: only "
            "messages count.")
