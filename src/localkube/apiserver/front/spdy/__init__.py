"""SPDY/3.1, the server's side of it, without any input or output: bytes in, events out; wishes in, bytes out.

kubectl speaks it inside a WebSocket to forward ports. `connection` knows streams, `codec` frames, `headers` their blocks.
"""
