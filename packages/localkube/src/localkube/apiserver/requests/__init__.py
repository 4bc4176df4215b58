"""The parts of a request: calls, selections, options, bodies, representations. Also contains the watch hub."""
