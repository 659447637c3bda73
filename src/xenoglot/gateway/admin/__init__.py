"""Administration of a running gateway over HTTP: `/admin/v1`. Imported at the first request, not at the start."""
