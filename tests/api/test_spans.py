"""The spans of a run, as a collector receives them by OTLP, read by the messages of opentelemetry-proto."""

import http.server
import os
import queue
import subprocess
import threading

import pytest
from conftest import ENNEAD, HERE, PATIENCE, running
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

SECRET = "a-text-that-only-the-conversation-has"


class Collector(http.server.ThreadingHTTPServer):
    """Keeps what it is sent. `status` is what it answers; `None` is nothing, for as long as a test lasts."""

    def __init__(self, status=200):
        self.bodies = queue.Queue()
        self.headers = []
        self.status = status
        self.is_over = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.headers.append((self.path, dict(self.headers)))
        self.server.bodies.put(body)
        if self.server.status is None:
            self.server.is_over.wait(PATIENCE)
            return
        self.send_response(self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def plain(value):
    return getattr(value, value.WhichOneof("value"))


def attributes(of):
    return {it.key: plain(it.value) for it in of.attributes}


def spans(bodies):
    """Every span with the attributes of its resource."""
    for body in bodies:
        request = ExportTraceServiceRequest.FromString(body)
        for of_resource in request.resource_spans:
            for of_scope in of_resource.scope_spans:
                for span in of_scope.spans:
                    yield span, attributes(of_resource.resource)


@pytest.fixture
def model():
    with running([ENNEAD, "simulate", "--playbook", str(HERE / "api.toml")]) as url:
        yield url


def run(tmp_path, model, **env):
    """One prompt that has a tool run."""
    (tmp_path / "work").mkdir()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "ANTHROPIC_BASE_URL": model,
        "ANTHROPIC_API_KEY": "test",
        **env,
    }
    command = [ENNEAD, "-p", f"run echo {SECRET}", "--allowed-tools", "Bash"]
    return subprocess.run(
        command, cwd=tmp_path / "work", env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
    )


# REQ: RUN-6
def test_spans_nest_have_the_conventional_names_and_hold_no_text(tmp_path, model):
    with Collector() as collector:
        done = run(
            tmp_path,
            model,
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
            OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20of-the-collector",
            OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
        )
        assert done.returncode == 0, done.stderr
        assert SECRET in done.stdout
        bodies = list(collector.bodies.queue)
    path, headers = collector.headers[0]
    assert path == "/v1/traces"
    assert headers["content-type"] == "application/x-protobuf"
    assert headers["authorization"] == "Bearer of-the-collector"
    assert not any(SECRET.encode() in body for body in bodies)

    found = list(spans(bodies))
    by_id = {span.span_id: span for span, _ in found}
    assert len({span.trace_id for span, _ in found}) == 1
    for span, resource in found:
        assert resource["service.name"] == "ennead"
        assert resource["deployment.environment.name"] == "test"
        assert span.start_time_unix_nano <= span.end_time_unix_nano
        assert not span.parent_span_id or span.parent_span_id in by_id, span.name

    def above(span):
        names = []
        while span.parent_span_id:
            span = by_id[span.parent_span_id]
            names.append(span.name)
        return names

    named = {}
    for span, _ in found:
        named.setdefault(span.name.split(" ")[0], []).append(span)
    assert set(named) == {"invoke_agent", "turn", "step", "chat", "execute_tool"}
    (agent,) = named["invoke_agent"]
    assert above(agent) == []
    assert attributes(agent)["gen_ai.conversation.id"]
    assert len(named["turn"]) == 2 and len(named["chat"]) == 2
    steps = [attributes(it)["step.number"] for it in named["step"]]
    assert set(steps) >= set(range(1, 8))
    for chat in named["chat"]:
        assert above(chat) == ["step", "turn", "invoke_agent"]
        assert chat.kind == chat.SPAN_KIND_CLIENT
        found = attributes(chat)
        assert found["gen_ai.operation.name"] == "chat"
        assert chat.name == f"chat {found['gen_ai.request.model']}"
        assert found["gen_ai.usage.input_tokens"] > 0
        assert found["gen_ai.usage.output_tokens"] > 0
        assert 0 <= found["gen_ai.response.time_to_first_chunk"] < PATIENCE
        assert found["gen_ai.response.model"] and found["gen_ai.response.id"]
    (tool,) = named["execute_tool"]
    assert tool.name == "execute_tool Bash"
    assert above(tool) == ["step", "turn", "invoke_agent"]
    assert attributes(tool)["gen_ai.tool.name"] == "Bash"
    assert attributes(tool)["gen_ai.tool.call.id"]


# REQ: RUN-6
def test_failed_call_is_a_span_with_an_error(tmp_path):
    with Collector() as collector, Collector(400) as refusing:
        done = run(tmp_path, refusing.url, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector.url}/own/path")
        assert done.returncode != 0
        found = [span for span, _ in spans(list(collector.bodies.queue)) if span.name.startswith("chat")]
    assert collector.headers[0][0] == "/own/path"
    assert found
    for span in found:
        assert attributes(span)["error.type"] == "invalid_request"
        assert span.status.code == span.status.STATUS_CODE_ERROR


# REQ: RUN-6
@pytest.mark.parametrize("status", [500, None])
def test_collector_that_fails_or_is_silent_costs_a_run_nothing_but_a_short_wait(tmp_path, model, status):
    with Collector(status) as collector:
        done = run(tmp_path, model, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
        assert done.returncode == 0, done.stderr
        assert SECRET in done.stdout
        assert collector.bodies.qsize() >= 1
        assert ("spans were not sent" in done.stderr) == (status is None), done.stderr


# REQ: RUN-6
def test_nothing_is_sent_unless_it_is_asked_for(tmp_path, model):
    with Collector() as collector:
        done = run(tmp_path, model, OTEL_EXPORTER_OTLP_HEADERS="a=b")
        assert done.returncode == 0, done.stderr
        assert collector.bodies.qsize() == 0
