-- google-adk's table; its `schema_version` tells the layout of the others.
CREATE TABLE IF NOT EXISTS adk_memory_metadata (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
