//! Which functions a schema has. The protocol has no lookup of a single function, so listings are fetched and kept.

use std::sync::Arc;

use bytes::Bytes;
use vgi_wire::methods::{FunctionInfo, Method, SchemaInfo, contents_body, items, schemas_body};

use crate::attachment::{Attachment, is_outdated};
use crate::error::{Error, ErrorKind, Fault, Phase, Scope};
use crate::interrupt::Interrupt;
use crate::near::near;
use crate::runtime::lock;

/// Buffering functions are listed among the table functions.
pub(crate) const KIND: &str = "TABLE_FUNCTION";
/// How many other schemas are searched for a function that is not where it was looked for.
const SEARCHED_SCHEMAS: usize = 16;
/// How many names a message lists.
const LISTED_NAMES: usize = 20;

/// The functions of one schema.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) functions: Vec<FunctionInfo>,
    /// Entries that could not be read.
    unreadable: usize,
}

impl Listing {
    fn named(&self, name: &str) -> Vec<FunctionInfo> {
        self.functions.iter().filter(|function| function.name == name).cloned().collect()
    }
}

impl Attachment {
    /// The functions of that name in a schema (dotted when nested; the catalog's default schema when `None`). Usually one; overloads are
    /// several. Listings are cached, but a name that is not in a cached one is looked for anew.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] names the known schemas, or similar functions and other schemas that have one of that name.
    pub fn functions(
        &self,
        schema: Option<&str>,
        name: &str,
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<FunctionInfo>, Error> {
        match self.functions_once(schema, name, interrupt) {
            Err(error) if is_outdated(&error) => self.renewed(interrupt)?.functions_once(schema, name, interrupt),
            other => other,
        }
    }

    fn functions_once(
        &self,
        schema: Option<&str>,
        name: &str,
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<FunctionInfo>, Error> {
        let schema = schema.unwrap_or(self.default_schema());
        let path: Vec<String> = schema.split('.').map(str::to_owned).collect();
        let scope = self.peer.scope(Phase::Discover).for_function(name);
        let cached = self.session.cached(&path, KIND);
        let found = cached.map(|listing| listing.named(name)).unwrap_or_default();
        if !found.is_empty() {
            return Ok(found);
        }
        let listing = match self.fetch_listing(&path, KIND, &scope, interrupt) {
            Ok(listing) => listing,
            Err(error) if error.kind() == ErrorKind::Remote && !is_outdated(&error) => {
                return Err(self.unknown_schema(schema, &path, &scope, interrupt).unwrap_or(error));
            }
            Err(error) => return Err(error),
        };
        let found = listing.named(name);
        if found.is_empty() { Err(self.not_found(schema, &path, name, &listing, &scope, interrupt)) } else { Ok(found) }
    }

    /// Fetches a listing and keeps it.
    pub(crate) fn fetch_listing(
        &self,
        path: &[String],
        kind: &'static str,
        scope: &Scope,
        interrupt: &dyn Interrupt,
    ) -> Result<Arc<Listing>, Error> {
        let items = self.contents(Method::SchemaFunctions, path, Some(kind), scope, interrupt)?;
        let total = items.len();
        // one entry of a newer kind must not hide the others
        let functions: Vec<_> = items.into_iter().filter_map(|item| FunctionInfo::from_blob(item).ok()).collect();
        let listing = Arc::new(Listing { unreadable: total - functions.len(), functions });
        lock(&self.session.listings).insert((path.to_vec(), kind), Arc::clone(&listing));
        Ok(listing)
    }

    /// The records of one listing of a schema.
    pub(crate) fn contents(
        &self,
        method: Method,
        path: &[String],
        kind: Option<&str>,
        scope: &Scope,
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<Bytes>, Error> {
        let dialect = self.dialect();
        let body = contents_body(dialect, method, &self.opaque_data(), path, kind, None);
        let reply =
            self.peer.call(scope, &dialect.path(method), body.map_err(|error| scope.error(error))?, interrupt)?;
        items(&reply).map_err(|error| scope.error(error))
    }

    pub(crate) fn fetch_schemas(&self, scope: &Scope, interrupt: &dyn Interrupt) -> Result<Vec<SchemaInfo>, Error> {
        let dialect = self.dialect();
        let body = schemas_body(dialect, &self.opaque_data(), None).map_err(|error| scope.error(error))?;
        let reply = self.peer.call(scope, &dialect.path(Method::CatalogSchemas), body, interrupt)?;
        let items = items(&reply).map_err(|error| scope.error(error))?;
        Ok(items.into_iter().filter_map(|item| SchemaInfo::from_blob(item).ok()).collect())
    }

    fn schema_paths(&self, scope: &Scope, interrupt: &dyn Interrupt) -> Result<Vec<Vec<String>>, Error> {
        Ok(self.fetch_schemas(scope, interrupt)?.into_iter().map(|info| info.path).collect())
    }

    /// The error for a schema that does not exist; `None` when it does, or when the server does not tell.
    fn unknown_schema(&self, schema: &str, path: &[String], scope: &Scope, interrupt: &dyn Interrupt) -> Option<Error> {
        let known = self.schema_paths(scope, interrupt).ok()?;
        if known.iter().any(|known| known == path) {
            return None;
        }
        let names: Vec<_> = known.iter().map(|path| path.join(".")).collect();
        let message =
            format!("schema '{schema}' does not exist in catalog '{}'; it has {}", self.catalog(), name_list(&names));
        Some(scope.error(Fault::new(ErrorKind::NotFound, message)))
    }

    fn not_found(
        &self,
        schema: &str,
        path: &[String],
        name: &str,
        listing: &Listing,
        scope: &Scope,
        interrupt: &dyn Interrupt,
    ) -> Error {
        if listing.functions.is_empty()
            && let Some(error) = self.unknown_schema(schema, path, scope, interrupt)
        {
            return error;
        }
        let mut message =
            format!("function '{name}' does not exist in schema '{schema}' of catalog '{}'", self.catalog());
        let similar = near(name, listing.functions.iter().map(|function| function.name.as_str()));
        if !similar.is_empty() {
            message.push_str("; similar: ");
            message.push_str(&name_list(&similar));
        }
        let elsewhere = self.elsewhere(path, name, scope, interrupt);
        if !elsewhere.is_empty() {
            message.push_str("; there is one in schema ");
            message.push_str(&name_list(&elsewhere));
        }
        if listing.unreadable > 0 {
            message.push_str("; some entries of the server's listing could not be read");
        }
        scope.error(Fault::new(ErrorKind::NotFound, message))
    }

    /// Other schemas with a function of that name. A help for the message, so failures mean none.
    fn elsewhere(&self, path: &[String], name: &str, scope: &Scope, interrupt: &dyn Interrupt) -> Vec<String> {
        let schemas = self.schema_paths(scope, interrupt).unwrap_or_default();
        let others = schemas.into_iter().filter(|other| other != path).take(SEARCHED_SCHEMAS);
        let having = others.filter(|other| {
            let cached = self.session.cached(other, KIND);
            let listing = cached.map_or_else(|| self.fetch_listing(other, KIND, scope, interrupt), Ok);
            listing.is_ok_and(|listing| !listing.named(name).is_empty())
        });
        having.map(|other| other.join(".")).collect()
    }
}

/// Names for a message: sorted, quoted, not too many.
pub(crate) fn name_list(names: &[String]) -> String {
    let mut names: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
    if names.is_empty() {
        return "none".to_owned();
    }
    names.sort_unstable();
    names.dedup();
    let more = names.len().saturating_sub(LISTED_NAMES);
    names.truncate(LISTED_NAMES);
    let listed = names.join(", ");
    if more > 0 { format!("{listed} and {more} more") } else { listed }
}
