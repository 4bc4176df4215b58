"""SPDY/3.1, server side, without I/O: bytes in, events out; commands in, bytes out.

kubectl uses it inside a WebSocket to forward ports. `connection` handles streams, `codec` frames, `headers` their
blocks.
"""
