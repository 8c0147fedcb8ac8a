//! Which functions a schema has. The protocol has no lookup of a single function, so listings are fetched and kept.

use vgi_wire::methods::FunctionInfo;

use crate::attachment::Attachment;
use crate::error::{Error, ErrorKind, Fault, Phase, Scope};
use crate::interrupt::Interrupt;
use crate::listings::{FunctionKind, Listing};
use crate::near::near;

/// Buffering functions are listed among the table functions.
const KIND: FunctionKind = FunctionKind::Table;
/// How many other schemas are searched for a function that is not where it was looked for.
const SEARCHED_SCHEMAS: usize = 16;
/// How many names a message lists.
const LISTED_NAMES: usize = 20;

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
        let schema = schema.unwrap_or(self.default_schema());
        let path = self.path_of(schema);
        let scope = self.peer.scope(Phase::Discover).for_function(name);
        let found = self.known_functions(&path, name);
        if !found.is_empty() {
            return Ok(found);
        }
        if self.session.listings.find(|known| known.functions.get(&(path.clone(), KIND)).cloned()).is_some() {
            self.forget_listings();
        }
        let listing = match self.listing(&path, KIND, &scope, interrupt) {
            Ok(listing) => listing,
            Err(error) if error.kind() == ErrorKind::Remote && !error.is_outdated() => {
                return Err(self.unknown_schema(schema, &path, &scope, interrupt).unwrap_or(error));
            }
            Err(error) => return Err(error),
        };
        let found = listing.named(name);
        if found.is_empty() { Err(self.not_found(schema, &path, name, &listing, &scope, interrupt)) } else { Ok(found) }
    }

    /// Those of that name that were listed before.
    pub(crate) fn known_functions(&self, path: &[String], name: &str) -> Vec<FunctionInfo> {
        let place = (path.to_vec(), KIND);
        let listing = self.session.listings.find(|known| known.functions.get(&place).cloned());
        listing.map(|listing| listing.named(name)).unwrap_or_default()
    }

    /// The path of a schema by its dotted name, in which a part may have dots of its own.
    pub fn path_of(&self, schema: &str) -> Vec<String> {
        let known = self.session.listings.find(|known| known.schemas.clone()).unwrap_or_default();
        let path = known.iter().map(|info| &info.path).find(|path| path.join(".") == schema);
        path.cloned().unwrap_or_else(|| schema.split('.').map(str::to_owned).collect())
    }

    fn schema_paths(&self, interrupt: &dyn Interrupt) -> Result<Vec<Vec<String>>, Error> {
        Ok(self.schemas(interrupt)?.iter().map(|info| info.path.clone()).collect())
    }

    /// The error for a schema that does not exist; `None` when it does, or when the server does not tell.
    fn unknown_schema(&self, schema: &str, path: &[String], scope: &Scope, interrupt: &dyn Interrupt) -> Option<Error> {
        let known = self.schema_paths(interrupt).ok()?;
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
        let schemas = self.schema_paths(interrupt).unwrap_or_default();
        let others = schemas.into_iter().filter(|other| other != path).take(SEARCHED_SCHEMAS);
        let having = others.filter(|other| {
            let listing = self.listing(other, KIND, scope, interrupt);
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
