//! Settings and attach options that a catalog declares.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use vgi_wire::methods::SettingSpec;

use crate::args::{DefaultValue, FromArgument, convert, sql_type};
use crate::error::{Error, Result};
use crate::given::is_given;

/// A setting of the client's session that functions of a catalog read, or an option that ATTACH takes.
#[derive(Clone, Debug)]
pub struct Declared {
    pub(crate) name: String,
    description: String,
    data_type: DataType,
    default: Option<DefaultValue>,
    required: bool,
    secret: bool,
}

impl Declared {
    /// A value of this type.
    pub fn new<T: FromArgument>(name: impl Into<String>, description: impl Into<String>) -> Self {
        let (name, description) = (name.into(), description.into());
        Self { name, description, data_type: T::data_type(), default: None, required: false, secret: false }
    }

    /// The value when none is given.
    #[must_use]
    pub fn or(mut self, default: DefaultValue) -> Self {
        self.default = Some(default);
        self
    }

    /// An attach option that must be given.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// A value that clients must not show.
    #[must_use]
    pub fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// Refuses a default of another type, which no client could read.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.default {
            Some(default) if *default.array().data_type() != self.data_type => {
                let (given, wanted) = (sql_type(default.array().data_type()), sql_type(&self.data_type));
                Err(Error::Declaration(format!("'{}' is {wanted}, but its default is {given}", self.name)))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn spec(&self) -> SettingSpec {
        SettingSpec {
            name: self.name.clone(),
            description: self.description.clone(),
            field: Field::new("value", self.data_type.clone(), true),
            default: self.default.as_ref().map(DefaultValue::array),
            required: self.required,
            secret: self.secret,
        }
    }

    fn value(&self, given: Option<&ArrayRef>) -> Result<Option<ArrayRef>> {
        let Some(given) = given.filter(|value| is_given(value)) else {
            return match &self.default {
                None if self.required => Err(Error::Argument(format!("the attach option '{}' is required", self.name))),
                default => Ok(default.as_ref().map(DefaultValue::array)),
            };
        };
        let refuse = || {
            let (wanted, given) = (sql_type(&self.data_type), sql_type(given.data_type()));
            Error::Argument(format!("the attach option '{}' must be {wanted}, but is {given}", self.name))
        };
        convert(given, &self.data_type).map(Some).ok_or_else(refuse)
    }
}

/// The attach options as they hold for an attachment: those given, checked, and the defaults of the others.
pub(crate) fn options(declared: &[Declared], given: Option<&RecordBatch>) -> Result<Option<RecordBatch>> {
    for field in given.iter().flat_map(|given| given.schema_ref().fields()) {
        if !declared.iter().any(|option| option.name == *field.name()) {
            let names: Vec<_> = declared.iter().map(|option| option.name.as_str()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(Error::Argument(format!("there is no attach option '{}' (there is: {known})", field.name())));
        }
    }
    let mut columns = Vec::new();
    for option in declared {
        let given = given.and_then(|given| given.column_by_name(&option.name));
        columns.extend(option.value(given)?.map(|value| (option.name.clone(), value)));
    }
    if columns.is_empty() {
        return Ok(None);
    }
    let fields = columns.iter().map(|(name, value)| Field::new(name, value.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    Ok(Some(RecordBatch::try_new(schema, columns.into_iter().map(|(_, value)| value).collect())?))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringArray};

    use super::*;
    use crate::functions::harness::batch_of;

    #[test]
    fn options_are_checked_and_completed() {
        let declared = [
            Declared::new::<String>("label", "").or(DefaultValue::Text("none")),
            Declared::new::<i64>("tenant", "").required(),
        ];
        let number = |name| batch_of(vec![(name, Arc::new(Int64Array::from(vec![4])) as ArrayRef)]);
        let all = options(&declared, Some(&number("tenant"))).unwrap().unwrap();
        assert_eq!((all.num_columns(), all.num_rows()), (2, 1));
        let refused = |given: Option<&RecordBatch>| options(&declared, given).unwrap_err().to_string();
        assert_eq!(refused(None), "the attach option 'tenant' is required");
        assert_eq!(refused(Some(&number("x"))), "there is no attach option 'x' (there is: label, tenant)");
        let text = batch_of(vec![("tenant", Arc::new(StringArray::from(vec!["4"])) as ArrayRef)]);
        assert_eq!(refused(Some(&text)), "the attach option 'tenant' must be BIGINT, but is VARCHAR");
        assert!(options(&[], None).unwrap().is_none());
        assert!(Declared::new::<i64>("n", "").or(DefaultValue::Text("x")).check().is_err());
    }
}
