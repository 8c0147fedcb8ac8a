//! Overviews for users: what a server offers, and everything that an attached catalog has.

use vgi_transport::{Attachment, FunctionKind, Interrupt, Location, catalogs};
use vgi_wire::methods::{FunctionInfo, FunctionType};

use super::attached::AttachedCatalog;
use super::credentials::of_location;
use crate::bridge::{QueryInterrupt, ffi};
use crate::error::Error;
use crate::settings;

/// The rows of `vgi_catalogs(url)`: name, implementation version, data version, attach options.
pub fn offered(context: &ffi::ClientContext, location: &str) -> Result<Vec<[String; 4]>, Error> {
    let location = Location::parse(location)?;
    let options = of_location(context, &location)?.apply(settings::transport_options(context)?);
    let offered = catalogs(&location, &options, &QueryInterrupt(context))?;
    let row = |info: vgi_wire::methods::CatalogInfo| {
        let options: Vec<_> = info.attach_options.iter().map(|option| option.name.as_str()).collect();
        [
            info.name,
            info.implementation_version.unwrap_or_default(),
            info.data_version_spec.unwrap_or_default(),
            options.join(", "),
        ]
    };
    Ok(offered.into_iter().map(row).collect())
}

/// The rows of `vgi_catalog_contents(name)`: schema, name, kind, description.
pub fn contents(context: &ffi::ClientContext, catalog: &AttachedCatalog) -> Result<Vec<[String; 4]>, Error> {
    // when the server is asked anew for every statement, this is one
    catalog.stamp(context)?;
    catalog.ask(context, |attachment| rows(attachment, &QueryInterrupt(context)))
}

fn rows(attachment: &Attachment, interrupt: &dyn Interrupt) -> Result<Vec<[String; 4]>, vgi_transport::Error> {
    let mut rows = Vec::new();
    for schema in attachment.schemas(interrupt)?.iter() {
        let path = &schema.path;
        let mut add = |name: &str, kind: &str, comment: &str| {
            rows.push([path.join("."), name.to_owned(), kind.to_owned(), comment.to_owned()]);
        };
        for kind in FunctionKind::ALL {
            for function in &attachment.list_functions(path, kind, interrupt)?.functions {
                add(&function.name, kind_of(function), &function.description);
            }
        }
        for (kind, objects) in
            [("table", attachment.list_tables(path, interrupt)?), ("index", attachment.list_indexes(path, interrupt)?)]
        {
            for object in objects.iter() {
                add(&object.name, kind, object.comment.as_deref().unwrap_or_default());
            }
        }
        for view in attachment.list_views(path, interrupt)?.iter() {
            add(&view.name, "view", view.comment.as_deref().unwrap_or_default());
        }
        for item in attachment.list_macros(path, interrupt)?.iter() {
            let kind = if item.table { "table macro" } else { "macro" };
            add(&item.name, kind, item.comment.as_deref().unwrap_or_default());
        }
    }
    Ok(rows)
}

fn kind_of(function: &FunctionInfo) -> &'static str {
    match function.function_type {
        FunctionType::TableBuffering => "buffering function",
        FunctionType::Table => "table function",
        FunctionType::Scalar => "scalar function",
        FunctionType::Aggregate => "aggregate function",
        FunctionType::Other => "function",
    }
}
