//! Where sessions work: below the directory of their tenant, and nowhere else.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use ennead_runtime::ids::TenantId;

use super::problem::{Code, Problem};
use crate::groundwork::files;

/// Parts that the name of a directory may have.
const MAX_PARTS: usize = 32;

/// Returns the directory of this name below that of the tenant, and makes it if it is missing. It is real: no link
/// leads out.
///
/// # Errors
///
/// When the name is not a relative path of plain parts, a link leads out of the tenant's directory, or it
/// cannot be made.
pub(crate) fn prepare(root: &Path, tenant: &TenantId, name: &str) -> Result<PathBuf, Problem> {
    let refused = |why: &str| Problem::new(Code::BadDirectory, format!("the directory {why}"));
    let parts: Vec<Component<'_>> = Path::new(name).components().collect();
    let is_plain = parts.iter().all(|it| matches!(it, Component::Normal(_)));
    if !is_plain || MAX_PARTS < parts.len() || name.chars().any(char::is_control) {
        return Err(refused("is not a relative path of plain names"));
    }
    let failed = |error: io::Error| refused(&format!("cannot be used: {}", error.kind()));
    files::make_directory(root).map_err(failed)?;
    let root = root.canonicalize().map_err(failed)?;
    let home = root.join(tenant.as_str());
    make(&home).map_err(failed)?;
    // That of the tenant itself may not be a link to another's.
    if home.canonicalize().map_err(failed)? != home {
        return Err(refused("of the tenant is a link"));
    }
    let mut path = home.clone();
    for part in parts {
        // Made one by one, so that nothing is made where a link leads to.
        make(&path.join(part)).map_err(failed)?;
        path = path.join(part).canonicalize().map_err(failed)?;
        if !path.starts_with(&home) {
            return Err(refused("leads out of the tenant's"));
        }
    }
    Ok(path)
}

fn make(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    // REQ: SUR-5
    #[test]
    fn directory_of_a_session_lies_below_that_of_its_tenant() {
        let root = tempfile::tempdir().unwrap();
        let tenant = TenantId::from("acme");
        let made = prepare(root.path(), &tenant, "a/b").unwrap();
        assert!(made.ends_with("acme/a/b") && made.is_dir());
        for bad in ["../other", "/etc", "a/../../other", "a\0b", "."] {
            assert!(prepare(root.path(), &tenant, bad).is_err(), "{bad:?}");
        }
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), made.join("link")).unwrap();
        assert!(prepare(root.path(), &tenant, "a/b/link").is_err());
        assert!(prepare(root.path(), &tenant, "a/b/link/new").is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0, "nothing is made there");
        symlink(made, root.path().join("acme/inside")).unwrap();
        assert!(prepare(root.path(), &tenant, "inside").is_ok());
    }
}
