"""Starts a server, and creates a transport to it, for the tests of the HTTP transport."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from kuberuntime.access.access import Access
from kuberuntime.access.credentials import SecretEntry, StoredCredentials
from kuberuntime.client.http import HTTPTransport
from kuberuntime.client.transport import Request, Response

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Connection = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
NOTHING = SecretEntry("")
GET = Request("GET", "/version")


def token(value: str) -> StoredCredentials:
    return StoredCredentials(token=SecretEntry("token", value.encode()), certificate=NOTHING, key=NOTHING)


@asynccontextmanager
async def serving(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[Access]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    scheme = "https" if context else "http"
    try:
        yield Access(f"{scheme}://127.0.0.1:{runner.addresses[0][1]}", token("t"))
    finally:
        await runner.cleanup()


@asynccontextmanager
async def listening(connection: Connection) -> AsyncIterator[Access]:
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await connection(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(serve(reader, writer))
        tasks.add(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield Access(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", token("t"))
    await asyncio.gather(*tasks)


@asynccontextmanager
async def transport(access: Access, seconds: float = 5.0) -> AsyncIterator[HTTPTransport]:
    made = HTTPTransport(access, user_agent="lws/test", seconds=seconds)
    try:
        yield made
    finally:
        await made.close()


async def ask(access: Access, request: Request = GET, seconds: float = 5.0) -> Response:
    async with transport(access, seconds) as made:
        return await made.request(request)


async def hello(_: web.Request) -> web.Response:
    return web.json_response({"hello": "world"})
