//! Cookies, tokens and headers: to whom they go, and where they must not show.

use std::sync::Arc;
use std::time::Duration;

use vgi_transport::{Execution, InitOptions, NeverInterrupted, Options, drain_background};

use crate::support::server::{Answer, Request, Server};
use crate::support::vgi::Vgi;
use crate::support::{attached, bind, chunk};

const SECRET: &str = "s3cret-t0ken";

fn secretive() -> Options {
    Options {
        bearer_token: Some(SECRET.to_owned()),
        headers: vec![("X-Api-Key".to_owned(), SECRET.to_owned())],
        retries: 0,
        ..Options::default()
    }
}

fn whole_call(server: &Server, options: &Options) {
    let bound = bind(&attached(server, options).unwrap()).unwrap();
    let execution = Execution::start(Arc::new(bound), InitOptions::default(), &NeverInterrupted).unwrap();
    let mut states = Vec::new();
    for value in [1, 2] {
        states.push(execution.process(chunk(&[value]), None).unwrap().wait(&NeverInterrupted).unwrap().state_id);
    }
    for id in execution.combine(states, &NeverInterrupted).unwrap() {
        let mut stream = execution.open_stream(id).unwrap();
        while stream.next(&NeverInterrupted).unwrap().is_some() {}
    }
    drop(execution);
    assert!(drain_background(Duration::from_secs(10)));
}

fn after<'a>(seen: &'a [Request], call: &str) -> &'a [Request] {
    let place = seen.iter().position(|request| request.path.ends_with(call)).unwrap();
    &seen[place + 1..]
}

#[test]
fn a_cookie_comes_back_with_every_later_request() {
    let vgi = Vgi::current();
    let server = Server::start(move |request| {
        let answer = vgi.answer(request);
        match request.path.rsplit('/').next().unwrap() {
            "catalog_attach" => {
                answer.with("Set-Cookie", "sticky=one; Path=/; HttpOnly").with("Set-Cookie", "tls=1; Secure")
            }
            "table_buffering_combine" => answer.with("Set-Cookie", "sticky=two"),
            _ => answer,
        }
    });
    whole_call(&server, &Options::default());
    let seen = server.seen();
    let later = after(&seen, "catalog_attach");
    let calls = ["bind", "init", "process", "process", "combine", "init", "exchange", "exchange", "destructor"];
    assert_eq!(later.len(), calls.len());
    for (position, (request, call)) in later.iter().zip(calls).enumerate() {
        assert!(request.path.ends_with(call), "{}", request.path);
        let expected = if position < 5 { "sticky=one" } else { "sticky=two" };
        assert_eq!(request.headers.get("cookie").map(String::as_str), Some(expected), "{call}");
    }
    assert!(seen.iter().take(3).all(|request| !request.headers.contains_key("cookie")));
}

#[test]
fn cookies_belong_to_one_attachment() {
    let vgi = Vgi::current();
    let server = Server::start(move |request| vgi.answer(request).with("Set-Cookie", "who=first"));
    attached(&server, &Options::default()).unwrap();
    let others = server.seen().len();
    attached(&server, &secretive()).unwrap();
    assert!(!server.seen()[others].headers.contains_key("cookie"));
}

#[test]
fn the_token_goes_with_every_request_but_the_public_one() {
    let server = Vgi::current().start();
    whole_call(&server, &secretive());
    for request in server.seen() {
        let token = request.headers.get("authorization").map(String::as_str);
        let expected = (!request.path.ends_with("health")).then(|| format!("Bearer {SECRET}"));
        assert_eq!(token, expected.as_deref(), "{}", request.path);
        assert_eq!(request.headers["x-api-key"], SECRET);
    }
}

#[test]
fn nothing_follows_a_redirect_and_nothing_shows() {
    for status in [301, 302, 303, 307, 308] {
        let other = Server::start(|_| Answer::text(200, "text/plain", ""));
        let target = format!("{}/?token={SECRET}", other.url());
        for call in ["health", "catalog_attach", "bind"] {
            let target = target.clone();
            let server = Vgi::current().start_with(move |name, _| {
                (name == call).then(|| {
                    Answer::text(status, "text/plain", "")
                        .with("Location", &target)
                        .with("Set-Cookie", "a=s3cret-t0ken")
                })
            });
            let error = attached(&server, &secretive()).and_then(|attachment| bind(&attachment)).unwrap_err();
            assert!(!format!("{error} {error:?} {error:#?}").contains(SECRET), "{error:?}");
            assert!(error.to_string().contains(&other.url()), "{error}");
        }
        assert_eq!(other.connections(), 0, "{status}");
    }
}

#[test]
fn what_is_printed_for_debugging_shows_no_secret() {
    let vgi = Vgi::current();
    let server = Server::start(move |request| vgi.answer(request).with("Set-Cookie", "a=s3cret-t0ken"));
    let attachment = attached(&server, &secretive()).unwrap();
    let bound = Arc::new(bind(&attachment).unwrap());
    let execution = Execution::start(Arc::clone(&bound), InitOptions::default(), &NeverInterrupted).unwrap();
    let pending = execution.process(chunk(&[1]), None).unwrap();
    let printed = format!("{:?} {attachment:?} {bound:?} {execution:?} {pending:?}", secretive());
    assert!(!printed.contains(SECRET), "{printed}");
    pending.wait(&NeverInterrupted).unwrap();
}

#[test]
fn the_bound_of_replies_is_announced_where_it_is_understood() {
    for (support, max, announced) in [
        (Some("true"), 1 << 20, Some("1048576")),
        (Some("true"), 10, Some("65536")),
        (Some("true"), u64::MAX, Some("9007199254740991")),
        (Some("false"), 1 << 20, None),
        (None, 1 << 20, None),
    ] {
        let vgi = Vgi::current();
        let server = Server::start(move |request| match support {
            Some(value) => vgi.answer(request).with("VGI-Accept-Max-Response-Bytes-Support", value),
            None => vgi.answer(request),
        });
        let options = Options { max_response_bytes: max, ..Options::default() };
        if max < 1000 {
            // too little for any reply: only the announcement matters here
            assert!(attached(&server, &options).is_err());
            continue;
        }
        whole_call(&server, &options);
        let seen = server.seen();
        for request in after(&seen, "health") {
            let header = request.headers.get("vgi-accept-max-response-bytes").map(String::as_str);
            assert_eq!(header, announced, "{}", request.path);
        }
    }
}
