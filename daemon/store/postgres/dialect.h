/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the statements that PostgreSQL writes in a way of its own. */

#define BYTES_OF(text) "octet_length(" text ")"
#define GREATER_OF(a, b) "greatest(" a ", " b ")"
#define NUMBER_OF(text) "CAST(substring(" text " from '^[0-9]{1,18}') AS BIGINT)"
#define DATABASE_NUMBER "number FROM @version"
#define BEGIN_SQL "BEGIN"
#define NEWEST "(SELECT newest FROM @clock)"
/* A claim gets the next fence, and lasts until its lease ends, by the database's clock. */
#define LEASE(ms) ", fence = fence + 1, lease_until = " NEWEST " + " ms
/* The database's clock, whatever time a node gives: the clocks of nodes differ. */
#define MOMENT(asked) "(SELECT @moment(" asked "))"
#define RECORD_TIME(asked) MOMENT(asked)
/*
 * The commit of a renewal is not synced: where PostgreSQL ends within the next moment, it may be
 * lost. Then another node claims the job sooner, and the fence refuses the first one.
 */
#define UNSYNCED " AND set_config('synchronous_commit', 'off', TRUE) = 'off'"
#define RENEW_SQL                                                            \
    "UPDATE @jobs SET lease_until = " NEWEST " + ?3, stage = ?4, done = ?5," \
    " total = ?6, eta = ?7 WHERE id = ?1 AND fence = ?2"                     \
    " AND (state = 'running' OR fetching = 2)" UNSYNCED
/* The heartbeats of a claim carry its progress; a new one has none yet. */
#define UNTOLD ", stage = NULL, done = 0, total = 0, eta = -1"
#define PROGRESS "stage, done, total, eta"
#define RENEW_DELIVERY_SQL                                               \
    "UPDATE @deliveries SET lease_until = " NEWEST " + ?3 WHERE id = ?1" \
    " AND fence = ?2 AND claimed = 1" UNSYNCED
#define EXPIRED " AND lease_until <= " NEWEST
/* The times of nodes are the database's, too. */
#define NODE_SEEN_SQL                                                         \
    "INSERT INTO @nodes(id, version, started_at, seen_at, running, lanes,"    \
    " processor)"                                                             \
    " VALUES(?1, ?2, " NEWEST " - ?3, " NEWEST                                \
    ", ?4, ?5, ?6) ON CONFLICT(id) DO UPDATE SET seen_at = excluded.seen_at," \
    " running = excluded.running, lanes = excluded.lanes"
#define NODE_EXPIRE_SQL "DELETE FROM @nodes WHERE seen_at < " NEWEST " - ?1"
#define NODE_REMOVE_SQL "DELETE FROM @nodes WHERE id = ?1"
#define NODE_LIST_SQL                                                     \
    "SELECT id, version, started_at, seen_at, running, lanes FROM @nodes" \
    " ORDER BY started_at, id"
/* The leader keeps its fence while it renews in time; each that follows gets the next. */
#define LEAD_SQL                                                             \
    "INSERT INTO @leader AS one(name, node, fence, lease_until)"             \
    " VALUES('sweep', ?1, 1, " NEWEST " + ?2) ON CONFLICT(name) DO UPDATE"   \
    " SET node = excluded.node, lease_until = excluded.lease_until, fence =" \
    " one.fence + CASE WHEN one.lease_until > " NEWEST " THEN 0 ELSE 1 END"  \
    " WHERE one.lease_until <= " NEWEST " OR one.node = excluded.node"       \
    " RETURNING fence"
#define LEAD_END_SQL "UPDATE @leader SET lease_until = 0 WHERE fence = ?1"
/* No other one leads before the transaction has ended. */
#define LEAD_LOCK_SQL                                           \
    "SELECT 1 FROM @leader WHERE name = 'sweep' AND fence = ?1" \
    " AND lease_until > " NEWEST " FOR SHARE"
#define MARK_ADD_SQL                                        \
    "INSERT INTO @marks(id, marked_at) VALUES(?1, " MOMENT( \
        "?2") ")"                                           \
              " ON CONFLICT DO NOTHING"
#define MARK_TAKE_SQL \
    "DELETE FROM @marks WHERE id = ?1 AND marked_at <= " MOMENT("?2") " - ?3"
#define MARK_DROP_SQL "DELETE FROM @marks WHERE id IN (?1, ?2, ?3, ?4)"
/* Statements that only a shared record has. */
#define SHARED_SQL(sql) sql
/* Only the record of one daemon has such a statement. */
#define LOCAL_SQL(sql) "SELECT 1"
/* A job whose figures depend on the class of processors runs on one of its own. */
#define RUNS_ON(class) " AND (processor IS NULL OR processor = " class ")"
#define TENANT_LIST_SQL                                                        \
    "SELECT substr(schemaname, 6) FROM pg_catalog.pg_tables WHERE tablename =" \
    " 'version' AND schemaname LIKE 'qdqd-%' ORDER BY 1"
/* A claim that another one has followed changes nothing any more; 0: whoever has it. */
#define FENCED(number) " AND (" number " = 0 OR fence = " number ")"
#define FENCE "fence"
/* A row that another node is about to claim is no longer to be had. */
#define SKIP_LOCKED " FOR UPDATE SKIP LOCKED"
/* The row stays as it was read until the transaction ends. */
#define LOCK_ROW " FOR UPDATE"
/* The row is not removed until the transaction ends. */
#define LOCK_KEY " FOR KEY SHARE"
/* One transaction at a time passes here with the same name. */
#define LOCK_NAME(name) \
    "CAST(pg_advisory_xact_lock(hashtextextended(" name ", 0)) AS TEXT)"

#define HAS_LABEL(text)                                                   \
    "EXISTS (SELECT 1 FROM jsonb_each_text(CAST(labels AS JSONB)) AS one" \
    " WHERE one.key || ':' || one.value = " text ")"

/* json_build_object() would write spaces, which SQLite's JSON does not have. */
#define MEMBER_TEXT(name) \
    "'\"" #name "\":' || coalesce(CAST(to_json(" #name ") AS TEXT), 'null')"
#define MEMBER_JSON(name) \
    "'\"" #name "\":' || coalesce(CAST(" #name " AS TEXT), 'null')"
#define NEXT_MEMBER " || ',' || "

#define MODEL_FILES_OF(model)                                                      \
    "(SELECT '[' || string_agg('{' || " MEMBER_TEXT(path) NEXT_MEMBER MEMBER_TEXT( \
        digest)                                                                    \
    NEXT_MEMBER MEMBER_JSON(size) " || '}', ',' ORDER BY position) || "            \
                                  "']' FROM @model_files WHERE model = " model     \
                                  " HAVING count(*) > 0)"

/* clang-format off */
#define DELIVERIES                                                              \
    "(SELECT '[' || coalesce(string_agg('{' || " MEMBER_TEXT(id) NEXT_MEMBER    \
    MEMBER_TEXT(remote) NEXT_MEMBER MEMBER_TEXT(ref) NEXT_MEMBER                \
    MEMBER_TEXT(event) NEXT_MEMBER MEMBER_TEXT(state) NEXT_MEMBER               \
    MEMBER_JSON(attempts) NEXT_MEMBER MEMBER_TEXT(location) NEXT_MEMBER         \
    MEMBER_JSON(error) " || '}', ',' ORDER BY event IS NOT NULL, seq), '') || " \
    "']' FROM @deliveries WHERE job = jobs.id)"

#define TARGETS                                                                \
    "(SELECT '[' || string_agg('{' || " MEMBER_TEXT(target) NEXT_MEMBER        \
    "'\"job\":' || to_json(id)" NEXT_MEMBER MEMBER_TEXT(state) NEXT_MEMBER     \
    "'\"model\":' || coalesce(CAST(to_json(result_model) AS TEXT), 'null')"    \
    NEXT_MEMBER "'\"size\":' || coalesce(CAST(result_size AS TEXT), 'null')"   \
    NEXT_MEMBER MEMBER_JSON(files) NEXT_MEMBER MEMBER_JSON(summary)            \
    NEXT_MEMBER MEMBER_TEXT(error_code) NEXT_MEMBER MEMBER_JSON(error_kind)    \
    NEXT_MEMBER MEMBER_TEXT(error_where) NEXT_MEMBER MEMBER_TEXT(error_detail) \
    " || '}', ',' ORDER BY seq) || ']' FROM (SELECT one.*, "                   \
    MODEL_FILES_OF("one.result_model") " AS files FROM @jobs AS one"           \
    " WHERE one.parent = jobs.id) AS rows_of_it HAVING count(*) > 0)"
/* clang-format on */
