-- google-adk's tables, with its names and types.
CREATE TABLE IF NOT EXISTS memory_events (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    app_name     TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    session_id   TEXT NOT NULL,
    event_id     TEXT NOT NULL,
    author       TEXT NOT NULL,
    timestamp    REAL NOT NULL,
    content_json TEXT NOT NULL,
    search_text  TEXT NOT NULL,
    UNIQUE (app_name, user_id, session_id, event_id)
);

CREATE INDEX IF NOT EXISTS idx_memory_events_scope
    ON memory_events (app_name, user_id, timestamp DESC);

-- The index of words; it holds no text of its own.
CREATE VIRTUAL TABLE IF NOT EXISTS memory_events_fts
    USING fts5 (search_text, content='memory_events', content_rowid='id', tokenize='unicode61');

-- The index follows the table, whoever writes it.
CREATE TRIGGER IF NOT EXISTS memory_events_ai AFTER INSERT ON memory_events BEGIN
    INSERT INTO memory_events_fts (rowid, search_text) VALUES (new.id, new.search_text);
END;

CREATE TRIGGER IF NOT EXISTS memory_events_ad AFTER DELETE ON memory_events BEGIN
    INSERT INTO memory_events_fts (memory_events_fts, rowid, search_text)
    VALUES ('delete', old.id, old.search_text);
END;

CREATE TRIGGER IF NOT EXISTS memory_events_au AFTER UPDATE OF search_text ON memory_events BEGIN
    INSERT INTO memory_events_fts (memory_events_fts, rowid, search_text)
    VALUES ('delete', old.id, old.search_text);
    INSERT INTO memory_events_fts (rowid, search_text) VALUES (new.id, new.search_text);
END;
