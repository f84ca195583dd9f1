//! What `.worktreeinclude` brings. Built under `#[cfg(test)]` only.

use super::*;

/// A repository that ignores `.env` files, `built` and `other.log`, with these lines in its list.
fn including(list: &str) -> World {
    let world = repository();
    fs::write(world.root.join(".gitignore"), ".env\nbuilt/\n*.log\n").unwrap();
    commit_all(&world.root, "ignoring");
    world.file(".worktreeinclude", list);
    for name in [".env", "below/.env", "built/deep/out", "other.log", "new.txt"] {
        world.file(name, name);
    }
    world
}

fn brought(world: &World, wanted: Wanted) -> Vec<&'static str> {
    let held = block_on(Held::new(&world.context, wanted)).unwrap();
    let workspace = PathBuf::from(held.workspace());
    let names = [".env", "below/.env", "built/deep/out", "other.log", "new.txt"];
    let brought = names
        .into_iter()
        .filter(|it| fs::read_to_string(workspace.join(it)).is_ok_and(|text| text == *it));
    let brought = brought.collect();
    assert_eq!(block_on(held.end(true)), None, "what was brought is no change");
    brought
}

// REQ: AGT-1
#[test]
fn what_the_list_names_and_git_ignores_is_brought() {
    let cases: [(&str, &[&str]); 5] = [
        ("", &[]),
        (".env\n", &[".env", "below/.env"]),
        ("/.env\nbuilt/\n", &[".env", "built/deep/out"]),
        ("*\n!*.log\n", &[".env", "below/.env", "built/deep/out"]),
        // Not ignored; git would have brought it if it were to be there.
        ("new.txt\n", &[]),
    ];
    for (list, expected) in cases {
        assert_eq!(brought(&including(list), wanted("a")), expected, "{list}");
    }
}

// REQ: AGT-9, AGT-1
#[test]
fn what_the_caller_may_not_read_is_not_brought() {
    let world = including(".env\n");
    let hidden = [format!("//{}/.env", world.root.display().to_string().trim_start_matches('/'))];
    let wanted = Wanted { hidden: hidden.into(), ..wanted("a") };
    assert_eq!(brought(&world, wanted), ["below/.env"]);
}

// REQ: AGT-9, AGT-1
#[test]
fn only_files_below_the_workspace_are_brought_and_links_are_not_followed() {
    let mut world = including(".env\n*.log\n");
    std::os::unix::fs::symlink(world.root.join("new.txt"), world.root.join("below/link.log"))
        .unwrap();
    world.context.workspace = world.path("below").into();
    let held = held(&world, "a").unwrap();
    let workspace = PathBuf::from(held.workspace());
    let there = |it: &str| fs::symlink_metadata(workspace.join(it)).is_ok();
    assert_eq!([".env", "link.log", "../.env"].map(there), [true, false, false]);
}

// REQ: AGT-1
#[test]
fn what_is_not_ignored_where_the_branch_begins_is_no_change_either() {
    let world = including(".env\n");
    git(&world.root, ["update-ref", "refs/remotes/origin/HEAD", "HEAD~"]);
    assert_eq!(brought(&world, wanted("a")), Vec::<&str>::new());
}
