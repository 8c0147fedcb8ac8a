//! The order of rows that arguments name: which columns, and in which direction.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{Schema, SortOptions};

use crate::args::Args;
use crate::error::{Error, Result};
use crate::functions::numeric::column;

/// The arguments of functions that order rows. The columns come last of the positional ones, since they repeat.
#[derive(Debug, Args)]
pub struct OrderArgs {
    #[arg(doc = "Columns to order by; all columns when there is none.", varargs, default = [])]
    by: Vec<String>,
    #[arg(doc = "Largest first.", named, default = false)]
    descending: bool,
}

impl OrderArgs {
    pub(crate) fn of(&self, function: &str, schema: &Schema) -> Result<Ordering> {
        if schema.fields().is_empty() {
            return Err(Error::Input(format!("{function}: the input has no column")));
        }
        let columns = match self.by.as_slice() {
            [] => (0..schema.fields().len()).collect(),
            by => by.iter().map(|name| place(function, schema, name)).collect::<Result<Vec<_>>>()?,
        };
        let options = SortOptions { descending: self.descending, nulls_first: false };
        Ordering::new(schema, columns, options)
    }
}

/// The place of a column. As in SQL, case matters only between columns that differ in nothing else.
pub(crate) fn place(function: &str, schema: &Schema, wanted: &str) -> Result<usize> {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let exact = names.iter().position(|name| *name == wanted);
    exact.or_else(|| names.iter().position(|name| name.eq_ignore_ascii_case(wanted))).ok_or_else(|| {
        Error::Input(format!("{function}: the input has no column '{wanted}' (its columns: {})", names.join(", ")))
    })
}

/// Makes keys of rows that compare as the rows do.
pub(crate) struct Ordering {
    columns: Vec<usize>,
    converter: RowConverter,
}

impl Ordering {
    pub(crate) fn new(schema: &Schema, columns: Vec<usize>, options: SortOptions) -> Result<Self> {
        let field = |index: &usize| {
            schema.fields().get(*index).map(|field| SortField::new_with_options(field.data_type().clone(), options))
        };
        let converter = RowConverter::new(columns.iter().filter_map(field).collect())?;
        Ok(Self { columns, converter })
    }

    pub(crate) fn keys(&self, batch: &RecordBatch) -> Result<Rows> {
        let key = |index: &usize| column(batch, *index).cloned();
        let columns = self.columns.iter().map(key).collect::<Result<Vec<ArrayRef>>>()?;
        Ok(self.converter.convert_columns(&columns)?)
    }

    /// The rows' places in order; equal rows stay in theirs.
    pub(crate) fn sorted_places(&self, batch: &RecordBatch) -> Result<Vec<usize>> {
        let keys = self.keys(batch)?;
        let mut places: Vec<usize> = (0..keys.num_rows()).collect();
        places.sort_by(|a, b| keys.row(*a).cmp(&keys.row(*b)));
        Ok(places)
    }
}

/// The rows at these places.
pub(crate) fn take_rows(batch: &RecordBatch, places: &[usize]) -> Result<RecordBatch> {
    let places = places.iter().map(|place| u64::try_from(*place));
    let places = places.collect::<Result<Vec<_>, _>>().map_err(|error| Error::Failed(error.to_string()))?;
    Ok(arrow_select::take::take_record_batch(batch, &arrow_array::UInt64Array::from(places))?)
}
