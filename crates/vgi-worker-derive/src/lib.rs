//! `#[derive(Args)]` for the functions of `vgi-worker`, which re-exports and documents it.
#![forbid(unsafe_code)]

mod attribute;
mod check;
mod expand;
mod field;

use proc_macro::TokenStream;

/// Reads the arguments of a function into a struct. The documentation is that of `vgi_worker::Args`.
#[proc_macro_derive(Args, attributes(arg))]
pub fn derive_args(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::args(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
