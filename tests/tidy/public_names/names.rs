//! Types by the paths that an embedder names them by.

use std::collections::{BTreeMap, BTreeSet};

use syn::{
    Generics, Path, QSelf,
    visit_mut::{self, VisitMut},
};

use super::sources::{FullPath, Sources, Target};

/// What every module has without a `use`.
const PRELUDE: &[&str] = &[
    "AsMut",
    "AsRef",
    "Box",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Drop",
    "Eq",
    "Extend",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "FromIterator",
    "Future",
    "Hash",
    "Into",
    "IntoIterator",
    "Iterator",
    "Option",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Result",
    "Send",
    "Sized",
    "String",
    "Sync",
    "ToOwned",
    "ToString",
    "TryFrom",
    "TryInto",
    "Unpin",
    "Vec",
    "bool",
    "char",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "isize",
    "str",
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "usize",
];

/// The paths of items at the front door, by where they are defined.
pub(super) type Doors = BTreeMap<FullPath, String>;

/// Writes paths as an embedder does.
pub(super) struct Namer<'a> {
    pub(super) sources: &'a Sources,
    pub(super) doors: &'a Doors,
    /// Where the code is.
    pub(super) module: &'a [String],
    /// What stands for types here: `Self`, and parameters.
    pub(super) params: BTreeSet<String>,
    /// Items without a path of their own, and crates of others, that were named.
    pub(super) unnamed: BTreeSet<String>,
    pub(super) crates: BTreeSet<String>,
}

impl Namer<'_> {
    /// A namer that knows these parameters, too.
    pub(super) fn with(&self, generics: &[&Generics]) -> Self {
        let mut params = self.params.clone();
        for generics in generics {
            params.extend(generics.type_params().map(|it| it.ident.to_string()));
            params.extend(generics.const_params().map(|it| it.ident.to_string()));
        }
        let &Self { sources, doors, module, .. } = self;
        Self { sources, doors, module, params, unnamed: BTreeSet::new(), crates: BTreeSet::new() }
    }

    /// The path that an embedder names this path by, and where it leads.
    fn name(&mut self, segments: &[String]) -> Option<(String, usize)> {
        let first = &segments[0];
        if self.params.contains(first) || first == "Self" {
            return None;
        }
        match self.sources.resolved(self.module, segments) {
            Some((Target::Own(own), rest)) => Some((self.door(&own), rest)),
            Some((Target::Other(path), rest)) => {
                self.crates.insert(path[0].clone());
                Some((path.join("::"), rest))
            }
            None => {
                let is_known = PRELUDE.contains(&first.as_str());
                assert!(is_known, "{} in {}", segments.join("::"), self.module.join("::"));
                None
            }
        }
    }

    fn door(&mut self, own: &FullPath) -> String {
        self.doors.get(own).cloned().unwrap_or_else(|| {
            self.unnamed.insert(own.join("::"));
            own.join("::")
        })
    }

    /// Puts the first segments of a path, up to `rest` of its last, in other words.
    fn rewrite(&mut self, path: &mut Path, n_segments: usize) -> usize {
        let names = path.segments.iter().take(n_segments).map(|it| it.ident.to_string());
        let names: Vec<String> = names.collect();
        let Some((name, rest)) = self.name(&names) else { return n_segments };
        let mut renamed: Path = syn::parse_str(&name).unwrap();
        let last = n_segments - rest - 1;
        renamed.segments.last_mut().unwrap().arguments = path.segments[last].arguments.clone();
        let n_renamed = renamed.segments.len() + rest;
        renamed.segments.extend(path.segments.iter().skip(last + 1).cloned());
        *path = renamed;
        n_renamed
    }
}

impl VisitMut for Namer<'_> {
    fn visit_path_mut(&mut self, path: &mut Path) {
        visit_mut::visit_path_mut(self, path);
        let n_segments = path.segments.len();
        self.rewrite(path, n_segments);
    }

    fn visit_type_path_mut(&mut self, it: &mut syn::TypePath) {
        let Some(QSelf { ty, position, .. }) = &mut it.qself else {
            return self.visit_path_mut(&mut it.path);
        };
        self.visit_type_mut(ty);
        if *position != 0 {
            visit_mut::visit_path_mut(self, &mut it.path);
            let (n_segments, is) = (*position, it.path.segments.len());
            self.rewrite(&mut it.path, n_segments);
            *position = n_segments + it.path.segments.len() - is;
        }
    }

    fn visit_macro_mut(&mut self, it: &mut syn::Macro) {
        panic!("a macro is in a signature: {:?}", it.path);
    }

    fn visit_attribute_mut(&mut self, _: &mut syn::Attribute) {}

    // What a type is made of by a value is not a type.
    fn visit_expr_mut(&mut self, _: &mut syn::Expr) {}
}
