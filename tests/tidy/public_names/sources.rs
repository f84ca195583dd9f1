//! The packages of an embedder as trees of modules, with every name led to where it is defined.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Attribute, Item, UseTree, Visibility};

use super::{super::read, macros, text::text};

/// The packages whose items the library exports.
pub(super) const PACKAGES: [(&str, &str); 4] = [
    ("ennead", "actors/src/lib.rs"),
    ("ennead_runtime", "runtime/src/lib.rs"),
    ("ennead_simulated", "runtime/simulated/src/lib.rs"),
    ("ennead_tools", "tools/src/lib.rs"),
];

/// A path from the name of a crate on.
pub(super) type FullPath = Vec<String>;

/// A `use` of one name.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) name: String,
    pub(super) path: Vec<String>,
    pub(super) is_public: bool,
    /// The features that it needs.
    pub(super) cfg: Vec<String>,
}

/// What a module has, code for tests left out and macros written out.
#[derive(Default)]
pub(super) struct Module {
    pub(super) items: Vec<Item>,
    pub(super) imports: Vec<Import>,
    /// The modules below it, with whether they are public.
    pub(super) children: BTreeMap<String, bool>,
    /// The features without which the module is not there.
    pub(super) cfg: Vec<String>,
}

/// Where a name leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// To an item or a module of these packages.
    Own(FullPath),
    /// To an item of another crate.
    Other(FullPath),
}

#[derive(Default)]
pub(super) struct Sources(pub(super) BTreeMap<FullPath, Module>);

/// Whether an attribute is `#[name]` or `#[name(…)]`.
pub(super) fn has(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|it| it.path().is_ident(name))
}

/// The conditions of `#[cfg]`, as written.
pub(super) fn conditions(attributes: &[Attribute]) -> Vec<String> {
    let conditions = attributes.iter().filter(|it| it.path().is_ident("cfg"));
    conditions.map(|it| text(&it.meta)).collect()
}

/// Whether code is there for tests alone.
pub(in super::super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    let is = |it: &String| {
        ["cfg(test)", "cfg(doctest)"].contains(&it.as_str()) || it.starts_with("cfg(all(test,")
    };
    conditions(attributes).iter().any(is)
}

/// Whether an item is not to be documented.
pub(super) fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| it.path().is_ident("doc") && text(&it.meta) == "doc(hidden)")
}

/// What is documented of an item, line by line.
pub(in super::super) fn docs(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|it| match &it.meta {
        syn::Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(line), .. }) => Some(line.value()),
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The attributes and the name of an item that others can name.
pub(super) fn named(item: &Item) -> Option<(&[Attribute], &Visibility, String)> {
    let (attributes, visibility, name) = match item {
        Item::Const(it) => (&it.attrs, &it.vis, &it.ident),
        Item::Enum(it) => (&it.attrs, &it.vis, &it.ident),
        Item::Fn(it) => (&it.attrs, &it.vis, &it.sig.ident),
        Item::Static(it) => (&it.attrs, &it.vis, &it.ident),
        Item::Struct(it) => (&it.attrs, &it.vis, &it.ident),
        Item::Trait(it) => (&it.attrs, &it.vis, &it.ident),
        Item::Type(it) => (&it.attrs, &it.vis, &it.ident),
        Item::Union(it) => (&it.attrs, &it.vis, &it.ident),
        _ => return None,
    };
    Some((attributes, visibility, name.to_string()))
}

impl Sources {
    /// Reads the packages from their top files on.
    pub(super) fn read() -> Self {
        let mut sources = Self::default();
        for (name, top) in PACKAGES {
            let top = Path::new(top);
            let file = syn::parse_file(&read(top)).unwrap_or_else(|it| panic!("{top:?}: {it}"));
            let folder = top.parent().unwrap();
            sources.add(vec![name.to_owned()], file.items, folder, Module::default());
        }
        assert!(100 < sources.0.len(), "{} modules", sources.0.len());
        sources
    }

    /// Reads one package without other files.
    pub(super) fn of_text(name: &str, text: &str) -> Self {
        let mut sources = Self::default();
        let file = syn::parse_file(text).unwrap();
        sources.add(vec![name.to_owned()], file.items, Path::new(""), Module::default());
        sources
    }

    /// Takes the items of a module. Files of the modules below it are in `folder`.
    fn add(&mut self, path: FullPath, items: Vec<Item>, folder: &Path, mut module: Module) {
        let mut definitions = BTreeMap::new();
        for item in items {
            self.add_item(item, &path, folder, &mut module, &mut definitions);
        }
        self.0.insert(path, module);
    }

    fn add_item(
        &mut self,
        item: Item,
        path: &FullPath,
        folder: &Path,
        module: &mut Module,
        definitions: &mut BTreeMap<String, TokenStream>,
    ) {
        let of = path.join("::");
        match item {
            Item::Mod(it) if !is_for_tests(&it.attrs) => {
                self.add_module(it, path, folder, module);
            }
            Item::Use(it) if !is_for_tests(&it.attrs) => {
                let is_public = matches!(it.vis, Visibility::Public(_));
                let mut found = Vec::new();
                imports(&it.tree, &mut Vec::new(), &mut found);
                for (name, path) in found {
                    assert!(name != "*" || !is_public, "{of} exports by a glob");
                    let cfg = conditions(&it.attrs);
                    module.imports.push(Import { name, path, is_public, cfg });
                }
            }
            Item::Macro(it) if !is_for_tests(&it.attrs) => {
                let name = it.mac.path.to_token_stream().to_string();
                if let Some(defined) = it.ident {
                    assert!(!has(&it.attrs, "macro_export"), "{defined}! of {of} is not listed");
                    definitions.insert(defined.to_string(), it.mac.tokens);
                    return;
                }
                let definition = definitions.get(&name).cloned();
                let definition = definition
                    .unwrap_or_else(|| panic!("what {name}! declares in {of} is not known"));
                let written = macros::expanded(definition, it.mac.tokens);
                let written: syn::File =
                    syn::parse2(written).unwrap_or_else(|it| panic!("{name}! in {of}: {it}"));
                for item in written.items {
                    self.add_item(item, path, folder, module, definitions);
                }
            }
            Item::Mod(_) | Item::Use(_) | Item::Macro(_) => {}
            Item::Impl(it) if is_for_tests(&it.attrs) => {}
            item @ Item::Impl(_) => module.items.push(item),
            Item::ExternCrate(_)
            | Item::Verbatim(_)
            | Item::TraitAlias(_)
            | Item::ForeignMod(_) => {
                panic!("an item of {of} is of a kind that is not read")
            }
            item => {
                let is_kept =
                    named(&item).is_some_and(|(attributes, ..)| !is_for_tests(attributes));
                if is_kept {
                    module.items.push(item);
                }
            }
        }
    }

    fn add_module(
        &mut self,
        it: syn::ItemMod,
        path: &FullPath,
        folder: &Path,
        parent: &mut Module,
    ) {
        let name = it.ident.to_string();
        let own: FullPath = path.iter().cloned().chain([name.clone()]).collect();
        assert!(!has(&it.attrs, "path"), "{} is in a file of another name", own.join("::"));
        let is_public = matches!(it.vis, Visibility::Public(_));
        parent.children.insert(name.clone(), is_public);
        let mut cfg = parent.cfg.clone();
        cfg.extend(conditions(&it.attrs));
        let module = Module { cfg, ..Module::default() };
        let below: PathBuf = folder.join(&name);
        let items = match it.content {
            Some((_, items)) => items,
            None => {
                let file = folder.join(format!("{name}.rs"));
                syn::parse_file(&read(&file)).unwrap_or_else(|it| panic!("{file:?}: {it}")).items
            }
        };
        self.add(own, items, &below, module);
    }

    /// The item at this path.
    pub(super) fn items(&self, path: &[String]) -> impl Iterator<Item = &Item> {
        let (name, module) = path.split_last().unwrap();
        let module = self.0.get(module);
        let items = module.into_iter().flat_map(|it| &it.items);
        items.filter(move |it| named(it).is_some_and(|(.., own)| own == *name))
    }

    /// Where a path leads that is written in a module, and how many of its segments are left: those of an associated
    /// type or of a variant. `None` where the path is of the prelude, or not known.
    pub(super) fn resolved(&self, module: &[String], path: &[String]) -> Option<(Target, usize)> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => module[..1].to_vec(),
            "self" => module.to_vec(),
            "super" => module[..module.len() - 1].to_vec(),
            name if PACKAGES.iter().any(|(it, _)| *it == name) => vec![name.to_owned()],
            name => match self.found_in(module, name, rest.is_empty()) {
                Some(Target::Own(it)) => it,
                Some(Target::Other(it)) => return Some((self.other(it, rest), 0)),
                // What has no `use` and is not ours is a crate.
                None if !rest.is_empty() && name.starts_with(char::is_lowercase) => {
                    return Some((Target::Other(path.to_vec()), 0));
                }
                None => return None,
            },
        };
        while let Some((segment, after)) = rest.split_first() {
            if !self.0.contains_key(&at) {
                break;
            }
            at = match segment.as_str() {
                "super" => at[..at.len() - 1].to_vec(),
                name => match self.found_in(&at, name, after.is_empty())? {
                    Target::Own(it) => it,
                    Target::Other(it) => return Some((self.other(it, after), 0)),
                },
            };
            rest = after;
        }
        Some((Target::Own(at), rest.len()))
    }

    fn other(&self, mut path: FullPath, rest: &[String]) -> Target {
        path.extend_from_slice(rest);
        Target::Other(path)
    }

    /// Where a name of a module leads: the last of a path to an item, the others to modules, if both have the name.
    fn found_in(&self, module: &[String], name: &str, is_last: bool) -> Option<Target> {
        let own: FullPath = module.iter().cloned().chain([name.to_owned()]).collect();
        let it = self.0.get(module)?;
        let is_module = it.children.contains_key(name);
        if (is_module && !is_last) || self.items(&own).next().is_some() {
            return Some(Target::Own(own));
        }
        if let Some(import) = it.imports.iter().find(|it| it.name == name) {
            let first = import.path[0].as_str();
            let is_own = ["crate", "self", "super"].contains(&first)
                || PACKAGES.iter().any(|(it, _)| *it == first)
                || (first != name && self.found_in(module, first, false).is_some());
            if !is_own {
                return Some(Target::Other(import.path.clone()));
            }
            let (target, rest) = self.resolved(module, &import.path)?;
            assert_eq!(rest, 0, "{} uses a part of a type", own.join("::"));
            return Some(target);
        }
        is_module.then_some(Target::Own(own))
    }
}

/// The names that a `use` brings in, with their paths.
fn imports(tree: &UseTree, before: &mut Vec<String>, found: &mut Vec<(String, Vec<String>)>) {
    let mut take = |name: String, last: Option<String>| {
        let path = before.iter().cloned().chain(last).collect();
        found.push((name, path));
    };
    match tree {
        UseTree::Path(it) => {
            before.push(it.ident.to_string());
            imports(&it.tree, before, found);
            before.pop();
        }
        UseTree::Name(it) if it.ident == "self" => {
            take(before.last().unwrap().clone(), None);
        }
        UseTree::Name(it) => take(it.ident.to_string(), Some(it.ident.to_string())),
        UseTree::Rename(it) if it.ident == "self" => take(it.rename.to_string(), None),
        UseTree::Rename(it) => take(it.rename.to_string(), Some(it.ident.to_string())),
        UseTree::Glob(_) => take("*".to_owned(), None),
        UseTree::Group(it) => it.items.iter().for_each(|it| imports(it, before, found)),
    }
}
