//! Cookies of one attachment: a load balancer that sets one wants to see it with every later request. They belong to one origin, which is
//! all that an attachment speaks to, so neither domains nor paths have to be compared.

use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, header};

/// A server that sets more is not remembering its client but filling its memory.
const MOST: usize = 64;
const LONGEST: usize = 4096;

/// Names and values, in the order in which they were first set.
#[derive(Default)]
pub(crate) struct Cookies {
    held: Vec<Cookie>,
}

struct Cookie {
    name: String,
    value: String,
    /// Only over TLS.
    secure: bool,
}

impl std::fmt::Debug for Cookies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // values are credentials as often as not
        f.debug_list().entries(self.held.iter().map(|cookie| &cookie.name)).finish()
    }
}

impl Cookies {
    /// Takes what a reply sets.
    pub(crate) fn update(&mut self, headers: &HeaderMap, now: SystemTime) {
        for value in headers.get_all(header::SET_COOKIE) {
            if let Some((cookie, alive)) = value.to_str().ok().and_then(|text| parse(text, now)) {
                self.set(cookie, alive);
            }
        }
    }

    fn set(&mut self, cookie: Cookie, alive: bool) {
        let place = self.held.iter().position(|held| held.name == cookie.name);
        match (place, alive) {
            (Some(place), false) => drop(self.held.remove(place)),
            (Some(place), true) => {
                if let Some(held) = self.held.get_mut(place) {
                    *held = cookie;
                }
            }
            (None, true) if self.held.len() < MOST => self.held.push(cookie),
            (None, _) => {}
        }
    }

    /// The header to send; `None` without cookies.
    pub(crate) fn header(&self, https: bool) -> Option<HeaderValue> {
        let fit = self.held.iter().filter(|cookie| https || !cookie.secure);
        let pairs: Vec<_> = fit.map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
        let mut value = HeaderValue::try_from(pairs.join("; ")).ok().filter(|value| !value.is_empty())?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// A cookie, and whether it is set or removed.
fn parse(text: &str, now: SystemTime) -> Option<(Cookie, bool)> {
    if text.len() > LONGEST {
        return None;
    }
    let mut parts = text.split(';').map(str::trim);
    let (name, value) = parts.next()?.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() {
        return None;
    }
    let (mut secure, mut max_age, mut expires) = (false, None, None);
    for part in parts {
        let (attribute, value) = part.split_once('=').unwrap_or((part, ""));
        match attribute.trim().to_ascii_lowercase().as_str() {
            "secure" => secure = true,
            "max-age" => max_age = value.trim().parse::<i64>().ok(),
            "expires" => expires = httpdate::parse_http_date(value.trim()).ok(),
            _ => {}
        }
    }
    let alive = match max_age {
        Some(seconds) => seconds > 0,
        None => expires.is_none_or(|end| end > now),
    };
    Some((Cookie { name: name.to_owned(), value: value.to_owned(), secure }, alive))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(set: &[&str]) -> Cookies {
        let mut cookies = Cookies::default();
        for text in set {
            let headers = [(header::SET_COOKIE, text.parse().unwrap())].into_iter().collect();
            cookies.update(&headers, SystemTime::now());
        }
        cookies
    }

    fn sent(set: &[&str], https: bool) -> Option<String> {
        after(set).header(https).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn cookies_are_replaced_and_removed() {
        assert_eq!(sent(&[], true), None);
        assert_eq!(sent(&["a=1; Path=/; HttpOnly", "b=x=y", "a=2"], false).as_deref(), Some("a=2; b=x=y"));
        assert_eq!(sent(&["a=1", "a=; Max-Age=0"], true), None);
        assert_eq!(sent(&["a=1", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], true), None);
        assert_eq!(sent(&["a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], true).as_deref(), Some("a=1"));
        assert_eq!(sent(&["=1", "nothing", ""], true), None);
    }

    #[test]
    fn secure_cookies_stay_away_from_plain_connections() {
        assert_eq!(sent(&["a=1; Secure", "b=2"], false).as_deref(), Some("b=2"));
        assert_eq!(sent(&["a=1; Secure", "b=2"], true).as_deref(), Some("a=1; b=2"));
    }

    #[test]
    fn a_server_cannot_fill_the_memory_and_values_do_not_show() {
        let many: Vec<_> = (0..1000).map(|number| format!("c{number}=s3cret")).collect();
        let cookies = after(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(cookies.held.len(), MOST);
        assert!(!format!("{cookies:?} {:?}", cookies.header(true)).contains("s3cret"));
        assert_eq!(sent(&[&format!("a={}", "x".repeat(5000))], true), None);
    }
}
