//! What an embedder can name, and what it is made of, line by line as `cargo public-api` prints it.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, Type, Visibility};

use super::{
    names::Doors,
    sources::{FullPath, Sources, Target, conditions, named},
    writer::Writer,
};

/// One public item, under the path that it is to be named by.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct PublicItem {
    /// `struct`, `enum`, `trait`, `fn`, `type` or `const`.
    pub(in super::super) kind: &'static str,
    /// What is documented of it.
    pub(in super::super) docs: String,
    pub(in super::super) is_non_exhaustive: bool,
    /// Public fields of a struct, in order.
    pub(in super::super) fields: Vec<String>,
    /// Public methods, and those of a trait.
    pub(in super::super) methods: BTreeSet<String>,
    /// What is documented of these, by their names.
    pub(in super::super) method_docs: BTreeMap<String, String>,
    /// The lines of the listing.
    pub(super) lines: Vec<String>,
    /// Methods that are not documented.
    pub(super) hidden: Vec<String>,
    /// Items that are named by it and have no path of their own.
    pub(super) unnamed: BTreeSet<String>,
    /// Other crates whose items are named by it.
    pub(super) crates: BTreeSet<String>,
}

/// Where an item is exported.
pub(super) struct Export {
    pub(super) path: String,
    own: FullPath,
    /// The features that it needs.
    pub(super) cfg: Vec<String>,
}

/// The public items of the library, by their paths.
pub(super) fn surface(sources: &Sources) -> BTreeMap<String, PublicItem> {
    let mut exports = Vec::new();
    exported(sources, &["ennead".to_owned()], &[], &mut exports);
    exports.sort_by_key(|it| is_last(&it.path));
    let mut doors = Doors::new();
    for it in exports.iter().filter(|it| !it.path.starts_with("ennead::internal::")) {
        doors.entry(it.own.clone()).or_insert_with(|| it.path.clone());
    }
    let mut found = BTreeMap::new();
    for export in &exports {
        let mut item = PublicItem::default();
        let module = &export.own[..export.own.len() - 1];
        for definition in sources.items(&export.own) {
            Writer::new(sources, &doors, module, export, &mut item).define(definition);
        }
        assert!(!item.lines.is_empty(), "{} is not defined: {:?}", export.path, export.own);
        let twice = found.insert(export.path.clone(), item);
        assert!(twice.is_none(), "{} is exported twice", export.path);
    }
    let n_defined: BTreeMap<String, usize> =
        found.iter().map(|(path, it)| (path.clone(), it.lines.len())).collect();
    implement(sources, &doors, &exports, &mut found);
    for (path, item) in &mut found {
        // Where a method is written says nothing.
        item.lines[n_defined[path]..].sort_by_cached_key(|line| {
            let line = line.rsplit_once("] ").map_or(line.as_str(), |(_, it)| it);
            let at = line.find("fn ").filter(|_| line.starts_with("pub ")).unwrap_or_default();
            (line.starts_with("impl"), line[at..].to_owned())
        });
    }
    found
}

/// Paths by which an item is named only if it has no other.
fn is_last(path: &str) -> bool {
    path.starts_with("ennead::data::")
}

/// The items that a module and the public modules below it export.
fn exported(sources: &Sources, path: &[String], cfg: &[String], found: &mut Vec<Export>) {
    let module = &sources.0[path];
    let at = path.join("::");
    for item in &module.items {
        if let Some((attributes, Visibility::Public(_), name)) = named(item) {
            let own = path.iter().cloned().chain([name.clone()]).collect();
            let cfg = [cfg, &conditions(attributes)].concat();
            found.push(Export { path: format!("{at}::{name}"), own, cfg });
        }
    }
    for import in module.imports.iter().filter(|it| it.is_public) {
        let Some((Target::Own(own), 0)) = sources.resolved(path, &import.path) else {
            panic!("{at} exports {}, which is none of ours", import.path.join("::"));
        };
        assert!(
            !sources.0.contains_key(&own) || sources.items(&own).next().is_some(),
            "{at}: {own:?}"
        );
        let cfg = [cfg, &import.cfg].concat();
        found.push(Export { path: format!("{at}::{}", import.name), own, cfg });
    }
    for (name, is_public) in &module.children {
        if *is_public {
            let below: FullPath = path.iter().cloned().chain([name.clone()]).collect();
            exported(sources, &below, &sources.0[&below].cfg, found);
        }
    }
}

/// Adds what `impl` blocks of all modules have, to their types, or to their traits where the types are not ours.
fn implement(
    sources: &Sources,
    doors: &Doors,
    exports: &[Export],
    found: &mut BTreeMap<String, PublicItem>,
) {
    let exports: BTreeMap<&str, &Export> =
        exports.iter().map(|it| (it.path.as_str(), it)).collect();
    for (module, it) in &sources.0 {
        for block in &it.items {
            let Item::Impl(block) = block else { continue };
            let target = |path: &syn::Path| {
                let names: Vec<String> =
                    path.segments.iter().map(|it| it.ident.to_string()).collect();
                let is_param = block.generics.type_params().any(|it| it.ident == names[0]);
                match sources.resolved(module, &names) {
                    Some((Target::Own(own), 0)) if !is_param => Some(doors.get(&own)),
                    _ => None,
                }
            };
            let of_type = match &*block.self_ty {
                Type::Path(it) if it.qself.is_none() => target(&it.path),
                _ => None,
            };
            let of_trait = || target(&block.trait_.as_ref()?.1);
            // A type of ours that has no path is nothing that an embedder has.
            let door = of_type.or_else(of_trait).flatten();
            if let Some(door) = door {
                let item = found.get_mut(door).unwrap();
                Writer::new(sources, doors, module, exports[door.as_str()], item).implement(block);
            }
        }
    }
}

/// The public items of a library of this text.
fn of_text(text: &str) -> BTreeMap<String, PublicItem> {
    surface(&Sources::of_text("ennead", text))
}

#[test]
fn items_are_listed_by_the_paths_of_embedders() {
    let text = "
        mod inner {
            use std::sync::Arc;
            macro_rules! id { ($(#[$doc:meta])* $name:ident) => {
                $(#[$doc])* pub struct $name(String);
                impl $name { pub fn new(text: &str) -> Self { Self(text.to_owned()) } fn own(&self) {} }
            } }
            id! { /// Names it.
                Id }
            #[derive(Clone, Debug)]
            #[non_exhaustive]
            pub struct Open { pub id: Arc<Id>, pub(crate) own: u8, last: u8 }
            pub enum Choice<T> { One, Two(T, super::inner::Id), Three { id: Id } }
            pub trait Port: Send { type Out; fn run(&self) -> Self::Out; fn idle(&self) {} }
            struct Private;
            impl Port for Private { type Out = u8; fn run(&self) -> u8 { 0 } }
            impl<F: Fn() -> Id> Port for F { type Out = Id; fn run(&self) -> Id { self() } }
            impl Port for Open { type Out = Id; fn run(&self) -> Id { todo!() } }
            #[cfg(test)]
            impl Open { pub fn of_tests(&self) {} }
        }
        mod later { impl super::inner::Open { #[cfg(feature = \"x\")] pub async fn go(mut self, mut at: u8) {} } }
        pub mod data { pub use crate::inner::Id; }
        pub use inner::{Choice, Open, Port as Door};
    ";
    let found = of_text(text);
    let lines: Vec<&str> = found.values().flat_map(|it| &it.lines).map(String::as_str).collect();
    let expected = [
        "pub enum ennead::Choice<T>",
        "pub ennead::Choice::One",
        "pub ennead::Choice::Two(T, ennead::data::Id)",
        "pub ennead::Choice::Three",
        "pub ennead::Choice::Three::id: ennead::data::Id",
        "pub trait ennead::Door: Send",
        "pub type ennead::Door::Out",
        "pub fn ennead::Door::run(&self) -> Self::Out;",
        "pub fn ennead::Door::idle(&self) { .. }",
        "impl<F: Fn() -> ennead::data::Id> ennead::Door for F { type Out = ennead::data::Id; }",
        "#[non_exhaustive] pub struct ennead::Open",
        "derive Clone, Debug for ennead::Open",
        "pub ennead::Open::id: std::sync::Arc<ennead::data::Id>",
        "#[cfg(feature = \"x\")] pub async fn ennead::Open::go(self, at: u8)",
        "impl ennead::Door for ennead::Open { type Out = ennead::data::Id; }",
        "pub struct ennead::data::Id",
        "pub fn ennead::data::Id::new(text: &str) -> Self",
    ];
    assert_eq!(lines, expected);
    assert!(found.values().all(|it| it.unnamed.is_empty()));
}

#[test]
fn type_without_a_path_is_found_wherever_a_public_item_names_it() {
    let found = of_text(
        "mod inner {
            pub struct A; pub struct B; pub struct C; pub struct D; pub struct E; struct Hidden;
            pub struct Open { pub a: A, own: Hidden }
            impl Open {
                pub fn run<T: Into<B>>(&self, it: T) -> Option<Box<dyn Fn(&C) -> [D; 2]>> {}
                #[doc(hidden)] pub fn hidden(&self) -> E {}
                fn own(&self) -> Hidden {}
            }
        }
        pub use inner::Open;",
    );
    let names = ["A", "B", "C", "D"].map(|it| format!("ennead::inner::{it}"));
    assert_eq!(found["ennead::Open"].unnamed, BTreeSet::from(names));
    let hidden = "pub fn ennead::Open::hidden(&self) -> ennead::inner::E";
    assert_eq!(found["ennead::Open"].hidden, [hidden]);
}

#[test]
fn what_would_be_missing_silently_ends_the_listing() {
    for text in [
        "pub mod inner {} pub use inner::*;",
        "macro_rules! known { () => {} } unknown! { Name }",
        "#[path = \"other.rs\"] mod inner {}",
        "pub use std::sync::Arc;",
        "pub use inner::Gone; mod inner {}",
        "#[macro_export] macro_rules! exported { () => {} }",
        "pub struct Open; macro_rules! methods { () => { pub fn run() {} } } impl Open { methods! {} }",
    ] {
        assert!(std::panic::catch_unwind(|| of_text(text)).is_err(), "{text}");
    }
}
