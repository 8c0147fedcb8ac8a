//! URLs of servers that keep state. They may hold a password, so what is shown of one is made of its harmless parts alone.

use std::fmt;

use redis::{ConnectionAddr, IntoConnectionInfo};
use tokio_postgres::config::{Host, SslMode};

/// The URL of a server.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    text: String,
    shown: String,
}

/// Without user, password and options.
impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// As it is displayed.
impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl ServerUrl {
    /// The whole URL, secrets included.
    pub(super) fn reveal(&self) -> &str {
        &self.text
    }

    /// `redis://USER:PASSWORD@HOST:PORT/NUMBER` or `redis+unix:///PATH`.
    pub(super) fn redis(text: &str) -> Result<Self, String> {
        // what the parsers say may repeat parts of the URL
        let info = text.into_connection_info().map_err(|_| {
            "the URL of the storage is no valid Redis URL; write redis://HOST:PORT or redis://USER:PASSWORD@HOST:PORT/NUMBER, with \
             characters like '@' in a password as %40"
        })?;
        let number = info.redis_settings().db();
        let shown = match info.addr() {
            ConnectionAddr::Unix(path) => format!("redis+unix://{}", path.display()),
            address => format!("redis://{address}/{number}"),
        };
        Ok(Self { text: text.to_owned(), shown })
    }

    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
    pub(super) fn postgres(text: &str) -> Result<Self, String> {
        let config: tokio_postgres::Config = text.parse().map_err(|_| {
            "the URL of the storage is no valid PostgreSQL URL; write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with characters \
             like '@' in a password as %40"
        })?;
        if matches!(config.get_ssl_mode(), SslMode::Require) {
            let reason = "this worker does not encrypt its connection to PostgreSQL; leave sslmode=require out, and use a network \
                          that you trust or a tunnel";
            return Err(reason.to_owned());
        }
        let ports = config.get_ports();
        let port = |place: usize| ports.get(place).or(ports.first()).copied().unwrap_or(5432);
        let named = config.get_hosts().iter().enumerate().map(|(place, host)| match host {
            Host::Tcp(name) => format!("{name}:{}", port(place)),
            Host::Unix(path) => format!("{}:{}", path.display(), port(place)),
        });
        let numbered = config.get_hostaddrs().iter().enumerate().map(|(place, host)| format!("{host}:{}", port(place)));
        let named: Vec<_> = named.collect();
        let hosts = if named.is_empty() { numbered.collect() } else { named };
        if hosts.is_empty() {
            return Err(
                "the URL of the storage names no host; write postgres://USER:PASSWORD@HOST:PORT/DATABASE".to_owned()
            );
        }
        let shown = match config.get_dbname() {
            Some(database) => format!("postgres://{}/{database}", hosts.join(",")),
            None => format!("postgres://{}", hosts.join(",")),
        };
        Ok(Self { text: text.to_owned(), shown })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_has_no_credentials() {
        for (url, shown) in [
            ("redis://ann:s3same@cache.example:6380/2", "redis://cache.example:6380/2"),
            ("redis://:s3same@127.0.0.1", "redis://127.0.0.1:6379/0"),
            ("redis+unix:///run/redis.sock?pass=s3same&user=ann", "redis+unix:///run/redis.sock"),
        ] {
            let url = ServerUrl::redis(url).unwrap();
            assert_eq!((url.to_string(), format!("{url:?}")), (shown.to_owned(), shown.to_owned()));
        }
        for (url, shown) in [
            ("postgres://ann:s3same@db.example/state", "postgres://db.example:5432/state"),
            ("postgresql://ann:s3same@one:1,two:2/state?connect_timeout=3", "postgres://one:1,two:2/state"),
            ("postgres://db.example/state?user=ann&password=s3same", "postgres://db.example:5432/state"),
            ("postgres:///state?host=/run/postgresql&user=ann", "postgres:///run/postgresql:5432/state"),
            ("postgres://ann:s3same@127.0.0.1:5433", "postgres://127.0.0.1:5433"),
        ] {
            assert_eq!(ServerUrl::postgres(url).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn a_url_that_is_refused_is_not_repeated() {
        for wrong in ["redis://ann:s3same@host:port", "rediss://ann:s3same@host", "redis://ann:s3same@host/x"] {
            let error = ServerUrl::redis(wrong).unwrap_err();
            assert!(error.contains("redis://HOST:PORT") && !error.contains("s3same"), "{error}");
        }
        for (wrong, hint) in [
            ("postgres://ann:s3same@host:port/state", "postgres://USER:PASSWORD@HOST"),
            ("postgres://ann:s3same@host/state?s3same=1", "postgres://USER:PASSWORD@HOST"),
            ("postgres:///state?password=s3same", "names no host"),
            ("postgres://ann:s3same@host/state?sslmode=require", "leave sslmode=require out"),
        ] {
            let error = ServerUrl::postgres(wrong).unwrap_err();
            assert!(error.contains(hint) && !error.contains("s3same"), "{error}");
        }
    }
}
