"""The error of a SPDY connection."""


class ProtocolError(Exception):
    """The peer violated the protocol or exceeded a limit; the connection has to be closed."""
