"""What a request asks for and in which form: calls, selections, options, bodies, representations."""
