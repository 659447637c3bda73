"""The list of modules between a client's bytes and the upstream's: it has both ends, and nothing of the answer."""

from bench.request_path import request_path


def test_the_path_begins_at_the_client_and_ends_at_the_upstream() -> None:
    path = request_path()
    modules = list(path.modules)
    assert modules[0] == path.stack[0] == "xenoglot.gateway.http.connection"
    assert path.modules[modules[0]][0] == "ClientConnection.data_received"
    assert "UpstreamConnection.begin" in path.modules[path.stack[-1]]
    assert path.stack[-1] == "xenoglot.backends.http.connection"
    assert not any("answer" in module or "stream_reader" in module for module in modules)
