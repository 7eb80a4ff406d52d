-- What Sessile adds to google-adk's tables, in either layout. Every added name starts with
-- `sessile_`; google-adk neither sees nor disturbs it.

-- A session's revision, and its own state when it was created.
ALTER TABLE sessions ADD COLUMN sessile_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN sessile_initial TEXT;
-- How often shared state was written.
ALTER TABLE app_states ADD COLUMN sessile_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE user_states ADD COLUMN sessile_version INTEGER NOT NULL DEFAULT 0;
-- An event's place in its session: the session's revision since this event.
ALTER TABLE events ADD COLUMN sessile_seq INTEGER;

-- Events that are here already keep the order in which google-adk reads them.
UPDATE events SET sessile_seq = (
    SELECT place FROM (
        SELECT rowid AS event, row_number() OVER (
            PARTITION BY app_name, user_id, session_id ORDER BY timestamp, {tie}
        ) AS place
        FROM events
    ) WHERE event = events.rowid
);
UPDATE sessions SET sessile_version = (
    SELECT count(*) FROM events e
    WHERE e.app_name = sessions.app_name AND e.user_id = sessions.user_id AND e.session_id = sessions.id
);
UPDATE app_states SET sessile_version = 1;
UPDATE user_states SET sessile_version = 1;

CREATE UNIQUE INDEX sessile_events_seq ON events (app_name, user_id, session_id, sessile_seq);
CREATE INDEX sessile_sessions_of_user ON sessions (app_name, user_id, update_time, id);
CREATE INDEX sessile_sessions_of_app ON sessions (app_name, update_time, user_id, id);

-- What google-adk writes gets its revision from triggers; Sessile writes revisions itself.
CREATE TRIGGER sessile_event_inserted AFTER INSERT ON events WHEN NEW.sessile_seq IS NULL BEGIN
    UPDATE sessions SET sessile_version = sessile_version + 1
    WHERE app_name = NEW.app_name AND user_id = NEW.user_id AND id = NEW.session_id;
    UPDATE events SET sessile_seq = (
        SELECT sessile_version FROM sessions
        WHERE app_name = NEW.app_name AND user_id = NEW.user_id AND id = NEW.session_id
    ) WHERE rowid = NEW.rowid;
END;
CREATE TRIGGER sessile_session_inserted AFTER INSERT ON sessions WHEN NEW.sessile_initial IS NULL BEGIN
    UPDATE sessions SET sessile_initial = NEW.state WHERE rowid = NEW.rowid;
END;
CREATE TRIGGER sessile_app_inserted AFTER INSERT ON app_states WHEN NEW.sessile_version = 0 BEGIN
    UPDATE app_states SET sessile_version = 1 WHERE rowid = NEW.rowid;
END;
CREATE TRIGGER sessile_app_updated AFTER UPDATE OF state ON app_states
WHEN NEW.sessile_version = OLD.sessile_version BEGIN
    UPDATE app_states SET sessile_version = OLD.sessile_version + 1 WHERE rowid = NEW.rowid;
END;
CREATE TRIGGER sessile_user_inserted AFTER INSERT ON user_states WHEN NEW.sessile_version = 0 BEGIN
    UPDATE user_states SET sessile_version = 1 WHERE rowid = NEW.rowid;
END;
CREATE TRIGGER sessile_user_updated AFTER UPDATE OF state ON user_states
WHEN NEW.sessile_version = OLD.sessile_version BEGIN
    UPDATE user_states SET sessile_version = OLD.sessile_version + 1 WHERE rowid = NEW.rowid;
END;
