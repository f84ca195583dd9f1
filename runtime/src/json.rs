//! Serde's data as JSON, for what is written all the time: records of the transcript.
//!
//! In place of `serde_json`, which looks at every byte of every key for something to escape: half
//! of a record is keys. They are names of fields, and where a field is written its name is known
//! when the program is built; so a key is one copy. What is written is byte for byte the same.
//! Not for it, and in no record: keys that are neither texts nor numbers, and `RawValue`.

mod halves;
mod measured;
mod string;

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Error;

pub(crate) use halves::without_lone_halves;
pub(crate) use measured::MeasuredText;
pub use string::quote;
pub(crate) use string::{JsonPiece, escaped_len, join, push_quoted};

/// Writes a value as JSON.
///
/// # Errors
///
/// Those of the value.
pub(crate) fn to_string(value: &impl Serialize) -> Result<String, Error> {
    let mut out = Vec::with_capacity(1024);
    push(value, &mut out)?;
    String::from_utf8(out).map_err(serde::ser::Error::custom)
}

/// Appends a value as JSON.
///
/// # Errors
///
/// Those of the value; `out` then ends somewhere in it.
pub(crate) fn push(value: &impl Serialize, out: &mut Vec<u8>) -> Result<(), Error> {
    value.serialize(Json::of(out))
}

/// Appends the fields of a variant whose tag is among them, `,"field":value` each; the tag, which
/// is the first, has been written.
///
/// # Errors
///
/// Those of the value; `out` then ends somewhere in it.
pub(crate) fn push_without_tag(value: &impl Serialize, out: &mut Vec<u8>) -> Result<(), Error> {
    value.serialize(Json { out, skips_tag: true })
}

/// Bytes of a key that is put together before it is copied.
const SHORT_KEY: usize = 36;

/// Appends `,"key":`. The key needs no escape.
#[inline(always)]
pub(crate) fn key(name: &'static str, out: &mut Vec<u8>) {
    if SHORT_KEY < name.len() {
        return out.extend_from_slice(format!(",\"{name}\":").as_bytes());
    }
    let end = 2 + name.len();
    let mut key = [b'"'; SHORT_KEY + 4];
    key[0] = b',';
    key[2..end].copy_from_slice(name.as_bytes());
    key[end + 1] = b':';
    out.extend_from_slice(&key[..end + 2]);
}

/// Appends a number in decimal notation.
#[inline]
pub(crate) fn number(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

struct Json<'a> {
    out: &'a mut Vec<u8>,
    /// Of a struct only the fields after the first are written.
    skips_tag: bool,
}

/// An object or a list that is being written. Each of its members begins with a comma; that of the
/// first becomes the bracket.
struct MemberWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    /// The opening bracket and those that close; `None`: the object has been opened by others.
    brackets: Option<(u8, &'static [u8])>,
    skips_next: bool,
}

impl<'a> Json<'a> {
    #[inline]
    fn of(out: &'a mut Vec<u8>) -> Self {
        Self { out, skips_tag: false }
    }

    #[inline]
    fn members(self, open: u8, close: &'static [u8]) -> MemberWriter<'a> {
        let (start, brackets) = (self.out.len(), Some((open, close)));
        MemberWriter { out: self.out, start, brackets, skips_next: false }
    }

    /// The beginning of `{"variant":…`.
    #[inline]
    fn variant(self, name: &'static str) -> Self {
        let start = self.out.len();
        key(name, self.out);
        self.out[start] = b'{';
        self
    }
}

impl MemberWriter<'_> {
    #[inline(always)]
    fn field(
        &mut self,
        name: &'static str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), Error> {
        if std::mem::take(&mut self.skips_next) {
            return Ok(());
        }
        key(name, self.out);
        value.serialize(Json::of(self.out))
    }

    #[inline]
    fn element(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.out.push(b',');
        value.serialize(Json::of(self.out))
    }

    #[inline]
    fn finish(self) -> Result<(), Error> {
        let Some((open, close)) = self.brackets else { return Ok(()) };
        match self.out.get_mut(self.start) {
            Some(comma) => *comma = open,
            None => self.out.push(open),
        }
        self.out.extend_from_slice(close);
        Ok(())
    }
}

macro_rules! numbers {
    ($($method:ident: $number:ty),*) => {
        $(
            #[inline]
            fn $method(self, value: $number) -> Result<(), Error> {
                number(value, self.out);
                Ok(())
            }
        )*
    };
}

/// What is rare in records is left to `serde_json`.
macro_rules! others {
    ($($method:ident: $other:ty),*) => {
        $(
            fn $method(self, value: $other) -> Result<(), Error> {
                serde_json::to_writer(self.out, &value)
            }
        )*
    };
}

impl<'a> Serializer for Json<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = MemberWriter<'a>;
    type SerializeTuple = MemberWriter<'a>;
    type SerializeTupleStruct = MemberWriter<'a>;
    type SerializeTupleVariant = MemberWriter<'a>;
    type SerializeMap = MemberWriter<'a>;
    type SerializeStruct = MemberWriter<'a>;
    type SerializeStructVariant = MemberWriter<'a>;

    numbers! {
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_i128: i128, serialize_u128: u128
    }

    others! { serialize_f32: f32, serialize_f64: f64, serialize_char: char, serialize_bytes: &[u8] }

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    #[inline]
    fn serialize_str(self, text: &str) -> Result<(), Error> {
        push_quoted(text, self.out);
        Ok(())
    }

    #[inline]
    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    #[inline]
    fn serialize_unit(self) -> Result<(), Error> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    #[inline]
    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    #[inline]
    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        // Like a key, it needs no escape.
        self.out.push(b'"');
        self.out.extend_from_slice(variant.as_bytes());
        self.out.push(b'"');
        Ok(())
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let Json { out, .. } = self.variant(variant);
        value.serialize(Json::of(out))?;
        out.push(b'}');
        Ok(())
    }

    #[inline]
    fn serialize_seq(self, _len: Option<usize>) -> Result<MemberWriter<'a>, Error> {
        Ok(self.members(b'[', b"]"))
    }

    #[inline]
    fn serialize_tuple(self, _len: usize) -> Result<MemberWriter<'a>, Error> {
        Ok(self.members(b'[', b"]"))
    }

    #[inline]
    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        _len: usize,
    ) -> Result<MemberWriter<'a>, Error> {
        Ok(self.members(b'[', b"]"))
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<MemberWriter<'a>, Error> {
        Ok(self.variant(variant).members(b'[', b"]}"))
    }

    #[inline]
    fn serialize_map(self, _len: Option<usize>) -> Result<MemberWriter<'a>, Error> {
        Ok(self.members(b'{', b"}"))
    }

    #[inline]
    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<MemberWriter<'a>, Error> {
        Ok(if self.skips_tag {
            MemberWriter { start: 0, out: self.out, brackets: None, skips_next: true }
        } else {
            self.members(b'{', b"}")
        })
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<MemberWriter<'a>, Error> {
        Ok(self.variant(variant).members(b'{', b"}}"))
    }
}

macro_rules! lists {
    ($($list:ident: $method:ident),*) => {
        $(
            impl $list for MemberWriter<'_> {
                type Ok = ();
                type Error = Error;

                #[inline]
                fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                    self.element(value)
                }

                #[inline]
                fn end(self) -> Result<(), Error> {
                    self.finish()
                }
            }
        )*
    };
}

lists! {
    SerializeSeq: serialize_element, SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field, SerializeTupleVariant: serialize_field
}

macro_rules! objects {
    ($($object:ident),*) => {
        $(
            impl $object for MemberWriter<'_> {
                type Ok = ();
                type Error = Error;

                #[inline(always)]
                fn serialize_field<T: Serialize + ?Sized>(
                    &mut self,
                    name: &'static str,
                    value: &T,
                ) -> Result<(), Error> {
                    self.field(name, value)
                }

                #[inline]
                fn end(self) -> Result<(), Error> {
                    self.finish()
                }
            }
        )*
    };
}

objects! { SerializeStruct, SerializeStructVariant }

impl SerializeMap for MemberWriter<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), Error> {
        self.out.push(b',');
        let start = self.out.len();
        name.serialize(Json::of(self.out))?;
        // Numbers are keys only as strings.
        if self.out.get(start) != Some(&b'"') {
            self.out.insert(start, b'"');
            self.out.push(b'"');
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.out.push(b':');
        value.serialize(Json::of(self.out))
    }

    #[inline]
    fn end(self) -> Result<(), Error> {
        self.finish()
    }
}

#[cfg(test)]
mod tests;
