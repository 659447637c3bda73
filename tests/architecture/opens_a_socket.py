"""A module that does at import what none of ours may: it opens a socket and starts a thread."""

import socket
import threading

socket.socket().close()
threading.Thread(target=int).start()
