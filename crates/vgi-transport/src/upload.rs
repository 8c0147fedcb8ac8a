//! Requests that are larger than the server takes, where it gives places to upload to: the body goes there, and what is sent to the
//! server says where it lies (protocol file 01 §10).

use http::{HeaderMap, HeaderValue, header};
use reqwest::Client;
use vgi_wire::generation::Dialect;
use vgi_wire::ipc::Segments;
use vgi_wire::methods::{Method, UPLOAD_URL_PATH, pointer_body, upload_url_body};
use vgi_wire::record::Record;
use vgi_wire::reply::{self, Failure};
use vgi_wire::{WireError, ipc};

use crate::client::ClientKey;
use crate::error::{ErrorKind, Fault};
use crate::exchange::{Request, persist};
use crate::external::{permitted, place};
use crate::location::is_loopback;
use crate::options::Options;
use crate::peer::Peer;
use crate::retry::Repeat;
use crate::runtime;
use crate::verdict;

/// What is uploaded before a request.
#[derive(Clone)]
pub(crate) struct Upload {
    /// Asks the server for a place.
    ask: Box<Request>,
    pub(crate) object: Segments,
    /// Of the request that follows.
    dialect: Dialect,
    method: Method,
    options: Options,
    /// Whether the server is reached over TLS, which an upload must not leave.
    https: bool,
}

impl Peer {
    /// The upload that a body of that length needs; `None` when the server takes it as it is.
    pub(crate) fn upload(&self, dialect: &Dialect, method: Method, body: &Segments) -> Result<Option<Upload>, Fault> {
        let server = self.capabilities();
        let length = u64::try_from(body.len()).unwrap_or(u64::MAX);
        let too_large = server.max_request_bytes.is_some_and(|limit| length > limit);
        if !too_large || !server.upload_urls {
            return Ok(None);
        }
        if let Some(limit) = server.max_upload_bytes.filter(|&limit| length > limit) {
            let message = format!("the request has {length} bytes, the server allows {limit} even for uploads");
            return Err(Fault::new(ErrorKind::Limit, message));
        }
        Ok(Some(Upload {
            ask: Box::new(self.post(UPLOAD_URL_PATH, upload_url_body()?, Repeat::Refused)?),
            object: body.clone(),
            dialect: dialect.clone(),
            method,
            options: self.options.clone(),
            https: self.base.is_https(),
        }))
    }
}

/// Uploads, and gives the body that takes the place of what was uploaded.
pub(crate) async fn upload(client: Client, upload: Upload) -> Result<Segments, Fault> {
    let Upload { ask, object, dialect, method, options, https } = upload;
    let asked = persist(client, *ask.clone()).await?;
    let (to, from) = places(verdict::arrow_body(asked, options.max_response_bytes)?)?;
    let url = permitted(&to, https)?;
    let shown = place(&url);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(verdict::ARROW));
    let put = Request {
        client: ClientKey::new(url.scheme() == "https", url.host_str().is_some_and(is_loopback), &options),
        url,
        // nothing of the call's: the place may be somebody else's
        headers,
        body: Some(object),
        put: true,
        repeat: Repeat::Lost,
        ..*ask
    };
    let client = runtime::io()?.client(&put.client)?;
    let stored = persist(client, put).await?;
    if !stored.status.is_success() {
        let message = format!("the request cannot be uploaded to {shown}: HTTP {}", stored.status);
        return Err(Fault::new(ErrorKind::Http, message).with_status(stored.status));
    }
    Ok(pointer_body(&dialect, method, &from)?)
}

/// Where to upload to, and where the server finds it then.
fn places(body: bytes::Bytes) -> Result<(String, String), Fault> {
    let reply = reply::unary(ipc::decode_streams(body)?).map_err(|failure| match failure {
        Failure::Wire(error) => Fault::from(error),
        Failure::Remote { error, .. } => Fault::remote(error),
    })?;
    let batch = reply.batch.ok_or_else(|| WireError::Protocol("the server gives no place to upload to".to_owned()))?;
    let record = Record::first(&batch)?;
    Ok((record.text("upload_url")?, record.text("download_url")?))
}
