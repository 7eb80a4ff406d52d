-- As the function of this name with one argument less, with what a write overwrote; NULL if that is
-- nothing.
CREATE FUNCTION sessile_store_scope(
    app TEXT, usr TEXT, new_state JSONB, new_version BIGINT, seconds DOUBLE PRECISION, request TEXT,
    changed_by JSONB, delta JSONB, undo TEXT, overwrote JSONB
)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    change JSONB := jsonb_build_object(
        'version', new_version, 'time', seconds, 'by', changed_by, 'change', delta, 'undo', undo::jsonb);
    changes JSON := json_build_array(
        CASE WHEN overwrote IS NULL THEN change ELSE change || jsonb_build_object('overwrote', overwrote) END);
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

-- Changes shared state without a session. The findings of guards that only report are returned in
-- `detail` and stored in the history. A second write with the same request id changes nothing: it
-- returns the first one and all changes since, newest first, from which its result can be computed
-- backwards from the current state.
CREATE OR REPLACE FUNCTION sessile_write_scope(
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
        detail := jsonb_build_object('overwrote', (first.changes #> '{0,overwrote}')::jsonb);
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
        detail := differs;
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
    PERFORM sessile_store_scope(app, usr, evaluated.state, version, seconds, request, changed_by, delta, evaluated.undo,
                                nullif(differs -> 'overwrote', '{}'));
    detail := differs;
    status := 'done'; state := evaluated.state::text;
    RETURN NEXT;
END $$;
