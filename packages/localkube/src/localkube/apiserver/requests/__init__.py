"""The parts of a request (calls, selections, options, bodies, representations), and the watch broadcaster."""
