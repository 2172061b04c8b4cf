-- The API of sysbench 1.0 as its scripts use it, for all clients of one VM. Each has an environment of its own
-- and a coroutine; a request yields, and the client's side in Rust resumes with the reply.
local host, settings = ...
local ffi = require("ffi")
local yield = coroutine.yield
local CONNECT, QUERY, PREPARE, EXECUTE, CLOSE, FETCH, DISCONNECT, RECONNECT, SLEEP, NEXT, RESTART, COUNT =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
-- A yield of the host's, as it passes through a coroutine of the script's.
local HOST, NULL = host.marker, host.null

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

local byte, char, sub, gsub, format = string.byte, string.char, string.sub, string.gsub, string.format
local concat, insert = table.concat, table.insert
local floor = math.floor

local function random_string(pattern)
  local out = {}
  for i = 1, #pattern do
    local b = byte(pattern, i)
    if b == 35 then
      b = uniform(48, 57)
    elseif b == 64 then
      b = uniform(97, 122)
    end
    out[i] = char(b)
  end
  return concat(out)
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
    assert(min <= max)
    local out = {}
    for i = 1, uniform(min, max) do out[i] = char(uniform(48, 122)) end
    return concat(out)
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

local function named(name)
  return function() return "<" .. name .. ">" end
end
local Driver, Connection, Statement, Param, Result = {}, {}, {}, {}, {}
for name, class in pairs({
  sql_driver = Driver, sql_connection = Connection, sql_statement = Statement, sql_param = Param, sql_result = Result,
}) do
  class.__index, class.__tostring = class, named(name)
end

-- Raises the error of a request: level is that of the script's call.
local function raise(con, call, query, errno, state, message, listed, level)
  local env = con.env
  con.error = listed and ERROR.IGNORABLE or ERROR.FATAL
  con.sql_errno, con.sql_state, con.sql_errmsg = errno, state, message
  local description = { connection = con, query = query, sql_errno = errno, sql_state = state, sql_errmsg = message }
  env.errdesc = description
  if not listed then
    host.fatal(format("%s returned error %d (%s) for query '%s'", call, errno, message, query))
  end
  local hook = env.sysbench.hooks.sql_error_ignorable
  if listed or (hook and hook(description)) then
    description.errcode = RESTART_EVENT
    error(description, level)
  end
  error(format("SQL error, errno = %d, state = '%s': %s", errno, state, message), level)
end

-- Makes a result of an answer; nil where it has no columns.
local function result(con, columns, rows)
  con.error = ERROR.NONE
  con.serial = con.serial + 1
  if columns == 0 then return nil end
  local rs = con.rs
  rs.nfields, rs.nrows, rs.serial = columns, rows, con.serial
  return rs
end

function Driver:name() return "mysql" end

function Driver:connect()
  local id, _, _, message = request(CONNECT)
  if not id then
    host.fatal(format("unable to connect to MySQL server %s, aborting...", settings.server))
    host.fatal("error " .. message)
    error("connection creation failed", 2)
  end
  local con = setmetatable({ id = id, env = self.env, driver = self, error = ERROR.NONE, serial = 0 }, Connection)
  con.rs = setmetatable({ con = con, nfields = 0, nrows = 0 }, Result)
  return con
end

local function query(con, sql, level)
  local columns, rows, a, b, listed = request(QUERY, con.id, sql)
  if columns then return result(con, columns, rows) end
  raise(con, "mysql_drv_query()", sql, rows, a, b, listed, level)
end

-- The level counts the frames up to the script: a tail call leaves none.
function Connection:query(sql) return query(self, sql, 3) end

function Connection:query_row(sql)
  local rs = query(self, sql, 4)
  if not rs then return nil end
  local row = rs:fetch_row()
  if not row then return nil end
  return unpack(row, 1, rs.nfields)
end

function Connection:check_error(rs, sql)
  if rs or self.error == ERROR.NONE then return end
  raise(self, "mysql_drv_query()", sql, self.sql_errno, self.sql_state, self.sql_errmsg, self.error == ERROR.IGNORABLE, 3)
end

function Connection:prepare(sql)
  local id, errno, state, message = request(PREPARE, self.id, sql)
  if not id then
    self.sql_errno, self.sql_state, self.sql_errmsg = errno, state, message
    host.fatal("mysql_stmt_prepare() failed")
    host.fatal(format('MySQL error: %d "%s"', errno, message))
    error("SQL API error", 2)
  end
  return setmetatable({ id = id, connection = self, params = {}, kinds = "" }, Statement)
end

function Connection:disconnect()
  request(DISCONNECT, self.id)
  return true
end

function Connection:reconnect()
  request(RECONNECT, self.id)
  return true
end

function Connection:more_results() return false end
function Connection:next_result() return nil end

function Connection:bulk_insert_init(sql)
  self.bulk = { head = sql, rows = {}, n = 0, bytes = #sql }
end

local function flush(con, function_name)
  local bulk = con.bulk
  if bulk.n == 0 then return end
  local sql = bulk.head .. concat(bulk.rows, ",", 1, bulk.n)
  bulk.n, bulk.bytes = 0, #bulk.head
  local columns, errno, state, message, listed = request(QUERY, con.id, sql)
  if columns then return end
  con.sql_errno, con.sql_state, con.sql_errmsg = errno, state, message
  if not listed then
    host.fatal(format("mysql_drv_query() returned error %d (%s) for query '%s'", errno, message, sql))
  end
  error(function_name .. " failed", 3)
end

function Connection:bulk_insert_next(row)
  local bulk = self.bulk
  if not bulk then error("db_bulk_insert_next() failed", 2) end
  if bulk.bytes + #row + 1 > BULK_MAX then flush(self, "db_bulk_insert_next()") end
  bulk.n = bulk.n + 1
  bulk.rows[bulk.n] = row
  bulk.bytes = bulk.bytes + #row + 1
end

function Connection:bulk_insert_done()
  if not self.bulk then return end
  flush(self, "db_bulk_insert_done()")
  self.bulk = nil
end

local KIND = {
  [TYPE.TINYINT] = "i", [TYPE.SMALLINT] = "i", [TYPE.INT] = "i", [TYPE.BIGINT] = "i",
  [TYPE.FLOAT] = "d", [TYPE.DOUBLE] = "d", [TYPE.CHAR] = "s", [TYPE.VARCHAR] = "s",
}

function Statement:bind_create(type, max_len)
  local kind = KIND[type]
  if not kind then error("Unsupported argument type: " .. tostring(type), 2) end
  return setmetatable({ type = type, max_len = max_len, kind = kind, is_null = true }, Param)
end

function Statement:bind_param(...)
  local n, kinds = select("#", ...), {}
  if n == 0 then return nil end
  self.params = { ... }
  for i = 1, n do kinds[i] = self.params[i].kind end
  self.kinds = concat(kinds)
end

local function values(params, i, n)
  if i > n then return end
  local value = params[i].value
  if value == nil then value = NULL end
  if i == n then return value end
  return value, values(params, i + 1, n)
end

function Statement:execute()
  local con, params = self.connection, self.params
  local n = #params
  local columns, rows, a, b, listed
  if n == 0 then
    columns, rows, a, b, listed = request(EXECUTE, con.id, self.id, self.kinds)
  elseif n == 1 then
    columns, rows, a, b, listed = request(EXECUTE, con.id, self.id, self.kinds, values(params, 1, 1))
  else
    columns, rows, a, b, listed = request(EXECUTE, con.id, self.id, self.kinds, values(params, 1, n))
  end
  if columns then return result(con, columns, rows) end
  raise(con, "mysql_stmt_execute()", "<prepared statement>", rows, a, b, listed, 3)
end

function Statement:next_result() return nil end

function Statement:close()
  request(CLOSE, self.connection.id, self.id)
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
    local number = tonumber(value)
    if not number then error("Unsupported argument type: " .. type(value), 2) end
    if self.kind == "i" then number = number < 0 and math.ceil(number) or floor(number) end
    self.value = number
  end
end

function Param:set_rand_str(pattern) self:set(random_string(pattern)) end

function Result:fetch_row()
  if self.serial ~= self.con.serial then return nil end
  local more, row = request(FETCH, self.con.id)
  if more == nil then error(row, 2) end
  if not more then return nil end
  return row
end

function Result:free()
  if self.serial ~= self.con.serial then error("db_free_results() failed", 2) end
  self.con.serial = self.con.serial + 1
  return true
end

-- Histograms of a script's own.

local Histogram = {}
Histogram.__index = Histogram

local function new_histogram(size, min, max)
  return setmetatable({ size = size, min = min, max = max, base = math.log(min),
    width = (math.log(max) - math.log(min)) / (size - 1), counts = {} }, Histogram)
end

function Histogram:update(value)
  local i = floor((math.log(math.min(math.max(value, self.min), self.max)) - self.base) / self.width + 0.5)
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
      host.write(format("%12.3f |%-40s %d\n", math.exp(self.base + self.width * i), bar, count))
    end
  end
end

-- Reports.

local function ms(seconds) return seconds * 1000 end

local function latency(stat) return ms(stat.latency_pct or 0) end

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
    host.write(format("  --%-" .. width .. "s %s%s\n", option.form, option[2], default))
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

-- Environments.

-- A thread yields to its client; a coroutine of the script's passes the host's requests up.
local function pass_up(co, ok, first, ...)
  while ok and first == HOST do
    return pass_up(co, coroutine.resume(co, yield(first, ...)))
  end
  return ok, first, ...
end

local function resume(co, ...) return pass_up(co, coroutine.resume(co, ...)) end

local function unwrap(ok, ...)
  if ok then return ... end
  error((...), 0)
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
  usleep = function(us) return sleep(tonumber(us) / 1e6) end,
  sleep = function(s) return sleep(tonumber(s)) end,
  sb_counter_inc = function(_, kind) request(COUNT, tonumber(kind)) end,
  sb_rand_uniform = uniform, sb_rand_default = default, sb_rand_gaussian = gaussian, sb_rand_special = special,
  sb_rand_pareto = pareto, sb_rand_zipfian = zipfian, sb_rand_unique = unique,
  sb_rand_uniform_double = uniform_double, sb_rand_uniform_uint64 = uniform_uint64,
  sb_event_start = function() end,
  sb_event_stop = function() end,
  sb_more_events = function() return request(NEXT) end,
}, { __index = ffi.C })

local proxy = setmetatable({ C = C, cdef = cdef }, { __index = ffi })

local os_proxy = setmetatable({
  execute = function(line)
    local seconds = line and line:match("^%s*sleep%s+([%d.]+)%s*$")
    if seconds then return sleep(tonumber(seconds)) end
    return os.execute(line)
  end,
}, { __index = os })

local function write_all(...)
  for i = 1, select("#", ...) do host.write(tostring((select(i, ...)))) end
  return true
end

io.stdout:setvbuf("no")
local io_proxy = setmetatable({ write = function(...) write_all(...) return io.stdout end }, { __index = io })

local function print_line(...)
  local words = {}
  for i = 1, select("#", ...) do words[i] = tostring((select(i, ...))) end
  host.write(concat(words, "\t") .. "\n")
end

local wrappers = {}

-- Runs a file in an environment; each is compiled once a VM.
local function run_file(env, path, text, ...)
  local wrapper = wrappers[path]
  if not wrapper then
    local message
    wrapper, message = host.compile(path, text)
    if not wrapper then error(message, 0) end
    wrappers[path] = wrapper
  end
  setfenv(wrapper, env)
  return wrapper()(...)
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

local function find(env, name)
  local found, tried = find_module(env.package.path, name)
  if found then return found end
  local own = host.modules[name]
  if own then return "=" .. name, own end
  found = find_module(settings.stock_path, name)
  return found, nil, tried
end

local function require_in(env)
  return function(name)
    local package = env.package
    local loaded = package.loaded[name]
    if loaded ~= nil then return loaded end
    local value
    local preload = package.preload[name]
    if preload then
      value = preload(name)
    else
      local path, text, tried = find(env, name)
      if not path then error("module '" .. name .. "' not found:" .. tried, 2) end
      package.loaded[name] = true
      value = run_file(env, path, text, name)
    end
    if value ~= nil then package.loaded[name] = value end
    return package.loaded[name]
  end
end

local LIBRARIES = { "string", "table", "math", "debug", "jit", "bit" }
local loaded_at_first = { ffi = proxy, io = io_proxy, os = os_proxy, coroutine = co }
for _, name in ipairs(LIBRARIES) do loaded_at_first[name] = _G[name] end
local base = setmetatable({
  ffi = proxy, coroutine = co, os = os_proxy, io = io_proxy, print = print_line,
  sb_rand = rand.default, sb_rnd = function() return uniform(0, 0x3fffffff) end, sb_rand_str = random_string,
  sb_rand_uniform = rand.uniform, sb_rand_gaussian = rand.gaussian, sb_rand_special = rand.special,
  sb_rand_uniq = rand.unique,
}, { __index = _G })

local function copy(value)
  if type(value) ~= "table" then return value end
  local list = {}
  for i, item in ipairs(value) do list[i] = item end
  return list
end

local function set_options(env)
  local opt = {}
  for name, value in pairs(settings.opt) do opt[name] = copy(value) end
  env.sysbench.opt = opt
  if env.sysbench.cmdline.options == nil then
    -- The interface of 0.5: every option is a global.
    for name, value in pairs(opt) do
      if rawget(env, name) == nil then env[name] = value end
    end
  end
end

-- The interface of 0.5: functions over one connection, which the first of them opens.
local function add_legacy(env)
  local con
  local function open()
    con = con or env.sysbench.sql.driver():connect()
    return con
  end
  local db = {
    db_connect = function() open() end,
    db_disconnect = function()
      if con then con:disconnect() end
      con = nil
    end,
    db_query = function(sql)
      local rs = query(open(), sql, 3)
      return rs
    end,
    db_bulk_insert_init = function(sql) open():bulk_insert_init(sql) end,
    db_bulk_insert_next = function(row) open():bulk_insert_next(row) end,
    db_bulk_insert_done = function() open():bulk_insert_done() end,
  }
  for _, name in ipairs({ "prepare", "bind_param", "bind_result", "execute", "store_results", "free_results", "close" }) do
    db["db_" .. name] = function() error("loadgen has no db_" .. name .. "(): use sysbench.sql", 2) end
  end
  for name, f in pairs(db) do env[name] = f end
  env.DB_ERROR_NONE, env.DB_ERROR_RESTART_TRANSACTION, env.DB_ERROR_FAILED = 0, 1, 2
  env.sysbench.db = db
end

local function new_state(tid)
  local env = {}
  env._G = env
  env.thread_id = tid
  local driver
  local sql = { type = TYPE, error = ERROR }
  function sql.driver(name)
    name = name or settings.opt.db_driver
    if name ~= nil and name ~= "" and name ~= "mysql" then
      host.fatal(format("invalid database driver name: '%s'", name))
      error("failed to initialize the DB driver", 2)
    end
    driver = driver or setmetatable({ env = env }, Driver)
    return driver
  end
  local argv = {}
  for i, word in ipairs(settings.argv) do argv[i - 1] = word end
  local cmdline = setmetatable({ argv = argv, command = settings.command, script_path = settings.path,
    PARALLEL_COMMAND = true }, { __index = ARG })
  function cmdline.print_test_options() print_options(env) end
  function cmdline.command_defined(name) return command(env, name) ~= nil end
  function cmdline.command_parallel(name)
    local own = command(env, name)
    return own ~= nil and own[2] == true
  end
  function cmdline.call_command(name) return command(env, name)[1]() end
  env.sysbench = {
    tid = tid, version = "1.0.20", version_string = "sysbench 1.0.20", error = { NONE = 0, RESTART_EVENT = RESTART_EVENT },
    hooks = {}, cmdline = cmdline, rand = rand, sql = sql, histogram = { new = new_histogram },
    report_csv = report_csv, report_json = report_json, report_default = report_default,
  }
  add_legacy(env)
  env.package = { path = settings.package_path, cpath = package.cpath, preload = {}, config = package.config,
    loaded = setmetatable({ _G = env, sysbench = env.sysbench }, { __index = loaded_at_first }) }
  env.require = require_in(env)
  env.dofile = function(path) return run_file(env, path) end
  env.loadfile = function(path) return function(...) return run_file(env, path, nil, ...) end end
  return setmetatable(env, { __index = base })
end

-- What a client's coroutine runs. Each returns true and a result, or false and the message of the failure.

local function message_of(message)
  return type(message) == "string" and message or type(message) == "table" and message.sql_errmsg
    and format("SQL error, errno = %d, state = '%s': %s", message.sql_errno, message.sql_state, message.sql_errmsg)
    or tostring(message)
end

local function guard(where, f, ...)
  local ok, value = pcall(f, ...)
  if ok then return true, value end
  return false, (where and format("`%s' function failed: ", where) or "") .. message_of(value)
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
  print_options = print_options }

-- Ends the array that report_json began.
function entries.close()
  if objects > 0 then host.write("\n]\n") end
  objects = 0
end

function entries.has(env, name) return type(env[name]) == "function" end

function entries.own_command(env, name)
  local own = command(env, name)
  if not own then return nil end
  return own[2] == true
end

function entries.has_hook(env, name) return type(env.sysbench.hooks[name]) == "function" end

function entries.chunk(env)
  local ok, message = guard(nil, run_script, env)
  if not ok then return false, message end
  set_options(env)
  return true
end

-- Only an error of a function counts, not its result.
function entries.call(env, name)
  local ok, message = guard(name, env[name])
  return ok, not ok and message or nil
end

function entries.command(env, name)
  return guard("sysbench.cmdline.call_command", env.sysbench.cmdline.call_command, name)
end

function entries.hook(env, name, stat)
  if not entries.has_hook(env, name) then return true end
  local ok, message = guard(name, env.sysbench.hooks[name], stat)
  return ok, not ok and message or nil
end

local function thread_run(env, tid)
  local event = env.event
  while request(NEXT) do
    local ok, value
    repeat
      ok, value = pcall(event, tid)
      if not ok then
        if type(value) ~= "table" or value.errcode ~= RESTART_EVENT then error(value, 0) end
        request(RESTART)
        local hook = env.sysbench.hooks.before_restart_event
        if hook then hook(value) end
      end
    until ok
    if value then return end
  end
end

function entries.thread(env, tid)
  local ok, message = entries.chunk(env)
  if ok and env.thread_init then ok, message = guard("thread_init", env.thread_init, tid) end
  if not ok then return false, message end
  ok, message = guard("thread_run", env.thread_run or thread_run, env.thread_run and tid or env, tid)
  if not ok then return false, message end
  -- The client stands at its end: nothing is asked before it says so.
  request(NEXT, true)
  if env.thread_done then return guard("thread_done", env.thread_done, tid) end
  return true
end

function entries.start(entry, ...)
  local arguments, n = { ... }, select("#", ...)
  return coroutine.create(function()
    -- What loadstring makes here has this environment.
    setfenv(0, arguments[1])
    return entries[entry](unpack(arguments, 1, n))
  end)
end

return entries
