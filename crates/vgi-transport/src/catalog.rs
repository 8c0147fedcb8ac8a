//! What a server and an attached catalog offer, for listings.
//!
//! A server that offers `catalog_contents` is asked for everything at once; any other, and one that fails at it, schema by schema.

use std::sync::Arc;

use bytes::Bytes;
use vgi_wire::methods::{
    CatalogContents, CatalogInfo, FunctionInfo, Method, ObjectInfo, SchemaInfo, SqlInfo, catalog_contents_body,
    contents_body, items, schemas_body,
};

use crate::attachment::Attachment;
use crate::contact::contact;
use crate::error::{Error, ErrorKind, Phase, Scope};
use crate::interrupt::Interrupt;
use crate::listings::{FunctionKind, Listing};
use crate::location::Location;
use crate::options::Options;
use crate::session::fetch_catalogs;

/// The catalogs of a server. Needs no attachment.
///
/// # Errors
/// What first contact gives.
pub fn catalogs(location: &Location, options: &Options, interrupt: &dyn Interrupt) -> Result<Vec<CatalogInfo>, Error> {
    let (peer, dialect) = contact(location, options, interrupt)?;
    fetch_catalogs(&peer, &dialect, interrupt)
}

impl Attachment {
    /// Forgets what the server listed: it is asked again when it is needed.
    pub fn forget_listings(&self) {
        self.session.listings.forget();
    }

    /// A number that is another one as soon as a listing that was read before may not be true any more.
    pub fn listing_stamp(&self) -> u64 {
        self.session.listings.stamp()
    }

    /// The catalog's schemas; fetched once per attachment.
    ///
    /// # Errors
    /// The server's refusal, or why it cannot be asked.
    pub fn schemas(&self, interrupt: &dyn Interrupt) -> Result<Arc<Vec<SchemaInfo>>, Error> {
        let scope = self.peer.scope(Phase::Discover);
        self.load_all(&scope, interrupt)?;
        if let Some(schemas) = self.session.listings.find(|known| known.schemas.clone()) {
            return Ok(schemas);
        }
        let schemas = Arc::new(self.fetch_schemas(&scope, interrupt)?);
        self.session.listings.keep(|known| known.schemas = Some(Arc::clone(&schemas)));
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
    ) -> Result<Arc<Listing>, Error> {
        self.listing(path, kind, &self.peer.scope(Phase::Discover), interrupt)
    }

    pub(crate) fn listing(
        &self,
        path: &[String],
        kind: FunctionKind,
        scope: &Scope,
        interrupt: &dyn Interrupt,
    ) -> Result<Arc<Listing>, Error> {
        self.load_all(scope, interrupt)?;
        let place = (path.to_vec(), kind);
        if let Some(listing) = self.session.listings.find(|known| known.functions.get(&place).cloned()) {
            return Ok(listing);
        }
        let items = self.contents(Method::SchemaFunctions, path, Some(kind.name()), scope, interrupt)?;
        let total = items.len();
        // one entry of a newer kind must not hide the others
        let functions: Vec<_> = items.into_iter().filter_map(|item| FunctionInfo::from_blob(item).ok()).collect();
        let listing = Arc::new(Listing { unreadable: total - functions.len(), functions });
        self.session.listings.keep(|known| drop(known.functions.insert(place, Arc::clone(&listing))));
        Ok(listing)
    }

    /// The views of a schema; fetched once per attachment.
    ///
    /// # Errors
    /// The server's refusal, or why it cannot be asked.
    pub fn list_views(&self, path: &[String], interrupt: &dyn Interrupt) -> Result<Arc<Vec<SqlInfo>>, Error> {
        let scope = self.peer.scope(Phase::Discover);
        self.load_all(&scope, interrupt)?;
        if let Some(views) = self.session.listings.find(|known| known.views.get(path).cloned()) {
            return Ok(views);
        }
        let views = self.contents(Method::SchemaViews, path, None, &scope, interrupt)?;
        let views = Arc::new(readable(views, SqlInfo::from_blob));
        self.session.listings.keep(|known| drop(known.views.insert(path.to_vec(), Arc::clone(&views))));
        Ok(views)
    }

    /// The macros of a schema, scalar and table ones; fetched once per attachment.
    ///
    /// # Errors
    /// The server's refusal, or why it cannot be asked.
    pub fn list_macros(&self, path: &[String], interrupt: &dyn Interrupt) -> Result<Arc<Vec<SqlInfo>>, Error> {
        let scope = self.peer.scope(Phase::Discover);
        self.load_all(&scope, interrupt)?;
        if let Some(macros) = self.session.listings.find(|known| known.macros.get(path).cloned()) {
            return Ok(macros);
        }
        let mut macros = self.contents(Method::SchemaMacros, path, Some("SCALAR_MACRO"), &scope, interrupt)?;
        macros.extend(self.contents(Method::SchemaMacros, path, Some("TABLE_MACRO"), &scope, interrupt)?);
        let macros = Arc::new(readable(macros, SqlInfo::from_blob));
        self.session.listings.keep(|known| drop(known.macros.insert(path.to_vec(), Arc::clone(&macros))));
        Ok(macros)
    }

    /// The tables of a schema; fetched once per attachment.
    ///
    /// # Errors
    /// The server's refusal, or why it cannot be asked.
    pub fn list_tables(&self, path: &[String], interrupt: &dyn Interrupt) -> Result<Arc<Vec<ObjectInfo>>, Error> {
        let scope = self.peer.scope(Phase::Discover);
        self.load_all(&scope, interrupt)?;
        if let Some(tables) = self.session.listings.find(|known| known.tables.get(path).cloned()) {
            return Ok(tables);
        }
        let tables = self.contents(Method::SchemaTables, path, None, &scope, interrupt)?;
        let tables = Arc::new(readable(tables, ObjectInfo::from_blob));
        self.session.listings.keep(|known| drop(known.tables.insert(path.to_vec(), Arc::clone(&tables))));
        Ok(tables)
    }

    /// The indexes of a schema; fetched once per attachment. A server that cannot list them has none.
    ///
    /// # Errors
    /// Why the server cannot be asked.
    pub fn list_indexes(&self, path: &[String], interrupt: &dyn Interrupt) -> Result<Arc<Vec<ObjectInfo>>, Error> {
        let scope = self.peer.scope(Phase::Discover);
        self.load_all(&scope, interrupt)?;
        if let Some(indexes) = self.session.listings.find(|known| known.indexes.get(path).cloned()) {
            return Ok(indexes);
        }
        let indexes = match self.contents(Method::SchemaIndexes, path, None, &scope, interrupt) {
            Err(error) if error.kind() == ErrorKind::Remote && !error.is_outdated() => Vec::new(),
            other => other?,
        };
        let indexes = Arc::new(readable(indexes, ObjectInfo::from_blob));
        self.session.listings.keep(|known| drop(known.indexes.insert(path.to_vec(), Arc::clone(&indexes))));
        Ok(indexes)
    }

    /// Asks for everything at once, where the server can be asked so and nothing is known yet.
    pub(crate) fn load_all(&self, scope: &Scope, interrupt: &dyn Interrupt) -> Result<(), Error> {
        let listings = &self.session.listings;
        if !self.session.reply.supports_catalog_contents || listings.complete() || !listings.at_once() {
            return Ok(());
        }
        match self.fetch_all(scope, interrupt).map(|contents| listings.keep_all(contents)) {
            Ok(true) => Ok(()),
            Err(error) if error.is_outdated() || !says_it_cannot(&error) => Err(error),
            failed => {
                tracing::warn!(error = ?failed.err(), "catalog_contents cannot be used; the schemas are listed one by one");
                listings.piecemeal();
                Ok(())
            }
        }
    }

    fn fetch_all(&self, scope: &Scope, interrupt: &dyn Interrupt) -> Result<CatalogContents, Error> {
        let dialect = self.dialect();
        let etag = self.session.listings.etag();
        let body = catalog_contents_body(dialect, &self.opaque_data(), etag.as_deref());
        let body = body.map_err(|error| scope.error(error))?;
        let reply = self.peer.call(scope, &dialect.path(Method::CatalogContents), body, interrupt)?;
        CatalogContents::from_reply(&reply).map_err(|error| scope.error(error))
    }

    /// The records of one listing of a schema.
    fn contents(
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

    fn fetch_schemas(&self, scope: &Scope, interrupt: &dyn Interrupt) -> Result<Vec<SchemaInfo>, Error> {
        let dialect = self.dialect();
        let body = schemas_body(dialect, &self.opaque_data(), None).map_err(|error| scope.error(error))?;
        let reply = self.peer.call(scope, &dialect.path(Method::CatalogSchemas), body, interrupt)?;
        Ok(readable(items(&reply).map_err(|error| scope.error(error))?, SchemaInfo::from_blob))
    }
}

/// Whether a failure is one of this request alone, so that others may work.
fn says_it_cannot(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Remote | ErrorKind::Protocol | ErrorKind::Limit)
        || (error.kind() == ErrorKind::Http && error.status().is_some_and(|status| (400..500).contains(&status)))
}

/// One entry of a newer kind must not hide the others.
fn readable<T, E>(items: Vec<Bytes>, read: impl Fn(Bytes) -> Result<T, E>) -> Vec<T> {
    items.into_iter().filter_map(|item| read(item).ok()).collect()
}
