-- The details of an operation that cannot be applied: the key, and what is stored under it unless
-- it is absent.
CREATE FUNCTION sessile_refused(prefix TEXT, evaluated sessile_evaluated) RETURNS JSONB
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF evaluated.found IS NULL THEN
        RETURN jsonb_build_object('key', prefix || evaluated.refused);
    END IF;
    RETURN jsonb_build_object('key', prefix || evaluated.refused, 'found', evaluated.found);
END $$;

-- An event as it is stored: with the results of its operations, and what it overwrote. The twin of
-- `sessile_session::committed`.
CREATE FUNCTION sessile_committed(event JSONB, detail JSONB) RETURNS JSONB
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    event := jsonb_set(event, '{actions,state_delta}', (event #> '{actions,state_delta}') || (detail -> 'results'));
    IF detail ? 'overwrote' THEN
        event := event || jsonb_build_object('custom_metadata', coalesce(event -> 'custom_metadata', '{}')
                     || jsonb_build_object('sessile:overwrote', detail -> 'overwrote'));
    END IF;
    RETURN event;
END $$;
