//! Which server was measured: what makes it another one during a step, and what makes a step no
//! result.

use crate::error::{Error, VALUE_MAX, clip, told_apart};
use crate::summary::SettingChange;
use crate::terms::{Finding, finding, is_identity};

/// Characters of the changes that an error or a warning names: a note shows as many.
const NAMED_MAX: usize = 240;

/// Variables whose change shows another server, such as the replica that took over.
const ANOTHER: &str =
    "version version_comment server_uuid server_uid hostname port datadir pid_file socket";

pub(crate) fn is_another(changed: &[SettingChange]) -> bool {
    changed.iter().any(shows_another)
}

fn shows_another(change: &SettingChange) -> bool {
    ANOTHER.split(' ').any(|name| name == change.name)
}

/// Says why a step during which this changed is no result.
pub(crate) fn no_result(changed: &[SettingChange]) -> Option<Error> {
    let conditions = changed.iter().filter(|change| !is_identity(&change.name));
    // The version first.
    let (first, rest): (Vec<_>, Vec<_>) = conditions.partition(|change| shows_another(change));
    let conditions = [first, rest].concat();
    let hint = if is_another(changed) {
        "another server answers at this address: give each a label of its own"
    } else {
        "leave the server's variables alone while it is measured, and measure again"
    };
    let error = || Error::failed(format!("the server changed: {}", named(&conditions))).hint(hint);
    (!conditions.is_empty()).then(error)
}

/// Finds what changed by the look after a step; None where the server did not tell.
pub(crate) fn changed_after(changed: Option<&[SettingChange]>) -> Vec<Finding> {
    match changed {
        Some(changed) => changed_when(changed, "during the step"),
        None => vec![finding!(ServerUnknown)],
    }
}

pub(crate) fn changed_when(changed: &[SettingChange], when: &str) -> Vec<Finding> {
    let (another, settings): (Vec<_>, Vec<_>) = changed.iter().partition(|c| shows_another(c));
    let another = (!another.is_empty()).then(|| finding!(ServerReplaced, when, named(&another)));
    let settings =
        (!settings.is_empty()).then(|| finding!(SettingsChanged, when, named(&settings)));
    another.into_iter().chain(settings).collect()
}

/// `name: before / after`, and how many more.
fn named(changed: &[&SettingChange]) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
    let mut named = String::new();
    for (at, change) in changed.iter().enumerate() {
        let (before, after) = told_apart(&value(&change.before), &value(&change.after));
        let comma = if at > 0 { ", " } else { "" };
        let text = format!("{comma}{}: {before} / {after}", clip(&change.name, VALUE_MAX));
        if at > 0 && named.chars().count() + text.chars().count() > NAMED_MAX {
            return format!("{named}, and {} more", changed.len() - at);
        }
        named.push_str(&text);
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_apart_or_counted() {
        let long = |end: &str| Some("x".repeat(900) + end);
        let change = |n: u32| SettingChange {
            name: format!("name{n}"),
            before: long("a"),
            after: long("b"),
        };
        let changed: Vec<SettingChange> = (0..30).map(change).collect();
        let message = changed_when(&changed, "during the step")[0].to_string();
        assert!(message.contains("xa / …") && message.contains("xb"), "{message}");
        let shown = message.matches("name").count();
        assert!(message.ends_with(&format!("and {} more", 30 - shown)), "{message}");
        assert!(message.chars().count() <= 300, "a note cuts it otherwise: {message}");
    }
}
