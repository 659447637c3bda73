"""The backend that asks another server, in any dialect."""
