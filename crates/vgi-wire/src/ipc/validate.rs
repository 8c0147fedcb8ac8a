//! Checks of a record batch message before the arrow crate decodes it. That crate checks values (offsets, UTF-8, dictionary indexes,
//! run ends), but trusts in places that buffers are inside of the body and long enough, and takes any number of rows for columns
//! that need no bytes.

use arrow_buffer::Buffer;
use arrow_ipc::{Buffer as Span, FieldNode, MetadataVersion, RecordBatch as BatchMessage};
use arrow_schema::{DataType, Fields, Schema, UnionMode};
use flatbuffers::VectorIter;

use crate::WireError;

/// How many buffers a column of this type has in a message of metadata version 5.
pub(super) fn buffer_count(data_type: &DataType) -> Result<usize, WireError> {
    let children =
        |fields: &Fields| fields.iter().map(|field| buffer_count(field.data_type())).sum::<Result<usize, _>>();
    Ok(match data_type {
        DataType::Null => 0,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => 3,
        DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => {
            2 + buffer_count(field.data_type())?
        }
        DataType::ListView(field) | DataType::LargeListView(field) => 3 + buffer_count(field.data_type())?,
        DataType::FixedSizeList(field, _) => 1 + buffer_count(field.data_type())?,
        DataType::Struct(fields) => 1 + children(fields)?,
        DataType::RunEndEncoded(ends, values) => buffer_count(ends.data_type())? + buffer_count(values.data_type())?,
        DataType::Union(fields, mode) => {
            let own = if *mode == UnionMode::Dense { 2 } else { 1 };
            own + fields.iter().map(|(_, field)| buffer_count(field.data_type())).sum::<Result<usize, _>>()?
        }
        DataType::Utf8View | DataType::BinaryView => {
            return Err(WireError::protocol("a view column where a record is expected"));
        }
        _ => 2,
    })
}

/// The most rows of a batch. Columns that need no bytes (none at all, NULL, repeated runs) could claim any number.
const MAX_ROWS: i64 = i32::MAX as i64;

/// Elements of a nested column that need no bytes; above it there must be bytes to justify them.
const MAX_ELEMENTS_WITHOUT_BYTES: usize = 1 << 16;

/// Checks what the header claims against the body that is there.
pub(super) fn check(
    batch: BatchMessage<'_>,
    version: MetadataVersion,
    schema: &Schema,
    body: &Buffer,
) -> Result<(), WireError> {
    if batch.length() < 0 {
        return Err(WireError::corrupt("a batch of negative length"));
    }
    if batch.length() > MAX_ROWS {
        return Err(WireError::TooLarge(format!("a batch of {} rows", batch.length())));
    }
    if batch.compression().is_some() {
        return Err(WireError::corrupt("its buffers are compressed, which the protocol leaves to HTTP"));
    }
    let (Some(nodes), Some(buffers)) = (batch.nodes(), batch.buffers()) else {
        return Err(WireError::corrupt("a batch without nodes or buffers"));
    };
    for buffer in buffers {
        let end = u64::try_from(buffer.offset())
            .ok()
            .zip(u64::try_from(buffer.length()).ok())
            .and_then(|(offset, length)| offset.checked_add(length));
        if !end.is_some_and(|end| usize::try_from(end).is_ok_and(|end| end <= body.len())) {
            return Err(WireError::corrupt("a buffer outside the message body"));
        }
        if buffer.offset() % 8 != 0 {
            return Err(WireError::corrupt("a buffer that is not aligned"));
        }
    }
    let mut walk = Walk {
        nodes: nodes.iter(),
        buffers: buffers.iter(),
        variadic: batch.variadicBufferCounts().map(|counts| counts.iter()),
        version,
        most_elements: body.len().saturating_mul(8).max(MAX_ELEMENTS_WITHOUT_BYTES),
    };
    for field in schema.fields() {
        let rows = walk.column(field.data_type())?;
        if i64::try_from(rows).ok() != Some(batch.length()) {
            return Err(WireError::corrupt("a column with another number of rows than its batch"));
        }
    }
    if walk.nodes.next().is_some() || walk.buffers.next().is_some() {
        return Err(WireError::corrupt("more columns than the schema has"));
    }
    Ok(())
}

/// Follows the schema through nodes and buffers in the order in which the decoder consumes them.
struct Walk<'a> {
    nodes: VectorIter<'a, FieldNode>,
    buffers: VectorIter<'a, Span>,
    variadic: Option<VectorIter<'a, i64>>,
    version: MetadataVersion,
    most_elements: usize,
}

impl Walk<'_> {
    /// Checks a column and what is in it; gives its length.
    fn column(&mut self, data_type: &DataType) -> Result<usize, WireError> {
        let node = self.nodes.next().ok_or_else(|| WireError::corrupt("fewer columns than the schema has"))?;
        let (length, nulls) = (count(node.length())?, count(node.null_count())?);
        if nulls > length {
            return Err(WireError::corrupt("a column with more nulls than values"));
        }
        match data_type {
            DataType::Null => {}
            DataType::Union(fields, mode) => {
                if self.version < MetadataVersion::V5 {
                    self.buffer()?;
                }
                self.values(length, 1)?;
                if *mode == UnionMode::Dense {
                    self.values(length, 4)?;
                }
                for (_, field) in fields.iter() {
                    self.child(field.data_type(), length)?;
                }
            }
            DataType::RunEndEncoded(ends, values) => {
                self.child(ends.data_type(), length)?;
                self.child(values.data_type(), length)?;
            }
            _ => {
                self.validity(length, nulls)?;
                self.contents(data_type, length)?;
            }
        }
        Ok(length)
    }

    /// What follows the validity of a column.
    fn contents(&mut self, data_type: &DataType, length: usize) -> Result<(), WireError> {
        match data_type {
            DataType::Utf8 | DataType::Binary => {
                self.offsets(length, 4)?;
                self.buffer()?;
            }
            DataType::LargeUtf8 | DataType::LargeBinary => {
                self.offsets(length, 8)?;
                self.buffer()?;
            }
            DataType::Utf8View | DataType::BinaryView => {
                self.whole(length, 16)?;
                let pieces = self.variadic.as_mut().and_then(Iterator::next);
                let pieces = pieces.ok_or_else(|| WireError::corrupt("a view column without its number of buffers"))?;
                for _ in 0..count(pieces)? {
                    self.buffer()?;
                }
            }
            DataType::List(field) | DataType::Map(field, _) => {
                self.offsets(length, 4)?;
                self.child(field.data_type(), 0)?;
            }
            DataType::LargeList(field) => {
                self.offsets(length, 8)?;
                self.child(field.data_type(), 0)?;
            }
            DataType::ListView(field) => self.list_view(field.data_type(), length, 4)?,
            DataType::LargeListView(field) => self.list_view(field.data_type(), length, 8)?,
            DataType::FixedSizeList(field, size) => {
                let needed = length.checked_mul(width(*size)?);
                if needed.is_none_or(|needed| needed > self.most_elements) {
                    return Err(WireError::corrupt("a list of more elements than there are bytes for"));
                }
                self.child(field.data_type(), 0)?;
            }
            DataType::Struct(fields) => {
                for field in fields {
                    self.child(field.data_type(), length)?;
                }
            }
            DataType::Boolean => self.holds(length.div_ceil(8))?,
            DataType::FixedSizeBinary(size) => self.values(length, width(*size)?)?,
            DataType::Dictionary(keys, _) => self.whole(length, keys.primitive_width().unwrap_or(1))?,
            // all that is left has a width
            other => self.whole(length, other.primitive_width().unwrap_or(1))?,
        }
        Ok(())
    }

    /// A column inside of another. It may be as long as that one, or as its bytes justify.
    fn child(&mut self, data_type: &DataType, parent: usize) -> Result<(), WireError> {
        if self.column(data_type)? > self.most_elements.max(parent) {
            return Err(WireError::corrupt("a nested column of more elements than there are bytes for"));
        }
        Ok(())
    }

    /// Length of the next buffer.
    fn buffer(&mut self) -> Result<usize, WireError> {
        count(self.buffers.next().ok_or_else(|| WireError::corrupt("fewer buffers than the schema needs"))?.length())
    }

    fn holds(&mut self, needed: usize) -> Result<(), WireError> {
        if self.buffer()? < needed {
            return Err(WireError::corrupt("a buffer that is shorter than its column"));
        }
        Ok(())
    }

    fn validity(&mut self, length: usize, nulls: usize) -> Result<(), WireError> {
        self.holds(if nulls == 0 { 0 } else { length.div_ceil(8) })
    }

    fn values(&mut self, length: usize, width: usize) -> Result<(), WireError> {
        self.holds(length.checked_mul(width).ok_or_else(|| WireError::corrupt("a column of impossible length"))?)
    }

    /// As [`values`](Self::values), of a buffer whose end the decoder asserts to be one of a value.
    fn whole(&mut self, length: usize, width: usize) -> Result<(), WireError> {
        let buffer = self.buffer()?;
        let needed = length.checked_mul(width).ok_or_else(|| WireError::corrupt("a column of impossible length"))?;
        if buffer < needed || buffer % width != 0 {
            return Err(WireError::corrupt("a broken buffer of values"));
        }
        Ok(())
    }

    /// One offset more than there are values; none at all may be written for no values.
    fn offsets(&mut self, length: usize, width: usize) -> Result<(), WireError> {
        let offsets = if length == 0 { 0 } else { length.saturating_add(1) };
        self.whole(offsets, width)
    }

    fn list_view(&mut self, data_type: &DataType, length: usize, width: usize) -> Result<(), WireError> {
        self.whole(length, width)?;
        self.whole(length, width)?;
        self.child(data_type, 0)
    }
}

fn count(value: i64) -> Result<usize, WireError> {
    usize::try_from(value).map_err(|_| WireError::corrupt("a negative length"))
}

fn width(size: i32) -> Result<usize, WireError> {
    usize::try_from(size).map_err(|_| WireError::corrupt("a type of negative size"))
}
