//! The lines of one public item.

use std::collections::BTreeSet;

use syn::{
    Attribute, Fields, FnArg, Generics, ImplItem, Item, ItemImpl, Pat, Signature, TraitItem, Type,
    Visibility, visit_mut::VisitMut,
};

use super::{
    names::{Doors, Namer},
    sources::{Sources, conditions, docs, has, is_hidden, named},
    surface::{Export, PublicItem},
    text::text,
};

/// Writes the lines of one item.
pub(super) struct Writer<'a> {
    namer: Namer<'a>,
    path: &'a str,
    cfg: &'a [String],
    item: &'a mut PublicItem,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        sources: &'a Sources,
        doors: &'a Doors,
        module: &'a [String],
        export: &'a Export,
        item: &'a mut PublicItem,
    ) -> Self {
        let (params, unnamed, crates) = Default::default();
        let namer = Namer { sources, doors, module, params, unnamed, crates };
        Self { namer, path: &export.path, cfg: &export.cfg, item }
    }

    /// Adds a line, with the conditions that it has beyond those of the item.
    fn line(&mut self, attributes: &[Attribute], line: String) {
        let own = conditions(attributes).into_iter().filter(|it| !self.cfg.contains(it));
        let mut before: String = own.map(|it| format!("#[{it}] ")).collect();
        if has(attributes, "non_exhaustive") {
            before.push_str("#[non_exhaustive] ");
        }
        self.item.lines.push(before + &line);
    }

    /// Code as an embedder writes it. What it names is noted.
    fn named<T>(
        &mut self,
        generics: &[&Generics],
        mut code: T,
        visit: fn(&mut Namer<'_>, &mut T),
    ) -> T {
        let mut namer = self.namer.with(generics);
        visit(&mut namer, &mut code);
        self.item.unnamed.append(&mut namer.unnamed);
        self.item.crates.append(&mut namer.crates);
        code
    }

    fn type_text(&mut self, generics: &[&Generics], code: &Type) -> String {
        text(self.named(generics, code.clone(), |namer, it| namer.visit_type_mut(it)))
    }

    /// The parameters of an item, and what is asked of them.
    fn generics(&mut self, around: &[&Generics], code: &Generics) -> (String, String) {
        let all = [around, &[code]].concat();
        let code = self.named(&all, code.clone(), |namer, it| namer.visit_generics_mut(it));
        let wanted = code.where_clause.as_ref().map(|it| format!(" {}", text(it)));
        (text(&code), wanted.unwrap_or_default().trim_end_matches(',').to_owned())
    }

    pub(super) fn define(&mut self, definition: &Item) {
        let Some((attributes, ..)) = named(definition) else { return };
        self.item.docs = docs(attributes);
        self.item.is_non_exhaustive = has(attributes, "non_exhaustive");
        let (path, attributes) = (self.path, attributes.to_vec());
        match definition {
            Item::Struct(it) => {
                self.head("struct", &attributes, &it.generics, "");
                self.fields(path, &it.generics, &it.fields, false);
            }
            Item::Enum(it) => {
                self.head("enum", &attributes, &it.generics, "");
                for variant in &it.variants {
                    let name = format!("{path}::{}", variant.ident);
                    if let Fields::Unnamed(fields) = &variant.fields {
                        let types = fields.unnamed.iter();
                        let types: Vec<_> =
                            types.map(|field| self.type_text(&[&it.generics], &field.ty)).collect();
                        self.line(&variant.attrs, format!("pub {name}({})", types.join(", ")));
                    } else {
                        self.line(&variant.attrs, format!("pub {name}"));
                        self.fields(&name, &it.generics, &variant.fields, true);
                    }
                }
            }
            Item::Trait(it) => {
                let bounds = it.supertraits.clone();
                let mut all = it.clone();
                all.supertraits = bounds;
                let all = self.named(&[&it.generics], all, |namer, it| {
                    it.supertraits.iter_mut().for_each(|it| namer.visit_type_param_bound_mut(it));
                });
                let bounds = all.supertraits;
                let bounds =
                    if bounds.is_empty() { String::new() } else { format!(": {}", text(bounds)) };
                self.head("trait", &attributes, &it.generics, &bounds);
                it.items.iter().for_each(|member| self.trait_item(&it.generics, member));
            }
            Item::Fn(it) => {
                self.item.kind = "fn";
                let signature = self.signature(&[], path, &it.sig);
                self.line(&attributes, signature);
            }
            Item::Type(it) => {
                let of = self.type_text(&[&it.generics], &it.ty);
                self.head("type", &attributes, &it.generics, &format!(" = {of}"));
            }
            Item::Const(it) => {
                let of = self.type_text(&[], &it.ty);
                self.head("const", &attributes, &it.generics, &format!(": {of}"));
            }
            _ => panic!("{path} is of a kind that is not read"),
        }
    }

    /// The line of a type itself, with what is derived for it.
    fn head(
        &mut self,
        kind: &'static str,
        attributes: &[Attribute],
        generics: &Generics,
        after: &str,
    ) {
        self.item.kind = kind;
        let mut derived = BTreeSet::new();
        for attribute in attributes.iter().filter(|it| it.path().is_ident("derive")) {
            attribute
                .parse_nested_meta(|it| {
                    derived.insert(it.path.segments.last().unwrap().ident.to_string());
                    Ok(())
                })
                .unwrap();
        }
        let (params, wanted) = self.generics(&[], generics);
        self.line(attributes, format!("pub {kind} {}{params}{after}{wanted}", self.path));
        if !derived.is_empty() {
            let derived = Vec::from_iter(derived).join(", ");
            self.item.lines.push(format!("derive {derived} for {}", self.path));
        }
    }

    fn fields(&mut self, path: &str, generics: &Generics, fields: &Fields, are_public: bool) {
        for (at, field) in fields.iter().enumerate() {
            let is_public = are_public || matches!(field.vis, Visibility::Public(_));
            if !is_public || is_hidden(&field.attrs) {
                continue;
            }
            let name = field.ident.as_ref().map_or_else(|| at.to_string(), ToString::to_string);
            let of = self.type_text(&[generics], &field.ty);
            self.line(&field.attrs, format!("pub {path}::{name}: {of}"));
            if !are_public {
                self.item.fields.push(name);
            }
        }
    }

    /// A function as one line, without its body.
    fn signature(&mut self, around: &[&Generics], path: &str, it: &Signature) -> String {
        let mut code = it.clone();
        // That an argument is changed is not seen from outside.
        for input in &mut code.inputs {
            match input {
                FnArg::Receiver(it) if it.reference.is_none() => it.mutability = None,
                FnArg::Typed(it) => {
                    if let Pat::Ident(name) = &mut *it.pat {
                        name.mutability = None;
                    }
                }
                FnArg::Receiver(_) => {}
            }
        }
        let all = [around, &[&it.generics]].concat();
        let code = self.named(&all, code, |namer, it| namer.visit_signature_mut(it));
        // The name is put in later, since it is a path.
        let code = text(&code).replacen(&format!("fn {}", it.ident), &format!("fn {path}"), 1);
        format!("pub {}", code.trim_end_matches(','))
    }

    fn method(
        &mut self,
        around: &[&Generics],
        attributes: &[Attribute],
        it: &Signature,
        after: &str,
    ) {
        let path = format!("{}::{}", self.path, it.ident);
        let named =
            is_hidden(attributes).then(|| (self.item.unnamed.clone(), self.item.crates.clone()));
        let signature = self.signature(around, &path, it) + after;
        if let Some(named) = named {
            (self.item.unnamed, self.item.crates) = named;
            self.item.hidden.push(signature);
        } else {
            self.item.methods.insert(it.ident.to_string());
            self.item.method_docs.insert(it.ident.to_string(), docs(attributes));
            self.line(attributes, signature);
        }
    }

    fn trait_item(&mut self, around: &Generics, item: &TraitItem) {
        match item {
            TraitItem::Fn(it) => {
                let after = if it.default.is_some() { " { .. }" } else { ";" };
                self.method(&[around], &it.attrs, &it.sig, after);
            }
            TraitItem::Const(it) => {
                let of = self.type_text(&[around], &it.ty);
                self.line(&it.attrs, format!("pub const {}::{}: {of}", self.path, it.ident));
            }
            TraitItem::Type(it) => {
                let code = self.named(&[around, &it.generics], it.clone(), |namer, it| {
                    it.bounds.iter_mut().for_each(|it| namer.visit_type_param_bound_mut(it));
                });
                let bounds = text(&code.bounds);
                let bounds = if bounds.is_empty() { bounds } else { format!(": {bounds}") };
                self.line(&it.attrs, format!("pub type {}::{}{bounds}", self.path, it.ident));
            }
            _ => panic!("{} has what is not read", self.path),
        }
    }

    pub(super) fn implement(&mut self, block: &ItemImpl) {
        let around = [&block.generics];
        if let Some((not, path, _)) = &block.trait_ {
            assert!(not.is_none(), "{} is said not to be of a trait", self.path);
            let mut namer = self.namer.with(&around);
            let mut code = path.clone();
            namer.visit_path_mut(&mut code);
            // Nobody can name a trait that has no path.
            if namer.unnamed.is_empty() {
                let of = self.type_text(&around, &block.self_ty);
                let (params, wanted) = self.generics(&[], &block.generics);
                let mut types = String::new();
                for item in &block.items {
                    if let ImplItem::Type(it) = item {
                        let of = self.type_text(&around, &it.ty);
                        types.push_str(&format!(" {{ type {} = {of}; }}", it.ident));
                    }
                }
                let line = format!("impl{params} {} for {of}{wanted}{types}", text(code));
                self.line(&block.attrs, line);
            }
            return;
        }
        let mut lines = 0;
        for item in &block.items {
            match item {
                ImplItem::Fn(it) if matches!(it.vis, Visibility::Public(_)) => {
                    let attributes = [&block.attrs[..], &it.attrs].concat();
                    self.method(&around, &attributes, &it.sig, "");
                    lines += 1;
                }
                ImplItem::Const(it) if matches!(it.vis, Visibility::Public(_)) => {
                    let of = self.type_text(&around, &it.ty);
                    self.line(&it.attrs, format!("pub const {}::{}: {of}", self.path, it.ident));
                    lines += 1;
                }
                ImplItem::Fn(_) | ImplItem::Const(_) => {}
                ImplItem::Type(_) | ImplItem::Macro(_) | ImplItem::Verbatim(_) => {
                    panic!("{} has what is not read", self.path)
                }
                _ => panic!("{} has what is not read", self.path),
            }
        }
        let (params, wanted) = self.generics(&[], &block.generics);
        if lines != 0 && (params.contains(':') || !wanted.is_empty()) {
            let of = self.type_text(&around, &block.self_ty);
            self.line(&block.attrs, format!("impl{params} {of}{wanted}"));
        }
    }
}
