"""The tables, in the SQL that SQLite and PostgreSQL share, and how an older store becomes one of today."""

from __future__ import annotations

from typing import Final

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
)
"""What leads from each version to the next; version 0 is an empty database."""

VERSION: Final = len(MIGRATIONS)
