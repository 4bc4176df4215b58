"""Errors of a peer that speaks SPDY."""


class ProtocolError(Exception):
    """The peer sent what the protocol forbids, or more than is taken; the connection cannot go on."""
