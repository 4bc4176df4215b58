"""The state of a connection: bytes in, events and bytes out."""

import pytest

from localkube.apiserver.front.spdy.codec import FrameReader, FrameWriter
from localkube.apiserver.front.spdy.connection import (
    STREAM_LIMIT,
    BytesReceived,
    Connection,
    Dropped,
    Ended,
    Event,
    StreamOpened,
)
from localkube.apiserver.front.spdy.frames import (
    Data,
    Frame,
    GoAway,
    GoAwayStatus,
    MoreHeaders,
    Ping,
    ResetStatus,
    RstStream,
    SynReply,
    SynStream,
)
from localkube.apiserver.front.spdy.headers import ProtocolError


class Peer:
    """A client of a connection."""

    def __init__(self, *frames: Frame) -> None:
        self.connection = Connection()
        self._writer = FrameWriter()
        self._reader = FrameReader()
        self.events = self.tell(*frames)

    def tell(self, *frames: Frame) -> list[Event]:
        return self.connection.receive(b"".join(map(self._writer.write, frames)))

    def hear(self) -> list[Frame]:
        return self._reader.feed(self.connection.take())


def test_a_stream_is_opened_accepted_and_ended_in_both_directions() -> None:
    peer = Peer(SynStream(1, {"port": "80"}), Data(1, b"question"), Data(1, b"!", fin=True))
    assert peer.events == [
        StreamOpened(1, {"port": "80"}),
        BytesReceived(1, b"question"),
        BytesReceived(1, b"!"),
        Ended(1),
    ]
    peer.connection.accept(1)
    peer.connection.send(1, b"answer")
    peer.connection.finish(1)
    assert peer.hear() == [SynReply(1), Data(1, b"answer"), Data(1, b"", fin=True)]
    assert peer.hear() == []


def test_the_client_may_go_on_when_the_server_has_finished() -> None:
    peer = Peer(SynStream(1))
    peer.connection.finish(1)
    assert peer.tell(Data(1, b"more"), Data(1, b"", fin=True)) == [BytesReceived(1, b"more"), Ended(1)]


def test_pings_of_the_client_are_answered() -> None:
    peer = Peer(Ping(1), Ping(2), Ping(3))
    assert peer.hear() == [Ping(1), Ping(3)]


def test_further_headers_and_unknown_frames_change_nothing() -> None:
    peer = Peer(SynStream(1), MoreHeaders(1, {"a": "b"}))
    assert peer.connection.receive(bytes.fromhex("80030004 0000000c 00000001 01000007 00010000")) == []
    assert peer.events == [StreamOpened(1, {})]
    peer.connection.send(1, b"as before")
    assert peer.hear() == [Data(1, b"as before")]


@pytest.mark.parametrize("last", [SynStream(1, fin=True), MoreHeaders(1, fin=True), Data(1, b"", fin=True)])
def test_any_frame_may_be_the_last_of_a_stream(last: Frame) -> None:
    frames = [last] if isinstance(last, SynStream) else [SynStream(1), last]
    assert Peer(*frames).events == [StreamOpened(1, {}), Ended(1)]


def test_a_stream_that_the_client_does_not_listen_to_is_told_nothing() -> None:
    peer = Peer(SynStream(1, unidirectional=True))
    peer.connection.send(1, b"lost")
    peer.connection.finish(1)
    assert peer.hear() == []


def test_nothing_is_sent_on_a_stream_that_the_client_dropped() -> None:
    peer = Peer(SynStream(1), RstStream(1, ResetStatus.CANCEL), RstStream(1, ResetStatus.CANCEL))
    assert peer.events == [StreamOpened(1, {}), Dropped(1)]
    peer.connection.accept(1)
    peer.connection.send(1, b"lost")
    peer.connection.finish(1)
    peer.connection.reset(1, ResetStatus.CANCEL)
    assert peer.hear() == []


def test_what_arrives_after_a_reset_of_ours_is_forgotten() -> None:
    peer = Peer(SynStream(1))
    peer.connection.reset(1, ResetStatus.CANCEL)
    assert peer.tell(Data(1, b"too late"), Data(1, b"", fin=True)) == []
    assert peer.hear() == [RstStream(1, ResetStatus.CANCEL)]


def test_bytes_after_the_end_reset_the_stream() -> None:
    peer = Peer(SynStream(1, fin=True), Data(1, b"more"))
    assert peer.events[2:] == [Dropped(1)]
    assert peer.hear() == [RstStream(1, ResetStatus.STREAM_ALREADY_CLOSED)]


def test_bytes_of_a_stream_that_nobody_opened_are_refused() -> None:
    peer = Peer(Data(7, b"?"))
    assert (peer.events, peer.hear()) == ([], [RstStream(7, ResetStatus.INVALID_STREAM)])


@pytest.mark.parametrize("second", [2, 3, 1])
def test_numbers_of_streams_are_odd_and_rise(second: int) -> None:
    with pytest.raises(ProtocolError, match=f"stream {second} is opened after stream 3: take odd, rising numbers"):
        Peer(SynStream(3), SynStream(second))


def test_streams_beyond_the_limit_are_refused_until_others_end() -> None:
    peer = Peer(*(SynStream(2 * index + 1) for index in range(STREAM_LIMIT + 1)))
    assert len(peer.events) == STREAM_LIMIT
    assert peer.hear() == [RstStream(2 * STREAM_LIMIT + 1, ResetStatus.REFUSED_STREAM)]
    after = 2 * STREAM_LIMIT + 3
    assert peer.tell(RstStream(1, ResetStatus.CANCEL), SynStream(after)) == [Dropped(1), StreamOpened(after, {})]


def test_a_client_that_goes_away_opens_no_more_streams_but_keeps_its_own() -> None:
    peer = Peer(SynStream(1), GoAway(0, GoAwayStatus.OK), SynStream(3), Data(1, b"rest"))
    assert peer.events == [StreamOpened(1, {}), BytesReceived(1, b"rest")]
    assert peer.hear() == [RstStream(3, ResetStatus.REFUSED_STREAM)]


def test_a_server_that_goes_away_says_which_streams_it_has() -> None:
    peer = Peer(SynStream(1), SynStream(5))
    peer.connection.go_away(GoAwayStatus.PROTOCOL_ERROR)
    assert peer.hear() == [GoAway(5, GoAwayStatus.PROTOCOL_ERROR)]
    assert peer.tell(SynStream(7)) == []
