-- Locks the row of shared state of an application (`usr` is NULL) or a user, and creates it if
-- necessary.
CREATE FUNCTION sessile_lock_scope(
    app TEXT, usr TEXT, seconds DOUBLE PRECISION,
    OUT is_new BOOLEAN, OUT version BIGINT, OUT state JSONB
)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
BEGIN
    is_new := false;
    LOOP
        IF usr IS NULL THEN
            SELECT a.sessile_version, a.state INTO version, state FROM app_states a WHERE a.app_name = app FOR UPDATE;
        ELSE
            SELECT u.sessile_version, u.state INTO version, state FROM user_states u
             WHERE u.app_name = app AND u.user_id = usr FOR UPDATE;
        END IF;
        IF FOUND THEN
            RETURN;
        END IF;
        IF usr IS NULL THEN
            INSERT INTO app_states (app_name, state, update_time) VALUES (app, '{}', sessile_time(seconds))
                ON CONFLICT DO NOTHING;
        ELSE
            INSERT INTO user_states (app_name, user_id, state, update_time) VALUES (app, usr, '{}', sessile_time(seconds))
                ON CONFLICT DO NOTHING;
        END IF;
        is_new := FOUND; -- if not, another transaction was faster, and its row is locked in the next round
    END LOOP;
END $$;

-- Writes shared state that is locked, and its change to the history.
CREATE FUNCTION sessile_store_scope(
    app TEXT, usr TEXT, new_state JSONB, new_version BIGINT, seconds DOUBLE PRECISION, request TEXT,
    changed_by JSONB, delta JSONB, undo TEXT
)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    changes JSON := json_build_array(json_build_object(
        'version', new_version, 'time', seconds, 'by', changed_by, 'change', delta, 'undo', undo::json));
BEGIN
    IF usr IS NULL THEN
        UPDATE app_states a SET state = new_state, update_time = sessile_time(seconds), sessile_version = new_version
         WHERE a.app_name = app;
        INSERT INTO sessile_app_changes VALUES (app, new_version, request, changes);
    ELSE
        UPDATE user_states u SET state = new_state, update_time = sessile_time(seconds), sessile_version = new_version
         WHERE u.app_name = app AND u.user_id = usr;
        INSERT INTO sessile_user_changes VALUES (app, usr, new_version, request, changes);
    END IF;
END $$;

-- Changes shared state without a session. A second write with the same request id changes nothing:
-- it returns the first one and all changes since, newest first, from which its result can be
-- computed backwards from the current state.
CREATE FUNCTION sessile_write_scope(
    app TEXT, usr TEXT, delta JSONB, names TEXT[], seconds DOUBLE PRECISION,
    expected BIGINT, guards JSONB, max_bytes BIGINT, request TEXT, principal TEXT
)
RETURNS TABLE (
    status TEXT, version BIGINT, actual BIGINT, detail JSONB, state TEXT, known TEXT, later TEXT
)
LANGUAGE plpgsql SET extra_float_digits = 1 AS $$
#variable_conflict use_variable
DECLARE
    held RECORD;
    first RECORD;
    differs JSONB;
    evaluated sessile_evaluated;
    prefix TEXT := CASE WHEN usr IS NULL THEN 'app:' ELSE 'user:' END;
    size BIGINT;
    changed_by JSONB := jsonb_build_object('request', request);
BEGIN
    held := sessile_lock_scope(app, usr, seconds);
    version := held.version;
    IF usr IS NULL THEN
        SELECT h.version, h.changes INTO first FROM sessile_app_changes h
         WHERE h.app_name = app AND h.request_id = request;
    ELSE
        SELECT h.version, h.changes INTO first FROM sessile_user_changes h
         WHERE h.app_name = app AND h.user_id = usr AND h.request_id = request;
    END IF;
    IF FOUND THEN
        status := 'known'; version := first.version; state := held.state::text;
        known := (first.changes #> '{0,change}')::text;
        later := CASE WHEN usr IS NULL THEN (
            SELECT json_agg(c.one ORDER BY h.version DESC, c.n DESC)::text
              FROM sessile_app_changes h CROSS JOIN LATERAL json_array_elements(h.changes) WITH ORDINALITY AS c (one, n)
             WHERE h.app_name = app AND h.version > first.version)
        ELSE (
            SELECT json_agg(c.one ORDER BY h.version DESC, c.n DESC)::text
              FROM sessile_user_changes h CROSS JOIN LATERAL json_array_elements(h.changes) WITH ORDINALITY AS c (one, n)
             WHERE h.app_name = app AND h.user_id = usr AND h.version > first.version)
        END;
        RETURN NEXT; RETURN;
    END IF;
    IF expected <> (CASE WHEN held.is_new THEN 0 ELSE held.version END) THEN
        status := 'version'; actual := held.version; RETURN NEXT; RETURN;
    END IF;
    IF guards IS NOT NULL THEN
        differs := sessile_compare(held.state, guards, prefix, NULL);
        IF differs @> '{"refuse": true}' THEN
            status := 'overwritten'; detail := differs; RETURN NEXT; RETURN;
        END IF;
    END IF;
    state := held.state::text;
    IF delta IS NULL THEN
        status := 'done'; RETURN NEXT; RETURN;
    END IF;
    evaluated := sessile_evaluate(held.state, delta, names, prefix);
    IF evaluated.refused IS NOT NULL THEN
        status := 'operation'; detail := sessile_refused(prefix, evaluated); RETURN NEXT; RETURN;
    END IF;
    size := sessile_too_large(evaluated.state, held.state, max_bytes);
    IF size IS NOT NULL THEN
        status := 'size'; actual := size; RETURN NEXT; RETURN;
    END IF;
    IF principal IS NOT NULL THEN
        changed_by := changed_by || jsonb_build_object('principal', principal);
    END IF;
    version := held.version + 1;
    PERFORM sessile_store_scope(app, usr, evaluated.state, version, seconds, request, changed_by, delta, evaluated.undo);
    status := 'done'; state := evaluated.state::text;
    RETURN NEXT;
END $$;

-- Creates a session with its events and changes of shared state. Creating the same incarnation
-- again changes nothing: that is how a lost connection is told from a session of another caller.
CREATE FUNCTION sessile_create_session(new JSONB)
RETURNS TABLE (
    status TEXT, update_time DOUBLE PRECISION, actual BIGINT, detail JSONB,
    user_state TEXT, user_version BIGINT, app_state TEXT, app_version BIGINT
)
LANGUAGE plpgsql SET extra_float_digits = 1 AS $$
#variable_conflict use_variable
DECLARE
    app TEXT := new ->> 'app';
    usr TEXT := new ->> 'user';
    sid TEXT := new ->> 'id';
    seconds DOUBLE PRECISION := (new -> 'time')::float8;
    max_bytes BIGINT := (new -> 'max_bytes')::bigint;
    changed_by JSONB := jsonb_build_object('user', usr, 'session', sid, 'event', '');
    of_app RECORD;
    of_user RECORD;
    app_change sessile_evaluated;
    user_change sessile_evaluated;
    found_incarnation BIGINT;
    is_created BOOLEAN;
BEGIN
    INSERT INTO sessions (app_name, user_id, id, state, create_time, update_time, sessile_version, sessile_initial,
                          sessile_incarnation, sessile_bytes)
    VALUES (app, usr, sid, new -> 'state', sessile_time(seconds), sessile_time((new -> 'update_time')::float8),
            jsonb_array_length(new -> 'events'), new -> 'initial', (new -> 'incarnation')::bigint,
            (new -> 'bytes')::bigint)
        ON CONFLICT DO NOTHING;
    is_created := FOUND;
    SELECT s.sessile_incarnation, extract(epoch FROM s.update_time) INTO found_incarnation, update_time
      FROM sessions s WHERE s.app_name = app AND s.user_id = usr AND s.id = sid;
    IF NOT is_created AND found_incarnation IS DISTINCT FROM (new -> 'incarnation')::bigint THEN
        status := 'exists'; RETURN NEXT; RETURN;
    END IF;
    -- google-adk needs both rows, also empty ones, to append an event.
    of_app := sessile_lock_scope(app, NULL, seconds);
    of_user := sessile_lock_scope(app, usr, seconds);
    app_state := of_app.state::text; app_version := of_app.version;
    user_state := of_user.state::text; user_version := of_user.version;
    status := 'done';
    IF NOT is_created THEN
        RETURN NEXT; RETURN;
    END IF;
    IF max_bytes IS NOT NULL AND sessile_too_large(new -> 'state', NULL, max_bytes) IS NOT NULL THEN
        status := 'session_size'; actual := sessile_too_large(new -> 'state', NULL, max_bytes);
    END IF;
    IF new ? 'app_delta' THEN
        app_change := sessile_evaluate(of_app.state, new -> 'app_delta',
            ARRAY(SELECT jsonb_array_elements_text(new -> 'app_names')), 'app:');
        IF app_change.refused IS NOT NULL THEN
            status := 'operation'; detail := sessile_refused('app:', app_change);
        ELSIF sessile_too_large(app_change.state, of_app.state, max_bytes) IS NOT NULL THEN
            status := 'app_size'; actual := sessile_too_large(app_change.state, of_app.state, max_bytes);
        END IF;
    END IF;
    IF new ? 'user_delta' THEN
        user_change := sessile_evaluate(of_user.state, new -> 'user_delta',
            ARRAY(SELECT jsonb_array_elements_text(new -> 'user_names')), 'user:');
        IF user_change.refused IS NOT NULL THEN
            status := 'operation'; detail := sessile_refused('user:', user_change);
        ELSIF sessile_too_large(user_change.state, of_user.state, max_bytes) IS NOT NULL THEN
            status := 'user_size'; actual := sessile_too_large(user_change.state, of_user.state, max_bytes);
        END IF;
    END IF;
    IF status <> 'done' THEN
        DELETE FROM sessions s WHERE s.app_name = app AND s.user_id = usr AND s.id = sid;
        RETURN NEXT; RETURN;
    END IF;
    INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data, sessile_seq)
    SELECT e ->> 'event_id', app, usr, sid, e ->> 'invocation', sessile_time((e -> 'time')::float8), e -> 'event', place
      FROM jsonb_array_elements(new -> 'events') WITH ORDINALITY AS listed (e, place);
    IF new ? 'app_delta' THEN
        app_version := app_version + 1; app_state := app_change.state::text;
        PERFORM sessile_store_scope(app, NULL, app_change.state, app_version, seconds, NULL, changed_by,
                                    new -> 'app_delta', app_change.undo);
    END IF;
    IF new ? 'user_delta' THEN
        user_version := user_version + 1; user_state := user_change.state::text;
        PERFORM sessile_store_scope(app, usr, user_change.state, user_version, seconds, NULL, changed_by,
                                    new -> 'user_delta', user_change.undo);
    END IF;
    RETURN NEXT;
END $$;
