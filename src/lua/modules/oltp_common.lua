-- The module that OLTP scripts of sysbench's require by this name: the same functions and options, written anew.

if sysbench.cmdline.command == nil then
  error("Command is required. Supported commands: prepare, prewarm, run, cleanup, help")
end

sysbench.cmdline.options = {
  table_size = { "Rows of a table", 10000 },
  range_size = { "Rows of a range", 100 },
  tables = { "Tables", 1 },
  point_selects = { "SELECTs of one row an event", 10 },
  simple_ranges = { "SELECTs of a range an event", 1 },
  sum_ranges = { "SELECTs of a sum an event", 1 },
  order_ranges = { "SELECTs with ORDER BY an event", 1 },
  distinct_ranges = { "SELECTs with DISTINCT an event", 1 },
  index_updates = { "UPDATEs of k an event", 1 },
  non_index_updates = { "UPDATEs of c an event", 1 },
  delete_inserts = { "Pairs of DELETE and INSERT an event", 1 },
  range_selects = { "off leaves out the ranges", true },
  auto_inc = { "id is AUTO_INCREMENT", true },
  create_table_options = { "Words behind CREATE TABLE ()", "" },
  skip_trx = { "No BEGIN and COMMIT", false },
  secondary = { "id has a plain index, no primary key", false },
  create_secondary = { "k has an index", true },
  reconnect = { "Events of a connection, 0 for all", 0 },
  mysql_storage_engine = { "Engine of the tables", "innodb" },
  pgsql_variant = { "Taken, has no effect", "" },
}

local C_VALUE = string.rep("###########-", 9) .. "###########"
local PAD_VALUE = string.rep("###########-", 4) .. "###########"

function get_c_value() return sysbench.rand.string(C_VALUE) end

function get_pad_value() return sysbench.rand.string(PAD_VALUE) end

function get_table_num() return sysbench.rand.uniform(1, sysbench.opt.tables) end

function get_id() return sysbench.rand.default(1, sysbench.opt.table_size) end

function create_table(drv, con, table_num)
  local opt = sysbench.opt
  local id = "INTEGER NOT NULL"
  if opt.auto_inc then id = id .. " AUTO_INCREMENT" end
  local key = opt.secondary and "KEY xid (id)" or "PRIMARY KEY (id)"
  local engine = opt.mysql_storage_engine ~= "" and "/*! ENGINE = " .. opt.mysql_storage_engine .. " */" or ""
  local name = "sbtest" .. table_num

  print(string.format("Creating table '%s'...", name))
  con:query(string.format(
    "CREATE TABLE %s(id %s, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, "
      .. "pad CHAR(60) DEFAULT '' NOT NULL, %s) %s %s", name, id, key, engine, opt.create_table_options))

  if opt.table_size > 0 then
    print(string.format("Inserting %d records into '%s'", opt.table_size, name))
  end
  local columns = opt.auto_inc and "k, c, pad" or "id, k, c, pad"
  con:bulk_insert_init(string.format("INSERT INTO %s(%s) VALUES", name, columns))
  for i = 1, opt.table_size do
    local k, c, pad = sysbench.rand.default(1, opt.table_size), get_c_value(), get_pad_value()
    if opt.auto_inc then
      con:bulk_insert_next(string.format("(%d, '%s', '%s')", k, c, pad))
    else
      con:bulk_insert_next(string.format("(%d, %d, '%s', '%s')", i, k, c, pad))
    end
  end
  con:bulk_insert_done()

  if opt.create_secondary then
    print(string.format("Creating a secondary index on '%s'...", name))
    con:query(string.format("CREATE INDEX k_%d ON %s(k)", table_num, name))
  end
end

-- Calls a function with each table that is this thread's; statements may come before the first one.
local function for_own_tables(f, before)
  local own = sysbench.sql.driver()
  local connection = own:connect()
  for _, sql in ipairs(before or {}) do connection:query(sql) end
  local threads = math.max(sysbench.opt.threads, 1)
  for i = sysbench.tid % threads + 1, sysbench.opt.tables, threads do f(own, connection, i) end
end

function cmd_prepare() for_own_tables(create_table) end

function cmd_prewarm()
  for_own_tables(function(_, connection, i)
    local name = "sbtest" .. i
    print("Prewarming table " .. name)
    connection:query("ANALYZE TABLE " .. name)
    connection:query(string.format("SELECT AVG(id) FROM (SELECT * FROM %s FORCE KEY (PRIMARY) LIMIT %d) t", name,
      sysbench.opt.table_size))
    connection:query(string.format("SELECT COUNT(*) FROM (SELECT * FROM %s WHERE k LIKE '%%0%%' LIMIT %d) t", name,
      sysbench.opt.table_size))
  end, {
    -- Temporary tables of the queries stay in memory.
    "SET tmp_table_size=2*1024*1024*1024", "SET max_heap_table_size=2*1024*1024*1024",
  })
end

sysbench.cmdline.commands = {
  prepare = { cmd_prepare, sysbench.cmdline.PARALLEL_COMMAND },
  prewarm = { cmd_prewarm, sysbench.cmdline.PARALLEL_COMMAND },
  warmup = { cmd_prewarm, sysbench.cmdline.PARALLEL_COMMAND },
}

local T = sysbench.sql.type
local RANGE = { T.INT, T.INT }

-- The statements of each kind: SQL with the table's number, and the types of its parameters.
stmt_defs = {
  point_selects = { "SELECT c FROM sbtest%u WHERE id=?", T.INT },
  simple_ranges = { "SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ?", unpack(RANGE) },
  sum_ranges = { "SELECT SUM(k) FROM sbtest%u WHERE id BETWEEN ? AND ?", unpack(RANGE) },
  order_ranges = { "SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c", unpack(RANGE) },
  distinct_ranges = { "SELECT DISTINCT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c", unpack(RANGE) },
  index_updates = { "UPDATE sbtest%u SET k=k+1 WHERE id=?", T.INT },
  non_index_updates = { "UPDATE sbtest%u SET c=? WHERE id=?", { T.CHAR, 120 }, T.INT },
  deletes = { "DELETE FROM sbtest%u WHERE id=?", T.INT },
  inserts = { "INSERT INTO sbtest%u (id, k, c, pad) VALUES (?, ?, ?, ?)", T.INT, T.INT, { T.CHAR, 120 }, { T.CHAR, 60 } },
}

function prepare_begin() stmt.begin = con:prepare("BEGIN") end

function prepare_commit() stmt.commit = con:prepare("COMMIT") end

function prepare_for_each_table(key)
  local definition = stmt_defs[key]
  for t = 1, sysbench.opt.tables do
    local statement, params = con:prepare(string.format(definition[1], t)), {}
    for i = 2, #definition do
      local kind = definition[i]
      if type(kind) == "table" then
        params[i - 1] = statement:bind_create(kind[1], kind[2])
      else
        params[i - 1] = statement:bind_create(kind)
      end
    end
    if #params > 0 then statement:bind_param(unpack(params)) end
    stmt[t][key], param[t][key] = statement, params
  end
end

for _, kind in ipairs({ "point_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges", "index_updates",
  "non_index_updates" }) do
  getfenv(1)["prepare_" .. kind] = function() prepare_for_each_table(kind) end
end

function prepare_delete_inserts()
  prepare_for_each_table("deletes")
  prepare_for_each_table("inserts")
end

local function prepare_all()
  stmt, param = {}, {}
  for t = 1, sysbench.opt.tables do stmt[t], param[t] = {}, {} end
  prepare_statements()
end

function thread_init()
  drv = sysbench.sql.driver()
  con = drv:connect()
  prepare_all()
end

function close_statements()
  for t = 1, sysbench.opt.tables do
    for _, statement in pairs(stmt[t]) do statement:close() end
  end
  if stmt.begin then stmt.begin:close() end
  if stmt.commit then stmt.commit:close() end
end

function thread_done()
  close_statements()
  con:disconnect()
end

function cleanup()
  local connection = sysbench.sql.driver():connect()
  for i = 1, sysbench.opt.tables do
    print(string.format("Dropping table 'sbtest%d'...", i))
    connection:query("DROP TABLE IF EXISTS sbtest" .. i)
  end
end

function begin() stmt.begin:execute() end

function commit() stmt.commit:execute() end

local function execute_by_id(key)
  local t = get_table_num()
  for _ = 1, sysbench.opt[key] do
    param[t][key][1]:set(get_id())
    stmt[t][key]:execute()
  end
end

function execute_point_selects() execute_by_id("point_selects") end

local function execute_range(key)
  local t = get_table_num()
  for _ = 1, sysbench.opt[key] do
    local id = get_id()
    param[t][key][1]:set(id)
    param[t][key][2]:set(id + sysbench.opt.range_size - 1)
    stmt[t][key]:execute()
  end
end

for _, kind in ipairs({ "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges" }) do
  getfenv(1)["execute_" .. kind] = function() execute_range(kind) end
end

function execute_index_updates() execute_by_id("index_updates") end

function execute_non_index_updates()
  local t = get_table_num()
  for _ = 1, sysbench.opt.non_index_updates do
    param[t].non_index_updates[1]:set_rand_str(C_VALUE)
    param[t].non_index_updates[2]:set(get_id())
    stmt[t].non_index_updates:execute()
  end
end

function execute_delete_inserts()
  local t = get_table_num()
  for _ = 1, sysbench.opt.delete_inserts do
    local id, k = get_id(), get_id()
    param[t].deletes[1]:set(id)
    stmt[t].deletes:execute()
    param[t].inserts[1]:set(id)
    param[t].inserts[2]:set(k)
    param[t].inserts[3]:set_rand_str(C_VALUE)
    param[t].inserts[4]:set_rand_str(PAD_VALUE)
    stmt[t].inserts:execute()
  end
end

-- After a connection was opened again its statements are prepared again.
function sysbench.hooks.before_restart_event(description)
  local errno = description.sql_errno
  if errno == 2013 or errno == 2055 or errno == 2006 or errno == 2011 then
    close_statements()
    prepare_all()
  end
end

local since_opened = 0

function check_reconnect()
  if sysbench.opt.reconnect == 0 then return end
  since_opened = since_opened + 1
  if since_opened % sysbench.opt.reconnect == 0 then
    close_statements()
    con:reconnect()
    prepare_all()
  end
end

function init()
  assert(event ~= nil, "this script is meant to be included by other OLTP scripts and should not be called directly.")
end
