"""The metrics of a running server, read by the parser of Prometheus."""

import re

from prometheus_client.parser import text_string_to_metric_families

SECRET = "a-text-that-only-the-conversation-has"


def sample(families, name, **labels):
    found = [it.value for family in families for it in family.samples if (it.name, it.labels) == (name, labels)]
    assert len(found) == 1, (name, labels, found)
    return found[0]


def when_counted(server, line):
    """The metrics once they have this line: events are counted just after a run was answered, in their order."""
    for _ in range(500):
        text = server.get("/metrics")
        if line in text.splitlines():
            return text
    raise AssertionError(text)


# REQ: RUN-6
def test_metrics_have_help_type_and_units_and_count_what_was_run(generated, server):
    models, call = generated.models, generated.call
    admin = generated.by(server.admin)
    _, session, _ = call("sessions", "create_session", admin, body=models.NewSession(title=SECRET))
    outcomes = []
    for _ in range(2):
        body = models.NewRun(f"say {SECRET}")
        status, run, _ = call("runs", "create_run", admin, session.id, body=body, prefer="wait=60")
        assert status == 200 and run.outcome["text"] == SECRET
        outcomes.append(run.outcome)
    status, _, _ = call("sessions", "create_session", generated.by(server.viewer), body=models.NewSession())
    assert status == 403

    text = when_counted(server, 'ennead_runs_total{end="no_pending_tools"} 2')
    families = list(text_string_to_metric_families(text))
    assert len(families) == len({it.name for it in families}) == text.count("# TYPE ") == text.count("# HELP ")
    for family in families:
        assert family.documentation, family.name
        assert family.type in ("counter", "gauge"), family.name
        assert re.fullmatch(r"(ennead|process)_[a-z_]+", family.name)
        assert not re.search(r"_(micro|milli|nano|kilo|mega|ms|us|kb|mb)(_|$)", family.name), family.name
        for it in family.samples:
            assert it.name.endswith("_total") == (family.type == "counter"), it.name
            assert it.value >= 0

    assert sample(families, "ennead_tokens_total", kind="input") == sum(it["usage"]["input_tokens"] for it in outcomes)
    assert sample(families, "ennead_tokens_total", kind="output") == sum(it["usage"]["output_tokens"] for it in outcomes)
    assert sample(families, "ennead_steps_total", step="model_call") == sum(it["turns"] for it in outcomes)
    assert abs(sample(families, "ennead_cost_usd_total") - sum(it["cost_usd"] for it in outcomes)) < 1e-9
    assert sample(families, "ennead_refusals_total", code="forbidden") == 1
    states = sum(it.value for family in families for it in family.samples if it.name == "ennead_sessions")
    assert states == 1
    assert sample(families, "process_resident_memory_bytes") > 1e6
    for secret in (SECRET, "acme", session.id, server.admin):
        assert secret not in text
