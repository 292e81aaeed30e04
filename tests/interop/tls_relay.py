"""TLS for peers that do not speak without it, in front of peers that do not speak it.

    client -- TLS --> relay -- plain TCP --> server

One connection, in a thread of its own. It ends when both have.
"""

from __future__ import annotations

import asyncio
import ssl
import threading

from certificates import Identity

HOST = "127.0.0.1"


def start(certificate: Identity, host: str, port: int) -> int:
    """Listens. Returns the port."""
    loop = asyncio.new_event_loop()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(host, port)
        await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))

    server = loop.run_until_complete(asyncio.start_server(relay, HOST, 0, ssl=context))
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return int(server.sockets[0].getsockname()[1])


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one side ends, of which the other is told."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except (ConnectionError, ssl.SSLError):
        pass
    finally:
        writer.close()
