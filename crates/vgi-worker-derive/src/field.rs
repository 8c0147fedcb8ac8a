//! A field as the argument that it declares.

use quote::format_ident;
use syn::ext::IdentExt;
use syn::{Field, GenericArgument, Ident, LitStr, PathArguments, Result, Type};

use crate::attribute::Settings;

/// One field of the struct.
pub(crate) struct ArgField<'a> {
    pub(crate) ident: Ident,
    pub(crate) data_type: &'a Type,
    pub(crate) settings: Settings,
}

impl<'a> ArgField<'a> {
    pub(crate) fn of(field: &'a Field) -> Result<Self> {
        let ident = field.ident.clone().unwrap_or_else(|| format_ident!("unnamed"));
        Ok(Self { ident, data_type: &field.ty, settings: Settings::of(field)? })
    }

    /// The argument's name: the given one, or the field's.
    pub(crate) fn name(&self) -> LitStr {
        let own = || LitStr::new(&self.ident.unraw().to_string(), self.ident.span());
        self.settings.name.clone().unwrap_or_else(own)
    }

    pub(crate) fn is_optional(&self) -> bool {
        inner(self.data_type, "Option").is_some()
    }

    /// The items' type of a `Vec`.
    pub(crate) fn item(&self) -> Option<&'a Type> {
        inner(self.data_type, "Vec")
    }

    /// The type of one value: what stands in `Option` and `Vec`, if these are there.
    pub(crate) fn value_type(&self) -> &'a Type {
        let mut found = self.data_type;
        while let Some(inside) = inner(found, "Option").or_else(|| inner(found, "Vec")) {
            found = inside;
        }
        found
    }
}

/// `T` of `Wrapper<T>`, however the path to the wrapper is written.
fn inner<'a>(data_type: &'a Type, wrapper: &str) -> Option<&'a Type> {
    let Type::Path(path) = data_type else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == wrapper)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(inside)) => Some(inside),
        _ => None,
    }
}
