/* SPDX-License-Identifier: Apache-2.0 */
/* Every SQL statement of the store, one row each: STATEMENT(NAME, "sql"). */
STATEMENT(BEGIN, "BEGIN IMMEDIATE")
STATEMENT(COMMIT, "COMMIT")
STATEMENT(ROLLBACK, "ROLLBACK")
STATEMENT(FILE_ADD, "INSERT INTO files(kind, id, size, created_at, info)"
                    " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING")
STATEMENT(FILE_GET, "SELECT id, size, created_at, info FROM files"
                    " WHERE kind = ?1 AND id = ?2"
                    " UNION ALL SELECT result_model, result_size, ended_at, NULL"
                    " FROM jobs WHERE ?1 = 0 AND result_model = ?2 LIMIT 1")
STATEMENT(FILE_REMOVE, "DELETE FROM files WHERE kind = ?1 AND id = ?2")
STATEMENT(FILE_USED, "SELECT 1 FROM jobs WHERE state IN ('queued', 'running')"
                     " AND CASE ?1 WHEN 0 THEN model ELSE calibration END = ?2 LIMIT 1")
STATEMENT(BLOB_NEEDED,
          "SELECT 1 FROM files WHERE id = ?1"
          " UNION ALL SELECT 1 FROM jobs WHERE result_model = ?1 OR report = ?1"
          " OR frozen = ?1"
          " UNION ALL SELECT 1 FROM observations WHERE blob = ?1"
          " UNION ALL SELECT 1 FROM jobs WHERE state IN ('queued', 'running')"
          " AND (model = ?1 OR calibration = ?1) LIMIT 1")
STATEMENT(OBSERVATIONS_USE,
          "UPDATE observations SET used_at = ?2 WHERE key = ?1 RETURNING blob")
/* Nothing when the model or its data were deleted meanwhile. */
STATEMENT(OBSERVATIONS_PUT,
          "INSERT INTO observations(key, model, calibration, blob, size, used_at)"
          " SELECT ?1, ?2, ?3, ?4, ?5, ?6"
          " WHERE (EXISTS (SELECT 1 FROM files WHERE kind = 0 AND id = ?2)"
          " OR EXISTS (SELECT 1 FROM jobs WHERE result_model = ?2))"
          " AND (?3 IS NULL"
          " OR EXISTS (SELECT 1 FROM files WHERE kind = 1 AND id = ?3))"
          " ON CONFLICT(key) DO UPDATE SET blob = excluded.blob,"
          " size = excluded.size, used_at = excluded.used_at")
STATEMENT(OBSERVATIONS_FORGET,
          "DELETE FROM observations WHERE key = (SELECT key FROM observations"
          " WHERE (?1 = 0 AND model = ?2) OR (?1 = 1 AND calibration = ?2) LIMIT 1)"
          " RETURNING blob")
STATEMENT(OBSERVATIONS_EVICT,
          "DELETE FROM observations WHERE key = (SELECT key FROM observations"
          " ORDER BY used_at, key LIMIT 1)"
          " AND ((SELECT sum(size) FROM observations) > ?1"
          " OR (SELECT count(*) FROM observations) > ?2) RETURNING blob")
/* No row when an input was deleted since its id was looked up. */
STATEMENT(JOB_ADD, "INSERT INTO jobs(id, state, priority, attempts, created_at, model,"
                   " calibration, spec, labels, fresh)"
                   " SELECT ?1, 'queued', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9"
                   " WHERE (EXISTS (SELECT 1 FROM files WHERE kind = 0 AND id = ?5)"
                   " OR EXISTS (SELECT 1 FROM jobs WHERE result_model = ?5))"
                   " AND (?6 IS NULL"
                   " OR EXISTS (SELECT 1 FROM files WHERE kind = 1 AND id = ?6))")
STATEMENT(JOB_GET, "SELECT " JOB_COLUMNS " FROM jobs WHERE id = ?1")
STATEMENT(JOB_CLAIM, "UPDATE jobs SET state = 'running', started_at = ?1"
                     " WHERE seq = (SELECT seq FROM jobs WHERE state = 'queued'"
                     " ORDER BY priority DESC, seq LIMIT 1)"
                     " RETURNING " JOB_COLUMNS)
STATEMENT(JOB_REQUEUE, "UPDATE jobs SET state = 'queued', started_at = 0,"
                       " attempts = attempts + ?2 WHERE id = ?1 AND state = 'running'")
STATEMENT(JOB_END, "UPDATE jobs SET state = ?3, ended_at = ?4, result_model = ?5,"
                   " result_size = ?6, report = ?7, summary = ?8, error_code = ?9,"
                   " error_kind = ?10, error_where = ?11, error_detail = ?12,"
                   " frozen = ?13"
                   " WHERE id = ?1 AND state = ?2")
STATEMENT(JOB_REMOVE, "DELETE FROM jobs WHERE id = ?1")
STATEMENT(JOB_RECOVER, "UPDATE jobs SET state = 'queued', started_at = 0"
                       " WHERE state = 'running'")
STATEMENT(JOB_COUNT, "SELECT count(*) FROM jobs WHERE state = 'queued'")
STATEMENT(JOB_POSITION,
          "SELECT count(*) FROM jobs AS other, jobs AS this"
          " WHERE this.id = ?1 AND this.state = 'queued'"
          " AND other.state = 'queued' AND (other.priority > this.priority"
          " OR (other.priority = this.priority AND other.seq <= this.seq))")
STATEMENT(JOB_LIST, "SELECT " JOB_COLUMNS " FROM jobs WHERE seq < ?1"
                    " AND (?2 IS NULL OR state = ?2)"
                    " AND (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(labels)"
                    " WHERE key = ?3 AND value = ?4)) ORDER BY seq DESC LIMIT ?5")
