-- What tells a session from the next one of the same address, its size, and the history of shared
-- state.

-- The columns need the tables for a moment. They are locked in the order in which writers lock
-- them, so that the migration and a writer cannot deadlock.
LOCK TABLE sessions, app_states, user_states, events IN ACCESS EXCLUSIVE MODE;

-- NULL for sessions that were there before; a volatile default would rewrite the table under an
-- exclusive lock.
ALTER TABLE sessions ADD COLUMN sessile_incarnation BIGINT;
-- The bytes of JSON of all events; NULL until it is counted.
ALTER TABLE sessions ADD COLUMN sessile_bytes BIGINT;

-- The changes of shared state, one row for each scope and transaction. `version` is the scope's
-- version since the last of them; a write without a session is a row of its own, with the id of its
-- request.
CREATE TABLE sessile_app_changes (
    app_name VARCHAR(128) NOT NULL,
    version BIGINT NOT NULL,
    request_id VARCHAR(128),
    changes JSON NOT NULL,
    PRIMARY KEY (app_name, version)
);
CREATE UNIQUE INDEX sessile_app_requests ON sessile_app_changes (app_name, request_id) WHERE request_id IS NOT NULL;
CREATE TABLE sessile_user_changes (
    app_name VARCHAR(128) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    version BIGINT NOT NULL,
    request_id VARCHAR(128),
    changes JSON NOT NULL,
    PRIMARY KEY (app_name, user_id, version)
);
CREATE UNIQUE INDEX sessile_user_requests ON sessile_user_changes (app_name, user_id, request_id)
    WHERE request_id IS NOT NULL;

-- Rows of a large batch are compressed; lz4 is several times faster than the default, where the
-- server has it.
DO $$ BEGIN
    ALTER TABLE sessile_app_changes ALTER COLUMN changes SET COMPRESSION lz4;
    ALTER TABLE sessile_user_changes ALTER COLUMN changes SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported OR syntax_error THEN
    NULL; -- built without it, or before version 14
END $$;

-- Triggers for what other writers leave out. They run with the rights of their owner and find our
-- tables whatever the writer's search path is, so that a role without rights on our tables can
-- write to google-adk's.
CREATE OR REPLACE FUNCTION sessile_event_inserted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE sessions
       SET sessile_version = sessile_version + 1,
           sessile_bytes = sessile_bytes + coalesce(octet_length(NEW.event_data::text), 0)
     WHERE app_name = NEW.app_name AND user_id = NEW.user_id AND id = NEW.session_id
    RETURNING sessile_version INTO NEW.sessile_seq;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION sessile_session_inserted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    NEW.sessile_initial := coalesce(NEW.sessile_initial, NEW.state);
    NEW.sessile_incarnation := coalesce(NEW.sessile_incarnation, 1 + floor(random() * 4611686018427387904)::bigint);
    NEW.sessile_bytes := coalesce(NEW.sessile_bytes, 0);
    RETURN NEW;
END $$;
DROP TRIGGER sessile_session_inserted ON sessions;
CREATE TRIGGER sessile_session_inserted BEFORE INSERT ON sessions FOR EACH ROW
    WHEN (NEW.sessile_initial IS NULL OR NEW.sessile_incarnation IS NULL OR NEW.sessile_bytes IS NULL)
    EXECUTE FUNCTION sessile_session_inserted();

-- A scope's version never goes back: a row that is inserted starts one above the newest version in
-- its history. An empty row of a scope without history was never written: it has version 0, as if
-- it were not there.
CREATE FUNCTION sessile_first_version(newest BIGINT, state JSONB) RETURNS BIGINT
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF newest IS NULL AND state = '{}' THEN
        RETURN 0;
    END IF;
    RETURN 1 + coalesce(newest, 0);
END $$;
CREATE FUNCTION sessile_app_inserted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    NEW.sessile_version := sessile_first_version(
        (SELECT max(h.version) FROM sessile_app_changes h WHERE h.app_name = NEW.app_name), NEW.state);
    RETURN NEW;
END $$;
CREATE FUNCTION sessile_user_inserted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    NEW.sessile_version := sessile_first_version(
        (SELECT max(h.version) FROM sessile_user_changes h
          WHERE h.app_name = NEW.app_name AND h.user_id = NEW.user_id), NEW.state);
    RETURN NEW;
END $$;
DROP TRIGGER sessile_app_inserted ON app_states;
CREATE TRIGGER sessile_app_inserted BEFORE INSERT ON app_states
    FOR EACH ROW WHEN (NEW.sessile_version = 0) EXECUTE FUNCTION sessile_app_inserted();
DROP TRIGGER sessile_user_inserted ON user_states;
CREATE TRIGGER sessile_user_inserted BEFORE INSERT ON user_states
    FOR EACH ROW WHEN (NEW.sessile_version = 0) EXECUTE FUNCTION sessile_user_inserted();

-- A row that is deleted leaves a row without changes in the history, so that its version is not
-- used again.
CREATE FUNCTION sessile_app_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO sessile_app_changes (app_name, version, changes) VALUES (OLD.app_name, OLD.sessile_version + 1, '[]')
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER sessile_app_deleted AFTER DELETE ON app_states
    FOR EACH ROW EXECUTE FUNCTION sessile_app_deleted();
CREATE FUNCTION sessile_user_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO sessile_user_changes (app_name, user_id, version, changes)
    VALUES (OLD.app_name, OLD.user_id, OLD.sessile_version + 1, '[]') ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER sessile_user_deleted AFTER DELETE ON user_states
    FOR EACH ROW EXECUTE FUNCTION sessile_user_deleted();
