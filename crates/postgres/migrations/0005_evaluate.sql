-- Computing the results of a change: the twin of `sessile_session::evaluate`, which other stores
-- use. Operations must have the same results in both, bit by bit: change both together. The
-- conformance suite checks both.

-- A sum of floats as a number that stays a float: jsonb tells 1.0 from 1 by its scale.
CREATE FUNCTION sessile_float(sum DOUBLE PRECISION) RETURNS NUMERIC
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    exact NUMERIC := sum::text::numeric;
BEGIN
    IF scale(exact) = 0 THEN
        RETURN (exact::text || '.0')::numeric;
    END IF;
    RETURN exact;
END $$;

-- Applies operations to a value (NULL is absence); NULL if one of them cannot be applied to it. The
-- twin of `sessile_state::Change::apply`.
CREATE FUNCTION sessile_operate(value JSONB, operations JSONB) RETURNS JSONB
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    operation JSONB;
    item JSONB;
    held NUMERIC;
    addend NUMERIC;
    total NUMERIC;
BEGIN
    IF jsonb_typeof(operations) <> 'array' THEN
        operations := jsonb_build_array(operations);
    END IF;
    FOR place IN 0 .. jsonb_array_length(operations) - 1 LOOP
        operation := operations -> place;
        IF operation ? 'add' THEN
            IF value IS NULL THEN
                held := 0;
            ELSIF jsonb_typeof(value) <> 'number' THEN
                RETURN NULL;
            ELSE
                held := value::numeric;
            END IF;
            addend := (operation -> 'add')::numeric;
            IF scale(held) = 0 AND held NOT BETWEEN -9223372036854775808 AND 18446744073709551615 THEN
                RETURN NULL; -- an integer that is not exact in every client
            END IF;
            total := held + addend;
            IF scale(held) = 0 AND scale(addend) = 0 THEN
                IF total NOT BETWEEN -9223372036854775808 AND 18446744073709551615 THEN
                    RETURN NULL;
                END IF;
            ELSE
                -- The first number that a 64-bit float rounds to infinity: 2^1024 less half of the
                -- last step.
                IF greatest(abs(held), abs(total)) >= 179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904174497792 THEN
                    RETURN NULL;
                END IF;
                total := sessile_float(held::double precision + addend::double precision);
            END IF;
            IF total < (operation -> 'min')::numeric OR total > (operation -> 'max')::numeric THEN
                RETURN NULL;
            END IF;
            value := to_jsonb(total);
        ELSIF operation ? 'append' THEN
            IF value IS NULL THEN
                value := operation -> 'append';
            ELSIF jsonb_typeof(value) = 'array' THEN
                value := value || (operation -> 'append');
            ELSE
                RETURN NULL;
            END IF;
        ELSIF jsonb_typeof(operation -> 'union') = 'array' THEN
            value := coalesce(value, '[]');
            IF jsonb_typeof(value) <> 'array' THEN
                RETURN NULL;
            END IF;
            FOR item IN SELECT * FROM jsonb_array_elements(operation -> 'union') LOOP
                IF NOT EXISTS (SELECT FROM jsonb_array_elements(value) AS other (one) WHERE other.one = item) THEN
                    value := value || jsonb_build_array(item);
                END IF;
            END LOOP;
        ELSE
            value := coalesce(value, '{}');
            IF jsonb_typeof(value) <> 'object' THEN
                RETURN NULL;
            END IF;
            value := value || (operation -> 'union');
        END IF;
    END LOOP;
    RETURN value;
END $$;

-- The result of a change of one scope.
CREATE TYPE sessile_evaluated AS (
    state JSONB,    -- the whole state after it
    results JSONB,  -- the results of its operations, by key with prefix
    undo TEXT,      -- what undoes it, as JSON
    refused TEXT,   -- the name whose operation cannot be applied; everything else is NULL then
    found JSONB     -- what is stored under that name; NULL if it is absent
);

-- The fields that operations set in an object, of those that it has.
CREATE FUNCTION sessile_fields_before(value JSONB, operations JSONB) RETURNS JSONB
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_object_agg(field.name, value -> field.name), '{}')
      FROM jsonb_array_elements(CASE jsonb_typeof(operations) WHEN 'array' THEN operations
                                     ELSE jsonb_build_array(operations) END) AS operation (one)
     CROSS JOIN LATERAL jsonb_object_keys(operation.one -> 'union') AS field (name)
     WHERE value ? field.name
$$;

-- Computes a change of a scope: {"set": {name: value}, "remove": [names], "ops": {name:
-- operations}}, each part left out if it is empty. `names` are all names that change. `prefix` is
-- that of shared state; a key that was written by hand with its prefix is the same key, and is
-- stored without it from then on. Of a session's own state nothing is undone.
CREATE FUNCTION sessile_evaluate(state JSONB, delta JSONB, names TEXT[], prefix TEXT) RETURNS sessile_evaluated
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    answer sessile_evaluated;
    name TEXT;
    value JSONB;
    after JSONB;
    before JSONB := '{}';
    added JSONB;
    fields JSONB;
BEGIN
    -- Joined to anything else, an object would become an item of a list, and its keys would be
    -- lost.
    IF jsonb_typeof(state) <> 'object' THEN
        RAISE EXCEPTION 'the stored state is no JSON object' USING ERRCODE = 'data_corrupted';
    END IF;
    IF prefix = '' AND NOT delta ?| '{ops,remove}' THEN
        answer.state := state || (delta -> 'set');
        RETURN answer;
    END IF;
    IF prefix <> '' THEN
        FOREACH name IN ARRAY names LOOP
            IF state ? (prefix || name) THEN
                IF NOT state ? name THEN
                    state := state || jsonb_build_object(name, state -> (prefix || name));
                END IF;
                state := state - (prefix || name);
            END IF;
            value := state -> name;
            IF value IS NOT NULL THEN
                before := before || jsonb_build_object(name, value);
            END IF;
        END LOOP;
    END IF;
    IF delta ? 'ops' THEN
        answer.results := '{}';
        FOR name, value IN SELECT * FROM jsonb_each(delta -> 'ops') LOOP
            after := sessile_operate(state -> name, value);
            IF after IS NULL THEN
                answer.refused := name; answer.found := state -> name; answer.results := NULL;
                RETURN answer;
            END IF;
            IF jsonb_typeof(state -> name) = 'array' THEN
                added := coalesce(added, '{}') || jsonb_build_object(
                    name, jsonb_array_length(after) - jsonb_array_length(state -> name));
                before := before - name;
            ELSIF jsonb_typeof(state -> name) = 'object' THEN
                fields := coalesce(fields, '{}') || jsonb_build_object(
                    name, sessile_fields_before(state -> name, value));
                before := before - name;
            END IF;
            state := state || jsonb_build_object(name, after);
            answer.results := answer.results || jsonb_build_object(prefix || name, after);
        END LOOP;
    END IF;
    IF delta ? 'set' THEN
        state := state || (delta -> 'set');
    END IF;
    IF delta ? 'remove' THEN
        state := state - ARRAY(SELECT jsonb_array_elements_text(delta -> 'remove'));
    END IF;
    answer.state := state;
    IF prefix <> '' THEN
        answer.undo := '{"before":' || before::text || coalesce(',"added":' || added::text, '')
                       || coalesce(',"fields":' || fields::text, '') || '}';
    END IF;
    RETURN answer;
END $$;

-- A value for the note on what was overwritten: one that is long, or may be nested deeply, by its
-- length and digest.
CREATE FUNCTION sessile_told(value JSONB) RETURNS JSONB
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    content TEXT := value::text;
BEGIN
    IF octet_length(content) <= 1024 AND length(content) - length(translate(content, '[{', '')) <= 190 THEN
        RETURN value;
    END IF;
    RETURN jsonb_build_object('bytes', octet_length(content),
                              'sha256', encode(sha256(convert_to(content, 'UTF8')), 'hex'));
END $$;

-- Compares guards of one scope, [{"name", "read"?, "refuse"?}], with its state, as
-- `sessile_session::evaluate` does. Adds what differs to `earlier`, the answer for another scope:
-- {"refuse": whether a guard refuses, "current": {key: value} and "absent": [keys] of guards that
-- do, "overwrote": {key: {"read"?, "found"?}} of all}. NULL if nothing differs.
CREATE FUNCTION sessile_compare(state JSONB, guards JSONB, prefix TEXT, earlier JSONB) RETURNS JSONB
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    answer JSONB := earlier;
    guard JSONB;
    found JSONB;
    key TEXT;
    told JSONB;
BEGIN
    FOR place IN 0 .. jsonb_array_length(guards) - 1 LOOP
        guard := guards -> place;
        key := prefix || (guard ->> 'name');
        found := state -> (guard ->> 'name');
        IF found IS NULL AND prefix <> '' THEN
            found := state -> key;
        END IF;
        IF found IS NOT DISTINCT FROM (guard -> 'read') THEN
            CONTINUE;
        END IF;
        answer := coalesce(answer, '{"current": {}, "absent": [], "overwrote": {}, "refuse": false}');
        IF guard ? 'refuse' THEN
            answer := answer || '{"refuse": true}';
            IF found IS NULL THEN
                answer := jsonb_set(answer, '{absent}', (answer -> 'absent') || to_jsonb(key));
            ELSE
                answer := jsonb_set(answer, '{current}', (answer -> 'current') || jsonb_build_object(key, found));
            END IF;
        END IF;
        told := '{}';
        IF guard ? 'read' THEN
            told := told || jsonb_build_object('read', sessile_told(guard -> 'read'));
        END IF;
        IF found IS NOT NULL THEN
            told := told || jsonb_build_object('found', sessile_told(found));
        END IF;
        answer := jsonb_set(answer, '{overwrote}', (answer -> 'overwrote') || jsonb_build_object(key, told));
    END LOOP;
    RETURN answer;
END $$;

-- How large a state is, if it is larger than a limit and has grown; NULL otherwise, also without a
-- limit.
CREATE FUNCTION sessile_too_large(state JSONB, before JSONB, max_bytes BIGINT) RETURNS BIGINT
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    size BIGINT;
BEGIN
    IF max_bytes IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT sum(octet_length(entry.key) + octet_length(entry.value::text)) INTO size FROM jsonb_each(state) AS entry;
    IF size > max_bytes AND size > coalesce((SELECT sum(octet_length(entry.key) + octet_length(entry.value::text))
                                               FROM jsonb_each(before) AS entry), 0) THEN
        RETURN size;
    END IF;
    RETURN NULL;
END $$;
