//! What is written of a session, without its secrets.
//!
//! Nearly all of it was redacted before. Settings were not, since children are started with what they
//! say; nor was anything where the model is shown secrets.

use std::borrow::Cow;

use ennead_runtime::{
    block::Block,
    digest::Digest,
    ids::AgentId,
    tool::ToolCall,
    transcript::{
        entry::{Line, LineFrame, Record, StoredText, TextFolder},
        seal::{LineBatch, is_record},
    },
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::Redaction;

impl Redaction {
    /// Returns whether no secret is in what all lines of a transcript begin with.
    pub(crate) fn is_clean(&self, frame: &LineFrame) -> bool {
        let agent = frame.agent.as_ref().map(AgentId::as_str);
        let texts =
            [Some(frame.session.as_str()), Some(&*frame.cwd), frame.git_branch.as_deref(), agent];
        serde_json::to_vec(&texts).is_ok_and(|it| !self.redactor.may_find(&it))
    }

    /// Appends a line without secrets. A clean frame is not looked through with every line. Returns whether it shares the
    /// line of the one before.
    pub(crate) fn append(
        &self,
        line: &Line,
        frame: &LineFrame,
        is_clean: bool,
        batch: &mut LineBatch<'_>,
    ) -> bool {
        let has_clean_ids = line.has_plain_ids() && !self.redactor.patterns().may_be_ids();
        let is_in_own_words = has_clean_ids && line.record().is_some_and(Record::is_in_own_words);
        let is_clean = has_clean_ids && is_clean;
        batch.push(line, frame, |out, start, frame_end| {
            let renamed = self.rename(out, start);
            if !is_in_own_words {
                let from = if is_clean && !renamed { frame_end } else { start };
                self.line(out, start, from);
            }
        })
    }

    /// Takes the secrets out of a line, the JSON object from `start` on. None is in front of `from`.
    fn line(&self, out: &mut Vec<u8>, start: usize, from: usize) {
        if !self.redactor.may_find(&out[from..]) {
            return;
        }
        let Ok(text) = std::str::from_utf8(&out[start..]) else { return };
        if let Cow::Owned(redacted) = self.redactor.json(text) {
            self.note_texts(text, &redacted);
            out.truncate(start);
            out.extend_from_slice(redacted.as_bytes());
            self.rename(out, start);
        }
    }

    /// Redacts a text that lines name by its digest. Without its secrets it is another text with another digest, and
    /// lines will name that one. A result whose path the model has read keeps its name.
    pub(crate) fn stored<'a>(&self, stored: &'a StoredText) -> Cow<'a, StoredText> {
        // Records are JSON or words; both stay what they are.
        let Cow::Owned(redacted) = self.redactor.json(&stored.text) else {
            return Cow::Borrowed(stored);
        };
        let mut new = StoredText::new(redacted, stored.place);
        match stored.place {
            TextFolder::ToolResults => new.digest = stored.digest,
            TextFolder::Records => self.note(stored.digest, new.digest),
        }
        Cow::Owned(new)
    }

    fn note(&self, old: Digest, new: Digest) {
        self.secrets.lock().renamed.insert(old.to_string(), new.to_string());
    }

    /// Notes what later records name by a digest that is another one now: texts inside of a record, and
    /// calls of an answer.
    fn note_texts(&self, old: &str, new: &str) {
        if !is_record(old.as_bytes()) {
            let digests = |line: &str| calls(line).iter().map(ToolCall::digest).collect::<Vec<_>>();
            let pairs = digests(old).into_iter().zip(digests(new));
            pairs.filter(|(old, new)| old != new).for_each(|(old, new)| self.note(old, new));
            return;
        }
        let read = |text| serde_json::from_str::<Value>(text).unwrap_or_default();
        self.note_values(&read(old), &read(new));
    }

    fn note_values(&self, old: &Value, new: &Value) {
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => {
                for (name, old) in old {
                    let Some(new) = new.get(name) else { continue };
                    match (old, new) {
                        (Value::String(old), Value::String(new))
                            if name == "text" && old != new =>
                        {
                            self.note(Digest::of(old.as_bytes()), Digest::of(new.as_bytes()));
                        }
                        _ => self.note_values(old, new),
                    }
                }
            }
            (Value::Array(old), Value::Array(new)) => {
                old.iter().zip(new).for_each(|(old, new)| self.note_values(old, new));
            }
            _ => {}
        }
    }

    /// Names the texts that were written and not those that they were made of.
    ///
    /// Returns whether it may have moved what is on the line.
    fn rename(&self, out: &mut Vec<u8>, start: usize) -> bool {
        let known = self.secrets.lock();
        if known.renamed.is_empty() || !is_record(&out[start..]) {
            return false;
        }
        for (old, new) in &known.renamed {
            while let Some(at) = find(&out[start..], old.as_bytes()) {
                let at = start + at;
                out.splice(at..at + old.len(), new.bytes());
            }
        }
        true
    }
}

/// What of a line of the conversation its calls are read from.
#[derive(Deserialize)]
struct MessageLine<'a> {
    #[serde(borrow)]
    message: MessageContent<'a>,
}

#[derive(Deserialize)]
struct MessageContent<'a> {
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

/// The calls of an answer, in order.
fn calls(line: &str) -> Vec<ToolCall> {
    let Ok(parsed) = serde_json::from_str::<MessageLine<'_>>(line) else { return Vec::new() };
    let blocks = parsed.message.content.iter().filter_map(|it| Block::from_wire(it.get()).ok());
    let call = |it: Block| {
        let (id, name, input) = it.as_tool_use()?;
        Some(ToolCall::new(id.clone(), name.clone(), input))
    };
    blocks.filter_map(call).collect()
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|it| it == part)
}

#[cfg(test)]
mod tests {
    use std::{borrow::Cow, sync::Arc};

    use ennead_runtime::{
        message::{Message, MessageKind},
        redaction::{Patterns, SecretValue},
        step::Step,
        time::Timestamp,
        tokens::Tokens,
        transcript::{
            entry::{ConversationLine, PassedStage, RecordKind, StepDetail},
            seal::Head,
        },
    };

    use super::*;

    const WORDS: &str = "no pressure";

    fn written(why: Cow<'static, str>) -> String {
        let value = SecretValue { is_credential: false, value: WORDS.into() };
        let redaction = Redaction::new(Arc::new(Patterns::new([value])), true);
        let frame = LineFrame {
            session: "s".into(),
            agent: None,
            cwd: "/w".into(),
            git_branch: None,
            version: "0",
        };
        let stages = vec![PassedStage { stage: "snip".into(), why }];
        let what = RecordKind::ShapersPassed { tokens: Tokens(1), stages };
        let record = Record { at: Timestamp(1), run: None, turn: 1, what, shares_line: false };
        let mut out = Vec::new();
        let mut batch = LineBatch::new(Head::default(), None, &mut out);
        let is_clean = redaction.is_clean(&frame);
        redaction.append(&Line::Harness(Box::new(record)), &frame, is_clean, &mut batch);
        batch.finish();
        String::from_utf8(out).unwrap()
    }

    const TOKEN: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    const OWN: &str = "01a21cc4-8e92-7350-9b97-b19e89b1bcf2";

    fn all_of(redaction: &Redaction, cwd: &str, run: &str, parent: &str) -> String {
        let frame = LineFrame {
            session: OWN.into(),
            agent: None,
            cwd: cwd.into(),
            git_branch: None,
            version: "0",
        };
        let record = |what| Record {
            at: Timestamp(1),
            run: Some(run.into()),
            turn: 1,
            what,
            shares_line: false,
        };
        let detail = StepDetail::Nothing { nothing: "there is no call".into() };
        let in_own_words = RecordKind::TurnStep { number: 7, step: Step::PermissionGate, detail };
        let records = [RecordKind::Alert { what: "x".into() }, in_own_words].map(record);
        let blocks = vec![Block::text("x")];
        let message = Message::user(OWN.into(), MessageKind::Prompt, blocks);
        let message = ConversationLine {
            at: Timestamp(1),
            parent: Some(parent.into()),
            message: Arc::new(message),
            answer: None,
            tool_result: None,
            boundary: None,
        };
        let records = records.map(|it| Line::Harness(Box::new(it)));
        let lines = records.into_iter().chain([Line::Conversation(Box::new(message))]);
        let (mut out, is_clean) = (Vec::new(), redaction.is_clean(&frame));
        let mut batch = LineBatch::new(Head::default(), None, &mut out);
        for line in lines {
            redaction.append(&line, &frame, is_clean, &mut batch);
        }
        batch.finish();
        String::from_utf8(out).unwrap()
    }

    // REQ: SES-8
    #[test]
    fn secrets_in_the_frame_of_a_line_are_taken_out_whoever_chose_them() {
        let redaction = Redaction::default();
        assert!(!all_of(&redaction, "/w", OWN, OWN).contains("[secret:"));
        let cwd = format!("/w/{TOKEN}");
        for (cwd, run, parent) in [(&*cwd, OWN, OWN), ("/w", TOKEN, OWN), ("/w", OWN, TOKEN)] {
            let written = all_of(&redaction, cwd, run, parent);
            assert!(
                !written.contains(TOKEN) && written.contains("[secret:github-token:1]"),
                "{written}"
            );
        }
    }

    // REQ: SES-8
    #[test]
    fn secret_is_taken_out_of_a_record_that_shares_the_line_of_another() {
        let redaction = Redaction::default();
        let frame = LineFrame {
            session: "s".into(),
            agent: None,
            cwd: "/w".into(),
            git_branch: None,
            version: "0",
        };
        let mut out = Vec::new();
        let mut batch = LineBatch::new(Head::default(), None, &mut out);
        let shares =
            [String::from("nothing"), format!("it is {TOKEN}"), String::new()].map(|what| {
                let what = RecordKind::Alert { what };
                let record = Record {
                    at: Timestamp(1),
                    run: Some(OWN.into()),
                    turn: 1,
                    what,
                    shares_line: true,
                };
                redaction.append(&Line::Harness(Box::new(record)), &frame, true, &mut batch)
            });
        batch.finish();
        let written = String::from_utf8(out).unwrap();
        assert_eq!(shares, [false, true, true], "{written}");
        let expected = r#""what":"nothing","then":[{"kind":"alert","what":"it is [secret:github-token:1]"},{"kind":"alert","what":""}]"#;
        assert!(written.contains(expected), "{written}");
    }

    // REQ: SES-8
    #[test]
    fn secret_value_with_the_form_of_an_id_is_taken_out_of_ids() {
        let value = SecretValue { is_credential: false, value: OWN.into() };
        let redaction = Redaction::new(Arc::new(Patterns::new([value])), true);
        let written = all_of(&redaction, "/w", OWN, OWN);
        assert!(!written.contains(OWN) && written.contains("[secret:variable:1]"), "{written}");
    }

    // REQ: SES-8
    #[test]
    fn own_words_of_the_harness_are_written_even_if_somebody_s_secret_is_the_same() {
        assert!(written(WORDS.into()).contains(WORDS));
        let of_others = written(WORDS.to_owned().into());
        assert!(!of_others.contains(WORDS) && of_others.contains("[secret:variable:1]"));
    }
}
