//! What a server listed of a catalog, kept until it is forgotten.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use vgi_wire::methods::{CatalogContents, FunctionInfo, FunctionType, ObjectInfo, SchemaInfo, SqlInfo};

use crate::runtime::lock;

/// A schema's path.
type Path = Vec<String>;

/// Kinds of functions that the protocol lists apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// Those that give a table; buffering ones are among them.
    Table,
    /// Those that give a value for each row.
    Scalar,
    /// Those that give a value for many rows.
    Aggregate,
}

impl FunctionKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Table, Self::Scalar, Self::Aggregate];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Table => "TABLE_FUNCTION",
            Self::Scalar => "SCALAR_FUNCTION",
            Self::Aggregate => "AGGREGATE_FUNCTION",
        }
    }

    fn of(function: FunctionType) -> Self {
        match function {
            FunctionType::Scalar => Self::Scalar,
            FunctionType::Aggregate => Self::Aggregate,
            FunctionType::Table | FunctionType::TableBuffering | FunctionType::Other => Self::Table,
        }
    }
}

/// The functions of one schema.
#[derive(Debug, Default)]
pub struct Listing {
    /// In the server's order.
    pub functions: Vec<FunctionInfo>,
    /// Entries that could not be read.
    pub(crate) unreadable: usize,
}

impl Listing {
    pub(crate) fn named(&self, name: &str) -> Vec<FunctionInfo> {
        self.functions.iter().filter(|function| function.name == name).cloned().collect()
    }
}

/// Everything that is known of a catalog.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) schemas: Option<Arc<Vec<SchemaInfo>>>,
    pub(crate) functions: HashMap<(Path, FunctionKind), Arc<Listing>>,
    pub(crate) tables: HashMap<Path, Arc<Vec<ObjectInfo>>>,
    pub(crate) indexes: HashMap<Path, Arc<Vec<ObjectInfo>>>,
    pub(crate) views: HashMap<Path, Arc<Vec<SqlInfo>>>,
    pub(crate) macros: HashMap<Path, Arc<Vec<SqlInfo>>>,
}

#[derive(Debug, Default)]
struct State {
    known: Known,
    /// `known` is all that there is, so that what is not in it does not exist.
    complete: bool,
    /// A complete state that the server can be asked about.
    last: Option<(String, Known)>,
    /// The server cannot list everything at once, whatever it says.
    piecemeal: bool,
}

/// The cache of one session. Never locked during a request.
#[derive(Debug)]
pub(crate) struct Listings {
    state: Mutex<State>,
    stamp: AtomicU64,
}

/// Stamps are told apart in the whole process.
fn next_stamp() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Default for Listings {
    fn default() -> Self {
        Self { state: Mutex::default(), stamp: AtomicU64::new(next_stamp()) }
    }
}

impl Listings {
    /// Another number whenever what was known may not be true any more.
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp.load(Ordering::Acquire)
    }

    pub(crate) fn forget(&self) {
        let mut state = lock(&self.state);
        state.known = Known::default();
        state.complete = false;
        self.stamp.store(next_stamp(), Ordering::Release);
    }

    /// Reads something that may be known; what a complete state does not have is the default.
    pub(crate) fn find<T: Default>(&self, find: impl Fn(&Known) -> Option<Arc<T>>) -> Option<Arc<T>> {
        let state = lock(&self.state);
        find(&state.known).or_else(|| state.complete.then(Arc::default))
    }

    /// Whether everything is known.
    pub(crate) fn complete(&self) -> bool {
        lock(&self.state).complete
    }

    pub(crate) fn keep(&self, keep: impl FnOnce(&mut Known)) {
        keep(&mut lock(&self.state).known);
    }

    /// Whether everything may be asked for at once.
    pub(crate) fn at_once(&self) -> bool {
        !lock(&self.state).piecemeal
    }

    pub(crate) fn piecemeal(&self) {
        lock(&self.state).piecemeal = true;
    }

    /// Names the last complete state.
    pub(crate) fn etag(&self) -> Option<String> {
        lock(&self.state).last.as_ref().map(|(etag, _)| etag.clone())
    }

    /// Keeps everything; false when the server points to a state that is not there.
    pub(crate) fn keep_all(&self, contents: CatalogContents) -> bool {
        let mut state = lock(&self.state);
        if contents.not_modified {
            let Some((_, known)) = &state.last else { return false };
            state.known = known.clone();
        } else {
            let etag = contents.etag.clone();
            let known = Known::from(contents);
            state.last = etag.map(|etag| (etag, known.clone()));
            state.known = known;
        }
        state.complete = true;
        true
    }
}

impl From<CatalogContents> for Known {
    fn from(contents: CatalogContents) -> Self {
        let mut functions: HashMap<(Path, FunctionKind), Listing> = HashMap::new();
        for function in contents.functions {
            let place = (function.schema_path.clone(), FunctionKind::of(function.function_type));
            let listing = functions.entry(place).or_default();
            listing.unreadable = contents.unreadable;
            listing.functions.push(function);
        }
        Self {
            schemas: Some(Arc::new(contents.schemas)),
            functions: functions.into_iter().map(|(place, listing)| (place, Arc::new(listing))).collect(),
            tables: by_schema(contents.tables, |table| &table.schema_path),
            indexes: by_schema(contents.indexes, |index| &index.schema_path),
            views: by_schema(contents.views, |view| &view.schema_path),
            macros: by_schema(contents.macros, |item| &item.schema_path),
        }
    }
}

fn by_schema<T>(items: Vec<T>, path: impl Fn(&T) -> &Path) -> HashMap<Path, Arc<Vec<T>>> {
    let mut groups: HashMap<Path, Vec<T>> = HashMap::new();
    for item in items {
        groups.entry(path(&item).clone()).or_default().push(item);
    }
    groups.into_iter().map(|(path, items)| (path, Arc::new(items))).collect()
}
