//! The methods of VGI that a buffered call and catalog discovery need: requests and replies as plain values. Each type is written by
//! one side and read by the other.

mod attach;
mod bind;
mod buffering;
mod cardinality;
mod catalog;
mod contents;
mod function;
mod init;
mod object;
mod outer;
mod reflection;
mod secret;
mod setting;
mod transaction;

pub use attach::{AttachReply, AttachRequest};
pub use bind::{BindReply, BindRequest};
pub use buffering::{CombineReply, CombineRequest, ExecutionRef, ProcessReply, ProcessRequest, ProcessTemplate};
pub use cardinality::{CardinalityRequest, cardinality_blob, cardinality_of};
pub use catalog::{
    CatalogInfo, SchemaInfo, SqlInfo, contents_body, detach_body, items, items_blob, schemas_body, version,
    version_body,
};
pub use contents::{CatalogContents, catalog_contents_body};
pub use function::{Example, FunctionInfo, FunctionType, Stability};
pub use init::{InitHeader, InitRequest, Phase, cancel_body, turn_body};
pub use object::ObjectInfo;
pub use outer::{UPLOAD_URL_PATH, no_parameters_body, pointer_body, request_body, upload_url_body};
pub use reflection::{
    DESCRIBE_PATH, LIST_PROTOCOLS_PATH, ProtocolEntry, describe_body, describe_version, list_protocols_blob,
    list_protocols_body, protocol_entries,
};
pub use secret::{SecretLookup, SecretTypeSpec, secrets_batch};
pub use setting::SettingSpec;
pub use transaction::{begin_body, begun, begun_blob, end_body};

/// A method of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub enum Method {
    CatalogCatalogs,
    CatalogAttach,
    CatalogDetach,
    CatalogVersion,
    CatalogContents,
    TransactionBegin,
    TransactionCommit,
    TransactionRollback,
    CatalogSchemas,
    SchemaTables,
    SchemaViews,
    SchemaMacros,
    SchemaIndexes,
    SchemaFunctions,
    Bind,
    Init,
    Process,
    Combine,
    Destructor,
    Cardinality,
}

impl Method {
    /// Every method.
    pub const ALL: [Self; 20] = [
        Self::CatalogCatalogs,
        Self::CatalogAttach,
        Self::CatalogDetach,
        Self::CatalogVersion,
        Self::CatalogContents,
        Self::TransactionBegin,
        Self::TransactionCommit,
        Self::TransactionRollback,
        Self::CatalogSchemas,
        Self::SchemaTables,
        Self::SchemaViews,
        Self::SchemaMacros,
        Self::SchemaIndexes,
        Self::SchemaFunctions,
        Self::Bind,
        Self::Init,
        Self::Process,
        Self::Combine,
        Self::Destructor,
        Self::Cardinality,
    ];

    /// Name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CatalogCatalogs => "catalog_catalogs",
            Self::CatalogAttach => "catalog_attach",
            Self::CatalogDetach => "catalog_detach",
            Self::CatalogVersion => "catalog_version",
            Self::CatalogContents => "catalog_contents",
            Self::TransactionBegin => "catalog_transaction_begin",
            Self::TransactionCommit => "catalog_transaction_commit",
            Self::TransactionRollback => "catalog_transaction_rollback",
            Self::CatalogSchemas => "catalog_schemas",
            Self::SchemaTables => "catalog_schema_contents_tables",
            Self::SchemaViews => "catalog_schema_contents_views",
            Self::SchemaMacros => "catalog_schema_contents_macros",
            Self::SchemaIndexes => "catalog_schema_contents_indexes",
            Self::SchemaFunctions => "catalog_schema_contents_functions",
            Self::Bind => "bind",
            Self::Init => "init",
            Self::Process => "table_buffering_process",
            Self::Combine => "table_buffering_combine",
            Self::Destructor => "table_buffering_destructor",
            Self::Cardinality => "table_function_cardinality",
        }
    }

    /// The method of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// A record without columns and rows.
pub(crate) fn empty_record() -> Result<crate::ipc::Segments, crate::WireError> {
    outer::empty_batch(&[])
}
