"""Tools that a program offers to a model, and the tool loop. No sockets, clocks or threads."""
