//! Findings as files have them, and back.

use serde_json::Value as Json;

use super::{TEXT_MAX, Verdict, VerdictKind, Warning};
use crate::error::{VALUE_MAX, clip};
use crate::terms::{Code, Finding, Unit, Value};

impl From<Finding> for Warning {
    fn from(found: Finding) -> Warning {
        let values = match &found {
            Finding::Known(code, values) => code.fields().iter().zip(values),
            Finding::Worded(..) => [].iter().zip(&[]),
        };
        let values = values.filter_map(|((name, unit), value)| match value {
            Value::One(Json::Null) if *unit == Unit::Group => None,
            Value::One(value) => Some(((*name).to_owned(), value.clone())),
            _ => None,
        });
        let (code, values) = (found.name().to_owned(), Some(values.collect()));
        Warning { code, message: found.to_string(), values }
    }
}

impl From<&Warning> for Finding {
    /// Takes the values if this version knows them, else the message. Both may be forged.
    fn from(warning: &Warning) -> Finding {
        let clipped = |value: &Json| match value {
            Json::String(text) => clip(text, TEXT_MAX).into(),
            other => other.clone(),
        };
        let known = || {
            let (code, all) = (Code::named(&warning.code)?, warning.values.as_ref()?);
            let value = |(name, unit): &(&str, Unit)| match all.get(*name) {
                None if *unit == Unit::Group => Some(Value::One(Json::Null)),
                value => unit.take(&clipped(value?)),
            };
            let values = code.fields().iter().map(value).collect::<Option<Vec<Value>>>()?;
            Some(Finding::Known(code, values))
        };
        let message = || [clip(&warning.message, TEXT_MAX)].into();
        known().unwrap_or_else(|| Finding::Worded(clip(&warning.code, VALUE_MAX), message()))
    }
}

impl Warning {
    pub(crate) fn is(&self, code: Code) -> bool {
        self.code == code.name()
    }
}

impl Verdict {
    /// Returns its effect on a number; None if the number is the server's.
    pub(crate) fn finding(&self) -> Option<Finding> {
        let code = match self.kind {
            VerdictKind::Ok => return None,
            VerdictKind::Noisy => Code::Noisy,
            VerdictKind::ClientBound => Code::ClientBound,
            VerdictKind::SharedHost => Code::SharedHost,
        };
        let reasons = self.reasons.iter().map(Finding::from).collect();
        Some(Finding::Known(code, vec![Value::Reasons(reasons)]))
    }
}
