//! Arrays of a record batch from its body.
//!
//! The arrow crate's decoder checks the offsets of texts and lists one by one, at fifty instructions each: more than all the rest of
//! what a worker does with a row. The constructors of its arrays make the same checks in ten. What is not here is left to the decoder.

use std::sync::Arc;

use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{
    ArrayRef, GenericByteArray, GenericListArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions, StructArray,
    make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_ipc::{Buffer as Span, FieldNode, RecordBatch as BatchMessage};
use arrow_schema::{ArrowError, DataType, FieldRef, SchemaRef};
use flatbuffers::VectorIter;

/// Whether [`read`] knows all columns.
pub(super) fn are_known(schema: &SchemaRef) -> bool {
    schema.fields().iter().all(|field| is_known(field.data_type()))
}

fn is_known(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => true,
        DataType::List(field) | DataType::LargeList(field) => is_known(field.data_type()),
        // the length of one without fields stands nowhere else
        DataType::Struct(fields) => !fields.is_empty() && fields.iter().all(|field| is_known(field.data_type())),
        other => is_fixed(other),
    }
}

fn is_fixed(data_type: &DataType) -> bool {
    data_type.is_primitive() || matches!(data_type, DataType::Boolean | DataType::FixedSizeBinary(_))
}

/// Reads a message that [`check`](super::validate::check) found right, and whose columns [are known](are_known).
pub(super) fn read(batch: BatchMessage<'_>, schema: &SchemaRef, body: &Buffer) -> Result<RecordBatch, ArrowError> {
    let (Some(nodes), Some(buffers)) = (batch.nodes(), batch.buffers()) else { return Err(missing()) };
    let mut columns = Columns { nodes: nodes.iter(), buffers: buffers.iter(), body };
    let arrays = schema.fields().iter().map(|field| columns.column(field.data_type())).collect::<Result<_, _>>()?;
    let rows = usize::try_from(batch.length()).map_err(broken)?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
}

/// What of the message is not read yet, in the order of the schema.
struct Columns<'a> {
    nodes: VectorIter<'a, FieldNode>,
    buffers: VectorIter<'a, Span>,
    body: &'a Buffer,
}

impl Columns<'_> {
    fn column(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        let node = self.nodes.next().ok_or_else(missing)?;
        let length = usize::try_from(node.length()).map_err(broken)?;
        let nulls = self.nulls(length, node.null_count())?;
        Ok(match data_type {
            DataType::Utf8 => Arc::new(self.bytes::<Utf8Type>(length, nulls)?),
            DataType::LargeUtf8 => Arc::new(self.bytes::<LargeUtf8Type>(length, nulls)?),
            DataType::Binary => Arc::new(self.bytes::<BinaryType>(length, nulls)?),
            DataType::LargeBinary => Arc::new(self.bytes::<LargeBinaryType>(length, nulls)?),
            DataType::List(field) => Arc::new(self.list::<i32>(field, length, nulls)?),
            DataType::LargeList(field) => Arc::new(self.list::<i64>(field, length, nulls)?),
            DataType::Struct(fields) => {
                let arrays = fields.iter().map(|field| self.column(field.data_type())).collect::<Result<_, _>>()?;
                Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, nulls, length)?)
            }
            fixed => {
                let data = ArrayData::builder(fixed.clone()).len(length).add_buffer(self.buffer()?).nulls(nulls);
                // bodies lie on boundaries of eight bytes, and some values want sixteen
                make_array(data.align_buffers(true).build()?)
            }
        })
    }

    fn buffer(&mut self) -> Result<Buffer, ArrowError> {
        let span = self.buffers.next().ok_or_else(missing)?;
        let offset = usize::try_from(span.offset()).map_err(broken)?;
        let length = usize::try_from(span.length()).map_err(broken)?;
        if offset.checked_add(length).is_none_or(|end| end > self.body.len()) {
            return Err(missing());
        }
        Ok(self.body.slice_with_length(offset, length))
    }

    /// The validity of a column, which is there in any case, and may be empty where nothing is NULL.
    fn nulls(&mut self, length: usize, count: i64) -> Result<Option<NullBuffer>, ArrowError> {
        let bits = self.buffer()?;
        if count == 0 {
            return Ok(None);
        }
        if bits.len() < length.div_ceil(8) {
            return Err(missing());
        }
        let nulls = NullBuffer::new(BooleanBuffer::new(bits, 0, length));
        if i64::try_from(nulls.null_count()).ok() != Some(count) {
            let text = format!("a column says that it has {count} nulls, and has {}", nulls.null_count());
            return Err(ArrowError::InvalidArgumentError(text));
        }
        Ok(Some(nulls))
    }

    fn bytes<T: ByteArrayType>(
        &mut self,
        length: usize,
        nulls: Option<NullBuffer>,
    ) -> Result<GenericByteArray<T>, ArrowError> {
        let offsets = self.offsets(length)?;
        GenericByteArray::try_new(offsets, self.buffer()?, nulls)
    }

    fn list<O: OffsetSizeTrait>(
        &mut self,
        field: &FieldRef,
        length: usize,
        nulls: Option<NullBuffer>,
    ) -> Result<GenericListArray<O>, ArrowError> {
        let offsets = self.offsets(length)?;
        let elements = self.column(field.data_type())?;
        GenericListArray::try_new(Arc::clone(field), offsets, elements, nulls)
    }

    fn offsets<O: OffsetSizeTrait>(&mut self, length: usize) -> Result<OffsetBuffer<O>, ArrowError> {
        let buffer = self.buffer()?;
        // where there are no values, the one offset may be missing
        if length == 0 && buffer.is_empty() {
            return Ok(OffsetBuffer::new_empty());
        }
        let count = length.checked_add(1).filter(|count| *count <= buffer.len() / size_of::<O>());
        let offsets = ScalarBuffer::<O>::new(buffer, 0, count.ok_or_else(missing)?);
        // the constructor panics where they are not, and is slower at it
        if !is_monotonic(&offsets) {
            return Err(ArrowError::InvalidArgumentError("offsets that are negative or fall".to_owned()));
        }
        Ok(OffsetBuffer::new(offsets))
    }
}

/// Counts rather than stops at the first that falls, so that it looks at several offsets at a time.
fn is_monotonic<O: OffsetSizeTrait>(offsets: &[O]) -> bool {
    let Some((first, rest)) = offsets.split_first() else { return false };
    *first >= O::usize_as(0) && offsets.iter().zip(rest).filter(|(before, after)| before > after).count() == 0
}

fn missing() -> ArrowError {
    ArrowError::IpcError("a column without all of its buffers".to_owned())
}

fn broken(error: std::num::TryFromIntError) -> ArrowError {
    ArrowError::IpcError(error.to_string())
}
