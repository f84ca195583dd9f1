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

fn brought(world: &World, wanted: WorktreeRequest) -> Vec<&'static str> {
    let held = block_on(HeldWorktree::new(&world.context, wanted)).unwrap();
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
    let wanted = WorktreeRequest { hidden: hidden.into(), ..wanted("a") };
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

// REQ: AGT-1
#[test]
fn name_that_looks_like_an_instruction_to_git_is_a_name() {
    for variable in ["GIT_LITERAL_PATHSPECS", "OTHER"] {
        let mut world = including("*.log\n");
        world.context.env = [(variable.to_owned(), "1".to_owned())].into();
        let names = [":x.log", ":!y.log", ":(top)z.log", "a[b].log"];
        for name in names {
            world.file(name, "text");
        }
        let held = held(&world, "a").unwrap();
        let workspace = PathBuf::from(held.workspace());
        assert_eq!(names.map(|it| workspace.join(it).exists()), [true; 4], "{variable}");
    }
}

// REQ: AGT-1
#[test]
fn nothing_ignored_is_no_failure_whatever_git_says_beside_it() {
    let mut world = including("new.txt\n");
    world.context.env = [("GIT_TRACE".to_owned(), "1".to_owned())].into();
    assert_eq!(brought(&world, wanted("a")), Vec::<&str>::new());
}

// REQ: AGT-1
#[test]
fn list_is_found_in_a_directory_whose_name_ends_with_a_space() {
    let mut world = including("/.env\n");
    let root = world.root.with_file_name("work ");
    fs::rename(&world.root, &root).unwrap();
    world.context.workspace = root.to_str().unwrap().into();
    world.root = root;
    assert_eq!(brought(&world, wanted("a")), [".env"]);
}

// REQ: AGT-1
#[test]
fn name_without_a_place_where_the_branch_begins_is_left_out() {
    type Make = fn(&Path);
    let makes: [Make; 2] = [
        |it| std::os::unix::fs::symlink("below", it).unwrap(),
        |it| fs::write(it, "text").unwrap(),
    ];
    for make in makes {
        let world = including(".env\n");
        fs::remove_file(world.root.join("new.txt")).unwrap();
        let place = world.root.join("place");
        make(&place);
        commit_all(&world.root, "no directory");
        git(&world.root, ["update-ref", "refs/remotes/origin/HEAD", "HEAD"]);
        fs::remove_file(&place).unwrap();
        world.file("place/file", "text");
        world.file("place/.env", "text");
        commit_all(&world.root, "a directory");
        assert_eq!(brought(&world, wanted("a")), [".env", "below/.env"]);
    }
}
