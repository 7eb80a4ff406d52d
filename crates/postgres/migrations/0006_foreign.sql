-- The history of what other programs write to shared state, and keys that they write with their
-- prefix.
--
-- What must hold: a trigger never makes the statement of another program fail, whatever its rights
-- and its search path are. Sessile's own commits set the version and write their history
-- themselves; no function is called for them.

-- The columns and triggers need the tables for a moment, in the order in which writers lock them.
LOCK TABLE app_states, user_states, events, sessile_app_changes, sessile_user_changes IN ACCESS EXCLUSIVE MODE;

-- The last version that another program made. The triggers below set it, and it equals the version
-- of the row only while such a write is being made.
ALTER TABLE app_states ADD COLUMN sessile_foreign BIGINT;
ALTER TABLE user_states ADD COLUMN sessile_foreign BIGINT;

-- When a change was written, for how long it is kept; those from before count from now on. The
-- default is the same for all of them, so no table is rewritten.
ALTER TABLE sessile_app_changes ADD COLUMN written_at TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now();
ALTER TABLE sessile_user_changes ADD COLUMN written_at TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now();

-- A state without prefixes in its keys. A key with its prefix is the same key as without. If a
-- write left both, the one counts that it changed; if it changed both, the one without prefix. Most
-- states have none and are returned as they are.
CREATE FUNCTION sessile_fold(state JSONB, before JSONB, prefix TEXT) RETURNS JSONB
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    key TEXT;
    bare TEXT;
BEGIN
    IF jsonb_typeof(state) <> 'object' OR strpos(state::text, '"' || prefix) = 0 THEN
        RETURN state;
    END IF;
    FOR key IN SELECT k.key FROM jsonb_object_keys(state) AS k (key) WHERE left(k.key, length(prefix)) = prefix LOOP
        bare := substr(key, length(prefix) + 1);
        IF NOT state ? bare OR (state -> key IS DISTINCT FROM before -> key
                                AND state -> bare IS NOT DISTINCT FROM before -> bare) THEN
            state := state || jsonb_build_object(bare, state -> key);
        END IF;
        state := state - key;
    END LOOP;
    RETURN state;
END $$;

-- The change from one state to another, as the history has it; NULL if there is no row.
-- The values before are not known if one of them is not an object.
CREATE FUNCTION sessile_foreign_change(old_state JSONB, new_state JSONB, prefix TEXT, version BIGINT) RETURNS JSON
LANGUAGE plpgsql AS $$
DECLARE
    readable BOOLEAN := coalesce(jsonb_typeof(old_state), 'object') = 'object'
                    AND coalesce(jsonb_typeof(new_state), 'object') = 'object';
    was JSONB := CASE WHEN jsonb_typeof(old_state) = 'object' THEN sessile_fold(old_state, old_state, prefix) ELSE '{}' END;
    became JSONB := CASE WHEN jsonb_typeof(new_state) = 'object' THEN new_state ELSE '{}' END;
    was_set JSONB;
    removed JSONB;
    before JSONB;
    writer TEXT := session_user || coalesce(' with ' || nullif(current_setting('application_name', true), ''), '');
    change JSONB;
BEGIN
    SELECT coalesce(jsonb_object_agg(n.key, n.value), '{}') INTO was_set FROM jsonb_each(became) AS n
     WHERE n.value::text IS DISTINCT FROM (was -> n.key)::text;
    SELECT coalesce(jsonb_agg(o.key), '[]') INTO removed FROM jsonb_object_keys(was) AS o (key) WHERE NOT became ? o.key;
    SELECT coalesce(jsonb_object_agg(o.key, o.value), '{}') INTO before FROM jsonb_each(was) AS o
     WHERE o.value::text IS DISTINCT FROM (became -> o.key)::text;
    change := jsonb_build_object(
        'version', version, 'time', extract(epoch FROM clock_timestamp())::double precision,
        'by', jsonb_build_object('external', writer),
        'change', jsonb_build_object('set', was_set, 'remove', removed),
        'undo', CASE WHEN readable THEN jsonb_build_object('before', before) ELSE '{"unknown": true}' END);
    RETURN jsonb_build_array(change)::json;
END $$;

-- Before a row is written: folds its keys, and gives it the version after its history. Of an INSERT
-- … ON CONFLICT DO UPDATE this is done to what the statement names `excluded` too.
CREATE FUNCTION sessile_shared_written() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    prefix TEXT := TG_ARGV[0] || ':';
    newest BIGINT;
BEGIN
    IF TG_ARGV[0] = 'app' THEN
        SELECT max(h.version) INTO newest FROM sessile_app_changes h WHERE h.app_name = NEW.app_name;
    ELSE
        SELECT max(h.version) INTO newest FROM sessile_user_changes h
         WHERE h.app_name = NEW.app_name AND h.user_id = NEW.user_id;
    END IF;
    IF TG_OP = 'INSERT' THEN
        NEW.state := sessile_fold(NEW.state, '{}', prefix);
        NEW.sessile_version := sessile_first_version(newest, NEW.state);
    ELSE
        NEW.state := sessile_fold(NEW.state, OLD.state, prefix);
        NEW.sessile_version := 1 + greatest(OLD.sessile_version, newest);
    END IF;
    NEW.sessile_foreign := nullif(NEW.sessile_version, 0);
    RETURN NEW;
END $$;

-- After another program wrote a row: notes the change. The event that google-adk appends next, in
-- the same transaction, finds by the setting what it belongs to.
CREATE FUNCTION sessile_shared_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    prefix TEXT := TG_ARGV[0] || ':';
    old_state JSONB;
    new_state JSONB;
    version BIGINT;
    newest BIGINT;
    app TEXT;
    usr TEXT;
    change JSON;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        old_state := OLD.state; app := OLD.app_name; version := OLD.sessile_version + 1;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        new_state := NEW.state; app := NEW.app_name; version := NEW.sessile_version;
    END IF;
    IF TG_ARGV[0] = 'app' THEN
        SELECT max(h.version) INTO newest FROM sessile_app_changes h WHERE h.app_name = app;
    ELSE
        usr := CASE TG_OP WHEN 'DELETE' THEN OLD.user_id ELSE NEW.user_id END;
        SELECT max(h.version) INTO newest FROM sessile_user_changes h WHERE h.app_name = app AND h.user_id = usr;
    END IF;
    -- A row that was deleted while this one waited to be inserted has a version that could not be
    -- seen before.
    IF newest >= version THEN
        version := newest + 1;
        IF TG_OP <> 'DELETE' AND TG_ARGV[0] = 'app' THEN
            UPDATE app_states s SET sessile_version = version, sessile_foreign = version WHERE s.app_name = app;
        ELSIF TG_OP <> 'DELETE' THEN
            UPDATE user_states s SET sessile_version = version, sessile_foreign = version
             WHERE s.app_name = app AND s.user_id = usr;
        END IF;
    END IF;
    change := sessile_foreign_change(old_state, new_state, prefix, version);
    IF TG_ARGV[0] = 'app' THEN
        INSERT INTO sessile_app_changes (app_name, version, changes) VALUES (app, version, change) ON CONFLICT DO NOTHING;
    ELSE
        INSERT INTO sessile_user_changes (app_name, user_id, version, changes) VALUES (app, usr, version, change)
            ON CONFLICT DO NOTHING;
    END IF;
    PERFORM set_config('sessile.' || TG_ARGV[0] || '_change', json_build_array(app, usr, version)::text, true);
    RETURN NULL;
END $$;

DROP TRIGGER sessile_app_inserted ON app_states;
DROP TRIGGER sessile_app_updated ON app_states;
DROP TRIGGER sessile_app_deleted ON app_states;
DROP TRIGGER sessile_user_inserted ON user_states;
DROP TRIGGER sessile_user_updated ON user_states;
DROP TRIGGER sessile_user_deleted ON user_states;
CREATE TRIGGER sessile_app_inserted BEFORE INSERT ON app_states FOR EACH ROW
    WHEN (NEW.sessile_version = 0) EXECUTE FUNCTION sessile_shared_written('app');
CREATE TRIGGER sessile_app_updated BEFORE UPDATE OF state ON app_states FOR EACH ROW
    WHEN (NEW.sessile_version = OLD.sessile_version AND NEW.state IS DISTINCT FROM OLD.state)
    EXECUTE FUNCTION sessile_shared_written('app');
CREATE TRIGGER sessile_app_insert_noted AFTER INSERT ON app_states FOR EACH ROW
    WHEN (NEW.sessile_foreign = NEW.sessile_version) EXECUTE FUNCTION sessile_shared_changed('app');
CREATE TRIGGER sessile_app_update_noted AFTER UPDATE OF state ON app_states FOR EACH ROW
    WHEN (NEW.sessile_foreign = NEW.sessile_version AND NEW.sessile_version <> OLD.sessile_version)
    EXECUTE FUNCTION sessile_shared_changed('app');
CREATE TRIGGER sessile_app_deleted AFTER DELETE ON app_states FOR EACH ROW EXECUTE FUNCTION sessile_shared_changed('app');
CREATE TRIGGER sessile_user_inserted BEFORE INSERT ON user_states FOR EACH ROW
    WHEN (NEW.sessile_version = 0) EXECUTE FUNCTION sessile_shared_written('user');
CREATE TRIGGER sessile_user_updated BEFORE UPDATE OF state ON user_states FOR EACH ROW
    WHEN (NEW.sessile_version = OLD.sessile_version AND NEW.state IS DISTINCT FROM OLD.state)
    EXECUTE FUNCTION sessile_shared_written('user');
CREATE TRIGGER sessile_user_insert_noted AFTER INSERT ON user_states FOR EACH ROW
    WHEN (NEW.sessile_foreign = NEW.sessile_version) EXECUTE FUNCTION sessile_shared_changed('user');
CREATE TRIGGER sessile_user_update_noted AFTER UPDATE OF state ON user_states FOR EACH ROW
    WHEN (NEW.sessile_foreign = NEW.sessile_version AND NEW.sessile_version <> OLD.sessile_version)
    EXECUTE FUNCTION sessile_shared_changed('user');
CREATE TRIGGER sessile_user_deleted AFTER DELETE ON user_states FOR EACH ROW EXECUTE FUNCTION sessile_shared_changed('user');

-- The change as it is named by an event: all that it set must be in the event.
CREATE FUNCTION sessile_named(changes JSON, prefix TEXT, delta JSONB, writer JSONB) RETURNS JSON
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    first JSONB := changes::jsonb -> 0;
    names TEXT[] := ARRAY(SELECT prefix || k.key FROM jsonb_object_keys(first #> '{change,set}') AS k (key));
BEGIN
    IF first #> '{by,external}' IS NULL OR first #> '{by,event}' IS NOT NULL
       OR cardinality(names) = 0 OR NOT delta ?& names THEN
        RETURN changes;
    END IF;
    RETURN jsonb_build_array(jsonb_set(first, '{by}', (first -> 'by') || writer))::json;
END $$;

-- google-adk changes the state first and then appends the event, in one transaction: the event says
-- who it was.
CREATE OR REPLACE FUNCTION sessile_event_inserted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    changed JSON;
    delta JSONB := NEW.event_data #> '{actions,state_delta}';
    writer JSONB;
BEGIN
    UPDATE sessions
       SET sessile_version = sessile_version + 1,
           sessile_bytes = sessile_bytes + coalesce(octet_length(NEW.event_data::text), 0)
     WHERE app_name = NEW.app_name AND user_id = NEW.user_id AND id = NEW.session_id
    RETURNING sessile_version INTO NEW.sessile_seq;
    IF jsonb_typeof(delta) <> 'object' OR delta = '{}' THEN
        RETURN NEW;
    END IF;
    writer := jsonb_strip_nulls(jsonb_build_object('user', NEW.user_id, 'session', NEW.session_id, 'event', NEW.id,
                                                   'author', NEW.event_data ->> 'author'));
    changed := nullif(current_setting('sessile.app_change', true), '')::json;
    IF changed ->> 0 = NEW.app_name THEN
        UPDATE sessile_app_changes h SET changes = sessile_named(h.changes, 'app:', delta, writer)
         WHERE h.app_name = NEW.app_name AND h.version = (changed ->> 2)::bigint;
        PERFORM set_config('sessile.app_change', '', true);
    END IF;
    changed := nullif(current_setting('sessile.user_change', true), '')::json;
    IF changed ->> 0 = NEW.app_name AND changed ->> 1 = NEW.user_id THEN
        UPDATE sessile_user_changes h SET changes = sessile_named(h.changes, 'user:', delta, writer)
         WHERE h.app_name = NEW.app_name AND h.user_id = NEW.user_id AND h.version = (changed ->> 2)::bigint;
        PERFORM set_config('sessile.user_change', '', true);
    END IF;
    RETURN NEW;
END $$;
