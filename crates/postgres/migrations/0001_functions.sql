-- The writes that must be one round trip and one transaction. A delta is {"set": {key: value},
-- "remove": [keys], "twins": "{keys}"}; twins are keys under another name, and go too.

CREATE FUNCTION sessile_time(seconds DOUBLE PRECISION) RETURNS TIMESTAMP WITHOUT TIME ZONE
LANGUAGE sql IMMUTABLE AS $$
    SELECT to_timestamp(seconds) AT TIME ZONE 'UTC'
$$;

-- In plpgsql, like the others: it keeps its plans, while a function in SQL is planned at every
-- call.
CREATE FUNCTION sessile_changed(state JSONB, delta JSONB) RETURNS JSONB
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    -- Joined to anything else, an object would become an item of a list, and its keys would be
    -- lost.
    IF jsonb_typeof(state) <> 'object' THEN
        RAISE EXCEPTION 'the stored state is no JSON object' USING ERRCODE = 'data_corrupted';
    END IF;
    IF state ?| (delta ->> 'twins')::text[] THEN
        state := state - (delta ->> 'twins')::text[];
    END IF;
    IF delta -> 'remove' = '[]' THEN
        RETURN state || (delta -> 'set');
    END IF;
    RETURN (state || (delta -> 'set')) - ARRAY(SELECT jsonb_array_elements_text(delta -> 'remove'));
END $$;

-- Whether a delta changes anything.
CREATE FUNCTION sessile_changes(delta JSONB) RETURNS BOOLEAN
LANGUAGE sql IMMUTABLE AS $$
    SELECT delta -> 'set' <> '{}' OR delta -> 'remove' <> '[]'
$$;

CREATE FUNCTION sessile_write_app(app TEXT, delta JSONB, seconds DOUBLE PRECISION) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO app_states (app_name, state, update_time, sessile_version)
    VALUES (app, sessile_changed('{}', delta), sessile_time(seconds), 1)
    ON CONFLICT (app_name) DO UPDATE SET
        state = sessile_changed(app_states.state, delta), update_time = excluded.update_time,
        sessile_version = app_states.sessile_version + 1;
END $$;

CREATE FUNCTION sessile_write_user(app TEXT, usr TEXT, delta JSONB, seconds DOUBLE PRECISION) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO user_states (app_name, user_id, state, update_time, sessile_version)
    VALUES (app, usr, sessile_changed('{}', delta), sessile_time(seconds), 1)
    ON CONFLICT (app_name, user_id) DO UPDATE SET
        state = sessile_changed(user_states.state, delta), update_time = excluded.update_time,
        sessile_version = user_states.sessile_version + 1;
END $$;

-- Appends events, in the order of the array, in one transaction; answers one row for each. Rows are
-- locked in google-adk's order (sessions, applications, users) and sorted, so that
-- transactions cannot deadlock.
CREATE FUNCTION sessile_append(commits JSONB)
RETURNS TABLE (status TEXT, version BIGINT, update_time DOUBLE PRECISION, actual BIGINT)
LANGUAGE plpgsql
-- Plans are made while the tables are small and kept when they are large: every row is looked up by
-- its key.
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    c JSONB;
    held RECORD;
    known BIGINT;
    stored RECORD;
    moment TIMESTAMP WITHOUT TIME ZONE;
BEGIN
    PERFORM 1 FROM sessions s
      JOIN (SELECT DISTINCT e ->> 'app' AS app, e ->> 'user' AS usr, e ->> 'id' AS sid
              FROM jsonb_array_elements(commits) e) k
        ON s.app_name = k.app AND s.user_id = k.usr AND s.id = k.sid
     ORDER BY s.app_name, s.user_id, s.id FOR UPDATE OF s;
    PERFORM 1 FROM app_states a
     WHERE a.app_name IN (SELECT e ->> 'app' FROM jsonb_array_elements(commits) e
                           WHERE sessile_changes(e -> 'app_delta') OR e -> 'expect_app' <> 'null')
     ORDER BY a.app_name FOR UPDATE OF a;
    PERFORM 1 FROM user_states u
      JOIN (SELECT DISTINCT e ->> 'app' AS app, e ->> 'user' AS usr FROM jsonb_array_elements(commits) e
             WHERE sessile_changes(e -> 'user_delta') OR e -> 'expect_user' <> 'null') k
        ON u.app_name = k.app AND u.user_id = k.usr
     ORDER BY u.app_name, u.user_id FOR UPDATE OF u;

    FOR c IN SELECT * FROM jsonb_array_elements(commits) LOOP
        status := NULL; version := NULL; update_time := NULL; actual := NULL;
        SELECT s.sessile_version, s.update_time AS at INTO held FROM sessions s
         WHERE s.app_name = c ->> 'app' AND s.user_id = c ->> 'user' AND s.id = c ->> 'id';
        IF NOT FOUND THEN
            status := 'missing'; RETURN NEXT; CONTINUE;
        END IF;

        SELECT e.sessile_seq, e.event_data INTO stored FROM events e
         WHERE e.app_name = c ->> 'app' AND e.user_id = c ->> 'user' AND e.session_id = c ->> 'id'
           AND e.id = c ->> 'event_id';
        IF FOUND THEN
            status := CASE WHEN stored.event_data = c -> 'event' THEN 'again' ELSE 'other_event' END;
            version := stored.sessile_seq; update_time := extract(epoch FROM held.at); RETURN NEXT; CONTINUE;
        END IF;

        IF c -> 'expect_session' <> 'null' AND (c -> 'expect_session')::bigint <> held.sessile_version THEN
            status := 'session'; actual := held.sessile_version; RETURN NEXT; CONTINUE;
        END IF;
        IF c -> 'expect_user' <> 'null' THEN
            SELECT u.sessile_version INTO known FROM user_states u
             WHERE u.app_name = c ->> 'app' AND u.user_id = c ->> 'user';
            IF coalesce(known, 0) <> (c -> 'expect_user')::bigint THEN
                status := 'user'; actual := coalesce(known, 0); RETURN NEXT; CONTINUE;
            END IF;
        END IF;
        IF c -> 'expect_app' <> 'null' THEN
            SELECT a.sessile_version INTO known FROM app_states a WHERE a.app_name = c ->> 'app';
            IF coalesce(known, 0) <> (c -> 'expect_app')::bigint THEN
                status := 'app'; actual := coalesce(known, 0); RETURN NEXT; CONTINUE;
            END IF;
        END IF;

        moment := sessile_time((c -> 'time')::float8);
        INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data, sessile_seq)
        VALUES (c ->> 'event_id', c ->> 'app', c ->> 'user', c ->> 'id', c ->> 'invocation', moment, c -> 'event',
                held.sessile_version + 1);
        -- A changed session always has a changed time: that is how google-adk finds that its copy
        -- is stale.
        moment := CASE WHEN moment > held.at THEN moment ELSE held.at + interval '1 microsecond' END;
        UPDATE sessions s
           SET state = CASE WHEN sessile_changes(c -> 'session_delta')
                            THEN sessile_changed(s.state, c -> 'session_delta') ELSE s.state END,
               update_time = moment, sessile_version = s.sessile_version + 1
         WHERE s.app_name = c ->> 'app' AND s.user_id = c ->> 'user' AND s.id = c ->> 'id';
        IF sessile_changes(c -> 'app_delta') THEN
            PERFORM sessile_write_app(c ->> 'app', c -> 'app_delta', (c -> 'time')::float8);
        END IF;
        IF sessile_changes(c -> 'user_delta') THEN
            PERFORM sessile_write_user(c ->> 'app', c ->> 'user', c -> 'user_delta', (c -> 'time')::float8);
        END IF;
        status := 'done'; version := held.sessile_version + 1; update_time := extract(epoch FROM moment);
        RETURN NEXT;
    END LOOP;
END $$;

-- Creates a session with its events; false if there is one.
CREATE FUNCTION sessile_create(new JSONB) RETURNS BOOLEAN
LANGUAGE plpgsql AS $$
DECLARE
    moment TIMESTAMP WITHOUT TIME ZONE := sessile_time((new -> 'time')::float8);
    inserted BIGINT;
BEGIN
    INSERT INTO sessions (app_name, user_id, id, state, create_time, update_time, sessile_version, sessile_initial)
    VALUES (new ->> 'app', new ->> 'user', new ->> 'id', new -> 'state', moment,
            sessile_time((new -> 'update_time')::float8), jsonb_array_length(new -> 'events'), new -> 'initial')
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS inserted = ROW_COUNT;
    IF inserted = 0 THEN
        RETURN false;
    END IF;
    INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data, sessile_seq)
    SELECT e ->> 'event_id', new ->> 'app', new ->> 'user', new ->> 'id', e ->> 'invocation',
           sessile_time((e -> 'time')::float8), e -> 'event', place
      FROM jsonb_array_elements(new -> 'events') WITH ORDINALITY AS listed (e, place);
    -- google-adk needs both rows, also empty ones, to append an event.
    INSERT INTO app_states (app_name, state, update_time) VALUES (new ->> 'app', '{}', moment) ON CONFLICT DO NOTHING;
    IF sessile_changes(new -> 'app_delta') THEN
        PERFORM sessile_write_app(new ->> 'app', new -> 'app_delta', (new -> 'time')::float8);
    END IF;
    INSERT INTO user_states (app_name, user_id, state, update_time)
    VALUES (new ->> 'app', new ->> 'user', '{}', moment) ON CONFLICT DO NOTHING;
    IF sessile_changes(new -> 'user_delta') THEN
        PERFORM sessile_write_user(new ->> 'app', new ->> 'user', new -> 'user_delta', (new -> 'time')::float8);
    END IF;
    RETURN true;
END $$;
