/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every setting of the daemon, one row each.
 *   SETTING_TEXT(section, key, default, text)
 *   SETTING_CHOICE(section, key, default, "one or another", text)
 *   SETTING_NUMBER(section, key, default, min, max, UNIT, text)
 * UNIT is COUNT, SECONDS, or BYTES (which takes the suffixes K, M and G).
 *
 * The struct's members, the file's keys, the environment's names (QDQD_SECTION_KEY),
 * --help and the tests expand these rows. A default that depends on the installation
 * comes from daemon/local.mk.
 */
SETTING_TEXT(
    http, listen, "127.0.0.1:8383",
    "HOST:PORT or unix:PATH; only loopback and unix without access tokens; port "
    "0 takes a free one")
SETTING_NUMBER(http, max_body, INT64_C(4) << 30, 1, INT64_MAX, BYTES,
               "largest request body")
SETTING_NUMBER(http, max_header, 16 << 10, 2 << 10, 1 << 20, BYTES,
               "largest head of a request: its first line and its headers")
SETTING_NUMBER(http, connections, 512, 8, 4096, COUNT,
               "connections at the same time; each has a thread. Further ones are told "
               "the daemon's health and nothing else")
SETTING_NUMBER(http, connections_per_address, 256, 1, 4096, COUNT,
               "the same of one address, or of one /64 of IPv6")
SETTING_NUMBER(http, timeout, 60, 1, 3600, SECONDS,
               "a connection that sends and takes nothing for so long is closed")
SETTING_NUMBER(http, header_timeout, 20, 1, 3600, SECONDS,
               "time for the head of a request to come in")
SETTING_NUMBER(http, min_rate, 1 << 10, 0, 1 << 30, BYTES,
               "a body of which less comes a second, over http.timeout, is cut off; 0: "
               "none is")
SETTING_TEXT(http, hosts, "",
             "names by which clients may call this daemon beside that of http.listen, "
             "with commas between; *: any")
SETTING_TEXT(http, tls_cert, "",
             "PEM file of the certificate and its chain; empty: no TLS")
SETTING_TEXT(http, tls_key, "", "PEM file of its key")
SETTING_TEXT(
    auth, tokens, "",
    "file of the access tokens, see qdqd token; empty: \"tokens\" in state.dir. "
    "Without that file none is needed")
SETTING_TEXT(state, dir, QDQD_DEFAULT_STATE_DIR,
             "folder of the database and of models, datasets and reports")
SETTING_NUMBER(retention, jobs, 7 * 86400, 0, INT64_C(4000000000), SECONDS,
               "a job goes so long after its end, with its model, report and spec; "
               "0: never")
SETTING_NUMBER(retention, files, 30 * 86400, 0, INT64_C(4000000000), SECONDS,
               "a model or dataset goes when it was not used for so long; 0: never")
SETTING_NUMBER(storage, max_bytes, 0, 0, INT64_MAX, BYTES,
               "models, datasets and results in all; 0: as many as the disk holds")
SETTING_NUMBER(storage, min_free, 0, 0, INT64_MAX, BYTES,
               "bytes of the disk that stay free; 0: a twentieth of it, 1 GB at most")
SETTING_NUMBER(cache, observations, INT64_C(1) << 30, 0, INT64_MAX, BYTES,
               "what calibrations observed is kept, so much in all; 0: nothing")
SETTING_NUMBER(queue, max, 1000, 1, 1000000, COUNT, "jobs that may wait in the queue")
SETTING_NUMBER(tenants, queue, 0, 0, 1000000, COUNT,
               "jobs of one tenant that may wait; 0: queue.max")
SETTING_NUMBER(tenants, max_bytes, 0, 0, INT64_MAX, BYTES,
               "models, datasets and results of one tenant; 0: storage.max_bytes")
SETTING_NUMBER(tenants, job_timeout, 0, 0, 1000000, SECONDS,
               "time that a job of a tenant may run; 0: workers.job_timeout")
SETTING_NUMBER(workers, count, 1, 1, 256, COUNT, "jobs that run at the same time")
SETTING_NUMBER(workers, threads, 0, 0, 1024, COUNT,
               "threads that run one model; 0: the processors divided by workers.count")
SETTING_NUMBER(workers, max_jobs, 1000, 1, 1000000, COUNT,
               "a worker process is replaced after so many jobs")
SETTING_NUMBER(workers, attempts, 2, 1, 10, COUNT,
               "worker processes that one job may bring down before it fails")
SETTING_NUMBER(workers, memory, 0, 0, INT64_MAX, BYTES,
               "data memory of one worker process (RLIMIT_DATA); 0: no limit")
SETTING_NUMBER(
    workers, cpu_time, 0, 0, 100000000, SECONDS,
    "processor time of all threads that one job, or one piece of short work, "
    "may take; 0: no limit")
SETTING_NUMBER(
    workers, short_timeout, 120, 1, 3600, SECONDS,
    "time to check an upload, to describe a model or to make a plan, also of "
    "a job until it calibrates")
SETTING_NUMBER(workers, job_timeout, 86400, 0, 1000000, SECONDS,
               "time that a job may run in all; 0: no limit")
SETTING_NUMBER(workers, drain_timeout, 30, 0, 86400, SECONDS,
               "time that running jobs get to end after SIGTERM")
SETTING_CHOICE(
    workers, cage, "auto", "auto require off",
    "worker processes lock themselves in (Landlock, seccomp): as far as this "
    "kernel can, or not at all without all of it, or never")
SETTING_TEXT(engine, runtime, QDQD_DEFAULT_RUNTIME,
             "path of ONNX Runtime's library; empty: models are never run")
SETTING_TEXT(engine, cases, QDQD_DEFAULT_CASES,
             "folder of the operator's insertion cases and layer support (*.lua); "
             "empty: the library's alone")
