//! Checks of a record batch message before the arrow crate decodes it, which trusts that buffers lie inside the body and that unions
//! have as many type ids as rows. Values (offsets, UTF-8, dictionary indexes) are checked by that crate.

use arrow_buffer::Buffer;
use arrow_ipc::RecordBatch as BatchMessage;
use arrow_schema::{DataType, Fields, Schema, UnionMode};

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

/// Checks what the header claims against the body that is there.
pub(super) fn check(batch: BatchMessage<'_>, schema: &Schema, body: &Buffer) -> Result<(), WireError> {
    if batch.length() < 0 {
        return Err(WireError::corrupt("a batch of negative length"));
    }
    let (Some(nodes), Some(buffers)) = (batch.nodes(), batch.buffers()) else {
        return Err(WireError::corrupt("a batch without nodes or buffers"));
    };
    if nodes.iter().any(|node| node.length() < 0 || node.null_count() < 0 || node.null_count() > node.length()) {
        return Err(WireError::corrupt("a column of negative length"));
    }
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
    if let Some(counts) = batch.variadicBufferCounts() {
        let limit = i64::try_from(buffers.len()).unwrap_or(i64::MAX);
        if counts.iter().any(|count| count < 0 || count > limit) {
            return Err(WireError::corrupt("a view column with an impossible number of buffers"));
        }
    }
    let mut walk = Walk { batch, node: 0, buffer: 0, view: 0 };
    schema.fields().iter().try_for_each(|field| walk.column(field.data_type()))
}

/// Follows the schema through nodes and buffers in the order in which the decoder consumes them.
struct Walk<'a> {
    batch: BatchMessage<'a>,
    node: usize,
    buffer: usize,
    view: usize,
}

impl Walk<'_> {
    fn column(&mut self, data_type: &DataType) -> Result<(), WireError> {
        let rows = self.next_node()?;
        match data_type {
            DataType::Null => {}
            DataType::Utf8 | DataType::Binary => {
                self.offsets(4)?;
                self.skip(1);
            }
            DataType::LargeUtf8 | DataType::LargeBinary => {
                self.offsets(8)?;
                self.skip(1);
            }
            DataType::Utf8View | DataType::BinaryView => {
                let count = self
                    .batch
                    .variadicBufferCounts()
                    .filter(|counts| self.view < counts.len())
                    .map(|counts| counts.get(self.view));
                let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
                self.view += 1;
                self.skip(2 + count);
            }
            DataType::List(field) | DataType::Map(field, _) => {
                self.offsets(4)?;
                self.column(field.data_type())?;
            }
            DataType::LargeList(field) => {
                self.offsets(8)?;
                self.column(field.data_type())?;
            }
            DataType::ListView(field) | DataType::LargeListView(field) => {
                self.skip(3);
                self.column(field.data_type())?;
            }
            DataType::FixedSizeList(field, _) => {
                self.skip(1);
                self.column(field.data_type())?;
            }
            DataType::Struct(fields) => {
                self.skip(1);
                fields.iter().try_for_each(|field| self.column(field.data_type()))?;
            }
            DataType::RunEndEncoded(ends, values) => {
                self.column(ends.data_type())?;
                self.column(values.data_type())?;
            }
            DataType::Union(fields, mode) => {
                self.holds(rows, 1)?;
                if *mode == UnionMode::Dense {
                    self.holds(rows, 4)?;
                }
                fields.iter().try_for_each(|(_, field)| self.column(field.data_type()))?;
            }
            _ => self.skip(2),
        }
        Ok(())
    }

    fn next_node(&mut self) -> Result<i64, WireError> {
        let node =
            self.batch.nodes().filter(|nodes| self.node < nodes.len()).map(|nodes| nodes.get(self.node).length());
        self.node += 1;
        node.ok_or_else(|| WireError::corrupt("fewer columns than the schema has"))
    }

    /// A validity buffer, then one of offsets, which must be whole: the decoder asserts it.
    fn offsets(&mut self, width: i64) -> Result<(), WireError> {
        self.skip(1);
        let length =
            self.batch.buffers().filter(|all| self.buffer < all.len()).map(|all| all.get(self.buffer).length());
        self.skip(1);
        match length {
            Some(length) if length % width == 0 => Ok(()),
            _ => Err(WireError::corrupt("a broken buffer of offsets")),
        }
    }

    fn skip(&mut self, count: usize) {
        self.buffer = self.buffer.saturating_add(count);
    }

    /// The next buffer must hold `rows` values of `width` bytes.
    fn holds(&mut self, rows: i64, width: i64) -> Result<(), WireError> {
        let length = self
            .batch
            .buffers()
            .filter(|buffers| self.buffer < buffers.len())
            .map(|buffers| buffers.get(self.buffer).length());
        self.skip(1);
        match (length, rows.checked_mul(width)) {
            (Some(length), Some(needed)) if length >= needed => Ok(()),
            _ => Err(WireError::corrupt("a union with fewer type ids than rows")),
        }
    }
}
