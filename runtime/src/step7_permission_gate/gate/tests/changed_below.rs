//! Commands that change or remove what their text does not name, below a directory that it does.
//!
//! Built under `#[cfg(test)]` only.

use super::{
    command_files::{check_all, check_each},
    *,
};

const CHANGES: [&str; 19] = [
    "rm -r src",
    "rm -rf src lib",
    "chmod -R 777 .",
    "chown -R me src",
    "find . -name '*.key' -delete",
    "find src -type f -newer a -delete",
    "find . -name '*.key' -exec rm {} +",
    "find . -type f -size 1k -exec sed -i s/a/b/ {} +",
    "find src -name x -o -name y -exec chmod 600 {} ';'",
    "find . -name '*.key' | xargs rm",
    "find . -type f | xargs sed -i s/a/b/",
    "grep -rl x . | xargs sed -i s/x/y/",
    "ls src | xargs rm -f",
    "git ls-files | xargs sed -i s/x/y/",
    "git clean -fdx",
    "git clean -f src",
    "rsync -a --delete out/ src/",
    "rsync -a --del out/ ./src",
    "cd src && find . -newer a -delete",
];

// REQ: PRM-8
#[test]
fn files_below_a_directory_that_are_changed_unnamed_are_asked_about_where_a_rule_denies_them() {
    for denied in ["deny project Edit(src/keys/**)", "deny project Read(src/keys/**)"] {
        let rules = ["allow project Bash", denied];
        check_all(&rules, &CHANGES, "ask");
        for mode in [Mode::AcceptEdits, Mode::BypassPermissions] {
            check_each(mode, &rules, &CHANGES, "ask");
        }
    }
    check_all(&["allow project Bash"], &CHANGES, "allow");
    check_all(&["allow project Bash", "deny project Edit(out/**)"], &CHANGES[..2], "allow");
    let beside = [
        "rm -r target",
        "rm src/a",
        "chmod -R u+w target",
        "find target -name '*.o' -delete",
        "find . -name '*.o' -exec file {} +",
        "find src -name '*.rs' -exec sed -n 1p {} +",
        "find src -type f -size 1k",
        "find target | xargs rm",
        "git clean -n",
        "rsync -a out/ target/",
    ];
    check_all(&["allow project Bash", "deny project Edit(src/keys/**)"], &beside, "allow");
}

// REQ: PRM-8
#[test]
fn what_is_unpacked_or_copied_into_a_directory_may_overwrite_what_a_rule_keeps() {
    let brings = [
        "tar xf a.tar",
        "tar -xzf a.tgz -C src",
        "tar --extract --file a.tar --directory=src",
        "bsdtar -xf a.zip",
        "unzip a.zip",
        "unzip -o a.zip -d src",
        "7z x a.7z -osrc",
        "cpio -i < a.cpio",
        "cp -r x/. .",
        "cp -a x src",
        "cp -r -t src x",
        "rsync -a x/ src/",
    ];
    check_all(&["allow project Bash", "deny project Edit(src/keys/**)"], &brings, "ask");
    check_all(&["allow project Bash", "deny project Read(other/**)"], &brings, "allow");
    let others = [
        "tar cf a.tar lib",
        "tar tf a.tar",
        "tar -xOf a.tar x",
        "tar xf a.tar -C out",
        "unzip -l a.zip",
        "unzip a.zip -d out",
        "cp x src/y",
        "cp -r x out",
        "rsync -a x/ host:src/",
    ];
    check_all(&["allow project Bash", "deny project Edit(src/keys/**)"], &others, "allow");
}

// REQ: PRM-8
#[test]
fn search_that_chooses_other_names_passes_a_rule_for_one_name() {
    let rules = ["allow project Bash", "deny project Edit(.env)"];
    let passes = [
        "find . -name '*.pyc' -delete",
        "find . -name '*.orig' -exec rm {} +",
        "find . -name '*.rs' | xargs sed -i s/a/b/",
    ];
    check_all(&rules, &passes, "allow");
    let meets = [
        "find . -name '.e*' -delete",
        "find . -name '*' -newer a -delete",
        "find . -name '.[e]nv' -delete",
        "find . ! -name '*.pyc' -newer a -delete",
        "find . -name '*.pyc' -o -newer a -delete",
        "find . -name '*.pyc' -o -name a | xargs rm",
    ];
    check_all(&rules, &meets, "ask");
}

// REQ: PRM-3
#[test]
fn search_that_removes_all_it_finds_is_asked_about_as_a_removal_of_its_places_is() {
    let removes = [
        "find . -delete",
        "find -delete",
        "find . -type f -delete",
        "find / -delete",
        "find ~ -maxdepth 2 -delete",
        "find -L . -mindepth 1 -delete",
        "find . -exec rm -rf {} +",
        "find . -type f -exec rm {} ';' -print",
        "cd .. && find . -delete",
    ];
    check_all(&["allow project Bash"], &removes, "ask");
    check_each(Mode::BypassPermissions, &["allow project Bash"], &removes, "ask");
    let chooses = ["find . -empty -delete", "find target -delete", "find . -exec ls {} +"];
    check_all(&["allow project Bash"], &chooses, "allow");
}
