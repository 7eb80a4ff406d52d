-- What Sessile adds to google-adk's tables. Every added name starts with `sessile_`; google-adk
-- neither sees nor disturbs it.

-- A session's revision, and its own state when it was created.
ALTER TABLE sessions ADD COLUMN sessile_version BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN sessile_initial JSONB;
-- How often shared state was written.
ALTER TABLE app_states ADD COLUMN sessile_version BIGINT NOT NULL DEFAULT 0;
ALTER TABLE user_states ADD COLUMN sessile_version BIGINT NOT NULL DEFAULT 0;
-- An event's place in its session: the session's revision since this event.
ALTER TABLE events ADD COLUMN sessile_seq BIGINT;

-- Events that are here already keep the order in which google-adk reads them.
UPDATE events SET sessile_seq = placed.place FROM (
    SELECT id, app_name, user_id, session_id, row_number() OVER (
        PARTITION BY app_name, user_id, session_id ORDER BY timestamp, id
    ) AS place
    FROM events
) AS placed
WHERE events.id = placed.id AND events.app_name = placed.app_name
  AND events.user_id = placed.user_id AND events.session_id = placed.session_id;
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
CREATE FUNCTION sessile_event_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE sessions SET sessile_version = sessile_version + 1
     WHERE app_name = NEW.app_name AND user_id = NEW.user_id AND id = NEW.session_id
    RETURNING sessile_version INTO NEW.sessile_seq;
    RETURN NEW;
END $$;
CREATE TRIGGER sessile_event_inserted BEFORE INSERT ON events
    FOR EACH ROW WHEN (NEW.sessile_seq IS NULL) EXECUTE FUNCTION sessile_event_inserted();

CREATE FUNCTION sessile_session_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.sessile_initial := NEW.state;
    RETURN NEW;
END $$;
CREATE TRIGGER sessile_session_inserted BEFORE INSERT ON sessions
    FOR EACH ROW WHEN (NEW.sessile_initial IS NULL) EXECUTE FUNCTION sessile_session_inserted();

CREATE FUNCTION sessile_state_written() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.sessile_version := NEW.sessile_version + 1;
    RETURN NEW;
END $$;
CREATE TRIGGER sessile_app_inserted BEFORE INSERT ON app_states
    FOR EACH ROW WHEN (NEW.sessile_version = 0) EXECUTE FUNCTION sessile_state_written();
CREATE TRIGGER sessile_user_inserted BEFORE INSERT ON user_states
    FOR EACH ROW WHEN (NEW.sessile_version = 0) EXECUTE FUNCTION sessile_state_written();
CREATE TRIGGER sessile_app_updated BEFORE UPDATE OF state ON app_states
    FOR EACH ROW WHEN (NEW.sessile_version = OLD.sessile_version) EXECUTE FUNCTION sessile_state_written();
CREATE TRIGGER sessile_user_updated BEFORE UPDATE OF state ON user_states
    FOR EACH ROW WHEN (NEW.sessile_version = OLD.sessile_version) EXECUTE FUNCTION sessile_state_written();
