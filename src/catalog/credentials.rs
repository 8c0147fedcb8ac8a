//! How a client shows a server who it is: a bearer token or headers, from the statement or from a secret.

use std::path::PathBuf;

use vgi_transport::{Location, Options};

use crate::bridge::ffi;
use crate::convert::exception_text;
use crate::error::{Error, ExceptionClass};

/// A token and headers. Not shown in messages, logs or listings.
#[derive(Default)]
pub struct Credentials {
    bearer_token: Option<String>,
    headers: Vec<(String, String)>,
    ca_cert_file: Option<PathBuf>,
}

impl Credentials {
    /// A token from the statement.
    pub fn token(token: String) -> Self {
        Self { bearer_token: Some(token).filter(|token| !token.is_empty()), ..Self::default() }
    }

    /// Those of the secret with this name.
    pub fn of_secret(context: &ffi::ClientContext, name: &str) -> Result<Self, Error> {
        let secret = ffi::find_secret(context, name, "").map_err(|error| refused(&error))?;
        if !secret.found {
            let text =
                format!("there is no secret '{name}' of type vgi; CREATE SECRET {name} (TYPE vgi, TOKEN …) makes it");
            return Err(Error::new(ExceptionClass::Binder, text));
        }
        Self::read(secret)
    }

    /// Puts them into the options of a server's requests.
    pub fn apply(self, options: Options) -> Options {
        Options {
            bearer_token: self.bearer_token,
            headers: self.headers,
            ca_cert_file: self.ca_cert_file.or(options.ca_cert_file),
            ..options
        }
    }

    fn read(secret: ffi::SecretValues) -> Result<Self, Error> {
        let authorizes = |name: &String| name.eq_ignore_ascii_case("authorization");
        if !secret.token.is_empty() && secret.header_names.iter().any(authorizes) {
            let text = "the secret has a TOKEN and an Authorization header, which are two ways to authenticate; give one of them";
            return Err(Error::new(ExceptionClass::Binder, text));
        }
        let headers = secret.header_names.into_iter().zip(secret.header_values).collect();
        let ca_cert_file = Some(secret.ca_cert_file).filter(|path| !path.is_empty()).map(PathBuf::from);
        Ok(Self { headers, ca_cert_file, ..Self::token(secret.token) })
    }
}

/// Those of the secret whose scope fits the location best; none when there is no such secret.
pub fn of_location(context: &ffi::ClientContext, location: &Location) -> Result<Credentials, Error> {
    let secret = ffi::find_secret(context, "", location.as_str()).map_err(|error| refused(&error))?;
    if secret.found { Credentials::read(secret) } else { Ok(Credentials::default()) }
}

fn refused(error: &cxx::Exception) -> Error {
    Error::new(ExceptionClass::InvalidInput, exception_text(error))
}
