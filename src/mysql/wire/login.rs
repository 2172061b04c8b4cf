//! The log-in of one connection, from the server's greeting to its OK: packets in, packets out.

use mysql_async::{DriverError, Error, Result};
use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, HandshakePacket, HandshakeResponse};
use mysql_common::proto::MySerialize;

use super::{rsa, signature};
use crate::error::line;
use crate::mysql::options::{Address, ConnectOptions, SslMode};

/// Capabilities asked for where a server offers them; not LOCAL_FILES and MULTI_STATEMENTS, so that it
/// refuses these. LONG_PASSWORD is never added: MariaDB recognises MySQL by it.
const ASKED: CapabilityFlags = NEEDED
    .union(CapabilityFlags::CLIENT_LONG_PASSWORD)
    .union(CapabilityFlags::CLIENT_FOUND_ROWS)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF);
const NEEDED: CapabilityFlags =
    CapabilityFlags::CLIENT_PROTOCOL_41.union(CapabilityFlags::CLIENT_SECURE_CONNECTION);

/// Largest packet, as announced to the server.
const PACKET_MAX: u32 = 1 << 24;
/// Bytes of the response that ask for TLS when sent alone.
const HEAD: usize = 32;
const NONCE: usize = 20;
/// Most packets of one log-in: an account has a handful of methods of two packets each.
const PACKETS_MAX: usize = 32;
pub(crate) const REFUSED_KEY: &str =
    "the server's RSA key is broken, weak or too short for the password";
pub(crate) const IN_THE_CLEAR: &str =
    "the server asks for the password in plain text, and this connection is not encrypted";
pub(crate) const ANOTHER_QUESTION: &str = "the server asks for something else than a password";

/// The action after a packet. It may hold the password.
#[cfg_attr(test, derive(Debug, PartialEq))]
pub(crate) enum LoginAction {
    Send(Vec<u8>),
    Read,
    Done,
}

/// The expected packet, besides a switch to another method: MariaDB tries those of an account one by one.
#[derive(Clone, Copy, PartialEq)]
enum Awaits {
    /// An OK, or more of this method.
    Answer,
    Key,
    /// The rounds and the salt of parsec.
    Salt,
    Question,
    Verdict,
}

/// A reason to decline a method that the server asked for.
enum Declined {
    Unknown(String),
    Old,
    InTheClear,
    AnotherQuestion,
}

pub(crate) struct Login<'a> {
    target: &'a ConnectOptions,
    awaits: Awaits,
    packets: usize,
    switched: bool,
    /// True after a second method, or one that the driver does not know.
    pub(crate) beyond_driver: bool,
    declined: Option<Declined>,
    response: Option<Vec<u8>>,
    version: (u16, u16, u16),
    capabilities: CapabilityFlags,
    plugin: AuthPlugin<'static>,
    nonce: Vec<u8>,
}

impl<'a> Login<'a> {
    /// [`Self::tls_request`] and TLS follow if the target wants that, then [`Self::response`].
    pub(crate) fn from_greeting(target: &'a ConnectOptions, packet: &[u8]) -> Result<Login<'a>> {
        let mut greeting = packet.to_vec();
        let greeting = self::greeting(&mut greeting).ok_or_else(|| too_old(packet))?;
        let (tls, offered) = (target.ssl.mode != SslMode::Disabled, greeting.capabilities());
        if tls && !offered.contains(CapabilityFlags::CLIENT_SSL) {
            return Err(DriverError::NoClientSslFlagFromServer.into());
        }
        let mut asked = ASKED;
        asked.set(CapabilityFlags::CLIENT_SSL, tls);
        Ok(Login {
            target,
            awaits: Awaits::Answer,
            packets: 0,
            switched: false,
            beyond_driver: false,
            declined: None,
            response: None,
            // The parser panics on digits of other scripts.
            version: Some(&greeting)
                .filter(|greeting| greeting.server_version_ref().is_ascii())
                .and_then(HandshakePacket::server_version_parsed)
                .unwrap_or_default(),
            capabilities: asked & offered,
            plugin: match greeting.auth_plugin() {
                Some(AuthPlugin::CachingSha2Password) => AuthPlugin::CachingSha2Password,
                // A guess: the server asks for another plugin where the account has one.
                _ => AuthPlugin::MysqlNativePassword,
            },
            nonce: greeting.nonce(),
        })
    }

    pub(crate) fn tls_request(&self) -> Vec<u8> {
        self.response()[..HEAD].to_vec()
    }

    /// Takes the driver's response for the same account and greeting, without TLS.
    pub(crate) fn respond_with(&mut self, mut response: Vec<u8>) -> Result<()> {
        let [a, b, c, d, ..] = response[..] else { return Err(unexpected()) };
        let mut asked = CapabilityFlags::from_bits_retain(u32::from_le_bytes([a, b, c, d]));
        asked.set(CapabilityFlags::CLIENT_SSL, self.target.ssl.mode != SslMode::Disabled);
        response[..4].copy_from_slice(&asked.bits().to_le_bytes());
        if response.len() < HEAD {
            return Err(unexpected());
        }
        self.response = Some(response);
        Ok(())
    }

    pub(crate) fn response(&self) -> Vec<u8> {
        if let Some(response) = &self.response {
            return response.clone();
        }
        let database = Some(self.target.database.as_bytes()).filter(|name| !name.is_empty());
        let has_plugins = self.capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH);
        let mut response = Vec::new();
        HandshakeResponse::new(
            Some(self.scramble()),
            self.version,
            Some(self.target.user.as_bytes()),
            database,
            has_plugins.then(|| self.plugin.clone()),
            self.capabilities,
            None,
            PACKET_MAX,
        )
        .serialize(&mut response);
        response
    }

    /// Handles the payload of a packet that is no error. After an error the log-in is over.
    pub(crate) fn take(&mut self, packet: &[u8]) -> Result<LoginAction> {
        self.packets += 1;
        let sha2 = self.plugin == AuthPlugin::CachingSha2Password;
        match (self.awaits, packet) {
            _ if self.packets > PACKETS_MAX => Err(unexpected()),
            (awaits, [0x00, ..]) if awaits != Awaits::Key => Ok(LoginAction::Done),
            (_, [0xfe, switch @ ..]) => self.switch(switch),
            (Awaits::Answer, [0x01, 3, ..]) if sha2 => {
                self.awaits = Awaits::Verdict;
                Ok(LoginAction::Read)
            }
            (Awaits::Answer, [0x01, 4, ..]) if sha2 => {
                let socket = matches!(self.target.address, Address::Socket(_));
                Ok(self.disclose(socket, 2))
            }
            (Awaits::Key, [0x01, key @ ..]) => {
                self.awaits = Awaits::Verdict;
                let mut text = self.password();
                text.iter_mut().zip(self.nonce.iter().cycle()).for_each(|(byte, n)| *byte ^= n);
                let sealed = rsa::encrypt(&text, key).ok_or(Error::Other(REFUSED_KEY.into()))?;
                Ok(LoginAction::Send(sealed))
            }
            // The server leaves out the byte in front where the plugin's first byte is unambiguous.
            (Awaits::Salt, [0x01, salt @ ..] | salt @ [b'P', ..]) => self.sign_both(salt),
            (Awaits::Question, [0x01, 2..=5, ..] | [2..=5, ..]) => {
                let why = self.declined.take();
                Ok(self.decline(why.unwrap_or(Declined::AnotherQuestion)))
            }
            _ => Err(unexpected()),
        }
    }

    /// Returns why the last method was declined: the server's refusal follows from it.
    pub(crate) fn decline_reason(&self) -> Option<Error> {
        Some(match self.declined.as_ref()? {
            Declined::Unknown(name) => DriverError::UnknownAuthPlugin { name: name.clone() }.into(),
            Declined::Old => DriverError::MysqlOldPasswordDisabled.into(),
            Declined::InTheClear => Error::Other(IN_THE_CLEAR.into()),
            Declined::AnotherQuestion => Error::Other(ANOTHER_QUESTION.into()),
        })
    }

    /// Returns whether results come without EOF packets.
    pub(crate) fn deprecate_eof(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF)
    }

    /// Proves that the password is known; empty without one.
    fn scramble(&self) -> Vec<u8> {
        let scramble = self.plugin.gen_data(Some(self.target.password.expose()), &self.nonce);
        scramble.map_or_else(Vec::new, |scramble| scramble.to_vec())
    }

    fn switch(&mut self, packet: &[u8]) -> Result<LoginAction> {
        let mut rest = ParseBuf(packet);
        let name = rest.eat_null_str();
        self.plugin = AuthPlugin::from_bytes(name).into_owned();
        (self.awaits, self.declined) = (Awaits::Answer, None);
        let common = matches!(name, b"mysql_native_password" | b"caching_sha2_password");
        self.beyond_driver |= self.switched || !common;
        self.switched = true;
        let mut nonce =
            |length| rest.checked_eat(length).ok_or_else(unexpected).map(<[u8]>::to_vec);
        Ok(match name {
            b"mysql_native_password" | b"caching_sha2_password" => {
                self.nonce = nonce(NONCE)?;
                LoginAction::Send(self.scramble())
            }
            b"sha256_password" => {
                self.nonce = nonce(NONCE)?;
                self.disclose(self.target.password.is_empty(), 1)
            }
            b"client_ed25519" => {
                let password = self.target.password.expose().as_bytes();
                LoginAction::Send(signature::ed25519(password, &nonce(signature::NONCE)?))
            }
            b"parsec" => {
                self.nonce = nonce(signature::NONCE)?;
                self.awaits = Awaits::Salt;
                LoginAction::Send(Vec::new())
            }
            b"mysql_clear_password" => self.send_password(),
            b"dialog" => match rest.0 {
                // Asks for a password; some servers send no text.
                [] | [4 | 5, ..] => {
                    let action = self.send_password();
                    self.awaits = Awaits::Question;
                    action
                }
                _ => self.decline(Declined::AnotherQuestion),
            },
            // A packet without a name asks for the scramble of before 4.1.
            b"" | b"mysql_old_password" => self.decline(Declined::Old),
            _ => self.decline(Declined::Unknown(String::from_utf8_lossy(name).into())),
        })
    }

    /// Answers with nothing: the server goes on to the account's next method, or refuses.
    fn decline(&mut self, why: Declined) -> LoginAction {
        self.declined = Some(why);
        LoginAction::Send(Vec::new())
    }

    /// Sends the password over a socket or TLS, else declines.
    fn send_password(&mut self) -> LoginAction {
        let socket = matches!(self.target.address, Address::Socket(_));
        if socket || self.target.ssl.mode != SslMode::Disabled {
            LoginAction::Send(self.password())
        } else {
            self.decline(Declined::InTheClear)
        }
    }

    fn sign_both(&mut self, salt: &[u8]) -> Result<LoginAction> {
        self.awaits = Awaits::Verdict;
        let mut ours = [0; signature::NONCE];
        getrandom::fill(&mut ours).map_err(|e| Error::Other(e.to_string().into()))?;
        let password = self.target.password.expose().as_bytes();
        let answer = signature::parsec(password, &self.nonce, ours, salt);
        answer.map(LoginAction::Send).ok_or_else(unexpected)
    }

    /// Sends the password where nobody else can read it, else asks for the key.
    fn disclose(&mut self, safe: bool, ask: u8) -> LoginAction {
        if safe || self.target.ssl.mode != SslMode::Disabled {
            self.awaits = Awaits::Verdict;
            return LoginAction::Send(self.password());
        }
        self.awaits = Awaits::Key;
        LoginAction::Send(vec![ask])
    }

    fn password(&self) -> Vec<u8> {
        [self.target.password.expose().as_bytes(), &[0]].concat()
    }
}

/// Reads a greeting; None for servers before 4.1, too.
fn greeting(packet: &mut [u8]) -> Option<HandshakePacket<'_>> {
    // mysql_common reads the nonce's length as a signed number, and panics on some.
    let length = packet.get_mut(memchr::memchr(0, packet)? + 21)?;
    *length = (*length).min(i8::MAX as u8);
    let greeting: HandshakePacket<'_> = ParseBuf(packet).parse(()).ok()?;
    let sound = greeting.protocol_version() == 10 && greeting.capabilities().contains(NEEDED);
    sound.then_some(greeting)
}

fn too_old(greeting: &[u8]) -> Error {
    let (protocol, rest) = greeting.split_first().unwrap_or((&0, &[]));
    let mut rest = ParseBuf(rest);
    let version = String::from_utf8_lossy(rest.eat_null_str());
    // Thread id, eight bytes of salt and a zero lie between; 3.21 and 3.22 send none.
    let flags = rest.checked_eat(4 + 9).and_then(|_| rest.checked_eat_u16_le());
    let is_new = |flags| u32::from(flags) & CapabilityFlags::CLIENT_PROTOCOL_41.bits() != 0;
    let older = *protocol == 9 || *protocol == 10 && !flags.is_some_and(is_new);
    if !older || !version.starts_with(|c: char| c.is_ascii_digit()) {
        return unexpected();
    }
    let why = "servers before 4.1 are not supported, they speak another protocol";
    Error::Other(format!("it is MySQL {}: {why}", line(&version)).into())
}

/// Makes the error for a packet that is no log-in's, without its bytes.
pub(crate) fn unexpected() -> Error {
    DriverError::UnexpectedPacket { payload: Vec::new() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::options::{Secret, Ssl};
    use mysql_common::scramble::{scramble_native, scramble_sha256};
    use proptest::prelude::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    const FIRST: &[u8; NONCE] = b"abcdefghijklmnopqrst";
    const LATER: &[u8; NONCE] = b"ABCDEFGHIJKLMNOPQRST";
    const PASSWORD: &str = "marker-pw";
    const OK: &[u8] = b"\0\0\0\x02\0\0\0";
    const CACHED: &[u8] = b"\x01\x03";
    const FULL: &[u8] = b"\x01\x04";
    const TLS: u32 = CapabilityFlags::CLIENT_SSL.bits();

    struct Server {
        version: &'static str,
        offered: u32,
        /// MariaDB's own capabilities.
        own: u32,
        plugin: &'static str,
        agreed: u32,
    }

    const NATIVE: &str = "mysql_native_password\0";
    const SHA2: &str = "caching_sha2_password\0";

    const fn server(
        version: &'static str,
        offered: u32,
        own: u32,
        plugin: &'static str,
        agreed: u32,
    ) -> Server {
        Server { version, offered, own, plugin, agreed }
    }

    const MYSQL_5_6: Server = server("5.6.24-log", 0x807f_f7ff, 0, NATIVE, 0x000e_a20b);
    const MYSQL_8: Server = server("8.0.33", 0xdfff_ffff, 0, SHA2, 0x010e_a20b);

    /// Servers with their offers and the expected requests.
    const SERVERS: [Server; 10] = [
        server("5.5.9-log", 0x800f_f7ff, 0, "mysql_native_password", 0x000e_a20b),
        server("5.5.34", 0x800f_f7ff, 0, NATIVE, 0x000e_a20b),
        MYSQL_5_6,
        MYSQL_8,
        server("9.7.4", 0xdfff_ffff, 0, SHA2, 0x010e_a20b),
        server("5.5.5-10.1.23-MariaDB", 0xa03f_f7ff, 0, NATIVE, 0x000e_a20b),
        server("5.5.5-10.2.11-MariaDB-log", 0x81bf_f7fe, 0x07, NATIVE, 0x010e_a20a),
        server("5.5.5-10.5.23-MariaDB", 0x81ff_f7fe, 0x0f, NATIVE, 0x010e_a20a),
        server("5.5.5-10.11.18-MariaDB", 0x81ff_f7fe, 0x1d, NATIVE, 0x010e_a20a),
        server("11.8.6-MariaDB-0+deb13u1", 0x81ff_fffe, 0x3d, NATIVE, 0x010e_a20a),
    ];

    impl Server {
        fn greeting(&self) -> Vec<u8> {
            let [a, b, c, d] = self.offered.to_le_bytes();
            let mut greeting = [b"\x0a", self.version.as_bytes(), b"\0\x04\x03\x02\x01"].concat();
            greeting
                .extend_from_slice(&[&FIRST[..8], &[0, a, b, 8, 2, 0, c, d, 21, 0, 0]].concat());
            greeting.extend_from_slice(&[&[0; 4], &self.own.to_le_bytes()[..]].concat());
            greeting.extend_from_slice(&[&FIRST[8..], b"\0", self.plugin.as_bytes()].concat());
            greeting
        }
    }

    fn tcp() -> ConnectOptions {
        ConnectOptions { password: PASSWORD.into(), ..ConnectOptions::canned(3306) }
    }

    fn socket() -> ConnectOptions {
        ConnectOptions { address: Address::Socket("/x.sock".into()), ..tcp() }
    }

    fn tls() -> ConnectOptions {
        ConnectOptions { ssl: Ssl { mode: SslMode::Required, ..Ssl::default() }, ..tcp() }
    }

    fn switch(plugin: &str) -> Vec<u8> {
        [b"\xfe", plugin.as_bytes(), LATER, b"\0"].concat()
    }

    /// Returns the replies to these packets after the log-in's response.
    fn replies(
        target: &ConnectOptions,
        server: &Server,
        packets: &[&[u8]],
    ) -> Result<Vec<LoginAction>> {
        let mut login = Login::from_greeting(target, &server.greeting())?;
        packets.iter().map(|packet| login.take(packet)).collect()
    }

    fn native(nonce: &[u8]) -> Vec<u8> {
        scramble_native(nonce, PASSWORD.as_bytes()).expect("a password").into()
    }

    fn sha2(nonce: &[u8]) -> Vec<u8> {
        scramble_sha256(nonce, PASSWORD.as_bytes()).expect("a password").into()
    }

    /// The response of an account with that password.
    fn response(server: &Server, capabilities: u32, database: &str) -> Vec<u8> {
        let (scramble, plugin) = match server.plugin {
            SHA2 => (sha2(FIRST), SHA2),
            _ => (native(FIRST), NATIVE),
        };
        let head = [&capabilities.to_le_bytes()[..], &[0, 0, 0, 1, 45], &[0; 23]].concat();
        let scramble = [&[scramble.len() as u8], &scramble[..]].concat();
        [&head, &b"root\0"[..], &scramble, database.as_bytes(), plugin.as_bytes()].concat()
    }

    #[test]
    fn a_greeting_is_answered_in_what_both_sides_speak() {
        for server in &SERVERS {
            let (target, name) = (tcp(), server.version);
            let login = Login::from_greeting(&target, &server.greeting()).unwrap();
            assert_eq!(login.response(), response(server, server.agreed, "sbtest\0"), "{name}");
            assert_eq!(login.deprecate_eof(), server.agreed >> 24 == 1, "{name}");
            let none = tcp().with_database("");
            let login = Login::from_greeting(&none, &server.greeting()).unwrap();
            assert_eq!(login.response(), response(server, server.agreed & !8, ""), "{name}");
        }
        for (version, collation) in
            [("5.5.2-m2", 33), ("5.1.73", 33), ("x", 33), ("١.١.١", 33), ("5.5.3-m3", 45)]
        {
            let server = Server { version, ..MYSQL_5_6 };
            let target = tcp();
            let login = Login::from_greeting(&target, &server.greeting()).unwrap();
            assert_eq!(login.response()[8], collation, "{version}");
        }
    }

    #[test]
    fn tls_is_asked_for_with_the_head_of_the_response_when_wanted() {
        let target = tls();
        for server in SERVERS.iter().filter(|server| server.offered & TLS != 0) {
            let login = Login::from_greeting(&target, &server.greeting()).unwrap();
            let expected = response(server, server.agreed | TLS, "sbtest\0");
            assert_eq!(login.tls_request(), expected[..HEAD], "{}", server.version);
            assert_eq!(login.response(), expected, "{}", server.version);
        }
        let error = replies(&target, &MYSQL_5_6, &[]).unwrap_err();
        assert!(matches!(error, Error::Driver(DriverError::NoClientSslFlagFromServer)));
    }

    #[test]
    fn an_account_is_let_in_when_its_plugin_gets_what_it_asks_for() {
        struct Case {
            target: ConnectOptions,
            server: Server,
            packets: Vec<Vec<u8>>,
            said: Vec<LoginAction>,
        }
        let native_later = || LoginAction::Send(native(LATER));
        let sha2_later = || LoginAction::Send(sha2(LATER));
        let clear = || LoginAction::Send(b"marker-pw\0".to_vec());
        let (nothing, ask) = (|| LoginAction::Send(Vec::new()), |key| LoginAction::Send(vec![key]));
        let nonce = [5; signature::NONCE];
        let (to_ed25519, to_parsec) = (
            [b"\xfeclient_ed25519\0", &nonce[..]].concat(),
            [b"\xfeparsec\0", &nonce[..]].concat(),
        );
        let signature = || LoginAction::Send(signature::ed25519(PASSWORD.as_bytes(), &nonce));
        let case = |target, server, packets: &[&[u8]], said| Case {
            target,
            server,
            packets: packets.iter().map(|packet| packet.to_vec()).collect(),
            said,
        };
        let (to_native, to_sha2, to_sha256) =
            (switch(NATIVE), switch(SHA2), switch("sha256_password\0"));
        let empty = || ConnectOptions { password: Secret::default(), ..tcp() };
        for case in [
            case(tcp(), MYSQL_5_6, &[], vec![]),
            case(tcp(), MYSQL_8, &[&to_native], vec![native_later()]),
            case(tcp(), MYSQL_5_6, &[&to_sha2, CACHED], vec![sha2_later(), LoginAction::Read]),
            case(tcp(), MYSQL_8, &[CACHED], vec![LoginAction::Read]),
            case(socket(), MYSQL_8, &[FULL], vec![clear()]),
            case(tls(), MYSQL_8, &[FULL], vec![clear()]),
            case(tcp(), MYSQL_8, &[FULL], vec![LoginAction::Send(vec![2])]),
            case(tls(), MYSQL_8, &[&to_sha256], vec![clear()]),
            case(tcp(), MYSQL_8, &[&to_sha256], vec![LoginAction::Send(vec![1])]),
            case(socket(), MYSQL_8, &[&to_sha256], vec![LoginAction::Send(vec![1])]),
            case(empty(), MYSQL_8, &[&to_sha256], vec![LoginAction::Send(vec![0])]),
            case(empty(), MYSQL_8, &[&to_native], vec![LoginAction::Send(vec![])]),
            // One method after the other.
            case(tcp(), MYSQL_5_6, &[&to_ed25519], vec![signature()]),
            case(tcp(), MYSQL_5_6, &[&to_ed25519, &to_native], vec![signature(), native_later()]),
            case(
                tcp(),
                MYSQL_8,
                &[&to_sha2, FULL, &to_native],
                vec![sha2_later(), ask(2), native_later()],
            ),
            case(tcp(), MYSQL_5_6, &[&to_parsec, &to_native], vec![nothing(), native_later()]),
            // Impossible requests are declined.
            case(tcp(), MYSQL_5_6, &[b"\xfe", &to_native], vec![nothing(), native_later()]),
            case(
                tcp(),
                MYSQL_5_6,
                &[b"\xfeauth_gssapi_client\0x", &to_native],
                vec![nothing(), native_later()],
            ),
            case(tcp(), MYSQL_5_6, &[b"\xfemysql_clear_password\0"], vec![nothing()]),
            case(tls(), MYSQL_8, &[b"\xfemysql_clear_password\0"], vec![clear()]),
            case(socket(), MYSQL_8, &[b"\xfemysql_clear_password\0"], vec![clear()]),
            case(
                tcp(),
                MYSQL_5_6,
                &[b"\xfedialog\0\x05Password:", &to_native],
                vec![nothing(), native_later()],
            ),
            case(
                tls(),
                MYSQL_8,
                &[b"\xfedialog\0\x04Password:", b"\x03Token:"],
                vec![clear(), nothing()],
            ),
            case(socket(), MYSQL_5_6, &[b"\xfedialog\0"], vec![clear()]),
            case(
                tcp(),
                MYSQL_5_6,
                &[b"\xfedialog\0", b"\x01\x04Password: ", &to_native],
                vec![nothing(), nothing(), native_later()],
            ),
            case(socket(), MYSQL_5_6, &[b"\xfedialog\0\x03Token:"], vec![nothing()]),
        ] {
            let mut packets: Vec<&[u8]> = case.packets.iter().map(Vec::as_slice).collect();
            let mut expected = case.said;
            if !matches!(&expected[..], [.., LoginAction::Send(ask)] if matches!(ask[..], [1 | 2]))
            {
                packets.push(OK);
                expected.push(LoginAction::Done);
            }
            let said = replies(&case.target, &case.server, &packets).unwrap();
            assert_eq!(said, expected, "{} {packets:?}", case.server.version);
        }
        let empty = empty();
        let response = Login::from_greeting(&empty, &MYSQL_5_6.greeting()).unwrap().response();
        assert_eq!(response[HEAD..], b"root\0\0sbtest\0mysql_native_password\0"[..]);
    }

    fn openssl(line: &str, input: &[u8]) -> Vec<u8> {
        let mut child = Command::new("openssl")
            .args(line.split(' '))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the tests need openssl: apt-get install openssl");
        child.stdin.take().expect("piped").write_all(input).expect("taken");
        let output = child.wait_with_output().expect("an end");
        assert!(output.status.success(), "openssl {line}");
        output.stdout
    }

    #[test]
    fn the_password_comes_out_when_the_owner_of_the_key_decrypts() {
        let dir = tempfile::tempdir().unwrap();
        let private = dir.path().join("key.pem");
        std::fs::write(&private, openssl("genrsa 2048", b"")).unwrap();
        let private = private.to_str().unwrap();
        let public = openssl(&format!("rsa -in {private} -pubout"), b"");
        let key = [b"\x01", &public[..]].concat();
        let to_sha256 = switch("sha256_password\0");
        for (target, asks, nonce) in [
            (tcp(), &[FULL][..], FIRST),
            (tcp(), &[&switch(SHA2), FULL], LATER),
            (socket(), &[&to_sha256], LATER),
        ] {
            let server = if asks.len() == 2 { MYSQL_5_6 } else { MYSQL_8 };
            let said = replies(&target, &server, &[asks, &[&key, OK]].concat()).unwrap();
            let [.., LoginAction::Send(sealed), LoginAction::Done] = &said[..] else {
                panic!("{said:?}")
            };
            let decrypt =
                format!("pkeyutl -decrypt -inkey {private} -pkeyopt rsa_padding_mode:oaep");
            let mut text = openssl(&decrypt, sealed);
            text.iter_mut().zip(nonce.iter().cycle()).for_each(|(byte, n)| *byte ^= n);
            assert_eq!(text, b"marker-pw\0");
        }
        let long = ConnectOptions { password: Secret::new("x".repeat(214)), ..tcp() };
        let error = replies(&long, &MYSQL_8, &[FULL, &key]).unwrap_err();
        assert!(error.to_string().contains("RSA key"), "{error}");
    }

    /// Shown as `{:?}`: the error of a conversation that ends badly.
    fn refusal(target: &ConnectOptions, server: &Server, packets: &[&[u8]]) -> String {
        let shown = format!("{:?}", replies(target, server, packets).expect_err("refused"));
        assert!(!shown.contains(PASSWORD), "{shown}");
        shown
    }

    #[test]
    fn a_login_is_refused_by_name_when_it_cannot_go_on() {
        let (to_native, to_sha256) = (switch(NATIVE), switch("sha256_password\0"));
        let to_parsec = [&b"\xfeparsec\0"[..], &[5; signature::NONCE]].concat();
        let cases: [(&[&[u8]], &str); 15] = [
            (&[b"\xfemysql_native_password\0short"], "UnexpectedPacket"),
            (&[b"\xfeclient_ed25519\0abcdefghijklmnopqrst\0"], "UnexpectedPacket"),
            (&[b"\xfeparsec"], "UnexpectedPacket"),
            (&[&to_parsec, b"\x01P\x00short"], "UnexpectedPacket"),
            (&[&to_parsec, FULL], "UnexpectedPacket"),
            (&[b"\xfedialog\0\x05Password:", b"\x01"], "UnexpectedPacket"),
            (&[&to_native, FULL], "UnexpectedPacket"),
            (&[&to_sha256, FULL], "RSA key"),
            (&[&to_sha256, OK], "UnexpectedPacket"),
            (&[b"\x01\x05"], "UnexpectedPacket"),
            (&[b"\x01"], "UnexpectedPacket"),
            (&[b""], "UnexpectedPacket"),
            (&[CACHED, CACHED], "UnexpectedPacket"),
            (&[FULL, b"\x01-----BEGIN PUBLIC KEY-----\n"], "RSA key"),
            (&[to_native.as_slice(); PACKETS_MAX + 1], "UnexpectedPacket"),
        ];
        for (packets, error) in cases {
            let shown = refusal(&tcp(), &MYSQL_8, packets);
            assert!(shown.contains(error), "{packets:?}: {shown}");
        }
    }

    #[test]
    fn what_was_declined_is_told_when_nothing_else_was_asked_for_since() {
        struct Case {
            packets: &'static [&'static [u8]],
            declined: Option<&'static str>,
        }
        const LATER_NATIVE: &[u8] = b"\xfemysql_native_password\0ABCDEFGHIJKLMNOPQRST\0";
        for Case { packets, declined } in [
            Case { packets: &[], declined: None },
            Case { packets: &[LATER_NATIVE], declined: None },
            Case { packets: &[LATER_NATIVE, LATER_NATIVE], declined: None },
            Case { packets: &[b"\xfe"], declined: Some("MysqlOldPasswordDisabled") },
            Case {
                packets: &[b"\xfemysql_old_password\0abcdefgh\0"],
                declined: Some("MysqlOldPasswordDisabled"),
            },
            Case {
                packets: &[LATER_NATIVE, b"\xfeauth_gssapi_client\0x"],
                declined: Some("UnknownAuthPlugin { name: \"auth_gssapi_client\" }"),
            },
            Case { packets: &[b"\xfeauth_gssapi_client\0x", LATER_NATIVE], declined: None },
            Case { packets: &[b"\xfemysql_clear_password\0"], declined: Some(IN_THE_CLEAR) },
            Case { packets: &[b"\xfedialog\0\x04Password:"], declined: Some(IN_THE_CLEAR) },
            Case {
                packets: &[b"\xfedialog\0", b"\x01\x04Password: "],
                declined: Some(IN_THE_CLEAR),
            },
            Case { packets: &[b"\xfedialog\0\x02Token:"], declined: Some(ANOTHER_QUESTION) },
        ] {
            let target = tcp();
            let mut login = Login::from_greeting(&target, &MYSQL_5_6.greeting()).unwrap();
            for packet in packets {
                assert!(matches!(login.take(packet), Ok(LoginAction::Send(_))), "{packet:?}");
            }
            let natives = packets.iter().all(|packet| *packet == LATER_NATIVE);
            assert_eq!(login.beyond_driver, !natives || packets.len() > 1, "{packets:?}");
            let why = login.decline_reason().map(|why| format!("{why:?}"));
            let holds = why.as_deref().zip(declined).is_none_or(|(why, part)| why.contains(part));
            assert!(holds && why.is_some() == declined.is_some(), "{packets:?}: {why:?}");
        }
    }

    #[test]
    fn a_response_of_somebody_else_is_sent_with_our_tls() {
        for (target, server) in [(tcp(), MYSQL_5_6), (tls(), MYSQL_8), (socket(), MYSQL_8)] {
            let plain = response(&server, server.agreed | 0x80, "sbtest\0");
            let mut login = Login::from_greeting(&target, &server.greeting()).unwrap();
            login.respond_with(plain.clone()).unwrap();
            let tls = if target.ssl.mode == SslMode::Disabled { 0 } else { TLS };
            let wanted = response(&server, server.agreed | 0x80 | tls, "sbtest\0");
            assert_eq!((login.tls_request(), login.response()), (wanted[..HEAD].to_vec(), wanted));
            assert!(login.respond_with(plain[..HEAD - 1].to_vec()).is_err());
            assert!(login.respond_with(Vec::new()).is_err());
        }
    }

    #[test]
    fn a_greeting_is_refused_when_it_is_none_of_a_server_since_4_1() {
        let mut before_4_1 = MYSQL_5_6.greeting();
        before_4_1[26] &= !2;
        let target = tcp();
        let cases: [(&[u8], &str); 7] = [
            (b"\x0a4.0.30\0\x07\0\0\0abcdefgh\0\x2c\x20\x08\x02\0", "MySQL 4.0.30: servers before"),
            (b"\x093.20.32\0\x07\0\0\0abcdefgh\0", "MySQL 3.20.32: servers before"),
            (&before_4_1, "MySQL 5.6.24-log: servers before"),
            (b"HTTP/1.1 400 Bad Request\r\n", "UnexpectedPacket"),
            (b"\x09nonsense\0", "UnexpectedPacket"),
            (OK, "UnexpectedPacket"),
            (b"", "UnexpectedPacket"),
        ];
        for (greeting, why) in cases {
            let error =
                format!("{:?}", Login::from_greeting(&target, greeting).err().expect("refused"));
            assert!(error.contains(why), "{error}");
        }
        for length in 0..=255 {
            let mut greeting = MYSQL_8.greeting();
            greeting["8.0.33".len() + 22] = length;
            let _ = Login::from_greeting(&target, &greeting);
        }
        for server in &SERVERS {
            let greeting = server.greeting();
            let nonce_ends = greeting.len() - server.plugin.len();
            for end in 0..greeting.len() {
                let login = Login::from_greeting(&target, &greeting[..end]);
                assert_eq!(login.is_ok(), end >= nonce_ends, "{} {end}", server.version);
            }
        }
    }

    fn packet() -> impl Strategy<Value = Vec<u8>> {
        let known = [OK, CACHED, FULL, b"\x01-----BEGIN PUBLIC KEY-----\nMA==\n"];
        let long = |name: &[u8]| [name, &[5; signature::NONCE]].concat();
        let switches = [
            switch(NATIVE),
            switch(SHA2),
            long(b"\xfeclient_ed25519\0"),
            long(b"\xfeparsec\0"),
            b"\xfedialog\0\x04Password:".to_vec(),
            b"\x01P\0eighteen bytes of it".to_vec(),
        ];
        let known = known.map(<[u8]>::to_vec).into_iter().chain(switches);
        let cut = (prop::sample::select(known.collect::<Vec<_>>()), 0..80_usize);
        let bytes = prop::collection::vec(any::<u8>(), 0..80);
        prop_oneof![cut.prop_map(|(packet, end)| packet[..end.min(packet.len())].to_vec()), bytes]
    }

    proptest! {
        #[test]
        fn no_packets_panic(server in 0..SERVERS.len(), at in 0..140_usize, byte: u8, packets in prop::collection::vec(packet(), 12)) {
            for first in &packets {
                let _ = Login::from_greeting(&tcp(), first);
            }
            let mut greeting = SERVERS[server].greeting();
            if let Some(changed) = greeting.get_mut(at) {
                *changed = byte;
            }
            for target in [tcp(), socket(), tls()] {
                let Ok(mut login) = Login::from_greeting(&target, &greeting) else { continue };
                let _ = (login.tls_request(), login.response());
                let said: Vec<_> = packets.iter().map_while(|packet| match login.take(packet) {
                    Err(_) | Ok(LoginAction::Done) => None,
                    said => Some(said),
                }).collect();
                prop_assert!(said.len() <= PACKETS_MAX, "{said:?}");
            }
        }
    }
}
