/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the schema came to be: step n makes of schema n the next one; STEP("sql"). What was
 * released is never changed, only added to. kind: enum store_kind. The error's code is
 * its slug, which is stable.
 */
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
 * kept_from: from when on retention counts; of a job 0 until it has ended. The record's
 * clock never goes back, so what happens after the wall clock was set back is not taken
 * for old once that is right again. Triggers keep both, whatever changes a job.
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
/*
 * The files of a model of several, the model first. They go with the last that names the
 * model, as stored or as what a job made.
 */
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
 * effective_spec, observations, wants_gpu: what follows from a job's model, data and spec,
 * decided when it is submitted; see store/derive.h, which has the functions of this step.
 * A job that has ended has no effective spec: nobody reads it any more.
 */
STEP("ALTER TABLE jobs ADD COLUMN effective_spec TEXT;"
     "ALTER TABLE jobs ADD COLUMN observations TEXT;"
     "ALTER TABLE jobs ADD COLUMN wants_gpu INTEGER NOT NULL DEFAULT 0;"
     "UPDATE jobs SET effective_spec = effective_spec(spec),"
     "  observations = observations_key(spec, model, calibration),"
     "  wants_gpu = wants_gpu(spec, calibration)"
     "  WHERE state IN ('queued', 'running');")
