//! Worktrees whose owner is gone: its agent was cut off or interrupted, or its process ended.
//!
//! Looked for when the next one is made. Only those are touched that were made here and are still
//! locked as they were: what was handed over once, with the lock off, is not ours any longer.

use std::{collections::BTreeMap, fs, path::Path};

use tokio::time::Instant;

use super::{checkout::Site, git::Git, lock::Claim};

/// Why a worktree is locked until somebody is sent there.
pub(super) const BEING_MADE: &str = "ennead: being made for an agent";

/// Why it is locked from then on. For people: git shows it to the one that wants to remove it.
pub(super) const IN_USE: &str = "ennead: an agent works here, or did when it was ended";

/// Removes those below `directory` in which nothing was changed. Those with a change, and those
/// with a commit that no other branch holds, are unlocked and stay. Begins with none after `until`;
/// the rest stays as it is for the next sweep.
pub(super) async fn sweep(git: &Git, repository: &Path, directory: &Path, until: Instant) {
    let Ok(directory) = directory.canonicalize() else { return };
    let taken_over = take_over(&directory);
    if taken_over.is_empty() {
        return;
    }
    // After the claims: what is found of these stays true until they are let go. By lines, since
    // older versions of git have no other way: a path with a newline is not found in them.
    let Ok(list) = git.run(repository, ["worktree", "list", "--porcelain"]).await else { return };
    let reasons = reasons(&list);
    for (name, claim) in taken_over {
        if until <= Instant::now() {
            return;
        }
        let git = git.holding(claim);
        let site = Site::new(repository, &directory, &name);
        let path = site.path.to_string_lossy();
        match reasons.get(&*path) {
            // Made and not filled: git does not know it.
            None => drop(fs::remove_dir(&site.path)),
            Some(Some(reason)) if *reason == BEING_MADE => {
                let tip = git.run(repository, ["rev-parse", &site.reference()]).await.ok();
                site.discard(&git, tip.as_deref()).await;
            }
            Some(Some(reason)) if *reason == IN_USE => settle(&git, &site).await,
            Some(_) => {}
        }
    }
}

async fn settle(git: &Git, site: &Site) {
    match site.clean_at(git).await {
        Some(commit) if site.is_held_elsewhere(git, &commit).await => {
            site.remove(git, &commit).await;
        }
        _ => site.unlock(git).await,
    }
}

/// The directories of our names that have no owner any longer.
fn take_over(directory: &Path) -> Vec<(String, Claim)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|it| it.file_name().into_string().ok());
    let mut ours: Vec<String> = names.filter(|it| it.starts_with("agent-")).collect();
    ours.sort();
    let claim = |name: String| Some((Claim::take_over(&directory.join(&name))?, name));
    ours.into_iter().filter_map(claim).map(|(claim, name)| (name, claim)).collect()
}

/// The paths of all worktrees, with the reasons of the locked ones.
fn reasons(list: &str) -> BTreeMap<&str, Option<&str>> {
    let mut reasons = BTreeMap::new();
    let mut path = "";
    for line in list.lines() {
        if let Some(of) = line.strip_prefix("worktree ") {
            path = of;
            reasons.insert(path, None);
        } else if let Some(reason) = line.strip_prefix("locked ") {
            reasons.insert(path, Some(reason));
        }
    }
    reasons
}
