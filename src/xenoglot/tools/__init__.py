"""Tools that a program gives to a model, and the loop that lets the model use them. No socket, no clock, no thread."""
