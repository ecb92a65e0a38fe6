/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every setting of the daemon, one row each.
 *   SETTING_TEXT(section, key, default, RELOAD, text)
 *   SETTING_CHOICE(section, key, default, "one or another", RELOAD, text)
 *   SETTING_NUMBER(section, key, default, min, max, UNIT, RELOAD, text)
 *
 * A limit of the engine is a row of qdq/limits.h and becomes a setting here.
 *
 * UNIT is COUNT, SECONDS, or BYTES (which takes the suffixes K, M and G). RELOAD is NOW
 * where SIGHUP applies a new value, and START where the next start does. Only numbers
 * can be NOW, because all threads read settings at all times.
 *
 * The struct's members, the file's keys, the environment's names (QDQD_SECTION_KEY),
 * --help, etc/qdqd.conf, the manual page and the tests expand these rows. Defaults that
 * depend on the installation come from daemon/local.mk.
 */
SETTING_TEXT(http, listen, "127.0.0.1:8383", START,
             "Address to listen on: HOST:PORT, [HOST]:PORT or unix:PATH (mode 0660)."
             " An address that other machines can reach needs access tokens (qdqd "
             "token add). Port 0 selects a free port. A socket that systemd has "
             "opened replaces this setting.")
SETTING_NUMBER(http, max_body, INT64_C(4) << 30, 1, INT64_MAX, BYTES, NOW,
               "Largest body of a request.")
SETTING_NUMBER(http, max_header, 16 << 10, 2 << 10, 1 << 20, BYTES, START,
               "Largest head of a request, which is its first line and its headers.")
SETTING_NUMBER(
    http, connections, 512, 8, 4096, COUNT, START,
    "Most connections at the same time; each has a thread. Further connections "
    "may only ask for the daemon's health.")
SETTING_NUMBER(http, connections_per_address, 256, 1, 4096, COUNT, NOW,
               "Most connections at the same time from one address, or from one /64 of"
               " IPv6.")
SETTING_NUMBER(http, timeout, 60, 1, 3600, SECONDS, START,
               "The daemon closes a connection that neither sends nor receives for "
               "this long.")
SETTING_NUMBER(http, header_timeout, 20, 1, 3600, SECONDS, NOW,
               "Longest time for the head of a request to arrive.")
SETTING_NUMBER(http, min_rate, 1 << 10, 0, 1 << 30, BYTES, NOW,
               "Lowest number of bytes per second of a body, measured over "
               "http.timeout. The daemon closes a connection that sends fewer. 0: no "
               "lowest rate.")
SETTING_TEXT(http, hosts, "", START,
             "Further names of this daemon, separated by commas, beside that of "
             "http.listen and those of this machine; *: any name. A request with "
             "another name in Host or Origin is refused.")
SETTING_TEXT(http, tls_cert, "", START,
             "PEM file of the certificate and its chain; empty: no TLS. SIGHUP makes"
             " the daemon read the file again.")
SETTING_TEXT(http, tls_key, "", START,
             "PEM file of the certificate's key. SIGHUP makes the daemon read the "
             "file again.")
SETTING_CHOICE(http, ui, "on", "on off", START,
               "Page for a browser at /ui: on or off. The page itself needs no access "
               "token; the data that it shows do.")
SETTING_TEXT(auth, tokens, "", START,
             "File of the access tokens, which qdqd token writes; empty: \"tokens\" in"
             " state.dir, or rows where store.url names a database. Where the file "
             "does not exist, requests need no token. The"
             " daemon reads it again whenever it changes.")
SETTING_TEXT(state, dir, QDQD_DEFAULT_STATE_DIR, START,
             "Folder of the database and of models, datasets and reports (mode "
             "0700).")
SETTING_TEXT(store, url, "", START,
             "Database of the record: postgresql://USER@HOST:PORT/NAME, which several"
             " daemons share; empty: SQLite, in state.dir. A password stands in the"
             " file of PGPASSFILE, or in the URL, which is printed without it.")
SETTING_TEXT(store, direct_url, "", START,
             "The same database without a pooler, for migrations and hints between"
             " daemons, where store.url goes through pgbouncer; empty: store.url, and"
             " no hints.")
SETTING_NUMBER(cluster, lease, 15, 3, 3600, SECONDS, START,
               "A running job of a daemon that has not been heard of for this long is"
               " run by another one, where several share a record. A daemon renews its"
               " leases at a third of this time.")
SETTING_TEXT(
    signing, key, "", START,
    "File of the key that signs results: a private key on the curve P-256 in PEM,"
    " without a password, which nobody but the daemon's user can read (mode"
    " 0600); or the URI of a key in a token (pkcs11:...); empty: nothing is signed. A"
    " file that replaces it takes effect at once.")
SETTING_TEXT(signing, certificate, "", START,
             "PEM file of the certificates of signing.key, the key's own first, where"
             " those who verify know an authority instead of the key; empty: they know"
             " the key.")
SETTING_NUMBER(retention, jobs, 7 * 86400, 0, INT64_C(4000000000), SECONDS, NOW,
               "A job is removed this long after its end, with its model, report and "
               "spec; 0: never. The data of an unfinished job is never removed.")
SETTING_NUMBER(retention, files, 30 * 86400, 0, INT64_C(4000000000), SECONDS, NOW,
               "A model or dataset is removed when it was not used for this long; 0: "
               "never. It is used when it is stored again, and when a job that names "
               "it is sent or ends.")
SETTING_NUMBER(
    retention, leftovers, 86400, 0, INT64_C(4000000000), SECONDS, NOW,
    "A stored file that no record names, which a crash or an older database "
    "leaves, is removed this long after a start that found it. The log names "
    "it at the start and at its end.")
SETTING_NUMBER(storage, scrub_rate, 4 << 20, 0, INT64_C(1) << 40, BYTES, NOW,
               "Bytes per second of stored files that are read and checked in the "
               "background, once a day; 0: none. Damaged files are set aside in the "
               "folder \"damaged\".")
SETTING_NUMBER(storage, max_bytes, 0, 0, INT64_MAX, BYTES, NOW,
               "Most bytes of models, datasets, results and observations together; 0: "
               "as many as the disk holds. To stay below, the daemon removes the "
               "oldest ended jobs and then the files that were not used for longest. "
               "Where that is not enough it refuses a request with 507.")
SETTING_NUMBER(storage, min_free, 0, 0, INT64_MAX, BYTES, NOW,
               "Bytes of the disk that stay free, by the same means; 0: a twentieth of"
               " the disk, at most 1 GB.")
SETTING_TEXT(
    blobs, url, "", START,
    "Place of models, datasets, results and observations: s3://BUCKET or "
    "s3://BUCKET/PREFIX; empty: files in state.dir. With a bucket the files in "
    "state.dir are a cache.")
SETTING_TEXT(blobs, endpoint, "", START,
             "URL of the S3 server of blobs.url, without the bucket; empty: that of "
             "Amazon in blobs.region.")
SETTING_TEXT(blobs, region, "us-east-1", START, "Region of the bucket of blobs.url.")
SETTING_TEXT(blobs, credentials, "", START,
             "AWS credentials file of the bucket of blobs.url, which others cannot "
             "read; empty: requests are not signed. Its changes apply at once.")
SETTING_NUMBER(
    blobs, cache, INT64_C(20) << 30, 0, INT64_MAX, BYTES, NOW,
    "Most bytes of the cache of blobs.url, over all tenants. Files that were "
    "not used for longest are removed first, and none that is in use.")
SETTING_NUMBER(cache, observations, INT64_C(1) << 30, 0, INT64_MAX, BYTES, NOW,
               "Most bytes of observations of calibrations, which later jobs of the "
               "same model and data reuse. Those that were used least recently are "
               "removed first; 0: none are kept.")
SETTING_NUMBER(queue, max, 1000, 1, 1000000, COUNT, NOW,
               "Most jobs that wait; further jobs are refused with 429.")
SETTING_NUMBER(tenants, queue, 0, 0, 1000000, COUNT, NOW,
               "Most jobs of each tenant that wait; 0: queue.max. A tenant's access "
               "tokens may state other limits (qdqd token add --queue, --max-bytes, "
               "--job-timeout).")
SETTING_TEXT(tenants, signed_models, "", START,
             "Tenants whose jobs take models only from remotes that have signers, with "
             "commas between; -: the tenant without a name; *: all; empty: none.")
SETTING_NUMBER(tenants, max_bytes, 0, 0, INT64_MAX, BYTES, NOW,
               "Most bytes of models, datasets, results and observations of each "
               "tenant; 0: storage.max_bytes.")
SETTING_NUMBER(tenants, job_timeout, 0, 0, 1000000, SECONDS, NOW,
               "Longest time that a job of a tenant may run, where that is less than "
               "workers.job_timeout; 0: workers.job_timeout.")
SETTING_NUMBER(workers, count, 1, 1, 256, COUNT, START,
               "Jobs that run at the same time, each in a process of its own.")
SETTING_NUMBER(workers, threads, 0, 0, 1024, COUNT, NOW,
               "Threads that run one model; 0: the processors divided by "
               "workers.count. A change affects worker processes that start "
               "afterwards.")
SETTING_NUMBER(workers, max_jobs, 1000, 1, 1000000, COUNT, NOW,
               "A worker process is replaced after this many jobs.")
SETTING_NUMBER(workers, attempts, 2, 1, 10, COUNT, NOW,
               "A job fails after this many worker processes died while they ran it.")
SETTING_NUMBER(workers, cpu_time, 0, 0, 100000000, SECONDS, NOW,
               "Most processor time, over all threads, of one job or one piece of "
               "short work; 0: no limit.")
SETTING_NUMBER(workers, memory, 0, 0, INT64_MAX, BYTES, NOW,
               "Most data memory of one worker process (RLIMIT_DATA); 0: no limit. A "
               "change affects worker processes that start afterwards.")
SETTING_NUMBER(workers, short_timeout, 120, 1, 3600, SECONDS, NOW,
               "Longest time to check an upload, to describe a model or to make a "
               "plan, also for the part of a job before its calibration, and for one "
               "answer of OpenVINO.")
SETTING_NUMBER(
    workers, short_count, 8, 2, 64, COUNT, START,
    "Most worker processes for short work (uploads, model descriptions, plans) "
    "at the same time. Two are kept; the others run only while several "
    "tenants have short work. One tenant has at most two.")
SETTING_NUMBER(workers, job_timeout, 21600, 0, 1000000, SECONDS, NOW,
               "Longest time that a job may run; 0: no limit.")
SETTING_NUMBER(workers, drain_timeout, 30, 0, 86400, SECONDS, NOW,
               "Time for running jobs to end after SIGTERM; then they go back to the "
               "queue.")
SETTING_CHOICE(workers, cage, "auto", "auto require off", START,
               "Worker processes confine themselves before they read anything from "
               "clients: they can reach no path, socket, program or other process "
               "(Landlock, seccomp). auto: as far as this kernel supports it, and the "
               "log says which part is missing; require: refuse all work unless the "
               "confinement is complete; off: never.")
#define LIMIT(name, def, min, max, unit, text)                           \
    SETTING_NUMBER(limits, name, def, min, max, unit, NOW,               \
                   text " A change affects worker processes that start " \
                        "afterwards; a larger value is 422 limit_exceeded.")
QDQ_LIMITS(LIMIT)
#undef LIMIT
SETTING_TEXT(engine, runtime, QDQ_ORT_LIBRARY, START,
             "Path of ONNX Runtime's library; empty: models are never run.")
SETTING_TEXT(engine, openvino, QDQ_OPENVINO_LIBRARY, START,
             "Path of OpenVINO's C library (libopenvino_c.so.*), by which results for "
             "target openvino are judged; empty: they are not.")
SETTING_TEXT(gpu, devices, "", START,
             "GPUs that jobs may use, numbered as CUDA does and separated by commas "
             "(\"0,1\"); each serves one job at a time. Empty: none. GPUs also need an"
             " ONNX Runtime that is built for CUDA.")
SETTING_TEXT(gpu, module, QDQD_DEFAULT_CUDA_MODULE, START,
             "Path of the CUDA module, which is loaded where gpu.devices is set.")
SETTING_TEXT(engine, cases, QDQD_DEFAULT_CASES, START,
             "Folder of the operator's insertion cases and layer support (*.lua), "
             "which every job can name; empty: only the library's. A worker process "
             "reads the files when it starts, so restart the daemon after a change. "
             "qdqd --check-config reports mistakes in them.")
SETTING_CHOICE(log, format, "text", "text json", START,
               "Format of the log's lines: key=value, or one JSON object each.")
SETTING_CHOICE(log, requests, "all", "all errors none", START,
               "Requests that have a line in the log: all, only those that were "
               "refused or failed, or none. Requests to /healthz, /readyz and /metrics"
               " never have one.")
