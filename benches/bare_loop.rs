//! The least that a client of prepared point selects can do, for `benches/versus-sysbench`: a socket
//! loop over packets that are encoded beforehand. It reads no clock, checks no row, records nothing;
//! what loadgen does beyond it is what loadgen costs.
//!
//! ```text
//! bare_loop PORT CLIENTS SECONDS
//! ```
//!
//! The server is `loadgen canned`, on loopback. It prints the ops and their rate as JSON.

use std::cell::Cell;
use std::io::{Error, ErrorKind, Result, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::JoinSet;

const TABLES: u64 = 8;
/// The ids that the canned tables claim to have.
const ROWS: u64 = 100;
/// `CONNECT_WITH_DB`, `PROTOCOL_41`, `SECURE_CONNECTION`, `PLUGIN_AUTH`, `DEPRECATE_EOF`.
const CAPABILITIES: u32 = 0x0108_8208;
const STMT_PREPARE: u8 = 0x16;
const STMT_EXECUTE: u8 = 0x17;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next().and_then(|text| text.parse::<u64>().ok());
    let (Some(port), Some(clients), Some(seconds)) = (number(), number(), number()) else {
        return Err(Error::new(ErrorKind::InvalidInput, "usage: bare_loop PORT CLIENTS SECONDS"));
    };
    let port = u16::try_from(port).map_err(Error::other)?;
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    runtime.block_on(race(port, clients, Duration::from_secs(seconds)))
}

/// Lets the clients loop from the moment all are there.
async fn race(port: u16, clients: u64, time: Duration) -> Result<()> {
    let mut ready = Vec::new();
    for number in 0..clients {
        ready.push(Client::open(port, number).await?);
    }
    let ops = Rc::new(Cell::new(0));
    let mut tasks = JoinSet::new();
    let began = Instant::now();
    for client in ready {
        tasks.spawn_local(client.select(Rc::clone(&ops)));
    }
    tokio::select! {
        () = tokio::time::sleep(time) => {}
        Some(ended) = tasks.join_next() => {
            return Err(Error::other(format!("a client ended: {ended:?}")));
        }
    }
    let (ops, passed) = (ops.get(), began.elapsed().as_secs_f64());
    writeln!(std::io::stdout(), r#"{{"ops": {ops}, "per_s": {:.1}}}"#, ops as f64 / passed)
}

struct Client {
    socket: TcpStream,
    buffer: Vec<u8>,
    execute: Vec<u8>,
    random: u64,
}

impl Client {
    /// Connects, logs in and prepares the statement.
    async fn open(port: u16, number: u64) -> Result<Client> {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await?;
        socket.set_nodelay(true)?;
        let mut buffer = vec![0; 16 << 10];
        read_packets(&mut socket, &mut buffer, 1).await?;
        let numbers = [CAPABILITIES.to_le_bytes(), (1_u32 << 24).to_le_bytes()].concat();
        // utf8mb4, 23 bytes of filler; then the user, an empty password, the database, the plugin.
        let names = b"root\0\0sbtest\0mysql_native_password\0";
        let login = [&numbers, [45].as_slice(), &[0; 23], names].concat();
        socket.write_all(&packet(1, &login)).await?;
        read_packets(&mut socket, &mut buffer, 1).await?;

        let table = number % TABLES + 1;
        let sql = format!("SELECT c FROM sbtest{table} WHERE id=?");
        socket.write_all(&packet(0, &[&[STMT_PREPARE], sql.as_bytes()].concat())).await?;
        // The statement and the definitions of its parameter and of its column.
        read_packets(&mut socket, &mut buffer, 3).await?;
        // Its id; no cursor; once; no NULL; the type: an unsigned integer of 8 bytes, which follow.
        let fixed = [0, 1, 0, 0, 0, 0, 1, 0x08, 0x80].as_slice();
        let execute = [&[STMT_EXECUTE], &buffer[5..9], fixed, &[0; 8]].concat();
        Ok(Client { socket, buffer, execute: packet(0, &execute), random: number })
    }

    /// Selects for ever, and counts.
    async fn select(mut self, ops: Rc<Cell<u64>>) -> Result<()> {
        let value_at = self.execute.len() - 8;
        loop {
            self.random = self.random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            let id = (self.random >> 33) % ROWS + 1;
            self.execute[value_at..].copy_from_slice(&id.to_le_bytes());
            self.socket.write_all(&self.execute).await?;
            // The count of columns, the column, the row, the end.
            read_packets(&mut self.socket, &mut self.buffer, 4).await?;
            ops.set(ops.get() + 1);
        }
    }
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("our packets are short");
    [&[length, 0, 0, sequence], payload].concat()
}

/// Reads an answer of so many packets.
async fn read_packets(socket: &mut TcpStream, buffer: &mut [u8], count: usize) -> Result<()> {
    let mut filled = 0;
    while !are_whole(&buffer[..filled], count)? {
        filled += match socket.read(&mut buffer[filled..]).await? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            read => read,
        };
    }
    Ok(())
}

/// Looks at the packets' headers and first bytes, and at nothing else.
fn are_whole(mut bytes: &[u8], count: usize) -> Result<bool> {
    for _ in 0..count {
        let [low, middle, high, _, rest @ ..] = bytes else { return Ok(false) };
        let length = u32::from_le_bytes([*low, *middle, *high, 0]) as usize;
        if rest.first() == Some(&0xFF) {
            return Err(Error::other("the server answered with an error"));
        }
        let Some(next) = rest.get(length..) else { return Ok(false) };
        bytes = next;
    }
    if bytes.is_empty() { Ok(true) } else { Err(Error::other("more came than was asked for")) }
}
