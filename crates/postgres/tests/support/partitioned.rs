//! Tables that are partitioned.

use crate::support;

/// google-adk's tables as an operator partitions them: by application and user, so that a user's
/// rows are together.
const PARTITIONED: &str = "
    CREATE TABLE adk_internal_metadata (key VARCHAR(128) NOT NULL PRIMARY KEY, value VARCHAR(256) NOT NULL);
    INSERT INTO adk_internal_metadata VALUES ('schema_version', '1');
    CREATE TABLE app_states (
        app_name VARCHAR(128) NOT NULL PRIMARY KEY, state JSONB NOT NULL, update_time TIMESTAMP NOT NULL
    ) PARTITION BY HASH (app_name);
    CREATE TABLE user_states (
        app_name VARCHAR(128) NOT NULL, user_id VARCHAR(128) NOT NULL, state JSONB NOT NULL, update_time TIMESTAMP NOT NULL,
        PRIMARY KEY (app_name, user_id)
    ) PARTITION BY HASH (app_name, user_id);
    CREATE TABLE sessions (
        app_name VARCHAR(128) NOT NULL, user_id VARCHAR(128) NOT NULL, id VARCHAR(128) NOT NULL, state JSONB NOT NULL,
        create_time TIMESTAMP NOT NULL, update_time TIMESTAMP NOT NULL, PRIMARY KEY (app_name, user_id, id)
    ) PARTITION BY HASH (app_name, user_id);
    CREATE TABLE events (
        id VARCHAR(128) NOT NULL, app_name VARCHAR(128) NOT NULL, user_id VARCHAR(128) NOT NULL,
        session_id VARCHAR(128) NOT NULL, invocation_id VARCHAR(256) NOT NULL, timestamp TIMESTAMP NOT NULL, event_data JSONB,
        PRIMARY KEY (id, app_name, user_id, session_id),
        FOREIGN KEY (app_name, user_id, session_id) REFERENCES sessions (app_name, user_id, id) ON DELETE CASCADE
    ) PARTITION BY HASH (app_name, user_id);
    DO $$ BEGIN
        FOR n IN 0 .. 3 LOOP
            EXECUTE format('CREATE TABLE app_states_%s PARTITION OF app_states FOR VALUES WITH (MODULUS 4, REMAINDER %s)', n, n);
            EXECUTE format('CREATE TABLE user_states_%s PARTITION OF user_states FOR VALUES WITH (MODULUS 4, REMAINDER %s)', n, n);
            EXECUTE format('CREATE TABLE sessions_%s PARTITION OF sessions FOR VALUES WITH (MODULUS 4, REMAINDER %s)', n, n);
            EXECUTE format('CREATE TABLE events_%s PARTITION OF events FOR VALUES WITH (MODULUS 4, REMAINDER %s)', n, n);
        END LOOP;
    END $$;
";

/// The URL of a new schema whose tables are partitioned.
pub(crate) async fn new_partitioned_schema() -> String {
    let url = support::new_schema().await;
    support::sql(&url, PARTITIONED).await;
    url
}
