-- The API of sysbench 1.0 as its scripts use it, for all clients of one VM. Each has an environment of its own
-- and a coroutine; a request yields, and the client's side in Rust resumes with the reply.
local host, settings = ...
local ffi = require("ffi")
local yield = coroutine.yield
local CONNECT, QUERY, PREPARE, EXECUTE, CLOSE, FETCH, DISCONNECT, RECONNECT, SLEEP, NEXT, RESTART, COUNT, FREE, FORGET,
  START, STOP, MORE, FURTHER = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18
-- A yield of the host's, as it passes through a coroutine of the script's.
local HOST = host.marker

ffi.cdef [[
typedef enum { SB_CNT_OTHER, SB_CNT_READ, SB_CNT_WRITE, SB_CNT_TRX, SB_CNT_ERROR, SB_CNT_RECONNECT, SB_CNT_MAX } sb_counter_type;
]]

local function request(...)
  return yield(HOST, ...)
end

-- Random numbers: C functions over the stream of the client that runs.
local function c(name, type)
  return ffi.cast(type, host.functions[name])
end
local uniform = c("uniform", "uint32_t (*)(uint32_t, uint32_t)")
local default = c("default", "uint32_t (*)(uint32_t, uint32_t)")
local gaussian = c("gaussian", "uint32_t (*)(uint32_t, uint32_t)")
local special = c("special", "uint32_t (*)(uint32_t, uint32_t)")
local pareto = c("pareto", "uint32_t (*)(uint32_t, uint32_t)")
local zipfian = c("zipfian", "uint32_t (*)(uint32_t, uint32_t)")
local unique = c("unique", "uint32_t (*)(void)")
local uniform_double = c("uniform_double", "double (*)(void)")
local uniform_uint64 = c("uniform_uint64", "uint64_t (*)(void)")
local fill = c("pattern", "void (*)(const char *, uint32_t, uint8_t *)")

local byte, sub, gsub, format = string.byte, string.sub, string.gsub, string.format
local concat, floor = table.concat, math.floor

-- Refuses an argument that is no text; level is that of the script's call.
local function check_text(value, name, level)
  if type(value) ~= "string" then
    error(format("bad argument to '%s' (string expected, got %s)", name, type(value)), level)
  end
end

local function check_number(value, name, level)
  local number = tonumber(value)
  if not number then
    error(format("bad argument to '%s' (number expected, got %s)", name, type(value)), level)
  end
  return number
end

-- Bytes that are being drawn: nothing yields meanwhile.
local room, buffer = 256, ffi.new("uint8_t[?]", 256)

local function make_room(n)
  if n > room then room, buffer = n, ffi.new("uint8_t[?]", n) end
end

-- Draws the bytes of a pattern into the buffer; returns their number.
local function draw_pattern(pattern)
  local n = #pattern
  make_room(n)
  fill(pattern, n, buffer)
  return n
end

local function random_string(pattern)
  check_text(pattern, "string", 3)
  local n = draw_pattern(pattern)
  return ffi.string(buffer, n)
end

local function draw_varstring(min, max)
  if min > max then error("bad argument: the least length is above the most", 3) end
  local n = uniform(min, max)
  make_room(n)
  for i = 0, n - 1 do buffer[i] = uniform(48, 122) end
  return n
end

local rand = {
  uniform = function(a, b) return uniform(a, b) end,
  default = function(a, b) return default(a, b) end,
  gaussian = function(a, b) return gaussian(a, b) end,
  special = function(a, b) return special(a, b) end,
  pareto = function(a, b) return pareto(a, b) end,
  zipfian = function(a, b) return zipfian(a, b) end,
  unique = function() return unique() end,
  string = random_string,
  varstring = function(min, max)
    local n = draw_varstring(min, max)
    return ffi.string(buffer, n)
  end,
  uniform_double = function() return uniform_double() end,
  uniform_uint64 = function() return uniform_uint64() end,
}

-- Connections, statements, parameters, results.

local TYPE = {
  NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7, DATE = 8,
  DATETIME = 9, TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
}
local ERROR = { NONE = 0, IGNORABLE = 1, FATAL = 2 }
local RESTART_EVENT = 1
local BULK_MAX = 512 * 1024 - 1

local Driver, Connection, Statement, Param, Result = {}, {}, {}, {}, {}
for name, class in pairs({
  sql_driver = Driver, sql_connection = Connection, sql_statement = Statement, sql_param = Param, sql_result = Result,
}) do
  class.__index = class
  class.__tostring = function() return "<" .. name .. ">" end
end

-- Keeps the error of a request in its connection, and writes one that is not to be ignored.
local function note_error(con, call, sql, errno, state, message, listed)
  con.error = listed and ERROR.IGNORABLE or ERROR.FATAL
  con.sql_errno, con.sql_state, con.sql_errmsg = errno, state, message
  if not listed then
    host.fatal(format("%s returned error %d (%s) for query '%s'", call, errno, message, sql))
  end
end

-- Raises the error that a connection has; level is that of the script's call.
local function raise(con, sql, level)
  local env = con.env
  -- A statement of the hook's replaces them.
  local errno, state, message = con.sql_errno, con.sql_state, con.sql_errmsg
  local description = { connection = con, query = sql, sql_errno = errno, sql_state = state, sql_errmsg = message }
  env.errdesc = description
  local hook = env.sysbench.hooks.sql_error_ignorable
  if con.error == ERROR.IGNORABLE or (type(hook) == "function" and hook(description)) then
    description.errcode = RESTART_EVENT
    error(description, level)
  end
  error(format("SQL error, errno = %d, state = '%s': %s", errno, state, message), level)
end

-- Stands for a result without columns: as in sysbench it equals nil and is true.
ffi.cdef "typedef struct sql_result sql_result;"
Result.nfields, Result.nrows = 0, 0
ffi.metatype("sql_result", { __index = Result, __tostring = Result.__tostring })
local NO_RESULT = ffi.cast("sql_result *", nil)

-- Makes a result of an answer; the error before it is forgotten.
local function result(con, columns, rows)
  if con.error ~= ERROR.NONE then
    con.error, con.sql_errno, con.sql_state, con.sql_errmsg = ERROR.NONE, 0, nil, nil
  end
  con.serial = con.serial + 1
  if columns == 0 then return NO_RESULT end
  local rs = con.rs
  rs.nfields, rs.nrows, rs.serial = columns, rows, con.serial
  return rs
end

-- The host's numbers of connections and statements that nobody has any more are given back with the next request
-- that makes one: the collector cannot yield. The handle of a connection has its number alone.
local handle_of = ffi.typeof("struct { double id, connection; }")
local NO_CONNECTION = -1

local function make_driver(env)
  local dropped = {}
  local function collect(handle) dropped[#dropped + 1] = handle end
  return setmetatable({ env = env, dropped = dropped, collect = collect }, Driver)
end

local function give_back(driver)
  local list = driver.dropped
  while #list > 0 do
    local handle = table.remove(list)
    if handle.connection == NO_CONNECTION then
      request(FORGET, handle.id)
    else
      request(CLOSE, handle.connection, handle.id)
    end
  end
end

local function is_closed(con, verb)
  if not con.closed then return false end
  host.alert(format("attempt to %s an already closed connection", verb or "use"))
  -- A script that tries again and again lets others have their turn.
  request(FREE, con.id)
  return true
end

function Driver:name() return "mysql" end

-- Opens a connection; nil where that fails.
local function connect(driver)
  give_back(driver)
  local id, _, _, message = request(CONNECT)
  if not id then
    host.fatal(format("unable to connect to MySQL server %s, aborting...", settings.server))
    host.fatal("error " .. message)
    return nil
  end
  local con = setmetatable({ id = id, env = driver.env, driver = driver, error = ERROR.NONE, sql_errno = 0, serial = 0 },
    Connection)
  con.handle = ffi.gc(handle_of(id, NO_CONNECTION), driver.collect)
  con.rs = setmetatable({ con = con, nfields = 0, nrows = 0 }, Result)
  return con
end

function Driver:connect()
  return connect(self) or error("connection creation failed", 2)
end

-- Sends a statement; returns the numbers of columns and rows, nil where that fails.
local function send(con, sql)
  local columns, rows, a, b, listed = yield(HOST, QUERY, con.id, sql)
  if not columns then note_error(con, "mysql_drv_query()", sql, rows, a, b, listed) end
  return columns, rows
end

local function query(con, sql, level)
  check_text(sql, "query", level)
  if is_closed(con) then
    -- What pcall calls has no place: that of the pcall is named, as in sysbench.
    local caller = debug.getinfo(level - 1, "S")
    error("SQL API error", caller and caller.what == "C" and level or level - 1)
  end
  local columns, rows = send(con, sql)
  if columns then return result(con, columns, rows) end
  raise(con, sql, level)
end

-- The level counts the frames up to the script: a tail call leaves none.
function Connection:query(sql) return query(self, sql, 3) end

function Connection:query_row(sql)
  local rs = query(self, sql, 4)
  if rs == nil or rs.nrows == 0 then return nil end
  local row = rs:fetch_row()
  if not row then return nil end
  return unpack(row, 1, rs.nfields)
end

function Connection:check_error(rs, sql)
  if rs ~= nil or self.error == ERROR.NONE then return rs end
  if not self.sql_state then error("SQL API error", 2) end
  raise(self, sql, 3)
end

local NO_PARAMS = {}

-- Prepares a statement; nil where that fails.
local function prepare(con, sql)
  give_back(con.driver)
  local id, errno, state, message = request(PREPARE, con.id, sql)
  if not id then
    con.error, con.sql_errno, con.sql_state, con.sql_errmsg = ERROR.FATAL, errno, state, message
    host.fatal("mysql_stmt_prepare() failed")
    host.fatal(format('MySQL error: %d "%s"', errno, message))
    return nil
  end
  local handle = ffi.gc(handle_of(id, con.id), con.driver.collect)
  return setmetatable({ id = id, handle = handle, connection = con, sql = sql, params = NO_PARAMS, kinds = "" },
    Statement)
end

function Connection:prepare(sql)
  check_text(sql, "prepare", 3)
  if is_closed(self) then return nil end
  return prepare(self, sql) or error("SQL API error", 2)
end

function Connection:disconnect()
  if is_closed(self, "close") then return true end
  self.closed = true
  request(DISCONNECT, self.id)
  return true
end

function Connection:reconnect()
  if is_closed(self, "close") then return true end
  request(RECONNECT, self.id)
  return true
end

function Connection:more_results() return request(MORE, self.id) end

function Connection:next_result()
  local columns, rows = request(FURTHER, self.id)
  return columns and result(self, columns, rows) or nil
end

function Connection:bulk_insert_init(sql)
  check_text(sql, "bulk_insert_init", 3)
  -- A comma precedes each row but the first.
  self.bulk = { head = sql, rows = {}, n = 0, bytes = #sql - 1 }
  return true
end

-- Sends the rows; returns false where that failed.
local function flush(con)
  local bulk = con.bulk
  if bulk.n == 0 then return true end
  local sql = bulk.head .. concat(bulk.rows, ",", 1, bulk.n)
  bulk.n, bulk.bytes = 0, #bulk.head - 1
  local columns, rows = send(con, sql)
  if columns then result(con, columns, rows) end
  return columns ~= nil
end

-- Adds a row; returns false where that failed.
local function add_row(con, row)
  local bulk = con.bulk
  if not bulk then
    host.alert("attempt to call bulk_insert_next() before bulk_insert_init()")
    return false
  end
  if bulk.bytes + #row + 1 > BULK_MAX and not flush(con) then return false end
  bulk.n = bulk.n + 1
  bulk.rows[bulk.n] = row
  bulk.bytes = bulk.bytes + #row + 1
  return true
end

function Connection:bulk_insert_next(row)
  check_text(row, "bulk_insert_next", 3)
  return add_row(self, row) or error("db_bulk_insert_next() failed", 2)
end

function Connection:bulk_insert_done()
  if self.bulk and not flush(self) then error("db_bulk_insert_done() failed", 2) end
  self.bulk = nil
  return true
end

local KIND = {
  [TYPE.TINYINT] = "i", [TYPE.SMALLINT] = "i", [TYPE.INT] = "i", [TYPE.BIGINT] = "i",
  [TYPE.FLOAT] = "d", [TYPE.DOUBLE] = "d", [TYPE.CHAR] = "s", [TYPE.VARCHAR] = "s",
}

function Statement:bind_create(type, max_len)
  local kind = KIND[type]
  if not kind then error("Unsupported argument type: " .. tostring(type), 2) end
  -- As in sysbench, it is not NULL before it is set.
  return setmetatable({ type = type, max_len = max_len, kind = kind, value = kind == "s" and "" or 0 }, Param)
end

function Statement:bind_param(...)
  local n, kinds = select("#", ...), {}
  if n == 0 then return nil end
  local params = { ... }
  for i = 1, n do
    if getmetatable(params[i]) ~= Param then error(format("parameter %d is none of bind_create()", i), 2) end
    kinds[i] = params[i].kind
  end
  self.params, self.kinds = params, concat(kinds)
  return 0
end

-- The values of the statement that is being executed: the host reads them before another client runs.
local values = {}

-- Executes a statement with these values; numbers of columns and rows, or nil where that fails.
local function execute(stmt)
  local con = stmt.connection
  -- Without the call of request: this and NEXT are what most events consist of.
  local columns, rows, a, b, listed = yield(HOST, EXECUTE, con.id, stmt.id, stmt.kinds, values)
  if not columns then note_error(con, "mysql_stmt_execute()", stmt.sql, rows, a, b, listed) end
  return columns, rows
end

function Statement:execute()
  local con, params = self.connection, self.params
  if is_closed(con) then return nil end
  for i = 1, #self.kinds do values[i] = (params[i] or NO_PARAMS).value end
  local columns, rows = execute(self)
  if columns then return result(con, columns, rows) end
  raise(con, "<prepared statement>", 3)
end

function Statement:next_result() return self.connection:next_result() end

-- Any number that no statement has.
local NO_STATEMENT = 2 ^ 52

function Statement:close()
  if is_closed(self.connection) or self.id == NO_STATEMENT then return 0 end
  ffi.gc(self.handle, nil)
  request(CLOSE, self.connection.id, self.id)
  self.id = NO_STATEMENT
  return 0
end

function Param:set(value)
  if value == nil then
    self.value = nil
  elseif self.kind == "s" then
    value = tostring(value)
    local max = self.max_len
    self.value = max and #value > max and sub(value, 1, max) or value
  else
    -- As in C, true is 1.
    if type(value) == "boolean" then value = value and 1 or 0 end
    local number = tonumber(value)
    if not number then error("Unsupported argument type: " .. type(value), 2) end
    if self.kind == "i" and type(value) == "cdata" then
      -- A number of Lua holds 53 bits: what may have 64 goes as its digits, without the LL behind them.
      number = sub(tostring(ffi.cast("int64_t", value)), 1, -3)
    elseif self.kind == "i" then
      number = number < 0 and math.ceil(number) or floor(number)
    end
    self.value = number
  end
end

function Param:set_rand_str(pattern) self:set(random_string(pattern)) end

-- Says in sysbench's words why there is no row; under loadgen's own flags nothing is said.
local function alert_missing_row(why)
  if not settings.native then host.alert(format("attempt to fetch row from an %s result set", why)) end
  return nil
end

function Result:fetch_row()
  if self == nil or is_closed(self.con) then return nil end
  if self.serial ~= self.con.serial then return alert_missing_row("invalid") end
  if self.nrows == 0 then return alert_missing_row("empty") end
  local more, row = request(FETCH, self.con.id)
  if more == nil then error(row, 2) end
  if not more then return nil end
  return row
end

function Result:free()
  if self ~= nil and is_closed(self.con) then error("db_free_results() failed", 2) end
  if self == nil or self.serial ~= self.con.serial then
    host.alert("attempt to free an invalid result set")
    error("db_free_results() failed", 2)
  end
  self.con.serial = self.con.serial + 1
  request(FREE, self.con.id)
  return true
end

-- Histograms of a script's own.

local Histogram = {}
Histogram.__index = Histogram

local function new_histogram(size, min, max)
  size = floor(check_number(size, "new", 3))
  if size < 1 then error("bad argument: a histogram has one bucket at least", 2) end
  local base = math.log(min)
  return setmetatable({ size = size, base = base, scale = (size - 1) / (math.log(max) - base), counts = {} }, Histogram)
end

function Histogram:update(value)
  local i = floor((math.log(value) - self.base) * self.scale + 0.5)
  -- As in sysbench, what has no logarithm counts in the first bucket.
  i = i > 0 and i < math.huge and math.min(i, self.size - 1) or 0
  self.counts[i] = (self.counts[i] or 0) + 1
end

function Histogram:print()
  local most = 0
  for _, count in pairs(self.counts) do most = math.max(most, count) end
  if most == 0 then return end
  host.write("       value  ------------- distribution ------------- count\n")
  for i = 0, self.size - 1 do
    local count = self.counts[i]
    if count then
      local bar = string.rep("*", floor(40 * count / most + 0.5))
      local value = math.exp(self.base + (i > 0 and i / self.scale or 0))
      host.write(format("%12.3f |%-40s %d\n", value, bar, count))
    end
  end
end

-- Reports.

local function latency(stat) return (stat.latency_pct or 0) * 1000 end

local function per_second(stat)
  local s = stat.time_interval
  return stat.events / s, (stat.reads + stat.writes + stat.other) / s, stat.reads / s, stat.writes / s, stat.other / s,
    stat.errors / s, stat.reconnects / s
end

local function report_default(stat)
  local tps, qps, r, w, o, err, reconn = per_second(stat)
  host.write(format(
    "[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%u%%): %4.2f err/s %4.2f reconn/s: %4.2f\n",
    stat.time_total, stat.threads_running, tps, qps, r, w, o, settings.opt.percentile or 95, latency(stat), err, reconn))
end

local function report_csv(stat)
  local tps, qps, r, w, o, err, reconn = per_second(stat)
  host.write(format("%.0f,%u,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f\n", stat.time_total, stat.threads_running,
    tps, qps, r, w, o, latency(stat), err, reconn))
end

local objects = 0
local function report_json(stat)
  local tps, qps, r, w, o, err, reconn = per_second(stat)
  host.write(objects == 0 and "[\n" or ",\n")
  objects = objects + 1
  host.write(format([[
  {
    "time": %4.0f,
    "threads": %u,
    "tps": %4.2f,
    "qps": {
      "total": %4.2f,
      "reads": %4.2f,
      "writes": %4.2f,
      "other": %4.2f
    },
    "latency": %4.2f,
    "errors": %4.2f,
    "reconnects": %4.2f
  }]], stat.time_total, stat.threads_running, tps, qps, r, w, o, latency(stat), err, reconn))
end

-- The command line of a script.

local ARG = { ARG_NULL = 0, ARG_BOOL = 1, ARG_INT = 2, ARG_SIZE = 3, ARG_DOUBLE = 4, ARG_STRING = 5, ARG_LIST = 6,
  ARG_FILE = 7, ARG_MAX = 8 }
local TYPE_OF_DEFAULT = { boolean = ARG.ARG_BOOL, string = ARG.ARG_STRING, number = ARG.ARG_DOUBLE,
  table = ARG.ARG_LIST, ["nil"] = ARG.ARG_STRING }

local function ensure(condition, message)
  if not condition then error(message, 0) end
end

-- Lists the options of a script, sorted by name: { name, description, default as text or nil, type }.
local function declared(env)
  local options = env.sysbench.cmdline.options
  if options == nil then return nil end
  ensure(type(options) == "table", "wrong type for sysbench.cmdline.options: " .. type(options))
  local list = {}
  for name, option in pairs(options) do
    ensure(type(option) == "table" and type(name) == "string", "wrong table structure in sysbench.cmdline.options")
    local about, value, kind = option[1], option[2], option[3]
    ensure(about ~= nil, "nil description for option " .. name)
    kind = kind ~= nil and tonumber(kind) or TYPE_OF_DEFAULT[type(value)]
    ensure(kind, "cannot determine type for option " .. name)
    if type(value) == "table" then value = concat(value, ",") end
    if type(value) == "boolean" then value = value and "on" or "off" end
    list[#list + 1] = { name, tostring(about), value ~= nil and tostring(value) or nil, kind }
  end
  table.sort(list, function(one, other) return one[1] < other[1] end)
  return list
end

local SUFFIX = { [ARG.ARG_BOOL] = "[=on|off]", [ARG.ARG_INT] = "=N", [ARG.ARG_SIZE] = "=SIZE", [ARG.ARG_DOUBLE] = "=N",
  [ARG.ARG_STRING] = "=STRING", [ARG.ARG_LIST] = "=[LIST,...]", [ARG.ARG_FILE] = "=FILENAME" }

local function print_options(env)
  local list, width = declared(env) or {}, 0
  for _, option in ipairs(list) do
    option.form = option[1] .. (SUFFIX[option[4]] or "")
    width = math.max(width, #option.form)
  end
  for _, option in ipairs(list) do
    local default = option[3] and format(" [%s]", option[3]) or ""
    -- format() takes no width of three digits.
    local gap = string.rep(" ", width - #option.form)
    host.write(format("  --%s%s %s%s\n", option.form, gap, option[2], default))
  end
  host.write("\n")
end

-- Checks a value by the function that its option may have.
local function validate(env, name, value)
  local options = env.sysbench.cmdline.options
  local option = options and options[name]
  return not (option and option[4]) or option[4](name, value) and true or false
end

-- Returns the entry of a command of the script's own, nil if it has none.
local function command(env, name)
  local own = env.sysbench.cmdline.commands
  own = type(own) == "table" and own[name] or nil
  return own and own[1] ~= nil and own or nil
end

-- Returns true for such a command that runs in every thread, nil if there is none.
local function own_command(env, name)
  local own = command(env, name)
  if own then return own[2] == true end
end

-- Environments.

-- A thread yields to its client; a coroutine of the script's passes the host's requests up.
local function pass_up(co, ok, first, ...)
  while ok and first == HOST do
    return pass_up(co, coroutine.resume(co, yield(first, ...)))
  end
  return ok, first, ...
end

local function resume(co, ...) return pass_up(co, coroutine.resume(co, ...)) end

-- As in LuaJIT, an error begins with the place of the call. This is the tail call of wrap's function, which is no level.
local function unwrap(ok, ...)
  if ok then return ... end
  error((...), 2)
end

local co = setmetatable({
  resume = resume,
  wrap = function(f)
    local thread = coroutine.create(f)
    return function(...) return unwrap(resume(thread, ...)) end
  end,
}, { __index = coroutine })

local function sleep(seconds)
  if seconds > 0 then request(SLEEP, seconds) end
  return 0
end

local declarations = {}
local function cdef(text, ...)
  if declarations[text] then return end
  ffi.cdef(text, ...)
  declarations[text] = true
end

local C = setmetatable({
  usleep = function(us) return sleep(check_number(us, "usleep", 3) / 1e6) end,
  sleep = function(s) return sleep(check_number(s, "sleep", 3)) end,
  -- To wait for no file is the sleep of LuaJIT's own pages.
  poll = function(files, n, ms)
    ms = check_number(ms, "poll", 3)
    if n == 0 and ms >= 0 then return sleep(floor(ms) / 1e3) end
    return ffi.C.poll(files, n, ms)
  end,
  nanosleep = function(time)
    local is_array = tostring(ffi.typeof(time)):find("[", 1, true)
    time = is_array and time[0] or time
    return sleep(tonumber(time.tv_sec) + tonumber(time.tv_nsec) / 1e9)
  end,
  sb_counter_inc = function(_, kind) request(COUNT, check_number(kind, "sb_counter_inc", 3)) end,
  sb_rand_uniform = uniform, sb_rand_default = default, sb_rand_gaussian = gaussian, sb_rand_special = special,
  sb_rand_pareto = pareto, sb_rand_zipfian = zipfian, sb_rand_unique = unique,
  sb_rand_uniform_double = uniform_double, sb_rand_uniform_uint64 = uniform_uint64,
  sb_rand_str = function(pattern, out)
    local n = draw_pattern(type(pattern) == "cdata" and ffi.string(pattern) or pattern)
    ffi.copy(out, buffer, n)
  end,
  sb_rand_varstr = function(out, min, max)
    local n = draw_varstring(min, max)
    ffi.copy(out, buffer, n)
    return n
  end,
  sb_histogram_new = new_histogram, sb_histogram_update = Histogram.update, sb_histogram_print = Histogram.print,
  sb_histogram_delete = function() end,
  sb_event_start = function() request(START) end,
  sb_event_stop = function() request(STOP) end,
  -- The script says itself when its events begin and end.
  sb_more_events = function() return request(NEXT, false, false) end,
}, { __index = ffi.C })

local proxy = setmetatable({ C = C, cdef = cdef }, { __index = ffi })

local os_proxy = setmetatable({
  execute = function(line)
    local seconds = line and line:match("^%s*sleep%s+([%d.]+)%s*$")
    if seconds then return sleep(tonumber(seconds)) end
    return os.execute(line)
  end,
  exit = function(code, ...)
    -- Results and gates come after a measured script: they would be lost, maybe with status 0.
    if settings.native then
      error(format("os.exit(%s): a measured script cannot end loadgen; event() ends its client with true",
        code == nil and "" or tostring(code)), 2)
    end
    return os.exit(code, ...)
  end,
}, { __index = os })

io.stdout:setvbuf("no")

-- Makes the io of a client, whose default output is its own.
local function make_io()
  local out = io.stdout
  return setmetatable({
    output = function(file)
      if type(file) == "string" then
        local message
        file, message = io.open(file, "w")
        if not file then error(message, 2) end
      end
      out = file or out
      return out
    end,
    write = function(...)
      if out ~= io.stdout then return out:write(...) end
      for i = 1, select("#", ...) do host.write(tostring((select(i, ...)))) end
      return out
    end,
    close = function(file) return (file or out):close() end,
  }, { __index = io })
end

local function print_line(...)
  local words = {}
  for i = 1, select("#", ...) do words[i] = tostring((select(i, ...))) end
  host.write(concat(words, "\t") .. "\n")
end

local texts, wrappers = {}, {}

-- Makes the chunk of a file in an environment, else nil and why not. A text is compiled once a VM.
local function load_file(env, path, text)
  local message
  if not text then
    text, message = host.read(path)
    if not text then return nil, message end
  end
  if texts[path] ~= text then
    local wrapper
    wrapper, message = host.compile(path, text)
    if not wrapper then return nil, message end
    texts[path], wrappers[path] = text, wrapper
  end
  setfenv(wrappers[path], env)
  return wrappers[path]()
end

local function run_file(env, path, text)
  local chunk, message = load_file(env, path, text)
  if not chunk then error(message, 0) end
  return chunk()
end

local function find_module(path, name)
  local file = gsub(name, "%.", "/")
  local tried = {}
  for template in path:gmatch("[^;]+") do
    local candidate = gsub(template, "%?", file)
    if host.exists(candidate) then return candidate end
    tried[#tried + 1] = "\n\tno file '" .. candidate .. "'"
  end
  return nil, concat(tried)
end

-- Finds a module: its path, and its text where that is not in the file.
local function find(env, name)
  local found, tried = find_module(env.package.path, name)
  if found then return found end
  local own = host.modules[name]
  if own then return "=" .. name, own end
  found = find_module(settings.stock_path, name)
  return found, nil, tried .. host.advice
end

-- The loaders of a client begin with these two; there are none for modules in C. What clients call finds their
-- environment by getfenv(0): a closure for each client would take memory.
local function find_preloaded(name)
  return getfenv(0).package.preload[name] or "\n\tno field package.preload['" .. name .. "']"
end

local function load_found(name)
  local env = getfenv(0)
  local path, text, tried = find(env, name)
  if not path then return tried end
  local chunk, message = load_file(env, path, text)
  if chunk then return chunk end
  error(format("error loading module '%s' from file '%s':\n\t%s", name, path, message), 0)
end

-- Stands for a module that is being loaded.
local LOADING = {}

local function load_module(env, name)
  local tried = {}
  for _, loader in ipairs(env.package.loaders) do
    local chunk = loader(name)
    if type(chunk) == "function" then return chunk(name) end
    if type(chunk) == "string" then tried[#tried + 1] = chunk end
  end
  error(format("module '%s' not found:%s", name, concat(tried)), 4)
end

local function require_module(name)
  check_text(name, "require", 3)
  local env = getfenv(0)
  local loaded = env.package.loaded
  if loaded[name] == LOADING then error("loop or previous error loading module '" .. name .. "'", 2) end
  if loaded[name] then return loaded[name] end
  loaded[name] = LOADING
  local ok, value = pcall(load_module, env, name)
  if loaded[name] == LOADING then loaded[name] = nil end
  if not ok then
    loaded[name] = nil
    error(value, 0)
  end
  if value ~= nil then loaded[name] = value end
  if loaded[name] == nil then loaded[name] = true end
  return loaded[name]
end

-- Stands for `module` of Lua 5.1. Its tables are a client's own, unless the name begins with that of a library (`math.own`).
local function begin_module(name, ...)
  local env = getfenv(0)
  local made = env.package.loaded[name]
  if type(made) ~= "table" or made == LOADING then
    made = env
    for part in name:gmatch("[^.]+") do
      made[part] = rawget(made, part) or {}
      made = made[part]
    end
    env.package.loaded[name] = made
  end
  if made._NAME == nil then made._M, made._NAME, made._PACKAGE = made, name, name:match("^(.*%.)[^.]*$") or "" end
  setfenv(2, made)
  for i = 1, select("#", ...) do select(i, ...)(made) end
end

local function see_all(made) setmetatable(made, { __index = getfenv(0) }) end

local LIBRARIES = { "string", "table", "math", "debug", "jit", "bit" }
local loaded_at_first = { ffi = proxy, os = os_proxy, coroutine = co, ["jit.opt"] = package.loaded["jit.opt"] }
for _, name in ipairs(LIBRARIES) do loaded_at_first[name] = _G[name] end

-- In 0.5 a bound may be a text, as options are that the script does not declare.
local function take_texts(draw)
  return function(a, b) return draw(tonumber(a), tonumber(b)) end
end

local set_transaction = c("transaction", "void (*)(uint32_t)")
local transactions = {}

-- Gives the event that runs a name.
local function transaction(name)
  local number = transactions[name]
  if not number then
    check_text(name, "transaction", 3)
    local why
    number, why = host.transaction(name)
    if not number then error(why, 2) end
    transactions[name] = number
  end
  set_transaction(number)
end

local function copy(value)
  if type(value) ~= "table" then return value end
  local own = {}
  for name, item in pairs(value) do own[name] = item end
  return own
end

-- The globals that each client gets: they are its own, so that a script may list them or set a metatable.
local base = copy(_G)
for name, value in pairs({
  ffi = proxy, coroutine = co, os = os_proxy, print = print_line, require = require_module, module = begin_module,
  dofile = function(path)
    check_text(path, "dofile", 3)
    return run_file(getfenv(0), path)
  end,
  loadfile = function(path)
    check_text(path, "loadfile", 3)
    return load_file(getfenv(0), path)
  end,
  sb_rand = take_texts(default), sb_rand_uniform = take_texts(uniform), sb_rand_gaussian = take_texts(gaussian),
  sb_rand_special = take_texts(special), sb_rand_str = random_string,
  sb_rnd = function() return tonumber(uniform_uint64() % 4294967296ULL) end,
  sb_rand_uniq = function(a, b)
    a, b = tonumber(a) or 0, tonumber(b) or 4294967295
    if a > b then error("bad argument: the first bound is above the second", 2) end
    local number
    repeat number = unique() until number >= a and number <= b
    return number
  end,
}) do base[name] = value end

local function set_options(env)
  local opt = {}
  for name, value in pairs(settings.opt) do opt[name] = copy(value) end
  env.sysbench.opt = opt
  if env.sysbench.cmdline.options == nil then
    -- The interface of 0.5: every option is a global, but where that is a function.
    for name, value in pairs(opt) do
      if type(env[name]) ~= "function" then env[name] = value end
    end
  end
end

-- By environment.
local drivers = {}
local asked

local function own_driver() return drivers[getfenv(0)._G] end

-- Finds the driver of a name, or that of the command line: there is one. Returns nil where it cannot be.
local function find_driver(name)
  if not asked then host.driver() end
  asked = true
  name = name or settings.opt.db_driver
  local fault = name ~= nil and name ~= "" and name ~= "mysql" and format("invalid database driver name: '%s'", name)
  fault = fault or settings.fault
  if not fault then return own_driver() end
  host.fatal(fault)
end

-- The interface of 0.5: functions over one connection, which the first of them opens. Statements and bulk inserts go
-- on after errors that are not listed.

local OldResult = {}
local OLD_RESULT = setmetatable({}, OldResult)

local function check_old(value, class, name)
  if getmetatable(value) ~= class then error(format("bad argument #1 to '%s'", name), 3) end
end

-- Returns the kinds of the values that a statement takes from a table.
local function kinds_of(params)
  if type(params) ~= "table" then error("table was expected", 3) end
  local kinds = {}
  for i = 1, #params do
    local kind = type(params[i])
    kinds[i] = kind == "number" and "i" or kind == "string" and "s" or error("Unsupported variable type: " .. kind, 3)
  end
  if #kinds == 0 then error("table is empty", 3) end
  return concat(kinds)
end

-- Takes the values of a statement from its table, as they are now.
local function take_values(stmt)
  for i = 1, #stmt.kinds do
    local value = stmt.source[i]
    if value ~= nil and byte(stmt.kinds, i) == 105 then
      value = check_number(value, "db_execute", 4)
      value = value < 0 and math.ceil(value) or floor(value)
    elseif value ~= nil then
      value = tostring(value)
    end
    values[i] = value
  end
end

-- Returns the connection, which is open or is opened now.
local function open()
  local driver = find_driver() or error("DB initialization failed", 3)
  getfenv(0).db_driver = driver:name()
  driver.con = driver.con or connect(driver) or error("Failed to connect to the database", 3)
  return driver.con
end

local function opened()
  return own_driver().con or error("Uninitialized database connection", 3)
end

local function begin_again(con)
  if con.error == ERROR.IGNORABLE then error({ errcode = RESTART_EVENT }) end
end

local db = {}
function db.connect() open() end
function db.disconnect()
  local driver = own_driver()
  if driver.con then driver.con:disconnect() end
  driver.con = nil
end
function db.query(sql)
  check_text(sql, "db_query", 3)
  local con = open()
  local columns, rows = send(con, sql)
  if not columns then
    begin_again(con)
    error("db_query() failed", 2)
  end
  result(con, columns, rows)
end
function db.bulk_insert_init(sql)
  check_text(sql, "db_bulk_insert_init", 3)
  local con = open()
  con:bulk_insert_init(sql)
end
function db.bulk_insert_next(row)
  local con = opened()
  check_text(row, "db_bulk_insert_next", 3)
  if not add_row(con, row) then error("db_bulk_insert_next() failed", 2) end
end
function db.bulk_insert_done()
  local con = opened()
  if con.bulk then flush(con) end
  con.bulk = nil
end
function db.prepare(sql)
  check_text(sql, "db_prepare", 3)
  local con = open()
  return prepare(con, sql) or error("db_prepare() failed", 2)
end
function db.bind_param(stmt, params)
  check_old(stmt, Statement, "db_bind_param")
  stmt.kinds, stmt.source = kinds_of(params), params
end
-- sysbench gives no values to the table, either.
function db.bind_result(stmt, results)
  check_old(stmt, Statement, "db_bind_result")
  kinds_of(results)
end
function db.execute(stmt)
  local con = opened()
  check_old(stmt, Statement, "db_execute")
  take_values(stmt)
  local columns, rows = execute(stmt)
  if columns then result(con, columns, rows) else begin_again(con) end
  return OLD_RESULT
end
function db.store_results(rs) check_old(rs, OldResult, "db_store_results") end
function db.free_results(rs) check_old(rs, OldResult, "db_free_results") end
function db.close(stmt)
  check_old(stmt, Statement, "db_close")
  stmt:close()
end
for name, f in pairs(db) do base["db_" .. name] = f end
db.DB_ERROR_NONE, db.DB_ERROR_RESTART_TRANSACTION, db.DB_ERROR_FAILED = 0, 1, 2
base.DB_ERROR_NONE, base.DB_ERROR_RESTART_TRANSACTION, base.DB_ERROR_FAILED = 0, 1, 2
base.test, base.mysql_table_engine, base.myisam_max_rows = settings.path, "innodb", 1000000

local function message_of(message)
  return type(message) == "string" and message or type(message) == "table" and message.sql_errmsg
    and format("SQL error, errno = %s, state = '%s': %s", message.sql_errno, message.sql_state, message.sql_errmsg)
    or type(message) == "number" and tostring(message) or "(not a string)"
end

local function thread_run(env, tid)
  while yield(HOST, NEXT, false, true) do
    local ok, value
    repeat
      ok, value = pcall(env.event, tid)
      if not ok then
        if type(value) ~= "table" or value.errcode ~= RESTART_EVENT then error(value, 0) end
        local hook = env.sysbench.hooks.before_restart_event
        if hook then hook(value) end
        request(RESTART, value.sql_errmsg and message_of(value) or "the script begins the event again")
      end
    until ok
    if value then return end
  end
end

-- A script may replace it, or wrap it.
function base.thread_run(tid) return thread_run(getfenv(0), tid) end

-- What a client's tables begin with. They are its own: a script may wrap a function, and list what there is.
local SQL = {
  type = TYPE, error = ERROR,
  driver = function(name)
    return find_driver(name) or error("failed to initialize the DB driver", 2)
  end,
}
local CMDLINE = {
  argv = {}, command = settings.command, script_path = settings.path, PARALLEL_COMMAND = true,
  print_test_options = function() print_options(getfenv(0)) end,
  command_defined = function(name) return command(getfenv(0), name) ~= nil end,
  command_parallel = function(name) return own_command(getfenv(0), name) == true end,
  call_command = function(name)
    local own = command(getfenv(0), name)
    return own ~= nil and own[1]() ~= false
  end,
}
for i, word in ipairs(settings.argv) do CMDLINE.argv[i - 1] = word end
for name, number in pairs(ARG) do CMDLINE[name] = number end
local SYSBENCH = {
  version = "1.0.20", version_string = "sysbench 1.0.20", error = { NONE = 0, RESTART_EVENT = RESTART_EVENT },
  report_csv = report_csv, report_json = report_json, report_default = report_default,
}
local HISTOGRAM = { new = new_histogram }
local OF_PRELOAD, OF_LOADED = { __index = package.preload }, { __index = loaded_at_first }

local function new_state(tid)
  local env = copy(base)
  env.thread_id, env._G = tid, env
  drivers[env] = make_driver(env)
  local own = copy(SYSBENCH)
  own.tid, own.hooks, own.cmdline, own.rand = tid, {}, copy(CMDLINE), copy(rand)
  own.sql, own.db, own.histogram = copy(SQL), copy(db), copy(HISTOGRAM)
  env.sysbench = own
  -- loadgen's own, which sysbench does not have.
  env.loadgen = { transaction = transaction }
  env.io = make_io()
  env.package = {
    path = settings.package_path, cpath = package.cpath, config = package.config,
    loaders = { find_preloaded, load_found }, preload = setmetatable({}, OF_PRELOAD), seeall = see_all,
  }
  local loaded = { _G = env, io = env.io, package = env.package, sysbench = env.sysbench }
  env.package.loaded = setmetatable(loaded, OF_LOADED)
  return env
end

-- Entries of a client's coroutine. Each returns true and a result, or false and the message of the failure.

local function guard(where, f, ...)
  local ok, value = pcall(f, ...)
  if ok then return true, value end
  return false, (where and format("`%s' function failed: ", where) or "") .. message_of(value)
end

-- Only an error of the function counts, not its result.
local function guard_error(where, f, ...)
  local ok, message = guard(where, f, ...)
  return ok, not ok and message or nil
end

local function run_script(env)
  local path, text = settings.path, settings.text
  if not text and not host.exists(path) then
    local found, own = find(env, path)
    path, text = found or path, own
  end
  return run_file(env, path, text)
end

local entries = { declared = declared, validate = validate, new_state = new_state, set_options = set_options,
  print_options = print_options, own_command = own_command }

-- Ends the array that report_json began.
function entries.close()
  if objects > 0 then host.write("\n]\n") end
  objects = 0
end

-- Lets the collector have a client's environment.
function entries.forget(env) drivers[env] = nil end

function entries.has(env, name)
  local f = env[name]
  return type(f) == "function" and f ~= base[name]
end

function entries.has_hook(env, name) return type(env.sysbench.hooks[name]) == "function" end

-- Returns the length of a list; columns of a row may be missing.
local function length_of(list, what, has_gaps)
  if type(list) ~= "table" then error(what .. " is no table", 0) end
  local n, last = 0, 0
  for at in pairs(list) do
    if type(at) ~= "number" or at < 1 or at > 65536 or at % 1 ~= 0 then error(what .. " is no list", 0) end
    n, last = n + 1, math.max(last, at)
  end
  if last ~= n and not has_gaps then error(what .. " has gaps", 0) end
  return last
end

-- Spells a row of a result: a text begins with `=`, NULL is empty.
local function spell_row(row, what)
  local spelled = {}
  for at = 1, length_of(row, what, true) do
    local value = row[at]
    if type(value) == "number" then
      -- 0 * -1 has a sign.
      if value == 0 then value = 0 end
      local text = format(value % 1 == 0 and math.abs(value) < 2 ^ 53 and "%.0f" or "%.14g", value)
      -- No server writes other digits, or the exponent as it is here.
      if tonumber(text) ~= value or text:find("[^-%d.]") then
        error(format("%s: write %s as a text, as the server does", what, text), 0)
      end
      value = text
    end
    if value ~= nil and type(value) ~= "string" then
      error(format("%s: a value is a text, a number or nil, not a %s", what, type(value)), 0)
    end
    spelled[at] = value and "=" .. value or ""
  end
  return spelled
end

-- Lists the queries that `loadgen verify` is to ask.
function entries.verify(env)
  local list = type(env.loadgen) == "table" and env.loadgen.verify or {}
  if type(list) == "function" then list = list() end
  local queries = {}
  for at = 1, length_of(list, "loadgen.verify") do
    local query, what = list[at], format("loadgen.verify[%d]", at)
    if type(query) ~= "table" or type(query.name) ~= "string" or type(query.sql) ~= "string" then
      error(what .. " is no table with the texts name and sql", 0)
    end
    local rows, spelled = query.rows or {}, {}
    for i = 1, length_of(rows, what .. ".rows") do spelled[i] = spell_row(rows[i], format("%s.rows[%d]", what, i)) end
    queries[at] = { name = query.name, sql = query.sql, rows = spelled }
  end
  return queries
end

function entries.chunk(env)
  local ok, message = guard_error(nil, run_script, env)
  if ok then set_options(env) end
  return ok, message
end

function entries.call(env, name) return guard_error(name, env[name]) end

function entries.command(env, name)
  return guard("sysbench.cmdline.call_command", env.sysbench.cmdline.call_command, name)
end

function entries.hook(env, name, stat)
  if not entries.has_hook(env, name) then return true end
  return guard_error(name, env.sysbench.hooks[name], stat)
end

function entries.thread(env, tid)
  local ok, message = entries.chunk(env)
  if ok and env.thread_init then ok, message = guard("thread_init", env.thread_init, tid) end
  if not ok then return false, message end
  ok, message = guard("thread_run", env.thread_run, tid)
  if not ok then return false, message end
  -- The client stands at its end: nothing is asked before it says so.
  request(NEXT, true)
  if env.thread_done then return guard("thread_done", env.thread_done, tid) end
  return true
end

-- An error that no guard has caught, as of a table of the script's that refuses a global.
local function catch(ok, done, value)
  if ok then return done, value end
  return false, message_of(done)
end

function entries.start(entry, ...)
  local arguments, n = { ... }, select("#", ...)
  return coroutine.create(function()
    -- Chunks that loadstring makes here have this environment.
    setfenv(0, arguments[1])
    return catch(pcall(entries[entry], unpack(arguments, 1, n)))
  end)
end

local function restore(ok, ...)
  setfenv(0, _G)
  if not ok then error((...), 0) end
  return ...
end

-- These two run outside of a client's coroutine, and find its environment all the same.
for _, name in ipairs({ "validate", "verify" }) do
  local f = entries[name]
  entries[name] = function(env, ...)
    setfenv(0, env)
    return restore(pcall(f, env, ...))
  end
end

return entries
