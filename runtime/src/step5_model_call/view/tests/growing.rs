//! A view that goes on from the one before is the one that is made of everything.

use super::*;
use crate::{
    message::SharedMessages,
    step5_model_call::request::{CachePlan, EncodedHead, PrefixChain, PromptCaching, RequestHead},
};

/// One of each way in which a request is written.
const FORMATS: [WireFormat; 3] =
    [WireFormat::AnthropicMessages, WireFormat::OpenAiChat, WireFormat::OpenAiResponses];

fn head(caching: PromptCaching) -> EncodedHead {
    EncodedHead::new(RequestHead {
        model: "m".into(),
        max_tokens: 100,
        stream: true,
        system: vec!["be kind".into()],
        tools: Vec::new(),
        cache: CachePlan { caching, n_static: 1 },
        parameters: Arc::default(),
    })
}

fn with_server_tools() -> impl Strategy<Value = Arc<Message>> {
    let block = |it: &str| Block::from_wire(it).unwrap();
    let call = r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{"q":1}}"#;
    let result = r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[]}"#;
    prop_oneof![
        12 => any_message(),
        1 => Just(answer("3", &[block(call)])),
        1 => Just(answer("3", &[block(result)])),
    ]
}

/// What a run mostly is: a call, and its result.
fn exchange(i: usize) -> [Arc<Message>; 2] {
    let id = format!("c{i}");
    [answer(&format!("m{i}"), &[call(&id)]), user(&[result(&id)])]
}

/// Adds one message after the other and holds views and requests against those made of everything.
fn check_grown(
    format: WireFormat,
    (carried, chain): (&mut CarriedView, &mut PrefixChain),
    messages: &[Arc<Message>],
    all_notes: &mut Vec<ViewNote>,
    from: usize,
) {
    let target = ViewTarget { format, ..ViewTarget::default() };
    let mut whole_chain = chain.clone();
    // None, one or two of them are in front of the conversation.
    let n_front = FORMATS.iter().position(|it| *it == format).unwrap();
    let mut conversation: SharedMessages = messages[..from].iter().skip(n_front).cloned().collect();
    for n in from..=messages.len() {
        if from.max(n_front) < n {
            conversation.push(Arc::clone(&messages[n - 1]));
        }
        let mut grown = carried.compile(&messages[..n.min(n_front)], &conversation, target);
        assert!(!conversation.has_slice());
        let mut whole = compile_for(&messages[..n], target);
        for note in &grown.rest.notes {
            assert!(whole.notes.contains(note), "{note}");
        }
        all_notes.append(&mut grown.rest.notes);
        assert!(whole.notes.iter().all(|it| all_notes.contains(it)), "{:?}", whole.notes);
        if n % 3 == 0 {
            grown.rest.end_with_user();
            whole.end_with_user();
        }
        assert_eq!(grown.whole().messages, whole.messages);
        let head = head([PromptCaching::Off, PromptCaching::FiveMinutes][n / 7 % 2]);
        let unwritten = format.encode_grown(&head, &grown, &mut chain.clone(), false);
        let request = format.encode_grown(&head, &grown, chain, true);
        let of_whole = format.encode(&head, &whole, &mut whole_chain);
        assert_eq!(request, of_whole);
        assert_eq!(request.n_bytes, request.body.len() as u64);
        assert_eq!((unwritten.digest, unwritten.n_bytes), (request.digest, request.n_bytes));
        assert!(unwritten.body.is_empty());
        assert_eq!(chain.first_change(), whole_chain.first_change());
    }
}

// REQ: SHP-12
#[test]
fn growing_conversation_is_compiled_once() {
    let mut messages = vec![user(&[text("go")])];
    messages.extend((0..200).flat_map(exchange));
    for format in FORMATS {
        let (mut carried, mut chain) = (CarriedView::default(), PrefixChain::default());
        check_grown(format, (&mut carried, &mut chain), &messages, &mut Vec::new(), 0);
        let looks = carried.looks();
        assert!(looks < 8 * messages.len() as u64, "{looks} looks at {} messages", messages.len());
    }
}

// REQ: SHP-12
#[test]
fn result_that_comes_late_changes_what_was_settled() {
    let mut messages = vec![user(&[text("go")]), answer("a", &[call("late")])];
    messages.extend((0..20).flat_map(exchange));
    messages.push(user(&[result("late"), text("on")]));
    messages.extend((20..40).flat_map(exchange));
    for format in FORMATS {
        let (mut carried, mut chain) = (CarriedView::default(), PrefixChain::default());
        check_grown(format, (&mut carried, &mut chain), &messages, &mut Vec::new(), 0);
    }
}

// REQ: SHP-12
#[test]
fn message_behind_what_is_settled_is_joined_with_it_when_it_is_another_one() {
    let mut messages = vec![user(&[text("go")])];
    messages.extend((0..8).flat_map(exchange));
    for place in 1..messages.len() {
        let (mut carried, mut chain) = (CarriedView::default(), PrefixChain::default());
        let mut messages = messages.clone();
        let mut all_notes = Vec::new();
        let format = FORMATS[place % 3];
        check_grown(format, (&mut carried, &mut chain), &messages, &mut all_notes, 0);
        messages[place] = user(&[text("in its place")]);
        let n = messages.len();
        check_grown(format, (&mut carried, &mut chain), &messages, &mut all_notes, n);
    }
}

proptest! {
    // REQ: SHP-12
    #[test]
    fn view_that_goes_on_is_the_one_made_of_everything(
        mut messages in proptest::collection::vec(with_server_tools(), 0..24),
        exchanges in proptest::collection::vec(0..24_usize, 0..24),
        changed in 0..48_usize,
        change in any_message(),
        dropped in 0..48_usize,
        format in proptest::sample::select(&FORMATS),
    ) {
        for (i, at) in exchanges.into_iter().enumerate() {
            let at = at.min(messages.len());
            messages.splice(at..at, exchange(i));
        }
        let (mut carried, mut chain) = (CarriedView::default(), PrefixChain::default());
        let mut all_notes = Vec::new();
        check_grown(format, (&mut carried, &mut chain), &messages, &mut all_notes, 0);
        // A shaper cleared something, then dropped what is old.
        if let Some(place) = messages.get_mut(changed) {
            *place = change;
        }
        let n = messages.len();
        check_grown(format, (&mut carried, &mut chain), &messages, &mut all_notes, n);
        messages.drain(..dropped.min(n));
        let n = messages.len();
        check_grown(format, (&mut carried, &mut chain), &messages, &mut all_notes, n);
    }
}
