//! SIGKILL while an answer streams, in each of the three wire formats.

use std::fs;

use serde_json::{Value, json};

use super::super::{CommandDirs, Ended, text};
use crate::support::{
    barrier::Barrier,
    model_server::ModelServer,
    provider_rules,
    scripted::{Reply, apart, replies},
    until::within,
};

/// Answers with a call of Bash, then with the beginning of a stream that does not go on, then with a text.
struct HalfStream {
    server: ModelServer,
    /// Where it arrives when half of an answer was sent.
    half: Barrier,
}

/// A wire format.
struct Format {
    provider: &'static str,
    rules: fn(&Value) -> Result<(), String>,
    call: Value,
    /// Events of a text and of half a call.
    begun: &'static str,
    done: Value,
}

const INPUT: &str = r#"{"command":"echo ran >> ran"}"#;

fn formats() -> [Format; 3] {
    let message = |block: Value, stop: &str| {
        json!({
            "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block],
            "stop_reason": stop, "usage": {"input_tokens": 1, "output_tokens": 1},
        })
    };
    let chat = |message: Value, stop: &str| {
        json!({
            "id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": stop}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        })
    };
    let response = |item: Value| {
        json!({
            "id": "r", "object": "response", "status": "completed", "model": "m", "output": [item],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
        })
    };
    let input: Value = serde_json::from_str(INPUT).unwrap();
    let function = json!({"name": "Bash", "arguments": INPUT});
    let calls = json!([{"id": "t", "type": "function", "function": function}]);
    [
        Format {
            provider: "anthropic",
            rules: provider_rules::messages,
            call: message(
                json!({"type": "tool_use", "id": "t", "name": "Bash", "input": input}),
                "tool_use",
            ),
            begun: concat!(
                "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",",
                "\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,",
                "\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n",
                "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,",
                "\"content_block\":{\"type\":\"tool_use\",\"id\":\"u\",\"name\":\"Bash\",\"input\":{}}}\n\n",
                "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,",
                "\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"command\\\":\\\"echo half\"}}\n\n",
            ),
            done: message(json!({"type": "text", "text": "done"}), "end_turn"),
        },
        Format {
            provider: "openai-chat",
            rules: provider_rules::chat,
            call: chat(
                json!({"role": "assistant", "content": null, "tool_calls": calls}),
                "tool_calls",
            ),
            begun: concat!(
                "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":",
                "[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"half of \"},\"finish_reason\":null}]}\n\n",
                "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":",
                "[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"u\",\"type\":\"function\",",
                "\"function\":{\"name\":\"Bash\",\"arguments\":\"{\\\"command\\\":\"}}]},\"finish_reason\":null}]}\n\n",
            ),
            done: chat(json!({"role": "assistant", "content": "done"}), "stop"),
        },
        Format {
            provider: "openai-responses",
            rules: provider_rules::responses,
            call: response(json!({
                "type": "function_call", "id": "fc", "call_id": "t", "name": "Bash",
                "arguments": INPUT, "status": "completed",
            })),
            begun: concat!(
                "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":",
                "{\"id\":\"r\",\"object\":\"response\",\"status\":\"in_progress\",\"model\":\"m\",\"output\":[]}}\n\n",
                "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",",
                "\"sequence_number\":1,\"output_index\":0,\"item\":{\"type\":\"function_call\",\"id\":\"fd\",",
                "\"call_id\":\"u\",\"name\":\"Bash\",\"arguments\":\"\",\"status\":\"in_progress\"}}\n\n",
                "event: response.function_call_arguments.delta\ndata: ",
                "{\"type\":\"response.function_call_arguments.delta\",\"sequence_number\":2,\"item_id\":\"fd\",",
                "\"output_index\":0,\"delta\":\"{\\\"command\\\":\"}\n\n",
            ),
            done: response(json!({
                "type": "message", "id": "o", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "done", "annotations": []}],
            })),
        },
    ]
}

impl HalfStream {
    async fn start(format: &Format) -> Self {
        let half = Barrier::closed();
        let server = ModelServer::serve(replies(vec![
            Reply::body(200, &format.call.to_string()),
            Reply::paced(200, vec![(0, format.begun)]).stall_at(&half),
            Reply::body(200, &format.done.to_string()),
        ]));
        Self { server: server.await, half }
    }

    fn ask(&self, place: &CommandDirs, format: &Format, prompt: &str) -> std::process::Command {
        let mode = ["--permission-mode", "bypassPermissions", "--session-id", super::SESSION];
        let mut command = place.command(&[&["-p", prompt, "--model", "m"], &mode[..]].concat());
        command.env("ENNEAD_PROVIDER", format.provider);
        command.env("ANTHROPIC_BASE_URL", self.server.address()).env("ANTHROPIC_API_KEY", "right");
        command.env("OPENAI_BASE_URL", self.server.address()).env("OPENAI_API_KEY", "right");
        command
    }
}

// REQ: SES-3, SES-4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_that_a_kill_cut_off_is_named_and_the_next_request_is_valid_in_every_format() {
    for format in formats() {
        let name = format.provider;
        let (place, server) = (CommandDirs::new(), HalfStream::start(&format).await);
        let mut child = server.ask(&place, &format, "begin").spawn().unwrap();
        within("half of an answer", server.half.arrived()).await;
        child.kill().unwrap();
        child.wait().unwrap();
        let file = place.transcript(".transcripts");
        let n_before = fs::read_to_string(&file).unwrap().lines().count();

        let resumed: Ended = server.ask(&place, &format, "go on").output().unwrap().into();
        assert_eq!(
            (resumed.code, resumed.stdout.as_str()),
            (Some(0), "done\n"),
            "{name}: {resumed:?}"
        );
        let transcript = fs::read_to_string(&file).unwrap();
        let after: Vec<Value> = transcript.lines().skip(n_before).flat_map(apart).collect();
        let of_kind = |kind: &str| after.iter().find(|it| it["kind"] == kind);
        // The last step on record: that of the call is written when its answer is there.
        let turn = of_kind("turn_end").unwrap_or_else(|| panic!("{name}: {after:#?}"));
        assert_eq!(
            (&turn["reason"], &turn["at_step"]),
            (&json!("crashed"), &json!("context_shaping")),
            "{name}"
        );
        assert_eq!(of_kind("run_end").unwrap()["reason"], "crashed", "{name}");
        let verified = place.run(&["verify", text(&file)]);
        assert_eq!(verified.code, Some(0), "{name}: {verified:?}");

        let came = server.server.model().asked();
        assert_eq!(came.len(), 3, "{name}");
        for request in came.iter().map(|it| &it.body) {
            (format.rules)(request).unwrap_or_else(|why| panic!("{name}: {why}: {request}"));
        }
        let last = came[2].body.to_string();
        assert!(last.contains("begin") && last.contains("go on"), "{name}: {last}");
        assert!(!last.contains("half"), "{name}: nothing of the answer that was cut off: {last}");
        let ran = fs::read_to_string(place.work().join("ran")).unwrap();
        assert_eq!(ran, "ran\n", "{name}: a tool ran twice");
    }
}
