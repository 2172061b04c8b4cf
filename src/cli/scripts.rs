//! The reader of scripts that profiles and groups beside name.

#[cfg(not(feature = "lua"))]
use crate::error::Error;
use crate::error::Result;
use crate::mysql::ServerLink;
use crate::plan::script::ScriptPart;
#[cfg(feature = "lua")]
use crate::plan::{OnError, StatementMode};
use crate::plan::{Plan, ReadScript};
#[cfg(feature = "lua")]
use crate::run::runtime;
use crate::run::scripts::ReadScripts;
#[cfg(feature = "lua")]
use crate::sysbench::{Asked, NativeScript, Output};

/// Reads scripts for the sessions of a database; a profile's servers say it later.
pub(super) struct ScriptReader<'a> {
    #[cfg_attr(not(feature = "lua"), expect(dead_code, reason = "nobody reads a script"))]
    pub database: Option<&'a str>,
}

#[cfg(not(feature = "lua"))]
pub(super) fn no_lua() -> Error {
    Error::usage("this loadgen was built without Lua")
        .hint("cargo build without --no-default-features has it")
}

#[cfg(not(feature = "lua"))]
impl ReadScripts for ScriptReader<'_> {
    fn read(&self, _: &ScriptPart, _: &Plan) -> Result<ReadScript> {
        Err(no_lua())
    }

    fn run_command(&self, _: &ScriptPart, _: (&str, u32), _: &ServerLink) -> Result<()> {
        Err(no_lua())
    }
}

#[cfg(feature = "lua")]
impl ReadScripts for ScriptReader<'_> {
    fn read(&self, script: &ScriptPart, plan: &Plan) -> Result<ReadScript> {
        let asked = Asked {
            threads: plan.clients_max(),
            database: self.database,
            text: plan.statements == StatementMode::Text,
            goes_on: plan.policy.on_error != OnError::Abort,
            by_keys: true,
        };
        NativeScript::of_profile(script, asked)?.read(!plan.rates.is_empty())
    }

    fn run_command(
        &self,
        script: &ScriptPart,
        (name, threads): (&str, u32),
        link: &ServerLink,
    ) -> Result<()> {
        let database = Some(link.target.database.as_str()).filter(|name| !name.is_empty());
        let asked = Asked { threads, database, text: false, goes_on: false, by_keys: true };
        let script = NativeScript::of_profile(script, asked)?;
        let target = link.target.clone();
        runtime()?.block_on(script.run_command(name, target, Output::Stderr, &link.stop))
    }
}
