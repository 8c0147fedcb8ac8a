//! DuckDB's logical types, as far as the choice of a column's conversion needs them.

use libduckdb_sys as sys;

use crate::bridge::ffi;

/// A type that is looked at; its parts are owned copies.
pub(super) enum Logical<'a> {
    Borrowed(&'a ffi::LogicalType),
    Owned(sys::duckdb_logical_type),
}

impl<'a> From<&'a ffi::LogicalType> for Logical<'a> {
    fn from(logical: &'a ffi::LogicalType) -> Self {
        Self::Borrowed(logical)
    }
}

impl Logical<'_> {
    /// The C API takes `LogicalType *` under another name, and changes nothing in the functions used here.
    fn pointer(&self) -> sys::duckdb_logical_type {
        match self {
            Self::Borrowed(logical) => (&raw const **logical).cast_mut().cast(),
            Self::Owned(pointer) => *pointer,
        }
    }

    /// `DUCKDB_TYPE_…`
    pub(super) fn id(&self) -> sys::duckdb_type {
        // SAFETY: the pointer is to a live type.
        unsafe { sys::duckdb_get_type_id(self.pointer()) }
    }

    /// The type that a DECIMAL's values are stored as.
    pub(super) fn decimal_storage(&self) -> sys::duckdb_type {
        // SAFETY: as above; of other types the answer is that there is none.
        unsafe { sys::duckdb_decimal_internal_type(self.pointer()) }
    }

    /// The type of a LIST's elements. Invalid for other types.
    pub(super) fn element(&self) -> Self {
        // SAFETY: as above.
        Self::Owned(unsafe { sys::duckdb_list_type_child_type(self.pointer()) })
    }

    /// The type of an ARRAY's elements. Invalid for other types.
    pub(super) fn array_element(&self) -> Self {
        // SAFETY: as above.
        Self::Owned(unsafe { sys::duckdb_array_type_child_type(self.pointer()) })
    }

    /// The types of a MAP's keys and values. Invalid for other types.
    pub(super) fn entry(&self) -> [Self; 2] {
        // SAFETY: as above.
        let key = unsafe { sys::duckdb_map_type_key_type(self.pointer()) };
        // SAFETY: as above.
        let value = unsafe { sys::duckdb_map_type_value_type(self.pointer()) };
        [Self::Owned(key), Self::Owned(value)]
    }

    /// The types of a STRUCT's fields.
    pub(super) fn fields(&self) -> Vec<Self> {
        // SAFETY: as above; of other types the answer is that there is none.
        let count = unsafe { sys::duckdb_struct_type_child_count(self.pointer()) };
        // SAFETY: as above, and the index is below the count.
        (0..count)
            .map(|index| Self::Owned(unsafe { sys::duckdb_struct_type_child_type(self.pointer(), index) }))
            .collect()
    }
}

impl Drop for Logical<'_> {
    fn drop(&mut self) {
        if let Self::Owned(pointer) = self {
            // SAFETY: the C API gave the type, and nothing else holds it.
            unsafe { sys::duckdb_destroy_logical_type(pointer) }
        }
    }
}
