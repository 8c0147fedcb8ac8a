//! Every byte of every message, replaced; and several lies at once.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema};

use crate::bomb::Stream;
use crate::{alone, check, decode, lies, samples};

const VALUES: [u8; 7] = [0, 1, 2, 5, 0x7f, 0x80, 0xff];

#[test]
fn bytes_of_bodies() {
    let _alone = alone();
    for (name, batch) in samples::every_type() {
        let stream = Stream::of(&batch);
        for (index, part) in stream.parts.iter().enumerate() {
            for at in 0..part.body.len() {
                // offsets, sizes, indexes, type ids, run ends, UTF-8, view lengths
                for value in VALUES {
                    let mut parts = stream.parts.clone();
                    parts[index].body[at] = value;
                    let name = format!("{name}, message {index}, byte {at} of the body = {value}");
                    check(&name, decode(&name, Stream { schema: stream.schema.clone(), parts }.write()));
                }
            }
        }
    }
}

#[test]
fn bytes_of_schemas() {
    let _alone = alone();
    for (name, batch) in samples::every_type() {
        let stream = Stream::of(&batch);
        // widths, precisions, units, sizes, type ids, flags, and every offset between tables
        for at in 8..stream.schema.len() {
            for value in VALUES {
                let mut schema = stream.schema.clone();
                schema[at] = value;
                let name = format!("{name}, byte {at} of the schema = {value}");
                check(&name, decode(&name, Stream { schema, parts: stream.parts.clone() }.write()));
            }
        }
    }
}

#[test]
fn bytes_of_headers() {
    let _alone = alone();
    for (name, batch) in samples::every_type() {
        let stream = Stream::of(&batch);
        let whole = stream.write();
        let mut at = stream.schema.len();
        for part in &stream.parts {
            let message = part.write();
            for byte in 8..message.len() - part.body.len() {
                for value in VALUES {
                    let mut body = whole.clone();
                    body[at + byte] = value;
                    let name = format!("{name}, byte {} = {value}", at + byte);
                    check(&name, decode(&name, body));
                }
            }
            at += message.len();
        }
    }
}

/// A sequence of numbers that looks random and is always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 8).unwrap() % bound.max(1)
    }
}

#[test]
fn several_lies_at_once() {
    let _alone = alone();
    let columns = samples::every_type();
    let fields: Vec<_> = columns.iter().map(|(name, batch)| batch.schema().field(0).clone().with_name(*name)).collect();
    let arrays = columns.iter().map(|(_, batch)| Arc::clone(batch.column(0))).collect();
    let batch =
        RecordBatch::try_new(Arc::new(Schema::new(fields.into_iter().collect::<Vec<Field>>())), arrays).unwrap();
    let stream = Stream::of(&batch);
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for round in 0..4000 {
        let mut parts = stream.parts.clone();
        for _ in 0..=numbers.below(3) {
            let count = parts.len();
            let part = &mut parts[numbers.below(count)];
            let all = lies(5);
            let lie = all[numbers.below(all.len())];
            let (node, buffers) = (numbers.below(part.nodes.len()), part.buffers.len());
            let (buffer, other) = (numbers.below(buffers), numbers.below(buffers));
            let byte = numbers.below(part.body.len());
            match numbers.below(6) {
                0 => part.nodes[node].0 = lie,
                1 => part.nodes[node].1 = lie,
                2 => part.buffers[buffer].0 = lie,
                3 => part.buffers[buffer].1 = lie,
                4 => part.buffers.swap(buffer, other),
                _ => part.body[byte] = u8::try_from(lie & 0xff).unwrap(),
            }
        }
        let name = format!("round {round}");
        check(&name, decode(&name, Stream { schema: stream.schema.clone(), parts }.write()));
    }
}
