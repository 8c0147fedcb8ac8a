//! Protocol generations: what differs on the wire between the servers that exist, as a table (protocol file 02 §9).

use crate::WireError;
use crate::methods::Method;

/// How a method becomes a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlForm {
    /// `{base}/{method}`
    Flat,
    /// `{base}/{protocol}/{method}`
    Routed,
}

/// How a request names the schema that owns a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaField {
    /// Not at all.
    None,
    /// `schema_name: utf8`
    Name,
    /// `schema_path: list<utf8>`
    Path,
}

/// One row of the table: a major.minor that servers declare, and the layout of the requests that they accept.
#[derive(Debug, PartialEq, Eq)]
pub struct Generation {
    /// Major version; must be equal.
    pub major: u64,
    /// Minor version; must be equal.
    pub minor: u64,
    /// Form of the URLs.
    pub url: UrlForm,
    /// Tail of the bind request.
    pub bind_schema: SchemaField,
    /// Tail of process, combine and destructor.
    pub buffering_schema: SchemaField,
    /// Whether listings take `path: list<utf8>` rather than `name: utf8`.
    pub listing_by_path: bool,
    /// Whether the request records have the fields of the routed generations: `copy_from`, `copy_to` and `argument_names` of bind,
    /// `split_tokens` and `row_limit` of init, `client_capabilities` of attach, and nullable attach options.
    pub routed_records: bool,
    /// What bind says a buffering function is.
    pub buffering_type: &'static str,
}

const fn flat(minor: u64, bind_schema: SchemaField, buffering_schema: SchemaField) -> Generation {
    Generation {
        major: 1,
        minor,
        url: UrlForm::Flat,
        bind_schema,
        buffering_schema,
        listing_by_path: false,
        routed_records: false,
        buffering_type: "TABLE",
    }
}

const fn routed(major: u64, minor: u64) -> Generation {
    Generation {
        major,
        minor,
        url: UrlForm::Routed,
        bind_schema: SchemaField::Path,
        buffering_schema: SchemaField::Path,
        listing_by_path: true,
        routed_records: true,
        buffering_type: "TABLE_BUFFERING",
    }
}

/// Every generation that this library has a layout for. Adding one is adding a row.
pub const GENERATIONS: &[Generation] = &[
    flat(0, SchemaField::None, SchemaField::None),
    flat(1, SchemaField::Name, SchemaField::None),
    flat(2, SchemaField::Name, SchemaField::Name),
    flat(3, SchemaField::Name, SchemaField::Name),
    routed(2, 0),
    routed(2, 1),
    routed(2, 2),
    routed(3, 0),
];

/// The supported versions, for messages.
pub(crate) fn supported() -> String {
    let names: Vec<_> =
        GENERATIONS.iter().map(|generation| format!("{}.{}", generation.major, generation.minor)).collect();
    names.join(", ")
}

/// What was agreed with a server at first contact; every request is written in it.
#[derive(Clone, Debug)]
pub struct Dialect {
    /// The layout of requests.
    pub generation: &'static Generation,
    /// Name of the routed protocol, such as `vgi.v2`.
    pub protocol: Option<String>,
    /// The server's own version, which every request declares; `None` for servers that do not check.
    pub version: Option<String>,
}

impl Dialect {
    /// The dialect of a server with this protocol name (routed servers only) and version. A flat server without a version predates
    /// the checks and is spoken to in the oldest layout.
    ///
    /// # Errors
    /// [`WireError::UnknownVersion`] with both versions when there is no layout for it.
    pub fn select(protocol: Option<&str>, version: Option<&str>) -> Result<Self, WireError> {
        let form = if protocol.is_some() { UrlForm::Routed } else { UrlForm::Flat };
        let wanted = match (version, form) {
            (None, UrlForm::Flat) => Some((1, 0)),
            (version, _) => version.and_then(major_minor),
        };
        let generation = GENERATIONS
            .iter()
            .find(|generation| generation.url == form && Some((generation.major, generation.minor)) == wanted)
            .filter(|generation| protocol.is_none_or(|name| name == format!("vgi.v{}", generation.major)))
            .ok_or_else(|| WireError::UnknownVersion {
                protocol: protocol.unwrap_or("vgi").to_owned(),
                server: version.unwrap_or("an undeclared version").to_owned(),
            })?;
        Ok(Self { generation, protocol: protocol.map(str::to_owned), version: version.map(str::to_owned) })
    }

    /// Path of a method below the base URL. `init` opens a stream, so its path ends in `init/init`.
    pub fn path(&self, method: Method) -> String {
        let name = if method == Method::Init { "init/init" } else { method.name() };
        self.routed_path(name)
    }

    /// Path of a stream's next turn.
    pub fn exchange_path(&self) -> String {
        self.routed_path("init/exchange")
    }

    fn routed_path(&self, name: &str) -> String {
        match &self.protocol {
            Some(protocol) => format!("{protocol}/{name}"),
            None => name.to_owned(),
        }
    }
}

fn major_minor(version: &str) -> Option<(u64, u64)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_declares_the_servers_own_version() {
        let dialect = Dialect::select(Some("vgi.v2"), Some("2.2.7")).unwrap();
        assert_eq!((dialect.generation.major, dialect.generation.minor), (2, 2));
        assert_eq!(dialect.version.as_deref(), Some("2.2.7"));
        assert_eq!(dialect.path(Method::Bind), "vgi.v2/bind");
        assert_eq!(dialect.path(Method::Init), "vgi.v2/init/init");
        assert_eq!(dialect.exchange_path(), "vgi.v2/init/exchange");
    }

    #[test]
    fn flat_servers_have_flat_paths() {
        let old = Dialect::select(None, None).unwrap();
        assert_eq!(old.path(Method::Process), "table_buffering_process");
        assert_eq!(old.version, None);
        assert_eq!(Dialect::select(None, Some("1.3.0")).unwrap().generation.bind_schema, SchemaField::Name);
    }

    #[test]
    fn an_unknown_version_is_refused_with_both() {
        for (protocol, version) in
            [(Some("vgi.v2"), "2.9.0"), (Some("vgi.v4"), "4.0.0"), (None, "1.4.0"), (Some("vgi.v2"), "two")]
        {
            let message = Dialect::select(protocol, Some(version)).unwrap_err().to_string();
            assert!(message.contains(version) && message.contains("2.2"), "{message}");
        }
        assert!(Dialect::select(Some("vgi.v2"), None).is_err());
    }
}
