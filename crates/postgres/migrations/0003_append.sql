-- A changed session always has a changed time: that is how google-adk finds that its copy is stale.
-- Far from 1970 floats cannot tell microseconds apart, so the step is longer there. With the
-- `greatest` of its callers, this is the twin of `sessile_session::next_update_time`: change both
-- together.
CREATE FUNCTION sessile_moment_after(before TIMESTAMP) RETURNS TIMESTAMP
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF abs(extract(epoch FROM before)) < 8589934592 THEN
        RETURN before + interval '1 microsecond';
    END IF;
    RETURN before + interval '64 microseconds';
END $$;

-- Appends a whole batch of events a table at a time. Every row of a session or of shared state is
-- written once, however many events change it.
--
-- The commits are in arrays of the same length, in the order in which they are to be made; no event
-- comes twice. `places`, `user_places` and `app_places` say which of the listed sessions, users and
-- applications a commit needs. An expectation that is NULL is none; a delta that is NULL changes
-- nothing, and else is as `sessile_changed` takes it.
--
-- Plans are made while the tables are small and kept when they are large, so every row must be
-- found by its key whatever the planner thinks of the tables: by a fenced lookup (`OFFSET 0`) for
-- each key, and by its place (`ctid`).
CREATE OR REPLACE FUNCTION sessile_append_all(
    session_apps TEXT[], session_users TEXT[], session_ids TEXT[],
    user_apps TEXT[], user_ids TEXT[], app_names TEXT[],
    places INT[], user_places INT[], app_places INT[],
    event_ids TEXT[], invocations TEXT[], seconds DOUBLE PRECISION[], events_data JSONB[],
    session_deltas JSONB[], user_deltas JSONB[], app_deltas JSONB[],
    expect_session BIGINT[], expect_user BIGINT[], expect_app BIGINT[]
)
RETURNS TABLE (status TEXT, version BIGINT, update_time DOUBLE PRECISION, actual BIGINT)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    held RECORD;
    here INT;
    mine INT;
    ours INT;
    -- What is stored for each session, user and application, and what becomes of it.
    versions BIGINT[]; moments TIMESTAMP[]; states JSONB[]; touched BOOLEAN[]; changed BOOLEAN[];
    user_versions BIGINT[]; user_states_now JSONB[]; user_times DOUBLE PRECISION[];
    app_versions BIGINT[]; app_states_now JSONB[]; app_times DOUBLE PRECISION[];
    -- What was stored under the events' ids, and what is answered.
    seen BIGINT[]; same BOOLEAN[];
    statuses TEXT[]; answer_versions BIGINT[]; answer_moments TIMESTAMP[]; actuals BIGINT[];
BEGIN
    -- Rows are locked in google-adk's order (sessions, applications, users), and each kind as it is
    -- listed, which is sorted: so transactions cannot deadlock.
    FOR held IN
        SELECT l.place, s.sessile_version, s.update_time AS at, s.state
          FROM unnest(session_apps, session_users, session_ids) WITH ORDINALITY AS l (app, usr, sid, place)
         CROSS JOIN LATERAL (SELECT * FROM sessions x
                              WHERE x.app_name = l.app AND x.user_id = l.usr AND x.id = l.sid FOR UPDATE) s
    LOOP
        versions[held.place] := held.sessile_version;
        moments[held.place] := held.at;
        states[held.place] := held.state;
    END LOOP;
    IF cardinality(app_names) > 0 THEN
        INSERT INTO app_states (app_name, state, update_time, sessile_version)
        SELECT l.app, '{}', sessile_time(seconds[1]), 1 FROM unnest(app_names) AS l (app)
         WHERE NOT EXISTS (SELECT FROM app_states s WHERE s.app_name = l.app)
           AND EXISTS (SELECT FROM sessions s WHERE s.app_name = l.app)
            ON CONFLICT DO NOTHING;
        FOR held IN
            SELECT l.place, s.sessile_version, s.state FROM unnest(app_names) WITH ORDINALITY AS l (app, place)
             CROSS JOIN LATERAL (SELECT * FROM app_states x WHERE x.app_name = l.app FOR UPDATE) s
        LOOP
            app_versions[held.place] := held.sessile_version;
            app_states_now[held.place] := held.state;
        END LOOP;
    END IF;
    IF cardinality(user_ids) > 0 THEN
        INSERT INTO user_states (app_name, user_id, state, update_time, sessile_version)
        SELECT l.app, l.usr, '{}', sessile_time(seconds[1]), 1 FROM unnest(user_apps, user_ids) AS l (app, usr)
         WHERE NOT EXISTS (SELECT FROM user_states s WHERE s.app_name = l.app AND s.user_id = l.usr)
           AND EXISTS (SELECT FROM sessions s WHERE s.app_name = l.app AND s.user_id = l.usr)
            ON CONFLICT DO NOTHING;
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
    FOR held IN
        SELECT c.n, e.sessile_seq, e.event_data = c.data AS same
          FROM unnest(event_ids, places, events_data) WITH ORDINALITY AS c (id, place, data, n)
         CROSS JOIN LATERAL (SELECT * FROM events x
                              WHERE x.id = c.id AND x.app_name = session_apps[c.place]
                                AND x.user_id = session_users[c.place] AND x.session_id = session_ids[c.place]
                             OFFSET 0) e
    LOOP
        seen[held.n] := held.sessile_seq;
        same[held.n] := held.same;
    END LOOP;

    FOR n IN 1 .. cardinality(event_ids) LOOP
        here := places[n]; mine := user_places[n]; ours := app_places[n];
        IF versions[here] IS NULL THEN
            statuses[n] := 'missing';
        ELSIF seen[n] IS NOT NULL THEN
            statuses[n] := CASE WHEN same[n] THEN 'again' ELSE 'other_event' END;
            answer_versions[n] := seen[n]; answer_moments[n] := moments[here];
        ELSIF expect_session[n] <> versions[here] THEN
            statuses[n] := 'session'; actuals[n] := versions[here];
        ELSIF expect_user[n] <> user_versions[mine] THEN
            statuses[n] := 'user'; actuals[n] := user_versions[mine];
        ELSIF expect_app[n] <> app_versions[ours] THEN
            statuses[n] := 'app'; actuals[n] := app_versions[ours];
        ELSE
            statuses[n] := 'done';
            versions[here] := versions[here] + 1;
            moments[here] := greatest(sessile_time(seconds[n]), sessile_moment_after(moments[here]));
            touched[here] := true;
            answer_versions[n] := versions[here]; answer_moments[n] := moments[here];
            IF session_deltas[n] IS NOT NULL THEN
                states[here] := sessile_changed(states[here], session_deltas[n]); changed[here] := true;
            END IF;
            IF user_deltas[n] IS NOT NULL THEN
                user_states_now[mine] := sessile_changed(user_states_now[mine], user_deltas[n]);
                user_versions[mine] := user_versions[mine] + 1; user_times[mine] := seconds[n];
            END IF;
            IF app_deltas[n] IS NOT NULL THEN
                app_states_now[ours] := sessile_changed(app_states_now[ours], app_deltas[n]);
                app_versions[ours] := app_versions[ours] + 1; app_times[ours] := seconds[n];
            END IF;
        END IF;
    END LOOP;

    INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data, sessile_seq)
    SELECT c.id, session_apps[c.place], session_users[c.place], session_ids[c.place], c.invocation,
           sessile_time(c.second), c.data, answer_versions[c.n]
      FROM unnest(event_ids, places, invocations, seconds, events_data)
           WITH ORDINALITY AS c (id, place, invocation, second, data, n)
     WHERE statuses[c.n] = 'done';
    UPDATE sessions s SET state = states[l.place], update_time = moments[l.place], sessile_version = versions[l.place]
      FROM (SELECT f.at, k.place
              FROM unnest(session_apps, session_users, session_ids) WITH ORDINALITY AS k (app, usr, sid, place)
             CROSS JOIN LATERAL (SELECT x.ctid AS at FROM sessions x
                                  WHERE x.app_name = k.app AND x.user_id = k.usr AND x.id = k.sid OFFSET 0) f
             WHERE changed[k.place]) l
     WHERE s.ctid = l.at;
    UPDATE sessions s SET update_time = moments[l.place], sessile_version = versions[l.place]
      FROM (SELECT f.at, k.place
              FROM unnest(session_apps, session_users, session_ids) WITH ORDINALITY AS k (app, usr, sid, place)
             CROSS JOIN LATERAL (SELECT x.ctid AS at FROM sessions x
                                  WHERE x.app_name = k.app AND x.user_id = k.usr AND x.id = k.sid OFFSET 0) f
             WHERE touched[k.place] AND changed[k.place] IS NOT TRUE) l
     WHERE s.ctid = l.at;
    UPDATE app_states s
       SET state = app_states_now[l.place], update_time = sessile_time(app_times[l.place]),
           sessile_version = app_versions[l.place]
      FROM (SELECT f.at, k.place FROM unnest(app_names) WITH ORDINALITY AS k (app, place)
             CROSS JOIN LATERAL (SELECT x.ctid AS at FROM app_states x WHERE x.app_name = k.app OFFSET 0) f
             WHERE app_times[k.place] IS NOT NULL) l
     WHERE s.ctid = l.at;
    UPDATE user_states s
       SET state = user_states_now[l.place], update_time = sessile_time(user_times[l.place]),
           sessile_version = user_versions[l.place]
      FROM (SELECT f.at, k.place FROM unnest(user_apps, user_ids) WITH ORDINALITY AS k (app, usr, place)
             CROSS JOIN LATERAL (SELECT x.ctid AS at FROM user_states x
                                  WHERE x.app_name = k.app AND x.user_id = k.usr OFFSET 0) f
             WHERE user_times[k.place] IS NOT NULL) l
     WHERE s.ctid = l.at;

    FOR n IN 1 .. cardinality(event_ids) LOOP
        status := statuses[n]; version := answer_versions[n]; actual := actuals[n];
        update_time := extract(epoch FROM answer_moments[n]);
        RETURN NEXT;
    END LOOP;
END $$;
