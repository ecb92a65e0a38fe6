# SPDX-License-Identifier: Apache-2.0
"""A database of an earlier version is copied and brought to this version's schema, or
left unchanged."""

import hashlib
import os
import re
import sqlite3
import stat
import subprocess

import pytest

from service import DATA, INSTALLED, Service, problem

# The schemas as they were released, step by step.
STEPS = ["""
CREATE TABLE files(
  kind INTEGER NOT NULL, id TEXT NOT NULL, size INTEGER NOT NULL,
  created_at INTEGER NOT NULL, info TEXT, PRIMARY KEY(kind, id)) WITHOUT ROWID;
CREATE TABLE jobs(
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL, priority INTEGER NOT NULL, attempts INTEGER NOT NULL,
  created_at INTEGER NOT NULL, started_at INTEGER NOT NULL DEFAULT 0,
  ended_at INTEGER NOT NULL DEFAULT 0, model TEXT NOT NULL, calibration TEXT,
  spec TEXT, labels TEXT, result_model TEXT, result_size INTEGER, report TEXT,
  summary TEXT, error_code TEXT, error_kind INTEGER, error_where TEXT,
  error_detail TEXT);
CREATE INDEX jobs_queue ON jobs(state, priority DESC, seq);
CREATE INDEX jobs_result ON jobs(result_model);
CREATE INDEX jobs_report ON jobs(report);
""", """
ALTER TABLE jobs ADD COLUMN frozen TEXT;
CREATE INDEX jobs_frozen ON jobs(frozen);
""", """
CREATE TABLE observations(
  key TEXT PRIMARY KEY, model TEXT NOT NULL, calibration TEXT, blob TEXT NOT NULL,
  size INTEGER NOT NULL, used_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX observations_model ON observations(model);
CREATE INDEX observations_calibration ON observations(calibration);
CREATE INDEX observations_blob ON observations(blob);
CREATE INDEX observations_used ON observations(used_at);
ALTER TABLE jobs ADD COLUMN fresh INTEGER NOT NULL DEFAULT 0;
""", """
ALTER TABLE jobs ADD COLUMN changes INTEGER NOT NULL DEFAULT 1;
ALTER TABLE jobs ADD COLUMN idempotency_key TEXT;
ALTER TABLE jobs ADD COLUMN asked TEXT;
ALTER TABLE jobs ADD COLUMN identity TEXT;
ALTER TABLE jobs ADD COLUMN waits_for TEXT;
ALTER TABLE jobs ADD COLUMN cached_from TEXT;
CREATE UNIQUE INDEX jobs_key ON jobs(idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX jobs_identity ON jobs(identity) WHERE identity IS NOT NULL;
CREATE INDEX jobs_waits ON jobs(waits_for) WHERE waits_for IS NOT NULL;
""", """
CREATE TABLE clock(newest INTEGER NOT NULL);
INSERT INTO clock SELECT unixepoch() * 1000;
ALTER TABLE files ADD COLUMN kept_from INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN kept_from INTEGER NOT NULL DEFAULT 0;
UPDATE files SET kept_from = (SELECT newest FROM clock);
UPDATE jobs SET kept_from = (SELECT newest FROM clock) WHERE ended_at > 0;
CREATE INDEX files_kept ON files(kept_from);
CREATE INDEX jobs_kept ON jobs(kept_from) WHERE kept_from > 0;
CREATE TRIGGER file_added AFTER INSERT ON files BEGIN
  UPDATE clock SET newest = max(newest, NEW.created_at);
  UPDATE files SET kept_from = (SELECT newest FROM clock)
  WHERE kind = NEW.kind AND id = NEW.id; END;
CREATE TRIGGER file_used AFTER UPDATE OF kept_from ON files BEGIN
  UPDATE clock SET newest = max(newest, NEW.kept_from); END;
CREATE TRIGGER job_added AFTER INSERT ON jobs BEGIN
  UPDATE clock SET newest = max(newest, NEW.created_at, NEW.ended_at);
  UPDATE files SET kept_from = (SELECT newest FROM clock)
  WHERE kind = 0 AND id = NEW.model;
  UPDATE files SET kept_from = (SELECT newest FROM clock)
  WHERE kind = 1 AND id = NEW.calibration;
  UPDATE jobs SET kept_from = (SELECT newest FROM clock)
  WHERE seq = NEW.seq AND NEW.ended_at > 0; END;
CREATE TRIGGER job_ended AFTER UPDATE OF ended_at ON jobs
  WHEN NEW.ended_at > 0 BEGIN
  UPDATE clock SET newest = max(newest, NEW.ended_at);
  UPDATE files SET kept_from = (SELECT newest FROM clock)
  WHERE kind = 0 AND id = NEW.model;
  UPDATE files SET kept_from = (SELECT newest FROM clock)
  WHERE kind = 1 AND id = NEW.calibration;
  UPDATE jobs SET kept_from = (SELECT newest FROM clock)
  WHERE seq = NEW.seq; END;
""", """
CREATE TABLE model_files(
  model TEXT NOT NULL, position INTEGER NOT NULL, path TEXT NOT NULL,
  digest TEXT NOT NULL, size INTEGER NOT NULL,
  PRIMARY KEY(model, position)) WITHOUT ROWID;
CREATE INDEX model_files_digest ON model_files(digest);
CREATE TRIGGER file_gone AFTER DELETE ON files WHEN OLD.kind = 0 BEGIN
  DELETE FROM model_files WHERE model = OLD.id
  AND NOT EXISTS (SELECT 1 FROM jobs WHERE result_model = OLD.id); END;
CREATE TRIGGER job_gone AFTER DELETE ON jobs
  WHEN OLD.result_model IS NOT NULL BEGIN
  DELETE FROM model_files WHERE model = OLD.result_model
  AND NOT EXISTS (SELECT 1 FROM jobs WHERE result_model = OLD.result_model)
  AND NOT EXISTS (SELECT 1 FROM files WHERE kind = 0
  AND id = OLD.result_model); END;
"""]

MODEL = (DATA / "glyph_resnet.onnx").read_bytes()
MODEL_ID = "sha256:" + hashlib.sha256(MODEL).hexdigest()
REPORT = b'{"layers":[]}'
REPORT_ID = "sha256:" + hashlib.sha256(REPORT).hexdigest()
WAITS, FAILED, MADE = ("j" + 32 * c for c in "abc")


def state_of_schema(one, version):
    """Returns a state folder as a daemon of that schema left it: a model, a queued job, a
    failed one, and one that made the model anew."""
    for name, content in ((MODEL_ID, MODEL), (REPORT_ID, REPORT)):
        hexed = name.split(":")[1]
        blob = one.state / "blobs" / hexed[:2] / hexed
        blob.parent.mkdir(parents=True)
        blob.write_bytes(content)
    database = sqlite3.connect(one.state / "qdqd.sqlite3", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    for step in STEPS[:version]:
        database.executescript(step)
    database.execute("INSERT INTO files(kind, id, size, created_at) VALUES(0, ?, ?,"
                     " 1600000000000)", (MODEL_ID, len(MODEL)))
    for name, state in ((WAITS, "queued"), (FAILED, "failed"), (MADE, "succeeded")):
        ended = state != "queued"
        database.execute(
            "INSERT INTO jobs(id, state, priority, attempts, created_at, ended_at, model,"
            " spec, labels, error_code, error_kind, error_where, error_detail)"
            " VALUES(?, ?, 0, 0, 1600000000000, ?, ?, ?, ?, ?, 0, '', 'it did')",
            (name, state, int(16e11) * ended, MODEL_ID, '{"calibration":{"random_samples":2}}', '{"k":"v"}',
             "nonfinite" if state == "failed" else None))
    database.execute("UPDATE jobs SET result_model = ?, result_size = ?, report = ?,"
                     " summary = '{}' WHERE id = ?",
                     (MODEL_ID, len(MODEL), REPORT_ID, MADE))
    database.execute(f"PRAGMA user_version = {version}")
    database.close()


def dump(path):
    database = sqlite3.connect(path)
    version = database.execute("PRAGMA user_version").fetchone()[0]
    lines = sorted(database.iterdump())  # a copy has its triggers last
    database.close()
    return version, lines


def copies(one):
    return sorted(p.name for p in one.state.glob("qdqd.sqlite3.*")
                  if not p.name.endswith(("-wal", "-shm")))


def refused(one):
    """Starts a daemon that must not come up; returns its error output."""
    done = subprocess.run(
        [INSTALLED / "sbin" / "qdqd", "--listen", "127.0.0.1:0", "--state-dir",
         one.state], capture_output=True, text=True, timeout=60,
        env={k: v for k, v in os.environ.items() if not k.startswith("QDQD_")})
    assert done.returncode == 1, done
    return done.stderr


@pytest.fixture
def old(tmp_path):
    """Returns a state folder that no daemon has opened yet."""
    one = Service(tmp_path / "old", QDQD_RETENTION_JOBS="0", QDQD_RETENTION_FILES="0")
    one.state.mkdir(parents=True)
    yield one
    one.stop()


@pytest.mark.parametrize("version", range(1, len(STEPS) + 1))
def test_an_older_schema(old, version):
    state_of_schema(old, version)
    before = dump(old.state / "qdqd.sqlite3")
    old.start()
    waits, failed = old.succeeded(WAITS), old.job(FAILED)
    assert waits["labels"] == {"k": "v"} and waits["created_at"].startswith("2020-09-13")
    assert failed["error"]["detail"] == "it did"
    # Schema 1 had no frozen specs: its jobs continue without one.
    assert old.result(MADE) == MODEL
    assert old.http.get(f"{old.url}/v1/jobs/{MADE}/report").content == REPORT
    problem(old.get(f"/v1/jobs/{MADE}/spec"), 404, "not_found")
    assert old.get(f"/v1/models/{MODEL_ID}").content == MODEL
    copy = old.state / f"qdqd.sqlite3.schema-{version}"
    assert copies(old) == [copy.name]
    changes = re.findall(r'event=schema_changed from=(\d+) to=\d+ copy="(.*)"', old.log.read_text())
    assert changes == [(str(version), str(copy))]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    old.stop()
    assert dump(copy) == before
    assert dump(old.state / "qdqd.sqlite3")[0] > version
    # The next start has nothing to migrate.
    changed = copy.stat().st_mtime_ns
    old.start()
    old.stop()
    assert copy.stat().st_mtime_ns == changed
    # The copy is the old database.
    for path in old.state.glob("qdqd.sqlite3*"):
        if path != copy:
            path.unlink()
    copy.rename(old.state / "qdqd.sqlite3")
    old.start()
    old.succeeded(WAITS)


def add_waiting(one, specs):
    """Adds queued jobs with these specs; returns their ids."""
    names = [f"j{i:032x}" for i in range(len(specs))]
    database = sqlite3.connect(one.state / "qdqd.sqlite3")
    database.executemany(
        "INSERT INTO jobs(id, state, priority, attempts, created_at, model, spec)"
        " VALUES(?, 'queued', 0, 0, 1600000000000, ?, ?)",
        [(name, MODEL_ID, spec) for name, spec in zip(names, specs)])
    database.commit()
    database.close()
    return names


SMALL = '"calibration":{"random_samples":2},"evaluate":false'
# A stored spec, how the job ends, and the spec that it shows.
SPECS = [
    ("  ", "no_calibration", None),
    (None, "no_calibration", None),
    ("{" + SMALL + "}", None, {"calibration": {"random_samples": 2}, "evaluate": False}),
    ("{" + SMALL + ',"device":"cuda"}', "no_device",
     {"calibration": {"random_samples": 2}, "evaluate": False, "device": "cuda"}),
    ('{"calibration":', "invalid_json", None),
]


def test_the_specs_of_jobs_that_wait(old):
    """Each job runs with any stored spec, shows the spec that was sent, and delays no
    other."""
    state_of_schema(old, 6)
    names = add_waiting(old, [spec for spec, _, _ in SPECS])
    old.start(QDQD_GPU_DEVICES="0", QDQD_GPU_MODULE="/nowhere.so",
              QDQD_WORKERS_COUNT="2")
    old.succeeded(WAITS)
    for name, (spec, code, shown) in zip(names, SPECS):
        job = old.ended(name)
        assert (job["error"] and job["error"]["code"]) == code, (spec, job)
        assert (job["state"] == "succeeded") == (code is None)
        assert job["spec"] == shown


def test_a_new_database_has_no_copy(daemon):
    assert copies(daemon) == []


@pytest.mark.parametrize("version", [1, 2])
def test_a_step_that_fails(old, version):
    """A later step fails because its table is already there; the earlier steps are rolled
    back, too."""
    state_of_schema(old, version)
    database = sqlite3.connect(old.state / "qdqd.sqlite3")
    database.execute("CREATE TABLE observations(key TEXT)")
    database.commit()
    database.close()
    before = dump(old.state / "qdqd.sqlite3")
    for _ in range(2):
        said = refused(old)
        assert re.search(rf"schema {version} to \d+ and was left as it is: .*observations",
                         said), said
        assert dump(old.state / "qdqd.sqlite3") == before
        assert copies(old) == [f"qdqd.sqlite3.schema-{version}"]
        assert old.temporary_files() == []
    database = sqlite3.connect(old.state / "qdqd.sqlite3")
    database.execute("DROP TABLE observations")
    database.commit()
    database.close()
    old.start()
    old.succeeded(WAITS)


def test_no_copy_no_step(old):
    """When the copy cannot be made, nothing changes."""
    state_of_schema(old, 2)
    before = dump(old.state / "qdqd.sqlite3")
    (old.state / "qdqd.sqlite3.schema-2" / "full").mkdir(parents=True)
    said = refused(old)
    assert "a copy of it cannot be made" in said and "left as it is" in said
    assert dump(old.state / "qdqd.sqlite3") == before
    assert old.temporary_files() == []


def test_the_newest_copies_stay(old):
    """The two newest copies stay, and a copy of the same schema from an earlier time is
    replaced."""
    state_of_schema(old, 3)
    for version in (1, 2, 3):
        (old.state / f"qdqd.sqlite3.schema-{version}").write_text("older")
    (old.state / "qdqd.sqlite3.schema-notes").write_text("mine")
    old.start()
    assert copies(old) == [f"qdqd.sqlite3.schema-{v}" for v in (2, 3, "notes")]
    assert (old.state / "qdqd.sqlite3.schema-2").read_text() == "older"
    assert dump(old.state / "qdqd.sqlite3.schema-3")[0] == 3


def test_a_newer_schema_is_refused(old):
    state_of_schema(old, 3)
    database = sqlite3.connect(old.state / "qdqd.sqlite3")
    database.execute("PRAGMA user_version = 1000")
    database.close()
    said = refused(old)
    assert f"{old.state}/qdqd.sqlite3 has schema 1000" in said
    assert "start the version that wrote it, or a newer one" in said
    assert copies(old) == []
