"""What every endpoint uses: route types, request context, request body, responses."""
