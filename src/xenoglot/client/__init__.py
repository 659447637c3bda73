"""The client: one interface to any model, in a server of any dialect or in this process."""
