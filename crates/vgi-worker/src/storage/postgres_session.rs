//! One connection to PostgreSQL, and the statements that it has prepared.

use std::collections::HashMap;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::task::JoinHandle;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Config, Error, NoTls, Row, Statement};

use crate::storage::postgres_sql::{READY, SCHEMA};

/// A value that a statement is given.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Bytes(Bytes),
    Number(i64),
    Seconds(f64),
}

impl Value {
    /// Of bytes, how many they are.
    pub(super) fn length(&self) -> Option<usize> {
        match self {
            Self::Bytes(bytes) => Some(bytes.len()),
            Self::Number(_) | Self::Seconds(_) => None,
        }
    }
}

impl ToSql for Value {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Bytes(bytes) => {
                out.put_slice(bytes);
                Ok(IsNull::No)
            }
            Self::Number(number) => number.to_sql(ty, out),
            Self::Seconds(seconds) => seconds.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::BYTEA, Type::INT8, Type::FLOAT8].contains(ty)
    }

    to_sql_checked!();
}

/// A connection.
pub(super) struct Session {
    client: Client,
    statements: HashMap<&'static str, Statement>,
    /// Moves the bytes of the connection.
    driver: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        // it would wait for a server that may never answer
        self.driver.abort();
    }
}

impl Session {
    pub(super) async fn connect(config: Config) -> Result<Self, Error> {
        let (client, connection) = config.connect(NoTls).await?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to PostgreSQL broke");
            }
        });
        let session = Self { client, statements: HashMap::new(), driver };
        if !session.client.query_one(READY, &[]).await?.try_get::<_, bool>(0)? {
            session.client.batch_execute(SCHEMA).await?;
        }
        Ok(session)
    }

    /// Whether it can still be used. The server must answer when the connection rested for longer than the limit.
    pub(super) async fn is_usable(&self, rested: Duration, limit: Duration) -> bool {
        !self.client.is_closed() && (rested < limit || self.client.check_connection().await.is_ok())
    }

    /// Runs a statement and returns its rows.
    pub(super) async fn run(&mut self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        self.client.query(&statement, &values).await
    }

    async fn prepared(&mut self, sql: &'static str) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }
}
