//! What a server and an attached catalog offer, for listings.

use std::sync::Arc;

use vgi_wire::methods::{CatalogInfo, FunctionInfo, Method, SchemaInfo, SqlInfo, item_name};

use crate::attachment::Attachment;
use crate::contact::contact;
use crate::error::{Error, Phase};
use crate::interrupt::Interrupt;
use crate::location::Location;
use crate::lookup::KIND;
use crate::options::Options;
use crate::runtime::lock;
use crate::session::fetch_catalogs;

/// The catalogs of a server. Needs no attachment.
///
/// # Errors
/// What first contact gives.
pub fn catalogs(location: &Location, options: &Options, interrupt: &dyn Interrupt) -> Result<Vec<CatalogInfo>, Error> {
    let (peer, dialect) = contact(location, options, interrupt)?;
    fetch_catalogs(&peer, &dialect, interrupt)
}

/// Kinds of functions that the protocol lists apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// Those that give a table; buffering ones are among them.
    Table,
    /// Those that give a value for each row.
    Scalar,
    /// Those that give a value for many rows.
    Aggregate,
}

impl FunctionKind {
    fn name(self) -> &'static str {
        match self {
            Self::Table => KIND,
            Self::Scalar => "SCALAR_FUNCTION",
            Self::Aggregate => "AGGREGATE_FUNCTION",
        }
    }
}

impl Attachment {
    /// Forgets what the server listed: it is asked again when it is needed.
    pub fn forget_listings(&self) {
        lock(&self.session.listings).clear();
        *lock(&self.session.schemas) = None;
    }

    /// The catalog's schemas; fetched once per attachment.
    ///
    /// # Errors
    /// The server's refusal, or why it cannot be asked.
    pub fn schemas(&self, interrupt: &dyn Interrupt) -> Result<Arc<Vec<SchemaInfo>>, Error> {
        if let Some(schemas) = lock(&self.session.schemas).clone() {
            return Ok(schemas);
        }
        let schemas = Arc::new(self.fetch_schemas(&self.peer.scope(Phase::Discover), interrupt)?);
        *lock(&self.session.schemas) = Some(Arc::clone(&schemas));
        Ok(schemas)
    }

    /// The functions of a schema; fetched once per attachment.
    ///
    /// # Errors
    /// The server's refusal, or why it cannot be asked.
    pub fn list_functions(
        &self,
        path: &[String],
        kind: FunctionKind,
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<FunctionInfo>, Error> {
        let listing = match self.session.cached(path, kind.name()) {
            Some(listing) => listing,
            None => self.fetch_listing(path, kind.name(), &self.peer.scope(Phase::Discover), interrupt)?,
        };
        Ok(listing.functions.clone())
    }

    /// The views of a schema.
    ///
    /// # Errors
    /// The server's refusal, or why it cannot be asked.
    pub fn list_views(&self, path: &[String], interrupt: &dyn Interrupt) -> Result<Vec<SqlInfo>, Error> {
        self.list_sql(Method::SchemaViews, path, None, interrupt)
    }

    /// The macros of a schema, scalar and table ones.
    ///
    /// # Errors
    /// The server's refusal, or why it cannot be asked.
    pub fn list_macros(&self, path: &[String], interrupt: &dyn Interrupt) -> Result<Vec<SqlInfo>, Error> {
        let mut macros = self.list_sql(Method::SchemaMacros, path, Some("SCALAR_MACRO"), interrupt)?;
        macros.extend(self.list_sql(Method::SchemaMacros, path, Some("TABLE_MACRO"), interrupt)?);
        Ok(macros)
    }

    /// Names and comments of the tables of a schema.
    ///
    /// # Errors
    /// The server's refusal, or why it cannot be asked.
    pub fn list_tables(
        &self,
        path: &[String],
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<(String, Option<String>)>, Error> {
        let items = self.contents(Method::SchemaTables, path, None, &self.peer.scope(Phase::Discover), interrupt)?;
        Ok(items.into_iter().filter_map(|item| item_name(item).ok()).collect())
    }

    fn list_sql(
        &self,
        method: Method,
        path: &[String],
        kind: Option<&str>,
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<SqlInfo>, Error> {
        let items = self.contents(method, path, kind, &self.peer.scope(Phase::Discover), interrupt)?;
        // one entry of a newer kind must not hide the others
        Ok(items.into_iter().filter_map(|item| SqlInfo::from_blob(item).ok()).collect())
    }
}
