//! Declarations that nobody could call are errors where they stand.
//!
//! What only values can tell, such as a default outside of its range, is refused when the function is registered.

use proc_macro2::Span;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Error, Expr, Lit, Result, Type};

use crate::field::ArgField;

/// Checks each field, and the order of all.
pub(crate) fn fields(fields: &[ArgField<'_>]) -> Result<()> {
    let mut errors: Option<Error> = None;
    let mut collect = |error: Error| match &mut errors {
        Some(errors) => errors.combine(error),
        None => errors = Some(error),
    };
    for field in fields {
        one(field).unwrap_or_else(&mut collect);
    }
    order(fields).unwrap_or_else(&mut collect);
    errors.map_or(Ok(()), Err)
}

fn one(field: &ArgField<'_>) -> Result<()> {
    let settings = &field.settings;
    let refuse = |span: Span, reason: &str| Err(Error::new(span, reason));
    if let Some(span) = settings.flatten {
        let alone = settings.name.is_none()
            && settings.default.is_none()
            && settings.choices.is_none()
            && settings.range.is_none()
            && settings.pattern.is_none()
            && settings.named.or(settings.varargs).or(settings.any).is_none();
        return if alone {
            Ok(())
        } else {
            refuse(span, "`flatten` takes the arguments of another struct as they are, and no other setting")
        };
    }
    if let (Some(_), Some(span)) = (settings.named, settings.varargs) {
        return refuse(span, "an argument that repeats is positional: it cannot be `named`");
    }
    if settings.varargs.is_some() && field.item().is_none() {
        return refuse(field.data_type.span(), "an argument that repeats is read into a `Vec`");
    }
    if let (Some(span), None) = (settings.any, settings.varargs) {
        return refuse(span, "`any` stands with `varargs` alone: single values and lists of them are accepted then");
    }
    if let (true, Some(default)) = (field.is_optional(), &settings.default) {
        return refuse(
            default.span(),
            "an `Option` is `None` when it is not given; with a default it need not be an `Option`",
        );
    }
    if let (Some(span), None, false) = (settings.named, &settings.default, field.is_optional()) {
        return refuse(span, "a named argument may be left out: give it a `default`, or make it an `Option`");
    }
    if let (Some(_), Some(default)) = (settings.varargs, &settings.default)
        && !matches!(default, Expr::Array(list) if list.elems.is_empty())
    {
        return refuse(default.span(), "an argument that repeats has no other default than `[]`, which is none at all");
    }
    literals(field)
}

/// Literals must fit the field's type where that is one of the known ones.
fn literals(field: &ArgField<'_>) -> Result<()> {
    let Some(kind) = Kind::of(field.value_type()) else { return Ok(()) };
    let settings = &field.settings;
    if let Some(default) = &settings.default {
        match default {
            Expr::Array(list) if field.item().is_some() => list.elems.iter().try_for_each(|item| kind.check(item))?,
            Expr::Lit(literal) if field.item().is_some() => {
                return Err(Error::new(literal.span(), "the default of a list is a list: default = [1, 2]"));
            }
            other => kind.check(other)?,
        }
    }
    for choice in settings.choices.iter().flat_map(|choices| &choices.elems) {
        kind.check(choice)?;
    }
    if let Some(range) = &settings.range {
        if !matches!(kind, Kind::Integer | Kind::Double) {
            return Err(Error::new(range.span(), "only numbers have a range"));
        }
        if range.start.is_none() && range.end.is_none() {
            return Err(Error::new(range.span(), "a range without bounds allows everything: leave it out"));
        }
        range.start.iter().chain(&range.end).try_for_each(|bound| kind.check(bound))?;
    }
    match &settings.pattern {
        Some(pattern) if kind != Kind::Text => Err(Error::new(pattern.span(), "only texts have a pattern")),
        _ => Ok(()),
    }
}

/// Positional arguments stand before named ones, required ones before optional ones, and one that repeats stands last of them.
fn order(fields: &[ArgField<'_>]) -> Result<()> {
    let (mut named, mut repeats, mut optional) = (false, false, false);
    let mut seen = Vec::new();
    for field in fields.iter().filter(|field| field.settings.flatten.is_none()) {
        let (settings, span) = (&field.settings, field.ident.span());
        let name = field.name().value();
        if seen.contains(&name) {
            return Err(Error::new(field.name().span(), format!("the argument `{name}` is declared twice")));
        }
        seen.push(name);
        if settings.named.is_some() {
            named = true;
            continue;
        }
        if named {
            return Err(Error::new(span, "a positional argument stands before all named ones"));
        }
        if repeats {
            return Err(Error::new(span, "nothing positional can follow an argument that repeats"));
        }
        let can_be_left_out = settings.default.is_some() || field.is_optional();
        if optional && !can_be_left_out {
            return Err(Error::new(span, "a required argument stands before those that may be left out"));
        }
        optional |= can_be_left_out;
        repeats |= settings.varargs.is_some();
    }
    Ok(())
}

/// What the known types hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    Integer,
    Double,
    Text,
}

impl Kind {
    fn of(data_type: &Type) -> Option<Self> {
        match data_type.to_token_stream().to_string().as_str() {
            "bool" => Some(Self::Bool),
            "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "usize" => Some(Self::Integer),
            "f32" | "f64" => Some(Self::Double),
            "String" => Some(Self::Text),
            _ => None,
        }
    }

    /// Constants and the like are left to the compiler.
    fn check(self, value: &Expr) -> Result<()> {
        let plain = match value {
            Expr::Unary(negative) if matches!(self, Self::Integer | Self::Double) => &negative.expr,
            other => other,
        };
        let Expr::Lit(literal) = plain else { return Ok(()) };
        let (fits, wanted) = match self {
            Self::Bool => (matches!(literal.lit, Lit::Bool(_)), "true or false"),
            Self::Integer => (matches!(literal.lit, Lit::Int(_)), "an integer"),
            Self::Double => (matches!(literal.lit, Lit::Int(_) | Lit::Float(_)), "a number"),
            Self::Text => (matches!(literal.lit, Lit::Str(_)), "a text"),
        };
        if fits { Ok(()) } else { Err(Error::new(value.span(), format!("the field's type wants {wanted} here"))) }
    }
}
