//! Lines that no hash covers yet, across writes, crashes and writers.

use ennead::settings::Durability;
use ennead_runtime::transcript::{
    entry::{Line, RecordKind},
    seal::seal_of,
};

use super::{
    looks::record,
    world::{ArchiveRig, StoreKind},
};

fn alert(turn: u32, what: &str) -> Line {
    record(turn, RecordKind::Alert { what: what.into() })
}

/// The alerts of the file in order, those with a hash in capitals. Checks the chain.
#[track_caller]
fn alerts(world: &ArchiveRig) -> String {
    let bytes = world.bytes();
    super::log(&bytes);
    let text = String::from_utf8(bytes).unwrap();
    let shown = text.lines().filter_map(|line| {
        let what = line.split_once(r#""what":""#)?.1.split_once('"')?.0;
        let has_hash = seal_of(line.as_bytes()).unwrap().hash().is_some();
        Some(if has_hash { what.to_uppercase() } else { what.to_owned() })
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// The same lines without a fault.
async fn undisturbed(kept: StoreKind) -> Vec<u8> {
    let world = ArchiveRig::new(kept, Durability::Process).await;
    let mut session = world.open().await;
    for (ticket, lines) in writes() {
        session.send_lines(ticket, lines, false, Vec::new());
        session.answer().await.1.unwrap();
    }
    world.bytes()
}

fn writes() -> [(u64, Vec<Line>); 3] {
    [
        (1, vec![alert(0, "a"), alert(1, "b")]),
        (2, vec![alert(1, "c"), alert(1, "d")]),
        (3, vec![alert(1, "e"), alert(0, "f")]),
    ]
}

// REQ: SES-2, SES-9
#[tokio::test]
async fn lines_without_a_hash_survive_a_crash_of_the_writer_and_are_covered_by_the_next_one() {
    for kept in [StoreKind::InFiles, StoreKind::InMemory] {
        let expected = undisturbed(kept).await;
        let lines: Vec<&[u8]> = expected.split_inclusive(|it| *it == b'\n').collect();
        // Of the second write its first line is there, or both, or nothing.
        for n_written in [0, lines[2].len(), lines[2].len() + lines[3].len()] {
            let world = ArchiveRig::new(kept, Durability::Process).await;
            let mut session = world.open().await;
            let [first, second, third] = writes();
            session.send_lines(first.0, first.1, false, Vec::new());
            session.answer().await.1.unwrap();
            world.crash_next(n_written);
            session.send_lines(second.0, second.1.clone(), false, Vec::new());
            session.restarted().await;
            session.send_lines(second.0, second.1, false, Vec::new());
            assert!(matches!(session.answer().await, (2, Ok(4))));
            session.send_lines(third.0, third.1, false, Vec::new());
            assert!(matches!(session.answer().await, (3, Ok(6))));
            assert_eq!(alerts(&world), "A b c d e F", "{n_written}");
            assert!(world.bytes() == expected, "{n_written}");
        }
    }
}

// REQ: SES-2, SES-9
#[tokio::test]
async fn next_writer_covers_what_an_earlier_one_left_without_a_hash() {
    for kept in [StoreKind::InFiles, StoreKind::InMemory] {
        let expected = undisturbed(kept).await;
        let world = ArchiveRig::new(kept, Durability::Process).await;
        for (ticket, lines) in writes() {
            let mut session = world.open().await;
            session.send_lines(ticket, lines, false, Vec::new());
            session.answer().await.1.unwrap();
            world.close().await;
        }
        assert!(world.bytes() == expected);
    }
}
