//! Requests read as a server reads them, and written again.

use bytes::Bytes;
use vgi_wire::WireError;
use vgi_wire::generation::Dialect;
use vgi_wire::ipc::Segments;
use vgi_wire::methods::{
    AttachRequest, BindRequest, CombineRequest, ExecutionRef, InitRequest, Method, ProcessRequest, cancel_body,
    contents_body, describe_body, list_protocols_body, no_parameters_body, request_body, schemas_body, turn_body,
};
use vgi_wire::server::{Call, decode_call, decode_turn};

/// The request as this library writes what it read; `None` for methods that it does not call.
pub(crate) fn rewritten(body: &Bytes) -> Option<Segments> {
    let Ok(call) = decode_call(body.clone()) else {
        // one client continued a stream that its server had ended, so it had no token
        let (tokens, cancel) = decode_turn(body.clone()).ok()?;
        return Some(if cancel { cancel_body(&tokens) } else { turn_body(&tokens) }.unwrap());
    };
    if call.method == "list_protocols" {
        return Some(list_protocols_body().unwrap());
    }
    if call.method == "__describe__" {
        return Some(describe_body().unwrap());
    }
    let method = Method::from_name(&call.method)?;
    let flat = call.protocol.as_deref().is_none_or(|protocol| !protocol.starts_with("vgi.v"));
    let protocol = call.protocol.clone().filter(|_| !flat);
    // some were recorded to see how a server refuses a version
    let mut dialect = Dialect::select(protocol.as_deref(), call.protocol_version.as_deref()).ok()?;
    // old clients name the protocol to flat servers, too
    dialect.protocol.clone_from(&call.protocol);
    write(&call, method, &dialect).map(Result::unwrap)
}

fn write(call: &Call, method: Method, dialect: &Dialect) -> Option<Result<Segments, WireError>> {
    let blob = || call.request_blob().unwrap();
    let attach = || call.record().unwrap().bytes("attach_opaque_data").unwrap();
    let record = match method {
        Method::CatalogCatalogs => return Some(no_parameters_body(dialect, method)),
        Method::CatalogSchemas => return Some(schemas_body(dialect, &attach(), None)),
        Method::SchemaFunctions => {
            let record = call.record().unwrap();
            let kind = record.text("type").unwrap();
            return Some(contents_body(
                dialect,
                Method::SchemaFunctions,
                &attach(),
                &record.texts("path"),
                Some(&kind),
                None,
            ));
        }
        Method::CatalogAttach => AttachRequest::from_blob(blob()).unwrap().to_blob(dialect),
        Method::Bind => BindRequest::from_blob(blob()).unwrap().to_blob(dialect),
        Method::Init => InitRequest::from_blob(blob()).unwrap().to_blob(dialect),
        Method::Process => ProcessRequest::from_blob(blob()).unwrap().into_blob(dialect),
        Method::Combine => CombineRequest::from_blob(blob()).unwrap().to_blob(dialect),
        Method::Destructor => ExecutionRef::from_blob(blob()).unwrap().to_blob(dialect),
        _ => return None,
    };
    Some(record.and_then(|record| request_body(dialect, method, record)))
}
