//! The drop-in for sysbench: its command lines, its outputs, and what it wrote years ago.
//!
//! A command line is read by sysbench's rules into [`Settings`]; what runs is loadgen's own engine, and
//! what is printed is sysbench's text. docs/user/from-sysbench.md lists what differs.

#![expect(dead_code, unused_imports, reason = "the parts are still to come")]

mod failure;
mod output;
mod settings;
mod tables;

pub(crate) use settings::{Command, Ended, Ignored, OutputVersion, Refusal, Settings, Test};

/// What tests of several files start from.
#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::output::Log;
    use super::settings::{Command, Ignored, OutputVersion, Settings, Test};
    use crate::mysql::options::{Secret, Ssl};
    use crate::stop::locked;
    use crate::workload::Distribution;

    /// `sysbench oltp_read_write run`.
    pub(super) fn settings() -> Settings {
        Settings {
            test: Test::ReadWrite,
            command: Command::Run,
            threads: 2,
            events: 0,
            time: Duration::from_secs(10),
            warmup: Duration::ZERO,
            rate: 0,
            forced_shutdown: None,
            report_interval: 0,
            checkpoints: Vec::new(),
            percentile: 95,
            histogram: false,
            verbosity: 3,
            debug: false,
            validate: false,
            distribution: Distribution::Uniform,
            seed: 0,
            host: "localhost".to_owned(),
            port: 3306,
            socket: None,
            user: "sbtest".to_owned(),
            password: Secret::default(),
            database: "sbtest".to_owned(),
            ssl: Ssl::default(),
            ignored: Ignored::Codes(vec![1213, 1020, 1205]),
            prepared: true,
            dry_run: false,
            reconnect: 0,
            connect_timeout: Duration::from_secs(10),
            tables: 1,
            table_size: 10_000,
            auto_inc: true,
            secondary: false,
            create_secondary: true,
            range_selects: true,
            skip_trx: false,
            storage_engine: "innodb".to_owned(),
            create_table_options: String::new(),
            counts: std::collections::BTreeMap::new(),
            output: OutputVersion::V1_0,
            out: None,
            explain: false,
            notes: Vec::new(),
        }
    }

    /// Keeps what is written.
    #[derive(Clone, Default)]
    pub(super) struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Kept {
        pub(super) fn text(&self) -> String {
            String::from_utf8(locked(&self.0).clone()).expect("ASCII")
        }

        pub(super) fn log(&self, verbosity: u8) -> Log {
            Log::new(Box::new(self.clone()), verbosity)
        }
    }

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            locked(&self.0).write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
}
