"""Pages of the console that work without the ledger, and those about the gateway itself."""
