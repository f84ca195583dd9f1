//! Vaults that are written, cut, damaged and opened.

use std::{fs, io::ErrorKind, os::unix::fs::PermissionsExt};

use ennead_runtime::transcript::{entry::TextFolder, restore::Restorations};

use super::{
    opened::{OpenedVault, VaultKeys, new_vault_key, public_vault_key},
    *,
};
use crate::ports::transcript_store::{FaultyStore, FileStore, StoreAccess};

const SECRET: &str = "given-to-the-model-0123456789";

fn stored(text: &str) -> StoredText {
    StoredText::new(text, TextFolder::Records)
}

fn frame() -> LineFrame {
    LineFrame { session: "s".into(), agent: None, cwd: "/w".into(), git_branch: None, version: "0" }
}

/// A vault, and the pair of keys that it is for.
struct World {
    keys: (String, String),
    place: tempfile::TempDir,
    store: Arc<dyn TranscriptStore>,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        Self { keys: new_vault_key(), place, store: Arc::new(FileStore::default()) }
    }

    fn path(&self) -> PathBuf {
        self.place.path().join("s.vault")
    }

    fn vault(&self) -> VaultFile {
        let key = public_vault_key(&self.keys.0).unwrap();
        VaultFile::new(key, self.path(), Arc::clone(&self.store))
    }

    fn opened(&self) -> OpenedVault {
        let bytes = fs::read(self.path()).unwrap_or_default();
        VaultKeys::read(std::slice::from_ref(&self.keys.0)).unwrap().open(&bytes)
    }

    /// Checks that the vault has what was taken out of these texts, and nothing else.
    #[track_caller]
    fn check(&self, numbers: &[u32]) -> OpenedVault {
        let (opened, mut expected) = (self.opened(), Restorations::default());
        expected.extend(numbers.iter().copied().map(taken));
        assert!(opened.known == expected, "{numbers:?}: {opened:?}");
        opened
    }
}

fn original(n: u32) -> String {
    format!("{n}: {SECRET} and a [secret:jwt:1] that was there")
}

fn written(n: u32) -> String {
    original(n).replace(SECRET, "[secret:variable:1]")
}

fn taken(n: u32) -> SecretsTaken {
    let mut taken = SecretsTaken::default();
    taken.note_text(&stored(&original(n)), &stored(&written(n)));
    taken
}

fn keep(vault: &mut VaultFile, n: u32) {
    vault.note_text(&stored(&original(n)), &stored(&written(n)));
    vault.keep_lines(b"", &[], &frame());
}

// REQ: SES-8
#[test]
fn vault_gives_back_what_was_taken_out_and_to_the_holder_of_its_key_alone() {
    let world = World::new();
    let mut vault = world.vault();
    vault.keep_lines(b"", &[], &frame());
    assert!(!world.path().exists(), "there is no secret yet");
    keep(&mut vault, 1);
    keep(&mut vault, 2);
    let opened = world.check(&[1, 2]);
    assert!(opened.gaps().is_empty(), "{opened:?}");
    let text = fs::read_to_string(world.path()).unwrap();
    assert!(!text.contains(SECRET) && !text.contains(&world.keys.0), "{text}");
    let mode = fs::metadata(world.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!format!("{vault:?}{opened:?}").contains(SECRET));
    // Another key opens nothing, and is not taken for damage.
    let other = VaultKeys::read(&[new_vault_key().0]).unwrap().open(text.as_bytes());
    assert!(other.is_of_other_keys() && other.known.is_empty(), "{other:?}");
    // The public key says as much as none.
    assert!(VaultKeys::read(std::slice::from_ref(&world.keys.1)).is_err());
}

// REQ: SES-8
#[test]
fn torn_and_damaged_entries_are_named_and_the_others_opened() {
    let world = World::new();
    let mut vault = world.vault();
    (1..=3).for_each(|n| keep(&mut vault, n));
    let whole = fs::read(world.path()).unwrap();
    let ends: Vec<usize> = (0..whole.len()).filter(|it| whole[*it] == b'\n').collect();
    // Some places are enough: each is opened anew.
    for cut in (ends[1] + 2..ends[2]).step_by(41).chain([ends[2] - 1]) {
        fs::write(world.path(), &whole[..cut]).unwrap();
        assert_eq!(world.check(&[1, 2]).gaps(), ["the last entry is not whole"]);
    }
    // The next writer begins a line of its own.
    fs::write(world.path(), &whole[..ends[2] - 9]).unwrap();
    keep(&mut world.vault(), 4);
    assert_eq!(world.check(&[1, 2, 4]).gaps(), ["1 entry is damaged"]);
    // A byte of the second entry, wherever it is, harms that one alone.
    for at in (ends[0] + 1..ends[1]).step_by(17).chain([ends[1] - 1]) {
        let mut changed = whole.clone();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        fs::write(world.path(), &changed).unwrap();
        let gaps = world.check(&[1, 3]).gaps();
        assert_eq!(gaps.len(), 1, "{at}: {gaps:?}");
    }
}

// REQ: SES-8
#[test]
fn entries_of_several_keys_are_opened_by_each() {
    let mut world = World::new();
    keep(&mut world.vault(), 1);
    let first = std::mem::replace(&mut world.keys, new_vault_key());
    keep(&mut world.vault(), 2);
    assert_eq!(world.check(&[2]).gaps(), ["1 entry is sealed to another key"]);
    let bytes = fs::read(world.path()).unwrap();
    let both = VaultKeys::read(&[first.0, format!("# mine\n{}\n", world.keys.0)]).unwrap();
    let opened = both.open(&bytes);
    assert!(opened.gaps().is_empty() && opened.n_opened == 2, "{opened:?}");
}

// REQ: SES-8
#[test]
fn vault_that_cannot_be_written_is_completed_when_it_can() {
    let mut world = World::new();
    let store = FaultyStore::new(Arc::clone(&world.store));
    store.fail(StoreAccess::Append, 0, ErrorKind::StorageFull);
    store.cut_append(1, 50, ErrorKind::StorageFull);
    store.fail(StoreAccess::Open, 0, ErrorKind::PermissionDenied);
    world.store = Arc::new(store);
    let mut vault = world.vault();
    for n in 1..=3 {
        keep(&mut vault, n);
        assert!(vault.is_failing);
    }
    assert!(world.check(&[]).is_torn);
    keep(&mut vault, 4);
    // What was cut is there twice.
    assert_eq!(world.check(&[1, 2, 3, 4]).gaps(), ["1 entry is damaged"]);
    assert!(!vault.is_failing && vault.unwritten.is_empty());
}

// REQ: SES-8
#[test]
fn what_cannot_be_written_is_kept_up_to_a_limit() {
    let world = World::new();
    let mut vault = world.vault();
    // A directory is in its place.
    fs::create_dir(world.path()).unwrap();
    keep(&mut vault, 1);
    assert!(vault.is_failing);
    vault.unwritten.resize(MAX_UNWRITTEN - 1, b'\n');
    keep(&mut vault, 2);
    assert_eq!(vault.unwritten.len(), MAX_UNWRITTEN - 1);
    vault.unwritten.clear();
    keep(&mut vault, 3);
    fs::remove_dir(world.path()).unwrap();
    vault.write();
    world.check(&[3]);
}

// REQ: SES-8
#[test]
fn write_that_is_too_long_to_be_kept_is_lost_alone() {
    let world = World::new();
    let mut vault = world.vault();
    fs::create_dir(world.path()).unwrap();
    keep(&mut vault, 1);
    // Only what was taken out is sealed, so it takes many secrets to be long.
    let many: String = (0..40_000).map(|n| format!("{SECRET}{n} ")).collect();
    let short: String = (0..40_000).map(|n| format!("[secret:variable:{n}] ")).collect();
    vault.note_text(&stored(&many), &stored(&short));
    vault.keep_lines(b"", &[], &frame());
    assert!(vault.unwritten.len() <= MAX_UNWRITTEN, "{}", vault.unwritten.len());
    fs::remove_dir(world.path()).unwrap();
    vault.write();
    world.check(&[1]);
}

// REQ: SES-8
#[test]
fn vault_is_not_written_through_a_link_nor_into_what_took_its_place() {
    let world = World::new();
    let settings = world.place.path().join("settings.json");
    fs::write(&settings, "{}").unwrap();
    let plant = || {
        fs::remove_file(world.path()).ok();
        std::os::unix::fs::symlink(&settings, world.path()).unwrap();
    };
    plant();
    let mut vault = world.vault();
    keep(&mut vault, 1);
    assert!(vault.is_failing);
    // Where the link is gone, what was kept is written.
    fs::remove_file(world.path()).unwrap();
    keep(&mut vault, 2);
    world.check(&[1, 2]);
    plant();
    vault.ensure_in_place();
    keep(&mut vault, 3);
    assert!(vault.is_replaced && vault.unwritten.is_empty());
    assert_eq!(fs::read_to_string(&settings).unwrap(), "{}");
}

// REQ: SES-8
#[test]
fn only_what_was_written_since_is_brought_to_disk() {
    let world = World::new();
    let mut vault = world.vault();
    assert!(vault.sync().is_none());
    keep(&mut vault, 1);
    vault.sync().unwrap()().unwrap();
    assert!(vault.sync().is_none());
    keep(&mut vault, 2);
    assert!(vault.sync().is_some());
}

// REQ: SES-8
#[test]
fn hostile_vault_is_no_failure() {
    let world = World::new();
    let key = public_vault_key(&world.keys.0).unwrap();
    let sealed = entry(&key, &SecretsTaken::default()).unwrap();
    for bytes in [
        &b"\0\xff\n\n{}\n"[..],
        br#"{"v":2,"key":"","sealed":""}"#,
        br#"{"v":1,"key":"0","sealed":"!"}"#,
        &sealed.as_bytes()[..sealed.len() - 1],
        &vec![b'['; 100_000],
    ] {
        fs::write(world.path(), bytes).unwrap();
        world.check(&[]);
    }
}
