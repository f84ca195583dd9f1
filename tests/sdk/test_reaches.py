"""MCP servers over HTTP, and servers that are connected again."""

import http.server
import json
import threading

import pytest
from claude_agent_sdk import ClaudeSDKClient
from conftest import call, collect, of_kind, results

pytestmark = pytest.mark.anyio


class Server:
    """An MCP server over HTTP with one tool, which can be shut and opened again at the same port."""

    def __init__(self):
        self.seen = []
        self.status = None
        self.port = 0
        self.http = None
        self.open()

    def open(self):
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                server.answer(self)

            do_DELETE = do_POST

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.http.daemon_threads = True
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def shut(self):
        self.http.shutdown()
        self.http.server_close()

    def config(self):
        return {"type": "http", "url": f"http://127.0.0.1:{self.port}/mcp", "headers": {"X-Key": "k"}}

    def answer(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        message = json.loads(body or b"{}")
        self.seen.append((message.get("method"), request.headers.get("X-Key")))
        results = {
            "initialize": {
                "protocolVersion": message.get("params", {}).get("protocolVersion"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "far", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "five"}]},
        }
        result = results.get(message.get("method"))
        status = self.status or (200 if result else 202)
        text = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}).encode()
        text = text if status == 200 else b""
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)


@pytest.fixture
def far():
    server = Server()
    yield server
    server.shut()


def options(place, far):
    return place.options(mcp_servers={"far": far.config()}, allowed_tools=["mcp__far__add"])


async def ask(client):
    await client.query(call("mcp__far__add", a=2, b=3))
    messages = await collect(client.receive_response())
    offered = of_kind(messages, "SystemMessage")[0].data["tools"]
    return "mcp__far__add" in offered, results(messages)[0]


async def status(client):
    [server] = (await client.get_mcp_status())["mcpServers"]
    return server["status"], [it["name"] for it in server["tools"]]


# REQ: SUR-3, TOL-11
async def test_server_over_http_has_its_tools_called_with_its_headers(place, far):
    async with ClaudeSDKClient(options(place, far)) as client:
        offered, (content, is_error) = await ask(client)
        assert offered and not is_error and "five" in json.dumps(content)
        assert await status(client) == ("connected", ["add"])
    assert {key for _, key in far.seen} == {"k"}
    assert "tools/call" in [method for method, _ in far.seen]


# REQ: SUR-3, TOL-11
async def test_server_that_was_down_is_connected_again_on_request(place, far):
    far.status = 403
    async with ClaudeSDKClient(options(place, far)) as client:
        offered, (_, is_error) = await ask(client)
        assert not offered and is_error
        assert await status(client) == ("failed", [])
        with pytest.raises(Exception, match="failed again: .*403"):
            await client.reconnect_mcp_server("far")
        with pytest.raises(Exception, match="there is no MCP server `near`"):
            await client.reconnect_mcp_server("near")
        far.status = None
        await client.reconnect_mcp_server("far")
        assert await status(client) == ("connected", ["add"])
        offered, (content, is_error) = await ask(client)
        assert offered and not is_error and "five" in json.dumps(content)


# REQ: SUR-3, TOL-11
async def test_server_that_wants_a_login_is_listed_so(place, far):
    far.status = 401
    async with ClaudeSDKClient(options(place, far)) as client:
        await ask(client)
        assert (await status(client))[0] == "needs-auth"
