-- Identifiers are never used twice, so that a late write cannot land on another chat.
CREATE TABLE conversation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    active_leaf_id INTEGER,
    FOREIGN KEY (id, active_leaf_id) REFERENCES message (conversation_id, id)
        DEFERRABLE INITIALLY DEFERRED
);

CREATE INDEX conversation_by_time ON conversation (updated_at);

-- Messages form a tree: siblings under one parent are versions of the same turn.
-- The parent key does not cascade: a chain of a thousand replies would exceed the depth that
-- SQLite allows for cascades. Messages go with their conversation, in one step.
-- Searches compare with search_text: the text without case and in one form of accents, which
-- SQLite cannot work out for letters beyond ASCII. Spans come last, so that a search does not
-- read them.
CREATE TABLE message (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id INTEGER NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
    parent_id INTEGER,
    role TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant')),
    state TEXT NOT NULL,
    created_at REAL NOT NULL,
    search_text TEXT NOT NULL DEFAULT '',
    text TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    settings TEXT NOT NULL DEFAULT '{}',
    metrics TEXT NOT NULL DEFAULT '{}',
    spans BLOB NOT NULL DEFAULT x'',
    UNIQUE (conversation_id, id),
    FOREIGN KEY (conversation_id, parent_id) REFERENCES message (conversation_id, id)
        DEFERRABLE INITIALLY DEFERRED
);

CREATE INDEX message_by_parent ON message (conversation_id, parent_id);

-- Work that must be done before the file is closed for good, and outlives a kill.
CREATE TABLE housekeeping (
    task TEXT PRIMARY KEY
);
