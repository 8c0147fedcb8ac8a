//! Overviews for users: what a server offers, and everything that an attached catalog has.

use std::sync::Arc;

use vgi_transport::{Attachment, FunctionKind, Location, catalogs};
use vgi_wire::methods::FunctionType;

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
    let attachment = catalog.attachment(context, &Arc::default())?;
    let mut rows = Vec::new();
    for (schema, _) in catalog.list_schemas(context)? {
        let path = super::attached::path(&schema);
        let mut add =
            |name: String, kind: &str, comment: String| rows.push([schema.clone(), name, kind.to_owned(), comment]);
        functions(context, &attachment, &path, &mut add)?;
        for (name, comment) in attachment.list_tables(&path, &QueryInterrupt(context))? {
            add(name, "table", comment.unwrap_or_default());
        }
        for view in attachment.list_views(&path, &QueryInterrupt(context))? {
            add(view.name, "view", view.comment.unwrap_or_default());
        }
        for item in attachment.list_macros(&path, &QueryInterrupt(context))? {
            add(item.name, if item.table { "table macro" } else { "macro" }, item.comment.unwrap_or_default());
        }
    }
    Ok(rows)
}

fn functions(
    context: &ffi::ClientContext,
    attachment: &Arc<Attachment>,
    path: &[String],
    add: &mut impl FnMut(String, &str, String),
) -> Result<(), Error> {
    for kind in [FunctionKind::Table, FunctionKind::Scalar, FunctionKind::Aggregate] {
        for function in attachment.list_functions(path, kind, &QueryInterrupt(context))? {
            let kind = match function.function_type {
                FunctionType::TableBuffering => "buffering function",
                FunctionType::Table => "table function",
                FunctionType::Scalar => "scalar function",
                FunctionType::Aggregate => "aggregate function",
                FunctionType::Other => "function",
            };
            add(function.name, kind, function.description);
        }
    }
    Ok(())
}
