# SPDX-License-Identifier: Apache-2.0
"""A shop's list of goods, for servers that call it by WSGI and for those that call it by ASGI."""
import json

GOODS = [{"id": i, "name": f"good {i}", "cents": 100 + 7 * i} for i in range(30)]


def page():
    return json.dumps([dict(good, price=f"{good['cents'] / 100:.2f}") for good in GOODS]).encode()


def wsgi(environ, start_response):
    body = page()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


async def events(scope, receive, send):
    if scope["type"] != "http":
        return
    body = page()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
