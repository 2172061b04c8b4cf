-- The insert benchmark as Mark Callaghan runs it: tables, columns and phases are those of his iibench.py (mytools,
-- bench/ibench, 2026), none of its text. docs/user/insert-benchmark.md is for users. It runs under sysbench 1.0, too.
local ffi = require("ffi")

local format, rand = string.format, sysbench.rand.uniform

sysbench.cmdline.options = {
  phase = { "load, index, write, range or point", "" },
  tables = { "Tables, 0 for one a client", 0, sysbench.cmdline.ARG_INT },
  rows = { "Rows of each table; 0 takes what was loaded", 0, sysbench.cmdline.ARG_INT },
  rows_per_commit = { "Rows of each INSERT, and of each DELETE", 50, sysbench.cmdline.ARG_INT },
  deletes = { "Each commit of write deletes as many of the oldest rows", true },
  inserts = { "Rows that write inserts into each table, 0 for no end", 0, sysbench.cmdline.ARG_INT },
  secondary_indexes = { "Secondary indexes of each table, 0 to 3", 3, sysbench.cmdline.ARG_INT },
  rows_per_query = { "Rows of an answer of range and point", 10, sysbench.cmdline.ARG_INT },
  mysql_storage_engine = { "Engine of the tables", "innodb" },
  create_table_options = { "Words behind CREATE TABLE ()", "" },
}

-- Different values of columns; prices and the like begin with 0.
local CASH_REGISTERS, PRODUCTS, CUSTOMERS, PRICES = 1000, 10000, 100000, 500

local COLUMNS = [[transactionid BIGINT NOT NULL AUTO_INCREMENT, dateandtime DATETIME, cashregisterid INT NOT NULL,
  customerid INT NOT NULL, productid INT NOT NULL, price INT NOT NULL, data VARCHAR(4000), PRIMARY KEY (transactionid)]]

-- Secondary indexes in the order in which there are more of them, and the query that each of them covers.
local INDEXES = {
  { name = "marketsegment", columns = "productid, customerid, price", from = "productid >=", values = PRODUCTS },
  { name = "registersegment", columns = "cashregisterid, customerid, price", from = "cashregisterid >", values = CASH_REGISTERS },
  { name = "pdc", columns = "price, dateandtime, customerid", from = "price >=", values = PRICES },
}

-- Events of a table after which its ids are read again: others insert and delete, and rolled back INSERTs leave gaps.
local REREAD_EVERY = { point = 100, write = 1000 }

-- A table's comment says whose it is, and what is in it: it stays where a load is interrupted.
local MARK = "loadgen insert-benchmark"
local LOADING, GROWN = MARK .. ", loading", ", and more"
local function loaded(rows) return format("%s, %d rows", MARK, rows) end

local function connect() return sysbench.sql.driver():connect() end
local function name_of(number) return "pi" .. number end

local function count_tables()
  local opt = sysbench.opt
  return opt.tables > 0 and opt.tables or opt.threads
end

local function refuse(...) error(format(...), 0) end

-- Returns the comment of a table, and the number of its secondary indexes; nil if it is not there.
local function describe(con, name)
  return con:query_row(format([[SELECT table_comment, (SELECT COUNT(DISTINCT index_name) FROM information_schema.statistics
    WHERE table_schema = DATABASE() AND table_name = '%s' AND index_name <> 'PRIMARY')
    FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = '%s']], name, name))
end

local function comment_on(con, name, comment) con:query(format("ALTER TABLE %s COMMENT = '%s'", name, comment)) end

function cleanup()
  local con, ours = connect(), {}
  local rows = con:query(format([[SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()
    AND table_name LIKE 'pi%%' AND table_comment LIKE '%s%%']], MARK))
  for i = 1, rows.nrows do ours[i] = rows:fetch_row()[1] end
  if #ours > 0 then con:query("DROP TABLE " .. table.concat(ours, ", ")) end
end

local function create_tables(con)
  local opt = sysbench.opt
  cleanup()
  for number = 1, count_tables() do
    local name = name_of(number)
    if describe(con, name) then refuse("another program made the table %s: name another database", name) end
    con:query(format("CREATE TABLE %s (%s) ENGINE = %s COMMENT = '%s' %s", name, COLUMNS, opt.mysql_storage_engine, LOADING,
      opt.create_table_options))
  end
end

local function drop_indexes(con)
  for number = 1, count_tables() do
    local name, drops = name_of(number), {}
    local comment = describe(con, name)
    if comment and comment:find(MARK, 1, true) == 1 then
      -- An ALTER TABLE of a killed client may still run: this waits for it.
      comment_on(con, name, comment)
      local rows = con:query(format([[SELECT DISTINCT index_name FROM information_schema.statistics WHERE table_schema = DATABASE()
        AND table_name = '%s' AND index_name <> 'PRIMARY']], name))
      for i = 1, rows.nrows do drops[i] = "DROP INDEX " .. rows:fetch_row()[1] end
      if #drops > 0 then con:query(format("ALTER TABLE %s %s", name, table.concat(drops, ", "))) end
    end
  end
end

-- Refuses a table that is not as the phase needs it: results of different data must not look alike.
local function find_table(con, number)
  local opt, name = sysbench.opt, name_of(number)
  local comment, indexes = describe(con, name)
  if not comment then refuse("there is no table %s: --phase=load makes and fills so many tables", name) end
  if comment:find(MARK, 1, true) ~= 1 then refuse("another program made the table %s: name another database", name) end
  local rows, more = comment:match(", (%d+) rows(.*)")
  if opt.phase == "load" then
    if rows or con:query(format("SELECT 1 FROM %s LIMIT 1", name)).nrows > 0 then
      refuse("%s has rows: load begins with empty tables, once in a run", name)
    end
    return { name = name, rows = 0, first = 0 }
  end
  if not rows then refuse("the load of %s was interrupted: --phase=load begins it again", name) end
  if opt.rows > 0 and (tonumber(rows) ~= opt.rows or opt.deletes and more ~= "") then
    refuse("--rows=%d, but %s was loaded with %s rows%s: --phase=load begins again", opt.rows, name, rows, more)
  end
  local wanted = opt.phase == "index" and 0 or opt.secondary_indexes
  if tonumber(indexes) ~= wanted then
    refuse("%s has %s secondary indexes, not %d: --phase=index creates them", name, indexes, wanted)
  end
  if opt.phase == "write" and opt.deletes and tonumber(rows) < opt.rows_per_commit then
    refuse("--rows_per_commit=%d: %s has no more than %s rows", opt.rows_per_commit, name, rows)
  end
  return { name = name, rows = tonumber(rows), more = more, first = 0, written = 0, events = 0 }
end

-- The connection, the tables and the texts of this client.
local con, tables, texts

-- Reads the lowest and the highest id. The search begins at the last one: deleted rows may still be in its way.
local function read_ids(of)
  local first, last = con:query_row(format([[SELECT
    (SELECT transactionid FROM %s WHERE transactionid >= %d ORDER BY transactionid LIMIT 1),
    (SELECT MAX(transactionid) FROM %s)]], of.name, of.first, of.name))
  if not first then refuse("%s has no rows: --phase=load fills it", of.name) end
  of.first, of.last = tonumber(first), tonumber(last)
end

-- Under loadgen, statements that are no part of the benchmark lie between two events.
local function end_event()
  if loadgen then ffi.C.sb_event_stop(sysbench.tid) end
end

local function name_event(name)
  if loadgen and loadgen.transaction then loadgen.transaction(name) end
end

-- Makes the texts of rows: 10 to 20 characters, of which every second is random.
local function make_texts()
  local characters, pool, fillers = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+", {}, {}
  for i = 1, 100000 do
    local at = rand(1, #characters)
    pool[i] = characters:sub(at, at)
  end
  pool = table.concat(pool)
  for length = 10, 20 do fillers[length] = ("a"):rep(length - math.floor(length * 0.375)) end
  return function()
    local length = rand(10, 20)
    local filler = fillers[length]
    local at = rand(1, #pool - length)
    return filler .. pool:sub(at, at + length - #filler - 1)
  end
end

local function insert(of, rows)
  local values, now = {}, os.date("!%Y-%m-%d %H:%M:%S")
  for i = 1, rows do
    values[i] = format("('%s',%d,%d,%d,%d,'%s')", now, rand(0, CASH_REGISTERS - 1), rand(0, CUSTOMERS - 1), rand(0, PRODUCTS - 1),
      rand(0, PRICES - 1), texts())
  end
  con:query(format("INSERT INTO %s (dateandtime, cashregisterid, customerid, productid, price, data) VALUES %s", of.name,
    table.concat(values, ",")))
end

local function count_rows(of) return tonumber((con:query_row("SELECT COUNT(*) FROM " .. of.name))) end

-- An event that returns true is none: its client has nothing left to do.

local function load_rows()
  local opt, of = sysbench.opt, tables[1]
  if not of then return true end
  name_event("insert")
  local rows = math.min(opt.rows_per_commit, opt.rows - of.rows)
  if rows > 0 then insert(of, rows) end
  of.rows = of.rows + rows
  if of.rows == opt.rows then
    end_event()
    -- To count takes a version as long as it takes: only where an answer was lost.
    local counted = of.is_doubtful and count_rows(of) or opt.rows
    if counted ~= opt.rows then
      refuse("%s has %d rows, not %d: an INSERT whose answer was lost came late; begin again", of.name, counted, opt.rows)
    end
    comment_on(con, of.name, loaded(opt.rows))
    table.remove(tables, 1)
  end
end

local function create_indexes()
  local of, adds = tables[1], {}
  if not of then return true end
  name_event("create indexes")
  for i = 1, sysbench.opt.secondary_indexes do
    adds[i] = format("ADD INDEX %s_%s (%s)", of.name, INDEXES[i].name, INDEXES[i].columns)
  end
  con:query(format("ALTER TABLE %s %s", of.name, table.concat(adds, ", ")))
  table.remove(tables, 1)
end

local events = 0

-- Returns the client's next table in turn.
local function take_table()
  events = events + 1
  local of = tables[events % #tables + 1]
  of.events = of.events + 1
  return of
end

-- INSERT and DELETE are one transaction: the table has as many rows as before, whatever ends it.
local function write_rows()
  local opt, of = sysbench.opt, take_table()
  local rows = opt.rows_per_commit
  if opt.inserts > 0 then
    rows = math.min(rows, opt.inserts - of.written)
    if rows == 0 then
      table.remove(tables, events % #tables + 1)
      return #tables == 0 or write_rows()
    end
  end
  name_event(opt.deletes and "insert and delete" or "insert")
  insert(of, rows)
  if opt.deletes then
    con:query(format("DELETE FROM %s WHERE transactionid >= %d ORDER BY transactionid LIMIT %d", of.name, of.first, rows))
    con:query("COMMIT")
    -- No lower id is left, also where ids have gaps.
    of.first = of.first + rows
  end
  of.written = of.written + rows
  if opt.deletes and of.events % REREAD_EVERY.write == 0 then
    end_event()
    read_ids(of)
    con:query("COMMIT")
  end
end

local function read_range()
  local opt, of = sysbench.opt, take_table()
  local index = INDEXES[rand(1, opt.secondary_indexes)]
  name_event("range by " .. index.from:match("%w+"))
  con:query(format("SELECT %s FROM %s FORCE INDEX (%s_%s) WHERE %s %d ORDER BY %s LIMIT %d", index.columns, of.name, of.name, index.name,
    index.from, rand(0, index.values - 1), index.columns, opt.rows_per_query))
end

local function read_points()
  local of, ids = take_table(), {}
  name_event("point")
  for i = 1, sysbench.opt.rows_per_query do ids[i] = rand(of.first, of.last) end
  con:query(format("SELECT transactionid, productid, data FROM %s WHERE transactionid IN (%s)", of.name, table.concat(ids, ",")))
  if of.events % REREAD_EVERY.point == 0 then
    end_event()
    read_ids(of)
  end
end

local PHASES = { load = load_rows, index = create_indexes, write = write_rows, range = read_range, point = read_points }

local function check_options()
  local opt = sysbench.opt
  local reads = opt.phase == "range" or opt.phase == "point"
  if not PHASES[opt.phase] then refuse("--phase is load, index, write, range or point") end
  if opt.phase == "load" and opt.rows < 1 then refuse("--rows: load needs the rows of each table") end
  if math.min(opt.tables, opt.rows, opt.inserts) < 0 or math.min(opt.rows_per_commit, opt.rows_per_query) < 1 then
    refuse("--tables, --rows, --inserts are not below 0, --rows_per_commit and --rows_per_query not below 1")
  end
  local least = (opt.phase == "index" or opt.phase == "range") and 1 or 0
  if opt.secondary_indexes < least or opt.secondary_indexes > #INDEXES then
    refuse("--secondary_indexes: this phase takes %d to %d", least, #INDEXES)
  end
  if not reads and opt.threads > count_tables() then
    refuse("clients: %d, --tables: %d: one client writes to a table", opt.threads, opt.tables)
  end
end

function init()
  check_options()
  local phase, own = sysbench.opt.phase, connect()
  if phase == "load" then create_tables(own) end
  if phase == "index" then drop_indexes(own) end
  for number = 1, count_tables() do find_table(own, number) end
  own:disconnect()
end

-- The connection was opened again: its settings and its transaction are gone.
local is_new

-- Sets what a new connection lacks. A statement whose answer was lost may have done its work.
local function set_up()
  local opt, of = sysbench.opt, tables[1]
  if opt.phase == "write" and opt.deletes then con:query("SET autocommit = 0") end
  if opt.phase == "load" and of and is_new then
    of.rows = count_rows(of)
    of.is_doubtful = true
  end
  if opt.phase == "index" and of then
    local _, indexes = describe(con, of.name)
    if tonumber(indexes) == opt.secondary_indexes then table.remove(tables, 1) end
  end
end

function thread_init()
  check_options()
  local opt, all = sysbench.opt, count_tables()
  con, tables, texts = connect(), {}, make_texts()
  for number = sysbench.tid % all + 1, all, opt.threads do
    local of = find_table(con, number)
    if opt.phase == "write" and not opt.deletes and of.more == "" then comment_on(con, of.name, loaded(of.rows) .. GROWN) end
    if opt.phase == "write" or opt.phase == "point" then read_ids(of) end
    tables[#tables + 1] = of
  end
  set_up()
end

function thread_done() con:disconnect() end

function event()
  if is_new then
    set_up()
    is_new = false
  end
  return PHASES[sysbench.opt.phase]()
end

local LOST = { [2006] = true, [2011] = true, [2013] = true, [2055] = true }

-- An error in here would end the client.
function sysbench.hooks.before_restart_event(failure)
  is_new = is_new or LOST[failure.sql_errno]
  if is_new then return end
  local ok, message = pcall(con.query, con, "ROLLBACK")
  if not ok and type(message) ~= "table" then error(message, 0) end
  is_new = not ok
end

-- The queries of loadgen verify. Nobody knows how many rows are in tables that grew without deletes (their comment
-- says so): the expected number stands for them.
local function verify()
  local opt, counts, indexes = sysbench.opt, {}, {}
  local rows, numbers = {}, {}
  for number = 1, count_tables() do
    local name = name_of(number)
    counts[number] = format([[SELECT '%s', IF((SELECT table_comment FROM information_schema.tables WHERE table_schema = DATABASE()
      AND table_name = '%s') LIKE '%%%s', %d, (SELECT COUNT(*) FROM %s))]], name, name, GROWN, opt.rows, name)
    rows[number] = { name, opt.rows }
    indexes[number] = format([[SELECT '%s', COUNT(DISTINCT index_name) FROM information_schema.statistics
      WHERE table_schema = DATABASE() AND table_name = '%s' AND index_name <> 'PRIMARY']], name, name)
    numbers[number] = { name, opt.secondary_indexes }
  end
  local queries, all = {}, " UNION ALL "
  if opt.rows > 0 and (opt.phase == "load" or opt.deletes) then
    queries[1] = { name = "rows of each table", sql = table.concat(counts, all), rows = rows }
  end
  if opt.phase ~= "load" then
    queries[#queries + 1] = { name = "secondary indexes of each table", sql = table.concat(indexes, all), rows = numbers }
  end
  return queries
end

if loadgen then loadgen.verify = verify end

sysbench.cmdline.commands = { cleanup = { cleanup } }
