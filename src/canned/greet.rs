//! The handshake, its variants, and what can go wrong in it.

use std::io;

use super::fault::Action;
use super::script::Auth;
use super::session::{Flow, Session};
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
const NATIVE: &str = "mysql_native_password";
const SHA2: &str = "caching_sha2_password";

/// Greets a client and lets it in.
pub(crate) async fn greet(session: &mut Session) -> io::Result<Flow> {
    let shared = std::rc::Rc::clone(&session.shared);
    if shared.counters.open.get() > u64::from(shared.script.connections_max) {
        shared.counters.refused.add(1);
        session.refuse_early(0, &SqlError::new(1040, "08004", "Too many connections")).await?;
        return Ok(Flow::End);
    }
    let action = shared.faults.connect();
    shared.wait_for_stall().await;
    let greeting = wire::packet(0, &greeting(session));
    match action {
        None => session.out.extend(greeting),
        Some(Action::HangAtAuth) => {
            shared.counters.faults.add(1);
            session.out.extend(greeting);
            session.flush().await?;
            session.socket.drain().await?;
            return Ok(Flow::End);
        }
        Some(Action::HangAtGreeting) => {
            shared.counters.faults.add(1);
            session.socket.drain().await?;
            return Ok(Flow::End);
        }
        Some(Action::Protocol9Greeting) => return old(session, &protocol_9(session.id)).await,
        Some(Action::Pre41Greeting) => return old(session, &pre_41(session.id)).await,
        Some(Action::Error(error)) => {
            shared.counters.faults.add(1);
            session.refuse_early(0, &error).await?;
            return Ok(Flow::End);
        }
        Some(Action::EmptyAuthSwitchNonce) => {
            shared.counters.faults.add(1);
            session.out.extend(greeting);
            return log_in(session, Some((&[], b"\x01no key is needed here"))).await;
        }
        Some(Action::PublicKey(key)) => {
            shared.counters.faults.add(1);
            session.out.extend(greeting);
            return log_in(session, Some((NONCE, &key))).await;
        }
        Some(action) => {
            if session.deliver(greeting, action).await? == Flow::End {
                return Ok(Flow::End);
            }
        }
    }
    log_in(session, None).await
}

/// Takes the client's login; `key_exchange` (nonce, key packet) forces a full exchange of
/// `caching_sha2_password` upon it.
async fn log_in(session: &mut Session, key_exchange: Option<(&[u8], &[u8])>) -> io::Result<Flow> {
    let Some((mut sequence, login)) = packet(session).await? else { return Ok(Flow::End) };
    let flags = login.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    // TLS is not offered: a client that asks for it all the same cannot be understood.
    if flags & CLIENT_PROTOCOL_41 == 0 || flags & CLIENT_SSL != 0 {
        session.shared.counters.refused.add(1);
        session.refuse_early(sequence.wrapping_add(1), &bad_handshake()).await?;
        return Ok(Flow::End);
    }
    session.deprecate_eof =
        session.shared.script.deprecate_eof && flags & CLIENT_DEPRECATE_EOF != 0;
    let asked: Vec<Vec<u8>> = match (&session.shared.script.auth, key_exchange) {
        // The nonce, the demand for the password, and the key, each for an answer.
        (_, Some((nonce, key))) => {
            vec![auth_switch(SHA2, nonce), vec![0x01, 0x04], key.to_vec()]
        }
        (Auth::Switch(plugin), None) => vec![auth_switch(plugin, NONCE)],
        (Auth::Native | Auth::Deny, None) => Vec::new(),
    };
    for payload in asked {
        session.out.extend(wire::packet(sequence.wrapping_add(1), &payload));
        let Some((next, _)) = packet(session).await? else { return Ok(Flow::End) };
        sequence = next;
    }
    let denied = session.shared.script.auth == Auth::Deny;
    let payload = if denied {
        session.shared.counters.refused.add(1);
        wire::error(&SqlError::new(1045, "28000", "Access denied (using password: YES)"))
    } else {
        wire::ok(0)
    };
    session.out.extend(wire::packet(sequence.wrapping_add(1), &payload));
    session.flush().await?;
    Ok(if denied { Flow::End } else { Flow::Continue })
}

/// Sends what waits and reads a packet, with its sequence number; `None` at the client's end.
async fn packet(session: &mut Session) -> io::Result<Option<(u8, Vec<u8>)>> {
    session.flush().await?;
    loop {
        if let Some(frame) = session.input.next_frame() {
            return Ok(Some((frame.sequence, session.input.payload(&frame).to_vec())));
        }
        if session.input.fill(&mut session.socket).await? == 0 {
            return Ok(None);
        }
    }
}

/// Greets as servers before 4.1 did, and refuses whatever comes back.
async fn old(session: &mut Session, greeting: &[u8]) -> io::Result<Flow> {
    session.shared.counters.faults.add(1);
    session.out.extend(wire::packet(0, greeting));
    if let Some((sequence, _)) = packet(session).await? {
        let error = SqlError::new(
            1251,
            "08004",
            "Client does not support authentication protocol requested by server",
        );
        session.refuse_early(sequence.wrapping_add(1), &error).await?;
    }
    Ok(Flow::End)
}

fn bad_handshake() -> SqlError {
    SqlError::new(1043, "08S01", "Bad handshake")
}

fn greeting(session: &Session) -> Vec<u8> {
    let script = &session.shared.script;
    let flags = OFFERED | if script.deprecate_eof { CLIENT_DEPRECATE_EOF } else { 0 };
    let [low_0, low_1, high_0, high_1] = flags.to_le_bytes();
    let [status_0, status_1] = wire::AUTOCOMMIT.to_le_bytes();
    let (first, second) = NONCE.split_at(8);
    let mut out = vec![10];
    out.extend_from_slice(script.version.as_bytes());
    out.push(0);
    out.extend_from_slice(&session.id.to_le_bytes());
    out.extend_from_slice(first);
    out.extend_from_slice(&[0, low_0, low_1, wire::CHARSET, status_0, status_1, high_0, high_1]);
    out.push(NONCE.len() as u8 + 1);
    out.extend_from_slice(&[0; 10]);
    out.extend_from_slice(second);
    out.push(0);
    out.extend_from_slice(NATIVE.as_bytes());
    out.push(0);
    out
}

fn auth_switch(plugin: &str, nonce: &[u8]) -> Vec<u8> {
    let mut out = vec![0xFE];
    out.extend_from_slice(plugin.as_bytes());
    out.push(0);
    out.extend_from_slice(nonce);
    if !nonce.is_empty() {
        out.push(0);
    }
    out
}

fn protocol_9(id: u32) -> Vec<u8> {
    let mut out = b"\x093.20.32a\0".to_vec();
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(b"scramble\0");
    out
}

fn pre_41(id: u32) -> Vec<u8> {
    // LONG_FLAG, CONNECT_WITH_DB, TRANSACTIONS; latin1; 13 bytes of filler.
    let mut out = b"\x0A4.0.30\0".to_vec();
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(b"scramble\0");
    out.extend_from_slice(&[0x0C, 0x20, 8, 2, 0]);
    out.extend_from_slice(&[0; 13]);
    out
}
