"""Builds SPDY frames."""

from localkube.apiserver.frontend.spdy import NO_HEADERS, Frame, Headers, Status, Type


def syn_stream(stream: int, headers: Headers = NO_HEADERS, *, fin: bool = False) -> Frame:
    return Frame(Type.SYN_STREAM, stream, headers=headers, fin=fin)


def syn_reply(stream: int, headers: Headers = NO_HEADERS, *, fin: bool = False) -> Frame:
    return Frame(Type.SYN_REPLY, stream, headers=headers, fin=fin)


def data_frame(stream: int, data: bytes, *, fin: bool = False) -> Frame:
    return Frame(Type.DATA, stream, data, fin=fin)


def rst_stream(stream: int, status: int = Status.CANCEL) -> Frame:
    return Frame(Type.RST_STREAM, stream, status=status)


def ping(number: int) -> Frame:
    return Frame(Type.PING, number)
