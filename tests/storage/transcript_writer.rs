//! Lines reach the file once, in order, and stay, whatever fails on the way.

mod lock;
mod looks;
mod open_lines;
mod world;

use std::{fs, io, os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use self::world::{ArchiveRig, SESSION, StoreKind, archive};
use ennead::{
    OpenError,
    data::{StoreAccess, StoreError},
    internal::{OpenOutcome, WriteError},
    settings::Durability,
    transcript::TranscriptStore as _,
};
use ennead_runtime::transcript::{
    entry::{Record, RecordKind, SkippedBytes, StoredText, TextFolder},
    load::{LoadAs, ReportKind, load},
    read::{Entry, ReadLine, read_line},
    seal::SealLink,
};

use crate::support::until::within;

/// The facts below hold for every store.
macro_rules! on_every_store {
    ($($test:ident,)*) => {
        mod in_files {
            $(#[tokio::test]
            async fn $test() {
                super::$test(super::StoreKind::InFiles).await;
            })*
        }

        mod in_memory {
            $(#[tokio::test]
            async fn $test() {
                super::$test(super::StoreKind::InMemory).await;
            })*
        }
    };
}

on_every_store! {
    next_writer_goes_on_with_the_chain,
    checkpoint_speaks_only_of_what_is_on_disk,
    after_a_short_write_the_rest_is_written_and_nothing_twice,
    failed_write_loses_nothing_that_is_sent_again,
    crashed_writer_is_restarted_and_resent_lines_are_not_doubled,
    writer_that_keeps_crashing_is_given_up,
    sync_comes_before_the_answer_only_where_the_mode_asks_for_it,
    failed_sync_is_said_and_made_good_when_sent_again,
    what_follows_lines_whose_sync_failed_is_not_doubled_when_all_is_sent_again,
    torn_end_of_a_dead_process_stays_and_is_named,
    second_writer_is_told_who_writes,
    free_lock_with_text_is_taken_over_with_the_next_epoch,
    text_that_lines_name_is_there_under_its_digest,
    names_are_listed_by_directory_and_what_is_missing_is_said,
}

/// The file as a log: names of lines, `repair`, `?` for what is not a line. Checks the chain.
#[track_caller]
fn log(bytes: &[u8]) -> String {
    let mut expected = (1, SealLink::to_hash(ennead_runtime::digest::Digest::default()));
    let mut log = Vec::new();
    for line in String::from_utf8_lossy(bytes).lines() {
        let Ok(ReadLine { entry, seal: Some(seal), .. }) = read_line(line) else {
            log.push("?".to_owned());
            continue;
        };
        assert!(seal.intact);
        assert_eq!((seal.seq, seal.prev), expected);
        expected = (seal.seq + 1, seal.link);
        log.push(match entry {
            Entry::Conversation { line, .. } => line.message.id.to_string(),
            Entry::Harness(records) => {
                records.iter().map(|it| it.what.kind()).collect::<Vec<_>>().join("+")
            }
            Entry::Other { kind, .. } => kind.into(),
        });
    }
    log.join(" ")
}

// REQ: SES-1, SES-9
async fn next_writer_goes_on_with_the_chain(kept: StoreKind) {
    let world = ArchiveRig::new(kept, Durability::Process).await;
    let mut session = world.open().await;
    // Long enough that the end alone does not tell everything.
    session.send(1, &["a"; 400], false, Vec::new());
    assert!(matches!(session.answer().await, (1, Ok(400))));
    world.close().await;
    let checkpoint = world.name("checkpoint");
    for damage in ["none", "old", "garbage", "empty"] {
        match damage {
            "garbage" => world.store.write(&checkpoint, b"no checkpoint").unwrap(),
            // As good as missing: it holds nothing.
            "empty" => world.store.write(&checkpoint, b"").unwrap(),
            _ => {}
        }
        let old = world.store.read(&checkpoint).ok();
        let mut session = world.open().await;
        session.send(2, &[damage], false, Vec::new());
        session.answer().await.1.unwrap();
        world.close().await;
        if damage == "none" {
            world.store.write(&checkpoint, &old.unwrap()).unwrap();
        }
    }
    assert!(log(&world.bytes()).ends_with("a a none old garbage empty"));
}

// REQ: SES-5
async fn checkpoint_speaks_only_of_what_is_on_disk(kept: StoreKind) {
    let world = ArchiveRig::new(kept, Durability::Process).await;
    let mut session = world.open().await;
    session.send(1, &["a"; 400], false, Vec::new());
    assert!(matches!(session.answer().await, (1, Ok(400))));
    assert_eq!(world.next(StoreAccess::Sync), 0);
    let checkpoint = world.name("checkpoint");
    for fails in [true, false] {
        if fails {
            world.fail_next(StoreAccess::Sync);
        }
        world.close().await;
        assert_eq!(world.store.read(&checkpoint).is_ok(), !fails);
        world.open().await;
    }
    assert_eq!(world.next(StoreAccess::Sync), 2);
}

// REQ: SES-2
async fn after_a_short_write_the_rest_is_written_and_nothing_twice(kept: StoreKind) {
    let world = ArchiveRig::new(kept, Durability::Process).await;
    let mut session = world.open().await;
    session.send(1, &["a"], false, Vec::new());
    session.answer().await.1.unwrap();
    let one = world.bytes().len();
    let next = world.next(StoreAccess::Append);
    world.store.cut_append(next, one + one / 2, io::ErrorKind::StorageFull);
    session.send(2, &["b", "c", "d"], false, Vec::new());
    let (2, Err(error)) = session.answer().await else { panic!("it was not written whole") };
    let file = world.name("jsonl");
    let shown =
        format!("the transcript {} cannot be written: no space left on the disk", file.display());
    assert_eq!(error.to_string(), shown);
    session.send(2, &["b", "c", "d"], false, Vec::new());
    assert!(matches!(session.answer().await, (2, Ok(5))));
    assert_eq!(log(&world.bytes()), "a b ? repair c d");
}

// REQ: SES-2
async fn failed_write_loses_nothing_that_is_sent_again(kept: StoreKind) {
    let world = ArchiveRig::new(kept, Durability::Process).await;
    let mut session = world.open().await;
    world.fail_next(StoreAccess::Append);
    session.send(1, &["a"], false, Vec::new());
    assert!(matches!(session.answer().await, (1, Err(WriteError::Write { .. }))));
    session.send(1, &["a"], false, Vec::new());
    assert!(matches!(session.answer().await, (1, Ok(1))));
    assert_eq!(log(&world.bytes()), "a");
}

async fn check_crash(kept: StoreKind, n_bytes: usize, file: &str) {
    let world = ArchiveRig::new(kept, Durability::Process).await;
    let mut session = world.open().await;
    session.send(1, &["a"], false, Vec::new());
    session.answer().await.1.unwrap();
    world.crash_next(n_bytes);
    session.send(2, &["b", "c"], false, Vec::new());
    session.send(3, &["d"], false, Vec::new());
    session.restarted().await;
    session.send(2, &["b", "c"], false, Vec::new());
    session.send(3, &["d"], false, Vec::new());
    assert_eq!(session.answer().await.0, 2);
    assert_eq!(session.answer().await.0, 3);
    assert_eq!(log(&world.bytes()), file);
}

// REQ: SES-2
async fn crashed_writer_is_restarted_and_resent_lines_are_not_doubled(kept: StoreKind) {
    check_crash(kept, 0, "a b c d").await;
    check_crash(kept, usize::MAX, "a b c d").await;
    check_crash(kept, 10, "a ? repair b c d").await;
    check_crash(kept, 400, "a b ? repair c d").await;
}

// REQ: SES-2
async fn writer_that_keeps_crashing_is_given_up(kept: StoreKind) {
    let world = ArchiveRig::new(kept, Durability::Process).await;
    let mut session = world.open().await;
    for _ in 0..3 {
        world.crash_next(0);
        session.send(1, &["a"], false, Vec::new());
        session.restarted().await;
    }
    world.crash_next(0);
    session.send(1, &["a"], false, Vec::new());
    assert!(matches!(
        within("the opening", session.opened.recv()).await,
        Some(OpenOutcome::Failed(OpenError::Crashed))
    ));
}

// REQ: SES-2, SES-3
async fn sync_comes_before_the_answer_only_where_the_mode_asks_for_it(kept: StoreKind) {
    for (durability, sync, n_syncs) in [
        (Durability::Process, true, 0),
        (Durability::Turn, false, 0),
        (Durability::Turn, true, 1),
        (Durability::Entry, false, 1),
    ] {
        let world = ArchiveRig::new(kept, durability).await;
        let mut session = world.open().await;
        session.send(1, &["a"], sync, Vec::new());
        assert!(matches!(session.answer().await, (1, Ok(1))));
        assert_eq!(world.next(StoreAccess::Sync), n_syncs, "{durability:?}");
    }
}

// REQ: SES-2
async fn failed_sync_is_said_and_made_good_when_sent_again(kept: StoreKind) {
    let world = ArchiveRig::new(kept, Durability::Entry).await;
    let mut session = world.open().await;
    world.fail_next(StoreAccess::Sync);
    session.send(1, &["a"], false, Vec::new());
    assert!(matches!(session.answer().await, (1, Err(WriteError::Sync { .. }))));
    session.send(1, &["a"], false, Vec::new());
    assert!(matches!(session.answer().await, (1, Ok(1))));
    assert_eq!(log(&world.bytes()), "a");
    assert_eq!(world.next(StoreAccess::Sync), 2);
}

// REQ: SES-2
async fn what_follows_lines_whose_sync_failed_is_not_doubled_when_all_is_sent_again(
    kept: StoreKind,
) {
    let world = ArchiveRig::new(kept, Durability::Turn).await;
    let mut session = world.open().await;
    world.fail_next(StoreAccess::Sync);
    session.send(1, &["a"], true, Vec::new());
    session.send(2, &["b"], false, Vec::new());
    assert!(matches!(session.answer().await, (1, Err(WriteError::Sync { .. }))));
    assert!(matches!(session.answer().await, (2, Err(_))));
    // Comes before the lost lines do.
    session.send(3, &["c"], false, Vec::new());
    assert!(matches!(session.answer().await, (3, Err(_))));
    session.send(4, &["a"], true, Vec::new());
    session.send(5, &["b"], false, Vec::new());
    session.send(6, &["c"], false, Vec::new());
    for ticket in 4..=6 {
        let (answered, result) = session.answer().await;
        assert_eq!(answered, ticket);
        result.unwrap();
    }
    assert_eq!(log(&world.bytes()), "a b c");
}

// REQ: SES-7
async fn torn_end_of_a_dead_process_stays_and_is_named(kept: StoreKind) {
    let world = ArchiveRig::new(kept, Durability::Process).await;
    let mut session = world.open().await;
    session.send(1, &["a"], false, Vec::new());
    session.answer().await.1.unwrap();
    world.close().await;
    let mut torn = world.bytes();
    torn.extend_from_slice(br#"{"type":"user","uu"#);
    world.store.write(&world.name("jsonl"), &torn).unwrap();
    let mut session = world.open().await;
    session.send(2, &["b"], false, Vec::new());
    session.answer().await.1.unwrap();
    let bytes = world.bytes();
    assert!(bytes.starts_with(&torn), "the transcript only grows");
    assert_eq!(log(&bytes), "a ? repair b");
    let kinds: Vec<_> =
        load(&bytes, LoadAs::Session).report.into_iter().map(|it| it.kind).collect();
    assert!(kinds.contains(&ReportKind::BadLine));
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let repair = text.lines().find(|line| line.contains(r#""kind":"repair""#)).unwrap();
    let Ok(ReadLine { entry: Entry::Harness(records), .. }) = read_line(repair) else {
        panic!("a record")
    };
    let [Record { what: RecordKind::Repair(SkippedBytes { length, .. }), .. }] = &records[..]
    else {
        panic!("a repair")
    };
    assert_eq!(*length, 18);
}

// REQ: SES-1
async fn second_writer_is_told_who_writes(kept: StoreKind) {
    let world = ArchiveRig::new(kept, Durability::Process).await;
    let _session = world.open().await;
    let mut second = world.request_open();
    assert!(matches!(
        within("the refusal", second.recv()).await,
        Some(OpenOutcome::Failed(OpenError::AlreadyOpen))
    ));
    let other = archive(Arc::new(world.store.clone())).await;
    let elsewhere = ArchiveRig { archive: other, ..world };
    let mut second = elsewhere.request_open();
    let Some(OpenOutcome::Failed(OpenError::Locked { holder: Some(holder) })) =
        within("the refusal", second.recv()).await
    else {
        panic!("the lock is held")
    };
    assert_eq!((holder.pid, holder.epoch), (std::process::id(), 1));
}

// REQ: SES-1
async fn free_lock_with_text_is_taken_over_with_the_next_epoch(kept: StoreKind) {
    let world = ArchiveRig::new(kept, Durability::Process).await;
    for expected in 1..=3 {
        let mut opened = world.request_open();
        let Some(OpenOutcome::Ready { epoch, .. }) = within("the opening", opened.recv()).await
        else {
            panic!("it opens")
        };
        assert_eq!(epoch, expected);
        world.close().await;
    }
}

// REQ: SES-1
async fn text_that_lines_name_is_there_under_its_digest(kept: StoreKind) {
    let world = ArchiveRig::new(kept, Durability::Turn).await;
    let mut session = world.open().await;
    let text = StoredText::new("long", TextFolder::Records);
    let name = world.root().join(SESSION).join("stored").join(format!("{}.txt", text.digest));
    for ticket in 1..=2 {
        session.send(ticket, &["a"], true, vec![text.clone()]);
        session.answer().await.1.unwrap();
        assert_eq!(world.store.read(&name).unwrap(), b"long");
    }
    assert_eq!(world.store.list(name.parent().unwrap()).unwrap(), [name]);
}

// REQ: SES-1
async fn names_are_listed_by_directory_and_what_is_missing_is_said(kept: StoreKind) {
    let world = ArchiveRig::new(kept, Durability::Process).await;
    let (a, b) = (world.root().join("a"), world.root().join("deep/b"));
    assert!(world.store.list(&world.root()).unwrap().is_empty());
    assert!(matches!(world.store.read(&a), Err(StoreError::Missing)));
    for text in ["older", "newer"] {
        world.store.write(&a, text.as_bytes()).unwrap();
        world.store.write(&b, text.as_bytes()).unwrap();
        assert_eq!(world.store.read(&a).unwrap(), text.as_bytes());
    }
    let below = world.root().join("deep");
    assert_eq!(world.store.list(&below).unwrap(), [b]);
    assert!(world.store.list(&world.root()).unwrap().contains(&a));
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

// REQ: SES-1
#[tokio::test]
async fn long_texts_lie_next_to_it_and_only_the_owner_reads() {
    let world = ArchiveRig::new(StoreKind::InFiles, Durability::Process).await;
    let mut session = world.open().await;
    let beside = world.root().join(SESSION);
    assert!(!beside.exists(), "made when first needed");
    let text = StoredText::new("long", TextFolder::Records);
    let result = StoredText::new("output", TextFolder::ToolResults);
    let files = [
        beside.join("stored").join(format!("{}.txt", text.digest)),
        beside.join("tool-results").join(format!("{}.txt", result.digest)),
    ];
    session.send(1, &["a"], false, vec![text, result]);
    session.answer().await.1.unwrap();
    assert_eq!(fs::read_to_string(&files[0]).unwrap(), "long");
    assert_eq!(fs::read_to_string(&files[1]).unwrap(), "output");
    for directory in [world.root(), beside.clone(), beside.join("stored")] {
        assert_eq!(mode(&directory), 0o700, "{}", directory.display());
    }
    for file in [files[0].clone(), world.root().join(format!("{SESSION}.jsonl"))] {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}
