//! The handshake, its variants, and what can go wrong in it.

use std::io;
use std::rc::Rc;

use super::fault::{Action, Event};
use super::script::Auth;
use super::session::{Session, over};
use super::wire::{self, SqlError};

const CLIENT_PROTOCOL_41: u32 = 0x200;
const CLIENT_SSL: u32 = 0x800;
const CLIENT_DEPRECATE_EOF: u32 = 0x100_0000;
/// `LONG_PASSWORD`, `FOUND_ROWS`, `LONG_FLAG`, `CONNECT_WITH_DB`, `LOCAL_FILES`, `IGNORE_SPACE`,
/// `PROTOCOL_41`, `INTERACTIVE`, `TRANSACTIONS`, `SECURE_CONNECTION`, `MULTI_STATEMENTS`,
/// `MULTI_RESULTS`, `PS_MULTI_RESULTS`, `PLUGIN_AUTH`, `CONNECT_ATTRS` and
/// `PLUGIN_AUTH_LENENC_CLIENT_DATA`.
const OFFERED: u32 = 0x3F_A78F;

/// Always the same: no password is checked.
const NONCE: &[u8; 20] = b"canned-nonce-20bytes";

/// Greets a client and lets it in.
pub(crate) async fn greet(session: &mut Session) -> io::Result<()> {
    let shared = Rc::clone(&session.shared);
    if shared.count(|counts| counts.open) > u64::from(shared.script.connections_max) {
        return refuse(session, 0, &SqlError::new(1040, "08004", "Too many connections")).await;
    }
    let action = shared.fault(Event::Connect);
    shared.wait_for_stall().await;
    let greeting = wire::packet(0, &greeting(session));
    // The packets that the client has to answer after its login.
    let mut asked = match &shared.script.auth {
        Auth::Switch(plugin) => vec![auth_switch(plugin, NONCE)],
        Auth::Native | Auth::Deny => Vec::new(),
    };
    // A full exchange of `caching_sha2_password`: the nonce, the demand for the password, the key.
    let exchange =
        |nonce, key| vec![auth_switch("caching_sha2_password", nonce), vec![0x01, 0x04], key];
    match &action {
        Some(Action::HangAtGreeting) => return session.drain().await,
        Some(Action::Protocol9Greeting) => return old(session, b"\x093.20.32a\0", &[]).await,
        Some(Action::Pre41Greeting) => {
            // LONG_FLAG, CONNECT_WITH_DB, TRANSACTIONS; latin1; 13 bytes of filler.
            let more = [[0x0C, 0x20, 8, 2, 0].as_slice(), &[0; 13]].concat();
            return old(session, b"\x0A4.0.30\0", &more).await;
        }
        Some(Action::Error(error)) => return session.refuse_early(0, error).await,
        Some(Action::EmptyAuthSwitchNonce) => {
            asked = exchange(&[], b"\x01no key is needed here".to_vec());
        }
        Some(Action::PublicKey(key)) => asked = exchange(NONCE, key.clone()),
        _ => {}
    }
    let hangs = action == Some(Action::HangAtAuth);
    match action {
        Some(action) => session.deliver(greeting, action).await?,
        None => session.out.extend(greeting),
    }
    if hangs {
        return session.drain().await;
    }
    log_in(session, asked).await
}

/// Takes the client's login and its answers to what it is asked.
async fn log_in(session: &mut Session, asked: Vec<Vec<u8>>) -> io::Result<()> {
    let (mut sequence, login) = packet(session).await?;
    let flags = login.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    // TLS is not offered: a client that asks for it all the same cannot be understood.
    if flags & CLIENT_PROTOCOL_41 == 0 || flags & CLIENT_SSL != 0 {
        let error = SqlError::new(1043, "08S01", "Bad handshake");
        return refuse(session, sequence.wrapping_add(1), &error).await;
    }
    let script = &session.shared.script;
    session.commands.deprecate_eof = script.deprecate_eof && flags & CLIENT_DEPRECATE_EOF != 0;
    for payload in asked {
        session.out.extend(wire::packet(sequence.wrapping_add(1), &payload));
        (sequence, _) = packet(session).await?;
    }
    let denied = session.shared.script.auth == Auth::Deny;
    let payload = if denied {
        session.shared.count(|counts| counts.refused += 1);
        SqlError::new(1045, "28000", "Access denied (using password: YES)").payload(false)
    } else {
        wire::ok(0)
    };
    session.out.extend(wire::packet(sequence.wrapping_add(1), &payload));
    session.flush().await?;
    if denied { Err(over()) } else { Ok(()) }
}

/// Refuses a client for a reason that no script gave.
async fn refuse(session: &mut Session, sequence: u8, error: &SqlError) -> io::Result<()> {
    session.shared.count(|counts| counts.refused += 1);
    session.refuse_early(sequence, error).await
}

/// Sends what waits and reads a packet, with its sequence number.
async fn packet(session: &mut Session) -> io::Result<(u8, Vec<u8>)> {
    session.flush().await?;
    loop {
        if let Some((sequence, payload)) = session.input.next_command() {
            return Ok((sequence, payload.to_vec()));
        }
        session.input.fill(&mut session.socket).await?;
    }
}

/// Greets as servers before 4.1 did, and refuses whatever comes back.
async fn old(session: &mut Session, version: &[u8], more: &[u8]) -> io::Result<()> {
    let greeting = [version, &session.id.to_le_bytes(), b"scramble\0", more].concat();
    session.out.extend(wire::packet(0, &greeting));
    let (sequence, _) = packet(session).await?;
    let message = "Client does not support authentication protocol requested by server";
    session.refuse_early(sequence.wrapping_add(1), &SqlError::new(1251, "08004", message)).await
}

fn greeting(session: &Session) -> Vec<u8> {
    let script = &session.shared.script;
    let flags = OFFERED | if script.deprecate_eof { CLIENT_DEPRECATE_EOF } else { 0 };
    let [low_0, low_1, high_0, high_1] = flags.to_le_bytes();
    let [status_0, status_1] = wire::AUTOCOMMIT.to_le_bytes();
    let (first, second) = NONCE.split_at(8);
    let nonce_length = NONCE.len() as u8 + 1;
    [
        b"\x0A",
        script.version.as_bytes(),
        &[0],
        &session.id.to_le_bytes(),
        first,
        &[0, low_0, low_1, wire::CHARSET, status_0, status_1, high_0, high_1, nonce_length],
        &[0; 10],
        second,
        b"\0mysql_native_password\0",
    ]
    .concat()
}

fn auth_switch(plugin: &str, nonce: &[u8]) -> Vec<u8> {
    let end: &[u8] = if nonce.is_empty() { b"" } else { b"\0" };
    [b"\xFE", plugin.as_bytes(), b"\0", nonce, end].concat()
}
