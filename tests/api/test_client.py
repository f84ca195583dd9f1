"""A session from its making to its end, by a client that was generated from the document."""

import json

from conftest import PATIENCE


# REQ: SUR-5
def test_generated_client_runs_a_session_with_a_question(generated, server):
    models, call = generated.models, generated.call
    admin = generated.by(server.admin)
    status, session, _ = call("sessions", "create_session", admin, body=models.NewSession(title="first"))
    assert status == 201 and session.state == models.SessionState.PASSIVE and session.tenant == "acme"

    status, run, _ = call("runs", "create_run", admin, session.id, body=models.NewRun("write it"))
    assert status == 202 and run.session == session.id
    question = first_question(generated, admin, session.id, run.id)
    assert question.tool == "Write" and question.input_["content"] == "made"
    status, shown, _ = call("sessions", "show_session", admin, session.id)
    assert status == 200 and shown.waiting_for.kind == "approval"
    answer = models.NewAnswer(True, question.digest, question.epoch)
    status, nothing, _ = call("approvals", "answer_approval", admin, question.id, body=answer)
    assert status == 204 and nothing is None

    status, run, _ = call("runs", "show_run", admin, session.id, run.id, prefer=f"wait={PATIENCE}")
    assert status == 200 and run.state == models.RunState.FINISHED
    assert run.outcome["text"] == "It is written." and run.outcome["turns"] == 2
    status, runs, _ = call("runs", "list_runs", admin, session.id)
    assert status == 200 and [it.id for it in runs.runs] == [run.id]
    status, turns, _ = call("records", "list_turns", admin, session.id)
    assert status == 200 and [it["number"] for it in turns.turns] == [1, 2]
    status, turn, _ = call("records", "show_turn", admin, session.id, 1)
    assert status == 200 and turn["calls"][0]["tool"] == "Write"
    status, transcript, _ = call("records", "show_transcript", admin, session.id)
    lines = [json.loads(line) for line in transcript.splitlines()]
    assert status == 200 and any("It is written." in json.dumps(line) for line in lines)
    status, tree, _ = call("tree", "show_tree", admin)
    assert status == 200 and session.id in [it.session for it in tree.actors]

    status, sessions, _ = call("sessions", "list_sessions", admin)
    assert status == 200 and [it.id for it in sessions.sessions] == [session.id]
    status, nothing, _ = call("sessions", "delete_session", admin, session.id)
    assert status == 204 and nothing is None
    status, problem, _ = call("sessions", "show_session", admin, session.id)
    assert status == 404 and problem.code == "session_not_found"


# REQ: SUR-5
def test_generated_client_reads_why_it_is_refused(generated, server):
    models, call = generated.models, generated.call
    viewer = generated.by(server.viewer)
    status, problem, _ = call("sessions", "create_session", viewer, body=models.NewSession())
    assert isinstance(problem, models.ProblemBody)
    assert (status, problem.status, problem.code) == (403, 403, "forbidden")
    assert problem.type_ == "urn:ennead:problem:forbidden"
    status, problem, _ = call("sessions", "list_sessions", generated.by("nobody"))
    assert (status, problem.code) == (401, "unauthorized")
    status, text, _ = call("server", "show_health", viewer)
    assert (status, text) == (200, "ok\n")


def first_question(generated, client, session, run):
    """The first open question of a session; the waits in between are the server's."""
    for _ in range(PATIENCE):
        status, open_questions, _ = generated.call("approvals", "list_approvals", client, session=session)
        assert status == 200
        if open_questions.approvals:
            return open_questions.approvals[0]
        status, run_now, _ = generated.call("runs", "show_run", client, session, run, prefer="wait=1")
        states = generated.models.RunState
        assert status == 200 and run_now.state in (states.QUEUED, states.RUNNING), run_now.outcome
    raise AssertionError("nothing is asked")
