/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of the schema's history: step n migrates schema n to the next one;
 * STEP("sql"). A released step is never changed; new steps are added. The column `kind`
 * is an enum store_kind. An error's code is stored as its slug, which is stable.
 */
#define TEXT_BYTES(text) "coalesce(length(CAST(" text " AS BLOB)), 0)"
/* clang-format off */
#define JOB_BYTES(row)                                                                \
    "1024 + " TEXT_BYTES(row "spec") " + " TEXT_BYTES(row "labels") " + " TEXT_BYTES( \
        row "effective_spec") " + " TEXT_BYTES(row "summary") " + " TEXT_BYTES(       \
        row "publish") " + " TEXT_BYTES(row "error_detail")
/* clang-format on */
STEP("CREATE TABLE files("
     "  kind INTEGER NOT NULL, id TEXT NOT NULL, size INTEGER NOT NULL,"
     "  created_at INTEGER NOT NULL, info TEXT, PRIMARY KEY(kind, id)) WITHOUT ROWID;"
     "CREATE TABLE jobs("
     "  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,"
     "  state TEXT NOT NULL, priority INTEGER NOT NULL, attempts INTEGER NOT NULL,"
     "  created_at INTEGER NOT NULL, started_at INTEGER NOT NULL DEFAULT 0,"
     "  ended_at INTEGER NOT NULL DEFAULT 0, model TEXT NOT NULL, calibration TEXT,"
     "  spec TEXT, labels TEXT, result_model TEXT, result_size INTEGER, report TEXT,"
     "  summary TEXT, error_code TEXT, error_kind INTEGER, error_where TEXT,"
     "  error_detail TEXT);"
     "CREATE INDEX jobs_queue ON jobs(state, priority DESC, seq);"
     "CREATE INDEX jobs_result ON jobs(result_model);"
     "CREATE INDEX jobs_report ON jobs(report);")
STEP("ALTER TABLE jobs ADD COLUMN frozen TEXT;"
     "CREATE INDEX jobs_frozen ON jobs(frozen);")
STEP(
    "CREATE TABLE observations("
    "  key TEXT PRIMARY KEY, model TEXT NOT NULL, calibration TEXT, blob TEXT NOT NULL,"
    "  size INTEGER NOT NULL, used_at INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX observations_model ON observations(model);"
    "CREATE INDEX observations_calibration ON observations(calibration);"
    "CREATE INDEX observations_blob ON observations(blob);"
    "CREATE INDEX observations_used ON observations(used_at);"
    "ALTER TABLE jobs ADD COLUMN fresh INTEGER NOT NULL DEFAULT 0;")
STEP("ALTER TABLE jobs ADD COLUMN changes INTEGER NOT NULL DEFAULT 1;"
     "UPDATE jobs SET changes = 2 * attempts + CASE state WHEN 'queued' THEN 1"
     "  WHEN 'running' THEN 2 ELSE 2 + (started_at > 0) END;"
     "ALTER TABLE jobs ADD COLUMN idempotency_key TEXT;"
     "ALTER TABLE jobs ADD COLUMN asked TEXT;"
     "ALTER TABLE jobs ADD COLUMN identity TEXT;"
     "ALTER TABLE jobs ADD COLUMN waits_for TEXT;"
     "ALTER TABLE jobs ADD COLUMN cached_from TEXT;"
     "CREATE UNIQUE INDEX jobs_key ON jobs(idempotency_key)"
     "  WHERE idempotency_key IS NOT NULL;"
     "CREATE INDEX jobs_identity ON jobs(identity) WHERE identity IS NOT NULL;"
     "CREATE INDEX jobs_waits ON jobs(waits_for) WHERE waits_for IS NOT NULL;")
/*
 * kept_from is the time from which retention counts; for a job it is 0 until the job
 * has ended. The record's clock never goes back: when the wall clock was set back and
 * is right again, rows of that time do not count as old. Triggers maintain both
 * columns, whatever statement changes a job.
 */
STEP("CREATE TABLE clock(newest INTEGER NOT NULL);"
     "INSERT INTO clock SELECT unixepoch() * 1000;"
     "ALTER TABLE files ADD COLUMN kept_from INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE jobs ADD COLUMN kept_from INTEGER NOT NULL DEFAULT 0;"
     "UPDATE files SET kept_from = (SELECT newest FROM clock);"
     "UPDATE jobs SET kept_from = (SELECT newest FROM clock) WHERE ended_at > 0;"
     "CREATE INDEX files_kept ON files(kept_from);"
     "CREATE INDEX jobs_kept ON jobs(kept_from) WHERE kept_from > 0;"
     "CREATE TRIGGER file_added AFTER INSERT ON files BEGIN"
     "  UPDATE clock SET newest = max(newest, NEW.created_at);"
     "  UPDATE files SET kept_from = (SELECT newest FROM clock)"
     "  WHERE kind = NEW.kind AND id = NEW.id; END;"
     "CREATE TRIGGER file_used AFTER UPDATE OF kept_from ON files BEGIN"
     "  UPDATE clock SET newest = max(newest, NEW.kept_from); END;"
     "CREATE TRIGGER job_added AFTER INSERT ON jobs BEGIN"
     "  UPDATE clock SET newest = max(newest, NEW.created_at, NEW.ended_at);"
     "  UPDATE files SET kept_from = (SELECT newest FROM clock)"
     "  WHERE kind = 0 AND id = NEW.model;"
     "  UPDATE files SET kept_from = (SELECT newest FROM clock)"
     "  WHERE kind = 1 AND id = NEW.calibration;"
     "  UPDATE jobs SET kept_from = (SELECT newest FROM clock)"
     "  WHERE seq = NEW.seq AND NEW.ended_at > 0; END;"
     "CREATE TRIGGER job_ended AFTER UPDATE OF ended_at ON jobs"
     "  WHEN NEW.ended_at > 0 BEGIN"
     "  UPDATE clock SET newest = max(newest, NEW.ended_at);"
     "  UPDATE files SET kept_from = (SELECT newest FROM clock)"
     "  WHERE kind = 0 AND id = NEW.model;"
     "  UPDATE files SET kept_from = (SELECT newest FROM clock)"
     "  WHERE kind = 1 AND id = NEW.calibration;"
     "  UPDATE jobs SET kept_from = (SELECT newest FROM clock)"
     "  WHERE seq = NEW.seq; END;")
/* The files of a model of several files; the model itself is first. They are deleted
   with the last row that names the model, as stored or as a job's result. */
STEP("CREATE TABLE model_files("
     "  model TEXT NOT NULL, position INTEGER NOT NULL, path TEXT NOT NULL,"
     "  digest TEXT NOT NULL, size INTEGER NOT NULL,"
     "  PRIMARY KEY(model, position)) WITHOUT ROWID;"
     "CREATE INDEX model_files_digest ON model_files(digest);"
     "CREATE TRIGGER file_gone AFTER DELETE ON files WHEN OLD.kind = 0 BEGIN"
     "  DELETE FROM model_files WHERE model = OLD.id"
     "  AND NOT EXISTS (SELECT 1 FROM jobs WHERE result_model = OLD.id); END;"
     "CREATE TRIGGER job_gone AFTER DELETE ON jobs"
     "  WHEN OLD.result_model IS NOT NULL BEGIN"
     "  DELETE FROM model_files WHERE model = OLD.result_model"
     "  AND NOT EXISTS (SELECT 1 FROM jobs WHERE result_model = OLD.result_model)"
     "  AND NOT EXISTS (SELECT 1 FROM files WHERE kind = 0"
     "  AND id = OLD.result_model); END;")
/*
 * effective_spec, observations and wants_gpu follow from a job's model, data and spec,
 * and are decided when it is submitted; see store/derive.h, which has the functions of
 * this step. A job that has ended has no effective spec, because nothing reads it any
 * more.
 */
STEP("ALTER TABLE jobs ADD COLUMN effective_spec TEXT;"
     "ALTER TABLE jobs ADD COLUMN observations TEXT;"
     "ALTER TABLE jobs ADD COLUMN wants_gpu INTEGER NOT NULL DEFAULT 0;"
     "UPDATE jobs SET effective_spec = effective_spec(spec),"
     "  observations = observations_key(spec, model, calibration),"
     "  wants_gpu = wants_gpu(spec, calibration)"
     "  WHERE state IN ('queued', 'running');")
/*
 * Jobs that fetch from remotes, and the outbox of jobs that have ended.
 *
 * jobs.source is shown (JSON), jobs.publish is the list of publications (JSON), and
 * jobs.fetching is 0: nothing is to be fetched, 1: it waits to be fetched, 2: it is being
 * fetched. `fetched` has the files that refs stood for, so that none is fetched twice.
 * `webhooks` are those of the settings, for the triggers. Deliveries are written by
 * triggers, in the transaction that ends the job, whatever statement ends it; one whose
 * event is NULL publishes the job's result. Triggers use json_each() alone: SQLite 3.40
 * refuses its other JSON functions in them.
 */
STEP("ALTER TABLE jobs ADD COLUMN source TEXT;"
     "ALTER TABLE jobs ADD COLUMN publish TEXT;"
     "ALTER TABLE jobs ADD COLUMN fetching INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE jobs ADD COLUMN fetch_attempts INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE jobs ADD COLUMN fetch_due INTEGER NOT NULL DEFAULT 0;"
     "CREATE INDEX jobs_fetching ON jobs(fetch_due) WHERE fetching > 0;"
     "CREATE TABLE fetched("
     "  remote TEXT NOT NULL, ref TEXT NOT NULL, digest TEXT NOT NULL,"
     "  kind INTEGER NOT NULL, id TEXT NOT NULL,"
     "  PRIMARY KEY(remote, ref, digest, kind)) WITHOUT ROWID;"
     "CREATE INDEX fetched_id ON fetched(id);"
     "CREATE TABLE webhooks("
     "  name TEXT PRIMARY KEY, events TEXT NOT NULL, label_key TEXT, label_value TEXT)"
     "  WITHOUT ROWID;"
     "CREATE TABLE deliveries("
     "  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, job TEXT NOT NULL,"
     "  remote TEXT NOT NULL, ref TEXT, event TEXT, publication TEXT,"
     "  state TEXT NOT NULL DEFAULT 'pending', claimed INTEGER NOT NULL DEFAULT 0,"
     "  attempts INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL,"
     "  due_at INTEGER NOT NULL DEFAULT 0, location TEXT, error TEXT);"
     "CREATE INDEX deliveries_job ON deliveries(job);"
     "CREATE INDEX deliveries_due ON deliveries(due_at)"
     "  WHERE state = 'pending' AND claimed = 0;"
     "CREATE TRIGGER file_forgotten AFTER DELETE ON files BEGIN"
     "  DELETE FROM fetched WHERE id = OLD.id AND kind = OLD.kind; END;"
     "CREATE TRIGGER job_forgotten AFTER DELETE ON jobs BEGIN"
     "  DELETE FROM deliveries WHERE job = OLD.id; END;"
     "CREATE TRIGGER job_published AFTER UPDATE OF state ON jobs"
     "  WHEN NEW.state = 'succeeded' AND NEW.publish IS NOT NULL BEGIN"
     "  INSERT OR IGNORE INTO deliveries(id, job, remote, ref, publication, created_at)"
     "  SELECT 'd' || substr(NEW.id, 2) || '-' || one.key, NEW.id,"
     "  (SELECT value FROM json_each(one.value) WHERE key = 'remote'),"
     "  (SELECT value FROM json_each(one.value) WHERE key = 'ref'), one.value,"
     "  NEW.ended_at FROM json_each(NEW.publish) AS one; END;"
     "CREATE TRIGGER job_told AFTER UPDATE OF state ON jobs"
     "  WHEN NEW.state IN ('succeeded', 'failed') BEGIN"
     "  INSERT OR IGNORE INTO deliveries(id, job, remote, event, created_at)"
     "  SELECT 'd' || substr(NEW.id, 2) || '-' || type || '-' || name, NEW.id, name,"
     "  'job.' || type, NEW.ended_at FROM webhooks,"
     "  (SELECT CASE WHEN NEW.state = 'succeeded' THEN 'succeeded'"
     "  WHEN NEW.error_code = 'accuracy' THEN 'rejected' ELSE 'failed' END AS type)"
     "  WHERE instr(events, ',job.' || type || ',') AND (label_key IS NULL"
     "  OR EXISTS (SELECT 1 FROM json_each(NEW.labels)"
     "  WHERE key = label_key AND value = label_value)); END;"
     "CREATE TRIGGER delivery_told AFTER UPDATE OF state ON deliveries"
     "  WHEN NEW.state = 'failed' AND OLD.state = 'pending' AND NEW.event IS NULL BEGIN"
     "  INSERT OR IGNORE INTO deliveries(id, job, remote, event, created_at)"
     "  SELECT NEW.id || '-failed' || NEW.attempts || '-' || name, NEW.job, name,"
     "  'delivery.failed', (SELECT newest FROM clock) FROM webhooks"
     "  WHERE instr(events, ',delivery.failed,') AND (label_key IS NULL"
     "  OR EXISTS (SELECT 1 FROM jobs, json_each(jobs.labels) WHERE jobs.id = NEW.job"
     "  AND key = label_key AND value = label_value)); END;")
/*
 * The versions of models that a hook was told of, or found. The first that sees a version
 * sets the key of its job: a message or a poll. `is_done` is whether the job was added.
 */
STEP("CREATE TABLE hooked("
     "  hook TEXT NOT NULL, model TEXT NOT NULL, version TEXT NOT NULL,"
     "  key TEXT NOT NULL, is_done INTEGER NOT NULL DEFAULT 0,"
     "  PRIMARY KEY(hook, model, version)) WITHOUT ROWID;")
/* `record` has the bytes of all jobs' rows, as they count in storage.max_bytes: those of
   their long texts, and 1 KiB for each row with its indexes. Triggers maintain it. */
/* clang-format off */
STEP("CREATE TABLE record(bytes INTEGER NOT NULL);"
     "INSERT INTO record SELECT coalesce(sum(" JOB_BYTES("") "), 0) FROM jobs;"
     "CREATE TRIGGER job_counted AFTER INSERT ON jobs BEGIN"
     "  UPDATE record SET bytes = bytes + " JOB_BYTES("NEW.") "; END;"
     "CREATE TRIGGER job_recounted AFTER UPDATE OF spec, labels, effective_spec,"
     "  summary, publish, error_detail ON jobs BEGIN"
     "  UPDATE record SET bytes = bytes + (" JOB_BYTES("NEW.") ")"
     "  - (" JOB_BYTES("OLD.") "); END;"
     "CREATE TRIGGER job_uncounted AFTER DELETE ON jobs BEGIN"
     "  UPDATE record SET bytes = bytes - (" JOB_BYTES("OLD.") "); END;")
/* clang-format on */
/* A job without a result is not in the indexes of results, so that adding it writes fewer
   pages. */
STEP("DROP INDEX jobs_result; DROP INDEX jobs_report; DROP INDEX jobs_frozen;"
     "CREATE INDEX jobs_result ON jobs(result_model) WHERE result_model IS NOT NULL;"
     "CREATE INDEX jobs_report ON jobs(report) WHERE report IS NOT NULL;"
     "CREATE INDEX jobs_frozen ON jobs(frozen) WHERE frozen IS NOT NULL;")
/* The bytes of files that jobs have made and that may not be on the disk yet. */
STEP("CREATE TABLE unsynced("
     "  seq INTEGER PRIMARY KEY, id TEXT NOT NULL, text TEXT NOT NULL);")
/* The retention of a job's inputs begins anew when the job comes and when it ends, unless it did
   so in the last tenth of a second: many small jobs of one model write fewer pages. */
/* clang-format off */
#define RENEW(kind_, id_)                                       \
    "  UPDATE files SET kept_from = (SELECT newest FROM clock)" \
    "  WHERE kind = " kind_ " AND id = " id_                    \
    "  AND kept_from + 100 <= (SELECT newest FROM clock);"
STEP("DROP TRIGGER job_added; DROP TRIGGER job_ended;"
     "CREATE TRIGGER job_added AFTER INSERT ON jobs BEGIN"
     "  UPDATE clock SET newest = max(newest, NEW.created_at, NEW.ended_at);"
     RENEW("0", "NEW.model") RENEW("1", "NEW.calibration")
     "  UPDATE jobs SET kept_from = (SELECT newest FROM clock)"
     "  WHERE seq = NEW.seq AND NEW.ended_at > 0; END;"
     "CREATE TRIGGER job_ended AFTER UPDATE OF ended_at ON jobs"
     "  WHEN NEW.ended_at > 0 BEGIN"
     "  UPDATE clock SET newest = max(newest, NEW.ended_at);"
     RENEW("0", "NEW.model") RENEW("1", "NEW.calibration")
     "  UPDATE jobs SET kept_from = (SELECT newest FROM clock)"
     "  WHERE seq = NEW.seq; END;")
/* clang-format on */
/* The list of all tenants' jobs goes by time. */
STEP("CREATE INDEX jobs_created ON jobs(created_at, seq);")
/* The data that a result is judged by, and the model that is its metric. They are inputs as the
   others are. */
/* clang-format off */
STEP("ALTER TABLE jobs ADD COLUMN evaluation TEXT;"
     "ALTER TABLE jobs ADD COLUMN metric TEXT;"
     "DROP TRIGGER job_added; DROP TRIGGER job_ended;"
     "CREATE TRIGGER job_added AFTER INSERT ON jobs BEGIN"
     "  UPDATE clock SET newest = max(newest, NEW.created_at, NEW.ended_at);"
     RENEW("0", "NEW.model") RENEW("1", "NEW.calibration")
     RENEW("0", "NEW.metric") RENEW("1", "NEW.evaluation")
     "  UPDATE jobs SET kept_from = (SELECT newest FROM clock)"
     "  WHERE seq = NEW.seq AND NEW.ended_at > 0; END;"
     "CREATE TRIGGER job_ended AFTER UPDATE OF ended_at ON jobs"
     "  WHEN NEW.ended_at > 0 BEGIN"
     "  UPDATE clock SET newest = max(newest, NEW.ended_at);"
     RENEW("0", "NEW.model") RENEW("1", "NEW.calibration")
     RENEW("0", "NEW.metric") RENEW("1", "NEW.evaluation")
     "  UPDATE jobs SET kept_from = (SELECT newest FROM clock)"
     "  WHERE seq = NEW.seq; END;")
/* clang-format on */
/*
 * A job with several targets has a row of its own, `parent` of a row for each target, and stands in
 * the queue without a place: it waits for itself (waits_for), so that no lane claims it. A trigger
 * has it follow its targets: it runs when the first of them does, and ends when all have ended, as
 * failed where one failed, else as cancelled where one was. Webhooks are told of it alone.
 */
STEP("ALTER TABLE jobs ADD COLUMN parent TEXT;"
     "ALTER TABLE jobs ADD COLUMN target TEXT;"
     "CREATE INDEX jobs_parent ON jobs(parent, state) WHERE parent IS NOT NULL;"
     "CREATE TRIGGER target_changed AFTER UPDATE OF state ON jobs"
     "  WHEN NEW.parent IS NOT NULL BEGIN"
     "  UPDATE jobs SET state = 'running', started_at ="
     "  CASE WHEN NEW.started_at > 0 THEN NEW.started_at ELSE NEW.ended_at END,"
     "  changes = changes + 1 WHERE id = NEW.parent AND state = 'queued'"
     "  AND NEW.state != 'queued' AND EXISTS (SELECT 1 FROM jobs AS one"
     "  WHERE one.parent = NEW.parent AND one.state IN ('queued', 'running'));"
     "  UPDATE jobs SET state = CASE WHEN EXISTS (SELECT 1 FROM jobs AS one"
     "  WHERE one.parent = NEW.parent AND one.state = 'failed') THEN 'failed'"
     "  WHEN EXISTS (SELECT 1 FROM jobs AS one"
     "  WHERE one.parent = NEW.parent AND one.state = 'cancelled') THEN 'cancelled'"
     "  ELSE 'succeeded' END,"
     "  (error_code, error_kind, error_where, error_detail) ="
     "  (SELECT error_code, error_kind, error_where,"
     "  'target ' || target || ': ' || error_detail FROM jobs AS one"
     "  WHERE one.parent = NEW.parent AND one.state = 'failed'"
     "  ORDER BY error_code = 'accuracy', seq LIMIT 1),"
     "  ended_at = NEW.ended_at, waits_for = NULL, effective_spec = NULL,"
     "  changes = changes + 1 WHERE id = NEW.parent AND state IN ('queued', 'running')"
     "  AND NOT EXISTS (SELECT 1 FROM jobs AS one"
     "  WHERE one.parent = NEW.parent AND one.state IN ('queued', 'running')); END;"
     "DROP TRIGGER job_told;"
     "CREATE TRIGGER job_told AFTER UPDATE OF state ON jobs"
     "  WHEN NEW.state IN ('succeeded', 'failed') AND NEW.parent IS NULL BEGIN"
     "  INSERT OR IGNORE INTO deliveries(id, job, remote, event, created_at)"
     "  SELECT 'd' || substr(NEW.id, 2) || '-' || type || '-' || name, NEW.id, name,"
     "  'job.' || type, NEW.ended_at FROM webhooks,"
     "  (SELECT CASE WHEN NEW.state = 'succeeded' THEN 'succeeded'"
     "  WHEN NEW.error_code = 'accuracy' THEN 'rejected' ELSE 'failed' END AS type)"
     "  WHERE instr(events, ',job.' || type || ',') AND (label_key IS NULL"
     "  OR EXISTS (SELECT 1 FROM json_each(NEW.labels)"
     "  WHERE key = label_key AND value = label_value)); END;")
#undef RENEW
#undef JOB_BYTES
#undef TEXT_BYTES
