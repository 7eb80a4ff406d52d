-- How many bytes the values of a state and their names take as JSON without spaces, as every store
-- counts them. `jsonb` prints a space after each comma and colon inside a value; outside of texts
-- there are no other spaces.
CREATE FUNCTION sessile_json_bytes(state JSONB) RETURNS BIGINT
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (SELECT coalesce(sum(octet_length(entry.key) + octet_length(entry.value::text)
                                - length(rest.spaced) + length(replace(rest.spaced, ' ', ''))), 0)
              FROM jsonb_each(state) AS entry
             CROSS JOIN LATERAL (
                SELECT regexp_replace(entry.value::text, '"[^"\\]*(\\.[^"\\]*)*"', '', 'g') AS spaced) AS rest);
END $$;

-- How large a state is, if it is larger than a limit and has grown; NULL otherwise, also without a
-- limit. The size is counted exactly only if it exceeds the limit with spaces.
CREATE OR REPLACE FUNCTION sessile_too_large(state JSONB, before JSONB, max_bytes BIGINT) RETURNS BIGINT
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    size BIGINT;
BEGIN
    IF max_bytes IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT sum(octet_length(entry.key) + octet_length(entry.value::text)) INTO size FROM jsonb_each(state) AS entry;
    IF size > max_bytes THEN
        size := sessile_json_bytes(state);
        IF size > max_bytes AND size > sessile_json_bytes(before) THEN
            RETURN size;
        END IF;
    END IF;
    RETURN NULL;
END $$;
