/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every setting of the daemon, one row each.
 *   SETTING_TEXT(section, key, default, RELOAD, text)
 *   SETTING_CHOICE(section, key, default, "one or another", RELOAD, text)
 *   SETTING_NUMBER(section, key, default, min, max, UNIT, RELOAD, text)
 * A limit of the engine is a row of qdq/limits.h, which becomes a setting here.
 *
 * UNIT is COUNT, SECONDS, or BYTES (which takes the suffixes K, M and G). RELOAD is NOW
 * where SIGHUP makes a new value hold, START where the next start does; numbers alone can
 * be NOW, because those are read by all threads at all times.
 *
 * The struct's members, the file's keys, the environment's names (QDQD_SECTION_KEY),
 * --help, etc/qdqd.conf, the manual page and the tests expand these rows. A default that
 * depends on the installation comes from daemon/local.mk.
 */
SETTING_TEXT(
    http, listen, "127.0.0.1:8383", START,
    "HOST:PORT, [HOST]:PORT or unix:PATH (mode 0660). Others than this machine "
    "are let in only when there are access tokens (qdqd token add). Port 0 "
    "takes a free one. A socket that systemd has opened is taken instead.")
SETTING_NUMBER(http, max_body, INT64_C(4) << 30, 1, INT64_MAX, BYTES, NOW,
               "Largest request body.")
SETTING_NUMBER(http, max_header, 16 << 10, 2 << 10, 1 << 20, BYTES, START,
               "Largest head of a request: its first line and its headers.")
SETTING_NUMBER(
    http, connections, 512, 8, 4096, COUNT, START,
    "Connections at the same time; each has a thread. Further ones are told the "
    "daemon's health and nothing else.")
SETTING_NUMBER(http, connections_per_address, 256, 1, 4096, COUNT, NOW,
               "The same of one address, or of one /64 of IPv6.")
SETTING_NUMBER(http, timeout, 60, 1, 3600, SECONDS, START,
               "A connection that sends and takes nothing for so long is closed.")
SETTING_NUMBER(http, header_timeout, 20, 1, 3600, SECONDS, NOW,
               "Time for the head of a request to come in.")
SETTING_NUMBER(http, min_rate, 1 << 10, 0, 1 << 30, BYTES, NOW,
               "A body of which less comes a second, over http.timeout, is cut off; 0: "
               "none is.")
SETTING_TEXT(http, hosts, "", START,
             "Names by which clients may call this daemon beside that of http.listen "
             "and of this machine, with commas between; *: any. Another in Host or "
             "Origin is refused.")
SETTING_TEXT(http, tls_cert, "", START,
             "PEM file of the certificate, with its chain; empty: no TLS. SIGHUP has "
             "the file read again.")
SETTING_TEXT(http, tls_key, "", START, "PEM file of its key, which is read again, too.")
SETTING_TEXT(auth, tokens, "", START,
             "File of the access tokens, which qdqd token writes; empty: \"tokens\" in "
             "state.dir. Where there is no such file none is needed. It is read again "
             "whenever it changes.")
SETTING_TEXT(state, dir, QDQD_DEFAULT_STATE_DIR, START,
             "Folder of the database and of models, datasets and reports (mode 0700).")
SETTING_NUMBER(
    retention, jobs, 7 * 86400, 0, INT64_C(4000000000), SECONDS, NOW,
    "A job goes so long after its end, with its model, report and spec; 0: never. What "
    "a job needs that has not ended never goes.")
SETTING_NUMBER(retention, files, 30 * 86400, 0, INT64_C(4000000000), SECONDS, NOW,
               "A model or dataset goes when it was not used for so long; 0: never. "
               "Storing it again is a use, and a job that is sent or ends.")
SETTING_NUMBER(
    storage, max_bytes, 0, 0, INT64_MAX, BYTES, NOW,
    "Models, datasets, results and what calibrations observed, in all; 0: as many as "
    "the disk holds. For what comes beyond that the oldest ended jobs go, then the "
    "files that were not used for longest; where that is not enough it is refused with "
    "507.")
SETTING_NUMBER(storage, min_free, 0, 0, INT64_MAX, BYTES, NOW,
               "Bytes of the disk that stay free, in the same way; 0: a twentieth of "
               "the disk, 1 GB at most.")
SETTING_NUMBER(
    cache, observations, INT64_C(1) << 30, 0, INT64_MAX, BYTES, NOW,
    "What calibrations observed is kept, so much in all: a later job of the same model "
    "and data takes it from there. What was used least recently goes first; 0 keeps "
    "nothing.")
SETTING_NUMBER(queue, max, 1000, 1, 1000000, COUNT, NOW,
               "Jobs that may wait; more are refused with 429.")
SETTING_NUMBER(tenants, queue, 0, 0, 1000000, COUNT, NOW,
               "Jobs that may wait of each tenant that an access token names; 0: "
               "queue.max. A tenant's tokens may state other limits (qdqd token add "
               "--queue, --max-bytes, --job-timeout).")
SETTING_NUMBER(tenants, max_bytes, 0, 0, INT64_MAX, BYTES, NOW,
               "Bytes of models, datasets, results and what calibrations observed of "
               "each; 0: storage.max_bytes.")
SETTING_NUMBER(tenants, job_timeout, 0, 0, 1000000, SECONDS, NOW,
               "Time that a job of theirs may run in all, where that is less than "
               "workers.job_timeout; 0: that.")
SETTING_NUMBER(workers, count, 1, 1, 256, COUNT, START,
               "Jobs that run at the same time, each in a process of its own.")
SETTING_NUMBER(
    workers, threads, 0, 0, 1024, COUNT, NOW,
    "Threads that run one model; 0: the processors divided by workers.count. For "
    "processes that are started from then on.")
SETTING_NUMBER(workers, max_jobs, 1000, 1, 1000000, COUNT, NOW,
               "A worker process is replaced after so many jobs.")
SETTING_NUMBER(workers, attempts, 2, 1, 10, COUNT, NOW,
               "Worker processes that one job may bring down before it fails.")
SETTING_NUMBER(workers, cpu_time, 0, 0, 100000000, SECONDS, NOW,
               "Processor time of all threads that one job, or one piece of short "
               "work, may take; 0: no limit.")
SETTING_NUMBER(workers, memory, 0, 0, INT64_MAX, BYTES, NOW,
               "Data memory of one worker process (RLIMIT_DATA); 0: no limit. For "
               "processes that are started from then on.")
SETTING_NUMBER(
    workers, short_timeout, 120, 1, 3600, SECONDS, NOW,
    "Time to check an upload, to describe a model or to make a plan, also of a job "
    "until it calibrates.")
SETTING_NUMBER(workers, job_timeout, 86400, 0, 1000000, SECONDS, NOW,
               "Time that a job may run in all; 0: no limit.")
SETTING_NUMBER(workers, drain_timeout, 30, 0, 86400, SECONDS, NOW,
               "Time that running jobs get to end after SIGTERM; then they go back to "
               "the queue.")
SETTING_CHOICE(
    workers, cage, "auto", "auto require off", START,
    "Worker processes lock themselves in before they look at what was sent: no path, "
    "socket, program or other process is within their reach (Landlock, seccomp). auto: "
    "as far as this kernel can, with a line in the log about what is missing; require: "
    "no work without all of it; off: never.")
#define LIMIT(name, def, min, max, unit, text)                               \
    SETTING_NUMBER(limits, name, def, min, max, unit, NOW,                   \
                   text " Holds for worker processes that are started from " \
                        "then on; more is 422 limit_exceeded.")
QDQ_LIMITS(LIMIT)
#undef LIMIT
SETTING_TEXT(engine, runtime, QDQD_DEFAULT_RUNTIME, START,
             "Path of ONNX Runtime's library; empty: models are never run.")
SETTING_TEXT(gpu, devices, "", START,
             "GPUs that jobs may run on, as CUDA counts them, with commas between "
             "(\"0,1\"); each is one job's at a time. Empty: none. It takes an ONNX "
             "Runtime that is built for CUDA, too.")
SETTING_TEXT(gpu, module, QDQD_DEFAULT_CUDA_MODULE, START,
             "Path of the CUDA module, which is looked at where there are gpu.devices.")
SETTING_TEXT(engine, cases, QDQD_DEFAULT_CASES, START,
             "Folder of insertion cases and layer support of your own (*.lua), for "
             "every job that names them; empty: the library's alone. Files are read "
             "when a worker process starts, so restart the daemon after a change; qdqd "
             "--check-config tells whether they are good.")
SETTING_CHOICE(log, format, "text", "text json", START,
               "How lines of the log are written: key=value, or one JSON object each.")
SETTING_CHOICE(log, requests, "all", "all errors none", START,
               "Which requests have a line in the log: all, those that were refused or "
               "failed, or none. Those of /healthz, /readyz and /metrics never have.")
