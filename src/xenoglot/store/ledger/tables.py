"""Tables of the ledger, in the common SQL of SQLite and PostgreSQL.

Times are Unix seconds, money is integer micro-units of a currency, flags are 0 and 1. A count that was not reported is
null; the sums of an hour count it as 0. In `usage_hour` what has no name is the empty string, so that it is a key.
"""

from __future__ import annotations

from typing import Final

COUNTS: Final = (
    "input",
    "output",
    "cache_read",
    "cache_write",
    "reasoning",
    "audio_in",
    "audio_out",
    "searches",
    "extra_input",
    "extra_output",
)
"""Columns of counts, of a request and of an hour. `extra_` are tokens of calls that the provider made for the
answer and reports apart from it; cached tokens are in `input`, reasoning is in `output`."""

ENDED: Final = "(at + total_ms / 1000.0)"
"""When a request ended, in Unix seconds."""

FAILED: Final = "(failure IS NOT NULL OR COALESCE(status, 0) >= 400)"
"""Whether the client got no whole answer. An index has it in these words."""

USUAL_STATUS: Final = 200
"""The status of nearly all requests, which is no help to find some of them."""

_COUNT_COLUMNS: Final = ", ".join(f"{name} BIGINT" for name in COUNTS)
_SUM_COLUMNS: Final = ", ".join(f"{name} BIGINT NOT NULL" for name in COUNTS)

TABLES: Final = (
    f"""
    CREATE TABLE request (
        id TEXT NOT NULL PRIMARY KEY,
        at DOUBLE PRECISION NOT NULL,
        tenant TEXT,
        key TEXT,
        session TEXT,
        route TEXT,
        dialect TEXT,
        upstream_dialect TEXT,
        model TEXT,
        upstream TEXT,
        target TEXT,
        tries BIGINT NOT NULL,
        stream BIGINT,
        status BIGINT,
        finish TEXT,
        failure TEXT,
        ttfb_ms DOUBLE PRECISION,
        total_ms DOUBLE PRECISION NOT NULL,
        {_COUNT_COLUMNS},
        estimated BIGINT NOT NULL,
        cost BIGINT,
        currency TEXT,
        price_source TEXT,
        losses BIGINT NOT NULL,
        loss_kinds TEXT,
        trace TEXT,
        tags TEXT
    )
    """,
    "CREATE INDEX request_at ON request (at)",
    "CREATE INDEX request_tenant ON request (tenant, at)",
    f"CREATE INDEX request_ended ON request ({ENDED})",
    f"""
    CREATE TABLE usage_hour (
        hour BIGINT NOT NULL,
        tenant TEXT NOT NULL,
        key TEXT NOT NULL,
        model TEXT NOT NULL,
        upstream TEXT NOT NULL,
        dialect TEXT NOT NULL,
        currency TEXT NOT NULL,
        requests BIGINT NOT NULL,
        failures BIGINT NOT NULL,
        {_SUM_COLUMNS},
        estimated BIGINT NOT NULL,
        cost BIGINT NOT NULL,
        unpriced BIGINT NOT NULL,
        losses BIGINT NOT NULL,
        PRIMARY KEY (hour, tenant, key, model, upstream, dialect, currency)
    )
    """,
    """
    CREATE TABLE api_key (
        id TEXT NOT NULL PRIMARY KEY,
        tenant TEXT,
        name TEXT NOT NULL,
        digest TEXT NOT NULL UNIQUE,
        shown TEXT NOT NULL,
        roles TEXT NOT NULL,
        models TEXT,
        limits TEXT,
        budgets TEXT,
        created DOUBLE PRECISION NOT NULL,
        created_by TEXT,
        expires DOUBLE PRECISION,
        disabled DOUBLE PRECISION,
        replaces TEXT,
        last_used DOUBLE PRECISION
    )
    """,
    """
    CREATE TABLE budget (
        id TEXT NOT NULL PRIMARY KEY,
        scope TEXT NOT NULL,
        amount BIGINT NOT NULL,
        currency TEXT NOT NULL,
        period TEXT NOT NULL,
        zone TEXT NOT NULL,
        warn_at BIGINT,
        on_exceeded TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE price (
        pattern TEXT NOT NULL,
        upstream TEXT NOT NULL,
        valid_from DOUBLE PRECISION NOT NULL,
        input TEXT NOT NULL,
        output TEXT NOT NULL,
        cache_read TEXT,
        cache_write TEXT,
        currency TEXT NOT NULL,
        PRIMARY KEY (pattern, upstream, valid_from)
    )
    """,
    """
    CREATE TABLE audit (
        id TEXT NOT NULL PRIMARY KEY,
        at DOUBLE PRECISION NOT NULL,
        actor TEXT NOT NULL,
        action TEXT NOT NULL,
        object TEXT NOT NULL,
        before TEXT,
        after TEXT,
        request TEXT
    )
    """,
    "CREATE INDEX audit_at ON audit (at)",
    """
    CREATE TABLE capture (
        request TEXT NOT NULL,
        part TEXT NOT NULL,
        media TEXT NOT NULL,
        body BYTEA NOT NULL,
        expires DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (request, part)
    )
    """,
    "CREATE INDEX capture_expires ON capture (expires)",
)
"""Statements that create the tables. Prices of a million tokens are decimal numbers in text: they have no rounding."""

KEY_TABLES: Final = (
    "DROP TABLE api_key",  # no program has written it
    """
    CREATE TABLE api_key (
        id TEXT NOT NULL PRIMARY KEY,
        tenant TEXT,
        name TEXT NOT NULL UNIQUE,
        owner TEXT NOT NULL,
        shown TEXT NOT NULL,
        roles TEXT NOT NULL,
        models TEXT,
        limits TEXT,
        budgets TEXT,
        created DOUBLE PRECISION NOT NULL,
        created_by TEXT,
        expires DOUBLE PRECISION,
        disabled DOUBLE PRECISION,
        last_used DOUBLE PRECISION
    )
    """,
    "CREATE INDEX api_key_created ON api_key (created, id)",
    """
    CREATE TABLE api_key_secret (
        digest TEXT NOT NULL PRIMARY KEY,
        key TEXT NOT NULL,
        created DOUBLE PRECISION NOT NULL,
        expires DOUBLE PRECISION
    )
    """,
    "CREATE INDEX api_key_secret_key ON api_key_secret (key)",
    "CREATE TABLE api_key_version (version BIGINT NOT NULL)",
    "INSERT INTO api_key_version (version) VALUES (0)",
)
"""A key has one secret, and more for some time after a rotation; `digest` is the SHA-256 of a secret in hexadecimal.
`version` grows with every change of a key, in the same transaction."""
BUDGET_TABLES: Final = (
    "ALTER TABLE budget ADD COLUMN changed DOUBLE PRECISION NOT NULL DEFAULT 0",
    """
    CREATE TABLE budget_state (
        budget TEXT NOT NULL PRIMARY KEY,
        zone TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE budget_use (
        budget TEXT NOT NULL,
        bucket BIGINT NOT NULL,
        spent BIGINT NOT NULL,
        reserved BIGINT NOT NULL,
        unpriced BIGINT NOT NULL,
        PRIMARY KEY (budget, bucket)
    )
    """,
    """
    CREATE TABLE budget_writer (
        process TEXT NOT NULL PRIMARY KEY,
        number BIGINT NOT NULL,
        at DOUBLE PRECISION NOT NULL
    )
    """,
)
"""Statements for the use of budgets. A bucket begins with a period, or with an hour of a rolling window; `budget_state`
has the budgets whose use was taken from the ledger, `budget_writer` the last write of each process."""

LIMIT_TABLES: Final = (
    """
    CREATE TABLE limit_window (
        gateway TEXT NOT NULL,
        scope TEXT NOT NULL,
        expires DOUBLE PRECISION NOT NULL,
        data BYTEA NOT NULL,
        PRIMARY KEY (gateway, scope)
    )
    """,
    "CREATE INDEX limit_window_expires ON limit_window (expires)",
)
"""Statements for the windows of limits that one gateway counts, so that they survive its restart."""

CONSOLE_TABLES: Final = (
    """
    CREATE TABLE console_session (
        digest TEXT NOT NULL PRIMARY KEY,
        key_digest TEXT NOT NULL,
        expires DOUBLE PRECISION NOT NULL
    )
    """,
    "CREATE INDEX console_session_expires ON console_session (expires)",
)
"""Statements for the sessions of the console; `digest` is the SHA-256 of the cookie, `key_digest` of the API key."""

TENANT_TABLES: Final = (
    """
    CREATE TABLE tenant_models (
        tenant TEXT NOT NULL PRIMARY KEY,
        models TEXT NOT NULL
    )
    """,
)
"""Statements for the models that configured tenants may use, which outlast their removal from a file."""

TOKEN_TIME: Final = ("ALTER TABLE request ADD COLUMN first_token_ms DOUBLE PRECISION",)
"""The statement for the time to the first token of a stream; requests that were recorded before have none."""

SEARCH_INDEXES: Final = (
    "CREATE INDEX request_session ON request (session, at) WHERE session IS NOT NULL",
    "CREATE INDEX request_trace ON request (trace, at) WHERE trace IS NOT NULL",
    f"CREATE INDEX request_status ON request (status, at) WHERE status <> {USUAL_STATUS}",
    f"CREATE INDEX request_failed ON request (at) WHERE {FAILED}",
    "CREATE INDEX request_lossy ON request (at) WHERE losses > 0",
    *(
        f"CREATE INDEX usage_hour_{name} ON usage_hour ({name}, hour)"
        for name in ("tenant", "key", "model", "upstream", "dialect")
    ),
)
"""Statements for the indexes by which requests are found. Most requests are in none of them, so they cost their writer
next to nothing; what every request has, such as a model, is found by the hours in which the sums have it."""
