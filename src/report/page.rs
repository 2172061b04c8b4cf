//! Pages: columns and rows of values, which every layout makes and every writer takes.

use super::number::number;

/// One or more tables under a title. People see the columns with a head, files those with a name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page {
    /// One line or several.
    pub title: Vec<String>,
    /// The title follows the table in text.
    pub title_below: bool,
    pub sheets: Vec<Sheet>,
    pub notes: Vec<String>,
    /// Conditions and remarks, a line each.
    pub below: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Sheet {
    pub heads: Vec<Head>,
    /// A value a column.
    pub rows: Vec<Vec<Value>>,
    /// Shows its only column as a list.
    pub list: bool,
    /// A column of the text is at least so wide, blanks included.
    pub pitch: usize,
    /// Stands between the sheet before and this one, whose columns are the same.
    pub rule: Option<String>,
    /// Small bars for a terminal, one a row.
    pub drawn: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    pub shown: Option<String>,
    pub name: Option<&'static str>,
    /// Texts stand to the left, numbers to the right.
    pub left: bool,
}

/// A column, and how a row of it gets its value.
pub(crate) struct Column<'a, T> {
    head: Head,
    get: Box<dyn Fn(&T) -> Value + 'a>,
}

/// A value of one cell. Files have it in full.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Not measured, or not to be known.
    Unknown,
    Text(String),
    /// A text for files, and how people see it.
    Label(String, String),
    /// With so many decimals for people.
    Number(f64, usize),
    Count(u64),
    Bool(bool),
    Pairs(Vec<(String, String)>),
}

/// Makes a column for people.
pub(crate) fn shown<'a, T, V: Into<Value>>(
    head: impl Into<String>,
    get: impl Fn(&T) -> V + 'a,
) -> Column<'a, T> {
    let head = Head { shown: Some(head.into()), ..Head::default() };
    Column { head, get: Box::new(move |row| get(row).into()) }
}

/// Makes a column for files.
pub(crate) fn filed<'a, T, V: Into<Value>>(
    name: &'static str,
    get: impl Fn(&T) -> V + 'a,
) -> Column<'a, T> {
    let head = Head { name: Some(name), ..Head::default() };
    Column { head, get: Box::new(move |row| get(row).into()) }
}

pub(crate) fn both<'a, T, V: Into<Value>>(
    head: impl Into<String>,
    name: &'static str,
    get: impl Fn(&T) -> V + 'a,
) -> Column<'a, T> {
    let mut column = shown(head, get);
    column.head.name = Some(name);
    column
}

impl<T> Column<'_, T> {
    pub(crate) fn left(mut self) -> Self {
        self.head.left = true;
        self
    }
}

impl Sheet {
    pub(crate) fn of<T>(columns: Vec<Column<T>>, rows: impl IntoIterator<Item = T>) -> Sheet {
        let row = |row: T| columns.iter().map(|column| (column.get)(&row)).collect();
        let rows = rows.into_iter().map(row).collect();
        let heads = columns.into_iter().map(|column| column.head).collect();
        Sheet { heads, rows, ..Sheet::default() }
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.heads.iter().any(|head| head.shown.is_some())
    }

    pub(crate) fn shown(&self) -> impl Iterator<Item = &Head> {
        self.heads.iter().filter(|head| head.shown.is_some())
    }

    /// Returns the texts that people see, row by row.
    pub(crate) fn texts(&self) -> impl Iterator<Item = Vec<String>> {
        self.rows.iter().map(|row| {
            let cells = self.heads.iter().zip(row).filter(|(head, _)| head.shown.is_some());
            cells.map(|(_, value)| value.text()).collect()
        })
    }

    /// Returns the names and values of files, row by row.
    pub(crate) fn records(&self) -> impl Iterator<Item = Vec<(&'static str, &Value)>> {
        self.rows.iter().map(|row| {
            let cells = self.heads.iter().zip(row);
            cells.filter_map(|(head, value)| Some((head.name?, value))).collect()
        })
    }
}

impl Page {
    pub(crate) fn of(title: String, sheet: Sheet, below: Vec<String>) -> Page {
        Page { title: vec![title], sheets: vec![sheet], below, ..Page::default() }
    }
}

impl Value {
    pub(crate) fn text(&self) -> String {
        match self {
            Value::Unknown => "-".to_owned(),
            Value::Text(text) | Value::Label(_, text) => text.clone(),
            Value::Number(value, decimals) => number(*value, *decimals),
            Value::Count(count) => count.to_string(),
            Value::Bool(is) => is.to_string(),
            Value::Pairs(pairs) => {
                let pairs: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
                pairs.join("; ")
            }
        }
    }
}

macro_rules! values {
    ($($of:ty: $value:expr;)*) => {
        $(impl From<$of> for Value {
            fn from(value: $of) -> Value {
                $value(value)
            }
        })*
    };
}

values! {
    &str: |text: &str| Value::Text(text.to_owned());
    String: Value::Text;
    // For files: people need decimals.
    f64: |value| Value::Number(value, 0);
    (f64, usize): |(value, decimals)| Value::Number(value, decimals);
    u64: Value::Count;
    u32: |count| Value::Count(u64::from(count));
    usize: |count| Value::Count(count as u64);
}

impl<V: Into<Value>> From<Option<V>> for Value {
    fn from(value: Option<V>) -> Value {
        value.map_or(Value::Unknown, Into::into)
    }
}
