//! What a client's session gives with a call, besides arguments and rows: settings, secrets, attach options, a transaction.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::array_value_to_string;
use bytes::Bytes;

use crate::args::{FromArgument, convert, sql_type};
use crate::error::{Error, Result};

/// One row each; absent when there is nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) settings: Option<RecordBatch>,
    pub(crate) secrets: Option<RecordBatch>,
    pub(crate) secrets_resolved: bool,
    pub(crate) options: Option<RecordBatch>,
    pub(crate) attachment: Option<Bytes>,
    pub(crate) transaction: Option<Bytes>,
}

impl Given {
    pub(crate) fn setting<T: FromArgument>(&self, name: &str) -> Result<Option<T>> {
        typed(self.settings.as_ref(), "setting", name)
    }

    pub(crate) fn option<T: FromArgument>(&self, name: &str) -> Result<Option<T>> {
        typed(self.options.as_ref(), "attach option", name)
    }

    /// The value of a key of the secret with this name, or else of the first of this type, as text.
    pub(crate) fn secret(&self, secret: &str, key: &str) -> Result<Option<String>> {
        let Some(secrets) = &self.secrets else { return Ok(None) };
        let schema = secrets.schema();
        let of_type = |column: &&ArrayRef| member(column, "type").is_ok_and(|kind| kind.as_deref() == Some(secret));
        let named = schema.column_with_name(secret).and_then(|(index, _)| secrets.columns().get(index));
        named.or_else(|| secrets.columns().iter().find(of_type)).map_or(Ok(None), |column| member(column, key))
    }
}

fn typed<T: FromArgument>(row: Option<&RecordBatch>, kind: &str, name: &str) -> Result<Option<T>> {
    let Some(value) = row.and_then(|row| row.column_by_name(name)).filter(|value| is_given(value)) else {
        return Ok(None);
    };
    let wanted = T::data_type();
    let read = convert(value, &wanted).and_then(|value| T::from_array(&value));
    let mismatch = || {
        Error::Argument(format!(
            "{kind} '{name}' must be {}, but is {}",
            sql_type(&wanted),
            sql_type(value.data_type())
        ))
    };
    read.map(Some).ok_or_else(mismatch)
}

pub(crate) fn is_given(value: &ArrayRef) -> bool {
    !value.is_empty() && value.is_valid(0) && !value.data_type().is_null()
}

fn member(secret: &ArrayRef, key: &str) -> Result<Option<String>> {
    let value = secret.as_struct_opt().and_then(|members| members.column_by_name(key)).filter(|value| is_given(value));
    Ok(value.map(|value| array_value_to_string(value, 0)).transpose()?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int32Array, StringArray, StructArray};
    use arrow_schema::{DataType, Field};

    use super::*;
    use crate::functions::harness::batch_of;

    #[test]
    fn values_are_read_by_name_and_type() {
        let settings = batch_of(vec![
            ("limit", Arc::new(Int32Array::from(vec![7])) as ArrayRef),
            ("nothing", Arc::new(StringArray::from(vec![None::<&str>]))),
        ]);
        let given = Given { settings: Some(settings), ..Given::default() };
        assert_eq!(given.setting::<i64>("limit").unwrap(), Some(7));
        assert_eq!(given.setting::<String>("nothing").unwrap(), None);
        assert_eq!(given.setting::<String>("missing").unwrap(), None);
        assert_eq!(given.option::<i64>("limit").unwrap(), None);
        let message = given.setting::<String>("limit").unwrap_err().to_string();
        assert_eq!(message, "setting 'limit' must be VARCHAR, but is INTEGER");
    }

    #[test]
    fn secrets_are_found_by_name_or_type() {
        let text = |value: &str| Arc::new(StringArray::from(vec![value])) as ArrayRef;
        let field = |name: &str| Arc::new(Field::new(name, DataType::Utf8, true));
        let secret = StructArray::from(vec![(field("type"), text("s3")), (field("key_id"), text("abc"))]);
        let secrets = batch_of(vec![("mine", Arc::new(secret) as ArrayRef)]);
        let given = Given { secrets: Some(secrets), ..Given::default() };
        assert_eq!(given.secret("mine", "key_id").unwrap().as_deref(), Some("abc"));
        assert_eq!(given.secret("s3", "key_id").unwrap().as_deref(), Some("abc"));
        assert_eq!(given.secret("s3", "token").unwrap(), None);
        assert_eq!(given.secret("gcs", "key_id").unwrap(), None);
    }
}
