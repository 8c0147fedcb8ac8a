//! Replies read into the types of their methods.

use bytes::Bytes;
use vgi_wire::methods::{self, AttachReply, BindReply, CombineReply, FunctionInfo, ProcessReply, SchemaInfo};
use vgi_wire::reply::{self, Failure, UnaryReply};
use vgi_wire::{external, ipc};

use crate::python::show_bytes;

/// What a reply says, in parts that its text must contain.
pub(crate) fn parts(method: &str, body: &Bytes) -> Vec<String> {
    let streams = ipc::decode_streams(body.clone()).unwrap();
    let pointers = external::pointers(&streams);
    if !pointers.is_empty() {
        return pointers.into_iter().map(|pointer| pointer.url).collect();
    }
    let outcome = match method {
        "init" | "init-init" => reply::opening(streams).map(|reply| {
            let mut parts = vec![format!("execution_id = {}", show_bytes(&reply.header.execution_id))];
            parts.extend(reply.turn.into_iter().flat_map(turn));
            parts
        }),
        "exchange" | "init-exchange" => reply::turn(streams).map(turn),
        unary => reply::unary(streams).map(|reply| self::unary(unary, &reply)),
    };
    match outcome {
        Ok(parts) => parts,
        Err(Failure::Remote { error, .. }) => {
            vec!["vgi_rpc.log_level = b'EXCEPTION'".to_owned(), first_line(&error.message)]
        }
        Err(Failure::Wire(error)) => panic!("{error}"),
    }
}

fn first_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    // the recorder doubles backslashes and escapes quotes
    line.split(['\\', '\'', '"']).next().unwrap_or_default().to_owned()
}

fn turn(turn: reply::Turn) -> Vec<String> {
    let mut parts: Vec<_> = turn.schema.fields().iter().map(|field| format!(" {}: ", field.name())).collect();
    parts.extend(turn.batches.iter().map(|batch| format!(": {} row(s)", batch.num_rows())));
    parts.extend(turn.logs.iter().map(|log| first_line(&log.message)));
    parts.extend(turn.cursor.map(|cursor| format!("vgi_rpc.stream_state#b64 = b'{}", &cursor[..20])));
    parts.extend(turn.call.map(|call| format!("vgi_rpc.call_state#b64 = b'{}", &call[..20])));
    parts.extend(turn.error.map(|error| first_line(&error.message)));
    parts
}

fn unary(method: &str, reply: &UnaryReply) -> Vec<String> {
    let items = |name: fn(Bytes) -> String| methods::items(reply).unwrap().into_iter().map(name).collect();
    match method {
        "list_protocols" => {
            let entries = methods::protocol_entries(reply).unwrap();
            entries.into_iter().map(|entry| format!("'protocol_version': '{}'", entry.version)).collect()
        }
        "catalog_catalogs" => items(|item| format!("name = {:?}", methods::CatalogInfo::from_blob(item).unwrap().name)),
        "catalog_attach" => {
            let attached = AttachReply::from_reply(reply).unwrap();
            vec![show_bytes(&attached.attach_opaque_data), format!("default_schema = {:?}", attached.default_schema)]
        }
        "catalog_contents" => contents(reply),
        "catalog_schemas" => items(|item| format!("[0] path = {:?}", SchemaInfo::from_blob(item).unwrap().path)),
        "catalog_schema_contents_functions" => {
            items(|item| format!("[0] name = {:?}", FunctionInfo::from_blob(item).unwrap().name))
        }
        "bind" => {
            let bound = BindReply::from_reply(reply).unwrap();
            bound.output_schema.fields().iter().map(|field| format!(" {}: ", field.name())).collect()
        }
        "table_buffering_process" => {
            vec![format!("state_id = {}", show_bytes(&ProcessReply::from_reply(reply).unwrap().state_id))]
        }
        "table_buffering_combine" => {
            let combined = CombineReply::from_reply(reply).unwrap();
            combined.finalize_state_ids.iter().map(|id| show_bytes(id)).collect()
        }
        _ => Vec::new(),
    }
}

/// What a whole catalog has: every object's name is in the text.
fn contents(reply: &UnaryReply) -> Vec<String> {
    let contents = methods::CatalogContents::from_reply(reply).unwrap();
    assert_eq!(contents.unreadable, 0);
    assert!(!contents.functions.is_empty() && !contents.schemas.is_empty());
    let functions = contents.functions.iter().map(|function| format!(" name = {:?}", function.name));
    let schemas = contents.schemas.iter().map(|schema| format!(" path = {:?}", schema.path));
    functions.chain(schemas).collect()
}
