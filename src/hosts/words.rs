//! The plans and servers of a rank's own command line: no one sends them. A hash shows that those of all
//! ranks are the same.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::engine;
use crate::error::{Error, Result, line};
use crate::mysql::ConnectOptions;
use crate::plan::{Plan, ScriptIdentity};

/// The plans of a command line, and its servers by their labels.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) plans: Vec<Plan>,
    /// One without a label stands for all.
    pub(crate) servers: Vec<(Option<String>, ConnectOptions)>,
}

impl Words {
    /// Returns the plan with this hash.
    pub(super) fn plan(&self, hash: &str) -> Result<&Plan> {
        let plan = self.plans.iter().find(|plan| hash_plan(plan) == hash);
        plan.ok_or_else(|| Error::failed("rank 0 measures a plan that this rank does not have"))
    }

    /// Returns the server with this label.
    pub(super) fn server(&self, label: Option<&str>) -> Result<&ConnectOptions> {
        let is = |own: &Option<String>| own.is_none() || own.as_deref() == label;
        let server = self.servers.iter().find(|(own, _)| is(own));
        server.map(|(_, server)| server).ok_or_else(|| {
            let label = label.map_or_else(|| "without a label".to_owned(), line);
            Error::failed(format!("rank 0 measures a server that this rank does not have: {label}"))
        })
    }
}

/// Returns the hash of plans and of this program.
pub(crate) fn hash<'a>(plans: impl Iterator<Item = &'a Plan>) -> String {
    hash_value(&(engine::program(), plans.map(hash_plan).collect::<Vec<String>>()))
}

/// Returns the hash of a plan, without what each run or host decides for itself.
pub(super) fn hash_plan(plan: &Plan) -> String {
    let same = Plan { engine_threads: None, host_threads: Vec::new(), ..plan.clone() };
    let scripts = same.scripts().map(|script| {
        let ScriptIdentity { files, options, texts } = &script.identity;
        (files, options, texts, script.random, script.text_statements)
    });
    let scripts: Vec<_> = scripts.collect();
    hash_value(&(&same, &same.clients, &same.rates, scripts))
}

fn hash_value(value: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(serde_json::to_vec(value).expect("plain data")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::plan::Script;
    use crate::plan::knobs::Knobs;
    use crate::workload::builtin;

    #[test]
    fn hash_differs_with_the_work_and_not_with_the_seed_or_the_threads() {
        let plan = |seed| {
            let workload = builtin().into_iter().next().expect("there are some");
            Knobs::default().resolve(workload, seed).expect("a plan")
        };
        let own = plan(1);
        let same = Plan { engine_threads: Some(4), repeats: 9, ..plan(2) };
        assert_eq!(hash_plan(&own), hash_plan(&same));
        let scripted = |hash: &str| {
            let files = vec![("a.lua".to_owned(), hash.to_owned())];
            let identity = ScriptIdentity { files, ..ScriptIdentity::default() };
            let script = Script { identity, ..Script::of_text("") };
            Plan { script: Some(Arc::new(script)), ..own.clone() }
        };
        for other in [
            Plan { clients: vec![3], ..own.clone() },
            Plan { tables: Some(77), ..own.clone() },
            Plan { rates: vec![0.5], ..own.clone() },
            scripted("a"),
        ] {
            assert_ne!(hash_plan(&own), hash_plan(&other));
        }
        assert_ne!(hash_plan(&scripted("a")), hash_plan(&scripted("b")));
        assert_ne!(hash([&own].into_iter()), hash([&own, &own].into_iter()));
        let words = Words { plans: vec![own.clone()], servers: Vec::new() };
        assert_eq!(words.plan(&hash_plan(&same)).expect("it is there"), &own);
        assert!(words.plan("x").is_err() && words.server(None).is_err());
    }
}
