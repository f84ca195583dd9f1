//! Programs that are handed the names of files in a list, which the command does not show: `tar -T list`.
//!
//! Sources: GNU tar 1.34, coreutils 9.1, rsync 3.2.7, Info-ZIP 3.0, GNU cpio 2.13, p7zip 16.02, curl 8.5,
//! GNU wget 1.21.

use super::options::{has_letter, is_cluster, is_long};
use crate::step7_permission_gate::shell::word::Word;

/// Returns whether files that a program reads are named in a list.
pub(super) fn names_files(name: &str, args: &[Word]) -> bool {
    let has =
        |letter: char, valued: &str| args.iter().any(|it| has_letter(&it.text, letter, valued));
    let has_long = |long: &str| args.iter().any(|it| is_long(&it.text, long));
    match name {
        "tar" | "gtar" | "bsdtar" => {
            // That is an option of its own.
            let is_file = |it: &Word| it.text == "--file" || it.text.starts_with("--file=");
            let is_list = |it: &Word| is_long(&it.text, "--files-from") && !is_file(it);
            has('T', "bCfgFHIKLNVX")
                || args.iter().any(is_list)
                || args.first().is_some_and(|it| is_cluster(&it.text, 'T'))
        }
        "wc" | "du" | "sort" => has_long("--files0-from"),
        "md5sum" | "sha1sum" | "sha224sum" | "sha256sum" | "sha384sum" | "sha512sum" | "b2sum"
        | "cksum" => has('c', "al") || has_long("--check"),
        "rsync" => has_long("--files-from"),
        "zip" => has('@', "btnx") || has_long("--names-stdin"),
        "cpio" => has('o', "CDEFHIMORW") || has('p', "CDEFHIMORW") || has_long("--create"),
        "7z" | "7za" | "7zr" | "7zz" => args.iter().any(|it| it.text.starts_with('@')),
        "wget" => has('i', "aoOPUQtTwDAR") || has_long("--input-file"),
        "curl" => has('K', "AbcCdDeEFhHmoPQrtTuUwxXyYz") || has_long("--config"),
        _ => false,
    }
}
