//! What can be wrong with a workload beyond its form.

use super::options::{self, known};
use super::{Begin, Effect, Kind, List, Param, Statement, Transaction, Workload};

/// Statements of one op at most.
const PASSES_MAX: u64 = 100_000;
/// Parameters of a prepared statement: the protocol's limit.
const PARAMS_MAX: u64 = 65_535;
/// Bytes of a statement at most.
const BYTES_MAX: u64 = 1 << 30;

type Checked = Result<(), String>;

impl Workload {
    /// What its form alone does not say; the text names what is wrong.
    pub(crate) fn check(&self) -> Checked {
        if self.name.is_empty() || !self.name.bytes().all(|b| b.is_ascii_graphic()) {
            return Err("a name is of printable ASCII characters without spaces".to_owned());
        }
        options::check(&self.options)?;
        if self.transactions.is_empty() {
            return Err("a workload needs a [[transaction]]".to_owned());
        }
        if self.transactions.iter().map(|t| u64::from(t.weight)).sum::<u64>() == 0 {
            return Err("the weights of the transactions add up to 0".to_owned());
        }
        self.transactions.iter().try_for_each(|t| self.check_transaction(t))
    }

    fn check_transaction(&self, transaction: &Transaction) -> Checked {
        if transaction.statements.is_empty() {
            return Err("a transaction needs a [[transaction.statement]]".to_owned());
        }
        if let Begin::Unless { unless } = &transaction.begin {
            known(unless, &self.options)?;
        }
        let mut before = None;
        for statement in &transaction.statements {
            let at = |what| format!("statement '{}': {what}", statement.sql);
            self.check_statement(statement, before).map_err(at)?;
            before = Some(statement);
        }
        let running = self.running(transaction);
        let passes = running.iter().fold(0, |sum: u64, (_, repeat)| sum.saturating_add(*repeat));
        if passes == 0 && !self.begins(transaction) {
            return Err("with these options a transaction has no statement left".to_owned());
        }
        if passes > PASSES_MAX {
            return Err(format!("{passes} statements in one op are more than {PASSES_MAX}"));
        }
        Ok(())
    }

    fn check_statement(&self, statement: &Statement, before: Option<&Statement>) -> Checked {
        let options = &self.options;
        marks(&statement.sql, &statement.params)?;
        let lists = statement.sql.matches("{list}").count();
        match (&statement.list, lists) {
            (None, 0) => {}
            (Some(list), 1) => self.check_list(list)?,
            (None, _) => return Err("{list} stands for a list, and there is none".to_owned()),
            (Some(_), n) => return Err(format!("a list has one {{list}}, not {n}")),
        }
        for at in 0..statement.params.len() {
            Param::check(&statement.params, at, options)?;
        }
        statement.check_previous(before)?;
        if let Some(repeat) = &statement.repeat {
            repeat.check(options)?;
        }
        if let Some(name) = &statement.missing_if {
            known(name, options)?;
        }
        statement.expect.check(options)?;
        let keyed = statement.params.iter().any(|p| matches!(p, Param::Key(_)));
        if statement.expect.content.is_some() && !keyed {
            return Err("content needs a key parameter".to_owned());
        }
        if statement.kind == Kind::Select && statement.effect != Effect::None {
            return Err("a select changes nothing".to_owned());
        }
        let params = statement.list.as_ref().map_or(&statement.params, |list| &list.params);
        let Effect::InsertK(of) = statement.effect else { return Ok(()) };
        match of.checked_sub(1).and_then(|at| params.get(at)) {
            None => Err(format!("insert_k = {of} is no parameter (they are counted from 1)")),
            Some(param) if !param.is_counted() => {
                Err(format!("insert_k = {of}: parameter {of} holds no number"))
            }
            Some(_) => Ok(()),
        }
    }

    fn check_list(&self, list: &List) -> Checked {
        marks(&list.each, &list.params)?;
        for at in 0..list.params.len() {
            Param::check(&list.params, at, &self.options)?;
        }
        if list.params.iter().any(|p| matches!(p, Param::Previous(_))) {
            return Err("a list knows no statement before".to_owned());
        }
        match (&list.times, &list.bytes) {
            (Some(times), None) => {
                times.check(&self.options)?;
                let times = times.value(&self.options);
                let params = times.saturating_mul(list.params.len() as u64);
                match times {
                    0 => Err("a list of nothing is no SQL".to_owned()),
                    _ if params > PARAMS_MAX => {
                        Err(format!("{params} parameters are more than {PARAMS_MAX}"))
                    }
                    _ => Ok(()),
                }
            }
            (None, Some(bytes)) => {
                bytes.check(&self.options)?;
                match bytes.value(&self.options) {
                    bytes if bytes > BYTES_MAX => {
                        Err(format!("{bytes} bytes are more than {BYTES_MAX}"))
                    }
                    _ => Ok(()),
                }
            }
            _ => Err("a list has either times or bytes".to_owned()),
        }
    }
}

impl Statement {
    fn check_previous(&self, before: Option<&Statement>) -> Checked {
        if self.with_previous && before.is_none() {
            return Err("with_previous, but there is no statement before".to_owned());
        }
        if self.with_previous && self.repeat.is_some() {
            return Err("with_previous is repeated as the statement before".to_owned());
        }
        let referred = self.params.iter().filter_map(|param| match param {
            Param::Previous(of) => Some(*of),
            _ => None,
        });
        for of in referred {
            // Without it, the statement before may not run, or not in between.
            if !self.with_previous {
                return Err(format!("previous = {of} needs with_previous = true"));
            }
            let of_before = before.and_then(|b| b.params.get(of.wrapping_sub(1)));
            if of_before.is_none() || before.is_some_and(|b| b.list.is_some()) {
                return Err(format!("previous = {of} is no parameter of the statement before"));
            }
        }
        Ok(())
    }
}

fn marks(sql: &str, params: &[Param]) -> Checked {
    let marks = sql.matches('?').count();
    if marks == params.len() {
        return Ok(());
    }
    Err(format!(
        "{marks} `?` but {} params (a ? of the text itself: {{ const = \"?\" }})",
        params.len()
    ))
}
