//! `/`: a page for whoever opens the worker's URL in a browser, with what there is and SQL to paste.

use std::fmt::{self, Write};

use http::HeaderMap;
use http::header::HOST;

use crate::args::{Argument, Kind, sql_type};
use crate::catalog::{Catalog, Registered};
use crate::function::Filters;

/// What a browser may do with the page: show it.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
pre{background:#f4f4f4;padding:.6rem;overflow-x:auto;border-radius:4px}code,pre{font-family:ui-monospace,monospace;font-size:.9em}\
table{border-collapse:collapse}td,th{border-bottom:1px solid #ddd;padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top}\
h3{margin-bottom:.2rem}p{margin:.3rem 0}.note{color:#666}";

/// The page.
pub(super) fn page(catalog: &Catalog, headers: &HeaderMap) -> String {
    let mut page = String::new();
    // writing to a string cannot fail
    write(&mut page, catalog, &url(headers)).ok();
    page
}

/// The URL that the browser used. What is no plain host would only mislead.
fn url(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let plain = |host: &&str| {
        (1..=255).contains(&host.len())
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']'))
    };
    format!("http://{}", host.filter(plain).unwrap_or("HOST:PORT"))
}

fn write(page: &mut String, catalog: &Catalog, url: &str) -> fmt::Result {
    let name = catalog.name();
    write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{name} – vgi-worker</title><style>{STYLE}</style></head><body>\n<h1>Catalog {name}</h1>\n\
         <p>A VGI worker. In DuckDB with the extension <code>vgi</code>:</p>\n<pre>{attach}</pre>\n",
        name = Escaped(name),
        attach = Escaped(&format!(
            "ATTACH {} AS {} (TYPE vgi, LOCATION {});",
            quoted(name, '\''),
            identifier(name),
            quoted(url, '\'')
        )),
    )?;
    for schema in catalog.schemas() {
        let default = if schema == catalog.default_schema() { " <small class=\"note\">(default)</small>" } else { "" };
        writeln!(page, "<h2>Schema {}{default}</h2>", Escaped(schema))?;
        let path = [schema.to_owned()];
        let mut functions = catalog.functions(&path).into_iter().flatten().peekable();
        if functions.peek().is_none() {
            writeln!(page, "<p>It has no functions.</p>")?;
        }
        for function in functions {
            write_function(page, function.as_ref())?;
        }
    }
    page.write_str("</body></html>\n")
}

fn write_function(page: &mut String, function: &dyn Registered) -> fmt::Result {
    let spec = function.spec();
    let names: Vec<_> = function.arguments().iter().map(signature).collect();
    let signature = ["(table)".to_owned()].into_iter().chain(names).collect::<Vec<_>>().join(", ");
    writeln!(page, "<h3 id=\"{0}\"><code>{0}({1})</code></h3>", Escaped(&spec.name), Escaped(&signature))?;
    writeln!(page, "<p>{}</p>", Escaped(&spec.description))?;
    let notes = notes(function);
    if !notes.is_empty() {
        writeln!(page, "<p class=\"note\">{}</p>", Escaped(&notes.join(" · ")))?;
    }
    if !function.arguments().is_empty() {
        page.write_str("<table><tr><th>Argument</th><th>Type</th><th>Default</th><th>Allowed</th><th></th></tr>\n")?;
        for argument in function.arguments() {
            write_argument(page, argument)?;
        }
        page.write_str("</table>\n")?;
    }
    for example in &spec.examples {
        writeln!(page, "<p>{}</p><pre>{}</pre>", Escaped(&example.description), Escaped(&example.sql))?;
    }
    Ok(())
}

fn signature(argument: &Argument) -> String {
    match argument.kind {
        Kind::Positional => argument.name.to_owned(),
        Kind::Varargs => format!("{} …", argument.name),
        Kind::Named => format!("{} := …", argument.name),
    }
}

fn write_argument(page: &mut String, argument: &Argument) -> fmt::Result {
    let data_type = argument.data_type.as_ref().map_or_else(|| "any".to_owned(), sql_type);
    let default = argument.default.as_ref().map(ToString::to_string).unwrap_or_default();
    let allowed: Vec<_> = argument.rules.metadata().map(|(_, rule)| rule).collect();
    writeln!(
        page,
        "<tr><td><code>{}</code></td><td>{}</td><td><code>{}</code></td><td><code>{}</code></td><td>{}</td></tr>",
        Escaped(argument.name),
        Escaped(&data_type),
        Escaped(&default),
        Escaped(&allowed.join(" ")),
        Escaped(argument.doc)
    )
}

/// What else a user may want to know.
fn notes(function: &dyn Registered) -> Vec<String> {
    let spec = function.spec();
    let mut notes = spec.categories.clone();
    notes.extend(spec.tags.iter().map(|(key, value)| format!("{key}: {value}")));
    let flags = &spec.flags;
    let told = [
        (flags.sink_order_dependent, "takes its input in order, piece by piece"),
        (flags.requires_input_batch_index, "takes its input in order, in parallel"),
        (flags.source_order_dependent, "gives its rows in order"),
        (flags.filters != Filters::Unsupported, "takes filters"),
    ];
    notes.extend(told.into_iter().filter(|(is, _)| *is).map(|(_, text)| text.to_owned()));
    notes.extend(spec.settings.iter().map(|name| format!("reads the setting {name}")));
    notes.extend(spec.secrets.iter().map(|secret| format!("reads a secret of type {}", secret.secret_type)));
    notes
}

/// A name as SQL takes it.
fn identifier(name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && name.starts_with(|first: char| first.is_ascii_lowercase());
    if plain { name.to_owned() } else { quoted(name, '"') }
}

fn quoted(text: &str, quote: char) -> String {
    let mut quoted = String::from(quote);
    for letter in text.chars() {
        quoted.extend(std::iter::repeat_n(letter, if letter == quote { 2 } else { 1 }));
    }
    quoted.push(quote);
    quoted
}

/// Text that means nothing to HTML, in elements and in quoted attributes.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            other => f.write_char(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::functions::example_catalog;

    fn host(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(HOST, HeaderValue::from_static(value))])
    }

    #[test]
    fn every_function_stands_there_with_sql_to_paste() {
        let catalog = example_catalog(true).unwrap();
        let page = page(&catalog, &host("127.0.0.1:9000"));
        let attach = "ATTACH &#39;example&#39; AS example (TYPE vgi, LOCATION &#39;http://127.0.0.1:9000&#39;);";
        assert!(page.contains(attach), "{page}");
        for schema in ["main", "alt"] {
            for function in catalog.functions(&[schema.to_owned()]).unwrap() {
                let spec = function.spec();
                assert!(page.contains(&format!("<h3 id=\"{}\">", spec.name)), "{}", spec.name);
                for example in &spec.examples {
                    assert!(page.contains(&Escaped(&example.sql).to_string()), "{}", example.sql);
                }
            }
        }
        assert!(page.contains("<code>top_k((table), k, by …, descending := …)</code>"), "{page}");
        assert!(page.contains("<td><code>[0, )</code></td>"), "the range of a count");
        assert!(!page.contains("<script"));
    }

    #[test]
    fn nothing_of_a_name_is_markup() {
        let evil = "<script>alert('x')</script>&\"";
        assert_eq!(Escaped(evil).to_string(), "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;");
        let mut catalog = Catalog::new(evil, evil);
        catalog.register(evil, crate::functions::BufferInput::new()).unwrap();
        let page = page(&catalog, &host("127.0.0.1:9000"));
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
        assert_eq!(
            (identifier("Bäd\"name"), identifier("good_1")),
            ("\"Bäd\"\"name\"".to_owned(), "good_1".to_owned())
        );
    }

    #[test]
    fn a_host_that_is_none_is_not_shown() {
        assert_eq!(url(&host("example.com")), "http://example.com");
        assert_eq!(url(&host("[::1]:80")), "http://[::1]:80");
        for bad in ["a'b", "a/b", "a b", ""] {
            assert_eq!(url(&host(bad)), "http://HOST:PORT", "{bad}");
        }
        assert_eq!(url(&HeaderMap::new()), "http://HOST:PORT");
    }
}
