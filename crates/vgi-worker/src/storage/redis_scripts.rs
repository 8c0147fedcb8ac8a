//! What Redis does for an operation: scripts, because each operation must find its execution live and change it in one step.
//!
//! An execution is one hash, so that it ends, or is forgotten by the server, as a whole. Its fields are `r`, the life of the server in
//! which it began; `p` and a key, a value; `c` and a counter, its value; `n` and a log, its length; `l`, a position, `:` and a log, an
//! entry; `h` and `t` and a queue, the numbers of its first item and of the one after its last; `q`, a number, `:` and a queue, an item.
//! A sorted set has the milliseconds when each execution was touched last.
//!
//! All scripts take the keys of the hash and of the set, then the server's life and the execution's name as arguments.

use redis::Script;

/// The code of the error for an execution that is not live.
pub(super) const GONE: &str = "VGIGONE";

/// Begins the scripts that need a live execution. An execution of an earlier life of the server may lack what was written last, so it is
/// as good as gone. A server without memory refuses to note the time, which must not keep an execution from being read or ended.
const LIVE: &str = "
    if redis.call('HGET', KEYS[1], 'r') ~= ARGV[1] then return redis.error_reply('VGIGONE the execution is not live') end
    local time = redis.call('TIME')
    redis.pcall('ZADD', KEYS[2], 'XX', time[1] * 1000 + math.floor(time[2] / 1000), ARGV[2])
    local function place(kind, number, name) return kind .. string.format('%.0f', number) .. ':' .. name end
";

const BEGIN: &str = "
    local life = redis.call('HGET', KEYS[1], 'r')
    if life == ARGV[1] then return 0 end
    if life then redis.call('UNLINK', KEYS[1]) end
    local time = redis.call('TIME')
    redis.call('HSET', KEYS[1], 'r', ARGV[1])
    redis.call('ZADD', KEYS[2], time[1] * 1000 + math.floor(time[2] / 1000), ARGV[2])
    return 1
";

const PUT: &str = "redis.call('HSET', KEYS[1], 'p' .. ARGV[3], ARGV[4]) return 1";

const GET: &str = "return redis.call('HGET', KEYS[1], 'p' .. ARGV[3])";

const DELETE: &str = "return redis.call('HDEL', KEYS[1], 'p' .. ARGV[3])";

const APPEND: &str = "
    local position = redis.call('HINCRBY', KEYS[1], 'n' .. ARGV[3], 1) - 1
    redis.call('HSET', KEYS[1], place('l', position, ARGV[3]), ARGV[4])
    return position
";

const SCAN: &str = "
    local from, length = tonumber(ARGV[4]), tonumber(redis.call('HGET', KEYS[1], 'n' .. ARGV[3]) or 0)
    local fields = {}
    for position = from, math.min(from + tonumber(ARGV[5]), length) - 1 do
        fields[#fields + 1] = place('l', position, ARGV[3])
    end
    if #fields == 0 then return {} end
    return redis.call('HMGET', KEYS[1], unpack(fields))
";

/// The value is read again as text, because numbers of scripts have 53 bits.
const COUNT: &str = "
    local added = redis.pcall('HINCRBY', KEYS[1], 'c' .. ARGV[3], ARGV[4])
    if type(added) == 'table' and added.err then return added end
    return redis.call('HGET', KEYS[1], 'c' .. ARGV[3])
";

const PUSH: &str = "
    local number = redis.call('HINCRBY', KEYS[1], 't' .. ARGV[3], 1) - 1
    redis.call('HSET', KEYS[1], place('q', number, ARGV[3]), ARGV[4])
    return 1
";

const POP: &str = "
    local first = tonumber(redis.call('HGET', KEYS[1], 'h' .. ARGV[3]) or 0)
    local field = place('q', first, ARGV[3])
    local item = redis.call('HGET', KEYS[1], field)
    if not item then return false end
    redis.call('HINCRBY', KEYS[1], 'h' .. ARGV[3], 1)
    redis.call('HDEL', KEYS[1], field)
    return item
";

const END: &str = "
    local life = redis.call('HGET', KEYS[1], 'r')
    redis.call('UNLINK', KEYS[1])
    redis.call('ZREM', KEYS[2], ARGV[2])
    return life == ARGV[1] and 1 or 0
";

/// Takes the prefix of the hashes, the set, and the milliseconds; ends a part of what is old, and returns how many those were.
const EXPIRE: &str = "
    local time = redis.call('TIME')
    local before = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(ARGV[1])
    local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', before, 'LIMIT', 0, 100)
    for _, name in ipairs(old) do
        redis.call('UNLINK', KEYS[1] .. name)
        redis.call('ZREM', KEYS[2], name)
    end
    return #old
";

/// Executions that one run of the script for expiry ends at most.
pub(super) const EXPIRED_AT_ONCE: usize = 100;
/// Entries that one run of the script for scans returns at most: Lua puts so many values on its stack without complaint.
pub(super) const SCANNED_AT_ONCE: usize = 1000;

/// The scripts, each of which the server keeps once it has seen it.
pub(super) struct Scripts {
    pub(super) begin: Script,
    pub(super) put: Script,
    pub(super) get: Script,
    pub(super) delete: Script,
    pub(super) append: Script,
    pub(super) scan: Script,
    pub(super) count: Script,
    pub(super) push: Script,
    pub(super) pop: Script,
    pub(super) end: Script,
    pub(super) expire: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        let live = |text: &str| Script::new(&[LIVE, text].concat());
        Self {
            begin: Script::new(BEGIN),
            put: live(PUT),
            get: live(GET),
            delete: live(DELETE),
            append: live(APPEND),
            scan: live(SCAN),
            count: live(COUNT),
            push: live(PUSH),
            pop: live(POP),
            end: Script::new(END),
            expire: Script::new(EXPIRE),
        }
    }
}
