//! The routes of the page, over the small server of `weft-metrics`. Loopback alone; everything below `/api` takes the token.
//!
//! | route | what |
//! |---|---|
//! | `/`, `/style.css`, `/app/…` | the page's files |
//! | `/api/stream` | the state and its changes, without an end |
//! | `/api/tape`, `/api/tape/at`, `/api/tape/play` | what was, at a moment or from one to another |
//! | `/api/flow` | a flow hop by hop |
//! | `/api/metrics` | what the page's own server counts, for Prometheus |
//! | `/api/act` (POST) | an order to the laboratory |

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus::Registry;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use weft_metrics::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST,
    HeaderMap, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY, WWW_AUTHENTICATE,
};
use weft_metrics::{
    Asked, Content, Page, Pieces, Posted, Response, Site, StatusCode, TokenHash, prometheus_text,
};

use crate::act::{Act, Done, Refusal, Stagehand};
use crate::assets::{ASSETS, kind_of};
use crate::flow::hops;
use crate::stage::{Reader, Stage};
use crate::tape::{Play, Tape, TapeError};

/// A stream says at least this often that it lives.
const ALIVE_EVERY: Duration = Duration::from_secs(10);
/// What of a tape is sent at once.
const PIECE_BYTES: usize = 256 << 10;
/// Orders that are carried out at the same time.
const ACTS_MAX: usize = 4;
/// What a browser may do with the page: nothing that leads away from it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; \
     base-uri 'none'; frame-ancestors 'none'; form-action 'none'";

/// What the page shows.
#[derive(Clone)]
pub enum Source {
    /// A laboratory that runs.
    Live(Arc<Stage>, Arc<dyn Stagehand>),
    /// A tape.
    Taped(Arc<Mutex<Tape<File>>>),
}

/// Where the page's files come from.
#[derive(Clone, Debug, Default)]
pub enum Assets {
    /// This program.
    #[default]
    Own,
    /// A folder, for those who change the page.
    Folder(PathBuf),
}

/// The page.
pub struct Pages {
    source: Source,
    assets: Assets,
    token: TokenHash,
    /// The names under which a browser may ask: of another site's page, which has a name of its own, nothing is answered.
    hosts: [String; 2],
    acts: Semaphore,
    /// What the stage and the server count.
    registry: Registry,
}

type Answered = Result<Response<Content>, Refused>;

/// Why a request is not answered.
#[derive(Debug, Serialize)]
struct Refused {
    #[serde(skip)]
    status: StatusCode,
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

fn refused(status: StatusCode, error: impl Into<String>, hint: impl Into<String>) -> Refused {
    Refused { status, error: error.into(), hint: Some(hint.into()).filter(|hint| !hint.is_empty()) }
}

impl From<TapeError> for Refused {
    fn from(error: TapeError) -> Self {
        refused(StatusCode::INTERNAL_SERVER_ERROR, error.to_string(), "")
    }
}

impl From<Refusal> for Refused {
    fn from(Refusal { status, error, hint }: Refusal) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::CONFLICT);
        Self { status, error, hint }
    }
}

impl Site for Pages {
    const TAKES_POSTS: bool = true;

    async fn answer(&self, asked: &Asked) -> Response<Content> {
        let path = asked.uri().path();
        let answer = match self.admits(asked.headers(), path) {
            Err(refused) => Err(refused),
            Ok(()) if path.starts_with("/api/") => {
                self.api(path, asked.uri().query().unwrap_or_default()).await
            }
            Ok(()) => self.file(path),
        };
        finished(answer)
    }

    fn refuses_post(&self, asked: &Asked) -> Option<Response<Content>> {
        let admitted = self.admits(asked.headers(), asked.uri().path());
        let allowed = admitted.and_then(|()| match (asked.uri().path(), &self.source) {
            ("/api/act", Source::Live(_, stagehand)) if stagehand.may_act() => Ok(()),
            ("/api/act", Source::Live(..)) => Err(refused(
                StatusCode::FORBIDDEN,
                "permission denied: a viewer changes nothing",
                "start `weft ui` with an operator's identity",
            )),
            ("/api/act", Source::Taped(_)) => Err(refused(
                StatusCode::CONFLICT,
                "a tape cannot be changed",
                "start `weft ui` without --tape",
            )),
            _ => Err(refused(StatusCode::METHOD_NOT_ALLOWED, "only /api/act takes a POST", "")),
        });
        allowed.err().map(|refused| finished(Err(refused)))
    }

    async fn take(&self, posted: Posted) -> Response<Content> {
        finished(self.act(posted.body()).await)
    }
}

impl Pages {
    /// The page at an address, for those who show the token.
    pub fn new(
        source: Source,
        assets: Assets,
        address: SocketAddr,
        token: &str,
        registry: &Registry,
    ) -> Self {
        let hosts = [address.to_string(), format!("localhost:{}", address.port())];
        let (token, registry) = (TokenHash::of(token), registry.clone());
        Self { source, assets, token, hosts, acts: Semaphore::new(ACTS_MAX), registry }
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    fn admits(&self, headers: &HeaderMap, path: &str) -> Result<(), Refused> {
        let host = text(headers, HOST);
        if !self.hosts.iter().any(|own| host.is_some_and(|host| host.eq_ignore_ascii_case(own))) {
            let hint = format!("ask for http://{}/", self.hosts[0]);
            return Err(refused(StatusCode::FORBIDDEN, "the page has another address", hint));
        }
        let origin = text(headers, ORIGIN);
        let is_own = |origin: &str| origin.strip_prefix("http://").is_some_and(|origin| Some(origin) == host);
        if headers.contains_key(ORIGIN) && !origin.is_some_and(is_own) {
            return Err(refused(StatusCode::FORBIDDEN, "pages of other sites may not ask this one", ""));
        }
        if !path.starts_with("/api/") {
            return Ok(());
        }
        let shown = text(headers, AUTHORIZATION).and_then(|value| value.split_once(' '));
        let shown = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        match shown.is_some_and(|(_, token)| self.token.is_that_of(token.trim())) {
            true => Ok(()),
            false => Err(refused(
                StatusCode::UNAUTHORIZED,
                "the token is missing or wrong",
                "open the address that `weft ui` has printed, with all that is behind the #",
            )),
        }
    }

    fn file(&self, path: &str) -> Answered {
        let path = if path == "/" { "index.html" } else { path.trim_start_matches('/') };
        let known = ASSETS.iter().find(|asset| asset.path == path);
        let bytes = match &self.assets {
            Assets::Own => known.map(|asset| asset.bytes.to_vec()),
            // Names of files, and no way up.
            Assets::Folder(folder) if path.split('/').all(is_plain) => std::fs::read(folder.join(path)).ok(),
            Assets::Folder(_) => None,
        };
        let found = bytes.zip(kind_of(path));
        let (bytes, kind) =
            found.ok_or_else(|| refused(StatusCode::NOT_FOUND, "there is no such page", ""))?;
        Ok(of_kind(kind, Content::whole(bytes)))
    }

    async fn api(&self, path: &str, query: &str) -> Answered {
        let query = Query::read(query)?;
        match path {
            "/api/stream" => self.stream(&query).await,
            "/api/tape" => self.span(),
            "/api/tape/at" => Ok(json_of(&json!({ "key": self.at(query.moment("ms")?).await? }))),
            "/api/tape/play" => self.play(query.moment("from")?, query.moment("to")?).await,
            "/api/flow" => self.flow(&query).await,
            "/api/metrics" => Ok(prometheus_text(Page::new().encode(&self.registry))),
            "/api/act" => Err(refused(StatusCode::METHOD_NOT_ALLOWED, "orders are a POST", "")),
            _ => Err(refused(StatusCode::NOT_FOUND, "there is no such request", "docs/page.md lists them")),
        }
    }

    async fn stream(&self, query: &Query) -> Answered {
        let first = match query.0.get("from").map(String::as_str) {
            None | Some("live" | "") => None,
            Some(_) => Some(self.at(query.moment("from")?).await?),
        };
        let pieces = match &self.source {
            Source::Live(stage, _) if first.is_none() => of_reader(stage.reader()),
            // What was is shown once; a reader that wants it to go on plays it.
            _ => {
                let key = match first {
                    Some(key) => key,
                    None => self.at(0).await?,
                };
                alone(format!("{}\n", json!({ "key": key })))
            }
        };
        Ok(of_kind("application/x-ndjson", pieces.into()))
    }

    fn span(&self) -> Answered {
        Ok(json_of(&match &self.source {
            Source::Live(stage, _) => stage.span(),
            Source::Taped(tape) => tape.lock().unwrap_or_else(PoisonError::into_inner).span(),
        }))
    }

    async fn at(&self, ms: u64) -> Result<Value, Refused> {
        match &self.source {
            Source::Live(stage, _) => {
                let nothing = || refused(StatusCode::CONFLICT, "nothing is known of the laboratory yet", "");
                stage.at(ms).ok_or_else(nothing)
            }
            Source::Taped(tape) => on_tape(tape, move |tape| tape.at(ms)).await,
        }
    }

    async fn play(&self, from_ms: u64, to_ms: u64) -> Answered {
        let pieces = match &self.source {
            Source::Live(stage, _) => {
                let key = format!("{}\n", json!({ "key": self.at(from_ms).await? }));
                let next = stage.behind(from_ms).unwrap_or_default();
                let rest = played(stage.clone(), next, to_ms);
                Pieces::new(async move { Some((key.into(), rest)) })
            }
            Source::Taped(tape) => {
                let (key, play) = on_tape(tape, move |tape| tape.play(from_ms, to_ms)).await?;
                let (key, rest) = (format!("{}\n", json!({ "key": key })), of_tape(tape.clone(), play));
                Pieces::new(async move { Some((key.into(), rest)) })
            }
        };
        Ok(of_kind("application/x-ndjson", pieces.into()))
    }

    async fn flow(&self, query: &Query) -> Answered {
        let missing = || refused(StatusCode::BAD_REQUEST, "`id` is missing", "ask /api/flow?id=NAME");
        let id = query.0.get("id").ok_or_else(missing)?;
        let state = match (&self.source, query.0.contains_key("ms")) {
            (Source::Live(..), false) => self.at(u64::MAX).await?,
            _ => self.at(query.moment("ms")?).await?,
        };
        let found = hops(&state, id);
        found.map(|hops| json_of(&hops)).ok_or_else(|| {
            refused(StatusCode::NOT_FOUND, format!("there is no flow `{id}`"), "`weft flow ls` lists them")
        })
    }

    async fn act(&self, content: &[u8]) -> Answered {
        let Source::Live(_, stagehand) = &self.source else {
            return Err(refused(StatusCode::CONFLICT, "a tape cannot be changed", ""));
        };
        let act: Act = serde_json::from_slice(content).map_err(|error| {
            refused(
                StatusCode::BAD_REQUEST,
                format!("no order is like this: {error}"),
                "docs/page.md lists orders",
            )
        })?;
        let Ok(_permit) = self.acts.try_acquire() else {
            let error = format!("{ACTS_MAX} orders are being carried out");
            return Err(refused(StatusCode::SERVICE_UNAVAILABLE, error, "wait for one of them"));
        };
        let stagehand = stagehand.clone();
        let done = tokio::task::spawn_blocking(move || stagehand.act(act)).await;
        let failed =
            |_| refused(StatusCode::INTERNAL_SERVER_ERROR, "the order failed in an unexpected way", "");
        Ok(match done.map_err(failed)?? {
            Done::Words(words) => json_of(&json!({ "done": words })),
            Done::File { name, bytes } => {
                let mut response = of_kind("application/octet-stream", Content::whole(bytes));
                let name: String =
                    name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
                if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
                    response.headers_mut().insert(CONTENT_DISPOSITION, value);
                }
                response
            }
        })
    }
}

/// Reads a tape in a thread that may wait.
async fn on_tape<T: Send + 'static>(
    tape: &Arc<Mutex<Tape<File>>>,
    read: impl FnOnce(&mut Tape<File>) -> Result<T, TapeError> + Send + 'static,
) -> Result<T, Refused> {
    let tape = tape.clone();
    let read = move || read(&mut tape.lock().unwrap_or_else(PoisonError::into_inner));
    let failed = |_| refused(StatusCode::INTERNAL_SERVER_ERROR, "the tape could not be read", "");
    Ok(tokio::task::spawn_blocking(read).await.map_err(failed)??)
}

/// The lines of a reader, or signs of life.
fn of_reader(mut reader: Reader) -> Pieces {
    Pieces::new(async move {
        let piece = match tokio::time::timeout(ALIVE_EVERY, reader.next()).await {
            Ok(line) => format!("{}\n", line.json),
            Err(_) => alive(),
        };
        Some((piece.into(), of_reader(reader)))
    })
}

/// One line, and signs of life behind it.
fn alone(line: String) -> Pieces {
    Pieces::new(async move { Some((line.into(), beats())) })
}

fn beats() -> Pieces {
    Pieces::new(async {
        tokio::time::sleep(ALIVE_EVERY).await;
        Some((alive().into(), beats()))
    })
}

fn alive() -> String {
    // The number is no time: whoever reads takes it as a sign of life.
    format!("{{\"alive\":{}}}\n", ALIVE_EVERY.as_secs())
}

/// The lines of the last ten minutes from one on, up to a moment.
fn played(stage: Arc<Stage>, next: u64, to_ms: u64) -> Pieces {
    Pieces::new(async move {
        let (next, line) = stage.line(next, to_ms)?;
        Some((format!("{}\n", line.json).into(), played(stage, next, to_ms)))
    })
}

fn of_tape(tape: Arc<Mutex<Tape<File>>>, mut play: Play) -> Pieces {
    Pieces::new(async move {
        let read = move |tape: &mut Tape<File>| tape.more(&mut play, PIECE_BYTES).map(|lines| (lines, play));
        // What cannot be read ends what is played.
        let (lines, play) = on_tape(&tape, read).await.ok()?;
        (!lines.is_empty()).then(|| (lines.into(), of_tape(tape, play)))
    })
}

/// A query by its names.
struct Query(BTreeMap<String, String>);

impl Query {
    fn read(query: &str) -> Result<Self, Refused> {
        serde_urlencoded::from_str(query)
            .map(Self)
            .map_err(|error| refused(StatusCode::BAD_REQUEST, format!("the query is invalid: {error}"), ""))
    }

    fn moment(&self, name: &str) -> Result<u64, Refused> {
        let given = self.0.get(name).and_then(|given| given.parse().ok());
        given.ok_or_else(|| {
            let error = format!("`{name}` is a moment in milliseconds");
            refused(StatusCode::BAD_REQUEST, error, "/api/tape says which there are")
        })
    }
}

/// A header that is there once and is text.
fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then(|| first.to_str().ok()).flatten()
}

fn is_plain(name: &str) -> bool {
    !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && !name.is_empty()
}

fn of_kind(kind: &'static str, content: Content) -> Response<Content> {
    let mut response = Response::new(content);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn json_of(value: &impl Serialize) -> Response<Content> {
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    of_kind("application/json", Content::whole(text))
}

/// With the headers that every answer has.
fn finished(answer: Answered) -> Response<Content> {
    let mut response = answer.unwrap_or_else(|refused| {
        let mut response = json_of(&refused);
        *response.status_mut() = refused.status;
        if refused.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    });
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
