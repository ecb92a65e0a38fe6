/* SPDX-License-Identifier: Apache-2.0 */
/* Every SQL statement of the store, one row each: STATEMENT(NAME, "sql"). */
STATEMENT(BEGIN, BEGIN_SQL)
STATEMENT(COMMIT, "COMMIT")
STATEMENT(ROLLBACK, "ROLLBACK")
/* clang-format off */
STATEMENT(FILE_ADD,
          "INSERT INTO @files(kind, id, size, created_at, info)"
          " VALUES(?1, ?2, ?3, " MOMENT("?4") ", ?5) ON CONFLICT DO NOTHING")
/* clang-format on */
STATEMENT(FILE_GET,
          "SELECT id, size, created_at,"
          " coalesce(info, " MODEL_FILES_OF(
              "id") "), kept_from, 0 FROM @files"
                    " WHERE kind = ?1 AND id = ?2"
                    " UNION ALL SELECT result_model, result_size, ended_at,"
                    " " MODEL_FILES_OF("result_model") ", kept_from, 1"
                                                       " FROM @jobs WHERE ?1 = 0 AND "
                                                       "result_model = ?2 LIMIT 1")
STATEMENT(MODEL_FILE_ADD,
          "INSERT INTO @model_files(model, position, path, digest, size)"
          " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING")
STATEMENT(MODEL_FILES, "SELECT path, digest, size FROM @model_files WHERE model = ?1"
                       " ORDER BY position")
/* The file is stored again: its retention begins anew. */
/* clang-format off */
STATEMENT(FILE_USE,
          "UPDATE @files SET kept_from = " RECORD_TIME("?3")
          " WHERE kind = ?1 AND id = ?2")
/* clang-format on */
STATEMENT(FILE_REMOVE, "DELETE FROM @files WHERE kind = ?1 AND id = ?2")
/* Keeps the row of a file until the transaction ends. */
STATEMENT(FILE_LOCK, "SELECT 1 FROM @files WHERE kind = ?1 AND id = ?2" LOCK_ROW)
STATEMENT(JOB_LOCK, "SELECT 1 FROM @jobs WHERE id = ?1" LOCK_ROW)
/* Makes two requests of one identity pass one after the other, so that the second joins the
   job of the first. */
STATEMENT(IDENTITY_LOCK, "SELECT " LOCK_NAME("?1"))
STATEMENT(FILE_USED, "SELECT 1 FROM @jobs WHERE state IN ('queued', 'running')"
                     " AND (CASE ?1 WHEN 0 THEN model WHEN 1 THEN calibration END = ?2"
                     " OR CASE ?1 WHEN 0 THEN metric WHEN 1 THEN evaluation END = ?2)"
                     " LIMIT 1")
/* All places that name blobs which were stored before their row was added;
   store/backup.c lists the same places. */
#define BLOB_STORED_SQL                                                     \
    "SELECT 1 FROM @files WHERE kind IN (0, 1, 2) AND id = ?1"              \
    " UNION ALL SELECT 1 FROM @jobs WHERE result_model = ?1 OR report = ?1" \
    " OR frozen = ?1"                                                       \
    " UNION ALL SELECT 1 FROM @observations WHERE blob = ?1"                \
    " UNION ALL SELECT 1 FROM @model_files WHERE digest = ?1"
STATEMENT(BLOB_STORED, BLOB_STORED_SQL " LIMIT 1")
/* A job's inputs are needed until it ends, also when they were removed meanwhile. */
STATEMENT(BLOB_NEEDED, BLOB_STORED_SQL
          " UNION ALL SELECT 1 FROM @jobs WHERE state IN ('queued', 'running')"
          " AND (model = ?1 OR calibration = ?1 OR metric = ?1 OR evaluation = ?1)"
          " LIMIT 1")
/* clang-format off */
STATEMENT(OBSERVATIONS_USE,
          "UPDATE @observations SET used_at = " MOMENT("?2")
          " WHERE key = ?1 RETURNING blob")
/* clang-format on */
/* Inserts nothing when the model or its data were deleted meanwhile. */
/* clang-format off */
STATEMENT(OBSERVATIONS_PUT,
          "INSERT INTO @observations(key, model, calibration, blob, size, used_at)"
          " SELECT ?1, ?2, ?3, ?4, ?5, " MOMENT("?6")
          " WHERE (EXISTS (SELECT 1 FROM @files WHERE kind = 0 AND id = ?2)"
          " OR EXISTS (SELECT 1 FROM @jobs WHERE result_model = ?2))"
          " AND (?3 IS NULL"
          " OR EXISTS (SELECT 1 FROM @files WHERE kind = 1 AND id = ?3))"
          " ON CONFLICT(key) DO UPDATE SET blob = excluded.blob,"
          " size = excluded.size, used_at = excluded.used_at")
/* clang-format on */
STATEMENT(OBSERVATIONS_FORGET,
          "DELETE FROM @observations WHERE key = (SELECT key FROM @observations"
          " WHERE (?1 = 0 AND model = ?2) OR (?1 = 1 AND calibration = ?2) LIMIT 1)"
          " RETURNING blob")
STATEMENT(OBSERVATIONS_EVICT,
          "DELETE FROM @observations WHERE key = (SELECT key FROM @observations"
          " ORDER BY used_at, key LIMIT 1)"
          " AND ((SELECT sum(size) FROM @observations) > ?1"
          " OR (SELECT count(*) FROM @observations) > ?2) RETURNING blob")
/* Inserts no row when an input was deleted since its id was looked up. The model of a job
   that fetches it is "" until then. */
/* clang-format off */
STATEMENT(JOB_ADD,
          "INSERT INTO @jobs(id, state, priority, attempts, created_at, model,"
          " calibration, spec, labels, fresh, idempotency_key, asked, identity,"
          " effective_spec, observations, wants_gpu, source, publish, fetching,"
          " evaluation, metric, waits_for, parent, target)"
          " SELECT ?1, 'queued', ?2, ?3, " MOMENT("?4") ", ?5, ?6, ?7, ?8, ?9, ?10,"
          " ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23"
          " WHERE (?5 = '' OR EXISTS (SELECT 1 FROM @files WHERE kind = 0"
          " AND id = ?5" LOCK_KEY ")"
          " OR EXISTS (SELECT 1 FROM @jobs WHERE result_model = ?5" LOCK_KEY "))"
          " AND (?6 IS NULL"
          " OR EXISTS (SELECT 1 FROM @files WHERE kind = 1 AND id = ?6" LOCK_KEY "))"
          " AND (?19 IS NULL"
          " OR EXISTS (SELECT 1 FROM @files WHERE kind = 1 AND id = ?19" LOCK_KEY "))"
          " AND (?20 IS NULL"
          " OR EXISTS (SELECT 1 FROM @files WHERE kind = 0 AND id = ?20" LOCK_KEY "))")
/* clang-format on */
STATEMENT(JOB_OF_KEY, "SELECT id, asked FROM @jobs WHERE idempotency_key = ?1")
/* Finds another job of the same identity; one that succeeded goes before one that is
   queued or running. */
#define FIRST_OF(condition)                                                  \
    "(SELECT seq FROM @jobs WHERE identity = ?1 AND id != ?2 AND " condition \
    " ORDER BY seq LIMIT 1)"
#define IS_DONE "state = 'succeeded'"
#define IS_TO_BE_DONE "state IN ('queued', 'running') AND waits_for IS NULL"
STATEMENT(JOB_SAME,
          "SELECT id, " IS_DONE " AS done FROM @jobs WHERE seq = coalesce(" FIRST_OF(
              IS_DONE) ", " FIRST_OF(IS_TO_BE_DONE) ")"
                                                    " AND (" IS_DONE
                                                    " OR (" IS_TO_BE_DONE "))" LOCK_ROW)
/* clang-format off */
STATEMENT(JOB_ANSWER,
          "UPDATE @jobs SET state = ?5, ended_at = " MOMENT("?3") ","
          " changes = changes + 1, cached_from = ?2, effective_spec = NULL,"
          " (result_model, result_size, report, frozen, summary) ="
          " (SELECT result_model, result_size, report, frozen, summary"
          " FROM @jobs AS other WHERE other.id = ?2) WHERE id = ?1 AND state = ?4")
/* clang-format on */
STATEMENT(JOB_JOIN, "UPDATE @jobs SET waits_for = ?2 WHERE id = ?1")
/* A job that others joined waits no longer than each of them would wait alone. */
STATEMENT(JOB_RAISE,
          "UPDATE @jobs SET priority = " GREATER_OF("priority", "?2") " WHERE id = ?1")
/* Jobs that joined a job end as it did. */
STATEMENT(JOINED_END,
          "UPDATE @jobs SET state = ?3, ended_at = other.ended_at,"
          " result_model = other.result_model, result_size = other.result_size,"
          " report = other.report, frozen = other.frozen, summary = other.summary,"
          " error_code = other.error_code, error_kind = other.error_kind,"
          " error_where = other.error_where, error_detail = other.error_detail,"
          " cached_from = ?1, waits_for = NULL, effective_spec = NULL,"
          " changes = jobs.changes + 1"
          " FROM @jobs AS other WHERE other.id = ?1 AND jobs.waits_for = ?1"
          " AND jobs.state = ?2")
/* The first of the jobs that joined runs instead, and the others join that one. */
STATEMENT(JOINED_RELEASE,
          "UPDATE @jobs SET waits_for = nullif(first.id, jobs.id)"
          " FROM (SELECT id FROM @jobs WHERE waits_for = ?1 ORDER BY seq LIMIT 1)"
          " AS first WHERE jobs.waits_for = ?1")
STATEMENT(JOB_GET, "SELECT " JOB_COLUMNS " FROM @jobs WHERE id = ?1")
STATEMENT(JOB_STATE, "SELECT state FROM @jobs WHERE id = ?1")
/* --- store/several/targets.c: the rows of a job with several targets, in their order -- */

/* The rows are locked in one order, before any of them changes. */
STATEMENT(TARGETS_LOCK, "SELECT id, state FROM @jobs WHERE parent = ?1"
                        " ORDER BY seq" LOCK_ROW)
STATEMENT(TARGET_GET, "SELECT " JOB_COLUMNS " FROM @jobs"
                      " WHERE parent = ?1 AND target = ?2")
/* Finds an unfinished job that needs a result of these. */
STATEMENT(TARGETS_USED,
          "SELECT 1 FROM @jobs AS one, @jobs AS live WHERE one.parent = ?1"
          " AND live.state IN ('queued', 'running') AND live.model = one.result_model"
          " LIMIT 1")

/* The state stands there twice, because a plan that serves all parameters uses an index only where
   its condition is a text of the statement. */
/* clang-format off */
STATEMENT(JOB_CLAIM,
          "UPDATE @jobs SET state = ?4, started_at = " MOMENT("?1") ","
          " changes = changes + 1" LEASE("?5") UNTOLD
          " WHERE seq = (SELECT seq FROM @jobs WHERE state = 'queued' AND state = ?3"
          " AND waits_for IS NULL AND fetching = 0 AND (?2 != 0 OR wants_gpu = 0)"
          RUNS_ON("?6")
          " ORDER BY priority DESC, seq LIMIT 1" SKIP_LOCKED ")"
          " RETURNING " CLAIMED_COLUMNS)
/* clang-format on */
/* The job waits for a daemon of that class, if this one is of it, or another is listed. */
STATEMENT(JOB_RUNS_ON,
          SHARED_SQL("UPDATE @jobs SET processor = ?2 WHERE id = ?1 AND (?2 = ?3 OR"
                     " EXISTS (SELECT 1 FROM \"qdqd\".nodes WHERE processor = ?2))"))
STATEMENT(JOB_TEXTS, "SELECT spec, labels FROM @jobs WHERE id = ?1")
STATEMENT(JOB_TEXTS_SIZE,
          "SELECT coalesce(" BYTES_OF("spec") ", 0)"
                                              " + coalesce(" BYTES_OF(
                                                  "labels") ", 0)"
                                                            " FROM @jobs WHERE id = ?1")
/* Jobs that joined another wait, too, and cost as much as others. Each target of a
   job with several counts. */
STATEMENT(JOB_WAITING, "SELECT count(*) FROM @jobs WHERE state = 'queued'"
                       " AND (waits_for IS NULL OR waits_for != id)")
STATEMENT(JOB_REQUEUE, "UPDATE @jobs SET state = ?4, started_at = 0,"
                       " attempts = attempts + ?2, changes = changes + 1 WHERE id = ?1 "
                       "AND state = ?3" FENCED("?5"))
/* clang-format off */
STATEMENT(JOB_END,
          "UPDATE @jobs SET state = ?3, ended_at = " MOMENT("?4") ","
          " result_model = ?5, result_size = ?6, report = ?7, summary = ?8,"
          " error_code = ?9, error_kind = ?10, error_where = ?11, error_detail = ?12,"
          " frozen = ?13, waits_for = NULL, effective_spec = NULL,"
          " changes = changes + 1, fetching = 0"
          " WHERE id = ?1 AND state = ?2" FENCED("?14")
          " RETURNING publish IS NOT NULL OR EXISTS (SELECT 1 FROM @webhooks),"
          " EXISTS (SELECT 1 FROM @jobs AS other WHERE other.waits_for = ?1)")
/* clang-format on */
/* Renews the lease of a job that is still this claim's. Only for a shared record. */
STATEMENT(JOB_RENEW, RENEW_SQL)
STATEMENT(JOB_REMOVE, "DELETE FROM @jobs WHERE id = ?1 OR parent = ?1")
STATEMENT(JOB_RECOVER, "UPDATE @jobs SET state = ?2, started_at = 0,"
                       " changes = changes + 1 WHERE state = 'running' AND state = ?1"
                       " AND waits_for IS NULL" EXPIRED)
STATEMENT(JOB_COUNT, "SELECT count(*) FROM @jobs WHERE state = 'queued'"
                     " AND waits_for IS NULL AND fetching = 0")
STATEMENT(ANY_ROW, "SELECT 1 WHERE EXISTS (SELECT 1 FROM @files)"
                   " OR EXISTS (SELECT 1 FROM @jobs)")
/* The result is damaged, so the job answers no other. */
STATEMENT(JOB_FORGET, "UPDATE @jobs SET identity = NULL WHERE identity IS NOT NULL"
                      " AND (result_model = ?1 OR report = ?1 OR frozen = ?1"
                      " OR result_model IN (SELECT model FROM @model_files"
                      " WHERE digest = ?1))")
/* The age is measured by the clock that gave the time ?1. */
/* clang-format off */
STATEMENT(JOB_OLDEST_WAITING,
          "SELECT coalesce(?1 - (" MOMENT("?1") " - min(created_at)), 0) FROM @jobs"
          " WHERE state = 'queued' AND waits_for IS NULL AND fetching = 0")
/* clang-format on */
STATEMENT(RECORD_BYTES, "SELECT bytes FROM @record")
/* A job with several targets counts once. SQLite would go through the index of states for the
   second count, and read each job for its parent, if that grouped by the column itself. */
STATEMENT(JOB_STATES,
          "SELECT state, sum(n) FROM (SELECT state, count(*) AS n FROM @jobs"
          " GROUP BY state UNION ALL SELECT state || '', -count(*) FROM @jobs"
          " WHERE parent > '' GROUP BY state || '') AS counted GROUP BY state")
/* The sums are in the order of struct store_counts. */
STATEMENT(AMOUNTS, "SELECT (SELECT sum(size) FROM @files WHERE kind = 0),"
                   " (SELECT sum(size) FROM @files WHERE kind = 1),"
                   " (SELECT sum(size) FROM @files WHERE kind = 2),"
                   " (SELECT sum(size) FROM (SELECT max(result_size) AS size FROM @jobs"
                   " WHERE result_model IS NOT NULL GROUP BY result_model) AS results),"
                   " (SELECT sum(size) FROM @observations),"
                   " (SELECT bytes FROM @record)")
STATEMENT(JOB_POSITION,
          "SELECT count(*) FROM @jobs AS other, @jobs AS this"
          " WHERE this.id = ?1 AND this.state = 'queued' AND this.waits_for IS NULL"
          " AND this.fetching = 0 AND other.fetching = 0"
          " AND other.state = 'queued' AND other.waits_for IS NULL AND (other.priority "
          "> this.priority"
          " OR (other.priority = this.priority AND other.seq <= this.seq))")
#define IS_LISTED                     \
    " AND parent IS NULL"             \
    " AND (?2 IS NULL OR state = ?2)" \
    " AND (?3 IS NULL OR " HAS_LABEL("?3") ")"
STATEMENT(JOB_LIST, "SELECT " JOB_COLUMNS " FROM @jobs WHERE seq < ?1" IS_LISTED
                    " ORDER BY seq DESC LIMIT ?4")
STATEMENT(JOB_LIST_BY_TIME, "SELECT " JOB_COLUMNS " FROM @jobs"
                            " WHERE (created_at, seq) < (?5, ?1)" IS_LISTED
                            " ORDER BY created_at DESC, seq DESC LIMIT ?4")
/* Finds the oldest job that is older than ?2 at ?1, by a clock that does not go
   back, that no unfinished job needs, and whose deliveries have ended. */
/* clang-format off */
STATEMENT(JOB_OLDEST,
          "SELECT id FROM @jobs WHERE kept_from > 0 AND parent IS NULL"
          " AND kept_from <= " RECORD_TIME("?1") " - ?2"
          " AND NOT EXISTS (SELECT 1 FROM @jobs AS live"
          " WHERE live.state IN ('queued', 'running')"
          " AND (live.model = jobs.result_model OR EXISTS (SELECT 1 FROM @jobs AS one"
          " WHERE one.parent = jobs.id AND one.result_model = live.model)))"
          " AND NOT EXISTS (SELECT 1 FROM @deliveries WHERE job = jobs.id"
          " AND deliveries.state = 'pending') ORDER BY kept_from, seq LIMIT 1")
STATEMENT(FILE_OLDEST,
          "SELECT id, kind FROM @files"
          " WHERE kept_from <= " RECORD_TIME("?1") " - ?2"
          " AND NOT EXISTS (SELECT 1 FROM @jobs AS live"
          " WHERE live.state IN ('queued', 'running')"
          " AND (CASE files.kind WHEN 0 THEN live.model"
          " WHEN 1 THEN live.calibration END = files.id"
          " OR CASE files.kind WHEN 0 THEN live.metric"
          " WHEN 1 THEN live.evaluation END = files.id))"
          " ORDER BY kept_from, id LIMIT 1")
/* clang-format on */

/* A mark that another daemon has kept stays, unless it is ?2. */
STATEMENT(PLACE_KEEP,
          SHARED_SQL("INSERT INTO @blob_place AS kept(one, mark) VALUES(1, ?1)"
                     " ON CONFLICT(one) DO UPDATE SET mark = CASE WHEN kept.mark = ?2"
                     " THEN ?1 ELSE kept.mark END RETURNING mark"))
/* PostgreSQL alone. */
STATEMENT(IDENTIFY, "SELECT " DATABASE_NUMBER)

/* --- store/unsynced.c; SQLite alone ---------------------------------------- */

STATEMENT(UNSYNCED_ADD, LOCAL_SQL("INSERT INTO @unsynced(id, text) VALUES(?1, ?2)"))
STATEMENT(UNSYNCED_NEWEST, LOCAL_SQL("SELECT coalesce(max(seq), 0) FROM @unsynced"))
STATEMENT(UNSYNCED_NEXT, LOCAL_SQL("SELECT seq, id, text FROM @unsynced"
                                   " WHERE seq > ?1 ORDER BY seq LIMIT 1"))
STATEMENT(UNSYNCED_DROP, LOCAL_SQL("DELETE FROM @unsynced WHERE seq <= ?1"))

/* --- store/outbox.c -------------------------------------------------------- */

/* clang-format off */
STATEMENT(FETCH_CLAIM,
          "UPDATE @jobs SET fetching = 2" LEASE("?2") UNTOLD
          " WHERE seq = (SELECT seq FROM @jobs WHERE " FETCH_WAITS
          " AND fetch_due <= " MOMENT("?1")
          " ORDER BY priority DESC, fetch_due, seq LIMIT 1" SKIP_LOCKED ")"
          " RETURNING " CLAIMED_COLUMNS)
STATEMENT(FETCH_LATER,
          "UPDATE @jobs SET fetching = 1, fetch_attempts = fetch_attempts + ?2,"
          " fetch_due = " MOMENT("?3") " + ?4"
          " WHERE id = ?1 AND fetching = 2" FENCED("?5"))
/* Changes nothing when a fetched file was deleted, or the job was cancelled, meanwhile. */
STATEMENT(FETCH_DONE,
          "UPDATE @jobs SET fetching = 0, model = ?2, calibration = ?3, source = ?4,"
          " identity = ?5, observations = ?6, wants_gpu = ?7"
          " WHERE id = ?1 AND fetching = 2" FENCED("?8")
          " AND (EXISTS (SELECT 1 FROM @files WHERE kind = 0 AND files.id = ?2)"
          " OR EXISTS (SELECT 1 FROM @jobs AS made WHERE made.result_model = ?2))"
          " AND (?3 IS NULL"
          " OR EXISTS (SELECT 1 FROM @files WHERE kind = 1 AND files.id = ?3))")
/* clang-format on */
STATEMENT(FETCH_RECOVER, "UPDATE @jobs SET fetching = 1 WHERE fetching > 0"
                         " AND fetching = 2" EXPIRED)
STATEMENT(FETCHED_GET, "SELECT id FROM @fetched WHERE remote = ?1 AND ref = ?2"
                       " AND digest = ?3 AND kind = ?4")
STATEMENT(FETCHED_PUT,
          "INSERT INTO @fetched(remote, ref, digest, kind, id)"
          " SELECT ?1, ?2, ?3, ?4, ?5"
          " WHERE EXISTS (SELECT 1 FROM @files WHERE kind = ?4 AND id = ?5)"
          " ON CONFLICT(remote, ref, digest, kind) DO UPDATE SET id = excluded.id")
/* clang-format off */
STATEMENT(DELIVERY_CLAIM,
          "UPDATE @deliveries SET claimed = 1, attempts = attempts + 1" LEASE("?2")
          " WHERE seq = (SELECT seq FROM @deliveries WHERE state = 'pending'"
          " AND claimed = 0 AND due_at <= " MOMENT("?1")
          " ORDER BY due_at, event IS NOT NULL, seq LIMIT 1" SKIP_LOCKED ")"
          " RETURNING id, job, remote, event, publication, attempts, created_at, "
          FENCE)
STATEMENT(DELIVERY_END,
          "UPDATE @deliveries SET claimed = 0, state = ?2, location = ?3, error = ?4,"
          " due_at = " MOMENT("?5") " + ?6"
          " WHERE id = ?1 AND claimed = 1" FENCED("?7"))
STATEMENT(DELIVERY_UNCLAIM,
          "UPDATE @deliveries SET claimed = 0, attempts = attempts - 1"
          " WHERE id = ?1 AND claimed = 1" FENCED("?2"))
/* clang-format on */
/* Renews the lease of a delivery that is still this claim's. Only for a shared record. */
STATEMENT(DELIVERY_RENEW, RENEW_DELIVERY_SQL)
STATEMENT(DELIVERY_RECOVER,
          "UPDATE @deliveries SET claimed = 0 WHERE claimed = 1" EXPIRED)
STATEMENT(DELIVERY_STATE, "SELECT state = 'failed' FROM @deliveries"
                          " WHERE id = ?1 AND job = ?2")
STATEMENT(DELIVERIES_WAIT, "SELECT count(*) FROM @deliveries"
                           " WHERE job = ?1 AND state = 'pending'")
STATEMENT(DELIVERY_RETRY, "UPDATE @deliveries SET state = 'pending', attempts = 0,"
                          " due_at = 0 WHERE id = ?1 AND job = ?2 AND state = 'failed'")
/* The time until then; negative: it has passed. No row: none waits. ?2 and ?3: whether fetches
   and deliveries count. */
/* clang-format off */
STATEMENT(OUTBOX_WAIT,
          "SELECT min(due) - " MOMENT("?1") " FROM"
          " (SELECT min(fetch_due) AS due FROM @jobs WHERE " FETCH_WAITS " AND ?2 = 1"
          " UNION ALL SELECT min(due_at) FROM @deliveries"
          " WHERE state = 'pending' AND claimed = 0 AND ?3 = 1) AS waiting"
          " HAVING min(due) IS NOT NULL")
/* clang-format on */
STATEMENT(WEBHOOKS_CLEAR, "DELETE FROM @webhooks")
STATEMENT(WEBHOOK_ADD, "INSERT INTO @webhooks(name, events, label_key, label_value)"
                       " VALUES(?1, ?2, ?3, ?4) ON CONFLICT(name) DO UPDATE SET"
                       " events = excluded.events, label_key = excluded.label_key,"
                       " label_value = excluded.label_value")

/* --- store/hook_versions.c -------------------------------------------------------- */

STATEMENT(HOOK_VERSION_ADD, "INSERT INTO @hooked(hook, model, version, key)"
                            " VALUES(?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")
STATEMENT(HOOK_VERSION_GET, "SELECT key, is_done FROM @hooked"
                            " WHERE hook = ?1 AND model = ?2 AND version = ?3")
STATEMENT(HOOK_VERSION_DONE, "UPDATE @hooked SET is_done = 1"
                             " WHERE hook = ?1 AND model = ?2 AND version = ?3")
STATEMENT(HOOK_VERSION_FIRST,
          "SELECT min(" NUMBER_OF(
              "version") ") FROM @hooked"
                         " WHERE hook = ?1 AND model = ?2 HAVING count(*) > 0")

/* --- store/nodes.c; PostgreSQL alone --------------------------------------- */

STATEMENT(NODE_SEEN, NODE_SEEN_SQL)
STATEMENT(NODE_EXPIRE, NODE_EXPIRE_SQL)
STATEMENT(NODE_REMOVE, NODE_REMOVE_SQL)
STATEMENT(NODE_LIST, NODE_LIST_SQL)

/* --- store/leader.c and store/removal.c; PostgreSQL alone ------------------ */

STATEMENT(LEAD, LEAD_SQL)
STATEMENT(LEAD_END, LEAD_END_SQL)
STATEMENT(LEAD_LOCK, LEAD_LOCK_SQL)
STATEMENT(MARK_ADD, MARK_ADD_SQL)
STATEMENT(MARK_TAKE, MARK_TAKE_SQL)
STATEMENT(MARK_DROP, MARK_DROP_SQL)
STATEMENT(TENANT_LIST, TENANT_LIST_SQL)
/* Adds the bytes that ended connections have counted to one row. A connection whose row goes
   begins another one. */
STATEMENT(RECORD_FOLD,
          SHARED_SQL("WITH gone AS (DELETE FROM @record_parts WHERE connection IN"
                     " (SELECT connection FROM @record_parts WHERE connection != 0"
                     " AND (SELECT count(*) FROM @record_parts) > 64"
                     " FOR UPDATE SKIP LOCKED) RETURNING bytes)"
                     " INSERT INTO @record_parts AS part SELECT 0, sum(bytes)"
                     " FROM gone HAVING count(*) > 0 ON CONFLICT(connection)"
                     " DO UPDATE SET bytes = part.bytes + excluded.bytes"))

/* --- store/tokens.c; PostgreSQL alone --------------------------------------- */

STATEMENT(TOKEN_CHANGES, SHARED_SQL("SELECT changes FROM @token_changes"))
/* A row is what the file has in a line. */
STATEMENT(TOKEN_LIST,
          SHARED_SQL("SELECT name || ' ' || hash || ' ' || scopes || ' ' ||"
                     " coalesce(tenant, '-') || ' ' || made || coalesce(' ' || limits,"
                     " '') FROM @tokens ORDER BY name"))
STATEMENT(TOKEN_ADD,
          SHARED_SQL("INSERT INTO @tokens(name, hash, scopes, tenant, made, limits)"
                     " VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING"))
STATEMENT(TOKEN_LIMIT, SHARED_SQL("UPDATE @tokens SET limits = ?2 WHERE name = ?1"
                                  " AND limits IS NOT DISTINCT FROM ?3"))
STATEMENT(TOKEN_REMOVE, SHARED_SQL("DELETE FROM @tokens WHERE name = ?1"))
/* Changes a row unless there was a token. Others who ask this wait for the transaction. */
STATEMENT(TOKENS_BEGIN,
          SHARED_SQL("UPDATE @token_changes SET changes = 1 WHERE changes = 0"))

/* --- store/hints.c; PostgreSQL alone ---------------------------------------- */

/* The first row says whether a job waits for a lane; the others are jobs that are waited for. */
STATEMENT(LOOK,
          SHARED_SQL("SELECT '' AS id, CASE WHEN EXISTS (SELECT 1 FROM @jobs"
                     " WHERE state = 'queued' AND waits_for IS NULL AND fetching = 0)"
                     " THEN 'queued' END UNION ALL SELECT id, changes || ' ' ||"
                     " coalesce(stage, '') || ' ' || done || ' ' || total FROM @jobs"
                     " WHERE id = ANY(string_to_array(?1, ','))"))
STATEMENT(HINT, SHARED_SQL("NOTIFY qdqd"))
#undef BLOB_STORED_SQL
