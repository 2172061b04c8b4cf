-- TPC-C, written from TPC-C Standard Specification, revision 5.11. Comments name its clauses. It runs under
-- sysbench 1.0, too. docs/user/tpcc.md is for users. No audited result comes of it.
local ffi = require("ffi")
ffi.cdef("int usleep(unsigned int microseconds);")

local floor, format, T = math.floor, string.format, sysbench.sql.type

sysbench.cmdline.options = {
  warehouses = { "Warehouses, as many as were prepared", 1, sysbench.cmdline.ARG_INT },
  keying_time = { "Factor of the standard's keying times, 0 for none", 0 },
  think_time = { "Factor of the standard's think times, 0 for none", 0 },
  foreign_keys = { "Tables have the standard's foreign keys", false },
  mysql_storage_engine = { "Engine of the tables, with transactions", "innodb" },
  create_table_options = { "Words behind CREATE TABLE ()", "" },
}

local ITEMS, DISTRICTS, CUSTOMERS, ORDERS = 100000, 10, 3000, 3000
-- Orders up to this one are delivered when they are loaded.
local DELIVERED = 2100

-- Clause 2.1.6.1: constants of NURand. The difference of C_LAST between load and run is from 65 to 119, not 96 or 112.
local C_LAST_LOAD, C_LAST_RUN, C_ID, C_ITEM = 123, 200, 259, 7911

local function nurand(random, a, least, most, c)
  return (bit.bor(random(0, a), random(least, most)) + c) % (most - least + 1) + least
end

-- Clause 4.3.2.3.
local SYLLABLES = { [0] = "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING" }

local function last_name(number)
  return SYLLABLES[floor(number / 100)] .. SYLLABLES[floor(number / 10) % 10] .. SYLLABLES[number % 10]
end

-- Tables, in an order that foreign keys allow.

-- Returns the columns of an address.
local function address(prefix)
  return ("?_street_1 VARCHAR(20) NOT NULL, ?_street_2 VARCHAR(20) NOT NULL, ?_city VARCHAR(20) NOT NULL, "
    .. "?_state CHAR(2) NOT NULL, ?_zip CHAR(9) NOT NULL, "):gsub("?", prefix)
end

local S_DIST = ""
for d = 1, DISTRICTS do S_DIST = S_DIST .. format("s_dist_%02d CHAR(24) NOT NULL, ", d) end

-- W_YTD and D_YTD have three digits more than the standard's: four million payments reach the end of DECIMAL(12,2).
local TABLES = {
  { "warehouse", "w_id INT NOT NULL, w_name VARCHAR(10) NOT NULL, " .. address("w") .. [[
    w_tax DECIMAL(4,4) NOT NULL, w_ytd DECIMAL(15,2) NOT NULL, PRIMARY KEY (w_id)]] },
  { "district", "d_id TINYINT NOT NULL, d_w_id INT NOT NULL, d_name VARCHAR(10) NOT NULL, " .. address("d") .. [[
    d_tax DECIMAL(4,4) NOT NULL, d_ytd DECIMAL(15,2) NOT NULL, d_next_o_id INT NOT NULL, PRIMARY KEY (d_w_id, d_id)]],
    "FOREIGN KEY (d_w_id) REFERENCES warehouse (w_id)" },
  { "customer", [[c_id INT NOT NULL, c_d_id TINYINT NOT NULL, c_w_id INT NOT NULL, c_first VARCHAR(16) NOT NULL,
    c_middle CHAR(2) NOT NULL, c_last VARCHAR(16) NOT NULL, ]] .. address("c") .. [[ c_phone CHAR(16) NOT NULL,
    c_since DATETIME NOT NULL, c_credit CHAR(2) NOT NULL, c_credit_lim DECIMAL(12,2) NOT NULL, c_discount DECIMAL(4,4) NOT NULL,
    c_balance DECIMAL(12,2) NOT NULL, c_ytd_payment DECIMAL(12,2) NOT NULL, c_payment_cnt INT NOT NULL,
    c_delivery_cnt INT NOT NULL, c_data VARCHAR(500) NOT NULL, PRIMARY KEY (c_w_id, c_d_id, c_id),
    KEY customer_name (c_w_id, c_d_id, c_last, c_first)]],
    "FOREIGN KEY (c_w_id, c_d_id) REFERENCES district (d_w_id, d_id)" },
  -- The standard gives it no primary key.
  { "history", [[h_c_id INT NOT NULL, h_c_d_id TINYINT NOT NULL, h_c_w_id INT NOT NULL, h_d_id TINYINT NOT NULL,
    h_w_id INT NOT NULL, h_date DATETIME NOT NULL, h_amount DECIMAL(6,2) NOT NULL, h_data VARCHAR(24) NOT NULL]],
    [[FOREIGN KEY (h_c_w_id, h_c_d_id, h_c_id) REFERENCES customer (c_w_id, c_d_id, c_id),
    FOREIGN KEY (h_w_id, h_d_id) REFERENCES district (d_w_id, d_id)]] },
  { "orders", [[o_id INT NOT NULL, o_d_id TINYINT NOT NULL, o_w_id INT NOT NULL, o_c_id INT NOT NULL, o_entry_d DATETIME NOT NULL,
    o_carrier_id TINYINT, o_ol_cnt TINYINT NOT NULL, o_all_local TINYINT NOT NULL, PRIMARY KEY (o_w_id, o_d_id, o_id),
    KEY orders_customer (o_w_id, o_d_id, o_c_id, o_id)]],
    "FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES customer (c_w_id, c_d_id, c_id)" },
  { "new_order", [[no_o_id INT NOT NULL, no_d_id TINYINT NOT NULL, no_w_id INT NOT NULL,
    PRIMARY KEY (no_w_id, no_d_id, no_o_id)]],
    "FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders (o_w_id, o_d_id, o_id)" },
  { "item", [[i_id INT NOT NULL, i_im_id INT NOT NULL, i_name VARCHAR(24) NOT NULL, i_price DECIMAL(5,2) NOT NULL,
    i_data VARCHAR(50) NOT NULL, PRIMARY KEY (i_id)]] },
  { "stock", "s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity SMALLINT NOT NULL, " .. S_DIST .. [[
    s_ytd INT NOT NULL, s_order_cnt INT NOT NULL, s_remote_cnt INT NOT NULL, s_data VARCHAR(50) NOT NULL,
    PRIMARY KEY (s_w_id, s_i_id)]],
    "FOREIGN KEY (s_w_id) REFERENCES warehouse (w_id), FOREIGN KEY (s_i_id) REFERENCES item (i_id)" },
  { "order_line", [[ol_o_id INT NOT NULL, ol_d_id TINYINT NOT NULL, ol_w_id INT NOT NULL, ol_number TINYINT NOT NULL,
    ol_i_id INT NOT NULL, ol_supply_w_id INT NOT NULL, ol_delivery_d DATETIME, ol_quantity TINYINT NOT NULL,
    ol_amount DECIMAL(6,2) NOT NULL, ol_dist_info CHAR(24) NOT NULL, PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)]],
    [[FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders (o_w_id, o_d_id, o_id),
    FOREIGN KEY (ol_supply_w_id, ol_i_id) REFERENCES stock (s_w_id, s_i_id)]] },
}

local NAMES = {}
for i, definition in ipairs(TABLES) do NAMES[i] = definition[1] end

-- The beginning of the comment by which tables are known as this script's.
local MARK = "loadgen tpcc"
local function mark() return MARK .. (sysbench.opt.foreign_keys and " with foreign keys" or "") end

local function connect() return sysbench.sql.driver():connect() end

-- Returns how many tables of these names there are, and how many of them are as the options say.
local function count_tables(con)
  local all, ours = con:query_row(format([[SELECT COUNT(*), COALESCE(SUM(table_comment = '%s' AND LOWER(engine) = LOWER('%s')), 0)
    FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name IN ('%s')]],
    mark(), sysbench.opt.mysql_storage_engine, table.concat(NAMES, "', '")))
  return tonumber(all), tonumber(ours)
end

local function create_tables(con)
  local all, ours = count_tables(con)
  if all ~= ours then
    error("tables of these names exist that another program made, or this one with other options: another database, or cleanup", 0)
  end
  for _, definition in ipairs(TABLES) do
    local name, columns, keys = unpack(definition)
    if sysbench.opt.foreign_keys and keys then columns = columns .. ", " .. keys end
    con:query(format("CREATE TABLE IF NOT EXISTS %s (%s) ENGINE = %s COMMENT = '%s' %s", name, columns,
      sysbench.opt.mysql_storage_engine, mark(), sysbench.opt.create_table_options))
  end
end

-- Load (clause 4.3.3.1). The rows of a warehouse follow from its number alone, however many threads load.

-- Makes a generator of numbers: Lehmer's, with the multiplier of Park and Miller.
local function make_random(number)
  local modulus = 2147483647
  local x = number * 65537 % (modulus - 1) + 1
  local function random(least, most)
    x = x * 16807 % modulus
    return least + floor(x / modulus * (most - least + 1))
  end
  for _ = 1, 10 do random(0, 1) end
  return random
end

-- Makes a function that cuts random texts of a length out of a long one.
local function make_texts(random, characters)
  local bytes = {}
  for i = 1, 100000 do
    local at = random(1, #characters)
    bytes[i] = characters:sub(at, at)
  end
  local pool = table.concat(bytes)
  return function(least, most)
    local length = most and random(least, most) or least
    local from = random(1, #pool - length)
    return pool:sub(from, from + length - 1)
  end
end

local CAPITALS, DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"

-- Makes the random values of a warehouse; those of the items have number 0.
local function make_values(number)
  local random = make_random(number)
  local values = { random = random, text = make_texts(random, CAPITALS .. CAPITALS:lower() .. DIGITS),
    capitals = make_texts(random, CAPITALS), digits = make_texts(random, DIGITS) }
  -- One of ten has ORIGINAL somewhere in it.
  function values.data()
    local data = values.text(26, 50)
    if random(1, 10) > 1 then return data end
    local at = random(0, #data - 8)
    return data:sub(1, at) .. "ORIGINAL" .. data:sub(at + 9)
  end
  function values.address()
    return format("'%s', '%s', '%s', '%s', '%s11111'", values.text(10, 20), values.text(10, 20), values.text(10, 20),
      values.capitals(2), values.digits(4))
  end
  function values.decimal(least, most, places) return format("%." .. places .. "f", random(least, most) / 10 ^ places) end
  return values
end

-- Inserts the rows that a function gives to its argument.
local function insert(con, name, give)
  con:bulk_insert_init("INSERT INTO " .. name .. " VALUES")
  give(function(...) con:bulk_insert_next(format(...)) end)
  con:bulk_insert_done()
end

local function has_rows(con, ...) return con:query(format(...)).nrows > 0 end

-- Returns whether the items are there: they come in one transaction.
local function has_items(con) return has_rows(con, "SELECT 1 FROM item WHERE i_id = %d", ITEMS) end

local function load_items(con)
  if has_items(con) then return end
  local values = make_values(0)
  con:query("START TRANSACTION")
  insert(con, "item", function(row)
    for i = 1, ITEMS do
      row("(%d, %d, '%s', %s, '%s')", i, values.random(1, 10000), values.text(14, 24), values.decimal(100, 10000, 2), values.data())
    end
  end)
  con:query("COMMIT")
  print("items: loaded")
end

local function load_districts_and_stock(con, w, values)
  local text = values.text
  insert(con, "district", function(row)
    for d = 1, DISTRICTS do
      row("(%d, %d, '%s', %s, %s, %d, %d)", d, w, text(6, 10), values.address(), values.decimal(0, 2000, 4), 10 * CUSTOMERS, ORDERS + 1)
    end
  end)
  insert(con, "stock", function(row)
    for i = 1, ITEMS do
      row("(%d, %d, %d, '%s', '%s', '%s', '%s', '%s', '%s', '%s', '%s', '%s', '%s', 0, 0, 0, '%s')", i, w, values.random(10, 100),
        text(24), text(24), text(24), text(24), text(24), text(24), text(24), text(24), text(24), text(24), values.data())
    end
  end)
end

local function load_customers(con, w, d, values, now)
  local random, text = values.random, values.text
  insert(con, "customer", function(row)
    for c = 1, CUSTOMERS do
      local name = c <= 1000 and c - 1 or nurand(random, 255, 0, 999, C_LAST_LOAD)
      row("(%d, %d, %d, '%s', 'OE', '%s', %s, '%s', '%s', '%s', 50000.00, %s, -10.00, 10.00, 1, 0, '%s')", c, d, w, text(8, 16),
        last_name(name), values.address(), values.digits(16), now, random(1, 10) == 1 and "BC" or "GC",
        values.decimal(0, 5000, 4), text(300, 500))
    end
  end)
end

-- Returns the numbers from 1 to n in a random order.
local function shuffle(random, n)
  local list = {}
  for i = 1, n do
    local at = random(1, i)
    list[i] = list[at]
    list[at] = i
  end
  return list
end

local function load_orders(con, w, d, values, now)
  local random = values.random
  local customers, lines = shuffle(random, CUSTOMERS), {}
  insert(con, "orders", function(row)
    for o = 1, ORDERS do
      lines[o] = random(5, 15)
      row("(%d, %d, %d, %d, '%s', %s, %d, 1)", o, d, w, customers[o], now, o <= DELIVERED and random(1, 10) or "NULL", lines[o])
    end
  end)
  insert(con, "order_line", function(row)
    for o = 1, ORDERS do
      local delivered = o <= DELIVERED
      for number = 1, lines[o] do
        row("(%d, %d, %d, %d, %d, %d, %s, 5, %s, '%s')", o, d, w, number, random(1, ITEMS), w,
          delivered and "'" .. now .. "'" or "NULL", delivered and "0.00" or values.decimal(1, 999999, 2), values.text(24))
      end
    end
  end)
  insert(con, "new_order", function(row)
    for o = DELIVERED + 1, ORDERS do row("(%d, %d, %d)", o, d, w) end
  end)
end

-- The rows of history have no key to find them by: they and the warehouse's own row come in one transaction, the last.
local function finish_warehouse(con, w, values, now)
  con:query("START TRANSACTION")
  insert(con, "history", function(row)
    for d = 1, DISTRICTS do
      for c = 1, CUSTOMERS do row("(%d, %d, %d, %d, %d, '%s', 10.00, '%s')", c, d, w, d, w, now, values.text(12, 24)) end
    end
  end)
  con:query(format("INSERT INTO warehouse VALUES (%d, '%s', %s, %s, %d)", w, values.text(6, 10), values.address(),
    values.decimal(0, 2000, 4), 10 * CUSTOMERS * DISTRICTS))
  con:query("COMMIT")
end

-- Removes what an interrupted load left. Districts come first in a load, and go last here.
local function remove_warehouse(con, w)
  for d = 1, DISTRICTS do
    for name, prefix in pairs({ order_line = "ol", new_order = "no", orders = "o", customer = "c" }) do
      con:query(format("DELETE FROM %s WHERE %s_w_id = %d AND %s_d_id = %d", name, prefix, w, prefix, d))
    end
  end
  for i = 1, ITEMS, 10000 do
    con:query(format("DELETE FROM stock WHERE s_w_id = %d AND s_i_id BETWEEN %d AND %d", w, i, i + 9999))
  end
  con:query(format("DELETE FROM district WHERE d_w_id = %d", w))
end

local function load_warehouse(con, w)
  if has_rows(con, "SELECT 1 FROM warehouse WHERE w_id = %d", w) then return end
  if has_rows(con, "SELECT 1 FROM district WHERE d_w_id = %d LIMIT 1", w) then
    print(format("warehouse %d: its load was interrupted and begins again", w))
    remove_warehouse(con, w)
  end
  local values, now = make_values(w), con:query_row("SELECT NOW()")
  load_districts_and_stock(con, w, values)
  for d = 1, DISTRICTS do
    load_customers(con, w, d, values, now)
    load_orders(con, w, d, values, now)
  end
  finish_warehouse(con, w, values, now)
  print(format("warehouse %d: loaded", w))
end

local function check_options()
  local opt = sysbench.opt
  if opt.warehouses < 1 then error("--warehouses: there is at least one", 0) end
  if opt.keying_time < 0 or opt.think_time < 0 then error("--keying_time, --think_time: a factor is not below 0", 0) end
end

-- Each thread loads each so many-th warehouse.
local function prepare()
  check_options()
  local con, threads = connect(), math.max(sysbench.opt.threads, 1)
  con:query("SET autocommit = 1, foreign_key_checks = 0")
  create_tables(con)
  if sysbench.tid % threads == 0 then load_items(con) end
  for w = sysbench.tid % threads + 1, sysbench.opt.warehouses, threads do load_warehouse(con, w) end
  con:query("ANALYZE TABLE " .. table.concat(NAMES, ", "))
end

function cleanup()
  local con, ours = connect(), {}
  local rows = con:query(format([[SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()
    AND table_name IN ('%s') AND table_comment LIKE '%s%%']], table.concat(NAMES, "', '"), MARK))
  for i = 1, rows.nrows do ours[i] = rows:fetch_row()[1] end
  if #ours == 0 then return end
  con:query("SET foreign_key_checks = 0")
  con:query("DROP TABLE " .. table.concat(ours, ", "))
end

-- Consistency (clause 3.3.2): each query returns the rows that break its condition.

-- Returns the sum of the lines of a customer's delivered orders.
local LINES_OF_CUSTOMER = [[(SELECT COALESCE(SUM(ol_amount), 0) FROM orders JOIN order_line
  ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
  WHERE o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id AND ol_delivery_d IS NOT NULL)]]

local CONDITIONS = {
  { name = "population: rows of each warehouse, and items", sql = format([[SELECT * FROM (SELECT w_id,
    (SELECT COUNT(*) FROM district WHERE d_w_id = w_id) AS districts, (SELECT COUNT(*) FROM customer WHERE c_w_id = w_id) AS customers,
    (SELECT COUNT(*) FROM stock WHERE s_w_id = w_id) AS stock, (SELECT COUNT(*) FROM item) AS items FROM warehouse) AS t
    WHERE districts <> %d OR customers <> %d OR stock <> %d OR items <> %d
    UNION ALL SELECT d_w_id, COUNT(*), 0, 0, 0 FROM district LEFT JOIN warehouse ON w_id = d_w_id WHERE w_id IS NULL GROUP BY d_w_id
    UNION ALL SELECT 0, 0, 0, 0, 0 FROM (SELECT COUNT(*) AS warehouses FROM warehouse) AS t WHERE warehouses = 0]],
    DISTRICTS, DISTRICTS * CUSTOMERS, ITEMS, ITEMS) },
  { name = "condition 1: W_YTD = sum(D_YTD)", sql = [[SELECT * FROM (SELECT w_id, w_ytd,
    (SELECT SUM(d_ytd) FROM district WHERE d_w_id = w_id) AS d_ytd FROM warehouse) AS t WHERE NOT (w_ytd <=> d_ytd)]] },
  { name = "condition 2: D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)", sql = [[SELECT * FROM (SELECT d_w_id, d_id, d_next_o_id,
    (SELECT MAX(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) AS last_order,
    (SELECT MAX(no_o_id) FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d_id) AS last_new FROM district) AS t
    WHERE NOT (d_next_o_id - 1 <=> last_order) OR d_next_o_id - 1 <> last_new]] },
  { name = "condition 3: max(NO_O_ID) - min(NO_O_ID) + 1 = rows of new_order", sql = [[SELECT no_w_id, no_d_id, MIN(no_o_id),
    MAX(no_o_id), COUNT(*) FROM new_order GROUP BY no_w_id, no_d_id HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)]] },
  { name = "condition 4: sum(O_OL_CNT) = rows of order_line", sql = [[SELECT * FROM (SELECT d_w_id, d_id,
    (SELECT SUM(o_ol_cnt) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) AS counted,
    (SELECT COUNT(*) FROM order_line WHERE ol_w_id = d_w_id AND ol_d_id = d_id) AS found FROM district) AS t
    WHERE NOT (counted <=> found)]] },
  { name = "condition 5: O_CARRIER_ID is null for new orders alone", sql = [[SELECT o_w_id, o_d_id, o_id, o_carrier_id, no_o_id
    FROM orders LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
    WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)]] },
  { name = "condition 6: O_OL_CNT = rows of order_line of the order", sql = [[SELECT * FROM (SELECT o_w_id, o_d_id, o_id, o_ol_cnt,
    (SELECT COUNT(*) FROM order_line WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id) AS found FROM orders) AS t
    WHERE o_ol_cnt <> found]] },
  { name = "condition 7: OL_DELIVERY_D is null where O_CARRIER_ID is", sql = [[SELECT ol_w_id, ol_d_id, ol_o_id, ol_number,
    ol_delivery_d, o_carrier_id FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
    WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)]] },
  { name = "condition 8: W_YTD = sum(H_AMOUNT)", sql = [[SELECT w_id, w_ytd, paid FROM warehouse LEFT JOIN
    (SELECT h_w_id, SUM(h_amount) AS paid FROM history GROUP BY h_w_id) AS h ON h_w_id = w_id WHERE NOT (w_ytd <=> paid)]] },
  { name = "condition 9: D_YTD = sum(H_AMOUNT)", sql = [[SELECT d_w_id, d_id, d_ytd, paid FROM district LEFT JOIN
    (SELECT h_w_id, h_d_id, SUM(h_amount) AS paid FROM history GROUP BY h_w_id, h_d_id) AS h ON h_w_id = d_w_id AND h_d_id = d_id
    WHERE NOT (d_ytd <=> paid)]] },
  -- The rows of history have no index of customers: a sum of all that should be nothing is as good.
  { name = "condition 10: C_BALANCE = sum(OL_AMOUNT) - sum(H_AMOUNT)", sql = [[SELECT w, d, c, SUM(amount) FROM (
    SELECT c_w_id AS w, c_d_id AS d, c_id AS c, c_balance - ]] .. LINES_OF_CUSTOMER .. [[ AS amount FROM customer UNION ALL
    SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) FROM history GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS t
    GROUP BY w, d, c HAVING SUM(amount) <> 0]] },
  -- The standard's 2,100 hold for a new database. Each delivery adds one to C_DELIVERY_CNT.
  { name = "condition 11: rows of orders - rows of new_order = 2100 + sum(C_DELIVERY_CNT)", sql = format([[SELECT * FROM (
    SELECT d_w_id, d_id, (SELECT COUNT(*) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) AS orders,
    (SELECT COUNT(*) FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d_id) AS new_orders,
    (SELECT SUM(c_delivery_cnt) FROM customer WHERE c_w_id = d_w_id AND c_d_id = d_id) AS deliveries FROM district) AS t
    WHERE NOT (orders - new_orders <=> %d + deliveries)]], DELIVERED) },
  { name = "condition 12: C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT)", sql = [[SELECT * FROM (SELECT c_w_id, c_d_id, c_id,
    c_balance, c_ytd_payment, ]] .. LINES_OF_CUSTOMER .. [[ AS delivered FROM customer) AS t
    WHERE c_balance + c_ytd_payment <> delivered]] },
}

-- Asks all conditions; its status is 1 if one is broken.
local function check()
  local con, whole = connect(), true
  for _, condition in ipairs(CONDITIONS) do
    local rows = con:query(condition.sql)
    local said = "holds"
    if rows.nrows > 0 then
      local row, values = rows:fetch_row(), {}
      for i = 1, rows.nfields do values[i] = row[i] or "NULL" end
      said, whole = format("BROKEN by %d rows, such as (%s)", rows.nrows, table.concat(values, ", ")), false
    end
    print(condition.name .. ": " .. said)
  end
  return whole
end

if loadgen then loadgen.verify = function() return CONDITIONS end end

sysbench.cmdline.commands = {
  prepare = { prepare, sysbench.cmdline.PARALLEL_COMMAND },
  check = { check },
}

-- Transactions (clauses 2.4 to 2.8).

local con, rand = nil, sysbench.rand.uniform

-- Statements whose answers hold nothing that a transaction needs, and the types of their values.
local PREPARED = {
  count_order = { "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?", "ii" },
  add_order = { [[INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
    VALUES (?, ?, ?, ?, NOW(), NULL, ?, ?)]], "iiiiii" },
  add_new_order = { "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)", "iii" },
  take_stock = { [[UPDATE stock SET s_quantity = s_quantity - ? + IF(s_quantity - ? < 10, 91, 0), s_ytd = s_ytd + ?,
    s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?]], "iiiiii" },
  add_line = { [[INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity,
    ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ? * 0.01, ?)]], "iiiiiiiis" },
  pay_warehouse = { "UPDATE warehouse SET w_ytd = w_ytd + ? * 0.01 WHERE w_id = ?", "ii" },
  pay_district = { "UPDATE district SET d_ytd = d_ytd + ? * 0.01 WHERE d_w_id = ? AND d_id = ?", "iii" },
  pay = { [[UPDATE customer SET c_balance = c_balance - ? * 0.01, c_ytd_payment = c_ytd_payment + ? * 0.01,
    c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?]], "iiiii" },
  pay_with_data = { [[UPDATE customer SET c_balance = c_balance - ? * 0.01, c_ytd_payment = c_ytd_payment + ? * 0.01,
    c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?]], "iisiii" },
  add_history = { [[INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (?, ?, ?, ?, ?, NOW(), ? * 0.01, ?)]], "iiiiiis" },
  show_lines = { [[SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
    WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?]], "iii" },
  remove_new_order = { "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?", "iii" },
  carry = { "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", "iiii" },
  deliver_lines = { "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", "iii" },
  charge = { [[UPDATE customer SET c_balance = c_balance + ? * 0.01, c_delivery_cnt = c_delivery_cnt + 1
    WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?]], "iiii" },
  count_low = { [[SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
    WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id BETWEEN ? AND ? AND s_quantity < ?]], "iiiii" },
}

-- The prepared statements by name, and functions that execute them.
local statements, run = {}, {}

local function prepare_statements()
  for name, definition in pairs(PREPARED) do
    if statements[name] then statements[name]:close() end
    local statement, params = con:prepare(definition[1]), {}
    for i = 1, #definition[2] do
      params[i] = definition[2]:sub(i, i) == "s" and statement:bind_create(T.VARCHAR, 500) or statement:bind_create(T.BIGINT)
    end
    statement:bind_param(unpack(params))
    statements[name] = statement
    run[name] = function(...)
      for i = 1, #params do params[i]:set((select(i, ...))) end
      return statement:execute()
    end
  end
end

-- Reads a row, if there is one.
local function find(sql, ...)
  local rows = con:query(format(sql, ...))
  return rows.nrows > 0 and rows:fetch_row() or nil
end

-- Reads a row that there is.
local function read(sql, ...) return find(sql, ...) or error("no row for " .. format(sql, ...), 0) end

local function cents(text) return floor(tonumber(text) * 100 + 0.5) end

-- Warehouses of this client: where there are more than clients, it stands for the terminals of several.
local homes = {}

local function draw_home() return homes[rand(1, #homes)] end

-- Returns another warehouse than one; that one if it is alone.
local function draw_other(w)
  local n = sysbench.opt.warehouses
  if n == 1 then return w end
  local other = rand(1, n - 1)
  return other < w and other or other + 1
end

-- Chooses a customer: 60 of 100 by the last name (clauses 2.5.1.2, 2.6.1.2).
local function draw_customer(input)
  if rand(1, 100) <= 60 then
    input.last = last_name(nurand(rand, 255, 0, 999, C_LAST_RUN))
  else
    input.c = nurand(rand, 1023, 1, CUSTOMERS, C_ID)
  end
  return input
end

-- Returns the number of the customer: of those with the name, the one in the middle by first names, rounded up.
local function find_customer(input, lock)
  if input.c then return input.c end
  local rows = con:query(format("SELECT c_id FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_last = '%s' ORDER BY c_first%s",
    input.c_w, input.c_d, input.last, lock or ""))
  local row
  for _ = 1, math.ceil(rows.nrows / 2) do row = rows:fetch_row() end
  return tonumber((row or error("no customer has the name " .. input.last, 0))[1])
end

local function draw_new_order()
  local w = draw_home()
  local input = { w = w, d = rand(1, DISTRICTS), c = nurand(rand, 1023, 1, CUSTOMERS, C_ID), all_local = 1, lines = {} }
  local is_rolled_back, n = rand(1, 100) == 1, rand(5, 15)
  for i = 1, n do
    local line = { item = nurand(rand, 8191, 1, ITEMS, C_ITEM), supply = w, quantity = rand(1, 10) }
    if rand(1, 100) == 1 then line.supply = draw_other(w) end
    if line.supply ~= w then input.all_local = 0 end
    input.lines[i] = line
  end
  -- One order of locks for all: transactions then seldom wait for each other in a circle.
  table.sort(input.lines, function(a, b) return a.supply < b.supply or a.supply == b.supply and a.item < b.item end)
  -- Clause 2.4.1.5: of 1 in 100 orders, the last item does not exist.
  if is_rolled_back then input.lines[n].item = ITEMS + 1 end
  return input
end

-- Reads that lock come before those that make a snapshot: a server may refuse to lock a row that is newer.
local function new_order(input)
  local w, d, stock = input.w, input.d, {}
  con:query("START TRANSACTION")
  local o = tonumber(read("SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = %d AND d_id = %d FOR UPDATE", w, d)[1])
  for number, line in ipairs(input.lines) do
    stock[number] = find("SELECT s_dist_%02d, s_quantity, s_data FROM stock WHERE s_w_id = %d AND s_i_id = %d FOR UPDATE", d, line.supply,
      line.item)
  end
  run.count_order(w, d)
  read("SELECT w_tax FROM warehouse WHERE w_id = %d", w)
  read("SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d", w, d, input.c)
  run.add_order(o, d, w, input.c, #input.lines, input.all_local)
  run.add_new_order(o, d, w)
  for number, line in ipairs(input.lines) do
    local item, supply, quantity = find("SELECT i_price, i_name, i_data FROM item WHERE i_id = %d", line.item), line.supply, line.quantity
    if not item then return con:query("ROLLBACK") end
    run.take_stock(quantity, quantity, quantity, supply ~= w and 1 or 0, supply, line.item)
    run.add_line(o, d, w, number, line.item, supply, quantity, quantity * cents(item[1]), stock[number][1])
  end
  con:query("COMMIT")
end

local function draw_payment()
  local w, d = draw_home(), rand(1, DISTRICTS)
  local input = { w = w, d = d, c_w = w, c_d = d, amount = rand(100, 500000) }
  if sysbench.opt.warehouses > 1 and rand(1, 100) > 85 then input.c_w, input.c_d = draw_other(w), rand(1, DISTRICTS) end
  return draw_customer(input)
end

local function payment(input)
  local w, d, amount = input.w, input.d, input.amount
  con:query("START TRANSACTION")
  run.pay_warehouse(amount, w)
  run.pay_district(amount, w, d)
  local c_w, c_d, c = input.c_w, input.c_d, find_customer(input, " FOR UPDATE")
  local customer = read([[SELECT c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since,
    c_credit_lim, c_discount, c_balance FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d FOR UPDATE]], c_w, c_d, c)
  local warehouse = read("SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = %d", w)
  local district = read("SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id = %d AND d_id = %d",
    w, d)
  if customer[1] == "BC" then
    local data = read("SELECT c_data FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d FOR UPDATE", c_w, c_d, c)[1]
    data = format("%d %d %d %d %d %.2f ", c, c_d, c_w, d, w, amount / 100) .. data
    run.pay_with_data(amount, amount, data:sub(1, 500), c_w, c_d, c)
  else
    run.pay(amount, amount, c_w, c_d, c)
  end
  run.add_history(c, c_d, c_w, d, w, amount, warehouse[1] .. "    " .. district[1])
  con:query("COMMIT")
end

local function draw_order_status() return draw_customer({ c_w = draw_home(), c_d = rand(1, DISTRICTS) }) end

local function order_status(input)
  local w, d = input.c_w, input.c_d
  con:query("START TRANSACTION")
  local c = find_customer(input)
  read("SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d", w, d, c)
  local order = read([[SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = %d AND o_d_id = %d AND o_c_id = %d
    ORDER BY o_id DESC LIMIT 1]], w, d, c)
  run.show_lines(w, d, tonumber(order[1]))
  con:query("COMMIT")
end

local function draw_delivery() return { w = draw_home(), carrier = rand(1, 10) } end

-- Delivers the oldest new order of a district, if there is one. All reads lock: a snapshot may be older than the order.
local function deliver(w, d, carrier)
  local oldest = find("SELECT no_o_id FROM new_order WHERE no_w_id = %d AND no_d_id = %d ORDER BY no_o_id LIMIT 1 FOR UPDATE", w, d)
  if not oldest then return end
  local o = tonumber(oldest[1])
  run.remove_new_order(w, d, o)
  local c = tonumber(read("SELECT o_c_id FROM orders WHERE o_w_id = %d AND o_d_id = %d AND o_id = %d FOR UPDATE", w, d, o)[1])
  run.carry(carrier, w, d, o)
  run.deliver_lines(w, d, o)
  local amount = read("SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %d FOR UPDATE", w, d, o)
  run.charge(cents(amount[1]), w, d, c)
end

local function delivery(input)
  con:query("START TRANSACTION")
  for d = 1, DISTRICTS do deliver(input.w, d, input.carrier) end
  con:query("COMMIT")
end

-- The district of a terminal stays the same. A client that stands for several terminals draws one.
local function draw_stock_level()
  local all, threads = sysbench.opt.warehouses, sysbench.opt.threads
  local d = threads < DISTRICTS * all and rand(1, DISTRICTS) or floor(sysbench.tid / all) % DISTRICTS + 1
  return { w = draw_home(), d = d, threshold = rand(10, 20) }
end

local function stock_level(input)
  con:query("START TRANSACTION")
  local o = tonumber(read("SELECT d_next_o_id FROM district WHERE d_w_id = %d AND d_id = %d", input.w, input.d)[1])
  run.count_low(input.w, input.d, o - 20, o - 1, input.threshold)
  con:query("COMMIT")
end

-- Clauses 5.2.4.2, 5.2.5.7: cards of a deck of 23; seconds of keying, and of thinking in the mean.
local KINDS = {
  { name = "new order", cards = 10, keying = 18, think = 12, draw = draw_new_order, perform = new_order },
  { name = "payment", cards = 10, keying = 3, think = 12, draw = draw_payment, perform = payment },
  { name = "order status", cards = 1, keying = 2, think = 10, draw = draw_order_status, perform = order_status },
  { name = "delivery", cards = 1, keying = 2, think = 5, draw = draw_delivery, perform = delivery },
  { name = "stock level", cards = 1, keying = 2, think = 5, draw = draw_stock_level, perform = stock_level },
}

local cards, deck = {}, {}
for _, kind in ipairs(KINDS) do
  for _ = 1, kind.cards do cards[#cards + 1] = kind end
end

-- Refuses tables that are not those of the options: results of different data must not look alike.
function init()
  check_options()
  local own = connect()
  local _, ours = count_tables(own)
  if ours ~= #TABLES then error("there are no such tables, or they were made with other options: prepare", 0) end
  local loaded = tonumber((own:query_row("SELECT COUNT(*) FROM warehouse")))
  if loaded ~= sysbench.opt.warehouses then
    error(format("--warehouses=%d, but there are %d: as many as were prepared", sysbench.opt.warehouses, loaded), 0)
  end
  if not has_items(own) or has_rows(own, "SELECT 1 FROM district LEFT JOIN warehouse ON w_id = d_w_id WHERE w_id IS NULL LIMIT 1") then
    error("a load was interrupted: prepare goes on with it", 0)
  end
  own:disconnect()
end

-- The transaction that comes next: an event that begins again has the same input.
local current

local function draw()
  if #deck == 0 then deck = shuffle(rand, #cards) end
  local kind = cards[table.remove(deck)]
  current = { kind = kind, input = kind.draw() }
end

function thread_init()
  con = connect()
  prepare_statements()
  local all, threads = sysbench.opt.warehouses, sysbench.opt.threads
  for w = sysbench.tid % math.min(threads, all) + 1, all, threads do homes[#homes + 1] = w end
  draw()
end

function thread_done() con:disconnect() end

-- Seconds until the operator has thought about the last answer and keyed the next input (clause 5.2.5).
local waits = 0

local function pause()
  if waits > 0 then ffi.C.usleep(waits * 1e6) end
  waits = 0
end

-- The connection was opened again: its statements and its transaction are gone.
local is_new

-- A pause is no part of an event's time. Under loadgen it lies between two events, so that it holds up no end of a run;
-- sysbench would count an event twice that ends itself.
function event()
  local kind, opt = current.kind, sysbench.opt
  if waits > 0 then
    pause()
    ffi.C.sb_event_start(sysbench.tid)
  end
  if is_new then
    prepare_statements()
    is_new = false
  end
  if loadgen and loadgen.transaction then loadgen.transaction(kind.name) end
  kind.perform(current.input)
  draw()
  local thinks = math.min(-math.log(1 - sysbench.rand.uniform_double()), 10) * kind.think
  waits = thinks * opt.think_time + current.kind.keying * opt.keying_time
  if loadgen and waits > 0 then
    ffi.C.sb_event_stop(sysbench.tid)
    pause()
  end
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
