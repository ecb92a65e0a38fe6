/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every message between daemon and worker, or daemon and carrier, one row each:
 *   MESSAGE(NAME, body bytes, most bytes of text, fewest and most descriptors, most of
 *           the model's other files, whose descriptors stand behind those)
 * Paths and text follow the body. Requests go to the worker, answers come back; a request is
 * answered by any number of PROGRESS and then one RESULT, REJECTED or FAILED. REJECTED is
 * of QUANTIZE alone: model and report are written, and the model is not what the spec's
 * accept asks for; the body says in what.
 *
 *   CHECK_MODEL    is this a model?       model                   RESULT: empty
 *   CHECK_DATASET  is this a dataset?     dataset                 RESULT: its info
 *   INFO           what is in the model?  model                   RESULT: its info
 *   PLAN           dry run; text: spec    model                   RESULT: the plan
 *   QUANTIZE       do it; text: spec      model, output, report, frozen
 *                                      spec, observations, times, journal, data,
 *                                      [dataset], [data to judge by], [metric]
 *                                                                 RESULT: the summary
 *     of a worker with a GPU, between its steps, before the last answer:
 *   GPU_WANTED     is the GPU wanted?                             GPU: whether
 *   GPU_LENT       it is lent                                     GPU: it is back
 *     of any worker:
 *   READY          first of all: it is in its cage and serves requests from now on
 *   NOTE           something is missing; text: why; before READY or within work
 *   FILE_WANTED    a temporary file is needed                     FILE: [it]
 *   JUDGE_WANTED   a judging process is needed; text: the runtime JUDGE: [its socket]; text: why not,
 *                                       or how the one before it crashed
 *   RUNTIME        which ONNX Runtime?                            RESULT: the backend
 *   DEVICE         does the process's GPU work?                   RESULT: backend, device
 *   CASES, LAYERS  what is there to choose from?                  RESULT: the listing
 *     to a judging process, which sends READY and NOTE, too:
 *   SERVE          serve this socket to its end: [socket]         no answer
 *   RUNTIME        which version is it?                           RESULT: the backend
 *     of a carrier, whose texts are lists of strings with a '\0' behind each:
 *   FETCH          what does a ref name?  secrets                 SOURCE: resolved ref,
 *                                       digest, and of each file role, size and name
 *   PULL           these files of it, by number: a file for each  RESULT: empty
 *   PUBLISH        text: files, tags, figures; secrets, files     RESULT: the place
 *   DELIVER        text: an event         secrets                 RESULT: empty
 *   NEWS           text: names of models  secrets                 RESULT: of each new version
 *                                       name, version, time, and whether it is ours
 *   BUCKET         the bucket of blobs    secrets                 RESULT: empty
 *     and then any number of:
 *   OBJECT         store, fetch, find or remove one; text: the token of a list   [file]
 *                                       RESULT: whether it was there; of a list the next
 *                                       token, the time, and of each key, size and time
 *     of the signer, whose file is that of the key:
 *   SIGN           text: a statement      key, [certificates]     RESULT: its signed form
 *     from a carrier, within its work:
 *   CARRIED        bytes so far
 *   RETRY_AFTER    before FAILED: the seconds that the remote asked to wait
 */
MESSAGE(CHECK_MODEL, 0, 0, 1, 1, MESSAGE_MAX_FILES)
MESSAGE(CHECK_DATASET, 0, 0, 1, 1, 0)
MESSAGE(INFO, 0, 0, 1, 1, MESSAGE_MAX_FILES)
MESSAGE(PLAN, 0, MESSAGE_MAX_SPEC, 1, 1, MESSAGE_MAX_FILES)
MESSAGE(QUANTIZE, sizeof(struct message_quantize), MESSAGE_MAX_SPEC, 8, 11,
        MESSAGE_MAX_FILES)
MESSAGE(RUNTIME, 0, 0, 0, 0, 0)
MESSAGE(DEVICE, 0, 0, 0, 0, 0)
MESSAGE(CASES, 0, 0, 0, 0, 0)
MESSAGE(LAYERS, 0, 0, 0, 0, 0)
MESSAGE(FETCH, sizeof(struct message_fetch), 0, 0, MESSAGE_N_SECRETS, 0)
MESSAGE(SOURCE, 0, MESSAGE_MAX_LIST, 0, 0, 0)
MESSAGE(PULL, 0, MESSAGE_MAX_LIST, 1, 1 + MESSAGE_MAX_FILES, 0)
MESSAGE(PUBLISH, sizeof(struct message_publish), MESSAGE_MAX_LIST, 1,
        MESSAGE_N_SECRETS + MESSAGE_MAX_PUBLISHED, 0)
MESSAGE(DELIVER, sizeof(struct message_deliver), MESSAGE_MAX_SPEC, 0, MESSAGE_N_SECRETS,
        0)
MESSAGE(NEWS, sizeof(struct message_news), MESSAGE_MAX_SPEC, 0, MESSAGE_N_SECRETS, 0)
MESSAGE(BUCKET, sizeof(struct message_bucket), 0, 0, MESSAGE_N_SECRETS, 0)
MESSAGE(OBJECT, sizeof(struct message_object), 4096, 0, 1, 0)
MESSAGE(SIGN, sizeof(struct message_sign), MESSAGE_MAX_RESULT, 1, 2, 0)
MESSAGE(CARRIED, sizeof(struct message_carried), 0, 0, 0, 0)
MESSAGE(RETRY_AFTER, sizeof(struct message_retry), 0, 0, 0, 0)
MESSAGE(GPU_WANTED, 0, 0, 0, 0, 0)
MESSAGE(GPU_LENT, 0, 0, 0, 0, 0)
MESSAGE(GPU, sizeof(struct message_gpu), 0, 0, 0, 0)
MESSAGE(READY, 0, 0, 0, 0, 0)
MESSAGE(NOTE, sizeof(struct message_note), MESSAGE_MAX_NOTE, 0, 0, 0)
MESSAGE(FILE_WANTED, 0, 0, 0, 0, 0)
MESSAGE(FILE, 0, 0, 0, 1, 0)
MESSAGE(JUDGE_WANTED, sizeof(struct message_judge_wanted), MESSAGE_MAX_RUNTIME, 0, 0, 0)
MESSAGE(JUDGE, 0, MESSAGE_MAX_NOTE, 0, 1, 0)
MESSAGE(SERVE, 0, 0, 1, 1, 0)
MESSAGE(PROGRESS, sizeof(struct message_progress), 0, 0, 0, 0)
MESSAGE(RESULT, 0, MESSAGE_MAX_RESULT, 0, 0, 0)
MESSAGE(REJECTED, sizeof(struct api_problem), MESSAGE_MAX_RESULT, 0, 0, 0)
MESSAGE(FAILED, sizeof(struct api_problem), 0, 0, 0, 0)
