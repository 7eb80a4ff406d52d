-- The history of what other programs write, and keys that they write with their prefix, in either
-- layout. This file is for the state of applications and for that of users; the names in braces are
-- put in for each.
--
-- What must hold: a trigger never makes the statement of another program fail. The functions that
-- are used here are those that google-adk itself needs; a state that is not valid JSON (google-adk
-- stores NaN) is passed over.
--
-- Sessile's own statements set the version and are not recorded here: its commits write their
-- history themselves.

-- When a row was written, in Unix seconds, for how long it is kept. NULL for rows from before: they
-- count from now on.
ALTER TABLE {changes} ADD COLUMN written_at INTEGER;
INSERT OR IGNORE INTO sessile_meta (key, value) VALUES ('history_since', strftime('%s', 'now'));

-- INSERT OR REPLACE deletes a row in silence. A row that has no history yet leaves its version
-- there before, so that it is not used again.
CREATE TRIGGER sessile_{scope}_replaced BEFORE INSERT ON {table}
WHEN NEW.sessile_version = 0 AND EXISTS (
    SELECT 1 FROM {table} WHERE {is_new} AND sessile_version > coalesce(
        (SELECT max(version) FROM {changes} WHERE {is_new}), 0)
) BEGIN
    INSERT OR IGNORE INTO {changes} ({columns}, version, changes, written_at)
    SELECT {columns}, sessile_version, '[]', CAST(strftime('%s', 'now') AS INTEGER) FROM {table} WHERE {is_new};
END;

-- A row that is inserted goes on after its history. If the history does not end with a deletion,
-- the row that was there before was replaced, and what it held is not known.
DROP TRIGGER IF EXISTS sessile_{scope}_inserted;
CREATE TRIGGER sessile_{scope}_inserted AFTER INSERT ON {table} WHEN NEW.sessile_version = 0 BEGIN
    UPDATE {table} SET
        sessile_version = coalesce(
            (SELECT 1 + max(version) FROM {changes} WHERE {is_new}), NEW.state <> '{}'),
        state = {folded_insert}
    WHERE rowid = NEW.rowid;
    INSERT OR IGNORE INTO {changes} ({columns}, version, changes, written_at)
    SELECT {new_key}, held.sessile_version, {change_insert}, CAST(strftime('%s', 'now') AS INTEGER)
      FROM {table} AS held, ({difference_insert}) AS difference
     WHERE held.rowid = NEW.rowid AND held.sessile_version > 0;
END;

DROP TRIGGER IF EXISTS sessile_{scope}_updated;
CREATE TRIGGER sessile_{scope}_updated AFTER UPDATE OF state ON {table}
WHEN NEW.sessile_version = OLD.sessile_version AND NEW.state IS NOT OLD.state BEGIN
    UPDATE {table} SET
        sessile_version = 1 + max(OLD.sessile_version, coalesce(
            (SELECT max(version) FROM {changes} WHERE {is_new}), 0)),
        state = {folded_update}
    WHERE rowid = NEW.rowid;
    INSERT OR IGNORE INTO {changes} ({columns}, version, changes, written_at)
    SELECT {new_key}, held.sessile_version, {change_update}, CAST(strftime('%s', 'now') AS INTEGER)
      FROM {table} AS held, ({difference_update}) AS difference
     WHERE held.rowid = NEW.rowid;
END;

DROP TRIGGER IF EXISTS sessile_{scope}_deleted;
CREATE TRIGGER sessile_{scope}_deleted AFTER DELETE ON {table} BEGIN
    INSERT OR IGNORE INTO {changes} ({columns}, version, changes, written_at)
    SELECT {old_key}, held.sessile_version, {change_delete}, CAST(strftime('%s', 'now') AS INTEGER)
      FROM (SELECT 1 + max(OLD.sessile_version, coalesce(
                (SELECT max(version) FROM {changes} WHERE {is_old}), 0)) AS sessile_version) AS held,
           ({difference_delete}) AS difference;
END;

-- google-adk changes the state first and then appends the event, in one transaction. The event says
-- who it was: the newest change of the scope, if another program made it just now and all that it
-- set is in the event.
CREATE TRIGGER sessile_{scope}_named AFTER INSERT ON events
WHEN NEW.sessile_seq IS NULL AND instr(NEW.event_data, '"{prefix}') > 0 BEGIN
    UPDATE {changes} SET changes = json_set(changes, '$[0].by', json_object(
        'external', '', 'user', NEW.user_id, 'session', NEW.session_id, 'event', NEW.id,
        'author', json_extract(NEW.event_data, '$.author')))
     WHERE {is_new} AND version = (SELECT max(version) FROM {changes} WHERE {is_new})
       AND json_valid(NEW.event_data)
       AND written_at >= CAST(strftime('%s', 'now') AS INTEGER) - 10
       AND json_extract(changes, '$[0].by.external') IS NOT NULL
       AND json_extract(changes, '$[0].by.event') IS NULL
       AND json_extract(changes, '$[0].change.set') <> '{}'
       AND NOT EXISTS (
           SELECT 1 FROM json_each(changes, '$[0].change.set') AS one
            WHERE '{prefix}' || one.key NOT IN (
                SELECT key FROM json_each(NEW.event_data, '$.actions.state_delta')));
END;
