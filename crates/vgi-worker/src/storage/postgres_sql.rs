//! What PostgreSQL does for an operation: one statement each, so that it is atomic and takes one round trip.
//!
//! Statements that change something hold a share lock on the row of their execution until they are done, which its end waits for: what a
//! late request writes is either freed with the execution or refused. Keys are bytes, because text holds no zero byte.

/// Makes the tables, once for all processes. The state of executions need not survive a crash of the server, and its tables are emptied
/// by one: no execution goes on without what was written last. The secret of the tokens stays.
pub(super) const SCHEMA: &str = "
    BEGIN;
    SELECT pg_advisory_xact_lock(8241962517);
    DO $$ BEGIN IF to_regnamespace('vgi_worker') IS NULL THEN CREATE SCHEMA vgi_worker; END IF; END $$;
    CREATE TABLE IF NOT EXISTS vgi_worker.secrets(name text PRIMARY KEY, value bytea NOT NULL);
    CREATE UNLOGGED TABLE IF NOT EXISTS vgi_worker.executions(
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id bytea NOT NULL UNIQUE,
        touched timestamptz NOT NULL DEFAULT now()) WITH (fillfactor = 50);
    CREATE UNLOGGED TABLE IF NOT EXISTS vgi_worker.pairs(
        execution bigint NOT NULL REFERENCES vgi_worker.executions ON DELETE CASCADE, key bytea NOT NULL,
        value bytea NOT NULL, PRIMARY KEY (execution, key));
    CREATE UNLOGGED TABLE IF NOT EXISTS vgi_worker.lengths(
        execution bigint NOT NULL REFERENCES vgi_worker.executions ON DELETE CASCADE, log bytea NOT NULL,
        length bigint NOT NULL, PRIMARY KEY (execution, log)) WITH (fillfactor = 50);
    CREATE UNLOGGED TABLE IF NOT EXISTS vgi_worker.logs(
        execution bigint NOT NULL REFERENCES vgi_worker.executions ON DELETE CASCADE, log bytea NOT NULL,
        position bigint NOT NULL, value bytea NOT NULL, PRIMARY KEY (execution, log, position));
    CREATE UNLOGGED TABLE IF NOT EXISTS vgi_worker.counters(
        execution bigint NOT NULL REFERENCES vgi_worker.executions ON DELETE CASCADE, counter bytea NOT NULL,
        value bigint NOT NULL, PRIMARY KEY (execution, counter)) WITH (fillfactor = 50);
    CREATE UNLOGGED TABLE IF NOT EXISTS vgi_worker.queues(
        number bigint GENERATED ALWAYS AS IDENTITY, execution bigint NOT NULL REFERENCES vgi_worker.executions ON DELETE CASCADE,
        queue bytea NOT NULL, value bytea NOT NULL, PRIMARY KEY (execution, queue, number));
    ALTER TABLE vgi_worker.pairs ALTER COLUMN value SET STORAGE EXTERNAL;
    ALTER TABLE vgi_worker.logs ALTER COLUMN value SET STORAGE EXTERNAL;
    ALTER TABLE vgi_worker.queues ALTER COLUMN value SET STORAGE EXTERNAL;
    COMMIT;
";

/// Whether the tables are there: who made them may have had rights that this user has not.
pub(super) const READY: &str = "SELECT to_regclass('vgi_worker.queues') IS NOT NULL";

/// The execution of a change. `stale` asks for [`TOUCH`]: noting the time with every statement would make them wait for each other.
macro_rules! live {
    ($rest:literal) => {
        concat!(
            "WITH live AS (SELECT number, touched < now() - interval '250 milliseconds' AS stale
                 FROM vgi_worker.executions WHERE id = $1 FOR KEY SHARE)",
            $rest
        )
    };
}

pub(super) const TOUCH: &str = "UPDATE vgi_worker.executions SET touched = clock_timestamp() WHERE id = $1";

pub(super) const BEGIN: &str = "INSERT INTO vgi_worker.executions(id) VALUES ($1) ON CONFLICT (id) DO NOTHING";

pub(super) const PUT: &str = live!(
    "INSERT INTO vgi_worker.pairs(execution, key, value) SELECT number, $2::bytea, $3::bytea FROM live
     ON CONFLICT (execution, key) DO UPDATE SET value = excluded.value
     RETURNING (SELECT stale FROM live)"
);

pub(super) const GET: &str = "
    SELECT touched < now() - interval '250 milliseconds', value
    FROM vgi_worker.executions LEFT JOIN vgi_worker.pairs ON execution = number AND key = $2 WHERE id = $1";

pub(super) const DELETE: &str = live!(
    ", deleted AS (DELETE FROM vgi_worker.pairs USING live WHERE execution = live.number AND key = $2 RETURNING 1)
     SELECT stale, (SELECT count(*) FROM deleted) FROM live"
);

/// The row with a log's length lets one append in at a time, so that positions have no gaps.
pub(super) const APPEND: &str = live!(
    ", place AS (INSERT INTO vgi_worker.lengths AS l(execution, log, length) SELECT number, $2::bytea, 1 FROM live
         ON CONFLICT (execution, log) DO UPDATE SET length = l.length + 1 RETURNING execution, length - 1 AS position)
     INSERT INTO vgi_worker.logs(execution, log, position, value) SELECT execution, $2::bytea, position, $3::bytea FROM place
     RETURNING (SELECT stale FROM live), position"
);

pub(super) const SCAN: &str = "
    SELECT touched < now() - interval '250 milliseconds', value
    FROM vgi_worker.executions
        LEFT JOIN vgi_worker.logs ON execution = number AND log = $2 AND position >= $3 AND position < $4
    WHERE id = $1 ORDER BY position";

pub(super) const COUNT: &str = live!(
    "INSERT INTO vgi_worker.counters AS c(execution, counter, value) SELECT number, $2::bytea, $3::bigint FROM live
     ON CONFLICT (execution, counter) DO UPDATE SET value = c.value + excluded.value
     RETURNING (SELECT stale FROM live), value"
);

pub(super) const PUSH: &str = live!(
    "INSERT INTO vgi_worker.queues(execution, queue, value) SELECT number, $2::bytea, $3::bytea FROM live
     RETURNING (SELECT stale FROM live)"
);

/// Waits for one that takes the first item, rather than to pass it over: when that one fails, the item is still the first.
pub(super) const POP: &str = live!(
    ", first AS (SELECT q.execution, q.number FROM vgi_worker.queues q JOIN live ON q.execution = live.number
         WHERE q.queue = $2 ORDER BY q.number LIMIT 1 FOR UPDATE OF q),
     taken AS (DELETE FROM vgi_worker.queues q USING first
         WHERE q.execution = first.execution AND q.queue = $2 AND q.number = first.number RETURNING q.value)
     SELECT stale, (SELECT value FROM taken) FROM live"
);

pub(super) const END: &str = "DELETE FROM vgi_worker.executions WHERE id = $1 RETURNING 1";

/// Passes over executions that a statement is changing now: those are not idle.
pub(super) const EXPIRE: &str = "
    WITH idle AS (SELECT number FROM vgi_worker.executions WHERE touched <= now() - make_interval(secs => $1)
        FOR UPDATE SKIP LOCKED),
    expired AS (DELETE FROM vgi_worker.executions USING idle WHERE executions.number = idle.number RETURNING 1)
    SELECT count(*) FROM expired";

pub(super) const LIVE: &str = "SELECT count(*) FROM vgi_worker.executions";

pub(super) const OFFER_SECRET: &str =
    "INSERT INTO vgi_worker.secrets(name, value) VALUES ('tokens', $1) ON CONFLICT (name) DO NOTHING";

pub(super) const SECRET: &str = "SELECT value FROM vgi_worker.secrets WHERE name = 'tokens'";
