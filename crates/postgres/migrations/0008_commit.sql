-- Appends a whole batch of events a table at a time. Every row of a session or of shared state is
-- written once, however many events change it. A commit that is refused has a status and changes
-- nothing; its neighbours are committed.
--
-- The commits are in arrays of the same length, in the order in which they are to be made; no event
-- comes twice. `places`, `user_places` and `app_places` say which of the listed sessions, users and
-- applications a commit needs. What is NULL is not there: an expectation, a delta (as
-- `sessile_evaluate` takes it, with the names that it changes as a text array; `changed_by` is who
-- makes the commit, for the history), guards by scope, a limit, a point in the history since which
-- events are wanted.
--
-- A commit that asks for the state of all scopes lists its user and application, so that they are
-- locked: the answer is a snapshot as of the commit.
--
-- The rules exist in Rust too, for the other stores: expectations are `Expect::check_session` and
-- `Expect::check_shared`, `sessile_evaluate` and `sessile_compare` are `sessile_session::evaluate`,
-- and the new `update_time` is `sessile_session::next_update_time`.
--
-- Rows are found by their whole key, in plain, partitioned and distributed tables alike. Plans are
-- made while the tables are small and kept when they are large, so every lookup by key is fenced
-- (`OFFSET 0`) against other plans.
CREATE OR REPLACE FUNCTION sessile_commit(
    session_apps TEXT[], session_users TEXT[], session_ids TEXT[],
    user_apps TEXT[], user_ids TEXT[], app_names TEXT[],
    places INT[], user_places INT[], app_places INT[],
    event_ids TEXT[], invocations TEXT[], seconds DOUBLE PRECISION[], events_data JSONB[], sizes BIGINT[],
    session_deltas TEXT[], session_names TEXT[], user_deltas TEXT[], user_names TEXT[],
    app_deltas TEXT[], app_changed_names TEXT[], changed_by TEXT[],
    expect_incarnation BIGINT[], expect_session BIGINT[], expect_user BIGINT[], expect_app BIGINT[],
    guards JSONB[], limits BIGINT[],
    since_incarnation BIGINT[], since_version BIGINT[], wants_state BOOLEAN[]
)
RETURNS TABLE (
    status TEXT, version BIGINT, update_time DOUBLE PRECISION, incarnation BIGINT,
    actual BIGINT,  -- the version, or size, because of which a commit is refused
    detail JSONB,   -- of a refusal: what is stored; else the results of operations, and what was overwritten
    known TEXT,     -- the event that is stored under this id, as [id, invocation, seconds, data]
    earlier TEXT,   -- events that were appended before, as a list of [version, id, invocation, seconds, data]
    session_state TEXT, user_state TEXT, user_version BIGINT, app_state TEXT, app_version BIGINT
)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET extra_float_digits = 1
AS $$
#variable_conflict use_variable
DECLARE
    held RECORD;
    here INT;
    mine INT;
    ours INT;
    differs JSONB;
    own sessile_evaluated;
    of_user sessile_evaluated;
    of_app sessile_evaluated;
    size BIGINT;
    -- What is stored for each session, user and application, and what becomes of it.
    versions BIGINT[]; incarnations BIGINT[]; moments TIMESTAMP[]; states JSONB[]; bytes BIGINT[];
    touched BOOLEAN[]; changed BOOLEAN[];
    user_versions BIGINT[]; user_states_now JSONB[]; user_times DOUBLE PRECISION[];
    app_versions BIGINT[]; app_states_now JSONB[]; app_times DOUBLE PRECISION[];
    -- Rows of shared state that this transaction inserts: for readers their version was 0.
    new_users BOOLEAN[]; new_apps BOOLEAN[];
    -- What was stored under the events' ids, and what is answered.
    seen BIGINT[]; seen_events TEXT[];
    statuses TEXT[]; answer_versions BIGINT[]; answer_moments TIMESTAMP[]; actuals BIGINT[]; details JSONB[];
    answer_states TEXT[]; answer_users TEXT[]; answer_user_versions BIGINT[];
    answer_apps TEXT[]; answer_app_versions BIGINT[];
    -- What is added to the history of shared state, by commit.
    user_changes TEXT[]; app_changes TEXT[];
BEGIN
    -- Rows are locked in google-adk's order (sessions, applications, users), and each kind as it is
    -- listed, which is sorted: transactions cannot deadlock.
    FOR held IN
        SELECT l.place, s.sessile_version, s.sessile_incarnation, s.sessile_bytes, s.update_time AS at, s.state,
               l.app, l.usr, l.sid
          FROM unnest(session_apps, session_users, session_ids) WITH ORDINALITY AS l (app, usr, sid, place)
         CROSS JOIN LATERAL (SELECT * FROM sessions x
                              WHERE x.app_name = l.app AND x.user_id = l.usr AND x.id = l.sid FOR UPDATE) s
    LOOP
        versions[held.place] := held.sessile_version;
        incarnations[held.place] := coalesce(held.sessile_incarnation, 0);
        moments[held.place] := held.at;
        states[held.place] := held.state;
        bytes[held.place] := held.sessile_bytes;
        IF held.sessile_bytes IS NULL THEN
            SELECT coalesce(sum(octet_length(e.event_data::text)), 0) INTO size FROM events e
             WHERE e.app_name = held.app AND e.user_id = held.usr AND e.session_id = held.sid;
            bytes[held.place] := size;
        END IF;
    END LOOP;
    IF cardinality(app_names) > 0 THEN
        FOR held IN
            INSERT INTO app_states AS a (app_name, state, update_time)
            SELECT l.app, '{}', sessile_time(seconds[1]) FROM unnest(app_names) AS l (app)
             WHERE NOT EXISTS (SELECT FROM app_states s WHERE s.app_name = l.app)
               AND EXISTS (SELECT FROM sessions s WHERE s.app_name = l.app)
                ON CONFLICT DO NOTHING RETURNING array_position(app_names, a.app_name::text) AS place
        LOOP
            new_apps[held.place] := true;
        END LOOP;
        FOR held IN
            SELECT l.place, s.sessile_version, s.state FROM unnest(app_names) WITH ORDINALITY AS l (app, place)
             CROSS JOIN LATERAL (SELECT * FROM app_states x WHERE x.app_name = l.app FOR UPDATE) s
        LOOP
            app_versions[held.place] := held.sessile_version;
            app_states_now[held.place] := held.state;
        END LOOP;
    END IF;
    IF cardinality(user_ids) > 0 THEN
        FOR held IN
            INSERT INTO user_states AS u (app_name, user_id, state, update_time)
            SELECT l.app, l.usr, '{}', sessile_time(seconds[1]) FROM unnest(user_apps, user_ids) AS l (app, usr)
             WHERE NOT EXISTS (SELECT FROM user_states s WHERE s.app_name = l.app AND s.user_id = l.usr)
               AND EXISTS (SELECT FROM sessions s WHERE s.app_name = l.app AND s.user_id = l.usr)
                ON CONFLICT DO NOTHING RETURNING u.app_name, u.user_id
        LOOP
            FOR place IN 1 .. cardinality(user_ids) LOOP
                IF user_apps[place] = held.app_name AND user_ids[place] = held.user_id THEN
                    new_users[place] := true;
                END IF;
            END LOOP;
        END LOOP;
        FOR held IN
            SELECT l.place, s.sessile_version, s.state
              FROM unnest(user_apps, user_ids) WITH ORDINALITY AS l (app, usr, place)
             CROSS JOIN LATERAL (SELECT * FROM user_states x
                                  WHERE x.app_name = l.app AND x.user_id = l.usr FOR UPDATE) s
        LOOP
            user_versions[held.place] := held.sessile_version;
            user_states_now[held.place] := held.state;
        END LOOP;
    END IF;

    -- After the sessions are locked: a transaction that stored an event under one of these ids has
    -- committed it.
    --
    -- Without statistics, every index that begins with the application, user and session seems to
    -- cost the same as the primary key, and reads all events of the session. Only the primary key
    -- gives the order by id, which an equality would make meaningless; so the planner takes it.
    FOR held IN
        SELECT c.n, e.sessile_seq, jsonb_build_array(
                   e.id, e.invocation_id, extract(epoch FROM e.timestamp)::double precision, e.event_data)::text AS event
          FROM unnest(event_ids, places) WITH ORDINALITY AS c (id, place, n)
         CROSS JOIN LATERAL (SELECT * FROM events x
                              WHERE x.id >= c.id AND x.id <= c.id AND x.app_name = session_apps[c.place]
                                AND x.user_id = session_users[c.place] AND x.session_id = session_ids[c.place]
                              ORDER BY x.id LIMIT 1) e
    LOOP
        seen[held.n] := held.sessile_seq;
        seen_events[held.n] := held.event;
    END LOOP;

    FOR n IN 1 .. cardinality(event_ids) LOOP
        here := places[n]; mine := user_places[n]; ours := app_places[n];
        IF versions[here] IS NULL THEN
            statuses[n] := 'missing'; CONTINUE;
        END IF;
        answer_moments[n] := moments[here];
        IF seen[n] IS NOT NULL THEN
            statuses[n] := 'known'; answer_versions[n] := seen[n];
        ELSIF expect_incarnation[n] <> incarnations[here] THEN
            statuses[n] := 'replaced'; CONTINUE;
        ELSIF expect_session[n] <> versions[here] THEN
            statuses[n] := 'session'; actuals[n] := versions[here]; CONTINUE;
        ELSIF expect_user[n] <> (CASE WHEN new_users[mine] THEN 0 ELSE user_versions[mine] END) THEN
            statuses[n] := 'user'; actuals[n] := user_versions[mine]; CONTINUE;
        ELSIF expect_app[n] <> (CASE WHEN new_apps[ours] THEN 0 ELSE app_versions[ours] END) THEN
            statuses[n] := 'app'; actuals[n] := app_versions[ours]; CONTINUE;
        ELSE
            -- Everything is computed before anything is changed. The size of a state is counted
            -- only if it may be too large: the binary form of JSON takes at least a sixth of its
            -- text.
            differs := NULL; own := NULL; of_user := NULL; of_app := NULL;
            IF guards[n] IS NOT NULL THEN
                IF guards[n] ? 'session' THEN
                    differs := sessile_compare(states[here], guards[n] -> 'session', '', differs);
                END IF;
                IF guards[n] ? 'user' THEN
                    differs := sessile_compare(user_states_now[mine], guards[n] -> 'user', 'user:', differs);
                END IF;
                IF guards[n] ? 'app' THEN
                    differs := sessile_compare(app_states_now[ours], guards[n] -> 'app', 'app:', differs);
                END IF;
                IF differs @> '{"refuse": true}' THEN
                    statuses[n] := 'overwritten'; details[n] := differs; CONTINUE;
                END IF;
            END IF;
            IF session_deltas[n] IS NOT NULL THEN
                own := sessile_evaluate(states[here], session_deltas[n]::jsonb, session_names[n]::text[], '');
                IF own.refused IS NOT NULL THEN
                    statuses[n] := 'operation';
                    details[n] := sessile_refused('', own); CONTINUE;
                END IF;
                IF limits[n] < pg_column_size(own.state)::bigint * 6 THEN
                    size := sessile_too_large(own.state, states[here], limits[n]);
                    IF size IS NOT NULL THEN
                        statuses[n] := 'session_size'; actuals[n] := size; CONTINUE;
                    END IF;
                END IF;
            END IF;
            IF user_deltas[n] IS NOT NULL THEN
                of_user := sessile_evaluate(user_states_now[mine], user_deltas[n]::jsonb, user_names[n]::text[], 'user:');
                IF of_user.refused IS NOT NULL THEN
                    statuses[n] := 'operation';
                    details[n] := sessile_refused('user:', of_user); CONTINUE;
                END IF;
                IF limits[n] < pg_column_size(of_user.state)::bigint * 6 THEN
                    size := sessile_too_large(of_user.state, user_states_now[mine], limits[n]);
                    IF size IS NOT NULL THEN
                        statuses[n] := 'user_size'; actuals[n] := size; CONTINUE;
                    END IF;
                END IF;
            END IF;
            IF app_deltas[n] IS NOT NULL THEN
                of_app := sessile_evaluate(app_states_now[ours], app_deltas[n]::jsonb, app_changed_names[n]::text[], 'app:');
                IF of_app.refused IS NOT NULL THEN
                    statuses[n] := 'operation';
                    details[n] := sessile_refused('app:', of_app); CONTINUE;
                END IF;
                IF limits[n] < pg_column_size(of_app.state)::bigint * 6 THEN
                    size := sessile_too_large(of_app.state, app_states_now[ours], limits[n]);
                    IF size IS NOT NULL THEN
                        statuses[n] := 'app_size'; actuals[n] := size; CONTINUE;
                    END IF;
                END IF;
            END IF;

            statuses[n] := 'done';
            versions[here] := versions[here] + 1;
            moments[here] := greatest(sessile_time(seconds[n]), sessile_moment_after(moments[here]));
            bytes[here] := bytes[here] + sizes[n];
            touched[here] := true;
            answer_versions[n] := versions[here]; answer_moments[n] := moments[here];
            IF session_deltas[n] IS NOT NULL THEN
                states[here] := own.state; changed[here] := true;
            END IF;
            IF user_deltas[n] IS NOT NULL THEN
                user_states_now[mine] := of_user.state; new_users[mine] := NULL;
                user_versions[mine] := user_versions[mine] + 1; user_times[mine] := seconds[n];
                user_changes[n] := '{"version":' || user_versions[mine] || ',"time":' || seconds[n] || ',"by":' || changed_by[n]
                                   || ',"change":' || user_deltas[n] || ',"undo":' || of_user.undo || '}';
            END IF;
            IF app_deltas[n] IS NOT NULL THEN
                app_states_now[ours] := of_app.state; new_apps[ours] := NULL;
                app_versions[ours] := app_versions[ours] + 1; app_times[ours] := seconds[n];
                app_changes[n] := '{"version":' || app_versions[ours] || ',"time":' || seconds[n] || ',"by":' || changed_by[n]
                                   || ',"change":' || app_deltas[n] || ',"undo":' || of_app.undo || '}';
            END IF;
            IF differs IS NOT NULL OR own.results IS NOT NULL OR of_user.results IS NOT NULL
               OR of_app.results IS NOT NULL THEN
                details[n] := jsonb_build_object('results',
                    coalesce(own.results, '{}') || coalesce(of_user.results, '{}') || coalesce(of_app.results, '{}'));
                IF differs IS NOT NULL THEN
                    details[n] := details[n] || jsonb_build_object('overwrote', differs -> 'overwrote');
                END IF;
                events_data[n] := sessile_committed(events_data[n], details[n]);
            END IF;
        END IF;
        IF wants_state[n] THEN
            answer_states[n] := states[here]::text;
            answer_users[n] := user_states_now[mine]::text; answer_user_versions[n] := user_versions[mine];
            answer_apps[n] := app_states_now[ours]::text; answer_app_versions[n] := app_versions[ours];
        END IF;
    END LOOP;

    INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data, sessile_seq)
    SELECT c.id, session_apps[c.place], session_users[c.place], session_ids[c.place], c.invocation,
           sessile_time(c.second), c.data, answer_versions[c.n]
      FROM unnest(event_ids, places, invocations, seconds, events_data)
           WITH ORDINALITY AS c (id, place, invocation, second, data, n)
     WHERE statuses[c.n] = 'done';
    UPDATE sessions s
       SET state = states[l.place], update_time = moments[l.place], sessile_version = versions[l.place],
           sessile_bytes = bytes[l.place]
      FROM (SELECT k.* FROM unnest(session_apps, session_users, session_ids) WITH ORDINALITY AS k (app, usr, sid, place)
             WHERE changed[k.place] OFFSET 0) l
     WHERE s.app_name = l.app AND s.user_id = l.usr AND s.id = l.sid;
    UPDATE sessions s
       SET update_time = moments[l.place], sessile_version = versions[l.place], sessile_bytes = bytes[l.place]
      FROM (SELECT k.* FROM unnest(session_apps, session_users, session_ids) WITH ORDINALITY AS k (app, usr, sid, place)
             WHERE touched[k.place] AND changed[k.place] IS NOT TRUE OFFSET 0) l
     WHERE s.app_name = l.app AND s.user_id = l.usr AND s.id = l.sid;
    IF app_changes IS NOT NULL THEN
        UPDATE app_states s
           SET state = app_states_now[l.place], update_time = sessile_time(app_times[l.place]),
               sessile_version = app_versions[l.place]
          FROM (SELECT k.* FROM unnest(app_names) WITH ORDINALITY AS k (app, place)
                 WHERE app_times[k.place] IS NOT NULL OFFSET 0) l
         WHERE s.app_name = l.app;
        INSERT INTO sessile_app_changes (app_name, version, changes)
        SELECT app_names[c.place], app_versions[c.place], ('[' || string_agg(c.change, ',' ORDER BY c.n) || ']')::json
          FROM unnest(app_changes[1:], app_places[array_lower(app_changes, 1):])
               WITH ORDINALITY AS c (change, place, n)
         WHERE c.change IS NOT NULL GROUP BY c.place;
    END IF;
    IF user_changes IS NOT NULL THEN
        UPDATE user_states s
           SET state = user_states_now[l.place], update_time = sessile_time(user_times[l.place]),
               sessile_version = user_versions[l.place]
          FROM (SELECT k.* FROM unnest(user_apps, user_ids) WITH ORDINALITY AS k (app, usr, place)
                 WHERE user_times[k.place] IS NOT NULL OFFSET 0) l
         WHERE s.app_name = l.app AND s.user_id = l.usr;
        INSERT INTO sessile_user_changes (app_name, user_id, version, changes)
        SELECT user_apps[c.place], user_ids[c.place], user_versions[c.place], ('[' || string_agg(c.change, ',' ORDER BY c.n) || ']')::json
          FROM unnest(user_changes[1:], user_places[array_lower(user_changes, 1):])
               WITH ORDINALITY AS c (change, place, n)
         WHERE c.change IS NOT NULL GROUP BY c.place;
    END IF;

    FOR n IN 1 .. cardinality(event_ids) LOOP
        here := places[n];
        status := statuses[n]; version := answer_versions[n]; actual := actuals[n]; detail := details[n];
        update_time := extract(epoch FROM answer_moments[n]);
        incarnation := incarnations[here];
        known := seen_events[n];
        session_state := answer_states[n];
        user_state := answer_users[n]; user_version := answer_user_versions[n];
        app_state := answer_apps[n]; app_version := answer_app_versions[n];
        earlier := NULL;
        IF since_version[n] IS NOT NULL AND version IS NOT NULL THEN
            size := CASE WHEN since_incarnation[n] = incarnation THEN since_version[n] ELSE 0 END;
            IF version > size + 1 THEN
                earlier := (
                    SELECT jsonb_agg(jsonb_build_array(e.sessile_seq, e.id, e.invocation_id,
                                     extract(epoch FROM e.timestamp)::double precision, e.event_data)
                                     ORDER BY e.sessile_seq)::text
                      FROM events e
                     WHERE e.app_name = session_apps[here] AND e.user_id = session_users[here]
                       AND e.session_id = session_ids[here] AND e.sessile_seq > size AND e.sessile_seq < version);
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;
