"""Readers of large answers that stop reading take neither the memory nor the time of others."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from kuberuntime.client.transport import Response
from localkube.apiserver.front.largeanswers import PIECE, LargeAnswers

LIMIT = 20.0
"""Seconds in which anything must come true."""

ANSWER = Response(200, {"content-type": "application/json"}, b"0123456789abcdef" * (2**20))
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@asynccontextmanager
async def served(answers: LargeAnswers) -> AsyncIterator[tuple[str, int]]:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        refused = answers.refuse(ANSWER)
        return web.Response(status=refused.code) if refused else await answers.write(request, ANSWER)

    server = web.Server(answer)
    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    try:
        async with asyncio.timeout(LIMIT):
            yield f"http://127.0.0.1:{port}/", port
    finally:
        listening.close()
        await server.shutdown(0.0)


def stuck(port: int) -> socket.socket:
    """Ask, and read nothing."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)
    reader.connect(("127.0.0.1", port))
    reader.sendall(REQUEST)
    return reader


async def status(session: aiohttp.ClientSession, url: str) -> int:
    async with session.get(url) as answer:
        assert answer.status != 200 or await answer.read() == ANSWER.body
        return answer.status


async def until(session: aiohttp.ClientSession, url: str, wanted: int) -> None:
    """Ask until the answer has this status."""
    while await status(session, url) != wanted:  # noqa: ASYNC110 - what is waited for happens in the kernel
        await asyncio.sleep(0.01)


def test_a_large_answer_arrives_as_it_is() -> None:
    async def scenario() -> None:
        async with served(LargeAnswers()) as (url, _), aiohttp.ClientSession() as session:
            assert [await status(session, url) for _ in range(2)] == [200, 200]

    asyncio.run(scenario())


def test_one_beyond_the_bound_is_asked_to_come_again_and_served_when_others_have_left() -> None:
    async def scenario() -> None:
        answers = LargeAnswers(most=2 * len(ANSWER.body))
        async with served(answers) as (url, port), aiohttp.ClientSession() as session:
            with stuck(port), stuck(port):
                await until(session, url, 429)
            await until(session, url, 200)

    asyncio.run(scenario())


def test_a_reader_who_takes_too_long_is_dropped() -> None:
    async def scenario() -> None:
        answers = LargeAnswers(most=1, seconds=0.3)
        async with served(answers) as (url, port), aiohttp.ClientSession() as session:
            with stuck(port):
                await until(session, url, 429)
                await until(session, url, 200)

    asyncio.run(scenario())
