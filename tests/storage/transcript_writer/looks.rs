//! How often a writer looks whether its file still has its name.

use std::time::Duration;

use ennead::{data::StoreAccess, settings::Durability};
use ennead_runtime::{
    time::Timestamp,
    tokens::Usage,
    transcript::entry::{Line, Record, RecordKind},
};

use super::world::{ArchiveRig, StoreKind, user_line};

/// A record of a run.
pub(super) fn record(turn: u32, what: RecordKind) -> Line {
    let at = Timestamp(7);
    Line::Harness(Box::new(Record { at, run: Some("r".into()), turn, what, shares_line: false }))
}

// REQ: SES-2, RUN-2
#[tokio::test]
async fn name_of_a_file_is_looked_at_once_in_200_ms_and_always_as_a_run_ends() {
    let world = ArchiveRig::new(StoreKind::InFiles, Durability::Process).await;
    let mut session = world.open().await;
    let n_looks = || world.next(StoreAccess::Look);
    let mut ticket = 0;
    let mut write = async |lines: Vec<Line>, sync: bool| {
        ticket += 1;
        session.send_lines(ticket, lines, sync, Vec::new());
        session.answer().await.1.unwrap();
    };
    write(vec![user_line("a")], true).await;
    assert_eq!(n_looks(), 1);
    for _ in 0..5 {
        write(vec![user_line("b")], true).await;
    }
    assert_eq!(n_looks(), 1);
    world.clock.advance(Duration::from_millis(200));
    write(vec![user_line("c")], false).await;
    assert_eq!(n_looks(), 1, "only what is to be safe is to be found");
    write(vec![user_line("c")], true).await;
    write(vec![user_line("c")], true).await;
    assert_eq!(n_looks(), 2);
    let usage = Usage::default();
    let end = RecordKind::RunEnd { reason: "x".into(), turns: 1, usage, head: None };
    write(vec![record(0, end)], true).await;
    assert_eq!(n_looks(), 3);
}
