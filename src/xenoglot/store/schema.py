"""Tables, in the common SQL of SQLite and PostgreSQL, and migrations of older stores."""

from __future__ import annotations

from typing import Final

from xenoglot.store.ledger import tables

VERSION_TABLE: Final = "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)"
READ_VERSION: Final = "SELECT version FROM schema_version"
FORGET_VERSION: Final = "DELETE FROM schema_version"
WRITE_VERSION: Final = "INSERT INTO schema_version (version) VALUES ($1)"

MIGRATIONS: Final = (
    (
        """
        CREATE TABLE answer (
            owner TEXT NOT NULL,
            id TEXT NOT NULL,
            kind TEXT NOT NULL,
            created DOUBLE PRECISION NOT NULL,
            status TEXT NOT NULL,
            process TEXT,
            lease DOUBLE PRECISION,
            size BIGINT NOT NULL,
            body BYTEA NOT NULL,
            PRIMARY KEY (owner, id)
        )
        """,
        "CREATE INDEX answer_age ON answer (created, size)",
        "CREATE INDEX answer_list ON answer (owner, kind, created, id)",
        "CREATE INDEX answer_process ON answer (process) WHERE process IS NOT NULL",
        """
        CREATE TABLE frame (
            owner TEXT NOT NULL,
            answer TEXT NOT NULL,
            number BIGINT NOT NULL,
            data BYTEA NOT NULL,
            PRIMARY KEY (owner, answer, number)
        )
        """,
        """
        CREATE TABLE item (
            owner TEXT NOT NULL,
            id TEXT NOT NULL,
            answer TEXT NOT NULL,
            PRIMARY KEY (owner, id, answer)
        )
        """,
        "CREATE INDEX item_of ON item (owner, answer)",
        """
        CREATE TABLE conversation (
            owner TEXT NOT NULL,
            id TEXT NOT NULL,
            created DOUBLE PRECISION NOT NULL,
            used DOUBLE PRECISION NOT NULL,
            metadata BYTEA NOT NULL,
            length BIGINT NOT NULL,
            size BIGINT NOT NULL,
            holder TEXT,
            held_until DOUBLE PRECISION,
            PRIMARY KEY (owner, id)
        )
        """,
        "CREATE INDEX conversation_age ON conversation (used, size)",
        """
        CREATE TABLE conversation_item (
            owner TEXT NOT NULL,
            conversation TEXT NOT NULL,
            position BIGINT NOT NULL,
            id TEXT NOT NULL,
            data BYTEA NOT NULL,
            PRIMARY KEY (owner, conversation, position)
        )
        """,
        "CREATE INDEX conversation_item_id ON conversation_item (owner, id)",
        """
        CREATE TABLE vault (
            owner TEXT NOT NULL,
            name TEXT NOT NULL,
            backend TEXT NOT NULL,
            created DOUBLE PRECISION NOT NULL,
            payload BYTEA NOT NULL,
            size BIGINT NOT NULL,
            PRIMARY KEY (owner, name, backend)
        )
        """,
        "CREATE INDEX vault_age ON vault (created, size)",
    ),
    (
        """
        CREATE TABLE file (
            owner TEXT NOT NULL,
            id TEXT NOT NULL,
            created DOUBLE PRECISION NOT NULL,
            purpose TEXT NOT NULL,
            expires DOUBLE PRECISION,
            ready BIGINT NOT NULL,
            batch TEXT,
            part TEXT,
            size BIGINT NOT NULL,
            body BYTEA NOT NULL,
            PRIMARY KEY (owner, id)
        )
        """,
        "CREATE INDEX file_age ON file (created, size)",
        "CREATE INDEX file_list ON file (owner, created, id)",
        "CREATE INDEX file_end ON file (expires) WHERE expires IS NOT NULL",
        "CREATE INDEX file_held ON file (owner, size) WHERE ready = 0",
        "CREATE INDEX file_of ON file (owner, batch) WHERE batch IS NOT NULL",
        """
        CREATE TABLE file_piece (
            owner TEXT NOT NULL,
            file TEXT NOT NULL,
            number BIGINT NOT NULL,
            data BYTEA NOT NULL,
            PRIMARY KEY (owner, file, number)
        )
        """,
        """
        CREATE TABLE batch (
            owner TEXT NOT NULL,
            id TEXT NOT NULL,
            kind TEXT NOT NULL,
            created DOUBLE PRECISION NOT NULL,
            ready BIGINT NOT NULL,
            ended DOUBLE PRECISION,
            cancelled DOUBLE PRECISION,
            total BIGINT NOT NULL,
            succeeded BIGINT NOT NULL,
            errored BIGINT NOT NULL,
            input_tokens BIGINT,
            cached_tokens BIGINT,
            output_tokens BIGINT,
            reasoning_tokens BIGINT,
            process TEXT,
            lease DOUBLE PRECISION,
            size BIGINT NOT NULL,
            body BYTEA NOT NULL,
            PRIMARY KEY (owner, id)
        )
        """,
        "CREATE INDEX batch_age ON batch (ended, size)",
        "CREATE INDEX batch_list ON batch (owner, kind, created, id)",
        "CREATE INDEX batch_open ON batch (created) WHERE ended IS NULL",
        "CREATE INDEX batch_held ON batch (owner, size) WHERE ended IS NULL",
        """
        CREATE TABLE batch_line (
            owner TEXT NOT NULL,
            batch TEXT NOT NULL,
            number BIGINT NOT NULL,
            outcome TEXT,
            name BYTEA NOT NULL,
            request BYTEA NOT NULL,
            result BYTEA,
            PRIMARY KEY (owner, batch, number)
        )
        """,
        "CREATE INDEX batch_line_open ON batch_line (owner, batch, number) WHERE outcome IS NULL",
    ),
    tables.TABLES,
    tables.KEY_TABLES,
    tables.BUDGET_TABLES,
    tables.LIMIT_TABLES,
    tables.CONSOLE_TABLES,
    ("CREATE INDEX file_unfinished ON file (id) WHERE ready = 0",),
    tables.TENANT_TABLES,
    tables.SEARCH_INDEXES,
    tables.TOKEN_TIME,
)
"""Statements from each version to the next; version 0 is an empty database."""

VERSION: Final = len(MIGRATIONS)
