"""Models that configured tenants may use, as generators of statements (`store.queries`).

Keys of the store name their tenant, whose models are in the configuration file of the gateway. They are stored too, so
that a tenant that is removed from the file allows its keys no more than before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import encode_json
from xenoglot.store.queries import Statement, read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.store.queries import Steps


def remember(configured: Mapping[str, tuple[str, ...]]) -> Steps[dict[str, tuple[str, ...]]]:
    """Store the models of configured tenants, and return those of the others. Without models a tenant may use all."""
    rows = yield Statement("SELECT tenant, models FROM tenant_models")
    known = {str(tenant): _names(str(models)) for tenant, models in rows}
    for tenant in sorted(configured):
        models = configured[tenant]
        if models == known.get(tenant, ()):
            continue
        if models:
            yield Statement(
                "INSERT INTO tenant_models (tenant, models) VALUES ($1, $2)"
                " ON CONFLICT (tenant) DO UPDATE SET models = excluded.models",
                (tenant, encode_json([*models]).decode()),
            )
        else:
            yield Statement("DELETE FROM tenant_models WHERE tenant = $1", (tenant,))
    return {tenant: models for tenant, models in known.items() if tenant not in configured}


def _names(text: str) -> tuple[str, ...]:
    found = read(text.encode())
    return tuple(map(str, found)) if isinstance(found, list) else ()
