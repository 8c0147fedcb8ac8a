//! What stands in `#[arg(…)]`.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprArray, ExprLit, ExprRange, Field, Lit, LitStr, Meta, Result};

/// The settings of one field, with the places where they stand.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) name: Option<LitStr>,
    pub(crate) doc: Option<LitStr>,
    pub(crate) named: Option<Span>,
    pub(crate) varargs: Option<Span>,
    pub(crate) any: Option<Span>,
    pub(crate) flatten: Option<Span>,
    pub(crate) default: Option<Expr>,
    pub(crate) choices: Option<ExprArray>,
    pub(crate) range: Option<ExprRange>,
    pub(crate) pattern: Option<LitStr>,
}

impl Settings {
    /// Reads every `#[arg]` of a field. Without `doc`, the field's own documentation describes the argument.
    pub(crate) fn of(field: &Field) -> Result<Self> {
        let mut settings = Self::default();
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("arg")) {
            attribute.parse_nested_meta(|meta| settings.read(&meta))?;
        }
        if settings.doc.is_none() {
            settings.doc = documentation(&field.attrs);
        }
        Ok(settings)
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let key = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        let span = meta.path.span();
        match key.as_str() {
            "name" => once(&mut self.name, span, "name", meta.value()?.parse()?),
            "doc" => once(&mut self.doc, span, "doc", meta.value()?.parse()?),
            "named" => once(&mut self.named, span, "named", span),
            "varargs" => once(&mut self.varargs, span, "varargs", span),
            "any" => once(&mut self.any, span, "any", span),
            "flatten" => once(&mut self.flatten, span, "flatten", span),
            "default" => once(&mut self.default, span, "default", meta.value()?.parse()?),
            "choices" => match meta.value()?.parse()? {
                Expr::Array(choices) => once(&mut self.choices, span, "choices", choices),
                other => Err(Error::new(other.span(), "`choices` is a list: choices = [\"a\", \"b\"]")),
            },
            "range" => match meta.value()?.parse()? {
                Expr::Range(range) => once(&mut self.range, span, "range", range),
                other => Err(Error::new(other.span(), "`range` is a range of numbers: range = 0..=100")),
            },
            "pattern" => once(&mut self.pattern, span, "pattern", meta.value()?.parse()?),
            _ => Err(Error::new(
                span,
                "unknown setting; there are name, doc, named, varargs, any, flatten, default, choices, range and pattern",
            )),
        }
    }
}

fn once<T>(place: &mut Option<T>, span: Span, key: &str, value: T) -> Result<()> {
    if place.replace(value).is_some() {
        return Err(Error::new(span, format!("`{key}` is given twice")));
    }
    Ok(())
}

/// The lines of `///`, joined.
fn documentation(attributes: &[Attribute]) -> Option<LitStr> {
    let mut text: Option<LitStr> = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        let Meta::NameValue(meta) = &attribute.meta else { continue };
        let Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) = &meta.value else { continue };
        let before = text.map_or_else(String::new, |text| text.value() + " ");
        text = Some(LitStr::new((before + line.value().trim()).trim(), line.span()));
    }
    text
}
