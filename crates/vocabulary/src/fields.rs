//! Reading messages. Text becomes a map of fields once, and each message takes its own out of that.
//!
//! `serde` would read a tagged enum for every kind of input again, through a copy of its own: that was half of the code of the
//! control protocol.

use std::fmt;

use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::map::Entry;
use serde_json::{Error, Map, Value};

/// The fields of a JSON object that no one has taken yet. No object in it had two of one name.
#[derive(Debug)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Reads an object.
    ///
    /// # Errors
    /// When the text is no JSON object, or one with two fields of one name.
    pub fn parse(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text)
    }

    /// Those of an object that was read already.
    ///
    /// # Errors
    /// When it is no object.
    pub fn of(value: Value) -> Result<Self, Error> {
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            other => Err(Error::custom(format_args!("invalid type: {}, expected an object", kind(&other)))),
        }
    }

    /// A field, which stays.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The fields of the object in a field; `None` where there is none of this name.
    ///
    /// # Errors
    /// When the field is no object.
    pub fn object(&mut self, name: &str) -> Result<Option<Self>, Error> {
        let value = self.0.remove(name);
        value.map(|value| Self::of(value).map_err(|error| within(name, &error))).transpose()
    }

    /// A field of this name; `None` where there is none.
    ///
    /// # Errors
    /// When the field is something else.
    pub fn find<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<Option<T>, Error> {
        let value = self.0.remove(name);
        value.map(|value| T::deserialize(value).map_err(|error| within(name, &error))).transpose()
    }

    /// The field of this name. One that may be null may be missing too.
    ///
    /// # Errors
    /// When there is none, or it is something else.
    // One instance for each type of field, not one for each field.
    #[inline(never)]
    pub fn take<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<T, Error> {
        let missing = |_| Error::missing_field(name);
        self.find(name)?.map_or_else(|| T::deserialize(Value::Null).map_err(missing), Ok)
    }

    /// The same where the field may be missing.
    ///
    /// # Errors
    /// When it is something else.
    pub fn take_or_default<T: DeserializeOwned + Default>(&mut self, name: &'static str) -> Result<T, Error> {
        Ok(self.find(name)?.unwrap_or_default())
    }

    /// All that is left, as one message.
    ///
    /// # Errors
    /// When they are something else.
    pub fn rest<T: DeserializeOwned>(self) -> Result<T, Error> {
        T::deserialize(Value::Object(self.0))
    }
}

#[cold]
fn within(name: &str, error: &Error) -> Error {
    Error::custom(format_args!("field `{name}`: {error}"))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::of(Distinct::deserialize(from)?.0).map_err(D::Error::custom)
    }
}

/// JSON in which no object has two fields of one name: readers would differ in which of them counts.
struct Distinct(Value);

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Anything).map(Self)
    }
}

struct Anything;

macro_rules! scalars {
    ($($visit:ident: $kind:ty),*) => {$(
        fn $visit<E>(self, value: $kind) -> Result<Value, E> {
            Ok(value.into())
        }
    )*};
}

impl<'de> Visitor<'de> for Anything {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    scalars! { visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str, visit_string: String }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Distinct(item)) = from.next_element()? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            match fields.entry(name) {
                Entry::Vacant(place) => place.insert(from.next_value::<Distinct>()?.0),
                Entry::Occupied(place) => {
                    return Err(A::Error::custom(format_args!("duplicate field `{}`", place.key())));
                }
            };
        }
        Ok(fields.into())
    }
}
