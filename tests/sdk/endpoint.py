"""A model server of which a test says each answer, event by event, and which keeps the requests."""

import http.server
import json
import threading


def text(said):
    return {"type": "text", "text": said}


def use(name, given, call="toolu_1"):
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def refusal(status, kind="api_error", message="no", **headers):
    body = {"type": "error", "error": {"type": kind, "message": message}}
    return status, json.dumps(body), {"content-type": "application/json", **headers}


def begun(block):
    """A block as its first event has it, and the deltas after it: arguments one character at a time."""
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": it} for it in block["text"]]
        case "thinking":
            thought = {"type": "thinking_delta", "thinking": block["thinking"]}
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {"type": "thinking", "thinking": "", "signature": ""}, [thought, signed]
        case "tool_use":
            given = "" if block["input"] is None else json.dumps(block["input"])
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": it} for it in given]
        case _:
            return block, []


def events(n, model, blocks):
    usage = {"input_tokens": 11, "output_tokens": 1, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 5}
    message = {"id": f"msg_{n}", "type": "message", "role": "assistant", "model": model, "content": []}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    for index, block in enumerate(blocks):
        first, deltas = begun(block)
        yield {"type": "content_block_start", "index": index, "content_block": first}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if any(it["type"] == "tool_use" for it in blocks) else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 7}}
    yield {"type": "message_stop"}


class Endpoint:
    """Answers each request by the next of these: a list of blocks, a refusal, or None to break the connection."""

    def __init__(self, answers):
        self.answers, self.requests, self.headers = list(answers), [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append(request)
                outer.headers.append({name.lower(): it for name, it in self.headers.items()})
                answer = outer.answers.pop(0) if outer.answers else [text("no more")]
                if answer is None:
                    self.close_connection = True
                    return
                if isinstance(answer, list):
                    all_events = events(len(outer.requests), request["model"], answer)
                    lines = [f"event: {it['type']}\ndata: {json.dumps(it)}\n\n" for it in all_events]
                    answer = 200, "".join(lines), {"content-type": "text/event-stream"}
                status, body, headers = answer
                self.send_response(status)
                for name, value in {**headers, "content-length": str(len(body.encode()))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body.encode())

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
