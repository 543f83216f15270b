//! Drives gitoxide, git in Rust, which shares no code with git. test/clients/driver-protocol.ts says how.

use std::error::Error;
use std::sync::atomic::AtomicBool;

use gix::progress::Discard;
use gix::remote::Direction;
use gix::remote::fetch::{Shallow, Tags};
use serde_json::{Value, json};

fn text<'a>(asked: &'a Value, name: &str) -> &'a str {
    asked[name].as_str().unwrap_or_default()
}

/// gitoxide sends no password without TLS, so the token goes as a header, as it would for a proxy of a user.
fn header(asked: &Value) -> String {
    format!("http.extraHeader=Authorization: Bearer {}", text(asked, "token"))
}

fn clone(asked: &Value) -> Result<(), Box<dyn Error>> {
    let running = AtomicBool::new(false);
    let mut prepared = gix::prepare_clone(text(asked, "url"), text(asked, "folder"))?
        .with_in_memory_config_overrides([header(asked)]);
    if let Some(depth) = asked["depth"].as_u64() {
        prepared = prepared.with_shallow(Shallow::DepthAtRemote(u32::try_from(depth)?.try_into()?));
    }
    let (mut checkout, _) = prepared.fetch_then_checkout(Discard, &running)?;
    checkout.main_worktree(Discard, &running)?;
    Ok(())
}

fn fetch(asked: &Value, shallow: Shallow) -> Result<(), Box<dyn Error>> {
    // Each ref that it moves has a line in a log, with who moved it.
    let committer = ["user.name=Client".to_owned(), "user.email=client@example.org".to_owned()];
    let settings = committer.into_iter().chain([header(asked)]);
    let options = gix::open::Options::default().config_overrides(settings);
    let repository = gix::open_opts(text(asked, "folder"), options)?;
    let remote = repository.find_remote("origin")?.with_fetch_tags(Tags::All);
    let prepared = remote.connect(Direction::Fetch)?.prepare_fetch(Discard, Default::default())?;
    prepared.with_shallow(shallow).receive(Discard, &AtomicBool::new(false))?;
    Ok(())
}

fn answer(asked: &Value) -> Value {
    let done = match text(asked, "operation") {
        "version" => return json!({ "outcome": "ok", "version": env!("CARGO_PKG_VERSION") }),
        "clone" => clone(asked),
        "fetch" => fetch(asked, Shallow::NoChange),
        "unshallow" => fetch(asked, Shallow::undo()),
        // gitoxide does not push yet.
        _ => return json!({ "outcome": "cannot" }),
    };
    let Err(error) = done else { return json!({ "outcome": "ok" }) };
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        words = format!("{words}: {inner}");
        cause = inner.source();
    }
    json!({ "outcome": "refused", "words": words })
}

fn main() -> Result<(), Box<dyn Error>> {
    let asked: Value = serde_json::from_reader(std::io::stdin())?;
    println!("{}", answer(&asked));
    Ok(())
}
