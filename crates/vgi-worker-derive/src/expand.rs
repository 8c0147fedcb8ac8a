//! The implementation that is generated.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Expr, Fields, Lit, RangeLimits, Result, UnOp};

use crate::check;
use crate::field::ArgField;

/// `impl Args` for a struct.
pub(crate) fn args(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(input.ident.span(), "Args is derived for a struct: one field for each argument"));
    };
    let Fields::Named(named) = &data.fields else {
        return Err(Error::new(
            input.ident.span(),
            "Args is derived for a struct with named fields; a function without arguments has `type Args = ()`",
        ));
    };
    let fields = named.named.iter().map(ArgField::of).collect::<Result<Vec<_>>>()?;
    check::fields(&fields)?;
    let declared = fields.iter().map(declare).collect::<Result<Vec<_>>>()?;
    let parsed = fields.iter().map(parse);
    let ident = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #generics ::vgi_worker::Args for #ident #arguments #bounds {
            fn declare() -> ::std::vec::Vec<::vgi_worker::Argument> {
                let mut declared = ::std::vec::Vec::new();
                #(#declared)*
                declared
            }

            fn parse(values: &::vgi_worker::Arguments) -> ::vgi_worker::Result<Self> {
                ::std::result::Result::Ok(Self { #(#parsed),* })
            }
        }
    })
}

fn declare(field: &ArgField<'_>) -> Result<TokenStream> {
    let (data_type, settings, name) = (field.data_type, &field.settings, field.name());
    let span = data_type.span();
    if settings.flatten.is_some() {
        return Ok(quote_spanned!(span=> declared.extend(<#data_type as ::vgi_worker::Args>::declare());));
    }
    let doc = settings.doc.as_ref().map_or_else(String::new, syn::LitStr::value);
    let argument = quote!(::vgi_worker::Argument);
    let default = match &settings.default {
        Some(default) if settings.varargs.is_none() => Some(value(default)?),
        Some(_) => Some(quote!(::vgi_worker::DefaultValue::Nothing)),
        None if field.is_optional() => Some(quote!(::vgi_worker::DefaultValue::Null)),
        None => None,
    };
    let mut made = match (field.item(), &default) {
        (Some(_), _) if settings.any.is_some() => quote!(#argument::any_varargs(#name, #doc)),
        (Some(item), _) if settings.varargs.is_some() => {
            quote_spanned!(span=> #argument::varargs::<#item>(#name, #doc))
        }
        (_, Some(default)) if settings.named.is_some() => {
            quote_spanned!(span=> #argument::named::<#data_type>(#name, #default, #doc))
        }
        _ => quote_spanned!(span=> #argument::positional::<#data_type>(#name, #doc)),
    };
    if let (Some(default), None) = (&default, settings.named) {
        made = quote!(#made.or(#default));
    }
    if let Some(choices) = &settings.choices {
        let choices = choices.elems.iter().map(value).collect::<Result<Vec<_>>>()?;
        made = quote!(#made.choices([#(#choices),*]));
    }
    if let Some(range) = &settings.range {
        let bound = |bound: &Option<Box<Expr>>, closed: bool| match bound.as_deref().map(value) {
            None => Ok(quote!(::std::ops::Bound::Unbounded)),
            Some(limit) if closed => limit.map(|limit| quote!(::std::ops::Bound::Included(#limit))),
            Some(limit) => limit.map(|limit| quote!(::std::ops::Bound::Excluded(#limit))),
        };
        let start = bound(&range.start, true)?;
        let end = bound(&range.end, matches!(range.limits, RangeLimits::Closed(_)))?;
        made = quote!(#made.range((#start, #end)));
    }
    if let Some(pattern) = &settings.pattern {
        made = quote!(#made.pattern(#pattern));
    }
    Ok(quote!(declared.push(#made);))
}

fn parse(field: &ArgField<'_>) -> TokenStream {
    let (ident, data_type, name) = (&field.ident, field.data_type, field.name());
    let span = data_type.span();
    match field.item() {
        _ if field.settings.flatten.is_some() => {
            quote_spanned!(span=> #ident: <#data_type as ::vgi_worker::Args>::parse(values)?)
        }
        Some(item) if field.settings.varargs.is_some() => quote_spanned!(span=> #ident: values.many::<#item>(#name)?),
        _ => quote_spanned!(span=> #ident: values.get::<#data_type>(#name)?),
    }
}

/// A literal, a list of such, or anything that can be turned into a default.
fn value(expression: &Expr) -> Result<TokenStream> {
    let made = quote!(::vgi_worker::DefaultValue);
    let literal = |literal: &Lit| match literal {
        Lit::Bool(_) => Some(quote!(#made::Bool(#expression))),
        Lit::Int(_) => Some(quote!(#made::Integer(#expression))),
        Lit::Float(_) => Some(quote!(#made::Double(#expression))),
        Lit::Str(_) => Some(quote!(#made::Text(#expression))),
        _ => None,
    };
    match expression {
        Expr::Lit(plain) => literal(&plain.lit)
            .ok_or_else(|| Error::new(plain.span(), "only numbers, texts, true and false are values here")),
        Expr::Unary(negative) if matches!(negative.op, UnOp::Neg(_)) => match &*negative.expr {
            Expr::Lit(plain) => literal(&plain.lit).ok_or_else(|| Error::new(plain.span(), "only numbers have a sign")),
            _ => Ok(quote!(#made::from(#expression))),
        },
        Expr::Array(list) => {
            let items = list.elems.iter().map(value).collect::<Result<Vec<_>>>()?;
            Ok(quote!(#made::List(::std::vec![#(#items),*])))
        }
        _ => Ok(quote!(#made::from(#expression))),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
