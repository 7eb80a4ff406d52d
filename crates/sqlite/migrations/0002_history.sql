-- Incarnations, sizes, and the history of shared state, in either layout. Everything is added: new
-- columns are NULL for the rows that are here, so no table is rewritten, and the triggers that are
-- replaced are Sessile's own.

-- Tells a session from one that has the same address after it was deleted. NULL reads as 0:
-- sessions from before.
ALTER TABLE sessions ADD COLUMN sessile_incarnation INTEGER;
-- The length of the JSON of all its events, in bytes. NULL until Sessile appends to a session from
-- before, and counts.
ALTER TABLE sessions ADD COLUMN sessile_bytes INTEGER;

-- The changes of shared state. A row has those that one transaction made, as a JSON list in their
-- order; `version` is that of the last one. A write without a session has a row of its own, which
-- is found by its request id.
CREATE TABLE sessile_app_changes (
    app_name TEXT NOT NULL,
    version INTEGER NOT NULL,
    request_id TEXT,
    changes TEXT NOT NULL,
    PRIMARY KEY (app_name, version)
) WITHOUT ROWID;
CREATE TABLE sessile_user_changes (
    app_name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    request_id TEXT,
    changes TEXT NOT NULL,
    PRIMARY KEY (app_name, user_id, version)
) WITHOUT ROWID;
CREATE UNIQUE INDEX sessile_app_requests ON sessile_app_changes (app_name, request_id)
    WHERE request_id IS NOT NULL;
CREATE UNIQUE INDEX sessile_user_requests ON sessile_user_changes (app_name, user_id, request_id)
    WHERE request_id IS NOT NULL;

-- What google-adk writes is completed by triggers. They must never make its statements fail: they
-- use no function that an older SQLite lacks, parse no JSON (google-adk stores NaN), and violate no
-- constraint. Events of a deleted session can be left over where foreign keys are off; a session at
-- their address goes on after them.
DROP TRIGGER IF EXISTS sessile_session_inserted;
CREATE TRIGGER sessile_session_inserted AFTER INSERT ON sessions WHEN NEW.sessile_incarnation IS NULL BEGIN
    UPDATE sessions SET
        sessile_initial = coalesce(NEW.sessile_initial, NEW.state),
        sessile_incarnation = (random() & 0x3fffffffffffffff) | 1,
        sessile_bytes = coalesce(NEW.sessile_bytes, 0),
        sessile_version = max(sessile_version, coalesce((
            SELECT max(sessile_seq) FROM events
            WHERE app_name = NEW.app_name AND user_id = NEW.user_id AND session_id = NEW.id
        ), 0))
    WHERE rowid = NEW.rowid;
END;
DROP TRIGGER IF EXISTS sessile_event_inserted;
CREATE TRIGGER sessile_event_inserted AFTER INSERT ON events WHEN NEW.sessile_seq IS NULL BEGIN
    UPDATE sessions SET
        sessile_version = 1 + max(sessile_version, coalesce((
            SELECT max(sessile_seq) FROM events
            WHERE app_name = NEW.app_name AND user_id = NEW.user_id AND session_id = NEW.session_id
        ), 0)),
        sessile_bytes = sessile_bytes + coalesce(length(CAST(NEW.event_data AS BLOB)), 0)
    WHERE app_name = NEW.app_name AND user_id = NEW.user_id AND id = NEW.session_id;
    UPDATE events SET sessile_seq = (
        SELECT sessile_version FROM sessions
        WHERE app_name = NEW.app_name AND user_id = NEW.user_id AND id = NEW.session_id
    ) WHERE rowid = NEW.rowid;
END;

-- A scope's version never goes back: a row that is inserted goes on after its history, and a row
-- that is deleted leaves a row without changes there. The empty rows that google-adk inserts with a
-- session change nothing.
DROP TRIGGER IF EXISTS sessile_app_inserted;
CREATE TRIGGER sessile_app_inserted AFTER INSERT ON app_states WHEN NEW.sessile_version = 0 BEGIN
    UPDATE app_states SET sessile_version = coalesce(
        (SELECT 1 + max(version) FROM sessile_app_changes WHERE app_name = NEW.app_name),
        NEW.state <> '{}'
    ) WHERE rowid = NEW.rowid;
END;
DROP TRIGGER IF EXISTS sessile_user_inserted;
CREATE TRIGGER sessile_user_inserted AFTER INSERT ON user_states WHEN NEW.sessile_version = 0 BEGIN
    UPDATE user_states SET sessile_version = coalesce(
        (SELECT 1 + max(version) FROM sessile_user_changes
          WHERE app_name = NEW.app_name AND user_id = NEW.user_id),
        NEW.state <> '{}'
    ) WHERE rowid = NEW.rowid;
END;
CREATE TRIGGER sessile_app_deleted AFTER DELETE ON app_states BEGIN
    INSERT INTO sessile_app_changes (app_name, version, changes)
    SELECT OLD.app_name, 1 + max(OLD.sessile_version, coalesce(max(version), 0)), '[]'
      FROM sessile_app_changes WHERE app_name = OLD.app_name;
END;
CREATE TRIGGER sessile_user_deleted AFTER DELETE ON user_states BEGIN
    INSERT INTO sessile_user_changes (app_name, user_id, version, changes)
    SELECT OLD.app_name, OLD.user_id, 1 + max(OLD.sessile_version, coalesce(max(version), 0)), '[]'
      FROM sessile_user_changes WHERE app_name = OLD.app_name AND user_id = OLD.user_id;
END;
