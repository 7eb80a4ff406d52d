-- Reads a page of sessions without their events, the state that they share once, and no further
-- than the page goes: `most` sessions, or as many as take `max_bytes` as JSON with what they share,
-- one at the least.
--
-- A row is of one kind: 0 the state of the application, 1 the state of a user before the first of
-- its sessions, 2 a session, 3 says that there are more. Queries are planned for each call, because
-- they differ.
CREATE OR REPLACE FUNCTION sessile_list(
    of_app TEXT, of_user TEXT, after_seconds DOUBLE PRECISION, after_user TEXT, after_id TEXT,
    newest_first BOOLEAN, most BIGINT, max_bytes BIGINT
)
RETURNS TABLE (
    kind INT, named_user TEXT, named_id TEXT, content TEXT, changed_at DOUBLE PRECISION, revision BIGINT
)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    held RECORD;
    shared RECORD;
    text_of_session TEXT;
    text_of_user TEXT;
    revision_of_user BIGINT;
    -- Users whose state was read, and what it takes.
    users TEXT[] := '{}';
    user_bytes BIGINT[] := '{}';
    app_bytes BIGINT := 0;
    place INT;
    read BIGINT := 0;
    total BIGINT := 0;
    compare TEXT := CASE WHEN newest_first THEN '<' ELSE '>' END;
    direction TEXT := CASE WHEN newest_first THEN 'DESC' ELSE 'ASC' END;
    query TEXT := 'SELECT s.user_id, s.id, s.state, s.update_time, s.sessile_version FROM sessions s WHERE s.app_name = $1';
BEGIN
    IF of_user IS NOT NULL THEN
        query := query || ' AND s.user_id = $2';
    END IF;
    IF after_id IS NOT NULL THEN
        query := query || format(' AND (s.update_time, s.user_id, s.id) %s (sessile_time($3), $4, $5)', compare);
    END IF;
    query := query || format(' ORDER BY s.update_time %1$s, s.user_id %1$s, s.id %1$s LIMIT $6', direction);

    FOR shared IN SELECT a.state::text AS content, a.sessile_version FROM app_states a WHERE a.app_name = of_app LOOP
        kind := 0; content := shared.content; revision := shared.sessile_version;
        app_bytes := octet_length(content);
        RETURN NEXT;
    END LOOP;
    FOR held IN EXECUTE query USING of_app, of_user, after_seconds, after_user, after_id, most + 1 LOOP
        text_of_session := held.state::text;
        named_user := held.user_id; changed_at := NULL; named_id := NULL;
        place := array_position(users, named_user);
        text_of_user := NULL;
        IF place IS NULL THEN
            SELECT u.state::text, u.sessile_version INTO text_of_user, revision_of_user
              FROM user_states u WHERE u.app_name = of_app AND u.user_id = named_user;
            users := users || named_user;
            user_bytes := user_bytes || coalesce(octet_length(text_of_user), 0)::bigint;
            place := cardinality(users);
        END IF;
        total := total + coalesce(octet_length(text_of_session), 0) + app_bytes + user_bytes[place];
        IF read > 0 AND (read >= most OR total > max_bytes) THEN
            kind := 3; content := NULL; revision := NULL;
            RETURN NEXT;
            RETURN;
        END IF;
        IF text_of_user IS NOT NULL THEN
            kind := 1; content := text_of_user; revision := revision_of_user;
            RETURN NEXT;
        END IF;
        kind := 2; named_id := held.id; content := text_of_session; revision := held.sessile_version;
        changed_at := extract(epoch FROM held.update_time);
        RETURN NEXT;
        read := read + 1;
    END LOOP;
END $$;
