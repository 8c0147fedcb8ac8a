//! TLS in front of a plain server, and a server of HTTP/2.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use super::server::{Answer, Request};

/// A file of the certificates that the tests have.
pub fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

/// Listens with TLS as `localhost` until it is dropped.
pub struct Front {
    address: SocketAddr,
    /// The protocols that were agreed on, one per connection.
    agreed: Arc<Mutex<Vec<String>>>,
    runtime: Option<Runtime>,
}

impl Front {
    /// Hands plain bytes on to another server.
    pub fn before(server: &str) -> Self {
        let server: SocketAddr = server.strip_prefix("http://").unwrap().parse().unwrap();
        Self::start(&["http/1.1"], move |mut stream| async move {
            let mut plain = TcpStream::connect(server).await.unwrap();
            copy_bidirectional(&mut stream, &mut plain).await.ok();
        })
    }

    /// Speaks HTTP/2 where it is asked for.
    pub fn of_http2(handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let handler = Arc::new(handler);
        Self::start(&["h2", "http/1.1"], move |stream| serve_http2(stream, Arc::clone(&handler)))
    }

    fn start<F: Future<Output = ()> + Send + 'static>(
        protocols: &[&str],
        serve: impl Fn(TlsStream<TcpStream>) -> F + Send + Sync + 'static,
    ) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = CertificateDer::pem_file_iter(file("server.pem")).unwrap().collect::<Result<_, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_no_client_auth().with_single_cert(chain, key).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let agreed = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&agreed);
        let serve = Arc::new(serve);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, serve, record) = (acceptor.clone(), Arc::clone(&serve), Arc::clone(&record));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let protocol = stream.get_ref().1.alpn_protocol().unwrap_or_default();
                    record.lock().unwrap().push(String::from_utf8_lossy(protocol).into_owned());
                    serve(stream).await;
                });
            }
        });
        Self { address, agreed, runtime: Some(runtime) }
    }

    /// The URL under which the certificate is good.
    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }

    /// The URL under which it is not.
    pub fn wrong_url(&self) -> String {
        format!("https://{}", self.address)
    }

    pub fn agreed(&self) -> Vec<String> {
        self.agreed.lock().unwrap().clone()
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn serve_http2(stream: TlsStream<TcpStream>, handler: Arc<impl Fn(&Request) -> Answer + Send + Sync + 'static>) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let handler = Arc::clone(&handler);
        tokio::spawn(async move {
            let (head, mut incoming) = request.into_parts();
            let mut body = Vec::new();
            while let Some(Ok(piece)) = incoming.data().await {
                incoming.flow_control().release_capacity(piece.len()).unwrap();
                body.extend_from_slice(&piece);
            }
            let path = head.uri.path().to_owned();
            let headers =
                head.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
            let request = Request {
                method: head.method.to_string(),
                target: path.clone(),
                path,
                headers: headers.collect(),
                body,
            };
            let Answer::Reply { status, headers, body } = handler(&request) else { panic!("only whole replies") };
            let mut reply = http::Response::builder().status(status);
            for (name, value) in headers {
                reply = reply.header(name, value);
            }
            let mut sender = respond.send_response(reply.body(()).unwrap(), false).unwrap();
            sender.send_data(body.into(), true).unwrap();
        });
    }
}
